"""The best values that were told near given places: those of the optima that a search reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array


class Best(NamedTuple):
    """For each place the best point told near it, and its value, infinite if there is none yet."""

    points: Array  # (places, dim)
    values: Array  # (places,)


def none_yet(places: int, dim: int) -> Best:
    """Nothing was told."""
    return Best(np.zeros((places, dim)), np.full(places, np.inf))


def after(best: Best, centres: Array, widths: Array, points: Array, values: Array) -> Best:
    """`best` after more was told: points near a place are within `widths` of its centre in every coordinate.

    Places move and are new: what was the best of one may now be near another, and what is near none is forgotten. A
    failed run, NaN, is never the best.
    """
    points, values = np.vstack([best.points, points]), np.concatenate([best.values, values])
    near = _near(points[None], centres[:, None], widths[:, None]) & ~np.isnan(values)
    offered = np.where(near, values, np.inf)
    first = offered.argmin(axis=1)
    return Best(points[first], offered[np.arange(len(centres)), first])


def _near(points: Array, centres: Array, widths: Array) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all(np.abs(points - centres) <= widths, axis=-1)
    return inside
