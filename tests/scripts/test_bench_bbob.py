"""The bbob benchmark counts and compares as it says, on made-up runs; neither coco nor cma is needed."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import bbob_tables as tables
import bench_bbob as bench
import numpy as np
import pytest
import typer
from bbob_tables import TARGETS, Comparison, Goal, Row, Setup
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts

PLAIN = Setup("esgroup", "", 3000, "none")
BIPOP = Setup("esgroup", "", 10_000, "bipop")


def run_rows(
    label: str, function: int, dim: int, evals: list[int | None], index: int = 1, setup: Setup = PLAIN
) -> list[Row]:
    """Rows of one run; targets beyond the given evaluations are missed."""
    full = [*evals, *[None] * (len(TARGETS) - len(evals))]
    return [
        Row(label, function, dim, index, index, 7, target, count, 999, "tolfun", 0.5, *setup)
        for target, count in zip(TARGETS, full, strict=True)
    ]


def pair(function: int, dim: int, ours: list[int | None], theirs: list[int | None], index: int = 1) -> list[Row]:
    return run_rows("esgroup", function, dim, ours, index) + run_rows("cma", function, dim, theirs, index)


def compared(rows: list[Row]) -> Comparison:
    return Comparison.of(rows, "esgroup", "cma")


def uniform(ratio: float, functions: tuple[int, ...] = tables.FUNCTIONS, dims: tuple[int, ...] = (20, 40)) -> list[Row]:
    """Runs in which every target is hit at `ratio` times the baseline's evaluations."""
    return [row for f in functions for d in dims for row in pair(f, d, [int(1000 * ratio)] * 7, [1000] * 7)]


def met(rows: list[Row]) -> dict[str, bool]:
    return {goal.text.split(" <= ")[0].split(":")[0]: goal.met for goal in tables.goals(compared(rows))}


# ---- statistics


def test_a_cell_is_the_geometric_mean_over_instances_and_targets_that_both_hit() -> None:
    rows = pair(1, 5, [10, 40, None, 7], [20, 20, 5]) + pair(1, 5, [80], [10], index=2)
    assert compared(rows).cell(1, 5) == pytest.approx((0.5 * 2.0 * 8.0) ** (1 / 3), rel=1e-14)


def test_a_cell_can_be_asked_for_one_target() -> None:
    rows = pair(2, 20, [10] * 6 + [30], [10] * 7)
    assert compared(rows).cell(2, 20, TARGETS[-1:]) == pytest.approx(3.0, rel=1e-14)


def test_every_function_weighs_the_same_however_many_targets_it_has() -> None:
    rows = pair(1, 5, [10] * 7, [20] * 7) + pair(2, 5, [80], [10])
    comparison = compared(rows)
    assert comparison.mean(tables.TEN, [5]) == pytest.approx(math.sqrt(0.5 * 8), rel=1e-14)
    assert comparison.pooled(tables.TEN, [5]) == pytest.approx((0.5**7 * 8) ** (1 / 8), rel=1e-14)


def test_the_total_is_the_geometric_mean_of_the_cells_of_all_dimensions() -> None:
    rows = pair(1, 5, [10], [20]) + pair(1, 40, [30], [10]) + pair(14, 40, [10], [10])
    comparison = compared(rows)
    assert comparison.dims == [5, 40]
    assert comparison.mean(tables.TEN, [40]) == pytest.approx(math.sqrt(3), rel=1e-14)
    assert comparison.mean(tables.TEN, comparison.dims) == pytest.approx((0.5 * 3 * 1) ** (1 / 3), rel=1e-14)


def test_a_cell_without_a_common_hit_is_left_out() -> None:
    comparison = compared(pair(1, 5, [10], [20]) + pair(2, 5, [], [20]) + pair(6, 5, [20], []))
    assert math.isnan(comparison.cell(2, 5)) and math.isnan(comparison.cell(6, 5))
    assert comparison.mean(tables.TEN, [5]) == 0.5


def test_functions_outside_the_ten_do_not_enter_their_mean() -> None:
    comparison = compared(pair(1, 5, [10], [20]) + pair(3, 5, [90], [10]))
    assert comparison.mean(tables.TEN, [5]) == 0.5
    assert comparison.mean(tables.FUNCTIONS, [5]) == pytest.approx(math.sqrt(4.5), rel=1e-14)


def test_the_fraction_solved_counts_every_target_of_problems_that_both_have_run() -> None:
    rows = pair(1, 5, [1, 2, 3], [1] * 7) + pair(20, 5, [1], []) + pair(3, 10, [1] * 7, [1] * 6)
    rows += run_rows("esgroup", 4, 5, [1] * 7)  # not run by the baseline
    comparison = compared(rows)
    assert comparison.solved([5]) == (4 / 14, 7 / 14)
    assert comparison.solved([5, 10]) == (11 / 21, 13 / 21)


def test_the_last_of_repeated_rows_counts() -> None:
    rows = pair(1, 5, [10], [20]) + run_rows("esgroup", 1, 5, [60])
    assert compared(rows).cell(1, 5) == pytest.approx(3.0, rel=1e-14)


def test_labels_without_a_common_problem_are_refused() -> None:
    with pytest.raises(ValueError, match="'esgroup' and 'cma' must have a problem in common"):
        compared(run_rows("esgroup", 1, 5, [1]) + run_rows("cma", 2, 5, [1]))


def test_a_label_with_two_setups_is_refused() -> None:
    rows = run_rows("cma", 1, 5, [1]) + run_rows("cma", 2, 5, [1], setup=BIPOP)
    with pytest.raises(ValueError, match="label 'cma' must stand for one setup"):
        tables.setups(rows)


# ---- goals


def test_goals_are_met_at_their_limits_and_missed_above() -> None:
    low = uniform(0.85, tuple(f for f in tables.FUNCTIONS if f != 2)) + uniform(0.5, (2,))
    assert all(met(low).values()) and len(met(low)) == 6
    assert not met(uniform(0.86))["ratio over the ten functions, all dimensions"]
    assert met(uniform(0.95))["ratio over the ten, d = 20"] and not met(uniform(0.951))["ratio over the ten, d = 20"]
    assert met(uniform(0.5))["ratio on f2, d = 20"] and not met(uniform(0.501))["ratio on f2, d = 20"]


def test_a_dimension_can_miss_its_goal_alone() -> None:
    result = met(uniform(0.5, dims=(20,)) + uniform(1.0, dims=(40,)))
    assert result["ratio over the ten functions, all dimensions"] and result["ratio over the ten, d = 20"]
    assert not result["ratio over the ten, d = 40"]


@pytest.mark.parametrize(("function", "ratio", "good"), [(13, 1.4, True), (13, 1.41, False), (3, 2.0, True)])
def test_no_cell_of_the_ten_may_be_above_its_limit(function: int, ratio: float, good: bool) -> None:
    rows = uniform(0.5, tuple(f for f in tables.FUNCTIONS if f != function)) + uniform(ratio, (function,))
    assert met(rows)["largest ratio of the ten in a dimension"] is good


@pytest.mark.parametrize(("missed", "good"), [(0, True), (7, True), (8, False)])
def test_one_target_in_a_hundred_may_be_missed(missed: int, good: bool) -> None:
    rows = [row for i in range(100) for row in pair(1, 5, [1] * 7, [1] * 7, index=i)]
    for row in [r for r in rows if r.label == "esgroup"][:missed]:
        rows.append(row._replace(evals=None))
    assert met(rows)["solved, all functions and dimensions"] is good


def test_a_goal_without_data_is_missed() -> None:
    goal = tables.at_most("ratio", math.nan, 0.5)
    assert goal == Goal("ratio <= 0.5", goal.value, False)
    assert "| - | **missed** |" in tables.goals_table([goal])


def test_of_runs_with_restarts_only_the_fraction_solved_is_asked() -> None:
    rows = run_rows("esgroup", 1, 5, [50], setup=BIPOP) + run_rows("cma", 1, 5, [10], setup=BIPOP)
    text, good = tables.report(rows, "esgroup", "cma")
    assert good and "solved, all functions" in text and "f2" not in text and "<=" not in text


# ---- markdown


def test_the_report_marks_what_is_above_the_limit() -> None:
    text, good = tables.report(uniform(0.5, (1, 2)) + pair(13, 20, [300], [200]), "esgroup", "cma")
    assert not good
    assert "| f1 * | 0.500 | 0.500 | 0.500 |" in text
    assert "| f13 * | **1.500 !** | - | 1.500 |" in text
    assert "| largest ratio of the ten in a dimension <= 1.4 | 1.500 | **missed** |" in text
    assert "| ratio on f2, d = 20 <= 0.5 | 0.500 | met |" in text
    assert "| 20 | 0.714 | 0.714 | +0.000 |" in text
    assert "5 problems that both have run, 3 functions, d = [20, 40], indices [1]." in text
    assert "esgroup, 3000 d evaluations, restarts none; 5 problems, 2 s; ended by tolfun 5" in text


def test_an_unknown_label_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"label 'x' must be one of \['cma', 'esgroup'\]"):
        tables.report(uniform(1.0), "x", "cma")


# ---- files


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.csv"
    first, second = (
        run_rows("a", 1, 5, [1, 2]),
        run_rows("b", 24, 40, [3], setup=Setup("esgroup", "a=1;b='x,y'", 5, "none")),
    )
    second[0] = second[0]._replace(ended='error: ValueError: a "quoted", thing')
    tables.append_rows(path, first)
    tables.append_rows(path, second)
    assert tables.read_rows(path) == first + second
    assert path.read_text().startswith("label,function,dim,index,instance,seed,target,evals,used,ended,cpu,")


def test_a_line_cut_off_by_a_kill_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = run_rows("a", 1, 5, [1, 2])
    tables.append_rows(path, rows)
    path.write_text(path.read_text()[:-9])
    assert tables.read_rows(path) == rows[:-1]
    assert tables.finished(tables.read_rows(path)) == set()
    tables.append_rows(path, rows)
    assert tables.read_rows(path) == rows[:-1] + rows
    assert tables.finished(tables.read_rows(path)) == {("a", 1, 5, 1)}


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must have the columns label, function"):
        tables.read_rows(tmp_path / "other.csv")


def test_no_file_has_no_rows(tmp_path: Path) -> None:
    assert tables.read_rows(tmp_path / "none.csv") == []


# ---- counting


def recorder(values: list[float], max_evals: int = 100) -> bench.Recorder:
    """Objective with an optimum of 1000 whose values above it are given."""
    stream = iter(values)
    return bench.Recorder(lambda x: 1000.0 + next(stream), 1000.0, max_evals)


def test_a_target_counts_when_it_is_first_hit() -> None:
    fun = recorder([500.0, 100.0, 0.5, 30.0, 0.05])
    assert [fun(np.zeros(2)) for _ in range(5)] == [1500.0, 1100.0, 1000.5, 1030.0, 1000.05]
    assert fun.evals() == [2, 3, 3, 5, None, None, None]


def test_a_run_is_over_with_the_evaluation_that_hits_the_last_target() -> None:
    fun = recorder([1.0, 1e-9, 0.0])
    fun(np.zeros(2))
    with pytest.raises(bench.Finished, match="target"):
        fun(np.zeros(2))
    assert fun.count == 2 and fun.evals() == [1, 1, 1, 2, 2, 2, 2]


def test_a_run_is_over_when_the_budget_is_spent() -> None:
    fun = recorder([5.0, 5.0, 0.5], max_evals=3)
    fun(np.zeros(2)), fun(np.zeros(2))
    with pytest.raises(bench.Finished, match="budget"):
        fun(np.zeros(2))
    assert fun.evals() == [1, 1, 3, None, None, None, None]


def test_not_a_number_hits_nothing() -> None:
    fun = recorder([math.nan])
    assert math.isnan(fun(np.zeros(2))) and fun.evals() == [None] * 7


# ---- runs


class FakeProblem:
    """Sum of squares above 5, which counts its evaluations as coco's problems do."""

    id, id_function, id_instance, dimension, evaluations = "fake", 1, 71, 2, 0
    initial_solution = np.array([3.0, 4.0])

    def __call__(self, x: np.ndarray) -> float:
        self.evaluations += 1
        return 5.0 + float(x @ x)


class FakeSearcher:
    """Halves the point in every generation of three."""

    def __init__(self, x0: np.ndarray, sigma0: float, **options: object) -> None:
        self.x, self.options, self.told = x0, options, 0
        FakeSearcher.last = self

    def ask(self) -> np.ndarray:
        return np.array([self.x, self.x, self.x])

    def tell(self, values: list[float]) -> None:
        self.told += len(values)
        self.x = self.x / 2

    def stop(self) -> dict[str, str]:
        return {"tolx": "small", "tolfun": "flat"} if self.told >= self.options.get("enough", 10**9) else {}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "suite_problem", lambda task: (None, FakeProblem()))
    monkeypatch.setattr(bench, "optimum", lambda problem, rng: problem(np.zeros(2)))
    monkeypatch.setitem(sys.modules, "esgroup", SimpleNamespace(Searcher=FakeSearcher))


def task(options: str = "", budget: int = 3000) -> bench.Task:
    return bench.Task("ours", Setup("esgroup", options, budget, "none"), 1, 2, 6)


@pytest.mark.usefixtures("fake")
def test_a_run_records_the_exact_evaluation_of_each_target() -> None:
    rows = bench.solve(task("mirrored=True;structure=full"))
    # |x|^2 = 25 / 4^k in generation k, whose first evaluation is number 3 k + 1
    expected = [3 * max(0, math.ceil(math.log(25 / target, 4))) + 1 for target in TARGETS]
    assert [row.evals for row in rows] == expected
    assert [row.target for row in rows] == list(TARGETS)
    assert {(row.used, row.ended, row.instance, row.index, row.seed) for row in rows} == {
        (expected[-1], "target", 71, 6, 1_002_006)
    }
    assert FakeSearcher.last.options == {
        "rng": 1_002_006, "max_evals": 6000, "target": None, "mirrored": True, "structure": "full",
    }  # fmt: skip


@pytest.mark.usefixtures("fake")
def test_a_run_says_how_it_ended() -> None:
    assert {row.ended for row in bench.solve(task("enough=6"))} == {"tolx+tolfun"}
    short = bench.solve(task(budget=2))
    assert {(row.ended, row.used) for row in short} == {("budget", 4)}
    assert [row.evals for row in short] == [1, 4, None, None, None, None, None]


@pytest.mark.usefixtures("fake")
def test_a_failure_in_mid_run_is_kept_with_what_was_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FakeSearcher, values: list[float]) -> None:
        raise FloatingPointError("sigma\nis gone")

    monkeypatch.setattr(FakeSearcher, "tell", fail)
    rows = bench.solve(task())
    assert {row.ended for row in rows} == {"error: FloatingPointError: sigma is gone"}
    assert [row.evals for row in rows] == [1, None, None, None, None, None, None]


@pytest.mark.usefixtures("fake")
def test_a_failure_before_the_first_evaluation_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "esgroup", SimpleNamespace())
    with pytest.raises(AttributeError, match="Searcher"):
        bench.solve(task())


@pytest.mark.usefixtures("fake")
def test_evaluations_that_were_not_recorded_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = FakeProblem()
    problem.evaluations = 1
    monkeypatch.setattr(bench, "suite_problem", lambda task: (None, problem))
    with pytest.raises(RuntimeError, match="fake must have been evaluated"):
        bench.solve(task())


def test_seeds_differ_between_problems_and_are_positive() -> None:
    setup = PLAIN
    seeds = [bench.Task("a", setup, f, d, i).seed for f in range(1, 25) for d in (2, 5, 40, 640) for i in range(1, 16)]
    assert len(set(seeds)) == len(seeds) and min(seeds) > 0 and max(seeds) < 2**32


def test_an_optimum_of_another_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_problem(function: int, instance: int, dim: int, kind: object) -> object:
        assert (function, instance, dim) == (1, 71, 2)  # the instance's number and not its index
        return twin

    ioh = SimpleNamespace(get_problem=get_problem, ProblemClass=SimpleNamespace(BBOB="bbob"))
    monkeypatch.setitem(sys.modules, "ioh", ioh)
    twin = type("Twin", (), {"optimum": SimpleNamespace(y=5.0), "__call__": lambda self, x: 5.0 + float(x @ x)})()
    assert bench.optimum(FakeProblem(), np.random.default_rng(0)) == 5.0
    twin = type("Twin", (), {"optimum": SimpleNamespace(y=5.0), "__call__": lambda self, x: 5.001 + float(x @ x)})()
    with pytest.raises(RuntimeError, match="coco and ioh must agree on fake at"):
        bench.optimum(FakeProblem(), np.random.default_rng(0))


# ---- command line


def test_ranges_are_numbers_and_spans() -> None:
    assert bench.parse_range("1,2,6,8-11") == [1, 2, 6, 8, 9, 10, 11]
    with pytest.raises(typer.BadParameter, match="got '1,x'"):
        bench.parse_range("1,x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=True", True),
        ("a=None", None),
        ("a=0.5", 0.5),
        ("a=full", "full"),
        ("a=block_triangular:k=4", "block_triangular:k=4"),
    ],
)
def test_option_values_are_literals_or_strings(text: str, value: object) -> None:
    assert bench.parse_option(text) == ("a", value)


@pytest.mark.parametrize("text", ["a", "=1", "a b=1", "a=1;b"])
def test_an_option_that_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be key=value"):
        bench.parse_option(text)


@pytest.mark.usefixtures("fake")
def test_what_a_file_holds_is_not_run_again(tmp_path: Path) -> None:
    out = tmp_path / "ours.csv"
    command = ["run", "esgroup", "--out", str(out), "--dims", "2"]
    first = CliRunner().invoke(bench.app, [*command, "--functions", "1", "--indices", "1-2"])
    assert first.exit_code == 0 and "2 problems to run, 0 in" in first.output and "2/2 esgroup f1 d2" in first.output
    second = CliRunner().invoke(bench.app, [*command, "--functions", "1,3", "--indices", "1-2"])
    assert second.exit_code == 0 and "2 problems to run, 2 in" in second.output
    problems = [(row.function, row.index) for row in tables.read_rows(out)]
    assert problems == [(f, i) for f in (1, 3) for i in (1, 2) for _ in TARGETS]


@pytest.mark.usefixtures("fake")
def test_a_label_keeps_its_setup(tmp_path: Path) -> None:
    command = ["run", "esgroup", "--out", str(tmp_path / "a.csv"), "--dims", "2", "--functions", "1", "--indices", "1"]
    assert CliRunner().invoke(bench.app, command).exit_code == 0
    other = CliRunner().invoke(bench.app, [*command, "--option", "enough=6"])
    assert other.exit_code == 2 and "'esgroup' stands for Setup(" in other.output
    assert CliRunner().invoke(bench.app, [*command, "--option", "enough=6", "--label", "b"]).exit_code == 0
    assert set(tables.setups(tables.read_rows(tmp_path / "a.csv"))) == {"esgroup", "b"}


def test_options_are_for_esgroup_alone(tmp_path: Path) -> None:
    result = CliRunner().invoke(bench.app, ["run", "cma", "--out", str(tmp_path / "a.csv"), "--option", "a=1"])
    assert result.exit_code == 2 and "for esgroup" in result.output


@pytest.mark.parametrize(("ratio", "code"), [(0.5, 0), (0.9, 1)])
def test_the_table_exits_by_its_goals(tmp_path: Path, ratio: float, code: int) -> None:
    rows = uniform(ratio)
    for label in ("esgroup", "cma"):
        tables.append_rows(tmp_path / f"{label}.csv", [row for row in rows if row.label == label])
    result = CliRunner().invoke(bench.app, ["table", str(tmp_path / "esgroup.csv"), str(tmp_path / "cma.csv")])
    assert result.exit_code == code and result.output.startswith("## esgroup against cma")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(bench.app, ["table", str(tmp_path / "no.csv")])
    assert result.exit_code == 2 and f"{tmp_path / 'no.csv'} does not exist" in result.output
