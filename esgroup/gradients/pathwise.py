"""Natural gradients from gradients alone, along the paths of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.gradients.estimator import Estimator, entropy_part, finite
from esgroup.gradients.function import Gradients, Values


@dataclass(frozen=True)
class Pathwise(Estimator[Gradients]):
    """g_Sigma = E[K + K^T] / 4 with K = Sigma^-1 (x - mean) grad f^T (paper, eq. rep_grad_cov); g_mean = E grad f.

    In local coordinates 2 A^T g_Sigma A = E[(z y^T + y z^T) / 2] with y = A^T grad f (y = B^-1 grad f), so nothing is
    solved. From two samples on, y has the mean of the other samples subtracted where it multiplies z: they are
    independent of z, so the estimate stays unbiased and a slope that all samples share adds no noise. samples=0 is the
    gradient at the mean: there z = 0, so the square root moves by the entropy only.
    """

    samples: int = 1
    needs: ClassVar[type[Values]] = Gradients

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "samples")

    def step(
        self, family: Gaussian, state: State, function: Gradients, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        m, state = entropy_part(family, entropy_weight), family._checked(state)
        z, x = self._samples(family, state, rng)
        y = family._pull(state.root, finite("jac(x)", function.gradients(x)))
        return Step(y.mean(axis=0), m + family._sign * _curvature(family, z, y))

    def _samples(self, family: Gaussian, state: State, rng: np.random.Generator) -> tuple[Array, Array]:
        if self.samples == 0:
            z = np.zeros((1, family.dim))
            return z, family.points(state, z).x
        drawn = family.sample(state, self.samples, rng)
        return drawn.z, drawn.x


def _curvature(family: Gaussian, z: Array, y: Array) -> Array:
    """C (.) kappa of the mean of z_i (y_i - mean of the other y)^T, made symmetric."""
    n = len(z)
    if n > 1:
        y = (y - y.mean(axis=0)) * (n / (n - 1))
    return family.group.project_pairs(z, y, np.full(n, 1.0 / n))
