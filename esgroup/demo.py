"""A first look: one narrow valley, three structures, the same published update for all of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from esgroup.checks import Array
from esgroup.distributions import Gaussian

DIM = 20
STRUCTURES = ("diagonal", "heisenberg", "full")
TARGET = 1e-8

Report = Callable[[int, float], None]


class Outcome(NamedTuple):
    """What one search came to."""

    structure: str
    dof: int
    evaluations: int
    best: float


def ellipsoid(x: Array) -> Array:
    """f(x) = sum_i 10^(4 (i-1)/(d-1)) (x_i - 1)^2 for every row x: axes of length 1 to 100, minimum 0 at all ones."""
    scales: Array = np.logspace(0, 4, x.shape[1])
    return (x - 1.0) ** 2 @ scales


def rank_utilities(values: Array) -> Array:
    """u_i = max(0, ln(n/2 + 1) - ln rank_i), scaled to sum 1, less 1/n (Wierstra et al. 2014)."""
    n = len(values)
    by_rank = np.maximum(0.0, np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)))
    utilities = np.empty(n)
    utilities[np.argsort(values, kind="stable")] = by_rank / by_rank.sum() - 1 / n
    return utilities


def root_rate(dim: int, dof: int) -> float:
    """(3 + ln d) / (5 sqrt d) min(1, 3 (d + 1) / (2 dof)).

    This is the rate of SNES for the diagonal group, dof = d, and that of xNES, (9 + 3 ln d) / (5 d sqrt d), for the
    full one, dof = d (d + 1) / 2 (defaults of Wierstra et al. 2014); between them the rate falls as 1 / dof.
    """
    return float((3 + np.log(dim)) / (5 * np.sqrt(dim)) * min(1.0, 1.5 * (dim + 1) / dof))


def search(structure: str, max_evals: int, rng: np.random.Generator, report: Report) -> Outcome:
    """Natural-gradient steps from x = 0 until the target or the budget is reached."""
    family = Gaussian(structure, mean=np.zeros(DIM), sigma0=0.5)
    dof = family.group.dof
    rate = root_rate(DIM, dof)
    popsize = 4 + int(3 * np.log(DIM))  # the default of xNES and CMA-ES
    state = family.state()
    evaluations, best = 0, np.inf
    while best > TARGET and evaluations < max_evals:
        samples = family.sample(state, min(popsize, max_evals - evaluations), rng)
        values = ellipsoid(samples.x)
        state = family.move_samples(state, samples, rank_utilities(values), mean_rate=1.0, root_rate=rate)
        evaluations += len(values)
        best = min(best, float(values.min()))
        report(evaluations, best)
    return Outcome(structure, dof, evaluations, best)


def main(*, seed: int, max_evals: int) -> None:
    """Run the three searches and print a table; progress goes to stderr if that is a terminal."""
    progress = Console(stderr=True).status("") if sys.stderr.isatty() else None
    with progress or nullcontext():
        outcomes = []
        for structure in STRUCTURES:
            shown = 0.0

            def report(evaluations: int, best: float, structure: str = structure) -> None:
                nonlocal shown
                if progress is not None and time.monotonic() > shown + 0.1:
                    shown = time.monotonic()
                    progress.update(f"{structure}: {evaluations:,} of {max_evals:,} evaluations, best {best:.1e}")

            outcomes.append(search(structure, max_evals, np.random.default_rng(seed), report))
    console = Console()
    console.print(_table(outcomes, max_evals))
    console.print(
        "The fewer numbers a structure has to learn, the sooner it knows the valley, if the valley fits the structure: "
        "see `esgroup list` for all of them and the README for how to search your own function.",
        highlight=False,
    )


def _table(outcomes: list[Outcome], max_evals: int) -> Table:
    table = Table(title=f"Ellipsoid, {DIM} variables, axes 1 : 100, down to {TARGET:.0e}", title_justify="left")
    table.add_column("structure")
    for name in ("degrees of freedom", f"evaluations (of {max_evals:,})", "best value"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        table.add_row(outcome.structure, str(outcome.dof), f"{outcome.evaluations:,}", f"{outcome.best:.1e}")
    return table
