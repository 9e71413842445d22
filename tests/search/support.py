"""What the tests of searches share: problems, structures, and access to the complete state of a search."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.domains.base import Domain
from esgroup.groups import BlockDiagonal, Conjugate, Diagonal, Full, Group, Kronecker, Sparse, Triangular
from esgroup.search import snapshot
from esgroup.search.ledger import Batch, Ledger, ids_of, tags_of
from esgroup.stopping.values import Record
from esgroup.strategies.base import Proposed, Strategy

Array = np.ndarray
Function = Callable[[Array], float]

STRUCTURES: dict[str, Group | str] = {
    name: name
    for name in (
        "auto",
        "full",
        "diagonal",
        "triangular",
        "triangular:upper",
        "block_triangular:k=2",
        "block_triangular:k=2,upper",
        "heisenberg:k1=2,k2=1",
        "heisenberg:k1=1,k2=2,upper",
        "toeplitz_triangular",
        "circulant",
        "frame",
        "frame:k=3",
    )
} | {
    "kronecker": Kronecker(Full(2), Diagonal(3)),
    "block_diagonal": BlockDiagonal([Full(2), Diagonal(1), Triangular(3)]),
    "conjugate": Conjugate(Triangular(6), np.array([3, 1, 0, 5, 2, 4])),
    "rotated": Conjugate(Diagonal(6), np.linalg.qr(np.random.default_rng(5).standard_normal((6, 6)))[0]),
    "sparse": Sparse.from_edges(6, [(1, 0), (3, 2), (5, 4)], close=True),
}

#: Every option that changes how a search continues, for six coordinates.
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "paper": {"algorithm": "paper"},
    "paper_mirrored": {"algorithm": "paper", "mirrored": True},
    "decoding": {"decoding": True, "structure": "heisenberg:k1=2,k2=1"},
    "no_decoding": {"decoding": False},
    "mirrored": {"mirrored": True, "popsize": 7},
    "adapted": {"noise": "adapt"},
    "adapted_diagonal": {"noise": "adapt", "structure": "diagonal"},
    "popsize": {"popsize": 13},
    "bounds": {"bounds": (-2.0, 3.5)},
    "half_bounds": {"bounds": [(0, None), (None, 4), (-3, 3), (None, None), (0, 9), (1, 2)]},
    "fixed": {"fixed": {1: 0.25}},
    "integer": {"integer": [0, 4]},
    "mixed": {"integer": [0], "bounds": (-4, 4), "fixed": [5]},
    "covariance": {"cov0": np.diag([1.0, 2, 3, 4, 5, 6]) + 0.5},
    "limits": {"max_evals": 10**6, "max_iters": 10**5, "max_time": 1e4, "target": -1.0},
}

X0 = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])


def searcher(dim: int = 3, sigma0: Any = 0.5, **options: Any) -> Searcher:
    """A search from a point whose coordinates are integer, positive and different."""
    return Searcher(X0[:dim], sigma0, rng=options.pop("rng", 1), **options)


def sphere(x: Array) -> float:
    return float(x @ x)


def valley(x: Array) -> float:
    """Not symmetric, not separable, with a minimum at (0.3, 0.3, ...)."""
    y = x - 0.3
    return float(y @ y + 30 * (y[1:] - y[:-1]) @ (y[1:] - y[:-1]) + abs(y[0]) ** 3)


def generation(search: Searcher, f: Function = sphere) -> Array:
    """Ask and tell once; return the points."""
    X = search.ask()
    search.tell([f(x) for x in X])
    return X


def run(search: Searcher, f: Function = sphere, generations: int = 1000) -> Searcher:
    """Ask and tell until the search stops, at most `generations` times."""
    for _ in range(generations):
        if search.stop():
            break
        generation(search, f)
    return search


def evaluations(f: Function, x0: Any, sigma0: Any, target: float, seed: int, **options: Any) -> float:
    """Number of evaluations until the target is reached; infinite if the search stops before."""
    search = run(Searcher(x0, sigma0, rng=seed, target=target, max_evals=20_000, **options), f, 10**5)
    return search.nfev if "target" in search.stop() else float("inf")


def local_coordinates(search: Searcher, x: Array) -> Array:
    """The local coordinates that points get if the search did not ask for them."""
    return search.strategy.shortened(search.strategy.local(search.state, x))


def dense_root(search: Searcher) -> Array:
    """A matrix A with A A^T the covariance of the coordinates that are searched."""
    return (search.state.sigma[0] * search.state.scale)[:, None] * search.structure._dense(search.state.root)


def first_spread(search: Searcher) -> Array:
    """The standard deviations with which a search began."""
    return search.first_spread


# ---- the whole of a search ----------------------------------------------------------------------------------------


def everything(search: Searcher) -> tuple[str, dict[str, tuple[str, tuple[int, ...], bytes]]]:
    """Everything that determines how a search continues, bit for bit, apart from the time."""
    header, arrays = snapshot.to_file(search)
    header = {name: value for name, value in header.items() if name not in ("seconds", "looks")}  # as asked for
    bits = {name: (str(a.dtype), a.shape, np.ascontiguousarray(a).tobytes()) for name, a in arrays.items()}
    return json.dumps(header, sort_keys=True), bits


def anatomy(part: Any) -> Any:
    """All attributes, recursively: what a search holds, whether or not its snapshot has it."""
    if isinstance(part, np.ndarray):
        return str(part.dtype), part.shape, np.ascontiguousarray(part).tobytes()
    if isinstance(part, np.random.Generator):
        return repr(part.bit_generator.state)
    if isinstance(part, Proposed):
        return [anatomy(one) for one in (part.points, part.local, tags_of(part), ids_of(part))]
    if isinstance(part, (list, tuple, deque)):
        return [anatomy(one) for one in part]
    if isinstance(part, (Searcher, Ledger, Batch, Record, Strategy, Domain)):
        kinds = type(part).__mro__
        derived = {name for kind in kinds for name, what in vars(kind).items() if isinstance(what, cached_property)}
        not_stored = {"correlation", "root", "note"}
        skipped = derived | not_stored | {"clock", "looks", "_spare", "_looked", "_by_point", "_indexed"}
        return {name: anatomy(one) for name, one in vars(part).items() if name not in skipped}
    return repr(part)


def same(first: Searcher, second: Searcher) -> bool:
    return everything(first) == everything(second) and anatomy(first) == anatomy(second)


@contextmanager
def unchanged(search: Searcher) -> Iterator[None]:
    """Assert that the search is exactly as it was, whatever happens within the context."""
    before = everything(search)
    yield
    assert everything(search) == before


@contextmanager
def refused(search: Searcher, error: type[Exception], text: str) -> Iterator[None]:
    """Assert that the call raises this error, leaves the search as it was, and that the search can continue."""
    with unchanged(search), pytest.raises(error, match=text):
        yield
    before = search.nit
    generation(search)
    assert search.nit == before + 1 and np.isfinite(search.mean).all() and (search.stds > 0).all()
