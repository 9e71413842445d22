"""A distribution that is thinner than the rounding of its mean: how it is measured, and that it ends a search."""

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.groups import Full
from esgroup.strategies.evolution import Evolution
from esgroup.strategies.in_domain import innermost
from tests.groups.elements import element
from tests.search.support import STRUCTURES, X0, dense_root, run


@pytest.mark.parametrize("decoding", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_rounding_is_that_of_the_dense_covariance(name: str, decoding: bool) -> None:
    search, rng = Searcher(X0, 1.0, structure=STRUCTURES[name], decoding=decoding, rng=1), np.random.default_rng(1)
    evolution, state = innermost(search.strategy).evolution, search.state
    state.root[:], state.scale[:] = element(search.structure, rng), rng.uniform(0.5, 5.0, 6)
    evolution.refresh(state)
    state.mean[:] = 10.0 ** rng.uniform(-3, 3, 6) * rng.choice([-1, 1], 6)
    root, gaps = dense_root(search), np.spacing(np.abs(state.mean)) / 2
    squares = gaps**2 * np.diagonal(np.linalg.inv(root @ root.T))
    assert evolution.rounding(state) == pytest.approx(np.sqrt(squares.mean()), rel=1e-7, abs=0.0)
    some = np.arange(6) % 2 == 0
    assert evolution.rounding(state, some) == pytest.approx(np.sqrt(squares[some].mean()), rel=1e-7, abs=0.0)


def test_steps_within_rounding_leave_the_mean_and_are_as_long_as_it_says() -> None:
    """Over all signs, the mean square of their local lengths is n times the square of the number."""
    rng = np.random.default_rng(1)
    search = Searcher(rng.uniform(1, 9, 6), 1e-13, structure="full", rng=1)
    state, evolution = search.state, innermost(search.strategy).evolution
    state.root[:] = (np.eye(6) + 0.5 * rng.standard_normal((6, 6))).ravel()
    evolution.refresh(state)
    steps = np.array(list(itertools.product((-1.0, 1.0), repeat=6))) * np.spacing(state.mean) / 2
    assert (state.mean + 0.999 * steps == state.mean).all()
    lengths = np.linalg.norm(np.linalg.solve(dense_root(search), steps.T), axis=0)
    assert np.sqrt((lengths**2).mean() / 6) == pytest.approx(evolution.rounding(state), rel=1e-9)


def test_rounding_of_equal_axes_is_the_gap_over_their_length() -> None:
    evolution = Evolution(Full(3))
    state = evolution.start(np.array([3.0, 2.5, -2.1]), np.full(3, 1e-14))
    assert evolution.rounding(state) == pytest.approx(np.spacing(2.0) / 2 / 1e-14, rel=1e-12)
    state.mean[:] = 0.0  # where numbers are as dense as they get
    assert evolution.rounding(state) < 1e-300


def test_rounding_beyond_numbers_is_infinite_without_a_warning() -> None:
    evolution = Evolution(Full(3))
    state = evolution.start(np.array([1e100, 2.0, 3.0]), np.full(3, 1e-110))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evolution.rounding(state) == math.inf


# ---- when a search ends --------------------------------------------------------------------------------------------


def thin(short: float, sigma0: float = 0.5, **options: Any) -> Searcher:
    """A search at (1, 2, 3) whose distribution is 1e-9 long along the diagonal and `short` across."""
    x0 = [1.0, 2.0, 3.0, 7.0] if "fixed" in options else [1.0, 2.0, 3.0]
    search = Searcher(x0, sigma0, structure="full", rng=1, **options)
    along = np.full((3, 3), 1 / 3)
    search.state.sigma[:], search.state.scale[:] = 1.0, 1.0
    search.state.root[:] = (1e-9 * along + short * (np.eye(3) - along)).ravel()
    innermost(search.strategy).evolution.refresh(search.state)
    search.ledger.nit = 100
    return search


def test_axes_below_the_rounding_of_the_mean_end_a_search() -> None:
    """Half the gaps at 1, 2 and 3 are 1, 2 and 2 times 2^-53: across, the limit is sqrt(9 2/3 / 3) 2^-53 / 0.7."""
    limit = np.sqrt(2) * 2.0**-53 / 0.7
    text = "a step along most axes no longer changes the mean: it is at full precision"
    for decoding in (True, False):
        search = thin(0.98 * limit, 1e-6, decoding=decoding)
        assert (search.mean + 0.2 * search.stds != search.mean).all()  # one long axis keeps them large
        assert search.stop() == {"precision": text} and search.result.status == 3 and not search.result.success
        assert thin(1.02 * limit, 1e-6, decoding=decoding).stop() == {}


def test_a_thin_distribution_that_has_shrunk_as_a_whole_has_found_a_point() -> None:
    search = thin(2e-16)
    assert list(search.stop()) == ["tolx"] and search.stop()["tolx"].endswith("and the mean is at full precision")
    assert search.result.status == 0 and thin(4e-16).stop() == {}


def test_rounding_of_integer_coordinates_does_not_count() -> None:
    """They are never searched more finely than to an integer, however thin the distribution is."""
    assert list(thin(2e-16, integer=[0]).stop()) == ["tolx"]
    assert thin(2e-16, integer=True).stop() == {}
    for integer, reasons in (([0, 1], []), ([0], ["tolx"])):  # the first two are thin, the third is wide
        search = thin(1e-10, integer=integer)
        search.state.root[:] = np.array([[4e-10, 0, 0], [4e-10, 1.5e-16, 0], [0, 0, 4e-10]]).ravel()
        search.state.sigma[:] = search.state.scale[:] = 1.0
        innermost(search.strategy).evolution.refresh(search.state)
        assert list(search.stop()) == reasons


@pytest.mark.parametrize(
    "options", [{"bounds": (0.0, 9.0)}, {"bounds": (0.0, 9.0), "integer": [2]}, {"fixed": {3: 7.0}}]
)
def test_bounded_and_fixed_coordinates_do_not_hide_thin_axes(options: dict[str, Any]) -> None:
    assert list(thin(2e-16, **options).stop()) == ["tolx"]
    assert thin(1e-15, **options).stop() == {}


def test_a_singular_root_is_left_to_the_condition() -> None:
    search = thin(1e-3, decoding=False)
    search.state.root[:] = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]]).ravel()
    assert list(search.stop()) == ["condition"]


def test_a_search_in_a_wrong_valley_ends_when_its_axes_are_below_rounding() -> None:
    """Negative weights collapse all axes but one or two: half of these searches took 440 to 500 generations.

    Schaffer's function F7 with a condition of 1000, rotated (compare bbob f17 and f18).
    """
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))[0]

    def schaffer(x: Any) -> float:
        y = 10.0 ** np.linspace(0, 1.5, 5) * (rotation @ (x - 1.7))
        s = np.hypot(y[:-1], y[1:])
        return float(np.mean(np.sqrt(s) * (1 + np.sin(50 * s**0.2) ** 2)) ** 2)

    ends = []
    for seed in range(8):
        search = run(Searcher(np.linspace(-3, 3, 5), 2.0, popsize=12, rng=seed), schaffer, 1000)
        assert search.nit <= 400
        ends += search.stop().values()
    assert any("full precision" in text for text in ends)
