"""Natural gradients from gradients and Hessians, by Stein's identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.gradients.estimator import Estimator, entropy_part, finite
from esgroup.gradients.function import Hessians, Products, Values


@dataclass(frozen=True)
class Stein(Estimator[Products]):
    """g_mean = E_q grad f, g_Sigma = E_q Hess f / 2 (paper, eq. gauss_stein_2nd), from a few Hessian-vector products.

    Every point costs a gradient, as many products as the group's hub has coordinates (k for BlockTriangular(k),
    k1 + k2 for Heisenberg), and the Hessian's diagonal unless the hub is everything. `samples` points are drawn from
    q, which is unbiased; samples=0 takes the mean alone, for L as well as for Newton's method. `antithetic` points
    come in pairs mean +- A z, which cancels the odd terms of f.
    """

    samples: int = 0
    antithetic: bool = False
    needs: ClassVar[type[Values]] = Products

    def __post_init__(self) -> None:
        _check_samples(self)

    def step(
        self, family: Gaussian, state: State, function: Products, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        points = _points(family, state, self.samples, self.antithetic, rng)
        gradient = _mean_gradient(function, points)
        hvp, diagonal = _mean_curvature(function, points, len(family.group.hub) < family.dim, rng)
        return family.natural_gradient_hvp(state, gradient, hvp, diagonal, entropy_weight=entropy_weight)


@dataclass(frozen=True)
class SteinDense(Estimator[Hessians]):
    """The same step from whole Hessians: O(dim^2) numbers a point, the reference for `Stein`."""

    samples: int = 0
    antithetic: bool = False
    needs: ClassVar[type[Values]] = Hessians

    def __post_init__(self) -> None:
        _check_samples(self)

    def step(
        self, family: Gaussian, state: State, function: Hessians, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        points = _points(family, state, self.samples, self.antithetic, rng)
        gradient, hessian = _mean_gradient(function, points), _mean_hessian(function, points)
        step = family.natural_gradient(state, gradient, hessian / 2)
        return step._replace(m=step.m + entropy_part(family, entropy_weight))


def _check_samples(estimator: Stein | SteinDense) -> None:
    checks.store_whole_number(estimator, "samples")
    checks.store_flag(estimator, "antithetic")
    if estimator.antithetic and (estimator.samples == 0 or estimator.samples % 2):
        raise ValueError(f"samples must be even and at least 2 for antithetic pairs, got {estimator.samples}")


def _points(family: Gaussian, state: State, samples: int, antithetic: bool, rng: np.random.Generator) -> Array:
    """Points of q as rows, or the mean."""
    if samples == 0:
        return family.points(state, np.zeros((1, family.dim))).x
    if not antithetic:
        return family.sample(state, samples, rng).x
    z = family.sample(state, samples // 2, rng).z
    return family.points(state, np.concatenate([z, -z])).x


def _mean_gradient(function: Products, points: Array) -> Array:
    gradient: Array = finite("jac(x)", function.gradients(points)).mean(axis=0)
    return gradient


def _mean_curvature(
    function: Products, points: Array, needs_diagonal: bool, rng: np.random.Generator
) -> tuple[Callable[[Array], Array], Array | None]:
    """Products with the mean of the Hessians, and its diagonal. A step is linear in H: the mean is taken first."""
    if isinstance(function, Hessians):
        mean = _mean_hessian(function, points)
        return (lambda rows: rows @ mean), np.diagonal(mean)
    diagonal = np.mean([function.diagonal(x, rng) for x in points], axis=0) if needs_diagonal else None

    def hvp(rows: Array) -> Array:
        total = np.zeros(rows.shape)
        for x in points:
            total += function.products(x, rows)
        return total / len(points)

    return hvp, diagonal


def _mean_hessian(function: Hessians, points: Array) -> Array:
    total = np.zeros((function.dim, function.dim))
    for x in points:
        total += function.hessian(x)
    return finite("hess(x)", total / len(points))
