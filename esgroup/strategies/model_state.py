"""What a search with a surrogate keeps from one value to the next."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from esgroup.checks import Array

# stages of a row of the current generation
NEW, ASKED, TOLD, COUNTED, ABSENT = range(5)


class Numbers(NamedTuple):
    """The numbers of a state."""

    seed: float
    generation: float = -1.0
    batch: float = 0.0  # number of values after which to continue
    others: float = 0.0  # values of other points in this generation
    waiting: float = 0.0  # values that were told but not yet used
    used_others: float = 0.0  # the part of `others` that is in the archive
    archived: float = 0.0  # values that were ever in the archive
    trial: float = -1.0  # the row of z*, -1: none
    promise: float = 0.0  # the prediction at z* before it was evaluated
    record: float = math.inf  # the best value near the mean, before this generation
    length: float = 0.0  # |z*|
    at_edge: float = 0.0  # whether it is on the boundary of the ball
    kept: float = -1.0  # whether z* was as good as predicted, -1: not known yet
    radius: float = 1.0  # of the ball, times sqrt(n)
    worth: float = 0.5  # how often z* is as good as predicted
    failures: float = 0.0  # in a row
    skipped: float = 0.0  # generations replaced by earlier evaluations: 1 or 0


class ModelState(NamedTuple):
    """Everything the next step needs."""

    plain: Any  # of the search without a surrogate
    surrogate: Any
    first: Array  # the initial spread
    numbers: Array  # `Numbers`
    archive: Array  # (points, ...): the last points, the newest at the end: see `ModelSearch.takes_steps`
    values: Array  # (points,)
    points: Array  # (rows, ...): the generation
    samples: Array  # (rows, m): in local coordinates
    tags: Array  # (rows,)
    stages: Array  # (rows,)
    outcomes: Array  # (rows,)
    others: Array  # (4 popsize, ...): other points whose values arrived in this generation, as in the archive
    other_values: Array  # (4 popsize,)
