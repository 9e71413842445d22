"""A running fit: its parameters, rate and windows, and the best state so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.groups.linalg import SingularElementError
from esgroup.variational.iteration import ElboEstimate, VariationalObjective
from esgroup.variational.log_density import component_variances
from esgroup.variational.schedule import (
    SURE,
    FitSchedule,
    Window,
    WindowSummary,
    clipped_step,
    empty_window,
    extended_window,
    next_reach,
    window_average,
    window_summary,
)

MOST_FAILURES = 10  # iterations in a row without finite values
MOST_RETREATS = 8
GROWTH = 1e8  # growth of means or standard deviations beyond which a fit ends
UNBOUNDED = "the approximation grew without bound: logp may be unbounded or not integrable"
UNRESOLVED = "the approximation is narrower than the rounding error of its mean: move the origin of x close to the mean"
SINGULAR = "the approximation became singular: logp may be unbounded or not integrable"
NOT_FINITE = f"logp or its derivatives were not finite in {MOST_FAILURES} iterations in a row"
FALLING = "the ELBO fell repeatedly: the estimator may be too noisy; take more samples"


class BestWindow(NamedTuple):
    """The state in the middle of the window with the highest ELBO, or the initial state, and the ELBO of the window."""

    state: MixtureState
    elbo: float
    stderr: float


@dataclass
class Fit:
    """A running fit, the only mutable object. A callback of `fit_posterior` receives it.

    Attributes
    ----------
    objective : VariationalObjective
        The objective L = -ELBO, with the mixture, the target and the estimator.
    schedule : FitSchedule
        Decides how the rate changes and when the fit has converged.
    rng : numpy.random.Generator
        The source of all random numbers.
    state : MixtureState
        The current parameters.
    window : Window
        Sums over the iterations of the current window.
    rate : float
        The current step size.
    best : BestWindow
        The best window so far.
    nit : int
        The number of iterations so far.
    failures, skipped : int
        Iterations without finite values: currently in a row, and in total.
    retreats : int
        How often the fit returned to the best state.
    elbo, elbo_stderr : float
        The mean ELBO of the current window, and the standard error of the last complete one.
    last : WindowSummary or None
        Summary of the last complete window.
    averaged : MixtureState or None
        The parameters averaged over the last window, if its steps were noise.
    middle : MixtureState or None
        The state in the middle of the current window.
    traveling : bool
        Whether the last window made progress.
    converged : bool
        Whether the fit has converged.
    message : str
        Why the fit ended; empty while it runs.
    allowed : context manager
        The context in which interrupts are allowed.
    reach : ndarray, shape (K,)
        How far the mean of each component may move, see `next_reach`.
    first_scale : float
        The largest initial mean or standard deviation, in absolute value.
    batch_seed : int
        The seed of the batches of data, if there are any.
    """

    objective: VariationalObjective
    schedule: FitSchedule
    rng: np.random.Generator
    state: MixtureState = field(init=False)
    window: Window = field(init=False)
    rate: float = field(init=False)
    best: BestWindow = field(init=False)
    nit: int = 0
    failures: int = 0
    skipped: int = 0
    retreats: int = 0
    elbo: float = np.nan
    elbo_stderr: float = np.nan
    last: WindowSummary | None = None
    averaged: MixtureState | None = None
    middle: MixtureState | None = None
    traveling: bool = False
    converged: bool = False
    message: str = ""
    allowed: AbstractContextManager[None] = field(default_factory=nullcontext)
    reach: Array = field(init=False)
    first_scale: float = field(init=False)
    batch_seed: int = 0

    def __post_init__(self) -> None:
        mixture = self.objective.mixture
        self.state, self.rate = mixture.state(), self.schedule.rate
        self.window, self.best = empty_window(mixture, self.state), BestWindow(self.state, -np.inf, 0.0)
        if self.objective.target.takes_batches:
            self.batch_seed = int(self.rng.integers(2**32))
        self.reach = np.ones(mixture.count)
        self.first_scale = max(float(np.abs(self.state.means).max()), _widest(mixture, self.state))

    # ---- one iteration --------------------------------------------------------------------------------------------

    def iterate(self) -> None:
        """Make one step of all components and judge the window if it is complete; an interrupt undoes the step."""
        with self._all_or_nothing():
            try:
                self._try_step()
            except SingularElementError:
                self._retreat(SINGULAR)
            self.nit += 1

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore everything after an exception, including random numbers and counts."""
        counts = self.objective.target.counts
        own, random, counted = dict(vars(self)), self.rng.bit_generator.state, dict(vars(counts))
        try:
            yield
        except BaseException:
            vars(self).update(own)
            self.rng.bit_generator.state = random
            vars(counts).update(counted)
            raise

    def _try_step(self) -> None:
        with self.allowed:
            found = self.objective.iterate(self.state, self.rng, self.nit, self.batch_seed)
        if found is None:
            self.failures += 1
            self.skipped += 1
            if self.failures == MOST_FAILURES:
                self._retreat(NOT_FINITE)
            return
        self.failures = 0
        self._move(clipped_step(found.step, self.objective.mixture, self.rate, self.reach), found.elbo)

    def _move(self, step: MixtureStep, elbo: float) -> None:
        moved = self.objective.mixture.move(self.state, step.scaled(-self.rate))
        if not _is_usable(self.objective.mixture, moved):
            self.message = UNBOUNDED
            return
        self.state = moved
        if np.abs(moved.means).max() > GROWTH * self.first_scale:
            self.message = UNBOUNDED
        block = self.schedule.block(self.rate)
        ends_block = block == 1 or self.schedule.ends_epoch(self.nit)
        self.window = extended_window(self.window, self.objective.mixture, moved, step, elbo, block, ends_block)
        self.elbo = float(self.window.elbo / self.window.length)
        if self.window.length <= self.schedule.length(self.rate) / 2:
            self.middle = moved
        if self.schedule.is_complete(self.window, self.rate, self.nit):
            self._close_window()

    def _retreat(self, reason: str) -> None:
        """Return to the best state with a quarter of the rate; after too many retreats the fit ends."""
        self.retreats += 1
        self.failures = 0
        if self.retreats > MOST_RETREATS:
            self.message = reason
        self.state, self.last, self.averaged = self.best.state, None, None
        self.rate /= 4
        self.reach, self.traveling = np.ones_like(self.reach), False
        self.window = empty_window(self.objective.mixture, self.state)

    # ---- the end of a window ----------------------------------------------------------------------------------------

    def _close_window(self) -> None:
        mixture = self.objective.mixture
        found = window_summary(self.window, mixture, self.state, self.rate, self.schedule.block(self.rate))
        self.elbo, self.elbo_stderr = found.elbo, found.stderr
        if found.elbo > self.best.elbo:
            self.best = BestWindow(self.middle or self.state, found.elbo, found.stderr)
        gap = self.best.elbo - found.elbo  # more than noise can explain?
        if gap > SURE * math.hypot(found.stderr, self.best.stderr) + max(1.0, self.schedule.tol):
            self._retreat(FALLING)
            return
        if _widest(mixture, self.state) > GROWTH * self.first_scale:
            self.message = UNBOUNDED
            return
        if _is_unresolved(mixture, self.state):
            self.message = UNRESOLVED
            return
        verdict = self.schedule.verdict(found, self.last)
        self.traveling = verdict == "traveling"
        deltas = (self.window.steps[: self.state.means.size] / self.window.length).reshape(self.state.means.shape)
        self.reach = next_reach(self.reach, mixture, self.rate, deltas)
        before = self.averaged
        self.averaged = None if verdict == "traveling" or found.noise < 1e-12 else window_average(self.window)
        if verdict == "converged" and self.objective.target.takes_batches and not self._agrees_with(before):
            verdict = "noisy"
        if verdict == "noisy":
            self.rate /= 2
        elif verdict == "converged":
            self.converged = True
            self.message = f"the loss due to noise is below tol = {self.schedule.tol:g}"
        self.last, self.window = found, empty_window(mixture, self.state)

    def _agrees_with(self, before: MixtureState | None) -> bool:
        """Whether the average agrees with that of the window before, up to a loss of tol.

        The rate was twice as large before, and losses fall with the rate. If they are independent noise, the difference
        is the sum of both, at least twice the current loss. If they are a bias because the parameters wander, which
        falls at least as fast as the rate, the difference is at least the current loss.
        """
        if before is None or self.averaged is None:
            return self.averaged is None  # without noise there is nothing to compare
        mixture = self.objective.mixture
        pairs = zip(mixture.component_states(before), mixture.component_states(self.averaged), strict=True)
        gaps = [gaussian.kl(*pair) for gaussian, pair in zip(mixture.components, pairs, strict=True)]
        return float(np.exp(self.averaged.log_weights) @ gaps) <= self.schedule.tol

    def refine(self) -> None:
        """Continue a fit that converged with a larger tol: noise that was acceptable then may be too large now."""
        self.converged, self.message = False, ""
        if self.last is not None and self.last.noise_of_average > self.schedule.tol:
            self.rate /= 2

    # ---- the result -------------------------------------------------------------------------------------------------

    def result(self, draws: int) -> tuple[MixtureState, ElboEstimate]:
        """The best of the candidates, compared with the same random numbers.

        Parameters
        ----------
        draws : int
            Number of values of logp for each candidate.

        Returns
        -------
        state : MixtureState
            The candidate with the highest ELBO.
        estimate : ElboEstimate
            Its ELBO.
        """
        candidates = self._candidates()
        with self._all_or_nothing(), self.allowed:
            seed = int(self.rng.integers(2**32))
            found = [self.objective.elbo(state, draws, np.random.default_rng(seed)) for state in candidates]
        values = [estimate.elbo for estimate in found]
        best = int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
        return candidates[best], found[best]

    def _candidates(self) -> list[MixtureState]:
        """The current state, the average of the last window and the best window, without duplicates."""
        others = [self.averaged, self._average_so_far(), None if self.converged else self.best.state]
        candidates = [self.state]
        for state in others:
            if state is not None and not any(_are_equal(state, other) for other in candidates):
                candidates.append(state)
        return candidates

    def _average_so_far(self) -> MixtureState | None:
        """The average over an incomplete window, if it is long enough and the window before it was noise."""
        long_enough = self.window.length >= self.schedule.length(self.rate) / 4
        return window_average(self.window) if self.averaged is not None and long_enough else None


def _are_equal(state: MixtureState, other: MixtureState) -> bool:
    return all(np.array_equal(one, two) for one, two in zip(state, other, strict=True))


def _widest(mixture: Mixture, state: MixtureState) -> float:
    """The largest standard deviation of a variable under a component."""
    return math.sqrt(component_variances(mixture, state).max())


def _is_unresolved(mixture: Mixture, state: MixtureState) -> bool:
    """Whether a standard deviation of a component is lost in the rounding of its mean: its samples are all equal."""
    return bool((state.means + np.sqrt(component_variances(mixture, state)) == state.means).any())


def _is_usable(mixture: Mixture, state: MixtureState) -> bool:
    """Whether all components have means below 1e100 and, on average over their axes, deviations of 1e-30 to 1e30."""
    if not (np.abs(state.means) < 1e100).all():
        return False
    logs = [g._half_log_det(s.root) for g, s in zip(mixture.components, mixture.component_states(state), strict=True)]
    return bool((np.abs(logs) < mixture.dim * math.log(1e30)).all())
