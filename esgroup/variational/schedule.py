"""How large the steps are, and when they are only noise: windows of iterations and what they say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep

Verdict = Literal["travelling", "noisy", "converged"]

MEMORIES = 8  # a window is that many times 1 / rate long: the start of a window is forgotten long before its end
EXACT = 1e-16  # nats: what is left of L when steps have come down to about 1e-8 standard deviations
SURE = 3.0  # standard errors by which the ELBO of one window must exceed that of the one before to have risen


class Window(NamedTuple):
    """Sums over the iterations of a window; the numbers are arrays, to be stored as they are."""

    length: Array  # iterations so far
    steps: Array  # sum of u, the natural gradients as they were used
    changes: Array  # sum of |u_t - u_(t-1)|^2 in Fisher's norm
    last: Array  # u_(t-1)
    elbo: Array  # sum, and sum of squares about the first
    elbo_first: Array
    elbo_squares: Array
    means: Array  # sums of the parameters
    roots: Array
    log_weights: Array


class Summary(NamedTuple):
    """What a window says: the ELBO with its standard error; the losses in nats of what is to go and of the noise."""

    elbo: float
    stderr: float
    signal: float
    noise: float
    noise_of_average: float


def empty_window(mixture: Mixture, state: MixtureState) -> Window:
    """A window without iterations."""
    size = mixture.count * mixture.dim + mixture._cuts[-1] + mixture.count - 1
    zero = np.zeros(())
    sums = (np.zeros_like(state.means), np.zeros_like(state.roots), np.zeros_like(state.log_weights))
    return Window(zero, np.zeros(size), zero, np.zeros(size), zero, zero, zero, *sums)


def extended(window: Window, mixture: Mixture, state: MixtureState, step: MixtureStep, elbo: float) -> Window:
    """The window with one more iteration: the state after it, the natural gradient, the estimate of the ELBO."""
    u = np.concatenate([step.deltas.ravel(), step.ms, step.logits])
    change = 0.0 if window.length == 0 else squared_norm(mixture, state, u - window.last)
    first = np.asarray(elbo) if window.length == 0 else window.elbo_first
    return Window(
        window.length + 1,
        window.steps + u,
        window.changes + change,
        u,
        window.elbo + elbo,
        first,
        window.elbo_squares + (elbo - first) ** 2,
        window.means + state.means,
        window.roots + state.roots,
        window.log_weights + state.log_weights,
    )


def squared_norm(mixture: Mixture, state: MixtureState, u: Array) -> float:
    """Fisher's norm of a step, with 2 |M|^2 for <M + M^T, M + M^T> / 2: the same for symmetric M, else a bound."""
    pi = np.exp(state.log_weights)
    split = mixture.count * mixture.dim
    deltas, ms = u[:split].reshape(mixture.count, -1), u[split : split + mixture._cuts[-1]]
    rho = np.append(u[split + mixture._cuts[-1] :], 0.0)
    roots = [g.group._squared_local_norm(mixture._part(ms, k)) for k, g in enumerate(mixture.components)]
    of_weights = pi @ rho**2 - (pi @ rho) ** 2
    return float(pi @ (np.vecdot(deltas, deltas) + 2 * np.array(roots)) + of_weights)


def average(window: Window) -> MixtureState:
    """The mean of the parameters over a window."""
    logs = window.log_weights / window.length
    return MixtureState(window.means / window.length, window.roots / window.length, logs - np.logaddexp.reduce(logs))


def summary(window: Window, mixture: Mixture, state: MixtureState, rate: float) -> Summary:
    """With V = E|u - E u|^2, from successive differences so that a trend does not count:

    signal = |mean u|^2 / 2 and noise = rate V / 4 are what L has above its minimum if its curvature is about Fisher's:
    the parameters then wander with E|theta|^2 = rate V / 2. Their average over n iterations costs V / (2 n).
    """
    n = float(window.length)
    spread = float(window.changes) / (2 * max(n - 1, 1))
    first = float(window.elbo_first)
    mean = float(window.elbo) / n
    variance = max(float(window.elbo_squares) / n - (mean - first) ** 2, 0.0) * n / max(n - 1, 1)
    signal = 0.5 * squared_norm(mixture, state, window.steps / n)
    return Summary(mean, math.sqrt(variance / n), signal, rate * spread / 4, spread / (2 * n))


@dataclass(frozen=True)
class Schedule:
    """A constant rate while the steps lead somewhere, half of it as soon as they are noise; the end when that is small.

    At a constant rate the parameters come near the optimum as (1 - rate)^t and then wander about it. So after each
    window: if what is to go is more than what the noise costs, or the ELBO still rises, go on; else, if the noise costs
    less than `tol`, this is the end; else halve the rate.
    """

    rate: float
    tol: float

    def length(self, rate: float) -> int:
        """Of a window, in iterations."""
        return math.ceil(MEMORIES / rate)

    def verdict(self, found: Summary, before: Summary | None) -> Verdict:
        """What to do after a window, given the one before it at any rate."""
        if found.signal > max(found.noise, EXACT):
            return "travelling"
        if before is not None and found.elbo - before.elbo > SURE * math.hypot(found.stderr, before.stderr) + self.tol:
            return "travelling"
        return "converged" if found.noise_of_average <= self.tol else "noisy"
