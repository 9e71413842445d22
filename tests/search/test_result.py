"""What the result of a search says, and what is known of one that runs."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from esgroup import Searcher
from tests.search.support import generation, run, searcher, sphere, valley


def test_a_result_can_be_printed_at_any_time() -> None:
    search = searcher()
    assert "none yet" in repr(search.result) and search.result.stop == {}
    generation(search)
    assert "still running" in str(search.result)
    assert pickle.loads(pickle.dumps(search.result)).stop == {}


def test_the_result_has_all_fields() -> None:
    search = run(searcher(target=1e-3))
    result = search.result
    assert isinstance(result, OptimizeResult)
    names = {"x", "fun", "nfev", "nit", "success", "status", "message", "xmean", "stds", "stop", "nfailed"}
    assert set(result) >= names
    assert np.array_equal(result.x, search.best_x) and result.fun == search.best_f == sphere(result.x)
    assert (result.nfev, result.nit, result.nfailed) == (search.nfev, search.nit, 0)
    assert np.array_equal(result.xmean, search.mean) and np.array_equal(result.stds, search.stds)
    assert result.stop == search.stop() and list(result.stop) == ["target"]
    assert result.x.flags.writeable and type(result.fun) is float and type(result.success) is bool


def test_the_best_point_cannot_be_written() -> None:
    search = searcher()
    generation(search)
    assert search.best_x is not None
    with pytest.raises(ValueError, match="read-only"):
        search.best_x[0] = 0.0


def test_the_best_point_is_the_best_of_all() -> None:
    search = searcher()
    X = np.concatenate([generation(search, valley) for _ in range(40)])
    values = [valley(x) for x in X]
    assert search.best_f == min(values) and np.array_equal(search.best_x, X[np.argmin(values)])


def test_a_result_before_any_value_is_where_the_search_begins() -> None:
    result = searcher().result
    assert np.array_equal(result.x, [1, 2, 3]) and math.isnan(result.fun)
    assert (result.success, result.status, result.nfev, result.nit) == (False, -1, 0, 0)
    assert result.message == "The search is still running. There are no values yet. Structure 'full' was chosen"


def test_the_message_names_the_reasons_as_they_are_spelled() -> None:
    message = run(searcher(max_evals=20, structure="diagonal")).result.message
    assert message == "max_evals: limit of 20 evaluations reached (20 made)"


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (3, "Structure 'full' was chosen"),
        (1200, "Structure 'frame' was chosen"),
    ],
)
def test_the_message_names_the_structure_that_auto_chose(dim: int, text: str) -> None:
    search = Searcher(np.ones(dim), 0.5, rng=1)
    assert text in search.result.message
    assert text not in Searcher(np.ones(dim), 0.5, structure="block_triangular").result.message


def test_repr_says_what_the_search_is_and_how_far() -> None:
    search = searcher()
    assert repr(search) == "<Searcher over 3 variables, Full(dim=3), popsize 7: no values yet>"
    search = searcher(structure="diagonal")
    search.tell([[1, 2, 3]] * 7000, np.full(7000, 2.5))
    text = "<Searcher over 3 variables, Diagonal(dim=3), popsize 7: 7,000 evaluations, best value 2.5>"
    assert repr(search) == text
    assert "Frame(dim=1200" in repr(Searcher(np.ones(1200), 0.5))


def test_what_is_known_has_the_right_meaning() -> None:
    cov0 = np.diag([1.0, 4.0, 16.0])
    search = searcher(cov0=cov0, sigma0=0.5)
    assert np.allclose(search.stds, [0.5, 1.0, 2.0]) and search.sigma == pytest.approx(1.0)
    assert search.axis_ratio == pytest.approx(4.0) and search.dim == 3
    assert np.array_equal(search.mean, [1, 2, 3]) and 0 <= search.seconds < 60


def test_the_stds_are_those_of_the_points() -> None:
    search: Any = searcher(bounds=(0, 8))
    for _ in range(5):
        generation(search, valley)
    assert np.allclose(search.ask(40_000).std(axis=0), search.stds, rtol=0.1)
