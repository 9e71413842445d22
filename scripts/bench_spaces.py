"""Searches beyond vectors, beside their peers: positive-definite matrices, matrices, several optima, scalars.

    python scripts/bench_spaces.py                                  all of it, about fifteen minutes
    python scripts/bench_spaces.py --quick                          small sizes and two seeds, under a minute
    python scripts/bench_spaces.py --only wishart,mixture --out spaces.md

Every row has what was measured, the goal, and whether it is met. Seeds begin at 100; nothing was tuned on these. A
search that stops by itself before its target has failed. Evaluations are counted in whole generations. Times are CPU
time of the process, with BLAS on one thread. Needs cma (the extra "bench"). The exit status is 1 if a goal is missed.
"""
# extras: compare

from __future__ import annotations

import spaces_threads  # noqa: F401  # before NumPy is imported

# isort: split
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import spaces_matrix_gaussian
import spaces_mixture
import spaces_univariate
import spaces_wishart
import typer
from spaces_runs import Plan, Row
from spaces_table import Markdown, Terminal, summary

Rows = Callable[[Plan], Iterator[Row]]
SPACES: dict[str, tuple[str, Rows]] = {
    "wishart": ("Wishart: positive-definite matrices", spaces_wishart.rows),
    "matrix_gaussian": ("Matrix Gaussian: matrices", spaces_matrix_gaussian.rows),
    "mixture": ("Mixture: several optima", spaces_mixture.rows),
    "univariate": ("Univariate families: numbers of any domain", spaces_univariate.rows),
}


def chosen(only: str) -> list[str]:
    """The names of spaces in a list with commas; all if it is empty."""
    names = [name.strip() for name in only.split(",") if name.strip()] or list(SPACES)
    for name in names:
        if name not in SPACES:
            raise typer.BadParameter(f"there is no {name!r}: choose from {', '.join(SPACES)}", param_hint="--only")
    return names


def measure(names: Sequence[str], plan: Plan, tables: Sequence[Terminal | Markdown]) -> list[Row]:
    """Run the spaces and write their rows into all tables as they come."""
    found = []
    for name in names:
        title, rows = SPACES[name]
        for table in tables:
            table.title(title)
        for row in rows(plan):
            found.append(row)
            for table in tables:
                table.row(row)
    return found


def main(
    only: Annotated[str, typer.Option(help=f"some of {', '.join(SPACES)}, with commas")] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="of every measurement, instead of its usual number")] = None,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help="small sizes and two seeds, to try it")] = False,
    out: Annotated[Path | None, typer.Option(help="a Markdown file for the tables")] = None,
) -> None:
    """Print the tables."""
    names, began, terminal = chosen(only), time.monotonic(), Terminal()
    tables: list[Terminal | Markdown] = [terminal]
    if out is not None:
        tables.append(Markdown(out, " ".join(["python", *sys.argv])))
    rows = measure(names, Plan(first, seeds, quick, terminal.say), tables)
    for table in tables:
        table.close(f"{summary(rows)}. {time.monotonic() - began:.0f} s.")
    raise typer.Exit(any(row.met is False for row in rows))


if __name__ == "__main__":
    typer.run(main)
