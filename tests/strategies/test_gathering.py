"""Groups in which one coordinate depends on many independent ones, whose deviation a path could make diverge."""

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
)
from esgroup.strategies import rates


@pytest.mark.parametrize(
    ("group", "gathered"),
    [
        (Diagonal(9), 0),
        (Full(9), 0),
        (BlockTriangular(9, 2), 0),
        (BlockTriangular(9, 2, lower=False), 7),
        (Heisenberg(9, 2, 3), 4),
        (Heisenberg(9, 2, 3, lower=False), 4),
        (Conjugate(BlockTriangular(9, 2, lower=False), np.arange(9)[::-1]), 7),
        (BlockDiagonal([Full(3), BlockTriangular(6, 1, lower=False)]), 5),
        (Kronecker(Full(3), BlockTriangular(3, 1, lower=False)), 2),
        (Sparse.from_edges(5, [(0, 1), (0, 2), (0, 3), (4, 0)], close=True), 4),
        (Sparse.from_edges(3, [(0, 1), (1, 0)]), 0),
    ],
    ids=repr,
)
def test_what_a_row_gathers(group: Group, gathered: int) -> None:
    """Entries (i, j) of a row without (j, i), where the columns are independent of each other."""
    assert group.gathered == gathered


def test_the_rate_of_the_path_is_bounded_by_what_a_row_gathers() -> None:
    free, _ = rates.root_rates(1000, 5000, 10.0)
    assert rates.root_rates(1000, 5000, 10.0, 1000)[0] == 16 / 1000**2 < free
    assert rates.root_rates(1000, 5000, 10.0, 100)[0] == free


@pytest.mark.parametrize("structure", ["block_triangular:k=4,upper", "heisenberg:k1=4,k2=4"])
def test_hubs_do_not_diverge_on_the_sphere(structure: str) -> None:
    """Without the bound the hubs' deviations grow to a hundred times the others and the search stagnates."""
    search = Searcher(np.full(320, 3.0), 2.0, structure=structure, rng=1, target=1e-2, max_evals=16_000)
    while not search.stop():
        search.tell((search.ask() ** 2).sum(axis=1))
    assert "target" in search.stop()
    assert search.stds.max() < 3 * search.stds.min()
