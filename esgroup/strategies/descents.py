"""The life of a component of a mixture search: descents, one after another, and how each of them ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.strategies.base import CONDITION
from esgroup.strategies.component import Component
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.mode_values import Best, Places, best_near, best_of_all, none_yet
from esgroup.strategies.niches import Known, Niches, folded, segment, valley

SEARCH, SCOUT, PROBE, DUEL = range(4)  # phases: see the module `mixture`


class MixtureSearchState(NamedTuple):
    """All that the next generation needs."""

    searches: Array  # the states of the components, packed one after another
    phase: Array  # (K,)
    age: Array  # (K,): generations of the present descent
    target: Array  # (K, dim): the far end of a probe
    rival: Array  # (K,): the known optimum at that end, -1 if it is another component
    credit: Array  # (K,): points that a component has had less than its share
    leader: Array  # (): the component whose sample was best of all
    settled: Array  # (): descents that began anew
    points: Array  # the known optima: see Known
    hits: Array
    turn: Array
    idle: Array
    best_points: Array  # told near the known optima, near the components, and of all, in this order: see Best
    best_values: Array

    def copied(self) -> MixtureSearchState:
        return MixtureSearchState(*(field.copy() for field in self))

    @property
    def known(self) -> Known:
        return Known(self.points, self.hits, self.turn, self.idle)

    @property
    def best(self) -> Best:
        return Best(self.best_points, self.best_values)


@dataclass(frozen=True, eq=False)
class Descents:
    """What components do with points that are ranked; the methods change the arrays of a state."""

    components: list[Component]
    niches: Niches
    broad: tuple[Array, Array]  # mean and standard deviations of the distribution to begin anew from
    tolerance: float
    box: Array | None

    @cached_property
    def dim(self) -> int:
        return len(self.broad[0])

    @cached_property
    def own_popsize(self) -> int:
        """4 + floor(3 ln n) points for each component (CMA-ES)."""
        return 4 + int(3 * math.log(self.dim))

    @cached_property
    def period(self) -> int:
        """Generations between two probes of a component, 5 + 2 n.

        In two dimensions 9: with 5 two of six runs missed an optimum of Himmelblau's function, with 14 the evaluations
        are a tenth more, and without probes more than twice as many.
        """
        return 5 + 2 * self.dim

    @cached_property
    def longest(self) -> float:
        """Generations after which a descent is over in any case: 100 + 50 (n + 3)^2 / sqrt(lambda), as in pycma."""
        return 100 + 50 * (self.dim + 3) ** 2 / math.sqrt(self.own_popsize)

    # ---- state --------------------------------------------------------------------------------------------------

    @cached_property
    def _cuts(self) -> list[int]:
        return [0, *np.cumsum([component.size for component in self.components]).tolist()]

    def start(self) -> MixtureSearchState:
        """Every component at its mean."""
        count = len(self.components)
        searches = np.concatenate([c.packed(c.start(c.mean0)) for c in self.components])
        phase, age, credit = np.zeros((3, count))
        target, rival = np.zeros((count, self.dim)), np.full(count, -1.0)
        leader, settled = np.zeros(()), np.zeros(())
        known, best = self.niches.start(), none_yet(self.niches.capacity + count + 1, self.dim)
        return MixtureSearchState(searches, phase, age, target, rival, credit, leader, settled, *known, *best)

    def search(self, state: MixtureSearchState, k: int) -> SearchState:
        """The state of component k: views, through which it can be changed."""
        return self.components[k].views(state.searches[self._cuts[k] : self._cuts[k + 1]])

    def centre(self, state: MixtureSearchState, k: int) -> Array:
        """The mean of component k, in the box."""
        return folded(self.box, self.search(state, k).mean)

    def widths(self, state: MixtureSearchState, k: int) -> Array:
        """Ten standard deviations of component k: how far its samples go."""
        return 10 * np.sqrt(self.components[k].evolution.variances(self.search(state, k)))

    def unfinished(self, state: MixtureSearchState) -> list[int]:
        """Components that are half way to convergence, at optima that are not known yet."""
        found: list[int] = []
        listed = list(state.points[state.hits > 0])
        for k in np.flatnonzero(state.phase != SCOUT).tolist():
            component, search, centre = self.components[k], self.search(state, k), self.centre(state, k)
            apart = max(self.niches.resolution, float((self.widths(state, k) / self.niches.scale).max()))
            near = self.niches.nearest(np.array(listed), centre)[1] <= apart
            if component.shrinkage(search) <= math.sqrt(self.tolerance) and not near:
                found.append(k)
                listed.append(centre)
        return found

    def under_way(self, state: MixtureSearchState) -> list[int]:
        """Components that are not looking for a place to begin at; if all are, the one that had the best sample."""
        return np.flatnonzero(state.phase != SCOUT).tolist() or [int(state.leader)]

    def places(self, state: MixtureSearchState, known: Sequence[int], components: Sequence[int]) -> Places:
        """Some of the known optima, as far as the resolution, and of the components, as far as their samples go."""
        own = [[self.centre(state, k), self.widths(state, k)] for k in components]
        centres, widths = np.reshape(own, (-1, 2, self.dim)).swapaxes(0, 1)
        near = np.broadcast_to(self.niches.resolution * self.niches.scale, (len(known), self.dim))
        at = state.points[np.asarray(known, dtype=np.int64)]
        return Places(np.vstack([at, centres]), np.vstack([near, widths]), self.niches.scale)

    def on_values(self, state: MixtureSearchState, points: Array, values: Array) -> MixtureSearchState:
        """The state with the best of these values near every optimum and every component, and of all.

        Places move and are new: what was the best of one may now be near another, and what is near none is forgotten
        unless it is the best of all.
        """
        told, capacity, count = state.best.and_more(points, values), self.niches.capacity, len(self.components)
        best, known = none_yet(capacity + count + 1, self.dim), np.flatnonzero(state.hits).tolist()
        best.points[known], best.values[known] = best_near(self.places(state, known, []), told)
        best.points[capacity:-1], best.values[capacity:-1] = best_near(self.places(state, [], range(count)), told)
        best.points[-1], best.values[-1] = best_of_all(told)
        return state._replace(best_points=best.points, best_values=best.values)

    # ---- comparisons --------------------------------------------------------------------------------------------

    def compared(self, state: MixtureSearchState, k: int, n: int) -> tuple[Array, Array]:
        """n points and their tags by which component k, in PROBE or DUEL, finds out where it is."""
        centre = self.centre(state, k)
        if state.phase[k] == PROBE:
            return segment(centre, state.target[k], n)
        rivals = self.niches.rivals(state.known, n - 1, k)
        return np.vstack([state.points[rivals.astype(np.int64)], centre]), np.append(rivals, self.niches.capacity)

    # ---- update -------------------------------------------------------------------------------------------------

    def advance(self, new: MixtureSearchState, k: int, rows: Array, order: NDArray[np.int64]) -> None:
        """Move component k by rows (tag, z) of its own points and their order among themselves."""
        phase, tags, search = int(new.phase[k]), rows[order, 0], self.search(new, k)
        if phase == PROBE and (tags >= 0).any():
            self._decide(new, k, valley(tags))
        elif phase == DUEL and (tags >= 0).any():
            self._forget_one(new, k, tags[tags >= 0])
        elif phase == SCOUT:
            self._settle(new, k, self.components[k].placed(search, rows[order[:1], 1:])[0])
        elif len(order) >= 2:  # one point has no rank
            self.components[k].update(search, np.ascontiguousarray(rows[:, 1:]), order)
            new.age[k] += 1
            if phase == SEARCH:
                self._look_around(new, k)

    def _is_over(self, state: MixtureSearchState, k: int) -> bool:
        component, search, age = self.components[k], self.search(state, k), float(state.age[k])
        if component.shrinkage(search) <= self.tolerance or age >= self.longest:
            return True
        return age % self.period == 0 and component.evolution.condition(search) > CONDITION

    def _look_around(self, new: MixtureSearchState, k: int) -> None:
        """Probe the nearest optimum or component if it is time, and the nearest optimum before the end."""
        over = self._is_over(new, k)
        if not over and new.age[k] % self.period:
            return
        centre = self.centre(new, k)
        place, gap = self.niches.nearest_known(new.known, centre)
        near, near_gap = (None, math.inf) if over else self._nearest_component(new, k, centre)
        if over and gap <= self.niches.resolution:
            self._end_at(new, k, place)
        elif near is not None and near_gap < gap:
            new.phase[k], new.rival[k], new.target[k] = PROBE, -1, near
        elif place >= 0:
            new.phase[k], new.rival[k], new.target[k] = PROBE, place, new.points[place]
        elif over:
            self._keep(new, k)

    def _nearest_component(self, state: MixtureSearchState, k: int, centre: Array) -> tuple[Array | None, float]:
        others = [self.centre(state, j) for j in np.flatnonzero(state.phase != SCOUT).tolist() if j != k]
        if not others:
            return None, math.inf
        i, gap = self.niches.nearest(np.array(others), centre)
        return others[i], gap

    def _decide(self, new: MixtureSearchState, k: int, found: tuple[bool, bool] | None) -> None:
        """After a probe: give up, go on, or keep the place as an optimum."""
        if found is None:
            return
        same, better = found
        over, place = self._is_over(new, k), int(new.rival[k])
        new.phase[k] = SEARCH
        if not same and over:
            self._keep(new, k)
        elif same and over and better:
            self._end_at(new, k, place, self.centre(new, k))
        elif same and not better:
            self._end_at(new, k, place)

    def _end_at(self, new: MixtureSearchState, k: int, place: int, better: Array | None = None) -> None:
        """End a descent at a known optimum, or at another component (place -1)."""
        if place >= 0:
            self.niches.hit(new.known, place, better)
        self._begin_anew(new, k)

    def _keep(self, new: MixtureSearchState, k: int, place: int | None = None) -> None:
        """Take where a component is for an optimum, unless another has come there since it looked around."""
        centre = self.centre(new, k)
        nearest, gap = self.niches.nearest_known(new.known, centre)
        if gap <= self.niches.resolution:
            self._end_at(new, k, nearest)
        elif place is None and self.niches.is_full(new.known):
            new.phase[k] = DUEL
        else:
            self.niches.add(new.known, centre, place)
            self._begin_anew(new, k)

    def _forget_one(self, new: MixtureSearchState, k: int, tags: Array) -> None:
        """The last of the compared optima is forgotten, or the new one not kept; nothing if it met no other."""
        worst, met = int(tags[-1]), len(np.unique(tags)) - 1
        if met == 0 or self.niches.capacity not in tags:
            return
        new.turn[...] = (new.turn + met) % self.niches.capacity
        if worst < self.niches.capacity:
            self._keep(new, k, worst)
        else:
            new.idle[...] += 1
            self._begin_anew(new, k)

    def _begin_anew(self, new: MixtureSearchState, k: int) -> None:
        component = self.components[k]
        component.write(self.search(new, k), component.evolution.start(*self.broad))
        new.phase[k], new.age[k] = SCOUT, 0

    def _settle(self, new: MixtureSearchState, k: int, point: Array) -> None:
        """Begin a descent at a point, with 1, 1/2 and 1/4 of the first standard deviations in turn.

        How wide basins are is not known. On Vincent's function, some of whose 36 basins are wide and some narrow, this
        found 25 to 28 of them with 50,000 evaluations, starts that are all as wide 23 (12 components, three seeds).
        """
        component, search = self.components[k], self.search(new, k)
        component.write(search, component.start(folded(self.box, point)))
        search.sigma[0] *= 2.0 ** -(int(new.settled) % 3)
        new.settled[...] += 1
        new.phase[k] = SEARCH
