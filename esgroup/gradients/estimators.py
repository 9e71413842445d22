"""Estimators of natural gradients: from values (`Reinforce`), gradients (`Pathwise`) or Hessians (`Stein`).

Each returns a step in the local coordinates of a Gaussian. Its attribute `needs` says what the function must provide.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Samples, State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.gradients.function import Gradients, Hessians, Products, Values

Needed = TypeVar("Needed", bound=Values)

_MISSING = {
    Values: "values",
    Gradients: "gradients: give jac=",
    Products: "products with the Hessian: give hessp= (or hess=)",
    Hessians: "Hessians: give hess=",
}


class Estimator(ABC, Generic[Needed]):
    """Estimates the natural gradient of L = E_q f + entropy_weight E_q log q in the local coordinates of a Gaussian.

    `needs` is the class of functions that an estimator accepts; `check` rejects others before anything is computed.
    """

    needs: ClassVar[type[Values]]

    @abstractmethod
    def step(
        self, family: Gaussian, state: State, function: Needed, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        """Estimate the natural gradient of L.

        Parameters
        ----------
        family : Gaussian
            The family of distributions q.
        state : State
            Mean and root of q.
        function : Values, Gradients, Products or Hessians
            The function f, made by `as_function`; `needs` is the required class.
        rng : numpy.random.Generator
            Source of the samples.
        entropy_weight : float
            Weight of E_q log q in L.

        Returns
        -------
        Step
            dL in local coordinates, so that `family.move(state, step.scaled(-rate))` descends.

        Raises
        ------
        TypeError
            If the function lacks required derivatives.
        ValueError
            If its dimension differs from that of the family, or if it returns numbers that are not finite.
        """

    def check(self, function: Values, dim: int | None = None) -> None:
        """Raise an error for a function that this estimator cannot use.

        Parameters
        ----------
        function : Values
            The function, made by `as_function`.
        dim : int, optional
            The required dimension.

        Raises
        ------
        TypeError
            If the function lacks required derivatives; the message says which.
        ValueError
            If its dimension is not `dim`.
        """
        if not isinstance(function, Values):
            raise TypeError(f"function must be made by as_function, got {function!r}")
        if not isinstance(function, self.needs):
            raise TypeError(f"{type(self).__name__} needs {_MISSING[self.needs]}")
        if dim is not None and function.dim != dim:
            raise ValueError(f"function must have dim {dim} to match the distribution, got {function.dim}")


def entropy_part(family: Gaussian, entropy_weight: float) -> Array:
    """M of entropy_weight E_q log q, exactly: g_Sigma = -entropy_weight Sigma^-1 / 2 is -I / 2 of it locally."""
    weight = checks.real_number("entropy_weight", entropy_weight)
    return -0.5 * weight * family._sign * family.group._local_identity()


def must_be_finite(name: str, array: Any) -> Array:
    """Return the array, or raise a ValueError that says where it is not finite."""
    array = np.asarray(array)
    return checks.real_array(name, array, array.shape)


def _drawn(family: Gaussian, state: State, n: int, rng: np.random.Generator) -> Samples:
    """n samples of q, or the mean alone if n is 0."""
    return family.sample(state, n, rng) if n else family.points(state, np.zeros((1, family.dim)))


# ---- from values ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reinforce(Estimator[Values]):
    """E[f score] (paper, eq. gauss_ex_grad), with the mean of the other values subtracted from each: unbiased.

    With w_i = (f_i - mean of the other f) / n: delta = sum w_i z_i, M = +-C (.) kappa(sum w_i (z_i z_i^T - I)).

    Parameters
    ----------
    samples : int, optional
        Number of values per step, at least 2: a single value does not determine a direction. The default is
        4 + floor(3 ln dim), the usual population of a search.
    """

    samples: int | None = None
    needs: ClassVar[type[Values]] = Values

    def __post_init__(self) -> None:
        if self.samples is not None:
            checks.store_whole_number(self, "samples", least=2)

    def step(
        self, family: Gaussian, state: State, function: Values, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        m = entropy_part(family, entropy_weight)
        n = 4 + math.floor(3 * math.log(family.dim)) if self.samples is None else self.samples
        drawn = family.sample(state, n, rng)
        f = must_be_finite("fun(x)", function.values(drawn.x))
        step = family.natural_score(drawn.z, (f - f.mean()) / (n - 1))
        return step._replace(m=step.m + m)


# ---- from gradients -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pathwise(Estimator[Gradients]):
    """g_Sigma = E[K + K^T] / 4 with K = Sigma^-1 (x - mean) grad f^T (paper, eq. rep_grad_cov); g_mean = E grad f.

    In local coordinates 2 A^T g_Sigma A = E[(z y^T + y z^T) / 2] with y = A^T grad f (y = B^-1 grad f), so no system
    has to be solved. With two or more samples, the mean of the other samples is subtracted from y where y multiplies z:
    it is independent of z, so the estimate remains unbiased, and a slope shared by all samples adds no noise.

    Parameters
    ----------
    samples : int
        Number of gradients per step. 0 uses the gradient at the mean: there z = 0, so only the entropy moves the square
        root.
    """

    samples: int = 1
    needs: ClassVar[type[Values]] = Gradients

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "samples")

    def step(
        self, family: Gaussian, state: State, function: Gradients, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        m, state = entropy_part(family, entropy_weight), family._checked(state)
        z, x, _ = _drawn(family, state, self.samples, rng)
        y = family._pull(state.root, must_be_finite("jac(x)", function.gradients(x)))
        n, delta = len(z), y.mean(axis=0)
        if n > 1:
            y = (y - delta) * (n / (n - 1))  # minus the mean of the others
        return Step(delta, m + family._sign * family.group.project_pairs(z, y, np.full(n, 1.0 / n)))


# ---- from Hessians --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _AtPoints(Estimator[Needed]):
    """The common base of `Stein` and `SteinDense`: the points at which they evaluate derivatives."""

    samples: int = 0
    antithetic: bool = False

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "samples")
        checks.store_flag(self, "antithetic")
        if self.antithetic and (self.samples == 0 or self.samples % 2):
            raise ValueError(f"samples must be even and at least 2 for antithetic pairs, got {self.samples}")

    def _points(self, family: Gaussian, state: State, rng: np.random.Generator) -> Array:
        if not self.antithetic:
            return _drawn(family, state, self.samples, rng).x
        z = family.sample(state, self.samples // 2, rng).z
        return family.points(state, np.concatenate([z, -z])).x


@dataclass(frozen=True)
class Stein(_AtPoints[Products]):
    """g_mean = E_q grad f, g_Sigma = E_q Hess f / 2 (paper, eq. gauss_stein_2nd), from a few Hessian-vector products.

    Each point costs one gradient, one product for each coordinate of the group's hub (k for BlockTriangular(k), k1 + k2
    for Heisenberg), and the diagonal of the Hessian unless the hub contains all coordinates.

    Parameters
    ----------
    samples : int
        Number of points drawn from q, which is unbiased. 0 uses the mean alone, like Newton's method.
    antithetic : bool
        Whether to draw points in pairs mean +- A z, which cancels the odd terms of f; then `samples` must be even.
    """

    needs: ClassVar[type[Values]] = Products

    def step(
        self, family: Gaussian, state: State, function: Products, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        points = self._points(family, state, rng)
        gradient = _mean_gradient(function, points)
        hvp, diagonal = _mean_curvature(function, points, len(family.group.hub) < family.dim, rng)
        return family.natural_gradient_hvp(state, gradient, hvp, diagonal, entropy_weight=entropy_weight)


@dataclass(frozen=True)
class SteinDense(_AtPoints[Hessians]):
    """The same step as `Stein`, from whole Hessians: O(dim^2) numbers per point, a reference for `Stein`.

    Parameters
    ----------
    samples, antithetic
        As for `Stein`.
    """

    needs: ClassVar[type[Values]] = Hessians

    def step(
        self, family: Gaussian, state: State, function: Hessians, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        points = self._points(family, state, rng)
        gradient, hessian = _mean_gradient(function, points), _mean_hessian(function, points)
        step = family.natural_gradient(state, gradient, hessian / 2)
        return step._replace(m=step.m + entropy_part(family, entropy_weight))


def _mean_gradient(function: Products, points: Array) -> Array:
    return must_be_finite("jac(x)", function.gradients(points)).mean(axis=0)


def _mean_curvature(
    function: Products, points: Array, needs_diagonal: bool, rng: np.random.Generator
) -> tuple[Callable[[Array], Array], Array | None]:
    """Products with the mean of the Hessians, and its diagonal. A step is linear in H, so the mean is taken first."""
    if isinstance(function, Hessians):
        mean = _mean_hessian(function, points)
        return (lambda rows: rows @ mean), np.diagonal(mean)
    diagonal = function.mean_diagonal(points, rng) if needs_diagonal else None
    return (lambda rows: function.mean_products(points, rows)), diagonal


def _mean_hessian(function: Hessians, points: Array) -> Array:
    total = np.zeros((function.dim, function.dim))
    for x in points:
        total += function.hessian(x)
    return must_be_finite("hess(x)", total / len(points))
