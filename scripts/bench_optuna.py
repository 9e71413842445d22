"""Gap after 2,000 trials of an Optuna study on functions of the bbob suite: EsgroupSampler beside CmaEsSampler.

    python scripts/bench_optuna.py run --out optuna.csv
    python scripts/bench_optuna.py run --out optuna.csv --instances 501-505
    python scripts/bench_optuna.py table optuna.csv --instances 501

Functions 1, 8 and 10 with 10 parameters from -5 to 5, each sampler with its defaults, 10 seeds: five minutes or so for
an instance. A row of the file is a run; runs that are in the file are not run again. Nothing was tuned on instances
beyond 3. The first trial is random for both samplers, and differs between them.
"""
# extras: bench optuna

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from bbob_arguments import parse_range
from bbob_rows import Run
from bbob_runs import bbob_problem

SAMPLERS = ("esgroup", "cmaes")


class Row(NamedTuple):
    """One study: the sampler, the problem, and the smallest value found less the minimum."""

    sampler: str
    function: int
    dim: int
    instance: int
    seed: int
    trials: int
    gap: float = float("nan")
    seconds: float = float("nan")

    @property
    def task(self) -> Row:
        """The row without what was found."""
        return Row(*self[:6])


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    if not lines or tuple(lines[0]) != Row._fields:
        raise typer.BadParameter(f"{path} must be a file of this benchmark")
    return [Row(name, *map(int, numbers[:5]), *map(float, numbers[5:])) for name, *numbers in lines[1:]]


def append_row(path: Path, row: Row) -> None:
    """Add a row to a file, which gets a head if it is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(Row._fields)
        writer.writerow(row)


def solved(task: Row) -> Row:
    """The row of a study."""
    import optuna

    from esgroup.optuna import EsgroupSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = bbob_problem(Run(task.function, task.dim, task.instance, None, task.seed))
    names = [f"x{i:02d}" for i in range(task.dim)]

    def objective(trial: optuna.Trial) -> float:
        return float(problem([trial.suggest_float(name, -5.0, 5.0) for name in names]))

    makers: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
        "esgroup": lambda: EsgroupSampler(seed=task.seed),
        "cmaes": lambda: optuna.samplers.CmaEsSampler(seed=task.seed),
    }
    study = optuna.create_study(sampler=makers[task.sampler]())
    since = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=task.trials)
    return task._replace(
        gap=study.best_value - float(problem.optimum.y), seconds=round(time.process_time() - since, 2)
    )


def quartiles(gaps: Iterable[float]) -> str:
    """Median and, in parentheses, the quartiles."""
    low, median, high = np.quantile(list(gaps), [0.25, 0.5, 0.75])
    return f"{median:.3g} ({low:.3g} to {high:.3g})"


app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    samplers: str = ",".join(SAMPLERS),
    functions: str = "1,8,10",
    instances: Annotated[str, typer.Option(help="Instances of ioh; 1-3 are those for tuning.")] = "1-3",
    dim: int = 10,
    seeds: Annotated[str, typer.Option(help="Seeds of the samplers.")] = "0-9",
    trials: int = 2000,
) -> None:
    """Run the studies that are not in the file yet."""
    unknown = sorted(set(samplers.split(",")) - set(SAMPLERS))
    if unknown:
        raise typer.BadParameter(f"--samplers must be some of {', '.join(SAMPLERS)}, got {', '.join(unknown)}")
    tasks = [
        Row(sampler, function, dim, instance, seed, trials)
        for seed in parse_range(seeds, "--seeds", 0)
        for instance in parse_range(instances, "--instances", 1)
        for function in parse_range(functions, "--functions", 1, 24)
        for sampler in samplers.split(",")
    ]
    done = {tuple(row.task[:6]) for row in read_rows(out)}
    left = [task for task in tasks if tuple(task[:6]) not in done]
    print(f"{len(left)} studies to do, {len(tasks) - len(left)} in {out} already", file=sys.stderr, flush=True)
    for number, task in enumerate(left, 1):
        row = solved(task)
        append_row(out, row)
        what = f"{row.sampler} f{row.function} instance {row.instance} seed {row.seed}"
        print(f"{number}/{len(left)} {what}: {row.gap:.3g}, {row.seconds} s", file=sys.stderr, flush=True)


@app.command()
def table(
    files: list[Path],
    instances: Annotated[str, typer.Option(help="Instances that count; all in the files if not given.")] = "",
) -> None:
    """Print medians and quartiles of the gap; exit code 1 if a median of esgroup is not below that of cmaes."""
    rows = [row for path in files for row in read_rows(path)]
    if instances:
        wanted = set(parse_range(instances, "--instances", 1))
        rows = [row for row in rows if row.instance in wanted]
    if not rows:
        raise typer.BadParameter("the files must hold runs of these instances, got none")
    good = True
    typer.echo("| function | parameters | trials | runs | esgroup | cmaes | s a study |\n|---|---|---|---|---|---|---|")
    for function, dim, trials in sorted({(row.function, row.dim, row.trials) for row in rows}):
        mine = [row for row in rows if (row.function, row.dim, row.trials) == (function, dim, trials)]
        found = {name: [row for row in mine if row.sampler == name] for name in SAMPLERS}
        if not all(found.values()):
            raise typer.BadParameter(f"the files must have runs of both samplers on f{function}")
        runs = " and ".join(sorted({str(len(part)) for part in found.values()}))
        cells = [quartiles(row.gap for row in part) for part in found.values()]
        seconds = " and ".join(f"{np.median([row.seconds for row in part]):.1f}" for part in found.values())
        typer.echo(f"| f{function} | {dim} | {trials:,} | {runs} | {' | '.join(cells)} | {seconds} |")
        ours, theirs = (np.median([row.gap for row in part]) for part in found.values())
        good &= bool(ours < theirs)
    raise typer.Exit(not good)


if __name__ == "__main__":
    app()
