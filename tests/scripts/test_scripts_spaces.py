"""The benchmark of searches beyond vectors counts and judges correctly, mostly on made-up runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_spaces
import figure_wishart
import numpy as np
import pytest
import spaces_matrix_gaussian
import spaces_mixture
import spaces_univariate
import spaces_wishart
import typer
from figure_wishart import Trace
from spaces_mixture import TASKS
from spaces_runs import Plan, Row, Run, Step, failures, generations, median, run, solved
from spaces_table import Markdown, summary, verdict
from typer.testing import CliRunner

import esgroup

pytestmark = pytest.mark.scripts


def made_up(*bests: float, reasons: str = "") -> Iterator[Step]:
    """Generations of ten with these best values; the last one gives the reasons to stop."""
    for i, best in enumerate(bests):
        yield Step(10 * (i + 1), best, reasons if i == len(bests) - 1 else "")


def reached(evals: int, seconds: float = 1.0) -> Run:
    return Run(evals, 0.0, seconds, True)


def failed(evals: int = 99, reasons: str = "", seconds: float = 1.0) -> Run:
    return Run(evals, 1.0, seconds, False, reasons)


# ---- runs


def test_a_run_ends_with_the_generation_that_reaches_the_target() -> None:
    found = run(made_up(3.0, 0.5, 0.1), max_evals=1000, target=0.5)
    assert (found.evals, found.best, found.reached, found.cost) == (20, 0.5, True, 20)


def test_a_run_ends_with_the_generation_that_spends_the_budget() -> None:
    found = run(made_up(3.0, 2.0, 0.1), max_evals=15, target=0.5)
    assert (found.evals, found.reached, found.cost) == (20, False, math.inf)


def test_a_search_that_stops_before_the_target_has_failed_with_its_reasons() -> None:
    found = run(made_up(3.0, 2.0, reasons="tolx"), max_evals=1000, target=0.5)
    assert (found.evals, found.reached, found.cost, found.reasons) == (20, False, math.inf, "tolx")


def test_a_run_without_cpu_time_left_ends_after_a_generation() -> None:
    assert run(made_up(3.0, 2.0, 1.0), max_evals=1000, target=0.5, max_seconds=0.0).evals == 10


def test_generations_of_a_searcher_end_when_it_wants_to_stop() -> None:
    search = esgroup.Searcher(esgroup.Wishart(np.eye(2)), rng=0, max_iters=3)
    steps = list(generations(search, lambda w: np.trace(w, axis1=1, axis2=2)))
    assert [step.evals for step in steps] == [search.popsize * i for i in (1, 2, 3)]
    assert [step.reasons for step in steps] == ["", "", "max_iters"]
    assert steps[-1].best == search.best_f


def test_the_median_is_infinite_if_half_of_the_runs_failed() -> None:
    assert median([reached(10), reached(30), failed()]) == 30
    assert median([reached(10), failed()]) == math.inf


def test_failures_are_counted_by_how_they_ended() -> None:
    runs = [reached(10), failed(reasons="tolx"), failed(), failed(reasons="tolx")]
    assert failures(runs) == " (failed: 2 by tolx, 1 by budget)"
    assert solved(runs) == "1 of 4, median 10 evaluations (failed: 2 by tolx, 1 by budget)"
    assert failures([reached(10)]) == ""


def test_a_plan_has_the_usual_seeds_unless_told_otherwise() -> None:
    assert list(Plan().seeds(3)) == [100, 101, 102]
    assert list(Plan(first=7, count=2).seeds(15)) == [7, 8]
    assert list(Plan(quick=True).seeds(15)) == [100, 101]


# ---- verdicts


@pytest.mark.parametrize(
    ("ours", "theirs", "share", "met"),
    [(150, 100, 1.5, True), (151, 100, 1.5, False), (50, 100, 0.6, True), (61, 100, 0.6, False)],
)
def test_a_share_of_the_best_peer_is_the_limit(
    monkeypatch: pytest.MonkeyPatch, ours: int, theirs: int, share: float, met: bool
) -> None:
    costs = {0.1: theirs, 0.3: 2 * theirs, 1.0: 3 * theirs}
    monkeypatch.setattr(spaces_wishart, "search", lambda *_: reached(ours))
    monkeypatch.setattr(spaces_wishart, "search_with_cma", lambda p, seed, sigma0, *_: reached(costs[sigma0]))
    row = spaces_wishart.compare("f", {100: None}, 1000, 1e-6, Plan(), None, share)
    assert row.met is met
    assert f"ratio {ours / theirs:.2f}" in row.measured


def test_a_search_that_fails_misses_the_goal_even_if_the_peer_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces_wishart, "search", lambda *_: failed(reasons="stagnation"))
    monkeypatch.setattr(spaces_wishart, "search_with_cma", lambda *_: failed())
    row = spaces_wishart.compare("f", {100: None}, 1000, 1e-6, Plan(), None, 1.5)
    assert row.met is False
    assert "stagnation" in row.measured


def test_noise_that_drives_n_away_is_a_missed_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces_wishart, "concentrations", lambda dim, *_: ([1e4, 10.0 ** (5 + dim), 1e4], None))
    assert [row.met for row in spaces_wishart.noise_rows(Plan())] == [False, False, False]
    monkeypatch.setattr(spaces_wishart, "concentrations", lambda dim, *_: ([1e4, 9e7, 1e4], 7))
    assert [row.met for row in spaces_wishart.noise_rows(Plan())] == [True, True, True]


def test_matrices_need_fewer_evaluations_on_every_instance() -> None:
    fewer = spaces_matrix_gaussian.more_evaluations
    assert fewer([reached(10), reached(20)], [reached(11), failed()])
    assert not fewer([reached(10), reached(20)], [reached(11), reached(20)])
    assert not fewer([failed()], [failed()])


def test_the_full_vector_search_loses_if_it_takes_ten_times_as_long_or_is_not_there_by_then() -> None:
    slower = spaces_matrix_gaussian.more_time
    assert slower(reached(10, seconds=1.0), reached(10, seconds=10.0))
    assert slower(reached(10, seconds=1.0), failed(seconds=10.0))
    assert not slower(reached(10, seconds=1.0), reached(10, seconds=9.0))
    assert not slower(failed(), failed(seconds=10.0))


def test_more_solved_runs_beat_fewer_evaluations() -> None:
    beats = spaces_univariate.beats
    assert beats([reached(900), reached(900)], [reached(10), failed()])
    assert beats([reached(10), reached(10)], [reached(20), reached(20)])
    assert not beats([reached(20), reached(20)], [reached(20), reached(20)])
    assert not beats([reached(1), failed()], [reached(900), reached(900)])


# ---- functions


@pytest.mark.parametrize(
    ("name", "count", "value"), [("himmelblau", 4, 0.0), ("camel", 2, -1.031628453489877), ("rastrigin", 12, 2.0),
                                 ("vincent", 36, -1.0)]
)  # fmt: skip
def test_the_optima_of_a_task_are_as_many_and_as_good_as_known(name: str, count: int, value: float) -> None:
    task = TASKS[name]
    assert len(task.optima) == count
    np.testing.assert_allclose(task.fun(task.optima), value, atol=1e-12)
    box, moves = np.array(task.box), 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1]])
    assert np.all((task.optima > box[:, 0]) & (task.optima < box[:, 1]))
    assert all((task.fun(optimum + moves) > value).all() for optimum in task.optima)


def test_an_optimum_is_found_if_a_point_is_near_it_in_every_coordinate() -> None:
    optima = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert spaces_mixture.number_found(optima, np.array([[9e-4, -9e-4], [1.0, 1.002]])) == 1
    assert spaces_mixture.number_found(optima, np.array([[0.0, 0.0], [0.0, 1e-9]])) == 1
    assert spaces_mixture.number_found(optima, np.empty((0, 2))) == 0


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (spaces_univariate.ratio(37.0), 37.0),
        (spaces_univariate.divergence(0.83), 0.83),
        (spaces_univariate.skewed(7.0), 7.0),
    ],
)
def test_the_functions_of_one_number_are_least_and_zero_at_their_optimum_and_asymmetric(f: Any, at: float) -> None:
    values = f(np.array([[at], [at * 0.99], [at * 1.01]]))
    assert values[0] == pytest.approx(0.0, abs=1e-14)
    assert values[1:].min() > 0
    assert abs(values[1] - values[2]) > 1e-3 * values[2]


@pytest.mark.parametrize("stages", [False, True])
def test_waiting_times_have_the_divergence_zero_at_the_truth_only(stages: bool) -> None:
    m, p, n = 0.14, 0.97, 7.0
    f = spaces_univariate.waiting(m, p, n, stages=stages)
    first = np.array([m, m, m, m * 1.1])
    counts = np.array([n, n + 1, n, n])
    x = np.column_stack([first / counts if stages else first, [p, p, 0.9, p], counts])
    values = f(x)
    assert values[0] == pytest.approx(0.0, abs=1e-12)
    assert values[1:].min() > 1e-4


# ---- tables


def test_the_last_column_says_met_missed_or_nothing() -> None:
    assert [verdict(met) for met in (True, False, None)] == ["met", "missed", "-"]


def test_the_summary_counts_goals_and_names_those_missed() -> None:
    rows = [Row("a", "1", "2", True), Row("b", "1"), Row("c", "1", "0", False)]
    assert summary(rows) == "1 of 2 goals met; missed: c"


def test_markdown_is_there_row_by_row_and_bars_do_not_break_it(tmp_path: Path) -> None:
    table = Markdown(tmp_path / "t.md", "command")
    table.title("Space")
    table.row(Row("1/2 |WQ - I|", "7", "8", True))
    lines = (tmp_path / "t.md").read_text().splitlines()
    assert lines[-4:] == ["", "| what | measured | goal |  |", "|---|---|---|---|", r"| 1/2 \|WQ - I\| | 7 | 8 | met |"]
    table.close("done")


def test_all_spaces_are_run_unless_some_are_chosen() -> None:
    assert bench_spaces.chosen("") == ["wishart", "matrix_gaussian", "mixture", "univariate"]
    assert bench_spaces.chosen("mixture, wishart") == ["mixture", "wishart"]
    with pytest.raises(typer.BadParameter, match=r"'vector'.* wishart"):
        bench_spaces.chosen("vector")


@pytest.mark.parametrize(("met", "status"), [(True, 0), (None, 0), (False, 1)])
def test_the_command_prints_what_it_measures_and_fails_if_a_goal_is_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, met: bool | None, status: int
) -> None:
    def rows(plan: Plan) -> Iterator[Row]:
        yield Row(f"seeds {list(plan.seeds(9))}", "quick" if plan.quick else "long", "goal", met)

    monkeypatch.setattr(bench_spaces, "SPACES", {"wishart": ("Title", rows)})
    app = typer.Typer()
    app.command()(bench_spaces.main)
    out = tmp_path / "out.md"
    result = CliRunner().invoke(app, ["--first", "5", "--seeds", "2", "--quick", "--out", str(out)])
    assert result.exit_code == status
    for text in (result.output, out.read_text()):
        assert all(part in text for part in ("Title", "seeds [5, 6]", "quick", verdict(met), "goals met"))


# ---- figure


def test_the_median_line_keeps_the_last_value_of_runs_that_ended() -> None:
    runs = [
        Trace(10, "log", 1, [10, 20, 30], [5.0, 3.0, 1.0]),
        Trace(10, "log", 2, [10], [0.1]),
        Trace(10, "log", 3, [10, 20], [6.0, 4.0]),
    ]
    evals, values = figure_wishart.middle(runs)
    assert evals == [10, 20, 30]
    assert values.tolist() == [5.0, 3.0, 1.0]


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    runs = [Trace(10, "log", 1, [10, 20], [5.0, 1 / 3]), Trace(50, "log", 1, [7], [1e-300])]
    figure_wishart.write(tmp_path / "runs.csv", runs)
    assert figure_wishart.read(tmp_path / "runs.csv") == runs
