"""From a function with its derivatives to a problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.functions import Function
from esgroup_problems.problem import OnPoint, Problem

_GOLDEN = (np.sqrt(5) - 1) / 2


def problem(
    maker: Callable[..., Problem],
    function: Function,
    *,
    minimiser: Array,
    box: tuple[float, float],
    source: str,
    minimum: float = 0.0,
    x0: Array | None = None,
    sigma0: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Problem:
    """The problem of a function, with its maker's name and first line; random starts are drawn from the box.

    Without x0 it begins at `spread` points of the box, without sigma0 with a quarter of its width.
    """
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        hessian_diagonal=function.diagonal,
        minimiser=minimiser,
        minimum=minimum,
        x0=spread(len(minimiser), box) if x0 is None else x0,
        sigma0=(box[1] - box[0]) / 4 if sigma0 is None else sigma0,
        start_box=box,
        bounds=bounds,
    )


def spread(dim: int, box: tuple[float, float]) -> Array:
    """A point of the box without a pattern: coordinate i is the fractional part of i times the golden ratio, scaled.

    A point on the diagonal would be special: functions that treat all coordinates alike keep gradients on it.
    """
    low, high = box
    point: Array = low + (high - low) * (np.arange(1, dim + 1) * _GOLDEN % 1)
    return point


def instance_rng(name: str, dim: int, seed: int) -> np.random.Generator:
    """The generator of a random instance: another one for every name, dimension and seed."""
    seed = checks.whole_number("seed", seed)
    return np.random.default_rng([seed, dim, *name.encode()])
