"""The way from an unbounded search to points within bounds, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_FAR = 1e306  # what is further out is taken to be there: sums cannot overflow


class Frame(NamedTuple):
    """A coordinate seen from a finite bound `low`; `high` is infinite if that is its only one."""

    sign: Array  # -1 where x was turned round because only its upper bound is finite
    low: Array
    high: Array
    near: Array  # margin at low
    far: Array  # margin at high
    width: Array  # from mirror to mirror

    def at(self, columns: NDArray[np.int64]) -> Frame:
        return Frame(*(part[columns] for part in self))


@dataclass(frozen=True, eq=False)
class Bend:
    """x = y but for a margin at each bound, where a parabola leads into the bound, and a mirror behind it.

    With lower bound l, margin a and s = |y - (l - a)|, and likewise at an upper bound,

        x = l + s^2 / (4 a)   where s < 2 a,      x = l - a + s   elsewhere:

    continuous with its slope, and x = y for y >= l + a. The bound is reached at y = l - a with slope 0, so that a
    function that slopes down to the bound becomes a parabola there, on which a search converges as it does inside; one
    whose minimum lies at the bound becomes a fourth power. Between two bounds the mirrors make x periodic in y, the
    period is 2 (u - l + a + b): standard deviations beyond a part of it say nothing any more and should be limited.
    A margin of 0 is plain reflection: a slope becomes a kink, which costs up to five times the evaluations. (That a
    bound may be approached by a parabola is the idea of pycma's BoundTransform.)
    """

    lower: Array  # (dim,), -inf where open
    upper: Array
    lower_margin: Array  # at most half the range; any number where open
    upper_margin: Array

    def out(self, y: Array) -> Array:
        """Rows x for rows y, within the bounds exactly; always a new array."""
        x, bent = y.copy(), self._in_margin(y)
        if bent.any():
            columns = np.nonzero(bent)[-1]
            x[bent] = _bent(self._frame.at(columns), y[bent]).clip(self.lower[columns], self.upper[columns])
        return x

    def back(self, x: Array) -> Array:
        """Rows y between the mirrors with out(y) = x, for x within the bounds; always a new array."""
        y, bent = x.copy(), self._in_margin(x)
        if bent.any():
            y[bent] = _unbent(self._frame.at(np.nonzero(bent)[-1]), x[bent])
        return y

    def nearest_image(self, y: Array, to: Array) -> Array:
        """Of all y' with out(y') = out(y) the one nearest to a point, for rows y."""
        columns = np.nonzero(np.isfinite(self._frame.low))[0]
        frame = self._frame.at(columns)
        image = y.copy()
        image[..., columns] = _nearest_image(frame, y[..., columns], to[columns])
        return image

    def steps(self, x: Array, steps: Array) -> Array:
        """Standard deviations of y at a point that take x as far inwards as `steps` say; the same but for margins."""
        inwards = np.where(x - self.lower < self.upper - x, x + steps, x - steps)
        return np.where(self._in_margin(x), np.abs(self.back(inwards) - self.back(x)), steps)

    def stds(self, mean: Array, stds: Array) -> Array:
        """Standard deviations of x for y ~ N(mean, stds^2), by the quadrature of three nodes, exact on the parabola."""
        reach = math.sqrt(3.0) * stds
        nodes = np.stack([mean - reach, mean, mean + reach])
        x, weights = self.out(nodes), np.array([1 / 6, 2 / 3, 1 / 6])
        with np.errstate(invalid="ignore", over="ignore"):  # of coordinates that are not bent, however large
            bent = np.sqrt(weights @ (x - weights @ x) ** 2)
        return np.where((x == nodes).all(axis=0), stds, bent)

    def _in_margin(self, y: Array) -> NDArray[np.bool_]:
        inner_low, inner_high = self._inner
        touched: NDArray[np.bool_] = (y < inner_low) | (y > inner_high)
        return touched

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        return self.lower + self.lower_margin, self.upper - self.upper_margin

    @cached_property
    def _frame(self) -> Frame:
        turned = np.isneginf(self.lower)
        low, high = np.where(turned, -self.upper, self.lower), np.where(turned, -self.lower, self.upper)
        near = np.where(turned, self.upper_margin, self.lower_margin)
        far = np.where(turned, self.lower_margin, self.upper_margin)
        return Frame(np.where(turned, -1.0, 1.0), low, high, near, far, high - low + (near + far))


def _bent(frame: Frame, y: Array) -> Array:
    sign, low, high, near, far, width = frame
    s = np.fmod(sign * y.clip(-_FAR, _FAR) - low + near, 2 * width)  # y - low first: it is exact nearby
    s = np.abs(s)
    s = np.minimum(s, 2 * width - s)
    x = low + (s - near)
    # a margin as large as it may be overlaps nothing; near = 0 and high = inf are not looked at
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = np.where(s < 2 * near, np.minimum(low + near * (s / (2 * near)) ** 2, low + near), x)
        r = width - s
        x = np.where(r < 2 * far, np.maximum(high - far * (r / (2 * far)) ** 2, high - far), x)
    turned_back: Array = sign * x
    return turned_back


def _unbent(frame: Frame, x: Array) -> Array:
    sign, low, high, near, far, _ = frame
    depth, height = sign * x - low, high - sign * x
    with np.errstate(divide="ignore", invalid="ignore"):
        y_low = low + (2 * near * np.sqrt(depth / near) - near)
        y_high = high - (2 * far * np.sqrt(height / far) - far)
    return sign * np.where(depth < height, y_low, y_high)


def _nearest_image(frame: Frame, y: Array, to: Array) -> Array:
    sign, low, _, near, _, width = frame
    mirror = low - near
    s, t = sign * y - mirror, sign * to - mirror
    period = np.where(np.isinf(width), 0.0, 2 * width)
    turns = 1 / np.where(period > 0, period, math.inf)
    same = s + period * np.round((t - s) * turns)
    mirrored = -s + period * np.round((t + s) * turns)
    nearest = np.where(np.abs(same - t) <= np.abs(mirrored - t), same, mirrored)
    return np.where(nearest == s, y, sign * (mirror + nearest))
