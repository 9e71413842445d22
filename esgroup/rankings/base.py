"""Rankings: which of the evaluated points are better, and what is told of them in addition to a value.

A search stores rows of outcomes (n, 1 + columns): a value, and what is told with it, such as constraints or other
objectives; the whole row is NaN for a failed evaluation. A ranking scores every generation, which ranks its samples,
and selects the single best point of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.files import objects
from esgroup.files.checked import array as stored_array
from esgroup.rankings.outcomes import rows, values
from esgroup.strategies.base import Indices, Proposed, Strategy

R = TypeVar("R", bound="type[Ranking]")


class Nothing(NamedTuple):
    """The state of a ranking without memory."""


class Scored(NamedTuple):
    """A ranked generation."""

    state: Any  # of the ranking
    scores: Array  # (n,): the smallest is the best, NaN for failed evaluations
    best: float | None = None  # the smallest feasible value, infinite if there is none; None: the smallest score


class Ranking(ABC):
    """Which points are better: a frozen object of sizes and constants; to save searches with it, make it a dataclass.

    Only the state changes, a NamedTuple of arrays (numbers have shape ()), which the search and its files hold. Methods
    are pure. A row of outcomes is a value and what is told with it, all NaN for a failed evaluation.
    """

    columns: int = 0  #: how many numbers are told in addition to a value
    #: Whether scores are the values and the smallest is the best: then models of values can rank as well.
    by_values: ClassVar[bool] = False

    # ---- must ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def scores(
        self, state: Any, outcomes: Array, tags: Indices | None, strategy: Strategy, distribution: Any
    ) -> Scored:
        """Rank a generation.

        Parameters
        ----------
        state
            The state of the ranking, which has counted all outcomes.
        outcomes : array (n, 1 + columns)
            The outcomes of the generation.
        tags : array (n,), optional
            Tags of the samples as drawn; some samples may come from `placed`.
        strategy, distribution
            The strategy, and its state from which the generation was drawn.
        """

    @abstractmethod
    def best(self, outcomes: Array, than: Array | None = None) -> int | None:
        """Return the index of the best row, the first if tied; None if all failed or none beats the row `than`."""

    # ---- may ----------------------------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        """The ranking in a few words."""
        return repr(self)

    def outcomes(self, fitness: Any, beside: Any, n: int) -> Array:
        """Check what was told about n points, and return the rows (n, 1 + columns)."""
        if beside is None and not self.columns:
            return values(fitness, n)[:, None]
        return rows(fitness, beside, n, self.columns)

    def feasible(self, outcomes: Array) -> NDArray[np.bool_]:
        """Return which rows (n,) can be the answer; unless all can, failed evaluations cannot.

        Other rows do not reach a `target`.
        """
        return np.ones(len(outcomes), dtype=bool)

    def start(self, shape: tuple[int, ...]) -> Any:
        """Return the first state of a search over points of this shape."""
        return Nothing()

    def counted(self, state: Any, points: Array, outcomes: Array) -> Any:
        """Return the state with these evaluations, which are all those told since the last call."""
        return state

    def mark(self, state: Any) -> int:
        """Return a number that tells `rewound` what has been counted so far."""
        return 0

    def rewound(self, state: Any, mark: int) -> Any:
        """Return the state without what was counted since the mark; no generation has been ranked since."""
        return state

    def placed(self, state: Any, drawn: Proposed, strategy: Strategy, distribution: Any) -> Proposed:
        """Return the samples of a generation, drawn by a strategy in this state, with some replaced by other points.

        Tagged samples were marked by the strategy and should stay.
        """
        return drawn

    def read_state(self, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Any:
        """Return the state whose fields are stored in `arrays`, by name; ValueError if they are invalid.

        By default, every array must have the same shape as in the first state.
        """
        first = self.start(shape)
        return type(first)(**{name: stored_array(arrays, name, kept.shape) for name, kept in first._asdict().items()})

    def difference(self, saved: Ranking) -> str | None:
        """Return why a saved search cannot be continued with this ranking, None if it can."""
        return None if saved == self else f"it has {saved.about}, not {self.about}"

    # ---- may: what a result shows -------------------------------------------------------------------------------

    def multipliers(self, state: Any) -> Array | None:
        """Return Lagrange multipliers of what is told in addition to values, None if there are none."""
        return None

    def fields(self, best: Array | None, multipliers: Array | None) -> dict[str, Any]:
        """Return additional fields of a result, by name, from the row of the best point and the multipliers."""
        return {}

    def note(self, best: Array) -> str:
        """Return what the message of a result says about the best point, or ""."""
        return ""


def register(cls: R) -> R:
    """Make a class of rankings storable in files of searches; usable as a class decorator."""
    return objects.register_derived(cls, Ranking)
