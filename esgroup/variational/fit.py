"""A fit as it goes: the parameters, the rate, the windows, the best of what was seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.groups.linalg import SingularElementError
from esgroup.variational.iteration import Estimate, Objective
from esgroup.variational.log_density import variances
from esgroup.variational.safeguards import clipped, wider
from esgroup.variational.schedule import SURE, Schedule, Summary, Window, average, empty_window, extended, summary

MOST_FAILURES = 10  # iterations in a row without a finite answer
MOST_RETREATS = 8
GROWTH = 1e8  # of means or standard deviations, beyond which a fit is not worth going on
UNBOUNDED = "the approximation has grown without limits: logp may be unbounded, or not integrable"


class Best(NamedTuple):
    """The middle of the window with the highest ELBO, or the start: where the ELBO is about that of the window."""

    state: MixtureState
    elbo: float
    stderr: float


@dataclass
class Fit:
    """The one object that changes. `message` is why it ended, empty as long as it goes on."""

    objective: Objective
    schedule: Schedule
    rng: np.random.Generator
    state: MixtureState
    window: Window
    rate: float
    best: Best
    nit: int = 0
    failures: int = 0  # in a row
    skipped: int = 0  # iterations without a finite answer, in all
    retreats: int = 0
    elbo: float = np.nan
    elbo_stderr: float = np.nan
    last: Summary | None = None
    averaged: MixtureState | None = None
    middle: MixtureState | None = None  # of the present window
    travelling: bool = False  # the verdict of the last window
    converged: bool = False
    message: str = ""
    allowed: Callable[[], AbstractContextManager[None]] = nullcontext  # within it an interrupt may come
    reach: Array = field(init=False)  # of the means of every component, see `safeguards.wider`
    first_scale: float = field(init=False)

    def __post_init__(self) -> None:
        self.reach = np.ones(self.objective.mixture.count)
        self.first_scale = max(float(np.abs(self.state.means).max()), _widest(self.objective.mixture, self.state))

    def iterate(self) -> None:
        """One step of all components, and what follows from it; as before if it is interrupted."""
        with self._whole_or_nothing():
            try:
                self._try()
            except SingularElementError:
                self._retreat("the approximation has become singular: logp may be unbounded, or not integrable")
            self.nit += 1

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """After an exception everything is as it was, random numbers and counts too."""
        counts = self.objective.target.counts
        own, random, counted = dict(vars(self)), self.rng.bit_generator.state, dict(vars(counts))
        try:
            yield
        except BaseException:
            vars(self).update(own)
            self.rng.bit_generator.state = random
            vars(counts).update(counted)
            raise

    def _try(self) -> None:
        with self.allowed():
            found = self.objective.iterate(self.state, self.rng)
        if found is None:
            self.failures += 1
            self.skipped += 1
            if self.failures == MOST_FAILURES:
                self._retreat(f"logp or its derivatives were not finite in {MOST_FAILURES} iterations in a row")
            return
        self.failures = 0
        self._move(clipped(found.step, self.objective.mixture, self.rate, self.reach), found.elbo)

    def _move(self, step: MixtureStep, elbo: float) -> None:
        moved = self.objective.mixture.move(self.state, step.scaled(-self.rate))
        if not _is_usable(self.objective.mixture, moved):
            self.message = UNBOUNDED
            return
        self.state = moved
        if np.abs(moved.means).max() > GROWTH * self.first_scale:
            self.message = UNBOUNDED
        self.window = extended(self.window, self.objective.mixture, moved, step, elbo)
        self.elbo = float(self.window.elbo / self.window.length)
        if self.window.length <= self.schedule.length(self.rate) / 2:
            self.middle = moved
        if self.window.length >= self.schedule.length(self.rate):
            self._close_window()

    def _retreat(self, reason: str) -> None:
        """Go back to the best state with a quarter of the rate; too often is the end."""
        self.retreats += 1
        self.failures = 0
        if self.retreats > MOST_RETREATS:
            self.message = reason
        self.state, self.last, self.averaged = self.best.state, None, None
        self.rate /= 4
        self.reach, self.travelling = np.ones_like(self.reach), False
        self.window = empty_window(self.objective.mixture, self.state)

    def _close_window(self) -> None:
        mixture = self.objective.mixture
        found = summary(self.window, mixture, self.state, self.rate)
        self.elbo, self.elbo_stderr = found.elbo, found.stderr
        if found.elbo > self.best.elbo:
            self.best = Best(self.middle or self.state, found.elbo, found.stderr)
        if self._has_fallen(found):
            self._retreat("the ELBO fell again and again: the estimator may be too noisy, take more samples")
            return
        if _widest(mixture, self.state) > GROWTH * self.first_scale:
            self.message = UNBOUNDED
            return
        verdict = self.schedule.verdict(found, self.last)
        self.travelling = verdict == "travelling"
        self.reach = wider(self.reach, mixture, self.rate, self._mean_deltas())
        self.averaged = None if verdict == "travelling" or found.noise < 1e-12 else average(self.window)
        if verdict == "noisy":
            self.rate /= 2
        elif verdict == "converged":
            self.converged = True
            self.message = f"what is left of the noise costs less than tol = {self.schedule.tol:g}"
        self.last, self.window = found, empty_window(mixture, self.state)

    def _mean_deltas(self) -> Array:
        """Of every component, over the window."""
        shape = self.state.means.shape
        return (self.window.steps[: shape[0] * shape[1]] / self.window.length).reshape(shape)

    def _has_fallen(self, found: Summary) -> bool:
        """Whether the ELBO is below the best by more than noise can explain."""
        gap = self.best.elbo - found.elbo
        return gap > SURE * math.hypot(found.stderr, self.best.stderr) + max(1.0, self.schedule.tol)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def result(self, draws: int) -> tuple[MixtureState, Estimate]:
        """The best of the candidates by the same random numbers, and its ELBO: that many values of logp for each."""
        candidates = self._candidates()
        with self._whole_or_nothing(), self.allowed():
            seed = int(self.rng.integers(2**32))
            found = [self.objective.elbo(state, draws, np.random.default_rng(seed)) for state in candidates]
        values = [estimate.elbo for estimate in found]
        best = int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
        return candidates[best], found[best]

    def _candidates(self) -> list[MixtureState]:
        """Where it is, the average of the last window, the best window; those that differ."""
        others = [self.averaged, self._average_so_far(), None if self.converged else self.best.state]
        candidates = [self.state]
        for state in others:
            if state is not None and not any(_are_equal(state, other) for other in candidates):
                candidates.append(state)
        return candidates

    def _average_so_far(self) -> MixtureState | None:
        """Of a window that was cut short, if the one before it was noise."""
        long_enough = self.window.length >= self.schedule.length(self.rate) / 4
        return average(self.window) if self.averaged is not None and long_enough else None


def _are_equal(state: MixtureState, other: MixtureState) -> bool:
    return all(np.array_equal(one, two) for one, two in zip(state, other, strict=True))


def _widest(mixture: Mixture, state: MixtureState) -> float:
    """The largest standard deviation of a coordinate under a component."""
    members = zip(mixture.components, mixture.component_states(state), strict=True)
    return math.sqrt(max(float(variances(gaussian, own).max()) for gaussian, own in members))


def _is_usable(mixture: Mixture, state: MixtureState) -> bool:
    """Whether a component has means below 1e100 and, on average over its axes, deviations from 1e-30 to 1e30."""
    if not (np.abs(state.means) < 1e100).all():
        return False
    logs = [g._half_log_det(s.root) for g, s in zip(mixture.components, mixture.component_states(state), strict=True)]
    return bool((np.abs(logs) < mixture.dim * math.log(1e30)).all())
