"""What a search with quadratic models keeps from one value to the next, and the sizes of that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.domains.named import Named
from esgroup.strategies.base import Strategy
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.in_domain import Within, innermost
from esgroup.strategies.quadratic import Quadratics, Support
from esgroup.strategies.vector import VectorSearch

# stages of a row of the present generation
NEW, ASKED, TOLD, COUNTED, ABSENT = range(5)
# the models: G = g I, G diagonal, G of the group from the last 2 p points, or fewer if that is many, and from .7 p
SPHERE, AXIAL, LONG, SHORT = range(4)
# Features up to which models are fitted after every part of a generation. More of them are fitted when it ends, with
# more steps, which takes half of the time and, with 20 coordinates, as many evaluations; with 5 it would take 1.1 times
# as many.
_FITTED_OFTEN = 100
_STEPS_OFTEN, _STEPS_AT_END = (20, 12), (30, 18)  # of the fits of the last two models
_MANY = 2000  # points: a memory of so many, if they are more than features, need not be longer


class Numbers(NamedTuple):
    """The numbers of a state."""

    seed: float
    generation: float = -1.0
    batch: float = 0.0  # values after which to go on
    others: float = 0.0  # values of other points in this generation
    waiting: float = 0.0  # values that were told and not yet used
    used_others: float = 0.0  # the part of `others` that is in the archive
    archived: float = 0.0  # values that ever were in the archive
    model: float = 0.0  # the one in use
    trial: float = -1.0  # the row of z*, -1: none
    promise: float = 0.0  # q(z*), before it was evaluated
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

    vector: SearchState  # of the search without a model
    first: Array  # (n,): the first spread
    numbers: Array  # `Numbers`
    archive: Array  # (points, n): the last points in search coordinates, the newest at the end
    values: Array  # (points,)
    constants: Array  # (4,): c of every model,
    slopes: Array  # (4, n): b,
    curvatures: Array  # (4, ...): G
    judged: Array  # (4, 3): agreeing less other pairs, all pairs, the mean squared error
    points: Array  # (rows, dim): the generation
    samples: Array  # (rows, n): in local coordinates
    tags: Array  # (rows,)
    stages: Array  # (rows,)
    outcomes: Array  # (rows,)
    others: Array  # (4 popsize, n): other points whose values came in this generation, in search coordinates
    other_values: Array  # (4 popsize,)


@dataclass(frozen=True, eq=False)
class Plan:
    """The sizes of a search with models; `plain` is the one without."""

    plain: Strategy

    @cached_property
    def vector(self) -> VectorSearch:
        """The search over vectors, inside all domains."""
        found = innermost(self.plain)
        if not isinstance(found, VectorSearch):
            raise ValueError(f"plain must search vectors for model='quadratic', got {found.about}")
        return found

    @cached_property
    def unnamed(self) -> Strategy:
        """The search without a model below the names of parameters."""
        plain = self.plain
        while isinstance(plain, Within) and isinstance(plain.within, Named):
            plain = plain.inner
        return plain

    @property
    def size(self) -> int:
        """Number of coordinates that are searched."""
        return self.vector.size

    @property
    def popsize(self) -> int:
        """Values in a generation."""
        return self.vector.popsize

    @cached_property
    def support(self) -> Support:
        """The entries of G."""
        return Support.of(self.vector.group)

    @cached_property
    def windows(self) -> tuple[int, int, int, int]:
        """How many of the last points each model sees."""
        n, p = self.size, self.support.features
        long = min(2 * p, max(_MANY, round(1.2 * p)))
        return 2 * (n + 2), 2 * (2 * n + 1), long, max(min(3 * n, _MANY), round(0.7 * p))

    @cached_property
    def fits_often(self) -> bool:
        """Whether the models are fitted after every part of a generation, else when it ends."""
        return self.support.features <= _FITTED_OFTEN

    @cached_property
    def steps(self) -> tuple[int, int]:
        """Steps of a fit of the last two models."""
        return _STEPS_OFTEN if self.fits_often else _STEPS_AT_END

    @cached_property
    def rows(self) -> int:
        """Rows of a generation; the first has the mean and n + 1 samples at least, which determine the first model."""
        return max(self.popsize, self.size + 2)

    @cached_property
    def part(self) -> int:
        """Points of a generation to ask for at first.

        With 20 coordinates 4 take 0.95 (standard error 0.03) of the evaluations that 6 take, and 0.77 on f8; 3 take
        1.07, because too little is explored. With 10 coordinates 2 and 3 are alike.
        """
        return min(2 + self.size // 10, max(2, self.popsize // 2))

    def empty(self, seed: int) -> ModelState:
        """The state before the first generation is drawn."""
        n, rows, capacity = self.size, self.rows, self.windows[LONG]
        vector = self.vector.start()
        judged = np.zeros((4, 3))
        judged[:, 2] = 1.0
        return ModelState(
            vector=vector,
            first=self.vector.spread(vector),
            numbers=np.array(Numbers(float(seed))),
            archive=np.zeros((capacity, n)),
            values=np.zeros(capacity),
            constants=np.zeros(4),
            slopes=np.zeros((4, n)),
            curvatures=np.zeros((4, *self.support.shape)),
            judged=judged,
            points=np.zeros((rows, *self.plain.shape)),
            samples=np.zeros((rows, n)),
            tags=np.zeros(rows),
            stages=np.full(rows, float(ABSENT)),
            outcomes=np.zeros(rows),
            others=np.zeros((4 * self.popsize, n)),
            other_values=np.zeros(4 * self.popsize),
        )


def models_of(state: ModelState) -> Quadratics:
    """The models; views."""
    return Quadratics(state.constants, state.slopes, state.curvatures)
