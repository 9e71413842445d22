"""What a check of derivatives is given, as one function with products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import Fun, Gradients, Hessians, Products, Values, as_dense
from esgroup.gradients.making import as_function, with_args
from esgroup.gradients.memory import LastPoint

Given = Callable[..., Any] | None


class Matrix:
    """The Hessian as it was given, not made symmetric, and computed once at a point."""

    def __init__(self, hess: Fun) -> None:
        self._hess, self._last = hess, LastPoint()

    def __call__(self, x: Array) -> Array:
        return self._last.at(x, self._computed)  # type: ignore[no-any-return]

    def _computed(self, x: Array) -> Array:
        return checks.real_array("hess(x)", as_dense(self._hess(x)), (len(x), len(x)), finite=False)

    def products(self, x: Array, rows: Array) -> Array:
        """Rows H v of rows v."""
        found: Array = rows @ self(x).T
        return found


class Known(NamedTuple):
    """The function; where its products come from; and the matrix that they are compared with, if both were given."""

    function: Gradients
    source: str = "hessp"
    matrix: Matrix | None = None


def known(
    fun: Callable[..., Any] | Values,
    dim: int,
    jac: Callable[..., Any] | bool | None,
    hessp: Given,
    hess: Given,
    hess_diag: Given,
    args: tuple[Any, ...],
    hessp_vectorized: bool,
    vectorized: bool,
) -> Known:
    """The function with products wherever they are known."""
    if isinstance(fun, Values):
        if any(given is not None for given in (jac, hessp, hess, hess_diag)):
            raise ValueError("jac, hessp, hess and hess_diag must be left out if fun is made by as_function")
        return _of_made(fun, dim)
    if not jac:
        raise ValueError(f"jac must be given, there is nothing to check without it, got {jac!r}")
    plain = as_function(fun, dim, args=args, jac=jac, vectorized=vectorized)
    matrix = None if hess is None else Matrix(with_args("hess", hess, args))
    if hessp is None and matrix is None:
        if hess_diag is not None:
            raise ValueError("hess_diag needs the Hessian as well: give hessp= or hess=")
        return Known(plain)  # type: ignore[arg-type]  # there is a jac
    diagonal = None if hess_diag is None else with_args("hess_diag", hess_diag, args)
    if hessp is None:
        return Known(_with_products(plain, matrix.products, True, diagonal), "hess")  # type: ignore[union-attr]
    return Known(_with_products(plain, with_args("hessp", hessp, args), hessp_vectorized, diagonal), "hessp", matrix)


def _of_made(function: Values, dim: int) -> Known:
    if not isinstance(function, Gradients):
        raise ValueError("fun must have derivatives to check: give jac= to as_function")
    if function.dim != dim:
        raise ValueError(f"x must have shape ({function.dim},), got ({dim},)")
    if not isinstance(function, Hessians):
        return Known(function)
    return Known(_with_products(function, Matrix(function.hess).products, True, None), "hess")


def _with_products(function: Any, hessp: Any, hessp_vectorized: bool, diagonal: Fun | None) -> Products:
    parts = {name: getattr(function, name) for name in ("dim", "fun", "jac", "vectorized", "counts")}
    return Products(**parts, hessp=hessp, hessp_vectorized=hessp_vectorized, hess_diag=diagonal)
