"""What a fit found: a distribution in place of the posterior."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.gradients.function import Counts
from esgroup.variational.iteration import Objective
from esgroup.variational.log_density import variances


@dataclass(frozen=True, eq=False)
class Posterior:
    """q, the Gaussian or the mixture of Gaussians with the highest ELBO that was found.

    ELBO = E_q[logp] - gamma E_q[log q]; with gamma = 1 it is log Z - KL(q || posterior), logp being the logarithm of Z
    times the posterior's density. `elbo` is estimated from draws that the iterations did not use, `elbo_stderr` is its
    standard error. `distribution` and `state` are the family and its parameters, `message` says why the fit ended,
    `nit` counts iterations, and `counts` all evaluations of logp and its derivatives, those for `elbo` included.
    """

    distribution: Gaussian | Mixture
    state: State | MixtureState
    elbo: float
    elbo_stderr: float
    converged: bool
    message: str
    nit: int
    counts: Counts
    _objective: Objective = field(repr=False)
    _mixture_state: MixtureState = field(repr=False)

    @property
    def nfev(self) -> int:
        """How often logp was evaluated."""
        return self.counts.nfev

    @property
    def njev(self) -> int:
        """How often its gradient was evaluated."""
        return self.counts.njev

    @property
    def nhvp(self) -> int:
        """How many products with its Hessian were evaluated."""
        return self.counts.nhvp

    @property
    def mean(self) -> Array:
        """E_q[x]."""
        return self._mixture.mean(self._mixture_state)

    def covariance(self) -> Array:
        """The covariance of q as a (dim, dim) matrix."""
        return self._mixture.dense_covariance(self._mixture_state)

    @property
    def stds(self) -> Array:
        """The standard deviations of the coordinates under q, without a dense matrix."""
        pi, gaps = self._mixture.mixing_weights(self._mixture_state), self._mixture_state.means - self.mean
        std: Array = np.sqrt(pi @ (self._component_variances() + gaps**2))
        return std

    def sample(self, n: int, rng: Any = None) -> Array:
        """n draws of q as rows."""
        return self._mixture.sample(self._mixture_state, n, np.random.default_rng(rng)).x

    def log_density(self, x: Any) -> Array:
        """log q(x) of a point or of rows of points."""
        return self._mixture.log_density(self._mixture_state, x)

    def elbo_estimate(self, n: int, rng: Any = None) -> tuple[float, float]:
        """The ELBO from n draws of q, and its standard error; evaluates logp n times."""
        n = checks.whole_number("n", n, least=2)
        found = self._objective.elbo(self._mixture_state, n, np.random.default_rng(rng))
        return found.elbo, found.stderr

    def marginal_density(self, coordinate: int, x: Any) -> Array:
        """The density of one coordinate under q at numbers x."""
        coordinate = checks.whole_number("coordinate", coordinate, most=self._mixture.dim - 1)
        x = checks.real_array("x", x, (None,))[:, None]
        stds = np.sqrt(self._component_variances()[:, coordinate])
        z = (x - self._mixture_state.means[:, coordinate]) / stds
        density: Array = (np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * stds)) @ np.exp(self._mixture_state.log_weights)
        return density

    def plot_marginals(self, path: str | PathLike[str], coordinates: Any = None, samples: Any = None) -> Path:
        """A figure of the densities of some coordinates (the first nine), as .png, .svg or .pdf.

        `samples` are draws from another source as rows, of all coordinates; their histograms are drawn behind. Needs
        matplotlib, which comes with the extra "plot".
        """
        from esgroup.variational.marginals import plot_marginals

        return plot_marginals(self, path, coordinates, samples)

    @property
    def _mixture(self) -> Mixture:
        return self._objective.mixture

    def _component_variances(self) -> Array:
        states = self._mixture.component_states(self._mixture_state)
        return np.array([variances(g, s) for g, s in zip(self._mixture.components, states, strict=True)])
