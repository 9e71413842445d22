"""What a search with a surrogate keeps from one value to the next, and the sizes of that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.domains.named import Named
from esgroup.strategies.base import Indices, Strategy
from esgroup.strategies.in_domain import Within, innermost
from esgroup.strategies.vector import VectorSearch
from esgroup.surrogates.base import Surrogate

# stages of a row of the present generation
NEW, ASKED, TOLD, COUNTED, ABSENT = range(5)


class Numbers(NamedTuple):
    """The numbers of a state."""

    seed: float
    generation: float = -1.0
    batch: float = 0.0  # values after which to go on
    others: float = 0.0  # values of other points in this generation
    waiting: float = 0.0  # values that were told and not yet used
    used_others: float = 0.0  # the part of `others` that is in the archive
    archived: float = 0.0  # values that ever were in the archive
    trial: float = -1.0  # the row of z*, -1: none
    promise: float = 0.0  # what was predicted for z*, before it was evaluated
    record: float = math.inf  # the best value near the mean, before this generation
    length: float = 0.0  # |z*|
    at_edge: float = 0.0  # whether it is on the boundary of the ball
    kept: float = -1.0  # whether z* kept its promise, -1: not known yet
    radius: float = 1.0  # of the ball, times sqrt(n)
    worth: float = 0.5  # how often z* keeps its promise
    failures: float = 0.0  # in a row
    skipped: float = 0.0  # generations whose place earlier evaluations took: 1 or 0


class ModelState(NamedTuple):
    """All that the next step needs."""

    plain: Any  # of the search without a surrogate
    surrogate: Any
    first: Array  # the first spread
    numbers: Array  # `Numbers`
    archive: Array  # (points, ...): the last points, the newest at the end, as they are or as `Plan.takes_steps` says
    values: Array  # (points,)
    points: Array  # (rows, ...): the generation
    samples: Array  # (rows, m): in local coordinates
    tags: Array  # (rows,)
    stages: Array  # (rows,)
    outcomes: Array  # (rows,)
    others: Array  # (4 popsize, ...): other points whose values came in this generation, as in the archive
    other_values: Array  # (4 popsize,)


@dataclass(frozen=True, eq=False)
class Plan:
    """The sizes of a search with a surrogate; `plain` is the one without."""

    plain: Strategy
    surrogate: Surrogate

    @cached_property
    def inner(self) -> Strategy:
        """The search inside all domains."""
        return innermost(self.plain)

    @cached_property
    def takes_steps(self) -> bool:
        """Whether it moves as a surrogate recommends.

        Its local coordinates are then those of its frame, and points are kept as the strategy inside all domains
        searches them: they are placed once.
        """
        return self.inner.coordinates(self.inner.start()).takes_steps and all_real(self.plain)

    @cached_property
    def unnamed(self) -> Strategy:
        """The search without a surrogate below the names of parameters."""
        plain = self.plain
        while isinstance(plain, Within) and isinstance(plain.within, Named):
            plain = plain.inner
        return plain

    @property
    def size(self) -> int:
        """Number of coordinates of the surrogate."""
        return self.surrogate.dim

    @property
    def popsize(self) -> int:
        """Values in a generation."""
        return self.plain.popsize

    @cached_property
    def rows(self) -> int:
        """Rows of a generation; the first has the mean and enough samples to determine the first surrogate."""
        return max(self.popsize, self.surrogate.least)

    @cached_property
    def part(self) -> int:
        """Points of a generation to ask for at first: all of them if it can only end by ranks.

        With 20 coordinates 4 take 0.95 (standard error 0.03) of the evaluations that 6 take, and 0.77 on f8; 3 take
        1.07, because too little is explored. With 10 coordinates 2 and 3 are alike.
        """
        if not self.takes_steps:
            return self.popsize
        return min(2 + self.size // 10, max(2, self.popsize // 2))

    def coordinates(self, state: ModelState, rows: Indices) -> Array:
        """Points of the generation in coordinates of the frame."""
        if self.takes_steps:
            return state.samples[rows]
        return self.plain.coordinates(state.plain).of_reals(state.points[rows])

    def empty(self, seed: int) -> ModelState:
        """The state before the first generation is drawn."""
        kept = self.inner if self.takes_steps else self.plain
        rows, capacity, others = self.rows, self.surrogate.capacity, 4 * self.popsize
        plain = self.plain.start()
        width = kept.local(plain, kept.mean(plain)[None]).shape[1]
        return ModelState(
            plain=plain,
            surrogate=self.surrogate.start(),
            first=self.inner.view(plain).spread(),
            numbers=np.array(Numbers(float(seed))),
            archive=np.zeros((capacity, *kept.shape)),
            values=np.zeros(capacity),
            points=np.zeros((rows, *self.plain.shape)),
            samples=np.zeros((rows, width)),
            tags=np.zeros(rows),
            stages=np.full(rows, float(ABSENT)),
            outcomes=np.zeros(rows),
            others=np.zeros((others, *kept.shape)),
            other_values=np.zeros(others),
        )


def all_real(strategy: Strategy) -> bool:
    """Whether all that is searched are real numbers: no integers, and no choices."""
    while isinstance(strategy, Within):
        if isinstance(strategy.within, Named) and not strategy.within.all_real:
            return False
        strategy = strategy.inner
    return not (isinstance(strategy, VectorSearch) and strategy.has_integers)
