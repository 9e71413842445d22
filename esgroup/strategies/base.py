"""What a search over any kind of point is made of: samples with local coordinates, and an update by their ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array

CONDITION = 1e14  # of A A^T at which a search ends: the CMA-ES tutorial's ConditionCov


class Drawn(NamedTuple):
    """A generation: points, (n, *shape), and local coordinates of each, (n, m), from which the update is computed."""

    points: Array
    local: Array


class Strategy(ABC):
    """A search distribution with the devices of evolution strategies: a frozen object of sizes and constants.

    What changes is the state, a NamedTuple of float64 arrays (numbers are arrays of shape ()); everything that the next
    generation needs is in it, so that a search can be stored and go on bit by bit. The methods are pure: they neither
    change a state nor keep anything. They need not check their arguments, which come from a Searcher.
    """

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of a point."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are searched: p (p + 1) / 2 for symmetric p x p matrices."""

    @property
    @abstractmethod
    def popsize(self) -> int:
        """Values in a generation, unless the caller wants another number."""

    @property
    @abstractmethod
    def about(self) -> str:
        """The distribution and its structure in a few words: a result and a figure name it so."""

    @abstractmethod
    def start(self) -> Any:
        """The first state."""

    @abstractmethod
    def sample(self, state: Any, n: int, rng: np.random.Generator) -> Drawn:
        """n points of the distribution, drawn at once."""

    @abstractmethod
    def local(self, state: Any, points: Array) -> Array:
        """The local coordinates of any points, (n, *shape) -> (n, m): for points that were not asked for."""

    @abstractmethod
    def update(self, state: Any, local: Array, order: NDArray[np.int64]) -> Any:
        """The next state, after a generation of any number of points whose `order` lists them from best to worst."""

    @abstractmethod
    def mean(self, state: Any) -> Array:
        """The middle of the distribution, a point."""

    @abstractmethod
    def stds(self, state: Any) -> Array:
        """Standard deviations of the entries of a point, of its shape: what `tolx` and the figure look at."""

    # ---- may ----------------------------------------------------------------------------------------------------

    @property
    def patience(self) -> float:
        """How much longer than usual the values may stand still; infinite if it says itself when it has `ended`."""
        return 1.0

    def check(self, points: Array) -> None:
        """Refuse points that are not in the space, with a ValueError that says why."""
        checks.real_array("X", points, (None, *self.shape))

    def shortened(self, local: Array) -> Array:
        """Local coordinates of points that were not asked for, no longer than a long sample's: far ones do no harm."""
        return local

    def leave_plateau(self, state: Any, n: int) -> Any:
        """A wider distribution, after a generation of n values most of which are equal; the same if it has no way."""
        return state

    @property
    def note(self) -> str:
        """What was decided for the user, for the message of a result."""
        return ""

    def heard(self, state: Any, points: Array, values: Array) -> Any:
        """The state after these values were told, for strategies that report values; the update goes by ranks alone."""
        return state

    def ended(self, state: Any) -> dict[str, str]:
        """Reasons to stop that only this distribution knows, by name."""
        return {}

    def found(self, state: Any) -> dict[str, Any]:
        """What the result of a search has besides, by name."""
        return {}
