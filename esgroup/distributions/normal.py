"""The univariate normal family; it contracts to any point as those of `concentrating.py` do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.distributions.univariate import LARGEST, SMALLEST, Local, Sign, Tau, Univariate


@dataclass(frozen=True)
class Normal(Univariate):
    """Real numbers: T = (w, w^2), tau = (mean / std^2, -1 / (2 std^2)), b = (2 pi)^(-1/2)."""

    mean: float = 0.0
    std: float = 1.0
    signs: ClassVar[tuple[Sign, ...]] = ("free", "negative")
    support: ClassVar[str] = "finite"

    def __post_init__(self) -> None:
        self._check(mean=False, std=True)

    def _natural(self) -> tuple[float, ...]:
        return self.mean / self.std / self.std, -0.5 / self.std / self.std

    def _usual(self, tau: Tau) -> dict[str, float]:
        mean, std = self._moments(tau)
        return {"mean": mean, "std": std}

    def _inside(self, w: Array) -> NDArray[np.bool_]:
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

    def _local(self, tau: Tau, w: Array) -> Local:
        mean, std = self._moments(tau)
        z = (w - mean) / std
        return Local(z, z * z)

    def _confined(self, tau: Array, margin: float) -> Array:
        size = -float(tau[1])
        confined: Array = tau * (min(max(size, SMALLEST), LARGEST) / size)
        return confined
