"""What devices read from, and change in, the ranks of a generation: indices of its points from best to worst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esgroup.strategies.base import Indices


def in_the_middle(order: Indices, which: NDArray[np.bool_]) -> Indices:
    """Return an order, of which `which` are given the middle ranks, whose weights are next to 0."""
    others = order[~which]
    middle = (len(others) + 1) // 2
    return np.concatenate([others[:middle], order[which], others[middle:]])


def ranks_of_two(order: Indices, tags: Indices | None, one: int, other: int) -> tuple[int, int] | None:
    """Return the ranks of the two samples with these tags; None unless there is one of each: values may come late."""
    ranked = [] if tags is None else tags[order].tolist()
    if ranked.count(one) != 1 or ranked.count(other) != 1:
        return None
    return ranked.index(one), ranked.index(other)
