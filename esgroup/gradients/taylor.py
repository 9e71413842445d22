"""Remainders of Taylor's formula against the step: they show whether a derivative is right without trusting any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array

STEPS: Array = 0.5 ** np.arange(1.0, 37.0)  # down to 1e-11
CLEAR = 1e3  # times the rounding error: above it a remainder is read
WINDOW = 5  # the smallest steps above it: a small error of a derivative shows there and nowhere else
SPACINGS = (1e-9, 1e-6)  # of the points that show rounding errors; the second one is seen in float32 as well
FEWEST = 3  # points of a slope
SLACK = 0.25  # how far a slope may stay below the order

Evaluate = Callable[[Array], Array]


class Remainders(NamedTuple):
    """|F(x + h v) - Taylor polynomial| of several directions v (rows) and steps h; it should fall as h^order."""

    name: str
    order: int
    steps: Array  # (n,)
    values: Array  # (directions, n)
    floors: Array  # (directions, n), what rounding alone may give

    @property
    def slopes(self) -> Array:
        """d log|remainder| / d log h near rounding, for every direction; inf if there is nothing but rounding."""
        pairs = zip(self.values, self.floors, strict=True)
        return np.array([_slope(self.steps, value, floor) for value, floor in pairs])

    @property
    def slope(self) -> float:
        """The median of the directions: one of them may meet a change of sign by accident."""
        return float(np.median(self.slopes))

    @property
    def fall(self) -> str:
        """The same in words."""
        return "rounding only" if np.isinf(self.slope) else f"falls as h^{self.slope:.2f}"

    @property
    def ok(self) -> bool:
        """Whether the remainder falls as it should."""
        return self.slope > self.order - SLACK


def remainders(
    name: str, evaluate: Evaluate, x: Array, directions: Array, coefficients: Sequence[Array], noise: float
) -> Remainders:
    """Of F, given as rows F(x_i) of rows x_i, and c_0 = F(x), c_1 = F'(x) v, ..., each (directions, m).

    The polynomial is sum_j c_j h^j / j!, so that the remainder falls as h^(number of coefficients).
    """
    found = [_along(evaluate, x, v, [c[i] for c in coefficients], noise) for i, v in enumerate(directions)]
    values, floors = (np.array(part) for part in zip(*found, strict=True))
    return Remainders(name, len(coefficients), STEPS, values, floors)


def _along(evaluate: Evaluate, x: Array, v: Array, coefficients: Sequence[Array], noise: float) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):  # large steps may leave the domain: what is not finite is not read
        far = evaluate(x + STEPS[:, None] * v)
        polynomial, size, power = np.zeros(far.shape), np.linalg.norm(far, axis=1), np.ones(len(STEPS))
        for j, c in enumerate(coefficients):
            power = power * STEPS / j if j else power
            polynomial += np.outer(power, c)
            size = size + np.abs(power) * np.linalg.norm(c)
        gap = np.linalg.norm(far - polynomial, axis=1)
    return gap, noise + np.finfo(np.float64).eps * size


def roughness(evaluate: Evaluate, x: Array, v: Array) -> float:
    """The error with which F is evaluated: fourth differences of tiny steps, which no smooth F has.

    Differences of order 4 multiply the variance of independent errors by 1 + 16 + 36 + 16 + 1 = 70 (More and Wild
    2011).
    """
    return max(_fourth_differences(evaluate, x, spacing * v) for spacing in SPACINGS)


def _fourth_differences(evaluate: Evaluate, x: Array, v: Array) -> float:
    with np.errstate(invalid="ignore"):  # where F is infinite
        differences = np.diff(evaluate(x + np.arange(-4.0, 5.0)[:, None] * v), n=4, axis=0)
    return float(np.sqrt((differences**2).sum(axis=1).mean() / 70))


def _slope(steps: Array, values: Array, floors: Array) -> float:
    with np.errstate(invalid="ignore"):
        clear = np.flatnonzero(np.isfinite(values) & (values > CLEAR * floors))[-WINDOW:]
    if len(clear) < FEWEST:
        return float("inf")
    return float(np.polyfit(np.log(steps[clear]), np.log(values[clear]), 1)[0])
