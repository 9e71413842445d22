"""Late values: which of them move the distribution, with what coordinates, and how many make a generation.

If P points are always pending and generations have n values, then P / n generations end while a point is pending: that
is its age when its value is told. Many pending points would cause two problems.

First, old points would deform the distribution. In the coordinates of a distribution that has become narrower, points
of a wider one are long, whatever their values, and as samples they would widen it again. Late points therefore keep
their current direction, but are no longer than when they were drawn: lateness alone makes no sample long
(`Strategy.shortened`).

Second, the distribution would keep moving in one direction long before the first result from there arrives. Larger
generations are fewer, so values are younger: with n = popsize lag^2, the equation lag = P / n has the solution
lag = (P / popsize)^(1/3), n = popsize (P / popsize)^(2/3). For P = 10 popsize this is lag = 2.2 instead of 10.

One effect remains: late points pull the mean back to where they were drawn, so that its steps oppose each other, which
cumulative step-size adaptation takes for steps that are too long. With uninformative values, d = 10 and 30 pending
points, log sigma falls by about 0.1 per generation; what is learned from the samples themselves stays (0.01).

The constants were chosen on the sphere and Rosenbrock's function with d = 10 and 20, up to 100 pending points, told in
the order asked, at random, and after times with a Pareto distribution, seeds 0-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.search.ledger import PendingPoint, PooledSamples
from esgroup.strategies.base import Strategy

_LATEST = 2.0  # times 1 + the usual age: later values say nothing about the current distribution


def judged(lag: float, ages: Sequence[int], batch: int) -> tuple[list[bool], float]:
    """Which of the told values still move the distribution, and the usual age of values after them.

    The usual age `lag` is a running mean over about `batch` values, with ages capped at the latest that may still move
    the distribution: one worker that hangs for an hour does not make all generations large.
    """
    moving = []
    for age in ages:
        latest = _LATEST * (1 + lag)
        moving.append(age <= latest)
        lag += (min(age, latest) - lag) / batch
    return moving, lag


def generation_size(batch: int, lag: float) -> float:
    """How many values make a generation: `batch` of them, or batch lag^2 if values are usually late."""
    return batch * max(1.0, lag) ** 2


def samples(
    strategy: Strategy, state: Any, nit: int, points: Array, outcomes: Array, found: Sequence[PendingPoint | None]
) -> PooledSamples:
    """Points of the current distribution, generation `nit`, as drawn; others in its coordinates.

    Only the former have tags: the others were not marked by the current distribution.
    """
    rows: list[Any] = []
    tags, late, foreign = [0] * len(found), [], []
    for i, place in enumerate(found):
        rows.append(None if place is None else place.asked.drawn.local[place.row])  # as it was drawn
        if place is None:
            foreign.append(i)
        elif place.asked.nit < nit:
            late.append(i)
        else:
            tags[i] = place.tag
    for some in (late, foreign):
        if some:
            then = np.array([rows[i] for i in late]) if some is late else None
            for i, row in zip(some, strategy.shortened(strategy.local(state, points[some]), then), strict=True):
                rows[i] = row
    return PooledSamples(np.array(rows), np.array(tags, dtype=np.int64), outcomes.copy())
