"""Evaluations that searches with fixed seeds take: a change here is a change of the search, wanted or not.

`python -m tests.search.recorded` prints the table afresh, and says which entries change if the start changes by one
part in 10^13: such an entry would depend on the machine. An intended change of the search records the table again and
says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import esgroup


def ellipsoid(x: Any) -> float:
    x = np.ravel(x)
    y = x - 0.3 + 0.2 * np.roll(x, 1)
    return float(np.sum(10 ** np.linspace(0, 4, len(y)) * y**2))


def rosenbrock(x: Any) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def rastrigin(x: Any) -> float:
    return float(np.sum(x**2 + 10 * (1 - np.cos(2 * np.pi * x))))


def integers(x: Any) -> float:
    return float(np.sum((x - 3.2) ** 2 * np.arange(1, len(x) + 1)))


def nearness(w: Any) -> float:
    return float(np.sum((w @ np.diag([1.0, 2.0, 5.0]) - np.eye(3)) ** 2))


def _minimize(f: Callable[[Any], float], x0: Any, sigma0: Any = 0.5, target: float = 1e-7, **options: Any) -> Any:
    options = {"max_evals": 30_000} | options
    return lambda nudge: esgroup.minimize(f, np.asarray(x0, float), sigma0 * nudge, target=target, rng=11, **options)


def _from(f: Callable[[Any], float], start: Callable[[float], Any], target: float, **options: Any) -> Any:
    return lambda nudge: esgroup.minimize(f, start(nudge), target=target, rng=11, max_evals=20_000, **options)


_EIGHT = np.linspace(0.5, 1.5, 8)

SEARCHES: dict[str, Callable[[float], Any]] = {
    **{
        f"ellipsoid {structure}": _minimize(ellipsoid, _EIGHT, structure=structure)
        for structure in ("full", "triangular", "block_triangular:k=3", "heisenberg:k1=1,k2=1")
    },
    "ellipsoid diagonal": _minimize(ellipsoid, _EIGHT, structure="diagonal", target=1e-2),
    "ellipsoid full, popsize 60": _minimize(ellipsoid, _EIGHT, popsize=60),
    "ellipsoid full without decoding": _minimize(ellipsoid, _EIGHT, decoding=False),
    "ellipsoid mirrored": _minimize(ellipsoid, _EIGHT, mirrored=True),
    "ellipsoid paper": _minimize(ellipsoid, _EIGHT, algorithm="paper", popsize=30),
    "ellipsoid of 70": _minimize(ellipsoid, np.linspace(0.5, 1.5, 70), target=1e-2),
    "ellipsoid bounded": _minimize(ellipsoid, _EIGHT, bounds=(0.0, 3.0), target=25.0),
    "ellipsoid with cov0": _minimize(ellipsoid, _EIGHT, cov0=np.diag(np.arange(1.0, 9.0))),
    "ellipsoid with noise adaptation": _minimize(ellipsoid, _EIGHT, noise="adapt", target=1e-3),
    "rosenbrock": _minimize(rosenbrock, np.full(6, 0.5)),
    "integers": _minimize(integers, np.full(5, 9.0), 2.0, integer=True, target=0.6000001),
    "rastrigin with ipop": _minimize(rastrigin, np.full(3, 3.3), 1.0, restarts="ipop", bounds=(-5.0, 5.0)),
    "rastrigin with bipop": _minimize(rastrigin, np.full(3, 3.3), 1.0, restarts="bipop"),
    "spd": _from(nearness, lambda nudge: np.eye(3) * nudge, 1e-7, space="spd"),
    "matrix": _from(ellipsoid, lambda nudge: np.full((3, 2), 0.7) * nudge, 1e-7, space="matrix"),
    "basins": _from(rosenbrock, lambda nudge: np.full(2, 0.7) * nudge, 1e-7, basins=3),
}


def evaluations(name: str, nudge: float = 1.0) -> int:
    """How many evaluations a search takes; `nudge` multiplies a number of its start."""
    return int(SEARCHES[name](nudge).nfev)


def main() -> None:
    for name in SEARCHES:
        counts = [evaluations(name, nudge) for nudge in (1.0, 1 + 1e-13, 1 - 1e-13)]
        print(f'    "{name}": {counts[0]},' + ("  # depends on rounding" if len(set(counts)) > 1 else ""), flush=True)


if __name__ == "__main__":
    main()
