"""Points that come back in another order, late, or that were never asked: their local coordinates."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

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
    return shortened(evolution.local(state, y.clip(mean - _FAR, mean + _FAR)))


def longest(dim: int) -> float:
    """sqrt(n) + 2 n / (n + 2)."""
    return math.sqrt(dim) + 2 * dim / (dim + 2)


def shortened(z: Array) -> Array:
    """Rows, those that are too long scaled down."""
    largest = np.abs(z).max(axis=1, initial=1.0, keepdims=True)  # squares of large numbers overflow
    length = largest * np.linalg.norm(z / largest, axis=1, keepdims=True)
    short: Array = z * np.minimum(1.0, longest(z.shape[1]) / np.maximum(length, 1.0))
    return short
