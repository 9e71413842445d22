"""The benchmark of mixed searches has the problems that it says, and counts evaluations as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bench_mixed as bench
import mixed_categories as categories
import mixed_integers as integers
import mixed_tuning as tuning
import numpy as np
import pytest
from bbob_rows import Run, Setup, read_rows
from bbob_runs import Finished, Task
from typer.testing import CliRunner, Result

from esgroup import Searcher
from tests.scripts.bbob_made_up import run_rows

pytestmark = pytest.mark.scripts


def invoke(*words: Any) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


# ---- integers


def test_a_problem_of_coco_has_its_integers_bounds_optimum_and_start() -> None:
    pytest.importorskip("cocoex")
    problem = integers.MixedProblem(Run(1, 10, 2, None, 0))
    assert problem.whole == list(range(8))
    assert problem.upper.tolist() == [1, 1, 3, 3, 7, 7, 15, 15, 5, 5] and problem.lower.tolist() == [0] * 8 + [-5] * 2
    assert problem.steps0.tolist() == [0.5, 0.5, 0.75, 0.75, 1.75, 1.75, 3.75, 3.75, 2.5, 2.5]
    x0 = problem.x0
    assert (problem.lower <= x0).all() and (x0 <= problem.upper).all() and (x0[:8] == np.rint(x0[:8])).all()
    assert np.array_equal(x0, integers.MixedProblem(Run(1, 10, 2, 8, 5)).x0)  # for all popsizes and seeds
    rng = np.random.default_rng(1)
    assert min(problem(rng.uniform(problem.lower, problem.upper, (200, 10)).tolist())) > problem.optimum
    assert not Path("._bbob_problem_best_parameter.txt").exists()


@pytest.mark.parametrize("method", integers.METHODS)
def test_every_method_gets_near_the_optimum_of_the_sphere(method: str) -> None:
    for package in ("cocoex", "cma", "cmaes"):
        pytest.importorskip(package)
    rows = integers.solve(Task("a", Setup(method, "", 300, "none"), Run(1, 5, 1, None, 0)))
    assert len(rows) == 7 and all(row.evals is not None for row in rows[:5]) and rows[0].used <= 1500


def test_runs_are_written_and_resumed(tmp_path: Path) -> None:
    pytest.importorskip("cocoex")
    out = tmp_path / "rows.csv"
    words = ["mixint", "run", "esgroup", "--out", out, "--dims", 5, "--instances", 1, "--budget", 10, "--functions"]
    assert invoke(*words, "1,2").exit_code == 0
    assert len(read_rows(out)) == 14
    assert invoke(*words, "1-3").exit_code == 0
    assert len(read_rows(out)) == 21
    assert invoke(*words, "1", "--budget", 20).exit_code == 2  # the label stands for something else


def test_options_are_for_ours_only(tmp_path: Path) -> None:
    result = invoke("mixint", "run", "cma", "--out", tmp_path / "rows.csv", "--option", "mirrored=True")
    assert result.exit_code == 2 and "must be given for esgroup only" in result.output


def test_goals_are_targets_in_every_dimension_and_evaluations_against_cma() -> None:
    def rows(label: str, d5: int, d10: int) -> list[Any]:
        setup = Setup(label, "", 300, "none")
        return [
            row
            for dim, evals in ((5, d5), (10, d10))
            for instance in (1, 2)
            for row in run_rows(label, 1, dim, [evals] * 4, instance=instance, setup=setup)
        ]

    every = rows("esgroup", 80, 80) + rows("cma", 100, 100) + rows("cmawm", 50, 50)
    text, good = integers.report(every, "esgroup", ["cma", "cmawm"])
    assert good and "0.80" in text and "1.60" in text
    text, good = integers.report(rows("esgroup", 90, 90) + rows("cma", 100, 100), "esgroup", ["cma"])
    assert not good and "**missed**" in text
    with pytest.raises(ValueError, match="'none' must be one of"):
        integers.report(every, "esgroup", ["none"])


# ---- categories


def test_categories_count_as_their_papers_say() -> None:
    c = np.array([0, 0, 3, 0, 1])
    assert categories.ones(c) == 2 and categories.leading(c) == 3
    assert categories.leading(np.zeros(4, int)) == 0 and categories.leading(np.array([1, 0])) == 2
    f = categories.FUNCTIONS
    x, z = np.array([1.0, 2.0]), np.array([3.0, 0.0])
    assert f["sphere_com"](x, z, np.array([0, 4])) == 6
    assert f["rosenbrock_clo"](x, z, np.array([0, 4])) == 101
    assert f["mc_proximity"](x, z, np.array([0, 4])) == pytest.approx(1 + 1.2**2 + 0.8)
    assert f["sphere_int_com"](x, z, np.array([4, 0])) == 15
    assert f["ellipsoid_int_clo"](x, z, np.array([4, 0])) == pytest.approx(1 + 4 * 1e2 + 9 * 1e4 + 2)


@pytest.mark.parametrize("name", categories.FUNCTIONS)
def test_the_minimum_of_every_function_is_zero(name: str) -> None:
    x = np.ones(3) if "rosenbrock" in name else np.zeros(3)
    assert categories.FUNCTIONS[name](x, np.zeros(3), np.zeros(3, int)) == 0


def test_a_run_ends_at_its_target_or_its_budget() -> None:
    problem = categories.Problem("sphere_int_com", 2, 1, budget=1)
    assert problem.max_evals == 6 and (problem.z0 == np.rint(problem.z0)).all()
    bad = np.ones(2)
    for _ in range(5):
        assert problem(bad, bad, np.zeros(2, int)) == 4
    with pytest.raises(Finished, match="budget"):
        problem(bad, bad, np.zeros(2, int))
    with pytest.raises(Finished, match="target"):
        problem(0 * bad, 0 * bad, np.zeros(2, int))


@pytest.mark.parametrize("method", categories.METHODS)
def test_every_method_solves_a_small_problem(method: str) -> None:
    pytest.importorskip("cmaes")
    name = "sphere_com" if method == "catcma" else "sphere_int_com"
    row = categories.solve("a", method, name, 2, 1, 1000)
    assert row.ended == "target" and row.evals == row.used < 3000


def test_rows_of_categories_come_back_and_are_shown(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["categories", "run", "esgroup", "--out", out, "--sizes", 2, "--functions", "sphere_com", "--seeds"]
    assert invoke(*words, "1-2").exit_code == 0 and invoke(*words, "1-3").exit_code == 0
    rows = categories.read_category_rows(out)
    assert [row.seed for row in rows] == [1, 2, 3]
    lost = rows[0]._replace(label="b", evals=None)
    categories.append_category_rows(out, [lost])
    assert categories.read_category_rows(out)[3] == lost
    shown = invoke("categories", "table", out, "--labels", "esgroup,b")
    assert shown.exit_code == 0 and "3 of 3, " in shown.output and "0 of 1, inf" in shown.output
    assert invoke("categories", "table", out, "--labels", "c").exit_code == 2
    assert invoke(*words, "1", "--functions", "none").exit_code == 2


# ---- tuning


@pytest.mark.parametrize("name", tuning.TUNINGS)
def test_parameters_of_a_tuning_are_suggested_where_the_space_has_them_active(name: str) -> None:
    pytest.importorskip("optuna")
    from optuna.trial import FixedTrial

    space = tuning.TUNINGS[name].space
    search = Searcher(space, rng=1)
    points = [point for _ in range(3) for point in search.ask()]
    assert len({tuple(point) for point in points}) > 1  # some have parameters that others have not
    for point in points:
        assert tuning.suggested(FixedTrial(point), space) == point


@pytest.mark.parametrize("name", tuning.TUNINGS)
def test_a_value_of_a_tuning_is_the_mean_over_folds_and_the_same_again(name: str) -> None:
    pytest.importorskip("sklearn")
    folds = tuning.folds(name)
    assert len(folds) == tuning.FOLDS
    assert sum(len(truth) for _, _, _, truth in folds) == tuning.TUNINGS[name].rows
    point = Searcher(tuning.TUNINGS[name].space, rng=2).ask()[0]
    value = tuning.value(name, point)
    assert value == pytest.approx(np.mean([tuning.TUNINGS[name].loss(point, fold) for fold in folds]), rel=1e-12)
    assert tuning.value(name, point) == value > 0


def test_columns_are_scaled_by_the_rows_that_are_fitted() -> None:
    train, test = np.array([[0.0, 5.0], [4.0, 5.0]]), np.array([[8.0, 6.0]])
    fold = train, np.zeros(2), test, np.zeros(1)
    assert tuning.scaled("none", fold) is fold
    standard, _, other, _ = tuning.scaled("standard", fold)
    assert standard.tolist() == [[-1, 0], [1, 0]] and other.tolist() == [[3, 1]]
    between, _, other, _ = tuning.scaled("minmax", fold)
    assert between.tolist() == [[0, 0], [1, 0]] and other.tolist() == [[2, 1]]


def test_a_fit_that_fails_is_a_failed_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    assert np.isnan(tuning.value("svc", {}))  # has no kernel
    endless = tuning.TUNINGS["svc"]._replace(loss=lambda point, fold: np.inf)
    monkeypatch.setitem(tuning.TUNINGS, "svc", endless)
    assert np.isnan(tuning.value("svc", {}))


@pytest.mark.parametrize("method", tuning.METHODS)
def test_failures_cost_evaluations_and_a_run_ends_at_its_budget(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(tuning, "BUDGETS", (10, 20))
    points: list[Any] = []

    def made_up(name: str, point: Any) -> float:
        points.append(point)
        return np.nan if len(points) in (1, 12) else -len(points)

    problem = tuning.Recorder("svc", made_up)
    try:
        tuning.METHODS[method](problem, 1, {})
    except Finished as end:
        assert str(end) == "budget"
    assert len(points) == len(problem.values) == 20
    assert problem.best(10) == -10 and problem.best(20) == -20 and np.isnan(problem.best(1))
    assert [problem.failed(n) for n in (1, 10, 20)] == [1, 1, 2]


def made_up_tuning(label: str, seed: int, values: tuple[float, float, float]) -> list[tuning.TuningRow]:
    return [
        tuning.TuningRow(label, label, "", "svc", seed, n, value, 0, 240, 1.0, "budget")
        for n, value in zip(tuning.BUDGETS, values, strict=True)
    ]


def test_ranks_share_ties_put_failures_last_and_are_paired_by_seed() -> None:
    rows = [
        *made_up_tuning("a", 0, (3.0, 2.0, 1.0)),
        *made_up_tuning("b", 0, (np.nan, 2.0, 2.0)),
        *made_up_tuning("c", 0, (4.0, 1.0, 1.0)),
        *made_up_tuning("a", 1, (1.0, 1.0, 1.0)),
        *made_up_tuning("b", 1, (2.0, 2.0, 2.0)),
        *made_up_tuning("c", 1, (3.0, 3.0, 3.0)),
        *made_up_tuning("a", 2, (9.0, 9.0, 9.0)),  # a seed that the others have not
        *made_up_tuning("b", 2, (9.0, 9.0, 9.0))[:2],
    ]
    found = tuning.ranks(rows, ["a", "b", "c"])
    assert found.seeds == {"svc": [0, 1]}
    assert found.by_tuning["svc"][0].tolist() == [[1, 3, 2], [2.5, 2.5, 1], [1.5, 3, 1.5]]
    assert found.mean("a", [120]) == 1.75 and found.mean("a", [60, 240]) == 1.125
    difference = found.difference("a", "b", tuning.BUDGETS)
    # -3.5 / 3 with seed 0, -1 with seed 1; half of all draws have both, a quarter each of them twice
    assert difference == pytest.approx(((-3.5 / 3 - 1) / 2, -3.5 / 3, -1))
    text, good = tuning.report(rows, ["a", "b", "c"], "a", "b")
    assert good and "-1.08 [-1.17, -1.00]" in text
    assert not tuning.report(rows, ["a", "b", "c"], "b", "a")[1]
    with pytest.raises(ValueError, match="must be one of"):
        tuning.ranks(rows, ["a", "d"])


def test_runs_of_tunings_are_written_resumed_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    monkeypatch.setattr(tuning, "BUDGETS", (4, 8))
    out = tmp_path / "rows.csv"
    words = ["tuning", "run", "all", "--out", out, "--tunings", "svc", "--seeds"]
    assert invoke(*words, "1000", "--part", "2/3").exit_code == 0
    assert [row.label for row in tuning.read_tuning_rows(out)] == ["tpe"] * 2
    assert invoke(*words, "1000-1001").exit_code == 0
    rows = tuning.read_tuning_rows(out)
    assert len(rows) == 2 * 2 * 3 and len(tuning.finished(rows)) == 6
    assert all(row.used == 8 for row in rows)
    shown = invoke("tuning", "table", out)
    assert shown.exit_code in (0, 1) and "svc: seeds 1000-1001" in shown.output
    assert invoke("tuning", "table", out, "--labels", "esgroup,none").exit_code == 2
    assert invoke("tuning", "table", tmp_path / "none.csv").exit_code == 2
    assert invoke(*words, "1000", "--label", "a").exit_code == 2  # for one method only
    assert invoke("tuning", "run", "esgroup", "--out", out, "--option", "popsize=6").exit_code == 2  # another setup
    assert invoke("tuning", "run", "tpe", "--out", out, "--tunings", "none").exit_code == 2
