"""Evaluations of one method against another, with intervals, from the rows that bench_bbob.py writes.

Evaluations are compared on the targets that both methods hit. The ratio of a cell, one function in one dimension with
one population size, is the geometric mean over its instances, seeds and targets; the ratio of several cells is the
geometric mean of theirs. So every function weighs the same, however many of its targets both methods hit, and the easy
targets of an easy function do not decide. Cells in which no target was hit by both are left out.

Intervals are 95 per cent by bootstrap: the instances of every cell are drawn anew, with all their targets and seeds, as
the targets of a run are far from independent. With five instances they are somewhat too narrow (the bootstrap's
variance is 4/5 of the right one); from a single instance there is none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from bbob_rows import TARGETS, Row

# Bootstrap samples. The error of a normal's 2.5 per cent quantile is sqrt(0.025 * 0.975 / 4000) / 0.058 = 0.04 standard
# deviations, a hundredth of the interval's width.
DRAWS = 4000


class Estimate(NamedTuple):
    """A value with its 95 per cent interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


class Cell(NamedTuple):
    """One function in one dimension with one population size; None is the method's default."""

    function: int
    dim: int
    popsize: int | None = None


class Outcome(NamedTuple):
    """What one run came to."""

    evals: tuple[int | None, ...]  # for each target, None if it was missed
    ended: str

    @property
    def hits(self) -> int:
        """Number of targets hit."""
        return sum(count is not None for count in self.evals)


class Pair(NamedTuple):
    """Two runs on the same instance: ours and the baseline's."""

    instance: int
    ours: Outcome
    theirs: Outcome

    def log_ratios(self) -> list[float]:
        """log(ours / theirs) for the targets that both hit."""
        both = zip(self.ours.evals, self.theirs.evals, strict=True)
        return [math.log(a / b) for a, b in both if a is not None and b is not None]


class Counts(NamedTuple):
    """Targets hit and runs that hit the last one, of both methods, and how many there were."""

    targets: tuple[int, int]
    of_targets: int
    solved: tuple[int, int]
    runs: int


Outcomes = Mapping[tuple[Cell, int], Sequence[Outcome]]  # of one method for each cell and instance, by seed


def outcomes(
    rows: Iterable[Row], label: str, targets: Sequence[float] = TARGETS
) -> dict[tuple[Cell, int], list[Outcome]]:
    """Finished runs of a label for each cell and instance, by seed; of repeated rows the last counts."""
    found: dict[tuple[Cell, int], dict[int, dict[float, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row.label == label:
            found[Cell(row.function, row.dim, row.popsize), row.instance][row.seed][row.target] = row
    result = {}
    for place, seeds in found.items():
        whole = [run for _, run in sorted(seeds.items()) if run.keys() >= set(targets)]
        result[place] = [Outcome(tuple(run[t].evals for t in targets), run[targets[0]].ended) for run in whole]
    return result


@dataclass(frozen=True)
class Comparison:
    """Pairs of runs of two methods, by cell."""

    pairs: Mapping[Cell, Sequence[Pair]]

    @classmethod
    def of(cls, rows: Sequence[Row], label: str, baseline: str, targets: Sequence[float] = TARGETS) -> Comparison:
        """Pair the runs of two labels on the same problem: the first seed of one with the first of the other, etc.

        Seeds of two methods have nothing in common, and two seeds of one method can be compared as two labels.
        """
        comparison = cls.paired(outcomes(rows, label, targets), outcomes(rows, baseline, targets))
        if not comparison.pairs:
            raise ValueError(f"labels {label!r} and {baseline!r} must have a problem in common, they have none")
        return comparison

    @classmethod
    def paired(cls, ours: Outcomes, theirs: Outcomes) -> Comparison:
        """Pair what two methods came to on the problems that both have, in the order of their seeds."""
        pairs: dict[Cell, list[Pair]] = defaultdict(list)
        for cell, instance in sorted(ours.keys() & theirs.keys(), key=lambda key: (key[0][:2], key[0][2] or 0, key[1])):
            both = zip(ours[cell, instance], theirs[cell, instance], strict=False)
            pairs[cell] += [Pair(instance, a, b) for a, b in both]
        return cls({cell: found for cell, found in pairs.items() if found})

    def only(
        self,
        functions: Iterable[int] | None = None,
        dims: Iterable[int] | None = None,
        popsizes: Iterable[int | None] | None = None,
    ) -> Comparison:
        """The cells with these values; None takes all."""
        wanted = [None if values is None else set(values) for values in (functions, dims, popsizes)]
        kept = {
            cell: pairs
            for cell, pairs in self.pairs.items()
            if all(values is None or value in values for value, values in zip(cell, wanted, strict=True))
        }
        return Comparison(kept)

    @property
    def functions(self) -> list[int]:
        return sorted({cell.function for cell in self.pairs})

    @property
    def dims(self) -> list[int]:
        return sorted({cell.dim for cell in self.pairs})

    @property
    def popsizes(self) -> list[int | None]:
        """Population sizes, the default first."""
        return sorted({cell.popsize for cell in self.pairs}, key=lambda size: size or 0)

    @cached_property
    def ratio(self) -> Estimate:
        """Geometric mean of the cells that have a ratio."""
        spreads = [spread for cell, pairs in self.pairs.items() if (spread := _spread(cell, pairs)) is not None]
        if not spreads:
            return Estimate(math.nan)
        value = math.exp(np.mean([spread.mean for spread in spreads]))
        if not any(spread.repeated for spread in spreads):
            return Estimate(value)
        draws = np.array([spread.draws for spread in spreads])  # (cells, DRAWS), NaN where nothing was drawn
        drawn = np.isfinite(draws).sum(axis=0)
        means = np.nansum(draws, axis=0)[drawn > 0] / drawn[drawn > 0]
        low, high = np.exp(np.quantile(means, (0.025, 0.975)))
        return Estimate(value, float(low), float(high))

    @cached_property
    def counts(self) -> Counts:
        """Targets hit and runs to the last target."""
        pairs = [pair for found in self.pairs.values() for pair in found]
        hits = [(pair.ours.hits, pair.theirs.hits) for pair in pairs]
        ours, theirs = (sum(hit[i] for hit in hits) for i in range(2))
        every = [len(pair.ours.evals) for pair in pairs]
        last = [sum(hit[i] == count for hit, count in zip(hits, every, strict=True)) for i in range(2)]
        return Counts((ours, theirs), sum(every), (last[0], last[1]), len(pairs))

    def ended(self, reason: str) -> tuple[int, int]:
        """Number of runs that ended for this reason, among others."""
        pairs = [pair for found in self.pairs.values() for pair in found]
        return (
            sum(reason in pair.ours.ended.split("+") for pair in pairs),
            sum(reason in pair.theirs.ended.split("+") for pair in pairs),
        )


class _Spread(NamedTuple):
    """log ratio of a cell and what the bootstrap makes of it."""

    mean: float
    draws: np.ndarray  # (DRAWS,)
    repeated: bool  # whether more than one instance has a ratio


def _spread(cell: Cell, pairs: Sequence[Pair]) -> _Spread | None:
    """None if no target was hit by both."""
    logs: dict[int, list[float]] = defaultdict(list)
    for pair in pairs:
        logs[pair.instance] += pair.log_ratios()
    sums = np.array([math.fsum(values) for values in logs.values()])
    counts = np.array([len(values) for values in logs.values()])
    if not counts.any():
        return None
    rng = np.random.default_rng([cell.function, cell.dim, cell.popsize or 0])  # a cell has the same interval anywhere
    drawn = rng.integers(len(logs), size=(DRAWS, len(logs)))
    totals = counts[drawn].sum(axis=1)
    means = np.full(DRAWS, math.nan)
    np.divide(sums[drawn].sum(axis=1), totals, out=means, where=totals > 0)
    return _Spread(float(sums.sum() / counts.sum()), means, int((counts > 0).sum()) > 1)
