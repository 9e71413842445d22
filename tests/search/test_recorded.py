"""Searches with fixed seeds take the evaluations that they took before: see `recorded.py`."""

import pytest

from tests.search.recorded import SEARCHES, evaluations

EVALUATIONS = {
    "ellipsoid full": 1020,
    "ellipsoid triangular": 1020,
    "ellipsoid block_triangular:k=3": 1580,
    "ellipsoid heisenberg:k1=1,k2=1": 1580,
    "ellipsoid diagonal": 580,
    "ellipsoid full, popsize 60": 3060,
    "ellipsoid full without decoding": 1610,
    "ellipsoid mirrored": 1090,
    "ellipsoid paper": 10020,
    "ellipsoid of 70": 4480,
    "ellipsoid bounded": 300,
    "ellipsoid with cov0": 940,
    "ellipsoid with noise adaptation": 700,
    "rosenbrock": 1296,
    "integers": 160,
    "rastrigin with ipop": 11200,
    "rastrigin with bipop": 4277,
    "spd": 534,
    "matrix": 999,
    "basins": 954,
}


def test_every_search_of_the_table_is_recorded() -> None:
    assert SEARCHES.keys() == EVALUATIONS.keys()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_takes_as_many_evaluations_as_recorded(name: str) -> None:
    assert evaluations(name) == EVALUATIONS[name]
