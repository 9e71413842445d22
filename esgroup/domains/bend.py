"""The map from the unbounded variables of a search to points within bounds, and its inverse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_FAR = 1e306  # variables further out are moved here, so that sums cannot overflow


class Edge(NamedTuple):
    """Variables seen from a finite bound `low`, with the sign reversed if that is the upper bound."""

    sign: Array  # -1 where reversed
    low: Array
    high: Array  # the other bound, perhaps infinite
    near: Array  # margin at `low`
    far: Array  # margin at `high`
    width: Array  # distance from mirror to mirror


@dataclass(frozen=True, eq=False)
class Bend:
    """x = y except in a margin at each bound, where a parabola leads into the bound, with a mirror behind it.

    With lower bound l, margin a and s = |y - (l - a)|, and likewise at an upper bound,

        x = l + s^2 / (4 a)   where s < 2 a,      x = l - a + s   elsewhere:

    which is continuous with its slope, and x = y for y >= l + a. The bound is reached at y = l - a with slope 0, so
    that a function that slopes down to the bound becomes a parabola there, on which a search converges as it does
    inside; a parabola whose minimum lies at the bound becomes a fourth power. Between two bounds the mirrors make x
    periodic in y with the period 2 (u - l + a + b): standard deviations larger than a fraction of it carry no
    information and should be limited. Samples come arbitrarily close to a bound without reaching it;
    `nearest_mirror` returns where it is reached. A margin of 0 is plain reflection: a slope becomes a kink, which costs
    up to five times the evaluations. (Approaching a bound by a parabola is the idea of pycma's BoundTransform.)
    """

    lower: Array  # (dim,), -inf where open
    upper: Array
    lower_margin: Array  # less than half the range; 0 where open
    upper_margin: Array

    def out(self, y: Array) -> Array:
        """Return rows x for rows y, within the bounds exactly, as a new array."""
        x, (bent, above) = y.copy(), self._margins(y)
        if bent.any():
            columns = np.nonzero(bent)[-1]
            frame = self._seen(columns, above[bent])
            x[bent] = (frame.sign * _bent(frame, y[bent])).clip(self.lower[columns], self.upper[columns])
        return x

    def back(self, x: Array) -> Array:
        """Return rows y between the mirrors with out(y) = x, for x within the bounds, as a new array."""
        y, (bent, above) = x.copy(), self._margins(x)
        if bent.any():
            sign, low, _, near, _, _ = self._seen(np.nonzero(bent)[-1], above[bent])
            depth = sign * x[bent] - low
            y[bent] = sign * (low + (2 * near * np.sqrt(depth / near) - near))
        return y

    def nearest_image(self, y: Array, to: Array) -> Array:
        """Return, for rows y, the y' nearest to a point among all with out(y') = out(y)."""
        columns = np.nonzero(np.isfinite(self.lower) | np.isfinite(self.upper))[0]
        sign, low, _, near, _, width = self._seen(columns, np.isneginf(self.lower)[columns])
        mirror, bounded = low - near, y[..., columns]
        s, t = sign * bounded - mirror, sign * to[columns] - mirror
        period = np.where(np.isinf(width), 0.0, 2 * width)
        turns = 1 / np.where(period > 0, period, math.inf)
        same = s + period * np.round((t - s) * turns)
        mirrored = -s + period * np.round((t + s) * turns)
        nearest = np.where(np.abs(same - t) <= np.abs(mirrored - t), same, mirrored)
        image = y.copy()
        image[..., columns] = np.where(nearest == s, bounded, sign * (mirror + nearest))
        return image

    def nearest_mirror(self, to: Array) -> Array:
        """Return the y (dim,) nearest to a point at which x is at a bound, inf where there is no margin."""
        sign, low, _, near, far, width = self._seen(np.arange(len(to)), np.isneginf(self.lower))
        mirror = low - near  # between two bounds there is a mirror at mirror + k width for every k
        with np.errstate(invalid="ignore"):  # where it is infinite
            others = width * np.rint((sign * to - mirror) / width)
        return np.where(near + far > 0, sign * (mirror + np.where(np.isinf(width), 0.0, others)), math.inf)

    def steps(self, x: Array, steps: Array) -> Array:
        """Return standard deviations of y that move x inwards by `steps`: the same except in margins."""
        inwards = np.where(x - self.lower < self.upper - x, x + steps, x - steps)
        return np.where(self._margins(x)[0], np.abs(self.back(inwards) - self.back(x)), steps)

    def stds(self, mean: Array, stds: Array) -> Array:
        """Return standard deviations of x for y ~ N(mean, stds^2), by three-node quadrature, exact on the parabola."""
        reach = math.sqrt(3.0) * stds
        nodes = np.stack([mean - reach, mean, mean + reach])
        x, weights = self.out(nodes), np.array([1 / 6, 2 / 3, 1 / 6])
        with np.errstate(invalid="ignore", over="ignore"):  # in variables that are not bent, which may be large
            bent = np.sqrt(weights @ (x - weights @ x) ** 2)
        return np.where((x == nodes).all(axis=0), stds, bent)

    def _margins(self, y: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which numbers are in a margin or beyond it, and which of them at the upper bound."""
        inner_low, inner_high = self._inner
        above = y > inner_high
        return (y < inner_low) | above, above

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        return self.lower + self.lower_margin, self.upper - self.upper_margin

    @cached_property
    def _edges(self) -> Array:
        """The fields of an `Edge`, (6, 2 dim): seen from the lower bounds, then from the upper ones."""
        lower, upper, at_lower, at_upper = self.lower, self.upper, self.lower_margin, self.upper_margin
        width = upper - lower + (at_lower + at_upper)
        from_lower = np.ones(len(lower)), lower, upper, at_lower, at_upper, width
        from_upper = -np.ones(len(lower)), -upper, -lower, at_upper, at_lower, width
        return np.hstack([from_lower, from_upper])

    def _seen(self, columns: NDArray[np.int64], turned: NDArray[np.bool_]) -> Edge:
        """Return variables seen from their lower bounds, or from the upper ones where `turned`."""
        return Edge(*self._edges.take(columns + len(self.lower) * turned, axis=1))


def _bent(frame: Edge, y: Array) -> Array:
    """x, seen from `low`, for y in a margin or beyond it, not yet clipped to the bounds."""
    sign, low, high, near, far, width = frame
    s: Array = np.abs(sign * y.clip(-_FAR, _FAR) - low + near)  # distance from the mirror; y - low is exact near it
    if (s > width).any():
        s = np.fmod(s, 2 * width)
        s = np.minimum(s, 2 * width - s)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # in values that are not selected
        r = width - s
        x = np.where(r < 2 * far, high - far * (r / (2 * far)) ** 2, low + (s - near))
        return np.where(s < 2 * near, low + near * (s / (2 * near)) ** 2, x)  # of ratios of at most 1: monotone
