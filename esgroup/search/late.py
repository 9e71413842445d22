"""Points that come back in another order, late, or that were never asked: their local coordinates."""

from __future__ import annotations

from typing import NamedTuple

from esgroup.checks import Array
from esgroup.strategies.box import Space
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.injected import shortened

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
