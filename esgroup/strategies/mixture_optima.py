"""What a mixture search knows about optima: the list of known ones, tests based on ranks only, and their values.

`Niches` keeps the list of known optima. `segment` and `valley` are the hill-valley test, which decides from ranks
whether two points lie in one basin. `folded` mirrors points into a box. `best_near` picks the best evaluated point near
each optimum, which is what results show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_LOOKED_AT_FIRST = 8  # coordinates that tell most points apart from most places


class Mode(NamedTuple):
    """An optimum, as results show it.

    Attributes
    ----------
    point : array
        The best evaluated point near the optimum.
    value : float
        Its value; NaN if no value is known.
    weight : float
        The share of all descents that ended there.
    """

    point: Array
    value: float
    weight: float


# ---- the list of known optima -----------------------------------------------------------------------------------


class KnownOptima(NamedTuple):
    """The optima found so far: points, how many descents ended at each (0: the slot is free), and two counters."""

    points: Array  # (capacity, dim)
    hits: Array  # (capacity,)
    turn: Array  # (): the slot at which the next comparison with known optima starts
    idle: Array  # (): descents since the last one that ended at a new optimum


@dataclass(frozen=True, eq=False)
class Niches:
    """A list of at most `capacity` optima; two that are nearer than `resolution`, in units of `scale`, are the same.

    The list begins with `first` slots, since most functions have few optima, and more are added as they are needed.
    """

    capacity: int
    first: int
    scale: Array
    resolution: float

    def start(self) -> KnownOptima:
        """Return the empty list."""
        points, hits = np.zeros((self.first, len(self.scale))), np.zeros(self.first)
        return KnownOptima(points, hits, np.zeros(()), np.zeros(()))

    def nearest(self, points: Array, point: Array) -> tuple[int, float]:
        """Return the index and the distance of the nearest of some points, (-1, inf) if there are none."""
        if len(points) == 0:
            return -1, math.inf
        gaps = np.abs((points - point) / self.scale).max(axis=1)
        return int(gaps.argmin()), float(gaps.min())

    def nearest_known(self, known: KnownOptima, point: Array) -> tuple[int, float]:
        """Return the slot and the distance of the nearest known optimum, (-1, inf) if there is none."""
        slots = np.flatnonzero(known.hits)
        i, gap = self.nearest(known.points[slots], point)
        return (int(slots[i]), gap) if i >= 0 else (-1, gap)

    def is_full(self, known: KnownOptima) -> bool:
        """Whether a new optimum has to replace another because the list must not grow further."""
        return len(known.hits) == self.capacity and bool((known.hits > 0).all())

    def add(self, known: KnownOptima, point: Array, slot: int | None = None) -> None:
        """Write a new optimum to a slot, by default the first free one."""
        at = int((known.hits == 0).argmax()) if slot is None else slot
        known.points[at], known.hits[at], known.idle[...] = point, 1.0, 0.0

    def hit(self, known: KnownOptima, slot: int, point: Array | None = None) -> None:
        """Count a descent that ended at a known optimum, and move the optimum to a better point if one is given."""
        known.hits[slot] += 1.0
        known.idle[...] += 1.0
        if point is not None:
            known.points[slot] = point


# ---- two points and the way between them ------------------------------------------------------------------------


def segment(start: Array, end: Array, n: int) -> tuple[Array, Array]:
    """Return n points from start to end and their fractions of the way.

    The ends come last, so that equal values do not look like a hill between them.
    """
    fractions = np.roll(np.linspace(0.0, 1.0, n), -1)
    return start + fractions[:, None] * (end - start), fractions


def valley(fractions: Array) -> tuple[bool, bool] | None:
    """Return (whether no point between the ends is worse than both, whether the start is better than the end).

    `fractions` are those of points on a segment, from best to worst. This is Ursem's hill-valley test (Multinational
    evolutionary algorithms, CEC 1999), which needs ranks only. The answer is None if an end or all points between the
    ends are missing.
    """
    ends = [np.flatnonzero(fractions == end) for end in (0.0, 1.0)]
    between = np.flatnonzero((fractions > 0) & (fractions < 1))
    if not (len(ends[0]) and len(ends[1]) and len(between)):
        return None
    start, end = int(ends[0][0]), int(ends[1][0])
    return bool(between.max() < max(start, end)), start < end


def folded(box: Array | None, points: Array) -> Array:
    """Return the mirror images of points in a box: the search sees a function that continues, mirrored, outside."""
    if box is None:
        return points
    low, width = box[:, 0], box[:, 1] - box[:, 0]
    phase = np.abs(((points - low) / width + 1) % 2 - 1)  # a triangle wave
    images: Array = np.clip(low + width * phase, low, box[:, 1])  # rounding must not leave the box
    inside = (points >= low) & (points <= box[:, 1])
    return np.where(inside, points, images)


# ---- the values of optima ---------------------------------------------------------------------------------------


class ValuedPoints(NamedTuple):
    """Points and their values. If a row stands for a place, its value is infinite until a point is known there."""

    points: Array  # (n, dim)
    values: Array  # (n,)

    @classmethod
    def unknown(cls, n: int, dim: int) -> ValuedPoints:
        """Return n rows without a known point."""
        return cls(np.zeros((n, dim)), np.full(n, np.inf))

    def best(self) -> tuple[Array, float]:
        """Return the first of the best points and its value; NaN, a failed evaluation, is never the best."""
        values = np.where(np.isnan(self.values), np.inf, self.values)
        best = int(values.argmin())
        return self.points[best], float(values[best])


class Neighborhoods(NamedTuple):
    """Boxes around places: a point is near a place if it is within `widths` of the center in every coordinate."""

    centers: Array  # (places, dim)
    widths: Array  # (places, dim)
    scale: Array  # (dim,): the unit of distances


def best_near(places: Neighborhoods, evaluated: ValuedPoints) -> ValuedPoints:
    """Return the best point near each place; a point counts for the nearest place only, so that no two share it."""
    found, owners = ValuedPoints.unknown(*places.centers.shape), _owners(places, evaluated.points)
    for place in np.unique(owners[owners >= 0]).tolist():
        mine = owners == place
        found.points[place], found.values[place] = ValuedPoints(evaluated.points[mine], evaluated.values[mine]).best()
    return found


def _owners(places: Neighborhoods, points: Array) -> NDArray[np.int64]:
    """For each point the nearest of the places that it is near, by the largest gap in a coordinate; -1 if none."""
    nearest, owners = np.full(len(points), np.inf), np.full(len(points), -1)
    # the first coordinates rule out most pairs; an array of all coordinates of all pairs would be large
    centers, widths, firsts = (array[:, :_LOOKED_AT_FIRST] for array in (places.centers, places.widths, points))
    near: NDArray[np.bool_] = np.all(np.abs(firsts - centers[:, None]) <= widths[:, None], axis=2)  # (places, points)
    for place in np.flatnonzero(near.any(axis=1)).tolist():
        rows = np.flatnonzero(near[place])
        gaps = np.abs(points[rows] - places.centers[place])
        inside = (gaps <= places.widths[place]).all(axis=1)
        rows, distances = rows[inside], (gaps[inside] / places.scale).max(axis=1)
        nearer = distances < nearest[rows]
        nearest[rows[nearer]], owners[rows[nearer]] = distances[nearer], place
    return owners
