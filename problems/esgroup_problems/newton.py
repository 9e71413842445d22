"""The minimum of a strictly convex function to machine precision, for problems that state it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esgroup.checks import Array

_ENOUGH = 100  # steps; all problems of the zoo need less than 20


def convex_minimiser(
    fun: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    solve: Callable[[Array, Array], Array],
    x: Array,
) -> Array:
    """Newton's method with halved steps, from x. `solve(x, g)` is the inverse Hessian at x times g.

    Ends after the step at which the Newton decrement g^T H^-1 g is below 1e-20: that step squares an error that is
    about 1e-10 already. Below 1e-8 the full step is taken without a look at f, whose rounding errors say nothing more.
    """
    for _ in range(_ENOUGH):
        slope = gradient(x)
        step = solve(x, slope)
        decrement = float(np.vdot(slope, step))
        x = x - (_size(fun, x, step, decrement) if decrement > 1e-8 else 1.0) * step
        if decrement < 1e-20:
            return x
    raise RuntimeError(f"Newton's method must end in {_ENOUGH} steps, its decrement is still {decrement:.3g}")


def _size(fun: Callable[[Array], float], x: Array, step: Array, decrement: float) -> float:
    # the largest of 1, 1/2, 1/4, ... that brings a quarter of the fall that a straight line promises
    size, here = 1.0, fun(x)
    while not fun(x - size * step) <= here - 0.25 * size * decrement:
        size /= 2
    return size
