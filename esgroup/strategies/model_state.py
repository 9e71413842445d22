"""What a search with a surrogate keeps from one value to the next."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from esgroup.checks import Array

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
    archive: Array  # (points, ...): the last points, the newest at the end: see `ModelSearch.takes_steps`
    values: Array  # (points,)
    points: Array  # (rows, ...): the generation
    samples: Array  # (rows, m): in local coordinates
    tags: Array  # (rows,)
    stages: Array  # (rows,)
    outcomes: Array  # (rows,)
    others: Array  # (4 popsize, ...): other points whose values came in this generation, as in the archive
    other_values: Array  # (4 popsize,)
