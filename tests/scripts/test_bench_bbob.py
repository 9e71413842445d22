"""The bbob benchmark runs what it is told and counts evaluations as it says."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import bbob_runs as runs
import bench_bbob as bench
import numpy as np
import pytest
import typer
from bbob_arguments import parse_option, parse_part, parse_range
from bbob_rows import TARGETS, Row, Run, Setup, append_rows, finished, read_rows, setups
from typer.testing import CliRunner, Result

from tests.scripts.bbob_made_up import run_rows, uniform

pytestmark = pytest.mark.scripts

# ---- files


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.csv"
    first = run_rows("a", 1, 5, [1, 2], popsize=16, seed=3)
    second = run_rows("b", 24, 40, [3], setup=Setup("esgroup", "a=1;b='x,y'", 5, "none"))
    second[0] = second[0]._replace(ended='error: ValueError: a "quoted", thing')
    append_rows(path, first)
    append_rows(path, second)
    assert read_rows(path) == first + second
    assert path.read_text().startswith("label,function,dim,instance,popsize,seed,target,evals,used,ended,cpu,method,")


def test_a_line_cut_off_by_a_kill_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = run_rows("a", 1, 5, [1, 2], popsize=8, seed=4)
    append_rows(path, rows)
    path.write_text(path.read_text()[:-9])
    assert read_rows(path) == rows[:-1]
    assert finished(read_rows(path)) == set()
    append_rows(path, rows)
    assert read_rows(path) == rows[:-1] + rows
    assert finished(read_rows(path)) == {("a", Run(1, 5, 1, 8, 4))}


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must have the columns label, function"):
        read_rows(tmp_path / "other.csv")
    for command in (["run", "cma", "--out"], ["table"]):
        result = invoke(*command, tmp_path / "other.csv")
        assert result.exit_code == 2 and "must have the columns label, function" in result.output
    assert (tmp_path / "other.csv").read_text() == "a,b\n1,2\n"


def test_no_file_has_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "none.csv") == []


def test_a_label_with_two_setups_is_refused() -> None:
    rows = run_rows("cma", 1, 5, [1]) + run_rows("cma", 2, 5, [1], setup=Setup("cma", "", 10, "bipop"))
    with pytest.raises(ValueError, match="label 'cma' must stand for one setup"):
        setups(rows)


# ---- counting


def recorder(values: list[float], max_evals: int = 100) -> runs.Recorder:
    """Objective with an optimum of 1000 whose values above it are given."""
    stream = iter(values)
    return runs.Recorder(lambda points: [1000.0 + next(stream) for _ in points], 1000.0, max_evals)


def test_a_target_counts_when_it_is_first_hit() -> None:
    fun = recorder([500.0, 100.0, 0.5, 30.0, 0.05])
    assert [fun(np.zeros(2)) for _ in range(5)] == [1500.0, 1100.0, 1000.5, 1030.0, 1000.05]
    assert fun.evals() == [2, 3, 3, 5, None, None, None]


def test_a_generation_counts_like_its_points_one_after_the_other() -> None:
    fun = recorder([500.0, 100.0, 0.5, 30.0, 0.05])
    assert fun.generation(np.zeros((2, 3))) == [1500.0, 1100.0]
    assert fun.generation(list(np.zeros((3, 3)))) == [1000.5, 1030.0, 1000.05]
    assert fun.count == 5 and fun.evals() == [2, 3, 3, 5, None, None, None]


def test_a_run_is_over_within_the_generation_that_hits_the_last_target() -> None:
    fun = recorder([7.0, 1.0, 1e-9, 0.0, 0.0])
    fun(np.zeros(2))
    with pytest.raises(runs.Finished, match="target"):
        fun.generation(np.zeros((4, 2)))
    assert fun.count == 3 and fun.evals() == [1, 1, 2, 3, 3, 3, 3]


def test_a_generation_beyond_the_budget_is_evaluated_up_to_it() -> None:
    fun = recorder([5.0, 5.0, 0.5, 1e-9], max_evals=3)
    fun(np.zeros(2))
    with pytest.raises(runs.Finished, match="budget"):
        fun.generation(np.zeros((3, 2)))
    assert fun.count == 3 and fun.evals() == [1, 1, 3, None, None, None, None]


def test_the_last_target_may_be_hit_with_the_last_evaluation() -> None:
    fun = recorder([5.0, 0.0], max_evals=2)
    with pytest.raises(runs.Finished, match="target"):
        fun.generation(np.zeros((2, 2)))


def test_not_a_number_hits_nothing() -> None:
    fun = recorder([math.nan])
    assert math.isnan(fun(np.zeros(2))) and fun.evals() == [None] * 7


# ---- runs


def task(method: str, popsize: int | None = None, options: str = "", budget: int = 500) -> runs.Task:
    return runs.Task("a", Setup(method, options, budget, "none"), Run(3, 2, 2, popsize, 1))


class Counted:
    """Objective of single points with a plain count, as a check of the recorder."""

    def __init__(self, run: Run) -> None:
        self.problem, self.values = runs.bbob_problem(run), list[float]()

    def __call__(self, x: np.ndarray) -> float:
        self.values.append(self.problem(x) - self.problem.optimum.y)
        return self.problem(x)

    def first_hits(self, used: int) -> list[int | None]:
        gaps = np.array(self.values[:used])
        return [int(np.argmax(gaps <= target)) + 1 if (gaps <= target).any() else None for target in TARGETS]


@pytest.mark.parametrize("popsize", [None, 10])
def test_a_run_of_ours_records_the_evaluations_of_a_plain_loop(popsize: int | None) -> None:
    pytest.importorskip("ioh")
    import esgroup

    one = task("esgroup", popsize=popsize, options="mirrored=True")
    rows, fun = runs.solve(one), Counted(one.run)
    search = esgroup.Searcher(runs.start(one.run), 2.0, rng=one.seed, popsize=popsize, mirrored=True)
    assert popsize in (None, search.popsize)
    while len(fun.values) < rows[0].used:
        search.tell([fun(x) for x in search.ask()])
    assert [row.evals for row in rows] == fun.first_hits(rows[0].used)
    assert [row.target for row in rows] == list(TARGETS) and {row.run for row in rows} == {one.run}


@pytest.mark.parametrize("popsize", [None, 10])
def test_a_run_of_cma_records_the_evaluations_of_a_plain_loop(popsize: int | None) -> None:
    pytest.importorskip("ioh")
    cma = pytest.importorskip("cma")
    one = task("cma", popsize=popsize)
    rows, fun = runs.solve(one), Counted(one.run)
    options = {"seed": one.seed, "verbose": -9, **({"popsize": popsize} if popsize else {})}
    search = cma.CMAEvolutionStrategy(runs.start(one.run), 2.0, options)
    while len(fun.values) < rows[0].used:
        points = search.ask()
        search.tell(points, [fun(x) for x in points])
    assert [row.evals for row in rows] == fun.first_hits(rows[0].used)


def restarted(method: str, restarts: str) -> runs.Task:
    """A run that needs restarts, and in which the two kinds of cma hit different targets."""
    return runs.Task("a", Setup(method, "", 1000, restarts), Run(22, 3, 3, None, 1))


@pytest.mark.parametrize("restarts", ["bipop", "ipop"])
def test_restarts_of_ours_are_those_of_minimize(restarts: str) -> None:
    pytest.importorskip("ioh")
    import esgroup

    one = restarted("esgroup", restarts)
    rows, fun = runs.solve(one), Counted(one.run)
    esgroup.minimize(fun, runs.start(one.run), 2.0, restarts=restarts, rng=one.seed, max_evals=one.max_evals)  # type: ignore[arg-type]
    assert [row.evals for row in rows] == fun.first_hits(rows[0].used)
    assert rows[0].used > runs.solve(restarted("esgroup", "none"))[0].used


@pytest.mark.parametrize("restarts", ["bipop", "ipop"])
def test_restarts_of_cma_are_those_of_fmin2(restarts: str) -> None:
    pytest.importorskip("ioh")
    cma = pytest.importorskip("cma")
    one = restarted("cma", restarts)
    rows, fun = runs.solve(one), Counted(one.run)
    options = {"seed": one.seed, "verbose": -9, "maxfevals": one.max_evals}
    cma.fmin2(fun, runs.start(one.run), 2.0, options, restarts=9, bipop=restarts == "bipop")
    assert [row.evals for row in rows] == fun.first_hits(rows[0].used)


def test_the_two_kinds_of_restarts_of_cma_differ() -> None:
    pytest.importorskip("ioh")
    pytest.importorskip("cma")
    bipop, ipop = (runs.solve(restarted("cma", way)) for way in ("bipop", "ipop"))
    assert [row.evals for row in bipop] != [row.evals for row in ipop]


def test_a_run_says_how_it_ended() -> None:
    pytest.importorskip("ioh")
    assert {row.ended for row in runs.solve(task("esgroup", options="max_iters=3"))} == {"max_iters"}
    assert {(row.ended, row.used) for row in runs.solve(task("esgroup", budget=4))} == {("budget", 8)}


def test_a_failure_in_mid_run_is_kept_with_what_was_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(one: runs.Task, fun: runs.Recorder, x0: np.ndarray) -> str:
        fun(x0)
        raise FloatingPointError("sigma\nis gone")

    monkeypatch.setitem(runs.METHODS, "esgroup", fails)
    fun = recorder([30.0])
    assert runs.search(task("esgroup"), fun, np.zeros(2)) == "error: FloatingPointError: sigma is gone"
    assert fun.evals() == [1, None, None, None, None, None, None]


def test_a_failure_before_the_first_evaluation_is_raised() -> None:
    with pytest.raises(TypeError, match="no_such"):
        runs.search(task("esgroup", options="no_such=1"), recorder([30.0]), np.zeros(2))


def test_the_start_depends_on_the_problem_alone_and_fills_its_box() -> None:
    first = runs.start(Run(8, 400, 3, None, 0))
    assert np.array_equal(first, runs.start(Run(8, 400, 3, 64, 5)))
    assert np.abs(first).max() <= 4 and first.min() < -3.8 and first.max() > 3.8
    others = [runs.start(run)[0] for run in (Run(9, 400, 3, None, 0), Run(8, 400, 4, None, 0), Run(8, 401, 3, None, 0))]
    assert len({first[0], *others}) == 4


def test_the_seed_of_the_method_depends_on_the_whole_run_and_not_on_the_label() -> None:
    every = [
        Run(f, d, i, p, s) for f in (1, 24) for d in (5, 40) for i in (1, 2, 115) for p in (None, 8, 64) for s in (0, 1)
    ]
    seeds = [runs.Task("a", Setup("cma", "", 1, "none"), run).seed for run in every]
    assert seeds == [runs.Task("b", Setup("esgroup", "", 2, "ipop"), run).seed for run in every]
    assert len(set(seeds)) == len(seeds) and min(seeds) > 0 and max(seeds) < 2**31


# ---- command line


def invoke(*words: object) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


@pytest.fixture
def small(tmp_path: Path) -> tuple[object, ...]:
    """A command of quick runs."""
    pytest.importorskip("ioh")
    return ("run", "esgroup", "--out", tmp_path / "ours.csv", "--dims", "2", "--functions", "1,3", "--budget", "10")


def test_what_a_file_holds_is_not_run_again(small: tuple[object, ...], tmp_path: Path) -> None:
    first = invoke(*small, "--instances", "1-2", "--popsizes", "6,8")
    assert first.exit_code == 0 and "8 runs to do, 0 in" in first.output
    assert "8/8 esgroup f3 d2 instance 2 popsize 8:" in first.output and "about 0 min left" in first.output
    second = invoke(*small, "--instances", "2-3", "--popsizes", "8,12")
    assert second.exit_code == 0 and "6 runs to do, 2 in" in second.output
    assert "2 runs to do, 0 in" in invoke(*small, "--instances", "1").output  # the default population is another run
    assert "2 runs to do, 0 in" in invoke(*small, "--instances", "1", "--seed", "1").output
    found = [row.run for row in read_rows(tmp_path / "ours.csv")]
    assert len(found) == 18 * len(TARGETS) and len(set(found)) == 18


def test_a_run_does_not_depend_on_what_is_run_beside_it(small: tuple[object, ...], tmp_path: Path) -> None:
    def rows() -> list[Row]:
        found = [row._replace(cpu=0.0) for row in read_rows(tmp_path / "ours.csv")]
        (tmp_path / "ours.csv").unlink()
        return sorted(found, key=lambda row: (row.run[:3], -row.target))

    invoke(*small, "--instances", "1-3")
    whole = rows()
    assert invoke(*small, "--instances", "1-3", "--jobs", "2").exit_code == 0
    assert rows() == whole
    for number in ("3/4", "1/4", "4/4", "2/4"):
        result = invoke(*small, "--instances", "1-3", "--part", number)
        assert f"{2 if number in ('1/4', '2/4') else 1} runs to do, 0 in" in result.output
    assert rows() == whole


def test_the_time_left_is_judged_by_the_squares_of_the_dimensions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, minutes = Setup("cma", "", 10, "none"), iter([0, 1])
    monkeypatch.setattr(bench.time, "monotonic", lambda: 60 * next(minutes))
    progress = bench.Progress([runs.Task("cma", setup, Run(1, dim, 1, None, 0)) for dim in (5, 10, 10)])
    progress.say(run_rows("cma", 1, 5, [1, 2]))  # 25 of 225
    assert "1/3 cma f1 d5 instance 1: 2 of 7 targets, 999 evaluations, tolfun" in (said := capsys.readouterr().err)
    assert "about 8 min left" in said


def test_a_label_keeps_its_setup(small: tuple[object, ...], tmp_path: Path) -> None:
    assert invoke(*small).exit_code == 0
    other = invoke(*small, "--option", "mirrored=True")
    assert other.exit_code == 2 and "'esgroup' stands for Setup(" in other.output
    assert invoke(*small, "--option", "mirrored=True", "--label", "b").exit_code == 0
    assert set(setups(read_rows(tmp_path / "ours.csv"))) == {"esgroup", "b"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cma", "--option", "a=1"], "--option must be given for esgroup only, got method cma"),
        (["esgroup", "--option", "popsize=8"], "--option must not set popsize, which --popsizes does"),
        (["esgroup", "--option", "a"], "--option must be key=value without a semicolon, got 'a'"),
        (["cma", "--functions", "0-3"], "--functions must be between 1 and 24, got '0-3'"),
        (["cma", "--functions", "24,25"], "--functions must be between 1 and 24, got '24,25'"),
        (["cma", "--dims", "1"], "--dims must be at least 2, got '1'"),
        (["cma", "--instances", "5-1"], "--instances must be numbers and ranges like 1,2,6,8-14, got '5-1'"),
        (["cma", "--popsizes", "8;16"], "--popsizes must be numbers and ranges like 1,2,6,8-14, got '8;16'"),
        (["cma", "--part", "5/4"], "--part must be k/n with k from 1 to n, like 2/4, got '5/4'"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_written(words: list[str], message: str, tmp_path: Path) -> None:
    result = invoke("run", *words, "--out", tmp_path / "a.csv")
    assert result.exit_code == 2 and message in result.output
    assert not (tmp_path / "a.csv").exists()


def test_ranges_are_numbers_and_spans_each_once() -> None:
    assert parse_range("1,2,6,8-11,10", "--functions", 1) == [1, 2, 6, 8, 9, 10, 11]


@pytest.mark.parametrize("text", ["0/4", "2", "/4", "2/", "-1/4", "a/b", "1/0"])
def test_a_part_that_is_no_fraction_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="--part must be k/n"):
        parse_part(text)


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
    assert parse_option(text) == ("a", value)


@pytest.mark.parametrize("text", ["a", "=1", "a b=1", "a=1;b"])
def test_an_option_that_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be key=value"):
        parse_option(text)


@pytest.mark.parametrize(("ratio", "code"), [(0.5, 0), (0.9, 1)])
def test_the_table_exits_by_its_goals(tmp_path: Path, ratio: float, code: int) -> None:
    rows = uniform(ratio, [1, 8], [5])
    for label in ("esgroup", "cma"):
        append_rows(tmp_path / f"{label}.csv", [row for row in rows if row.label == label])
    result = invoke("table", tmp_path / "esgroup.csv", tmp_path / "cma.csv")
    assert result.exit_code == code and result.output.startswith("## esgroup against cma")


def test_a_missing_file_and_an_unknown_label_are_named(tmp_path: Path) -> None:
    result = invoke("table", tmp_path / "no.csv")
    assert result.exit_code == 2 and f"{tmp_path / 'no.csv'} does not exist" in result.output
    append_rows(tmp_path / "a.csv", run_rows("cma", 1, 5, [1]))
    result = invoke("table", tmp_path / "a.csv", "--label", "x")
    assert result.exit_code == 2 and "label 'x' must be one of ['cma']" in result.output


def test_the_commands_of_a_table_add_instances_to_the_doubtful_cells(small: tuple[object, ...], tmp_path: Path) -> None:
    pytest.importorskip("cma")
    setup = Setup("esgroup", "mirrored=True", 10, "none")
    for function, evals in ((1, 30), (8, 10)):  # f1 looks worse, f8 does not
        for popsize in (6, 8):
            append_rows(tmp_path / "ours.csv", run_rows("m", function, 2, [evals] * 7, 4, popsize, setup=setup))
            cma = run_rows("cma", function, 2, [20] * 7, 4, popsize, setup=Setup("cma", "", 10, "none"))
            append_rows(tmp_path / "cma.csv", cma)
    table = ("table", tmp_path / "ours.csv", tmp_path / "cma.csv", "--label", "m")
    commands = [line for line in invoke(*table).output.splitlines() if line.startswith("python ")]
    assert len(commands) == 2
    for command in commands:
        assert invoke(*shlex.split(command)[2:]).exit_code == 0
    for name in ("ours.csv", "cma.csv"):
        new = {row.run for row in read_rows(tmp_path / name) if row.instance != 4}
        assert new == {Run(1, 2, 5, 6, 0), Run(1, 2, 5, 8, 0)}
    assert "instances 4-5" in invoke(*table).output
