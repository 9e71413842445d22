"""Functions whose values are noisy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.convex import ellipsoid, sphere
from esgroup_problems.problem import OnPoint, Problem
from esgroup_problems.registry import register
from esgroup_problems.valleys import rosenbrock


@dataclass(frozen=True, eq=False)
class Noisy:
    """y = f(x) + s N(0, 1) with s^2 = additive^2 + (relative f(x))^2: a new draw for every point of every call.

    A copy through pickle goes on with the same draws: the generator's state travels with it.
    """

    clean: Callable[[Array], Array]
    additive: float
    relative: float
    rng: np.random.Generator

    def __call__(self, x: Array) -> Array:
        values = self.clean(x)
        noise: Array = np.hypot(self.additive, self.relative * values) * self.rng.standard_normal(values.shape)
        return values + noise


def noisy(problem: Problem, *, additive: float = 0.0, relative: float = 0.0, seed: int = 0) -> Problem:
    """The problem with normal noise on its values: of standard deviation `additive`, and of `relative` times the value.

    `noiseless` is the function without noise, minimum and minimiser are its own; there are no derivatives. `fun` and
    `batch` draw from one stream, which belongs to the new problem alone; the given one is left as it is.
    """
    if problem.noiseless is not None:
        raise ValueError(f"problem must be without noise, got {problem.name}")
    rng = making.instance_rng(f"noise on {problem.name}", problem.dim, seed)
    rows = Noisy(problem.batch, _level("additive", additive), _level("relative", relative), rng)
    return replace(
        problem,
        name=f"noisy_{problem.name}",
        description=f"{problem.name} with normal noise: additive {rows.additive:g}, relative {rows.relative:g}",
        fun=OnPoint(rows),
        batch=rows,
        noiseless=problem.batch,
        gradient=None,
        hessian_product=None,
        hessian_diagonal=None,
    )


@register
def noisy_sphere(dim: int = 20, *, seed: int = 0) -> Problem:
    """The sphere with normal noise of standard deviation 1: at the end all values are noise."""
    return noisy(sphere(dim), additive=1.0, seed=seed)


@register
def noisy_ellipsoid(dim: int = 20, *, seed: int = 0) -> Problem:
    """The ellipsoid with normal noise of 30 % of the value: it fades towards the minimum."""
    return noisy(ellipsoid(dim), relative=0.3, seed=seed)


@register
def noisy_rosenbrock(dim: int = 20, *, seed: int = 0) -> Problem:
    """The Rosenbrock valley, divided by the dimension, with normal noise of deviation 0.01."""
    return noisy(rosenbrock(dim), additive=0.01, seed=seed)


def _level(name: str, value: float) -> float:
    level = checks.real_number(name, value)
    if level < 0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}")
    return level
