"""Search with a quadratic model: the function is learnt in the local coordinates of the search distribution itself.

The search over vectors stays what it is. Beside it there are an archive of the last evaluations, quadratic models of
them (quadratic.py), and for every model how often it told right, before it had seen a value, which of two points is
better. A generation is handed out in parts: first the minimiser z* of the model within a ball, and the samples that the
model takes for the best. Then,

- if the model can be trusted, or z* kept its promise, the generation ends with a step by the model: the mean moves to
  the best point, and A to the root that the Hessian asks for. With the Hessian H = V e V^T in local coordinates,

      A <- A V exp(L) V^T,    L = clip(0.4 (-log(e) / 2 - mean), -1, 1),

  in other groups A <- A exp(C (.) kappa(2 V L V^T)). This is Stein's form of the natural gradient, in which H takes the
  place of samples, M = C (.) kappa(-A^T H A), for steps that are not small;
- otherwise more of the generation is evaluated, and if all of it is, it ends with the step of the evolution strategy,
  as if there were no model.

Values at points of earlier generations, and of points that were never asked for, are in the archive like all others,
and in the ranks of the present generation with their local coordinates, as in any search. All that moves the search is
in `on_values`, which sees every value with its point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files.checked import array as stored_array
from esgroup.groups import Group
from esgroup.options import SearchOptions
from esgroup.strategies.base import Criterion, Drawn, Strategy, Told
from esgroup.strategies.box import Box
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.model_course import Course
from esgroup.strategies.model_state import ABSENT, ASKED, NEW, ModelState, Numbers, Plan, models_of
from esgroup.strategies.quadratic import Support
from esgroup.strategies.vector import VectorSearch


def refuse_without_model(options: SearchOptions, group: Group | None) -> None:
    """Raise ValueError, by its name, for an option that does not go with a model, or a structure that has none."""
    for name in ("algorithm", "mirrored", "noise", "step_size"):
        if name in (given := options.given()):
            text = f"{name} cannot be combined with model='quadratic', leave one of them out"
            raise ValueError(f"{text}: got {given[name]!r}")
    if group is not None:
        Support.of(group)


@dataclass(frozen=True, eq=False)
class ModelSearch(Strategy):
    """A search over vectors that is assisted by quadratic models.

    Parameters
    ----------
    vector : VectorSearch
        The search without a model, in one of the structures full, diagonal, block triangular, Heisenberg.
    seed : int
        Where the samples come from. It is in the state as well.
    """

    vector: VectorSearch
    seed: int = field(default=0, repr=False, metadata={"stored": False})

    def __post_init__(self) -> None:
        checks.instance("vector", self.vector, VectorSearch)
        checks.store_whole_number(self, "seed", most=2**53 - 1)
        refuse_without_model(self.vector.options, self.vector.group)
        if not self.vector.all_real:
            raise ValueError("vector must search real coordinates for model='quadratic', but some are whole numbers")

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.vector.shape

    @property
    def size(self) -> int:
        return self.vector.size

    @property
    def popsize(self) -> int:
        return self.vector.popsize

    @property
    def about(self) -> str:
        return f"{self.vector.about} with a quadratic model"

    @property
    def structure(self) -> Group:
        return self.vector.structure

    @property
    def note(self) -> str:
        return self.vector.note

    @property
    def box(self) -> Box:
        """Bounds and fixed coordinates."""
        return self.vector.box

    @cached_property
    def plan(self) -> Plan:
        """The sizes of what is kept."""
        return Plan(self.vector)

    # ---- states -------------------------------------------------------------------------------------------------

    def seeded(self, rng: np.random.Generator) -> ModelSearch:
        return replace(self, seed=int(rng.integers(2**53)))

    def start(self) -> ModelState:
        course = Course(self.plan, self.plan.empty(self.seed))
        course.begin()
        return course.state()

    def vector_state(self, state: ModelState) -> SearchState:
        """The state of the search over vectors: views."""
        return SearchState(*(state.vector[place] for place in self.plan.places))

    def read_state(self, arrays: Mapping[str, NDArray[Any]]) -> ModelState:
        first = self.start()
        state = ModelState(**{name: stored_array(arrays, name, kept.shape) for name, kept in first._asdict().items()})
        self.vector.read_state(self.vector_state(state)._asdict())
        for name, kept in state._asdict().items():
            if name not in ("numbers", "outcomes", "other_values") and not np.isfinite(kept).all():
                raise ValueError(f"{name} must be finite")
        numbers = Numbers(*state.numbers.tolist())
        if not np.isfinite(np.array(numbers._replace(record=0.0))).all():  # there may be no best value near the mean
            raise ValueError("numbers must be finite")
        return state

    def restarted(self, popsize: int, sigma_factor: float, rng: np.random.Generator) -> ModelSearch | None:
        vector = self.vector.restarted(popsize, sigma_factor, rng)
        return None if vector is None else ModelSearch(vector)

    # ---- points -------------------------------------------------------------------------------------------------

    def batch_size(self, state: ModelState) -> int:
        return max(1, int(Numbers(*state.numbers.tolist()).batch))

    def sample(self, state: ModelState, n: int, rng: np.random.Generator, out: Drawn | None = None) -> Drawn:
        """The most useful points of the generation that were not handed out yet; beyond them further samples."""
        numbers = Numbers(*state.numbers.tolist())
        rows = np.flatnonzero(state.stages == NEW)
        if numbers.trial >= 0:
            predicted = models_of(state).one(int(numbers.model)).values(state.samples[rows])
            predicted[rows == int(numbers.trial)] = -math.inf
            rows = rows[predicted.argsort(kind="stable")]
        rows = rows[:n]
        points, local = state.points[rows], state.samples[rows]
        if len(rows) < n:
            more = self.vector.sample(self.vector_state(state), n - len(rows), rng)
            points, local = np.concatenate([points, more.points]), np.concatenate([local, more.local])
        return Drawn(points, local)

    def on_data(self, state: ModelState, points: Array, values: Array) -> ModelState:
        course = Course(self.plan, state)
        course.begin_with(points, values)
        return course.state()

    def on_asked(self, state: ModelState, points: Array) -> ModelState:
        stages = state.stages.copy()
        for row in self.found(state, points):
            if row >= 0 and stages[row] == NEW:
                stages[row] = ASKED
        return state._replace(stages=stages)

    def found(self, state: ModelState, points: Array) -> list[int]:
        """The row of the generation that every point is, -1 if it is none."""
        rows = dict(zip((point.tobytes() for point in state.points), range(len(state.points)), strict=True))
        found = (rows.get(point.tobytes(), -1) for point in points)
        return [row if row >= 0 and state.stages[row] != ABSENT else -1 for row in found]

    def local(self, state: ModelState, points: Array) -> Array:
        return self.vector.local(self.vector_state(state), points)

    def shortened(self, local: Array) -> Array:
        return self.vector.shortened(local)

    def belated(self, local: Array, then: Array) -> Array:
        return self.vector.belated(local, then)

    def check(self, points: Array) -> None:
        self.vector.check(points)

    # ---- values -------------------------------------------------------------------------------------------------

    def update(self, state: ModelState, told: Told, out: ModelState | None = None) -> ModelState:
        """Return the state as it is: see `on_values`."""
        return state

    def on_values(self, state: ModelState, points: Array, values: Array) -> ModelState:
        """Keep values until there are as many as `batch_size` says, then go on.

        Points of the generation are used in its order, whatever the order in which they were told.
        """
        course = Course(self.plan, state)
        course.take(points, values, self.found(state, points))
        if course.waiting >= max(1, course.batch):
            course.go_on()
        return course.state()

    # ---- what is known ------------------------------------------------------------------------------------------

    def generations(self, state: ModelState, moves: int) -> int:
        numbers = Numbers(*state.numbers.tolist())
        return int(numbers.generation - numbers.skipped)

    def mean(self, state: ModelState) -> Array:
        return self.vector.mean(self.vector_state(state))

    def stds(self, state: ModelState) -> Array:
        return self.vector.stds(self.vector_state(state))

    def spread(self, state: ModelState) -> Array:
        return self.vector.spread(self.vector_state(state))

    def sigma(self, state: ModelState) -> float:
        return self.vector.sigma(self.vector_state(state))

    def axis_ratio(self, state: ModelState) -> float:
        return self.vector.axis_ratio(self.vector_state(state))

    @property
    def least_batch(self) -> int:
        return self.plan.part

    @property
    def patience(self) -> float:
        return self.vector.patience

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        # methods, because a local function could not be pickled
        return tuple(one._replace(look=partial(self._reasons, one.look)) for one in self.vector.criteria)

    def _reasons(
        self, look: Callable[[SearchState, Array], dict[str, str]], state: ModelState, first: Array
    ) -> dict[str, str]:
        return look(self.vector_state(state), first)
