"""Finite mixtures of Gaussians: initial state, density, natural gradients by the joint Fisher matrix, moves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Distribution, State, Step, checked_parts
from esgroup.distributions.gaussian import Gaussian, Map
from esgroup.groups import Group, as_group
from esgroup.lazy import Lazy

special: Any = Lazy("scipy.special")


class MixtureState(NamedTuple):
    """Parameters of a mixture.

    Attributes
    ----------
    means : ndarray, shape (K, dim)
        The means of the components.
    roots : ndarray
        The packed square roots of the components, one after another.
    log_weights : ndarray, shape (K,)
        log pi_k.
    """

    means: Array
    roots: Array
    log_weights: Array


class MixtureSamples(NamedTuple):
    """One generation of samples of a mixture.

    Attributes
    ----------
    z : ndarray, shape (n, dim)
        Local coordinates z ~ N(0, I) in the component that drew the point.
    x : ndarray, shape (n, dim)
        The points.
    labels : ndarray of int, shape (n,)
        The component that drew each point.
    """

    z: Array
    x: Array
    labels: NDArray[np.int64]


class MixtureStep(NamedTuple):
    """A vector of the local space of a mixture.

    Attributes
    ----------
    deltas : ndarray, shape (K, dim)
        The parts delta_k for the means.
    ms : ndarray
        The packed parts M_k for the square roots, one after another.
    logits : ndarray, shape (K - 1,)
        The changes of log(pi_k / pi_K), k < K.
    """

    deltas: Array
    ms: Array
    logits: Array

    def scaled(self, mean_rate: float, root_rate: float | None = None, weight_rate: float | None = None) -> MixtureStep:
        """Multiply the step by a rate, or the parts for means, square roots and weights by a rate each."""
        of_roots = mean_rate if root_rate is None else root_rate
        of_weights = mean_rate if weight_rate is None else weight_rate
        return MixtureStep(mean_rate * self.deltas, of_roots * self.ms, of_weights * self.logits)


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """q(x) = sum_k pi_k N(x | mean_k, Sigma_k), each Gaussian with its own group and form.

    The local map is that of a Gaussian in every component and rho_k + rho for the logits rho_k = log(pi_k / pi_K)
    (paper, appendix "Finite Mixture of Gaussians"). The Fisher matrix of q is singular where components coincide; the
    one used is that of the joint distribution of x and its component, which is block diagonal: pi_k F_k for the
    parameters of component k, and diag(pi) - pi pi^T for the logits. With one component this is the Gaussian itself.

    Parameters
    ----------
    components : sequence of Gaussian
        Gaussians of the same dimension, each with a mean.
    weights : array_like, shape (K,), optional
        Positive numbers that sum to 1; equal by default.
    learn_weights : bool
        Whether steps change the weights.

    Examples
    --------
    >>> from esgroup import Gaussian, Mixture
    >>> parts = (Gaussian("full", [0.0, 0.0]), Gaussian("diagonal", [3.0, 1.0]))
    >>> mixture = Mixture(parts, [0.25, 0.75])
    >>> mixture.mean(mixture.state()).tolist()
    [2.25, 0.75]
    """

    components: tuple[Gaussian, ...]
    weights: Array | None = None
    learn_weights: bool = False

    def __post_init__(self) -> None:
        self._store("components", _checked_components(self.components))
        checks.store_flag(self, "learn_weights")
        if self.weights is not None:
            self._store("weights", _checked_weights(self.weights, self.count))

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
        """Gaussians with equal weights, spread evenly over a box or around a point.

        Means are points of an additive sequence with a random shift, and standard deviations are count^(-1/dim) times
        those of the region: together the components cover it once.

        Parameters
        ----------
        count : int
            The number of components.
        bounds : array_like, shape (dim, 2), optional
            The region as a box: a pair (lower, upper) for each variable.
        mean : array_like, shape (dim,), optional
            The region as N(mean, sigma0^2 I), instead of `bounds`.
        sigma0 : float, optional
            The standard deviation of that region.
        structure : Group or str
            The structure of all components.
        learn_weights : bool
            Whether steps change the weights.
        rng : int or numpy.random.Generator, optional
            The seed of the random shift.

        Examples
        --------
        >>> from esgroup import Mixture
        >>> Mixture.spread(5, bounds=[(0, 1), (-2, 2)], rng=0).count
        5
        """
        count, generator = checks.whole_number("count", count, least=1), np.random.default_rng(rng)
        if (bounds is None) == (mean is None):
            raise ValueError(f"either bounds or mean (with sigma0) must be given, got {bounds=!r} and {mean=!r}")
        if bounds is None:
            center = checks.real_array("mean", mean, (None,))
            stds = np.full(len(center), checks.real_number("sigma0", sigma0, positive=True))
            shares = np.clip(_even_points(count, len(center), generator), 1e-12, 1 - 1e-12)
            means = center + stds * special.ndtri(shares)  # quantiles of N(0, 1)
        else:
            if sigma0 is not None:
                raise ValueError(f"sigma0 must be left out if bounds are given, which set the scale, got {sigma0!r}")
            box = box_of("bounds", bounds)
            low, width = box[:, 0], box[:, 1] - box[:, 0]
            stds = width / np.sqrt(12)  # of the uniform distribution
            means = low + width * _even_points(count, len(box), generator)
        share = stds * count ** (-1 / len(stds))
        group = as_group(structure, len(stds))
        if np.all(share == share[0]):
            scale: dict[str, Any] = {"sigma0": float(share[0])}
        else:
            scale = {"covariance": np.diag(share**2)}
        return cls(tuple(Gaussian(group, point, **scale) for point in means), learn_weights=learn_weights)

    def _compared(self) -> tuple[Any, ...]:
        """Equal weights compare equal whether they were given or left out."""
        return self.components, self._initial_weights, self.learn_weights

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """K, the number of components."""
        return len(self.components)

    @property
    def dim(self) -> int:
        """The number of variables."""
        return self.components[0].dim

    @cached_property
    def _cuts(self) -> list[int]:
        """Indices at which one packed root ends and the next begins."""
        return list(itertools.accumulate((gaussian.group.size for gaussian in self.components), initial=0))

    @cached_property
    def _initial_weights(self) -> Array:
        return np.full(self.count, 1 / self.count) if self.weights is None else self.weights

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self) -> MixtureState:
        """The initial parameters."""
        return self.joined([gaussian.state() for gaussian in self.components], np.log(self._initial_weights))

    def joined(self, states: list[State], log_weights: Array) -> MixtureState:
        """Join the states of the components, and log weights, to one state."""
        means, roots = np.array([s.mean for s in states]), np.concatenate([s.root for s in states])
        return MixtureState(means, roots, log_weights)

    def component_states(self, state: MixtureState) -> list[State]:
        """The states of the components, as views of `state`."""
        state = self._checked(state)
        return [State(state.means[k], self._part(state.roots, k)) for k in range(self.count)]

    def mixing_weights(self, state: MixtureState) -> Array:
        """pi, the weights of the components."""
        return np.exp(self._checked(state).log_weights)

    def mean(self, state: MixtureState) -> Array:
        """sum_k pi_k mean_k."""
        return self.mixing_weights(state) @ state.means

    def dense_covariance(self, state: MixtureState) -> Array:
        """sum_k pi_k (Sigma_k + d_k d_k^T) with d_k = mean_k - mean."""
        pi, gaps = self.mixing_weights(state), state.means - self.mean(state)
        within = [g.dense_covariance(s) for g, s in zip(self.components, self.component_states(state), strict=True)]
        return (pi * gaps.T) @ gaps + np.tensordot(pi, within, 1)

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: MixtureState, n: int, rng: np.random.Generator) -> MixtureSamples:
        """Draw n points at once: for each, a component by its weight, then a point from that component."""
        n = checks.whole_number("n", n)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        states = self.component_states(state)
        z = rng.standard_normal((n, self.dim))  # ~ N(0, I)
        if self.count == 1:  # use no random numbers, so that the samples are those of the Gaussian
            labels = np.zeros(n, dtype=np.int64)
        else:
            labels = rng.choice(self.count, n, p=self.mixing_weights(state))
        x = np.empty_like(z)
        for k, (gaussian, own) in enumerate(zip(self.components, states, strict=True)):
            x[labels == k] = gaussian.points(own, z[labels == k]).x
        return MixtureSamples(z, x, labels)

    def log_density(self, state: MixtureState, x: Any) -> Array:
        """log q(x) of one point or of rows of points, by log-sum-exp."""
        return np.logaddexp.reduce(self._log_parts(state, x), axis=-1)

    def responsibilities(self, state: MixtureState, x: Any) -> Array:
        """r_k(x) = pi_k N_k(x) / q(x) of one point or of rows of points, components on the last axis."""
        parts = self._log_parts(state, x)
        return np.exp(parts - np.logaddexp.reduce(parts, axis=-1, keepdims=True))

    def _log_parts(self, state: MixtureState, x: Any) -> Array:
        """log(pi_k N_k(x)), components on the last axis."""
        pairs = zip(self.components, self.component_states(state), strict=True)
        return np.stack([g.log_density(s, x) for g, s in pairs], axis=-1) + state.log_weights

    def entropy(self, state: MixtureState, n: int, rng: np.random.Generator) -> float:
        """-E[log q], estimated from n samples; exact, and without samples, for one component."""
        if self.count == 1:
            return self.components[0].entropy(self.component_states(state)[0])
        x = self.sample(state, checks.whole_number("n", n, least=1), rng).x
        return -float(self.log_density(state, x).mean())

    # ---- natural gradients --------------------------------------------------------------------------------------

    def natural_score(self, state: MixtureState, x: Any, weights: Any) -> MixtureStep:
        """Natural gradient of sum_i weights_i log q(x_i) by the joint Fisher matrix.

        With z_ik the local coordinates of x_i in component k and r_ik its responsibilities,
        delta_k = sum_i w_i r_ik z_ik / pi_k, M_k = +-C (.) kappa(sum_i w_i r_ik (z_ik z_ik^T - I)) / pi_k, with - in
        precision form, and rho_k = sum_i w_i (r_ik / pi_k - r_iK / pi_K), which is zero unless weights are learned.

        Parameters
        ----------
        state : MixtureState
            The parameters.
        x : array_like, shape (n, dim)
            The points.
        weights : array_like, shape (n,)
            One weight per point.
        """
        x = checks.real_array("x", x, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(x),))
        parts = self._log_parts(state, x)
        # r / pi = N_k / q <= 1 / pi must not overflow for a component whose weight has all but vanished
        ratios = np.exp(np.minimum(parts - state.log_weights - np.logaddexp.reduce(parts, axis=1)[:, None], 700.0))
        steps = [
            gaussian.natural_score(gaussian.local(own, x), weights * ratios[:, k])
            for k, (gaussian, own) in enumerate(zip(self.components, self.component_states(state), strict=True))
        ]
        logits = weights @ (ratios[:, :-1] - ratios[:, -1:]) * self.learn_weights
        return MixtureStep(np.array([s.delta for s in steps]), np.concatenate([s.m for s in steps]), logits)

    def move(self, state: MixtureState, step: MixtureStep, map: Map = "h") -> MixtureState:
        """The parameters after a step: each component by `Gaussian.move`, the logits by addition."""
        shapes = (self.count, self.dim), (self._cuts[-1],), (self.count - 1,)
        deltas, ms, logits = checked_parts("step", step, MixtureStep, *shapes)
        moved = [
            gaussian.move(own, Step(deltas[k], self._part(ms, k)), map)
            for k, (gaussian, own) in enumerate(zip(self.components, self.component_states(state), strict=True))
        ]
        if not logits.any():
            return self.joined(moved, state.log_weights.copy())
        shifted = state.log_weights + np.append(logits, 0.0)
        return self.joined(moved, shifted - np.logaddexp.reduce(shifted))

    # ---- packing and checks --------------------------------------------------------------------------------------

    def _part(self, packed: Array, k: int) -> Array:
        """The part of component k of packed roots, or of packed local vectors, as a view."""
        return packed[self._cuts[k] : self._cuts[k + 1]]

    def _checked(self, state: MixtureState) -> MixtureState:
        shapes = (self.count, self.dim), (self._cuts[-1],), (self.count,)
        return MixtureState(*checked_parts("state", state, MixtureState, *shapes))


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
        raise ValueError(f"weights must sum to 1, got a sum of {array.sum():.12g}")
    return checks.read_only(array / array.sum())


# ---- where components start ---------------------------------------------------------------------------------------


def box_of(name: str, bounds: Any, dim: int | None = None) -> Array:
    """Check pairs (lower, upper) with lower < upper; returns a read-only (dim, 2) array."""
    box: Array = np.array(checks.real_array(name, bounds, (dim, 2)))
    if len(box) == 0:
        raise ValueError(f"{name} must have at least one variable, got none")
    if not (box[:, 0] < box[:, 1]).all():
        j = int((box[:, 0] >= box[:, 1]).argmax())
        raise ValueError(f"{name} must have lower < upper, got ({box[j, 0]}, {box[j, 1]}) for variable {j}")
    return checks.read_only(box)


def _even_points(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Points (count, dim) of the unit cube that keep a distance from each other: u + i a mod 1, i = 0, 1, ...

    a_j = phi^-j with phi^(dim + 1) = phi + 1, the golden ratio for dim = 1 (the R sequence of M. Roberts, "The
    unreasonable effectiveness of quasirandom sequences", 2018); u is uniform.
    """
    phi = 2.0
    for _ in range(60):  # the slope of this map is below 1/2 at phi
        phi = (1 + phi) ** (1 / (dim + 1))
    steps = phi ** -np.arange(1.0, dim + 1)
    return (rng.random(dim) + np.arange(count)[:, None] * steps) % 1.0
