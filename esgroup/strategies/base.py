"""What a search over any kind of point is made of: samples with local coordinates, and an update by their ranks."""

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

PLATEAU = 0.7  # of a generation whose values are equal to the best one: the tutorial's B.3
_WIDEST = math.log(1e5)  # times the first standard deviations: a constant function is no reason to diverge
# Tags of points that are tried beside the samples: they count, but have middle ranks in the update. Step-size rules and
# the adaptation of rates have the tags 1 to 4.
AT_BOUNDS = 5  # the mean, moved onto bounds
INNER = 6  # where models of constraints have the best feasible point


class Proposed(NamedTuple):
    """Points that a strategy proposes, with what its update will need to know of each."""

    points: Array  # (n, *shape)
    local: Array  # (n, m): local coordinates, from which the update is computed
    tags: Indices | None = None  # (n,): what a device recognizes its samples by, 0 for all others; None: all are 0
    ids: Indices | None = None  # (n,): what the strategy knows a point by when its value comes, -1: by nothing
    memo: Any = None  # handed back by `Ranked` if these points are told together in the same state; not stored
    paired: bool = False  # whether samples belong together, so that none of them may be drawn again


class Ranked(NamedTuple):
    """What is told to a strategy: the values of some points, and the generation that they complete, if they do.

    `local` to `median` are those of a generation of any number of points, some of which may have been told before. For
    strategies that see `every_value` there are the new points and values besides; where these do not end a generation,
    `order` is empty. More fields may follow, with defaults.
    """

    local: Array  # (n, m)
    order: Indices  # (n,): from best to worst, failed ones last
    plateau: bool = False  # most values are equal, and the distribution is not yet far wider than the first one
    tags: Indices | None = None  # as they were drawn; 0 for points that were not, or not from the present state
    memo: Any = None  # of `Proposed`, else None
    first: Array | None = None  # the first `spread` of the search
    failed: int = 0  # how many of the points have no value
    best: float = math.nan  # the least value, with constraints that of feasible points: infinite if there are none
    record: Array | None = None  # the best point so far
    median: float = math.nan  # by which points were ranked; of an even number the upper one
    active: NDArray[np.bool_] | None = None  # (n, size): which numbers have a part in the values; None: all
    points: Array | None = None  # (k, *shape): of the values that are new
    values: Array | None = None  # (k,), NaN for failed ones, infinite where a ranking says that they are not feasible
    ids: Indices | None = None  # (k,): as they were drawn, -1 for points that were not
    earlier: bool = False  # whether these are evaluations from before the search, which are no part of it


@dataclass(frozen=True)
class Traits:
    """What a strategy is and what it needs, none of which a search changes."""

    size: int  #: how many numbers are searched: p (p + 1) / 2 for symmetric p x p matrices
    popsize: int  #: values in a generation
    about: str  #: the distribution and its structure in a few words, for results and figures
    domain: Domain = None  # type: ignore[assignment]  #: what a point is: by default a vector of `size` numbers
    structure: Any = None  #: what `Searcher.structure` shows: a group, or words, by default `about`
    note: str = ""  #: what was decided for the user, for the message of a result
    #: Reasons to stop beside limits and values; None: the spread, relative to the first.
    criteria: tuple[Criterion, ...] | None = None
    #: How much longer than usual the values may stand still; infinite if only `criteria` say when to end.
    patience: float = 1.0
    #: Values that a search waits for, at least, before it looks at them: by default `popsize`.
    least_batch: int = 0
    #: Whether generations are handed out in parts: `StateView` says how many points, and `asked` sees which are out.
    in_parts: bool = False
    every_value: bool = False  #: whether `update` is told every value at once, and not only complete generations
    recalls: bool = False  #: whether `Ranked.record` is of use
    knows_inner: bool = False  #: whether points with the tag INNER have middle ranks in the update
    keeps_coordinates: bool = False  #: whether local coordinates of points remain what they are with a successor
    may_adapt: bool = False  #: whether noise="adapt" exists and was not chosen: what a noisy search is advised to
    #: What it is, in words for an error, if points must be ranked by their values and not by the scores of constraints.
    needs_values: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", self.domain or Arrays((self.size,)))
        object.__setattr__(self, "structure", self.about if self.structure is None else self.structure)
        object.__setattr__(self, "least_batch", self.least_batch or self.popsize)


class StateView(NamedTuple):
    """What can be seen of a state; what may take long is a function."""

    spread: Callable[[], Array]  # standard deviations of what is searched, which tell whether it shrinks or grows
    axes: Callable[[], float] | None = None  # the longest to the shortest axis; None: of single entries
    fields: Callable[[], dict[str, Any]] = dict  # what a result has besides, by name
    age: float = math.nan  # generations that have ended since devices began to count them; NaN if none counts
    generations: int | None = None  # that have ended, where they are handed out in parts; None: all moves are whole
    batch: int | None = None  # how many points to ask for next, and after how many values to update; None: `popsize`

    def sigma(self) -> float:
        """Return the overall step size: the geometric mean of the standard deviations."""
        return math.exp(float(np.log(self.spread()).mean()))

    def axis_ratio(self) -> float:
        """Return the longest to the shortest axis of the distribution."""
        if self.axes is not None:
            return self.axes()
        stds = self.spread()
        return float(stds.max() / stds.min())


class Relocation(NamedTuple):
    """Where and how a search is to begin anew."""

    popsize: int
    place: Place | None = None  # None: where the strategy likes, as wide as at first times `sigma_factor`
    limits: Limits = Limits()  # of standard deviations
    sigma_factor: float = 1.0
    rng: np.random.Generator | None = None  # for strategies that choose the place


class Strategy(ABC):
    """A search distribution with the devices of evolution strategies: a frozen object of sizes and constants.

    What changes is the state, a NamedTuple of float64 arrays (numbers are arrays of shape ()). Everything the next
    generation needs is in it, so that a search can be stored and continue exactly. Methods are pure: they change no
    state and keep nothing. The one exception is `out`: where a caller passes it, its arrays are no longer needed, and
    a strategy may write its answer into them; it may even be the state itself. Arguments come from a Searcher and need
    no checks.

    A strategy that is a dataclass of numbers, texts, arrays, groups and other registered objects can be saved: see
    `esgroup.strategies.register`.
    """

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What it is and what it needs: a class attribute or a cached property."""

    @abstractmethod
    def start(self, rng: np.random.Generator | None = None) -> Any:
        """Return the first state; `rng` is for strategies that draw samples apart from `sample`."""

    @abstractmethod
    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        """Draw n points. `out` are points of an earlier call that nobody needs any longer."""

    @abstractmethod
    def local(self, state: Any, points: Array) -> Array:
        """Return the local coordinates (n, m) of any points (n, *shape): for those that were not asked for."""

    @abstractmethod
    def update(self, state: Any, told: Ranked, out: Any = None) -> Any:
        """Return the next state, after a generation."""

    @abstractmethod
    def mean(self, state: Any) -> Array:
        """Return the middle of the distribution, a point."""

    @abstractmethod
    def stds(self, state: Any) -> Array:
        """Return the standard deviations of the entries of a point, in its shape."""

    # ---- may ----------------------------------------------------------------------------------------------------

    def view(self, state: Any) -> StateView:
        """Return what can be seen of a state besides."""
        return StateView(lambda: self.stds(state))

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        """Limit local coordinates of points that were not drawn from the present state.

        Those of points that were not asked for are limited to the length of a long sample. Points that were drawn from
        an earlier state, in which their coordinates were `then`, should not be longer than `then` where lengths mean
        spread: lateness alone must not widen or narrow the distribution.
        """
        return local

    def coordinates(self, state: Any) -> Coordinates:
        """Return the coordinates in which models of values and constraints are fitted."""
        return Coordinates(self, state)

    def asked(self, state: Any, ids: Indices) -> Any:
        """Return the state after the points with these ids were handed out, if generations are handed out in parts.

        A search then keeps no reserve of points: `sample` is asked for as many as are handed out.
        """
        return state

    def successor(self, state: Any) -> tuple[Strategy, Any] | None:
        """Return the strategy to continue with, over the same points, and its state; None to stay with this one.

        It is asked after every generation.
        """
        return None

    def relocated(self, to: Relocation) -> Strategy | None:
        """Return the same search from elsewhere; None if it does not know how, or knows no place.

        `in_domain.relocated` then moves a search over vectors by an affine map; `in_domain.elsewhere` finds a place.
        """
        return None

    def limited(self, state: Any, limits: Limits) -> Any:
        """Return the state with its mean and its standard deviations within limits; it may be written to."""
        return state

    def checked(self, state: Any) -> Any:
        """Return a state of arrays from a file if it can be one of this strategy, else raise ValueError.

        As it stands, every array must have the shape that it has in the first state.
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
        """Reasons to stop beside limits and values."""
        given = self.traits.criteria
        return (Criterion("spread", 0, self._spread_reasons),) if given is None else given

    def _spread_reasons(self, state: Any, first: Array) -> dict[str, str]:
        """Whether the distribution is a point, or beyond all bounds."""
        return relative_spread(self.view(state).spread() / first)


def on_plateau(ranked: list[float], strategy: Strategy, state: Any, first: Array) -> bool:
    """Whether most values, from best to worst, are equal, and the distribution is not yet far wider than the first."""
    if ranked[0] != ranked[int(PLATEAU * len(ranked))]:
        return False
    return float(np.log(strategy.view(state).spread() / first).mean()) < _WIDEST
