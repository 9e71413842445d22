"""Searches with univariate exponential families, and with a product of three of them against a clipped Gaussian.

    python scripts/spaces_univariate.py

Fresh seeds, 100 and up; nothing was tuned on them. A minute or so.

The mixed problem is the fit of waiting times: with probability 1 - p there is none, otherwise it is a sum of n
exponential stages with mean m in all. Known are p0, m0, n0; the value is the divergence from the model with (m, p, n),
in nats, 0 at the truth. In `stages` coordinates the first number is the mean of one stage, s = m / n, which is strongly
correlated with n.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import digamma, gammaln

import esgroup
from esgroup.distributions.families import (
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Pareto,
    Poisson,
    PoissonPower,
    Product,
    Wald,
    Weibull,
)
from esgroup.distributions.univariate import Univariate
from esgroup.strategies.univariate import UnivariateSearch

Function = Callable[[np.ndarray], np.ndarray]
SEEDS = range(100, 105)
INSTANCES = [(0.14, 0.97, 7.0), (3.0, 0.2, 20.0), (0.05, 0.9, 4.0)]
MIXED_SEEDS = range(100, 120)
EDGE = 1e-9  # clipping cannot go to the end of an open domain


# ---- functions ------------------------------------------------------------------------------------------------------


def ratio(x0: float) -> Function:
    """x / x0 - 1 - log(x / x0), positive numbers."""
    return lambda x: x[:, 0] / x0 - 1 - np.log(x[:, 0] / x0)


def divergence(p: float) -> Function:
    """p log(p / x) + (1 - p) log((1 - p) / (1 - x)), numbers between 0 and 1."""
    return lambda x: p * np.log(p / x[:, 0]) + (1 - p) * np.log((1 - p) / (1 - x[:, 0]))


def skewed(x0: float) -> Function:
    """e^t - 1 - t with t = x - x0, all numbers."""
    return lambda x: np.expm1(np.minimum(x[:, 0] - x0, 700)) - (x[:, 0] - x0)


def waiting(m0: float, p0: float, n0: float, stages: bool = False) -> Function:
    """The divergence of the model with rows (m, p, n), or (m / n, p, n); infinite without a stage."""

    def f(x: np.ndarray) -> np.ndarray:
        first, p, n = x.T
        n_safe = np.maximum(n, 1.0)
        s, s0 = first if stages else first / n_safe, m0 / n0
        idle = p0 * np.log(p0 / p) + (1 - p0) * np.log((1 - p0) / (1 - p))
        busy = (n0 - n_safe) * digamma(n0) - gammaln(n0) + gammaln(n_safe)
        busy += n_safe * np.log(s / s0) + n0 * (s0 / s - 1)
        return np.where(n < 1, np.inf, idle + p0 * busy)

    return f


# ---- searches -------------------------------------------------------------------------------------------------------


def univariate(strategy: UnivariateSearch, f: Function, seed: int, max_evals: int, target: float) -> tuple[int, float]:
    """Evaluations and the best value."""
    rng, state, evals, best = np.random.default_rng(seed), strategy.start(), 0, np.inf
    while evals < max_evals and best > target:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = f(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, drawn.local, np.argsort(values, kind="stable"))
    return evals, best


def clipped(x: np.ndarray) -> np.ndarray:
    """The nearest positive number, number between 0 and 1, and count."""
    scale, p, n = x.T
    return np.column_stack([np.maximum(scale, EDGE), np.clip(p, EDGE, 1 - EDGE), np.maximum(np.round(n), 0.0)])


def gaussian(
    f: Function, seed: int, max_evals: int, target: float, popsize: int | None, own: bool
) -> tuple[int, float]:
    """The Gaussian search over R^3 from the same means and deviations: clipped, or with its own bounds and integers."""
    x0, sigma0 = [1.0, 0.5, 3.0], [1.0, 12**-0.5, 3**0.5]
    bounds = [(EDGE, None), (EDGE, 1 - EDGE), (0, None)] if own else None
    search = esgroup.Searcher(x0, sigma0, bounds=bounds, integer=[2] if own else None, popsize=popsize, rng=seed)
    best = np.inf
    while search.nfev < max_evals and best > target and not search.stop():
        x = search.ask()
        values = f(x if own else clipped(x))
        search.tell(values)
        best = min(best, float(values.min()))
    return search.nfev, best


# ---- rows -----------------------------------------------------------------------------------------------------------


def solved(runs: list[tuple[int, float]], target: float) -> str:
    """How many reached the target, and the median evaluations of those."""
    evals = [evals for evals, best in runs if best <= target]
    median = f", median {np.median(evals):.0f} evaluations" if evals else ""
    return f"{len(evals)} of {len(runs)}{median}"


def rows() -> Iterator[tuple[str, str, str]]:
    """What, measured, goal."""
    yield from _concentrating()
    yield from _one_parameter()
    for instance in INSTANCES:
        yield from _mixed(instance, stages=False)
    yield from _mixed(INSTANCES[0], stages=True)


def _concentrating() -> Iterator[tuple[str, str, str]]:
    cases: list[tuple[Univariate, str, Function]] = [
        (Gamma(1.0, 1.0), "x/37 - 1 - log(x/37)", ratio(37.0)),
        (Gamma(100.0, 100.0), "the same with 1e5", ratio(1e5)),
        (Wald(1.0, 4.0), "the same with 1e-4", ratio(1e-4)),
        (Beta(1.0, 1.0), "divergence from 0.83", divergence(0.83)),
        (Beta(50.0, 50.0), "divergence from 0.003", divergence(0.003)),
        (Normal(0.0, 1.0), "e^t - 1 - t, t = x - 7", skewed(7.0)),
        (PoissonPower(3.0, 1.0), "the same with 60", skewed(60.0)),
    ]
    for family, name, f in cases:
        for target in (1e-6, 1e-12):
            runs = [univariate(UnivariateSearch(family), f, seed, 2000, target) for seed in SEEDS]
            goal = "5 of 5" if target == 1e-6 else "-"
            yield f"{family}, {name}, to {target:g}", solved(runs, target), goal


def _one_parameter() -> Iterator[tuple[str, str, str]]:
    cases = [
        (Exponential(1.0), "x/37 - 1 - log(x/37)", ratio(37.0)),
        (Weibull(1.0, 3.0), "x/37 - 1 - log(x/37)", ratio(37.0)),
        (Pareto(1.0, 1.0), "x/37 - 1 - log(x/37)", ratio(37.0)),
        (Laplace(1.0, 0.0), "e^t - 1 - t, t = x + 3.7", skewed(-3.7)),
    ]
    for family, name, f in cases:
        for budget in (1000, 10_000):
            best = [univariate(UnivariateSearch(family), f, seed, budget, 0.0)[1] for seed in SEEDS]
            yield f"{family}, {name}, {budget} evaluations", f"best {min(best):.1g} to {max(best):.1g}", "reachable"
    at_ends = [
        (Exponential(1.0), "x", lambda x: x[:, 0]),
        (Laplace(1.0, 2.0), "|x - 2|", lambda x: np.abs(x[:, 0] - 2)),
        (Pareto(1.0, 1.0), "x - 1", lambda x: x[:, 0] - 1),
    ]
    for family, name, f in at_ends:
        runs = [univariate(UnivariateSearch(family), f, seed, 2000, 1e-6) for seed in SEEDS]
        yield f"{family}, optimum at its end, {name}, to 1e-06", solved(runs, 1e-6), "5 of 5"
    for start in (0.1, 0.9):
        runs = [univariate(UnivariateSearch(Bernoulli(start)), lambda x: x[:, 0], seed, 200, 0.0) for seed in SEEDS]
        yield f"Bernoulli({start}), the better of two values", solved(runs, 0.0), "5 of 5"
    runs = [univariate(UnivariateSearch(Poisson(1.0)), skewed(40.0), seed, 2000, 0.0) for seed in SEEDS]
    yield "Poisson(1), e^t - 1 - t, t = x - 40", solved(runs, 0.0), "5 of 5"


def _mixed(instance: tuple[float, float, float], stages: bool) -> Iterator[tuple[str, str, str]]:
    f, target, budget = waiting(*instance, stages=stages), 1e-6, 5000
    what = f"waiting times {instance}{', by stages' if stages else ''}: "
    for count in (PoissonPower(3.0), Poisson(3.0)):
        strategy = UnivariateSearch(Product((Gamma(1.0, 1.0), Beta(1.0, 1.0), count)))
        runs = [univariate(strategy, f, seed, budget, target) for seed in MIXED_SEEDS]
        goal = "more than the clipped Gaussian" if isinstance(count, PoissonPower) and not stages else "-"
        yield what + f"Gamma x Beta x {type(count).__name__}", solved(runs, target), goal
    for popsize, own in ((None, False), (9, False), (16, False), (None, True)):
        runs = [gaussian(f, seed, budget, target, popsize, own) for seed in MIXED_SEEDS]
        name = "Gaussian, bounds= and integer=" if own else "Gaussian, clipped and rounded"
        yield what + f"{name}, popsize {popsize or 'default (7)'}", solved(runs, target), "-"


if __name__ == "__main__":
    for what, measured, goal in rows():
        print(f"{what:<95} {measured:<40} {goal}", flush=True)
