"""Univariate exponential families of real numbers.

Normal, Gamma, Beta and Wald have two natural parameters and can contract to any point of their support: tau <- c tau
changes the concentration and leaves the mean; the location moves along the direction that is Fisher-orthogonal to tau.
What a search needs of them is written so that nothing cancels for large concentrations.

Exponential, Pareto, Weibull and Laplace have a scale and nothing else: their T <= 0 has an exponential distribution.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from esgroup.checks import Array
from esgroup.distributions.gamma_functions import log_gap, slope_difference, trigamma_difference, variance_gap
from esgroup.distributions.univariate import (
    BELOW_ONE,
    HUGE,
    LARGEST,
    SMALLEST,
    TINY,
    Sign,
    Tau,
    Univariate,
    WhiteScores,
)

SHARPEST = 1e30  # concentration at which the width is 1e-15 of the mean: beyond, samples are all the same number
_SERIES_TO = 0.05  # of `_log_gamma_bend`, where the first term left out is 1e-17 of the sum


# ---- families that concentrate --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Normal(Univariate):
    """Real numbers: T = (w, w^2), tau = (mean / std^2, -1 / (2 std^2)), b = (2 pi)^(-1/2).

    Parameters
    ----------
    mean : float
        The mean.
    std : float
        The standard deviation, positive.
    """

    mean: float = 0.0
    std: float = 1.0
    signs: ClassVar[tuple[Sign, ...]] = ("free", "negative")
    support: ClassVar[str] = "finite"

    def __post_init__(self) -> None:
        self._store_parameters(mean=False, std=True)

    def _natural(self) -> tuple[float, ...]:
        return self.mean / self.std / self.std, -0.5 / self.std / self.std

    def _usual(self, tau: Tau) -> dict[str, float]:
        mean, std = self._moments(tau)
        return {"mean": mean, "std": std}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return np.isfinite(w)

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return w, w * w

    def _log_base(self, w: Array) -> Array:
        return np.full(len(w), -0.5 * math.log(2 * math.pi))

    def _mean_log_base(self, tau: Tau) -> float:
        return -0.5 * math.log(2 * math.pi)

    def _log_partition(self, tau: Tau) -> float:
        return -0.25 * tau[0] * (tau[0] / tau[1]) - 0.5 * math.log(-2 * tau[1])

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        mean, std = self._moments(tau)
        return mean, mean * mean + std * std

    def _fisher(self, tau: Tau) -> list[list[float]]:
        mean, std = self._moments(tau)
        variance = std * std
        return [[variance, 2 * mean * variance], [2 * mean * variance, 2 * variance * (2 * mean * mean + variance)]]

    def _moments(self, tau: Tau) -> tuple[float, float]:
        return -0.5 * tau[0] / tau[1], (-2 * tau[1]) ** -0.5

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        mean, std = self._moments(tau)
        return mean + std * rng.standard_normal(n)

    def _location(self, tau: Tau) -> tuple[float, ...]:
        return math.sqrt(-2 * tau[1]), 0.0  # the statistic w over its standard deviation

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        mean, std = self._moments(tau)
        z = (w - mean) / std
        return WhiteScores(z, z * z)

    def _confined(self, tau: Array, margin: float) -> Array:
        size = -float(tau[1])
        confined: Array = tau * (min(max(size, SMALLEST), LARGEST) / size)
        return confined


class _Concentrating(Univariate):
    """A family whose concentration has no unit: it is about (mean / standard deviation)^2."""

    signs: ClassVar[tuple[Sign, ...]] = ("positive", "positive")

    @abstractmethod
    def _concentration(self, tau: Tau) -> float:
        """The concentration, homogeneous of degree 1 in tau."""

    def _confined(self, tau: Array, margin: float) -> Array:
        """Keep the concentration between 1, or less if the search starts there, and `SHARPEST`.

        Below 1 the standard deviation exceeds the mean, and most samples are wasted on an end of the support.
        """
        now = self._concentration(tau.tolist())
        least = min(1.0, self._concentration(self._natural()))
        return np.clip(tau * (min(max(now, least), SHARPEST) / now), SMALLEST, LARGEST)


@dataclass(frozen=True)
class Gamma(_Concentrating):
    """Positive numbers: T = (log w, -w), tau = (shape, rate), b = 1 / w, A = log Gamma(shape) - shape log rate.

    Parameters
    ----------
    shape : float
        The shape, positive.
    rate : float
        The rate, positive: the mean is shape / rate.
    """

    shape: float = 1.0
    rate: float = 1.0
    support: ClassVar[str] = "positive"

    def __post_init__(self) -> None:
        self._store_parameters(shape=True, rate=True)

    def _natural(self) -> tuple[float, ...]:
        return self.shape, self.rate

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"shape": tau[0], "rate": tau[1]}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return w > 0

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return np.log(w), -w

    def _log_base(self, w: Array) -> Array:
        return -np.log(w)

    def _mean_log_base(self, tau: Tau) -> float:
        return -self._expectation(tau)[0]

    def _log_partition(self, tau: Tau) -> float:
        return math.lgamma(tau[0]) - tau[0] * math.log(tau[1])

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        a, b = tau
        return float(special.digamma(a)) - math.log(b), -a / b

    def _fisher(self, tau: Tau) -> list[list[float]]:
        a, b = tau
        return [[float(special.polygamma(1, a)), -1 / b], [-1 / b, a / (b * b)]]

    def _moments(self, tau: Tau) -> tuple[float, float]:
        return tau[0] / tau[1], math.sqrt(tau[0]) / tau[1]

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return np.maximum(rng.standard_gamma(tau[0], n) / tau[1], TINY)

    def _concentration(self, tau: Tau) -> float:
        return float(tau[0])

    def _location(self, tau: Tau) -> tuple[float, ...]:
        return 0.0, -tau[1] / math.sqrt(tau[0])  # the statistic w over its standard deviation

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        a, mean = tau[0], tau[0] / tau[1]
        r = (w - mean) / mean
        return WhiteScores(math.sqrt(a) * r, 1 + (a * _log1p_gap(r) - log_gap(a)) / variance_gap(a))


@dataclass(frozen=True)
class Beta(_Concentrating):
    """Numbers between 0 and 1: T = (log w, log(1 - w)), tau = (a, b), base 1 / (w (1 - w)), A = log B(a, b).

    Parameters
    ----------
    a, b : float
        The shapes, positive: the mean is a / (a + b).
    """

    a: float = 1.0
    b: float = 1.0
    support: ClassVar[str] = "between 0 and 1 and neither of them"

    def __post_init__(self) -> None:
        self._store_parameters(a=True, b=True)

    def _natural(self) -> tuple[float, ...]:
        return self.a, self.b

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"a": tau[0], "b": tau[1]}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return (w > 0) & (w < 1)

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return np.log(w), np.log1p(-w)

    def _log_base(self, w: Array) -> Array:
        return -np.log(w) - np.log1p(-w)

    def _mean_log_base(self, tau: Tau) -> float:
        return -sum(self._expectation(tau))

    def _log_partition(self, tau: Tau) -> float:
        return float(special.betaln(*tau))

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        a, b = tau
        total = float(special.digamma(a + b))
        return float(special.digamma(a)) - total, float(special.digamma(b)) - total

    def _fisher(self, tau: Tau) -> list[list[float]]:
        own_a, own_b, common = special.polygamma(1, [tau[0], tau[1], tau[0] + tau[1]]).tolist()
        return [[own_a - common, -common], [-common, own_b - common]]

    def _moments(self, tau: Tau) -> tuple[float, float]:
        a, b = tau
        mean = a / (a + b)
        return mean, math.sqrt(mean * (b / (a + b)) / (a + b + 1))

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return np.clip(rng.beta(tau[0], tau[1], n), TINY, BELOW_ONE)

    def _concentration(self, tau: Tau) -> float:
        return float(min(tau))

    def _confined(self, tau: Array, margin: float) -> Array:
        """The mean may come as close to 0 as 1e-30, but to 1 only as close as 1e-15, the spacing of float64 there."""
        a, b = np.minimum(super()._confined(tau, margin), SHARPEST)
        return np.array([min(a, 1e15 * b), b])

    def _location(self, tau: Tau) -> tuple[float, ...]:
        """c = (v, -u) with F tau = (u, v), so that c^T F tau = 0, over its length."""
        a, b = tau
        u, v = slope_difference(a, b), slope_difference(b, a)
        own_a, own_b = trigamma_difference(a, b), trigamma_difference(b, a)  # the diagonal of F
        cross = float(special.polygamma(1, a + b))
        length = math.sqrt(v * v * own_a + 2 * u * v * cross + u * u * own_b)
        return v / length, -u / length

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        (a, b), (first, second), s = tau, self._location(tau), tau[0] + tau[1]
        up, down = (w - a / s) * (s / a), (a / s - w) * (s / b)  # w / mean - 1, (1 - w) / (1 - mean) - 1
        gap = log_gap(s) / s
        z = first * (_log1p(up) + log_gap(a) / a - gap) + second * (_log1p(down) + log_gap(b) / b - gap)
        expected = log_gap(a) + log_gap(b) - log_gap(s)
        fisher = variance_gap(a) + variance_gap(b) - variance_gap(s)  # tau^T F tau
        return WhiteScores(z, 1 + (a * _log1p_gap(up) + b * _log1p_gap(down) - expected) / fisher)


@dataclass(frozen=True)
class Wald(_Concentrating):
    """Positive numbers, the inverse Gaussian with `mean` m and `shape` s: T = (-w, -1/w), tau = (s / (2 m^2), s / 2).

    b = (2 pi w^3)^(-1/2), A = -log(2 tau_2) / 2 - 2 sqrt(tau_1 tau_2); s (w - m)^2 / (m^2 w) is chi-squared.

    Parameters
    ----------
    mean : float
        The mean m, positive.
    shape : float
        The shape s, positive: the variance is m^3 / s.
    """

    mean: float = 1.0
    shape: float = 1.0
    support: ClassVar[str] = "positive"

    def __post_init__(self) -> None:
        self._store_parameters(mean=True, shape=True)

    def _natural(self) -> tuple[float, ...]:
        return self.shape / 2 / self.mean / self.mean, self.shape / 2

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"mean": math.sqrt(tau[1] / tau[0]), "shape": 2 * tau[1]}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return w > 0

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return -w, -1 / w

    def _log_base(self, w: Array) -> Array:
        return -0.5 * math.log(2 * math.pi) - 1.5 * np.log(w)

    def _mean_log_base(self, tau: Tau) -> float:
        """E log w = log m - e^x E_1(x) with x = 2 s / m; e^x E_1(x) = U(1, 1, x)."""
        mean_log = 0.5 * math.log(tau[1] / tau[0]) - special.hyperu(1, 1, 4 * math.sqrt(tau[0] * tau[1]))
        return float(-0.5 * math.log(2 * math.pi) - 1.5 * mean_log)

    def _log_partition(self, tau: Tau) -> float:
        return -0.5 * math.log(2 * tau[1]) - 2 * math.sqrt(tau[0] * tau[1])

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        mean = math.sqrt(tau[1] / tau[0])
        return -mean, -1 / (2 * tau[1]) - 1 / mean

    def _fisher(self, tau: Tau) -> list[list[float]]:
        cross = -0.5 / math.sqrt(tau[0] * tau[1])
        mean = math.sqrt(tau[1] / tau[0])
        return [[0.5 * mean / tau[0], cross], [cross, 0.5 / tau[1] / tau[1] + 0.5 / (tau[1] * mean)]]

    def _moments(self, tau: Tau) -> tuple[float, float]:
        mean = math.sqrt(tau[1] / tau[0])
        return mean, math.sqrt(0.5 * mean / tau[0])

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return np.maximum(rng.wald(math.sqrt(tau[1] / tau[0]), 2 * tau[1], n), TINY)

    def _concentration(self, tau: Tau) -> float:
        return 2 * math.sqrt(tau[0]) * math.sqrt(tau[1])  # s / m

    def _location(self, tau: Tau) -> tuple[float, ...]:
        return -1 / self._moments(tau)[1], 0.0  # the statistic w over its standard deviation

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        mean, std = self._moments(tau)
        return WhiteScores((w - mean) / std, 2 * tau[0] * (w - mean) * ((w - mean) / w))


def _log1p(r: Array) -> Array:
    """log(1 + r) for r = w / mean - 1 >= -1; a w below 1e-16 of the mean counts as 1e-16 of it."""
    return np.log1p(np.maximum(r, -BELOW_ONE))


def _log1p_gap(r: Array) -> Array:
    """r - log(1 + r) >= 0."""
    return r - _log1p(r)


# ---- families with a scale only -------------------------------------------------------------------------------------


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
    """

    rate: float = 1.0
    support: ClassVar[str] = "at least 0"

    def __post_init__(self) -> None:
        self._store_parameters(rate=True)

    def _natural(self) -> tuple[float, ...]:
        return (self.rate,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"rate": tau[0]}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return w >= 0

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-w,)

    def _log_base(self, w: Array) -> Array:
        return np.zeros(len(w))

    def _mean_log_base(self, tau: Tau) -> float:
        return 0.0

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
        The scale s, positive, which stays as it is.
    """

    alpha: float = 1.0
    scale: float = 1.0
    support: ClassVar[str] = "at least `scale`"

    def __post_init__(self) -> None:
        self._store_parameters(scale=True, alpha=True)

    def _natural(self) -> tuple[float, ...]:
        return (self.alpha,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"alpha": tau[0]}

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
        The shape k, from 0.1 to 1e12, which stays as it is.
    """

    scale: float = 1.0
    shape: float = 1.0
    support: ClassVar[str] = "positive"
    least_shape: ClassVar[float] = 0.1  # at which half of all samples are already above 26 scales or below 4e-6
    most_shape: ClassVar[float] = 1e12  # at which w^k is accurate to four digits

    def __post_init__(self) -> None:
        self._store_parameters(scale=True, shape=True)
        if not self.least_shape <= self.shape <= self.most_shape:
            raise ValueError(f"shape must be from {self.least_shape:g} to {self.most_shape:g}, got {self.shape!r}")

    def _natural(self) -> tuple[float, ...]:
        return (self.scale**-self.shape,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"scale": min(max(_exp(self._log_scale(tau)), TINY), HUGE)}

    def _log_scale(self, tau: Tau) -> float:
        return -math.log(tau[0]) / self.shape

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return w > 0

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
        The location l, which stays as it is.
    """

    scale: float = 1.0
    location: float = 0.0
    support: ClassVar[str] = "finite"

    def __post_init__(self) -> None:
        self._store_parameters(scale=True, location=False)

    def _natural(self) -> tuple[float, ...]:
        return (1 / self.scale,)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"scale": 1 / tau[0]}

    def _in_support(self, w: Array) -> NDArray[np.bool_]:
        return np.isfinite(w)

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (-np.abs(w - self.location),)

    def _log_base(self, w: Array) -> Array:
        return np.full(len(w), -math.log(2))

    def _mean_log_base(self, tau: Tau) -> float:
        return -math.log(2)

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
