"""Search with matrix Gaussians: evaluations, CPU time and memory beside the vector search.

The function is the zoo's kronecker_ellipsoid, 30 x 30, of condition 10^4, from its own start to 1e-6.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
from spaces_runs import Plan, Row, Run, generations, run

from esgroup import MatrixGaussian, Searcher
from esgroup_problems.matrices import kronecker_ellipsoid
from esgroup_problems.problem import Problem

TARGET, MAX_EVALS = 1e-6, 400_000  # several times what the matrix search takes
VARIANTS: dict[str, dict[str, Any]] = {
    "precision form": {"form": "precision"},
    "exact=False": {"exact": False},
    'algorithm="paper"': {"algorithm": "paper"},
}
SPEED = 10  # how many times our CPU time the full vector search must take


def search(problem: Problem, seed: int, max_evals: int = MAX_EVALS, algorithm: str = "default", **fields: Any) -> Run:
    """A search with a matrix Gaussian; fields are the distribution's."""
    distribution = MatrixGaussian(problem.x0, problem.sigma0, **fields)
    matrices = Searcher(distribution, algorithm=algorithm, rng=seed)
    return run(generations(matrices, problem.batch), max_evals, TARGET)


def search_vectors(problem: Problem, structure: str, seed: int, max_seconds: float = math.inf) -> Run:
    """A vector search over the entries row by row, for at most so much CPU time."""
    vectors = Searcher(problem.x0.ravel(), problem.sigma0, structure=structure, rng=seed)
    steps = generations(vectors, lambda x: problem.batch(x.reshape(-1, *problem.x0.shape)))
    return run(steps, MAX_EVALS if max_seconds == math.inf else math.inf, TARGET, max_seconds)


def described(runs: list[Run]) -> str:
    """Evaluations and time of each run."""
    parts = []
    for r in runs:
        reached = "" if r.reached else f" (not there: {r.best:.2g}{', ' + r.reasons if r.reasons else ''})"
        parts.append(f"{r.evals:,}{reached} in {r.seconds:.1f} s")
    return "; ".join(parts)


def more_evaluations(ours: list[Run], theirs: list[Run]) -> bool:
    """Whether they took more on every instance; those that never came there took more than any number."""
    return all(a.reached and a.cost < b.cost for a, b in zip(ours, theirs, strict=True))


def more_time(ours: Run, theirs: Run) -> bool:
    """Whether they took SPEED times our CPU time, or were not there when it was over."""
    return ours.reached and (not theirs.reached or theirs.seconds >= SPEED * ours.seconds)


# ---- rows -----------------------------------------------------------------------------------------------------------


def evaluation_rows(plan: Plan, problems: dict[int, Problem], ours: list[Run]) -> Iterator[Row]:
    """The matrix search beside the vector search with diagonal structure."""
    what = (
        f"{_shape(problems)}, condition 1e4, to {TARGET:g}, seed{'s' * (len(ours) > 1)} {', '.join(map(str, problems))}"
    )
    seeds = plan.each(list(problems), f"{_shape(problems)}, vectors, diagonal")
    diagonal = [search_vectors(problems[seed], "diagonal", seed) for seed in seeds]
    goal = "fewer evaluations than vectors, diagonal"
    yield Row(f"{what}: matrix Gaussian, full x full", described(ours), goal, more_evaluations(ours, diagonal))
    yield Row(f"{what}: vectors, diagonal", described(diagonal))


def time_row(plan: Plan, problems: dict[int, Problem], ours: Run) -> Row:
    """The vector search with full structure on the first problem, for ten times the CPU time of the matrix search."""
    seed, problem = next(iter(problems.items()))
    what = f"{_shape(problems)}, seed {seed}: vectors, full, at most {SPEED} x the CPU time of the matrix Gaussian"
    plan.say(f"{what}, {SPEED * ours.seconds:.0f} s")
    full = search_vectors(problem, "full", seed, SPEED * ours.seconds)
    met = None if plan.quick else more_time(ours, full)
    return Row(what, described([full]), "not there by then", met)


def variant_rows(plan: Plan, problems: dict[int, Problem]) -> Iterator[Row]:
    """Other ways to search with a matrix Gaussian."""
    seed, problem = next(iter(problems.items()))
    for name, fields in VARIANTS.items():
        what = f"{_shape(problems)}, seed {seed}: matrix Gaussian, {name}"
        plan.say(what)
        yield Row(what, described([search(problem, seed, **fields)]))


def _shape(problems: dict[int, Problem]) -> str:
    return " x ".join(map(str, next(iter(problems.values())).x0.shape))


def generation(shape: tuple[int, int], **fields: Any) -> tuple[float, float]:
    """CPU seconds of a generation, ask and tell (median of 3), and the peak of its memory in MiB."""
    matrices, seconds = Searcher(MatrixGaussian(np.zeros(shape), 1.0, **fields), rng=0), []

    def once() -> None:
        matrices.ask()
        matrices.tell(np.arange(float(matrices.popsize)))

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


def size_rows(plan: Plan) -> Iterator[Row]:
    """Time and memory of a generation of large matrices."""
    structured = {"rows": "heisenberg", "cols": "diagonal"}
    for size, fields in ((300, {}), (300, structured), (600, structured))[: 1 if plan.quick else 3]:
        name = f"{size} x {size}, " + " x ".join(fields.get(side, "full") for side in ("rows", "cols"))
        plan.say(f"a generation, {name}")
        seconds, peak = generation((size, size), **fields)
        yield Row(f"a generation, {name}", f"{seconds:.2f} s, {peak:,.0f} MiB at most")


def rows(plan: Plan) -> Iterator[Row]:
    """All measurements of the search with matrix Gaussians."""
    size, seeds = (8, plan.seeds(1)) if plan.quick else (30, plan.seeds(3))
    problems = {seed: kronecker_ellipsoid(size, seed=seed) for seed in seeds}
    _compile(problems[seeds[0]])
    ours = [search(problems[seed], seed) for seed in plan.each(seeds, f"{_shape(problems)}, matrix Gaussian")]
    yield from evaluation_rows(plan, problems, ours)
    yield time_row(plan, problems, ours[0])
    yield from variant_rows(plan, problems)
    yield from size_rows(plan)


def _compile(problem: Problem) -> None:
    search(problem, 0, max_evals=1)
    for structure in ("diagonal", "full"):
        search_vectors(problem, structure, 0, 0.0)
