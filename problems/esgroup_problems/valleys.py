"""Curved valleys through all coordinates, in the paper's form (divided by the dimension) and undivided.

Random starts are drawn from (0, 2), in the basin of the stated minimum: runs are meant to measure how fast a search is,
not which of several minima it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.functions import Banded
from esgroup_problems.problem import Problem, register

_PAPER = "Lin, Nielsen, Khan, Schmidt: Tractable structured natural-gradient descent (ICML 2021), section 5"
_ROSENBROCK = (
    "Rosenbrock: An automatic method for finding the greatest or least value of a function (Computer Journal 3, 1960); "
    "as a chain"
)
_DIXON_PRICE = "Dixon, Price: Truncated Newton method for sparse unconstrained optimization (JOTA 60, 1989)"


@dataclass(frozen=True)
class Rosenbrock(Banded):
    """f(x) = 1/c sum_{i<d} [100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2] with c = `divisor`.

    The paper has c = d, and lacks the square on x_i in its text: without it the function is a convex quadratic.
    """

    divisor: float = 1.0

    def rows(self, x: Array) -> Array:
        head, tail = x[..., :-1], x[..., 1:]
        return (100 * (tail - head**2) ** 2 + (head - 1) ** 2).sum(axis=-1) / self.divisor

    def gradient(self, x: Array) -> Array:
        head, off = x[:-1], x[1:] - x[:-1] ** 2
        gradient = np.zeros_like(x)
        gradient[:-1] = 2 * (head - 1) - 400 * head * off
        gradient[1:] += 200 * off
        return gradient / self.divisor

    def bands(self, x: Array) -> tuple[Array, ...]:
        head, tail = x[:-1], x[1:]
        main = np.zeros_like(x)
        main[:-1] = 2 + 1200 * head**2 - 400 * tail
        main[1:] += 200
        return main / self.divisor, -400 * head / self.divisor


@dataclass(frozen=True)
class DixonPrice(Banded):
    """f(x) = 1/c [(x_1 - 1)^2 + sum_{i>1} i (2 x_i^2 - x_{i-1})^2] with c = `divisor`.

    The paper has c = d, and x_i instead of x_1 in the first term of its text.
    """

    divisor: float = 1.0

    def rows(self, x: Array) -> Array:
        i = np.arange(2, x.shape[-1] + 1)
        chain = (i * (2 * x[..., 1:] ** 2 - x[..., :-1]) ** 2).sum(axis=-1)
        return ((x[..., 0] - 1) ** 2 + chain) / self.divisor

    def gradient(self, x: Array) -> Array:
        pull = 2 * np.arange(2, len(x) + 1) * (2 * x[1:] ** 2 - x[:-1])
        gradient = np.zeros_like(x)
        gradient[0] = 2 * (x[0] - 1)
        gradient[:-1] -= pull
        gradient[1:] += 4 * x[1:] * pull
        return gradient / self.divisor

    def bands(self, x: Array) -> tuple[Array, ...]:
        i, tail = np.arange(2, len(x) + 1), x[1:]
        main = np.zeros_like(x)
        main[0] = 2
        main[:-1] += 2 * i
        main[1:] += i * (48 * tail**2 - 8 * x[:-1])
        return main / self.divisor, -8 * i * tail / self.divisor


def dixon_price_minimizer(dim: int) -> Array:
    """x_i = 2^(-(2^i - 2)/2^i), from x_1 = 1 and 2 x_i^2 = x_{i-1}; the last coordinate may have either sign."""
    return np.exp2(np.exp2(1.0 - np.arange(1, dim + 1)) - 1.0)  # 2^i itself would overflow


@register
def rosenbrock(dim: int = 20) -> Problem:
    """A narrow curved valley through all coordinates, divided by the dimension.

    There is a local minimum near (-1, 1, ..., 1). From random starts in (0, 2) none of 360 runs of L-BFGS ended there,
    in 2 to 100 dimensions.
    """
    dim = checks.whole_number("dim", dim, least=2)
    return _rosenbrock(rosenbrock, dim, Rosenbrock(dim), source=_PAPER)


@register
def rosenbrock_sum(dim: int = 20) -> Problem:
    """A narrow curved valley through all coordinates: the classic sum, not divided."""
    dim = checks.whole_number("dim", dim, least=2)
    return _rosenbrock(rosenbrock_sum, dim, Rosenbrock(), source=_ROSENBROCK)


@register
def dixon_price(dim: int = 20) -> Problem:
    """A chain of squares, divided by the dimension, with a local minimum near zero.

    Many searches end there, at (1/3, 0, ..., 0). From random starts in (0, 2) that is rare: L-BFGS did so in one run of
    360, in 2 to 100 dimensions.
    """
    dim = checks.whole_number("dim", dim, least=1)
    return _dixon_price(dixon_price, dim, DixonPrice(dim), source=_PAPER)


@register
def dixon_price_sum(dim: int = 20) -> Problem:
    """A chain of squares with a local minimum near zero: the classic sum, not divided."""
    dim = checks.whole_number("dim", dim, least=1)
    return _dixon_price(dixon_price_sum, dim, DixonPrice(), source=_DIXON_PRICE)


def _rosenbrock(maker: Callable[..., Problem], dim: int, function: Rosenbrock, source: str) -> Problem:
    one, x0 = np.ones(dim), np.zeros(dim)
    made = making.problem(maker, function, minimizer=one, x0=x0, box=(0.0, 2.0), source=source)
    return replace(made, scaled=_scaled(function))


def _dixon_price(maker: Callable[..., Problem], dim: int, function: DixonPrice, source: str) -> Problem:
    there, x0 = dixon_price_minimizer(dim), np.ones(dim)
    made = making.problem(maker, function, minimizer=there, x0=x0, box=(0.0, 2.0), source=source)
    return replace(made, scaled=_scaled(function))


def _scaled(function: Rosenbrock | DixonPrice) -> str:
    return "" if function.divisor == 1 else "divided by d"
