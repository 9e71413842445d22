"""Widening at rest: how a search among integers goes on where it would stand still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from esgroup.checks import Array

_LARGEST = 1.7976931348623157e308  # the largest float: files hold finite numbers only
_BETTER = 1e3  # times the tolerance: two rests at one optimum differ by about the tolerance


@dataclass(frozen=True)
class Widening:
    """Give a search whose integers have come to rest its first standard deviations again, about its present mean.

    Another integer is as a rule better only along with other values of the real coordinates, or of other integers. Once
    the real ones have narrowed around the best point of the present integers, every flip of an integer looks worse, and
    nothing is left to find. A search is at rest when, in `patience` generations, no value has been better by more than

        tolerance (first value - best value),   both since the distribution was last widened,

    and the standard deviations of all integers are below `widest`. It is widened each time, until it has come to rest
    `fruitless` times in a row at a value that is no better than before; then it narrows on, and ends. The end
    comes `fruitless` times as many evaluations later as the first rest, or about that.

    On bbob-mixint, instances 1-3, 300 n evaluations (`scripts/bench_mixed.py mixint`), of 504 targets are hit with
    `fruitless` = 3, with 6, without this, and by pycma: n = 5: 370, 376, 335, 348; n = 10: 308, 308, 279, 283; for
    n = 20 with 3, without, and by pycma: 253, 248, 234. Targets that are hit with and without take as many evaluations.
    Variants of 6, n = 5 and 10: half the first standard deviations 351, 301; 4/3 of them 354, 305; 5 n / lambda for
    10 n / lambda in `patience` 369, 290; tolerance 1e-10 363, 311. Differences below 20 are chance. Tried alone, in
    place of this, and no better: centring (samples enter the update at their integers: Marty et al. 2024,
    LB+IC-CMA-ES), in the mean or everywhere, a path of the step size without the integers at rest, least standard
    deviations for 0.3 and 4 times as many flips, twice the population.
    """

    patience: int
    fruitless: int = 3
    tolerance: float = 1e-12  # what a quadratic function has gained when steps are a millionth of the first ones
    widest: float = 0.5  # samples then reach the neighbours of an integer, hardly more

    size: ClassVar[int] = 6  # numbers in the memory

    @classmethod
    def of(cls, dim: int, popsize: int) -> Widening:
        """`patience` is 10 + 10 n / lambda generations; the end on equal values waits for 10 + 30 n / lambda."""
        return cls(10 + math.ceil(10 * dim / popsize))

    def start(self) -> tuple[float, ...]:
        """The memory of a search that begins.

        It has the first and the best value since the last widening, the generations since the best one (-1: there is
        none yet), the best value of all rests, how many rests there were, and how many in a row brought nothing.
        """
        return 0.0, 0.0, -1.0, 0.0, 0.0, 0.0

    def over(self) -> tuple[float, ...]:
        """The memory of a search that is never widened."""
        return 0.0, 0.0, -1.0, -_LARGEST, 1.0, float(self.fruitless)

    def is_due(self, memory: Array, value: float, widest: float) -> bool:
        """Whether to widen the distribution, from the best value of a generation and the widest of the integers.

        The memory is brought up to date.
        """
        first, best, since, record, rests, fruitless = memory.tolist()
        if since < 0 and not math.isfinite(value):
            return False
        value = max(value, -_LARGEST)
        if since < 0:
            first, best, since = value, value, 0.0
        elif value < best - self.tolerance * (first - best):
            best, since = value, 0.0
        else:
            since += 1.0
        due = False
        if since >= self.patience and widest < self.widest:
            better = rests == 0 or best < record - _BETTER * self.tolerance * (first - best)
            record, fruitless = (best, 0.0) if better else (record, min(fruitless + 1.0, self.fruitless))
            if due := fruitless < self.fruitless:
                rests, since = rests + 1.0, -1.0
        memory[:] = first, best, since, record, rests, fruitless
        return due
