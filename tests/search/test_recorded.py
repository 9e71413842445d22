"""Searches with fixed seeds take the evaluations that they took before: see `recorded.py`."""

import pytest

from tests.search.recorded import SEARCHES, evaluations

EVALUATIONS = {
    "ellipsoid full": 1010,
    "ellipsoid triangular": 1050,
    "ellipsoid block_triangular:k=3": 1580,
    "ellipsoid heisenberg:k1=1,k2=1": 1580,
    "ellipsoid diagonal": 590,
    "ellipsoid full, popsize 60": 3060,
    "ellipsoid full without decoding": 1610,
    "ellipsoid mirrored": 1010,
    "ellipsoid paper": 10020,
    "ellipsoid of 70": 6944,
    "ellipsoid bounded": 190,
    "ellipsoid with cov0": 1010,
    "ellipsoid with noise adaptation": 2350,
    "rosenbrock": 1251,
    "integers": 216,
    "rastrigin with ipop": 10976,
    "rastrigin with bipop": 4473,
    "spd": 534,
    "matrix": 999,
    "basins": 792,
}


def test_every_search_of_the_table_is_recorded() -> None:
    assert SEARCHES.keys() == EVALUATIONS.keys()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_takes_as_many_evaluations_as_recorded(name: str) -> None:
    assert evaluations(name) == EVALUATIONS[name]
