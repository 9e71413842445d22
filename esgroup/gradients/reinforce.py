"""Natural gradients from values alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from esgroup import checks
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.gradients.estimator import Estimator, entropy_part, finite
from esgroup.gradients.function import Values


@dataclass(frozen=True)
class Reinforce(Estimator[Values]):
    """E[f score] (paper, eq. gauss_ex_grad), with the mean of the other values subtracted from each: unbiased.

    With w_i = (f_i - mean of the other f) / n: delta = sum w_i z_i, M = +-C (.) kappa(sum w_i (z_i z_i^T - I)).
    None for `samples` is 4 + floor(3 ln dim), the usual population of a search. A value alone says nothing of a
    direction, so there is no samples=0 and there must be two of them.
    """

    samples: int | None = None
    needs: ClassVar[type[Values]] = Values

    def __post_init__(self) -> None:
        if self.samples is not None:
            checks.store_whole_number(self, "samples", least=2)

    def step(
        self, family: Gaussian, state: State, function: Values, rng: np.random.Generator, entropy_weight: float = 0.0
    ) -> Step:
        self.check(function, family.dim)
        m = entropy_part(family, entropy_weight)
        n = 4 + math.floor(3 * math.log(family.dim)) if self.samples is None else self.samples
        drawn = family.sample(state, n, rng)
        f = finite("fun(x)", function.values(drawn.x))
        step = family.natural_score(drawn.z, (f - f.mean()) / (n - 1))
        return step._replace(m=step.m + m)
