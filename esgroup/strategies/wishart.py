"""Search over positive-definite matrices with a Wishart distribution.

With W = L Z L^T, L = B^-T, n Z ~ Wishart(I, n), ranked by their values, and utilities u by rank, one generation is

    Y <- sum_i u_i (Z_i - I),   N with N + N^T = P(Y), P the group's projection        natural gradient of L
    L <- L h(eta N)                                                                    eta = 2: sample small, move large
    p <- (1 - c) p + sqrt(c (2 - c) mu_eff n / 2) N                                    path in local coordinates
    n <- n exp(-2 (c/d) (|p + p^T| / (chi_m - 0.1) - 1))                               exponent within [-1, 1]

Without selection the coordinates of sqrt(mu_eff n / 2) P(Y) have the variance 1 at every n, since Var Z_ii = 2/n and
Var Z_ij = 1/n exactly; so |p + p^T| is then about chi_m, the expected norm of m normal numbers, m the degrees of
freedom of the group. This is cumulative step-size adaptation (Ostermeier, Gawelczyk and Hansen 1994) with
sigma = sqrt(2/n), in an isotropic strategy of the affine-invariant metric: there is no covariance to learn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.wishart import Wishart, bartlett, gram
from esgroup.domains.base import Arrays
from esgroup.groups import Group, described
from esgroup.strategies import rates
from esgroup.strategies.base import Proposed, Ranked, Relocation, StateView, Strategy, Traits
from esgroup.strategies.criteria import Criterion

MOST_DOF = 1e15  # there Z - I, of the order n^-1/2, has seven digits left
_RESCALED = 2.0  # eta


class WishartSearchState(NamedTuple):
    """Everything the next generation needs: n, an array of shape (), the packed L, and the path, packed as L is."""

    dof: Array
    root: Array
    path: Array


class WishartRates(NamedTuple):
    """Utilities by rank, best first, and the numbers of one generation."""

    utilities: Array
    gain: float  # sqrt(c (2 - c) mu_eff / 2)
    c: float
    drive: float  # 2 c / d
    norm: float  # the norm of the path at which n stays as it is


@lru_cache(maxsize=64)
def wishart_rates(popsize: int, m: int) -> WishartRates:
    """Return utilities and rates for a generation of `popsize` >= 2 values and m degrees of freedom.

    u = log ranks, the better half scaled to sum 1, the worse half to sum -w, centered; mu_eff = 1 / sum u^2.
    w = m^2 / (m^2 + 35^2): moving away from the worse half helps if there are many degrees of freedom.
    c = (mu_eff + 2) / (m/2 + mu_eff + 15) and
    d = (0.25 + 0.35 (1 - w)) (1 + c + 2 max(0, sqrt((mu_eff - 1) / (m + 1)) - 1)) are c_s and d_s of the tutorial
    except for the factor of d, and for a memory that is longer for small m and shorter for large m.
    The norm is chi_m less a seventh of the standard deviation of the path's length, 1/sqrt(2), so that n falls slowly
    where noise decides the ranks. With chi_m itself n drifts at random (up to 1e11 in 1000 generations at m = 6), and
    with more it rises without bound.
    The constants were tuned on seeds 0-99 of `matrix_inversion` with 1 to 10 rows and of `metric_nearness` with 10 and
    50.
    """
    ranks = rates.log_ranks(popsize)
    better, worse = np.maximum(ranks, 0.0), np.minimum(ranks, 0.0)
    w = m**2 / (m**2 + 35**2)
    u = better / better.sum() - w * worse / worse.sum()
    u -= u.mean()
    mu_eff = 1 / float(u @ u)
    c = (mu_eff + 2) / (m / 2 + mu_eff + 15)
    d = (0.25 + 0.35 * (1 - w)) * (1 + c + 2 * max(0.0, math.sqrt(max(0.0, mu_eff - 1) / (m + 1)) - 1))
    norm = rates.expected_norm(m) - 0.1
    return WishartRates(checks.read_only(u), math.sqrt(c * (2 - c) * mu_eff / 2), c, 2 * c / d, norm)


@dataclass(frozen=True)
class WishartSearch(Strategy):
    """Search over positive-definite matrices by utilities, rescaled steps of L and cumulative control of n.

    L = B^-T lies in the transposed group: N is the transpose of the natural gradient of B, and L h(eta N) is
    (B h(-eta N^T))^-T to first order. The local coordinates of a point are Z = B^T W B read row by row. n starts at the
    distribution's `dof` and stays between `least_dof` and 1e15.

    Parameters
    ----------
    distribution : Wishart
        The initial distribution.
    popsize_wanted : int, optional
        Points per generation, at least 2; by default max(4, 1 + floor(3 ln m)) for m degrees of freedom of the group.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or out of its range.
    """

    distribution: Wishart
    popsize_wanted: int | None = None

    def __post_init__(self) -> None:
        checks.instance("distribution", self.distribution, Wishart)
        if self.popsize_wanted is not None:
            checks.store_whole_number(self, "popsize_wanted", least=2)

    @cached_property
    def group(self) -> Group:
        """The group of L."""
        return self.distribution.group.transposed

    @property
    def dim(self) -> int:
        """Number p of rows of a point."""
        return self.distribution.dim

    @cached_property
    def traits(self) -> Traits:
        first, p = self.distribution.first_dof(), self.dim
        raised = f"dof was raised from {first:.6g} to {self.least_dof:.6g}, the minimum"
        return Traits(
            size=p * (p + 1) // 2,
            # fewer than other searches need, since there is no covariance to learn
            popsize=self.popsize_wanted or max(4, 1 + int(3 * math.log(self.group.dof))),
            about=f"Wishart, {described(self.distribution.group)}",
            domain=Arrays(self.distribution.shape, _check),
            note="" if first >= self.least_dof else raised,
            criteria=(Criterion("spread", 0, self._spread_reasons), Criterion("own", 0, self._end)),
        )

    @property
    def least_dof(self) -> float:
        """20 N = 10 p (p + 1) with N the `size`: the smallest n, which is also the default of `Wishart`.

        With a smaller n, samples are so wide that a mean with collapsed eigenvalues has the best expected values, and
        the search is drawn to it (seen on `matrix_inversion` below 5 N).
        """
        return 10.0 * self.dim * (self.dim + 1)

    # ---- where it begins ----------------------------------------------------------------------------------------

    begins_with: ClassVar[tuple[str, ...]] = ("sigma0", "structure")

    def beginning(self, sigma0: Any = None, structure: Any = None) -> WishartSearch:
        """Return the search with another structure of B, or with the relative standard deviation sqrt(2 / dof)."""
        dof = self.distribution.dof if sigma0 is None else dof_of(sigma0, self.dim)
        kind = self.distribution.structure if structure is None else structure
        return replace(self, distribution=replace(self.distribution, dof=dof, structure=kind))

    def relocated(self, to: Relocation) -> WishartSearch | None:
        """Start at a sample of the initial distribution, with its width times the factor."""
        if to.place is not None or to.rng is None:
            return None
        state = self.start()
        mean = self.sample(state, 1, to.rng).points[0]
        dof = max(float(state.dof) / to.sigma_factor**2, self.least_dof)
        first = replace(self.distribution, mean=mean, dof=dof)
        return replace(self, distribution=first, popsize_wanted=to.popsize)

    # ---- state --------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> WishartSearchState:
        dof = np.clip(self.distribution.first_dof(), self.least_dof, MOST_DOF)
        return WishartSearchState(np.array(dof), self.distribution.first_outward(), np.zeros(self.group.size))

    def mean(self, state: WishartSearchState) -> Array:
        root = self.group._dense(state.root)
        return checks.symmetric_part(root @ root.T)

    def stds(self, state: WishartSearchState) -> Array:
        """sqrt((m_ij^2 + m_ii m_jj) / n) for the mean m."""
        mean = self.mean(state)
        diagonal = np.diagonal(mean)
        return np.sqrt((mean**2 + np.outer(diagonal, diagonal)) / state.dof)

    # ---- generations --------------------------------------------------------------------------------------------

    def sample(
        self, state: WishartSearchState, n: int, rng: np.random.Generator, out: Proposed | None = None
    ) -> Proposed:
        p = self.dim
        factors = bartlett((float(state.dof) - (p - 1)) / 2, p, n, rng)  # F with Z = F F^T
        rows = np.ascontiguousarray(factors.swapaxes(1, 2)).reshape(-1, p)
        images = self.group._apply(state.root, rows).reshape(n, p, p)  # (L F)^T
        points = gram(images)
        return Proposed(points, (factors @ factors.swapaxes(1, 2)).reshape(n, p * p))

    def local(self, state: WishartSearchState, points: Array) -> Array:
        p = self.dim
        half = self.group._solve(state.root, np.ascontiguousarray(points).reshape(-1, p)).reshape(-1, p, p)  # W L^-T
        rows = np.ascontiguousarray(half.swapaxes(1, 2)).reshape(-1, p)
        z = self.group._solve(state.root, rows).reshape(-1, p, p)
        return checks.symmetric_part(z).reshape(-1, p * p)

    def update(self, state: WishartSearchState, told: Ranked, out: Any = None) -> WishartSearchState:
        order = told.order
        if len(order) < 2:  # a single point has no meaningful rank
            return state
        constants, n = wishart_rates(len(order), self.group.dof), float(state.dof)
        step = self._natural_step(told.local, order, constants.utilities)
        root = self.group._product_h(state.root, _RESCALED * step)
        path = (1 - constants.c) * state.path + constants.gain * math.sqrt(n) * step
        exponent = constants.drive * (1 - self._norm(path) / constants.norm)
        dof = np.clip(n * math.exp(max(-1.0, min(1.0, exponent))), self.least_dof, MOST_DOF)
        if told.plateau:  # wider
            dof = max(float(dof) * math.exp(-0.4 - constants.drive), self.least_dof)
        return WishartSearchState(np.array(dof), root, path)

    def _natural_step(self, local: Array, order: NDArray[np.int64], utilities: Array) -> Array:
        """N, scaled down if an entry of eta N exceeds 1: distant points must not spoil L."""
        weights = np.empty(len(order))
        weights[order] = utilities
        y = checks.symmetric_part((weights @ local).reshape(self.shape))  # -I drops out, since the utilities sum to 0
        columns = np.ascontiguousarray(y[:, self.group.hub])
        step = self.group._project_columns(columns, np.diagonal(y).copy())
        return step / max(1.0, _RESCALED * float(np.abs(step).max()))

    def _norm(self, path: Array) -> float:
        """|p + p^T|, the norm of the Fisher matrix up to a factor."""
        dense = self.group._dense_local(path)
        return float(np.linalg.norm(dense + dense.T))

    # ---- ends -------------------------------------------------------------------------------------------------

    def _end(self, state: WishartSearchState, first: Array) -> dict[str, str]:
        text = f"the degrees of freedom are {MOST_DOF:g}: samples cannot get closer to the mean"
        return {"dof": text} if float(state.dof) >= MOST_DOF else {}

    def view(self, state: WishartSearchState) -> StateView:
        """A result has dof, the degrees of freedom."""
        return StateView(lambda: self.stds(state), fields=lambda: {"dof": float(state.dof)})


def dof_of(sigma0: Any, rows: int) -> float:
    """2 / sigma0^2, with which sigma0 is the relative standard deviation of a diagonal entry, or p, which it needs."""
    share = checks.real_number("sigma0", sigma0, positive=True)
    if not share >= 1e-6:
        raise ValueError(f"sigma0 must be at least 1e-6 for positive-definite matrices, got {sigma0!r}")
    return max(2 / share**2, float(rows))


def _check(name: str, points: Array) -> None:
    """Refuse matrices that are not symmetric and positive definite."""
    checks.check_symmetric(name, points)
    checks.positive_roots(name, checks.symmetric_part(points))
