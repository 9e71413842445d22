"""Functions of vectors with their derivatives, at the cost of one pass over the coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from esgroup.checks import Array


class Function(ABC):
    """A function of vectors: `rows` takes several points at once, (n, dim), everything else takes one point, (dim,)."""

    @abstractmethod
    def rows(self, x: Array) -> Array:
        """Values of f at every row, (n,)."""

    @abstractmethod
    def gradient(self, x: Array) -> Array:
        """Gradient of f at x."""

    @abstractmethod
    def product(self, x: Array, v: Array) -> Array:
        """Hessian of f at x times v."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """Diagonal of the Hessian of f at x."""


class Separable(Function):
    """f(x) = sum_i f_i(x_i): the Hessian is diagonal. `terms`, `slopes` and `bends` take points or rows."""

    @abstractmethod
    def terms(self, x: Array) -> Array:
        """The terms f_i(x_i)."""

    @abstractmethod
    def slopes(self, x: Array) -> Array:
        """The first derivatives f_i'(x_i)."""

    @abstractmethod
    def bends(self, x: Array) -> Array:
        """The second derivatives f_i''(x_i)."""

    @final
    def rows(self, x: Array) -> Array:
        return self.terms(x).sum(axis=-1)

    @final
    def gradient(self, x: Array) -> Array:
        return self.slopes(x)

    @final
    def product(self, x: Array, v: Array) -> Array:
        return self.bends(x) * v

    @final
    def diagonal(self, x: Array) -> Array:
        return self.bends(x)


class Banded(Function):
    """A function that couples neighboring coordinates only: its Hessian has a few nonzero diagonals."""

    @abstractmethod
    def bands(self, x: Array) -> tuple[Array, ...]:
        """Nonzero diagonals of the Hessian: the main one, (dim,), the one above it, (dim - 1,), and so on."""

    @final
    def product(self, x: Array, v: Array) -> Array:
        main, *above = self.bands(x)
        product: Array = main * v
        for k, band in enumerate(above, start=1):
            product[:-k] += band * v[k:]
            product[k:] += band * v[:-k]
        return product

    @final
    def diagonal(self, x: Array) -> Array:
        return self.bands(x)[0]


class Length:
    """`scale` times the Euclidean length of x, with its derivatives; at the kink x = 0 they are taken as zero."""

    def __init__(self, x: Array, scale: float = 1.0) -> None:
        length = float(np.sqrt((x**2).sum()))
        self.value, self._scale = scale * length, scale
        self._inverse = 1 / length if length > 0 else 0.0
        self._unit = self._inverse * x

    def gradient(self) -> Array:
        """u = x / |x|, times the scale."""
        return self._scale * self._unit

    def product(self, v: Array) -> Array:
        """(I - u u^T) v / |x|, times the scale."""
        across: Array = v - (self._unit * v).sum() * self._unit
        return self._scale * self._inverse * across

    def diagonal(self) -> Array:
        """(1 - u_i^2) / |x|, times the scale."""
        return self._scale * self._inverse * (1 - self._unit**2)
