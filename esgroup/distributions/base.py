"""What the distributions share: equality of objects that hold arrays, and the state, samples and steps of Gaussians."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array


class Distribution:
    """Base of frozen dataclasses (with eq=False) some of whose fields are arrays.

    Two of them are equal if they are of one class and all fields agree, arrays entry by entry.
    """

    def _store(self, name: str, value: Any) -> None:
        """Set a field of the frozen object, in `__post_init__`."""
        object.__setattr__(self, name, value)

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # a dataclass

    def _compared(self) -> tuple[Any, ...]:
        """What decides whether two distributions are equal: all fields, unless a subclass says otherwise."""
        return self._fields()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(map(_are_equal, self._compared(), other._compared()))

    def __hash__(self) -> int:
        return hash(tuple(part.shape if isinstance(part, np.ndarray) else part for part in self._compared()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()  # through the constructor, so that shared arrays stay read-only


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    return bool(one == other)


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
        """Multiply the step by a rate, or the parts for the mean and for the square root by a rate each."""
        return Step(mean_rate * self.delta, (mean_rate if root_rate is None else root_rate) * self.m)
