"""A check of derivatives for their users: Taylor's remainders, and the laws of a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.derivative_input import Given, Known, known
from esgroup.gradients.derivative_report import DerivativeReport, Law
from esgroup.gradients.differences import RELATIVE_STEP
from esgroup.gradients.function import Products, Values
from esgroup.gradients.taylor import Evaluate, Remainders, remainders, roughness

DIRECTIONS = 3
TOLERANCE = 1e-6  # of the laws, relative: products by differences of gradients keep them to 1e-8
NOISE = 1e-6  # of what a function varies: with more, nothing can be said
COORDINATES = 20  # of a diagonal that are compared with products
MOST_DIFFERENCES = 200  # coordinates in which a wrong gradient is sought

OF_VALUES = "f(x + hv) - f(x) - h g.v"
OF_CURVATURE = "f(x + hv) - f(x) - h g.v - h^2/2 v.Hv"
OF_GRADIENTS = "g(x + hv) - g(x) - h Hv"
LINEAR, SYMMETRIC = "H(au + bv) = a Hu + b Hv", "u.Hv = v.Hu"
DIAGONAL, MATRIX = "hess_diag = diagonal of H", "hess v = hessp v"


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
    """Are the derivatives of a function right at x? The arguments are those of `as_function`, or its result.

    Along random directions v the remainder |f(x + hv) - f(x) - h g.v| falls as h^2 if the gradient is right, and as h
    if it is not; with products it falls as h^3 after h^2/2 v.Hv is taken off, and |g(x + hv) - g(x) - h Hv| as h^2. The
    Hessian is linear and symmetric; its diagonal and its matrix, if given, agree with the products. `plot` is the file
    of a figure of the remainders, which needs matplotlib (extra "plot").
    """
    if plot is not None:
        from esgroup.plots.style import check_out

        check_out(plot)
    x = checks.read_only(checks.real_array("x", x, (None,)).copy())
    given = known(fun, len(x), jac, hessp, hess, hess_diag, args, hessp_vectorized, vectorized)
    report = _Check(given, x, np.random.default_rng(rng)).report()
    if plot is not None:
        from esgroup.gradients.derivative_figure import draw

        draw(report, plot)
    return report


class _Check:
    """One check: fills its lists as it goes."""

    def __init__(self, given: Known, x: Array, rng: np.random.Generator) -> None:
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
        if self._finite("jac(x)", gradient) and self._values_follow(value, gradient):
            self._hessian(value, gradient)
        found = (self.remainders, self.laws, self.problems, self.unclear, self.notes)
        return DerivativeReport(len(self.x), *map(tuple, found))  # type: ignore[arg-type]

    def _values_follow(self, value: float, gradient: Array) -> bool:
        """The gradient against values; False if nothing can be said of them."""
        noise = self._noise("fun", self._values)
        if noise is None:
            return False
        if np.abs(self.directions @ gradient).max() <= noise:
            self.notes.append("x is stationary to rounding, and any multiple of jac would do: choose another point")
        self._rounding, terms = noise, self._value_terms(value, gradient)
        self._taylor(OF_VALUES, self._values, terms, noise, lambda: self._where_gradient(gradient))
        return True

    def _hessian(self, value: float, gradient: Array) -> None:
        if not isinstance(self.function, Products):
            return
        products = self.function.products(self.x, self.directions)
        if not self._finite("hessp(x, v)" if self.source == "hessp" else "hess(x)", products):
            return
        noise = self._noise("jac", self.function.gradients)
        if noise is not None:
            terms = [np.tile(gradient, (DIRECTIONS, 1)), products]
            self._taylor(OF_GRADIENTS, self.function.gradients, terms, noise, lambda: self._where_product(products[0]))
        terms = [*self._value_terms(value, gradient), np.vecdot(self.directions, products)[:, None]]
        self._taylor(OF_CURVATURE, self._values, terms, self._rounding, follows=not self.problems)
        self._laws(self.function)

    def _value_terms(self, value: float, gradient: Array) -> list[Array]:
        return [np.full((DIRECTIONS, 1), value), (self.directions @ gradient)[:, None]]

    def _taylor(
        self,
        name: str,
        evaluate: Evaluate,
        terms: list[Array],
        noise: float,
        where: Callable[[], str] = str,
        *,
        follows: bool = False,
    ) -> None:
        """`follows`: it must be right since others are; then a remainder that rounding hides too soon is no problem."""
        found = remainders(name, evaluate, self.x, self.directions, terms, noise)
        self.remainders.append(found)
        if not found.ok and follows:
            self.unclear.append(name)
        elif not found.ok:
            self.problems.append(f"|{name}| falls as h^{found.slope:.2f}, must fall as h^{found.order}{where()}")

    # ---- laws -------------------------------------------------------------------------------------------------------

    def _laws(self, function: Products) -> None:
        u, v = self._random_rows(2)
        a, b = self.rng.uniform(0.5, 2.0, 2)
        hu, hv, together = function.products(self.x, np.array([u, v, a * u + b * v]))
        size = a * np.linalg.norm(hu) + b * np.linalg.norm(hv)
        self._law(self.source, LINEAR, np.linalg.norm(together - a * hu - b * hv), size)
        self._law(self.source, SYMMETRIC, abs(u @ hv - v @ hu), np.linalg.norm(u) * np.linalg.norm(hv))
        if function.hess_diag is not None:
            self._diagonal(function)
        if self.matrix is not None:
            self._law("hess", MATRIX, np.linalg.norm(self.matrix(self.x) @ u - hu), np.linalg.norm(hu))

    def _diagonal(self, function: Products) -> None:
        picked = self._picked(COORDINATES)
        found = function.diagonal(self.x, self.rng)[picked]
        products = function.products(self.x, _units(len(self.x), picked))
        expected = products[np.arange(len(picked)), picked]
        gaps = np.abs(found - expected)
        j = int(np.argmax(gaps))
        where = f"; at index {picked[j]} it is {found[j]:.6g}, the product gives {expected[j]:.6g}"
        self._law("hess_diag", DIAGONAL, gaps[j], np.abs(products).max(), where)

    def _law(self, who: str, name: str, gap: Any, size: Any, where: str = "") -> None:
        law = Law(name, float(gap / size) if size > 0 else float(gap), TOLERANCE)
        self.laws.append(law)
        if not law.ok:
            self.problems.append(f"{who}: {name} fails by {law.error:.3g} of its size{where}")

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _values(self, points: Array) -> Array:
        return self.function.values(points)[:, None]

    def _random_rows(self, n: int) -> Array:
        """Random rows as long as x, at least 1: steps are relative to x."""
        rows = self.rng.standard_normal((n, len(self.x)))
        rows *= max(1.0, float(np.linalg.norm(self.x))) / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _noise(self, who: str, evaluate: Evaluate) -> float | None:
        """The rounding error of a function; None, and a problem, if it hides what the function does."""
        v = self.directions[0]
        noise = roughness(evaluate, self.x, v)
        with np.errstate(all="ignore"):
            here, *there = evaluate(self.x + np.array([[0.0], [0.01], [0.1]]) * v)
        spread = np.nanmax([np.linalg.norm(here), *(np.linalg.norm(f - here) for f in there)])
        if not noise <= NOISE * spread:
            self.problems.append(f"{who} is not smooth: it varies by {noise:.3g} over steps of 1e-6 of x")
            return None
        return noise

    def _finite(self, name: str, array: Array) -> bool:
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            where = tuple(int(i) for i in bad[0])
            self.problems.append(f"{name} must be finite, got {array[where]} at index {where[-1]}")
        return len(bad) == 0

    def _picked(self, most: int) -> NDArray[np.int64]:
        return np.sort(self.rng.permutation(len(self.x))[:most])

    def _where_gradient(self, gradient: Array) -> str:
        """Where the gradient is furthest from central differences of the function."""
        picked = self._picked(MOST_DIFFERENCES)
        steps = RELATIVE_STEP * np.maximum(1.0, np.abs(self.x[picked]))
        moves = _units(len(self.x), picked) * steps[:, None]
        found = (self.function.values(self.x + moves) - self.function.values(self.x - moves)) / (2 * steps)
        gaps = np.abs(found - gradient[picked])
        if not (gaps > TOLERANCE * np.abs(gradient).max()).any():
            return "; central differences of fun agree with jac: is fun smooth at x?"
        j = int(np.argmax(gaps))
        return f"; at index {picked[j]} jac is {gradient[picked[j]]:.6g}, differences of fun give {found[j]:.6g}"

    def _where_product(self, product: Array) -> str:
        """Where a product with the first direction is furthest from central differences of gradients."""
        move = RELATIVE_STEP * self.directions[0]
        up, down = self.function.gradients(np.array([self.x + move, self.x - move]))
        found = (up - down) / (2 * RELATIVE_STEP)
        j = int(np.argmax(np.abs(found - product)))
        return f"; at index {j} Hv is {product[j]:.6g}, differences of jac give {found[j]:.6g}"


def _units(dim: int, picked: NDArray[np.int64]) -> Array:
    rows = np.zeros((len(picked), dim))
    rows[np.arange(len(picked)), picked] = 1.0
    return rows
