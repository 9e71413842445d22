"""Mixtures as a search for several optima: how many are found in one run, and what the plain natural gradient does.

Functions of two variables from the suite for niching of CEC 2013 (Li, Engelbrecht, Epitropakis: Benchmark functions for
CEC'2013 special session on niching methods, 2013), negated where the suite maximizes. An optimum counts as found if a
reported mode is within 1e-3 of it in every coordinate. Constants were chosen on seeds 0-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from spaces_runs import Function, Plan, Row, Run, generations, median, run, solved

from esgroup import Gaussian, Mixture, Searcher
from esgroup.distributions.mixture import MixtureStep
from esgroup.strategies import rates

ACCURACY = 1e-3

Array = np.ndarray


class Task(NamedTuple):
    """A function of rows, its box, and its global minimizers."""

    name: str
    fun: Function
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


class Found(NamedTuple):
    """How a search for several optima ended."""

    optima: int
    modes: int  # reported
    evals: int
    complete: float  # evaluations when the last of the optima was found
    reasons: str


def searcher(task: Task, count: int, seed: int) -> Searcher:
    """A search in the box of the task."""
    rng = np.random.default_rng(seed)
    mixture = Mixture.spread(count, bounds=task.box, rng=rng)
    return Searcher(mixture, bounds=task.box, rng=rng)


def search(task: Task, count: int, seed: int, max_evals: int) -> Found:
    """A search until it stops by itself or the evaluations are made."""
    several, complete = searcher(task, count, seed), math.inf
    for step in generations(several, task.fun):
        points = np.array([mode.point for mode in several.result.modes])
        found = number_found(task.optima, points)
        complete = step.evals if found == len(task.optima) and complete == math.inf else complete
        if step.evals >= max_evals:
            break
    return Found(found, len(points), step.evals, complete, step.reasons)


def restarts(task: Task, seed: int, max_evals: int) -> int:
    """Optima found by cma in the box, begun anew at random points of it until the evaluations are made.

    sigma0 is a fifth of the box. Its tolerances are raised to what the accuracy needs, in its favour.
    """
    import cma

    rng, evals, ends = np.random.default_rng(seed), 0, []
    low, high = np.array(task.box).T
    options = {"bounds": [low, high], "CMA_stds": high - low, "tolx": 1e-4, "tolfun": 1e-6, "verbose": -9}
    while evals < max_evals:
        own = {"seed": int(rng.integers(1, 2**31)), "maxfevals": max_evals - evals}
        one = cma.CMAEvolutionStrategy(rng.uniform(low, high), 0.2, options | own)
        while not one.stop():
            x = one.ask()
            one.tell(x, list(task.fun(np.array(x))))
        evals += one.result.evaluations
        ends.append(one.result.xbest)
    return number_found(task.optima, np.array(ends))


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


def ellipsoid(x: Array) -> Array:
    """sum_i 10^(4 (i-1)/(n-1)) (x_i - 1)^2."""
    return (x - 1) ** 2 @ np.logspace(0, 4, x.shape[1])


def rosenbrock(x: Array) -> Array:
    """Rosenbrock's chain."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


# ---- rows -----------------------------------------------------------------------------------------------------------


def search_rows(plan: Plan, task: Task, count: int, max_evals: int, least: int | None) -> Iterator[Row]:
    """The optima found by every seed, at least so many as a goal; and those of restarts in as many evaluations."""
    what, total = f"{task.name}, {count} components, at most {max_evals:,} evaluations", len(task.optima)
    runs = [search(task, count, seed, max_evals) for seed in plan.each(plan.seeds(5), what)]
    goal = "-" if least is None else f"{'at least ' * (least < total)}{least} of {total} in every run"
    met = None if least is None else all(found.optima >= least for found in runs)
    yield Row(what, _described(runs, total), goal, met)
    if plan.quick:
        return
    what = f"{task.name}, cma with random restarts, as many evaluations"
    seeds = plan.each(plan.seeds(5), what)
    found = [restarts(task, seed, ours.evals) for seed, ours in zip(seeds, runs, strict=True)]
    yield Row(what, f"{_listed(found)} of {total}")


def _described(runs: list[Found], total: int) -> str:
    found, modes, evals, complete = (_listed(column) for column in list(zip(*runs, strict=True))[:4])
    ends = ", ".join(dict.fromkeys(run.reasons or "budget" for run in runs))
    found += f" of {total}; modes reported {modes}; evaluations {evals} (ended by: {ends})"
    return found + f"; all found at {complete}"


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,.0f}" if math.isfinite(value) else "-" for value in values)


def joint_rows(plan: Plan, task: Task, count: int, max_evals: int) -> Iterator[Row]:
    """One line for fixed weights and one for learned ones."""
    for learn, kind in ((False, "fixed"), (True, "learned")):
        what = f"{task.name}, plain joint natural gradient, {kind} weights, at most {max_evals:,} evaluations"
        runs = [joint(task, count, seed, max_evals, learn) for seed in plan.each(plan.seeds(5), what)]
        found, largest = _listed(n for n, _ in runs), ", ".join(f"{w:.2f}" for _, w in runs)
        yield Row(what, f"{found} of {len(task.optima)}; largest weight {largest}")


def to_target(search: Searcher, fun: Function) -> Run:
    """A run to 1e-8."""
    return run(generations(search, fun), 100_000, 1e-8)


def one_rows(plan: Plan) -> Iterator[Row]:
    """One component beside the search for vectors, in five dimensions."""
    mean = np.zeros(5)
    mixture = Mixture((Gaussian("full", mean=mean, sigma0=0.5),))
    for fun in (ellipsoid, rosenbrock):
        what = f"one component, {fun.__name__}, d = 5, to 1e-8"
        seeds = plan.seeds(5)
        one = [to_target(Searcher(mixture, rng=seed), fun) for seed in plan.each(seeds, what)]
        plain = [to_target(Searcher(mean, 0.5, structure="full", rng=seed), fun) for seed in seeds]
        measured = f"{solved(one)}; vectors: {solved(plain)}"
        met = median(one) <= 1.1 * median(plain) < math.inf
        yield Row(f"{what}, {len(seeds)} seeds", measured, "at most 1.1 of the search for vectors", met)


def rows(plan: Plan) -> Iterator[Row]:
    """All measurements of the search with mixtures."""
    yield from search_rows(plan, TASKS["himmelblau"], 4, 20_000, 4)
    yield from search_rows(plan, TASKS["camel"], 4, 20_000, 2)
    yield from search_rows(plan, TASKS["rastrigin"], 12, 20_000, 10)
    if not plan.quick:
        yield from search_rows(plan, TASKS["vincent"], 12, 50_000, None)
        yield from joint_rows(plan, TASKS["himmelblau"], 4, 50_000)
        yield from joint_rows(plan, TASKS["rastrigin"], 12, 50_000)
    yield from one_rows(plan)
