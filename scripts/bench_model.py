"""Few evaluations: a search with a quadratic model beside the plain one, cma, lq-CMA-ES and methods with models.

    python scripts/bench_model.py run esgroup --label model --option model=quadratic --out model.csv --jobs 2
    python scripts/bench_model.py run cma --out model.csv
    python scripts/bench_model.py run newuoa --out model.csv --functions 1,8 --dims 5 --part 2/4
    python scripts/bench_model.py run cobyqa --out model.csv --dims 5,10,20,40 --seconds 600
    python scripts/bench_model.py run esgroup --label noisy --option model=quadratic --noise 0.3 --out noisy.csv
    python scripts/bench_model.py run esgroup --label model-2x --option model=quadratic --batch 2x --out batches.csv
    python scripts/bench_model.py run cma --label cma-bipop --option restarts=bipop --budget 10000 --out bipop.csv
    python scripts/bench_model.py table model.csv --label model
    python scripts/bench_model.py gaps model.csv --label model --functions 8,10-12
    python scripts/bench_model.py run esgroup --label plain --out plain.csv --functions 1-24
    python scripts/bench_model.py run esgroup --label again --out plain.csv --functions 1-24 --seed 1
    python scripts/bench_model.py plain model.csv plain.csv
    python scripts/bench_model.py successes bipop.csv
    python scripts/bench_model.py batches model.csv batches.csv
    python scripts/bench_model.py cpu --dims 5,10,20 --rounds 3

The problems are those of `ioh`; a run starts at a point from U[-4, 4]^d, the same for all methods, with step size 2,
and ends at 1e-8 above the optimum, when its budget is spent or when the method stops by itself. COBYQA, NEWUOA and BFGS
by differences begin again at their best point as long as that helps; every evaluation counts. Instances 1-5 are for
tuning, 601-615 for reports. Files are appended to, and runs that they hold already are left out. A run that is cut by
--seconds counts as unsolved with its whole budget. --jobs changes times and what --seconds cuts, and nothing else. BLAS
runs on one thread. Needs ioh, and cma, scipy and nlopt for the baselines.

table: evaluations to 1e-8; a run that does not get there counts with its budget, so that failing a hard problem does
not help. gaps: medians of the gap after 10 d, 30 d, 100 d, 400 d and 2000 d evaluations, and in how many cells one
label has a smaller one than another; gaps below 1e-8 are equal, and equal ones count half. plain: targets reached
within 400 d and 2000 d evaluations, the ratio of evaluations to them and the cells whose interval lies above 1.1,
beside the same of the plain search with other seeds. successes: runs to 1e-8, with restarts. batches: what points that
are evaluated at the same time cost in evaluations, and how many asks they save. cpu: time of the search itself.
"""
# extras: bench

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import model_batches
import model_cpu
import model_tables
import model_targets
import typer
from bbob_arguments import parse_option, parse_part, parse_range
from bbob_rows import Run
from bbob_runs import solved_tasks
from model_runs import (
    METHODS,
    ModelRow,
    ModelSetup,
    ModelTask,
    append_model_rows,
    points_an_ask,
    read_model_rows,
    solve_with_gaps,
)

Method = StrEnum("Method", list(METHODS))  # type: ignore[misc]

SMOOTH = "1,2,6,8-14"  # functions with one minimum, or nearly so, that a quadratic may help with

app = typer.Typer(
    help=(__doc__ or "").replace("    python", "\b\n    python", 1),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def stored(path: Path) -> list[ModelRow]:
    """Rows of a file; one that is no file of this benchmark is an error of the command line."""
    try:
        return read_model_rows(path)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def run(
    method: Method,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the method; may be repeated.")] = None,
    functions: str = SMOOTH,
    dims: str = "5,10,20",
    instances: Annotated[str, typer.Option(help="Instances of ioh; 1-5 are for tuning, 601-615 for reports.")] = "1-3",
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")] = 2000,
    batch: Annotated[
        str, typer.Option(help="Points in an ask of esgroup, 10 or 0.5x (of a population); else as many as it wants.")
    ] = "",
    noise: Annotated[float, typer.Option(min=0.0, help="s: f - f_opt is multiplied by exp(s N(0, 1)).")] = 0.0,
    seconds: Annotated[float, typer.Option(min=0.0, help="On the wall, after which a run is cut; 0: never.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Runs with another seed are other runs.")] = 0,
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run one method and append a row per run."""
    options = sorted(option or [])
    if (batch and method != "esgroup") or (options and method not in ("esgroup", "cma")):
        raise typer.BadParameter(f"--batch is for esgroup only, --option for esgroup and cma, got method {method}")
    given = dict(parse_option(text) for text in options)
    if batch and "restarts" in given:
        raise typer.BadParameter(f"--batch must not be given with restarts, which choose it themselves, got {batch!r}")
    if batch:
        try:
            points_an_ask(batch, popsize=1)
        except ValueError as error:
            raise typer.BadParameter(f"--batch: {error}") from None
    name, setup = label or str(method), ModelSetup(str(method), ";".join(options), budget, batch, noise, seconds)
    rows = stored(out)
    for row in rows:
        if row.label == name and row.setup != setup:
            raise typer.BadParameter(f"label {name!r} stands for {row.setup} in {out}; choose another --label")
    runs = [  # by instances, so that a part of the benchmark has something of everything
        Run(function, dim, instance, None, seed)
        for instance in parse_range(instances, "--instances", 1)
        for dim in parse_range(dims, "--dims", 2)
        for function in parse_range(functions, "--functions", 1, 24)
    ][parse_part(part)]
    done = {row.run for row in rows if row.label == name}
    tasks = [ModelTask(name, setup, one) for one in runs if one not in done]
    print(f"{len(tasks)} runs to do, {len(runs) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    since, cost, total = time.monotonic(), 0, sum(task.run.dim**2 for task in tasks)
    for number, row in enumerate(solved_tasks(tasks, jobs, solve_with_gaps), 1):
        append_model_rows(out, [row])
        cost += row.dim**2
        left = (time.monotonic() - since) * (total / cost - 1) / 60
        what = f"{name} f{row.function} d{row.dim} instance {row.instance}"
        found = f"gap {row.gaps[-1]:.2g}" if row.evals is None and row.gaps else f"{row.used} evaluations"
        print(f"{number}/{len(tasks)} {what}: {found}, {row.ended}, {row.cpu:.1f} s; about {left:.0f} min left",
              file=sys.stderr, flush=True)  # fmt: skip


@app.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "model",
    baseline: Annotated[str, typer.Option(help="Label it is compared with function by function.")] = "cma",
    others: Annotated[
        str, typer.Option(help="Labels the best of which it is compared with.")
    ] = "lq,cobyqa,newuoa,bfgs",
    functions: Annotated[str, typer.Option(help="Functions among those that were run.")] = SMOOTH,
) -> None:
    """Evaluations to 1e-8 in markdown: every label, and the ratio to a baseline and to the best of others."""
    _say(files, lambda rows: model_tables.evaluations(rows, label, baseline, others.split(",")), functions)


@app.command()
def gaps(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "model",
    functions: Annotated[str, typer.Option(help="Functions among those that were run.")] = "1-24",
) -> None:
    """Median gaps at fixed numbers of evaluations in markdown, and cells won against every other label."""
    _say(files, lambda rows: model_tables.gaps(rows, label), functions)


@app.command()
def plain(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "model",
    baseline: Annotated[str, typer.Option(help="Label of the plain search.")] = "plain",
    again: Annotated[str, typer.Option(help="Label of the plain search with other seeds: the floor.")] = "again",
    budgets: Annotated[str, typer.Option(help="Evaluations per coordinate.")] = "400,2000",
    functions: Annotated[str, typer.Option(help="Functions among those that were run.")] = "1-24",
) -> None:
    """Targets reached and evaluations to them against the plain search, beside its own noise, in markdown."""
    chosen = parse_range(budgets, "--budgets", 1)
    _say(files, lambda rows: model_targets.plain(rows, label, baseline, again, chosen), functions)


@app.command()
def successes(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "model-bipop",
) -> None:
    """Runs to 1e-8 and targets reached in markdown, of all labels and against each; for runs with restarts."""
    _say(files, lambda rows: model_targets.successes(rows, label))


@app.command()
def batches(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label of the serial search, run without --batch.")] = "model",
) -> None:
    """Evaluations and asks to 1e-8 of runs with --batch against the serial search in markdown."""
    _say(files, lambda rows: model_batches.batches(rows, label))


@app.command()
def cpu(
    methods: Annotated[str, typer.Option(help="Some of them.")] = ",".join(model_cpu.CONTENDERS),
    dims: Annotated[str, typer.Option(help="Cases with these numbers of coordinates.")] = "5,10,20,40,100,1000",
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each method in each case.")] = 5,
    budget: Annotated[int, typer.Option(min=0, help="Evaluations per coordinate; 0: those of the case.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.0, help="On the wall, after which a run is cut; 0: never.")] = 0.0,
) -> None:
    """CPU time of the search itself per evaluation, in markdown; nothing is stored."""
    names, sizes = methods.split(","), parse_range(dims, "--dims", 2)
    if unknown := sorted(set(names) - set(model_cpu.CONTENDERS)):
        known = ", ".join(model_cpu.CONTENDERS)
        raise typer.BadParameter(f"--methods must be some of {known}, got {', '.join(unknown)}")
    cases = [case._replace(budget=budget or case.budget) for case in model_cpu.CASES if case.dim in sizes]
    if not cases:
        known = ", ".join(str(dim) for dim in sorted({case.dim for case in model_cpu.CASES}))
        raise typer.BadParameter(f"--dims must have some of {known}, got {dims!r}")
    typer.echo(model_cpu.table(model_cpu.measure(cases, names, rounds, seconds)))


def _say(files: Sequence[Path], report: model_tables.Report, functions: str = "1-24") -> None:
    chosen = parse_range(functions, "--functions", 1, 24)
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        typer.echo(report([row for path in files for row in stored(path) if row.function in chosen]))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    app()
