"""What makers of problems share: problems from functions, random instances, requirements, and convex minima."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.functions import Function
from esgroup_problems.problem import OnPoint, Problem

_GOLDEN = (np.sqrt(5) - 1) / 2
_ENOUGH = 100  # Newton steps; all problems of the zoo need fewer than 20


def problem(
    maker: Callable[..., Problem],
    function: Function,
    *,
    minimizer: Array,
    box: tuple[float, float],
    source: str,
    minimum: float = 0.0,
    x0: Array | None = None,
    sigma0: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Problem:
    """Make the problem of a function, with its maker's name and first line; random starts are drawn from the box.

    x0 is by default the point `spread` of the box, and sigma0 a quarter of its width.
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
        minimizer=minimizer,
        minimum=minimum,
        x0=spread(len(minimizer), box) if x0 is None else x0,
        sigma0=(box[1] - box[0]) / 4 if sigma0 is None else sigma0,
        start_box=box,
        bounds=bounds,
    )


def spread(dim: int, box: tuple[float, float]) -> Array:
    """A generic point of the box: coordinate i is the fractional part of i times the golden ratio, scaled.

    A point on the diagonal would be special: where a function treats all coordinates alike, its gradients stay on it.
    """
    low, high = box
    return low + (high - low) * (np.arange(1, dim + 1) * _GOLDEN % 1)


def instance_rng(name: str, dim: int, seed: int) -> np.random.Generator:
    """Generator of a random instance: a different one for every name, dimension and seed."""
    seed = checks.whole_number("seed", seed)
    return np.random.default_rng([seed, dim, *name.encode()])


def fixed_dim(name: str, dim: int, only: int) -> int:
    """Raise ValueError for every dimension but the only one that the problem has."""
    if checks.whole_number("dim", dim) != only:
        raise ValueError(f"dim must be {only} for {name}, got {dim}")
    return only


def optional_module(module: str, *, package: str, extra: str, who: str) -> Any:
    """Import a module of an optional package; `who` is the subject of the error if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{who} need {package}: pip install 'esgroup[{extra}]'") from error


# ---- minima of convex functions -------------------------------------------------------------------------------------


def convex_minimizer(
    fun: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    solve: Callable[[Array, Array], Array],
    x: Array,
) -> Array:
    """Minimize a strictly convex function to machine precision, by Newton's method with halved steps from x.

    `solve(x, g)` is the inverse Hessian at x times g. The method ends after the step at which the Newton decrement
    g^T H^-1 g is below 1e-20: that step squares an error that is already about 1e-10. Below 1e-8 the full step is taken
    without comparing values of f, whose rounding errors would dominate.
    """
    for _ in range(_ENOUGH):
        slope = gradient(x)
        step = solve(x, slope)
        decrement = float(np.vdot(slope, step))
        x = x - (_size(fun, x, step, decrement) if decrement > 1e-8 else 1.0) * step
        if decrement < 1e-20:
            return x
    raise RuntimeError(f"Newton's method must end within {_ENOUGH} steps, but its decrement is still {decrement:.3g}")


def _size(fun: Callable[[Array], float], x: Array, step: Array, decrement: float) -> float:
    # the largest of 1, 1/2, 1/4, ... that gives at least a quarter of the decrease predicted by the gradient
    size, here = 1.0, fun(x)
    while not fun(x - size * step) <= here - 0.25 * size * decrement:
        size /= 2
    return size
