"""Search with a surrogate: the function is learned in the local coordinates of the search distribution itself.

The search itself stays the same. In addition there are an archive of the last evaluations, a surrogate fitted to them,
and a record of how often it predicted correctly which of two points is better before seeing a value. A generation is
asked for in parts: first the minimizer z* of the surrogate within a ball, and the samples that it predicts to be best.
Then,

- if the surrogate can be trusted, or the value at z* is as good as predicted, the generation ends with a step by the
  surrogate: the mean moves to the best point, and A to the root that its curvature suggests. With the Hessian
  H = V e V^T in local coordinates,

      A <- A V exp(L) V^T,    L = clip(0.4 (-log(e) / 2 - mean), -1, 1),

  in other groups A <- A exp(C (.) kappa(2 V L V^T)). This is Stein's form of the natural gradient, in which H takes the
  place of samples, M = C (.) kappa(-A^T H A), for steps that are not small;
- otherwise more of the generation is evaluated, and once all of it is, it ends with the step of the strategy, as if
  there were no surrogate. A strategy without other steps (`Coordinates.stepped`) benefits from z* only.

Values at points of earlier generations, and at points that were not asked for, enter the archive like all others, and
the ranks of the current generation with their local coordinates, as in any search. The search receives every value
with its point, and with an id if the point belongs to the current generation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.base import Arrays
from esgroup.domains.named import Named
from esgroup.files import states
from esgroup.groups import Diagonal, Frame, Full, Group, Kronecker
from esgroup.options import SearchOptions
from esgroup.strategies.base import Indices, Proposed, Ranked, Relocation, StateView, Strategy, Traits
from esgroup.strategies.criteria import Looking, watching
from esgroup.strategies.in_domain import Within, elsewhere, innermost
from esgroup.strategies.model_state import ABSENT, ASKED, NEW, ModelState, Numbers
from esgroup.strategies.product import ProductSearch
from esgroup.strategies.surrogate_step import SurrogateStep
from esgroup.strategies.vector import VectorSearch
from esgroup.surrogates.base import Surrogate
from esgroup.surrogates.quadratic import QuadraticSurrogate


def refuse_without_model(options: SearchOptions, group: Group | None) -> None:
    """Raise ValueError for an option that cannot be combined with a model, or a structure that has no model."""
    for name in ("noise", "step_size"):  # whose test points must be evaluated
        if name in (given := options.given()):
            text = f"{name} cannot be combined with model='quadratic': leave one of them out"
            raise ValueError(f"{text}, got {given[name]!r}")
    if group is not None:
        QuadraticSurrogate(modeled(group))


def modeled(group: Group) -> Group:
    """The structure of a model for a search in a group: the same, or full for a Kronecker product or a frame.

    The root takes the part of the full model's step that it can represent: the projection, or the nearest frame.
    """
    return Full(group.dim) if isinstance(group, Kronecker | Frame) else group


@dataclass(frozen=True, eq=False)
class ModelSearch(Strategy):
    """A search over real variables, in any domain, that is assisted by a surrogate.

    Parameters
    ----------
    plain : Strategy
        The search without a surrogate.
    surrogate : Surrogate, optional
        By default quadratic models: for a `VectorSearch` in its structure if that is full, diagonal, block triangular
        or Heisenberg; otherwise, including for frames, in the full one.
    """

    plain: Strategy
    surrogate: Surrogate = None  # type: ignore[assignment]  # __post_init__ replaces None

    def __post_init__(self) -> None:
        checks.instance("plain", self.plain, Strategy)
        dim, numbers = real_variables(self.plain), vectors(self.plain)
        if dim == 0:
            why = ", which sees every value itself" * self.plain.traits.every_value
            raise ValueError(f"plain must search real variables for a surrogate, got {self.plain.about}{why}")
        group: Group | None = None if numbers is None else modeled(numbers.group)
        if numbers is not None:
            refuse_without_model(numbers.options, group if self.surrogate is None else None)
        if self.surrogate is None:
            if group is None or dim < self.plain.size:
                group = Diagonal(dim) if isinstance(group, Diagonal) else Full(dim)
            object.__setattr__(self, "surrogate", QuadraticSurrogate(group))
        checks.instance("surrogate", self.surrogate, Surrogate)
        if self.surrogate.dim != dim:
            wanted = f"{dim} coordinates, one for each real variable of the search"
            raise ValueError(f"surrogate must have {wanted}, got {self.surrogate.dim}")

    # ---- sizes --------------------------------------------------------------------------------------------------

    @cached_property
    def traits(self) -> Traits:
        return replace(
            self.plain.traits,
            about=f"{self.plain.about} with a {self.surrogate.about}",
            criteria=watching(self.plain.criteria, self._reasons),
            least_batch=self.part,
            in_parts=True,
            every_value=True,
            knows_inner=False,
            may_adapt=False,
        )

    @cached_property
    def inner(self) -> Strategy:
        """The search inside all domains."""
        return innermost(self.plain)

    @cached_property
    def takes_steps(self) -> bool:
        """Whether the search moves as a surrogate recommends.

        Its local coordinates are then those of its frame, and points are stored in the variables of the innermost
        strategy: they are converted once.
        """
        return self.inner.coordinates(self.inner.start()).takes_steps and all_real(self.plain)

    @cached_property
    def rows(self) -> int:
        """Rows of a generation; the first one has the mean and enough samples to determine the first surrogate."""
        return max(self.popsize, self.surrogate.least)

    @cached_property
    def part(self) -> int:
        """Points of a generation to ask for first: all of them if it can only end by ranks.

        With 20 variables 4 take 0.95 (standard error 0.03) of the evaluations that 6 take, and 0.77 on f8; 3 take
        1.07, because they explore too little. With 10 variables 2 and 3 are alike.
        """
        popsize = self.plain.popsize
        if not self.takes_steps:
            return popsize
        return min(2 + self.surrogate.dim // 10, max(2, popsize // 2))

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> ModelState:
        seed = 0 if rng is None else int(rng.integers(2**53))
        step = SurrogateStep(self, self._empty(seed))
        step.begin()
        return step.state()

    def _empty(self, seed: int) -> ModelState:
        """The state before the first generation is drawn."""
        kept = self.inner if self.takes_steps else self.plain
        rows, capacity, others = self.rows, self.surrogate.capacity, 4 * self.popsize
        plain = self.plain.start()
        width = kept.local(plain, kept.mean(plain)[None]).shape[1]
        return ModelState(
            plain=plain,
            surrogate=self.surrogate.start(),
            first=self.inner.view(plain).spread(),
            numbers=np.array(Numbers(float(seed))),
            archive=np.zeros((capacity, *kept.shape)),
            values=np.zeros(capacity),
            points=np.zeros((rows, *self.plain.shape)),
            samples=np.zeros((rows, width)),
            tags=np.zeros(rows),
            stages=np.full(rows, float(ABSENT)),
            outcomes=np.zeros(rows),
            others=np.zeros((others, *kept.shape)),
            other_values=np.zeros(others),
        )

    def checked(self, state: ModelState) -> ModelState:
        states.same_shapes(state, self.start(), besides=("plain", "surrogate"))
        self.plain.checked(state.plain)
        self.surrogate.checked(state.surrogate)
        # evaluations may have failed, and there may be no best value near the mean
        numbers, values = np.array(Numbers(*state.numbers.tolist())._replace(record=0.0)), np.empty(0)
        states.all_finite(state._replace(numbers=numbers, surrogate=values, outcomes=values, other_values=values))
        return state

    def successor(self, state: ModelState) -> tuple[ModelSearch, ModelState] | None:
        """Return the successor of the plain search; its local coordinates leave the surrogate unchanged."""
        found = self.plain.successor(state.plain) if self.traits.keeps_coordinates else None
        return None if found is None else (ModelSearch(found[0], self.surrogate), state._replace(plain=found[1]))

    def relocated(self, to: Relocation) -> ModelSearch | None:
        if to.place is not None or to.rng is None:
            return None
        plain = elsewhere(self.plain, to.popsize, to.sigma_factor, to.rng)
        return None if plain is None else ModelSearch(plain, self.surrogate)

    # ---- points -------------------------------------------------------------------------------------------------

    def sample(self, state: ModelState, n: int, rng: np.random.Generator, out: Proposed | None = None) -> Proposed:
        """The most useful points of the generation that were not asked for yet; after them, further samples."""
        numbers = Numbers(*state.numbers.tolist())
        rows = np.flatnonzero(state.stages == NEW)
        if numbers.trial >= 0:
            of_reals = self.plain.coordinates(state.plain).of_reals
            z = state.samples[rows] if self.takes_steps else of_reals(state.points[rows])
            predicted = self.surrogate.predict(state.surrogate, z)
            predicted[rows == int(numbers.trial)] = -math.inf
            rows = rows[predicted.argsort(kind="stable")]
        rows = rows[:n]
        points, local = state.points[rows], state.samples[rows]
        ids = rows + int(numbers.generation) * self.rows
        if len(rows) < n:
            more = self.plain.sample(state.plain, n - len(rows), rng)
            points, local = np.concatenate([points, more.points]), np.concatenate([local, more.local])
            ids = np.concatenate([ids, np.full(len(more.points), -1)])
        return Proposed(points, local, ids=ids)

    def asked(self, state: ModelState, ids: Indices) -> ModelState:
        stages = state.stages.copy()
        rows = self._rows(state, ids)
        rows = rows[rows >= 0]
        stages[rows[stages[rows] == NEW]] = ASKED
        return state._replace(stages=stages)

    def _rows(self, state: ModelState, ids: Indices) -> Indices:
        """The row of each point in the current generation, -1 if it is not part of it."""
        rows = ids - int(Numbers(*state.numbers.tolist()).generation) * self.rows
        known = (ids >= 0) & (rows >= 0) & (rows < self.rows)
        return np.where(known, rows, -1)

    def local(self, state: ModelState, points: Array) -> Array:
        return self.plain.local(state.plain, points)

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        return self.plain.shortened(local, then)

    # ---- values -------------------------------------------------------------------------------------------------

    def update(self, state: ModelState, told: Ranked, out: ModelState | None = None) -> ModelState:
        """Collect values until there are as many as `StateView.batch` says, then continue.

        Points of the generation are used in its order, regardless of the order in which they were told.
        """
        if told.points is None or told.values is None:
            return state
        ids = np.full(len(told.values), -1) if told.ids is None else told.ids
        step = SurrogateStep(self, state)
        if told.earlier:
            step.begin_with(told.points, told.values)
            return step.state()
        step.take(told.points, told.values, self._rows(state, ids).tolist())
        if step.waiting >= max(1, step.batch):
            step.go_on(told.record)
        return step.state()

    # ---- what is known ------------------------------------------------------------------------------------------

    def mean(self, state: ModelState) -> Array:
        return self.plain.mean(state.plain)

    def stds(self, state: ModelState) -> Array:
        return self.plain.stds(state.plain)

    def view(self, state: ModelState) -> StateView:
        numbers = Numbers(*state.numbers.tolist())
        generations, batch = int(numbers.generation - numbers.skipped), max(1, int(numbers.batch))
        return self.plain.view(state.plain)._replace(fields=dict, age=math.nan, generations=generations, batch=batch)

    def _reasons(self, look: Looking, state: ModelState, first: Array) -> dict[str, str]:
        return look(state.plain, first)


def real_variables(strategy: Strategy) -> int:
    """The number of variables that a surrogate of a search has; 0 if it can have none."""
    domain = innermost(strategy).domain
    if type(domain) is not Arrays or domain.rule is not None or strategy.traits.every_value:
        return 0
    first = strategy.start()
    return len(strategy.coordinates(first).of_reals(strategy.mean(first)[None])[0])


def vectors(strategy: Strategy) -> VectorSearch | None:
    """The search over vectors inside all domains, also next to choices; None if there is none."""
    inner = innermost(strategy)
    if isinstance(inner, ProductSearch):
        inner = innermost(inner.numbers)
    return inner if isinstance(inner, VectorSearch) else None


def all_real(strategy: Strategy) -> bool:
    """Whether all variables are real: no integers and no choices."""
    while isinstance(strategy, Within):
        if isinstance(strategy.within, Named) and not strategy.within.all_real:
            return False
        strategy = strategy.inner
    return not (isinstance(strategy, VectorSearch) and strategy.has_integers)
