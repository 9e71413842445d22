"""A fit as it goes: the parameters, the rate, the windows, the best of what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.groups.linalg import SingularElementError
from esgroup.variational.iteration import Objective
from esgroup.variational.safeguards import clipped
from esgroup.variational.schedule import SURE, Schedule, Summary, Window, average, empty_window, extended, summary

MOST_FAILURES = 10  # iterations in a row without a finite answer
MOST_RETREATS = 8
JUDGES = 1000  # draws by which states are compared in the end


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
    failures: int = 0
    retreats: int = 0
    elbo: float = np.nan
    elbo_stderr: float = np.nan
    last: Summary | None = None
    averaged: MixtureState | None = None
    middle: MixtureState | None = None  # of the present window
    converged: bool = False
    message: str = ""

    def iterate(self) -> None:
        """One step of all components, and what follows from it; as before if it is interrupted."""
        before = self.rng.bit_generator.state
        try:
            self._try()
        except SingularElementError:
            self._retreat("the approximation has become singular: logp may be unbounded, or not integrable")
        except BaseException:
            self.rng.bit_generator.state = before
            raise
        self.nit += 1

    def _try(self) -> None:
        found = self.objective.iterate(self.state, self.rng)
        if found is None:
            self.failures += 1
            if self.failures == MOST_FAILURES:
                self._retreat(f"logp or its derivatives were not finite in {MOST_FAILURES} iterations in a row")
            return
        self.failures = 0
        self._move(clipped(found.step, self.objective.mixture, self.rate), found.elbo)

    def _move(self, step: MixtureStep, elbo: float) -> None:
        moved = self.objective.mixture.move(self.state, step.scaled(-self.rate))
        if not _is_usable(self.objective.mixture, moved):
            self.message = "the approximation has no limits: logp is unbounded, or not integrable"
            return
        self.state = moved
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
        verdict = self.schedule.verdict(found, self.last)
        self.averaged = None if verdict == "travelling" or found.noise < 1e-12 else average(self.window)
        if verdict == "noisy":
            self.rate /= 2
        elif verdict == "converged":
            self.converged = True
            self.message = f"what is left of the noise costs less than tol = {self.schedule.tol:g}"
        self.last, self.window = found, empty_window(mixture, self.state)

    def _has_fallen(self, found: Summary) -> bool:
        """Whether the ELBO is below the best by more than noise can explain."""
        gap = self.best.elbo - found.elbo
        return gap > SURE * math.hypot(found.stderr, self.best.stderr) + max(1.0, self.schedule.tol)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def result(self) -> MixtureState:
        """The best of: where it is, the average of the last window, the best window; by the same random numbers."""
        others = [self.averaged, self._average_so_far(), None if self.converged else self.best.state]
        candidates = [self.state] + [state for state in others if state is not None]
        if len(candidates) == 1:
            return self.state
        seed = int(self.rng.integers(2**32))
        values = [self.objective.elbo(state, JUDGES, np.random.default_rng(seed))[0] for state in candidates]
        return candidates[int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))]

    def _average_so_far(self) -> MixtureState | None:
        """Of a window that was cut short, if the one before it was noise."""
        long_enough = self.window.length >= self.schedule.length(self.rate) / 4
        return average(self.window) if self.averaged is not None and long_enough else None


def _is_usable(mixture: Mixture, state: MixtureState) -> bool:
    """Whether a component has means below 1e100 and, on average over its axes, deviations from 1e-30 to 1e30."""
    if not (np.abs(state.means) < 1e100).all():
        return False
    logs = [g._half_log_det(s.root) for g, s in zip(mixture.components, mixture.component_states(state), strict=True)]
    return bool((np.abs(logs) < mixture.dim * math.log(1e30)).all())
