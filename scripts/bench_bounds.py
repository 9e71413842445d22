"""Minima in corners, on faces, near bounds and inside: evaluations within bounds, beside both ways of cma.

    python scripts/bench_bounds.py [--dim 10] [--seeds 5] [--first-seed 0] [--only esgroup]

Eight problems, each from random starts until f - f_min <= 1e-8, at most 2000 evaluations per coordinate: the median of
the searches that get there and, behind a cross, how many do not. Half a minute or so. Without cma installed, only ours.
"""
# extras: compare

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import typer
from scipy import optimize

import esgroup

TARGET = 1e-8
Values = Callable[[np.ndarray], np.ndarray]  # of the rows of an array


class Problem(NamedTuple):
    """A function between two bounds, the same for all coordinates, and where searches start."""

    name: str
    f: Values
    minimum: float
    bounds: tuple[float | None, float | None]
    starts: tuple[float, float]
    sigma0: float


def problems(dim: int) -> list[Problem]:
    """The eight problems; minima that are not obvious come from SciPy."""
    even, inside = np.arange(dim) % 2 == 0, np.linspace(-1, 2, dim)
    slopes = 10 ** (np.arange(dim) / max(1, dim - 1))
    rotated = rotated_ellipsoid(dim)
    partly = np.where(np.arange(dim) % 3 == 0, 7.0, inside)
    steep = np.diag(np.where(np.arange(dim) == 0, 1e3, 1.0))
    box: Any = ((-5.0, 5.0), (-4.0, 4.0), 2.0)
    return [
        Problem("sphere, minimum in a corner", squares(np.eye(dim), np.full(dim, 5.0)), 0.0, *box),
        Problem("linear", lambda x: (x + 5) @ slopes, 0.0, *box),
        Problem("sphere, half of it beyond", squares(np.eye(dim), np.where(even, 7.0, inside)), 4.0 * even.sum(), *box),
        Problem("the same, x >= 0", squares(np.eye(dim), 1.0 - 2.0 * even), even.sum(), (0, None), (0.5, 4.0), 2.0),
        Problem("Rosenbrock, x <= 1/2", rosenbrock, bounded_rosenbrock(dim), (0.0, 0.5), (0.05, 0.45), 0.1),
        Problem("rotated ellipsoid inside", squares(rotated, inside), 0.0, *box),
        Problem("rotated ellipsoid, partly beyond", squares(rotated, partly), least_squares(rotated, partly), *box),
        Problem("discus, 0.001 from all bounds", squares(steep, np.full(dim, 5 - 1e-3)), 0.0, *box),
    ]


def squares(root: np.ndarray, center: np.ndarray) -> Values:
    """|R (x - c)|^2 for rows x."""
    return lambda x: (((x - center) @ root.T) ** 2).sum(axis=1)


def rotated_ellipsoid(dim: int) -> np.ndarray:
    """R with R^T R of condition 1e4 and random axes."""
    axes, _ = np.linalg.qr(np.random.default_rng(7).standard_normal((dim, dim)))
    return np.logspace(0, 2, dim)[:, None] * axes.T


def least_squares(root: np.ndarray, center: np.ndarray) -> float:
    """The minimum of |R (x - c)|^2 within -5 and 5, by SciPy's active sets."""
    return 2 * float(optimize.lsq_linear(root, root @ center, (-5, 5), method="bvls", tol=1e-15).cost)


def rosenbrock(x: np.ndarray) -> np.ndarray:
    """sum_i 100 (x_i+1 - x_i^2)^2 + (1 - x_i)^2 for rows x."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def bounded_rosenbrock(dim: int) -> float:
    """Its minimum within 0 and 1/2, by SciPy."""
    found = optimize.minimize(
        lambda x: float(rosenbrock(x[None])[0]),
        np.full(dim, 0.3),
        jac=optimize.rosen_der,
        bounds=[(0, 0.5)] * dim,
        method="L-BFGS-B",
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
    )
    return float(found.fun)


# ---- searches -----------------------------------------------------------------------------------------------------


def by_esgroup(problem: Problem, x0: np.ndarray, seed: int, most: int) -> int | None:
    """Evaluations to the target, None if it was not reached."""
    target = problem.minimum + TARGET
    search = esgroup.Searcher(x0, problem.sigma0, bounds=problem.bounds, rng=seed, max_evals=most, target=target)
    while not search.stop():
        search.tell(problem.f(search.ask()))
    return search.nfev if "target" in search.stop() else None


def by_cma(handler: str) -> Callable[[Problem, np.ndarray, int, int], int | None]:
    """The same with one of cma's ways to keep bounds."""

    def search(problem: Problem, x0: np.ndarray, seed: int, most: int) -> int | None:
        import cma

        options = {"bounds": list(problem.bounds), "BoundaryHandler": getattr(cma, handler), "seed": seed + 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            es = cma.CMAEvolutionStrategy(x0, problem.sigma0, options | {"maxfevals": most, "verbose": -9})
            while not es.stop():
                points = es.ask()
                values = problem.f(np.array(points))
                es.tell(points, values.tolist())
                if values.min() <= problem.minimum + TARGET:
                    return int(es.countevals)
        return None

    return search


METHODS = {
    "esgroup": by_esgroup,
    "cma BoundPenalty": by_cma("BoundPenalty"),
    "cma BoundTransform": by_cma("BoundTransform"),
}


def cell(found: list[int | None]) -> str:
    """The median of those that reached the target, and how many did not."""
    reached, missed = [evals for evals in found if evals is not None], found.count(None)
    median = f"{np.median(reached):,.0f}" if reached else "-"
    return median + (f" \u2717{missed}" if missed else "")


def main(dim: int = 10, seeds: int = 5, first_seed: int = 0, only: str = "") -> None:
    """Print a row for every problem and the failures of every method."""
    if dim < 2 or seeds < 1:
        raise typer.BadParameter(f"--dim must be at least 2 and --seeds at least 1, got {dim} and {seeds}")
    names = [name for name in METHODS if only in name]
    if importlib.util.find_spec("cma") is None:
        names = [name for name in names if "cma" not in name]
    if not names:
        raise typer.BadParameter(f"--only must be part of one of {', '.join(METHODS)} that is installed, got {only!r}")
    print(f"{dim} coordinates, {seeds} seeds".ljust(34) + "".join(name.rjust(20) for name in names))
    missed = dict.fromkeys(names, 0)
    for problem in problems(dim):
        row = problem.name.ljust(34)
        for name in names:
            found = []
            for seed in range(first_seed, first_seed + seeds):
                x0 = np.random.default_rng(seed).uniform(*problem.starts, dim)
                found.append(METHODS[name](problem, x0, seed, 2000 * dim))
            missed[name] += found.count(None)
            row += cell(found).rjust(20)
        print(row, flush=True)
    print("not solved".ljust(34) + "".join(f"{n} of {seeds * 8}".rjust(20) for n in missed.values()))


if __name__ == "__main__":
    typer.run(main)
