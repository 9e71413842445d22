"""From runs to rows: what is counted, in which order, and against what."""

import math
from typing import Any

import pytest

from esgroup.compare.records import Cost, Ended, Improvement, RunRecord
from esgroup.compare.report import statistics, summary
from esgroup.compare.report.summary import Overall, Ratio, overall, summarize

INF = math.inf


def a_run(method: str = "ours", *, seed: int = 0, hit: float = 100, used: int | None = None, **other: Any) -> RunRecord:
    """A run that reached the gaps 1 at half of the cost and 0.1 at the whole, or gave up at a gap of 0.5."""
    reached = math.isfinite(hit)
    spent = used if used is not None else int(hit) if reached else 1000
    half = hit / 2 if reached else spent / 2
    fields: dict[str, Any] = {
        "problem": "bowl",
        "dim": 4,
        "method": method,
        "seed": seed,
        "ended": Ended.TARGET if reached else Ended.STOPPED,
        "message": "",
        "evals": spent,
        "gradients": 0,
        "size": 4,
        "best": 2.1 if reached else 2.5,
        "minimum": 2.0,
        "cost": Cost.VALUES,
        "cpu": 0.003,
        "cpu_fun": 0.001,
        "versions": "",
        "targets": (1.0, 0.1),
        "hits": (half, hit),
        "trajectory": tuple(map(Improvement, (1, int(half), spent), (0, 0, 0), (50.0, 1.0, 0.1 if reached else 0.5))),
    }
    return RunRecord(**(fields | other))


def failed(method: str = "ours", *, seed: int = 0, message: str = "ValueError: bad", **other: Any) -> RunRecord:
    """A run that raised after three evaluations without a value."""
    fields = {"ended": Ended.ERROR, "message": message, "best": INF, "trajectory": (), "hits": (INF, INF)} | other
    return a_run(method, seed=seed, hit=INF, used=3, **fields)


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_a_row_has_the_statistics_of_its_runs() -> None:
    runs = [a_run(seed=0, hit=100), a_run(seed=1, hit=300), a_run(seed=2, hit=INF, used=500)]
    (row,) = summarize(runs, "ours")
    assert (row.problem, row.dim, row.method, row.counts) == ("bowl", 4, "ours", Cost.VALUES)
    assert (row.runs, row.solved, row.target, row.known) == (3, 2, 0.1, True)
    assert row.median == 300 and row.expected == (100 + 300 + 500) / 2
    assert row.best == 0.1 and row.failures == ()


def test_time_is_of_all_runs_per_evaluation_with_and_without_the_function() -> None:
    runs = [
        a_run(seed=0, hit=100, gradients=50, cpu=3.0, cpu_fun=1.0),
        a_run(seed=1, hit=350, cpu=7.0, cpu_fun=4.0),
    ]
    (row,) = summarize(runs, "ours")
    assert row.cpu == (2.0 + 3.0) / 500 and row.cpu_whole == 10.0 / 500


def test_runs_without_a_time_or_without_evaluations_do_not_spoil_the_time_of_others() -> None:
    runs = [a_run(seed=0, hit=100, cpu=3.0, cpu_fun=1.0), a_run(seed=1, cpu=math.nan), failed(seed=2, evals=0, cpu=0.0)]
    assert summarize(runs, "ours")[0].cpu == pytest.approx((2.0 - 0.001) / 100)
    assert math.isnan(summarize([failed(evals=0)], "ours")[0].cpu)


def test_rows_are_by_problem_as_they_appear_then_dimension_then_method() -> None:
    cells = [("z", 8, "b"), ("z", 2, "a"), ("y", 8, "a"), ("z", 8, "a"), ("y", 8, "b"), ("z", 2, "b")]
    rows = summarize([a_run(method, problem=problem, dim=dim) for problem, dim, method in cells], "a")
    found = [(row.problem, row.dim, row.method) for row in rows]
    assert found == [("z", 2, "b"), ("z", 2, "a"), ("z", 8, "b"), ("z", 8, "a"), ("y", 8, "b"), ("y", 8, "a")]


def test_of_runs_of_the_same_cell_the_last_one_counts() -> None:
    (row,) = summarize([a_run(hit=100), a_run(seed=1, hit=40), a_run(hit=60)], "ours")
    assert row.runs == 2 and row.median == 50


def test_ratios_are_to_the_reference_in_pairs_of_the_same_seed() -> None:
    costs, order = {0: 100, 1: 900, 2: 400, 3: 50, 4: 70}, (2, 0, 4, 1, 3)
    runs = [a_run("theirs", seed=seed, hit=costs[seed]) for seed in costs]
    runs += [a_run(seed=seed, hit=costs[seed] * 3) for seed in order]  # in another order: seeds make the pairs
    theirs, ours = summarize(runs, "theirs")
    assert theirs.ratio is None
    assert ours.ratio == Ratio(3.0, 3.0, 3.0)


def test_ratios_of_runs_with_other_seeds_are_not_paired() -> None:
    runs = [a_run("theirs", seed=seed, hit=100 + 50 * seed) for seed in range(4)]
    runs += [a_run(seed=seed + 1, hit=100 + 50 * seed) for seed in range(4)]
    costs = [100, 150, 200, 250]
    sides = statistics.Sides(costs, costs, costs, costs, paired=False)
    assert summarize(runs, "theirs")[1].ratio == statistics.ratio(sides)


def test_there_is_no_ratio_where_either_never_got_there() -> None:
    good, bad = [a_run("a"), a_run("b", hit=INF)], [a_run("a", dim=5, hit=INF), a_run("b", dim=5)]
    assert [row.ratio for row in summarize(good + bad, "a")] == [None] * 4
    assert [row.ratio for row in summarize([a_run("a"), a_run("b", dim=5)], "a")] == [None] * 2


def test_messages_of_runs_that_went_wrong_are_grouped() -> None:
    runs = [failed(seed=0), failed(seed=1, message="", ended=Ended.KILLED), failed(seed=2), a_run(seed=3, message="no")]
    assert summarize(runs, "ours")[0].failures == ("ValueError: bad (2 runs)", "killed (1 run)")


def test_what_is_left_is_a_value_where_the_minimum_is_not_known() -> None:
    runs = [
        a_run(seed=seed, hit=INF, minimum=math.nan, trajectory=(), best=best) for seed, best in enumerate((3, -7, 5))
    ]
    (row,) = summarize(runs, "ours")
    assert not row.known and row.best == 3


def test_what_is_left_of_a_run_is_its_last_gap_or_else_nothing() -> None:
    assert summary.last_gap(a_run(hit=INF, minimum=1e9, best=1e9)) == 0.5  # the trajectory has it without rounding
    assert summary.last_gap(a_run(hit=INF, trajectory=())) == 0.5
    assert summary.last_gap(failed()) == summary.last_gap(failed(best=math.nan)) == INF


def test_a_method_counts_gradients_if_any_of_its_runs_does() -> None:
    runs = [a_run(seed=0), a_run(seed=1, cost=Cost.GRADIENTS)]
    assert summarize(runs, "ours")[0].counts is Cost.GRADIENTS
    assert overall(runs, "ours")[0].counts == (Cost.VALUES, Cost.GRADIENTS)


def test_a_run_that_nothing_is_known_of_changes_neither_target_nor_minimum() -> None:
    lost = a_run(
        seed=1, ended=Ended.KILLED, message="gone", targets=(), hits=(), trajectory=(), minimum=math.nan, used=0
    )
    (row,) = summarize([lost, a_run(seed=0, hit=300)], "ours")
    assert (row.target, row.known, row.solved, row.runs) == (0.1, True, 1, 2)
    assert row.expected == 600  # it is charged with the longest run
    (only,) = summarize([lost], "ours")
    assert math.isnan(only.target) and only.solved == 0
    assert overall([lost, a_run(seed=0)], "ours")[0].pairs == 4


def test_targets_must_agree_on_a_problem() -> None:
    runs = [a_run(seed=0), a_run(seed=1, targets=(1.0, 0.2))]
    with pytest.raises(
        ValueError, match=r"the same in all runs of bowl in dimension 4, got \[1.0, 0.1\] and \[1.0, 0.2\]"
    ):
        summarize(runs, "ours")
    summarize([runs[0], runs[1]._replace(dim=5)], "ours")


def test_the_reference_must_be_one_of_the_methods() -> None:
    for function in (summarize, overall):
        with pytest.raises(ValueError, match="reference must be one of the methods a, b, got 'c'"):
            function([a_run("a"), a_run("b")], "c")


# ---- all together ---------------------------------------------------------------------------------------------------


def test_all_together_is_the_geometric_mean_over_what_both_solve() -> None:
    runs = [
        *(a_run("ref", dim=dim, hit=hit) for dim, hit in ((2, 100), (3, 100), (4, INF), (5, 100))),
        *(a_run("ours", dim=dim, hit=hit) for dim, hit in ((2, 200), (3, 800), (4, 100), (5, INF))),
    ]
    ref, ours = overall(runs, "ref")
    one = Ratio(1.0, 1.0, 1.0)
    assert ref == Overall("ref", (Cost.VALUES,), one, 3, 7, 8)  # who gives up has reached the easier target
    assert ours._replace(ratio=None) == Overall("ours", (Cost.VALUES,), None, 2, 7, 8)
    assert ours.ratio is not None and ours.ratio.value == pytest.approx(4.0)  # of 2 and 8
    assert ours.ratio[1:] == (0.0, INF)  # one run has no interval


def test_all_together_has_the_interval_of_its_only_case() -> None:
    hits = {"ref": (100, 140, 90, 200, 130), "ours": (80, 150, 60, 100, 110)}
    runs = [a_run(method, seed=seed, hit=hit) for method, row in hits.items() for seed, hit in enumerate(row)]
    assert overall(runs, "ref")[1].ratio == summarize(runs, "ref")[1].ratio


def test_a_case_is_solved_by_more_than_half_of_the_runs() -> None:
    runs = [a_run("ref", seed=seed) for seed in range(4)]
    runs += [a_run(seed=seed, hit=50 if seed < 2 else INF) for seed in range(4)]
    row = summarize(runs, "ref")[1]
    assert (row.solved, row.solves) == (2, False) and row.ratio is not None
    assert overall(runs, "ref")[1].cells_both == 0
    more = [*runs[:-2], a_run(seed=2, hit=70), runs[-1]]
    assert summarize(more, "ref")[1].solves and overall(more, "ref")[1].cells_both == 1


def test_all_together_has_no_ratio_without_a_common_success() -> None:
    _, ours = overall([a_run("ref"), a_run("ours", hit=INF)], "ref")
    assert ours.ratio is None and ours.cells_both == 0 and (ours.solved_pairs, ours.pairs) == (1, 2)


def test_easier_targets_count_as_pairs_and_missing_runs_as_not_reached() -> None:
    runs = [*(a_run("ref", seed=seed) for seed in range(3)), a_run("ours", hit=INF, hits=(50.0, INF))]
    assert [(one.solved_pairs, one.pairs) for one in overall(runs, "ref")] == [(6, 6), (1, 6)]
