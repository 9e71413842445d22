"""What a problem is: a function to minimize, where to start, and what is known about its minimum.

The table of problems is at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import near

#: A pair (low, high) for all variables, or an array with one such pair per variable as rows; None for no bounds.
Bounds = tuple[float, float] | Array | None

#: What is searched: vectors, symmetric positive-definite matrices, matrices, or one number (a vector of length one).
Space = Literal["vector", "spd", "matrix", "scalar"]

_AXES = {"vector": 1, "spd": 2, "matrix": 2, "scalar": 1}


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A function to minimize, where to start, and what is known about it.

    Parameters
    ----------
    name
        Name of the problem.
    fun
        Value of a point of the shape of `x0`.
    batch
        Values of several points at once, (n, *shape).
    x0, sigma0
        Where a search starts, and its initial standard deviation: a number, or one for each variable.
    description
        One line that says what the problem is.
    source
        Where the function comes from.
    space
        "vector", "spd" (positive-definite matrices), "matrix" or "scalar".
    bounds
        A pair (low, high), or one such pair per variable as rows.
    minimizer, minimum
        A global minimizer and its value, if known; with constraints, the best of the feasible points.
    targets
        Values worth reaching, the largest first, for problems whose minimum is not known.
    gradient, hessian_product, hessian_diagonal
        `gradient(x)`, `hessian_product(x, v)` and `hessian_diagonal(x)` have the shape of x.
    noiseless
        For noisy problems: values of several points without noise.
    start_box
        Random starts are uniform in this box, (low, high) for all variables; without it they are x0 + sigma0 N(0, I).
    constraints
        `constraints(x)` is a vector g, and x is feasible if g <= 0; it also takes points as rows.
    integer
        Indices of the integer variables.
    scaled
        The factor by which the function differs from the one usually meant by its name, in words that follow "is":
        "divided by d". Empty if there is none. Gaps and targets have the same factor.

    Raises
    ------
    ValueError
        If space is unknown, or x0, sigma0, minimizer or integer do not fit it.
    """

    name: str
    fun: Callable[[Array], float]
    batch: Callable[[Array], Array]
    x0: Array
    sigma0: float | Array
    description: str
    source: str
    space: Space = "vector"
    bounds: Bounds = None
    minimizer: Array | None = None
    minimum: float | None = None
    targets: tuple[float, ...] = ()
    gradient: Callable[[Array], Array] | None = None
    hessian_product: Callable[[Array, Array], Array] | None = None
    hessian_diagonal: Callable[[Array], Array] | None = None
    noiseless: Callable[[Array], Array] | None = None
    start_box: tuple[float, float] | None = None
    constraints: Callable[[Array], Array] | None = None
    integer: tuple[int, ...] = ()
    scaled: str = ""

    def __post_init__(self) -> None:
        if self.space not in get_args(Space):
            raise ValueError(f"space must be one of {', '.join(get_args(Space))}, got {self.space!r}")
        self._store("x0", checks.real_array("x0", self.x0, (None,) * _AXES[self.space]))
        self._store("sigma0", _steps(self.sigma0, self.x0.shape))
        if self.minimizer is not None:
            self._store("minimizer", checks.real_array("minimizer", self.minimizer, self.x0.shape))
        if self.space == "spd":
            checks.covariance("x0", self.x0, self.dim)
        if not set(self.integer) <= set(range(self.dim)):
            raise ValueError(f"integer must be indices below {self.dim}, got {self.integer}")

    @property
    def dim(self) -> int:
        """Length of a vector, or number of rows of a matrix."""
        return len(self.x0)

    @property
    def n_constraints(self) -> int:
        """Number of constraints."""
        return 0 if self.constraints is None else len(self.constraints(self.x0))

    def start(self, rng: np.random.Generator) -> Array:
        """Draw a random start: uniform in the start box, or x0 + sigma0 N(0, I) clipped to the bounds.

        Positive-definite problems always start at x0: their instances are random instead.
        """
        if self.space == "spd":
            return self.x0
        if self.start_box is not None:
            return rng.uniform(*self.start_box, size=self.x0.shape)
        x: Array = self.x0 + self.sigma0 * rng.standard_normal(self.x0.shape)
        return x if self.bounds is None else _inside(x, self.bounds)

    def _store(self, name: str, value: Any) -> None:
        # a read-only copy, because problems are shared
        object.__setattr__(self, name, checks.read_only(value.copy()) if isinstance(value, np.ndarray) else value)


def _steps(sigma0: float | Array, shape: tuple[int, ...]) -> float | Array:
    if np.ndim(sigma0) == 0:
        return checks.real_number("sigma0", sigma0, positive=True)
    steps = checks.real_array("sigma0", sigma0, shape)
    if not (steps > 0).all():
        raise ValueError(f"sigma0 must be positive, got {steps.min():g}")
    return steps


def _inside(x: Array, bounds: tuple[float, float] | Array) -> Array:
    low, high = np.asarray(bounds, dtype=np.float64).T
    return np.clip(x, low, high)


@dataclass(frozen=True)
class OnPoint:
    """A function of one point, made from a function of rows; it can be sent to other processes."""

    rows: Callable[[Array], Array]

    def __call__(self, x: Array) -> float:
        return float(self.rows(np.asarray(x, dtype=np.float64)[None])[0])


# ---- the table of problems ------------------------------------------------------------------------------------------

_Maker = TypeVar("_Maker", bound=Callable[..., Problem])

#: For each name the function that makes the problem, from a dimension or without argument. The command finds this
#: table, like those of other packages, through the entry-point group "esgroup.problems".
PROBLEMS: dict[str, Callable[..., Problem]] = {}


def register(maker: _Maker) -> _Maker:
    """Decorator that adds a maker of a problem to the table, under its own name.

    Parameters
    ----------
    maker
        Takes the dimension, with a default, and `seed=` if it makes random instances; returns a Problem. The first line
        of its docstring is the description.

    Raises
    ------
    ValueError
        If the name is already registered.
    """
    name = maker.__name__
    if name in PROBLEMS:
        raise ValueError(f"the problem {name!r} is registered twice")
    PROBLEMS[name] = maker
    return maker


def get(name: str, dim: int | None = None) -> Problem:
    """Make the problem with this name.

    Parameters
    ----------
    name
        A name of the table.
    dim
        Dimension; None means the default of the problem.

    Raises
    ------
    ValueError
        If there is no such problem, or it does not exist in this dimension.

    Examples
    --------
    >>> import esgroup_problems
    >>> esgroup_problems.get("sphere", 3).dim
    3
    """
    if name not in PROBLEMS:
        raise ValueError(f"unknown problem {name!r}{near(str(name), PROBLEMS)}: the problems are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]() if dim is None else PROBLEMS[name](dim)
