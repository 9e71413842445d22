"""Families of real numbers with a scale as the only parameter: Exponential, Pareto, Weibull and Laplace.

Their T <= 0 has an exponential distribution, so they can contract only to an end of their support.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from esgroup.checks import Array
from esgroup.distributions.univariate import HUGE, LARGEST, TINY, Sign, Tau, Univariate

_SERIES_TO = 0.05  # of `_log_gamma_bend`, where the first term left out is 1e-17 of the sum


class _Rate(Univariate):
    """-T >= 0 is exponential with rate tau > 0: A = -log tau, up to a constant that belongs to b."""

    signs: ClassVar[tuple[Sign, ...]] = ("positive",)

    def _log_partition(self, tau: Tau) -> float:
        return -math.log(tau[0])

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        return (-1 / tau[0],)

    def _fisher(self, tau: Tau) -> list[list[float]]:
        return [[1 / (tau[0] * tau[0])]]


@dataclass(frozen=True)
class Exponential(_Rate):
    """Numbers from 0 with density rate e^(-rate w): T = -w, tau = rate.

    Parameters
    ----------
    rate : float
        The rate, positive: the mean is 1 / rate.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Exponential
    >>> start = Exponential(rate=1.0)
    >>> res = esgroup.minimize(lambda w: w[0], start, max_evals=400, rng=1)
    >>> bool(res.x[0] < 1e-3)
    True
    """

    rate: float = 1.0
    support: ClassVar[str] = "at least 0"

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-w,)

    def _moments(self, tau: Tau) -> tuple[float, float]:
        return 1 / tau[0], 1 / tau[0]

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return rng.standard_exponential(n) / tau[0]


@dataclass(frozen=True)
class Pareto(_Rate):
    """Numbers above a fixed scale s, P(w > x) = (s / x)^alpha: T = -log(w / s), tau = alpha, b = 1 / w.

    Parameters
    ----------
    alpha : float
        The exponent, positive.
    scale : float
        The scale s, positive and fixed.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Pareto
    >>> start = Pareto(scale=2.0, alpha=3.0)
    >>> res = esgroup.minimize(lambda w: w[0], start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 2)
    2.0
    """

    alpha: float = 1.0
    scale: float = 1.0
    support: ClassVar[str] = "at least `scale`"

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return w >= self.scale

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-np.log1p((w - self.scale) / self.scale),)

    def _log_base(self, w: Array) -> Array:
        return -np.log(w)

    def _mean_log_base(self, tau: Tau) -> float:
        return -1 / tau[0] - math.log(self.scale)

    def _moments(self, tau: Tau) -> tuple[float, float]:
        alpha = tau[0]
        mean = self.scale * alpha / (alpha - 1) if alpha > 1 else math.inf
        return mean, mean / math.sqrt(alpha * (alpha - 2)) if alpha > 2 else math.inf

    def _middle(self, tau: Tau) -> tuple[float, float]:
        """The median, and the distance of the quartiles divided by 1.349, that of a standard normal."""
        first = self.scale * (4 / 3) ** (1 / tau[0])
        return self.scale * 2 ** (1 / tau[0]), first * math.expm1(math.log(3) / tau[0]) / 1.349

    def _confined(self, tau: Array, margin: float) -> Array:
        return np.clip(tau, 0.1, LARGEST)  # heavier tails are useless: every fourth point is above 1e6 scales

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        exponent = np.minimum(rng.standard_exponential(n) / tau[0], math.log(HUGE) - math.log(self.scale))
        return self.scale + self.scale * np.expm1(exponent)


@dataclass(frozen=True)
class Weibull(_Rate):
    """Positive numbers with P(w > x) = e^-(x / scale)^k, the shape k fixed: T = -w^k, tau = scale^-k, b = k w^(k-1).

    Parameters
    ----------
    scale : float
        The scale, positive.
    shape : float
        The shape k, from 0.1 to 1e12, fixed.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Weibull
    >>> start = Weibull(shape=2.0, scale=1.0)
    >>> res = esgroup.minimize(lambda w: w[0], start, max_evals=400, rng=1)
    >>> bool(res.x[0] < 0.1)
    True
    """

    scale: float = 1.0
    shape: float = 1.0
    support: ClassVar[str] = "positive"
    least_shape: ClassVar[float] = 0.1  # at which half of all samples are already above 26 scales or below 4e-6
    most_shape: ClassVar[float] = 1e12  # at which w^k is accurate to four digits

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.least_shape <= self.shape <= self.most_shape:
            raise ValueError(f"shape must be from {self.least_shape:g} to {self.most_shape:g}, got {self.shape!r}")

    def _natural(self) -> tuple[float, ...]:
        return (self.scale**-self.shape,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"scale": min(max(_exp(self._log_scale(tau)), TINY), HUGE)}

    def _log_scale(self, tau: Tau) -> float:
        return -math.log(tau[0]) / self.shape

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-np.exp(np.minimum(self.shape * np.log(w), math.log(HUGE))),)

    def _log_base(self, w: Array) -> Array:
        return math.log(self.shape) + (self.shape - 1) * np.log(w)

    def _mean_log_base(self, tau: Tau) -> float:
        mean_log = -(math.log(tau[0]) + np.euler_gamma) / self.shape
        return float(math.log(self.shape) + (self.shape - 1) * mean_log)

    def _moments(self, tau: Tau) -> tuple[float, float]:
        """Gamma(1 + 1/k) scale, and sqrt(Gamma(1 + 2/k) / Gamma(1 + 1/k)^2 - 1) times that; infinite beyond float64."""
        log_mean = self._log_scale(tau) + math.lgamma(1 + 1 / self.shape)
        return _exp(log_mean), _exp(log_mean + 0.5 * _log_expm1(_log_gamma_bend(1 / self.shape)))

    def _confined(self, tau: Array, margin: float) -> Array:
        most = min(LARGEST, 1e280 ** min(self.shape, 1.0))  # for shapes below 1/2 the moments must not overflow either
        return np.clip(tau, 1 / most, most)

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        logs = (np.log(np.maximum(rng.standard_exponential(n), TINY)) - math.log(tau[0])) / self.shape
        return np.exp(np.clip(logs, math.log(TINY), math.log(HUGE)))


@dataclass(frozen=True)
class Laplace(_Rate):
    """Numbers around a fixed location l, density e^(-|w - l| / scale) / (2 scale): T = -|w - l|, tau = 1 / scale.

    With a free location it would not be an exponential family.

    Parameters
    ----------
    scale : float
        The scale, positive.
    location : float
        The location l, fixed.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Laplace
    >>> start = Laplace(location=1.0, scale=1.0)
    >>> res = esgroup.minimize(lambda w: abs(w[0] - 1.0), start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 2)
    1.0
    """

    scale: float = 1.0
    location: float = 0.0
    of_any_sign: ClassVar[tuple[str, ...]] = ("location",)
    log_base: ClassVar[float] = -math.log(2)
    support: ClassVar[str] = "finite"

    def _natural(self) -> tuple[float, ...]:
        return (1 / self.scale,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"scale": 1 / tau[0]}

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-np.abs(w - self.location),)

    def _moments(self, tau: Tau) -> tuple[float, float]:
        return self.location, math.sqrt(2) / tau[0]

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return self.location + rng.laplace(size=n) / tau[0]


# ---- moments of a Weibull ------------------------------------------------------------------------------------------


def _log_gamma_bend(x: float) -> float:
    """log Gamma(1 + 2 x) - 2 log Gamma(1 + x) for x > 0, about (pi x)^2 / 6: for small x from the series of both.

    log Gamma(1 + x) = -gamma x + sum_j zeta(j) (-x)^j / j, j >= 2 (Abramowitz and Stegun 1964, 6.1.33).
    """
    if x > _SERIES_TO:
        return math.lgamma(1 + 2 * x) - 2 * math.lgamma(1 + x)
    j = np.arange(2.0, 20.0)
    return float(np.sum(special.zeta(j) * (2**j - 2) / j * (-x) ** j))


def _log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0."""
    return x + math.log(-math.expm1(-x))


def _exp(x: float) -> float:
    """e^x, infinite where it is too large for a float64."""
    return math.exp(x) if x < math.log(sys.float_info.max) else math.inf
