"""Step sizes: rates that follow from windows of iterations, and limits on single steps.

Windows show whether the steps still make progress or are only noise. The limits keep steps within the range where the
local maps, and the quadratic approximation behind them, are valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.groups import Group

Verdict = Literal["traveling", "noisy", "converged"]

MEMORIES = 8  # length of a window in units of 1 / rate: the initial state is forgotten long before the end
EXACT = 1e-16  # nats: what L has above its minimum when steps have shrunk to about 1e-8 standard deviations
EPOCHS = 4  # in a window, at least, if natural gradients are averaged over epochs
SURE = 3.0  # standard errors by which the ELBO of one window must exceed that of the one before to have risen
WIDEST = 2.0**100  # the largest reach, so that doubling never overflows
_LONG = 1e50  # steps with larger entries are always shortened; the squares of smaller ones do not overflow
POWERS = 8  # steps of the power method: they give the norm to within a few percent, from below


# ---- windows --------------------------------------------------------------------------------------------------------


class Window(NamedTuple):
    """Sums over the iterations of a window. Numbers are arrays too, so that all fields are stored in the same way."""

    length: Array  # iterations so far
    steps: Array  # sum of u, the natural gradients after clipping
    changes: Array  # sum of |u_t - u_(t-1)|^2 in Fisher's norm, u_t the mean over a block of iterations
    last: Array  # u_(t-1)
    elbo: Array  # sum of the estimates
    elbo_first: Array  # the first of them
    elbo_squares: Array  # sum of squared differences from the first
    means: Array  # sums of the parameters
    roots: Array
    log_weights: Array
    part: Array  # sum of u over the current, incomplete block


class WindowSummary(NamedTuple):
    """Summary of a window; losses are in nats."""

    elbo: float
    stderr: float  # standard error of the ELBO
    signal: float  # loss because the optimum has not been reached
    noise: float  # loss because the parameters wander around it
    noise_of_average: float  # the same for the parameters averaged over the window


def empty_window(mixture: Mixture, state: MixtureState) -> Window:
    """A window without iterations."""
    size = mixture.count * mixture.dim + mixture._cuts[-1] + mixture.count - 1
    zero = np.zeros(())
    sums = (np.zeros_like(state.means), np.zeros_like(state.roots), np.zeros_like(state.log_weights))
    return Window(zero, np.zeros(size), zero, np.zeros(size), zero, zero, zero, *sums, np.zeros(size))


def extended_window(
    window: Window,
    mixture: Mixture,
    state: MixtureState,
    step: MixtureStep,
    elbo: float,
    block: int = 1,
    ends_block: bool = True,
) -> Window:
    """The window with one more iteration: the state after it, its natural gradient, its estimate of the ELBO.

    Changes are measured between the means of blocks of iterations; this iteration may complete a block.
    """
    u = np.concatenate([step.deltas.ravel(), step.ms, step.logits])
    part, last, change = window.part + u, window.last, 0.0
    if ends_block:
        mean = part / min(block, float(window.length) + 1)  # the first block of a window may be shorter
        change = 0.0 if window.length < block else squared_fisher_norm(mixture, state, mean - last)
        part, last = np.zeros_like(u), mean
    first = np.asarray(elbo) if window.length == 0 else window.elbo_first
    gap = elbo - float(first)
    return Window(
        window.length + 1,
        window.steps + u,
        window.changes + change,
        last,
        window.elbo + elbo,
        first,
        window.elbo_squares + gap * gap,  # a power of floats would raise where this overflows
        window.means + state.means,
        window.roots + state.roots,
        window.log_weights + state.log_weights,
        part,
    )


def squared_fisher_norm(mixture: Mixture, state: MixtureState, u: Array) -> float:
    """The squared norm of a step by the joint Fisher matrix.

    2 |M|^2 stands for <M + M^T, M + M^T> / 2: they are equal for symmetric M; otherwise it is an upper bound.
    """
    pi = np.exp(state.log_weights)
    split = mixture.count * mixture.dim
    deltas, ms = u[:split].reshape(mixture.count, -1), u[split : split + mixture._cuts[-1]]
    rho = np.append(u[split + mixture._cuts[-1] :], 0.0)
    roots = [g.group._squared_local_norm(mixture._part(ms, k)) for k, g in enumerate(mixture.components)]
    of_weights = pi @ rho**2 - (pi @ rho) ** 2
    return float(pi @ (np.vecdot(deltas, deltas) + 2 * np.array(roots)) + of_weights)


def window_average(window: Window) -> MixtureState:
    """The parameters averaged over a window."""
    logs = window.log_weights / window.length
    return MixtureState(window.means / window.length, window.roots / window.length, logs - np.logaddexp.reduce(logs))


def window_summary(
    window: Window, mixture: Mixture, state: MixtureState, rate: float, block: int = 1
) -> WindowSummary:
    """The ELBO of a window, and the losses of signal and noise.

    With V = E|u - E u|^2, taken from successive differences so that a trend does not count: signal = |mean u|^2 / 2 and
    noise = rate V / 4 are what L has above its minimum if its curvature is about the Fisher matrix: the parameters then
    wander with E|theta|^2 = rate V / 2. Their average over n iterations costs V / (2 n). If changes are those of means
    over blocks, V is the block's length times their variance: the same for independent noise, and less where noise
    cancels within a block, as that of the batches of an epoch does.
    """
    n = float(window.length)
    spread = block * float(window.changes) / (2 * max(n / block - 1, 1))
    first = float(window.elbo_first)
    mean = float(window.elbo) / n
    variance = max(float(window.elbo_squares) / n - (mean - first) * (mean - first), 0.0) * n / max(n - 1, 1)
    if not math.isfinite(variance):
        variance = math.inf  # for values whose squares overflow
    signal = 0.5 * squared_fisher_norm(mixture, state, window.steps / n)
    return WindowSummary(mean, math.sqrt(variance / n), signal, rate * spread / 4, spread / (2 * n))


@dataclass(frozen=True)
class FitSchedule:
    """A constant rate while the steps make progress, halved whenever they are only noise, until the noise is small.

    Where an epoch has several batches, windows that are long enough consist of whole epochs, and noise is what remains
    of it in their means. The parameters then wander within an epoch, too, which bends their average; so a fit has
    converged only if its averages at two successive rates agree (`Fit` compares them).

    At a constant rate the parameters approach the optimum as (1 - rate)^t and then wander around it. So after each
    window: if the signal exceeds the noise, or the ELBO still rises, the fit is "traveling" and continues; else, if
    the noise costs less than `tol`, it has "converged"; else it is "noisy", and the rate is halved.

    Attributes
    ----------
    rate : float
        The first rate.
    tol : float
        The loss in nats below which noise is negligible.
    batches : int
        The number of batches in an epoch.
    """

    rate: float
    tol: float
    batches: int = 1

    def length(self, rate: float) -> int:
        """Length of a window at a rate, in iterations."""
        return math.ceil(MEMORIES / rate)

    def block(self, rate: float) -> int:
        """Iterations over which natural gradients are averaged before their noise is judged: one, or an epoch."""
        return self.batches if self.length(rate) >= EPOCHS * self.batches else 1

    def ends_epoch(self, number: int) -> bool:
        """Whether an iteration, by its number from 0, is the last of an epoch."""
        return (number + 1) % self.batches == 0

    def is_complete(self, window: Window, rate: float, number: int) -> bool:
        """Whether a window ends with an iteration: windows longer than an epoch end with an epoch."""
        length = self.length(rate)
        return float(window.length) >= length and (length < self.batches or self.ends_epoch(number))

    def verdict(self, found: WindowSummary, before: WindowSummary | None) -> Verdict:
        """Judge a window, given the one before it, which may have had a different rate."""
        if found.signal > max(found.noise, EXACT):
            return "traveling"
        if before is not None and found.elbo - before.elbo > SURE * math.hypot(found.stderr, before.stderr) + self.tol:
            return "traveling"
        return "converged" if found.noise_of_average <= self.tol else "noisy"


# ---- how long a single step may be ----------------------------------------------------------------------------------


def clipped_step(step: MixtureStep, mixture: Mixture, rate: float, reach: Array) -> MixtureStep:
    """The step u, shortened component by component if it is too long at this rate, means and roots separately.

    |rate M| is at most 1, beyond which h(-M) = I - M + M^2/2 grows again, and at most sqrt(2 rate); the lengths of
    rate delta and of rate M by the Fisher matrix are at most sqrt(rate dim / 4): at rate 1/2 that is the length of the
    step of the entropy alone, M = -I/2. With the square root of the rate a smaller rate still means shorter steps,
    however large the noise, and yet the share of steps that are shortened vanishes with it. Means may move `reach` (K,)
    times as far: see `next_reach`.
    """
    step = MixtureStep(_at_most(step.deltas, _LONG), _at_most(step.ms, _LONG), _at_most(step.logits, _LONG))
    longest, ms = _longest(mixture, rate), step.ms.copy()
    for k, gaussian in enumerate(mixture.components):
        part = mixture._part(ms, k)  # a view
        norm = math.sqrt(gaussian.group._squared_local_norm(part))  # |M|_F is never smaller than |M|_2
        norm = norm if norm <= 1 else min(norm, spectral_norm(gaussian.group, part))
        part /= max(1.0, norm / min(1 / rate, math.sqrt(2 / rate)))
        part /= max(1.0, math.sqrt(2 * gaussian.group._squared_local_norm(part)) / longest)
    deltas = step.deltas / np.maximum(1.0, np.linalg.norm(step.deltas, axis=1) / (reach * longest))[:, None]
    logits = step.logits / max(1.0, math.sqrt(rate) * np.abs(step.logits).max(initial=0.0))
    return MixtureStep(deltas, ms, logits)


def _at_most(numbers: Array, largest: float) -> Array:
    """The numbers, all divided by the same so that none is larger: their squares must not overflow."""
    return numbers / max(1.0, float(np.abs(numbers).max(initial=0.0)) / largest)


def next_reach(reach: Array, mixture: Mixture, rate: float, deltas: Array) -> Array:
    """How far the means may move in the next window, (K,), given the mean delta of each component in this one.

    It is doubled if the steps agreed and were close to the limit: otherwise a component that became narrow far from
    its optimum would crawl. If not, it is 1, as at the start.
    """
    lengths: Array = np.linalg.norm(deltas, axis=1)
    return np.where(lengths > reach * _longest(mixture, rate) / 2, np.minimum(2 * reach, WIDEST), 1.0)


def _longest(mixture: Mixture, rate: float) -> float:
    """The largest Fisher length of delta and of M, see `clipped_step`."""
    return math.sqrt(mixture.dim / (4 * rate))


def spectral_norm(group: Group, m: Array) -> float:
    """|M|_2 of a local vector, by the power method on M^T M."""
    rows = np.random.default_rng(0).standard_normal((3, group.dim))
    # local vectors are packed like elements, except for sums of Kronecker products
    alike = np.array_equal(group._local_identity(), group._identity())
    dense = None if alike else group._dense_local(m)
    size = 0.0
    for _ in range(POWERS):
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        image = group._apply(m, rows) if dense is None else rows @ dense.T
        size = float(np.linalg.norm(image, axis=1).max())
        rows = group._apply_transposed(m, image) if dense is None else image @ dense
    return size
