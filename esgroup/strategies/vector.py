"""Search over vectors: a Gaussian whose square root lies in a group, within bounds, with fixed and whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files.checked import finite_array
from esgroup.groups import Full, Group
from esgroup.groups.linalg import SingularElementError
from esgroup.options import SearchOptions
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.base import (
    AT_BOUNDS,
    CONDITION,
    DIVERGENCE,
    PLATEAU,
    Criterion,
    Drawn,
    Indices,
    Strategy,
    Told,
)
from esgroup.strategies.box import Box, unresolved
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.frames import Follow, FrameEvolution
from esgroup.strategies.integers import WIDENED, Widening
from esgroup.strategies.recombination import Cumulative, Published, Recombination
from esgroup.strategies.sampling import Sampling, shortened
from esgroup.strategies.step_size import CumulativeStepSize, StepSize
from esgroup.strategies.two_point import TwoPointStepSize

TOL_X_PRECISE = 1e-4  # in place of NARROWEST where a coordinate cannot be told more precisely
# Rounding of the mean, in standard deviations, at which a search ends. The tutorial's NoEffectAxis is at 0.1, where
# values may still improve: of 396 searches on bbob f1, 2, 6, 8-12, 14 (2 to 20 coordinates, also moved by 1e4 to 1e8)
# it would have ended 12 that reached 1e-8 later, 0.3: 7, 0.5: 2, 0.7: none. (On the sharp ridge f13 a few stand still
# for thousands of evaluations and then go on, by chance, at any limit.) In the wrong valleys of f17 and f18, where 0.1
# saves 14.7 % of all evaluations, 0.7 saves 13.3 %, and 1 saves 12.4 %.
TOO_THIN = 0.7
_SHRUNK = 0.1  # of the first steps, at least, for a mean at full precision to be a result and no lack of room
# Of the first standard deviations: no narrower distribution is of use. pycma ends at 1e-11, absolute. With 1e-10, 11 of
# 15 searches along the sharp ridge f13 of bbob, with 20 coordinates, get to 1e-8, with 1e-11 3 of 10, with 1e-9 all.
NARROWEST = 1e-10
_DRIFTED = 0.1  # largest row of A, of usual size 1, below which A is brought back to it
_NARROW = 1e-7  # of the first standard deviation in one coordinate, by sigma D alone: then all of them are looked at
_FAR = 1e150  # points further out are taken to be there, so that nothing overflows


# A point on the bounds comes every fourth generation, or once in 40 evaluations if popsize is more than 10. Every 2, 3,
# 4, 5 generations and never, 10 coordinates, popsize 10, medians of 15 seeds to 1e-8: a sphere with its minimum in a
# corner 60, 60, 80, 100, 520; a linear function 100, 90, 120, 150, 990; a sphere half of whose coordinates end at
# bounds 920, 930, 920, 900, 930.
_BOUNDS_EVERY, _BOUNDS_SHARE = 4, 40
# Samples behind a mirror are drawn again three times at most, if they are not more than half of a generation. Of 24
# searches of bbob's f10 with 10 coordinates within -5 and 5 (instances 1-3, sigma0 = 5/3, 2000 evaluations) the median
# gap is 7.2 instead of 20.7; a share of 0.3 leads to 12.6, of 0.7 to 7.6, of 1 to 6.5. A sphere half of whose
# coordinates end at bounds takes 1,180 evaluations instead of 1,140; with a share of 0.7 it is 1,220, of 1 1,300.
_AGAIN, _AGAIN_SHARE = 3, 0.5

_AT_REST = 1.0  # standard deviation of an integer below which models of constraints do not count on its moves

STEP_SIZES: dict[str, Callable[[], StepSize]] = {
    "csa": CumulativeStepSize,
    "tpa": TwoPointStepSize,
}


class Start(NamedTuple):
    """Where a search begins, in the coordinates that are searched: diag(steps) times a correlation or a root."""

    mean: Array
    steps: Array
    correlation: Array | None = None
    root: Array | None = None  # an element of the search's group


_NO_DEVICES = SearchOptions(decoding=False)


@dataclass(frozen=True, eq=False)
class VectorSearch(Strategy):
    """The update of `Evolution` between the user's points and the coordinates that are searched.

    `Box` translates between both: bounds, fixed and integer coordinates. It also limits the standard deviations, from
    below for integers and from above between two bounds. Now and then one of the points is the mean, moved onto the
    bounds that are near it, so that corners are hit exactly; it has no part in the update if it is told in time. The
    state is a `SearchState`.
    """

    keeps_coordinates = True

    box: Box
    group: Group
    options: SearchOptions = _NO_DEVICES  # those that are stored; `decoding` is decided
    popsize: int = 10
    begin: Start | None = field(default=None, repr=False, metadata={"stored": False})  # None: at x0, uncorrelated
    note: str = field(default="", repr=False, metadata={"stored": False})

    def __post_init__(self) -> None:
        for name, kind in (("box", Box), ("group", Group), ("options", SearchOptions)):
            checks.instance(name, getattr(self, name), kind)
        checks.flag("decoding", self.options.decoding)
        checks.store_whole_number(self, "popsize", least=2)
        if self.group.dim != self.box.free_dim:
            free = f"{self.box.free_dim} coordinates are free"
            raise ValueError(f"group must have the dimension of what is searched: it has {self.group.dim}, but {free}")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.box.dim,)

    @property
    def size(self) -> int:
        return self.group.dim

    @property
    def about(self) -> str:
        return str(self.group)

    @property
    def all_real(self) -> bool:
        """Whether none of the coordinates that are searched is a whole number."""
        return not self.box.integer[self.box.free].any()

    @property
    def structure(self) -> Group:
        return self.group

    @cached_property
    def evolution(self) -> Evolution:
        """The update of the coordinates that are searched."""
        options = self.options
        kind, cumulative = (FrameEvolution, Follow) if self.group.follows else (Evolution, Cumulative)
        recombination: Recombination = cumulative()
        if options.algorithm == "paper":
            recombination = Published()
        elif options.mirrored:  # the worse half of a mirrored pair says nothing new
            recombination = cumulative(negative_mean=0.0, damping=1.0)
        return kind(
            self.group,
            recombination,
            Decoding(by_mean=self.group.follows) if options.decoding else None,
            RateAdaptation() if options.noise == "adapt" else None,
            Sampling(orthogonal=options.algorithm != "paper", mirrored=options.mirrored),
            STEP_SIZES[options.step_size](),
            self._widening,
        )

    @cached_property
    def _widening(self) -> Widening | None:
        """How a search among integers goes on; where values are noisy they do not tell that it is at rest."""
        if self._least_steps is None or self.options.algorithm == "paper" or self.options.noise == "adapt":
            return None
        return Widening.of(self.size, self.popsize)

    @cached_property
    def _least_steps(self) -> Array | None:
        return self.box.least_steps(self.popsize)

    @cached_property
    def _first_mean(self) -> Array:
        mean: Array = self.box.encode(self.box.x0[None])[0] if self.begin is None else self.begin.mean
        return mean

    @cached_property
    def _limited(self) -> bool:
        return self._least_steps is not None or self.box.most_steps() is not None

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self) -> SearchState:
        box = self.box
        begin = Start(box.encode(box.x0[None])[0], box.initial_steps()) if self.begin is None else self.begin
        state = self.evolution.start(begin.mean, begin.steps, begin.correlation)
        if begin.root is not None:
            state = state._replace(root=begin.root.copy())
            self.evolution.refresh(state)
        return state

    def read_state(self, arrays: Mapping[str, NDArray[Any]]) -> SearchState:
        lengths: dict[str, int | None] = {**self.evolution.shapes()}
        if self.group.follows:
            lengths["root"] = None
        state = SearchState(**{name: finite_array(arrays, name, (lengths[name],)) for name in SearchState._fields})
        self.group._element("root", state.root)
        return state

    def successor(self, state: SearchState) -> tuple[VectorSearch, SearchState] | None:
        """Go on with the full matrix where a frame whose number of axes is free is too small, or at its end."""
        evolution = self.evolution
        if not isinstance(evolution, FrameEvolution) or (why := evolution.outgrown(state)) is None:
            return None
        note = f"Structure 'frame' {why} after {state.course.item(1):,.0f} evaluations: 'full' took its place"
        full = replace(self, group=Full(self.size), begin=None, note=note)
        return full, evolution.as_full(state, full.evolution)

    def restarted(self, popsize: int, sigma_factor: float, rng: np.random.Generator) -> VectorSearch | None:
        """Begin at a random point, with the same correlations; a search from a distribution has no other place."""
        begin = self.begin
        if begin is not None and begin.root is not None:
            return None
        x0 = self.box.random_point(rng, self.stds(self.start()))
        steps0 = np.maximum(self.box.steps0 * sigma_factor, 10 * np.spacing(np.abs(x0)))  # x0 may be elsewhere
        box = replace(self.box, x0=x0, steps0=steps0)
        if begin is not None:
            begin = Start(box.encode(x0[None])[0], box.initial_steps(), begin.correlation)
        return replace(self, box=box, popsize=popsize, begin=begin)

    # ---- generations --------------------------------------------------------------------------------------------

    def sample(self, state: SearchState, n: int, rng: np.random.Generator, out: Drawn | None = None) -> Drawn:
        generation, dim = None if out is None else out.memo, len(state.mean)
        if generation is None or len(generation.samples) != n:
            generation = Generation.empty(n, dim)
        y = np.empty((n, dim))
        tags = self.evolution.sample(state, n, rng, generation, y)
        if self.box.plain:
            return Drawn(y, generation.samples, tags, generation)
        again = self._may_draw_again and tags is None and self._draw_again(state, generation, y, rng)
        if n >= self.popsize and (state.age.item() + 1) % self._bounds_every == 0:
            tags = self._try_bounds(state, y, tags)
        return Drawn(self.box.decode(y), generation.samples, tags, None if again else generation)

    @cached_property
    def _may_draw_again(self) -> bool:
        return self.options.algorithm != "paper" and not self.options.mirrored

    def _draw_again(self, state: SearchState, generation: Generation, y: Array, rng: np.random.Generator) -> bool:
        """Draw samples that are behind a mirror, and their y, again; returns whether there were any.

        Seen from the mean, the function behind a mirror is folded, and correlations would be learnt wrongly from it. At
        a minimum on many bounds hardly a sample is on this side of all mirrors: there the folded ones are taken.
        """
        behind = self.box.behind(y, state.mean)
        if not 0 < behind.mean() <= _AGAIN_SHARE:
            return False
        for _ in range(_AGAIN):
            other, place = Generation.empty(*y.shape), np.empty_like(y)
            self.evolution.sample(state, len(y), rng, other, place)
            good, bad = np.flatnonzero(~self.box.behind(place, state.mean)), np.flatnonzero(behind)
            number = min(len(good), len(bad))
            y[bad[:number]], generation.samples[bad[:number]] = place[good[:number]], other.samples[good[:number]]
            behind[bad[:number]] = False
            if not behind.any():
                break
        return True

    @cached_property
    def _bounds_every(self) -> float:
        """Generations from one point on the bounds to the next; less than four samples cannot spare one."""
        if self.options.algorithm == "paper" or self.popsize < 4:
            return math.inf
        return min(_BOUNDS_EVERY, math.ceil(_BOUNDS_SHARE / self.popsize))

    def _try_bounds(self, state: SearchState, y: Array, tags: Indices | None) -> Indices | None:
        """Put the mean, moved onto the bounds near it, in place of a point; returns the tags of all.

        Samples hit a face of the box in the limit only; this point is exactly on it, or in a corner. It counts as one
        that was evaluated, but not in the update: see `_ranked`. The local coordinates stay those of the sample. It is
        the last point that no other device has marked. If its value comes late, it is a point like any other.
        """
        point = self.box.onto_bounds(state.mean, self.spread(state))
        tags = np.zeros(len(y), dtype=np.int64) if tags is None else tags
        unmarked = np.flatnonzero(tags == 0)
        if point is not None and unmarked.size:
            y[unmarked[-1]], tags[unmarked[-1]] = point, AT_BOUNDS
        return tags if tags.any() else None

    def local(self, state: SearchState, points: Array) -> Array:
        mean = state.mean
        y = points if self.box.plain else self.box.encode(points, mean)
        return self.evolution.local(state, y.clip(mean - _FAR, mean + _FAR))

    def model_coordinates(self, state: SearchState, points: Array) -> tuple[Array, Array]:
        """Local coordinates; with integers that rest, those of points moved to them, and the moves apart.

        Multipliers say how f changes with the constraints if the numbers follow; integers with a standard deviation
        below `_AT_REST` do not. With their rows J of A and an orthonormal basis N of the null space of these, J N = 0,
        the coordinates are u with z = N u, and the others are the distances to the integers at the mean.
        """
        resting = self._resting(state)
        if not resting.size:
            return self.local(state, points), np.empty((len(points), 0))
        mean = state.mean
        y = self.box.encode(points, mean).clip(mean - _FAR, mean + _FAR)
        others = y[:, resting] - np.rint(mean[resting])
        y[:, resting] = mean[resting]
        return self.evolution.local(state, y) @ self._beside(state, resting), others

    def at(self, state: SearchState, z: Array) -> Array:
        resting = self._resting(state)
        z = self._beside(state, resting) @ z if resting.size else z
        image = self.evolution.group._apply(state.root, z[None])
        point: Array = self.box.decode(state.mean + state.sigma * state.scale * image)[0]
        return point

    def _resting(self, state: SearchState) -> Indices:
        """The integers, among the coordinates that are searched, that hardly change any more."""
        whole = self.box.integer[self.box.free]
        return np.flatnonzero(whole & (self.spread(state) < _AT_REST)) if whole.any() else np.empty(0, dtype=np.int64)

    def _beside(self, state: SearchState, resting: Indices) -> Array:
        """N (n, n - k): an orthonormal basis of the directions in which k coordinates rest."""
        rows = self.evolution.group._apply_transposed(state.root, np.eye(self.size)[resting])
        basis: Array = np.linalg.qr(rows.T, mode="complete")[0][:, len(resting) :]
        return basis

    def shortened(self, local: Array) -> Array:
        return shortened(local)

    def belated(self, local: Array, then: Array) -> Array:
        return shortened(local, np.linalg.norm(then, axis=1))

    def check(self, points: Array) -> None:
        self.box.check_feasible("X", points)

    def update(self, state: SearchState, told: Told, out: SearchState | None = None) -> SearchState:
        if _only_at_bounds(told):
            return state
        if out is not state:
            state = SearchState(*(array.copy() for array in state))
        evolution, generation = self.evolution, told.memo
        if generation is None:
            generation = Generation.empty(len(told.local), self.size)
            generation.z[:-1] = told.local
            evolution.place(state, generation, np.empty((0, self.size)))  # images only
        widens = told.plateau and self.options.algorithm != "paper" and not self._at_one_point(state, generation, told)
        evolution.update(state, generation, _ranked(told), told.tags)
        if isinstance(evolution, FrameEvolution):
            evolution.note_median(state, told.median)
            state = evolution.exchange(state)
        if widens:
            evolution.leave_plateau(state, len(told.order))
        if evolution.widening is not None and told.first is not None:
            self._widen_at_rest(state, told, told.first, evolution.widening)
        self.keep_limits(state, told.first)
        return state

    def keep_limits(self, state: SearchState, first: Array | None) -> None:
        """Bring standard deviations back to the limits of the box, and to what is of use relative to the first ones."""
        if self._limited:
            self.evolution.limit_steps(state, self._least_steps, self.box.most_steps())
        j = self._shrinking_one
        if first is not None and j is not None and state.sigma.item() * state.scale.item(j) < _NARROW * first.item(j):
            self._keep_width(state, first)

    def _widen_at_rest(self, state: SearchState, told: Told, first: Array, widening: Widening) -> None:
        """Give a search whose integers are at rest its first standard deviations, about the best point so far.

        A coordinate whose first one is infinite, as it is not to be compared, keeps its own.
        """
        stds = self.spread(state)
        share = widening.due(state.rest, told.best, float(stds[~self._shrinking].max()))
        if share > 0.0:
            mean = state.mean if told.record is None else self.box.encode(told.record[None], state.mean)[0]
            wide = self.evolution.start(mean, np.where(np.isfinite(first), share * first, stds))
            wide = wide._replace(rest=state.rest)
            for array, new in zip(state, wide, strict=True):
                array[:] = new

    def _keep_width(self, state: SearchState, first: Array) -> None:
        """Widen a distribution that is narrower than NARROWEST times the first one in all coordinates.

        Along a sharp ridge sigma falls with the distance to the ridge, long before A has learnt its direction. Narrower
        steps are of no use then, but steps of this size learn the ridge. The search ends when values get no better.

        A that shrinks while sigma is held is brought back to its usual size, so that sigma D tells when to look.
        """
        stds = self.spread(state)
        relative = (stds / first)[self._shrinking]
        if 0.0 < relative.max() < NARROWEST and self.options.algorithm != "paper":
            if (stds / (state.sigma * state.scale)).max() < _DRIFTED:
                self.evolution.refresh(state)
            state.sigma[0] *= NARROWEST / relative.max()
            if isinstance(self.evolution, FrameEvolution):
                self.evolution.note_held(state)

    def _at_one_point(self, state: SearchState, generation: Generation, told: Told) -> bool:
        """Whether the values of a plateau are equal because most samples are rounded to one point, as in a corner.

        Wider steps would keep a search that has found its corner from ending. Among integers they are right: there they
        are the way to other points.
        """
        if self.box.plain or self._least_steps is not None:
            return False
        best = told.order[: int(PLATEAU * len(told.order)) + 1]
        points = self.box.decode(state.mean + state.sigma * state.scale * generation.y[best])
        return bool((points == points[0]).all())

    # ---- what is known ------------------------------------------------------------------------------------------

    def mean(self, state: SearchState) -> Array:
        mean: Array = self.box.decode(state.mean[None])[0].copy()  # decode may return what it was given
        return mean

    def stds(self, state: SearchState) -> Array:
        """Standard deviation of every coordinate, 0 where it is fixed."""
        return self.box.to_user_stds(state.mean, self.spread(state))

    def spread(self, state: SearchState) -> Array:
        return np.sqrt(self.evolution.variances(state))

    def sigma(self, state: SearchState) -> float:
        return math.exp(0.5 * float(np.log(self.evolution.variances(state)).mean()))

    def axis_ratio(self, state: SearchState) -> float:
        """Longest to shortest axis of the distribution; beyond 100 coordinates that of single coordinates."""
        return self.evolution.axis_ratio(state)

    # ---- when to stop -------------------------------------------------------------------------------------------

    @property
    def may_adapt(self) -> bool:
        return self.options.noise is None and self.options.algorithm != "paper"

    @property
    def patience(self) -> float:
        if self.evolution.adaptation is not None:
            return math.inf  # to stand still is its way of averaging
        return 1.0 if self._widening is None else WIDENED

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """Each is a pass over the whole root, or a decomposition of it."""
        seldom = self.size // 10
        # Where A^-1 is carried along, "axis" costs 20 us, a tenth of a generation up to 100 coordinates; elsewhere it
        # inverts A. "condition" decomposes A, though only where a bound on it is near the limit.
        often = 10 if self.evolution.carries_inverse else 100
        return (
            Criterion("spread", max(1, seldom), self._spread_reasons),
            Criterion("width", max(1, seldom), self._width_reasons, waits_at=NARROWEST),
            Criterion("axis", max(often, seldom), self._axis_reasons),
            Criterion("condition", max(min(100, max(often, self.size)), seldom), self._condition_reasons),
        )

    @cached_property
    def _shrinking(self) -> NDArray[np.bool_]:
        """The coordinates whose standard deviations may become as small as they like: not the integers."""
        least = self._least_steps
        return np.ones(self.size, dtype=bool) if least is None else least == 0.0

    @cached_property
    def _shrinking_one(self) -> int | None:
        """One of these coordinates, None if there is none."""
        return int(self._shrinking.argmax()) if self._shrinking.any() else None

    def _spread_reasons(self, state: SearchState, first: Array) -> dict[str, str]:
        """Whether the distribution is a point, or beyond all bounds.

        A distribution that has shrunk to a point has found one. One that was a point from the start has not searched:
        a search can start from the distribution of another one that has ended.
        """
        reasons: dict[str, str] = {}
        at_first = unresolved(self._first_mean, first)
        if at_first.any():
            where = f"in {at_first.sum()} of {len(first)} coordinates"
            return {"resolution": f"the first standard deviations were no more than the rounding of the mean {where}"}
        stds = self.spread(state)
        relative = (stds / first)[self._shrinking]
        precise = (state.mean + 0.2 * stds == state.mean)[self._shrinking]  # the tutorial's NoEffectCoord
        if precise.any():
            reasons = _precise(relative, "a fifth of a standard deviation")
        if relative.size and precise.all() and relative.max() < _SHRUNK:
            reasons = _shrunk(relative, precise=True)
        if not np.isfinite(stds).all() or (stds / first).max() > DIVERGENCE:
            reasons["divergence"] = f"standard deviations grew to more than {DIVERGENCE:g} times the first ones"
        return reasons

    def _width_reasons(self, state: SearchState, first: Array) -> dict[str, str]:
        """Whether the distribution is as narrow as it may become (`_keep_width`)."""
        relative = (self.spread(state) / first)[self._shrinking]
        narrow = relative.size > 0 and relative.max() <= 1.001 * NARROWEST  # rounding apart
        return _shrunk(relative, precise=False) if narrow and not unresolved(self._first_mean, first).any() else {}

    def _axis_reasons(self, state: SearchState, first: Array) -> dict[str, str]:
        """Whether the distribution is so thin somewhere that the mean cannot follow: most of its axes are rounding.

        Standard deviations of single coordinates do not show it, because one long axis keeps them all large.
        """
        if not self._shrinking.any():
            return {}
        try:
            rounding = self.evolution.rounding(state, self._shrinking)
        except SingularElementError:  # "condition" says so
            return {}
        if rounding < TOO_THIN or unresolved(self._first_mean, first).any():
            return {}
        return _precise((self.spread(state) / first)[self._shrinking], "a step along most axes")

    def _condition_reasons(self, state: SearchState, first: Array) -> dict[str, str]:
        try:
            condition = self.evolution.condition(state)
        except SingularElementError:
            condition = math.inf
        text = f"the condition number of the covariance is {condition:.3g}, above {CONDITION:g}"
        return {"condition": text} if condition > CONDITION else {}


def _shrunk(relative: Array, *, precise: bool) -> dict[str, str]:
    """The reason of a distribution that is a point, from its standard deviations relative to the first ones."""
    text = f"the standard deviations fell to {relative.max():.1g} times the first ones"
    return {"tolx": text + " and the mean is at full precision" * precise}


def _precise(relative: Array, part: str) -> dict[str, str]:
    """The reason of a mean that `part` of the distribution cannot change: a success if all of it has shrunk."""
    if relative.max() < TOL_X_PRECISE:
        return _shrunk(relative, precise=True)
    return {"precision": f"{part} no longer changes the mean: it is at full precision"}


def _only_at_bounds(told: Told) -> bool:
    """Whether all samples have failed, so that only points put onto bounds, which move nothing, have values."""
    if told.failed == 0 or told.tags is None:
        return False
    return bool((told.tags[told.order[: len(told.order) - told.failed]] >= AT_BOUNDS).all())


def _ranked(told: Told) -> Indices:
    """The order of a generation in which points put onto bounds have the middle ranks, whose weights are next to 0.

    With ranks and coordinates of their own they would draw the mean to all of their bounds at once, the right ones and,
    along with them, wrong ones. In a trial of that, with one such point in every generation, 11 searches for the corner
    of a linear function of 40 coordinates took 4,300 evaluations in the median, and not all got there; now it is 810.
    """
    order = told.order
    if told.tags is None or not (tried := told.tags[order] >= AT_BOUNDS).any():
        return order
    others = order[~tried]
    middle = (len(others) + 1) // 2
    return np.concatenate([others[:middle], order[tried], others[middle:]])
