"""Search for one number, or for several independent ones, with exponential families.

Natural gradients are taken in two Fisher-orthogonal directions of each family's natural parameters tau:

    z_i = <d, T(w_i) - m>,                      the location: d of Fisher length 1, E z = 0, E z^2 = 1
    y_i = 1 - <tau, T(w_i) - m> / tau^T F tau,  the concentration tau <- c tau: E y = 1; for a normal y = z^2

These are the coordinates of an evolution strategy. With weights u, w by rank, over the numbers that can concentrate:

    delta = sum_i u_i z_i,                                               tau <- tau + delta d        (in log tau_j)
    p_s   <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) delta
    p_c   <- (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_eff) delta
    M     =  (c_1 (p_c^2 - 1) + c_mu sum_i w_i (y_i - 1)) / 2                       natural gradient of log width
    tau   <- tau (e^((c_s / d_s) (|p_s| / chi - 1)) h(M))^-2

The letters and rates are those of `evolution.py`: a product of normals is searched as by a Gaussian with the diagonal
group, step by step. The plain natural gradient of the concentration has no good fixed rate; the path finds one.

Families of one parameter have no concentration. They take the first step only, with a smaller rate, and so settle where
their better samples are on average. An optimum inside their domain is found as the best of many samples, whose error
falls as 1 / evaluations; if the optimum is at the end of the domain (0, the scale of a Pareto, the location of a
Laplace, either value of a Bernoulli), they contract to it.
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
from esgroup.distributions.product import Product
from esgroup.distributions.univariate import LARGEST, SMALLEST, Univariate, UnivariateState
from esgroup.domains.base import Arrays, Place
from esgroup.strategies import rates
from esgroup.strategies.base import Proposed, Ranked, Relocation, StateView, Strategy, Traits
from esgroup.strategies.criteria import Criterion, relative_spread
from esgroup.strategies.recombination import Constants, Cumulative
from esgroup.strategies.sampling import longest, shortened

FARTHEST = 1e100  # bound of local coordinates, whose squares must not overflow
_MOST_STEPS = 100  # from one place to another
LONGEST = 2.0  # bound of a step, a factor e^2 = 7.4; smaller ones cut the long tails of scores, which biases them


class UnivariateSearchState(NamedTuple):
    """Everything the next generation needs; the paths are those of the numbers that can concentrate."""

    unconstrained: Array
    path_s: Array
    path_c: Array
    fade: Array  # (1 - c_s)^(2 t)


@dataclass(frozen=True)
class UnivariateSearch(Strategy):
    """Search with a univariate family, points of shape (1,), or with a `Product` of k of them, shape (k,).

    Parameters
    ----------
    distribution : Univariate or Product
        The initial distribution.
    popsize_wanted : int, optional
        Points per generation, at least 2; by default 4 + floor(3 ln K) for K natural parameters.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or out of its range.
    """

    distribution: Univariate | Product
    popsize_wanted: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, (Univariate, Product)):
            wanted = "a univariate distribution or a Product of them"
            raise TypeError(f"distribution must be {wanted}, got {self.distribution!r}")
        if self.popsize_wanted is not None:
            checks.store_whole_number(self, "popsize_wanted", least=2)

    # ---- sizes -------------------------------------------------------------------------------------------------

    @cached_property
    def product(self) -> Product:
        """The distribution as a product, even if it has only one factor."""
        return self.distribution if isinstance(self.distribution, Product) else Product((self.distribution,))

    @cached_property
    def traits(self) -> Traits:
        product = self.product
        return Traits(
            size=product.dim,
            # 4 + floor(3 ln K) for K natural parameters, K >= 2
            popsize=self.popsize_wanted or 4 + int(3 * math.log(max(2, len(product.signs)))),
            about=" and ".join(type(family).__name__ for family in product.families),
            domain=Arrays((product.dim,), product.check_points),
            criteria=(Criterion("spread", 0, self._spread_reasons), Criterion("own", 0, self._limit_reasons)),
            patience=1.0 if self._sharp.all() else 10.0,  # the best of many samples may come late
        )

    @cached_property
    def _sharp(self) -> NDArray[np.bool_]:
        """Which numbers can concentrate."""
        return np.array([family.concentrates for family in self.product.families])

    def constants(self, n: int) -> Constants:
        """Return weights and rates for n values: those of the diagonal group over the numbers that can concentrate."""
        return _constants(n, max(1, int(self._sharp.sum())))

    @cached_property
    def _rates(self) -> Array:
        """Rates of the location: 1, and half of `rates.utility_rate` for numbers that cannot concentrate."""
        return np.where(self._sharp, 1.0, 0.5 * rates.utility_rate(self.size, self.size))

    # ---- where it begins ---------------------------------------------------------------------------------------

    begins_with: ClassVar[tuple[str, ...]] = ("sigma0",)

    def beginning(self, sigma0: Any) -> UnivariateSearch:
        """Return the search with other initial standard deviations, for families whose width is a free parameter."""
        stds = np.array(np.broadcast_to(checks.real_array("sigma0", np.atleast_1d(sigma0), (None,)), (self.size,)))
        if not (stds > 0).all():
            raise ValueError(f"sigma0 must be positive, got {sigma0!r}")
        if not self._sharp.all():
            family = self.product.families[int(self._sharp.argmin())]
            raise ValueError(f"sigma0 cannot be given with {type(family).__name__}, whose width follows from its mean")
        found = self._at(self.mean(self.start()), stds)
        reached = found.stds(found.start())
        if not np.allclose(reached, stds, rtol=1e-6):
            wanted = f"sigma0 must be a width that {self.about} can have at its mean"
            raise ValueError(f"{wanted}, got {sigma0!r}: try {reached.min():.3g}")
        return found

    def relocated(self, to: Relocation) -> UnivariateSearch | None:
        """Start at a place, or at a sample with the initial widths times the factor.

        Families that cannot concentrate start with their own widths, and cannot start at a place.
        """
        place = to.place if self._sharp.all() else None
        if to.place is None and to.rng is not None:
            state = self.start()
            place = Place(self.sample(state, 1, to.rng).points[0], self.stds(state) * to.sigma_factor)
        return None if place is None else replace(self._at(*place), popsize_wanted=to.popsize)

    def _at(self, means: Array, stds: Array) -> UnivariateSearch:
        """The same families about other means, with other standard deviations, where they can concentrate.

        Both come by steps along their own directions, each of which leaves the other nearly as it is.
        """
        tau, sharp = self.product.natural(self.product.state()), self._sharp
        for _ in range(_MOST_STEPS):
            mean, std = self._middles(self.product.natural(self.product.state_of(tau))).T
            steps, ratios = np.where(sharp, (means - mean) / std, 0.0), (stds / std)[sharp]
            if np.abs(steps).max() < 1e-12 and np.abs(ratios - 1).max(initial=0.0) < 1e-12:
                break
            tau = self._scaled(self._shifted(tau, steps), np.clip(ratios, 0.1, 10.0))
            tau = self._confined(tau, self.popsize)
        return replace(self, distribution=self._reached(self.product.state_of(tau)))

    # ---- a generation ------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> UnivariateSearchState:
        count = int(self._sharp.sum())
        tau = self._confined(self.product.natural(self.product.state()), self.popsize)
        first = self.product.state_of(tau).unconstrained
        return UnivariateSearchState(first, np.zeros(count), np.zeros(count), np.ones(()))

    def _tau(self, state: UnivariateSearchState) -> Array:
        """The natural parameters of all families."""
        return self.product.natural(UnivariateState(state.unconstrained))

    def sample(
        self, state: UnivariateSearchState, n: int, rng: np.random.Generator, out: Proposed | None = None
    ) -> Proposed:
        points = self.product.sample(UnivariateState(state.unconstrained), n, rng)
        return Proposed(points, self.local(state, points))

    def local(self, state: UnivariateSearchState, points: Array) -> Array:
        """Return rows (z, y) of 2 k numbers."""
        return np.column_stack(self.product.local(self._tau(state), points))

    def update(self, state: UnivariateSearchState, told: Ranked, out: Any = None) -> UnivariateSearchState:
        order = told.order
        if len(order) < 2:
            return state  # a single point has no meaningful rank
        constants = self.constants(len(order))
        z, y = np.split(told.local[order], 2, axis=1)
        delta = constants.mean_weights @ z
        moved, width = self._widths(state, constants, delta[self._sharp], y[:, self._sharp])
        tau = self._scaled(self._shifted(self._tau(state), self._rates * delta), width)
        moved = self._with_tau(moved, tau, len(order))
        if told.plateau:
            wider = np.full(int(self._sharp.sum()), math.exp(0.2 + constants.drive))
            moved = self._with_tau(moved, self._scaled(self._tau(moved), wider), len(order))
        return moved

    def _widths(
        self, state: UnivariateSearchState, constants: Constants, delta: Array, y: Array
    ) -> tuple[UnivariateSearchState, Array]:
        """Return the state with new paths, and the factors of the widths: e^(log step) h(M), or the flow's.

        The flow of a single width is sqrt(1 + 2 M) (`Diagonal`); no more than 0.95 of a variance is given up.
        """
        c_s, c_c, c_1, _, mass, _, _ = constants.kernel.tolist()
        drive, chi, threshold = constants.drive, constants.chi, constants.threshold
        path_s = (1 - c_s) * state.path_s + constants.gain_s * delta
        fade, length = (1 - c_s) ** 2 * state.fade, float(np.linalg.norm(path_s))
        steady = length < threshold * chi * math.sqrt(1 - fade)
        path_c = (1 - c_c) * state.path_c + steady * math.sqrt(c_c * (2 - c_c) * mass) * delta
        damped = 1 - (not steady) * c_c * (2 - c_c)
        squares, largest = _rank_mu(constants, y)
        m = (c_1 * (path_c**2 - damped) + squares) / 2
        m = m / max(1.0, float((c_1 * path_c**2 + largest).max(initial=0.0)))
        factors = np.sqrt(np.maximum(1 + 2 * m, 0.05)) if constants.flows else 1 + m + m * m / 2
        width = math.exp(min(1.0, drive * (length / chi - 1))) * factors
        return UnivariateSearchState(state.unconstrained, path_s, path_c, np.asarray(fade)), width

    def _shifted(self, tau: Array, steps: Array) -> Array:
        """tau + step d for each family."""
        moved = []
        for (family, part), step in zip(self._parts(tau), steps, strict=True):
            change = step * np.array(family._location(part.tolist()))
            moved.append(_changed(part, change, family))
        return np.concatenate(moved)

    def _scaled(self, tau: Array, width: Array) -> Array:
        """Concentrations times width^-2."""
        factors = np.ones(self.size)
        factors[self._sharp] = width**-2
        return tau * np.repeat(factors, [family.size for family in self.product.families])

    def _confined(self, tau: Array, n: int) -> Array:
        """Keep the probability of discrete values at 1 / (n k) or more (CMA-ES with margin, Hamano et al. 2022)."""
        margin = 1 / (n * self.size) if n * self.size > 2 else 0.25
        return np.concatenate([family._confined(part, margin) for family, part in self._parts(tau)])

    def _with_tau(self, state: UnivariateSearchState, tau: Array, n: int) -> UnivariateSearchState:
        """The state with other natural parameters, where a search with n values in a generation can continue."""
        return state._replace(unconstrained=self.product.state_of(self._confined(tau, n)).unconstrained)

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        """Limit z to the length of a long sample, and y to the square of it."""
        z, y = np.split(np.clip(local, -FARTHEST, FARTHEST), 2, axis=1)
        return np.column_stack([shortened(z), np.clip(y, -(longest(self.size) ** 2), longest(self.size) ** 2)])

    # ---- what is known -----------------------------------------------------------------------------------------

    def _parts(self, tau: Array) -> list[tuple[Univariate, Array]]:
        """Every family with its natural parameters."""
        product = self.product
        return [(family, tau[part]) for family, part in zip(product.families, product.slices, strict=True)]

    def _middles(self, tau: Array) -> Array:
        return np.array([family._middle(part.tolist()) for family, part in self._parts(tau)])

    def mean(self, state: UnivariateSearchState) -> Array:
        """Return the means; for a Pareto the median, for a discrete number the likelier or nearest value."""
        return self._middles(self._tau(state))[:, 0]

    def stds(self, state: UnivariateSearchState) -> Array:
        """Return the standard deviations; for a Pareto, which may have none, from its quartiles."""
        return self._middles(self._tau(state))[:, 1]

    def _spread_reasons(self, state: UnivariateSearchState, first: Array) -> dict[str, str]:
        """Whether the distribution has contracted or grown, in units of the distance from the end of its support."""
        return relative_spread(self.stds(state) / first * (self._first_distances / self._distances(state)))

    def _distances(self, state: UnivariateSearchState) -> Array:
        return np.array([family._distance(part.tolist()) for family, part in self._parts(self._tau(state))])

    @cached_property
    def _first_distances(self) -> Array:
        return self._distances(self.start())

    def _limit_reasons(self, state: UnivariateSearchState, first: Array) -> dict[str, str]:
        """Stop at the limits of float64: a parameter cannot grow further, or no width is left.

        At a limit the distribution has contracted to an end of its support, or gone to infinity. One that had no width
        from the start has not searched.
        """
        signed = np.abs(self._tau(state)[[sign != "free" for sign in self.product.signs]])
        reasons = {}
        if (signed >= 0.99 * LARGEST).any() or (signed <= 1.01 * SMALLEST).any():
            grown = bool((self.stds(state) > self.stds(self.start())).any())
            text = f"a natural parameter left the range from {SMALLEST:g} to {LARGEST:g}"
            reasons["divergence" if grown else "limit"] = text
        if self._is_rounding(self.start()):
            reasons["resolution"] = "the initial distribution was no wider than the rounding error of its mean"
        elif self._is_rounding(state):
            reasons["width"] = "the distribution is no wider than the rounding error of its mean"
        return reasons

    def _is_rounding(self, state: UnivariateSearchState) -> bool:
        middles = self._middles(self._tau(state))[self._sharp]
        return len(middles) > 0 and bool((middles[:, 1] <= 2e-15 * np.abs(middles[:, 0])).all())

    def view(self, state: UnivariateSearchState) -> StateView:
        """A result includes the final distribution, with its usual parameters."""
        reached = UnivariateState(state.unconstrained)
        return StateView(lambda: self.stds(state), fields=lambda: {"distribution": self._reached(reached)})

    def _reached(self, state: UnivariateState) -> Product | Univariate:
        reached = self.product.at(state)
        return reached if isinstance(self.distribution, Product) else reached.families[0]


@lru_cache(maxsize=64)
def _constants(n: int, dim: int) -> Constants:
    return Cumulative().constants(n, dim, dim)


def _changed(tau: Array, change: Array, family: Univariate) -> Array:
    """tau + change, where parameters with a sign move by factors.

    This agrees to first order, keeps the sign and does not depend on units. No step is longer than `LONGEST`, except
    that of the mean of a normal, which moves by standard deviations.
    """
    free = np.array([sign == "free" for sign in family.signs])
    bounded = np.clip(change / np.where(free, 1.0, tau), -LONGEST, LONGEST)
    if not family.concentrates or not free.any():
        return np.where(free, tau + bounded, tau * np.exp(bounded))
    rest = change[0] - tau[0] * (change[1] / tau[1])  # change = (rest, 0) + a multiple of tau
    return tau * math.exp(bounded[1]) + np.array([rest, 0.0])


def _rank_mu(constants: Constants, y: Array) -> tuple[Array, Array]:
    """c_mu sum_i w_i (y_i - 1), with negative w_i for y_i scaled to a mean of 1, and c_mu sum_i |w_i| y_i."""
    w = float(constants.kernel[3]) * constants.root_weights
    mean = y.mean(axis=1) if y.shape[1] else np.ones(len(y))
    own = np.where((w < 0) & (mean > 1e-8), w / np.maximum(mean, 1e-8), w)
    return own @ y - w.sum(), np.abs(own) @ y
