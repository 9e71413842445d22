"""The search update: natural gradients in local coordinates, with the devices of evolution strategies beside them.

With x = mu + sigma D A z, A in a group, D diagonal, z ~ N(0, I), ranked by their values, and weights u, w by rank
(rates.py), one generation is

    delta = sum_i u_i z_i,                          mu <- mu + sigma D A delta
    p_s   <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) delta
    sigma <- sigma exp((c_s / d_s) (|p_s| / chi - 1))                                  step size, exponent at most 1
    p_c   <- (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_eff) delta                  evolution path
    M     =  C (.) kappa(c_1 (p_c p_c^T - I) + c_mu sum_i w_i (z_i z_i^T - I))         natural gradient of the group
    A     <- A h(M)

where the z_i z_i^T of negative w_i are scaled to |z_i|^2 = n, c_1's identity is reduced while h_sigma = 0, and M is
scaled down when a bound on its largest entry, max_j (c_1 p_cj^2 + c_mu sum_i |w_i| z_ij^2), exceeds 1. Both paths live
in local coordinates, so that a group enters through its projection and its degrees of freedom alone. The full group is
CMA-ES to first order (with p_s for p_c: MA-ES, Beyer and Sendhoff 2017), the diagonal one sep-CMA-ES.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.groups.linalg import SingularElementError
from esgroup.kernels import search as kernels
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.decoding import Decoding, DecodingStep
from esgroup.strategies.recombination import Constants, Cumulative, Recombination
from esgroup.strategies.sampling import Sampling

SIGMA, FADE, SHIFT, DAMPED, CLIP, LOG_STEP, AGE = range(7)


class SearchState(NamedTuple):
    """All that the next generation needs; the arrays belong to the search and change in place."""

    mean: Array
    scale: Array  # the diagonal of D
    root: Array  # the packed A
    path_s: Array
    path_c: Array
    scalars: Array  # sigma, (1 - c_s)^(2 t), then what the last generation reported, and its distance to a refresh
    inverse: Array  # the packed A^-1 where the group carries it along, else empty
    fisher: Array  # of log D, else empty
    rates: Array  # of the adaptation of learning rates, else empty: rates and averages of squared steps
    average_delta: Array
    average_m: Array


class Generation(NamedTuple):
    """Samples in local coordinates z and their images y = A z; one more row, the last, is for the path."""

    z: Array
    y: Array

    @classmethod
    def empty(cls, n: int, dim: int) -> Generation:
        return cls(np.empty((n + 1, dim)), np.empty((n + 1, dim)))


@dataclass(frozen=True, eq=False)
class Evolution:
    """One rule for all groups; decoding and adaptation may be left out."""

    group: Group
    recombination: Recombination = field(default_factory=Cumulative)
    decoding: Decoding | None = None
    adaptation: RateAdaptation | None = None
    sampling: Sampling = field(default_factory=Sampling)
    _constants: dict[int, Constants] = field(default_factory=dict, repr=False)

    @property
    def dim(self) -> int:
        return self.group.dim

    def constants(self, n: int) -> Constants:
        """Weights and rates for n values in a generation."""
        found = self._constants.get(n)
        if found is None:
            found = self._constants[n] = self.recombination.constants(n, self.dim, self.group.dof, self.group.gathered)
        return found

    # ---- state --------------------------------------------------------------------------------------------------

    def shapes(self) -> dict[str, int]:
        """The lengths of the arrays of a state."""
        dim, size = self.dim, self.group.size
        decoded, adapted = self.decoding is not None, self.adaptation is not None
        carried = decoded and self.group.carries_inverse
        return {
            "mean": dim,
            "scale": dim,
            "root": size,
            "path_s": dim,
            "path_c": dim,
            "scalars": 7,
            "inverse": size * carried,
            "fisher": dim * decoded,
            "rates": 4 * adapted,
            "average_delta": dim * adapted,
            "average_m": size * adapted,
        }

    def start(self, mean: Array, steps: Array, correlation: Array | None = None) -> SearchState:
        """The state with a mean, standard deviations, and a correlation matrix as far as the group can hold it."""
        group = self.group
        root = group._identity() if correlation is None else group.from_covariance(correlation)
        scalars = np.zeros(7)
        scalars[SIGMA], scalars[FADE] = math.exp(np.log(steps).mean()), 1.0
        state = SearchState(**{name: np.zeros(size) for name, size in self.shapes().items()})
        state.mean[:], state.root[:], state.scalars[:] = mean, root, scalars
        state.scale[:] = steps / scalars[SIGMA]
        if self.adaptation is not None:
            state.rates[:2] = 1.0
        self.refresh(state)
        return state

    def variances(self, state: SearchState) -> Array:
        """The diagonal of sigma^2 D A A^T D."""
        scales: Array = state.scalars[SIGMA] * state.scale
        return self.group._squared_row_norms(state.root) * scales**2

    def limit_steps(self, state: SearchState, least: Array | None, most: Array | None) -> None:
        """Bring standard deviations that are out of their limits back to them."""
        stds = np.sqrt(self.variances(state))
        state.scale[:] *= np.clip(stds, least, most) / stds

    def leave_plateau(self, state: SearchState, n: int) -> None:
        """sigma <- sigma exp(0.2 + c_s / d_s), for a generation most of whose values are equal (tutorial, B.3)."""
        state.scalars[SIGMA] *= math.exp(0.2 + float(self.constants(n).numbers[1]))

    def axis_ratio(self, state: SearchState) -> float:
        """Longest to shortest axis of sigma D A; for more than 100 coordinates the ratio of standard deviations."""
        if self.dim <= 100:
            return float(np.linalg.cond(state.scale[:, None] * self.group._dense(state.root)))
        variances = self.variances(state)
        return math.sqrt(variances.max() / variances.min())

    def condition(self, state: SearchState) -> float:
        """Condition number of A A^T, or tr(C) tr(C^-1) / n^2, which is not larger, for more than 1000 coordinates."""
        inverse = state.inverse if len(state.inverse) else self.group._inverse(state.root)
        bound = self.group._squared_norm(state.root) * self.group._squared_norm(inverse)
        if self.dim > 1000:
            return bound / self.dim**2
        return bound if bound < 1e12 else float(np.linalg.cond(self.group._dense(state.root))) ** 2

    def refresh(self, state: SearchState) -> None:
        """Set sigma to the geometric mean of the standard deviations, A and D accordingly; renew what is derived."""
        group, scalars = self.group, state.scalars
        scalars[AGE] = 0.0
        try:
            inverse = group._inverse(state.root) if self.decoding is not None else None
        except SingularElementError:
            inverse = self._forget_correlations(state)
        norms = np.sqrt(group._squared_row_norms(state.root))
        rows, columns = _geometric_mean(norms), _geometric_mean(state.scale)
        state.root[:] = group._scale(state.root, 1 / rows)
        state.scale[:] /= columns
        scalars[SIGMA] *= rows * columns
        if inverse is not None and self.decoding is not None:
            inverse = group._scale(inverse, rows)
            if group.carries_inverse:
                state.inverse[:] = inverse
            self.decoding.refresh(group, state.root, inverse, state.fisher)

    def _forget_correlations(self, state: SearchState) -> Array:
        """A <- I with the same standard deviations: where A is singular to rounding there is no other way on."""
        state.scale[:] *= np.sqrt(self.group._squared_row_norms(state.root))
        state.root[:] = self.group._identity()
        state.path_c[:] = 0.0
        return state.root.copy()

    # ---- samples ------------------------------------------------------------------------------------------------

    def sample(self, state: SearchState, n: int, rng: np.random.Generator, generation: Generation, x: Array) -> None:
        """Fill a generation and its points x = mu + sigma D A z."""
        self.sampling.fill(generation.z, n, rng)
        self.place(state, generation, x)

    def place(self, state: SearchState, generation: Generation, x: Array) -> None:
        """Complete a generation whose z is given: the path as its last row, images, points."""
        z, y = generation
        z[-1] = state.path_c
        self.group._place(state.root, z, state.mean, state.scalars[SIGMA], state.scale, y, x)

    def local(self, state: SearchState, x: Array) -> Array:
        """z with x = mu + sigma D A z for any points."""
        white = (x - state.mean) / (state.scalars[SIGMA] * state.scale)
        return self.group._solve(state.root, white)

    # ---- update -------------------------------------------------------------------------------------------------

    def update(self, state: SearchState, generation: Generation, order: NDArray[np.int64]) -> None:
        """Move the state by one generation, whose samples `order` lists from best to worst."""
        if self.adaptation is not None:
            self._update_adapted(state, generation, order, self.adaptation)
            return
        constants, scalars = self.constants(len(order)), state.scalars
        weights = self._evolve(state, generation, order, constants, constants.numbers)
        z, y = generation
        _, _, shift, damped, clip, _, age = scalars.tolist()  # quicker than one by one
        if self.decoding is not None:
            root, inverse, scale = state.root, state.inverse, state.scale
            step = _decoding_step(constants, damped, clip, 1.0)
            self.decoding.move(self.group, root, inverse, z, y, weights, shift, state.fisher, scale, step)
        else:
            self.group._product_h_samples(state.root, z, weights, shift, y, state.root)
        self._grow_old(state, age + 1.0)

    def _evolve(
        self, state: SearchState, generation: Generation, order: NDArray[np.int64], constants: Constants, numbers: Array
    ) -> Array:
        weights = np.empty(len(order) + 1)
        kernels.evolve(
            order,
            constants.mean_weights,
            constants.root_weights,
            numbers,
            state.scale,
            generation.z,
            generation.y,
            state.path_s,
            state.path_c,
            state.mean,
            weights,
            state.scalars,
        )
        if state.scalars[CLIP] == 0.0:
            raise ValueError("the points told must be within 1e50 standard deviations of the mean")
        return weights

    def _grow_old(self, state: SearchState, age: float) -> None:
        """Renew what is derived from A, now and then: F as decoding wants it, all every max(100, n/4) generations."""
        state.scalars[AGE] = age
        if age % self._period == 0.0:
            if self.decoding is None or not self.group.carries_inverse or age >= max(100, self.dim // 4):
                self.refresh(state)
            else:
                self.decoding.refresh(self.group, state.root, state.inverse, state.fisher)

    @cached_property
    def _period(self) -> int:
        return 100 if self.decoding is None else self.decoding.period(self.group)

    def _update_adapted(
        self, state: SearchState, generation: Generation, order: NDArray[np.int64], adaptation: RateAdaptation
    ) -> None:
        """The same with both learning rates from the signal-to-noise ratio of their steps."""
        constants, group = self.constants(len(order)), self.group
        rate_mean, rate_root = float(state.rates[0]), float(state.rates[1])
        numbers, before = constants.numbers.copy(), state.path_s.copy()
        numbers[-2:] = rate_mean, rate_root
        weights = self._evolve(state, generation, order, constants, numbers)
        m = group._project(generation.z, generation.z, weights, float(state.scalars[SHIFT]))
        if self.decoding is not None:
            step = _decoding_step(constants, float(state.scalars[DAMPED]), float(state.scalars[CLIP]), rate_root)
            root, inverse, shift = state.root, state.inverse, rate_root * float(state.scalars[SHIFT])
            if self.decoding.is_prompt(group):
                self.decoding.refresh(group, root, inverse, state.fisher)
            v = self.decoding.move_scale(group, root, inverse, *generation, weights, state.fisher, state.scale, step)
            if v is not None and group.carries_inverse:
                group._step_with_inverse(root, inverse, *generation, v, rate_root * weights, shift)
        if self.decoding is None or not group.carries_inverse:
            state.root[:] = group._product_h(state.root, rate_root * m)
        delta = (state.path_s - (1 - constants.c_s) * before) / constants.gain_s
        m += state.scalars[LOG_STEP] * group._local_identity()
        adaptation.update(group, state.rates, state.average_delta, state.average_m, delta, m)
        state.scalars[SIGMA] *= rate_mean / state.rates[0]  # the best step size grows as the rate of the mean falls
        self._grow_old(state, float(state.scalars[AGE]) + 1.0)


def _decoding_step(constants: Constants, damped: float, clip: float, rate: float) -> DecodingStep:
    """Weights of D from those of A, which were clipped; D has a clipping of its own."""
    ratio_mu, ratio_1, pull_mu, pull_1 = constants.decoding
    factor = rate / clip
    return DecodingStep(factor * ratio_mu, factor * ratio_1, rate * (pull_mu + damped * pull_1))


def _geometric_mean(positive: Array) -> float:
    return math.exp(float(np.log(positive).mean()))
