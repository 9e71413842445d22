"""Widening at rest: how a search among integers continues where it would stand still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from esgroup.checks import Array

_LARGEST = 1.7976931348623157e308  # the largest float: files hold finite numbers only
# Factor on the usual time without improvement (`Strategy.patience`): a search that is widened repeatedly comes to rest
# at one value several times, and none of these is its end. With 3 a sphere in three dimensions ends without success;
# with infinity a search that is never at rest would not end.
WIDENED = 5.0
_SAME = 1e-6  # of the total improvement: values that differ by less belong to one optimum
_BETTER = 1e3  # times the tolerance: two rests at one optimum differ by about the tolerance


@dataclass(frozen=True)
class Widening:
    """Reset a search whose integers have come to rest to its initial standard deviations around the best point so far.

    A different integer is usually better only together with other values of the real variables or of other integers.
    Once the real variables have narrowed around the best point of the current integers, every flip of an integer looks
    worse, and nothing is left to find. A search is at rest when, in `patience` generations, no value has been better by
    more than

        tolerance (first value - best value),   both since the distribution was last widened,

    and the standard deviations of all integers are below `widest`. It is widened each time, until it has come to rest
    `fruitless` times in a row at a value that is no better than before; a rest at the same value as before counts
    twice, because there is probably no better one. Then, unless it rests at the best value, it is widened one last
    time, to `last` of the initial standard deviations, so that it ends at the best point. The end comes about
    `fruitless` times as many evaluations later as the first rest. With constraints the values are those of feasible
    points; until there is one, every rest but the first counts as fruitless.

    On bbob-mixint, instances 1-3, 300 n evaluations (`scripts/bench_mixed.py mixint`), of 504 targets are hit for n =
    5, 10 and 20: 374, 314, 264; without this 335, 279, 248; by pycma 348, 283, 234; widened about the mean, with
    `fruitless` = 3 and two thirds of the patience, 359, 298, 265. Targets that are hit with and without take as many
    evaluations. With the constraints of a pressure vessel (`esgroup_problems.designs`), 20,000 evaluations and 120
    random starts, all get to the optimum; 117 without the last widening; of 80 starts 76 with `fruitless` = 3 instead
    of 79. Variants about the mean, n = 5 and 10, in place of 376 and 308: half the first standard deviations 351, 301;
    4/3 of them 354, 305; half the patience 369, 290; tolerance 1e-10 363, 311. Differences below 20 are chance. Tried
    alone, in place of this, and no better: centering (samples enter the update at their integers: Marty et al. 2024,
    LB+IC-CMA-ES), in the mean or everywhere, a path of the step size without the integers at rest, least standard
    deviations for 0.3 and 4 times as many flips, twice the population.
    """

    patience: int
    fruitless: int = 6
    tolerance: float = 1e-12  # what a quadratic function has gained when steps are a millionth of the initial ones
    last: float = 0.1  # of the first standard deviations: with them the search comes to rest at the best point
    widest: float = 0.5  # samples then reach the neighbors of an integer, hardly more

    size: ClassVar[int] = 6  # numbers in the memory

    @classmethod
    def of(cls, dim: int, popsize: int) -> Widening:
        """`patience` is 15 + 15 n / lambda generations; the end on equal values waits for 10 + 30 n / lambda."""
        return cls(15 + math.ceil(15 * dim / popsize))

    def start(self) -> tuple[float, ...]:
        """The initial memory of a search.

        It has the first and the best value since the last widening, the generations since the best one (-1: there is
        none yet), the best value of all rests, the number of rests, and how many in a row were fruitless.
        """
        return 0.0, 0.0, -1.0, 0.0, 0.0, 0.0

    def due(self, memory: Array, value: float, widest: float) -> float:
        """Return the share of the initial standard deviations to reset to, 0 to continue unchanged.

        It depends on the best value of a generation and the widest of the integers. The memory is updated.
        """
        first, best, since, record, rests, fruitless = memory.tolist()
        value = min(max(value, -_LARGEST), _LARGEST)
        if since < 0 or value < best == _LARGEST:  # the first finite value is not progress either
            first, best, since = value, value, 0.0
        elif value < best - self.tolerance * (first - best):
            best, since = value, 0.0
        else:
            since += 1.0
        share = 0.0
        if since >= self.patience and widest < self.widest:
            if rests == 0 or best < record - _BETTER * self.tolerance * (first - best):
                record, fruitless, share = best, 0.0, 1.0
            elif fruitless < self.fruitless:
                again = best <= record + _SAME * (first - best)
                fruitless = min(fruitless + 1.0 + again, self.fruitless)
                share = 1.0 if fruitless < self.fruitless else 0.0 if again else self.last
        if share > 0.0:
            rests, since = rests + 1.0, -1.0
        memory[:] = first, best, since, record, rests, fruitless
        return share
