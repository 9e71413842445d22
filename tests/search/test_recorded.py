"""Searches with fixed seeds take the evaluations that they took before: see `recorded.py`."""

import pytest

from tests.search.recorded import SEARCHES, evaluations

EVALUATIONS = {
    "ellipsoid full": 980,
    "ellipsoid triangular": 980,
    "ellipsoid block_triangular:k=3": 1580,
    "ellipsoid heisenberg:k1=1,k2=1": 1580,
    "ellipsoid diagonal": 580,
    "ellipsoid full, popsize 60": 3060,
    "ellipsoid full without decoding": 1610,
    "ellipsoid mirrored": 940,
    "ellipsoid paper": 10020,
    "ellipsoid of 70": 4480,
    "ellipsoid bounded": 290,
    "ellipsoid with cov0": 950,
    "ellipsoid with noise adaptation": 680,
    "rosenbrock": 1323,
    "integers": 216,
    "rastrigin with ipop": 9814,
    "rastrigin with bipop": 4508,
    "spd": 534,
    "matrix": 999,
    "basins": 828,
}


def test_every_search_of_the_table_is_recorded() -> None:
    assert SEARCHES.keys() == EVALUATIONS.keys()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_takes_as_many_evaluations_as_recorded(name: str) -> None:
    assert evaluations(name) == EVALUATIONS[name]
