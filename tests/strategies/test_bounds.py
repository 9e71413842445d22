"""Bounds: every spelling, and the bend that keeps a search within them, against a slow twin and by regression."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import Bounds
from scipy.stats import norm

from esgroup.domains.bend import Bend
from esgroup.domains.box import parse_bounds
from esgroup.search.searcher import Searcher
from esgroup.space import Choice, Real, Space
from esgroup.strategies.base import Proposed
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.in_domain import Within
from esgroup.strategies.product import ProductSearch

INF = math.inf


# ---- spellings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds([-1, -1, -1], [2, 2, 2]),
        Bounds(-1, 2),
        Bounds(-1, [2, 2, 2], keep_feasible=True),
        (-1, 2),
        [-1.0, np.float32(2)],
        np.array([-1, 2]),
        [(-1, 2)] * 3,
        ((-1, 2), [-1, 2], np.array([-1, 2])),
        zip([-1] * 3, [2] * 3, strict=True),
        [[-1, -1, -1], [2, 2, 2]],
        np.array([[-1, -1, -1], [2, 2, 2]]),
        np.array([[-1, 2]] * 3),
        (-1, [2, 2, 2]),
        [[-1, -1, -1], 2],
    ],
)
def test_every_spelling_of_the_same_bounds_is_understood(bounds) -> None:
    lower, upper, hint = parse_bounds(bounds, 3)
    assert lower.tolist() == [-1.0] * 3 and upper.tolist() == [2.0] * 3 and hint == ""


@pytest.mark.parametrize(
    "bounds, lower, upper",
    [
        (None, [-INF] * 3, [INF] * 3),
        ((None, None), [-INF] * 3, [INF] * 3),
        ((0, None), [0] * 3, [INF] * 3),
        ((-INF, 4), [-INF] * 3, [4] * 3),
        ([(None, 1), (2, None), (None, None)], [-INF, 2, -INF], [1, INF, INF]),
        ([[0, None, 1], None], [0, -INF, 1], [INF] * 3),
        (Bounds([0, -INF, 1], INF), [0, -INF, 1], [INF] * 3),
        ((-np.finfo(float).max, np.finfo(float).max), [-INF] * 3, [INF] * 3),
        ((-1e300, 1e300), [-1e300] * 3, [1e300] * 3),
    ],
)
def test_none_infinity_and_the_largest_numbers_leave_a_side_open(bounds, lower, upper) -> None:
    low, high, _ = parse_bounds(bounds, 3)
    assert low.tolist() == lower and high.tolist() == upper


def test_one_coordinate_takes_a_pair_alone_or_in_a_list() -> None:
    for bounds in [(1, 2), [(1, 2)], [[1], [2]], Bounds(1, 2)]:
        lower, upper, _ = parse_bounds(bounds, 1)
        assert (lower.tolist(), upper.tolist()) == ([1.0], [2.0])


def test_two_rows_for_two_coordinates_are_pairs_and_an_error_shows_both_spellings() -> None:
    lower, upper, _ = parse_bounds([(-1, 2), (-3, 4)], 2)
    assert lower.tolist() == [-1, -3] and upper.tolist() == [2, 4]
    with pytest.raises(ValueError) as error:
        parse_bounds(np.array([[-1, -2], [3, 4]]), 2)
    message = str(error.value)
    assert "lower <= upper" in message and "(-1.0, -2.0)" in message and "variable 0" in message
    assert "bounds=[(-1, -2), (3, 4)] is read as" in message and message.endswith("write bounds=[(-1, 3), (-2, 4)]")


@pytest.mark.parametrize(
    "bounds, kind, message",
    [
        ((2, 1), ValueError, r"^bounds.* lower <= upper.* \(2.0, 1.0\).* variable 0$"),
        ([(0, 1), (0, 1), (5, 4)], ValueError, r"^bounds.* lower <= upper.* \(5.0, 4.0\).* variable 2$"),
        ([(0, 1), (0, math.nan), (0, 1)], ValueError, r"^bounds.* NaN.* \(0.0, nan\).* variable 1$"),
        (Bounds([0, 0, 3], 2), ValueError, "^bounds.* variable 2$"),
        ((INF, INF), ValueError, r"^bounds.* finite.* \(inf, inf\)"),
        ((-INF, -INF), ValueError, r"^bounds.* finite.* \(-inf, -inf\)"),
        ([(0, 1)] * 4, ValueError, "^bounds.* 4 pairs for 3 variables"),
        ([], ValueError, "^bounds.* 0 entries for 3 variables"),
        ([[0, 0], [1, 1]], ValueError, "^bounds.* 2 pairs for 3 variables"),
        ([[0, 0, 0], [1, 1]], ValueError, "^bounds.* 2 upper bounds for 3 variables"),
        (Bounds([0, 0, 0, 0], 1), ValueError, "^bounds.* 4 lower bounds for 3 variables"),
        ([(0, 1), (0, 1, 2), (0, 1)], ValueError, "^bounds.* 3 entries"),
        (5.0, TypeError, "^bounds.* None, scipy.optimize.Bounds, a pair.* 5.0$"),
        ("ab", TypeError, "^bounds.* 'ab'$"),
        ({0: 1, 1: 2}, TypeError, "^bounds.* None, scipy.optimize.Bounds, a pair.* {0: 1, 1: 2}$"),
        ((0, 1j), TypeError, "^bounds.* real numbers.* 1j$"),
        (("0", "1"), TypeError, "^bounds.* '0'$"),
        ([(0, 1), (0, [1]), (0, 1)], TypeError, r"^bounds.* \[1\]$"),
    ],
)
def test_bad_bounds_are_refused_with_what_is_wrong(bounds, kind, message) -> None:
    with pytest.raises(kind, match=message):
        parse_bounds(bounds, 3)


def test_bounds_of_integers_are_tightened_to_integers() -> None:
    integer = np.array([True, True, False, True])
    low, high, _ = parse_bounds([(0.2, 2.9), (-INF, -0.5), (0.2, 2.9), (-3.0, 3.0)], 4, integer)
    assert low.tolist() == [1, -INF, 0.2, -3] and high.tolist() == [2, -1, 2.9, 3]
    with pytest.raises(ValueError, match=r"^bounds.* integer .*\(0.2, 0.8\).* variable 1"):
        parse_bounds((0.2, 0.8), 2, np.array([False, True]))


# ---- the bend ---------------------------------------------------------------------------------------------------


def slow_out(y: float, low: float, high: float, near: float, far: float) -> float:
    """The transformation of one number, step by step: fold between the mirrors, then bend."""
    for _ in range(1000):
        if y < low - near:
            y = 2 * (low - near) - y
        elif y > high + far:
            y = 2 * (high + far) - y
        else:
            break
    if y < low + near:
        return low + (y - (low - near)) ** 2 / (4 * near)
    if y > high - far:
        return high - (high + far - y) ** 2 / (4 * far)
    return y


@st.composite
def bends(draw, sides="both below above open") -> Bend:
    """Draw one coordinate with any kind of bounds, at scales from 1e-12 to 1e12, with margins of up to 45 per cent."""
    scale = 10.0 ** draw(st.integers(-12, 12))
    low = scale * draw(st.sampled_from([0.0, -1.0, 1.0, 0.7, -123.4]))
    high = low + scale * draw(st.floats(0.01, 100))
    near, far = ((high - low) * draw(st.sampled_from([0.45, 0.1, 1 / 3, 1e-3])) for _ in range(2))
    side = draw(st.sampled_from(sides.split()))
    low, near = (low, near) if side in ("both", "below") else (-INF, 0.0)
    high, far = (high, far) if side in ("both", "above") else (INF, 0.0)
    return Bend(*(np.array([number]) for number in (low, high, near, far)))


def parts(bend: Bend) -> tuple[float, float, float, float]:
    return tuple(part.item() for part in (bend.lower, bend.upper, bend.lower_margin, bend.upper_margin))


def reach(bend: Bend) -> float:
    """Return the size of numbers near the bounds, which determines the precision to expect."""
    low, high, near, far = parts(bend)
    sizes = [abs(side) for side in (low, high) if math.isfinite(side)] + [near, far]
    return max(sizes) if max(sizes) > 0 else 1.0


def about(bend: Bend, n: int = 2001, periods: float = 3.0) -> np.ndarray:
    """Return numbers on either side of the bounds, as rows of one coordinate."""
    low, high, *_ = parts(bend)
    ends = [side for side in (low, high) if math.isfinite(side)] or [0.0]
    width = high - low if math.isfinite(high - low) else 4 * reach(bend)
    return np.linspace(min(ends) - periods * width, max(ends) + periods * width, n)[:, None]


def within(bend: Bend) -> np.ndarray:
    """Return feasible numbers, including the bounds and many close to them."""
    low, high, *_ = parts(bend)
    width = high - low if math.isfinite(high - low) else 4 * reach(bend)
    share = np.concatenate([[0.0], 10.0 ** -np.arange(18.0), np.linspace(0, 1, 101)])
    rows = [low + width * share] if math.isfinite(low) else []
    rows += [high - width * share] if math.isfinite(high) else []
    return np.clip(np.concatenate(rows or [width * (share - 0.5)]), low, high)[:, None]


@given(bends())
def test_the_bend_is_that_of_its_slow_twin(bend) -> None:
    y = about(bend)
    expected = [[slow_out(value, *parts(bend))] for value in y[:, 0]]
    np.testing.assert_allclose(bend.out(y), expected, rtol=0, atol=1e-13 * reach(bend))


@given(bends(), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_any_finite_number_leads_to_a_feasible_one(bend, more) -> None:
    low, high, *_ = parts(bend)
    large = 10.0 ** np.arange(-320.0, 309.0)
    extremes = [np.finfo(float).max, -np.finfo(float).max, 0.0]
    y = np.concatenate([large, -large, low + large, high - large, extremes, more])
    y = y[np.isfinite(y)][:, None]
    x = bend.out(y)
    assert np.isfinite(x).all() and (x >= low).all() and (x <= high).all()


@given(bends())
def test_back_and_out_again_is_the_same_point(bend) -> None:
    x = within(bend)
    y = bend.back(x)
    low, high, near, far = parts(bend)
    assert (y >= low - near - 1e-15 * reach(bend)).all() and (y <= high + far + 1e-15 * reach(bend)).all()
    np.testing.assert_allclose(bend.out(y), x, rtol=0, atol=1e-15 * reach(bend))


def test_back_and_out_again_keeps_points_near_a_bound_at_zero_to_a_rounding_error_of_the_margin() -> None:
    bend = Bend(np.zeros(1), np.ones(1), np.full(1, 0.1), np.full(1, 0.1))
    x = 10.0 ** -np.arange(1.0, 40.0)[:, None]
    error = np.abs(bend.out(bend.back(x)) - x)
    assert (error <= 1e-16 * np.sqrt(0.1 * x) + 1e-32).all()  # the slope of the parabola is sqrt(x / a)
    assert bend.out(bend.back(np.zeros((1, 1)))).tolist() == [[0.0]]
    assert bend.out(bend.back(np.ones((1, 1)))).tolist() == [[1.0]]


@given(bends())
def test_nothing_changes_beyond_the_margins(bend) -> None:
    low, high, near, far = parts(bend)
    y = about(bend, periods=0.5)
    y = np.concatenate([y, [[low + near], [high - far]]]) if math.isfinite(low) and math.isfinite(high) else y
    inside = y[(y >= low + near) & (y <= high - far)][:, None]
    before = inside.copy()
    assert inside.size
    assert np.array_equal(bend.out(inside), before) and np.array_equal(bend.back(inside), before)
    assert not np.shares_memory(bend.out(inside), inside) and not np.shares_memory(bend.back(inside), inside)


@given(bends("both below above"))
def test_between_the_mirrors_x_never_decreases_and_only_the_margins_bend(bend) -> None:
    low, high, near, far = parts(bend)
    start, end = max(low - near, -1e3 * reach(bend)), min(high + far, 1e3 * reach(bend))
    joins = [join for join in (low + near, high - far) if math.isfinite(join)]
    fine = [join * (1 + k * 2.0**-52) for join in joins for k in range(-20, 21)]
    y = np.unique(np.clip(np.concatenate([np.linspace(start, end, 5001), fine]), start, end))[:, None]
    x = bend.out(y)
    assert (np.diff(x[:, 0]) >= 0).all()
    toward = np.where(y < low + near, x >= y - 1e-15 * reach(bend), x <= y + 1e-15 * reach(bend))
    assert toward.all()


@given(bends("both below"))
def test_the_bound_is_reached_at_the_mirror_with_slope_zero_and_the_slope_is_continuous(bend) -> None:
    low, _, near, _ = parts(bend)
    if near < 1e-6 * abs(low):  # nothing but rounding errors would be seen
        return
    h = 1e-4 * near
    at = np.array([low - near, low, low + near])

    def slope(y):
        return (bend.out((y + h)[:, None]) - bend.out((y - h)[:, None]))[:, 0] / (2 * h)

    np.testing.assert_allclose(slope(at), [0.0, 0.5, 1.0], atol=1e-4)
    assert bend.out(np.array([[low - near]])).item() == pytest.approx(low, abs=1e-15 * reach(bend))


@given(bends(), st.integers(-60, 60))
def test_another_unit_changes_nothing(bend, exponent) -> None:
    unit = 2.0**exponent
    other = Bend(*(unit * part for part in (bend.lower, bend.upper, bend.lower_margin, bend.upper_margin)))
    y, x = about(bend), within(bend)
    assert np.array_equal(other.out(unit * y), unit * bend.out(y))
    assert np.array_equal(other.back(unit * x), unit * bend.back(x))


@given(bends())
def test_an_upper_bound_is_a_lower_one_with_the_sign_reversed(bend) -> None:
    other = Bend(-bend.upper, -bend.lower, bend.upper_margin, bend.lower_margin)
    y, x = about(bend), within(bend)
    assert np.array_equal(other.out(-y), -bend.out(y))
    assert np.array_equal(other.back(-x), -bend.back(x))


@given(bends(), st.floats(-4, 4))
def test_the_nearest_image_leads_to_the_same_point_and_none_is_nearer(bend, where) -> None:
    low, high, near, far = parts(bend)
    x = within(bend)
    y, scale = bend.back(x), 10 * reach(bend)
    to = np.array([(low if math.isfinite(low) else 0.0) + where * scale])
    image = bend.nearest_image(y, to)
    np.testing.assert_allclose(bend.out(image), x, rtol=0, atol=1e-13 * reach(bend))
    images = [y]
    if math.isfinite(low):
        images.append(2 * (low - near) - y)
    if math.isfinite(high):
        images.append(2 * (high + far) - y)
    if math.isfinite(high - low):
        period = 2 * (high - low + near + far)
        turns = np.round((to - y) / period) + np.arange(-2, 3)
        images = [i + k * period for i in (y, 2 * (low - near) - y) for k in turns.T[:, :, None]]
    best = np.min(np.abs(np.stack(images) - to), axis=0)
    np.testing.assert_allclose(np.abs(image - to), best, rtol=0, atol=1e-12 * (reach(bend) + np.abs(to).max()))


def test_of_all_images_between_two_mirrors_the_nearest_is_found() -> None:
    bend = Bend(np.zeros(1), np.ones(1), np.full(1, 0.1), np.full(1, 0.2))
    y = np.linspace(-0.1, 1.2, 27)[:, None]
    every = np.stack([side + 2.6 * k for side in (y, -0.2 - y) for k in range(-6, 7)])  # a period is 2 (1 + 0.3)
    for to in np.linspace(-9, 9, 41):
        image = bend.nearest_image(y, np.array([to]))
        np.testing.assert_allclose(np.abs(image - to), np.abs(every - to).min(axis=0), atol=1e-13)
        np.testing.assert_allclose(bend.out(image), bend.out(y), atol=1e-13)


@given(bends("both below above"), st.floats(-4, 4))
def test_the_nearest_mirror_is_at_a_bound_exactly_and_none_is_nearer(bend, where) -> None:
    low, high, near, far = parts(bend)
    to = np.array([(low if math.isfinite(low) else high) + where * 10 * reach(bend)])
    mirror = bend.nearest_mirror(to)
    ends = [low - near] if math.isfinite(low) else []
    ends += [high + far] if math.isfinite(high) else []
    if len(ends) == 2:
        width = ends[1] - ends[0]
        ends = [ends[0] + k * width for k in round((to.item() - ends[0]) / width) + np.arange(-2, 3)]
    best = np.abs(np.array(ends) - to).min()
    assert abs(mirror - to).item() == pytest.approx(best, abs=1e-12 * (reach(bend) + abs(to.item())))
    inside = bend.nearest_mirror(np.array([low - near / 2 if math.isfinite(low) else high + far / 2]))
    assert bend.out(inside[None]).item() in (low, high)
    if min(side for side in (near, far) if side > 0) > 1e-6 * reach(bend):  # else rounding is all that is seen
        assert bend.out(mirror[None]).item() in (low, high)


@given(bends("both below above"), st.floats(-4, 4))
def test_the_nearest_mirror_of_an_upper_bound_is_that_of_a_lower_one_reversed(bend, where) -> None:
    other = Bend(-bend.upper, -bend.lower, bend.upper_margin, bend.lower_margin)
    to = about(bend)[[0]][0] + where * reach(bend)
    gaps = np.abs(other.nearest_mirror(-to) + to), np.abs(bend.nearest_mirror(to) - to)  # halfway both are right
    np.testing.assert_allclose(*gaps, rtol=0, atol=1e-12 * (reach(bend) + np.abs(to).max()))


def test_where_there_is_no_margin_there_is_no_mirror_to_go_to() -> None:
    bounds = np.array([-INF, 0.0, 0.0, -INF]), np.array([INF, 4.0, INF, 4.0])
    bend = Bend(*bounds, np.array([0.0, 0.0, 0.5, 0.0]), np.array([0.0, 0.0, 0.0, 0.25]))
    assert bend.nearest_mirror(np.array([1.0, 1.0, 7.0, -7.0])).tolist() == [INF, INF, -0.5, 4.25]


def test_the_nearest_image_of_a_point_that_is_nearest_is_itself_bit_for_bit() -> None:
    bend = Bend(np.array([0.1, -INF]), np.array([0.7, INF]), np.array([0.05, 0.0]), np.array([0.05, 0.0]))
    y = np.random.default_rng(1).uniform(0.1, 0.7, (50, 2))
    assert np.array_equal(bend.nearest_image(y, np.array([0.4, 1e9])), y)


@pytest.mark.parametrize("mean", [-0.1, 0.0, 0.04])
def test_standard_deviations_on_the_parabola_are_exact(mean) -> None:
    bend = Bend(np.zeros(1), np.ones(1), np.full(1, 0.1), np.full(1, 0.1))
    std = 0.01  # six of them stay on the parabola, on either side of the mirror

    def moment(power):
        def integrand(y):
            return bend.out(np.array([[y]])).item() ** power * norm.pdf(y, mean, std)

        return quad(integrand, mean - 0.06, mean + 0.06, epsabs=1e-16)[0]

    expected = math.sqrt(moment(2) - moment(1) ** 2)
    assert bend.stds(np.array([mean]), np.array([std])).item() == pytest.approx(expected, rel=1e-6)


def test_standard_deviations_inside_are_themselves_and_never_more_than_half_the_range() -> None:
    bend = Bend(np.zeros(1), np.ones(1), np.full(1, 0.1), np.full(1, 0.1))
    assert bend.stds(np.array([0.4]), np.array([0.1])).item() == 0.1
    for std in (0.3, 1.0, 7.0, 1e9, 1e300, INF):
        assert 0 <= bend.stds(np.array([0.4]), np.array([std])).item() <= 0.5
    free = Bend(np.full(1, -INF), np.full(1, INF), np.zeros(1), np.zeros(1))
    assert free.stds(np.array([0.4]), np.array([INF])).item() == INF


@pytest.mark.parametrize("x, inwards", [(0.0, 1), (0.02, 1), (0.0999, 1), (0.95, -1), (1.0, -1)])
@pytest.mark.parametrize("step", [1e-6, 0.03, 0.3])
def test_steps_from_a_margin_move_x_by_the_given_distance(x, inwards, step) -> None:
    bend = Bend(np.zeros(1), np.ones(1), np.full(1, 0.1), np.full(1, 0.1))
    there = bend.back(np.array([x])) + inwards * bend.steps(np.array([x]), np.array([step]))
    assert bend.out(there).item() == pytest.approx(x + inwards * step, rel=1e-12)
    assert bend.steps(np.array([0.5]), np.array([step])).item() == step


def test_a_margin_of_zero_is_a_mirror() -> None:
    bend = Bend(np.zeros(1), np.full(1, 2.0), np.zeros(1), np.zeros(1))
    y = np.array([-5.5, -0.5, 0.0, 0.25, 2.0, 2.5, 4.25])[:, None]
    assert bend.out(y)[:, 0].tolist() == [1.5, 0.5, 0.0, 0.25, 2.0, 1.5, 0.25]
    low, width = np.random.default_rng(1).uniform([[-1], [0]], [[1], [1000]], (2, 1000))
    other = Bend(low, low + width, np.zeros(1000), np.zeros(1000))
    for turns in range(-9, 10):  # images of the bounds, where rounding could leave the range
        x = other.out((low + turns * width)[None])[0]
        assert (x >= other.lower).all() and (x <= other.upper).all()


# ---- it does no harm ----------------------------------------------------------------------------------------------


def evaluations(function, target: float, bounds, dim: int, seed: int) -> int:
    """Return the evaluations that a search from a random point needs, all of them within the bounds."""
    x0 = np.random.default_rng(seed).uniform(-4, 4, dim)
    search = Searcher(x0, 2.0, bounds=bounds, rng=seed)
    lower, upper, _ = parse_bounds(bounds, dim)
    while search.nfev < 2000 * dim:
        points = search.ask()
        assert (points >= lower).all() and (points <= upper).all()
        search.tell(function(points))
        if search.best_f <= target:
            break
    return search.nfev


def ellipsoid(weights, center):
    return lambda points: ((points - center) ** 2) @ weights


@cache
def evaluations_without_bounds(weights) -> int:
    return sum(evaluations(ellipsoid(np.array(weights), INSIDE), 1e-8, None, DIM, seed) for seed in range(4))


DIM = 10
SPHERE = np.ones(DIM)
DISCUS = np.where(np.arange(DIM) == 0, 1e6, 1.0)
CIGARS = 10.0 ** (6 * np.arange(DIM) / (DIM - 1))
HALF = np.where(np.arange(DIM) % 2 == 0, 1.0, 0.0)
INSIDE = np.linspace(-1, 2, DIM)


@pytest.mark.parametrize(
    "weights, center, most",
    [
        pytest.param(SPHERE, INSIDE, 1.1, id="sphere inside"),
        pytest.param(SPHERE, np.where(HALF, 5.0, INSIDE), 1.4, id="sphere, half of its minimum at the bounds"),
        pytest.param(SPHERE, np.full(DIM, 5.0), 1.0, id="sphere, its minimum in the corner"),
        pytest.param(SPHERE, np.where(HALF, 7.0, INSIDE), 1.4, id="sphere, half of its minimum beyond the bounds"),
        pytest.param(SPHERE, np.full(DIM, -7.0), 1.4, id="sphere, its minimum beyond the corner"),
        pytest.param(DISCUS, INSIDE, 1.1, id="discus inside"),
        pytest.param(DISCUS, np.full(DIM, 5 - 1e-3), 1.2, id="discus near the bounds"),
        pytest.param(DISCUS, np.full(DIM, 5.0), 1.0, id="discus at the bounds"),
        pytest.param(DISCUS, np.where(DISCUS > 1, 5.5, INSIDE), 1.3, id="discus, its short axis beyond"),
        pytest.param(CIGARS, np.where(HALF, 7.0, INSIDE), 1.4, id="ellipsoid, half of its minimum beyond the bounds"),
    ],
)
def test_bounds_cost_little_wherever_the_minimum_is(weights, center, most) -> None:
    function = ellipsoid(weights, center)
    least = function(np.clip(center, -5, 5)[None]).item()
    with_bounds = sum(evaluations(function, least + 1e-8, (-5, 5), DIM, seed) for seed in range(4))
    assert with_bounds <= most * evaluations_without_bounds(tuple(weights))


@pytest.mark.parametrize("bounds", [(-5, 5), (-5, None), [(-5, 1e30)] * DIM])
def test_a_linear_function_ends_in_the_corner(bounds) -> None:
    slopes = 10.0 ** (np.arange(DIM) / (DIM - 1))
    count = evaluations(lambda x: (x + 5) @ slopes, 1e-8, bounds, DIM, 1)
    assert count <= 1.6 * evaluations(ellipsoid(SPHERE, INSIDE), 1e-8, None, DIM, 1)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_a_bounded_search_is_the_same_in_every_unit(unit) -> None:
    found = []
    for scale in (1.0, unit):
        search = Searcher(scale * np.full(5, 2.5), scale * 2.0, bounds=(-scale, 3 * scale), rng=3)
        for _ in range(60):
            points = search.ask() / scale
            search.tell(((points - 4.0) ** 2).sum(axis=1))
        found.append(search.best_x / scale)
    assert np.array_equal(*found)
    assert np.abs(found[0] - 3.0).max() < 1e-3


def test_bounds_that_are_never_touched_change_nothing() -> None:
    found = []
    for bounds in (None, (-1000, 1000)):
        search = Searcher(np.full(4, 2.0), 0.5, bounds=bounds, rng=5)
        for _ in range(40):
            search.tell((search.ask() ** 2).sum(axis=1))
        found.append(search.best_x)
    assert np.array_equal(*found)


def test_a_step_size_far_beyond_the_range_does_not_get_lost_between_the_mirrors() -> None:
    weights, center = np.array([1.0, 1e6]), np.array([7.0, 2.0])  # a case in which a search without limits got lost
    for seed in range(10):
        search = Searcher(np.zeros(2), 1e4, bounds=(-5, 5), rng=seed)
        while search.best_f - 4.0 > 1e-8 or not search.nfev:
            search.tell(ellipsoid(weights, center)(search.ask()))
            assert search.nfev < 1000


# ---- samples behind mirrors ---------------------------------------------------------------------------------------


def drawn_in_a_box(n: int, sigma0: float, seed: int = 3) -> tuple[Within, SearchState, Proposed]:
    strategy = Searcher(np.zeros(4), sigma0, bounds=(-1, 1), popsize=n).strategy
    assert isinstance(strategy, Within)
    state = strategy.start()
    return strategy, state, strategy.sample(state, n, np.random.default_rng(seed))


def test_samples_behind_a_mirror_are_drawn_again_and_keep_their_own_coordinates() -> None:
    strategy, state, drawn = drawn_in_a_box(200, 0.33)  # of the first draw a seventh or so is behind one
    assert drawn.memo is None
    y = state.mean + state.sigma * state.scale * (drawn.local @ strategy.inner.traits.structure._dense(state.root).T)
    assert not strategy.domain.behind(y, state.mean).any()
    np.testing.assert_allclose(strategy.domain.decode(y), drawn.points, atol=1e-12)
    assert len(np.unique(drawn.local, axis=0)) == 200


def test_samples_are_drawn_once_where_no_mirror_is_near() -> None:
    drawn = drawn_in_a_box(20, 0.1)[2]
    assert drawn.memo is not None
    free = Searcher(np.zeros(4), 0.1, popsize=20).strategy
    np.testing.assert_array_equal(drawn.local, free.sample(free.start(), 20, np.random.default_rng(3)).local)


def test_folded_samples_are_taken_where_most_are_behind_mirrors() -> None:
    strategy = Searcher(np.ones(4), 0.3, bounds=(-1, 1), popsize=50).strategy  # at its corner
    drawn = strategy.sample(strategy.start(), 50, np.random.default_rng(1))
    assert drawn.memo is not None
    assert (np.abs(drawn.points) <= 1).all()


def test_names_around_choices_ask_for_no_middle_to_draw_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no mirrors and no points on bounds; the middle of choices takes a sixth of the time of samples."""
    search = Searcher(Space({"a": Real(start=1.0), "k": Choice("u", "v")}), rng=1)
    for hook in ("mean", "view"):
        monkeypatch.setattr(ProductSearch, hook, None)
    assert len(search.strategy.sample(search.state, 20, np.random.default_rng(2)).points) == 20
