"""Results can be printed, copied, pickled and compared, whatever was searched."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space
from esgroup.running.result import NewtonResult, SearchResult

OPTIONS: dict[str, tuple[Any, ...]] = {
    "none": (None, "x"),
    "numbers": (1, 2),
    "floats": (2.5, math.inf),
    "booleans": (True, False),
    "tuples": ((1, 2), (3, 4)),
    "nested": ((1, ("a", None)), ()),
    "mixed": ("1", 1, None, (2,), 2.5, b"1"),
    "lines": ("one\ntwo", "three"),
    "empty": ("", "x"),
    "types": (int, float),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_result_shows_every_option_whatever_it_is(name: str) -> None:
    options = OPTIONS[name]
    depends = Real(0, 1, when={"kind": (options[0],)})
    space = Space({"kind": Choice(*options), "many": Choice(*options, shape=2), "x": depends})
    found = esgroup.minimize(lambda p: p.get("x", 2.0), space, max_evals=20, rng=1)
    shown = repr(found)
    assert str(found) == shown
    for option, share in found.probabilities["kind"].items():
        assert f"{option}: {share}\n" in shown or f"{option!r}: {share}\n" in shown, option
    assert str(found.x["kind"]) in shown or repr(found.x["kind"]) in shown
    survives(found)


def survives(found: Any) -> None:
    """Assert that a result can be printed, and that its copies equal it until one of their values is another."""
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), copy.copy(found)):
        assert type(other) is type(found) and repr(other) == repr(found)
        assert (other == found, other != found) == (True, False)
        other.nfev += 1
        assert (other == found, other != found) == (False, True)
    assert found != "something" and found in [found]


def test_options_of_equal_text_are_told_apart_in_print() -> None:
    found = Searcher(Space({"kind": Choice("1", 1)})).result
    assert "'1': 0.5\n" in repr(found) and "  1: 0.5" in repr(found)


def test_names_that_scipy_leaves_out_are_shown() -> None:
    found = Searcher(Space({"con": Real(0, 1), "slack": Real(2, 4)})).result
    assert "con: 0.5" in repr(found) and "slack: 3.0" in repr(found)


def test_arrays_of_named_parameters_are_printed_like_others() -> None:
    found = Searcher(Space({"long_name": Real(0, 1, shape=(2, 2)), "n": Integer(1, 9, shape=3), "phi": Angle()})).result
    lines = repr(found).splitlines()
    row = next(i for i, line in enumerate(lines) if "x: long_name: [[ 5.000e-01  5.000e-01]" in line)
    assert lines[row + 1].index("[") == lines[row].index("[[") + 1
    survives(found)


def test_results_with_other_values_differ() -> None:
    def ended(seed: int) -> Any:
        return esgroup.minimize(lambda x: x @ x, [1.0, 2.0], 0.5, max_evals=20, rng=seed)

    assert ended(1) == ended(1) and ended(1) != ended(2)
    first, second = ended(1), ended(1)
    second.x[1] += 1e-9
    assert first != second
    assert SearchResult(x=np.zeros(2)) != SearchResult(x=np.zeros(3)) and SearchResult() == SearchResult()
    assert SearchResult(x=np.zeros(2)) == SearchResult(x=[0.0, 0.0])


def test_results_of_newton_and_of_basins_survive_copies() -> None:
    found = esgroup.minimize(rosen, [0.5, 1.5], method="newton", jac=rosen_der)
    assert isinstance(found, NewtonResult) and "hess_inv" in repr(found) and found == copy.copy(found)
    survives(esgroup.minimize(rosen, [0.5, 1.5], basins=2, bounds=(-2, 2), max_evals=200, rng=1))
    survives(esgroup.minimize(rosen, [0.5, 1.5], 0.5, restarts="ipop", max_evals=200, rng=1))
    limit = {"type": "ineq", "fun": lambda x: x[0] - 1.0}
    survives(esgroup.minimize(rosen, [0.5, 1.5], 0.5, constraints=limit, max_evals=200, rng=1))
