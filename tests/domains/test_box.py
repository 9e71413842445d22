"""The box of a search: from the user's coordinates to those that are searched, and back."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from esgroup.domains.box import Box, make_box
from esgroup.search.searcher import Searcher

INF = math.inf


@st.composite
def spaces(draw) -> Box:
    """Draw boxes of one to six coordinates of all kinds, at least one of which is free."""
    dim = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** rng.integers(-12, 13, dim)
    integer = rng.random(dim) < 0.3
    scale[integer] = 10.0 ** rng.integers(0, 4, integer.sum())
    x0 = scale * rng.choice([0.0, 1.0, -0.7, 12.3], dim)
    lower = x0 - scale * rng.choice([INF, 0.0, 0.01, 1.0, 30.0], dim)
    upper = x0 + scale * rng.choice([INF, 0.02, 1.0, 30.0], dim)
    x0[integer] = np.clip(np.rint(x0), np.ceil(lower), np.floor(upper))[integer]
    room = np.where(integer, np.ceil(lower) < np.floor(upper), True)
    lower, upper = np.where(room, lower, -INF), np.where(room, upper, INF)
    fixed = rng.random(dim) < 0.25
    fixed[rng.integers(dim)] = False
    sigma0 = scale * rng.uniform(0.01, 10) if rng.random() < 0.5 else None
    return make_box(x0, list(zip(lower, upper, strict=True)), fixed, integer, sigma0)


def searched(where: Box, rng: np.random.Generator, n: int = 300) -> np.ndarray:
    """Return points y from far inside to far beyond the bounds."""
    sizes = where.initial_steps() * 10.0 ** rng.uniform(-3, 3, (n, 1))
    return where.encode(where.x0[None]) + sizes * rng.standard_normal((n, where.size))


def assert_feasible(where: Box, x: np.ndarray) -> None:
    assert np.isfinite(x).all()
    assert (x >= where.lower).all() and (x <= where.upper).all()
    assert (x == np.rint(x))[:, where.integer].all()
    assert (x == where.x0)[:, where.fixed].all()


def size(where: Box) -> np.ndarray:
    """Return the typical size of the numbers in each coordinate."""
    sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (where.lower, where.upper)]
    return np.max([*sides, np.abs(where.x0), where.steps0], axis=0)


# ---- laws -------------------------------------------------------------------------------------------------------


@given(spaces(), st.integers(0, 2**32 - 1))
def test_whatever_is_searched_every_point_is_feasible(where, seed) -> None:
    y = searched(where, np.random.default_rng(seed))
    far = 10.0 ** np.arange(-300.0, 301.0, 20.0)[:, None] * np.ones(where.size)
    for rows in (y, far, -far):
        before = rows.copy()
        x = where.decode(rows)
        assert x.shape == (len(rows), len(where.x0))
        assert_feasible(where, x)
        where.check("x", x)
        assert np.array_equal(rows, before) and not np.shares_memory(x, rows)


@given(spaces(), st.integers(0, 2**32 - 1))
def test_feasible_points_come_back_from_the_search_unchanged(where, seed) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([where.x0[None], where.decode(searched(where, rng))])
    x = np.where(np.isfinite(where.lower) & (rng.random(x.shape) < 0.1) & ~where.fixed, where.lower, x)
    x = x[(np.abs(x) <= 100 * size(where)).all(axis=1)]
    for y in (where.encode(x), where.encode(x, searched(where, rng, 1)[0])):
        assert y.shape == (len(x), where.size)
        again = where.decode(y)
        assert (np.abs(again - x) <= 1e-12 * size(where)).all()
        exact = where.integer | where.fixed
        assert np.array_equal(again[:, exact], x[:, exact])


@given(spaces(), st.integers(0, 2**32 - 1))
def test_points_far_from_all_bounds_are_searched_as_they_are(where, seed) -> None:
    continuous = ~where.integer[where.free]
    lower, upper = where.lower[where.free], where.upper[where.free]
    y = np.random.default_rng(seed).uniform(0.11, 0.89, (50, where.size))
    for j in range(where.size):
        if math.isfinite(upper[j] - lower[j]):
            y[:, j] = lower[j] + y[:, j] * (upper[j] - lower[j])
        elif math.isfinite(lower[j]):
            gap = max(where.x0[where.free[j]] - lower[j], where.steps0[where.free[j]])
            y[:, j] = lower[j] + (0.5 + y[:, j]) * gap
    open_above = np.isfinite(lower) == np.isfinite(upper)
    same = (where.decode(y)[:, where.free] == y)[:, continuous & (open_above | np.isfinite(lower))]
    assert same.all()


@given(spaces(), st.integers(0, 2**32 - 1))
def test_a_foreign_point_is_moved_to_the_nearest_feasible_one(where, seed) -> None:
    rng = np.random.default_rng(seed)
    x = where.x0 + 50 * size(where) * rng.standard_normal((100, len(where.x0)))
    near = where.feasible(x)
    assert_feasible(where, near)
    others = where.decode(searched(where, rng))
    gap = np.abs(x - near)[:, None]
    assert (gap <= np.abs(x[:, None] - others) + 1e-12 * size(where)).all()
    again = where.decode(where.encode(x))
    assert (np.abs(again - near) <= 1e-12 * np.maximum(size(where), np.abs(near))).all()


@given(spaces(), st.integers(0, 2**32 - 1))
def test_random_starts_are_feasible_and_determined_by_the_generator(where, seed) -> None:
    points = np.array([where.elsewhere(1.0, np.random.default_rng([seed, i]), where.begin())[0].x0 for i in range(20)])
    assert_feasible(where, points)
    again = where.elsewhere(1.0, np.random.default_rng([seed, 3]), where.begin())[0].x0
    assert np.array_equal(again, points[3])


@given(spaces())
def test_a_copy_of_a_box_has_all_its_fields(where) -> None:
    y = searched(where, np.random.default_rng(1))
    for other in (copy.deepcopy(where), pickle.loads(pickle.dumps(where))):
        assert np.array_equal(other.decode(y), where.decode(y))
    names = ("x0", "lower", "upper", "fixed", "integer", "steps0")
    arrays = {name: getattr(where, name).copy() for name in names}
    rebuilt = Box(**arrays)
    assert np.array_equal(rebuilt.decode(y), where.decode(y))


# ---- single facts -----------------------------------------------------------------------------------------------


def test_a_box_without_bounds_fixed_or_integer_coordinates_is_plain() -> None:
    assert make_box([1.0, 2.0]).plain and make_box([1.0, 2.0], (None, INF), [], False).plain
    for options in ({"bounds": (None, 5)}, {"bounds": (0, None)}, {"fixed": [0]}, {"integer": [1]}):
        assert not make_box([1.0, 2.0], **options).plain
    y = np.random.default_rng(1).standard_normal((3, 2))
    assert np.array_equal(make_box([1.0, 2.0]).decode(y), y) and np.array_equal(make_box([1.0, 2.0]).encode(y), y)


def test_margins_are_as_documented() -> None:
    """min(range / 50, max(sigma0, |x0 - bound|) / 2), none for integers."""
    bounds = [(0, 10), (0, 10), (0, None), (None, 9), (0, 10), (0, 1e30), (None, None), (0, 1)]
    where = make_box([5, 0, 3, 8, 5, 1, 0, 0.5], bounds, integer=[4], sigma0=[2, 0.3, 0.1, 4, 2, 0.3, 1, 8])
    bend = where._bend
    assert bend.lower_margin.tolist() == [0.2, 0.15, 1.5, 0.0, 0.0, 0.5, 0.0, 0.02]
    assert bend.upper_margin.tolist() == [0.2, 0.2, 0.0, 2.0, 0.0, 0.02 * 1e30, 0.0, 0.02]


def test_fixed_coordinates_are_indices_a_mask_or_values() -> None:
    for fixed in ([0, 2], [-3, -1], (0, 2, 2), np.array([0, 2]), {0, 2}, [True, False, True], np.array([1, 0, 1]) > 0):
        where = make_box([1.0, 2.0, 3.0], fixed=fixed)
        assert where.free.tolist() == [1] and where.size == 1 and len(where.x0) == 3
        assert where.decode(np.array([[7.0], [8.0]])).tolist() == [[1, 7, 3], [1, 8, 3]]
        assert where.encode(np.array([[4.0, 5.0, 6.0]])).tolist() == [[5.0]]
    where = make_box([1.0, 2.0, 3.0], fixed={0: 5, -1: 7.5})
    assert where.x0.tolist() == [5, 2, 7.5]
    assert where.decode(np.array([[0.0]])).tolist() == [[5, 0, 7.5]]


def test_a_value_for_a_fixed_coordinate_replaces_that_of_x0() -> None:
    where = make_box([99.0, 2.5], (0, 5), fixed={0: 3}, integer=[0])
    assert where.x0.tolist() == [3, 2.5]
    with pytest.raises(ValueError, match=r"x0\[0\].* 0.0 to 5.0.* 7.0"):
        make_box([1.0, 2.5], (0, 5), fixed={0: 7})
    with pytest.raises(ValueError, match=r"x0\[0\].* integer.* 3.5"):
        make_box([1.0, 2.5], (0, 5), fixed={0: 3.5}, integer=[0])


def test_equal_bounds_fix_a_coordinate() -> None:
    where = make_box([1.0, 2.0, 3.0], [(0, 5), (2, 2), (2.7, 3.4)], integer=[2])
    assert where.fixed.tolist() == [False, True, True]
    assert where.decode(np.array([[4.0]])).tolist() == [[4, 2, 3]]
    with pytest.raises(ValueError, match=r"x0\[1\].* 3.0 to 3.0.* 2.0"):
        make_box([1.0, 2.0, 3.0], [(0, 5), (3, 3), (0, 5)])


def test_every_integer_has_an_interval_of_length_one() -> None:
    where = make_box([1.0], (-0.4, 3.9), integer=True)  # 0, 1, 2, 3
    edges = np.arange(-9.5, 10)
    expected = [abs((k + 3) % 6 - 3) for k in range(-9, 10)]  # 3 2 1 0 1 2 3 2 ...
    for share in (1e-9, 0.3, 0.5, 1 - 1e-9):
        assert where.decode((edges[:-1] + share)[:, None])[:, 0].tolist() == expected
    assert where.encode(np.array([[-7.0], [0.0], [2.4], [3.0], [99.0]]))[:, 0].tolist() == [0, 0, 2, 3, 3]


def test_a_point_is_searched_where_it_is_nearest_to_the_mean() -> None:
    where = make_box([5.0, 1.0], [(0, 10), (0, 3)], integer=[1])  # mirrors at -0.2 and 10.2, and at 0 and 3
    x = np.array([[2.0, 2.0]])
    assert where.encode(x).tolist() == [[2.0, 2.0]]
    np.testing.assert_allclose(where.encode(x, np.array([-2.5, -1.4])), [[-2.4, -2.0]], rtol=1e-14)
    np.testing.assert_allclose(where.encode(x, np.array([19.0, 8.9])), [[18.4, 8.0]], rtol=1e-14)


def test_the_mean_moves_onto_the_bounds_within_three_standard_deviations() -> None:
    bounds = [(0, 10), (0, 10), (0, 10), (None, 9), (0, 10), (None, None), (0, 10)]  # mirrors at -0.2 and 10.2
    where = make_box([5.0] * 7, bounds, fixed=[6], integer=[4], sigma0=2.0)
    mean = np.array([2.7, 2.9, 9.0, 8.5, 0.0, 3.0])
    y = where.tried(mean, np.ones(6))
    np.testing.assert_allclose(y, [-0.2, 2.9, 10.2, 11.0, 0.0, 3.0], rtol=1e-14)
    assert where.decode(y[None]).tolist() == [[0.0, 2.9, 10.0, 9.0, 0.0, 3.0, 5.0]]
    assert where.tried(mean, np.full(6, 0.1)) is None
    assert make_box([5.0, 5.0]).tried(np.zeros(2), np.ones(2)) is None


def test_points_behind_a_mirror_are_seen_from_the_mean() -> None:
    where = make_box([5.0, 1.0, 0.0], [(0, 10), (0, 3), (None, None)], integer=[1], sigma0=2.0)
    y = np.array([[-0.19, 3.49, 99.0], [10.21, 1.0, 0.0], [5.0, -0.51, 0.0], [5.0, -0.49, -99.0]])
    assert where.behind(y, np.array([5.0, 1.0, 0.0])).tolist() == [False, True, True, False]
    assert where.behind(y, np.array([10.3, 1.0, 0.0])).tolist() == [False, False, True, False]  # behind one itself
    assert not make_box([5.0, 5.0]).behind(y[:, :2], np.zeros(2)).any()


def test_the_kinds_of_integer_arguments() -> None:
    for integer in (True, [0, 1], [True, True], np.array([0, -1]), range(2)):
        assert make_box([1.0, 2.0], integer=integer).integer.all()
    for integer in (None, False, [], [False, False]):
        assert not make_box([1.0, 2.0], integer=integer).integer.any()


@pytest.mark.parametrize(
    "x0, options, kind, message",
    [
        ([], {}, ValueError, "x0.* at least one variable"),
        ([1, math.nan], {}, ValueError, "x0.* finite.* nan at index 1"),
        ([1, INF], {}, ValueError, "x0.* finite.* inf at index 1"),
        ([[1.0, 2.0]], {}, ValueError, r"x0.* shape \(n,\).* \(1, 2\)"),
        (1.0, {}, ValueError, r"x0.* shape \(n,\).* \(\)"),
        ("ab", {}, ValueError, "x0.* real numbers"),
        ([1, 9], {"bounds": (0, 5)}, ValueError, r"^x0\[1\].* 0.0 to 5.0.* 9.0$"),
        ([1, -9], {"bounds": (0, None)}, ValueError, r"^x0\[1\].* 0.0 to inf.* -9.0$"),
        ([0, 0], {"bounds": [[-5, -5], [5, 5]]}, ValueError, r"write bounds=\[\(-5, 5\), \(-5, 5\)\]$"),
        ([0, 0], {"bounds": [[-5, -4], [5, 5]]}, ValueError, r"write bounds=\[\(-5, 5\), \(-4, 5\)\]$"),
        ([0, 0], {"bounds": (-5, 5), "sigma0": -1}, ValueError, "^sigma0.* positive.* -1$"),
        ([1, 2], {"fixed": [2]}, ValueError, "index in fixed.* integer from -2 to 1.* 2$"),
        ([1, 2], {"fixed": [-3]}, ValueError, "index in fixed.* integer from -2 to 1.* -3$"),
        ([1, 2], {"fixed": [0, 1]}, ValueError, "fixed and bounds.* leave a variable"),
        ([1, 2], {"fixed": [0], "bounds": [(0, 5), (2, 2)]}, ValueError, "fixed and bounds.* leave a variable"),
        ([1, 2], {"fixed": [True]}, ValueError, "fixed.* 2 entries.* mask.* 1$"),
        ([1, 2], {"fixed": [True, 1]}, TypeError, "index in fixed.* integer.* True$"),
        ([1, 2], {"fixed": [0.0]}, TypeError, "index in fixed.* integer from -2 to 1.* 0.0$"),
        ([1, 2], {"fixed": 1}, TypeError, "fixed.* None, indices or a mask.* 1$"),
        ([1, 2], {"fixed": "0"}, TypeError, "fixed.* None, indices or a mask.* '0'$"),
        ([1, 2], {"fixed": {0: math.nan}}, ValueError, r"fixed\[0\].* finite.* nan"),
        ([1, 2], {"fixed": {0: 1, -2: 1}}, ValueError, "fixed.* variable 0 twice"),
        ([1, 2], {"fixed": {5: 1}}, ValueError, "index in fixed.* -2 to 1.* 5$"),
        ([1, 2.5], {"integer": True}, ValueError, r"^x0\[1\].* integer.* 2.5: round it$"),
        ([1, 2], {"integer": 1.5}, TypeError, "integer.* None, indices or a mask.* 1.5$"),
        ([1, 2], {"integer": [7]}, ValueError, "index in integer.* from -2 to 1.* 7$"),
        ([0, 0], {"integer": [1], "bounds": (0.1, 0.9)}, ValueError, r"bounds.* \(0.1, 0.9\).* variable 1"),
        ([1, 2], {"sigma0": 0}, ValueError, "sigma0.* positive.* 0$"),
        ([1, 2], {"sigma0": math.nan}, ValueError, "sigma0.* positive finite.* nan$"),
        ([1, 2], {"sigma0": "1"}, ValueError, "sigma0.* number.* '1'$"),
        ([1, 2], {"sigma0": [1, 0]}, ValueError, "sigma0.* positive.* 0.0 at index 1"),
        ([1, 2], {"sigma0": [1, INF]}, ValueError, "sigma0.* finite.* inf at index 1"),
        ([1, 2], {"sigma0": [1, 2, 3]}, ValueError, r"sigma0.* shape \(2,\).* \(3,\)"),
        ([1, 2], {"sigma0": [1, [2]]}, ValueError, "sigma0.* real numbers"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_wrong(x0, options, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make_box(x0, **options)


def test_infeasible_points_are_refused_with_where_they_are() -> None:
    where = make_box([0.0, 1.0, 2.0], (-3, 3), fixed=[0], integer=[1])
    where.check("x", np.array([0.0, -3.0, 3.0]))
    good = [0.0, 1.0, 2.5]
    for bad, message in [
        ([0.0, 1.0, 3.5], r"^X\[1, 2\].* -3.0 to 3.0.* 3.5$"),
        ([0.0, -4.0, 3.0], r"^X\[1, 1\].* -3.0 to 3.0.* -4.0$"),
        ([0.0, 1.5, 3.0], r"^X\[1, 1\].* integer.* 1.5: round it$"),
        ([0.1, 1.0, 3.0], r"^X\[1, 0\].* 0.0.* fixed.* 0.1$"),
    ]:
        with pytest.raises(ValueError, match=message):
            where.check("X", np.array([good, bad, bad]))


def test_arrays_that_do_not_describe_a_box_are_refused() -> None:
    good = make_box([0.0, 1.0], (-3, 3))
    names = ("x0", "lower", "upper", "fixed", "integer", "steps0")
    for name, bad in [
        ("x0", np.array([0.0])),
        ("x0", np.array([0.0, math.nan])),
        ("x0", np.array([0.0, 4.0])),
        ("lower", np.array([[0.0, 0.0]])),
        ("lower", np.array([4.0, 4.0])),
        ("fixed", np.array([True, True])),
        ("steps0", np.array([1.0, 0.0])),
        ("steps0", np.array([1.0, math.nan])),
    ]:
        with pytest.raises(ValueError):
            Box(**{key: bad if key == name else getattr(good, key) for key in names})


def test_the_arguments_are_neither_changed_nor_kept() -> None:
    x0, sigma0 = np.array([1.0, 2.0]), np.array([0.5, 0.5])
    where = make_box(x0, (0, 5), {0: 3.0}, sigma0=sigma0)
    assert x0.tolist() == [1, 2]
    x0[:], sigma0[:] = 9, 9
    assert where.x0.tolist() == [3, 2] and where.steps0.tolist() == [0.5, 0.5]


def test_other_bounds_keep_what_is_fixed_and_integer() -> None:
    where = make_box([1.0, 2.0, 3.0], fixed=[0], integer=[1])
    other = where.with_bounds(np.array([1.0, 7.0, -8.0]), (-4.5, 4.5))
    assert other.x0.tolist() == [1, 4, -4.5] and other.free.tolist() == [1, 2] and other.integer.tolist() == [0, 1, 0]
    assert where.with_bounds(where.x0, [(1, 1), (0, 5), (0, 5)]).free.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"bounds.* lower = upper.* variable 2"):
        where.with_bounds(where.x0, [(0, 5), (0, 5), (3, 3)])
    with pytest.raises(ValueError, match=r"x0\[0\].* 2.0 to 5.0.* 1.0"):
        where.with_bounds(where.x0, (2, 5))


# ---- standard deviations ----------------------------------------------------------------------------------------


def test_default_steps_come_from_the_range_else_from_x0() -> None:
    bounds = [(0, 8), (None, 99), (None, None), (0, 1), (0, 1e30)]
    assert make_box([4, -2, 10, 0, 1], bounds, integer=[3]).steps0.tolist() == [2, 3, 3, 0.5, 3]
    assert make_box([4, -2, 10, 0, 9], bounds, integer=[3]).initial_steps().tolist() == [2, 3, 3, 0.5, 3]
    assert make_box([0.0, 0.0]).initial_steps().tolist() == [1, 1]
    assert make_box([100.0, 4.0], fixed=[0]).initial_steps().tolist() == [1.2]  # fixed coordinates are ignored
    assert make_box([100.0, 4.0], [(0, 200), (None, None)]).initial_steps().tolist() == [50, 1.2]


def test_given_steps_are_used_up_to_a_third_of_the_range() -> None:
    where = make_box([5.0, 5.0, 5.0], [(0, 9), (None, None), (4, 6)], fixed=[2], sigma0=0.7)
    assert where.initial_steps().tolist() == [0.7, 0.7]
    assert where.initial_steps([1.0, 2.0, 0.0]).tolist() == [1.0, 2.0]
    assert where.initial_steps(50.0).tolist() == [3.0, 50.0]
    with pytest.raises(ValueError, match=r"sigma0.* positive.* 0\.0 at index 0"):
        where.initial_steps([0.0, 1.0, 1.0])


def test_points_spread_by_sigma0_from_a_start_at_a_bound_as_well() -> None:
    rng = np.random.default_rng(2)
    for x0 in (0.0, 0.2, 5.0, 9.9, 10.0):
        where = make_box([x0], (0, 10), sigma0=0.3)
        y = where.encode(where.x0[None]) + where.initial_steps() * rng.standard_normal((20_000, 1))
        distance = np.sqrt(np.mean((where.decode(y) - x0) ** 2))
        assert 0.2 < distance < 0.55


@pytest.mark.parametrize("popsize", [2, 10, 100])
@pytest.mark.parametrize("dim", [1, 8, 300])
def test_integers_keep_the_documented_probability_to_change(popsize, dim) -> None:
    where = make_box(np.zeros(dim + 1), integer=range(dim))
    least = where.limits(popsize).least
    assert least.shape == (dim + 1,) and least[-1] == 0.0 and len(set(least[:-1])) == 1
    leaves = 2 * norm.sf(0.5 / least[0])
    assert leaves == pytest.approx(min(0.3, 1 / ((dim + 1) * popsize)), rel=1e-9)
    assert least[0] < 0.5


def test_even_the_smallest_search_has_a_least_step_below_one_half() -> None:
    assert 2 * norm.sf(0.5 / make_box([0.0], integer=True).limits(2).least.item()) == pytest.approx(0.3)


def test_only_free_integers_have_least_and_only_ranges_have_most_steps() -> None:
    assert make_box([1.0, 2.0]).limits(10).least is None and make_box([1.0, 2.0]).limits(2).most is None
    assert make_box([1.0, 2.0], (0, None), fixed=[0], integer=[0]).limits(10).least is None
    assert make_box([1.0, 2.0], (0, None)).limits(2).most is None
    bounds = [(0, 9), (0, 1), (0, None), (0, 60), (0, 9)]
    where = make_box([1.0] * 5, bounds, fixed=[4], integer=[1, 3])
    assert where.limits(2).most.tolist() == [3.0, 0.5, INF, 20.0]
    assert (where.limits(2).least <= where.limits(2).most).all()


def test_standard_deviations_are_reported_in_the_users_coordinates() -> None:
    where = make_box([1.0, 5.0, 3.0, 0.0], [(0, 10), (0, 10), (None, None), (0, 4)], fixed=[0], integer=[3])
    shown = where.stds(np.array([5.0, 2.0, 1.0]), np.array([0.25, 40.0, 0.1]))
    assert shown.tolist() == [0.0, 0.25, 40.0, 0.1]
    at_bound = where.stds(where.encode(np.array([[1.0, 10.0, 3.0, 0.0]]))[0], np.array([0.1, 1.0, 0.1]))
    assert at_bound[1] == pytest.approx(math.sqrt(2) * 0.1**2 / (4 * 0.2))  # that of t^2 / (4 a), margin a = 0.2


# ---- resolution -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x0", "sigma0", "options", "text"),
    [
        ([1.7e18] * 3, 100.0, {}, r"sigma0 .*large enough to change x0, got 100: .*x0\[0\] = 1.7e\+18 are 256 apart"),
        ([0.0, -1e18], 1.0, {}, r"sigma0 .*x0\[1\]"),
        ([5.0, 1e18, 0.0], 1.0, {"fixed": [0], "bounds": (None, 2e18)}, r"sigma0 .*x0\[1\]"),
        ([1e18, 2.0], 5.0, {"integer": True}, r"sigma0 .*x0\[0\]"),
        ([2.0, 1.0], [1.0, 1e-15], {}, r"sigma0 .*got 1e-15: .*x0\[1\] = 1"),
        ([3.0, 1e18], None, {"bounds": [(0, 9), (1e18, 1e18 + 1000)]}, r"bounds .*equal to fix .* for variable 1"),
    ],
)
def test_steps_no_larger_than_the_rounding_of_x0_are_refused(x0: Any, sigma0: Any, options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_box(x0, sigma0=sigma0, **options).initial_steps()


@pytest.mark.parametrize(
    ("x0", "sigma0", "options"),
    [
        ([1e18, 1.0], 1.0, {"fixed": [0]}),
        ([1e18, 1.0], [1e4, 1e-14], {}),
        ([1e18, 1.0], None, {}),
        ([0.0, 0.0], 1e-300, {}),
        ([1e15 + 1, 2.0], None, {"bounds": [(1e15, 1e15 + 1000), (2, 2)]}),
    ],
)
def test_steps_above_the_rounding_of_x0_are_accepted(x0: Any, sigma0: Any, options: Any) -> None:
    where = make_box(x0, sigma0=sigma0, **options)
    y, steps = where.encode(where.x0[None])[0], where.initial_steps()
    assert (where.decode((y + 0.2 * steps)[None])[0] != where.x0)[~where.fixed].all()


def test_a_covariance_may_say_how_far_steps_go_from_a_large_x0() -> None:
    search = Searcher([1e18, 1e18], cov0=np.diag([1e30, 1e32]), rng=1)
    assert np.allclose(search.stds, [1e15, 1e16])


# ---- random starts ----------------------------------------------------------------------------------------------


def test_random_starts_are_uniform_between_bounds_and_normal_elsewhere() -> None:
    bounds = [(-1, 3), (0, 2), (None, None), (0, None), (0, 1e30), (5, 5)]
    where = make_box([0.0, 1.0, 5.0, 0.0, 10.0, 5.0], bounds, integer=[1], sigma0=1.0)
    rng = np.random.default_rng(1)
    first = where.begin()._replace(steps=np.array([9, 9, 2.0, 3.0, 0.5]))
    points = np.array([where.elsewhere(1.0, rng, first)[0].x0 for _ in range(4000)])
    assert_feasible(where, points)
    error = 5 / math.sqrt(len(points))
    assert abs(points[:, 0].mean() - 1) < error * 4 / math.sqrt(12)
    assert abs(points[:, 0].std() - 4 / math.sqrt(12)) < error * 0.5
    counts = np.bincount(points[:, 1].astype(int), minlength=3) / len(points)
    assert np.abs(counts - 1 / 3).max() < error * math.sqrt(2 / 9)
    assert abs(points[:, 2].mean() - 5) < error * 2 and abs(points[:, 2].std() - 2) < error * 2
    assert points[:, 3].max() > 3 and np.median(points[:, 3]) < 3  # mirrored at the bound
    assert abs(points[:, 4].mean() - 10) < error * 0.5  # 1e30 stands for infinity
    assert (points[:, 5] == 5).all()


# ---- integers in a search -----------------------------------------------------------------------------------------


def test_a_search_over_integers_and_real_numbers_finds_both() -> None:
    dim, weights = 8, 10.0 ** np.linspace(0, 3, 8)
    center = np.array([3.0, -7.0, 10.0, 0.0, 0.3, -0.2, 5.5, 1.0])
    for seed in range(3):
        search = Searcher(np.zeros(dim), bounds=(-10, 10), integer=range(4), rng=seed)
        while not search.best_f <= 1e-8:
            points = search.ask()
            assert np.array_equal(points[:, :4], np.rint(points[:, :4]))
            search.tell(((points - center) ** 2) @ weights)
            assert search.nfev < 4000
        assert search.best_x[:4].tolist() == [3, -7, 10, 0]


def test_integer_steps_do_not_collapse_while_others_converge() -> None:
    search = Searcher(np.zeros(4), 1.0, integer=[0, 1], rng=1)
    while not (search.stds[2:] < 1e-8).all():  # at the last: a search at rest is widened a few times before
        search.tell((search.ask() ** 2).sum(axis=1))
        assert search.nit < 2000
    least = search.strategy.domain.limits(search.popsize).least[0]
    assert (search.stds[:2] >= 0.999 * least).all() and (search.stds[2:] < 1e-8).all()
    changed = [np.abs(search.ask()[:, :2]).max() for _ in range(50)]
    assert 0 < np.count_nonzero(changed) < 50


def test_binary_coordinates_are_found() -> None:
    dim = 16
    wanted = np.arange(dim) % 3 == 0
    for seed in range(3):
        search = Searcher(np.zeros(dim), bounds=(0, 1), integer=True, rng=seed)
        while search.best_f != 0:
            search.tell(np.abs(search.ask() - wanted).sum(axis=1))
            assert search.nfev < 1500
