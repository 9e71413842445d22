"""Functions that compute values and derivatives at many points in one call each, such as compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import PROBES, Products


class RowCalls(NamedTuple):
    """The calls that a library provides; further arguments of the function follow the arrays.

    Attributes
    ----------
    values : callable
        Rows (n, dim) to n values.
    gradients : callable
        Rows (n, dim) to n values and n gradients as rows.
    products : callable
        Rows (n, dim) and vectors (n, m, dim) to products (n, m, dim) with the Hessian of each row.
    mean_products : callable
        Rows (n, dim) and vectors (m, dim) to their products (m, dim) with the mean of the Hessians of the rows.
    """

    values: Callable[..., Any]
    gradients: Callable[..., Any]
    products: Callable[..., Any]
    mean_products: Callable[..., Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFunction(Products):
    """A function f, its gradient, and products with its Hessian, at many points in one call each.

    Made by `row_function`. `args` are the further arguments that f receives after the point.
    """

    calls: RowCalls
    args: tuple[Any, ...] = ()

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Return f and df/dx of every row, from one call."""
        points = self._rows(points)
        self.counts.nfev += len(points)
        self.counts.njev += len(points)
        values, gradients = self.calls.gradients(points, *self.args)
        values = checks.real_array("fun(rows)", values, (len(points),), finite=False)
        return values, checks.real_array("jac(rows)", gradients, points.shape, finite=False)

    def row_products(self, points: Array, v: Array) -> Array:
        """Return the products of the Hessian at each of n points with that point's vectors, v (n, m, dim)."""
        self.counts.nhvp += v.shape[0] * v.shape[1]
        found = self.calls.products(self._rows(points), v, *self.args)
        return checks.real_array("hessp(rows, v)", found, v.shape, finite=False)

    def mean_products(self, points: Array, rows: Array) -> Array:
        """Return rows H v for rows v, H the mean of the Hessians at the points."""
        self.counts.nhvp += len(points) * len(rows)
        found = self.calls.mean_products(self._rows(points), self._rows(rows), *self.args)
        return checks.real_array("hessp(rows, v)", found, rows.shape, finite=False)

    def mean_diagonal(self, points: Array, rng: np.random.Generator) -> Array:
        """Return the diagonal of the mean of the Hessians at the points, or an unbiased estimate."""
        if self.probes >= self.dim:
            return np.diagonal(self.mean_products(points, np.eye(self.dim))).copy()
        signs = (2 * rng.integers(0, 2, size=(len(points), self.probes, self.dim)) - 1).astype(np.float64)
        return (signs * self.row_products(points, signs)).mean(axis=(0, 1))

    def with_arguments(self, *args: Any) -> RowFunction:
        """Return the same function with other further arguments, and with counts of its own."""
        return row_function(self.calls, self.dim, probes=self.probes, args=args)

    def negated(self) -> RowFunction:
        """Return -f with the same further arguments, and with counts of its own."""
        calls = RowCalls(*(partial(_negative, call) for call in self.calls))
        return row_function(calls, self.dim, probes=self.probes, args=self.args)


def _negative(call: Callable[..., Any], *arrays: Any) -> Any:
    found = call(*arrays)
    return tuple(-part for part in found) if isinstance(found, tuple) else -found


def row_function(calls: RowCalls, dim: int, *, probes: int = PROBES, args: tuple[Any, ...] = ()) -> RowFunction:
    """Make a function from the calls that a library provides.

    Parameters
    ----------
    calls : RowCalls
        Values, gradients and products of rows of points, on NumPy arrays.
    dim : int
        Number of variables.
    probes : int
        Number of random products used to estimate the diagonal of the Hessian.
    args : tuple
        Further arguments of the function.
    """
    return RowFunction(
        dim=dim,
        fun=lambda rows: calls.values(rows, *args),
        jac=lambda rows: calls.gradients(rows, *args)[1],
        hessp=lambda x, rows: calls.products(x[None], rows[None], *args)[0] if len(rows) else np.zeros(rows.shape),
        vectorized=True,
        hessp_vectorized=True,
        probes=probes,
        calls=calls,
        args=args,
    )
