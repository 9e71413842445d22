"""Goals, tables and proposed commands of the bbob benchmark, on made-up runs."""

from __future__ import annotations

import math

import bbob_tables as tables
import numpy as np
import pytest
from bbob_rows import Row, Setup
from bbob_statistics import Cell, Comparison, Estimate

from tests.scripts.bbob_made_up import pair, run_rows, uniform

pytestmark = pytest.mark.scripts

FILES = {"esgroup": "ours.csv", "cma": "cma.csv"}
BIPOP, CMA_BIPOP = Setup("esgroup", "", 10_000, "bipop"), Setup("cma", "", 10_000, "bipop")


def report(rows: list[Row]) -> tuple[str, bool]:
    return tables.report(rows, "esgroup", "cma", FILES)


def goals(rows: list[Row]) -> dict[str, bool]:
    """Goals that were printed, and whether they were met."""
    lines = [
        line.strip("| ").split(" | ")
        for line in report(rows)[0].splitlines()
        if line.endswith(("| met |", "missed** |"))
    ]
    return {text: end == "met" for text, _, end in lines}


# ---- single runs with default populations

NINE_TEXT = "nine functions without f2, all dimensions: ratio <= 0.78"
CELL_TEXT = "ten functions: no cell with an interval above 1.05"


def test_goals_of_single_runs_are_met_at_their_limits() -> None:
    rows = uniform(0.78, tables.NINE, [20, 40]) + uniform(0.25, [2], [20]) + uniform(3.0, [24], [20])
    dims = "d = 20: targets hit, at least the baseline's", "d = 40: targets hit, at least the baseline's"
    assert goals(rows) == dict.fromkeys([NINE_TEXT, "f2, d = 20: ratio <= 0.25", CELL_TEXT, *dims], True)
    assert report(rows)[1]


def test_goals_of_single_runs_are_missed_above_their_limits() -> None:
    rows = uniform(0.781, tables.NINE, [20]) + uniform(0.251, [2], [20])
    assert not goals(rows)[NINE_TEXT] and not goals(rows)["f2, d = 20: ratio <= 0.25"] and goals(rows)[CELL_TEXT]
    assert not report(rows)[1]


def test_f2_is_asked_for_in_twenty_dimensions_alone() -> None:
    assert list(goals(uniform(0.5, [1, 2], [5]))) == [
        NINE_TEXT,
        CELL_TEXT,
        "d = 5: targets hit, at least the baseline's",
    ]


def test_the_nine_are_judged_without_f2() -> None:
    assert goals(uniform(0.78, [1], [5]) + uniform(9.0, [2], [5]))[NINE_TEXT]
    assert not goals(uniform(0.5, [2], [5]))[NINE_TEXT]  # nothing measured


def cell_with(low: int, high: int, function: int = 13) -> list[Row]:
    """A cell whose interval goes from low to high thousandths."""
    return pair(function, 20, [low] * 7, [1000] * 7, 1) + pair(function, 20, [high] * 7, [1000] * 7, 2)


@pytest.mark.parametrize(("low", "function", "met"), [(1051, 13, False), (1049, 13, True), (1051, 3, True)])
def test_no_cell_of_the_ten_may_have_its_interval_above_the_limit(low: int, function: int, met: bool) -> None:
    rows = uniform(0.5, [1], [20]) + cell_with(low, 1200, function)
    assert goals(rows)[CELL_TEXT] is met
    assert report(rows)[1] is met


def test_a_surely_worse_cell_is_bold_and_a_doubtful_one_has_a_question_mark() -> None:
    text, _ = report(cell_with(1060, 1200) + cell_with(900, 1300, 14) + cell_with(1060, 1200, 3))
    assert "| f13 * | **1.13 [1.06, 1.20]** | 1.13 [1.06, 1.20] | 14 : 14 |" in text
    assert "| f14 * | 1.08 [0.90, 1.30] ? | 1.08 [0.90, 1.30] | 14 : 14 |" in text
    assert "| f3 | 1.13 [1.06, 1.20] | 1.13 [1.06, 1.20] | 14 : 14 |" in text
    assert f"| {CELL_TEXT} | f13 d20 | **missed** |" in text


def test_every_dimension_needs_the_targets_of_the_baseline() -> None:
    rows = uniform(0.5, [1], [5, 10]) + pair(24, 5, [1, 2], [1, 2, 3]) + pair(23, 10, [1, 2], [1])
    assert not goals(rows)["d = 5: targets hit, at least the baseline's"]
    assert goals(rows)["d = 10: targets hit, at least the baseline's"]
    text, good = report(rows)
    assert not good and "| d = 5: targets hit, at least the baseline's | 23 : 24 | **missed** |" in text
    assert "- f24 d5: targets 2 : 3" in text


def test_targets_and_runs_to_the_last_are_counted_by_dimension() -> None:
    text, _ = report(uniform(0.5, [1], [5]) + pair(24, 10, [1], [1, 2]))
    assert "| 5 | 21 (1.000) | 21 (1.000) | 3 (1.000) | 3 (1.000) |" in text
    assert "| 10 | 1 (0.143) | 2 (0.286) | 0 (0.000) | 0 (0.000) |" in text
    assert "| all | 22 (0.786) | 23 (0.821) | 3 (0.750) | 3 (0.750) |" in text


# ---- population sizes


def test_goals_of_population_sizes_are_met_at_their_limits_and_missed_above() -> None:
    low = uniform(0.9, [1, 8], [5], [8, 64])
    assert report(low)[1] and list(goals(low)) == [
        "popsize 8: ratio <= 0.9", "popsize 64: ratio <= 0.9", "popsizes: no cell with an interval above 1.1",
        "popsizes: no run ends on divergence",
    ]  # fmt: skip
    high = goals(uniform(0.9, [1], [5], [8]) + uniform(1.101, [1, 8], [5], [64]))
    assert high["popsize 8: ratio <= 0.9"] and not high["popsize 64: ratio <= 0.9"]
    assert not high["popsizes: no cell with an interval above 1.1"]


def test_one_bad_cell_among_good_ones_is_found() -> None:
    rows = uniform(0.5, [1, 8, 10], [5], [8, 64]) + uniform(1.2, [10], [20], [64])
    text, good = report(rows)
    assert not good and "| popsizes: no cell with an interval above 1.1 | f10 d20 popsize 64 | **missed** |" in text
    assert "| f10 d20 | - | **1.20 [1.20, 1.20]** |" in text


def test_a_run_of_ours_that_diverges_misses_a_goal_and_one_of_the_baseline_does_not() -> None:
    rows = uniform(0.5, [1], [5], [8, 64])
    theirs = [row._replace(ended="divergence") if row.label == "cma" else row for row in rows]
    assert goals(theirs)["popsizes: no run ends on divergence"]
    ours = [
        row._replace(ended="divergence") if (row.label, row.popsize, row.instance) == ("esgroup", 64, 2) else row
        for row in rows
    ]
    assert not goals(ours)["popsizes: no run ends on divergence"]
    assert "| 64 | 0.50 [0.50, 0.50] | 21 : 21 of 21 | 3 : 3 of 3 | 1 |" in report(ours)[0]


def test_a_method_that_gives_up_is_seen_beside_its_ratio() -> None:
    text, _ = report(pair(1, 5, [5], [10] * 7, popsize=16))
    assert "| 16 | 0.50 | 1 : 7 of 7 | 0 : 1 of 1 | 0 |" in text


def test_default_and_given_population_sizes_have_tables_of_their_own() -> None:
    found = goals(uniform(0.5, [1], [5], [None, 8]))
    assert NINE_TEXT in found and "popsize 8: ratio <= 0.9" in found and len(found) == 6


# ---- restarts


def restarted(ours: list[int], theirs: list[int]) -> list[Row]:
    """Runs with these numbers of targets hit, an instance each."""
    rows = []
    for instance, (a, b) in enumerate(zip(ours, theirs, strict=True), 1):
        rows += run_rows("esgroup", 3, 5, [100] * a, instance, setup=BIPOP)
        rows += run_rows("cma", 3, 5, [100] * b, instance, setup=CMA_BIPOP)
    return rows


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [([7, 3], [3, 7], [True, True]), ([6, 6], [7, 3], [True, False]), ([7, 0], [6, 6], [False, True])],
)
def test_restarts_need_the_targets_and_the_runs_of_the_baseline(
    ours: list[int], theirs: list[int], met: list[bool]
) -> None:
    rows = restarted(ours, theirs)
    assert list(goals(rows).values()) == met and report(rows)[1] is all(met)


def test_runs_to_the_last_target_are_compared_by_fishers_test() -> None:
    text, _ = report(restarted([7, 7, 7, 3], [7, 2, 3, 3]))
    # p of tables as far from the middle as 3, 1 against 1, 3 with margins of 4: (1 + 16 + 16 + 1) / 70
    assert "Runs to 1e-8: 3 and 1 of 4, p = 0.49 (Fisher's exact test, two-sided)." in text
    assert "| f3 | 24 : 15 (3 : 1) | 24 : 15 (3 : 1) |" in text


def test_evaluations_are_no_goal_of_restarts() -> None:
    slow = run_rows("esgroup", 1, 5, [5000], setup=BIPOP) + run_rows("cma", 1, 5, [10], setup=CMA_BIPOP)
    assert report(slow)[1] and "<=" not in report(slow)[0]


# ---- more runs


def test_doubtful_cells_are_listed_with_the_commands_that_double_their_instances() -> None:
    rows = cell_with(900, 1300, 14) + cell_with(900, 1300, 9) + cell_with(1060, 1200) + uniform(0.5, [1], [5])
    text, _ = report(rows)
    assert "- f9 d20: ratio 1.08 [0.90, 1.30]\n- f14 d20: ratio 1.08 [0.90, 1.30]\n\n" in text
    for method, out in (("esgroup", "ours.csv"), ("cma", "cma.csv")):
        words = f"run {method} --out {out} --budget 3000 --functions 9,14 --dims 20 --instances 3-4\n"
        assert f"python scripts/bench_bbob.py {words}" in text


def test_a_command_repeats_all_that_a_label_stands_for() -> None:
    setup = Setup("esgroup", "mirrored=True;structure=heisenberg:k1=4,k2=4", 500, "none")
    rows = run_rows("cma", 1, 5, [10], 3, 16, setup=Setup("cma", "", 500, "none"))
    rows += run_rows("my own", 1, 5, [20], 3, 16, seed=4, setup=setup)
    text, _ = tables.report(rows, "my own", "cma", {"my own": "a b.csv"})
    assert (
        "run esgroup --out 'a b.csv' --label 'my own' --option mirrored=True --option structure=heisenberg:k1=4,k2=4 "
        "--budget 500 --functions 1 --dims 5 --instances 4 --popsizes 16 --seed 4\n" in text
    )


def test_nothing_is_proposed_where_nothing_is_in_doubt() -> None:
    assert "Needs more runs" not in report(uniform(0.5, [1], [5]))[0]
    assert "Needs more runs" not in report(cell_with(1060, 1200))[0]  # surely worse


def test_rectangles_cover_each_cell_once_and_no_other() -> None:
    rng = np.random.default_rng(0)
    every = [Cell(f, d, p) for f in (1, 8, 10) for d in (5, 10) for p in (None, 8, 64)]
    for _ in range(50):
        cells = [cell for cell in every if rng.random() < 0.6]
        covered = [Cell(f, d, p) for fs, ds, ps in tables.rectangles(cells) for f in fs for d in ds for p in ps]
        assert sorted(covered, key=str) == sorted(cells, key=str)
    assert len(tables.rectangles(every)) == 1


# ---- the whole


def test_two_labels_of_one_method_are_compared_without_goals() -> None:
    rows = [
        row for i in (1, 2) for row in run_rows("plain", 1, 5, [20] * 7, i) + run_rows("again", 1, 5, [10], i, seed=1)
    ]
    text, good = tables.report(rows, "again", "plain", {})
    assert good and "No goals: both are runs of esgroup." in text and "Needs more runs" not in text
    assert "| f1 * | 0.50 [0.50, 0.50] | 0.50 [0.50, 0.50] | 2 : 14 |" in text


def test_the_report_says_what_was_compared() -> None:
    rows = uniform(0.5, [1, 8], [5]) + run_rows("esgroup", 1, 5, [1], 9, ended="error: ValueError: x")
    text, _ = report(rows)
    assert "6 runs of each on the same problems: 2 functions, d = 5, instances 1-3." in text
    assert (
        "- esgroup: esgroup, 3000 d evaluations, restarts none, seeds 0; 7 runs, 4 s; ended by tolfun 6, error 1"
        in text
    )


def test_rare_reasons_to_end_are_counted_together() -> None:
    rows = [row for i in range(1, 10) for row in run_rows("a", 1, 5, [1], i, ended=f"reason {min(i, 8)}")]
    assert "ended by reason 8 2, reason 1 1, reason 2 1, reason 3 1, reason 4 1, others 3" in tables.describe(rows, "a")


def test_an_unknown_label_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"label 'x' must be one of \['cma', 'esgroup'\]"):
        tables.report(uniform(1.0, [1], [5]), "x", "cma", FILES)


def test_different_budgets_are_refused() -> None:
    rows = run_rows("esgroup", 1, 5, [1], setup=Setup("esgroup", "", 100, "none")) + run_rows("cma", 1, 5, [1])
    with pytest.raises(ValueError, match="'esgroup' and 'cma' must have the same budget, got 100 and 3000"):
        report(rows)


def test_a_goal_without_data_is_missed() -> None:
    goal = tables.at_most("ratio", Estimate(math.nan), 0.5)
    assert goal == tables.Goal("ratio <= 0.5", "-", False)


@pytest.mark.parametrize(("numbers", "text"), [([1, 2, 3, 5], "1-3,5"), ([4], "4"), ([1, 3, 4], "1,3-4"), ([], "")])
def test_numbers_are_shortened_to_spans(numbers: list[int], text: str) -> None:
    assert tables.spans(numbers) == text


def test_the_ten_are_the_nine_and_f2() -> None:
    assert tables.TEN == (1, 2, 6, 8, 9, 10, 11, 12, 13, 14) and set(tables.TEN) - set(tables.NINE) == {2}
    assert Comparison.of(uniform(1.0, tables.TEN, [5]), "esgroup", "cma").functions == list(tables.TEN)
