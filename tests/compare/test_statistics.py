"""Statistics of runs: known answers, laws, SciPy and NumPy as oracles, and the coverage of the interval."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esgroup.compare.report import statistics
from esgroup.compare.report.statistics import (
    Ratio,
    Sides,
    best_so_far,
    curve,
    ecdf,
    expected_running_time,
    mean_ratio,
    quantile,
)

INF = math.inf
COSTS = st.lists(st.one_of(st.floats(1, 1e6), st.just(INF)), min_size=1, max_size=9)


# ---- of one method --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "middle"),
    [
        ([7], 7),
        ([30, 10, 20], 20),
        ([10, 40, 20, 30], 25),
        ([10, INF, 20], 20),
        ([10, INF, INF], INF),
        ([10, 20, INF, INF], INF),
        ([10, 20, 40, INF], 30),
        ([INF, INF], INF),
    ],
)
def test_the_median_counts_failures_as_infinite(costs: list[float], middle: float) -> None:
    assert statistics.median(costs) == middle


def test_the_expected_running_time_charges_failures_with_what_they_used() -> None:
    assert expected_running_time([100, INF, 200], [150, 500, 250]) == (100 + 500 + 200) / 2
    assert expected_running_time([100, 200], [100, 200]) == 150
    assert expected_running_time([INF, INF], [10, 20]) == INF


def test_the_expected_running_time_is_the_mean_cost_of_restarting_until_success() -> None:
    rng = np.random.default_rng(0)
    costs, used = np.array([30.0, 80.0, INF, INF, INF]), np.array([30.0, 80.0, 10.0, 20.0, 60.0])
    drawn = rng.integers(5, size=200_000)
    successes = np.isfinite(costs[drawn])
    last = np.flatnonzero(successes)[-1] + 1
    mean = used[drawn[:last]].sum() / successes.sum()  # of sequences that each end with a success
    assert expected_running_time(costs, used) == pytest.approx(mean, rel=0.02)


def test_the_steps_of_the_distribution_are_at_costs_and_as_high_as_their_number() -> None:
    x, share = ecdf([30, 10, INF, 20])
    assert x.tolist() == [10, 20, 30] and share.tolist() == [0.25, 0.5, 0.75]


def test_equal_costs_are_one_step_of_the_distribution() -> None:
    x, share = ecdf([5, 2, 5, 5, INF])
    assert x.tolist() == [2, 5] and share.tolist() == [0.2, 0.8]


def test_a_total_counts_failures_that_are_not_listed() -> None:
    x, share = ecdf([2, 4], total=8)
    assert x.tolist() == [2, 4] and share.tolist() == [0.125, 0.25]


def test_a_distribution_without_success_has_no_steps() -> None:
    assert [part.tolist() for part in ecdf([INF, INF])] == [[], []]
    assert [part.tolist() for part in ecdf([])] == [[], []]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_without_failures_the_distribution_is_that_of_scipy(costs: list[int]) -> None:
    x, share = ecdf(costs)
    theirs = stats.ecdf(costs).cdf
    np.testing.assert_array_equal(x, theirs.quantiles)
    np.testing.assert_allclose(share, theirs.probabilities)


# ---- one method against another -------------------------------------------------------------------------------------


def ratio(*sides: Any, paired: bool = True, **how: Any) -> Ratio:
    return statistics.ratio(Sides(*sides, paired=paired), **how)


def test_the_ratio_is_that_of_expected_running_times() -> None:
    found = ratio([100, INF], [100, 300], [50, 150], [50, 150])
    assert found.value == 4.0
    assert found.low <= found.value <= found.high


def test_the_same_runs_give_the_same_interval_and_leave_the_global_generator_alone() -> None:
    args = ([90.0, 120, 70, 100, 150], [1.0] * 5, [80.0, 130, 75, 90, 160], [1.0] * 5)
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr, call-overload]
    assert ratio(*args) == ratio(*args)
    assert ratio(*args) != ratio(*args, seed=1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # type: ignore[index, call-overload]


def test_a_method_against_itself_is_exactly_one_if_runs_are_paired() -> None:
    costs, used = [10.0, 200, INF, 35, 70], [10.0, 200, 500, 35, 70]
    without = [10.0, 200, 50, 35, 70]
    assert ratio(without, used, without, used) == Ratio(1.0, 1.0, 1.0)
    alone = ratio(costs, used, costs, used, paired=False)
    assert alone.value == 1 and alone.low < 0.5 and alone.high > 2


@given(COSTS.filter(lambda costs: len(costs) > 1), st.integers(0, 5))
def test_exchanging_the_methods_inverts_ratio_and_interval(costs: list[float], shift: int) -> None:
    theirs, used = np.roll(costs, shift) * 1.5, np.full(len(costs), 7.0)
    there, back = ratio(costs, used, theirs, used), ratio(theirs, used, costs, used)
    with np.errstate(divide="ignore"):
        inverse = 1 / np.array([back.value, back.high, back.low])
    np.testing.assert_allclose(np.array(there), inverse, rtol=1e-12)


@given(COSTS.filter(lambda costs: len(costs) > 1), st.floats(0.01, 100))
def test_costs_in_other_units_change_nothing_but_the_scale(costs: list[float], unit: float) -> None:
    used, theirs = np.full(len(costs), 9.0), np.arange(1.0, len(costs) + 1)
    one, other = ratio(costs, used, theirs, theirs), ratio(np.multiply(unit, costs), unit * used, theirs, theirs)
    np.testing.assert_allclose(np.multiply(unit, one), other, rtol=1e-9)


def test_a_constant_factor_between_paired_runs_is_known_exactly() -> None:
    costs = np.array([10.0, 400, 35, 70, 22])
    assert ratio(2 * costs, costs, costs, costs) == Ratio(2.0, 2.0, 2.0)


def test_fewer_than_five_runs_have_no_interval() -> None:
    costs = np.array([10.0, 400, 35, 70])
    assert ratio(2 * costs, costs, costs, costs) == Ratio(2.0, 0.0, INF)


def test_the_interval_is_infinite_at_the_top_if_draws_may_have_no_success_of_ours() -> None:
    found = ratio([10, INF, INF, INF, INF], [10] * 5, [20] * 5, [20] * 5)
    assert math.isfinite(found.value) and found.high == INF and 0 < found.low < found.value
    found = ratio([20] * 5, [20] * 5, [10, INF, INF, INF, INF], [10] * 5)
    assert found.low == 0 and found.value < found.high < INF


def test_draws_without_any_success_widen_the_interval_at_both_ends() -> None:
    costs, used = [10, INF, INF, INF, INF], [10] * 5
    assert ratio(costs, used, costs, used) == Ratio(1.0, 0.0, INF)


def test_one_run_has_an_interval_that_says_nothing() -> None:
    assert ratio([30], [30], [10], [10]) == Ratio(3.0, 0.0, INF)


def test_methods_that_never_succeed_have_no_finite_ratio() -> None:
    never, always, used = [INF] * 5, [5.0] * 5, [9.0] * 5
    assert ratio(never, used, always, used) == Ratio(INF, INF, INF)
    assert ratio(always, used, never, used) == Ratio(0.0, 0.0, 0.0)
    both = ratio(never, used, never, used)
    assert math.isnan(both.value) and both[1:] == (0.0, INF)


def test_with_many_runs_the_interval_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    theirs = rng.lognormal(3.0, 0.5, size=400)
    ours = theirs * rng.lognormal(0.2, 0.3, size=400)
    found = ratio(ours, ours, theirs, theirs, draws=5000)
    oracle = stats.bootstrap(
        (ours, theirs),
        lambda a, b, axis: a.mean(axis) / b.mean(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=5000,
        rng=rng,
    ).confidence_interval
    width = oracle.high - oracle.low
    assert found.low == pytest.approx(oracle.low, abs=0.1 * width)
    assert found.high == pytest.approx(oracle.high, abs=0.1 * width)


@pytest.mark.parametrize(("runs", "least"), [(5, 0.88), (15, 0.9)])
@pytest.mark.parametrize("success", [1.0, 0.7])
def test_intervals_cover_the_true_ratio_as_often_as_they_say(runs: int, least: float, success: float) -> None:
    """Log-normal run lengths of mean 100 and 125, failures at three times that: the true ratio is 0.8.

    Plain percentiles cover 0.8 at 5 runs and would not pass.
    """
    rng, covered = np.random.default_rng(11), []
    for _ in range(400):
        ours, our_used = _lognormal(rng, runs, 100.0, success)
        theirs, their_used = _lognormal(rng, runs, 125.0, success)
        found = ratio(ours, our_used, theirs, their_used, draws=1000)
        covered.append(found.low <= 0.8 <= found.high)
    assert least <= np.mean(covered) <= 0.99


def _lognormal(rng: np.random.Generator, runs: int, mean: float, success: float) -> tuple[Any, Any]:
    costs = mean * rng.lognormal(-0.125, 0.5, size=runs)  # E = exp(-0.125 + 0.5^2 / 2) = 1
    reached = rng.random(runs) < success
    reached[0] |= not reached.any()
    return np.where(reached, costs, INF), np.full(runs, 3 * mean)


def test_pairs_see_through_what_is_hard_for_both() -> None:
    rng = np.random.default_rng(3)
    hard = rng.lognormal(5.0, 1.0, size=15)
    ours, theirs = (hard * rng.lognormal(0.0, 0.1, size=15) for _ in range(2))
    pairs, alone = (ratio(ours, ours, theirs, theirs, paired=paired) for paired in (True, False))
    assert pairs.value == alone.value
    assert pairs.high / pairs.low < 1.2 < 2 < alone.high / alone.low


# ---- several cases --------------------------------------------------------------------------------------------------


def _sides(rng: np.random.Generator, runs: int, mean: float, factor: float, success: float = 1.0) -> Sides:
    ours, theirs = (_lognormal(rng, runs, m, success) for m in (factor * mean, mean))
    return Sides(*ours, *theirs, paired=True)


def test_the_mean_of_ratios_is_geometric() -> None:
    cases = [Sides([200], [200], [100], [100], True), Sides([100], [100], [800], [800], True)]
    assert mean_ratio(cases) == Ratio(pytest.approx(0.5), 0.0, INF)  # of 2 and 1/8; one run has no interval


def test_the_mean_of_one_ratio_is_that_ratio() -> None:
    case = _sides(np.random.default_rng(3), 7, 100.0, 0.8)
    assert mean_ratio([case]) == pytest.approx(statistics.ratio(case))


def test_more_cases_give_a_shorter_interval_and_exchanged_methods_the_inverse() -> None:
    rng = np.random.default_rng(8)
    cases = [_sides(rng, 6, 100.0, 0.8) for _ in range(8)]
    few, many = mean_ratio(cases[:2]), mean_ratio(cases)
    assert many.low < many.value < many.high and many.high / many.low < few.high / few.low
    back = mean_ratio([Sides(c.theirs, c.theirs_used, c.ours, c.ours_used, True) for c in cases])
    assert (1 / back.value, 1 / back.high, 1 / back.low) == pytest.approx(many)


def test_a_case_that_may_fail_leaves_its_side_of_the_mean_open() -> None:
    sure, used = [100.0] * 5, [100.0] * 5
    half = [100.0, INF, 100.0, INF, 100.0]
    fails, they_fail = Sides(half, used, sure, used, True), Sides(sure, used, half, used, True)
    good = Sides([50.0] * 5, used, sure, used, True)
    assert mean_ratio([good, fails]).high == INF and mean_ratio([good, fails]).low > 0
    assert mean_ratio([good, they_fail]).low == 0 and mean_ratio([good, they_fail]).high < 1
    assert mean_ratio([fails, they_fail])[1:] == (0.0, INF)


def test_fewer_than_five_runs_in_any_case_give_no_interval() -> None:
    rng = np.random.default_rng(1)
    assert mean_ratio([_sides(rng, 9, 100.0, 0.5), _sides(rng, 4, 100.0, 0.5)])[1:] == (0.0, INF)


@pytest.mark.parametrize("runs", [5, 15])
def test_intervals_of_means_cover_the_true_mean_as_often_as_they_say(runs: int) -> None:
    """Four cases of different sizes. With n - 1 degrees of freedom, as for one case, they would cover 0.99 at n = 5."""
    rng, covered = np.random.default_rng(12), []
    for _ in range(300):
        found = mean_ratio([_sides(rng, runs, mean, 0.8) for mean in (50.0, 100.0, 1000.0, 5000.0)], draws=1000)
        covered.append(found.low <= 0.8 <= found.high)
    assert 0.9 <= np.mean(covered) <= 0.985


# ---- of curves ------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_finite_quantiles_are_those_of_numpy(values: list[float], share: float) -> None:
    assert quantile(values, share) == pytest.approx(np.quantile(values, share))


def test_quantiles_are_infinite_where_an_infinite_value_has_weight() -> None:
    values = np.array([[1.0, 2, 3], [INF, 4, 5], [INF, INF, 7]])
    assert quantile(values, 0.5).tolist() == [INF, 4, 5]
    assert quantile(values, 0.25).tolist() == [INF, 3, 4]
    assert quantile(values, 0.75).tolist() == [INF, INF, 6]


def test_the_best_so_far_is_a_step_function_that_is_infinite_before_the_first_point() -> None:
    found = best_so_far([2, 5, 9], [7.0, 8.0, 1.0], np.array([1.0, 2, 4.9, 5, 8.9, 9, 100]))
    assert found.tolist() == [INF, 7, 7, 7, 7, 1, 1]
    assert best_so_far([], [], np.array([1.0, 2])).tolist() == [INF, INF]
    assert best_so_far([1, 2], [math.nan, 3.0], np.array([1.0, 2])).tolist() == [INF, 3]


def test_a_curve_ends_where_more_than_half_of_the_runs_have_ended() -> None:
    found = curve([[1], [1], [1]], [[5.0], [6.0], [7.0]], [10, 30, 20], target=0, points=5)
    assert found.cost[0] == 1 and found.cost[-1] == 20
    assert (found.low == 5.5).all() and (found.middle == 6).all() and (found.high == 6.5).all()


def test_a_curve_ends_at_the_median_cost_though_others_gave_up_before() -> None:
    costs, gaps = (
        [[1, 3], [1, 4], [1, 50], [1, 60], [1, 70]],
        [[9.0, 5.0], [9.0, 5.0], *[[9.0, 0.01 * k] for k in (1, 2, 3)]],
    )
    found = curve(costs, gaps, [3, 4, 50, 60, 70], target=0.1, points=9)
    assert found.cost[-1] == 70 and found.middle[-1] == 0.1  # what is below the target is on it
    assert found.high[-1] == 5.0


def test_runs_without_points_are_infinite_in_a_curve() -> None:
    found = curve([[1, 10], []], [[4.0, 2.0], []], [10, 0], target=0, points=3)
    assert np.isinf(found.middle).all() and found.low.tolist() == [INF] * 3
    assert [len(part) for part in curve([[], []], [[], []], [0, 0], target=0, points=3)] == [0] * 4
