"""Structured Newton and SciPy's Newton-CG on standard problems: iterations and products with the Hessian.

    python scripts/bench_newton_standard.py [--dim 20]

Problems of More, Garbow and Hillstrom (1981) from their usual starts, and a rotated quadratic of condition 1e6. Both
methods have their defaults; a run ends, and is solved, when the largest entry of its gradient is at most 1e-5. All
products are counted; the diagonal of the Hessian, which structured Newton also reads, is not. Ten seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import minimize

import esgroup

GTOL, MAX_ITERS = 1e-5, 2000
STRUCTURES = ("heisenberg", "moving:k=10")
Array = NDArray[np.float64]


class Standard(NamedTuple):
    """f = |r|^2 by its residuals r, their Jacobian, and sum_i r_i Hess r_i."""

    name: str
    x0: Array
    residuals: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    second: Callable[[Array, Array], Array]

    def fun(self, x: Array) -> float:
        return float(self.residuals(x) @ self.residuals(x))

    def gradient(self, x: Array) -> Array:
        return 2 * self.jacobian(x).T @ self.residuals(x)

    def hessian(self, x: Array) -> Array:
        jacobian = self.jacobian(x)
        return 2 * (jacobian.T @ jacobian + self.second(x, self.residuals(x)))


def problems(n: int) -> list[Standard]:
    """All problems in n variables."""
    i, one, none = np.arange(1.0, n + 1.0), np.eye(n), np.zeros((n, n))
    h = 1 / (n + 1)
    shift = h * i + 1
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((n, n)))[0]
    root = np.logspace(0, 3, n)[:, None] * turn

    def neighbors(x: Array, before: float, after: float) -> Array:
        padded = np.concatenate([[0.0], x, [0.0]])
        return before * padded[:-2] + after * padded[2:]

    return [
        Standard(
            "penalty I",
            i,
            lambda x: np.append(1e-5**0.5 * (x - 1), x @ x - 0.25),
            lambda x: np.vstack([1e-5**0.5 * one, 2 * x]),
            lambda x, r: 2 * r[-1] * one,
        ),
        Standard(
            "variably dimensioned",
            1 - i / n,
            lambda x: np.concatenate([x - 1, [i @ (x - 1), (i @ (x - 1)) ** 2]]),
            lambda x: np.vstack([one, i, 2 * (i @ (x - 1)) * i]),
            lambda x, r: 2 * r[-1] * np.outer(i, i),
        ),
        Standard(
            "trigonometric",
            np.full(n, 1 / n),
            lambda x: n - np.cos(x).sum() + i * (1 - np.cos(x)) - np.sin(x),
            lambda x: np.sin(x)[None] + np.diag(i * np.sin(x) - np.cos(x)),
            lambda x, r: np.diag(np.cos(x) * r.sum() + r * (i * np.cos(x) + np.sin(x))),
        ),
        Standard(
            "Broyden tridiagonal",
            -np.ones(n),
            lambda x: (3 - 2 * x) * x + neighbors(x, -1, -2) + 1,
            lambda x: np.diag(3 - 4 * x) - np.eye(n, k=-1) - 2 * np.eye(n, k=1),
            lambda x, r: np.diag(-4 * r),
        ),
        Standard(
            "discrete boundary value",
            h * i * (h * i - 1),
            lambda x: 2 * x + neighbors(x, -1, -1) + h * h * (x + shift) ** 3 / 2,
            lambda x: np.diag(2 + 1.5 * h * h * (x + shift) ** 2) - np.eye(n, k=-1) - np.eye(n, k=1),
            lambda x, r: np.diag(3 * h * h * (x + shift) * r),
        ),
        Standard("linear, rank 1", np.ones(n), lambda x: i * (i @ x) - 1, lambda x: np.outer(i, i), lambda x, r: none),
        Standard("rotated quadratic", np.ones(n), lambda x: root @ x, lambda x: root, lambda x, r: none),
    ]


def newton_cg(problem: Standard) -> tuple[Array, int, int]:
    """Where Newton-CG ends, its iterations and its products."""
    products = 0

    def product(x: Array, v: Array) -> Array:
        nonlocal products
        products += 1
        return problem.hessian(x) @ v

    def stop(intermediate_result) -> None:  # SciPy knows the argument by its name
        if np.abs(problem.gradient(intermediate_result.x)).max() <= GTOL:
            raise StopIteration

    options = {"maxiter": MAX_ITERS, "xtol": 1e-15}
    found = minimize(
        problem.fun, problem.x0, jac=problem.gradient, hessp=product, method="Newton-CG", options=options, callback=stop
    )
    return found.x, int(found.nit), products


def ours(problem: Standard, structure: str) -> tuple[Array, int, int]:
    """The same of structured Newton."""
    found = esgroup.minimize(
        problem.fun,
        problem.x0,
        method="newton",
        jac=problem.gradient,
        hessp=lambda x, v: problem.hessian(x) @ v,
        hess_diag=lambda x: np.diagonal(problem.hessian(x)).copy(),
        structure=structure,
        max_iters=MAX_ITERS,
        rng=1,
    )
    return found.x, found.nit, found.nhvp


def main(dim: int = 20) -> None:
    """Print a line for every problem: f, iterations and products of each method, a dash where it is not solved."""
    print(f"{'':24s}" + "".join(f"{name:>26s}" for name in ("Newton-CG", *STRUCTURES)))
    for problem in problems(dim):
        line = f"{problem.name:24s}"
        for x, iterations, products in [newton_cg(problem), *(ours(problem, name) for name in STRUCTURES)]:
            solved = np.abs(problem.gradient(x)).max() <= GTOL
            line += f"{f'{problem.fun(x):.3g} {iterations} {products}' if solved else '-':>26s}"
        print(line, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # SciPy's: the table says what came of it
    typer.run(main)
