"""Search with matrix Gaussians: evaluations, CPU time and memory against the vector search.

    python scripts/spaces_matrix_gaussian.py

The function is the zoo's kronecker_ellipsoid, 30 x 30, of condition 10^4, from its own start to 1e-6; whole
generations are counted. Seeds are 100 and above. CPU time is that of the process, with one BLAS thread. About three
minutes.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from esgroup import Searcher
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.strategies.matrix_gaussian import MatrixGaussianSearch
from esgroup_problems.matrices import kronecker_ellipsoid
from esgroup_problems.problem import Problem

SIZE, TARGET, SEEDS = 30, 1e-6, range(100, 103)
DIAGONAL_BUDGET = 400_000  # evaluations, several times what the matrix search takes


class Run(NamedTuple):
    """What a search took."""

    evals: int
    best: float
    seconds: float  # of the processor


def run_matrix(problem: Problem, seed: int, max_evals: int = 200_000, **options: object) -> Run:
    """A search with a matrix Gaussian; options are fields of the distribution, or `algorithm`."""
    algorithm = options.pop("algorithm", "default")
    strategy = MatrixGaussianSearch(MatrixGaussian(problem.x0, problem.sigma0, **options), algorithm=algorithm)
    state, rng, evals, best = strategy.start(), np.random.default_rng(seed), 0, np.inf
    began = time.process_time()
    while evals < max_evals and best > TARGET:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = problem.batch(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, drawn.local, np.argsort(values, kind="stable"))
    return Run(evals, best, time.process_time() - began)


def run_vector(problem: Problem, structure: str, seed: int, max_evals: int | None, max_seconds: float = np.inf) -> Run:
    """A vector search over the entries row by row, for so many evaluations or so much CPU time."""
    x0, shape = problem.x0, problem.x0.shape
    search = Searcher(x0.ravel(), problem.sigma0, structure=structure, rng=seed, max_evals=max_evals, target=TARGET)
    began = time.process_time()
    while not search.stop() and time.process_time() - began < max_seconds:
        search.tell(problem.batch(search.ask().reshape(-1, *shape)))
    return Run(search.nfev, search.best_f, time.process_time() - began)


def generation(shape: tuple[int, int], **options: object) -> tuple[float, float]:
    """CPU seconds of a generation (median of 3), sampled and moved, and the peak of its memory in MiB."""
    strategy = MatrixGaussianSearch(MatrixGaussian(np.zeros(shape), 1.0, **options))
    state, rng, seconds = strategy.start(), np.random.default_rng(0), []

    def once() -> None:
        drawn = strategy.sample(state, strategy.popsize, rng)
        strategy.update(state, drawn.local, np.arange(strategy.popsize))

    once()  # compiles
    for _ in range(3):
        began = time.process_time()
        once()
        seconds.append(time.process_time() - began)
    tracemalloc.start()
    once()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return float(np.median(seconds)), peak


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, measured, goal) one after another."""
    problems = {seed: kronecker_ellipsoid(SIZE, seed=seed) for seed in SEEDS}
    run_matrix(problems[100], 100, max_evals=100)  # compiles
    matrix = [run_matrix(problem, seed) for seed, problem in problems.items()]
    yield "matrix Gaussian, full x full", _described(matrix), "fewer evaluations than diagonal"
    diagonal = run_vector(problems[100], "diagonal", 100, DIAGONAL_BUDGET)
    yield "vector, diagonal, seed 100", _described([diagonal]), "more evaluations than the matrix search"
    limit = 10 * matrix[0].seconds
    full = run_vector(problems[100], "full", 100, None, limit)
    yield (
        f"vector, full, seed 100, stopped after {limit:.0f} s",
        _described([full]),
        "not there in 10 x the time",
    )
    precision = [run_matrix(problems[100], 100, form="precision")]
    yield "matrix Gaussian, precision form, seed 100", _described(precision), "as in covariance form"
    approximate = [run_matrix(problems[100], 100, exact=False)]
    yield "matrix Gaussian, exact=False, seed 100", _described(approximate), "-"
    paper = [run_matrix(problems[100], 100, algorithm="paper")]
    yield "matrix Gaussian, algorithm='paper', seed 100", _described(paper), "-"
    for sizes, structure in (
        ((300, 300), {}),
        ((300, 300), {"rows": "heisenberg", "cols": "diagonal"}),
        ((600, 600), {"rows": "heisenberg", "cols": "diagonal"}),
    ):
        seconds, peak = generation(sizes, **structure)
        name = " x ".join(map(str, sizes)) + ", " + " x ".join(structure.get(s, "full") for s in ("rows", "cols"))
        yield f"a generation, {name}", f"{seconds:.2f} s, {peak:,.0f} MiB at most", "works; linear if structured"


def _described(runs: list[Run]) -> str:
    parts = []
    for run in runs:
        reached = "" if run.best <= TARGET else f" (not there: {run.best:.2g})"
        parts.append(f"{run.evals:,}{reached} in {run.seconds:.1f} s")
    return "; ".join(parts)


if __name__ == "__main__":
    for what, measured, goal in rows():
        print(f"{what:<58} | {measured:<66} | {goal}", flush=True)
