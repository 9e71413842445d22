"""Structured Newton against SciPy's methods with derivatives, and the time of one update as the dimension grows.

    python scripts/bench_newton.py [--seeds 10] [--dim 200] [--quick]

Rosenbrock and Dixon-Price, divided by the dimension, from four kinds of start; the settings are the defaults
everywhere, ours and SciPy's, but for tolerances that do not end a run before its target. Every method sees the same
functions, which count: f, g, products with the Hessian (HVP) and its diagonal; "all" is their sum. A run is solved when
a point of its iteration has f <= target. Medians over the solved runs; CPU time is that of the process, function
evaluations included. Seeds begin at 100: the defaults were chosen on 0 to 9. About ten minutes, `--quick` one.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import typer
from scipy.optimize import minimize

import esgroup_problems as zoo
from esgroup.gradients.function import Counts
from esgroup.groups import parse
from esgroup.newton import minimize_newton
from esgroup.newton.moving import Moving, moving_precision
from esgroup.newton.precision import Precision, UpdateData, group_precision

FIRST_SEED = 100
MAX_ITERS = 1500


class Outcome(NamedTuple):
    """What one run took, and whether it came to the target."""

    solved: bool
    iterations: int
    counts: Counts
    seconds: float


class Task:
    """A problem whose evaluations are counted, and the value to reach."""

    def __init__(self, problem: zoo.Problem, target: float) -> None:
        self.problem, self.target, self.counts = problem, target, Counts()

    def fun(self, x: np.ndarray) -> float:
        self.counts.nfev += 1
        return self.problem.fun(x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.counts.njev += 1
        return self.problem.gradient(x)

    def product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.counts.nhvp += 1
        return self.problem.hessian_product(x, v)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        self.counts.ndiag += 1
        return self.problem.hessian_diagonal(x)


Method = Callable[[Task, np.ndarray], tuple[float, int]]  # to the value and the iterations


@dataclass(frozen=True)
class Ours:
    """`minimize_newton` with a structure, otherwise as it is."""

    structure: str

    def __call__(self, task: Task, x0: np.ndarray) -> tuple[float, int]:
        found = minimize_newton(
            task.fun,
            x0,
            jac=task.gradient,
            hessp=task.product,
            hess_diag=task.diagonal,
            structure=self.structure,
            target=task.target,
            gtol=0.0,
            max_iters=MAX_ITERS,
        )
        return found.fun, found.nit


@dataclass(frozen=True)
class SciPys:
    """A method of SciPy, ended by its callback at the target."""

    name: str
    tolerances: tuple[str, ...]
    products: bool = False

    def __call__(self, task: Task, x0: np.ndarray) -> tuple[float, int]:
        def stop(intermediate_result) -> None:  # SciPy knows the argument by its name
            if intermediate_result.fun <= task.target:
                raise StopIteration

        options = dict.fromkeys(self.tolerances, 1e-15) | {"maxiter": MAX_ITERS}
        hessp = task.product if self.products else None
        found = minimize(task.fun, x0, jac=task.gradient, hessp=hessp, method=self.name, callback=stop, options=options)
        return float(found.fun), int(found.nit)


METHODS: dict[str, Method] = {
    "Hs-low(4,4)": Ours("heisenberg"),
    "Hs-low(0,1)": Ours("heisenberg:k1=0,k2=1"),
    "moving(10)": Ours("moving:k=10"),
    "moving(5) residual": Ours("moving:k=5,residual"),
    "diagonal": Ours("diagonal"),
    "BFGS": SciPys("BFGS", ("gtol",)),
    "L-BFGS-B": SciPys("L-BFGS-B", ("gtol", "ftol")),
    "Newton-CG": SciPys("Newton-CG", ("xtol",), products=True),
    "trust-krylov": SciPys("trust-krylov", ("gtol",), products=True),
}


def start(kind: str, dim: int, seed: int) -> np.ndarray:
    """A random start of one of four kinds."""
    rng = np.random.default_rng(seed)
    if kind == "U(0,2)":
        return rng.uniform(0.0, 2.0, dim)
    noise = rng.standard_normal(dim)
    if kind == "N(0,1)":
        return noise
    middle = np.zeros(dim) if kind == "zeros + 0.1 N" else np.resize([-1.2, 1.0], dim)
    return middle + 0.1 * noise


TASKS = [
    ("rosenbrock", "U(0,2)", 1e-6),
    ("rosenbrock", "zeros + 0.1 N", 1e-6),
    ("rosenbrock", "(-1.2,1,..) + 0.1 N", 1e-6),
    ("rosenbrock", "N(0,1)", 1e-6),
    ("dixon_price", "U(0,2)", 1e-6),
    ("dixon_price", "N(0,1)", 4e-3),  # all end in the local minimum, whose value is 3.33e-3 in 200 dimensions
]


def run(method: Method, problem: zoo.Problem, target: float, x0: np.ndarray) -> Outcome:
    """One run, with what it took."""
    task = Task(problem, target)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's and those of functions far out: the table says what came of it
        value, iterations = method(task, x0)
    return Outcome(value <= target, iterations, task.counts, time.process_time() - began)


def row(name: str, runs: list[Outcome]) -> str:
    """A line of a table: medians of the solved runs."""
    solved = [found for found in runs if found.solved]
    head = f"{name:20s} {len(solved):3d} of {len(runs):2d}"
    if not solved:
        return head
    counts = [found.counts for found in solved]
    numbers = [
        [found.iterations for found in solved],
        [c.nfev for c in counts],
        [c.njev for c in counts],
        [c.nhvp for c in counts],
        [c.ndiag for c in counts],
        [c.gradient_equivalents for c in counts],
    ]
    medians = "".join(f"{np.median(values):8.0f}" for values in numbers)
    return head + medians + f"{1000 * np.median([found.seconds for found in solved]):10.1f}"


def compare(dim: int, seeds: int) -> None:
    """Print a table for every task."""
    for method in METHODS.values():  # loops are compiled and modules loaded before anything is timed
        run(method, zoo.get("rosenbrock", 20), 1e-6, np.full(20, 0.9))
    for name, kind, target in TASKS:
        print(f"\n{name}, dim {dim}, from {kind}, to {target:g}, seeds {FIRST_SEED} to {FIRST_SEED + seeds - 1}")
        print(
            f"{'':20s} {'solved':>9s}"
            + "".join(f"{c:>8s}" for c in ("iters", "f", "g", "HVP", "diag", "all"))
            + "    CPU ms"
        )
        problem = zoo.get(name, dim)
        for label, method in METHODS.items():
            starts = [start(kind, dim, FIRST_SEED + i) for i in range(seeds)]
            print(row(label, [run(method, problem, target, x0) for x0 in starts]), flush=True)


# ---- growth with the dimension ------------------------------------------------------------------------------------


def update_seconds(precision: Precision, dim: int, repeats: int) -> float:
    """CPU time of an update of the precision and a step, the fastest of several; products cost next to nothing."""
    rng = np.random.default_rng(FIRST_SEED)
    diagonal = rng.uniform(1.0, 2.0, dim)
    data = UpdateData(rng.standard_normal(dim), lambda rows: rows * diagonal, diagonal, 0.0, 0.9, None)
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        precision = precision.advance(data)
        precision.solve(data.gradient)
        seconds.append(time.process_time() - began)
    return min(seconds)


def scaling(largest: int) -> None:
    """Print the time of an update in 10^3, 10^4, ... dimensions, and with which power of the dimension it grows."""
    dims = [10**power for power in range(3, largest + 1)]
    print(
        "\nCPU ms of one update and step, k = 5"
        + "".join(f"{f'10^{np.log10(d):.0f}':>10s}" for d in dims)
        + "  exponent, last"
    )
    for spelling in ("block_triangular:k=5", "heisenberg:k1=5,k2=5", "moving:k=5", "diagonal"):
        seconds = []
        for dim in dims:
            moving = spelling.startswith("moving")
            first = (
                moving_precision(Moving(5), dim)
                if moving
                else group_precision(parse(spelling, dim), "precision", 1.5, 1.0, True)
            )
            seconds.append(update_seconds(first, dim, 20 if dim < 10**6 else 7))
        fit = np.polyfit(np.log(dims), np.log(seconds), 1)[0]
        last = np.log10(seconds[-1] / seconds[-2])
        print(
            f"{spelling:36s}" + "".join(f"{1000 * s:10.3f}" for s in seconds) + f"{fit:10.2f} {last:5.2f}", flush=True
        )


def main(seeds: int = 10, dim: int = 200, quick: bool = False) -> None:
    """Print all tables."""
    compare(dim, 2 if quick else seeds)
    scaling(5 if quick else 6)


if __name__ == "__main__":
    typer.run(main)
