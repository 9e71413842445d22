"""Learning rates that fall when the function is noisy or rugged, by the signal-to-noise ratio of the steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import Array
from esgroup.strategies.base import Indices
from esgroup.strategies.ranks import ranks_of_two

if TYPE_CHECKING:
    from esgroup.strategies.evolution import SearchState

ONE, NEAR = 3, 4  # tags of the two samples whose values are compared; those of a step-size rule are 1 and 2


@dataclass(frozen=True)
class RateAdaptation:
    """LRA-CMA-ES (Nomura, Akimoto and Ono 2023) in local coordinates, used while nearby points have unlike values.

    For each of the two steps Delta, that of the mean (delta) and that of the root (M + log step I),

        E <- (1 - beta) E + beta Delta,   V <- (1 - beta) V + beta |Delta|^2,
        snr = (|E|^2 - beta / (2 - beta) V) / (V - |E|^2),
        eta <- min(1, eta exp(min(gamma eta, beta) clip(snr / (alpha eta) - 1, -1, 1))),

    as long as q > limit, and eta <- min(1, eta exp(min(gamma eta, beta))) otherwise. The signal-to-noise ratio of steps
    is low on every ill-conditioned function, however smooth: each step points in few of the directions still to be
    learned. So it does not show that rates are too large. The values do: the last sample of a generation is

        z_n = |z_{n-1}| (z_{n-1} + z_n) / |z_{n-1} + z_n|,

    halfway to the one before it (and still N(0, I) by itself), and

        q <- (1 - c) q + c |rank(z_n) - rank(z_{n-1})| / ((n + 1) / 3),

    which is 1 on average where noise or waves decide the ranks. Where f is smooth at the size of the distribution, both
    values are correlated by 1/sqrt(2) for a linear f and 1/2 or more for a quadratic one, whatever its condition, and q
    is 0.5 to 0.7. It is 0.8 where half the variance of a linear f is noise.

    The halfway point was chosen among distances (0.3, 0.5 and 0.7 of |z|, with limits from 0.55 to 0.8): Rastrigin's
    function (10 coordinates, 300,000 evaluations) is solved in 3 of 28 runs at 0.3, at 0.5 in 9 of 9 after 160,000 to
    290,000 evaluations, and at 0.7 in 6 of 6 after 52,000 to 185,000. Ruggedness must be detected before the search has
    settled in one of the valleys: q starts at 0.9 (5 of 5 runs; 1: 5, 0.8: 3).
    """

    alpha: float = 1.4
    beta_mean: float = 0.1
    beta_root: float = 0.03
    gamma: float = 0.1
    c: float = 0.05
    limit: float = 0.8
    start: float = 0.9

    def mark(self, z: Array, tags: Indices | None) -> Indices | None:
        """Move the last of the samples z, in place, and tag it and its neighbor.

        Fewer than four samples are left alone: then q stays the same, and rates follow the steps only.
        """
        if len(z) < 4:
            return tags
        between = z[-2] + z[-1]
        z[-1] = np.linalg.norm(z[-2]) / np.linalg.norm(between) * between
        tags = np.zeros(len(z), dtype=np.int64) if tags is None else tags
        tags[-2:] = ONE, NEAR
        return tags

    def compare(self, rates: Array, z: Array, order: Indices, tags: Indices | None) -> None:
        """Update q, the last of `rates`, in place, if both samples have values, which may arrive late or never."""
        ranks = ranks_of_two(order, tags, ONE, NEAR)
        if ranks is None:
            return
        one, near = ranks
        a, b = z[order[one]], z[order[near]]
        if a @ b < 0.5 * np.linalg.norm(a) * np.linalg.norm(b):  # from two generations
            return
        rates[4] += self.c * (3 * abs(one - near) / (len(order) + 1) - rates[4])

    def update(self, state: SearchState, delta: Array, m: Array, squared_norm: Callable[[Array], float]) -> None:
        """Update the averages E and rates = (eta of mean, eta of root, V of mean, V of root, q) in place, and sigma.

        The best step size grows as the rate of the mean falls. `squared_norm` is |M|^2 of local vectors of the root.
        """
        rates, before = state.rates, float(state.rates[0])
        state.average_delta[:] += self.beta_mean * (delta - state.average_delta)
        state.average_m[:] += self.beta_root * (m - state.average_m)
        signal_mean, signal_root = float(state.average_delta @ state.average_delta), squared_norm(state.average_m)
        rates[2] += self.beta_mean * (float(delta @ delta) - rates[2])
        rates[3] += self.beta_root * (squared_norm(m) - rates[3])
        noisy = bool(rates[4] > self.limit)
        rates[0] = self._next(before, signal_mean, float(rates[2]), self.beta_mean, noisy)
        rates[1] = self._next(float(rates[1]), signal_root, float(rates[3]), self.beta_root, noisy)
        state.sigma[0] *= before / rates[0]

    def _next(self, eta: float, signal: float, total: float, beta: float, noisy: bool) -> float:
        noise = total - signal
        ratio = (signal - beta / (2 - beta) * total) / noise if noise > 0 and noisy else math.inf
        drive = min(1.0, max(-1.0, ratio / (self.alpha * eta) - 1))
        return min(1.0, eta * math.exp(min(self.gamma * eta, beta) * drive))
