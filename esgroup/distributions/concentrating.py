"""Families of real numbers that can contract to any point of their support: Normal, Gamma, Beta and Wald.

They have two natural parameters: tau <- c tau changes the concentration and keeps the mean; the location moves along
the direction that is Fisher-orthogonal to tau. The formulas that a search uses avoid cancellation for large
concentrations.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from esgroup.checks import Array
from esgroup.distributions.gamma_functions import log_gap, slope_difference, trigamma_difference, variance_gap
from esgroup.distributions.univariate import BELOW_ONE, LARGEST, SMALLEST, TINY, Sign, Tau, Univariate, WhiteScores

SHARPEST = 1e30  # concentration at which the width is 1e-15 of the mean: beyond it, all samples are equal


@dataclass(frozen=True)
class Normal(Univariate):
    """Real numbers: T = (w, w^2), tau = (mean / std^2, -1 / (2 std^2)), b = (2 pi)^(-1/2).

    Parameters
    ----------
    mean : float
        The mean.
    std : float
        The standard deviation, positive.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Normal
    >>> start = Normal(mean=0.0, std=1.0)
    >>> res = esgroup.minimize(lambda w: (w[0] - 3.0) ** 2, start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 4)
    3.0
    """

    mean: float = 0.0
    std: float = 1.0
    of_any_sign: ClassVar[tuple[str, ...]] = ("mean",)
    log_base: ClassVar[float] = -0.5 * math.log(2 * math.pi)
    signs: ClassVar[tuple[Sign, ...]] = ("free", "negative")
    support: ClassVar[str] = "finite"

    def _natural(self) -> tuple[float, ...]:
        return self.mean / self.std / self.std, -0.5 / self.std / self.std

    def _usual(self, tau: Tau) -> dict[str, float]:
        mean, std = self._moments(tau)
        return {"mean": mean, "std": std}

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return w, w * w

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
        return tau * (min(max(size, SMALLEST), LARGEST) / size)


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

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Gamma
    >>> start = Gamma(shape=2.0, rate=2.0)
    >>> res = esgroup.minimize(lambda w: (w[0] - 0.5) ** 2, start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 4)
    0.5
    """

    shape: float = 1.0
    rate: float = 1.0
    support: ClassVar[str] = "positive"

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

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Beta
    >>> start = Beta(a=2.0, b=2.0)
    >>> res = esgroup.minimize(lambda w: (w[0] - 0.9) ** 2, start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 4)
    0.9
    """

    a: float = 1.0
    b: float = 1.0
    support: ClassVar[str] = "strictly between 0 and 1"

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

    def _distance(self, tau: Tau) -> float:
        return min(tau) / (tau[0] + tau[1])

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

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Wald
    >>> start = Wald(mean=1.0, shape=2.0)
    >>> res = esgroup.minimize(lambda w: (w[0] - 0.5) ** 2, start, max_evals=400, rng=1)
    >>> round(float(res.x[0]), 4)
    0.5
    """

    mean: float = 1.0
    shape: float = 1.0
    support: ClassVar[str] = "positive"

    def _natural(self) -> tuple[float, ...]:
        return self.shape / 2 / self.mean / self.mean, self.shape / 2

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"mean": math.sqrt(tau[1] / tau[0]), "shape": 2 * tau[1]}

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
