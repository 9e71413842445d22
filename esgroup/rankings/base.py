"""What a ranking is: which of the points that were evaluated are better, and what is told of them beside a value.

A search knows its points by rows of outcomes (n, 1 + columns): a value, and what is told beside it, such as constraints
or other objectives; all of a row is NaN where a run failed. A ranking gives every generation scores, by which its
samples are ranked, and says which single point is the best of all.
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
    """The state of a ranking that remembers nothing."""


class Scored(NamedTuple):
    """A generation after it was ranked."""

    state: Any  # of the ranking
    scores: Array  # (n,): the least is the best, NaN for those that failed
    best: float | None = None  # the least value of feasible points, infinite if there are none; None: the least score


class Ranking(ABC):
    """What is better: a frozen object of sizes and constants, a dataclass if searches with it are to be saved.

    What changes is the state, a NamedTuple of arrays (numbers are arrays of shape ()), which the search keeps and its
    files hold. Methods are pure. A row of outcomes is a value and what is told beside it, all NaN if the run failed.
    """

    columns: int = 0  #: how many numbers are told beside a value
    #: Whether scores are the values, and the least one is the best: then models of values rank as well.
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
            That of the ranking, which has counted all outcomes.
        outcomes : array (n, 1 + columns)
            Those of the generation.
        tags : array (n,), optional
            As samples were drawn: some are what `placed` has put there.
        strategy, distribution
            What searches, and its state, from which the generation was drawn.
        """

    @abstractmethod
    def best(self, outcomes: Array, than: Array | None = None) -> int | None:
        """Return which row is the best, of equal ones the first; None if all failed, or none is better `than` a row."""

    # ---- may ----------------------------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        """The ranking in a few words."""
        return repr(self)

    def outcomes(self, fitness: Any, beside: Any, n: int) -> Array:
        """Check what was told of n points, and return the rows (n, 1 + columns)."""
        if beside is None and not self.columns:
            return values(fitness, n)[:, None]
        return rows(fitness, beside, n, self.columns)

    def feasible(self, outcomes: Array) -> NDArray[np.bool_]:
        """Return which rows (n,) can be the answer; where not all can, those that failed cannot.

        All others reach no `target`.
        """
        return np.ones(len(outcomes), dtype=bool)

    def start(self, shape: tuple[int, ...]) -> Any:
        """Return the first state of a search over points of this shape."""
        return Nothing()

    def counted(self, state: Any, points: Array, outcomes: Array) -> Any:
        """Return the state that remembers these evaluations, which are all that were told since the last call."""
        return state

    def mark(self, state: Any) -> int:
        """Return a number from which `rewound` knows what was counted up to now."""
        return 0

    def rewound(self, state: Any, mark: int) -> Any:
        """Return the state without what was counted since the mark; no generation was ranked since."""
        return state

    def placed(self, state: Any, drawn: Proposed, strategy: Strategy, distribution: Any) -> Proposed:
        """Return the samples of a generation, drawn by a strategy in this state, with points of one's own among them.

        Samples with tags are what a device of the strategy has marked, and should stay.
        """
        return drawn

    def read_state(self, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Any:
        """Return the state whose fields are stored in `arrays`, by name; ValueError if they are not one.

        As it stands, every array must have the shape that it has in the first state.
        """
        first = self.start(shape)
        return type(first)(**{name: stored_array(arrays, name, kept.shape) for name, kept in first._asdict().items()})

    def difference(self, saved: Ranking) -> str | None:
        """Return why a saved search cannot be continued with this ranking, None if it can."""
        return None if saved == self else f"it has {saved.about}, not {self.about}"

    # ---- may: what a result shows -------------------------------------------------------------------------------

    def multipliers(self, state: Any) -> Array | None:
        """Return Lagrange multipliers of what is told beside values, None if it has none."""
        return None

    def fields(self, best: Array | None, multipliers: Array | None) -> dict[str, Any]:
        """Return what a result has besides, by name, from the row of the best point and the multipliers there."""
        return {}

    def note(self, best: Array) -> str:
        """Return what the message of a result says of the best point, "" for nothing."""
        return ""


def register(cls: R) -> R:
    """Let searches with a class of rankings be saved under its name; usable as a class decorator."""
    return objects.register_derived(cls, Ranking)
