"""A strategy over vectors, within a domain: adds bounds, integers and named parameters to any search.

The state and the local coordinates are those of the inner strategy; if parameters are conditional, each row of local
coordinates also says which variables are active. Other properties of a domain affect samples and limits:

- a sample behind a mirror is redrawn: seen from the mean, the function behind a mirror is folded, so the search would
  learn wrong correlations from it;
- occasionally one of the points is one that samples do not reach, such as the mean moved onto nearby bounds;
- standard deviations stay within limits, and the mean of an angle within one turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.base import Affine, Arrays, Domain, Limits, Place, Shaped
from esgroup.domains.named import free_domain
from esgroup.space import Space
from esgroup.strategies.base import (
    AT_BOUNDS,
    PLATEAU,
    Indices,
    Proposed,
    Ranked,
    Relocation,
    StateView,
    Strategy,
    Traits,
)
from esgroup.strategies.coordinates import Coordinates, Through
from esgroup.strategies.criteria import Looking, watching

# A point on the bounds comes every fourth generation, or once in 40 evaluations if popsize is more than 10. Every 2, 3,
# 4, 5 generations and never, 10 coordinates, popsize 10, medians of 15 seeds to 1e-8: a sphere with its minimum in a
# corner 60, 60, 80, 100, 520; a linear function 100, 90, 120, 150, 990; a sphere half of whose coordinates end at
# bounds 920, 930, 920, 900, 930.
_BOUNDS_EVERY, _BOUNDS_SHARE = 4, 40
# Samples behind a mirror are redrawn at most three times, and only if they are at most half of a generation: at a
# minimum on many bounds hardly any sample is on this side of all mirrors, so the folded ones are used there. Of 24
# searches of bbob's f10 with 10 coordinates within -5 and 5 (instances 1-3, sigma0 = 5/3, 2000 evaluations) the median
# gap is 7.2 instead of 20.7; a share of 0.3 leads to 12.6, of 0.7 to 7.6, of 1 to 6.5. A sphere half of whose
# coordinates end at bounds takes 1,180 evaluations instead of 1,140; with a share of 0.7 it is 1,220, of 1 1,300.
_AGAIN, _AGAIN_SHARE = 3, 0.5


@dataclass(frozen=True, eq=False)
class Within(Strategy):
    """A strategy over the vectors y of a domain.

    Parameters
    ----------
    within : Domain
        The domain of the points.
    inner : Strategy
        The search over y.
    """

    within: Domain
    inner: Strategy

    def __post_init__(self) -> None:
        checks.instance("within", self.within, Domain)
        checks.instance("inner", self.inner, Strategy)
        if self.inner.shape != (self.within.size,):
            wanted = f"vectors of {self.within.size} numbers, as many as the domain has"
            raise ValueError(f"inner must search {wanted}, got one over points of shape {self.inner.shape}")

    @cached_property
    def traits(self) -> Traits:
        return replace(self.inner.traits, domain=self.within, criteria=watching(self.inner.criteria, self._reasons))

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> Any:
        return self.inner.start(rng)

    def checked(self, state: Any) -> Any:
        return self.inner.checked(state)

    def asked(self, state: Any, ids: Indices) -> Any:
        return self.inner.asked(state, ids)

    def successor(self, state: Any) -> tuple[Strategy, Any] | None:
        found = self.inner.successor(state)
        return None if found is None else (replace(self, inner=found[0]), found[1])

    def relocated(self, to: Relocation) -> Strategy | None:
        if to.place is not None:
            return relocated(self.inner, to) if isinstance(self.within, Affine) else None
        popsize, sigma_factor, rng = to.popsize, to.sigma_factor, to.rng
        assert rng is not None
        state = self.inner.start()
        first = Place(self.inner.mean(state), self.inner.stds(state))
        found = self.within.elsewhere(sigma_factor, rng, first)
        if found is None:
            inner, domain = elsewhere(self.inner, popsize, sigma_factor, rng), self.within
        else:
            domain, place = found
            inner = relocated(self.inner, Relocation(popsize, place, domain.limits(popsize)))
        return None if inner is None else Within(domain, inner)

    def limited(self, state: Any, limits: Limits) -> Any:
        return self.inner.limited(state, limits)

    def kept(self, state: Any, *, turned: bool = True) -> Any:
        """Return the state with its mean adjusted as the domain requires; `state` may be overwritten.

        Parameters
        ----------
        state
            The state of the inner strategy.
        turned
            Whether an angle may be moved by a full turn.
        """
        limits = self.within.limits_at(self.inner.mean(state), self.popsize) if self.within.has_limits_at else None
        if limits is None:
            return state
        return self.inner.limited(state, limits if turned else limits._replace(mean=None))

    # ---- points -------------------------------------------------------------------------------------------------

    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        drawn = self.inner.sample(state, n, rng, None if out is None or out.memo is None else out)
        # default hooks of a domain need no mean and no view, which are slow if domains are nested
        if type(self.within).behind is not Domain.behind and drawn.tags is None and not drawn.paired:
            drawn = self._drawn_again(state, drawn, rng)
        every = self._tries_every
        if every < math.inf and n >= self.popsize and (self.inner.view(state).age + 1) % every == 0:
            drawn = self._with_tried(state, drawn)
        points = self.within.decode(drawn.points)
        if self.within.is_conditional:
            drawn = drawn._replace(local=np.column_stack([drawn.local, self.within.active(points)]))
        return drawn._replace(points=points)

    def _drawn_again(self, state: Any, drawn: Proposed, rng: np.random.Generator) -> Proposed:
        """Redraw samples that are behind a mirror."""
        mean = self.inner.mean(state)
        behind = self.within.behind(drawn.points, mean)
        if behind is None or not 0 < behind.mean() <= _AGAIN_SHARE:
            return drawn
        points, local = drawn.points, drawn.local
        for _ in range(_AGAIN):
            other = self.inner.sample(state, len(points), rng)
            here = self.within.behind(other.points, mean)
            good, bad = np.flatnonzero(~here), np.flatnonzero(behind)  # type: ignore[operator]
            number = min(len(good), len(bad))
            points[bad[:number]], local[bad[:number]] = other.points[good[:number]], other.local[good[:number]]
            behind[bad[:number]] = False
            if not behind.any():
                break
        return drawn._replace(memo=None)

    @cached_property
    def _tries_every(self) -> float:
        """Generations between two points on the bounds; fewer than four samples cannot spare one."""
        if self.popsize < 4 or type(self.within).tried is Domain.tried:
            return math.inf
        return min(_BOUNDS_EVERY, math.ceil(_BOUNDS_SHARE / self.popsize))

    def _with_tried(self, state: Any, drawn: Proposed) -> Proposed:
        """Replace a sample by a point that samples do not reach.

        The point is evaluated but not used in the update: its local coordinates stay those of the sample. It replaces
        the last point that no other mechanism has marked. If its value arrives late, it is a point like any other.
        """
        point = self.within.tried(self.inner.mean(state), self.inner.stds(state))
        tags = np.zeros(len(drawn.points), dtype=np.int64) if drawn.tags is None else drawn.tags
        unmarked = np.flatnonzero(tags == 0)
        if point is not None and unmarked.size:
            drawn.points[unmarked[-1]], tags[unmarked[-1]] = point, AT_BOUNDS
        return drawn._replace(tags=tags if tags.any() else None)

    def _encoded(self, state: Any, points: Array) -> Array:
        return self.within.encode(points, self.inner.mean(state))

    def local(self, state: Any, points: Array) -> Array:
        local = self.inner.local(state, self._encoded(state, points))
        return np.column_stack([local, self.within.active(points)]) if self.within.is_conditional else local

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        if not self.within.is_conditional:
            return self.inner.shortened(local, then)
        own, active = self._split(local)
        return np.column_stack([self.inner.shortened(own, None if then is None else self._split(then)[0]), active])

    def _split(self, local: Array) -> tuple[Array, Array]:
        """The local coordinates of the inner strategy, and which variables are active."""
        own = local.shape[1] - self.within.size
        return np.ascontiguousarray(local[:, :own]), local[:, own:]

    def coordinates(self, state: Any) -> Coordinates:
        into = partial(self._encoded, state)
        return Through(self, state, self.inner.coordinates(state), into, self.within.decode)

    # ---- values -------------------------------------------------------------------------------------------------

    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        record = None
        if told.record is not None and self.traits.recalls:
            record = self._encoded(state, told.record[None])[0]
        told = told._replace(record=record)
        if told.points is not None and self.traits.every_value:
            told = told._replace(points=self._encoded(state, told.points))
        if self.within.is_conditional and len(told.order):
            local, active = self._split(told.local)
            told = told._replace(local=local, active=active != 0)
        if told.first is not None:
            told = told._replace(first=self._compared(state, told.first))
        if told.plateau and self.within.folds and self._at_one_point(state, told):
            told = told._replace(plateau=False)
        return self.kept(self.inner.update(state, told, out))

    def _at_one_point(self, state: Any, told: Ranked) -> bool:
        """Whether the values of a plateau are equal because most samples are rounded to one point, as in a corner.

        Wider steps would keep a search that has found its corner from ending. Among integers they are right: they lead
        to other points. This cannot be determined if local coordinates are not z.
        """
        best = told.local[told.order[: int(PLATEAU * len(told.order)) + 1]]
        if best.shape[1] != self.inner.size:
            return False
        inner = self.inner.coordinates(state)
        y = [inner.at(z) for z in best]
        if any(one is None for one in y):
            return False
        points = self.within.decode(np.array(y))
        return bool((points == points[0]).all())

    def _compared(self, state: Any, first: Array) -> Array:
        """The initial standard deviations of variables that become narrow at an optimum; infinite for all others.

        Relative to infinity, those are no reason to continue.
        """
        idle = self.within.idle(self.inner.mean(state)) if self.within.has_idle else None
        return first if idle is None or len(idle) != len(first) else np.where(idle, np.inf, first)

    # ---- what is known ------------------------------------------------------------------------------------------

    def mean(self, state: Any) -> Array:
        return self.within.decode(self.inner.mean(state)[None])[0]

    def stds(self, state: Any) -> Array:
        return self.within.stds(self.inner.mean(state), self.inner.stds(state))

    def view(self, state: Any) -> StateView:
        view = self.inner.view(state)
        return view._replace(fields=lambda: self._fields(view))

    def _fields(self, view: StateView) -> dict[str, Any]:
        found = self.within.fields(view.fields())
        if modes := found.get("modes"):
            found["modes"] = [one._replace(point=self.within.decode(one.point[None])[0]) for one in modes]
        return found | {"sigma": view.sigma()} if isinstance(self.within, Shaped) else found

    def _reasons(self, look: Looking, state: Any, first: Array) -> dict[str, str]:
        return look(state, self._compared(state, first))


# ---- any strategy, from anywhere ----------------------------------------------------------------------------------


def within(strategy: Strategy, domain: Domain | Space) -> Strategy:
    """Return a search by a strategy over vectors within a domain; it starts where the domain says.

    Parameters
    ----------
    strategy : Strategy
        A search over as many variables as the domain has.
    domain : Domain or Space
        The domain of the points.

    Raises
    ------
    TypeError, ValueError
        If `domain` is not a domain, or has a different number of variables.
    """
    checks.instance("strategy", strategy, Strategy)
    if isinstance(domain, Space):
        named = free_domain(domain)
        if len(named.choices):
            raise ValueError(f"domain must have numbers only for {strategy.about}, got the choices of {domain!r}")
        return Within(named, within(strategy, named.box()))
    checks.instance("domain", domain, Domain)
    if strategy.shape != (domain.size,):
        raise ValueError(f"domain must have {strategy.size} numbers to search, as {strategy.about}, got {domain.size}")
    place = domain.begin()
    if place is not None:
        strategy = relocated(strategy, Relocation(strategy.popsize, place, domain.limits(strategy.popsize)))
    return Within(domain, strategy)


def relocated(strategy: Strategy, to: Relocation) -> Strategy:
    """Return a search over vectors that starts at a place; if it cannot move by itself, an affine map moves it."""
    found, place = strategy.relocated(to), to.place
    if found is not None:
        return found
    if is_dataclass(strategy) and any(field.name == "popsize" and field.init for field in fields(strategy)):
        strategy = replace(strategy, popsize=to.popsize)
    assert place is not None
    state = strategy.start()
    return Within(Affine.between(Place(strategy.mean(state), strategy.stds(state)), place), strategy)


def elsewhere(strategy: Strategy, popsize: int, sigma_factor: float, rng: np.random.Generator) -> Strategy | None:
    """Return the same search from another start, None if that is impossible.

    A search over vectors without limits that knows no other place starts at a sample of N(mean, diag(stds)^2) of its
    initial state.
    """
    found = strategy.relocated(Relocation(popsize, sigma_factor=sigma_factor, rng=rng))
    if found is not None or not _is_unlimited(strategy):
        return found
    state = strategy.start()
    mean, stds = strategy.mean(state), strategy.stds(state)
    mean = mean + stds * rng.standard_normal(len(mean))
    steps = np.maximum(sigma_factor * stds, 10 * np.spacing(np.abs(mean)))  # the mean may be far from the initial one
    return relocated(strategy, Relocation(popsize, Place(mean, steps)))


def can_begin_elsewhere(strategy: Strategy) -> bool:
    """Whether a search knows another place to start, or can be moved to one."""
    if isinstance(strategy, Within):
        return type(strategy.within).elsewhere is not Domain.elsewhere or can_begin_elsewhere(strategy.inner)
    return _is_unlimited(strategy) or type(strategy).relocated is not Strategy.relocated


def _is_unlimited(strategy: Strategy) -> bool:
    """Whether all vectors are points."""
    domain = strategy.domain
    return type(domain) is Arrays and len(domain.shape) == 1 and domain.rule is None


def innermost(strategy: Strategy, kind: type[Domain] = Domain) -> Strategy:
    """Return the strategy inside all domains, or inside the outermost domains of one kind."""
    while isinstance(strategy, Within) and isinstance(strategy.within, kind):
        strategy = strategy.inner
    return strategy


def to_search(strategy: Strategy, state: Any, points: Array) -> Array:
    """Return points in the variables of the innermost strategy."""
    while isinstance(strategy, Within):
        points = strategy.within.encode(points, strategy.inner.mean(state))
        strategy = strategy.inner
    return points
