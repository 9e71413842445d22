"""Functions whose values are noisy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.convex import ellipsoid, sphere
from esgroup_problems.problem import OnPoint, Problem, register
from esgroup_problems.valleys import rosenbrock


@dataclass(frozen=True, eq=False)
class Noisy:
    """y = f(x) + s N(0, 1) with s^2 = additive^2 + (relative f(x))^2 and a new draw for every point of every call.

    A pickled copy continues with the same draws, because the state of the generator is pickled, too.
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
    """Add normal noise to the values of a problem, with standard deviations `additive` and `relative` times the value.

    `noiseless`, minimum and minimizer of the new problem are those of the function without noise; it has no
    derivatives. Its `fun` and `batch` draw from one stream of its own; the given problem is not changed.
    """
    if problem.noiseless is not None:
        raise ValueError(f"problem must have no noise, got {problem.name}")
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
    """The sphere with normal noise of standard deviation 1: near the minimum all values are noise."""
    return noisy(sphere(dim), additive=1.0, seed=seed)


@register
def noisy_ellipsoid(dim: int = 20, *, seed: int = 0) -> Problem:
    """The ellipsoid with normal noise of 30 % of the value, which vanishes toward the minimum."""
    return noisy(ellipsoid(dim), relative=0.3, seed=seed)


@register
def noisy_rosenbrock(dim: int = 20, *, seed: int = 0) -> Problem:
    """The Rosenbrock valley, divided by the dimension, with normal noise of standard deviation 0.01."""
    return noisy(rosenbrock(dim), additive=0.01, seed=seed)


def _level(name: str, value: float) -> float:
    level = checks.real_number(name, value)
    if level < 0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}")
    return level
