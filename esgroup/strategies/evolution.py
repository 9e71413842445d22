"""The search update: natural gradients in local coordinates, combined with the techniques of evolution strategies.

With x = mu + sigma D A z, A in a group, D diagonal, z ~ N(0, I), ranked by their values, and weights u, w by rank
(rates.py), one generation is

    delta = sum_i u_i z_i,                          mu <- mu + sigma D A delta
    p_s   <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) delta
    sigma <- sigma exp((c_s / d_s) (|p_s| / chi - 1))                                  or another rule (step_size.py)
    p_c   <- (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_eff) delta                  evolution path
    M     =  C (.) kappa(c_1 (p_c p_c^T - I) + c_mu sum_i w_i (z_i z_i^T - I))         natural gradient of the group
    A     <- A h(M)                 and for large rates A S with S S^T = I + M + M^T, or its flow (`Group._flow`)

where the z_i z_i^T of negative w_i are scaled to |z_i|^2 = n, c_1's identity is reduced while h_sigma = 0, and M is
scaled down when a bound on its largest entry, max_j (c_1 p_cj^2 + c_mu sum_i |w_i| z_ij^2), exceeds 1. Both paths live
in local coordinates, so a group matters only through its projection and its degrees of freedom. The full group is
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
from esgroup.groups.linalg import SingularElementError, geometric_mean
from esgroup.kernels import full as full_kernels
from esgroup.kernels import search as kernels
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.base import Indices
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.integers import Widening
from esgroup.strategies.recombination import Constants, Cumulative, Recombination
from esgroup.strategies.sampling import Sampling
from esgroup.strategies.step_size import CumulativeStepSize, Moved, StepSize

_RENEWAL = 1000  # generations
_TOO_FAR = "points passed to tell must be within 1e50 standard deviations of the mean"
_STEPS = np.array(1e-120), np.array(1e120)  # standard deviations whose squares neither underflow nor overflow


class SearchState(NamedTuple):
    """Everything the next generation needs; the arrays belong to the search and change in place."""

    mean: Array
    scale: Array  # the diagonal of D
    root: Array  # the packed A
    sigma: Array  # (1,)
    path_s: Array
    path_c: Array
    fade: Array  # (1,): (1 - c_s)^(2 t)
    age: Array  # (1,): generations since the last refresh
    memory: Array  # of the step-size rule, usually empty
    inverse: Array  # the packed A^-1 if the group keeps it up to date, else empty
    fisher: Array  # of log D, else empty
    trend: Array  # of the steps of log D, else empty
    rates: Array  # of the adaptation of learning rates, else empty: rates, averages of squared steps, q
    average_delta: Array
    average_m: Array
    rest: Array  # memory of `Widening`, else empty
    probes: Array  # of a frame: directions (8, dim) and the effect of selection along each, else empty
    course: Array  # of a frame: sum of c_c since the last exchange, values so far, generations held in width


class Generation(NamedTuple):
    """Samples in local coordinates z and their images y = A z; an additional last row is for the path."""

    z: Array
    y: Array
    samples: Array  # z without that row
    weights: Array  # of the rows of z in the step of the root, written by the update
    report: Array  # four numbers of the update
    both: Array  # the rows of z and of y

    @classmethod
    def empty(cls, n: int, dim: int) -> Generation:
        both = np.empty((2 * n + 2, dim))
        return cls(both[: n + 1], both[n + 1 :], both[:n], np.empty(n + 1), np.empty(4), both)


@dataclass(frozen=True, eq=False)
class Evolution:
    """The update for all groups; decoding and adaptation are optional."""

    group: Group
    recombination: Recombination = field(default_factory=Cumulative)
    decoding: Decoding | None = None
    adaptation: RateAdaptation | None = None
    sampling: Sampling = field(default_factory=Sampling)
    step_size: StepSize = field(default_factory=CumulativeStepSize)
    widening: Widening | None = None
    _constants: dict[int, Constants] = field(default_factory=dict, repr=False)
    _loops: dict[int, tuple[bool, Array] | None] = field(default_factory=dict, repr=False)

    @property
    def dim(self) -> int:
        return self.group.dim

    @property
    def carries_inverse(self) -> bool:
        """Whether a state stores A^-1 as well as A: if decoding needs it in every generation."""
        return self.decoding is not None and self.group.carries_inverse

    def constants(self, n: int) -> Constants:
        """Weights and rates for n values per generation."""
        found = self._constants.get(n)
        if found is None:
            found = self._constants[n] = self.recombination.constants(n, self.dim, self.group.dof, self.group.gathered)
        return found

    # ---- state --------------------------------------------------------------------------------------------------

    def shapes(self) -> dict[str, int]:
        """The lengths of the arrays of a state."""
        dim, size = self.dim, self.group.size
        decoded, adapted = self.decoding is not None, self.adaptation is not None
        return {
            "mean": dim,
            "scale": dim,
            "root": size,
            "sigma": 1,
            "path_s": dim,
            "path_c": dim,
            "fade": 1,
            "age": 1,
            "memory": self.step_size.memory(dim),
            "inverse": size * self.carries_inverse,
            "fisher": dim * decoded,
            "trend": (dim + 3) * decoded,
            "rates": 5 * adapted,
            "average_delta": dim * adapted,
            "average_m": size * adapted,
            "rest": Widening.size * (self.widening is not None),
            "probes": 0,
            "course": 0,
        }

    def start(self, mean: Array, steps: Array, correlation: Array | None = None) -> SearchState:
        """The state with this mean, these standard deviations, and the group's best match to the correlations."""
        group = self.group
        root = group._identity() if correlation is None else group.from_covariance(correlation)
        state = SearchState(**{name: np.zeros(size) for name, size in self.shapes().items()})
        state.mean[:], state.root[:], state.fade[0] = mean, root, 1.0
        state.sigma[0] = math.exp(np.log(steps).mean())
        state.scale[:] = steps / state.sigma
        if self.adaptation is not None:
            state.rates[:] = 1.0, 1.0, 0.0, 0.0, self.adaptation.start
        if self.widening is not None:
            state.rest[:] = self.widening.start()
        self.refresh(state)
        return state

    def variances(self, state: SearchState) -> Array:
        """The diagonal of sigma^2 D A A^T D."""
        scales: Array = state.sigma * state.scale
        return self.group._squared_row_norms(state.root) * scales**2

    def limit_steps(self, state: SearchState, least: Array | None, most: Array | None) -> None:
        """Move standard deviations outside their limits back to them."""
        stds = np.sqrt(self.variances(state))
        state.scale[:] *= np.clip(stds, least, most) / stds

    def leave_plateau(self, state: SearchState, n: int) -> None:
        """sigma <- sigma exp(0.2 + c_s / d_s), for a generation most of whose values are equal (tutorial, B.3)."""
        state.sigma[0] *= math.exp(0.2 + self.constants(n).drive)

    def axis_ratio(self, state: SearchState) -> float:
        """Ratio of the longest to the shortest axis of sigma D A; beyond 100 variables, of standard deviations."""
        if self.dim <= 100:
            return float(np.linalg.cond(state.scale[:, None] * self.group._dense(state.root)))
        variances = self.variances(state)
        return math.sqrt(variances.max() / variances.min())

    def condition(self, state: SearchState) -> float:
        """Condition number of A A^T; for more than 1000 variables tr(C) tr(C^-1) / n^2, which is not larger."""
        inverse = state.inverse if len(state.inverse) else self.group._inverse(state.root)
        bound = self.group._squared_norm(state.root) * self.group._squared_norm(inverse)
        if self.dim > 1000:
            return bound / self.dim**2
        return bound if bound < 1e12 else float(np.linalg.cond(self.group._dense(state.root))) ** 2

    def rounding(self, state: SearchState, among: NDArray[np.bool_] | None = None) -> float:
        """How much of the distribution the rounding of the mean hides: 1 where it is as large as a standard deviation.

        With C = sigma^2 D A A^T D and half the gap r_j between the numbers at mean_j, this is the root mean square of
        r_j sqrt((C^-1)_jj) over the coordinates, or over those `among` them. A step v within the rounding, |v_j| <=
        r_j, leaves the mean as it is. Its local length |(sigma D A)^-1 v| has the mean square sum_j r_j^2 (C^-1)_jj
        over all signs of v_j = +-r_j, so some direction without effect is sqrt(n) times this number long. For equal
        axes the number is r over their length; the tutorial's NoEffectAxis compares the same with 0.1, and needs the
        axes themselves.
        """
        inverse = state.inverse if len(state.inverse) else self.group._inverse(state.root)
        gaps = 0.5 * np.spacing(np.abs(state.mean)) / (state.sigma * state.scale)
        with np.errstate(over="ignore"):  # infinite counts as thin
            squares = gaps**2 * self.group._squared_column_norms(inverse)
        return math.sqrt((squares if among is None else squares[among]).mean())

    def refresh(self, state: SearchState) -> None:
        """Set sigma to the geometric mean of the standard deviations, adjust A and D, and recompute derived arrays."""
        group = self.group
        state.age[0] = 0.0
        try:
            inverse = group._inverse(state.root) if self.decoding is not None else None
        except SingularElementError:
            inverse = self._forget_correlations(state)
        norms = np.sqrt(group._squared_row_norms(state.root))
        rows, columns = geometric_mean(norms), geometric_mean(state.scale)
        state.root[:] = group._scale(state.root, 1 / rows)
        state.scale[:] /= columns
        state.sigma[0] *= rows * columns
        if inverse is not None and self.decoding is not None:
            inverse = group._scale(inverse, rows)
            if group.carries_inverse:
                state.inverse[:] = inverse
            self.decoding.refresh(group, state.root, inverse, state.fisher)

    def _forget_correlations(self, state: SearchState) -> Array:
        """A <- I with the same standard deviations: the only way to continue if A is singular to rounding."""
        state.scale[:] *= np.sqrt(self.group._squared_row_norms(state.root))
        state.root[:] = self.group._identity()
        state.path_c[:] = 0.0
        return state.root.copy()

    # ---- samples ------------------------------------------------------------------------------------------------

    def sample(
        self, state: SearchState, n: int, rng: np.random.Generator, generation: Generation, x: Array
    ) -> Indices | None:
        """Fill a generation and its points x = mu + sigma D A z; returns tags if some samples are marked."""
        samples, tags, orthogonal = generation.samples, None, 0
        if self.sampling.mirrored or len(state.memory) or self.adaptation is not None:
            self.sampling.fill(samples, n, rng)
            tags = self.step_size.mark(self.group, state.root, state.scale, state.memory, samples)
            if self.adaptation is not None:
                tags = self.adaptation.mark(samples[:n], tags)
        else:
            orthogonal = self.sampling.draw(samples, n, rng)
        self.place(state, generation, x, orthogonal)
        return tags

    def place(self, state: SearchState, generation: Generation, x: Array, orthogonal: int = 0) -> None:
        """Complete a generation with given z: the path as its last row, images, points.

        The first `orthogonal` samples are made orthogonal first.
        """
        mean, scale, root, sigma, _, path_c = state[:6]
        self.group._place(orthogonal, root, path_c, mean, sigma, scale, generation.z, generation.y, x)

    def local(self, state: SearchState, x: Array) -> Array:
        """z with x = mu + sigma D A z for any points."""
        white = (x - state.mean) / (state.sigma * state.scale)
        return self.group._solve(state.root, white)

    # ---- update -------------------------------------------------------------------------------------------------

    def update(
        self, state: SearchState, generation: Generation, order: Indices, tags: Indices | None = None
    ) -> None:
        """Move the state by one generation, whose samples `order` lists from best to worst."""
        if self.adaptation is not None:
            self._update_adapted(state, generation, order, tags, self.adaptation)
            return
        at_once = self._at_once(len(order))
        if at_once is not None:
            self._update_at_once(state, generation, order, *at_once)
            return
        constants = self.constants(len(order))
        shift, damped, clip, _ = self._evolve(state, generation, order, tags, constants, 1.0, 1.0)
        (z, y, _, weights, *_), group = generation, self.group
        v = None if self.decoding is None else self._decode(state, generation, constants, damped, clip, 1.0)
        if constants.flows:
            self._move_by(state, group._flow(z, weights, shift))
        elif v is not None and group.carries_inverse:
            group._step_with_inverse(state.root, state.inverse, z, y, v, weights, shift)
        else:
            group._product_h_samples(state.root, z, weights, shift, y, state.root)
        self._refresh_if_due(state)

    def _at_once(self, n: int) -> tuple[bool, Array] | None:
        """Whether to use the flow, and the numbers for the kernel that does a whole generation; None if it does not."""
        if n in self._loops:
            return self._loops[n]
        constants, found = self.constants(n), None
        drive, flows = self.step_size.drive(constants), constants.flows
        if drive is not None and self.decoding is not None and self.decoding.is_looped(self.group, n, flows):
            first = [*constants.kernel, drive, constants.chi, *constants.decoding]
            found = flows, np.concatenate([first, constants.mean_weights, constants.root_weights])
        self._loops[n] = found
        return found

    def _update_at_once(
        self, state: SearchState, generation: Generation, order: Indices, flows: bool, numbers: Array
    ) -> None:
        """The same for small dense matrices in one kernel: separate calls would take longer than their work."""
        mean, scale, root, sigma, path_s, path_c, fade, _, _, inverse, fisher, trend = state[:12]
        both, report = generation.both, generation.report
        run = full_kernels.generation_by_flow if flows else full_kernels.generation
        run(order, numbers, both, mean, scale, sigma, fade, path_s, path_c, fisher, trend, inverse, root, report)
        if report.item(3) == 0.0:
            raise ValueError(_TOO_FAR)
        if not 1e-60 < sigma.item() < 1e60:  # past all reasons to stop
            self.limit_steps(state, *_STEPS)
        self._refresh_if_due(state)

    def _evolve(
        self,
        state: SearchState,
        generation: Generation,
        order: Indices,
        tags: Indices | None,
        constants: Constants,
        rate_mean: float,
        rate_root: float,
    ) -> tuple[float, float, float, float]:
        """Move the mean, the paths and sigma; returns the step of the root.

        M is the projection of sum_i weights_i z_i z_i^T - shift I, with the weights in the generation. The other
        returned values are h_sigma's correction of c_1, the factor of the clipped weights, and the step of log sigma.
        """
        sigma, memory = state.sigma.item(), state.memory
        before = state.mean.copy() if len(memory) else None
        z, y, _, weights, report, _ = generation
        paths = state.path_s, state.fade, state.path_c
        kernels.evolve(
            order, *constants[:3], rate_mean * sigma, state.scale, z, y, *paths, state.mean, weights, report
        )
        length, shift, damped, clip = report.tolist()
        if clip == 0.0:
            raise ValueError(_TOO_FAR)
        moved = None if before is None else state.mean - before
        log_step = self.step_size.log_step(Moved(constants, length, order, tags, moved, memory))
        state.sigma[0] = sigma = sigma * math.exp(rate_root * log_step)
        if not 1e-60 < sigma < 1e60:  # past all reasons to stop
            self.limit_steps(state, *_STEPS)
        return shift, damped, clip, log_step

    def _decode(
        self, state: SearchState, generation: Generation, constants: Constants, damped: float, clip: float, rate: float
    ) -> Array | None:
        """Move D, if it is learned; returns the result of `Decoding.move_scale`.

        Its weights are those of A, which were clipped; D has its own clipping.
        """
        decoding, group = self.decoding, self.group
        if decoding is None:
            return None
        if decoding.is_prompt(group):
            decoding.refresh(group, state.root, state.inverse, state.fisher)
        ratio_mu, ratio_1, pull_mu, pull_1, least = constants.decoding
        factor = rate / clip
        step = factor * ratio_mu, factor * ratio_1, rate * (pull_mu + damped * pull_1), least
        return decoding.move_scale(group, state, generation, step)

    def _move_by(self, state: SearchState, step: Array) -> None:
        """A <- A S for an element S, and update a stored A^-1 accordingly."""
        state.root[:] = self.group._product(state.root, step)
        if len(state.inverse):
            state.inverse[:] = self.group._product(self.group._inverse(step), state.inverse)

    def _refresh_if_due(self, state: SearchState) -> None:
        """Recompute what is derived from A: F as often as decoding requires, all of it every max(1000, n) generations
        with A^-1.

        A stored A^-1 rarely needs it: 6000 generations with 40 variables, or 3000 with 200, left |A^-1 A - I| below
        3e-12 where A has the condition number 1e3 (rotated ellipsoid and cigar of condition 1e6), below 1e-13 on the
        sphere, while inverting A every n/4 generations took a fifth of the time at n = 1000.
        """
        age = state.age.item() + 1.0
        state.age[0] = age
        if age % self._period == 0.0:
            if self.decoding is None or not self.group.carries_inverse or age >= max(_RENEWAL, self.dim):
                self.refresh(state)
            else:
                self.decoding.refresh(self.group, state.root, state.inverse, state.fisher)

    @cached_property
    def _period(self) -> int:
        return 100 if self.decoding is None else self.decoding.period(self.group)

    def _update_adapted(
        self, state: SearchState, generation: Generation, order: Indices, tags: Indices | None, rule: RateAdaptation
    ) -> None:
        """The same with both learning rates from `RateAdaptation`."""
        constants, group = self.constants(len(order)), self.group
        rate_mean, rate_root = state.rates[:2].tolist()
        before = state.path_s.copy()
        shift, damped, clip, log_step = self._evolve(state, generation, order, tags, constants, rate_mean, rate_root)
        z, y, _, weights, *_ = generation
        m = group._project(z, z, weights, shift)
        v = self._decode(state, generation, constants, damped, clip, rate_root)
        if v is not None and group.carries_inverse:
            group._step_with_inverse(state.root, state.inverse, z, y, v, rate_root * weights, rate_root * shift)
        elif not self.carries_inverse:
            state.root[:] = group._product_h(state.root, rate_root * m)
        delta = (state.path_s - (1 - constants.c_s) * before) / constants.gain_s
        m += log_step * group._local_identity()
        rule.compare(state.rates, generation.samples, order, tags)
        rule.update(state, delta, m, group._squared_local_norm)
        self._refresh_if_due(state)
