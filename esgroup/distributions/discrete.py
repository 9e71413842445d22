"""Univariate exponential families of integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.univariate import (
    BELOW_ONE,
    LARGEST,
    TINY,
    Sign,
    Tau,
    Univariate,
    UnivariateState,
    WhiteScores,
)


@dataclass(frozen=True)
class Bernoulli(Univariate):
    """0 or 1, the latter with probability p: T = w, tau = log(p / (1 - p)).

    Parameters
    ----------
    probability : float
        The probability p of a 1, strictly between 0 and 1.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Bernoulli
    >>> start = Bernoulli(probability=0.5)
    >>> res = esgroup.minimize(lambda w: 1.0 - w[0], start, max_evals=400, rng=1)
    >>> int(res.x[0])
    1
    """

    probability: float = 0.5
    signs: ClassVar[tuple[Sign, ...]] = ("free",)
    support: ClassVar[str] = "0 or 1"

    def __post_init__(self) -> None:
        p = checks.real_number("probability", self.probability)
        if not 0 < p < 1:
            raise ValueError(f"probability must be strictly between 0 and 1, got {p!r}")
        super().__post_init__()

    def _natural(self) -> tuple[float, ...]:
        return (math.log(self.probability) - math.log1p(-self.probability),)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"probability": min(max(float(special.expit(tau[0])), TINY), BELOW_ONE)}

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (w,)

    def _log_partition(self, tau: Tau) -> float:
        return float(np.logaddexp(0, tau[0]))

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        return (float(special.expit(tau[0])),)

    def _fisher(self, tau: Tau) -> list[list[float]]:
        return [[float(special.expit(tau[0]) * special.expit(-tau[0]))]]

    def _middle(self, tau: Tau) -> tuple[float, float]:
        return float(tau[0] > 0), self._moments(tau)[1]

    def _confined(self, tau: Array, margin: float) -> Array:
        most = math.log(1 / margin - 1)
        return np.clip(tau, -most, most)

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(n) < special.expit(tau[0]), 1.0, 0.0)


# ---- tables of counts ----------------------------------------------------------------------------------------------


class _Table(NamedTuple):
    """All counts with non-negligible probability; their statistics are relative to those of the first count."""

    counts: Array
    statistics: Array  # (2, n)
    logs: Array
    probabilities: Array

    def entropy(self) -> float:
        """-sum P log P."""
        return -float(self.probabilities @ self.logs)


@lru_cache(maxsize=64)  # one generation needs the same table several times
def _table(rate: float, power: float) -> _Table:
    """The table of counts within 12 standard deviations plus 40 / min(1, power) of the rate.

    Log probabilities are sums of log P(w) - log P(w - 1) = power log(rate / w): differences of log w! would lose all
    digits.
    """
    reach = 12 * math.sqrt(rate / power) + 40 / min(1.0, power)
    w = np.arange(max(0.0, math.floor(rate - reach)), rate + reach)
    close = np.abs(rate - w[1:]) < 0.5 * w[1:]  # elsewhere `rate` may be lost in rate - w
    ratios = np.where(close, np.log1p(np.where(close, rate - w[1:], 0.0) / w[1:]), np.log(rate / w[1:]))
    logs = power * np.append(0.0, np.cumsum(ratios))
    logs -= special.logsumexp(logs)
    statistics = np.stack([w - w[0], -np.append(0.0, np.cumsum(np.log(w[1:])))])
    return _Table(w, statistics, logs, np.exp(logs))


# ---- counts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Poisson(Univariate):
    """Counts 0, 1, 2, ... with a mean of `rate`: T = w, tau = log rate, b = 1 / w!.

    Parameters
    ----------
    rate : float
        The mean, positive and at most 1e15.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import Poisson
    >>> start = Poisson(rate=3.0)
    >>> res = esgroup.minimize(lambda w: abs(w[0] - 5), start, max_evals=400, rng=1)
    >>> int(res.x[0])
    5
    """

    rate: float = 1.0
    signs: ClassVar[tuple[Sign, ...]] = ("free",)
    support: ClassVar[str] = "non-negative integers"
    most: ClassVar[float] = 1e15  # up to which float64 represents integers exactly and NumPy draws counts
    series_from: ClassVar[float] = 1e6  # from which the first term left out of the series of the entropy is below 1e-18

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate > self.most:
            raise ValueError(f"rate must be at most {self.most:g}, got {self.rate!r}")

    def _natural(self) -> tuple[float, ...]:
        return (math.log(self.rate),)

    def _usual(self, tau: Tau) -> dict[str, float]:
        return {"rate": self._rate(tau)}

    def _rate(self, tau: Tau) -> float:
        return math.exp(min(max(tau[0], math.log(TINY)), math.log(self.most)))

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return (w,)

    def _log_base(self, w: Array) -> Array:
        return -special.gammaln(w + 1)

    def entropy(self, state: UnivariateState) -> float:
        """-sum P log P: from a table, or for rates above 1e6 from a series; the relative error is about 1e-14.

        The series is log(2 pi e rate) / 2 - 1/(12 rate) - 1/(24 rate^2) - ... (Evans and Boersma 1988).
        """
        rate = self._rate(self.natural(state).tolist())
        if rate <= self.series_from:
            return _table(rate, 1.0).entropy()
        return 0.5 * (math.log(2 * math.pi * rate) + 1) - (1 + 0.5 / rate) / (12 * rate)

    def _log_partition(self, tau: Tau) -> float:
        return self._rate(tau)

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        return (self._rate(tau),)

    def _fisher(self, tau: Tau) -> list[list[float]]:
        return [[self._rate(tau)]]

    def _middle(self, tau: Tau) -> tuple[float, float]:
        return float(round(self._rate(tau))), math.sqrt(self._rate(tau))

    def _confined(self, tau: Array, margin: float) -> Array:
        return np.clip(tau, math.log(margin), math.log(self.most))

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        return rng.poisson(self._rate(tau), n).astype(np.float64)


@dataclass(frozen=True)
class PoissonPower(Univariate):
    """Counts 0, 1, 2, ... with probabilities in proportion to (rate^w / w!)^power, the Conway-Maxwell-Poisson family.

    T = (w, -log w!), tau = (power log rate, power). power = 1 is Poisson; with larger powers the counts gather around
    the largest integer below the rate, with a variance of about rate / power. All sums are over tables.

    Parameters
    ----------
    rate : float
        The rate, positive and at most 1e8.
    power : float
        The power, from 0.01 to 30 / log(1 + 1/rate).

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.distributions.families import PoissonPower
    >>> start = PoissonPower(rate=3.0)
    >>> res = esgroup.minimize(lambda w: abs(w[0] - 5), start, max_evals=400, rng=1)
    >>> int(res.x[0])
    5
    """

    rate: float = 1.0
    power: float = 1.0
    signs: ClassVar[tuple[Sign, ...]] = ("free", "positive")
    support: ClassVar[str] = "non-negative integers"
    most: ClassVar[float] = 1e8  # the largest rate whose tables are small
    least_power: ClassVar[float] = 1e-2
    sharpest: ClassVar[float] = 30.0  # the largest power log(1 + 1/rate): scores are white to 3% there

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate > self.most or self.power < self.least_power:
            wanted = f"rate must be at most {self.most:g} and power at least {self.least_power:g}"
            raise ValueError(f"{wanted}, got {self.rate!r} and {self.power!r}")
        if self.power > (most := self._most_power(self.rate)):
            wanted = f"at most {self.sharpest:g} / log(1 + 1/rate) = {most:.6g} for a rate of {self.rate!r}"
            raise ValueError(f"power must be {wanted}, got {self.power!r}: with more, only one or two counts are left")

    def _most_power(self, rate: float) -> float:
        """The largest power at which the third likeliest count, of about (1 + 1/rate)^-power, outweighs rounding."""
        return self.sharpest / math.log1p(1 / rate)

    def _natural(self) -> tuple[float, ...]:
        return self.power * math.log(self.rate), self.power

    def _usual(self, tau: Tau) -> dict[str, float]:
        rate = self._rate(tau)
        return {"rate": rate, "power": min(max(tau[1], self.least_power), self._most_power(rate))}

    def _rate(self, tau: Tau) -> float:
        return min(math.exp(min(max(tau[0] / tau[1], math.log(TINY)), math.log(self.most))), self.most)

    def _statistics(self, w: Array) -> tuple[Array, ...]:
        return w, -special.gammaln(w + 1)

    def _table(self, tau: Tau) -> _Table:
        return _table(self._rate(tau), min(max(tau[1], self.least_power), LARGEST))

    def _log_partition(self, tau: Tau) -> float:
        table = self._table(tau)
        first = tau[0] * table.counts[0] - tau[1] * special.gammaln(table.counts[0] + 1)
        return float(first - table.logs[0])  # log P = <T, tau> - A

    def _expectation(self, tau: Tau) -> tuple[float, ...]:
        table = self._table(tau)
        first, second = (table.statistics @ table.probabilities).tolist()
        return table.counts[0] + first, second - float(special.gammaln(table.counts[0] + 1))

    def _fisher(self, tau: Tau) -> list[list[float]]:
        table = self._table(tau)
        centerd = table.statistics - (table.statistics @ table.probabilities)[:, None]
        return ((centerd * table.probabilities) @ centerd.T).tolist()

    def entropy(self, state: UnivariateState) -> float:
        """-sum P log P."""
        return self._table(self.natural(state).tolist()).entropy()

    def _draw(self, tau: Tau, n: int, rng: np.random.Generator) -> Array:
        table = self._table(tau)
        sums = np.cumsum(table.probabilities)
        return table.counts[np.searchsorted(sums, rng.random(n) * sums[-1], side="right")]

    def _middle(self, tau: Tau) -> tuple[float, float]:
        return float(math.floor(self._rate(tau))), self._moments(tau)[1]

    def _regression(self, tau: Tau) -> tuple[float, float]:
        """beta such that w - beta log P is uncorrelated with log P, and the standard deviation of w - beta log P."""
        table = self._table(tau)
        w, excess = table.counts - self._expectation(tau)[0], table.logs - table.logs @ table.probabilities
        beta = float((w * excess) @ table.probabilities) / float(excess**2 @ table.probabilities)
        return beta, math.sqrt(float((w - beta * excess) ** 2 @ table.probabilities))

    def _location(self, tau: Tau) -> tuple[float, ...]:
        beta, std = self._regression(tau)  # of the statistic w - beta <tau, T>
        return (1 - beta * tau[0]) / std, -beta * tau[1] / std

    def _local(self, tau: Tau, w: Array) -> WhiteScores:
        """<tau, T - m> = log P - E log P; counts beyond the table score like its ends."""
        table, (beta, std) = self._table(tau), self._regression(tau)
        excess = table.logs - table.logs @ table.probabilities
        fisher = float(excess**2 @ table.probabilities)  # tau^T F tau
        own = excess[np.clip(w - table.counts[0], 0, len(excess) - 1).astype(np.int64)]
        return WhiteScores((w - self._expectation(tau)[0] - beta * own) / std, 1 - own / fisher)

    def _confined(self, tau: Array, margin: float) -> Array:
        """Keep neighbors of the likeliest count likely: P(k +- 1) / P(k) >= margin for a rate in the middle."""
        rate = max(self._rate(tau.tolist()), 0.5)
        most = max(1.0, 2 * math.log(1 / margin) / math.log1p(1 / rate))
        power = min(max(float(tau[1]), min(1.0, self.power)), most)
        return np.array([power * math.log(rate), power])
