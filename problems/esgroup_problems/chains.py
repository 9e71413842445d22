"""Two classic functions of any size whose coordinates are coupled to their neighbors, for large dimensions.

More, Garbow, Hillstrom: Testing unconstrained optimization software (ACM TOMS 7, 1981), problems 22 and 30; both are in
CUTEst. The chained Rosenbrock function is `rosenbrock`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.functions import Banded
from esgroup_problems.problem import Problem, register

_MORE = "More, Garbow, Hillstrom: Testing unconstrained optimization software (ACM TOMS 7, 1981), problem "


@dataclass(frozen=True)
class PowellSingular(Banded):
    """f = sum over blocks (a, b, c, d) of (a + 10 b)^2 + 5 (c - d)^2 + (b - 2 c)^4 + 10 (a - d)^4."""

    def rows(self, x: Array) -> Array:
        a, b, c, d = _blocks(x)
        terms = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
        return terms.sum(axis=-1)

    def gradient(self, x: Array) -> Array:
        a, b, c, d = _blocks(x)
        first, second = 2 * (a + 10 * b), 10 * (c - d)
        third, fourth = 4 * (b - 2 * c) ** 3, 40 * (a - d) ** 3
        return _joined(first + fourth, 10 * first + third, second - 2 * third, -second - fourth)

    def bands(self, x: Array) -> tuple[Array, ...]:
        a, b, c, d = _blocks(x)
        third, fourth, zero, one = 12 * (b - 2 * c) ** 2, 120 * (a - d) ** 2, np.zeros_like(a), np.ones_like(a)
        main = _joined(2 + fourth, 200 + third, 10 + 4 * third, 10 + fourth)
        beside = _joined(20 * one, -2 * third, -10 * one, zero)  # (a, b), (b, c), (c, d); none from block to block
        corner = _joined(-fourth, zero, zero, zero)  # (a, d)
        return main, beside[:-1], np.zeros_like(main[2:]), corner[:-3]


def _blocks(x: Array) -> tuple[Array, Array, Array, Array]:
    return x[..., 0::4], x[..., 1::4], x[..., 2::4], x[..., 3::4]


def _joined(*coordinates: Array) -> Array:
    return np.stack(coordinates, axis=-1).ravel()


@dataclass(frozen=True)
class BroydenTridiagonal(Banded):
    """f = sum_i r_i^2, r_i = (3 - 2 x_i) x_i - x_{i-1} - 2 x_{i+1} + 1, with x_0 = x_{d+1} = 0."""

    def residuals(self, x: Array) -> Array:
        """The residuals r."""
        r: Array = (3 - 2 * x) * x + 1
        r[..., 1:] -= x[..., :-1]
        r[..., :-1] -= 2 * x[..., 1:]
        return r

    def rows(self, x: Array) -> Array:
        return (self.residuals(x) ** 2).sum(axis=-1)

    def gradient(self, x: Array) -> Array:
        r = self.residuals(x)
        gradient: Array = 2 * (3 - 4 * x) * r
        gradient[:-1] -= 2 * r[1:]
        gradient[1:] -= 4 * r[:-1]
        return gradient

    def bands(self, x: Array) -> tuple[Array, ...]:
        slope = 3 - 4 * x  # the Jacobian's rows are -1, slope, -2
        main: Array = 2 * slope**2 - 8 * self.residuals(x)
        main[1:] += 8
        main[:-1] += 2
        return main, -4 * slope[:-1] - 2 * slope[1:], np.full_like(x[2:], 4.0)


def broyden_root(dim: int) -> Array:
    """The root of all residuals near -1/sqrt(2), by Newton's method.

    Inside a long chain 3 x - 2 x^2 - x - 2 x + 1 = 0, hence x = -1/sqrt(2). From -1 five steps reach rounding errors,
    in any dimension; eight are taken.
    """
    from scipy.linalg import solve_banded  # slow to import

    x, jacobian = np.full(dim, -1.0), np.zeros((3, dim))
    jacobian[0, 1:], jacobian[2, :-1] = -2.0, -1.0
    for _ in range(8):
        jacobian[1] = 3 - 4 * x
        x = x - solve_banded((1, 1), jacobian, BroydenTridiagonal().residuals(x))
    return x


@register
def powell_singular(dim: int = 20) -> Problem:
    """Powell's function of blocks of four coordinates, with a singular Hessian at the minimum."""
    dim = checks.whole_number("dim", dim, least=4)
    if dim % 4:
        raise ValueError(f"dim must be a multiple of 4, got {dim}")
    zero, x0 = np.zeros(dim), np.tile([3.0, -1.0, 0.0, 1.0], dim // 4)
    return making.problem(
        powell_singular, PowellSingular(), minimizer=zero, x0=x0, box=(-4.0, 5.0), source=_MORE + "22"
    )


@register
def broyden_tridiagonal(dim: int = 20) -> Problem:
    """Sum of squares of a tridiagonal system of quadratic equations, with a root near -0.7.

    The stated minimizer is that root, up to rounding. Random starts are drawn from (-1, 0), near the usual start -1:
    farther away there are local minima.
    """
    dim = checks.whole_number("dim", dim, least=1)
    root, x0 = broyden_root(dim), np.full(dim, -1.0)
    return making.problem(
        broyden_tridiagonal, BroydenTridiagonal(), minimizer=root, x0=x0, box=(-1.0, 0.0), source=_MORE + "30"
    )
