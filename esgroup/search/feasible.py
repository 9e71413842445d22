"""Points that must fulfil a condition before they are evaluated: rejection first, then the way to a feasible point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup.strategies.base import Drawn, Strategy

_TRIES = 20  # batches of further samples before points are moved
_HALVINGS = 30  # of the way from a sample to the mean


def accepted(
    strategy: Strategy, state: Any, rng: np.random.Generator, drawn: Drawn, accepts: Callable[[Any], bool]
) -> Drawn:
    """Return points all of which are accepted: samples in place of those that are not, else points moved to the mean.

    A sample that is accepted has the law of the distribution under the condition. Where that is too rare, a sample is
    moved along the straight line to the mean until it is accepted; the mean itself, which is where it ends, must be.
    Local coordinates are those of the points as they are.
    """
    points = strategy.to_user(drawn.points)
    bad = [i for i in range(len(drawn.points)) if not accepts(points[i])]
    if not bad:
        return drawn
    placed, local = drawn.points.copy(), drawn.local.copy()
    tags = None if drawn.tags is None else drawn.tags.copy()
    for _ in range(_TRIES):
        more = strategy.sample(state, max(len(bad), 2), rng)
        shown = strategy.to_user(more.points)
        for j in range(len(more.points)):
            if bad and (more.tags is None or more.tags[j] == 0) and accepts(shown[j]):
                i = bad.pop()
                placed[i], local[i] = more.points[j], more.local[j]
                if tags is not None:
                    tags[i] = 0
        if not bad:
            break
    z, _ = strategy.model_coordinates(state, placed)
    for i in bad:
        for halving in range(_HALVINGS + 1):
            moved = strategy.at(state, z[i] * (0.5**halving if halving < _HALVINGS else 0.0))
            if moved is not None and accepts(strategy.to_user(moved[None])[0]):
                placed[i] = moved
                break
        else:
            raise RuntimeError(
                "no point near the mean of the search fulfils the constraints with keep_feasible=True: choose a "
                "smaller sigma0, or leave keep_feasible out"
            )
        local[i] = strategy.shortened(strategy.local(state, placed[i : i + 1]))[0]
        if tags is not None:
            tags[i] = 0
    return Drawn(placed, local, tags)
