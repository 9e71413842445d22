"""Optima that are known, and what can be said of two points from ranks alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array


class Mode(NamedTuple):
    """An optimum: where it is, its value if that is known, and the share of all descents that ended there."""

    point: Array
    value: float
    weight: float


class Known(NamedTuple):
    """The optima found so far: points, how many descents ended at each (0: the place is free), and two counters."""

    points: Array  # (capacity, dim)
    hits: Array  # (capacity,)
    turn: Array  # (): where the next comparison with known optima begins
    idle: Array  # (): descents since the last one that ended at a new optimum


@dataclass(frozen=True, eq=False)
class Niches:
    """A list of at most `capacity` optima; those nearer than `resolution`, in units of `scale`, are one."""

    capacity: int
    scale: Array
    resolution: float

    def start(self) -> Known:
        """Nothing is known."""
        return Known(np.zeros((self.capacity, len(self.scale))), np.zeros(self.capacity), np.zeros(()), np.zeros(()))

    def nearest(self, points: Array, point: Array) -> tuple[int, float]:
        """The index and the distance of the nearest of some points, (-1, inf) if there are none."""
        if len(points) == 0:
            return -1, math.inf
        gaps = np.abs((points - point) / self.scale).max(axis=1)
        return int(gaps.argmin()), float(gaps.min())

    def nearest_known(self, known: Known, point: Array) -> tuple[int, float]:
        """The place and the distance of the nearest known optimum."""
        places = np.flatnonzero(known.hits)
        i, gap = self.nearest(known.points[places], point)
        return (int(places[i]), gap) if i >= 0 else (-1, gap)

    def is_full(self, known: Known) -> bool:
        """Whether a new optimum has to take the place of another."""
        return bool((known.hits > 0).all())

    def add(self, known: Known, point: Array, place: int | None = None) -> None:
        """Write a new optimum to a place, by default the first that is free."""
        at = int((known.hits == 0).argmax()) if place is None else place
        known.points[at], known.hits[at], known.idle[...] = point, 1.0, 0.0

    def hit(self, known: Known, place: int, point: Array | None = None) -> None:
        """Count a descent that ended at a known optimum, which moves to a better point if there is one."""
        known.hits[place] += 1.0
        known.idle[...] += 1.0
        if point is not None:
            known.points[place] = point

    def rivals(self, known: Known, n: int, k: int) -> Array:
        """The places of n optima that component k compares with a new one; all of them come round in turn."""
        places: Array = (known.turn + k * n + np.arange(n)) % self.capacity
        return places


def segment(start: Array, end: Array, n: int) -> tuple[Array, Array]:
    """n points from start to end and their fractions; the ends come last, so that ties make no hill between them."""
    fractions = np.roll(np.linspace(0.0, 1.0, n), -1)
    return start + fractions[:, None] * (end - start), fractions


def valley(fractions: Array) -> tuple[bool, bool] | None:
    """(whether no point between is worse than both ends, whether the start is better than the end).

    `fractions` are those of points on a segment from best to worst: Ursem's hill-valley test (Multinational
    evolutionary algorithms, CEC 1999), which needs ranks only. None if an end or all between are missing.
    """
    ends = [np.flatnonzero(fractions == end) for end in (0.0, 1.0)]
    between = np.flatnonzero((fractions > 0) & (fractions < 1))
    if not (len(ends[0]) and len(ends[1]) and len(between)):
        return None
    start, end = int(ends[0][0]), int(ends[1][0])
    return bool(between.max() < max(start, end)), start < end


def folded(box: Array | None, points: Array) -> Array:
    """The mirror images of points in a box: the search sees a function that goes on, mirrored, beyond its bounds."""
    if box is None:
        return points
    low, width = box[:, 0], box[:, 1] - box[:, 0]
    phase = np.abs(((points - low) / width + 1) % 2 - 1)  # a triangle wave
    images: Array = np.clip(low + width * phase, low, box[:, 1])  # rounding must not leave the box
    inside = (points >= low) & (points <= box[:, 1])
    return np.where(inside, points, images)
