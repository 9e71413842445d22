"""Evaluations to reach targets on the 24 functions of the bbob suite, and their comparison.

    python scripts/bench_bbob.py run cma --out cma.csv --instances 1-5
    python scripts/bench_bbob.py run esgroup --out ours.csv --instances 1-5 --jobs 2
    python scripts/bench_bbob.py run esgroup --out ours.csv --label mirrored --option mirrored=True
    python scripts/bench_bbob.py run cma --out popsizes.csv --functions 1,8,10 --dims 5,10 --popsizes 8,16,64
    python scripts/bench_bbob.py run cma --out bipop.csv --restarts bipop --budget 10000 --dims 5 --part 2/4
    python scripts/bench_bbob.py table ours.csv cma.csv --label esgroup --baseline cma
    python scripts/bench_bbob.py run esgroup --out noisy.csv --noise normal,gauss-severe --label plain --budget 2000
    python scripts/bench_bbob.py run lra --out noisy.csv --noise normal,gauss-severe --budget 2000
    python scripts/bench_bbob.py noise-table noisy.csv --label adapt --baselines plain,lra

The problems and their instances are those of `ioh`. A run starts at a point from U[-4, 4]^d, the same for all methods
and seeds, with step size 2, and ends when the last target is hit, the budget is spent or the method stops by itself.
The targets are differences to the optimum. Files are appended to, and runs that they hold already are left out. BLAS
runs on one thread. Needs ioh and, for the baselines, cma and cmaes.

With --noise the values are noisy (bbob_noise.py has the models), and a run is judged by the value without noise at the
mean of the search after 100 d, 400 d and 2000 d evaluations, in files of another kind.
"""
# extras: bench

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from bbob_arguments import parse_option, parse_part, parse_range
from bbob_noise import (
    CHECKPOINTS,
    NOISES,
    NoisyTask,
    append_noisy_rows,
    noise_report,
    read_noisy_rows,
    solve_noisy,
)
from bbob_rows import Row, Run, Setup, append_rows, finished, read_rows, setups
from bbob_runs import Task, solve, solved_tasks
from bbob_tables import report


class Method(StrEnum):
    esgroup = "esgroup"
    cma = "cma"
    lra = "lra"  # LRA-CMA-ES of cmaes, with --noise only


class Restarts(StrEnum):
    none = "none"
    bipop = "bipop"
    ipop = "ipop"


def stored(path: Path) -> list[Row]:
    """Rows of a file; one that is no benchmark's file is an error of the command line."""
    try:
        return read_rows(path)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class Progress:
    """Says what was run and how long the rest may take; a run in d dimensions is taken to cost d^2."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.number, self.total = 0, len(tasks)
        self.done, self.cost = 0, sum(task.run.dim**2 for task in tasks)
        self.since = time.monotonic()

    def say(self, rows: Sequence[Row]) -> None:
        """A line about a run that has ended."""
        row, hit = rows[0], sum(row.evals is not None for row in rows)
        self.number, self.done = self.number + 1, self.done + row.dim**2
        left = (time.monotonic() - self.since) * (self.cost / self.done - 1) / 60
        popsize = "" if row.popsize is None else f" popsize {row.popsize}"
        print(
            f"{self.number}/{self.total} {row.label} f{row.function} d{row.dim} instance {row.instance}{popsize}: "
            f"{hit} of {len(rows)} targets, {row.used} evaluations, {row.ended}, {row.cpu:.1f} s; "
            f"about {left:.0f} min left",
            file=sys.stderr,
            flush=True,
        )


app = typer.Typer(
    help=(__doc__ or "").replace("    python", "\b\n    python", 1),  # the examples keep their lines
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # messages in one piece, not in a box
)


@app.command()
def run(
    method: Method,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the Searcher; may be repeated.")] = None,
    functions: str = "1-24",
    dims: str = "5,10,20,40",
    instances: Annotated[str, typer.Option(help="Instances of ioh; constants were tuned on 1-5.")] = "1-5",
    popsizes: Annotated[str, typer.Option(help="Population sizes; the method's default if not given.")] = "",
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")] = 3000,
    restarts: Restarts = Restarts.none,
    noise: Annotated[str, typer.Option(help=f"Noise on the values, some of {', '.join(NOISES)}.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Runs with another seed are other runs.")] = 0,
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run one method and append a row per run and target."""
    options = sorted(option or [])
    if options and method is not Method.esgroup:
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    if any(parse_option(text)[0] == "popsize" for text in options):
        raise typer.BadParameter(f"--option must not set popsize, which --popsizes does, got {options}")
    if noise:
        if popsizes or restarts is not Restarts.none or jobs != 1:
            raise typer.BadParameter("--noise takes neither --popsizes nor --restarts nor --jobs")
        problems = [
            Run(function, dim, instance, None, seed)
            for instance in parse_range(instances, "--instances", 1)
            for dim in parse_range(dims, "--dims", 2)
            for function in parse_range(functions, "--functions", 1, 24)
        ][parse_part(part)]
        run_noisy(out, label or str(method), str(method), ";".join(options), noise.split(","), budget, problems)
        return
    if method is Method.lra:
        raise typer.BadParameter("lra must be run with --noise")
    name, setup = label or str(method), Setup(str(method), ";".join(options), budget, str(restarts))
    sizes: list[int | None] = [*parse_range(popsizes, "--popsizes", 2)] if popsizes else [None]
    runs = [  # by instances, so that a part of the benchmark has something of everything
        Run(function, dim, instance, popsize, seed)
        for instance in parse_range(instances, "--instances", 1)
        for popsize in sizes
        for dim in parse_range(dims, "--dims", 2)
        for function in parse_range(functions, "--functions", 1, 24)
    ][parse_part(part)]
    run_all(out, name, setup, runs, jobs, solve)


def run_all(
    out: Path, label: str, setup: Setup, runs: Sequence[Run], jobs: int, solve: Callable[[Task], list[Row]]
) -> None:
    """Do the runs of a label that a file does not hold yet, and append a row per run and target."""
    rows = stored(out)
    if (known := setups(rows).get(label, setup)) != setup:
        raise typer.BadParameter(f"label {label!r} stands for {known} in {out}; choose another --label")
    done = finished(rows)
    tasks = [Task(label, setup, run) for run in runs if (label, run) not in done]
    print(f"{len(tasks)} runs to do, {len(runs) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    progress = Progress(tasks)
    for new in solved_tasks(tasks, jobs, solve):
        append_rows(out, new)
        progress.say(new)


def run_noisy(
    out: Path, label: str, method: str, options: str, noises: Sequence[str], budget: int, problems: Sequence[Run]
) -> None:
    """Run one method on problems with noise and append a row per run and checkpoint."""
    unknown = sorted(set(noises) - set(NOISES))
    if unknown:
        raise typer.BadParameter(f"--noise must be some of {', '.join(NOISES)}, got {', '.join(unknown)}")
    if budget < CHECKPOINTS[0]:
        raise typer.BadParameter(f"--budget must be at least {CHECKPOINTS[0]} with --noise, got {budget}")
    every = [NoisyTask(label, method, options, name, budget, problem) for problem in problems for name in noises]
    try:
        rows = read_noisy_rows(out)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for row in rows:
        if row.label == label and (row.method, row.options, row.budget) != (method, options, budget):
            known = f"{row.method} {row.options} with {row.budget} d evaluations"
            raise typer.BadParameter(f"label {label!r} stands for {known} in {out}; choose another --label")
    done = {row.task for row in rows}
    tasks = [task for task in every if task not in done]
    print(f"{len(tasks)} runs to do, {len(every) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    since = time.monotonic()
    for number, task in enumerate(tasks, 1):
        found = solve_noisy(task)
        append_noisy_rows(out, found)
        left = (time.monotonic() - since) * (len(tasks) / number - 1) / 60
        what = f"{label} f{task.run.function} d{task.run.dim} instance {task.run.instance} {task.noise}"
        gaps = ", ".join(f"{row.gap:.2g}" for row in found)
        print(f"{number}/{len(tasks)} {what}: {gaps}, {found[-1].ended}; about {left:.0f} min left", file=sys.stderr)


@app.command()
def noise_table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "adapt",
    baselines: Annotated[str, typer.Option(help="Labels; it is compared with the best of them.")] = "plain,lra",
) -> None:
    """Compare the gaps of runs with noise in markdown; exit code 1 if a goal is missed."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        text, good = noise_report([row for path in files for row in read_noisy_rows(path)], label, baselines.split(","))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)
    raise typer.Exit(not good)


@app.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "esgroup",
    baseline: Annotated[str, typer.Option(help="Label it is compared with.")] = "cma",
) -> None:
    """Compare two labels in markdown; exit code 1 if a goal is missed."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    rows = {path: stored(path) for path in files}
    places = {row.label: str(path) for path, found in rows.items() for row in found}
    try:
        text, good = report([row for found in rows.values() for row in found], label, baseline, places)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)
    raise typer.Exit(not good)


if __name__ == "__main__":
    app()
