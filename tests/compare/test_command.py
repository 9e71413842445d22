"""The command from end to end: what it writes, that it continues, and what it says to bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from esgroup.command.cli import app
from esgroup.compare import records
from esgroup.compare.command import Request, seeds, whole_numbers
from esgroup.compare.presets import PRESETS
from esgroup.compare.report import figures, outputs
from esgroup.compare.workers import Watch
from tests.compare.samples import failure, run

ROOT = Path(__file__).parents[2]
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

SMALL = ("sphere", "rosenbrock", "--dims", "2", "--methods", "esgroup,bfgs", "--seeds", "2")


def compare(*arguments: object):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def hits(folder: Path) -> dict[records.Cell, tuple[float, ...]]:
    return {one.cell: one.hits for one in records.read(folder / "runs.csv")}


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than the runs: reports have an empty figure."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(figures, "convergence", lambda *_: [])
    monkeypatch.setattr(figures, "profile", lambda runs: Figure(figsize=(1.0, 1.0), label="profile"))


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "write", lambda *_: "")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "out"
    result = compare(*SMALL, "--out", out, "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert f"page     {out / 'index.html'}" in result.output and "| rosenbrock |" in result.output
    return out


def test_everything_is_written(done: Path) -> None:
    names = {path.name for path in done.iterdir()}
    figures = {f"{name}.{suffix}" for name in ("convergence", "profile") for suffix in ("png", "svg")}
    assert names == {"runs.csv", "table.md", "index.html", "command.json"} | figures
    assert len(records.read(done / "runs.csv")) == 2 * 2 * 2
    assert all(one.versions for one in records.read(done / "runs.csv"))


def test_table_and_page_have_the_command(done: Path) -> None:
    command = f"esgroup compare {' '.join(SMALL)} --out {done}"
    assert command in (done / "table.md").read_text()
    assert command in re.sub("<[^>]+>", "", (done / "index.html").read_text())
    assert json.loads((done / "command.json").read_text())["command"] == command


@pytest.mark.usefixtures("no_report")
def test_a_problem_that_is_scaled_says_so_in_all_files(done: Path) -> None:
    table, page, figure = ((done / name).read_text("utf-8") for name in ("table.md", "index.html", "convergence.svg"))
    assert "rosenbrock is divided by d." in table and "sphere is" not in table
    assert "rosenbrock is divided by d, and so are its gaps." in page
    assert "rosenbrock  ·  d = 2  ·  divided by d" in figure and "sphere  ·  d = 2<" in figure


def test_a_problem_that_is_not_there_any_more_has_no_factor() -> None:
    assert outputs._scaled("rosenbrock", 3) == "divided by d"
    assert outputs._scaled("no_such_problem", 3) == outputs._scaled("no_such_module:f", 3) == ""


def test_the_same_command_in_another_folder_gives_the_same_counts(done: Path, tmp_path: Path) -> None:
    assert compare(*SMALL, "--out", tmp_path / "again", "--jobs", 1).exit_code == 0
    assert hits(tmp_path / "again") == hits(done)


def test_the_same_command_again_runs_nothing(done: Path) -> None:
    before = (done / "runs.csv").read_bytes()
    assert compare(*SMALL, "--out", done).exit_code == 0
    assert (done / "runs.csv").read_bytes() == before


@pytest.mark.usefixtures("no_report")
def test_an_interrupted_comparison_goes_on_where_it_was(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "problems")])
    slow = ("tests.compare.oddities:slow_sphere", *SMALL)
    command = [sys.executable, "-c", "from esgroup.command.cli import app; app()", "compare", *slow, "--out", str(out)]
    process = subprocess.Popen(
        [*command, "--jobs", "1"], cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True
    )
    begin = time.monotonic()
    while not (out / "runs.csv").exists() and time.monotonic() < begin + 60:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted: " in said and "the same command" in said
    some = hits(out)
    assert 0 < len(some) < 12 and not (out / "table.md").exists()
    result = compare(*slow, "--out", out, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert len(hits(out)) == 12 and some.items() <= hits(out).items()
    assert hits(done).items() <= hits(out).items()


@pytest.mark.usefixtures("no_figures")
def test_failures_are_in_the_table_and_the_rest_goes_on(tmp_path: Path) -> None:
    result = compare(
        "sphere", "tests.compare.oddities:raises", "--dims", 2, "--methods", "nelder-mead", "--seeds", 1,
        "--out", tmp_path / "out", "--jobs", 1,
    )  # fmt: skip
    assert result.exit_code == 0
    assert "1 of 2 runs failed: see the table for the reasons" in result.output
    for name in ("table.md", "index.html"):
        assert "the simulator says no" in (tmp_path / "out" / name).read_text()


@pytest.mark.parametrize(
    ("problem", "methods"),
    [("metric_nearness", "wishart,nelder-mead@log"), ("kronecker_ellipsoid", "matrix-gaussian,nelder-mead")],
)
@pytest.mark.usefixtures("no_figures")
def test_matrices_are_searched_themselves_and_through_a_chart(problem: str, methods: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = compare(problem, "--dims", 2, "--methods", methods, "--seeds", 2, "--out", out, "--jobs", 1)
    assert result.exit_code == 0, result.output
    runs = records.read(out / "runs.csv")
    assert [one.cell for one in runs if one.solved] == [one.cell for one in runs] and len(runs) == 4
    assert {(one.method, one.size) for one in runs} == {(name, runs[0].size) for name in methods.split(",")}
    assert all(f"| {name} " in result.output for name in methods.split(","))


def test_the_list_has_the_searches_of_matrices() -> None:
    listed = CliRunner().invoke(app, ["list"]).output
    assert "wishart" in listed and "matrix-gaussian" in listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--preset quick | paper | bbob | largescale | spd"),
        (("--preset", "quik"), "unknown preset 'quik' (did you mean 'quick'?)"),
        (("spher",), "unknown problem 'spher' (did you mean 'sphere'?)"),
        (("sphere", "--methods", "cma,bfsg"), "unknown method 'bfsg' (did you mean 'bfgs'"),
        (("sphere", "--dims", "ten"), "--dims must be numbers such as 10,40,200, got 'ten'"),
        (("sphere", "--seeds", "a"), "--seeds must be numbers such as 5 (the first five), 5-9 or 1,4,7, got 'a'"),
        (("sphere", "--targets", "1;2"), "--targets must be numbers such as 1e1,1e-3,1e-8, got '1;2'"),
        (("sphere", "--jobs", "0", "--methods", "esgroup"), "--jobs must be at least 1, got 0"),
        (("rosenbrock", "--methods", "wishart"), "wishart searches positive-definite matrices; rosenbrock has vectors"),
        (("metric_nearness", "--methods", "wishart@log"), "chart, got 'wishart@log'"),
        (("sphere", "--methods", "tests.compare.oddities:absent"), "pip install 'esgroup[bench]'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = compare(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and said in result.stderr and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_another_comparison_in_the_folder_is_refused(done: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in done.iterdir()}
    result = compare("sphere", "--dims", 2, "--methods", "esgroup", "--out", done)
    assert result.exit_code == 2 and "another comparison" in result.stderr
    assert {path.name: path.stat().st_mtime_ns for path in done.iterdir()} == before


# ---- small parts ----------------------------------------------------------------------------------------------------


def test_numbers_may_be_ranges() -> None:
    assert whole_numbers("1,3-5") == [1, 3, 4, 5]
    assert seeds("3") == [0, 1, 2] and seeds("5-7") == [5, 6, 7] and seeds("1,4") == [1, 4]


def test_a_command_is_quoted_where_it_must_be() -> None:
    request = Request(["sphere"], methods="esgroup:diagonal", out=Path("my folder"), extend=True)
    assert request.command == "esgroup compare sphere --methods esgroup:diagonal --out 'my folder' --extend"


def test_the_presets_are_plans() -> None:
    from esgroup.compare.plan import plan

    assert set(PRESETS) == {"quick", "paper", "bbob", "largescale", "spd"}
    for name in ("quick", "paper", "spd"):
        assert plan(**PRESETS[name].arguments).reference.startswith("cma")


def test_the_preset_of_positive_definite_matrices_searches_them_too() -> None:
    from esgroup.compare.command import _plan

    made = _plan(Request(preset="spd"))
    assert made.methods[:2] == ("wishart", "esgroup@log") and made.reference == "cma@log"


def test_what_is_typed_goes_before_what_a_preset_says() -> None:
    from esgroup.compare.command import _plan

    assert PRESETS["largescale"].arguments["reference"] == "cma-vkd"
    made = _plan(Request(["sphere"], "largescale", dims="3", methods="cmaes-sep,esgroup", seeds="2"))
    assert (made.problems, made.methods, made.reference) == ((("sphere", 3),), ("cmaes-sep", "esgroup"), "cmaes-sep")
    assert _plan(Request(["sphere"], "largescale", methods="esgroup,cma-vkd")).reference == "cma-vkd"


def test_where_no_terminal_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 10.0, 30.0, 30.0, 30.0, 31.0])
    monkeypatch.setattr("esgroup.compare.workers.time.monotonic", lambda: next(clock))
    with Watch(total=10, done=5) as watch:
        watch.update(run())
        watch.update(failure("no"))
    assert capsys.readouterr().err == "5 runs to do\n7 of 10 runs, 45 s left, 1 failed\n"
