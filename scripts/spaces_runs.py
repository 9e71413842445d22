"""Runs of searches beyond vectors and of their peers, generation by generation, and the rows they become.

What is measured is what users get: `esgroup.Searcher` with ask, tell and stop. Whole generations are counted until the
best sampled value is at the target. A search that stops by itself before that has failed, and counts as infinitely many
evaluations. Peers go on whatever their own reasons to stop are. CPU time is that of the process.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from esgroup import Searcher
from esgroup.compare.charts import Chart
from esgroup_problems.problem import Problem

Function = Callable[[np.ndarray], np.ndarray]  # of all points of a generation


class Row(NamedTuple):
    """A line of the table; `met` is None where there is no goal, or where too little was run to judge it."""

    what: str
    measured: str
    goal: str = "-"
    met: bool | None = None


def _silent(text: str) -> None:
    """No one looks."""


@dataclass(frozen=True)
class Plan:
    """How much is to be run: the first seed, their number (None: what each measurement usually has), or a quick try."""

    first: int = 100
    count: int | None = None
    quick: bool = False
    say: Callable[[str], None] = _silent

    def seeds(self, usual: int) -> range:
        """The seeds of a measurement that usually has so many; two for a quick try."""
        count = self.count or (min(usual, 2) if self.quick else usual)
        return range(self.first, self.first + count)

    def each(self, seeds: Sequence[int], what: str) -> Iterator[int]:
        """The seeds one by one, saying which is run."""
        for i, seed in enumerate(seeds):
            self.say(f"{what}, seed {seed} ({i + 1} of {len(seeds)})")
            yield seed


# ---- generations ----------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """After a generation: evaluations, the best value so far, and why the search wants to stop."""

    evals: int
    best: float
    reasons: str = ""


def generations(search: Searcher, batch: Function) -> Iterator[Step]:
    """A search until it stops by itself."""
    reasons: dict[str, str] = {}
    while not reasons:
        search.tell(batch(search.ask()))
        reasons = search.stop()
        yield Step(search.nfev, search.best_f, ", ".join(reasons))


def generations_of_cma(
    problem: Problem, chart: Chart, sigma0: float, seed: int, diagonal: bool = False
) -> Iterator[Step]:
    """cma on the coordinates of a chart, for ever."""
    import cma

    options = {"seed": seed + 1, "verbose": -9, "CMA_diagonal": diagonal}  # the seed 0 is the time
    strategy, evals, best = cma.CMAEvolutionStrategy(chart.vector(problem.x0), sigma0, options), 0, math.inf
    while True:
        vectors = strategy.ask()
        values = problem.batch(chart.points(np.array(vectors)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of rounding where its steps are small
            strategy.tell(vectors, list(values))
        evals, best = evals + len(values), min(best, float(values.min()))
        yield Step(evals, best)


# ---- runs -----------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What a search took, and whether it was at the target."""

    evals: int
    best: float
    seconds: float  # of the processor
    reached: bool
    reasons: str = ""  # why it stopped by itself

    @property
    def cost(self) -> float:
        """Evaluations to the target."""
        return self.evals if self.reached else math.inf


def run(steps: Iterable[Step], max_evals: float, target: float, max_seconds: float = math.inf) -> Run:
    """Generations until the target, the budget or the end of the CPU time."""
    began, step = time.process_time(), Step(0, math.inf)
    for step in steps:
        if step.best <= target or step.evals >= max_evals or time.process_time() - began >= max_seconds:
            break
    seconds, reached = time.process_time() - began, step.best <= target
    return Run(step.evals, step.best, seconds, reached, "" if reached else step.reasons)


def median(runs: Sequence[Run]) -> float:
    """Of the evaluations to the target: infinite if half of the runs failed."""
    return float(np.median([run.cost for run in runs]))


def number(evals: float) -> str:
    """A median in a table."""
    return f"{evals:,.0f}" if math.isfinite(evals) else "no median (half failed)"


def failures(runs: Sequence[Run]) -> str:
    """How the runs ended that did not come to the target; nothing if all did."""
    counts = Counter(run.reasons or "budget" for run in runs if not run.reached)
    ends = ", ".join(f"{count} by {reasons}" for reasons, count in counts.items())
    return f" (failed: {ends})" if ends else ""


def solved(runs: Sequence[Run]) -> str:
    """How many reached the target, the median evaluations of those, and how the others ended."""
    there = [run.evals for run in runs if run.reached]
    middle = f", median {np.median(there):,.0f} evaluations" if there else ""
    return f"{len(there)} of {len(runs)}{middle}{failures(runs)}"
