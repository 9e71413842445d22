"""The interface of a search over any kind of point: samples with local coordinates, and an update by their ranks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.domains.base import Arrays, Domain, Limits, Place
from esgroup.files import states
from esgroup.strategies.coordinates import Coordinates
from esgroup.strategies.criteria import Criterion, relative_spread

Indices = NDArray[np.int64]

PLATEAU = 0.7  # share of a generation whose values equal the best one: the tutorial's B.3
_WIDEST = math.log(1e5)  # times the first standard deviations: a constant function is no reason to diverge
# Tags of points that are tried in addition to the samples: they are evaluated, but have middle ranks in the update.
# Step-size rules and the adaptation of rates have the tags 1 to 4.
AT_BOUNDS = 5  # the mean, moved onto bounds
INNER = 6  # where models of the constraints predict the best feasible point


class Proposed(NamedTuple):
    """Points that a strategy proposes, with what its update needs to know about each."""

    points: Array  # (n, *shape)
    local: Array  # (n, m): local coordinates, from which the update is computed
    tags: Indices | None = None  # (n,): mark the samples of a mechanism, 0 for all others; None: all are 0
    ids: Indices | None = None  # (n,): identify a point when its value arrives; -1: no id
    memo: Any = None  # returned in `Ranked` if these points are told together in the same state; not stored
    paired: bool = False  # whether samples belong together, so that none of them can be redrawn


class Ranked(NamedTuple):
    """What a strategy is told: the values of some points, and the generation that they complete, if any.

    `local` to `median` describe a generation of any number of points, some of which may have been told before.
    Strategies with `every_value` also get the new points and values; if these do not end a generation, `order` is
    empty. Later versions may add fields, with defaults.
    """

    local: Array  # (n, m)
    order: Indices  # (n,): from best to worst, failed ones last
    plateau: bool = False  # most values are equal, and the distribution is not yet far wider than the initial one
    tags: Indices | None = None  # as drawn; 0 for points that were not drawn from the current state
    memo: Any = None  # from `Proposed`, else None
    first: Array | None = None  # the initial `spread` of the search
    failed: int = 0  # number of failed evaluations among the points
    best: float = math.nan  # the least value; with constraints, of the feasible points: infinite if there are none
    record: Array | None = None  # the best point so far
    median: float = math.nan  # of what points were ranked by; the upper median of an even number
    active: NDArray[np.bool_] | None = None  # (n, size): which variables affect the values; None: all
    points: Array | None = None  # (k, *shape): the points of the new values
    values: Array | None = None  # (k,): new values, NaN for failed evaluations, infinite where infeasible
    ids: Indices | None = None  # (k,): as drawn, -1 for points that were not
    earlier: bool = False  # whether these are evaluations from before the search, which do not count as part of it


@dataclass(frozen=True)
class Traits:
    """What a strategy is and what it needs. A search never changes it."""

    size: int  #: number of variables searched: p (p + 1) / 2 for symmetric p x p matrices
    popsize: int  #: values per generation
    about: str  #: the distribution and its structure in a few words, for results and figures
    domain: Domain = None  # type: ignore[assignment]  #: what a point is: by default a vector of `size` numbers
    structure: Any = None  #: what `Searcher.structure` shows: a group or a text, by default `about`
    note: str = ""  #: choices made for the user, for the message of a result
    #: Reasons to stop in addition to limits and values; None: the spread relative to the initial one.
    criteria: tuple[Criterion, ...] | None = None
    #: Factor on the usual time without improvement before a search stops; infinite if only `criteria` stop it.
    patience: float = 1.0
    #: Minimum number of values that a search collects before it processes them: by default `popsize`.
    least_batch: int = 0
    #: Whether generations are asked for in parts: `StateView` says how many points, `asked` is told which are pending.
    in_parts: bool = False
    every_value: bool = False  #: whether `update` gets every value as it arrives, not only complete generations
    recalls: bool = False  #: whether the strategy uses `Ranked.record`
    knows_inner: bool = False  #: whether points with the tag INNER have middle ranks in the update
    keeps_coordinates: bool = False  #: whether local coordinates of points stay the same with a successor
    may_adapt: bool = False  #: whether noise="adapt" exists and was not chosen, so that a noisy search can suggest it
    #: If points must be ranked by value, not by constraint scores: what requires that, for the error message.
    needs_values: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", self.domain or Arrays((self.size,)))
        object.__setattr__(self, "structure", self.about if self.structure is None else self.structure)
        object.__setattr__(self, "least_batch", self.least_batch or self.popsize)


class StateView(NamedTuple):
    """What a state shows to the outside; anything that may be slow is a function."""

    spread: Callable[[], Array]  # standard deviations of what is searched, which show whether it shrinks or grows
    axes: Callable[[], float] | None = None  # ratio of the longest to the shortest axis; None: taken from `spread`
    fields: Callable[[], dict[str, Any]] = dict  # additional fields of a result, by name
    age: float = math.nan  # generations completed since a mechanism started counting them; NaN if none counts
    generations: int | None = None  # completed, if they are asked for in parts; None: every update is a generation
    batch: int | None = None  # how many points to ask for next, and after how many values to update; None: `popsize`

    def sigma(self) -> float:
        """Return the overall step size: the geometric mean of the standard deviations."""
        return math.exp(float(np.log(self.spread()).mean()))

    def axis_ratio(self) -> float:
        """Return the ratio of the longest to the shortest axis of the distribution."""
        if self.axes is not None:
            return self.axes()
        stds = self.spread()
        return float(stds.max() / stds.min())


class Relocation(NamedTuple):
    """Where and how a search is to restart."""

    popsize: int
    place: Place | None = None  # None: a place of the strategy's choice, `sigma_factor` times the initial width
    limits: Limits = Limits()  # of standard deviations
    sigma_factor: float = 1.0
    rng: np.random.Generator | None = None  # for strategies that choose the place


class Strategy(ABC):
    """A search distribution and its update rules: a frozen object of sizes and constants.

    Everything that changes is in the state, a NamedTuple of float64 arrays (numbers are arrays of shape ()). It holds
    everything the next generation needs, so a search can be saved and continued exactly. Methods are pure: they modify
    no state and remember nothing. The one exception is `out`: if a caller passes it, its arrays are no longer needed,
    and a strategy may write the result into them; `out` may even be the state itself. Arguments come from a Searcher
    and need no checks.

    A search can be saved if its strategy is a dataclass of numbers, strings, arrays, groups and other registered
    objects: see `esgroup.strategies.register`.
    """

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What the strategy is and what it needs: a class attribute or a cached property."""

    @abstractmethod
    def start(self, rng: np.random.Generator | None = None) -> Any:
        """Return the initial state; `rng` is for strategies that draw random numbers outside `sample`."""

    @abstractmethod
    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        """Draw n points. `out` holds points of an earlier call that are no longer needed."""

    @abstractmethod
    def local(self, state: Any, points: Array) -> Array:
        """Return the local coordinates (n, m) of any points (n, *shape), such as points that were not asked for."""

    @abstractmethod
    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        """Return the state after a generation."""

    @abstractmethod
    def mean(self, state: Any) -> Array:
        """Return the center of the distribution, a point."""

    @abstractmethod
    def stds(self, state: Any) -> Array:
        """Return the standard deviations of the entries of a point, in its shape."""

    # ---- may ----------------------------------------------------------------------------------------------------

    def view(self, state: Any) -> StateView:
        """Return what else a state shows to the outside."""
        return StateView(lambda: self.stds(state))

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        """Limit local coordinates of points that were not drawn from the present state.

        Points that were not asked for are limited to the length of a long sample. Points drawn from an earlier state,
        where their coordinates were `then`, should not be longer than `then` if length measures spread: a late value
        alone must not widen or narrow the distribution.
        """
        return local

    def coordinates(self, state: Any) -> Coordinates:
        """Return the coordinates in which models of values and constraints are fitted."""
        return Coordinates(self, state)

    def asked(self, state: Any, ids: Indices) -> Any:
        """Return the state after the points with these ids were asked for, if generations are asked for in parts.

        A search then keeps no reserve of points: it calls `sample` for exactly as many as `ask` returns.
        """
        return state

    def successor(self, state: Any) -> tuple[Strategy, Any] | None:
        """Return the strategy to continue with, over the same points, and its state; None to stay with this one.

        The search calls this after every generation.
        """
        return None

    def relocated(self, to: Relocation) -> Strategy | None:
        """Return the same search from another start; None if the strategy cannot move or knows no other place.

        `in_domain.relocated` then moves a search over vectors by an affine map; `in_domain.elsewhere` finds a place.
        """
        return None

    def limited(self, state: Any, limits: Limits) -> Any:
        """Return the state with its mean and standard deviations within limits; `state` may be overwritten."""
        return state

    def checked(self, state: Any) -> Any:
        """Return a state of arrays loaded from a file if it is valid for this strategy, else raise ValueError.

        By default, every array must have the same shape as in the initial state.
        """
        states.same_shapes(state, self.start())
        return state

    # ---- by other names -----------------------------------------------------------------------------------------

    # what never changes, computed once
    size: cached_property[int] = cached_property(attrgetter("traits.size"))
    popsize: cached_property[int] = cached_property(attrgetter("traits.popsize"))
    about: cached_property[str] = cached_property(attrgetter("traits.about"))
    domain: cached_property[Domain] = cached_property(attrgetter("traits.domain"))
    shape: cached_property[tuple[int, ...]] = cached_property(attrgetter("domain.shape"))

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """Reasons to stop in addition to limits and values."""
        given = self.traits.criteria
        return (Criterion("spread", 0, self._spread_reasons),) if given is None else given

    def _spread_reasons(self, state: Any, first: Array) -> dict[str, str]:
        """Whether the distribution has shrunk to a point or grown beyond all bounds."""
        return relative_spread(self.view(state).spread() / first)


def on_plateau(ranked: list[float], strategy: Strategy, state: Any, first: Array) -> bool:
    """Whether most values (best first) are equal and the distribution is not yet far wider than at the start."""
    if ranked[0] != ranked[int(PLATEAU * len(ranked))]:
        return False
    return float(np.log(strategy.view(state).spread() / first).mean()) < _WIDEST
