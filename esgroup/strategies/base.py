"""What a search over any kind of point is made of: samples with local coordinates, and an update by their ranks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files.checked import array as stored_array

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
    tags: Indices | None = None  # (n,): what a device recognises its samples by, 0 for all others; None: all are 0
    memo: Any = None  # handed back by `Told` if these points are told together while the state is the same; not stored


class Told(NamedTuple):
    """A generation of any number of points whose values are known. More fields may follow, with defaults."""

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


class Criterion(NamedTuple):
    """A reason to stop that only the distribution knows."""

    name: str
    every: int  # generations between two looks, after which the answer stands until the next; 0: always look
    look: Callable[[Any, Array], dict[str, str]]  # state and first `spread` to reasons by name, none to go on
    # relative size of the distribution at which its reasons wait as long as values get better (`still_improving`)
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

    # Which of these hooks a class fills. A search looks here once in a generation rather than make calls that do
    # nothing: in small dimensions they are a tenth of its time.
    varies_batches: ClassVar[bool] = False
    converts_points: ClassVar[bool] = False
    remembers_values: ClassVar[bool] = False
    notes_asks: ClassVar[bool] = False
    hands_over: ClassVar[bool] = False
    can_restart: ClassVar[bool] = False
    #: Whether points with the tag INNER have middle ranks: a class with an `at` of its own has to see to it.
    knows_inner: ClassVar[bool] = False
    #: What it is, in words for an error, if points must be ranked by their values and not by the scores of constraints.
    needs_values: ClassVar[str] = ""
    #: Whether local coordinates of points remain what they are when it hands over to its successor.
    keeps_coordinates: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.varies_batches = cls.batch_size is not Strategy.batch_size
        cls.converts_points = cls.to_user is not Strategy.to_user
        cls.remembers_values = cls.on_values is not Strategy.on_values
        cls.notes_asks = cls.on_asked is not Strategy.on_asked
        cls.hands_over = cls.successor is not Strategy.successor
        cls.can_restart = cls.restarted is not Strategy.restarted
        cls.knows_inner = cls.at is not Strategy.at

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""

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
    def start(self) -> Any:
        """Return the first state."""

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

    def batch_size(self, state: Any) -> int:
        """How many points to ask for next, and after how many values to update: `popsize`, or what the state says."""
        return self.popsize

    def check(self, points: Array) -> None:
        """Refuse points outside the space with a ValueError that names X."""
        checks.real_array("X", points, (None, *self.shape))

    def shortened(self, local: Array) -> Array:
        """Limit local coordinates of points that were not asked for to the length of a long sample's."""
        return local

    def belated(self, local: Array, then: Array) -> Array:
        """Limit local coordinates of points that were drawn from an earlier state, in which they were `then`.

        Where lengths mean spread, they should not be longer than `then`: lateness alone must not widen or narrow the
        distribution.
        """
        return self.shortened(local)

    def to_user(self, points: Array) -> Any:
        """Return points (n, *shape) as users see them: as they are, or, say, as a list of dicts."""
        return points

    def from_user(self, name: str, points: Any) -> Array:
        """Return points as `to_user` gives them, or a single one, as an array (n, *shape); `name` is for errors.

        The array must be the one that `to_user` was given, bit for bit: by it a search recognises its own points.
        """
        array = np.asarray(points) if len(self.shape) != 1 else None
        if array is None:
            return checks.points(name, points, self.shape[0]).reshape(-1, *self.shape)
        single = array.shape == self.shape
        return checks.real_array(name, array[None] if single else points, (None, *self.shape))

    def stds_to_user(self, stds: Array) -> Any:
        """Return standard deviations of the entries of a point as users see them: as they are, or by name."""
        return stds

    @property
    def labels(self) -> list[str] | None:
        """Names of the entries of a point, for histories and figures; None if they have none."""
        return None

    def are_pairs(self, told: Any) -> bool:
        """Whether the one argument of `tell` is [(point, value), ...] and not a list of values."""
        if not isinstance(told, (list, tuple)) or not told:
            return False
        first = told[0]
        if not isinstance(first, (list, tuple)) or len(first) != 2:
            return False
        point, value = first
        if len(self.shape) > 1:
            return np.ndim(point) == len(self.shape) and np.size(value) == 1
        return _is_row(point) and (not _is_row(value) or len(value) == 1)

    # ---- may: constraints ---------------------------------------------------------------------------------------

    def model_coordinates(self, state: Any, points: Array) -> tuple[Array, Array]:
        """Return coordinates of points in which models of values and constraints are fitted: z (n, k), others (n, l).

        z ~ N(0, I) for samples; a step in z can be taken by `at`. The others, 0 at the mean, may explain values
        besides. As it stands, z = (x - mean) / stds for every entry that varies, and there are no others.
        """
        mean, stds = self.mean(state).ravel(), self.stds(state).ravel()
        varies = stds > 0
        z = (points.reshape(len(points), -1) - mean)[:, varies] / stds[varies]
        return z, np.empty((len(points), 0))

    def at(self, state: Any, z: Array) -> Array | None:
        """Return the point with the coordinates z (k,) of `model_coordinates`, the others 0; None if there is none."""
        point, stds = self.mean(state).ravel().copy(), self.stds(state).ravel()
        varies = stds > 0
        point[varies] += stds[varies] * z
        point = point.reshape(self.shape)
        try:
            self.check(point[None])
        except ValueError:
            return None
        return point

    # ---- may: states --------------------------------------------------------------------------------------------

    def seeded(self, rng: np.random.Generator) -> Strategy:
        """Return the same strategy with a seed of its own, for one that draws samples apart from `sample`."""
        return self

    def on_data(self, state: Any, points: Array, values: Array) -> Any:
        """Return a first state that knows evaluations from before the search, for strategies that remember values."""
        return state

    def on_asked(self, state: Any, points: Array) -> Any:
        """Return the state after these points were handed out, for strategies that hand out each point once.

        A search then keeps no reserve of points: `sample` is asked for as many as are handed out.
        """
        return state

    def on_values(self, state: Any, points: Array, values: Array) -> Any:
        """Return the state after these values were told, for strategies that remember values; NaN is a failed one."""
        return state

    def successor(self, state: Any) -> tuple[Strategy, Any] | None:
        """Return the strategy to continue with, over the same points, and its state; None to stay with this one."""
        return None

    def restarted(self, popsize: int, sigma_factor: float, rng: np.random.Generator) -> Strategy | None:
        """Return the same search from elsewhere, as wide as the first one times a factor; None if there is no way."""
        return None

    def read_state(self, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """Return the state whose fields are stored in `arrays`, by name; ValueError if they are not one.

        As it stands, every array must have the shape that it has in the first state.
        """
        first = self.start()
        return type(first)(**{name: stored_array(arrays, name, kept.shape) for name, kept in first._asdict().items()})

    # ---- may: what is known -------------------------------------------------------------------------------------

    @property
    def structure(self) -> Any:
        """What `Searcher.structure` shows: a group, or words."""
        return self.about

    @property
    def note(self) -> str:
        """What was decided for the user, for the message of a result."""
        return ""

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
            Criterion("spread", 0, lambda state, first: relative_spread(self.spread(state) / first)),
            Criterion("own", 0, lambda state, first: self.stop_reasons(state)),
        )


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


def _is_row(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return not value or not isinstance(value[0], (list, tuple, np.ndarray))
    return np.ndim(value) == 1
