"""What a problem is: a function to minimise, where to begin, and what is known of its minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from esgroup import checks
from esgroup.checks import Array

#: A pair of numbers for all coordinates, or one pair (low, high) per coordinate as rows; None is no bounds.
Bounds = tuple[float, float] | Array | None

#: Where a problem is searched: vectors, symmetric positive-definite matrices, matrices, one number (a vector of one).
Space = Literal["vector", "spd", "matrix", "scalar"]

_AXES = {"vector": 1, "spd": 2, "matrix": 2, "scalar": 1}


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A function to minimise. `fun` takes a point of the shape of `x0`, `batch` takes several at once: (n, *shape).

    A search begins at `x0` with the standard deviation `sigma0`; `start` draws other beginnings. `minimiser` and
    `minimum` are a global minimiser and its value, if they are known; `targets` are values worth reaching (the largest
    first), for problems whose minimum is not known. `gradient(x)`, `hessian_product(x, v)` and `hessian_diagonal(x)`
    have the shape of x. A noisy problem has its function without noise, of several points, in `noiseless`. `source` is
    where the function comes from.
    """

    name: str
    fun: Callable[[Array], float]
    batch: Callable[[Array], Array]
    x0: Array
    sigma0: float
    description: str
    source: str
    space: Space = "vector"
    bounds: Bounds = None
    minimiser: Array | None = None
    minimum: float | None = None
    targets: tuple[float, ...] = ()
    gradient: Callable[[Array], Array] | None = None
    hessian_product: Callable[[Array, Array], Array] | None = None
    hessian_diagonal: Callable[[Array], Array] | None = None
    noiseless: Callable[[Array], Array] | None = None
    #: The box that random starts are drawn from, (low, high) for all coordinates; None: x0 + sigma0 N(0, I).
    start_box: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.space not in get_args(Space):
            raise ValueError(f"space must be one of {', '.join(get_args(Space))}, got {self.space!r}")
        self._store("x0", checks.real_array("x0", self.x0, (None,) * _AXES[self.space]))
        self._store("sigma0", checks.real_number("sigma0", self.sigma0, positive=True))
        if self.minimiser is not None:
            self._store("minimiser", checks.real_array("minimiser", self.minimiser, self.x0.shape))
        if self.space == "spd":
            checks.covariance("x0", self.x0, self.dim)

    @property
    def dim(self) -> int:
        """The length of a vector, the number of rows of a matrix."""
        return len(self.x0)

    def start(self, rng: np.random.Generator) -> Array:
        """A random beginning: uniform in the start box, or x0 + sigma0 N(0, I) within the bounds.

        Positive-definite problems begin at x0 always: there it is the instance that is random.
        """
        if self.space == "spd":
            return self.x0
        if self.start_box is not None:
            return rng.uniform(*self.start_box, size=self.x0.shape)
        x: Array = self.x0 + self.sigma0 * rng.standard_normal(self.x0.shape)
        return x if self.bounds is None else _inside(x, self.bounds)

    def _store(self, name: str, value: Any) -> None:
        # a copy that nobody can write to: problems are shared
        object.__setattr__(self, name, checks.read_only(value.copy()) if isinstance(value, np.ndarray) else value)


def _inside(x: Array, bounds: tuple[float, float] | Array) -> Array:
    low, high = np.asarray(bounds, dtype=np.float64).T
    clipped: Array = np.clip(x, low, high)
    return clipped


@dataclass(frozen=True)
class OnPoint:
    """The function of one point that a function of rows contains; it can be sent to other processes."""

    rows: Callable[[Array], Array]

    def __call__(self, x: Array) -> float:
        return float(self.rows(np.asarray(x, dtype=np.float64)[None])[0])
