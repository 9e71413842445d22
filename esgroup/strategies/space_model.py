"""Search over named real numbers with a quadratic model: that of a search over vectors, in the coordinates u.

Users see dicts, the ledger rows of the space, the model coordinates u (logarithms, angles without a seam). A row of the
present generation is recognised as a row, because its u cannot be computed from it to the last bit.

An angle is not brought back near [0, 2 pi) as in a search without a model: the archive would have to turn with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.strategies.base import Drawn, Told
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.model_state import ModelState
from esgroup.strategies.space import SpaceSearch
from esgroup.strategies.vector import VectorSearch


@dataclass(frozen=True, eq=False)
class ModelSpaceSearch(SpaceSearch):
    """A search over a space that is assisted by quadratic models. Its state is that of a `ModelSearch`.

    Parameters
    ----------
    space, row, free, numbers, choices
        As for `SpaceSearch`; all that is searched are real numbers.
    seed : int
        As for `ModelSearch`.
    """

    seed: int = field(default=0, repr=False, metadata={"stored": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.all_real:
            raise ValueError("numbers must be real and choices None for model='quadratic', got others to search")
        _ = self.assisted  # which has checks of its own

    @cached_property
    def assisted(self) -> ModelSearch:
        """The search over the numbers, with a model."""
        assert self.numbers is not None
        given = {one.name: getattr(self.numbers, one.name) for one in fields(self.numbers)}
        return ModelSearch(_NoWider(**given, widest=self._widest), self.seed)

    @property
    def plain(self) -> SpaceSearch:
        """The same search without a model."""
        return SpaceSearch(self.space, self.row, self.free, self.numbers, self.choices)

    @property
    def about(self) -> str:
        return f"{super().about} with a quadratic model"

    # ---- states -------------------------------------------------------------------------------------------------

    def seeded(self, rng: np.random.Generator) -> ModelSpaceSearch:
        return replace(self, seed=self.assisted.seeded(rng).seed)

    def start(self) -> ModelState:  # type: ignore[override]  # in all methods: the state is another one
        return self.assisted.start()

    def read_state(self, arrays: Mapping[str, NDArray[Any]]) -> ModelState:  # type: ignore[override]
        return self.assisted.read_state(arrays)

    def _number_state(self, state: ModelState) -> SearchState:  # type: ignore[override]
        return self.assisted.vector_state(state)

    # ---- points and values --------------------------------------------------------------------------------------

    def batch_size(self, state: ModelState) -> int:
        return self.assisted.batch_size(state)

    def _sampled_numbers(  # type: ignore[override]
        self, state: ModelState, n: int, rng: np.random.Generator, out: Drawn | None
    ) -> Drawn:
        return self.assisted.sample(state, n, rng)

    def _placed(self, state: ModelState, rows: Array) -> Array:
        """The coordinates u of rows, those of the present generation as they were drawn."""
        u = self._coordinates(state, rows, self.space.active(rows))  # type: ignore[arg-type]
        shown = state._replace(points=self._columns.rows(state.points))
        for i, place in enumerate(self.assisted.found(shown, rows[:, self._numbers])):
            if place >= 0:
                u[i] = state.points[place]
        return u

    def on_data(self, state: ModelState, points: Array, values: Array) -> ModelState:
        return self.assisted.on_data(state, self._placed(state, points), values)

    def on_asked(self, state: ModelState, points: Array) -> ModelState:
        return self.assisted.on_asked(state, self._placed(state, points))

    def update(self, state: ModelState, told: Told, out: ModelState | None = None) -> ModelState:  # type: ignore[override]
        return self.assisted.update(state, told, out)

    def on_values(self, state: ModelState, points: Array, values: Array) -> ModelState:
        return self.assisted.on_values(state, self._placed(state, points), values)

    # ---- what is known ------------------------------------------------------------------------------------------

    def generations(self, state: ModelState, moves: int) -> int:
        return self.assisted.generations(state, moves)

    @property
    def may_adapt(self) -> bool:
        return self.assisted.may_adapt

    @property
    def least_batch(self) -> int:
        return self.assisted.least_batch


@dataclass(frozen=True, eq=False)
class _NoWider(VectorSearch):
    """A search over vectors whose standard deviations have further limits, as those of angles."""

    widest: Array | None = None

    def keep_limits(self, state: SearchState, first: Array | None) -> None:
        super().keep_limits(state, first)
        self.evolution.limit_steps(state, None, self.widest)
