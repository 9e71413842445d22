"""One natural gradient of L = E_q[f + gamma log q] for all components, with an estimate of -L."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.gradients.estimators import Estimator
from esgroup.variational.log_density import LogDensity
from esgroup.variational.questions import Questions, asking
from esgroup.variational.target import Places, Target, TargetAt

LOOKS = 10  # draws of a component for the ELBO if the estimator itself draws none


class Iteration(NamedTuple):
    """The natural gradient of L in local coordinates, and an unbiased estimate of -L."""

    step: MixtureStep
    elbo: float


class Estimate(NamedTuple):
    """An estimate of -L with its standard error, and at how many of the draws logp was not finite."""

    elbo: float
    stderr: float
    failed: int


@dataclass(frozen=True, eq=False)
class Objective:
    """L(q) = E_q[f] + gamma E_q[log q].

    For the parameters of component k its natural gradient, by the joint Fisher matrix, is that of E_{q_k}[l] with
    l = f + gamma log q held fixed: the factor pi_k of both cancels, and E_q of the score is zero. For the logits it is
    E_{q_k}[l] - E_{q_K}[l] (paper, appendix "Finite Mixture of Gaussians"). log q is taken at the samples rather than
    in expectation: where q is the posterior, l is constant, and the estimate has no noise left (Roeder, Wu, Duvenaud:
    Sticking the landing, 2017).
    """

    mixture: Mixture
    target: Target
    estimator: Estimator[Any]
    gamma: float

    def iterate(self, state: MixtureState, rng: np.random.Generator) -> Iteration | None:
        """None if something that was asked is not finite; random numbers are spent all the same."""
        questions = Questions(self.mixture.dim)
        function = asking(questions, self.target)
        members = list(zip(self.mixture.components, self.mixture.component_states(state), strict=True))
        before = rng.bit_generator.state
        looks = [self._ask(questions, function, gaussian, own, rng) for gaussian, own in members]
        after = rng.bit_generator.state
        q = LogDensity(self.mixture, state, questions.points)
        f = TargetAt(self.target, q.x)
        finite = questions.answer(f, q, self.gamma)
        means = [self._values(f, q, places).mean() for places in looks]  # E_{q_k}[l]
        if not finite or not np.isfinite(means).all():
            return None
        rng.bit_generator.state = before
        steps = []
        for (gaussian, own), places in zip(members, looks, strict=True):
            steps.append(self.estimator.step(gaussian, own, function, rng))
            self._skip(questions, gaussian, own, len(places), rng)
        rng.bit_generator.state = after
        return Iteration(self._joined(steps, np.array(means)), -float(np.exp(state.log_weights) @ means))

    def _ask(
        self, questions: Questions, function: Any, gaussian: Gaussian, state: State, rng: np.random.Generator
    ) -> Places:
        """The questions of one component, and the numbers of the points that are draws of it."""
        begin = questions.count
        self.estimator.step(gaussian, state, function, rng)
        if self._draws:
            return np.arange(begin, questions.count)
        begin = questions.count
        questions.ask("values", "both", gaussian.sample(state, LOOKS, rng).x)
        return np.arange(begin, questions.count)

    def _skip(self, questions: Questions, gaussian: Gaussian, state: State, n: int, rng: np.random.Generator) -> None:
        """Pass over the draws that `_ask` has added."""
        if not self._draws:
            questions.ask("values", "both", gaussian.sample(state, n, rng).x)

    @property
    def _draws(self) -> bool:
        return getattr(self.estimator, "samples", None) != 0

    def _values(self, f: TargetAt, q: LogDensity, places: Places) -> Array:
        return f.values(places) + self.gamma * q.values(places)

    def _joined(self, steps: list[Step], means: Array) -> MixtureStep:
        logits = (means[:-1] - means[-1]) * self.mixture.learn_weights
        return MixtureStep(np.array([s.delta for s in steps]), np.concatenate([s.m for s in steps]), logits)

    # ---- the ELBO alone ---------------------------------------------------------------------------------------------

    def elbo(self, state: MixtureState, n: int, rng: np.random.Generator) -> Estimate:
        """-L from n draws, and its standard error."""
        x = self.mixture.sample(state, n, rng).x
        values = -(self.target.function.values(x) + self.gamma * self.mixture.log_density(state, x))
        failed = n - int(np.isfinite(values).sum())
        with np.errstate(invalid="ignore", over="ignore"):  # of values that are not finite
            return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)), failed)
