"""What a search over any kind of point is made of: samples with local coordinates, and an update by their ranks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.domains.base import Arrays, Domain, Limits, Place
from esgroup.files import states
from esgroup.surrogates.base import Axes

Indices = NDArray[np.int64]

CONDITION = 1e14  # of A A^T at which a search ends: the CMA-ES tutorial's ConditionCov
TOL_X = 1e-12  # of the first standard deviations: the tutorial's TolX
PLATEAU = 0.7  # of a generation whose values are equal to the best one: the tutorial's B.3
_WIDEST = math.log(1e5)  # times the first standard deviations: a constant function is no reason to diverge
DIVERGENCE = 1e10  # times the first standard deviations
# Tags of points that are tried beside the samples: they count, but have middle ranks in the update. Step-size rules and
# the adaptation of rates have the tags 1 to 4.
AT_BOUNDS = 5  # the mean, moved onto bounds
INNER = 6  # where models of constraints have the best feasible point


class Drawn(NamedTuple):
    """Points that a strategy proposes, with what its update will need to know of each."""

    points: Array  # (n, *shape)
    local: Array  # (n, m): local coordinates, from which the update is computed
    tags: Indices | None = None  # (n,): what a device recognizes its samples by, 0 for all others; None: all are 0
    ids: Indices | None = None  # (n,): what the strategy knows a point by when its value comes, -1: by nothing
    memo: Any = None  # handed back by `Told` if these points are told together while the state is the same; not stored
    paired: bool = False  # whether samples belong together, so that none of them may be drawn again


class Told(NamedTuple):
    """What is told to a strategy: the values of some points, and the generation that they complete, if they do.

    `local` to `median` are those of a generation of any number of points, some of which may have been told before. For
    strategies that see `every_value` there are the new points and values besides; where these do not end a generation,
    `order` is empty. More fields may follow, with defaults.
    """

    local: Array  # (n, m)
    order: Indices  # (n,): from best to worst, failed ones last
    plateau: bool = False  # most values are equal, and the distribution is not yet far wider than the first one
    tags: Indices | None = None  # as they were drawn; 0 for points that were not, or not from the present state
    memo: Any = None  # of `Drawn`, else None
    first: Array | None = None  # the first `spread` of the search
    failed: int = 0  # how many of the points have no value
    best: float = math.nan  # the least value, with constraints that of feasible points: infinite if there are none
    record: Array | None = None  # the best point so far
    median: float = math.nan  # by which points were ranked; of an even number the upper one
    active: NDArray[np.bool_] | None = None  # (n, size): which numbers have a part in the values; None: all
    points: Array | None = None  # (k, *shape): of the values that are new
    values: Array | None = None  # (k,), NaN for failed ones
    ids: Indices | None = None  # (k,): as they were drawn, -1 for points that were not


class Criterion(NamedTuple):
    """A reason to stop that only the distribution knows."""

    name: str
    every: int  # generations between two looks, after which the answer stands until the next; 0: always look
    look: Callable[[Any, Array], dict[str, str]]  # state and first `spread` to reasons by name, none to go on
    # Relative size of the distribution at which the reason `stopping.values.NARROW` waits as long as values get better
    # (`still_improving`); then it is "tolx".
    waits_at: float = 0.0


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

    #: Whether `update` is told every value at once, and not only those that complete a generation.
    every_value: ClassVar[bool] = False
    #: Whether local coordinates of points remain what they are when it hands over to its successor.
    keeps_coordinates: ClassVar[bool] = False
    # Which of these hooks a class fills. A search looks here once in a generation rather than make calls that do
    # nothing: in small dimensions they are a tenth of its time.
    varies_batches: ClassVar[bool] = False
    notes_asks: ClassVar[bool] = False
    hands_over: ClassVar[bool] = False
    #: Whether points with the tag INNER have middle ranks: a class with an `at` of its own has to see to it.
    knows_inner: ClassVar[bool] = False
    #: What it is, in words for an error, if points must be ranked by their values and not by the scores of constraints.
    needs_values: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.varies_batches = cls.batch_size is not Strategy.batch_size
        cls.notes_asks = cls.asked is not Strategy.asked
        cls.hands_over = cls.successor is not Strategy.successor
        cls.knows_inner = cls.at is not Strategy.at

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are searched: p (p + 1) / 2 for symmetric p x p matrices."""

    @property
    @abstractmethod
    def popsize(self) -> int:
        """Values in a generation."""

    @property
    @abstractmethod
    def about(self) -> str:
        """The distribution and its structure in a few words, for results and figures."""

    @abstractmethod
    def start(self, rng: np.random.Generator | None = None) -> Any:
        """Return the first state; `rng` is for strategies that draw samples apart from `sample`."""

    @abstractmethod
    def sample(self, state: Any, n: int, rng: np.random.Generator, out: Drawn | None = None) -> Drawn:
        """Draw n points. `out` are points of an earlier call that nobody needs any longer."""

    @abstractmethod
    def local(self, state: Any, points: Array) -> Array:
        """Return the local coordinates (n, m) of any points (n, *shape): for those that were not asked for."""

    @abstractmethod
    def update(self, state: Any, told: Told, out: Any = None) -> Any:
        """Return the next state, after a generation."""

    @abstractmethod
    def mean(self, state: Any) -> Array:
        """Return the middle of the distribution, a point."""

    @abstractmethod
    def stds(self, state: Any) -> Array:
        """Return the standard deviations of the entries of a point, in its shape."""

    # ---- may: points --------------------------------------------------------------------------------------------

    @cached_property
    def domain(self) -> Domain:
        """What a point is: a vector of `size` numbers, unless this says otherwise."""
        return Arrays((self.size,))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""
        shape: tuple[int, ...] = self.domain.shape
        return shape

    def batch_size(self, state: Any) -> int:
        """How many points to ask for next, and after how many values to update: `popsize`, or what the state says."""
        return self.popsize

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        """Limit local coordinates of points that were not drawn from the present state.

        Those of points that were not asked for are limited to the length of a long sample. Points that were drawn from
        an earlier state, in which their coordinates were `then`, should not be longer than `then` where lengths mean
        spread: lateness alone must not widen or narrow the distribution.
        """
        return local

    # ---- may: constraints ---------------------------------------------------------------------------------------

    def model_coordinates(self, state: Any, points: Array) -> tuple[Array, Array]:
        """Return coordinates of points in which models of values and constraints are fitted: z (n, k), others (n, l).

        z ~ N(0, I) for samples; a step in z can be taken by `at`. The others, 0 at the mean, may explain values
        besides. As it stands, z = (x - mean) / stds for every entry that varies, and there are no others.
        """
        mean, stds = self.mean(state).ravel(), self.stds(state).ravel()
        varies = stds > 0
        z = (points.reshape(len(points), mean.size) - mean)[:, varies] / stds[varies]
        return z, np.empty((len(points), 0))

    def at(self, state: Any, z: Array) -> Array | None:
        """Return the point with the coordinates z (k,) of `model_coordinates`, the others 0; None if there is none."""
        point, stds = self.mean(state).ravel().copy(), self.stds(state).ravel()
        varies = stds > 0
        point[varies] += stds[varies] * z
        point = point.reshape(self.shape)
        try:
            self.domain.check("x", point[None])
        except ValueError:
            return None
        return point

    # ---- may: surrogates ----------------------------------------------------------------------------------------

    def in_frame(self, state: Any, points: Array) -> Array:
        """Return coordinates z (n, k) of points in which a surrogate is fitted, NaN where none can explain a value.

        They are those of real variables. Of points that have other integers and choices than the mean they are NaN.
        """
        return np.ascontiguousarray(self.model_coordinates(state, points)[0])

    def out_of_frame(self, state: Any, z: Array) -> Array | None:
        """Return the point with the coordinates z (k,) and the integers and choices of the mean; None if none."""
        return self.at(state, z)

    def frame_change(self, old: Any, new: Any) -> tuple[Array, Array]:
        """Return d and T with z_old = d + T z_new for coordinates of `in_frame`; a vector T is a diagonal matrix.

        As it stands, z = (x - mean) / stds. A class with other coordinates has to say how they change.
        """
        stds = self.stds(old).ravel()
        return (self.mean(new) - self.mean(old)).ravel() / stds, self.stds(new).ravel() / stds

    def stepped(self, state: Any, z: Array | None, axes: Axes | None, sigma_factor: float, first: Array) -> Any:
        """Return the state after a step that a surrogate recommends, for strategies whose local z are of `in_frame`.

        Without it, a surrogate adds the points that it recommends, and steps are those of ranks.

        Parameters
        ----------
        state
            Its arrays are not written to.
        z
            Where the mean goes, None if it stays.
        axes
            Logarithms L and axes V, A <- A V exp(L) V^T as far as A can hold it; None if A stays.
        sigma_factor
            Of the step size.
        first
            The first `spread`.
        """
        raise NotImplementedError

    # ---- may: states --------------------------------------------------------------------------------------------

    def on_data(self, state: Any, points: Array, values: Array) -> Any:
        """Return a first state that knows evaluations from before the search, for strategies that remember values."""
        return state

    def asked(self, state: Any, ids: Indices) -> Any:
        """Return the state after the points with these ids were handed out, for strategies that hand out each once.

        A search then keeps no reserve of points: `sample` is asked for as many as are handed out.
        """
        return state

    def successor(self, state: Any) -> tuple[Strategy, Any] | None:
        """Return the strategy to continue with, over the same points, and its state; None to stay with this one."""
        return None

    def restarted(self, popsize: int, sigma_factor: float, rng: np.random.Generator) -> Strategy | None:
        """Return the same search from elsewhere, as wide as the first one times a factor; None if it knows no place.

        A search over vectors without limits that knows none begins at a sample of its first distribution: see
        `within.elsewhere`.
        """
        return None

    def begun(self, place: Place, popsize: int, limits: Limits) -> Strategy | None:
        """Return the same search from a place over the vectors that it searches, with limits of standard deviations.

        None if it does not know how: an affine map then moves it (`within.begun`).
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

    @property
    def recalls(self) -> bool:
        """Whether `Told.record` is of use."""
        return False

    # ---- may: what is known -------------------------------------------------------------------------------------

    @property
    def structure(self) -> Any:
        """What `Searcher.structure` shows: a group, or words."""
        return self.about

    @property
    def note(self) -> str:
        """What was decided for the user, for the message of a result."""
        return ""

    def age(self, state: Any) -> float:
        """Return how many generations have ended since devices began to count them; NaN if none counts."""
        return math.nan

    def generations(self, state: Any, moves: int) -> int:
        """Return how many generations have ended after so many moves: as many, unless a move is a part of one."""
        return moves

    def spread(self, state: Any) -> Array:
        """Return standard deviations of what is searched, which tell whether the distribution shrinks or grows."""
        return self.stds(state)

    def sigma(self, state: Any) -> float:
        """Return the overall step size: the geometric mean of the standard deviations."""
        return math.exp(float(np.log(self.spread(state)).mean()))

    def axis_ratio(self, state: Any) -> float:
        """Return the longest to the shortest axis of the distribution; as it stands, of single entries."""
        stds = self.spread(state)
        return float(stds.max() / stds.min())

    def result_fields(self, state: Any) -> dict[str, Any]:
        """Return what a result has besides, by name."""
        return {}

    # ---- may: when to stop --------------------------------------------------------------------------------------

    @property
    def may_adapt(self) -> bool:
        """Whether the option noise="adapt" exists and was not chosen, so that a noisy search can be advised to."""
        return False

    @property
    def least_batch(self) -> int:
        """Values that a search waits for, at least, before it looks at them: fewer than popsize if it takes parts."""
        return self.popsize

    @property
    def patience(self) -> float:
        """How much longer than usual the values may stand still; infinite if only `stop_reasons` says when to end."""
        return 1.0

    def stop_reasons(self, state: Any) -> dict[str, str]:
        """Return reasons to stop that only this distribution knows, by name."""
        return {}

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Reasons to stop beside limits and values: the spread, relative to the first, and `stop_reasons`."""
        return (
            Criterion("spread", 0, self._spread_reasons),
            Criterion("own", 0, self._own_reasons),
        )

    # methods, because a local function could not be pickled

    def _spread_reasons(self, state: Any, first: Array) -> dict[str, str]:
        return relative_spread(self.spread(state) / first)

    def _own_reasons(self, state: Any, first: Array) -> dict[str, str]:
        return self.stop_reasons(state)


def on_plateau(ranked: list[float], strategy: Strategy, state: Any, first: Array) -> bool:
    """Whether most values, from best to worst, are equal, and the distribution is not yet far wider than the first."""
    if ranked[0] != ranked[int(PLATEAU * len(ranked))]:
        return False
    return float(np.log(strategy.spread(state) / first).mean()) < _WIDEST


def relative_spread(relative: Array) -> dict[str, str]:
    """Reasons to stop by standard deviations relative to the first ones: they are points, or beyond all bounds."""
    if not np.isfinite(relative).all() or relative.max() > DIVERGENCE:
        return {"divergence": f"standard deviations grew to more than {DIVERGENCE:g} times the first ones"}
    if relative.max() < TOL_X:
        return {"tolx": f"the standard deviations fell to {relative.max():.1g} times the first ones"}
    return {}
