"""What a problem is: a function to minimise, where to begin, and what is known of its minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array

#: A pair of numbers for all coordinates, or one pair (low, high) per coordinate as rows; None is no bounds.
Bounds = tuple[float, float] | Array | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A function of `dim` numbers to minimise. `fun` takes a point, `batch` takes rows and gives all their values.

    A search begins at `x0` with the standard deviation `sigma0`. `minimiser` and `minimum` are a global minimiser and
    its value, if they are known; `source` is where the function comes from.
    """

    name: str
    fun: Callable[[Array], float]
    batch: Callable[[Array], Array]
    x0: Array
    sigma0: float
    description: str
    source: str
    bounds: Bounds = None
    minimiser: Array | None = None
    minimum: float | None = None

    def __post_init__(self) -> None:
        self._store("x0", checks.real_array("x0", self.x0, (None,)))
        self._store("sigma0", checks.real_number("sigma0", self.sigma0, positive=True))
        if self.minimiser is not None:
            self._store("minimiser", checks.real_array("minimiser", self.minimiser, (self.dim,)))

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.x0)

    def _store(self, name: str, value: Any) -> None:
        # a copy that nobody can write to: problems are shared
        object.__setattr__(self, name, checks.read_only(value.copy()) if isinstance(value, np.ndarray) else value)


@dataclass(frozen=True)
class OnPoint:
    """The function of one point that a function of rows contains; it can be sent to other processes."""

    rows: Callable[[Array], Array]

    def __call__(self, x: Array) -> float:
        return float(self.rows(np.asarray(x, dtype=np.float64)[None])[0])
