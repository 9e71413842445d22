"""Helpers for the ranks of a generation, the indices of its points from best to worst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esgroup.strategies.base import Indices


def in_the_middle(order: Indices, which: NDArray[np.bool_]) -> Indices:
    """Return the order with the points `which` moved to the middle ranks, whose weights are close to 0."""
    others = order[~which]
    middle = (len(others) + 1) // 2
    return np.concatenate([others[:middle], order[which], others[middle:]])


def ranks_of_two(order: Indices, tags: Indices | None, one: int, other: int) -> tuple[int, int] | None:
    """Return the ranks of the two samples with these tags, or None unless both are there: values may arrive late."""
    ranked = [] if tags is None else tags[order].tolist()
    if ranked.count(one) != 1 or ranked.count(other) != 1:
        return None
    return ranked.index(one), ranked.index(other)
