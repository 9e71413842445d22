"""The benchmark with constraints: a point counts once, only feasible ones hit targets, tables say what was found."""

from __future__ import annotations

import math
from pathlib import Path

import bench_constrained as bench
import constrained_runs as runs
import constrained_tables as tables
import numpy as np
import pytest
from bbob_rows import Row, Run, Setup, read_rows
from bbob_runs import Finished, Task
from bbob_statistics import Cell, Outcome
from typer.testing import CliRunner, Result

pytestmark = pytest.mark.scripts


def invoke(*words: object) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


def half_plane(**changes: object) -> runs.Case:
    """|x|^2 where x_0 >= 1: the minimum is 1 at (1, 0)."""
    box = np.array([[-5.0, 5.0]] * 2)
    case = runs.Case(
        fun=lambda x: float(x @ x),
        constraints=lambda x: np.array([1 - x[0], x[1] - 9]),
        n_constraints=2,
        minimum=1.0,
        x0=np.array([3.0, 2.0]),
        sigma0=np.array([1.0, 0.5]),
        bounds=box,
        region=box,
    )
    return case._replace(**changes)


def recorder(case: runs.Case | None = None, max_evals: int = 100, tolerance: float = 0.0) -> runs.FeasibleRecorder:
    return runs.FeasibleRecorder(case or half_plane(), max_evals, (10.0, 1.0, 1e-4), tolerance)


def task(method: str, run: Run | None = None, budget: int = 500, tolerance: str = "1e-9") -> Task:
    return Task(method, Setup(method, f"tolerance={tolerance}", budget, "none"), run or Run(1, 2, 1, None, 0))


# ---- counting


def test_only_feasible_points_hit_targets() -> None:
    fun = recorder()
    fun([0.0, 0.0])
    fun([0.999, 0.0])
    assert (fun.count, fun.hits) == (2, [])
    fun([3.0, 0.0])
    fun([1.0, 0.5])
    assert (fun.count, fun.hits) == (4, [3, 4])
    assert fun.evals() == [3, 4, None]
    with pytest.raises(Finished, match="target"):
        fun([1.0, 0.0])


def test_the_tolerance_decides_what_is_feasible() -> None:
    for tolerance, hits in ((1e-3, 2), (1e-6, 0)):
        fun = recorder(tolerance=tolerance)
        fun([0.9995, 0.2])
        assert len(fun.hits) == hits


def test_a_constraint_without_value_is_not_obeyed() -> None:
    fun = recorder(half_plane(constraints=lambda x: np.array([math.nan, -1.0])))
    fun([1.0, 0.0])
    assert fun.hits == []


def test_a_point_out_of_bounds_is_not_feasible() -> None:
    fun = recorder(half_plane(bounds=np.array([[-5.0, 5.0], [0.1, 5.0]])))
    fun([1.0, 0.0])
    assert fun.hits == []
    fun([1.0, 0.1])
    assert fun.hits == [2, 2]


def test_value_and_constraints_of_a_point_count_once() -> None:
    fun, x = recorder(), np.array([2.0, 2.0])
    g = fun.constraints(x)
    assert fun(x) == 8 and fun.count == 1
    g[0] = 7.0  # the caller's copy
    assert fun.constraints(x).tolist() == [-1, -7]
    values, constraints = fun.several([x, x + 1])
    assert values.tolist() == [8, 18] and constraints.tolist() == [[-1, -7], [-2, -6]]
    assert fun.count == 2


def test_the_budget_ends_a_run_and_so_does_standing_still() -> None:
    fun = recorder(max_evals=3)
    fun([5.0, 5.0])
    fun([5.0, 4.0])
    with pytest.raises(Finished, match="budget"):
        fun([5.0, 3.0])
    fun = recorder(max_evals=3)
    with pytest.raises(Finished, match="repetition"):
        for i in range(10_000):
            fun([5.0, 5.0 if i > 100 else 5 - 1e-3 * (i // 60)])
    assert fun.count == 2 and i > 2000


def test_whole_numbers_are_rounded_before_a_point_is_evaluated() -> None:
    fun = recorder(half_plane(integer=(1,)))
    assert fun([2.0, 0.4]) == 4 == fun([2.0, -0.3])
    assert fun.count == 1


# ---- methods


@pytest.mark.parametrize("method", ["cma", "cobyqa", "slsqp", "de", "isres"])
def test_every_peer_solves_an_easy_problem_and_is_stopped_there(method: str) -> None:
    pytest.importorskip({"cma": "cma", "isres": "pymoo"}.get(method, "scipy"))
    case = half_plane()
    fun = recorder(case, 9000, 1e-9)
    with pytest.raises(Finished, match="target"):
        runs.METHODS[method](task(method, budget=4500), fun, case)
    assert fun.hits[-1] == fun.count <= 9000


def test_scaled_coordinates_are_those_of_the_problem_and_back() -> None:
    case = half_plane(bounds=np.array([[1.0, 5.0], [-3.0, 7.0]]))
    scaled = runs.Scaled(fun := recorder(case), case)
    assert scaled.start.tolist() == [0, 0] and scaled.point(scaled.start) == pytest.approx(case.x0)
    assert scaled.point(np.array([-1.0, 1.0])).tolist() == [1, 7]
    assert scaled.value(np.array([0.5, 0.0])) == 20 and scaled.constraints(np.array([0.5, 0.0])).tolist() == [-3, -7]
    assert fun.count == 1
    free = runs.Scaled(fun, case._replace(bounds=None))
    assert free.point(np.array([0.5, 9.0])).tolist() == [0.5, 9] and free.start is case.x0 and free.bounds is None


@pytest.mark.parametrize("method", ["cma", "cobyqa", "slsqp", "de", "isres"])
def test_no_peer_goes_beyond_its_budget(method: str) -> None:
    pytest.importorskip({"cma": "cma", "isres": "pymoo"}.get(method, "scipy"))
    case = half_plane()
    fun = recorder(case, 2)
    with pytest.raises(Finished, match="budget"):
        runs.METHODS[method](task(method, budget=1), fun, case)
    assert fun.count == 2


def test_options_of_esgroup_are_without_the_tolerance() -> None:
    setup = Setup("esgroup", "tolerance=0;mirrored=True", 10, "none")
    assert runs.esgroup_options(Task("a", setup, Run(1, 2, 1, None, 0))) == {"mirrored": True}


# ---- problems


@pytest.mark.parametrize("function", [1, 9, 22, 35, 48, 54])
def test_the_suites_optimum_is_feasible_with_the_stated_number_of_active_constraints(function: int) -> None:
    pytest.importorskip("cocoex")
    case = runs.suite_case(Run(function, 5, 2, None, 0))
    best = runs.CocoProblem(Run(function, 5, 2, None, 0)).optimum()
    active = (1, 2, 6, 8, 11, 21)[(function - 1) % 6]
    g = case.constraints(best)
    assert len(g) == case.n_constraints == active * 3 // 2
    assert g.max() <= 0 and (g > -1e-9).sum() == active
    assert case.constraints(case.x0).max() <= 0 and case.fun(case.x0) > case.minimum + 100
    rng = np.random.default_rng(1)
    near = best + 10.0 ** rng.uniform(-6, 0, (300, 1)) * rng.standard_normal((300, 5))
    feasible = [x for x in [*near, *np.linspace(best, case.x0, 50)] if case.constraints(x).max() <= 0]
    assert len(feasible) > 5 and min(map(case.fun, feasible)) >= case.minimum


def test_nothing_is_left_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cocoex")
    monkeypatch.chdir(tmp_path)
    runs.suite_case(Run(3, 5, 1, None, 0))
    assert list(tmp_path.iterdir()) == [] and Path.cwd() == tmp_path


def test_designs_start_in_their_bounds_with_whole_numbers_and_each_seed_elsewhere() -> None:
    for number in range(1, len(runs.DESIGNS) + 1):
        case, other = (runs.design_case(Run(number, 1, seed, None, 0)) for seed in (1, 2))
        low, high = case.region.T
        assert (case.x0 >= low).all() and (case.x0 <= high).all() and (case.x0 != other.x0).any()
        assert (case.x0[list(case.integer)] % 1 == 0).all()
        assert case.sigma0.shape == case.x0.shape and len(case.constraints(case.x0)) == case.n_constraints


# ---- the command


def test_runs_are_appended_and_not_repeated(tmp_path: Path) -> None:
    pytest.importorskip("cocoex")
    out = tmp_path / "rows.csv"
    words = ["suite", "slsqp", "--out", out, "--dims", 5, "--instances", 1, "--budget", 200, "--tolerance", 1e-4]
    result = invoke(*words, "--functions", "1")
    assert result.exit_code == 0, result.output
    first = read_rows(out)
    assert [row.target for row in first] == list(runs.SUITE_TARGETS)
    assert {(row.label, row.options, row.budget) for row in first} == {("slsqp", "tolerance=0.0001", 200)}
    assert first[0].evals is not None and first[0].evals <= first[0].used < 1000
    result = invoke(*words, "--functions", "1,2")
    assert result.exit_code == 0 and "1 runs to do, 1 in" in result.output
    assert read_rows(out)[: len(first)] == first and len(read_rows(out)) == 2 * len(first)


def test_a_label_has_one_tolerance(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    assert invoke("designs", "slsqp", "--out", out, "--only", "three_bar_truss", "--instances", 1).exit_code == 0
    result = invoke("designs", "slsqp", "--out", out, "--only", "three_bar_truss", "--tolerance", 0.1)
    assert result.exit_code == 2 and "choose another --label" in result.output
    result = invoke("designs-table", out)
    assert result.exit_code == 0 and "three_bar_truss" in result.output and "1 of 1" in result.output


@pytest.mark.parametrize(
    "words, message",
    [
        (["designs", "cma", "--out", "x", "--only", "bridge"], "--only must be some of"),
        (["suite", "cma", "--out", "x", "--functions", "55"], "--functions must be between 1 and 54"),
        (["suite", "cma", "--out", "x", "--option", "popsize=3"], "--option must be given for esgroup only"),
        (["suite", "esgroup", "--out", "x", "--option", "tolerance=3"], "--option must not set tolerance"),
        (["table", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_bad_arguments_are_refused(words: list[str], message: str) -> None:
    result = invoke(*words)
    assert result.exit_code == 2 and message in " ".join(result.output.split())


# ---- tables


def rows_of(
    label: str, function: int, dim: int, evals: list[int | None], instance: int = 1, ended: str = "x"
) -> list[Row]:
    full = [*evals, *[None] * (len(runs.SUITE_TARGETS) - len(evals))]
    setup = Setup(label, "tolerance=0", 2000, "none")
    return [
        Row(label, function, dim, instance, None, 0, target, count, 999, ended, 0.5, *setup)
        for target, count in zip(runs.SUITE_TARGETS, full, strict=True)
    ]


def test_functions_are_told_apart_by_base_and_number_of_constraints() -> None:
    assert [(tables.base(Cell(f, 5)), tables.version(Cell(f, 5))) for f in (1, 6, 7, 54)] == [
        (0, 0),
        (0, 5),
        (1, 0),
        (8, 5),
    ]


def test_the_report_counts_targets_and_compares_evaluations() -> None:
    rows = []
    for instance in (1, 2, 3):
        rows += rows_of("esgroup", 1, 5, [100] * 7, instance) + rows_of("cma", 1, 5, [200] * 6, instance)
        rows += rows_of("esgroup", 8, 10, [50], instance, "error: ValueError: no") + rows_of("cma", 8, 10, [], instance)
    rows += rows_of("cma", 9, 10, [1])  # which only one of them has run
    text = tables.suite_report(rows, "esgroup", "cma")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert ["5", "21 (1.000)", "18 (0.857)"] in lines and ["10", "3 (0.143)", "0 (0.000)"] in lines
    assert ["1", "21 (1.000)", "18 (0.857)"] in lines and ["sphere", "21 (1.000)", "18 (0.857)"] in lines
    assert ["ended by an error", "3", "0"] in lines and ["1e-06", "3 (0.500)", "0 (0.000)"] in lines
    assert ["all", "0.50 [0.50, 0.50]", "-", "0.50 [0.50, 0.50]", "24 : 18", "3 : 0"] in lines
    assert "6 problems that all labels have run" in text


def test_labels_without_a_common_problem_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="must have a problem in common"):
        tables.suite_report(rows_of("esgroup", 1, 5, []) + rows_of("cma", 2, 5, []), "esgroup", "cma")
    with pytest.raises(ValueError, match="must have runs"):
        tables.designs_report([])


def test_a_cell_of_the_designs_has_the_median_and_the_failures() -> None:
    solved, missed = [Outcome((1, 2, evals), "x") for evals in (1200, 100, 3000)], Outcome((1, 2, None), "x")
    assert tables.evaluations(solved) == "1,200"
    assert tables.evaluations([*solved[1:], missed]) == "1,550 ✗1"
    assert tables.evaluations([missed]) == "- ✗1"
    assert tables.evaluations([]) == ""
