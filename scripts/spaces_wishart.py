"""Search over positive-definite matrices: evaluations beside cma on the matrix logarithm, noise, and time.

    python scripts/spaces_wishart.py [--seeds 11] [--first 100]

Whole generations are counted until the best sampled value is at the target, for both; medians over seeds, each with a
matrix of its own. cma gets its best sigma0 of 0.1, 0.3 and 1. The seeds from 100 on were not tuned on. About ten
minutes.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import time
from collections.abc import Iterator

import numpy as np
import typer
from scipy import stats

from esgroup.compare.charts import Logarithm
from esgroup.distributions.wishart import Wishart
from esgroup.strategies.wishart import WishartSearch
from esgroup_problems.matrices import matrix_inversion, metric_nearness
from esgroup_problems.problem import Problem


def search(problem: Problem, seed: int, max_evals: int, target: float) -> tuple[int | None, float]:
    """Evaluations until the target, None if it was not reached, and the best value."""
    strategy, rng = WishartSearch(Wishart(problem.x0)), np.random.default_rng(seed)
    state, evals, best = strategy.start(), 0, np.inf
    while evals < max_evals and best > target:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = problem.batch(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, drawn.local, np.argsort(values, kind="stable"))
    return (evals if best <= target else None), best


def search_with_cma(problem: Problem, seed: int, sigma0: float, max_evals: int, target: float) -> int | None:
    """The same with cma 4.5 on the logarithm's N numbers, without its own reasons to stop."""
    import cma

    chart, evals, best = Logarithm(problem.x0.shape), 0, np.inf
    options = {"seed": seed + 1, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(chart.vector(problem.x0), sigma0, options)
    while evals < max_evals and best > target:
        vectors = strategy.ask()
        values = problem.batch(chart.points(np.array(vectors)))
        evals, best = evals + len(values), min(best, float(values.min()))
        strategy.tell(vectors, list(values))
    return evals if best <= target else None


def median(found: list[int | None]) -> float:
    """Infinite if half of the runs failed."""
    return float(np.median([np.inf if evals is None else evals for evals in found]))


def concentrations(dim: int, seed: int, generations: int = 1000) -> list[float]:
    """n, generation by generation, when noise of one percent of the first value is added to `matrix_inversion`."""
    problem, strategy = matrix_inversion(dim, seed=seed), WishartSearch(Wishart(np.eye(dim)))
    rng, state, found = np.random.default_rng(seed), strategy.start(), []
    noise = 0.01 * problem.fun(problem.x0)
    for _ in range(generations):
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = problem.batch(drawn.points) + noise * rng.standard_normal(strategy.popsize)
        state = strategy.update(state, drawn.local, np.argsort(values, kind="stable"))
        found.append(float(state.dof))
    return found


def overhead(dim: int = 50, repeats: int = 60) -> tuple[float, float]:
    """Median seconds of a generation, and of as many samples by scipy.stats.wishart, drawn in turns."""
    strategy, rng = WishartSearch(Wishart(np.eye(dim))), np.random.default_rng(0)
    state, n = strategy.start(), strategy.popsize
    frozen, order = stats.wishart(float(state.dof), np.eye(dim)), np.arange(n)
    ours, scipys = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        strategy.update(state, strategy.sample(state, n, rng).local, order)
        between = time.perf_counter()
        frozen.rvs(n, random_state=rng)
        ours.append(between - begin)
        scipys.append(time.perf_counter() - between)
    return float(np.median(ours)), float(np.median(scipys))


def inversion_rows(seeds: range) -> Iterator[tuple[str, str, str]]:
    """`matrix_inversion` beside cma."""
    for dim, cap, share in ((3, 8_000, 1.5), (6, 20_000, None), (10, 40_000, 0.6)):
        chosen = seeds if dim < 10 else seeds[:5]
        problems = [(seed, matrix_inversion(dim, seed=seed)) for seed in chosen]
        ours = median([search(problem, seed, cap, 1e-6)[0] for seed, problem in problems])
        theirs = {
            sigma0: median([search_with_cma(problem, seed, sigma0, cap, 1e-6) for seed, problem in problems])
            for sigma0 in (0.1, 0.3, 1.0)
        }
        best = min(theirs.values())
        listed = ", ".join(f"{evals:.0f} ({sigma0:g})" for sigma0, evals in theirs.items())
        goal = "at most 4,000" if share is None else f"at most {share} of cma's: {share * best:.0f}"
        what = f"1/2 |WQ - I|^2, {dim} x {dim}, to 1e-6, {len(chosen)} seeds"
        yield what, f"{ours:.0f}; cma (sigma0): {listed}; ratio {ours / best:.2f}", goal


def nearness_rows(seeds: range) -> Iterator[tuple[str, str, str]]:
    """`metric_nearness`, of the population at 10 rows and of 125,000 samples at 50."""
    evals = [search(metric_nearness(10, seed=seed), seed, 40_000, 1e-10)[0] for seed in seeds]
    yield f"metric nearness, 10 x 10, to 1e-10, {len(seeds)} seeds", f"{median(evals):.0f}", "at most 7,000"
    chosen = seeds[:5]
    bests = [search(metric_nearness(50, 125_000, seed=seed), seed, 80_000, 0.0)[1] for seed in chosen]
    what = f"metric nearness, 50 x 50, 125,000 samples, best f after 80,000 evaluations, {len(chosen)} seeds"
    yield what, f"{np.median(bests):.1e}, worst {max(bests):.1e}", "below 1e-5"


def rows(first: int = 100, seeds: int = 11) -> Iterator[tuple[str, str, str]]:
    """What was measured, the result, and the goal."""
    chosen = range(first, first + seeds)
    ours, scipys = overhead()
    timing = f"{1e3 * ours:.2f} ms, scipy.stats.wishart {1e3 * scipys:.2f} ms: ratio {ours / scipys:.2f}"
    yield "a generation at 50 x 50, sample and update", timing, "at most 4 times SciPy's samples"
    yield from inversion_rows(chosen)
    for dim in (3, 6, 10):
        runs = [concentrations(dim, seed) for seed in chosen]
        peaks, last = [max(run) for run in runs], np.median([run[-1] for run in runs])
        peak = (
            f"peak of a run {np.median(peaks):.1e}, highest {max(peaks):.1e}, {sum(n > 1e8 for n in peaks)} above 1e8"
        )
        what = f"n over 1000 generations with noise of 1 percent of the first value, {dim} x {dim}, {len(chosen)} seeds"
        yield what, f"median {peak}; median in the end {last:.1e}", "does not run away: below 1e8"
    yield from nearness_rows(chosen)


def main(seeds: int = 11, first: int = 100) -> None:
    """Print the table."""
    for what, measured, goal in rows(first, seeds):
        print(f"{what}: {measured} | goal: {goal}", flush=True)


if __name__ == "__main__":
    typer.run(main)
