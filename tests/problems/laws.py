"""What the laws of problems are written with: instances of every maker, points and directions of every space."""

import inspect
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup.checks import Array

#: Every problem of the zoo; the BBOB functions have tests of their own.
NAMES = tuple(name for name in zoo.PROBLEMS if not name.startswith("bbob"))

#: An odd one, a small one, and one with more than a block and a rest; a maker may refuse some of them.
DIMS = (3, 4, 24)

_POWERS = 10.0 ** -np.arange(1, 7)


def takes(name: str, argument: str) -> bool:
    return argument in inspect.signature(zoo.PROBLEMS[name]).parameters


def make(name: str, dim: int | None = None, seed: int = 0) -> zoo.Problem:
    """A problem; the test is skipped if it needs a library that is missing."""
    arguments = {"seed": seed} if takes(name, "seed") else {}
    try:
        return zoo.PROBLEMS[name](**arguments) if dim is None else zoo.PROBLEMS[name](dim, **arguments)
    except ImportError as missing:
        pytest.skip(str(missing))


@cache
def instances(name: str, seed: int = 0) -> tuple[zoo.Problem, ...]:
    """The problem in those of DIMS that its maker takes, or in its usual dimension if it takes none of them."""
    made = [problem for dim in DIMS if (problem := _accepted(name, dim, seed)) is not None]
    return tuple(made) or (make(name, seed=seed),)


def _accepted(name: str, dim: int, seed: int) -> zoo.Problem | None:
    try:
        return make(name, dim, seed)
    except ValueError as error:
        if not str(error).startswith("dim must be"):
            raise
        return None


def clean(problem: zoo.Problem) -> Callable[[Array], Array]:
    """The function of several points, without noise."""
    return problem.noiseless or problem.batch


def points(problem: zoo.Problem, n: int, seed: int = 1) -> Array:
    """Random beginnings that nobody may write to; for positive-definite problems points around x0."""
    rng = np.random.default_rng(seed)
    if problem.space == "spd":
        return read_only(near(problem, problem.x0, 0.5, n, rng))
    return read_only(np.stack([problem.start(rng) for _ in range(n)]))


def near(problem: zoo.Problem, center: Array, size: float, n: int, rng: np.random.Generator) -> Array:
    """Points around `center` at a distance of about `size` sigma0, in the bounds.

    For positive-definite problems: of less than `size` of the smallest eigenvalue, so that they stay positive definite.
    """
    steps = rng.standard_normal((n, *problem.x0.shape))
    if problem.space == "spd":
        steps = (steps + steps.swapaxes(-1, -2)) / 2
        steps /= np.linalg.norm(steps, ord=2, axis=(-2, -1), keepdims=True)
        return center + size * np.linalg.eigvalsh(center)[0] * steps
    return inside(problem, center + size * problem.sigma0 * steps)


def inside(problem: zoo.Problem, x: Array) -> Array:
    if problem.bounds is None:
        return x
    low, high = np.asarray(problem.bounds, dtype=np.float64).T
    return np.clip(x, low, high)


def feasible(problem: zoo.Problem, x: Array) -> Array:
    """Those of several points that obey the constraints, with integers where the problem wants them."""
    if problem.constraints is None:
        return x
    x = x.copy()
    x[:, list(problem.integer)] = np.rint(x[:, list(problem.integer)])
    return x[(problem.constraints(x) <= 0).all(axis=1)]


def axes(problem: zoo.Problem, most: int = 24) -> list[tuple[int, ...]]:
    """The indices of all coordinates, or of as many as asked for, at random."""
    indices = list(np.ndindex(problem.x0.shape))
    chosen = np.random.default_rng(2).permutation(len(indices))[:most]
    return [indices[k] for k in chosen]


def axis(problem: zoo.Problem, index: tuple[int, ...]) -> Array:
    """The direction of a coordinate; for positive-definite problems that of an entry and its mirror image."""
    direction = np.zeros_like(problem.x0)
    direction[index] = 1.0
    return (direction + direction.T) / 2 if problem.space == "spd" else direction


def directions(problem: zoo.Problem, n: int) -> Array:
    """Random directions, symmetric for positive-definite problems."""
    some = np.random.default_rng(3).standard_normal((n, *problem.x0.shape))
    return read_only((some + some.swapaxes(-1, -2)) / 2 if problem.space == "spd" else some)


def slopes(function: Callable[[Array], Array], problem: zoo.Problem, x: Array, direction: Array) -> Array:
    """The derivative of a function of several points along a direction, by central differences with several steps.

    The formula is of fourth order: [8 f(x + h) - 8 f(x - h) - f(x + 2 h) + f(x - 2 h)] / (12 h). Which step is good
    depends on the function: the derivative is right if it agrees with one of them, as a wrong one agrees with none.
    """
    steps = problem.sigma0 * _POWERS
    offsets = np.multiply.outer(np.multiply.outer(steps, [1.0, -1.0, 2.0, -2.0]), direction)
    values = function((x + offsets).reshape(-1, *x.shape))
    values = values.reshape(len(steps), 4, *values.shape[1:])
    weights = np.divide.outer(1 / steps, [1.5, -1.5, -12.0, 12.0])
    return np.einsum("sk,sk...->s...", weights, values)


def agree(stated: Array | float, numerical: Array, floor: float) -> bool:
    """Whether all components agree with those of one step to a millionth, or to the floor that rounding sets."""
    allowed = 1e-6 * np.abs(stated) + floor
    gaps = np.abs(numerical - stated) <= allowed
    return bool(gaps.any(axis=0).all())


def rows_of(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of one point as one of several."""
    return lambda several: np.stack([function(one) for one in several])


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array
