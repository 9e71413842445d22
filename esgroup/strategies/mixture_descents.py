"""The descents of a mixture search: what a component is, the phases it passes through, and how a descent ends.

`Component` is one Gaussian of the mixture as a search of its own. `Descents` moves the components from phase to phase;
the module `mixture` explains the phases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.groups import Group
from esgroup.options import SearchOptions
from esgroup.strategies.base import Ranked
from esgroup.strategies.criteria import CONDITION
from esgroup.strategies.evolution import Generation, SearchState
from esgroup.strategies.mixture_optima import (
    KnownOptima,
    Neighborhoods,
    Niches,
    ValuedPoints,
    best_near,
    folded,
    segment,
    valley,
)
from esgroup.strategies.vector import VectorSearch, is_decoded

SEARCH, SCOUT, PROBE, DUEL = range(4)  # phases: see the module `mixture`
UNASKED = -1.0  # the tag of points that were not asked for; samples that a mechanism marks with t have -1 - t
NO_PROBE = -1.0  # the number of points that are not part of a probe
TOLERANCE = 1e-6  # of the first standard deviations: a descent ends when they have fallen to it
# Of the distance to the nearest known optimum: the first standard deviations of a descent. On Vincent's function in
# three dimensions, 200,000 evaluations found 204 of 216 optima with 0.2 and 185 with 0.3 (36 components, one seed).
REACH = 0.2


# ---- one component ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Component(VectorSearch):
    """One Gaussian of the mixture as a search over vectors of its own."""

    @classmethod
    def of(
        cls, gaussian: Gaussian, state: State, most: Array | None, options: SearchOptions, axes: Group | None
    ) -> Component:
        """The search that starts with a Gaussian; `most` are the largest standard deviations that it may have.

        A frame replaces its group and starts with the standard deviations only.
        """
        if gaussian.form == "precision":
            gaussian, state = gaussian.converted(state)
        group = gaussian.group if axes is None else axes
        options = replace(options, decoding=is_decoded(group, options))
        if axes is not None:
            stds = np.sqrt(gaussian.group._squared_row_norms(state.root))
            return cls(group, state.mean, stds, most=most, options=options)
        return cls(group, state.mean, np.ones(group.dim), most=most, options=options, root=state.root)

    @cached_property
    def stds0(self) -> Array:
        """The initial standard deviations."""
        return self.steps0 if self.root is None else np.sqrt(self.group._squared_row_norms(self.root))

    def shrinkage(self, search: SearchState) -> float:
        """Return the largest ratio of a standard deviation to the initial one."""
        return float((self.stds(search) / self.stds0).max())

    def log_volume(self, search: SearchState) -> float:
        """log|sigma D A|."""
        scales = search.sigma * search.scale
        return self.group._log_abs_det(search.root) + float(np.log(scales).sum())

    def placed(self, search: SearchState, z: Array) -> Array:
        """Return the points that belong to z."""
        generation, x = Generation.empty(*z.shape), np.empty(z.shape)
        generation.z[:-1] = z
        self.evolution.place(search, generation, x)
        return x


# ---- all components ---------------------------------------------------------------------------------------------


class MixtureSearchState(NamedTuple):
    """Everything the next generation needs."""

    searches: list[SearchState]  # of the components
    phase: Array  # (K,)
    age: Array  # (K,): generations of the present descent
    target: Array  # (K, dim): the far end of a probe
    rival: Array  # (K,): the slot of the known optimum at that end, -1 if it is another component
    probes: Array  # (K,): how many probes it has begun
    credit: Array  # (K,): how many points a component has had less than its share
    leader: Array  # (): the component that had the best sample in the last generation
    known: KnownOptima
    best: ValuedPoints  # evaluated points: near each known optimum, near each component, and overall, in this order


@dataclass(frozen=True, eq=False)
class Descents:
    """What the components do with ranked points; methods that take `new` change the arrays of that state."""

    components: list[Component]
    niches: Niches
    broad: tuple[Array, Array]  # mean and standard deviations of the distribution that scouts are drawn from
    box: Array | None
    whole: NDArray[np.bool_] | None = None  # which variables are rounded before a point is evaluated

    @cached_property
    def dim(self) -> int:
        """Number of variables of a point."""
        return len(self.broad[0])

    @cached_property
    def own_popsize(self) -> int:
        """4 + floor(3 ln n) points for each component (CMA-ES)."""
        return 4 + int(3 * math.log(self.dim))

    @cached_property
    def period(self) -> int:
        """Generations between two probes of a component, 5 + 2 n.

        This is 9 in two dimensions. With 5, two of six runs missed an optimum of Himmelblau's function; with 14, the
        evaluations are a tenth more; without probes they more than double.
        """
        return 5 + 2 * self.dim

    @cached_property
    def longest(self) -> float:
        """Generations after which a descent always ends: 100 + 50 (n + 3)^2 / sqrt(lambda), as in pycma."""
        return 100 + 50 * (self.dim + 3) ** 2 / math.sqrt(self.own_popsize)

    # ---- state --------------------------------------------------------------------------------------------------

    def start(self) -> MixtureSearchState:
        """Return the first state, with every component at its mean."""
        count = len(self.components)
        searches = [component.start() for component in self.components]
        phase, age, probes, credit = np.zeros((4, count))
        target, rival = np.zeros((count, self.dim)), np.full(count, -1.0)
        known, best = self.niches.start(), ValuedPoints.unknown(self.niches.first + count + 1, self.dim)
        return MixtureSearchState(searches, phase, age, target, rival, probes, credit, np.zeros(()), known, best)

    def with_room(self, state: MixtureSearchState) -> MixtureSearchState:
        """Return the state with a free slot for every component, as far as the list of optima may grow."""
        slots = len(state.known.hits)
        if slots == self.niches.capacity or (state.known.hits == 0).sum() >= len(self.components):
            return state
        return self.resized(state, min(2 * slots + len(self.components), self.niches.capacity))

    def resized(self, state: MixtureSearchState, slots: int) -> MixtureSearchState:
        """Return the state with a list of so many slots; further ones are free."""
        known, best = state.known, ValuedPoints.unknown(slots + len(self.components) + 1, self.dim)
        length, points, hits = len(known.hits), np.zeros((slots, self.dim)), np.zeros(slots)
        shared = min(slots, length)
        points[:shared], hits[:shared] = known.points[:shared], known.hits[:shared]
        for new, old in zip(best, state.best, strict=True):
            new[:shared], new[slots:] = old[:shared], old[length:]
        return state._replace(known=known._replace(points=points, hits=hits), best=best)

    def center(self, state: MixtureSearchState, k: int) -> Array:
        """Return the mean of component k, mirrored into the box and rounded where the domain rounds."""
        center = folded(self.box, state.searches[k].mean)
        return center if self.whole is None else np.where(self.whole, np.rint(center), center)

    def widths(self, state: MixtureSearchState, k: int) -> Array:
        """Return ten standard deviations of component k: how far its samples reach."""
        return 10 * self.components[k].stds(state.searches[k])

    # ---- what is reported ---------------------------------------------------------------------------------------

    def unfinished(self, state: MixtureSearchState) -> list[int]:
        """Return the components that are halfway to convergence, at optima that are not known yet."""
        found: list[int] = []
        listed = list(state.known.points[state.known.hits > 0])
        for k in np.flatnonzero(state.phase != SCOUT).tolist():
            component, search, center = self.components[k], state.searches[k], self.center(state, k)
            apart = max(self.niches.resolution, float((self.widths(state, k) / self.niches.scale).max()))
            near = self.niches.nearest(np.array(listed), center)[1] <= apart
            if component.shrinkage(search) <= math.sqrt(TOLERANCE) and not near:
                found.append(k)
                listed.append(center)
        return found

    def neighborhoods(
        self, state: MixtureSearchState, known: Sequence[int], components: Sequence[int]
    ) -> Neighborhoods:
        """Return boxes around known optima, as wide as the resolution, and components, as wide as their samples."""
        own = [[self.center(state, k), self.widths(state, k)] for k in components]
        centers, widths = np.reshape(own, (-1, 2, self.dim)).swapaxes(0, 1)
        near = np.broadcast_to(self.niches.resolution * self.niches.scale, (len(known), self.dim))
        at = state.known.points[np.asarray(known, dtype=np.int64)]
        return Neighborhoods(np.vstack([at, centers]), np.vstack([near, widths]), self.niches.scale)

    def with_values(self, state: MixtureSearchState, points: Array, values: Array) -> MixtureSearchState:
        """Return the state with the best of these values near every optimum, near every component, and overall.

        Optima are added and components move: the best point near one place may now be near another. A point near no
        place is dropped unless it is the best overall.
        """
        evaluated = ValuedPoints(np.vstack([state.best.points, points]), np.append(state.best.values, values))
        slots, count = len(state.known.hits), len(self.components)
        best, known = ValuedPoints.unknown(slots + count + 1, self.dim), np.flatnonzero(state.known.hits).tolist()
        at_optima, at_components = self.neighborhoods(state, known, []), self.neighborhoods(state, [], range(count))
        best.points[known], best.values[known] = best_near(at_optima, evaluated)
        best.points[slots:-1], best.values[slots:-1] = best_near(at_components, evaluated)
        best.points[-1], best.values[-1] = evaluated.best()
        return state._replace(best=best)

    # ---- update -------------------------------------------------------------------------------------------------

    def compared(self, state: MixtureSearchState, k: int, n: int) -> tuple[Array, Array]:
        """Return n points, and their tags, whose ranks tell component k, in PROBE or DUEL, where it is."""
        center = self.center(state, k)
        if state.phase[k] == PROBE:
            return segment(center, state.target[k], n)
        capacity = self.niches.capacity
        rivals = (state.known.turn + k * (n - 1) + np.arange(n - 1)) % capacity  # all slots get their turn
        return np.vstack([state.known.points[rivals.astype(np.int64)], center]), np.append(rivals, capacity)

    def probe_numbers(self, state: MixtureSearchState) -> Array:
        """Return for each component the number of the probe that it waits for: k of K has k, k + K, k + 2 K, ..."""
        count = len(self.components)
        return np.where(state.phase == PROBE, count * state.probes + np.arange(count), NO_PROBE)

    def advance(self, new: MixtureSearchState, k: int, tags: Array, z: Array, order: NDArray[np.int64]) -> None:
        """Move component k by tags and z of its own points and their order among themselves."""
        phase, search, ranked = int(new.phase[k]), new.searches[k], tags[order]
        if phase == PROBE and (ranked >= 0).any():
            self._finish_probe(new, k, valley(ranked))
        elif phase == DUEL and (ranked >= 0).any():
            self._finish_duel(new, k, ranked[ranked >= 0])
        elif phase == SCOUT:
            self._start_descent(new, k, folded(self.box, self.components[k].placed(search, z[order])))
        elif phase == SEARCH and len(order) >= 2:  # a single point has no rank; what is compared must not move
            marks = np.where(tags < UNASKED, UNASKED - tags, 0.0).astype(np.int64)
            told = Ranked(z, order, tags=marks if marks.any() else None)
            new.searches[k] = self.components[k].update(search, told)
            new.age[k] += 1
            self._probe_if_due(new, k)

    def _is_over(self, state: MixtureSearchState, k: int) -> bool:
        component, search, age = self.components[k], state.searches[k], float(state.age[k])
        if component.shrinkage(search) <= TOLERANCE or age >= self.longest:
            return True
        return age % self.period == 0 and component.evolution.condition(search) > CONDITION

    def _probe_if_due(self, new: MixtureSearchState, k: int) -> None:
        """Probe the nearest optimum or component every `period` generations, and the nearest optimum at the end."""
        over = self._is_over(new, k)
        if not over and new.age[k] % self.period:
            return
        center = self.center(new, k)
        slot, gap = self.niches.nearest_known(new.known, center)
        near, near_gap = (center, math.inf) if over else self._nearest_component(new, k, center)
        if over and gap <= self.niches.resolution:
            self._end_descent(new, k, slot)
        elif near_gap < gap:
            self._start_probe(new, k, -1, near)
        elif slot >= 0:
            self._start_probe(new, k, slot, new.known.points[slot])
        elif over:
            self._keep_optimum(new, k)

    def _nearest_component(self, state: MixtureSearchState, k: int, center: Array) -> tuple[Array, float]:
        """The nearest other component that is not scouting and its distance; its own center, infinite, without one."""
        others = [self.center(state, j) for j in np.flatnonzero(state.phase != SCOUT).tolist() if j != k]
        i, gap = self.niches.nearest(np.array(others), center)
        return (others[i] if others else center), gap

    def _start_probe(self, new: MixtureSearchState, k: int, rival: int, target: Array) -> None:
        new.phase[k], new.rival[k], new.target[k] = PROBE, rival, target
        new.probes[k] += 1

    def _finish_probe(self, new: MixtureSearchState, k: int, found: tuple[bool, bool] | None) -> None:
        """After a probe: end the descent, continue it, or keep its place as an optimum."""
        if found is None:
            return
        same, better = found
        over, slot = self._is_over(new, k), int(new.rival[k])
        new.phase[k] = SEARCH
        if not same and over:
            self._keep_optimum(new, k)
        elif same and over and better:
            self._end_descent(new, k, slot, self.center(new, k))
        elif same and not better:
            self._end_descent(new, k, slot)

    def _finish_duel(self, new: MixtureSearchState, k: int, tags: Array) -> None:
        """Drop the worst of the compared optima, which may be the new one; do nothing if there was no other."""
        worst, met = int(tags[-1]), len(np.unique(tags)) - 1
        if met == 0 or self.niches.capacity not in tags:
            return
        new.known.turn[...] = (new.known.turn + met) % self.niches.capacity
        if worst < self.niches.capacity:
            self._keep_optimum(new, k, worst)
        else:
            new.known.idle[...] += 1
            self._start_scouting(new, k)

    def _keep_optimum(self, new: MixtureSearchState, k: int, slot: int | None = None) -> None:
        """Add the center of component k to the known optima, unless another descent got there since the probe."""
        center = self.center(new, k)
        nearest, gap = self.niches.nearest_known(new.known, center)
        if gap <= self.niches.resolution:
            self._end_descent(new, k, nearest)
        elif slot is None and self.niches.is_full(new.known):
            new.phase[k] = DUEL
        else:
            self.niches.add(new.known, center, slot)
            self._start_scouting(new, k)

    def _end_descent(self, new: MixtureSearchState, k: int, slot: int, better: Array | None = None) -> None:
        """End a descent at a known optimum, or at another component (slot -1)."""
        if slot >= 0:
            self.niches.hit(new.known, slot, better)
        self._start_scouting(new, k)

    def _start_scouting(self, new: MixtureSearchState, k: int) -> None:
        """Reset component k to the broad distribution, whose best sample will be the start of its next descent."""
        new.searches[k] = self.components[k].evolution.start(*self.broad)
        new.phase[k], new.age[k] = SCOUT, 0

    def _start_descent(self, new: MixtureSearchState, k: int, scouted: Array) -> None:
        """Start a descent at the first of the points, best to worst, that is not a known optimum; else scout again.

        How wide the basins are is not known, but where optima are close to each other they are narrow: the first
        standard deviations are at most `REACH` of the distance to the nearest known optimum. A probe of the way there
        comes first: most descents to known optima end with it.
        """
        known = [self.niches.nearest_known(new.known, point) for point in scouted]
        i = next((i for i, (_, gap) in enumerate(known) if gap > self.niches.resolution), None)
        if i is None:  # points that were not asked for: a probe that was told late, or a user's
            return
        component, (slot, gap) = self.components[k], known[i]
        new.searches[k] = search = component.start()
        search.mean[:] = scouted[i]
        search.sigma[0] *= min(1.0, REACH * gap / float((component.stds0 / self.niches.scale).max()))
        new.phase[k] = SEARCH
        if slot >= 0:
            self._start_probe(new, k, slot, new.known.points[slot])
