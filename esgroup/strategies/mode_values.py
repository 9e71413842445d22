"""The best values that were told near given places: those of the optima that a search reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_LOOKED_AT_FIRST = 8  # coordinates that tell most points apart from most places


class Best(NamedTuple):
    """A point for each place, and its value, infinite if there is none yet."""

    points: Array  # (places, dim)
    values: Array  # (places,)

    def and_more(self, points: Array, values: Array) -> Best:
        """Further points after these."""
        return Best(np.vstack([self.points, points]), np.concatenate([self.values, values]))


class Places(NamedTuple):
    """A point is near a place if it is within `widths` of its centre in every coordinate."""

    centres: Array  # (places, dim)
    widths: Array  # (places, dim)
    scale: Array  # (dim,): what distances are measured in


def none_yet(places: int, dim: int) -> Best:
    """Nothing was told."""
    return Best(np.zeros((places, dim)), np.full(places, np.inf))


def best_near(places: Places, told: Best) -> Best:
    """The best point near each place; a point counts for the nearest one only, so that no two places share it."""
    found, owners = none_yet(*places.centres.shape), _owners(places, told.points)
    for place in np.unique(owners[owners >= 0]).tolist():
        mine = owners == place
        found.points[place], found.values[place] = best_of_all(Best(told.points[mine], told.values[mine]))
    return found


def best_of_all(told: Best) -> tuple[Array, float]:
    """The first of the best points and its value; a failed run, NaN, is never the best."""
    values = np.where(np.isnan(told.values), np.inf, told.values)
    best = int(values.argmin())
    return told.points[best], float(values[best])


def _owners(places: Places, points: Array) -> NDArray[np.int64]:
    """For each point the nearest of the places that it is near, by the largest gap in a coordinate; -1 if none."""
    nearest, owners = np.full(len(points), np.inf), np.full(len(points), -1)
    near = _perhaps_near(places, points)
    for place in np.flatnonzero(near.any(axis=1)).tolist():
        rows = np.flatnonzero(near[place])
        gaps = np.abs(points[rows] - places.centres[place])
        inside = (gaps <= places.widths[place]).all(axis=1)
        rows, distances = rows[inside], (gaps[inside] / places.scale).max(axis=1)
        nearer = distances < nearest[rows]
        nearest[rows[nearer]], owners[rows[nearer]] = distances[nearer], place
    return owners


def _perhaps_near(places: Places, points: Array) -> NDArray[np.bool_]:
    """(places, points): whether the first coordinates are near. Of all coordinates this would be a large array."""
    centres, widths, firsts = (array[:, :_LOOKED_AT_FIRST] for array in (places.centres, places.widths, points))
    near: NDArray[np.bool_] = np.all(np.abs(firsts - centres[:, None]) <= widths[:, None], axis=2)
    return near
