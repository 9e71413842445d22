"""Search for several optima at once: a mixture of Gaussians, each the search distribution of its own basin.

With ranks over the whole mixture, natural gradients keep one basin if weights are learned, and at most half of them if
not: the best one drives the others away. So each component is ranked among its own samples and moves by the update of
`Evolution`; the components share only the list of known optima. Each component is in one of four phases, which
determine the purpose of its next samples:

    SEARCH  samples of its Gaussian. When its standard deviations have fallen to `TOLERANCE` of the initial ones, it has
            converged: it is at a known optimum, or at a new one
    PROBE   at the start of a descent, every few generations, and before an optimum counts as new: points on the way to
            the nearest optimum or component. If none of them is worse than both ends (hill-valley test) and the other
            end is better, the descent is abandoned
    DUEL    only if the list is full: a new optimum is compared with known ones, and the worst of them is dropped
    SCOUT   after the end of a descent: samples of the broad initial distribution, uniform in a box, or beyond known
            optima. The best of them is where the component starts its next descent, with its first covariance or a
            smaller one

A row of local coordinates consists of the index of a component, a tag (SEARCH and SCOUT: 0; PROBE: the fraction of the
way; DUEL: the slot in the list; -1 for points that were not asked for, less for samples that a mechanism marks), the
number of the probe that the point belongs to (-1: none) and z. A point of a probe keeps its tag and its number if its
value arrives late: it counts as long as its component waits for this probe.

The components and their phases are in `mixture_descents.py`, the list of optima and their values in
`mixture_optima.py`, and where descents begin in `mixture_scouts.py`.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.mixture import Mixture, box_of
from esgroup.domains.base import Arrays
from esgroup.domains.box import Box, make_box, parse_bounds
from esgroup.files import states
from esgroup.files.checked import CheckpointError
from esgroup.groups import Group, described
from esgroup.options import SearchOptions
from esgroup.strategies.base import Proposed, Ranked, StateView, Strategy, Traits
from esgroup.strategies.criteria import Criterion
from esgroup.strategies.mixture_descents import (
    DUEL,
    NO_PROBE,
    PROBE,
    SCOUT,
    SEARCH,
    TOLERANCE,
    UNASKED,
    Component,
    Descents,
    MixtureSearchState,
)
from esgroup.strategies.mixture_optima import Mode, Niches, best_near, folded
from esgroup.strategies.mixture_scouts import scouts
from esgroup.strategies.sampling import shortened

_DEFAULTS = SearchOptions()


@dataclass(frozen=True, eq=False)
class MixtureSearch(Strategy):
    """Search in several basins at once, and report the optima of all of them.

    Parameters
    ----------
    distribution : Mixture
        The initial distribution of K components, with `learn_weights=False`. Its weights are the components' shares of
        the points.
    popsize_wanted : int, optional
        Points per generation, at least 4; by default 4 + floor(3 ln n) for each component.
    bounds : optional
        Bounds as in `Searcher`, but finite. Points outside are mirrored back.
    most_modes : int, optional
        The number of optima to keep, by default 500, or 16 + 4 K if that is more; beyond it, the worst are dropped.
    options : SearchOptions
        The options of every component: algorithm, decoding, mirrored, noise and step_size.
    whole : array (n,), optional
        The variables that a domain around the search rounds: optima differ by an integer there.
    axes : Group, optional
        A frame whose axes follow each descent, instead of the Gaussians' groups; it ignores correlations.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or out of its range.
    """

    distribution: Mixture
    popsize_wanted: int | None = None
    bounds: Any = None
    most_modes: int | None = None
    options: SearchOptions = _DEFAULTS
    whole: NDArray[np.bool_] | None = None
    axes: Group | None = None

    def __post_init__(self) -> None:
        checks.instance("distribution", self.distribution, Mixture)
        if self.distribution.learn_weights:
            raise ValueError("distribution must have learn_weights=False, got True: learned weights keep one optimum")
        for name, least in (("popsize_wanted", 4), ("most_modes", 1)):
            if getattr(self, name) is not None:
                checks.store_whole_number(self, name, least=least)
        if self.bounds is not None:
            lower, upper, _ = parse_bounds(self.bounds, self.distribution.dim)
            object.__setattr__(self, "bounds", box_of("bounds", np.column_stack([lower, upper])))

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of components."""
        return self.distribution.count

    @cached_property
    def traits(self) -> Traits:
        names = dict.fromkeys(described(component.group) for component in self._descents.components)
        own = self.count * self._descents.own_popsize
        box = None if self.bounds is None else make_box(self.bounds[:, 0], self.bounds)
        return Traits(
            size=self.distribution.dim,
            popsize=own if self.popsize_wanted is None else self.popsize_wanted,
            about=f"Mixture of {self.count}, {' and '.join(names)}",
            domain=Arrays((self.distribution.dim,), partial(_check, box)),
            criteria=(Criterion("spread", 0, self._spread_reasons), Criterion("own", 0, self._nothing_new)),
            patience=math.inf,  # a new optimum need not be better than the known ones
            every_value=True,
            # Multipliers are those of one optimum. With constraints active at several, descents ended short of them.
            needs_values="basins, each of which would need multipliers of its own",
        )

    @cached_property
    def _weights(self) -> Array:
        return self.distribution.mixing_weights(self.distribution.state())

    @cached_property
    def _descents(self) -> Descents:
        first, most = self.distribution.state(), None
        if self.bounds is not None:
            # a third of the range, as in `Box.limits`: wider samples are nearly uniform whatever their width is
            most = (self.bounds[:, 1] - self.bounds[:, 0]) / 3
        pairs = zip(self.distribution.components, self.distribution.component_states(first), strict=True)
        components = [Component.of(gaussian, state, most, self.options, self.axes) for gaussian, state in pairs]
        broad = self._broad(components)
        capacity = max(500, self._first_length) if self.most_modes is None else self.most_modes
        # two descents to one optimum end within a few times the tolerance of each other: 100 times is safe
        niches = Niches(capacity, min(self._first_length, capacity), broad[1], 100 * TOLERANCE)
        return Descents(components, niches, broad, self.bounds, self.whole)

    @property
    def _first_length(self) -> int:
        """The initial length of the list of optima."""
        return 16 + 4 * self.count

    def _broad(self, components: list[Component]) -> tuple[Array, Array]:
        """Mean and standard deviations of the uniform distribution on the box, or of the mixture without a box."""
        if self.bounds is not None:
            return self.bounds.mean(axis=1), (self.bounds[:, 1] - self.bounds[:, 0]) / math.sqrt(12)
        means = np.array([component.mean0 for component in components])
        return self._weights @ means, self._mixed_stds(means, np.array([c.stds0**2 for c in components]))

    def _mixed_stds(self, means: Array, variances: Array) -> Array:
        """sqrt(sum_k pi_k (variance_k + (mean_k - mean)^2)), per variable."""
        return np.sqrt(self._weights @ (variances + (means - self._weights @ means) ** 2))

    # ---- state --------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> MixtureSearchState:
        return self._descents.start()

    def mean(self, state: MixtureSearchState) -> Array:
        """Return the mean of the component that had the best sample."""
        return self._descents.center(state, int(state.leader)).copy()

    def stds(self, state: MixtureSearchState) -> Array:
        """Return the standard deviations of the whole mixture."""
        descents = self._descents
        means = np.array([search.mean for search in state.searches])
        variances = [c.evolution.variances(s) for c, s in zip(descents.components, state.searches, strict=True)]
        return self._mixed_stds(means, np.array(variances))

    def checked(self, state: MixtureSearchState) -> MixtureSearchState:
        """Return the state from a file; the list of optima may have grown."""
        descents, length = self._descents, len(state.known.hits)
        if length > descents.niches.capacity:
            raise CheckpointError(
                f"the array 'hits' must have at most {descents.niches.capacity} entries, the optima kept, got {length}"
            )
        model = descents.resized(self.start(), length)
        states.same_shapes(state._replace(searches=model.searches), model)
        for component, search in zip(descents.components, state.searches, strict=True):
            component.checked(search)
        return state

    # ---- samples ------------------------------------------------------------------------------------------------

    def sample(
        self, state: MixtureSearchState, n: int, rng: np.random.Generator, out: Proposed | None = None
    ) -> Proposed:
        counts = self._shares(state, n, rng)
        drawn = [self._draw(state, k, int(counts[k]), rng) for k in np.flatnonzero(counts).tolist()]
        points = folded(self.bounds, np.concatenate([part.points for part in drawn]))
        paired = self.options.mirrored or self.options.algorithm == "paper"
        return Proposed(points, np.concatenate([part.local for part in drawn]), paired=paired)

    def _shares(self, state: MixtureSearchState, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Points of each component: whole generations, to the components that are furthest behind their share.

        Where fewer points are asked for than a generation of all components, several such requests may come before the
        state moves, and all of them would go to the same components; so these are drawn at random, and no component
        gets a second generation before all others have one. Less than a generation is one component's: a probe needs
        several points. On Himmelblau's function, asked point by point, the fixed choice took three times the
        evaluations.
        """
        own = self._descents.own_popsize
        if n < self.popsize:
            counts = np.zeros(self.count, dtype=np.int64)
            if n >= own:
                counts += own * _spread(n // own, self._weights, rng)
            if n % own:
                counts += n % own * rng.multinomial(1, self._weights)
            return counts
        total = max(1, n // own)
        blocks = self._blocks(state, total)
        counts = blocks * (n // total)
        counts[np.flatnonzero(blocks)[0]] += n - counts.sum()
        return counts

    def _blocks(self, state: MixtureSearchState, total: int) -> NDArray[np.int64]:
        """How many generations of `total` each component gets: each goes to the one with the largest credit."""
        own, credit, blocks = self._descents.own_popsize, state.credit.copy(), np.zeros(self.count, dtype=np.int64)
        for _ in range(total):
            credit += self._weights * own
            k = int(credit.argmax())
            credit[k] -= own
            blocks[k] += 1
        return blocks

    def _draw(self, state: MixtureSearchState, k: int, n: int, rng: np.random.Generator) -> Proposed:
        descents, phase = self._descents, int(state.phase[k])
        component, search = descents.components[k], state.searches[k]
        tags, z, probe = np.zeros(n), np.zeros((n, self.size)), descents.probe_numbers(state)[k]
        if phase in (PROBE, DUEL):
            points, tags = self._comparison(state, k, n, rng)
        elif phase == SCOUT:
            known, scale = state.known.points[state.known.hits > 0], descents.niches.scale
            points = scouts(known, scale, self.bounds, lambda m: self._anywhere(state, k, m, rng), n, rng)
            z = component.local(search, points)
        else:
            points, z, marks, *_ = component.sample(search, n, rng)
            if marks is not None:
                tags = np.where(marks > 0, UNASKED - marks, 0.0)
        return Proposed(points, np.column_stack([np.full(n, float(k)), tags, np.full(n, probe), z]))

    def _anywhere(self, state: MixtureSearchState, k: int, n: int, rng: np.random.Generator) -> Array:
        """Draw n points of the broad distribution that component k has while it scouts; in a box they are uniform."""
        if self.bounds is not None:
            return rng.uniform(self.bounds[:, 0], self.bounds[:, 1], (n, self.size))
        return self._descents.components[k].sample(state.searches[k], n, rng).points

    def _comparison(self, state: MixtureSearchState, k: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """All points to be compared, or a random choice if n is too small for all of them."""
        own = self._descents.own_popsize
        if n >= min(own, self.popsize):
            return self._descents.compared(state, k, n)
        points, tags = self._descents.compared(state, k, own)
        some = rng.integers(own, size=n)
        return points[some], tags[some]

    def local(self, state: MixtureSearchState, points: Array) -> Array:
        """Return local coordinates in the component that has the highest responsibility for a point."""
        descents = self._descents
        pairs = [*zip(descents.components, state.searches, strict=True)]
        zs = np.array([component.local(search, points) for component, search in pairs])
        volumes = [component.log_volume(search) for component, search in pairs]
        with np.errstate(over="ignore"):  # of points so far away that no component is responsible
            squares = (zs**2).sum(axis=2)
        logs = -0.5 * squares + (np.log(self._weights) - volumes)[:, None]
        labels, n = logs.argmax(axis=0), len(points)
        return np.column_stack([labels, np.full(n, UNASKED), np.full(n, NO_PROBE), zs[labels, np.arange(n)]])

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        """Limit z to the length of a long sample; points of a probe keep their original z."""
        short = np.column_stack([local[:, :3], shortened(local[:, 3:])])
        if then is not None:
            probes = then[:, 2] != NO_PROBE
            short[probes, 1:3] = then[probes, 1:3]
        return short

    # ---- update -------------------------------------------------------------------------------------------------

    def update(self, state: MixtureSearchState, told: Ranked, out: Any = None) -> MixtureSearchState:
        """Move by ranks, then keep the values for `modes`: the search itself does not use them."""
        if len(told.order):
            state = self._moved(state, told.local, told.order)
        if told.earlier or told.values is None or told.points is None or np.isnan(told.values).all():
            return state
        return self._descents.with_values(state, told.points, told.values)

    def _moved(self, state: MixtureSearchState, local: Array, order: NDArray[np.int64]) -> MixtureSearchState:
        new = copy.deepcopy(state._replace(searches=[]))  # the states of components are replaced, never changed
        new = self._descents.with_room(new._replace(searches=[*state.searches]))
        labels, tags = self._awaited(state, local)
        searching = np.flatnonzero(state.phase[labels[order]] == SEARCH)
        if len(searching):
            new.leader[...] = labels[order[searching[0]]]
        counts = np.bincount(labels[tags != UNASKED], minlength=self.count)
        new.credit[:] += self._weights * counts.sum() - counts
        for k in np.unique(labels).tolist():
            own = labels == k
            places = np.cumsum(own) - 1  # among its own points
            self._descents.advance(new, k, tags[own], local[own, 3:], places[order[own[order]]])
        return new

    def _awaited(self, state: MixtureSearchState, local: Array) -> tuple[NDArray[np.int64], Array]:
        """The component and the tag of every row.

        A point of a probe belongs to the component that waits for it. If the probe is over, it is a point like one that
        was not asked for.
        """
        numbers = local[:, 2].astype(np.int64)
        owners, part = numbers % self.count, numbers != NO_PROBE
        awaited = part & (self._descents.probe_numbers(state)[owners] == numbers)
        labels = np.where(awaited, owners, local[:, 0].astype(np.int64))
        tags = np.where(part & ~awaited, UNASKED, local[:, 1])
        return labels, tags

    # ---- results ------------------------------------------------------------------------------------------------

    def modes(self, state: MixtureSearchState) -> list[Mode]:
        """Return the optima found, and those that unfinished descents are close to, best first.

        The point of a mode is the best one evaluated near it, with its value; if no value is known there, the center
        and NaN. The weight is the share of descents that ended there; an unfinished one counts as one. Before any
        optima are found, the modes are the components. The best point overall, if it is not near any of them, comes
        first, with weight 0.

        Parameters
        ----------
        state : MixtureSearchState
            The state of the search.

        Returns
        -------
        list of Mode
            Point, value and weight of each.
        """
        descents = self._descents
        known, others = np.flatnonzero(state.known.hits).tolist(), descents.unfinished(state)
        weights = np.concatenate([state.known.hits[known], np.ones(len(others))])
        if len(weights) == 0:  # components that are not scouting; if all are, the one that had the best sample
            others = np.flatnonzero(state.phase != SCOUT).tolist() or [int(state.leader)]
            weights = self._weights[others]
        places = descents.neighborhoods(state, known, others)
        best = best_near(places, state.best)
        valued = best.values < np.inf
        points = np.where(valued[:, None], best.points, places.centers)
        values, shares = np.where(valued, best.values, np.nan), weights / weights.sum()
        listed = [Mode(*each) for each in zip(points, values.tolist(), shares.tolist(), strict=True)]
        top = float(state.best.values[-1])
        if top < math.inf and not any(mode.value <= top for mode in listed):
            listed.append(Mode(state.best.points[-1].copy(), top, 0.0))
        return sorted(listed, key=lambda mode: (math.isnan(mode.value), mode.value))

    def view(self, state: MixtureSearchState) -> StateView:
        """A result has modes, the optima, each with point, value and weight."""
        return StateView(lambda: self.stds(state), fields=lambda: {"modes": self.modes(state)})

    def _nothing_new(self, state: MixtureSearchState, first: Array) -> dict[str, str]:
        """Stop after 20 descents, plus 20 for each optimum or component, that found nothing new.

        If M optima attract descents equally, each of them is then missed with a probability below e^-20; one that
        attracts a quarter of the average share, below e^-5. Most of these descents are cheap, since they end with their
        first probe. With 5 for each plus only 10, a run on Vincent's function missed two of 36 optima.

        Descents to known optima end early, and many of them fit into the time that one to a new optimum takes. So the
        search waits for descents that have passed a probe, though not indefinitely, since a probe may be wrong.

        A full list means that there are more optima than needed, and the search only looks for better ones: then 5 for
        each of the first slots, plus 10, are enough. Each of these descents takes long.
        """
        known = int((state.known.hits > 0).sum())
        if self._descents.niches.is_full(state.known):
            enough = 10 + 5 * max(self.count, min(known, self._first_length))
        else:
            enough = 20 + 20 * max(self.count, known)
            if ((state.phase != SCOUT) & (state.age >= self._descents.period)).any():
                enough *= 2
        if state.known.idle < enough:
            return {}
        return {"modes": f"the last {int(state.known.idle)} descents ended at known optima"}


def _check(box: Box | None, name: str, points: Array) -> None:
    if box is not None:
        box.check(name, points)


def _spread(n: int, weights: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts with sum n, each n times its weight rounded up or down, and that on average (systematic sampling).

    The components are taken in random order, so that every combination of them is possible.
    """
    order = rng.permutation(len(weights))
    ends = np.floor(n * np.cumsum(weights[order]) / weights.sum() + rng.random())
    ends[-1] = n  # rounding must not lose a point
    counts = np.empty(len(weights), dtype=np.int64)
    counts[order] = np.diff(ends, prepend=0.0)
    return counts
