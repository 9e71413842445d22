"""A search tries the mean on the bounds near it: which point that is, that it pulls nothing; corners are found."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies import adaptation, two_point, vector
from esgroup.strategies.base import AT_BOUNDS, Ranked
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.in_domain import Within, innermost
from esgroup.strategies.vector import _ranked

DIM = 10


def tried(search: Searcher) -> np.ndarray:
    """Return the rows of the last ask that were put onto bounds."""
    tags = search.ledger.asked[-1].drawn.tags
    return np.zeros(0, dtype=int) if tags is None else np.flatnonzero(tags == AT_BOUNDS)


def asked_at_bounds(**options: Any) -> Searcher:
    """Return a search on a sphere beyond the corner 0 whose last ask has a point on the bounds."""
    search = Searcher(np.linspace(0.2, 3.0, 6), 1.0, **{"bounds": (0, 9), "rng": 4} | options)
    for _ in range(40):
        X = search.ask()
        if tried(search).size:
            return search
        search.tell(((X + 1) ** 2).sum(axis=1))
    raise AssertionError("no point was put onto the bounds")


def assert_same(one: SearchState, other: SearchState) -> None:
    for name, a, b in zip(SearchState._fields, one, other, strict=True):
        assert np.array_equal(a, b), name


# ---- which point it is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"structure": "diagonal"}, {"step_size": "tpa"}, {"mirrored": True}], ids=str)
def test_the_last_point_is_the_mean_with_its_coordinates_near_bounds_on_them_exactly(options: dict[str, Any]) -> None:
    bounds = [(0, 9), (0, None), (None, 4), (-50, 50), (None, None), (0, 9)]
    search = asked_at_bounds(bounds=bounds, fixed=[5], **options)
    strategy, state = search.strategy, search.state
    assert isinstance(strategy, Within)
    drawn = search.ledger.asked[-1].drawn
    assert tried(search).tolist() == [len(drawn.points) - 1]
    y, stds, bend = state.mean, strategy.view(state).spread(), strategy.domain._bend
    expected = search.mean
    for j in range(5):  # mirrors behind the bounds
        if abs(y[j] - (bend.lower[j] - bend.lower_margin[j])) < 3 * stds[j]:
            expected[j] = bend.lower[j]
        elif abs(y[j] - (bend.upper[j] + bend.upper_margin[j])) < 3 * stds[j]:
            expected[j] = bend.upper[j]
    assert np.array_equal(drawn.points[-1], expected)
    assert (expected[:3] == [0, 0, 4]).any() and expected[3] == search.mean[3]


def test_all_other_points_are_those_of_a_search_that_never_tries_bounds() -> None:
    search = asked_at_bounds()
    state, strategy = search.state, search.strategy
    drawn = search.ledger.asked[-1].drawn
    y = state.mean + state.sigma * state.scale * (drawn.local @ strategy.traits.structure.dense(state.root).T)
    points = strategy.domain.decode(y)
    np.testing.assert_allclose(drawn.points[:-1], points[:-1], rtol=0, atol=1e-12)
    assert np.abs(drawn.points[-1] - points[-1]).max() > 0.01


@pytest.mark.parametrize(("popsize", "every"), [(4, 4), (10, 4), (14, 3), (20, 2), (40, 1), (100, 1)])
def test_it_comes_every_fourth_generation_or_once_in_forty_evaluations(popsize: int, every: int) -> None:
    search = Searcher(np.full(4, 0.5), 1.0, bounds=(0, 9), popsize=popsize, rng=1)
    rows = []
    for _ in range(12):
        X = search.ask()
        rows.append(len(tried(search)))
        search.tell((X**2).sum(axis=1))
    assert rows == [1 if (i + 1) % every == 0 else 0 for i in range(12)]


@pytest.mark.parametrize(
    "options", [{"algorithm": "paper"}, {"popsize": 3}, {"integer": True}, {"bounds": None}], ids=str
)
def test_some_searches_never_try_bounds(options: dict[str, Any]) -> None:
    search = Searcher(np.full(3, 1.0), 1.0, **{"bounds": (0, 9), "rng": 1} | options)
    for _ in range(12):
        X = search.ask()
        assert not tried(search).size
        search.tell((X**2).sum(axis=1))


def test_points_asked_for_one_by_one_have_the_same_among_them() -> None:
    search, other = asked_at_bounds(), asked_at_bounds()
    search.tell(np.arange(search.popsize))
    other.tell(np.arange(other.popsize))
    for _ in range(4 * search.popsize):
        x = search.ask(1)
        search.tell(x, ((x + 1) ** 2).sum(axis=1))
    for _ in range(4):
        other.tell(((other.ask() + 1) ** 2).sum(axis=1))
    np.testing.assert_allclose(search.state.mean, other.state.mean, rtol=1e-9)


# ---- it pulls nothing ---------------------------------------------------------------------------------------------


def test_such_points_have_the_middle_ranks() -> None:
    order = np.array([4, 2, 0, 3, 1])
    for row in range(5):
        tags = np.where(np.arange(5) == row, AT_BOUNDS, 0)
        others = [i for i in order.tolist() if i != row]
        assert _ranked(Ranked(np.zeros((5, 2)), order, False, tags)).tolist() == [*others[:2], row, *others[2:]]
    two = np.array([0, AT_BOUNDS, 1, 2, AT_BOUNDS])
    assert _ranked(Ranked(np.zeros((5, 2)), order, False, two)).tolist() == [2, 0, 4, 1, 3]
    for tags in (None, np.array([0, 1, 2, 0, 0])):
        assert _ranked(Ranked(np.zeros((5, 2)), order, False, tags)) is order


@pytest.mark.parametrize("options", [{}, {"structure": "triangular"}, {"noise": "adapt"}, {"popsize": 41}], ids=str)
def test_its_value_does_not_move_the_search(options: dict[str, Any]) -> None:
    states, best = [], []
    for value in (-1e9, 50.0, 1e9):
        search = asked_at_bounds(**options)
        values = ((search.ledger.asked[-1].drawn.points + 1) ** 2).sum(axis=1)
        values[tried(search)] = value
        search.tell(values)
        states.append(SearchState(*(array.copy() for array in search.state)))
        best.append(search.best_f)
    assert_same(states[0], states[1])
    assert_same(states[0], states[2])
    assert best[0] == -1e9 and best[2] > 0


def test_if_all_samples_fail_its_value_alone_moves_nothing() -> None:
    search = asked_at_bounds()
    before = SearchState(*(array.copy() for array in search.state))
    values = np.full(search.popsize, np.nan)
    values[tried(search)] = 3.0
    search.tell(values)
    assert_same(search.state, before)
    assert search.best_f == 3.0 and search.nit and search.nfailed == search.popsize - 1


def test_one_sample_with_a_value_beside_it_moves_the_search() -> None:
    search = asked_at_bounds()
    before, values = search.state.mean.copy(), np.full(search.popsize, np.nan)
    values[tried(search)], values[0] = 3.0, 4.0
    search.tell(values)
    assert not np.array_equal(search.state.mean, before)


def test_it_leaves_the_samples_of_other_devices_alone() -> None:
    """With 40 points a generation has one on the bounds every time, and noise adaptation still compares its pair."""
    search = asked_at_bounds(noise="adapt", popsize=40)
    tags = search.ledger.asked[-1].drawn.tags
    assert tags is not None
    assert [np.count_nonzero(tags == tag) for tag in (adaptation.ONE, adaptation.NEAR, AT_BOUNDS)] == [1, 1, 1]
    before = search.state.rates[4]
    search.tell(np.arange(40.0))
    assert search.state.rates[4] != before


@pytest.mark.parametrize("popsize", [9, 41])
def test_of_an_odd_number_the_middle_one_has_weight_zero(popsize: int) -> None:
    search = asked_at_bounds(popsize=popsize)
    drawn, order = search.ledger.asked[-1].drawn, np.arange(popsize)[::-1]
    other = drawn.local.copy()
    other[-1] *= -0.3
    moved = [search.strategy.update(search.state, Ranked(z, order, False, drawn.tags)) for z in (drawn.local, other)]
    for name, a, b in zip(SearchState._fields, *moved, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14, err_msg=name)


def test_a_search_saved_with_such_a_point_out_continues_exactly(tmp_path: Path) -> None:
    search = asked_at_bounds()
    search.save(tmp_path / "search.npz")
    loaded = Searcher.load(tmp_path / "search.npz")
    for one in (search, loaded):
        X = one.ledger.asked[-1].drawn.points
        one.tell(X, (X**2).sum(axis=1))
        for _ in range(9):
            X = one.ask()
            one.tell((X**2).sum(axis=1))
    assert_same(search.state, loaded.state)
    assert search.best_f == loaded.best_f


# ---- a corner is no plateau ---------------------------------------------------------------------------------------


def widened(mean: float, std: float, **options: Any) -> float:
    """Return by which factor a plateau widens the steps of a search at a mean."""
    search = Searcher(np.full(4, 2.0), 1.0, **{"bounds": (0, 9), "rng": 1} | options)
    strategy, rng = search.strategy, np.random.default_rng(2)
    state = innermost(strategy).evolution.start(strategy.domain.encode(np.full((1, 4), mean))[0], np.full(4, std))
    z, order = rng.standard_normal((search.popsize, 4)), np.arange(search.popsize)
    told = Ranked(z, order, True)
    sigma = [strategy.update(state, told._replace(plateau=plateau)).sigma.item() for plateau in (False, True)]
    return sigma[1] / sigma[0]


def test_equal_values_widen_the_steps_unless_they_are_those_of_one_point() -> None:
    search = Searcher(np.full(4, 2.0), 1.0, bounds=(0, 9), rng=1)
    full = math.exp(0.2 + innermost(search.strategy).evolution.constants(search.popsize).drive)
    assert widened(9.0, 1e-9) == 1.0  # s^2 / (4 a) is below the rounding of 9
    assert widened(9.0, 1e-3) == pytest.approx(full)
    assert widened(2.0, 1e-9) == pytest.approx(full)
    assert widened(9.0, 1e-9, bounds=None) == pytest.approx(full)


def test_integers_leave_a_plateau_by_wider_steps_at_a_corner_as_well() -> None:
    assert widened(9.0, 0.5, integer=True) > 1.1


# ---- corners are found --------------------------------------------------------------------------------------------


def in_corner(X: np.ndarray) -> np.ndarray:
    return ((X - 5) ** 2).sum(axis=1)


def linear(X: np.ndarray) -> np.ndarray:
    return (5 - X) @ 10 ** (np.arange(X.shape[1]) / (X.shape[1] - 1))


def needed(f: Any, dim: int, seed: int, **options: Any) -> int:
    x0 = np.random.default_rng(seed).uniform(-4, 4, dim)
    options = {"bounds": (-5, 5), "target": 1e-8, "max_evals": 5000} | options
    search = Searcher(x0, 2.0, rng=seed, **options)
    while not search.stop():
        search.tell(f(search.ask()))
    assert "target" in search.stop(), search.stop()
    return search.nfev


@pytest.mark.parametrize("options", [{}, {"structure": "diagonal"}, {"bounds": (None, 5)}], ids=str)
@pytest.mark.parametrize("f", [in_corner, linear])
def test_a_corner_of_ten_dimensions_takes_at_most_200_evaluations(f: Any, options: dict[str, Any]) -> None:
    assert np.median([needed(f, DIM, seed, **options) for seed in range(7)]) <= 200


def test_a_corner_with_small_slopes_is_not_missed_for_another_one() -> None:
    """With its own rank the point on the bounds would draw such coordinates to the wrong bounds."""
    assert max(needed(linear, 40, seed) for seed in range(3)) < 2500


@pytest.mark.parametrize("f", [in_corner, linear])
@pytest.mark.parametrize("dim", [2, 5, 20])
def test_a_search_that_has_found_its_corner_ends_with_success_exactly_there(f: Any, dim: int) -> None:
    for seed in range(2):
        search = Searcher(np.zeros(dim), bounds=(-5, 5), rng=seed, max_evals=400 * dim)
        while not search.stop():
            search.tell(f(search.ask()))
        assert search.result.success, search.result.message
        assert search.best_f == 0.0 and (search.best_x == 5.0).all()


def test_tags_of_different_devices_differ() -> None:
    """All of them may mark samples of one generation."""
    tags = [two_point.AHEAD, two_point.BEHIND, adaptation.ONE, adaptation.NEAR, vector.AT_BOUNDS]
    assert 0 not in tags and len(set(tags)) == len(tags)
