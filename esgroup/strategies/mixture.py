"""Search for several optima at once: a mixture of Gaussians, each the search distribution of a basin of its own.

Ranked over the whole mixture, natural gradients keep one basin if weights are learnt, and at most half of them if not:
what is best so far drives the others away. So each component is ranked among its own samples and moves by the update of
`Evolution`; what they share is the list of known optima. A component is in one of four phases, which say what its next
samples are for:

    SEARCH  samples of its Gaussian. When its standard deviations have fallen to `tolerance` of the first ones it has
            converged: it is at a known optimum, or becomes a new one
    PROBE   now and then, and before an optimum is taken for new: points on the way to the nearest optimum or component.
            If none of them is worse than both ends (hill-valley test) and the other end is better, it is given up
    DUEL    only if the list is full: a new optimum among known ones; the worst of them is forgotten
    SCOUT   after any of these ends: samples of the broad initial distribution, uniform in a box. The best of them is
            where the component begins anew, with its first covariance or a smaller one

A row of local coordinates is the index of a component, a tag (SEARCH and SCOUT: 0; PROBE: the fraction of the way;
DUEL: the place in the list; -1 for points that were not asked for) and z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, box_of
from esgroup.groups import described
from esgroup.strategies.base import Drawn, Strategy, Told
from esgroup.strategies.bounds import parse_bounds
from esgroup.strategies.component import Component
from esgroup.strategies.descents import DUEL, PROBE, SCOUT, SEARCH, Descents, MixtureSearchState
from esgroup.strategies.injected import shortened
from esgroup.strategies.mode_values import Best, Places, best_near
from esgroup.strategies.niches import Mode, Niches, folded


@dataclass(frozen=True, eq=False)
class MixtureSearch(Strategy):
    """Several basins at once, all of them reported.

    The weights of the distribution are the components' shares of the points. `bounds`, as in `Searcher` but finite,
    mirror points that leave them. A descent ends when the standard deviations have fallen to `tolerance` of the first
    ones. At most `most_modes` optima are kept, by default 16 + 4 K; with more of them the worse ones are forgotten.
    """

    distribution: Mixture
    popsize_wanted: int | None = None
    bounds: Any = None
    tolerance: float = 1e-6
    most_modes: int | None = None

    def __post_init__(self) -> None:
        checks.instance("distribution", self.distribution, Mixture)
        if self.distribution.learn_weights:
            raise ValueError("distribution must have learn_weights=False: learnt weights leave one optimum of several")
        for name, least in (("popsize_wanted", 4), ("most_modes", 1)):
            if getattr(self, name) is not None:
                checks.store_whole_number(self, name, least=least)
        if self.bounds is not None:
            lower, upper, _ = parse_bounds(self.bounds, self.distribution.dim)
            object.__setattr__(self, "bounds", box_of("bounds", np.column_stack([lower, upper])))
        object.__setattr__(self, "tolerance", checks.real_number("tolerance", self.tolerance, positive=True))
        if self.tolerance >= 1:
            raise ValueError(f"tolerance must be below 1, got {self.tolerance}")

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of components."""
        return self.distribution.count

    @property
    def size(self) -> int:
        return self.distribution.dim

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def popsize(self) -> int:
        return self.count * self._descents.own_popsize if self.popsize_wanted is None else self.popsize_wanted

    @property
    def patience(self) -> float:
        return math.inf  # other optima may be no better

    @property
    def about(self) -> str:
        names = dict.fromkeys(described(gaussian.group) for gaussian in self.distribution.components)
        return f"Mixture of {self.count}, {' and '.join(names)}"

    @property
    def _box(self) -> Array | None:
        """Pairs (lower, upper)."""
        box: Array | None = self.bounds
        return box

    @cached_property
    def _weights(self) -> Array:
        return self.distribution.mixing_weights(self.distribution.state())

    @cached_property
    def _descents(self) -> Descents:
        first, most = self.distribution.state(), None
        if self._box is not None:
            # a third of the range, as in Space: wider samples are all but uniform, and no longer tell that they are
            most = (self._box[:, 1] - self._box[:, 0]) / 3
        pairs = zip(self.distribution.components, self.distribution.component_states(first), strict=True)
        components = [Component(gaussian, state, most) for gaussian, state in pairs]
        broad = self._broad(components)
        capacity = 16 + 4 * self.count if self.most_modes is None else self.most_modes
        # optima that are reached to within the tolerance differ by a few times that: 100 times is on the safe side
        niches = Niches(capacity, broad[1], 100 * self.tolerance)
        return Descents(components, niches, broad, self.tolerance, self._box)

    def _broad(self, components: list[Component]) -> tuple[Array, Array]:
        """Mean and standard deviations of the box, or of the whole mixture if there is none."""
        if self._box is not None:
            return self._box.mean(axis=1), (self._box[:, 1] - self._box[:, 0]) / math.sqrt(12)
        means = np.array([component.mean0 for component in components])
        return self._weights @ means, self._mixed_stds(means, np.array([c.stds0**2 for c in components]))

    def _mixed_stds(self, means: Array, variances: Array) -> Array:
        """sqrt(sum_k pi_k (variance_k + (mean_k - mean)^2)), coordinate by coordinate."""
        stds: Array = np.sqrt(self._weights @ (variances + (means - self._weights @ means) ** 2))
        return stds

    # ---- state --------------------------------------------------------------------------------------------------

    def start(self) -> MixtureSearchState:
        return self._descents.start()

    def mean(self, state: MixtureSearchState) -> Array:
        """The mean of the component that had the best sample."""
        return self._descents.centre(state, int(state.leader)).copy()

    def stds(self, state: MixtureSearchState) -> Array:
        """Standard deviations of the whole mixture."""
        descents = self._descents
        searches = [descents.search(state, k) for k in range(self.count)]
        means = np.array([search.mean for search in searches])
        variances = [c.evolution.variances(s) for c, s in zip(descents.components, searches, strict=True)]
        return self._mixed_stds(means, np.array(variances))

    def component_shapes(self) -> list[dict[str, int]]:
        """How the state of each component is packed: the lengths of its arrays, by name and in order."""
        return [component.evolution.shapes() for component in self._descents.components]

    # ---- samples ------------------------------------------------------------------------------------------------

    def sample(self, state: MixtureSearchState, n: int, rng: np.random.Generator, out: Drawn | None = None) -> Drawn:
        counts = self._shares(state, n, rng)
        drawn = [self._draw(state, k, int(counts[k]), rng) for k in np.flatnonzero(counts).tolist()]
        points = folded(self._box, np.concatenate([part.points for part in drawn]))
        return Drawn(points, np.concatenate([part.local for part in drawn]))

    def _shares(self, state: MixtureSearchState, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Points of each component: whole generations, to those that are behind their share the most.

        Of less than a generation of all there may be several before the state moves, and all of them would go to the
        same components: these are drawn. On Himmelblau's function, asked point by point, the same components took three
        times the evaluations.
        """
        own = self._descents.own_popsize
        total = max(1, n // own)
        blocks = rng.multinomial(total, self._weights) if n < self.popsize else self._blocks(state, total)
        counts = blocks * (n // total)
        counts[np.flatnonzero(blocks)[0]] += n - counts.sum()
        return counts

    def _blocks(self, state: MixtureSearchState, total: int) -> NDArray[np.int64]:
        own, credit, blocks = self._descents.own_popsize, state.credit.copy(), np.zeros(self.count, dtype=np.int64)
        for _ in range(total):
            credit += self._weights * own
            k = int(credit.argmax())
            credit[k] -= own
            blocks[k] += 1
        return blocks

    def _draw(self, state: MixtureSearchState, k: int, n: int, rng: np.random.Generator) -> Drawn:
        descents, phase = self._descents, int(state.phase[k])
        component, search = descents.components[k], descents.search(state, k)
        tags, z = np.zeros(n), np.zeros((n, self.size))
        if phase in (PROBE, DUEL):
            points, tags = self._comparison(state, k, n, rng)
        elif phase == SCOUT and self._box is not None:
            points = rng.uniform(self._box[:, 0], self._box[:, 1], (n, self.size))
            z = component.evolution.local(search, points)
        else:
            points, z = component.sample(search, n, rng)
        return Drawn(points, np.column_stack([np.full(n, float(k)), tags, z]))

    def _comparison(self, state: MixtureSearchState, k: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """All points that are to be compared; any of them, if these are too few for all and others will follow."""
        own = self._descents.own_popsize
        if n >= min(own, self.popsize):
            return self._descents.compared(state, k, n)
        points, tags = self._descents.compared(state, k, own)
        some = rng.integers(own, size=n)
        return points[some], tags[some]

    def local(self, state: MixtureSearchState, points: Array) -> Array:
        """Points belong to the component with the highest responsibility for them."""
        descents = self._descents
        pairs = [(component, descents.search(state, k)) for k, component in enumerate(descents.components)]
        zs = np.array([component.evolution.local(search, points) for component, search in pairs])
        volumes = [component.log_volume(search) for component, search in pairs]
        with np.errstate(over="ignore"):  # of points from far away, which belong to nobody
            squares = (zs**2).sum(axis=2)
        logs = -0.5 * squares + (np.log(self._weights) - volumes)[:, None]
        labels = logs.argmax(axis=0)
        return np.column_stack([labels, np.full(len(points), -1.0), zs[labels, np.arange(len(points))]])

    def shortened(self, local: Array) -> Array:
        return np.column_stack([local[:, :2], shortened(local[:, 2:])])

    # ---- update -------------------------------------------------------------------------------------------------

    def update(self, state: MixtureSearchState, told: Told, out: Any = None) -> MixtureSearchState:
        local, order = told.local, told.order
        new, labels = state.copied(), local[:, 0].astype(np.int64)
        searching = np.flatnonzero(state.phase[labels[order]] == SEARCH)
        if len(searching):
            new.leader[...] = labels[order[searching[0]]]
        counts = np.bincount(labels[local[:, 1] >= 0], minlength=self.count)
        new.credit[:] += self._weights * counts.sum() - counts
        for k in np.unique(labels).tolist():
            self._descents.advance(new, k, local[labels == k, 1:], _ranked_among(order, labels == k))
        return new

    def check(self, points: Array) -> None:
        super().check(points)
        if self._box is None:
            return
        outside = (points < self._box[:, 0]) | (points > self._box[:, 1])
        if outside.any():
            i, j = np.argwhere(outside)[0].tolist()
            low, high = self._box[j]
            raise ValueError(f"X[{i}, {j}] must be from {low} to {high}, got {points[i, j]}")

    # ---- results ------------------------------------------------------------------------------------------------

    def on_values(self, state: MixtureSearchState, points: Array, values: Array) -> MixtureSearchState:
        """The values are kept for `modes`: the search itself goes by ranks."""
        return state if np.isnan(values).all() else self._descents.on_values(state, points, values)

    def modes(self, state: MixtureSearchState) -> list[Mode]:
        """The optima found and descents that are well on their way to another, the best first.

        The point is the best one told there, with its value; before any value was told there, the middle and NaN. The
        weight is the share of descents that ended there, one that is on its way counting as one. Before there are any
        these are the components. The best point of all, if it is near none of them, comes first, with weight 0.
        """
        descents = self._descents
        known, others = np.flatnonzero(state.hits).tolist(), descents.unfinished(state)
        weights = np.concatenate([state.hits[known], np.ones(len(others))])
        if len(weights) == 0:
            others = descents.under_way(state)
            weights = self._weights[others]
        places = descents.places(state, known, others)
        listed = _listed(places, best_near(places, state.best), weights / weights.sum())
        top = float(state.best_values[-1])
        if top < math.inf and not any(mode.value <= top for mode in listed):
            listed.append(Mode(state.best_points[-1].copy(), top, 0.0))
        return sorted(listed, key=lambda mode: (math.isnan(mode.value), mode.value))

    def result_fields(self, state: MixtureSearchState) -> dict[str, Any]:
        """The optima: point, value and weight of each."""
        return {"modes": self.modes(state)}

    def stop_reasons(self, state: MixtureSearchState) -> dict[str, str]:
        """10 descents and 5 for each optimum or component without news: of M alike one is missed with less than e^-5.

        With 4 each and no more, one run of five on Himmelblau's function missed an optimum.
        """
        enough = 10 + 5 * max(self.count, int((state.hits > 0).sum()))
        if state.idle < enough:
            return {}
        return {"modes": f"the last {int(state.idle)} descents ended at optima that were known"}


def _listed(places: Places, best: Best, weights: Array) -> list[Mode]:
    told = best.values < np.inf
    points, values = np.where(told[:, None], best.points, places.centres), np.where(told, best.values, np.nan)
    return [Mode(*each) for each in zip(points, values.tolist(), weights.tolist(), strict=True)]


def _ranked_among(order: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The order of some of the points among themselves, as indices into these."""
    places = np.cumsum(chosen) - 1
    ranked: NDArray[np.int64] = places[order[chosen[order]]]
    return ranked
