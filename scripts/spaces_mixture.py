"""Mixtures as a search for several optima: how many are found in one run, and what the plain natural gradient does.

    python scripts/spaces_mixture.py

Functions of two variables from the suite for niching of CEC 2013 (Li, Engelbrecht, Epitropakis: Benchmark functions for
CEC'2013 special session on niching methods, 2013), negated where the suite maximises. An optimum counts as found if a
reported mode is within 1e-3 of it in every coordinate. Seeds 100-104; constants were chosen on seeds 0-9.
A minute or so.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import esgroup
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureStep
from esgroup.strategies import rates
from esgroup.strategies.mixture import MixtureSearch

SEEDS = range(100, 105)
ACCURACY = 1e-3

Array = np.ndarray


class Task(NamedTuple):
    """A function of rows, its box, and its global minimisers."""

    name: str
    fun: Callable[[Array], Array]
    box: list[tuple[float, float]]
    optima: Array


def himmelblau(x: Array) -> Array:
    """(a^2 + b - 11)^2 + (a + b^2 - 7)^2: four minima of value 0."""
    a, b = x.T
    return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2


def camel(x: Array) -> Array:
    """(4 - 2.1 a^2 + a^4/3) a^2 + a b + (4 b^2 - 4) b^2: two global minima and four others."""
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2


def rastrigin(x: Array) -> Array:
    """sum_i 10 + 9 cos(2 pi k_i x_i), k = (3, 4): 12 minima of value 2."""
    return (10 + 9 * np.cos(2 * np.pi * np.array([3, 4]) * x)).sum(axis=1)


def vincent(x: Array) -> Array:
    """-1/2 sum_i sin(10 log x_i): 36 minima of value -1, in basins of very different width."""
    return -np.sin(10 * np.log(x)).mean(axis=1)


HIMMELBLAU = [
    (3.0, 2.0),
    (-2.805118086953, 3.131312518251),
    (-3.779310253378, -3.283185991286),
    (3.584428340330, -1.848126526964),
]
CAMEL = [(0.089842013683, -0.712656403270), (-0.089842013683, 0.712656403270)]
RASTRIGIN = list(itertools.product([1 / 6, 3 / 6, 5 / 6], [1 / 8, 3 / 8, 5 / 8, 7 / 8]))
VINCENT = list(itertools.product([math.exp((math.pi / 2 + 2 * math.pi * k) / 10) for k in range(-2, 4)], repeat=2))

TASKS = {
    "himmelblau": Task("Himmelblau", himmelblau, [(-6.0, 6.0)] * 2, np.array(HIMMELBLAU)),
    "camel": Task("six-hump camel", camel, [(-1.9, 1.9), (-1.1, 1.1)], np.array(CAMEL)),
    "rastrigin": Task("modified Rastrigin", rastrigin, [(0.0, 1.0)] * 2, np.array(RASTRIGIN)),
    "vincent": Task("Vincent", vincent, [(0.25, 10.0)] * 2, np.array(VINCENT)),
}


def number_found(optima: Array, points: Array) -> int:
    """How many optima have one of the points near them."""
    gaps = np.abs(optima[:, None] - points[None]).max(axis=2)
    return int((gaps.min(axis=1, initial=np.inf) < ACCURACY).sum())


def search(task: Task, count: int, seed: int, max_evals: int) -> tuple[int, int, int, float]:
    """Optima found, modes reported, evaluations, and evaluations when the last of the optima was found (or inf)."""
    rng = np.random.default_rng(seed)
    strategy = MixtureSearch(Mixture.spread(count, bounds=task.box, rng=rng), box=np.array(task.box))
    state, evals, complete, found, points = strategy.start(), 0, math.inf, 0, np.empty((0, 2))
    while evals + strategy.popsize <= max_evals and not strategy.ended(state):
        drawn = strategy.sample(state, strategy.popsize, rng)
        evals += len(drawn.points)
        state = strategy.update(state, drawn.local, np.argsort(task.fun(drawn.points), kind="stable"))
        points = np.array([point for point, _, _ in strategy.modes(state)])
        found = number_found(task.optima, points)
        if found == len(task.optima) and complete == math.inf:
            complete = evals
    return found, len(points), evals, complete


def joint(task: Task, count: int, seed: int, max_evals: int, learn_weights: bool) -> tuple[int, float]:
    """Optima that the plain natural gradient by ranks over the whole mixture ends at, and the largest weight.

    50 samples for each component, the rates of xNES, no box; until a component has shrunk to 1e-6. As 1 / pi_k
    multiplies the steps, those of a component are cut at 3 standard deviations and, in the square root, at 1.
    """
    rng = np.random.default_rng(seed)
    mixture = Mixture.spread(count, bounds=task.box, learn_weights=learn_weights, rng=rng)
    state, popsize = mixture.state(), 50 * count
    utilities, rate = rates.utilities(popsize), rates.utility_rate(mixture.dim, mixture.components[0].group.dof)
    for _ in range(max_evals // popsize):
        x = mixture.sample(state, popsize, rng).x
        weights = np.empty(popsize)
        weights[np.argsort(task.fun(x), kind="stable")] = utilities
        deltas, ms, logits = mixture.natural_score(state, x, weights)
        ms = rate * ms.reshape(count, -1)
        deltas, ms = (v / np.maximum(1.0, np.abs(v).max(axis=1)[:, None] / c) for v, c in ((deltas, 3.0), (ms, 1.0)))
        state = mixture.move(state, MixtureStep(deltas, ms.ravel(), rate * logits))
        if min(g.entropy(s) for g, s in zip(mixture.components, mixture.component_states(state), strict=True)) < -25:
            break  # standard deviations near 1e-6
    return number_found(task.optima, state.means), float(mixture.mixing_weights(state).max())


def rows_of_search(task: Task, count: int, max_evals: int, goal: str) -> Iterator[tuple[str, str, str]]:
    """One line for a task."""
    runs = [search(task, count, seed, max_evals) for seed in SEEDS]
    found, kept, evals, complete = (list(column) for column in zip(*runs, strict=True))
    text = f"{found} of {len(task.optima)}; modes reported {kept}; evaluations {evals}; all found at {complete}"
    yield f"{task.name}, {count} components, at most {max_evals:,} evaluations", text, goal


def rows_of_joint(task: Task, count: int, max_evals: int) -> Iterator[tuple[str, str, str]]:
    """One line for fixed weights and one for learnt ones."""
    for learn in (False, True):
        runs = [joint(task, count, seed, max_evals, learn) for seed in SEEDS]
        text = f"{[n for n, _ in runs]} of {len(task.optima)}; largest weight {[round(w, 2) for _, w in runs]}"
        kind = "learnt" if learn else "fixed"
        yield f"{task.name}, plain joint natural gradient, {kind} weights, at most {max_evals:,} evaluations", text, "-"


def ellipsoid(x: Array) -> Array:
    """sum_i 10^(4 (i-1)/(n-1)) (x_i - 1)^2."""
    return (x - 1) ** 2 @ np.logspace(0, 4, x.shape[1])


def rosenbrock(x: Array) -> Array:
    """Rosenbrock's chain."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def evaluations_of_one(fun: Callable[[Array], Array], dim: int, seed: int) -> int:
    """Evaluations to 1e-8 of a mixture with one component."""
    rng = np.random.default_rng(seed)
    strategy = MixtureSearch(Mixture((Gaussian("full", mean=np.zeros(dim), sigma0=0.5),)), tolerance=1e-9)
    state, evals, best = strategy.start(), 0, math.inf
    while best > 1e-8 and evals < 100_000:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = fun(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, drawn.local, np.argsort(values, kind="stable"))
    return evals


def evaluations_of_gaussian(fun: Callable[[Array], Array], dim: int, seed: int) -> int:
    """The same of the search for vectors."""
    plain = esgroup.Searcher(np.zeros(dim), 0.5, structure="full", rng=seed, max_evals=100_000, target=1e-8)
    while not plain.stop():
        plain.tell(fun(plain.ask()))
    return plain.nfev


def rows_of_one() -> Iterator[tuple[str, str, str]]:
    """One component against the search for vectors."""
    for fun in (ellipsoid, rosenbrock):
        one = [evaluations_of_one(fun, 5, seed) for seed in SEEDS]
        plain = [evaluations_of_gaussian(fun, 5, seed) for seed in SEEDS]
        yield f"one component, {fun.__name__} d = 5, evaluations to 1e-8", f"{one}; Searcher {plain}", "the same"


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, measured, goal)."""
    yield from rows_of_search(TASKS["himmelblau"], 4, 20_000, "4 in 5 of 5 runs")
    yield from rows_of_search(TASKS["camel"], 4, 20_000, "2 in 5 of 5 runs")
    yield from rows_of_search(TASKS["rastrigin"], 12, 20_000, ">= 10 in 5 of 5 runs")
    yield from rows_of_search(TASKS["vincent"], 12, 50_000, "-")
    yield from rows_of_joint(TASKS["himmelblau"], 4, 50_000)
    yield from rows_of_joint(TASKS["rastrigin"], 12, 50_000)
    yield from rows_of_one()


if __name__ == "__main__":
    for what, measured, goal in rows():
        print(f"{what}\n    {measured}\n    goal: {goal}")
