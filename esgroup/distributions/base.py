"""What travels between a distribution and its callers."""

from __future__ import annotations

from typing import NamedTuple

from esgroup.checks import Array


class State(NamedTuple):
    """Parameters of a Gaussian: its mean and the packed square root A (covariance form) or B (precision form)."""

    mean: Array
    root: Array


class Samples(NamedTuple):
    """A generation: white local coordinates z ~ N(0, I), the points x, and A z where the group can use it again."""

    z: Array
    x: Array
    images: Array | None = None


class Step(NamedTuple):
    """A vector of the local space: delta for the mean and the packed m for the square root."""

    delta: Array
    m: Array

    def scaled(self, mean_rate: float, root_rate: float | None = None) -> Step:
        """The step times a rate, or times one rate for the mean and another for the square root."""
        return Step(mean_rate * self.delta, (mean_rate if root_rate is None else root_rate) * self.m)
