"""Finite mixtures of Gaussians: density, responsibilities, natural gradients by the joint Fisher matrix, moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian, Map
from esgroup.distributions.spreading import spread_components
from esgroup.groups import Group


class MixtureState(NamedTuple):
    """Parameters: the means as rows, the packed square roots one after another, and log pi_k."""

    means: Array
    roots: Array
    log_weights: Array


class MixtureSamples(NamedTuple):
    """A generation: points x, the component that drew each, and its local coordinates z ~ N(0, I) there."""

    z: Array
    x: Array
    labels: NDArray[np.int64]


class MixtureStep(NamedTuple):
    """A vector of the local space: delta_k as rows, the packed M_k one after another, and log(pi_k / pi_K), k < K."""

    deltas: Array
    ms: Array
    logits: Array

    def scaled(self, mean_rate: float, root_rate: float | None = None, weight_rate: float | None = None) -> MixtureStep:
        """The step times a rate, or times one rate each for means, square roots and weights."""
        of_roots = mean_rate if root_rate is None else root_rate
        of_weights = mean_rate if weight_rate is None else weight_rate
        return MixtureStep(mean_rate * self.deltas, of_roots * self.ms, of_weights * self.logits)


@dataclass(frozen=True, eq=False)
class Mixture:
    """q(x) = sum_k pi_k N(x | mean_k, Sigma_k), each Gaussian with a group and a form of its own.

    The local map is that of a Gaussian in every component and rho_k + rho for the logits rho_k = log(pi_k / pi_K)
    (paper, appendix "Finite Mixture of Gaussians"). The Fisher matrix of q is singular where components coincide; the
    one used is that of the joint distribution of x and its component, which is block diagonal: pi_k F_k for the
    parameters of component k, and diag(pi) - pi pi^T for the logits.

    `components` are Gaussians with a mean, of one dimension; `weights` are positive with sum 1, by default all equal,
    and stay as they are unless `learn_weights`. With one component this is the Gaussian itself.
    """

    components: tuple[Gaussian, ...]
    weights: Array | None = None
    learn_weights: bool = False

    def __post_init__(self) -> None:
        self._store("components", _checked_components(self.components))
        checks.store_flag(self, "learn_weights")
        if self.weights is not None:
            self._store("weights", _checked_weights(self.weights, self.count))

    def _store(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def spread(
        cls,
        count: int,
        *,
        bounds: Any = None,
        mean: Any = None,
        sigma0: Any = None,
        structure: Group | str = "full",
        learn_weights: bool = False,
        rng: Any = None,
    ) -> Mixture:
        """`count` Gaussians of equal weight, spread evenly over a box or around a point.

        `bounds` are pairs (lower, upper), one for each coordinate; or `mean` and `sigma0` describe the region as
        N(mean, sigma0^2 I). Means are points of an additive sequence with a random shift, and standard deviations are
        count^(-1/dim) times those of the region: together the components cover it once.
        """
        components = spread_components(count, bounds, mean, sigma0, structure, np.random.default_rng(rng))
        return cls(components, learn_weights=learn_weights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        same = self.components == other.components and self.learn_weights == other.learn_weights
        return same and np.array_equal(self._initial_weights, other._initial_weights)

    def __hash__(self) -> int:
        return hash((self.components, self.learn_weights))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.components, self.weights, self.learn_weights)  # arrays stay read-only

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number K of components."""
        return len(self.components)

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return self.components[0].dim

    @cached_property
    def _cuts(self) -> list[int]:
        """Where one packed root ends and the next begins."""
        return np.cumsum([0] + [gaussian.group.size for gaussian in self.components]).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _initial_weights(self) -> Array:
        return np.full(self.count, 1 / self.count) if self.weights is None else self.weights

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self) -> MixtureState:
        """The initial parameters."""
        return self.joined([gaussian.state() for gaussian in self.components], np.log(self._initial_weights))

    def joined(self, states: list[State], log_weights: Array) -> MixtureState:
        """One state from those of the components."""
        means, roots = np.array([s.mean for s in states]), np.concatenate([s.root for s in states])
        return MixtureState(means, roots, log_weights)

    def component_states(self, state: MixtureState) -> list[State]:
        """The states of the components, as views."""
        state = self._checked(state)
        return [State(state.means[k], self._part(state.roots, k)) for k in range(self.count)]

    def mixing_weights(self, state: MixtureState) -> Array:
        """pi, the weights of the components."""
        return np.exp(self._checked(state).log_weights)

    def mean(self, state: MixtureState) -> Array:
        """sum_k pi_k mean_k."""
        mean: Array = self.mixing_weights(state) @ state.means
        return mean

    def dense_covariance(self, state: MixtureState) -> Array:
        """sum_k pi_k (Sigma_k + d_k d_k^T) with d_k = mean_k - mean."""
        pi, gaps = self.mixing_weights(state), state.means - self.mean(state)
        within = [g.dense_covariance(s) for g, s in zip(self.components, self.component_states(state), strict=True)]
        between: Array = (pi * gaps.T) @ gaps
        return between + np.tensordot(pi, within, 1)

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: MixtureState, n: int, rng: np.random.Generator) -> MixtureSamples:
        """n points, a whole generation at once: a component by its weight, then a point of it."""
        n = checks.whole_number("n", n)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        states = self.component_states(state)
        z = rng.standard_normal((n, self.dim))  # ~ N(0, I)
        if self.count == 1:  # no random number is spent, so that the samples are those of the Gaussian
            labels = np.zeros(n, dtype=np.int64)
        else:
            labels = rng.choice(self.count, n, p=self.mixing_weights(state))
        x = np.empty_like(z)
        for k, (gaussian, own) in enumerate(zip(self.components, states, strict=True)):
            x[labels == k] = gaussian.points(own, z[labels == k]).x
        return MixtureSamples(z, x, labels)

    def log_density(self, state: MixtureState, x: Any) -> Array:
        """log q(x) of a point or of rows of points, by log-sum-exp."""
        total: Array = np.logaddexp.reduce(self._log_parts(state, x), axis=-1)
        return total

    def responsibilities(self, state: MixtureState, x: Any) -> Array:
        """r_k(x) = pi_k N_k(x) / q(x), on the last axis, for a point or rows of points."""
        parts = self._log_parts(state, x)
        return np.exp(parts - np.logaddexp.reduce(parts, axis=-1, keepdims=True))

    def _log_parts(self, state: MixtureState, x: Any) -> Array:
        """log(pi_k N_k(x)), components on the last axis."""
        pairs = zip(self.components, self.component_states(state), strict=True)
        parts: Array = np.stack([g.log_density(s, x) for g, s in pairs], axis=-1) + state.log_weights
        return parts

    def entropy(self, state: MixtureState, n: int, rng: np.random.Generator) -> float:
        """-E[log q], the mean over n samples; exact, and without samples, for one component."""
        if self.count == 1:
            return self.components[0].entropy(self.component_states(state)[0])
        x = self.sample(state, checks.whole_number("n", n, least=1), rng).x
        return -float(self.log_density(state, x).mean())

    # ---- natural gradients --------------------------------------------------------------------------------------

    def natural_score(self, state: MixtureState, x: Any, weights: Any) -> MixtureStep:
        """Natural gradient of sum_i weights_i log q(x_i) by the joint Fisher matrix.

        With z_ik the local coordinates of x_i in component k and r_ik its responsibilities,
        delta_k = sum_i w_i r_ik z_ik / pi_k, M_k = +-C (.) kappa(sum_i w_i r_ik (z_ik z_ik^T - I)) / pi_k, with - in
        precision form, and rho_k = sum_i w_i (r_ik / pi_k - r_iK / pi_K), which is zero unless weights are learnt.
        """
        x = checks.real_array("x", x, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(x),))
        parts = self._log_parts(state, x)
        # r / pi = N_k / q <= 1 / pi; a weight that has all but vanished must not overflow
        ratios = np.exp(np.minimum(parts - state.log_weights - np.logaddexp.reduce(parts, axis=1)[:, None], 700.0))
        steps = [
            gaussian.natural_score(gaussian.local(own, x), weights * ratios[:, k])
            for k, (gaussian, own) in enumerate(zip(self.components, self.component_states(state), strict=True))
        ]
        logits = weights @ (ratios[:, :-1] - ratios[:, -1:]) * self.learn_weights
        return MixtureStep(np.array([s.delta for s in steps]), np.concatenate([s.m for s in steps]), logits)

    def move(self, state: MixtureState, step: MixtureStep, map: Map = "h") -> MixtureState:
        """Every component along its part of the step (see `Gaussian.move`), the logits by addition."""
        checks.instance("step", step, MixtureStep)
        deltas = checks.real_array("step.deltas", step.deltas, (self.count, self.dim))
        ms = checks.real_array("step.ms", step.ms, (self._cuts[-1],))
        logits = checks.real_array("step.logits", step.logits, (self.count - 1,))
        moved = [
            gaussian.move(own, Step(deltas[k], self._part(ms, k)), map)
            for k, (gaussian, own) in enumerate(zip(self.components, self.component_states(state), strict=True))
        ]
        if not logits.any():
            return self.joined(moved, state.log_weights.copy())
        shifted = state.log_weights + np.append(logits, 0.0)
        return self.joined(moved, shifted - np.logaddexp.reduce(shifted))

    # ---- shared -------------------------------------------------------------------------------------------------

    def _part(self, packed: Array, k: int) -> Array:
        return packed[self._cuts[k] : self._cuts[k + 1]]

    def _checked(self, state: MixtureState) -> MixtureState:
        checks.instance("state", state, MixtureState)
        means = checks.real_array("state.means", state.means, (self.count, self.dim))
        roots = checks.real_array("state.roots", state.roots, (self._cuts[-1],))
        return MixtureState(means, roots, checks.real_array("state.log_weights", state.log_weights, (self.count,)))


def _checked_components(components: Any) -> tuple[Gaussian, ...]:
    if isinstance(components, Gaussian) or not isinstance(components, (tuple, list)) or not components:
        raise TypeError(f"components must be a tuple of at least one Gaussian, got {components!r}")
    for k, component in enumerate(components):
        checks.instance(f"components[{k}]", component, Gaussian)
        if component.mean is None:
            raise ValueError(f"components[{k}] must have a mean: Gaussian(..., mean=...)")
        if component.dim != components[0].dim:
            wanted = f"the dimension of components[0], {components[0].dim}"
            raise ValueError(f"components[{k}] must have {wanted}, got {component.dim}")
    return tuple(components)


def _checked_weights(weights: Any, count: int) -> Array:
    array: Array = np.array(checks.real_array("weights", weights, (count,)))
    if (array <= 0).any():
        k = int((array <= 0).argmax())
        raise ValueError(f"weights must be positive, got {array[k]} at index {k}")
    if abs(array.sum() - 1) > 1e-8:
        raise ValueError(f"weights must have the sum 1, got {array.sum():.12g}")
    return checks.read_only(array / array.sum())
