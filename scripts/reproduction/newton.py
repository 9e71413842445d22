"""Section 5.3: structured Newton's method against BFGS and Adam on Rosenbrock and Dixon-Price, both divided by p = 200.

The paper gives no start, so there are seven kinds, the random ones with several seeds. Ours and SciPy's BFGS have their
defaults. The rate of Adam is chosen for every function and start on other seeds (fixed starts get noise there), most
runs solved first, then fewest iterations. Its values are looked at after every iteration, but not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from bench_newton import MAX_ITERS, Method, Ours, SciPys, Task
from bench_newton import run as counted_run
from bench_newton import start as random_start
from scipy.optimize import minimize

import esgroup_problems as zoo
from esgroup.newton import minimize_newton
from reproduction.experiment import Array, Experiment, Plan, Row
from reproduction.nearness_methods import Adam
from reproduction.newton_drawing import figure
from reproduction.newton_verdicts import notes, verdicts

FIRST_TUNING, FIRST_REPORT = 1000, 100  # seeds, plus the seed of the run; and those that follow
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
NOISE = 0.1  # that fixed starts get for tuning
SHOWN = 300  # points of a path
STRUCTURES = {
    "Hs-low": "heisenberg:k1=4,k2=4",
    "Hs-up": "heisenberg:k1=4,k2=4,upper",
    "Tri-low": "block_triangular:k=8",
    "Tri-up": "block_triangular:k=8,upper",
    "diagonal": "diagonal",
    "moving block": "moving:k=10",
}
FIXED: dict[str, tuple[float, ...]] = {"zeros": (0.0,), "(-1.2, 1, ...)": (-1.2, 1.0), "1.5": (1.5,), "0.5": (0.5,)}
KINDS = ("U(0,2)", "1 + 0.3 N", *FIXED, "N(0,1)")
LOCAL = ("zeros", "(-1.2, 1, ...)", "N(0,1)")  # from here Dixon-Price leads to its local minimum 2 / (3 p)
PATHS = (("rosenbrock", "U(0,2)"), ("rosenbrock", "zeros"), ("dixon_price", "U(0,2)"))
DRAWN = ("Hs-low", "diagonal", "moving block")


@dataclass(frozen=True)
class Size:
    """How large: dimension, value to reach, kinds of start, seeds for tuning and reports, rates, Adam's iterations."""

    dim: int = 200
    goal: float = 1e-6
    kinds: tuple[str, ...] = KINDS
    tuning: int = 2
    seeds: int = 5
    rates: tuple[float, ...] = RATES
    adam: int = 3000


QUICK = Size(dim=10, goal=0.1, kinds=("U(0,2)", "1.5"), tuning=1, seeds=2, rates=(0.01, 0.1), adam=100)


def start(kind: str, dim: int, seed: int) -> Array:
    """Where a run begins; the fixed ones do not depend on the seed."""
    if kind in FIXED:
        return np.resize(FIXED[kind], dim)
    if kind == "1 + 0.3 N":
        return 1.0 + 0.3 * np.random.default_rng(seed).standard_normal(dim)
    return random_start(kind, dim, seed)


def target(name: str, kind: str, size: Size) -> float:
    """What counts as solved: the goal, or 20 % above the local minimum of Dixon-Price where all end in it."""
    return 0.8 / size.dim if name == "dixon_price" and kind in LOCAL else size.goal


# ---- Adam -----------------------------------------------------------------------------------------------------------


class Flat:
    """The chart of vectors: their coordinates."""

    def vector(self, point: Array) -> Array:
        return point

    def points(self, vector: Array) -> Array:
        return vector

    def pull_back(self, vector: Array, gradient: Array) -> Array:
        return gradient


def adam_values(task: Task, x0: Array, rate: float, limit: int) -> Iterator[float]:
    """f after every iteration, up to the target."""
    method = Adam(x0, rate, Flat())  # type: ignore[arg-type]
    for _ in range(limit):
        method.advance(task.gradient)
        value = task.problem.fun(method.point)
        yield value
        if not task.target < value < math.inf:
            return


@dataclass(frozen=True)
class Adams:
    """Adam as a method of the comparison."""

    rate: float
    limit: int

    def __call__(self, task: Task, x0: Array) -> tuple[float, int]:
        values = list(adam_values(task, x0, self.rate, self.limit))
        return min(values), len(values)


def tuned(size: Size, name: str, kind: str, seed: int) -> tuple[float, list[Row]]:
    """The best rate on the tuning seeds, and what was found there."""
    problem, goal, case = zoo.get(name, size.dim), target(name, kind, size), f"{name}, {kind}"
    rows = []
    for rate in size.rates:
        scores = []
        for i in range(size.tuning):
            noise = NOISE * np.random.default_rng([seed + i, 1]).standard_normal(size.dim) * (kind in FIXED)
            method = Adams(rate, size.adam)
            found = counted_run(method, problem, goal, start(kind, size.dim, seed + i) + noise)
            scores.append(found.iterations if found.solved else 10 * size.adam)
        rows.append(Row("tuning", case, "Adam", rate, float(np.mean(scores))))
    return min(rows, key=lambda row: row.value).x, rows


# ---- run ------------------------------------------------------------------------------------------------------------


def methods(rate: float, limit: int) -> dict[str, Method]:
    ours: dict[str, Method] = {name: Ours(spelling) for name, spelling in STRUCTURES.items()}
    return {**ours, "BFGS": SciPys("BFGS", ("gtol",)), "Adam": Adams(rate, limit)}


def run(plan: Plan) -> Iterator[Row]:
    size = QUICK if plan.quick else Size()
    _warm_up(size)
    for name in ("rosenbrock", "dixon_price"):
        for kind in size.kinds:
            rate, rows = tuned(size, name, kind, plan.seed + FIRST_TUNING)
            yield from rows
            yield Row("chosen", f"{name}, {kind}", "Adam", 0, rate)
            yield from _compared(size, name, kind, rate, plan)
            if (name, kind) in PATHS:
                yield from _paths(size, name, kind, rate, plan.seed + FIRST_REPORT)


def _warm_up(size: Size) -> None:
    """Loops are compiled and modules loaded before anything is timed."""
    for method in methods(0.1, 10).values():
        counted_run(method, zoo.get("rosenbrock", size.dim), 1e-6, np.full(size.dim, 0.9))


def _compared(size: Size, name: str, kind: str, rate: float, plan: Plan) -> Iterator[Row]:
    case, problem, goal = f"{name}, {kind}", zoo.get(name, size.dim), target(name, kind, size)
    yield Row("target", case, "", 0, goal)
    for label, method in methods(rate, size.adam).items():
        rows = []
        for i in range(1 if kind in FIXED else size.seeds):
            seed = plan.seed + FIRST_REPORT + i
            rows += _measured(case, label, method, problem, goal, seed, start(kind, size.dim, seed))
        plan.say(f"{case}, {label}: {', '.join(f'{row.value:.0f}' for row in rows if row.part == 'iterations')}")
        yield from rows


def _measured(
    case: str, label: str, method: Method, problem: zoo.Problem, goal: float, seed: int, x0: Array
) -> list[Row]:
    """One run: what it took, or inf if it was not solved, and the value at its end."""
    ends = []

    def remembered(task: Task, x0: Array) -> tuple[float, int]:
        value, iterations = method(task, x0)
        ends.append(value)
        return value, iterations

    found = counted_run(remembered, problem, goal, x0)
    numbers = {
        "iterations": found.iterations,
        "gradient-equivalents": found.counts.gradient_equivalents,
        "seconds": found.seconds,
    }
    rows = [Row(part, case, label, seed, float(v) if found.solved else math.inf) for part, v in numbers.items()]
    return [*rows, Row("end", case, label, seed, ends[0])]


# ---- paths ----------------------------------------------------------------------------------------------------------


def _paths(size: Size, name: str, kind: str, rate: float, seed: int) -> Iterator[Row]:
    """f over the iterations of one run of some methods."""
    problem, x0 = zoo.get(name, size.dim), start(kind, size.dim, seed)
    task = Task(problem, target(name, kind, size))
    found = {label: newton_values(task, x0, STRUCTURES[label]) for label in DRAWN}
    found |= {"BFGS": bfgs_values(task, x0), "Adam": list(adam_values(task, x0, rate, size.adam))}
    for label, values in found.items():
        every = [problem.fun(x0), *values]
        for i in np.unique(np.round(np.geomspace(1, len(every), SHOWN)).astype(int)) - 1:
            yield Row("path", f"{name}, {kind}", label, float(i), every[i])


def newton_values(task: Task, x0: Array, structure: str) -> list[float]:
    """f after every iteration of ours."""
    values: list[float] = []
    keep: Callable[..., None] = lambda found: values.append(found.fun)  # noqa: E731  # append returns None: go on
    known = {"jac": task.gradient, "hessp": task.product, "hess_diag": task.diagonal}
    options = {"target": task.target, "gtol": 0.0, "max_iters": MAX_ITERS}
    found = minimize_newton(task.fun, x0, structure=structure, callback=keep, **known, **options)
    return values if values and values[-1] <= found.fun else [*values, found.fun]


def bfgs_values(task: Task, x0: Array) -> list[float]:
    """f after every iteration of BFGS."""
    values: list[float] = []

    def keep(intermediate_result) -> None:  # SciPy knows the argument by its name
        values.append(float(intermediate_result.fun))
        if values[-1] <= task.target:
            raise StopIteration

    options = {"gtol": 1e-15, "maxiter": MAX_ITERS}
    minimize(task.fun, x0, jac=task.gradient, method="BFGS", callback=keep, options=options)
    return values


NEWTON = Experiment(
    name="newton",
    title="Structured Newton's method (section 5.3)",
    about=(
        "Rosenbrock and Dixon-Price, divided by p = 200, from seven kinds of start, to f <= 1e-6 (0.004 where "
        "Dixon-Price leads everyone to its local minimum, 0.00333): iterations, evaluations and CPU time. At most "
        "1500 iterations, Adam 3000."
    ),
    run=run,
    figure=figure,
    verdicts=verdicts,
    notes=notes,
)
