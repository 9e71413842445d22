"""Separable functions with many local minima: a search along each coordinate would solve them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.functions import Separable
from esgroup_problems.problem import Problem, register

#: The largest value of x sin sqrt(x) in (-500, 500) is at x = s^2, where tan s = -s/2 with s between 6 pi and 7 pi.
SCHWEFEL_MINIMIZER = 420.96874635998205
SCHWEFEL_HEIGHT = 418.9828872724337

#: The smallest root of 4 x^3 - 32 x + 5, the derivative of x^4 - 16 x^2 + 5 x.
STYBLINSKI_TANG_MINIMIZER = -2.903534027771177


@dataclass(frozen=True)
class Rastrigin(Separable):
    """f(x) = sum_i [x_i^2 + 10 (1 - cos 2 pi x_i)], computed with 2 sin^2 for 1 - cos, which is exact near zero."""

    def terms(self, x: Array) -> Array:
        return x**2 + 20 * np.sin(np.pi * x) ** 2

    def slopes(self, x: Array) -> Array:
        return 2 * x + 20 * np.pi * np.sin(2 * np.pi * x)

    def bends(self, x: Array) -> Array:
        return 2 + 40 * np.pi**2 * np.cos(2 * np.pi * x)


@dataclass(frozen=True)
class Schwefel(Separable):
    """f(x) = sum_i [418.98288727243... - x_i sin sqrt|x_i|].

    Most texts round the constant to 418.9829, which gives a minimum of 1.27e-5 d; with this one it is 0. The function
    is once differentiable at x_i = 0 and twice elsewhere; the second derivative at 0 is taken as 0.
    """

    def terms(self, x: Array) -> Array:
        return SCHWEFEL_HEIGHT - x * np.sin(np.sqrt(np.abs(x)))

    def slopes(self, x: Array) -> Array:
        root = np.sqrt(np.abs(x))
        return -np.sin(root) - root * np.cos(root) / 2

    def bends(self, x: Array) -> Array:
        root = np.sqrt(np.where(x == 0, 1.0, np.abs(x)))  # sign(x) = 0 there
        return np.sign(x) * (np.sin(root) / 4 - 3 * np.cos(root) / (4 * root))


@dataclass(frozen=True)
class StyblinskiTang(Separable):
    """f(x) = 1/2 sum_i (x_i^4 - 16 x_i^2 + 5 x_i)."""

    def terms(self, x: Array) -> Array:
        return (x**4 - 16 * x**2 + 5 * x) / 2

    def slopes(self, x: Array) -> Array:
        return 2 * x**3 - 16 * x + 2.5

    def bends(self, x: Array) -> Array:
        return 6 * x**2 - 16


@dataclass(frozen=True, eq=False)
class Levy(Separable):
    """f(x) = sin^2 pi u_1 + sum_{i<d} u_i^2 [1 + 10 sin^2(pi u_i + 1)] + u_d^2 [1 + sin^2 2 pi u_d], u = (x - 1)/4.

    The usual formula has w = 1 + u: sin^2 has the period pi, and u is exact near the minimizer. Each coordinate
    contributes a sin^2 pi u + u^2 [1 + b sin^2(c pi u + s)], with its own a, b, c, s.
    """

    dim: int

    def terms(self, x: Array) -> Array:
        a, b, _, u, angle = self._parts(x)
        return a * np.sin(np.pi * u) ** 2 + u**2 * (1 + b * np.sin(angle) ** 2)

    def slopes(self, x: Array) -> Array:
        a, b, c, u, angle = self._parts(x)
        wave = 2 * u * (1 + b * np.sin(angle) ** 2) + u**2 * b * c * np.sin(2 * angle)
        return (a * np.pi * np.sin(2 * np.pi * u) + wave) / 4

    def bends(self, x: Array) -> Array:
        a, b, c, u, angle = self._parts(x)
        wave = 2 * (1 + b * np.sin(angle) ** 2) + 4 * u * b * c * np.sin(2 * angle)
        wave += 2 * u**2 * b * c**2 * np.cos(2 * angle)
        return (2 * a * np.pi**2 * np.cos(2 * np.pi * u) + wave) / 16

    def _parts(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        """a, b, c pi, u and the angle c pi u + s."""
        first, last = np.arange(self.dim) == 0, np.arange(self.dim) == self.dim - 1
        speed, u = np.pi * np.where(last, 2.0, 1.0), (x - 1) / 4
        return first.astype(np.float64), np.where(last, 1.0, 10.0), speed, u, speed * u + np.where(last, 0.0, 1.0)


@register
def rastrigin(dim: int = 20) -> Problem:
    """A bowl with a regular lattice of local minima, one near every point with integer coordinates."""
    dim = checks.whole_number("dim", dim, least=1)
    source = "Rastrigin: Systems of extremal control (1974); Muehlenbein, Schomisch, Born (Parallel Computing 17, 1991)"
    return making.problem(rastrigin, Rastrigin(), minimizer=np.zeros(dim), box=(-5.12, 5.12), source=source)


@register
def schwefel(dim: int = 20) -> Problem:
    """Many local minima, the best one in a corner, far from the second best; bounds (-500, 500).

    The minimum is that within the bounds; there are lower values outside.
    """
    dim = checks.whole_number("dim", dim, least=1)
    there, box = np.full(dim, SCHWEFEL_MINIMIZER), (-500.0, 500.0)
    source = "Schwefel: Numerical optimization of computer models (1981), function 2.26"
    return making.problem(schwefel, Schwefel(), minimizer=there, box=box, bounds=box, source=source)


@register
def styblinski_tang(dim: int = 20) -> Problem:
    """Two minima per coordinate, 2^dim in all; the lowest value is -39.166165703771 per coordinate."""
    dim = checks.whole_number("dim", dim, least=1)
    there, function = np.full(dim, STYBLINSKI_TANG_MINIMIZER), StyblinskiTang()
    minimum = float(function.rows(there[None])[0])
    source = "Styblinski, Tang: Experiments in nonconvex optimization (Neural Networks 3, 1990)"
    return making.problem(styblinski_tang, function, minimizer=there, minimum=minimum, box=(-5.0, 5.0), source=source)


@register
def levy(dim: int = 20) -> Problem:
    """Waves on a bowl, with the lowest point at (1, ..., 1)."""
    dim = checks.whole_number("dim", dim, least=1)
    source = "Laguna, Marti: Experimental testing of advanced scatter search designs (J. Global Optimization 33, 2005)"
    return making.problem(levy, Levy(dim), minimizer=np.ones(dim), box=(-10.0, 10.0), source=source)
