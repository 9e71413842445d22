"""Evaluations to reach targets by feasible points, on COCO's suite bbob-constrained and on eight engineering designs.

    python scripts/bench_constrained.py suite cma --out cma.csv
    python scripts/bench_constrained.py suite esgroup --out ours.csv --functions 1-6 --dims 5
    python scripts/bench_constrained.py suite esgroup --out ours.csv --label small --option popsize=8
    python scripts/bench_constrained.py table ours.csv cma.csv --label esgroup --baseline cma
    python scripts/bench_constrained.py designs cma --out designs.csv
    python scripts/bench_constrained.py designs-table designs.csv

The suite has 54 functions: nine base functions, each with six numbers of constraints, of which the optimum lies on two
thirds (Dufosse, Hansen, Brockhoff, Sampaio, Atamna, Auger: Building scalable test problems for benchmarking constrained
optimizers, 2022). A run begins at the suite's start, which is feasible, with step size 2. Instances 1-3 are for tuning
and are the default. Instances 6-10 are for reporting: they are run once, when nothing is tuned any more. The optimum is
the one that coco-experiment states. As in COCO a target is hit by a point with g(x) <= 0; --tolerance allows g(x) <=
tolerance instead, and is kept in the CSV. Unlike COCO, which counts evaluations of f and of g apart, a point at which
both are evaluated counts once, and so does a point at which a method asks for only one of them.

A design is solved by a point that is within 1e-4 of the published optimum, relatively, and whose constraints, which are
relative to their limits, are at most 1e-6. The instance of a design is the seed of its start.

Methods are `esgroup`; `cma` (fmin_con2) with its defaults and the same start and step sizes; SciPy's `cobyqa`, `slsqp`
by forward differences, both with bounds scaled to [-1, 1], and `de`; `isres` of pymoo. A run ends when the last target
is hit, the budget is spent or the method stops by itself; none is started again. Files are appended to, and runs that
they hold already are left out. BLAS runs on one thread. Needs coco-experiment and the methods' packages.
"""
# extras: bench

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import warnings
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from bbob_arguments import parse_option, parse_part, parse_range
from bbob_rows import Row, Run, Setup, append_rows, finished, setups
from bbob_runs import Task, solved_tasks
from bench_bbob import Progress, stored
from constrained_runs import DESIGN_TARGETS, DESIGNS, METHODS, SUITE_TARGETS, solve_design, solve_suite
from constrained_tables import designs_report, suite_report

Method = StrEnum("Method", {name: name for name in METHODS})  # type: ignore[misc]

SUITE_TOLERANCE = 0.0  # as COCO
DESIGN_TOLERANCE = 1e-6  # constraints of designs are relative to their limits

app = typer.Typer(
    help=(__doc__ or "").replace("    python", "\b\n    python", 1),  # the examples keep their lines
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # messages in one piece, not in a box
)

Out = Annotated[Path, typer.Option(help="CSV to append to.")]
Label = Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")]
Options = Annotated[list[str] | None, typer.Option(help="key=value for the Searcher; may be repeated.")]
Budget = Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")]
Tolerance = Annotated[float, typer.Option(min=0.0, help="A point is feasible if no constraint is above it.")]
Part = Annotated[str, typer.Option(help="2/4: the second of every four runs.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]


@app.command()
def suite(
    method: Method,
    out: Out,
    label: Label = "",
    option: Options = None,
    functions: str = "1-54",
    dims: str = "5,10,20",
    instances: Annotated[str, typer.Option(help="1-3 are for tuning, 6-10 for reporting.")] = "1-3",
    budget: Budget = 2000,
    tolerance: Tolerance = SUITE_TOLERANCE,
    seed: Annotated[int, typer.Option(min=0, help="Runs with another seed are other runs.")] = 0,
    part: Part = "1/1",
    jobs: Jobs = 1,
) -> None:
    """Run one method on bbob-constrained and append a row per run and target."""
    runs = [  # by instances, so that a part of the benchmark has something of everything
        Run(function, dim, instance, None, seed)
        for instance in parse_range(instances, "--instances", 1, 15)
        for dim in parse_range(dims, "--dims", 2, 40)
        for function in parse_range(functions, "--functions", 1, 54)
    ]
    setup = _setup(method, option, budget, tolerance)
    _run(label or str(method), setup, runs[parse_part(part)], out, jobs, SUITE_TARGETS, solve_suite)


@app.command()
def designs(
    method: Method,
    out: Out,
    label: Label = "",
    option: Options = None,
    only: Annotated[str, typer.Option(help=f"Some of {', '.join(DESIGNS)}; all if not given.")] = "",
    instances: Annotated[str, typer.Option(help="Seeds of the starts.")] = "1-5",
    budget: Budget = 5000,
    tolerance: Tolerance = DESIGN_TOLERANCE,
    part: Part = "1/1",
    jobs: Jobs = 1,
) -> None:
    """Run one method on the designs and append a row per run and target."""
    import esgroup_problems as zoo

    names = only.split(",") if only else list(DESIGNS)
    if unknown := sorted(set(names) - set(DESIGNS)):
        raise typer.BadParameter(f"--only must be some of {', '.join(DESIGNS)}, got {', '.join(unknown)}")
    runs = [
        Run(DESIGNS.index(name) + 1, zoo.get(name).dim, instance, None, 0)
        for instance in parse_range(instances, "--instances", 1)
        for name in names
    ]
    setup = _setup(method, option, budget, tolerance)
    _run(label or str(method), setup, runs[parse_part(part)], out, jobs, DESIGN_TARGETS, solve_design)


def _setup(method: str, option: list[str] | None, budget: int, tolerance: float) -> Setup:
    options = sorted(option or [])
    if options and method != "esgroup":
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    if any(parse_option(text)[0] == "tolerance" for text in options):
        raise typer.BadParameter(f"--option must not set tolerance, which --tolerance does, got {options}")
    return Setup(str(method), ";".join([f"tolerance={tolerance:g}", *options]), budget, "none")


def _run(
    label: str,
    setup: Setup,
    runs: Sequence[Run],
    out: Path,
    jobs: int,
    targets: Sequence[float],
    solve: Callable[[Task], list[Row]],
) -> None:
    rows = stored(out)
    if (known := setups(rows).get(label, setup)) != setup:
        raise typer.BadParameter(f"label {label!r} stands for {known} in {out}; choose another --label")
    done = finished(rows, targets)
    tasks = [Task(label, setup, run) for run in runs if (label, run) not in done]
    print(f"{len(tasks)} runs to do, {len(runs) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    progress = Progress(tasks)
    warnings.filterwarnings("ignore", module="scipy|cma|pymoo")  # about points where a method finds no derivative, etc.
    for new in solved_tasks(tasks, jobs, solve):
        append_rows(out, new)
        progress.say(new)


@app.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is compared.")] = "esgroup",
    baseline: Annotated[str, typer.Option(help="Label it is compared with.")] = "cma",
) -> None:
    """Say in markdown what all labels reached on the suite, and compare two of them."""
    typer.echo(_text(files, lambda rows: suite_report(rows, label, baseline)))


@app.command()
def designs_table(files: list[Path]) -> None:
    """Say in markdown what all labels reached on the designs."""
    typer.echo(_text(files, designs_report))


def _text(files: Sequence[Path], report: Callable[[list[Row]], str]) -> str:
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        return report([row for path in files for row in stored(path)])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    app()
