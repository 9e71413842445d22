"""Points that must satisfy a condition before evaluation: by rejection, then by moving toward a feasible point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.strategies.base import Proposed, Strategy

_TRIES = 20  # batches of further samples before points are moved
_HALVINGS = 30  # of the way from a sample to the mean


def accepted(
    strategy: Strategy,
    state: Any,
    rng: np.random.Generator,
    drawn: Proposed,
    accepts: Callable[[Any], bool],
    best: Array | None,
) -> Proposed:
    """Return only accepted points: rejected samples are replaced by others, or else moved toward the mean.

    An accepted sample follows the distribution conditioned on acceptance. If acceptance is too rare, a sample is moved
    along the straight line to the mean until it is accepted, or toward the best point so far if the mean itself is
    rejected: the mean of accepted points may lie outside. Local coordinates are those of the returned points.
    """
    points = strategy.domain.to_user(drawn.points)
    bad = [i for i in range(len(drawn.points)) if not accepts(points[i])]
    if not bad:
        return drawn
    placed, local, tags = drawn.points.copy(), drawn.local.copy(), drawn.tags
    if tags is not None:
        tags = tags.copy()
        tags[bad] = 0
    for _ in range(_TRIES):
        more = strategy.sample(state, max(len(bad), 2), rng)
        shown = strategy.domain.to_user(more.points)
        for j in range(len(more.points)):
            if bad and (more.tags is None or more.tags[j] == 0) and accepts(shown[j]):
                i = bad.pop()
                placed[i], local[i] = more.points[j], more.local[j]
        if not bad:
            break
    z, _ = strategy.coordinates(state).of(placed)
    for i in bad:
        placed[i] = _moved(strategy, state, z[i], accepts, best)
        local[i] = strategy.shortened(strategy.local(state, placed[i : i + 1]))[0]
    return Proposed(placed, local, tags)


def _moved(strategy: Strategy, state: Any, z: Array, accepts: Callable[[Any], bool], best: Array | None) -> Array:
    """Return an accepted point between the coordinates z and the mean, or else the best point."""
    coordinates, ends = strategy.coordinates(state), [np.zeros_like(z)]
    if best is not None:
        ends.append(coordinates.of(best[None])[0][0])
    for end in ends:
        for halving in range(_HALVINGS + 1):
            moved = coordinates.at(end + (z - end) * (0.5**halving if halving < _HALVINGS else 0.0))
            if moved is not None and accepts(strategy.domain.to_user(moved[None])[0]):
                return moved
    if best is not None and accepts(strategy.domain.to_user(best[None])[0]):  # which `at` may miss by rounding
        return best
    raise RuntimeError(
        "no point near the mean of the search satisfies the constraints with keep_feasible=True: choose a smaller "
        "sigma0, or leave keep_feasible out"
    )
