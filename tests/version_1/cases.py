"""Searches of every kind, in the middle of things: what the checkpoints beside this file were written from.

The files were written by the version before searches were rebuilt (format version 1). Run this module to see how the
present version goes on from them; `test_version_1.py` compares that with `expected.json`. It holds where the version
that wrote the files went, except for searches whose update has changed since: they go on with the new one, and were
recorded anew (`python -m tests.version_1.cases > expected.json`, then look at what changed).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import esgroup
from esgroup.distributions.families import Beta, Gamma, Normal, PoissonPower, Product

FOLDER = Path(__file__).parent
GENERATIONS = 12  # after the file was read: rounding on another machine has no time to grow
# Samplers of gamma and beta numbers reject some, so that rounding soon decides which numbers follow: with three sets of
# instructions the search over a product was the same for four generations, and another one from the fifth on.
FEWER = {"product": 3}


def ellipsoid(x: Any) -> float:
    x = np.asarray(x, dtype=float).ravel()
    shifted = x - np.linspace(0.2, 0.7, len(x)) + 0.1 * np.roll(x, 1)
    return float(np.sum(10 ** np.linspace(0, 3, len(x)) * shifted**2))


def nearness(w: Any) -> float:
    q = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 5.0]])
    return float(np.sum((w @ q - np.eye(3)) ** 2))


def himmelblau(x: Any) -> float:
    return float((x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2)


def _vector(dim: int = 5, **options: Any) -> Callable[[], esgroup.Searcher]:
    return lambda: esgroup.Searcher(np.full(dim, 1.5), 0.5, rng=7, **options)


def _searcher(start: Callable[[], Any], **options: Any) -> Callable[[], esgroup.Searcher]:
    return lambda: esgroup.Searcher(start(), rng=7, **options)


KINDS: dict[str, tuple[Callable[[], esgroup.Searcher], Callable[[Any], float]]] = {
    "full": (_vector(max_evals=5000, target=1e-9), ellipsoid),
    "full_large": (_vector(70), ellipsoid),
    "diagonal": (_vector(structure="diagonal"), ellipsoid),
    "block": (_vector(structure="block_triangular:k=2"), ellipsoid),
    "heisenberg": (_vector(6, structure="heisenberg:k1=1,k2=1", popsize=11), ellipsoid),
    "triangular": (_vector(structure="triangular"), ellipsoid),
    "toeplitz": (_vector(6, structure="toeplitz_triangular"), ellipsoid),
    "paper": (_vector(algorithm="paper"), ellipsoid),
    "mirrored": (_vector(mirrored=True, decoding=False), ellipsoid),
    "noise": (_vector(noise="adapt"), ellipsoid),
    "boxed": (
        lambda: esgroup.Searcher(
            [1.5, 1.0, 1.5, 1.5, 1.5, 1.5],
            0.5,
            bounds=[(0, 2), (0, 9), (0, 2), (0, 2), (0, 2), (None, 3)],
            integer=[1],
            fixed={2: 0.5},
            rng=7,
        ),
        ellipsoid,
    ),
    "wishart": (_searcher(lambda: esgroup.Wishart(mean=np.eye(3))), nearness),
    "matrix_gaussian": (
        _searcher(lambda: esgroup.MatrixGaussian(np.zeros((3, 2)), 0.5, "full", "diagonal")),
        ellipsoid,
    ),
    "mixture": (
        _searcher(lambda: esgroup.Mixture.spread(3, bounds=np.array([[-6.0, 6.0]] * 2), rng=np.random.default_rng(3))),
        himmelblau,
    ),
    "univariate": (_searcher(lambda: Normal(mean=3.0, std=1.0)), ellipsoid),
    "product": (
        _searcher(lambda: Product((Gamma(shape=2.0, rate=2.0), Beta(a=2.0, b=2.0), PoissonPower(rate=3.0)))),
        ellipsoid,
    ),
}


def begin(kind: str) -> esgroup.Searcher:
    """A search of the kind after a few generations, with points out, values of half a generation, and one injected."""
    make, f = KINDS[kind]
    search = make()
    for _ in range(6):
        search.tell([f(x) for x in search.ask()])
    search.ask(3)
    X = search.ask()
    half = X[: len(X) // 2]
    search.tell(half, [f(x) for x in half])
    search.inject(X[-1:])
    search.ask(4)
    return search


def go_on(search: esgroup.Searcher, kind: str) -> dict[str, Any]:
    """Where a search goes from there."""
    f = KINDS[kind][1]
    for _ in range(FEWER.get(kind, GENERATIONS)):
        search.tell([f(x) for x in search.ask()])
    return {
        "nfev": search.nfev,
        "nit": search.nit,
        "best_f": search.best_f,
        "best_x": np.ravel(search.best_x).tolist(),
        "mean": np.ravel(search.mean).tolist(),
        "stds": np.ravel(search.stds).tolist(),
        "stop": sorted(search.stop()),
        "next": np.ravel(search.ask()[:1]).tolist(),
    }


def restarted(checkpoint: Path, resume: bool, max_evals: int) -> dict[str, Any]:
    """A run with restarts that is stopped and continued."""
    result = esgroup.minimize(
        _rugged, np.full(3, 2.0), 0.8, restarts="bipop", bounds=(-5, 5), rng=5, max_evals=max_evals,
        checkpoint=checkpoint, resume=resume,
    )  # fmt: skip
    return {"x": result.x.tolist(), "fun": result.fun, "nfev": result.nfev, "restarts": result.restarts}


def _rugged(x: Any) -> float:
    return float(np.round(np.sum(x**2) + 3 * np.sum(1 - np.cos(2 * np.pi * x)), 2))


def main() -> None:
    found = {kind: go_on(esgroup.Searcher.load(FOLDER / f"{kind}.npz"), kind) for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(FOLDER / "restarts.npz", folder)
        found["restarts"] = restarted(Path(copy), True, 6002)
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
