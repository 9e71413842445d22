"""A check of a user's derivatives: Taylor remainders, and the identities that a Hessian satisfies."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.derivative_report import (
    DerivativeReport,
    Evaluate,
    Law,
    Remainders,
    draw_report,
    remainders,
    roughness,
)
from esgroup.gradients.differences import RELATIVE_STEP
from esgroup.gradients.function import (
    Fun,
    Gradients,
    Hessians,
    LastPoint,
    Products,
    Values,
    as_dense,
    as_function,
    with_args,
    with_products,
)
from esgroup.plots.style import check_out

DIRECTIONS = 3
TOLERANCE = 1e-6  # of the laws, relative: products by differences of gradients satisfy them to 1e-8
NOISE = 1e-6  # of the variation of a function: with more noise, nothing can be decided
COORDINATES = 20  # entries of a diagonal that are compared with products
MOST_DIFFERENCES = 200  # variables in which a wrong gradient is searched for

OF_VALUES = "f(x + hv) - f(x) - h g.v"
OF_CURVATURE = "f(x + hv) - f(x) - h g.v - h^2/2 v.Hv"
OF_GRADIENTS = "g(x + hv) - g(x) - h Hv"
LINEAR, SYMMETRIC = "H(au + bv) = a Hu + b Hv", "u.Hv = v.Hu"
DIAGONAL, MATRIX = "hess_diag = diagonal of H", "hess v = hessp v"

Given = Callable[..., Any] | None


def check_derivatives(
    fun: Callable[..., Any] | Values,
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    hessp: Given = None,
    hess: Given = None,
    hess_diag: Given = None,
    *,
    args: tuple[Any, ...] = (),
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    rng: Any = 0,
    plot: str | PathLike[str] | None = None,
) -> DerivativeReport:
    """Check whether the derivatives of a function are correct at x.

    Along random directions v the remainder |f(x + hv) - f(x) - h g.v| falls as h^2 if the gradient is correct, and as h
    otherwise. With products, it falls as h^3 after subtracting h^2/2 v.Hv, and |g(x + hv) - g(x) - h Hv| falls as h^2.
    The Hessian must be linear and symmetric; its diagonal and its matrix, if given, must agree with the products.

    Parameters
    ----------
    fun : callable or Values
        The function, or a result of `as_function`, which has its own derivatives: then leave them out.
    x : array_like, shape (dim,)
        The point. At a stationary point the length of the gradient cannot be checked.
    jac, hessp, hess, hess_diag, args, hessp_vectorized, vectorized
        As for `as_function`, except that hess may be given together with hessp and hess_diag.
    rng : seed or numpy.random.Generator
        Source of the random directions.
    plot : path, optional
        File for a figure of the remainders, which needs matplotlib (extra "plot").

    Returns
    -------
    DerivativeReport
        True in a condition if nothing is wrong; `problems` lists what is.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, or fun(x) is not finite.

    Examples
    --------
    >>> from scipy.optimize import rosen, rosen_der
    >>> from esgroup.gradients import check_derivatives
    >>> check_derivatives(rosen, [0.5, 1.5, 0.3], rosen_der).ok
    True
    """
    out = None if plot is None else check_out(plot)
    x = checks.read_only(checks.real_array("x", x, (None,)).copy())
    derivatives = {"jac": jac, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}
    given = _check_input(fun, len(x), derivatives, args, hessp_vectorized, vectorized)
    report = _Check(given, x, np.random.default_rng(rng)).report()
    if out is not None:
        draw_report(report, out)
    return report


# ---- what is checked ------------------------------------------------------------------------------------------------


def given_hessian(hess: Fun) -> Fun:
    """The Hessian as the caller provides it, not made symmetric, computed once per point."""
    last = LastPoint()

    def computed(x: Array) -> Array:
        return checks.real_array("hess(x)", as_dense(hess(x)), (len(x), len(x)), finite=False)

    return lambda x: last.at(x, computed)


class CheckInput(NamedTuple):
    """The function; the argument that its products come from; and the matrix to compare them with, if both exist."""

    function: Gradients
    source: str = "hessp"
    matrix: Fun | None = None


def _check_input(
    fun: Any, dim: int, given: dict[str, Any], args: Any, hessp_vectorized: bool, vectorized: bool
) -> CheckInput:
    """One function with all given derivatives, and with products if there are any."""
    if isinstance(fun, Values):
        for name, derivative in given.items():
            if derivative is not None:
                raise ValueError(f"{name} must be left out if fun is made by as_function, got {derivative!r}")
        if not isinstance(fun, Gradients):
            raise ValueError("fun must have derivatives to check: give jac= to as_function")
        if fun.dim != dim:
            raise ValueError(f"x must have shape ({fun.dim},), got ({dim},)")
        return _with_matrix(fun, given_hessian(fun.hess), None) if isinstance(fun, Hessians) else CheckInput(fun)
    jac = given.pop("jac")
    if not jac:
        raise ValueError(f"jac must be given, there is nothing to check without it, got {jac!r}")
    plain: Any = as_function(fun, dim, args=args, jac=jac, vectorized=vectorized)
    second = {name: with_args(name, one, args) for name, one in given.items() if one is not None}
    matrix = given_hessian(second["hess"]) if "hess" in second else None
    diagonal = second.get("hess_diag")
    if "hessp" in second:
        known = with_products(plain, second["hessp"], hessp_vectorized=hessp_vectorized, hess_diag=diagonal)
        return CheckInput(known, "hessp", matrix)
    if matrix is not None:
        return _with_matrix(plain, matrix, diagonal)
    if diagonal is not None:
        raise ValueError("hess_diag needs the Hessian as well: give hessp= or hess=")
    return CheckInput(plain)


def _with_matrix(function: Gradients, matrix: Fun, diagonal: Fun | None) -> CheckInput:
    """With products from the matrix as it is."""

    def products(x: Array, rows: Array) -> Any:
        return rows @ matrix(x).T

    return CheckInput(with_products(function, products, hessp_vectorized=True, hess_diag=diagonal), "hess")


# ---- the check ------------------------------------------------------------------------------------------------------


class _Check:
    """One check; its methods fill its lists."""

    def __init__(self, given: CheckInput, x: Array, rng: np.random.Generator) -> None:
        self.function, self.source, self.matrix = given
        self.x, self.rng = x, rng
        self.directions = self._random_rows(DIRECTIONS)
        self.remainders: list[Remainders] = []
        self.laws: list[Law] = []
        self.problems: list[str] = []
        self.unclear: list[str] = []
        self.notes: list[str] = []
        self._rounding = 0.0  # of fun

    def report(self) -> DerivativeReport:
        value = self.function.value(self.x)
        if not np.isfinite(value):
            raise ValueError(f"x must be a point where fun is finite, got fun(x) = {value}")
        gradient = self.function.gradient(self.x)
        if self._finite("jac(x)", gradient) and self._check_gradient(value, gradient):
            self._check_hessian(value, gradient)
        found: list[list[Any]] = [self.remainders, self.laws, self.problems, self.unclear, self.notes]
        return DerivativeReport(len(self.x), *map(tuple, found))

    def _check_gradient(self, value: float, gradient: Array) -> bool:
        """Compare the gradient with values; False if these are too noisy for any check."""
        noise = self._noise("fun", self._value_column)
        if noise is None:
            return False
        if np.abs(self.directions @ gradient).max() <= noise:
            self.notes.append("x is stationary to rounding error, so any multiple of jac passes: choose another point")
        self._rounding, terms = noise, self._value_terms(value, gradient)
        found = self._remainder(OF_VALUES, self._value_column, terms, noise)
        if not found.ok:
            self._fails(found, self._where_gradient(gradient))
        return True

    def _check_hessian(self, value: float, gradient: Array) -> None:
        function = self.function
        if not isinstance(function, Products):
            return
        products = function.products(self.x, self.directions)
        if not self._finite("hessp(x, v)" if self.source == "hessp" else "hess(x)", products):
            return
        noise = self._noise("jac", function.gradients)
        if noise is not None:
            terms = [np.tile(gradient, (DIRECTIONS, 1)), products]
            found = self._remainder(OF_GRADIENTS, function.gradients, terms, noise)
            if not found.ok:
                self._fails(found, self._where_product(products[0]))
        terms = [*self._value_terms(value, gradient), np.vecdot(self.directions, products)[:, None]]
        found = self._remainder(OF_CURVATURE, self._value_column, terms, self._rounding)
        if not found.ok and self.problems:
            self._fails(found)
        elif not found.ok:  # it must be correct since the others are: rounding hides it too soon
            self.unclear.append(found.name)
        self._check_laws(function)

    def _value_column(self, points: Array) -> Array:
        """f of every row, as a column of shape (n, 1)."""
        return self.function.values(points)[:, None]

    def _value_terms(self, value: float, gradient: Array) -> list[Array]:
        """The first two Taylor coefficients of f along the directions."""
        return [np.full((DIRECTIONS, 1), value), (self.directions @ gradient)[:, None]]

    def _remainder(self, name: str, evaluate: Evaluate, terms: list[Array], noise: float) -> Remainders:
        found = remainders(name, evaluate, self.x, self.directions, terms, noise)
        self.remainders.append(found)
        return found

    def _fails(self, found: Remainders, where: str = "") -> None:
        self.problems.append(f"|{found.name}| falls as h^{found.slope:.2f}, must fall as h^{found.order}{where}")

    # ---- laws -------------------------------------------------------------------------------------------------------

    def _check_laws(self, function: Products) -> None:
        u, v = self._random_rows(2)
        a, b = self.rng.uniform(0.5, 2.0, 2)
        hu, hv, together = function.products(self.x, np.array([u, v, a * u + b * v]))
        size = a * np.linalg.norm(hu) + b * np.linalg.norm(hv)
        self._check_law(self.source, LINEAR, np.linalg.norm(together - a * hu - b * hv), size)
        self._check_law(self.source, SYMMETRIC, abs(u @ hv - v @ hu), np.linalg.norm(u) * np.linalg.norm(hv))
        if function.hess_diag is not None:
            self._check_diagonal(function)
        if self.matrix is not None:
            self._check_law("hess", MATRIX, np.linalg.norm(self.matrix(self.x) @ u - hu), np.linalg.norm(hu))

    def _check_diagonal(self, function: Products) -> None:
        picked = self._random_coordinates(COORDINATES)
        found = function.diagonal(self.x, self.rng)[picked]
        products = function.products(self.x, self._unit_vectors(picked))
        expected = products[np.arange(len(picked)), picked]
        gaps = np.abs(found - expected)
        j = int(np.argmax(gaps))
        where = f"; at index {picked[j]} it is {found[j]:.6g}, the product gives {expected[j]:.6g}"
        self._check_law("hess_diag", DIAGONAL, gaps[j], np.abs(products).max(), where)

    def _check_law(self, argument: str, name: str, gap: Any, size: Any, where: str = "") -> None:
        law = Law(name, float(gap / size) if size > 0 else float(gap), TOLERANCE)
        self.laws.append(law)
        if not law.ok:
            self.problems.append(f"{argument}: {name} fails by {law.error:.3g} of its size{where}")

    # ---- what the checks share --------------------------------------------------------------------------------------

    def _random_rows(self, n: int) -> Array:
        """Random rows of the length of x, at least 1: steps are relative to x."""
        rows = self.rng.standard_normal((n, len(self.x)))
        rows *= max(1.0, float(np.linalg.norm(self.x))) / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _random_coordinates(self, most: int) -> NDArray[np.int64]:
        return np.sort(self.rng.permutation(len(self.x))[:most])

    def _unit_vectors(self, picked: NDArray[np.int64]) -> Array:
        return (picked[:, None] == np.arange(len(self.x))).astype(np.float64)

    def _noise(self, argument: str, evaluate: Evaluate) -> float | None:
        """The rounding error of a function; None, and a recorded problem, if it hides the function's variation."""
        v = self.directions[0]
        noise = roughness(evaluate, self.x, v)
        with np.errstate(all="ignore"):
            here, *there = evaluate(self.x + np.array([[0.0], [0.01], [0.1]]) * v)
        spread = np.nanmax([np.linalg.norm(here), *(np.linalg.norm(f - here) for f in there)])
        if not noise <= NOISE * spread:
            self.problems.append(f"{argument} is not smooth: it varies by {noise:.3g} over steps of 1e-6 of x")
            return None
        return noise

    def _finite(self, name: str, array: Array) -> bool:
        """Whether all entries are finite; if not, record a problem."""
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            where = tuple(int(i) for i in bad[0])
            self.problems.append(f"{name} must be finite, got {array[where]} at index {where[-1]}")
        return len(bad) == 0

    def _where_gradient(self, gradient: Array) -> str:
        """Say where the gradient is furthest from central differences of the function."""
        picked = self._random_coordinates(MOST_DIFFERENCES)
        steps = RELATIVE_STEP * np.maximum(1.0, np.abs(self.x[picked]))
        moves = self._unit_vectors(picked) * steps[:, None]
        found = (self.function.values(self.x + moves) - self.function.values(self.x - moves)) / (2 * steps)
        gaps = np.abs(found - gradient[picked])
        if not (gaps > TOLERANCE * np.abs(gradient).max()).any():
            return "; central differences of fun agree with jac: is fun smooth at x?"
        j = int(np.argmax(gaps))
        return f"; at index {picked[j]} jac is {gradient[picked[j]]:.6g}, differences of fun give {found[j]:.6g}"

    def _where_product(self, product: Array) -> str:
        """Say where the product with the first direction is furthest from central differences of gradients."""
        move = RELATIVE_STEP * self.directions[0]
        up, down = self.function.gradients(np.array([self.x + move, self.x - move]))
        found = (up - down) / (2 * RELATIVE_STEP)
        j = int(np.argmax(np.abs(found - product)))
        return f"; at index {j} Hv is {product[j]:.6g}, differences of jac give {found[j]:.6g}"
