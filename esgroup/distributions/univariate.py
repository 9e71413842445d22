"""Exponential families of one number: their common mathematics.

    q(w | tau) = b(w) exp(<T(w), tau> - A(tau)),   m = E[T] = grad A(tau),   F_tau = Hess A(tau) = Cov[T]

Natural parameters tau_i = f_i(lambda_i) of unconstrained lambda: f is the softplus log(1 + e^x) for a positive
parameter, minus that for a negative one, the identity for a free one (paper, appendix "Univariate Minimal Exponential
Family Distributions", which only has positive ones). Natural gradients in lambda are those in tau over f'(lambda).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array

Sign = Literal["positive", "negative", "free"]
Tau = Sequence[float]
TINY, HUGE = 1e-300, 1e300  # the range of numbers that are drawn
BELOW_ONE = 1 - 2.0**-53  # the largest float64 less than 1
SMALLEST, LARGEST = 1e-140, 1e140  # the range of natural parameters with a sign in a search: their squares stay finite

# descriptions of supports, and their tests
_SUPPORTS: dict[str, Callable[[Array], NDArray[np.bool_]]] = {
    "finite": np.isfinite,
    "positive": lambda w: w > 0,
    "at least 0": lambda w: w >= 0,
    "strictly between 0 and 1": lambda w: (w > 0) & (w < 1),
    "0 or 1": lambda w: np.isin(w, (0, 1)),
    "non-negative integers": lambda w: (w >= 0) & (w == np.floor(w)),
}


class UnivariateState(NamedTuple):
    """Parameters of a family, or of a product of families.

    Attributes
    ----------
    unconstrained : ndarray
        The unconstrained numbers lambda, one for each natural parameter.
    """

    unconstrained: Array


class WhiteScores(NamedTuple):
    """Scores of points, white under the distribution: E z = 0, E z^2 = 1, E y = 1, E[z y] = 0.

    Attributes
    ----------
    z : ndarray
        The score along the location.
    y : ndarray
        The score along the concentration, a squared distance: z^2 for a normal, 1 for a family without concentration.
    """

    z: Array
    y: Array


class Univariate(ABC):
    """An exponential family of one number: a frozen dataclass of its usual parameters, where `state()` starts.

    Families with two natural parameters can concentrate: tau <- c tau, c -> infinity, contracts them to a point and
    keeps their mean. Those with one are as wide as their distance from an end of their domain.

    Examples
    --------
    >>> from esgroup.distributions.families import Gamma
    >>> family = Gamma(shape=4.0, rate=2.0)
    >>> family.moments(family.state())
    (2.0, 1.0)
    """

    signs: ClassVar[tuple[Sign, ...]]  # signs of the natural parameters
    support: ClassVar[str]  # describes the numbers, for messages; one of `_SUPPORTS` unless `_in_support` is overridden
    log_base: ClassVar[float] = 0.0  # log b of a constant b
    of_any_sign: ClassVar[tuple[str, ...]] = ()  # usual parameters that need not be positive

    # ---- must: the formulas of a family in tau, a tuple of numbers -----------------------------------------------

    @abstractmethod
    def _statistics(self, w: Array) -> tuple[Array, ...]:
        """T(w), one array for each natural parameter."""

    @abstractmethod
    def _log_partition(self, tau: Tau) -> float:
        """A(tau)."""

    @abstractmethod
    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        """grad A(tau)."""

    @abstractmethod
    def _fisher(self, tau: Tau) -> list[list[float]]:
        """Hess A(tau)."""

    @abstractmethod
    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        """Draw n independent numbers."""

    # ---- may: correct if the first fields are tau, b is constant and T_1 is w ----------------------------------

    def _natural(self) -> tuple[float, ...]:
        """Natural parameters from the usual ones."""
        return tuple(getattr(self, name) for name in self._names[: self.size])

    def _usual(self, tau: Tau) -> dict[str, float]:
        """The usual parameters from the natural ones, by name."""
        return dict(zip(self._names, tau, strict=False))

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        """Whether each number is in the support."""
        return _SUPPORTS[self.support](w)

    def _log_base(self, w: Array) -> Array:
        """log b(w)."""
        return np.full(len(w), self.log_base)

    def _mean_log_base(self, tau: Tau) -> float:
        """E log b(w), for the default `entropy`."""
        if type(self)._log_base is not Univariate._log_base:
            raise NotImplementedError(f"{type(self).__name__} must have _mean_log_base: its base is not constant")
        return self.log_base

    def _moments(self, tau: Tau) -> tuple[float, float]:
        """Mean and standard deviation of w, infinite where they do not exist."""
        return self._expectation(tau)[0], math.sqrt(self._fisher(tau)[0][0])

    # ---- may: what a search needs ------------------------------------------------------------------------------

    def _location(self, tau: Tau) -> tuple[float, ...]:
        """The direction of tau that moves the location, of Fisher length 1 and Fisher-orthogonal to tau if K = 2."""
        return (self._fisher(tau)[0][0] ** -0.5,)

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        """z = <direction, T - m> and y = 1 - <tau, T - m> / (tau^T F tau): the scores of location and -log c."""
        z = (self._statistics(w)[0] - self._expectation(tau)[0]) * self._location(tau)[0]
        return WhiteScores(z, np.ones(len(w)))

    def _confined(self, tau: Array, margin: float) -> Array:
        """tau, moved to where a search can continue; values of a discrete family keep a probability of `margin`."""
        return np.clip(tau, SMALLEST, LARGEST)

    def _middle(self, tau: Tau) -> tuple[float, float]:
        """A central point of the distribution in its support, and a finite width."""
        return self._moments(tau)

    def _distance(self, tau: Tau) -> float:
        """How far the middle is from an end of the support to which the width shrinks with it; 1 without such an end.

        Between 0 and infinity no distance from 0 is small in itself: a distribution that moves from 1 to 1e-13 is
        narrower than before, but has not contracted to a point.
        """
        return self._moments(tau)[0] if self.support in ("positive", "at least 0") else 1.0

    # ---- parameters --------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        """Check that the usual parameters are positive, except those of any sign, and store them as floats."""
        for name in self._names:
            number = checks.real_number(name, getattr(self, name), positive=name not in self.of_any_sign)
            object.__setattr__(self, name, number)
        try:
            found = self._natural()
        except (OverflowError, ZeroDivisionError):
            found = (np.inf,) * self.size
        tau = np.array([t for t, sign in zip(found, self.signs, strict=True) if sign != "free"])
        least, most = SMALLEST / 1e10, LARGEST * 1e10  # so that a search can start where another ended, rounded
        if not (np.abs(tau) >= least).all() or not (np.abs(tau) <= most).all():
            wanted = f"natural parameters between {least:g} and {most:g}: choose other units"
            raise ValueError(f"{', '.join(self._names)} must lead to {wanted}, got {self}")

    @property
    def _names(self) -> list[str]:
        """Names of the usual parameters."""
        return [field.name for field in fields(self)]  # type: ignore[arg-type]  # a dataclass

    @property
    def size(self) -> int:
        """The number K of natural parameters."""
        return len(self.signs)

    @property
    def concentrates(self) -> bool:
        """Whether the distribution can contract to any point of its support."""
        return self.size > 1

    def state(self) -> UnivariateState:
        """The initial parameters: those of the constructor, unconstrained."""
        return UnivariateState(unconstrained(np.array(self._natural()), self.signs))

    def at(self, state: UnivariateState) -> Self:
        """The same family with the usual parameters of a state."""
        return replace(self, **self._usual(self.natural(state).tolist()))  # type: ignore[type-var]

    def natural(self, state: UnivariateState) -> Array:
        """The natural parameters tau = f(lambda) of a state."""
        return natural(checked_state(state, self.size).unconstrained, self.signs)

    # ---- density -----------------------------------------------------------------------------------------------

    def check_points(self, name: str, points: Any) -> Array:
        """Check that all points are in the support.

        Parameters
        ----------
        name : str
            The name of the argument, for the message.
        points : array_like, shape (n,)
            The numbers.

        Returns
        -------
        ndarray, shape (n,)
            The points as float64.
        """
        w = checks.real_array(name, points, (None,))
        if not (inside := self._in_support(w)).all():
            where = int(np.argmin(inside))
            raise ValueError(f"{name} must be {self.support} for {self}, got {w[where]:g} at index {where}")
        return w

    def sample(self, state: UnivariateState, n: int, rng: np.random.Generator) -> Array:
        """Draw n numbers at once."""
        checks.instance("rng", rng, np.random.Generator)
        return self._draw(self.natural(state).tolist(), checks.whole_number("n", n), rng)

    def statistics(self, points: Any) -> Array:
        """The sufficient statistics T(w) as rows (n, K)."""
        return np.column_stack(self._statistics(self.check_points("points", points)))

    def log_density(self, state: UnivariateState, points: Any) -> Array:
        """log b(w) + <T(w), tau> - A(tau), -inf outside the support; log probabilities of a discrete family.

        The terms cancel: for large natural parameters the error is about 1e-16 of <T(w), tau>.
        """
        tau, points = self.natural(state), checks.real_array("points", points, (None,))
        density, inside = np.full(len(points), -np.inf), self._in_support(points)
        w = points[inside]
        density[inside] = self._log_base(w) + np.column_stack(self._statistics(w)) @ tau
        return density - self.log_partition(state)

    def log_partition(self, state: UnivariateState) -> float:
        """The log partition function A(tau)."""
        return float(self._log_partition(self.natural(state).tolist()))

    def moments(self, state: UnivariateState) -> tuple[float, float]:
        """Mean and standard deviation of w, infinite where they do not exist."""
        mean, std = self._moments(self.natural(state).tolist())
        return float(mean), float(std)

    def entropy(self, state: UnivariateState) -> float:
        """-E log q = A(tau) - <tau, m> - E log b, with the error of `log_density`."""
        tau = self.natural(state)
        return self.log_partition(state) - float(tau @ self.expectation(state)) - self._mean_log_base(tau.tolist())

    # ---- natural gradients -------------------------------------------------------------------------------------

    def expectation(self, state: UnivariateState) -> Array:
        """The expectation parameters m = E[T(w)] = grad A(tau)."""
        return np.array(self._expectation(self.natural(state).tolist()), dtype=np.float64)

    def fisher(self, state: UnivariateState) -> Array:
        """The Fisher matrix of tau: Hess A(tau) = Cov[T(w)] (paper: non-singular, since the family is minimal)."""
        return np.array(self._fisher(self.natural(state).tolist()), dtype=np.float64)

    def natural_gradient(self, state: UnivariateState, gradient: Any) -> Array:
        """The natural gradient in lambda from g = dL/dtau, the direct way: F_tau^-1 g / f'(lambda)."""
        gradient = checks.real_array("gradient", gradient, (self.size,))
        return self.natural_gradient_indirect(state, np.linalg.solve(self.fisher(state), gradient))

    def natural_gradient_indirect(self, state: UnivariateState, gradient: Any) -> Array:
        """The natural gradient in lambda from g = dL/dm, which is that in tau, the indirect way: g / f'(lambda)."""
        gradient = checks.real_array("gradient", gradient, (self.size,))
        return gradient / slopes(checked_state(state, self.size).unconstrained, self.signs)

    def natural_score(self, state: UnivariateState, points: Any, weights: Any) -> Array:
        """Natural gradient in lambda of sum_i weights_i log q(w_i): F_tau^-1 sum_i weights_i (T(w_i) - m) / f'.

        Parameters
        ----------
        state : UnivariateState
            The parameters.
        points : array_like, shape (n,)
            Numbers in the support.
        weights : array_like, shape (n,)
            One weight per point.
        """
        points = self.check_points("points", points)
        weights = checks.real_array("weights", weights, points.shape)
        centerd = np.column_stack(self._statistics(points)) - self.expectation(state)
        return self.natural_gradient(state, weights @ centerd)

    def move(self, state: UnivariateState, step: Any) -> UnivariateState:
        """The parameters after a step, lambda + step (paper, eq. uef_ngd); all of them are valid."""
        step = checks.real_array("step", step, (self.size,))
        return UnivariateState(checked_state(state, self.size).unconstrained + step)


# ---- maps between unconstrained and natural parameters ----------------------------------------------------------


def natural(values: Array, signs: tuple[Sign, ...]) -> Array:
    """tau = f(lambda)."""
    return np.where(_is_free(signs), values, _factors(signs) * np.logaddexp(0.0, values))


def unconstrained(tau: Array, signs: tuple[Sign, ...]) -> Array:
    """lambda = f^-1(tau): log(e^|tau| - 1) = |tau| + log(1 - e^-|tau|) for parameters with a sign."""
    size = np.where(_is_free(signs), 1.0, np.abs(tau))
    return np.where(_is_free(signs), tau, size + np.log(-np.expm1(-size)))


def slopes(values: Array, signs: tuple[Sign, ...]) -> Array:
    """f'(lambda): 1 or +-1 / (1 + e^-lambda)."""
    return np.where(_is_free(signs), 1.0, _factors(signs) * np.exp(-np.logaddexp(0.0, -values)))


def checked_state(state: UnivariateState, size: int) -> UnivariateState:
    """Check that a state has `size` finite numbers."""
    checks.instance("state", state, UnivariateState)
    return UnivariateState(checks.real_array("state.unconstrained", state.unconstrained, (size,)))


def _is_free(signs: tuple[Sign, ...]) -> Any:
    return np.array([sign == "free" for sign in signs])


def _factors(signs: tuple[Sign, ...]) -> Array:
    return np.array([-1.0 if sign == "negative" else 1.0 for sign in signs])
