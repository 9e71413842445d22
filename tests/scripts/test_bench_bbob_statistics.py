"""Ratios of evaluations and their intervals, on made-up runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bbob_rows import TARGETS, Row
from bbob_statistics import DRAWS, Cell, Comparison, Counts, Estimate

from tests.scripts.bbob_made_up import pair, run_rows

pytestmark = pytest.mark.scripts


def compared(rows: list[Row]) -> Comparison:
    return Comparison.of(rows, "esgroup", "cma")


# ---- ratios


def test_a_cell_is_the_geometric_mean_over_instances_and_targets_that_both_hit() -> None:
    rows = pair(1, 5, [10, 40, None, 7], [20, 20, 5]) + pair(1, 5, [80], [10], instance=2)
    assert compared(rows).ratio.value == pytest.approx((0.5 * 2.0 * 8.0) ** (1 / 3), rel=1e-14)


def test_every_cell_weighs_the_same_however_many_targets_it_has() -> None:
    rows = pair(1, 5, [10] * 7, [20] * 7) + pair(2, 5, [80], [10]) + pair(2, 40, [20], [10])
    assert compared(rows).ratio.value == pytest.approx((0.5 * 8 * 2) ** (1 / 3), rel=1e-14)
    assert compared(rows).only(dims=[5]).ratio.value == pytest.approx(math.sqrt(0.5 * 8), rel=1e-14)
    assert compared(rows).only([2], [40]).ratio.value == pytest.approx(2.0, rel=1e-14)


def test_population_sizes_are_cells_of_their_own() -> None:
    rows = pair(1, 5, [10], [20], popsize=8) + pair(1, 5, [40], [20], popsize=64) + pair(1, 5, [60], [20])
    comparison = compared(rows)
    assert comparison.popsizes == [None, 8, 64]
    ratios = [comparison.only(popsizes=[size]).ratio.value for size in comparison.popsizes]
    assert ratios == pytest.approx([3.0, 0.5, 2.0], rel=1e-14)


def test_a_cell_without_a_common_hit_is_left_out() -> None:
    comparison = compared(pair(1, 5, [10], [20]) + pair(2, 5, [], [20]) + pair(6, 5, [20], []))
    assert math.isnan(comparison.only([2]).ratio.value) and math.isnan(comparison.only([6]).ratio.value)
    assert comparison.ratio.value == pytest.approx(0.5, rel=1e-14)


def test_the_last_of_repeated_rows_counts() -> None:
    rows = pair(1, 5, [10], [20]) + run_rows("esgroup", 1, 5, [60])
    assert compared(rows).ratio.value == pytest.approx(3.0, rel=1e-14)


def test_a_run_that_lacks_a_target_is_not_counted() -> None:
    rows = pair(1, 5, [10], [20]) + pair(1, 5, [10], [90], instance=2)[1:]
    assert compared(rows).ratio.value == pytest.approx(0.5, rel=1e-14)
    assert compared(rows).counts.runs == 1


def test_labels_without_a_common_problem_are_refused() -> None:
    rows = run_rows("esgroup", 1, 5, [1]) + run_rows("cma", 1, 5, [1], popsize=8)
    with pytest.raises(ValueError, match="'esgroup' and 'cma' must have a problem in common"):
        compared(rows)


def test_the_seeds_of_two_labels_are_paired_in_their_order() -> None:
    rows = run_rows("esgroup", 1, 5, [30], seed=7) + run_rows("esgroup", 1, 5, [10], seed=2)
    rows += run_rows("again", 1, 5, [10], seed=5)
    assert Comparison.of(rows, "esgroup", "again").ratio.value == pytest.approx(1.0, rel=1e-14)
    rows += run_rows("again", 1, 5, [10], seed=9)
    assert Comparison.of(rows, "esgroup", "again").ratio.value == pytest.approx(math.sqrt(3), rel=1e-14)


def test_counts_are_of_every_target_and_run_that_both_have() -> None:
    rows = pair(1, 5, [1, 2, 3], [1] * 7) + pair(20, 5, [1], []) + pair(3, 10, [1] * 7, [1] * 6)
    rows += run_rows("esgroup", 4, 5, [1] * 7)  # not run by the baseline
    assert compared(rows).only(dims=[5]).counts == Counts((4, 7), 14, (0, 1), 2)
    assert compared(rows).counts == Counts((11, 13), 21, (1, 1), 3)


def test_a_reason_to_end_is_found_among_others_and_not_in_a_longer_word() -> None:
    rows = run_rows("esgroup", 1, 5, [], ended="tolfun+divergence") + run_rows("cma", 1, 5, [], ended="nodivergence")
    rows += run_rows("esgroup", 1, 5, [], 2, ended="nodivergence") + run_rows("cma", 1, 5, [], 2, ended="divergence")
    assert compared(rows).ended("divergence") == (1, 1)


# ---- intervals


def random_rows(rng: np.random.Generator, function: int, instances: int, spread: float = 0.3) -> list[Row]:
    """Runs whose log ratios are N(0, spread^2) and independent; some targets are missed."""
    rows = []
    for instance in range(1, instances + 1):
        ours = np.rint(1e6 * np.exp(spread * rng.normal(size=7))).astype(int).tolist()
        rows += pair(function, 5, ours[: rng.integers(3, 8)], [10**6] * 7, instance)
    return rows


def test_the_interval_is_that_of_a_bootstrap_written_out() -> None:
    rng = np.random.default_rng(1)
    comparison = compared(random_rows(rng, 1, 4) + random_rows(rng, 8, 6) + pair(8, 5, [], [], 7))
    means = np.zeros(DRAWS)
    for cell, pairs in comparison.pairs.items():
        drawn = np.random.default_rng([cell.function, 5, 0]).integers(len(pairs), size=(DRAWS, len(pairs)))
        for i, which in enumerate(drawn):
            means[i] += np.mean([log for k in which for log in pairs[k].log_ratios()]) / 2
    expected = np.exp(np.quantile(means, [0.025, 0.975]))
    assert comparison.ratio[1:] == pytest.approx(tuple(expected), rel=1e-12)


def test_intervals_cover_the_truth_nearly_as_often_as_they_say() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        rows = []
        for instance in range(1, 16):
            ours = round(1e6 * math.exp(0.3 * rng.normal()))
            rows += pair(1, 5, [ours] * 7, [10**6] * 7, instance)
        _, low, high = compared(rows).ratio
        covered += low <= 1 <= high
    # without Student's quantile and the factor 15/14 of the variance a little less than 0.95
    assert 0.89 * 200 <= covered <= 0.97 * 200


def test_the_targets_of_an_instance_are_drawn_together() -> None:
    many = [row for i in range(1, 6) for row in pair(1, 5, [10 * i] * 7, [30] * 7, i)]
    one = [row for i in range(1, 6) for row in pair(1, 5, [10 * i], [30], i)]
    assert compared(many).ratio == pytest.approx(compared(one).ratio, rel=1e-12)


def test_the_seeds_of_an_instance_are_drawn_together() -> None:
    once = [row for i in range(1, 6) for row in pair(1, 5, [10 * i], [30], i)]
    twice = once + [row._replace(seed=1) for row in once]
    assert compared(twice).ratio == pytest.approx(compared(once).ratio, rel=1e-12)


def test_one_instance_has_no_interval() -> None:
    alone = compared(pair(1, 5, [10] * 7, [20, 30, 40]) + pair(1, 5, [], [20], instance=2)).ratio
    assert not math.isnan(alone.value) and math.isnan(alone.low) and math.isnan(alone.high)
    assert math.isnan(Estimate(0.5).low)


def test_instances_without_a_common_hit_do_not_spoil_the_interval() -> None:
    rows = pair(1, 5, [10], [20]) + pair(1, 5, [40], [20], 2)
    rows += [row for i in range(3, 9) for row in pair(1, 5, [], [20], i)]
    assert compared(rows).ratio == pytest.approx((1.0, 0.5, 2.0), rel=1e-12)  # many draws are of nothing


def test_a_cell_has_the_same_interval_alone_and_among_others() -> None:
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 1, 5)
    alone = compared(rows).ratio
    assert compared(random_rows(rng, 8, 5) + rows).only([1]).ratio == alone
    assert set(compared(rows).pairs) == {Cell(1, 5)} and len(TARGETS) == 7
