"""The benchmark with many coordinates counts evaluations as it says, and its tables say what the records hold."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import bench_large as bench
import large_networks as networks
import large_policies as policies
import large_real as real
import large_runs as runs
import large_tables as tables
import numpy as np
import pytest
from large_real import Chosen, Noted, RealRecord, RealTask
from large_runs import OWN, SUITE, Crashed, Finished, Method, Record, Recorder, Start, Task
from large_tables import Cost, Ratio

from esgroup import groups

pytestmark = pytest.mark.scripts


def record(
    method: str, evals: int | None, function: str = "f1", instance: int = 11, budget: int = 1000, **more: Any
) -> Record:
    """A run that reached all targets after so many evaluations, or the first ten of them."""
    hits = tuple([1] * 10) if evals is None else tuple([1] * 50 + [evals])
    task = Task(SUITE, function, 80, instance, method, budget)
    return Record(task, hits, evals or budget, 0.0, "x", 0.5, (), "esgroup 1")._replace(**more)


def sphere_recorder(max_evals: int, thresholds: Sequence[float] = (), **more: Any) -> Recorder:
    return Recorder(runs.sphere, max_evals, thresholds, **more)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Runs are done in this process; the list has the tasks that were done."""
    done: list[Any] = []

    def here(tasks: Sequence[Any], jobs: int, solve: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            done.append(task)
            yield task, solve(task)

    monkeypatch.setattr(bench, "done_tasks", here)
    return done


def call(*words: Any) -> int:
    return bench.main([str(word) for word in words])


# ---- targets, budgets and what is counted


def test_there_are_51_targets_over_ten_decades() -> None:
    found = runs.targets(1e-8)
    assert len(found) == 51 and found[-1] == 1e-8
    assert found[::5] == pytest.approx([10.0 ** (2 - i) for i in range(11)])
    assert runs.targets(1e-3)[0] == pytest.approx(1e7)


def test_budgets_of_the_suite_go_by_dimension_and_function() -> None:
    assert [runs.suite_budget(dim, 1) for dim in (80, 160, 320, 640)] == [200_000, 400_000, 600_000, 800_000]
    assert runs.suite_budget(160, 10) == runs.suite_budget(160, 14) == 800_000
    assert runs.suite_budget(80, 10) == 200_000 and runs.suite_budget(20, 1) == 50_000


def test_targets_are_noted_at_the_evaluation_that_reached_them_first() -> None:
    fun = sphere_recorder(100, [10.0, 5.0, 0.5])
    points = np.sqrt([[20.0], [7.0], [8.0], [1.0]])
    assert fun.batch(points) == pytest.approx([20, 7, 8, 1])
    assert fun.hits == [2, 4] and fun.count == 4 and fun.best == pytest.approx(1.0)
    with pytest.raises(Finished, match="target"):
        fun.batch([[2.0], [0.1], [0.0]])
    assert fun.hits == [2, 4, 6] and fun.count == 6  # nothing is counted beyond the last target
    assert fun.best_x == pytest.approx([0.0])


def test_points_beyond_the_budget_are_not_evaluated_and_no_number_is_no_success() -> None:
    seen = []

    def fun_of(points: np.ndarray) -> np.ndarray:
        seen.append(len(points))
        return np.where(points[:, 0] > 2, math.nan, points[:, 0])

    fun = Recorder(fun_of, 5, [0.0])
    assert math.isnan(fun(np.array([3.0]))) and fun.hits == [] and fun.best == math.inf
    with pytest.raises(Finished, match="budget"):
        fun.batch(np.ones((9, 1)))
    assert seen == [1, 4] and fun.count == 5 and fun.best == 1.0


def test_a_run_out_of_time_ends_at_its_next_evaluation() -> None:
    fun = sphere_recorder(100, seconds=60.0)
    fun(np.ones(2))
    fun.until = -math.inf
    with pytest.raises(Finished, match=runs.OUT_OF_TIME):
        fun(np.ones(2))
    assert fun.count == 1


def test_a_failure_is_an_end_after_the_first_evaluation_only() -> None:
    def fail() -> str:
        raise ZeroDivisionError("by\nnothing")

    fun = sphere_recorder(9)
    with pytest.raises(ZeroDivisionError):
        runs.how_it_ended(fail, fun)
    fun(np.ones(2))
    assert runs.how_it_ended(fail, fun) == "error: ZeroDivisionError: by nothing"


def test_with_noise_the_method_sees_noise_and_the_favorite_is_judged_without() -> None:
    problem = runs.own_problem("noisy_sphere", 3, 1)
    fun = runs.recorder_of(Task(OWN, "noisy_sphere", 3, 1, "full", 1000), problem)
    assert problem.noisy and fun.thresholds == [] and fun.checkpoints == [100, 200, 500, 1000]
    points = np.random.default_rng(1).uniform(-4, 4, (400, 3))
    favorite = np.array([1.0, 2.0, 3.0])
    fun.favorite = lambda: favorite
    noise = fun.batch(points) - problem.values(points)
    assert abs(noise.mean()) < 5 / math.sqrt(400) and noise.std() == pytest.approx(1.0, rel=0.2)
    assert fun.course == [runs.exact_value(problem, favorite)] * 2
    favorite = np.zeros(3)
    fun.fill_course()
    assert fun.course[2:] == [runs.exact_value(problem, np.zeros(3))] * 2


def test_the_grid_has_three_steps_a_decade_and_ends_at_the_budget() -> None:
    assert runs.grid(3000) == [100, 200, 500, 1000, 2000, 3000]
    assert runs.grid(1000) == [100, 200, 500, 1000] and runs.grid(50) == [50]


# ---- problems


@pytest.mark.parametrize(("name", "number"), [("cigar3", 3), ("discus3", 3), ("cigar1", 1), ("discus1", 1)])
def test_cigars_and_discuses_have_the_eigenvalues_of_their_axes(name: str, number: int) -> None:
    dim, seed = 7, 5
    x_opt = np.random.default_rng([17, dim, seed]).uniform(-4, 4, dim)
    values = runs.own_problem(name, dim, seed).values
    assert values(x_opt[None]) == pytest.approx([0.0])
    basis = np.eye(dim)  # f(x_opt + y) = y^T H y: H from its values
    square = values(x_opt + basis)
    matrix = np.array([[(values((x_opt + a + b)[None])[0]) for a in basis] for b in basis])
    matrix = (matrix - square[:, None] - square[None, :]) / 2
    eigenvalues = np.linalg.eigvalsh(matrix)
    few, many = (1.0, 1e6) if name.startswith("cigar") else (1e6, 1.0)
    assert eigenvalues == pytest.approx(sorted([few] * number + [many] * (dim - number)), rel=1e-4)
    assert abs(matrix[0, 1]) > 100  # the axes are not those of the coordinates


def test_the_cigar_is_exact_where_its_terms_would_cancel() -> None:
    axes = np.array([[0.6], [0.8]])
    assert runs.cigar(1e-4 * axes.T, axes) == pytest.approx([1e-8], rel=1e-9)


def test_other_functions_have_the_values_of_their_formulas() -> None:
    y = np.array([[1.0, 0.0, -2.0], [0.5, 0.25, 0.0]])
    assert runs.sphere(y) == pytest.approx([5.0, 0.3125])
    assert runs.own_function("ellipsoid", 3, np.random.default_rng(1))(y) == pytest.approx([1 + 4e6, 0.25 + 62.5])
    # z = y + 1 = (2, 1, -1): 100 (1 - 4)^2 + 100 (-1 - 1)^2 + 1 + 0
    assert runs.rosenbrock(y)[0] == pytest.approx(900 + 400 + 1)
    assert runs.rastrigin(y) == pytest.approx([5.0, 10 * (2 + 1) + 0.3125])


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "cigar2", "discus2", "rosenbrock", "rastrigin"])
def test_own_problems_have_their_minimum_at_a_point_of_the_seed_and_rows_do_not_mix(name: str) -> None:
    problem = runs.own_problem(name, 6, 2)
    x_opt = np.random.default_rng([17, 6, 2]).uniform(-4, 4, 6)
    assert np.abs(x_opt).max() < 4 and problem.values(x_opt[None]) == pytest.approx([0.0])
    points = np.random.default_rng(1).normal(size=(5, 6))
    assert problem.values(points) == pytest.approx([problem.values(x[None])[0] for x in points])
    assert problem.values(points) == pytest.approx(runs.own_problem(name, 6, 2).values(points))
    assert not np.allclose(problem.values(points), runs.own_problem(name, 6, 3).values(points))


@pytest.mark.parametrize("name", ["cigar", "cigar0", "cigar<n>", "spheres", "noisy_rosenbrock", "discus-1"])
def test_unknown_own_problems_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"must be among sphere, .*got '{name}'"):
        runs.own_problem(name, 5, 1)


def test_a_cigar_must_have_fewer_special_axes_than_coordinates() -> None:
    with pytest.raises(ValueError, match="below the dimension 4, got 4"):
        runs.own_problem("cigar4", 4, 1)


def test_relative_targets_are_multiples_of_the_first_value() -> None:
    task = Task(OWN, "sphere", 5, 1, "full", 100, target=1e-3, relative=True)
    problem = runs.problem_of(task)
    first = problem.values(np.zeros((1, 5)))[0]
    assert runs.recorder_of(task, problem).thresholds[-1] == pytest.approx(1e-3 * first)


def test_the_optimum_of_the_suite_is_its_least_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cocoex")
    monkeypatch.chdir(tmp_path)
    problem = runs.suite_problem(1, 20, 11)
    e = np.zeros(20)
    e[3] = 1.5
    above, below, middle = problem.values(np.array([e, -e, 0 * e])) - problem.optimum
    assert (above + below) / 2 - middle == pytest.approx(1.5**2)  # f1 is |x - x_opt|^2 + f_opt
    points = np.random.default_rng(1).normal(size=(50, 20))
    values = problem.values(points) - problem.optimum
    # x_opt from differences of values: f(e_i) - f(-e_i) = -4 x_opt_i
    x_opt = (problem.values(-np.eye(20)) - problem.values(np.eye(20))) / 4
    assert values == pytest.approx(((points - x_opt) ** 2).sum(axis=1), rel=1e-6)
    assert list(tmp_path.iterdir()) == []


# ---- methods


def need(method: str) -> None:
    pytest.importorskip(runs.METHODS[method].package)
    if method in ("frame", "ours") and "frame" not in groups.SPELLINGS:
        pytest.skip("there is no structure frame yet")


@pytest.mark.parametrize("method", runs.METHODS)
def test_every_method_gets_near_the_minimum_and_recommends_its_mean(method: str) -> None:
    need(method)
    found = runs.solve(Task(OWN, "sphere", 20, 1, method, 4000, target=1e-2))
    first = runs.exact_value(runs.own_problem("sphere", 20, 1), np.zeros(20))
    assert found.used <= 4000 and found.gap < first / 20 and found.hits == tuple(sorted(found.hits))
    assert found.evals == found.used and found.ended == "target"
    assert found.package.startswith(runs.METHODS[method].package)
    noisy = runs.solve(Task(OWN, "noisy_sphere", 20, 1, method, 2000))
    assert noisy.hits == () and noisy.ended == "budget" and noisy.used == 2000
    assert [many for many, _ in noisy.course] == [100, 200, 500, 1000, 2000]
    assert noisy.course[-1][1] < noisy.course[0][1] / 3 < first


@pytest.mark.parametrize("method", ["full", "cma", "crfmnes", "sepcma", "lmcma"])
def test_methods_have_the_population_that_is_asked_for(method: str) -> None:
    need(method)
    sizes = []

    class Noted(Recorder):
        def batch(self, points: Any) -> np.ndarray:
            sizes.append(len(points))
            return super().batch(points)

    with pytest.raises(Finished):
        runs.METHODS[method].search(Noted(runs.sphere, 100), Start(np.ones(12), 1.0, 1, 10**6, popsize=30))
    assert set(sizes) == ({1} if method == "lmcma" else {30})


def test_what_was_chosen_by_default_before_depends_on_the_dimension() -> None:
    assert [runs.former_structure(dim) for dim in (20, 1000, 1001)] == ["full", "full", "diagonal"]
    former = runs.solve(Task(OWN, "sphere", 8, 1, "former", 500))
    full = runs.solve(Task(OWN, "sphere", 8, 1, "full", 500))
    assert former.hits == full.hits != runs.solve(Task(OWN, "sphere", 8, 1, "diagonal", 500)).hits


def test_a_method_that_stops_by_itself_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(fun: Recorder, start: Start) -> str:
        fun.batch(np.ones((7, start.dim)))
        return "bored"

    monkeypatch.setitem(runs.METHODS, "full", Method(give_up, "numpy"))
    found = runs.solve(Task(OWN, "sphere", 4, 1, "full", 100))
    assert (found.ended, found.used, found.evals, found.cost) == ("bored", 7, None, 100)


# ---- files


def test_records_come_back_from_their_file_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "new" / "suite.jsonl"
    assert runs.read_records(path, Record.of) == []
    first, second = record("ours", 700), record("cma", None, course=((100, 2.5),), ended="budget")
    runs.append_line(path, first.line())
    with path.open("a") as file:
        file.write('{"kind": "sui')
    assert runs.read_records(path, Record.of) == [first]
    runs.append_line(path, second.line())
    assert runs.read_records(path, Record.of) == [first, second]
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("text", ["[1, 2]\n", '{"a": 1}\n', "no json\n"])
def test_a_file_of_another_kind_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"suite.jsonl must have"):
        runs.read_records(path, Record.of)


def test_seeds_of_methods_are_positive_and_differ_from_run_to_run() -> None:
    task = Task(OWN, "sphere", 8, 1, "full", 500)
    assert task.seed == task._replace(method="cma", budget=9).seed > 0
    others = [task._replace(problem="ellipsoid"), task._replace(dim=9), task._replace(instance=2)]
    assert len({task.seed, *(other.seed for other in others)}) == 4 and all(other.seed < 2**31 for other in others)


# ---- commands


def test_runs_that_are_in_the_folder_are_not_done_again(tmp_path: Path, inline: list[Task], capsys: Any) -> None:
    words = ["own", "--dims", "6", "--problems", "sphere,cigar1", "--methods", "full,diagonal", "--budget", 300]
    assert call(*words, "--seeds", "1", "--out", tmp_path) == 0
    assert len(inline) == 4 and {task.problem for task in inline} == {"sphere", "cigar1"}
    assert call(*words, "--seeds", "1-2", "--out", tmp_path) == 0
    assert len(inline) == 8 and {task.instance for task in inline[4:]} == {2}
    assert call(*words, "--seeds", "1", "--out", tmp_path) == 0
    assert len(inline) == 8
    said = capsys.readouterr().err
    assert "4 runs to do, 0 in" in said and "0 runs to do, 4 in" in said and "full sphere d6 seed 1: " in said
    assert len(runs.read_records(tmp_path / bench.OWN_FILE, Record.of)) == 8


def test_another_popsize_is_another_run_and_another_budget_is_refused(
    tmp_path: Path, inline: list[Task], capsys: Any
) -> None:
    words = ["own", "--dims", "6", "--problems", "sphere", "--methods", "full", "--seeds", "1", "--out", tmp_path]
    call(*words, "--budget", 60)
    call(*words, "--budget", 60, "--popsize", 20)
    assert len(inline) == 2
    with pytest.raises(SystemExit):
        call(*words, "--budget", 61)
    assert "must be those of its run in the folder, 60 and 0, got 61 and 0" in capsys.readouterr().err


def test_the_suite_is_run_by_its_command(tmp_path: Path, inline: list[Task]) -> None:
    pytest.importorskip("cocoex")
    words = ["suite", "--dims", "20", "--functions", "1,8", "--instances", "11-12", "--methods", "full,diagonal"]
    assert call(*words, "--budget", 400, "--out", tmp_path) == 0
    found = runs.read_records(tmp_path / bench.SUITE_FILE, Record.of)
    assert [str(one.task) for one in found[:3]] == [
        "full f1 d20 instance 11",
        "diagonal f1 d20 instance 11",
        "full f8 d20 instance 11",
    ]
    assert len(found) == 8 and all(one.used == 400 and one.ended == "budget" for one in found)
    assert all(len(one.hits) > 5 for one in found if one.task.problem == "f1")


def test_every_run_has_a_process_of_its_own(tmp_path: Path) -> None:
    tasks = [Task(OWN, "sphere", 4, seed, "diagonal", 50) for seed in (1, 2)]
    found = dict(runs.done_tasks(tasks, 2, runs.solve))
    alone = {task: runs.solve(task) for task in tasks}
    for task in tasks:
        assert isinstance(found[task], Record) and found[task]._replace(cpu=0.0) == alone[task]._replace(cpu=0.0)
    assert runs.in_new_process(os.getpid) != os.getpid()
    with pytest.raises(Crashed, match="exit code 3"):
        runs.in_new_process(os._exit, 3)
    with pytest.raises(RuntimeError, match=r"ValueError: .*'x'"):
        runs.in_new_process(int, "x")


def test_a_crash_is_not_recorded_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def crash_one(tasks: Sequence[Task], jobs: int, solve: Any) -> Iterator[tuple[Task, Any]]:
        for task in tasks:
            yield task, Crashed("exit code -9") if task.method == "full" else solve(task)

    monkeypatch.setattr(bench, "done_tasks", crash_one)
    words = ["own", "--dims", "5", "--problems", "sphere", "--methods", "full,diagonal", "--budget", 40]
    assert call(*words, "--seeds", "1", "--out", tmp_path) == 1
    assert [one.task.method for one in runs.read_records(tmp_path / bench.OWN_FILE, Record.of)] == ["diagonal"]
    said = capsys.readouterr().err
    assert "exit code -9; it is not in the file" in said and "1 runs have crashed" in said


def test_peers_that_are_missing_are_left_out_and_it_says_what_to_install(
    tmp_path: Path, inline: list[Task], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(runs.METHODS, "mmes", Method(runs.search_vkd, "no_such_package"))
    words = ["own", "--dims", "5", "--problems", "sphere", "--methods", "mmes,full", "--budget", 40, "--seeds", "1"]
    assert call(*words, "--out", tmp_path) == 0
    assert [task.method for task in inline] == ["full"]
    assert "mmes is left out: it needs the package no_such_package (pip install no_such_package)" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["suite", "--methods", "ours,cmo", "--out", "x"], "--methods: must be among ours, .*got 'cmo'"),
        (["suite", "--functions", "1,25", "--out", "x"], "--functions: must be among 1, .*got 25"),
        (["suite", "--dims", "81", "--out", "x"], "--dims: must be among 20, .*got 81"),
        (["suite", "--instances", "3-1", "--out", "x"], "--instances: must be numbers.*got '3-1'"),
        (["own", "--problems", "spere", "--out", "x"], "--problems: .*must be among sphere.*got 'spere'"),
        (["own", "--target", "0", "--out", "x"], "--target: must be a number above 0, got '0'"),
        (["own", "--popsize", "2.5", "--out", "x"], "--popsize: must be an integer above 0, got '2.5'"),
        (["own", "--seconds", "-1", "--out", "x"], "--seconds: must be a number of at least 0, got '-1'"),
        (["real", "--problems", "digit", "--out", "x"], "--problems: must be among digits.*got 'digit'"),
        (["real", "--methods", "cma", "--out", "x"], "--methods: must be among ours.*got 'cma'"),
        (["tune", "--methods", "ours", "--out", "x"], "--methods: must be among openai, snes, got 'ours'"),
        (["cost", "--contenders", "fram:k=4"], "--contenders must be structures, .*got 'fram:k=4': unknown structure"),
        (["table", "no_such_folder"], "FOLDER must be a folder with records, got no_such_folder"),
        (["suite"], "--out"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_is_unknown_or_wrong_is_refused(words: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as end:
        call(*words)
    assert end.value.code == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_the_help_of_every_command_is_there(capsys: Any) -> None:
    for command in bench.COMMANDS:
        with pytest.raises(SystemExit) as end:
            call(command, "--help")
        assert end.value.code == 0 and "usage" in capsys.readouterr().out


# ---- ratios


def test_a_ratio_is_the_geometric_mean_over_common_instances_with_failures_at_their_budget() -> None:
    ours = [record("ours", 200, instance=11), record("ours", None, instance=12), record("ours", 50, instance=13)]
    theirs = [record("cma", 100, instance=11), record("cma", 250, instance=12)]
    ratio = tables.ratio_of(ours, theirs)
    assert ratio is not None and not ratio.neither
    assert math.exp(ratio.logs[0]) == pytest.approx(2) and math.exp(ratio.logs[1]) == pytest.approx(4)
    assert ratio.value == pytest.approx(math.sqrt(2 * 4))
    assert tables.ratio_of(ours, []) is None


def test_if_neither_side_solves_anything_the_ratio_is_one_whatever_the_budgets() -> None:
    ours, theirs = [record("ours", None, budget=1000)], [record("cma", None, budget=500)]
    assert tables.ratio_of(ours, theirs) == Ratio((0.0,), neither=True)
    assert tables.marked(Ratio((0.0,), neither=True), 1.1) == f"1 {tables.NEITHER}"
    one = tables.ratio_of([*ours, record("ours", 100, instance=12)], [*theirs, record("cma", 100, instance=12)])
    assert one is not None and not one.neither and one.logs == pytest.approx((math.log(2), 0.0))


def test_the_mean_over_functions_weighs_every_function_the_same() -> None:
    ratios = [Ratio((math.log(2), math.log(8)), False), Ratio((math.log(0.5),) * 7, False)]
    found = tables.estimate(ratios)
    assert found.value == pytest.approx(math.sqrt(4 * 0.5))
    assert math.sqrt(2 * 0.5) - 1e-9 <= found.low < found.value < found.high <= math.sqrt(8 * 0.5) + 1e-9


def test_the_interval_is_that_of_a_bootstrap_over_runs() -> None:
    logs = np.random.default_rng(3).normal(0.3, 0.2, 40)
    found = tables.estimate([Ratio(tuple(logs), False)])
    error = logs.std() / math.sqrt(40)
    assert math.log(found.low) == pytest.approx(logs.mean() - 1.96 * error, abs=0.2 * error)
    assert math.log(found.high) == pytest.approx(logs.mean() + 1.96 * error, abs=0.2 * error)
    same = tables.estimate([Ratio((0.5, 0.5, 0.5), False)])
    assert (same.low, same.high) == pytest.approx((math.exp(0.5),) * 2)
    assert math.isnan(tables.estimate([Ratio((0.5,), False)]).low)
    assert math.isnan(tables.estimate([]).value)


def test_the_best_peer_is_the_one_that_we_look_worst_against_and_none_of_ours() -> None:
    found = {
        "ours": [record("ours", 300)],
        "former": [record("former", 10)],
        "cma": [record("cma", 200)],
        "vkd": [record("vkd", 150)],
        "lmma": [record("lmma", None)],
    }
    best = tables.best_peer(found, "ours")
    assert best is not None and best[0] == "vkd" and best[1].value == pytest.approx(2.0)
    found["ours"] = [record("ours", None)]
    failed = tables.best_peer(found, "ours")
    assert failed is not None and failed[0] == "vkd" and failed[1].value == pytest.approx(1000 / 150)
    assert tables.best_peer({"ours": found["ours"], "former": found["former"]}, "ours") is None


# ---- tables


def made_up() -> list[Record]:
    """Two instances of four functions: f1 and f2 are solved, f10 by one of ours, f12 by nobody."""
    costs: dict[str, dict[str, tuple[int | None, int | None]]] = {
        "f1": {"ours": (100, 100), "former": (200, 200), "cma": (400, 400), "vkd": (100, 400)},
        "f2": {"ours": (600, 600), "former": (300, 300), "cma": (200, 200), "vkd": (None, None)},
        "f10": {"ours": (500, None), "former": (None, None), "cma": (None, None), "vkd": (None, None)},
        "f12": {name: (None, None) for name in ("ours", "former", "cma", "vkd")},
    }
    return [
        record(method, evals, function, instance)
        for function, methods in costs.items()
        for method, pair in methods.items()
        for instance, evals in zip((11, 12), pair, strict=True)
    ]


def test_the_table_has_medians_solved_runs_targets_and_ratios() -> None:
    text = "\n\n".join(tables.evaluations_report(made_up(), "ours", "former"))
    assert "## bbob-largescale, d = 80, to 1e-08 above the optimum" in text
    head, rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    assert (
        head == ("| function | ours | former | vkd | cma | ours : best peer | best peer | ours : former |")
        and rule.count("---:") == 7
    )
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in lines}
    assert list(cells)[:4] == ["f1", "f2", "f10", "f12"]
    assert cells["f1"][1:5] == ["100 (2/2), 51", "200 (2/2), 51", "250 (2/2), 51", "400 (2/2), 51"]
    assert cells["f10"][1] == "750 (1/2), 30.5"  # the failure counts with its budget of 1000
    assert cells["f2"][3] == "1,000 (0/2), 10"
    assert cells["f1"][5:] == ["0.50 [0.25, 1.00]", "vkd", "0.50 [0.50, 0.50]"]
    assert cells["f2"][5:] == ["**3.00 [3.00, 3.00]**", "cma", "**2.00 [2.00, 2.00]**"]
    assert cells["f10"][5].startswith("0.71 [0.50, 1.00]")
    assert cells["f12"][5:] == ["1 †", "-", "1 †"]


def test_the_last_lines_have_geometric_means_with_and_without_what_nobody_solves() -> None:
    text = tables.evaluations_table(tables.grouped(made_up())[tables.group_of(made_up()[0])], "ours", "former")
    with_all = next(line for line in text.splitlines() if line.startswith("| geometric mean"))
    without = next(line for line in text.splitlines() if line.startswith("| without those marked"))
    to_former, to_peer = (0.5 * 2 * math.sqrt(0.5)), (0.5 * 3 * math.sqrt(0.5))
    assert f"| {to_peer**0.25:.2f} [" in with_all and f"| {to_former**0.25:.2f} [" in with_all
    assert "(4)" in with_all and "| 5 of 8 | 4 of 8 | 2 of 8 | 4 of 8 |" in with_all
    assert f"| {to_peer ** (1 / 3):.2f} [" in without and f"| {to_former ** (1 / 3):.2f} [" in without
    assert "(3)" in without
    assert "Above 1.1 against former: f2 **2.00 [2.00, 2.00]** (of 4)." in text
    assert "Above 1.3 against the best peer: f2 **3.00 [3.00, 3.00]** (of 4)." in text
    assert "Budgets: 1,000 evaluations. instances 11-12. esgroup 1." in text


def test_a_value_above_a_limit_whose_interval_is_not_is_doubtful() -> None:
    doubtful = {"f8": Ratio((math.log(1.0), math.log(1.5)), False), "f9": Ratio((0.0, 0.0), False)}
    assert tables.above(doubtful, 1.1, "former") == "Above 1.1 against former: f8 1.22 [1.00, 1.50] ? (of 2)."
    assert tables.above({"f9": doubtful["f9"]}, 1.1, "former") == "Above 1.1 against former: none (of 1)."


def test_runs_that_lack_and_runs_that_were_cut_are_named() -> None:
    lacking = [one for one in made_up() if (one.task.method, one.task.problem) != ("vkd", "f2")]
    lacking = [one for one in lacking if (one.task.method, one.task.problem, one.task.instance) != ("cma", "f1", 12)]
    lacking[-1] = lacking[-1]._replace(ended=runs.OUT_OF_TIME)
    text = "\n".join(tables.evaluations_report(lacking, "ours", "former"))
    assert "Not run, and left out of what is compared: vkd on f2; cma on f1 (12)." in text
    assert "Cut by the clock, and counted as unsolved with their budget: vkd on f12 (1 of 2)." in text


def test_dimensions_targets_and_popsizes_have_tables_of_their_own_and_the_last_record_of_a_run_counts() -> None:
    first = record("ours", 100)
    again = record("ours", 300)
    wide = first._replace(task=first.task._replace(dim=1000))
    small = first._replace(task=first.task._replace(kind=OWN, problem="rastrigin", popsize=500, target=0.1))
    found = tables.grouped([small, first, again, wide])
    assert [group.title for group in found] == [
        "bbob-largescale, d = 80, to 1e-08 above the optimum",
        "bbob-largescale, d = 1,000, to 1e-08 above the optimum",
        "Own problems, d = 80, to 0.1 above the optimum, popsize 500",
    ]
    assert found[tables.group_of(first)]["f1"]["ours"] == [again]


def test_the_table_with_noise_has_medians_at_every_step_that_all_runs_have() -> None:
    task = Task(OWN, "noisy_sphere", 10, 1, "ours", 200)
    made = [
        Record(task._replace(instance=seed), (), 200, 0.0, "budget", 0.1, course, "esgroup 1")
        for seed, course in enumerate([((100, 4.0), (200, 1.0)), ((100, 8.0), (200, 3.0)), ((100, 6.0),)], 1)
    ]
    text = "\n".join(tables.noise_report(made, "ours"))
    assert "| noisy_sphere, 100 | 6 |" in text and "| noisy_sphere, 200 | - |" in text
    assert tables.evaluations_report(made, "ours", "former") == []


def test_the_command_prints_the_tables_of_a_folder(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        call("table", tmp_path)
    assert "FOLDER must have records" in capsys.readouterr().err
    for one in made_up():
        runs.append_line(tmp_path / bench.SUITE_FILE, one.line())
    runs.append_line(tmp_path / bench.COST_FILE, Cost("diagonal", 100, 6.0, 2.0, 150.0, 1.0)._asdict())
    assert call("table", tmp_path, "--label", "former", "--former", "ours") == 0
    said = capsys.readouterr().out
    assert "| function | former | ours | vkd | cma | former : best peer | best peer | former : ours |" in said
    assert "## Time of ask and tell" in said


# ---- time


def test_the_exponent_is_the_slope_of_logarithms_by_least_squares() -> None:
    dims = [100, 1000, 10_000]
    assert tables.growth_exponent(dims, [3e-3 * dim**1.25 for dim in dims]) == pytest.approx(1.25)
    assert tables.growth_exponent(dims, [1.0, 10.0, 10.0]) == pytest.approx(0.5)
    assert math.isnan(tables.growth_exponent([100], [1.0]))


def test_a_turn_counts_evaluations_and_tells_the_fixed_values() -> None:
    ticks, told = itertools.count(), []
    contender = bench.Contender(lambda: np.zeros((5, 2)), lambda points, values: told.append(values[0]))
    values = np.arange(3.0)[:, None] * np.ones(5)
    assert bench.turn(contender, values, 4, lambda: 10.0 * next(ticks)) == 10.0 / 20
    assert told == [0.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize("name", ["diagonal", "sepcma", "crfmnes"])
def test_time_and_memory_of_every_contender_are_measured(name: str) -> None:
    if name in bench.COST_PEERS:
        pytest.importorskip(bench.COST_PEERS[name][0])
    found = bench.measured_cost(name, 30, 0.005, 2)
    assert (found.name, found.dim) == (name, 30) and found.micros > 0.0 and found.limit > 0.0
    assert found.peak > 10.0 and found.grown >= 0.0 and found.ratio == found.micros / found.limit


def test_the_time_at_the_limit_is_that_of_an_evaluation() -> None:
    """Five seconds on a clock that shows one more at every look: four generations of 14 evaluations, six looks."""
    calls = itertools.count()
    found = bench.limit_seconds(lambda: None, 30, 5.0, lambda: float(next(calls)))
    assert found == pytest.approx(6.0 / (5 * 14), rel=0.5)


def test_the_table_of_times_has_ratios_exponents_and_memory() -> None:
    costs = [Cost("frame:k=4", dim, 0.04 * dim, 0.01 * dim, 200.0, 12.0) for dim in (100, 1000)]
    text = "\n".join(tables.cost_report([Cost("frame:k=4", 100, 99.0, 1.0, 0, 0), *costs]))
    assert "| frame:k=4 | 4 | 40 | 1.00 |" in text and "| linear limit | 1 | 10 | 1.00 |" in text
    assert "| frame:k=4 | 4.00 | 4.00 |" in text and "| frame:k=4 | 200 (12) | 200 (12) |" in text
    assert tables.cost_report([]) == []


def test_the_command_leaves_out_peers_above_their_largest_dimension(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    pytest.importorskip("cmaes")
    monkeypatch.setattr(bench, "in_new_process", lambda function, name, dim, *rest: Cost(name, dim, 2.0, 1.0, 9, 1))
    assert call("cost", "--dims", "100,1000000", "--contenders", "diagonal", "sepcma", "--out", tmp_path) == 0
    said = capsys.readouterr()
    assert "| sepcma | 2 | - | - |" in said.out and "| diagonal | 2 | 2 | 0.00 |" in said.out
    assert len(runs.read_lines(tmp_path / bench.COST_FILE)) == 3


# ---- networks


def test_the_loss_of_the_digits_is_that_of_its_formula() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(3, 1210)) / 3
    assert real.digits(1).dim == 1210
    inputs, classes, test_inputs, test_classes = real.digits_data()
    assert inputs.shape == (600, 64) and len(test_classes) == 1797 - 600 and inputs.max() == 1.0
    first, bias = weights[1, :1024].reshape(16, 64), weights[1, 1024:1040]
    second, last = weights[1, 1040:1200].reshape(10, 16), weights[1, 1200:]
    scores = np.tanh(inputs @ first.T + bias) @ second.T + last
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(chances[np.arange(600), classes]).mean() + 1e-3 * (weights[1] ** 2).sum()
    assert real.digits_values(weights)[1] == pytest.approx(loss)
    right = (np.tanh(test_inputs @ first.T + bias) @ second.T + last).argmax(axis=1) == test_classes
    assert real.digits_accuracy(weights[1]) == pytest.approx(right.mean())


def test_networks_have_about_as_many_weights_as_their_names_say_and_a_block_for_each_part() -> None:
    for control in real.CONTROLS.values():
        for about in real.SIZES:
            layers = policies.policy_layers(len(control.scales), control.outputs, about)
            assert abs(networks.weights_in(layers) - about) < 0.05 * about
    structure = real.kronecker_structure(((3, 2), (1, 3)))
    assert structure.dim == networks.weights_in(((3, 2), (1, 3))) == 13
    assert [type(block).__name__ for block in structure.groups] == ["Kronecker", "Diagonal"] * 2
    first = real.first_weights(((400, 100), (1, 400)), np.random.default_rng(1))
    assert first[:40_000].std() == pytest.approx(0.1, rel=0.02) and not first[40_000:40_400].any()


@pytest.mark.parametrize("name", ["cart_pole1000", "pendulum1000"])
def test_a_policy_has_the_same_value_whenever_it_is_asked_for(name: str) -> None:
    pytest.importorskip("gymnasium")
    problem = real.real_problem(name, 1)
    weights = np.random.default_rng(1).normal(size=(2, problem.dim)) * 0.1
    values = problem.values(weights)
    assert values.tolist() == problem.values(weights).tolist() == real.real_problem(name, 1).values(weights).tolist()
    assert values.tolist() == [problem.values(row[None])[0] for row in weights]
    assert values.tolist() != real.real_problem(name, 2).values(weights).tolist()  # other starts
    low, high = (-500.0, -1.0) if name.startswith("cart") else (1.0, 200 * 16.3)  # rewards of a step: 1, 0 to -16.3
    assert low <= values.min() and values.max() <= high


def test_unknown_networks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be among digits.*got 'cart_pole77'"):
        real.real_problem("cart_pole77", 1)


def test_ranks_are_centerd_and_utilities_are_those_of_the_paper() -> None:
    assert real.centerd_ranks(np.array([3.0, 1.0, 2.0])).tolist() == [-0.5, 0.5, 0.0]
    utilities = real.snes_utilities(4)
    raw = [math.log(3), math.log(3) - math.log(2), 0.0, 0.0]
    assert utilities == pytest.approx([one / sum(raw) - 0.25 for one in raw]) and abs(utilities.sum()) < 1e-12


def test_one_generation_of_snes_is_the_published_update() -> None:
    start = Start(np.array([1.0, -2.0, 0.5]), 0.3, seed=4, max_evals=10**6, popsize=6)
    fun = sphere_recorder(12)
    seen: list[np.ndarray] = []
    fun.function = lambda points: seen.append(points.copy()) or runs.sphere(points)  # type: ignore[func-returns-value]
    with pytest.raises(Finished):
        real.search_snes(0.4)(fun, start)
    rng = np.random.default_rng(4)
    noise, later = rng.standard_normal((6, 3)), rng.standard_normal((6, 3))
    assert seen[0] == pytest.approx(start.x0 + 0.3 * noise)
    ordered = noise[np.argsort(runs.sphere(seen[0]))]
    u = real.snes_utilities(6)
    mean = start.x0 + 0.3 * sum(u[i] * ordered[i] for i in range(6))
    stds = 0.3 * np.exp(0.2 * sum(u[i] * (ordered[i] ** 2 - 1) for i in range(6)))
    assert seen[1] == pytest.approx(mean + stds * later)


def test_the_first_step_of_openai_goes_by_the_rate_along_the_signs_of_the_gradient() -> None:
    start = Start(np.zeros(3), 0.1, seed=4, max_evals=10**6, popsize=400)
    fun = Recorder(lambda points: points @ [1.0, -2.0, 3.0], 401)
    with pytest.raises(Finished):
        real.search_openai(0.05)(fun, start)
    assert fun.favorite() == pytest.approx([-0.05, 0.05, -0.05], rel=1e-4)  # Adam's first step, bias corrected


def real_record(method: str, values: Sequence[float], rate: float | None = None, seed: int = 1) -> RealRecord:
    course = tuple(Noted(many, value, value + 1, 0.9) for many, value in zip((100, 200), values, strict=True))
    return RealRecord(RealTask("digits", seed, method, (100, 200), rate), course, 200, "budget", 0.1, "numpy 1")


def test_the_rate_with_the_least_mean_objective_at_the_end_is_chosen_and_kept(tmp_path: Path) -> None:
    tried = [
        real_record("snes", (1.0, 0.9), 0.1, 101),
        real_record("snes", (2.0, 0.1), 0.2, 101),
        real_record("snes", (2.0, 0.5), 0.2, 102),
        real_record("snes", (1.0, 0.2), 0.1, 102),
        real_record("snes", (0.0, math.nan), 0.3, 101),
        real_record("openai", (3.0, 1.0), 0.1, 101),
        real_record("openai", (2.0, 1.0), 0.2, 101),  # equal at the end, better on the way
    ]
    rates = real.chosen_rates(tried)
    assert rates["digits", "snes"] == Chosen(0.2, (101, 102), (0.1, 0.2, 0.3))
    assert not rates["digits", "snes"].at_the_edge and rates["digits", "openai"].at_the_edge
    assert rates["digits", "openai"].rate == 0.2
    real.write_rates(tmp_path / "rates.json", rates)
    assert real.read_rates(tmp_path / "rates.json") == rates and real.read_rates(tmp_path / "none.json") == {}


def test_a_rate_must_have_been_chosen_and_on_other_seeds() -> None:
    rates = {("digits", "snes"): Chosen(0.2, (101, 102), (0.2,))}
    assert real.rate_for(rates, "digits", "snes", [1, 2]) == 0.2
    assert real.rate_for(rates, "digits", "ours", [101]) is None
    with pytest.raises(ValueError, match=r"--seeds must not have those on which.*got \[102\]"):
        real.rate_for(rates, "digits", "snes", [1, 102])
    with pytest.raises(ValueError, match="openai on digits must have a rate in the folder, got none"):
        real.rate_for(rates, "digits", "openai", [1])


def test_rates_are_tuned_then_used_and_runs_are_not_done_again(
    tmp_path: Path, inline: list[RealTask], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(real, "rates_to_try", lambda method, dim: [0.03, 0.1])
    with pytest.raises(SystemExit):
        call("real", "--problems", "digits", "--methods", "snes", "--seeds", 1, "--budgets", 60, "--out", tmp_path)
    words = ["tune", "--problems", "digits", "--seeds", "101", "--budget", 80, "--out", tmp_path]
    assert call(*words) == 0 and len(inline) == 4 and inline[0].budgets == (20, 40, 80)
    assert call(*words) == 0 and len(inline) == 4
    methods = "diagonal,kronecker,openai,snes"
    words = ["real", "--problems", "digits", "--methods", methods, "--seeds", "1", "--budgets", "60,120"]
    assert call(*words, "--out", tmp_path) == 0 and len(inline) == 8
    assert call(*words, "--out", tmp_path) == 0 and len(inline) == 8
    found = runs.read_records(tmp_path / bench.REAL_FILE, RealRecord.of)
    assert [one.task.method for one in found] == methods.split(",")
    for one in found:
        assert [entry.evals for entry in one.course] == [60, 120] and one.used == 120
        assert one.course[1].best <= one.course[0].best and 0.0 <= (one.course[1].accuracy or -1) <= 1.0
    with pytest.raises(SystemExit):
        call(*words[:-1], "60,130", "--out", tmp_path)
    assert "--budgets of diagonal digits seed 1 must be those" in capsys.readouterr().err
    assert call("table", tmp_path) == 0
    said = capsys.readouterr().out
    assert "## digits" in said and "| kronecker | 1 |" in said and "Rates, chosen on other seeds: openai" in said


def test_the_table_of_networks_has_medians_of_the_better_point() -> None:
    made = [real_record("ours", (3.0, value), seed=seed) for seed, value in enumerate((0.5, 0.7, 0.25), 1)]
    made[0] = made[0]._replace(course=(made[0].course[0], Noted(200, 0.5, 0.125, 0.5)))  # the mean is better
    text = "\n".join(tables.real_report(made))
    assert "| ours | 3 | 3 (90.0 %) | 0.25 (90.0 %) |" in text


def test_a_policy_that_cannot_be_better_ends_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = ((1, 2),)
    values = lambda rows: np.maximum(-1.0, runs.sphere(rows) - 5.0)  # noqa: E731
    problem = real.RealProblem(layers, values, floor=-1.0)
    monkeypatch.setattr(real, "real_problem", lambda name, seed: problem)
    found = real.solve_real(RealTask("digits", 1, "diagonal", (10, 500), None))
    assert found.ended == "target" and found.used < 500 and found.course[-1].value == -1.0
    assert json.loads(json.dumps(found.line()))["ended"] == "target"
