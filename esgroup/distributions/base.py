"""The common base of distributions, and the state, samples and steps of Gaussians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import FromFields

RowMap = Callable[[Array, Array], Array]  # of a packed root and rows


class Distribution(FromFields):
    """Base of frozen dataclasses (with eq=False) with checked fields."""

    def _store(self, name: str, value: Any) -> None:
        """Set a field of the frozen object, in `__post_init__`."""
        object.__setattr__(self, name, value)


def checked_parts(name: str, value: Any, kind: type[Any], *shapes: tuple[int, ...]) -> list[Array]:
    """Check that a value is a named tuple of this kind whose arrays have these shapes; return the arrays."""
    checks.instance(name, value, kind)
    parts = zip(kind._fields, value, shapes, strict=True)
    return [checks.real_array(f"{name}.{part}", given, shape) for part, given, shape in parts]


class State(NamedTuple):
    """Parameters of a Gaussian.

    Attributes
    ----------
    mean : ndarray
        The mean: a vector, or a matrix for a `MatrixGaussian`.
    root : ndarray
        The square root A (covariance form) or B (precision form), packed as its group packs elements.
    """

    mean: Array
    root: Array


class Samples(NamedTuple):
    """One generation of samples of a Gaussian.

    Attributes
    ----------
    z : ndarray
        White local coordinates, z ~ N(0, I), one sample per row.
    x : ndarray
        The points x = mean + A z (mean + B^-T z in precision form).
    images : ndarray or None
        A z, if the group can use it again in `Gaussian.move_samples`.
    """

    z: Array
    x: Array
    images: Array | None = None


class Step(NamedTuple):
    """A vector of the local space of a Gaussian.

    Attributes
    ----------
    delta : ndarray
        The part for the mean.
    m : ndarray
        The part M for the square root, packed.
    """

    delta: Array
    m: Array

    def scaled(self, mean_rate: float, root_rate: float | None = None) -> Step:
        """Multiply the step by a rate, or the parts for the mean and the square root by separate rates."""
        return Step(mean_rate * self.delta, (mean_rate if root_rate is None else root_rate) * self.m)
