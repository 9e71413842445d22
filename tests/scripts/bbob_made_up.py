"""Made-up runs for the tests of the bbob benchmark's tables."""

from __future__ import annotations

from collections.abc import Sequence

from bbob_rows import TARGETS, Row, Setup

PLAIN = Setup("esgroup", "", 3000, "none")
CMA = Setup("cma", "", 3000, "none")

Evals = Sequence[int | None]


def run_rows(
    label: str,
    function: int,
    dim: int,
    evals: Evals,
    instance: int = 1,
    popsize: int | None = None,
    seed: int = 0,
    ended: str = "tolfun",
    setup: Setup | None = None,
) -> list[Row]:
    """Rows of one run; targets beyond the given evaluations are missed."""
    full = [*evals, *[None] * (len(TARGETS) - len(evals))]
    known = setup or (CMA if label.startswith("cma") else PLAIN)
    return [
        Row(label, function, dim, instance, popsize, seed, target, count, 999, ended, 0.5, *known)
        for target, count in zip(TARGETS, full, strict=True)
    ]


def pair(
    function: int, dim: int, ours: Evals, theirs: Evals, instance: int = 1, popsize: int | None = None
) -> list[Row]:
    """One run of each of the labels esgroup and cma on the same problem."""
    return run_rows("esgroup", function, dim, ours, instance, popsize) + run_rows(
        "cma", function, dim, theirs, instance, popsize
    )


def uniform(
    ratio: float, functions: Sequence[int], dims: Sequence[int], popsizes: Sequence[int | None] = (None,)
) -> list[Row]:
    """Three instances in which every target is hit at `ratio` times the baseline's evaluations."""
    hits = [round(1000 * ratio)] * 7
    return [
        row
        for f in functions
        for d in dims
        for p in popsizes
        for i in (1, 2, 3)
        for row in pair(f, d, hits, [1000] * 7, i, p)
    ]
