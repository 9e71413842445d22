"""What an estimate of the Hessian offers to the iteration, whatever its structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

from esgroup.checks import Array, all_finite


class Breakdown(Exception):
    """The iteration cannot go on: the name of a reason, and what it says."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name, self.text = name, text


class Look(NamedTuple):
    """What is seen of the function at the present point.

    `products` maps rows v to rows H v. `diagonal` is that of H, None where the estimate does not need it. `damping` is
    a multiple of the identity that is added to the Hessian, `rate` the step size beta, `last_step` the way from the
    point before, None in the first iteration.
    """

    gradient: Array
    products: Callable[[Array], Array]
    diagonal: Array | None
    damping: float
    rate: float
    last_step: Array | None


class Precision(ABC):
    """A positive-definite estimate S of the Hessian. Objects never change: `advance` returns the next one."""

    #: Whether `advance` uses the Hessian's diagonal.
    needs_diagonal: bool

    @abstractmethod
    def advance(self, look: Look) -> Self:
        """The estimate after a look at the function."""

    @abstractmethod
    def solve(self, vector: Array) -> Array:
        """S^-1 v."""


def finite(name: str, array: Array) -> Array:
    """The array, if all its numbers are finite; otherwise the iteration ends."""
    if not all_finite(array):
        raise Breakdown("not_finite", f"{name} has entries that are not finite")
    return array


def largest_curvature(diagonal: Array, gradient: Array) -> float:
    """max |H_ii|, a scale of the function; where H has none, max |g_i|, with which a step is no longer than 1."""
    for array in (diagonal, gradient):
        largest = float(abs(array).max())
        if largest > 0.0:
            return largest
    return 1.0
