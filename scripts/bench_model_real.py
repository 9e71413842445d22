"""Few evaluations on problems from practice: with and without a quadratic model, beside cma, lq-CMA-ES, COBYQA and GPs.

    python scripts/bench_model_real.py run esgroup --label model --option model=quadratic --out real.csv
    python scripts/bench_model_real.py run esgroup --out real.csv
    python scripts/bench_model_real.py run cma --out real.csv --problems lynx_hare --part 2/4
    python scripts/bench_model_real.py run gp --out real.csv
    python scripts/bench_model_real.py table real.csv --label model

Problems: `pinene`, a chemical reaction fitted to data; `tuning`, the validation loss of a scikit-learn model, another
one at every evaluation; `lynx_hare` and `cart_pole` of the zoo. model_real_problems.py has them, the values that are to
be reached and where these come from. A run starts at a random point, the same for all methods, with the same step size,
and ends at the stated value, when its budget is spent or when the method stops by itself; none is started again, but
COBYQA begins again at its best point as long as that helps. Every evaluation counts. Seeds 1-5 are for tuning and for
choosing, 101-110 for reports.

Values of `tuning` are noisy, so that the least one is luck. A run gets there when the point that the method would
return if it were stopped now has a mean loss over 20 fixed seeds, which no search sees, at or below the stated value.
For esgroup, cma and lq-CMA-ES that point is the mean of the search distribution, as they advise for noisy functions;
COBYQA and optuna have nothing of the kind, and it is the one with the least observed loss. Judging takes longer than
searching there; it is neither counted nor timed.

Methods: `esgroup`; `cma`; `lq` (cma.fmin_lq_surr2); `cobyqa` of SciPy; `gp`, the GPSampler of optuna, which must have a
box also where the others have none, and is left out if optuna or torch is missing. It gets 200 evaluations, because it
is slow, and if it needs more it counts with the whole budget as any other. All methods are told the bounds; where one
leaves them, the function is that of the nearest point inside. An evaluation that fails is NaN for esgroup, a failed
trial for optuna, and for the others a value as bad as they get.

Files are appended to, and runs that they hold already are left out. BLAS runs on one thread. Ten seeds of all problems
take about two minutes for a method, and 25 for gp. Needs cma, scikit-learn and gymnasium (extras bench and sim), and
optuna and torch for gp.
"""
# extras: bench sim optuna

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import model_real_tables
import typer
from bbob_arguments import parse_option, parse_part, parse_range
from model_real_problems import MAKERS, real_problem
from model_real_runs import METHODS, RealRow, RealSetup, RealTask, append_real_rows, missing, read_real_rows, solve_real

Method = StrEnum("Method", list(METHODS))  # type: ignore[misc]

app = typer.Typer(
    help=(__doc__ or "").replace("    python", "\b\n    python", 1),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def stored(path: Path) -> list[RealRow]:
    """Rows of a file; one that is no file of this benchmark is an error of the command line."""
    try:
        return read_real_rows(path)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_problems(text: str) -> list[str]:
    """pinene,tuning as a list of names."""
    names = text.split(",")
    if unknown := [name for name in names if name not in MAKERS]:
        raise typer.BadParameter(f"--problems must be among {', '.join(MAKERS)}, got {unknown[0]!r}")
    return names


@app.command()
def run(
    method: Method,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the Searcher; may be repeated.")] = None,
    problems: str = ",".join(MAKERS),
    seeds: Annotated[str, typer.Option(help="Seeds of start and method; 1-5 are for tuning, 101-110 for reports.")] = (
        "1-3"
    ),
    budget: Annotated[int, typer.Option(min=0, help="Evaluations of a run; 0: those of the problem.")] = 0,
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
) -> None:
    """Run one method and append a row per run."""
    options = sorted(option or [])
    if options and method != "esgroup":
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    for text in options:
        parse_option(text)
    names = parse_problems(problems)
    if absent := missing(str(method)):
        typer.echo(f"{method} is left out: it needs {' and '.join(absent)}, not installed here", err=True)
        return
    name, setup = label or str(method), RealSetup(str(method), ";".join(options), budget)
    rows = stored(out)
    for row in rows:
        if row.label == name and row.setup != setup:
            raise typer.BadParameter(f"label {name!r} stands for {row.setup} in {out}; choose another --label")
    every = [  # by seeds, so that a part of the benchmark has something of everything
        RealTask(name, setup, problem, seed) for seed in parse_range(seeds, "--seeds", 1) for problem in names
    ][parse_part(part)]
    done = {row.run for row in rows if row.label == name}
    tasks = [task for task in every if task.run not in done]
    print(f"{len(tasks)} runs to do, {len(every) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    since = time.monotonic()
    for number, task in enumerate(tasks, 1):
        row = solve_real(task)
        append_real_rows(out, [row])
        left = (time.monotonic() - since) * (len(tasks) / number - 1) / 60
        reached = f"{row.values[-1]:.5g}" if row.values else "no checkpoint"
        found = f"{reached} instead of {real_problem(row.problem).target:g}" if row.evals is None else "reached"
        print(f"{number}/{len(tasks)} {name} {row.problem} seed {row.seed}: {found}, {row.used} evaluations, "
              f"{row.ended}, {row.cpu:.1f} s; about {left:.0f} min left", file=sys.stderr, flush=True)  # fmt: skip


@app.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "model",
    baseline: Annotated[str, typer.Option(help="Label it is compared with problem by problem.")] = "esgroup",
) -> None:
    """Evaluations to the stated values in markdown, values on the way, and times."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        typer.echo(model_real_tables.report([row for path in files for row in stored(path)], label, baseline))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    app()
