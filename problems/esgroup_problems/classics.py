"""Functions that every optimiser is shown first. All of them take rows and reduce the last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems.problem import OnPoint, Problem
from esgroup_problems.registry import register

_PAPER = "Lin, Nielsen, Khan, Schmidt: Tractable structured natural-gradient descent (ICML 2021), section 5"


def sphere_rows(x: Array) -> Array:
    """f(x) = sum_i x_i^2."""
    values: Array = (x**2).sum(axis=-1)
    return values


def ellipsoid_rows(x: Array) -> Array:
    """f(x) = sum_i 10^(6 (i-1)/(d-1)) x_i^2."""
    values: Array = (np.logspace(0, 6, x.shape[-1]) * x**2).sum(axis=-1)
    return values


def rosenbrock_rows(x: Array) -> Array:
    """f(x) = 1/d sum_{i<d} [100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2].

    As in the paper, divided by d, but with the square on x_i that its text has lost: without it the function is a
    convex quadratic.
    """
    head, tail = x[..., :-1], x[..., 1:]
    values: Array = (100 * (tail - head**2) ** 2 + (head - 1) ** 2).sum(axis=-1) / x.shape[-1]
    return values


def dixon_price_rows(x: Array) -> Array:
    """f(x) = 1/d [(x_1 - 1)^2 + sum_{i>1} i (2 x_i^2 - x_{i-1})^2].

    As in the paper, divided by d, but with x_1 in the first term, where its text has x_i.
    """
    i = np.arange(2, x.shape[-1] + 1)
    chain = (i * (2 * x[..., 1:] ** 2 - x[..., :-1]) ** 2).sum(axis=-1)
    values: Array = ((x[..., 0] - 1) ** 2 + chain) / x.shape[-1]
    return values


@register
def sphere(dim: int = 20) -> Problem:
    """Sum of squares: the easiest function, and the measure of all others."""
    return _problem(sphere, sphere_rows, dim, start=3.0, sigma0=2.0, minimiser=np.zeros, source="folklore")


@register
def ellipsoid(dim: int = 20) -> Problem:
    """Weighted sum of squares with weights from 1 to 10^6: axes of length 1 to 1000."""
    source = "Hansen, Ostermeier: Completely derandomized self-adaptation (Evolutionary Computation 9, 2001)"
    return _problem(ellipsoid, ellipsoid_rows, dim, start=3.0, sigma0=2.0, minimiser=np.zeros, source=source)


@register
def rosenbrock(dim: int = 20) -> Problem:
    """A narrow curved valley through all coordinates, divided by the dimension."""
    dim = checks.whole_number("dim", dim, least=2)
    return _problem(rosenbrock, rosenbrock_rows, dim, start=0.0, sigma0=0.5, minimiser=np.ones, source=_PAPER)


@register
def dixon_price(dim: int = 20) -> Problem:
    """A chain of squares, divided by the dimension, with a local minimum near zero where many searches end."""
    minimiser = dixon_price_minimiser
    return _problem(dixon_price, dixon_price_rows, dim, start=1.0, sigma0=0.5, minimiser=minimiser, source=_PAPER)


def dixon_price_minimiser(dim: int) -> Array:
    """x_i = 2^(-(2^i - 2)/2^i), from x_1 = 1 and 2 x_i^2 = x_{i-1}; the last coordinate may have either sign."""
    x: Array = np.exp2(np.exp2(1.0 - np.arange(1, dim + 1)) - 1.0)  # 2^i itself overflows
    return x


def _problem(
    maker: Callable[..., Problem],
    rows: Callable[[Array], Array],
    dim: int,
    *,
    start: float,
    minimiser: Callable[[int], Array],
    **rest: Any,
) -> Problem:
    """A problem that starts on the diagonal and has the minimum 0, with its maker's name and first line."""
    return Problem(
        name=maker.__name__,
        description=(maker.__doc__ or "").partition("\n")[0],
        fun=OnPoint(rows),
        batch=rows,
        x0=np.full(checks.whole_number("dim", dim, least=1), start),
        minimiser=minimiser(dim),
        minimum=0.0,
        **rest,
    )
