"""Any strategy within any domain: bounds, integers, fixed variables, named parameters, other places."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Angle, Choice, Integer, Real, Searcher, Space
from esgroup.domains import Affine, Arrays, Box, Fixed, Place
from esgroup.domains.box import make_box
from esgroup.strategies import Ranked, Relocation, Within, register, within
from esgroup.strategies.in_domain import elsewhere, innermost, relocated, to_search
from esgroup.strategies.vector import VectorSearch
from tests.search.test_strangers import OnePlusOne, Plain, sphere

REALS = Space({"a": Real(-3, 3, shape=2), "rate": Real(1e-4, 1.0, log=True), "turn": Angle()})


def to_the_corner(x: np.ndarray) -> float:
    return float(np.sum((np.asarray(x) - 1.0) ** 2 + np.asarray(x)))


def named(p: dict[str, Any]) -> float:
    turn = 1 - np.cos(p["turn"] - 1.0)
    return float((p["a"] - 1) @ (p["a"] - 1) + (np.log10(p["rate"]) + 2) ** 2 + turn)


# ---- a stranger ---------------------------------------------------------------------------------------------------


def test_a_stranger_finds_a_corner_of_its_bounds() -> None:
    seen: list[np.ndarray] = []

    def f(x: np.ndarray) -> float:
        seen.append(x.copy())
        return to_the_corner(x)

    result = esgroup.minimize(f, OnePlusOne(dim=3), bounds=[(2, 5), (-4, 5), (None, 9)], rng=1, max_evals=4000)
    assert np.allclose(result.x, [2.0, 0.5, 0.5], atol=1e-4)
    X = np.array(seen)
    assert (X[:, 0] >= 2).all() and (X <= [5, 5, 9]).all() and (X[:, 1] >= -4).all()


def test_a_stranger_searches_integers_and_leaves_out_what_is_fixed() -> None:
    def f(x: np.ndarray) -> float:
        assert x[0] == np.rint(x[0]) and x[2] == 3.0
        return float((x[0] - 6.2) ** 2 + (x[1] - 0.5) ** 2 + x[2])

    result = esgroup.minimize(
        f, OnePlusOne(dim=3), integer=[0], fixed=[2], bounds=[(0, 9), (None, None), (0, 9)], rng=3, max_evals=600
    )
    assert result.x[0] == 6.0 and result.x[1] == pytest.approx(0.5, abs=0.05) and result.stds[2] == 0.0
    search = Searcher(OnePlusOne(dim=3), fixed={2: 7.0})
    with pytest.raises(ValueError, match=r"X\[0, 2\] must be 7.0, its fixed value, got 1.0"):
        search.tell([[1.0, 1.0, 1.0]], [1.0])
    search.tell([[1.0, 1.0, 7.0]], [1.0])
    assert search.best_x.tolist() == [1.0, 1.0, 7.0]


def test_a_stranger_searches_a_space_of_reals() -> None:
    result = esgroup.minimize(named, within(OnePlusOne(dim=4), REALS), rng=1, max_evals=3000, target=1e-6)
    assert result.fun <= 1e-6 and result.success and set(result.x) == {"a", "rate", "turn"}
    first = Searcher(within(OnePlusOne(dim=4), REALS))
    assert np.allclose(first.mean, REALS.start)
    with pytest.raises(ValueError, match=r"domain must have 3 numbers to search, as plain, got 4"):
        within(OnePlusOne(dim=3), REALS)
    with pytest.raises(ValueError, match=r"domain must have numbers only for plain, got the choices"):
        within(OnePlusOne(dim=1), Space({"k": Choice("a", "b")}))
    with pytest.raises(TypeError, match=r"domain must be .*Domain.*5"):
        within(OnePlusOne(dim=1), 5)  # type: ignore[arg-type]


def test_a_stranger_begins_elsewhere_in_its_bounds_and_without_any() -> None:
    for options in ({}, {"bounds": (-50, 50)}):
        starts: list[np.ndarray] = []

        def f(x: np.ndarray, starts: list[np.ndarray] = starts) -> float:
            starts.append(x.copy())
            return 1.0

        result = esgroup.minimize(f, OnePlusOne(dim=2), restarts="ipop", rng=1, max_evals=2000, **options)
        assert result.restarts >= 2
        far = np.abs(np.array(starts) - 3.0).max()
        assert far > 10.0 if options else far > 1.0


def test_a_stranger_within_bounds_continues_from_a_file(tmp_path: Path) -> None:
    register(OnePlusOne)
    for strategy, options in (
        (OnePlusOne(), {"bounds": (0, 4), "fixed": [0]}),
        (within(OnePlusOne(dim=4), REALS), {}),
    ):
        f = named if not options else to_the_corner
        search = Searcher(strategy, rng=1, **options)
        for _ in range(30):
            search.tell([f(x) for x in search.ask()])
        search.save(tmp_path / "run.npz")
        loaded = Searcher.load(tmp_path / "run.npz")
        for one in (search, loaded):
            for _ in range(30):
                one.tell([f(x) for x in one.ask()])
        assert search.best_f == loaded.best_f and np.array_equal(search.mean, loaded.mean)


def test_options_of_a_gaussian_are_refused_for_a_stranger_by_name() -> None:
    for name, value in {"structure": "full", "mirrored": True, "cov0": np.eye(2), "popsize": 4}.items():
        with pytest.raises(ValueError, match=rf"{name} .*OnePlusOne"):
            Searcher(OnePlusOne(), **{name: value})


# ---- maps ---------------------------------------------------------------------------------------------------------


def test_a_search_that_is_moved_is_the_same_search_in_other_units() -> None:
    """x = shift + scale y: every point is the image of the point that the strategy itself would have drawn."""
    shift, scale = np.array([10.0, -4.0]), np.array([0.5, 20.0])
    own, moved = Searcher(Plain(), rng=5), Searcher(Within(Affine(shift, scale), Plain()), rng=5)
    for _ in range(10):
        Y, X = own.ask(), moved.ask()
        np.testing.assert_allclose(X, shift + scale * Y, rtol=1e-12)
        own.tell([sphere(y) for y in Y])
        moved.tell([sphere((x - shift) / scale) for x in X])
    np.testing.assert_allclose(moved.stds, scale * own.stds)


def test_a_place_is_taken_to_another() -> None:
    one, other = Place(np.array([1.0, 2.0]), np.array([0.5, 4.0])), Place(np.array([-7.0, 0.0]), np.array([3.0, 0.1]))
    domain = Affine.between(one, other)
    np.testing.assert_allclose(domain.decode(one.mean[None])[0], other.mean)
    np.testing.assert_allclose(domain.stds(one.mean, one.steps), other.steps)
    points = np.random.default_rng(1).standard_normal((5, 2))
    np.testing.assert_allclose(domain.encode(domain.decode(points)), points, rtol=1e-12)


def test_a_strategy_is_moved_once_however_often_it_begins_elsewhere() -> None:
    strategy: Any = Plain()
    for i in range(3):
        strategy = relocated(strategy, Relocation(8, Place(np.full(2, float(i)), np.full(2, 0.3))))
        assert isinstance(strategy, Within) and isinstance(strategy.inner, Plain) and strategy.popsize == 8
        np.testing.assert_allclose(strategy.mean(strategy.start()), float(i))
        np.testing.assert_allclose(strategy.stds(strategy.start()), 0.3)


def test_what_is_fixed_has_no_effect_and_is_where_it_was() -> None:
    domain = Fixed(make_box([1.0, 2.0, 3.0], bounds=(0, 9), fixed=[1]))
    y = np.array([[5.0, 6.0, 7.0]])
    assert domain.decode(y).tolist() == [[5.0, 2.0, 7.0]]
    assert domain.encode(domain.decode(y), near=np.array([0.0, 9.0, 0.0])).tolist() == [[5.0, 9.0, 7.0]]
    assert domain.stds(y[0], np.ones(3)).tolist() == [1.0, 0.0, 1.0]
    points = np.array([[5.0, 2.0, 7.0], [5.0, 2.5, 7.0], [-5.0, 2.0, 7.0]])
    assert domain.inside(points).tolist() == [True, False, False]
    assert domain.idle(y[0]).tolist() == [False, True, False] and domain.free.upper.tolist() == [9.0, np.inf, 9.0]
    with pytest.raises(ValueError, match=r"X\[0, 2\] must be from 0.0 to 9.0, got 10.0"):
        domain.check("X", np.array([[5.0, 2.0, 10.0]]))


def test_domains_nest_and_the_innermost_search_sees_its_own_vectors() -> None:
    search = Searcher(Space({"a": Real(0, 9, shape=3, start=4.0), "b": Real(1e-3, 1e3, log=True)}), rng=1)
    strategy, state = search.strategy, search.state
    assert isinstance(innermost(strategy), VectorSearch)
    y = state.mean + 0.1 * np.random.default_rng(2).standard_normal((6, 4))
    points, outer = y, strategy
    layers = []
    while isinstance(outer, Within):
        layers.append(outer.within)
        outer = outer.inner
    for layer in reversed(layers):
        points = layer.decode(points)
    np.testing.assert_allclose(to_search(strategy, state, points), y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(strategy.local(state, points), innermost(strategy).local(state, y), atol=1e-9)


# ---- limits -------------------------------------------------------------------------------------------------------


def test_a_search_that_begins_elsewhere_has_the_limits_of_its_own_population() -> None:
    search = Searcher(np.full(4, 2.0), 1.0, bounds=(0, 9), integer=[0], popsize=8, rng=1)
    other = elsewhere(search.strategy, 200, 0.5, np.random.default_rng(1))
    assert isinstance(other, Within) and isinstance(other.within, Box)
    vectors = innermost(other)
    assert isinstance(vectors, VectorSearch) and vectors.popsize == 200
    wanted = other.within.limits(200)
    assert np.array_equal(vectors.least, wanted.least) and np.array_equal(vectors.most, wanted.most)
    assert wanted.least[0] < search.strategy.domain.limits(8).least[0]


def test_an_angle_stays_within_a_turn_and_its_points_are_the_same() -> None:
    search = Searcher(REALS, rng=1)
    strategy = search.strategy
    assert isinstance(strategy, Within)
    state = strategy.start()
    state.mean[3] = 3.2 * 2 * np.pi
    before = strategy.mean(state)
    kept = strategy.kept(state)
    assert abs(kept.mean[3]) < 2 * np.pi
    np.testing.assert_allclose(strategy.mean(kept), before, atol=1e-9)


def test_points_of_another_shape_than_the_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"inner must search vectors of 3 numbers.*\(2,\)"):
        Within(make_box([1.0, 2.0, 3.0], (0, 9)), Plain())
    assert Arrays((2, 3)).size == 6


def test_a_number_that_is_inactive_in_all_points_stays_where_it_is() -> None:
    space = Space({"k": Choice("a", "b"), "x": Real(-1, 1, when={"k": "b"}), "n": Integer(0, 9)})
    search = Searcher(space, rng=1)
    strategy, state = search.strategy, search.state
    drawn = strategy.sample(state, 12, np.random.default_rng(3))
    local = drawn.local.copy()
    local[:, 3:] = [0.0, 1.0, 1.0]  # x is inactive in all of them
    moved = strategy.update(state, Ranked(local, np.arange(12)))
    before, after = state.numbers, moved.numbers
    assert after.mean[0] == before.mean[0] and after.mean[1] != before.mean[1]


def test_a_stranger_that_would_begin_outside_of_its_bounds_begins_at_the_nearest_point() -> None:
    search = Searcher(OnePlusOne(dim=3), bounds=[(4, 9), (-9, 1), (None, None)], integer=[0], rng=1)
    assert search.mean.tolist() == [4.0, 1.0, 3.0]
