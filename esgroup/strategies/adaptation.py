"""Learning rates from the signal-to-noise ratio of the steps, for noisy and multimodal functions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from esgroup.checks import Array
from esgroup.groups import Group


@dataclass(frozen=True)
class RateAdaptation:
    """LRA-CMA-ES (Nomura, Akimoto and Ono 2023) in local coordinates, to which the paper transforms its steps.

    For each of the two steps Delta, that of the mean (delta) and that of the root (M + log step I),

        E <- (1 - beta) E + beta Delta,   V <- (1 - beta) V + beta |Delta|^2,
        snr = (|E|^2 - beta / (2 - beta) V) / (V - |E|^2),
        eta <- min(1, eta exp(min(gamma eta, beta) clip(snr / (alpha eta) - 1, -1, 1))).
    """

    alpha: float = 1.4
    beta_mean: float = 0.1
    beta_root: float = 0.03
    gamma: float = 0.1

    def update(
        self, group: Group, rates: Array, average_delta: Array, average_m: Array, delta: Array, m: Array
    ) -> None:
        """Update the averages E and rates = (eta of mean, eta of root, V of mean, V of root) in place."""
        average_delta += self.beta_mean * (delta - average_delta)
        average_m += self.beta_root * (m - average_m)
        signal_mean, signal_root = float(average_delta @ average_delta), group._squared_local_norm(average_m)
        rates[2] += self.beta_mean * (float(delta @ delta) - rates[2])
        rates[3] += self.beta_root * (group._squared_local_norm(m) - rates[3])
        rates[0] = self._next(float(rates[0]), signal_mean, float(rates[2]), self.beta_mean)
        rates[1] = self._next(float(rates[1]), signal_root, float(rates[3]), self.beta_root)

    def _next(self, eta: float, signal: float, total: float, beta: float) -> float:
        noise = total - signal
        ratio = (signal - beta / (2 - beta) * total) / noise if noise > 0 else math.inf
        drive = min(1.0, max(-1.0, ratio / (self.alpha * eta) - 1))
        return min(1.0, eta * math.exp(min(self.gamma * eta, beta) * drive))
