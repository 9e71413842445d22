"""Points that come back in another order, late, or that were never asked: their local coordinates."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from esgroup import told
from esgroup.checks import Array
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.space import Space

_FAR = 1e150  # points further out are taken to be there, so that nothing overflows


class Asked(NamedTuple):
    """Points that were handed out, with the local coordinates that they came from and the generation they belong to."""

    x: Array
    generation: Generation
    nit: int


def whitened(space: Space, evolution: Evolution, state: SearchState, x: Array) -> Array:
    """Local coordinates of any points, no longer than sqrt(n) + 2 n / (n + 2) (Hansen 2011, injected points)."""
    y, mean = x if space.plain else space.encode(x, state.mean), state.mean
    z = evolution.local(state, y.clip(mean - _FAR, mean + _FAR))
    dim = z.shape[1]
    longest = math.sqrt(dim) + 2 * dim / (dim + 2)
    largest = np.abs(z).max(axis=1, initial=1.0, keepdims=True)  # squares of large numbers overflow
    length = largest * np.linalg.norm(z / largest, axis=1, keepdims=True)
    z *= np.minimum(1.0, longest / np.maximum(length, 1.0))
    return z


def recalled(space: Space, evolution: Evolution, state: SearchState, known: dict[bytes, Array], x: Array) -> Array:
    """The local coordinates that points were asked with; those of others, which must be feasible, are computed."""
    found = [known.get(key) for key in told.keys(x)]
    missing = [i for i, z in enumerate(found) if z is None]
    if missing:
        space.check_feasible("X", x)
    computed = dict(zip(missing, whitened(space, evolution, state, x[missing]) if missing else (), strict=True))
    return np.array([computed[i] if z is None else z for i, z in enumerate(found)])
