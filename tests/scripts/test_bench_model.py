"""The benchmark of searches with models counts evaluations as it says, and its tables say what the rows hold."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bbob_runs
import bench_model as bench
import model_runs as runs
import model_tables as tables
import numpy as np
import pytest
from bbob_rows import Run
from model_runs import ModelRow, ModelSetup, ModelTask
from typer.testing import CliRunner, Result

pytestmark = pytest.mark.scripts

SETUP = ModelSetup("esgroup", "", 100, "", 0.0, 0.0)


def invoke(*words: Any) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


def task(method: str = "esgroup", function: int = 1, dim: int = 3, **setup: Any) -> ModelTask:
    return ModelTask("a", SETUP._replace(method=method, **setup), Run(function, dim, 1, None, 0))


def row(label: str, evals: int | None, *gaps: float, function: int = 8, instance: int = 1, dim: int = 5) -> ModelRow:
    return ModelRow(label, function, dim, instance, 0, evals, evals or 500, 9, "x", 0.5, gaps, (), *SETUP)


# ---- runs


@pytest.mark.parametrize("method", runs.METHODS)
def test_every_method_finds_the_minimum_of_the_sphere(method: str) -> None:
    for package in ("ioh", "cma", "nlopt"):
        pytest.importorskip(package)
    found = runs.solve_with_gaps(task(method, budget=400))
    assert found.ended == "target" and found.evals == found.used <= 1200
    assert len(found.gaps) == 4 and all(a >= b for a, b in zip(found.gaps, found.gaps[1:], strict=False))
    assert found.gaps[-1] <= 1e-8


def test_gaps_are_those_after_so_many_evaluations() -> None:
    pytest.importorskip("ioh")
    fun = runs.GapRecorder(task(budget=30))
    rng, seen = np.random.default_rng(1), []
    with pytest.raises(runs.Finished, match="budget"):
        while True:
            seen += fun.generation(rng.uniform(-4, 4, (7, 3)))
    everything = [*seen, *[math.inf] * 90]
    assert fun.count == 90 and fun.asks == 13
    assert fun.all_gaps()[0] == pytest.approx(min(everything[:30]) - fun.optimum)
    assert fun.all_gaps()[1] == pytest.approx(fun.gap) and len(fun.all_gaps()) == 2


def test_noise_multiplies_the_gap_and_the_run_is_judged_without() -> None:
    pytest.importorskip("ioh")
    fun, plain = runs.GapRecorder(task(noise=0.3)), runs.GapRecorder(task())
    points = np.random.default_rng(2).uniform(-4, 4, (200, 3))
    noisy, exact = np.array(fun.generation(points)), np.array(plain.generation(points))
    logs = np.log((noisy - fun.optimum) / (exact - fun.optimum))
    assert abs(logs.mean()) < 5 * 0.3 / math.sqrt(200) and logs.std() == pytest.approx(0.3, rel=0.25)
    assert fun.gap == plain.gap


@pytest.mark.parametrize(("batch", "points"), [("5", 5), ("1", 1), ("0.5x", 3), ("1x", 7), ("2x", 14)])
def test_a_batch_is_the_number_of_points_in_an_ask_or_of_populations(batch: str, points: int) -> None:
    pytest.importorskip("ioh")
    assert runs.points_an_ask(batch, popsize=7) == points
    found = runs.solve_with_gaps(task(budget=10, batch=batch))  # 4 + floor(3 ln 3) = 7
    assert found.used == 30 and found.asks == math.ceil(30 / points)


def test_a_batch_has_a_point_at_least() -> None:
    assert runs.points_an_ask("0.1x", popsize=7) == 1
    for wrong in ("0", "0x", "1.5", "x", "-1", "1e3", "half"):
        with pytest.raises(ValueError, match=f"number of points.*got '{wrong}'"):
            runs.points_an_ask(wrong, popsize=7)


def test_targets_are_noted_where_they_are_first_hit() -> None:
    pytest.importorskip("ioh")
    assert len(runs.TARGETS) == 51 and runs.TARGETS[::5] == tuple(float(f"1e{2 - i}") for i in range(11))
    found = runs.solve_with_gaps(task(function=8, budget=400))
    assert found.evals == found.hits[-1] == found.used and len(found.hits) == 51
    assert list(found.hits) == sorted(found.hits)
    for many, gap in zip(runs.CHECKPOINTS, found.gaps, strict=False):
        assert sum(hit <= many * 3 for hit in found.hits) == sum(gap <= target for target in runs.TARGETS)
    short = runs.solve_with_gaps(task(function=8, budget=100))
    assert short.evals is None and short.hits == tuple(hit for hit in found.hits if hit <= 300)


# ---- restarts


def test_a_run_that_needs_no_restart_is_the_same_with_them() -> None:
    pytest.importorskip("ioh")
    alone = runs.solve_with_gaps(task(function=8, budget=400, options="model=quadratic"))
    restarted = runs.solve_with_gaps(task(function=8, budget=400, options="model=quadratic;restarts=bipop"))
    assert alone.ended == restarted.ended == "target"
    assert (alone.hits, alone.asks) == (restarted.hits, restarted.asks)


@pytest.mark.parametrize("method", ["esgroup", "cma"])
def test_restarts_go_on_where_a_run_ends_and_spend_the_budget_exactly(method: str) -> None:
    pytest.importorskip("ioh"), pytest.importorskip("cma")
    hard = task(method, function=20, dim=2, budget=1000)
    alone = runs.solve_with_gaps(hard)
    assert alone.evals is None and alone.used < 1500 and alone.ended != "budget"
    restarted = runs.solve_with_gaps(hard._replace(setup=hard.setup._replace(options="restarts=bipop")))
    assert restarted.hits[: len(alone.hits)] == alone.hits
    assert (restarted.used, restarted.ended) == (2000, "budget") or restarted.used == restarted.evals


def test_restarts_end_at_the_target() -> None:
    pytest.importorskip("ioh")
    found = runs.solve_with_gaps(task(function=3, dim=2, budget=5000, options="model=quadratic;restarts=bipop"))
    alone = runs.solve_with_gaps(task(function=3, dim=2, budget=5000, options="model=quadratic"))
    assert found.ended == "target" and found.used == found.evals > alone.used and alone.evals is None


# ---- time


@pytest.mark.parametrize("method", runs.METHODS)
def test_a_run_out_of_time_is_cut_and_counts_with_its_budget(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ioh", "cma", "nlopt"):
        pytest.importorskip(package)
    looks = itertools.count()  # a second from one look at the clock to the next
    slow = SimpleNamespace(monotonic=lambda: float(next(looks)))
    monkeypatch.setattr(bbob_runs, "time", slow)
    found = runs.solve_with_gaps(task(method, function=15, seconds=10.0))
    assert found.cut and found.ended == "time" and found.asks == 10 <= found.used
    assert found.evals is None and found.cost == 300
    assert len(found.gaps) == sum(3 * many <= found.used for many in (10, 30, 100))  # what comes later is not known
    assert not runs.solve_with_gaps(task(method, function=15, budget=10)).cut


# ---- files


def test_rows_are_written_and_read_again(tmp_path: Path) -> None:
    rows = [row("a", 17, 3.5, 1e-9)._replace(hits=(3, 3, 17)), row("b", None, 2.0)._replace(batch="0.5x", seconds=2.5)]
    runs.append_model_rows(tmp_path / "rows.csv", rows)
    assert runs.read_model_rows(tmp_path / "rows.csv") == rows


def test_a_file_of_an_earlier_version_is_refused_and_says_so(tmp_path: Path) -> None:
    columns = [name for name in ModelRow._fields if name not in ("hits", "seconds")]
    (tmp_path / "old.csv").write_text(",".join(columns) + "\n")
    refused = invoke("table", tmp_path / "old.csv")
    assert refused.exit_code == 2 and "earlier version" in refused.stderr and "hits" in refused.stderr


def test_runs_are_resumed_and_a_label_stands_for_one_thing(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    out = tmp_path / "rows.csv"
    words = ["run", "esgroup", "--out", out, "--dims", 3, "--instances", 1, "--budget", 10, "--functions"]
    assert invoke(*words, "1").exit_code == 0
    again = invoke(*words, "1,8")
    assert again.exit_code == 0 and "1 runs to do, 1 in" in again.stderr
    assert len(runs.read_model_rows(out)) == 2
    other = invoke(*words, "1", "--noise", 0.1)
    assert other.exit_code == 2 and "choose another --label" in other.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cma", "--batch", 3], "for esgroup only"),
        (["newuoa", "--option", "restarts=bipop"], "for esgroup and cma"),
        (["esgroup", "--batch", "2y"], "number of points"),
        (["esgroup", "--batch", "1x", "--option", "restarts=bipop"], "with restarts"),
        (["esgroup", "--option", "model"], "key=value"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, words: list[Any], message: str) -> None:
    refused = invoke("run", *words, "--out", tmp_path / "rows.csv")
    assert refused.exit_code == 2 and message in refused.stderr


def test_processes_make_no_difference(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    found = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.csv"
        words = ["run", "esgroup", "--option", "model=quadratic", "--out", out, "--dims", 3, "--instances", "1-2"]
        assert invoke(*words, "--budget", 30, "--functions", "3,8", "--jobs", jobs).exit_code == 0
        found.append({row.run: row._replace(cpu=0.0) for row in runs.read_model_rows(out)})
        again = invoke(*words, "--budget", 30, "--functions", "3,8", "--jobs", jobs)
        assert "0 runs to do, 4 in" in again.stderr
    assert len(found[0]) == 4 and found[0] == found[1]


# ---- tables


def test_unsolved_runs_count_with_their_budget() -> None:
    assert row("a", 40).cost == 40 and row("a", None).cost == 500
    ours, theirs = [row("a", None), row("a", 50, instance=2)], [row("b", 250), row("b", 100, instance=2)]
    assert tables.estimate([tables.log_ratios(ours, theirs)]).value == pytest.approx(1.0)  # sqrt(2 / 2)
    assert tables.solved(ours) == "fail (1/2)" and tables.solved(theirs) == "175"


def test_a_mean_over_cells_weighs_them_equally_and_one_instance_has_no_interval() -> None:
    cells = [{1: [math.log(2), math.log(2)], 2: [math.log(2)]}, {1: [math.log(0.5)], 2: [math.log(0.5)]}]
    found = tables.estimate(cells)
    assert found.value == pytest.approx(1.0) and found.low == pytest.approx(1.0) and found.high == pytest.approx(1.0)
    assert math.isnan(tables.estimate([{1: [0.3]}]).low)
    wide = tables.estimate([{i: [math.log(i)] for i in range(1, 6)}])
    assert 1 < wide.low < wide.value < wide.high < 5


def test_the_table_compares_with_the_baseline_and_with_the_best_of_the_others() -> None:
    rows = [row("model", 50), row("cma", 200), row("lq", 100), row("bfgs", None), row("model", 30, function=1)]
    text = tables.evaluations(rows, "model", "cma", ["lq", "bfgs", "newuoa"])
    assert "| 5, f8 | 50 | fail (0/1) | 200 | 100 | 0.25 | 0.50 | lq | 10.00 |" in text
    assert "| 5 | without f1, f2 | 0.25 | 0.50 | 1 of 1 | 0 of 1 | 1 of 1 | 1 of 1 |" in text
    assert "| 5 | all | 0.25, 1 of 2 functions | 0.50, 1 of 2 functions | 2 of 2 |" in text
    with pytest.raises(ValueError, match="label 'plain'"):
        tables.evaluations(rows, "plain", "cma", [])


def test_the_best_of_the_others_is_chosen_on_runs_in_common() -> None:
    rows = [row("model", 400), row("model", 10, instance=2)]
    rows += [row("whole", 200), row("whole", 5, instance=2), row("part", 10, instance=2)]
    assert tables.best_other(tables.by_cell(rows), "model", ["part", "whole"], (5, 8)) == "whole"


def test_tables_say_what_was_not_run_and_what_was_cut() -> None:
    rows = [row("model", 50, 1.0, function=f, dim=d, instance=i) for f in (1, 2, 8) for d in (20, 40) for i in (1, 2)]
    slow = [one for one in rows if one.dim == 20 and one[1:4] != (8, 20, 2)]
    rows += [one._replace(label="cobyqa") for one in slow]
    rows.append(row("cobyqa", None, 2.0, dim=40, instance=1)._replace(ended="time", seconds=60.0))
    for text in (tables.evaluations(rows, "model", "cma", ["cobyqa"]), tables.gaps(rows, "model")):
        assert (
            "compared: cobyqa, d = 20: f8 (1 of 2 runs); cobyqa, d = 40: f1-2; cobyqa, d = 40: f8 (1 of 2 runs)."
            in text
        )
        assert "with their budget; their gaps end where they were cut: cobyqa, d = 40: 1 of 1 after 60 s." in text
    assert "| 40, f8 | 50 | fail (0/1, 1 cut) |" in tables.evaluations(rows, "model", "cma", ["cobyqa"])
    whole = [one for one in rows if one.label == "model"]
    text = tables.evaluations(whole, "model", "cma", [])
    assert "compared" not in text and "cut" not in text


def test_gaps_below_the_target_are_equal_and_equal_ones_count_half() -> None:
    assert [tables.score(*pair) for pair in ((1.0, 2.0), (2.0, 1.0), (1e-9, 0.0), (3.0, 3.0))] == [1.0, 0.0, 0.5, 0.5]
    rows = [row("model", 50, 1.0, 1e-9), row("cma", 60, 2.0, 0.0), row("model", 50, 3.0, 0.0, function=9)]
    text = tables.gaps(rows, "model")
    assert "| cma | 10 d | 1 of 1 | 1.00 |" in text and "| cma | 30 d | 0.5 of 1 | 0.50 |" in text


def test_commands_say_the_tables(tmp_path: Path) -> None:
    runs.append_model_rows(tmp_path / "rows.csv", [row("model", 50, 1.0), row("cma", 200, 2.0)])
    for command in ("table", "gaps"):
        found = invoke(command, tmp_path / "rows.csv")
        assert found.exit_code == 0 and "5, f8" in found.stdout
    assert invoke("table", tmp_path / "none.csv").exit_code == 2


def test_gaps_are_of_the_functions_that_are_chosen(tmp_path: Path) -> None:
    runs.append_model_rows(tmp_path / "rows.csv", [row("model", 50, 1.0, function=f) for f in (8, 9, 10)])
    found = invoke("gaps", tmp_path / "rows.csv", "--functions", "8,10-12")
    assert "5, f8" in found.stdout and "5, f10" in found.stdout and "5, f9" not in found.stdout
    refused = invoke("gaps", tmp_path / "rows.csv", "--functions", "15")
    assert refused.exit_code == 2 and "label 'model'" in refused.stderr
