"""Convex functions with their minimum at zero: quadratics, powers and a ridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.functions import Function, Length, Separable
from esgroup_problems.problem import Problem, register
from esgroup_problems.rotations import Rotated, rotation

_HANSEN = "Hansen, Ostermeier: Completely derandomized self-adaptation (Evolutionary Computation 9, 2001)"
_BBOB = "Hansen, Finck, Ros, Auger: Real-parameter black-box optimization benchmarking 2009, noiseless functions (2009)"


@dataclass(frozen=True, eq=False)
class Quadratic(Separable):
    """f(x) = sum_i w_i x_i^2."""

    weights: Array

    def terms(self, x: Array) -> Array:
        return self.weights * x**2

    def slopes(self, x: Array) -> Array:
        return 2 * self.weights * x

    def bends(self, x: Array) -> Array:
        return 2 * np.broadcast_to(self.weights, x.shape)


@dataclass(frozen=True, eq=False)
class Powers(Separable):
    """f(x) = sum_i |x_i|^p_i with all p_i >= 2."""

    exponents: Array

    def terms(self, x: Array) -> Array:
        return np.abs(x) ** self.exponents

    def slopes(self, x: Array) -> Array:
        return self.exponents * np.sign(x) * np.abs(x) ** (self.exponents - 1)

    def bends(self, x: Array) -> Array:
        return self.exponents * (self.exponents - 1) * np.abs(x) ** (self.exponents - 2)


@dataclass(frozen=True)
class SharpRidge(Function):
    """f(x) = x_1^2 + 100 |(x_2, ..., x_d)|.

    It is smooth except on the ridge x_2 = ... = x_d = 0. There the second term has a kink, and its derivatives are
    taken as zero.
    """

    def rows(self, x: Array) -> Array:
        return x[:, 0] ** 2 + 100 * np.sqrt((x[:, 1:] ** 2).sum(axis=-1))

    def gradient(self, x: Array) -> Array:
        return np.concatenate([2 * x[:1], 100 * Length(x[1:]).gradient()])

    def product(self, x: Array, v: Array) -> Array:
        return np.concatenate([2 * v[:1], 100 * Length(x[1:]).product(v[1:])])

    def diagonal(self, x: Array) -> Array:
        return np.concatenate([[2.0], 100 * Length(x[1:]).diagonal()])


def ellipsoid_weights(dim: int) -> Array:
    """10^(6 (i-1)/(d-1)): from 1 to 10^6 in equal ratios; 1 if there is only one coordinate."""
    return np.logspace(0, 6, dim)


def one_and_others(first: float, others: float, dim: int) -> Array:
    """Weights (first, others, ..., others)."""
    return np.where(np.arange(dim) == 0, first, others)


def problem_at_zero(maker: Callable[..., Problem], function: Function, dim: int, *, source: str) -> Problem:
    """Make a problem with the minimum 0 at 0, with the start region and the step size of the BBOB functions."""
    zero, x0 = np.zeros(dim), np.full(dim, 3.0)
    return making.problem(maker, function, minimizer=zero, x0=x0, box=(-5.0, 5.0), sigma0=2.0, source=source)


@register
def sphere(dim: int = 20) -> Problem:
    """Sum of squares: the easiest function, and a reference for all others."""
    dim = checks.whole_number("dim", dim, least=1)
    return problem_at_zero(sphere, Quadratic(np.ones(dim)), dim, source="folklore")


@register
def ellipsoid(dim: int = 20) -> Problem:
    """Weighted sum of squares with weights from 1 to 10^6: axes of length 1 to 1000."""
    dim = checks.whole_number("dim", dim, least=1)
    return problem_at_zero(ellipsoid, Quadratic(ellipsoid_weights(dim)), dim, source=_HANSEN)


@register
def rotated_ellipsoid(dim: int = 20, *, seed: int = 0) -> Problem:
    """The ellipsoid in randomly rotated coordinates: no axis is parallel to a coordinate."""
    dim = checks.whole_number("dim", dim, least=1)
    turned = rotation(dim, making.instance_rng("rotated_ellipsoid", dim, seed))
    return problem_at_zero(rotated_ellipsoid, Rotated(Quadratic(ellipsoid_weights(dim)), turned), dim, source=_HANSEN)


@register
def cigar(dim: int = 20) -> Problem:
    """One long axis: the first coordinate has weight 1, all others 10^6."""
    dim = checks.whole_number("dim", dim, least=1)
    return problem_at_zero(cigar, Quadratic(one_and_others(1.0, 1e6, dim)), dim, source=_HANSEN)


@register
def discus(dim: int = 20) -> Problem:
    """One short axis: the first coordinate has weight 10^6, all others 1.

    The name is that of BBOB; `tablet` is the same function, rotated, under its older name.
    """
    dim = checks.whole_number("dim", dim, least=1)
    return problem_at_zero(discus, Quadratic(one_and_others(1e6, 1.0, dim)), dim, source=_BBOB)


@register
def tablet(dim: int = 20, *, seed: int = 0) -> Problem:
    """The discus in randomly rotated coordinates: one short axis, parallel to no coordinate.

    Hansen and Ostermeier call (1000 x_1)^2 + sum_{i>1} x_i^2 the tablet, in a random orthogonal basis; later the same
    function was called discus. Here the older name means the rotated function.
    """
    dim = checks.whole_number("dim", dim, least=1)
    turned = rotation(dim, making.instance_rng("tablet", dim, seed))
    return problem_at_zero(tablet, Rotated(Quadratic(one_and_others(1e6, 1.0, dim)), turned), dim, source=_HANSEN)


@register
def different_powers(dim: int = 20) -> Problem:
    """Sum of |x_i|^p_i with powers from 2 to 12: the closer to the minimum, the worse the scaling.

    As defined by Hansen and Ostermeier, p_i = 2 + 10 (i-1)/(d-1), without the rotation. BBOB uses powers from 2 to 6
    and the square root of the sum.
    """
    dim = checks.whole_number("dim", dim, least=1)
    return problem_at_zero(different_powers, Powers(np.linspace(2, 12, dim)), dim, source=_HANSEN)


@register
def sharp_ridge(dim: int = 20) -> Problem:
    """A ridge with a kink that must be followed to its end: x_1^2 + 100 |(x_2, ..., x_d)|."""
    dim = checks.whole_number("dim", dim, least=2)
    return problem_at_zero(sharp_ridge, SharpRidge(), dim, source=_BBOB)
