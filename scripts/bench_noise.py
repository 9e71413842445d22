"""Learning-rate adaptation, noise="adapt": many local minima and additive noise, with the default population.

    python scripts/bench_noise.py [--seeds 5]

Rastrigin in 10 dimensions to 1e-8, and the ellipsoid of condition 1e6 with N(0, 1) added to its values: when the mean
of the search first has f < 1, and its f in the end. Both from x0 = 3, sigma0 = 2. A minute or so.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
import typer

import esgroup

DIM = 10


def rastrigin(x: np.ndarray) -> np.ndarray:
    """10 n + sum x^2 - 10 cos(2 pi x) for rows x: a grid of local minima on a parabola."""
    return 10 * x.shape[1] + (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=1)


def ellipsoid(x: np.ndarray) -> np.ndarray:
    """sum_i 10^(6 (i-1)/(n-1)) x_i^2 for rows x."""
    return x**2 @ np.logspace(0, 6, x.shape[1])


def solve_rastrigin(seed: int, max_evals: int = 500_000, noise: str | None = "adapt") -> int | None:
    """Evaluations to 1e-8, None if it was not reached."""
    search = esgroup.Searcher(np.full(DIM, 3.0), 2.0, noise=noise, rng=seed, max_evals=max_evals, target=1e-8)
    while not search.stop():
        search.tell(rastrigin(search.ask()))
    return search.nfev if "target" in search.stop() else None


def solve_noisy(seed: int, max_evals: int = 30_000, noise: str | None = "adapt") -> tuple[int | None, float]:
    """Evaluations until the mean has f < 1, None if it never had, and f of the mean in the end."""
    search = esgroup.Searcher(np.full(DIM, 3.0), 2.0, noise=noise, rng=seed, max_evals=max_evals)
    errors, first = np.random.default_rng(1000 + seed), None
    while not search.stop():
        values = ellipsoid(search.ask())
        search.tell(values + errors.standard_normal(len(values)))
        if first is None and ellipsoid(search.mean[None])[0] < 1:
            first = search.nfev
    return first, float(ellipsoid(search.mean[None])[0])


def main(seeds: int = 5) -> None:
    """Print evaluations for every seed, with and without adaptation."""
    for noise in ("adapt", None):
        found = [solve_rastrigin(seed, noise=noise) for seed in range(seeds)]
        print(f"Rastrigin, noise={noise!r}: {_solved(found)}; evaluations {found}")
    for noise in ("adapt", None):
        runs = [solve_noisy(seed, noise=noise) for seed in range(seeds)]
        found, last = [first for first, _ in runs], [f"{f:.2g}" for _, f in runs]
        print(f"ellipsoid with noise, noise={noise!r}: {_solved(found)}; evaluations {found}; in the end {last}")


def _solved(found: list[int | None]) -> str:
    return f"{sum(evals is not None for evals in found)} of {len(found)} solved"


if __name__ == "__main__":
    typer.run(main)
