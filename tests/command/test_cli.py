"""The command line: results, files, wrong input, exceptions, Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import esgroup
from esgroup.command import cli
from esgroup.command import run as run_command
from esgroup.driver.origin import CheckpointFile
from esgroup.problem_registry import families, known
from esgroup.running.history import read
from esgroup.running.progress import Progress
from esgroup.stopping import TolFun, TolX

ROOT = Path(__file__).parents[2]
MODULE = """
import time

def bowl(x):
    return float(((x - 1) ** 2).sum())

def slow(x):
    time.sleep(0.005)
    return bowl(x)

def slope(x):
    time.sleep(0.005)
    return 2 * (x - 1)

def fails_later(x, calls=[]):
    calls.append(x)
    if len(calls) > 40:
        raise ZeroDivisionError("the rig is broken")
    return bowl(x)

def words(x):
    return "text"

def nothing(x):
    return float("nan")

def mostly(x):
    return float("nan") if x[0] < 0 else bowl(x)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's, which every test imports afresh."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "rig", raising=False)
    (tmp_path / "rig.py").write_text(MODULE)
    return tmp_path


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == code, result.output
    return result


def said(stderr: str) -> str:
    """stderr without the note that a new installation compiles its loops."""
    return "".join(line for line in stderr.splitlines(True) if not line.startswith("esgroup: compiling"))


def run(*words: str, code: int = 0) -> Any:
    """The JSON that `esgroup run ... --json` prints."""
    return json.loads(command("run", *words, "--json", code=code).stdout)


# ---- results ----------------------------------------------------------------------------------------------------


def test_a_person_gets_a_few_lines() -> None:
    result = command("run", "sphere", "--dim", "8", "--seed", "1", "--target", "1e-6")
    labels = [line.split()[0] for line in result.stdout.splitlines()]
    assert labels == ["problem", "stopped", "best", "at", "cost", "time"]
    assert "problem  sphere, 8 variables, structure full (chosen for you)\n" in result.stdout
    assert "stopped  target: target 1e-06 reached (best value" in result.stdout
    assert "(known minimum 0)" in result.stdout and ", … 3 more]" in result.stdout
    assert said(result.stderr) == ""


def test_the_time_of_the_search_itself_is_without_evaluations_and_files() -> None:
    """An evaluation sleeps 5 ms, which no search may be said to have needed itself."""
    words = ("rig:slow", "--dim", "3", "--seed", "1", "--max-evals", "40")
    for more in ((), ("--workers", "2"), ("--method", "newton", "--jac", "rig:slope")):
        found = run(*words, *more) if "newton" not in more else run(*words[:-2], *more, "--max-iters", "2")
        slept = 0.005 * (found["nfev"] + found.get("njev", 0)) / (2 if "--workers" in more else 1)
        assert 0 <= found["search_seconds"] <= found["seconds"] - 0.9 * slept, more
    shown = command("run", *words, "--checkpoint", "c.npz").stdout
    assert re.search(r"\ntime     \S+ s for the search itself, \S+ s with evaluations and files\n", shown)
    more = command("run", *words[:-1], "60", "--checkpoint", "c.npz", "--resume").stdout
    assert re.search(r"\ntime .* s with evaluations and files, since resuming\n", more)
    alone = command("run", "sphere", "--method", "newton").stdout
    assert re.search(r"\ntime     \S+ s for the method itself, \S+ s with evaluations\n", alone)


def test_the_time_of_a_search_is_that_of_all_its_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ask and every tell takes a second on this clock, and nothing else does."""
    from esgroup.search.ledger import Clock

    monkeypatch.setattr(Clock, "take_over", lambda self: 0.0)
    real = Clock.hand_over

    def hand_over(self: Clock, since: float, *more: Any) -> None:
        own = self.own
        real(self, since, *more)
        self.own = own + 1.0

    monkeypatch.setattr(Clock, "hand_over", hand_over)
    found = run("rastrigin", "--dim", "2", "--seed", "1", "--restarts", "ipop", "--max-iters", "200")
    assert found["restarts"] > 0 and found["search_seconds"] == 2 * found["nit"]


def test_a_person_is_told_whether_a_model_was_used() -> None:
    words = ("run", "rosenbrock", "--dim", "4", "--seed", "1", "--model", "auto", "--max-evals")
    few, many = (command(*words, evaluations).stdout for evaluations in ("100", "2001"))
    assert "\nmodel    A quadratic model was used because max_evals is at most 500" in few
    assert "\nmodel" not in many and " generations" in many


def test_json_is_the_only_thing_on_stdout_and_equals_the_library() -> None:
    found = run("sphere", "--dim", "3", "--seed", "7", "--max-evals", "200", "--structure", "diagonal")
    direct = esgroup.minimize(
        lambda X: (X**2).sum(axis=1),
        np.full(3, 3.0),
        2.0,
        structure="diagonal",
        max_evals=200,
        rng=7,
        vectorized=True,
    )
    assert found["x"] == direct.x.tolist() and found["fun"] == direct.fun
    assert (found["nfev"], found["nit"], found["status"]) == (direct.nfev, direct.nit, direct.status)
    assert (found["success"], found["interrupted"], found["structure"]) == (False, False, "diagonal")
    assert found["stop"] == direct.stop and found["xmean"] == direct.xmean.tolist()
    assert found["known_minimum"] == 0 and found["files"] == {}


def test_the_options_reach_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def minimize(fun: Any, x0: Any, sigma0: Any, **options: Any) -> Any:
        seen.update(options, x0=list(x0), sigma0=sigma0)
        raise ValueError("seen")

    monkeypatch.setattr("esgroup.driver.minimize.minimize", minimize)
    words = "--x0 1,-2 --sigma0 0.3 --bounds -5,5 --structure triangular --popsize 9 --algorithm paper --mirrored"
    words += " --noise adapt --restarts bipop --seed 3 --workers 2 --max-evals 10 --max-iters 11 --max-time 12"
    words += " --target -1.5 --tolx 1e-6 --tolfun 1e-9 --checkpoint c.npz --integer 0 --fixed 1=3"
    command("run", "rosenbrock", *words.split(), code=2)
    expected = {
        "x0": [1, -2],
        "sigma0": 0.3,
        "bounds": (-5, 5),
        "structure": "triangular",
        "popsize": 9,
        "algorithm": "paper",
        "mirrored": True,
        "noise": "adapt",
        "restarts": "bipop",
        "rng": 3,
        "workers": 2,
        "vectorized": False,
        "max_evals": 10,
        "max_iters": 11,
        "max_time": 12,
        "target": -1.5,
        "stop": (TolX(1e-6), TolFun(1e-9)),
        "integer": [0],
        "fixed": {1: 3.0},
        "checkpoint": CheckpointFile(Path("c.npz"), "rosenbrock with 2 variables", ()),
        "resume": False,
        "progress": True,
        "history": None,
    }
    assert {name: seen[name] for name in expected} == expected


def test_a_function_of_ones_own_is_minimized() -> None:
    found = run("rig:bowl", "--dim", "3", "--seed", "1", "--target", "1e-9")
    np.testing.assert_allclose(found["x"], np.ones(3), atol=1e-4)
    assert (found["problem"], found["known_minimum"], found["success"]) == ("rig:bowl", None, True)


def test_bounds_hold_for_each_coordinate() -> None:
    found = run("rig:bowl", "--x0", "0.2,-2", "--bounds", "0,0.5;-5,-1", "--seed", "1", "--max-evals", "600")
    np.testing.assert_allclose(found["x"], [0.5, -1.0], atol=1e-6)


def test_workers_give_the_same_result() -> None:
    words = ("rig:bowl", "--x0", "0.5,3", "--seed", "2", "--max-evals", "60")
    alone, together = run(*words), run(*words, "--workers", "2")
    assert alone["x"] == together["x"] and alone["nfev"] == together["nfev"] == 60


def test_a_run_without_a_single_value_is_reported_and_fails() -> None:
    found = run("rig:nothing", "--dim", "2", "--max-evals", "30", code=1)
    assert (found["fun"], found["nfailed"]) == (None, found["nfev"])
    result = command("run", "rig:nothing", "--dim", "2", "--max-evals", "30", code=1)
    assert "best     none: all evaluations failed" in result.stdout
    assert re.match("error: all evaluations failed", said(result.stderr))
    words = ("--method", "newton", "--jac", "rig:nothing")
    assert run("rig:nothing", "--dim", "2", *words, code=1)["fun"] is None


def test_a_run_with_some_failed_evaluations_does_not_fail() -> None:
    found = run("rig:mostly", "--dim", "2", "--max-evals", "30", "--seed", "1")
    assert 0 < found["nfailed"] < found["nfev"] and found["fun"] is not None


def test_integer_and_fixed_variables() -> None:
    words = ("--x0", "0,0.3,4,0.6", "--max-evals", "200", "--seed", "1")
    x = run("rig:bowl", *words, "--integer", "0,2", "--fixed", "1=0.5,3")["x"]
    assert x[0] == int(x[0]) and x[2] == int(x[2]) and (x[1], x[3]) == (0.5, 0.6)
    direct = esgroup.minimize(
        lambda x: float(((x - 1) ** 2).sum()),
        [0.0, 0.3, 4.0, 0.6],
        rng=1,
        max_evals=200,
        integer=[0, 2],
        fixed={1: 0.5, 3: 0.6},
    )
    assert x == direct.x.tolist()
    x = run("rig:bowl", "--dim", "3", "--max-evals", "200", "--integer", "all")["x"]
    assert x == [round(value) for value in x]
    assert run("rig:bowl", *words, "--fixed", "-1")["x"][3] == 0.6


# ---- files ------------------------------------------------------------------------------------------------------


def test_history_and_figure_are_written_and_named(here: Path) -> None:
    words = ("--max-evals", "300", "--history", "h.jsonl", "--plot", "f.png", "--checkpoint", "c.npz")
    result = command("run", "sphere", "--dim", "4", "--seed", "1", *words)
    assert "files    history h.jsonl, checkpoint c.npz, figure f.png\n" in result.stdout
    assert read("h.jsonl").header["problem"] == "sphere" and read("h.jsonl").nfev[-1] == 300
    assert (here / "f.png").read_bytes().startswith(b"\x89PNG")
    assert esgroup.Searcher.load("c.npz").dim == 4


def test_a_figure_needs_no_history_file(here: Path) -> None:
    found = run("sphere", "--dim", "2", "--max-evals", "100", "--plot", "f.svg")
    assert found["files"] == {"figure": "f.svg"}
    assert sorted(path.name for path in here.iterdir() if path.is_file()) == ["f.svg", "rig.py"]


def test_a_history_can_be_drawn_later(here: Path) -> None:
    command("run", "sphere", "--dim", "2", "--max-evals", "100", "--history", "run.jsonl")
    assert command("plot", "run.jsonl").stdout == "figure   run.png\n"
    assert command("plot", "run.jsonl", "--out", "other.pdf").stdout == "figure   other.pdf\n"
    assert (here / "run.png").exists() and (here / "other.pdf").read_bytes().startswith(b"%PDF")


def test_several_histories_are_laid_over_one_another(here: Path) -> None:
    (here / "runs").mkdir()
    for name in ("runs/a.jsonl", "b.jsonl"):
        command("run", "sphere", "--dim", "2", "--max-evals", "60", "--history", name)
    assert command("plot", "runs/a.jsonl", "b.jsonl").stdout == "figure   runs/overlay.png\n"
    assert command("plot", "runs/a.jsonl", "b.jsonl", "--out", "both.svg").stdout == "figure   both.svg\n"
    assert (here / "runs" / "overlay.png").exists() and b"<svg" in (here / "both.svg").read_bytes()
    assert command("plot", "b.jsonl", "no.jsonl", code=2).stderr == "error: No such file or directory: no.jsonl\n"
    assert re.match(r"error: rig\.py .*history", command("plot", "b.jsonl", "rig.py", code=2).stderr)


def test_a_figure_that_fails_does_not_cost_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("esgroup.plots.run.plot", full_disk)
    result = command("run", "sphere", "--dim", "2", "--max-evals", "100", "--plot", "f.png", code=1)
    assert "best     " in result.stdout
    assert re.fullmatch(r"error: the figure .*OSError: no space left\n", said(result.stderr))


def test_a_resumed_run_equals_the_uninterrupted_run() -> None:
    problem, parts = ("rosenbrock", "--dim", "4"), ("--checkpoint", "c.npz", "--history", "parts.jsonl")
    whole = run(*problem, "--seed", "3", "--max-iters", "60", "--history", "whole.jsonl")
    run(*problem, "--seed", "3", "--max-iters", "25", *parts)
    rest = run(*problem, "--max-iters", "60", *parts, "--resume")  # the saved generator continues
    assert rest["x"] == whole["x"] and rest["nfev"] == whole["nfev"] and rest["xmean"] == whole["xmean"]
    np.testing.assert_array_equal(read("parts.jsonl").mean, read("whole.jsonl").mean)


def test_another_problem_cannot_continue_a_checkpoint() -> None:
    words = ("--checkpoint", "c.npz", "--seed", "1")
    run("sphere", "--dim", "4", "--max-evals", "100", *words)
    before = Path("c.npz").read_bytes()
    for other, message in (
        (("rosenbrock", "--dim", "4"), r"c\.npz.* sphere with 4 variables, not of rosenbrock with 4 variables"),
        (("sphere", "--dim", "5"), r"c\.npz.* sphere with 4 variables, not of sphere with 5 variables"),
        (("rig:bowl", "--dim", "4"), r"sphere with 4 variables, not of rig:bowl with 4"),
        (("sphere", "--dim", "4", "--sigma0", "0.123"), r"sigma0 .*0\.123"),
        (("sphere", "--dim", "4", "--popsize", "30"), r"popsize .*30"),
    ):
        result = command("run", *other, *words, "--resume", code=2)
        assert re.search(message, said(result.stderr)) and said(result.stderr).count("\n") == 1
        assert Path("c.npz").read_bytes() == before
    assert run("sphere", "--dim", "4", "--max-evals", "200", *words, "--resume")["nfev"] >= 200


def test_a_checkpoint_from_python_can_be_continued() -> None:
    esgroup.minimize(lambda x: float(x @ x), np.ones(4), 0.5, max_evals=100, checkpoint="c.npz")
    assert run("sphere", "--dim", "4", "--max-evals", "200", "--checkpoint", "c.npz", "--resume")["nfev"] >= 200


def test_a_start_need_not_be_repeated_to_continue() -> None:
    words = ("sphere", "--dim", "2", "--checkpoint", "c.npz")
    run(*words, "--x0", "1,2", "--sigma0", "0.3", "--seed", "1", "--max-evals", "50")
    assert run(*words, "--resume", "--max-evals", "100")["nfev"] >= 100
    result = command("run", *words, "--resume", "--x0", "1,3", code=2)
    assert "x0 was different" in result.stderr


def test_the_first_look_solves_rosenbrock_and_names_its_figure(here: Path) -> None:
    words = (ROOT / "scripts" / "run").read_text().partition("set -- ")[2].splitlines()[0].split()
    result = command(*words)
    assert words[:4] == ["run", "rosenbrock", "--dim", "20"]
    assert "stopped  target: " in result.stdout and result.stdout.endswith("files    figure rosenbrock.png\n")
    assert (here / "rosenbrock.png").read_bytes().startswith(b"\x89PNG")


# ---- wrong input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, message",
    [
        ("rosenbrok", r"problem 'rosenbrok' .*'rosenbrock'"),
        ("rosenbrock --dim 1", r"dim .*2.* 1"),
        ("rig:bowl", r"rig:bowl .*--dim.*--x0"),
        ("rig:bowls --dim 2", r"'rig' .*'bowls' .*'bowl'"),
        ("rug:bowl --dim 2", r"module 'rug'"),
        ("rig:words --dim 2", "function returned 'text'.* number"),
        ("sphere --x0 1,a", r"--x0 .*commas.* '1,a'"),
        ("sphere --dim 3 --x0 1,2", r"x0 .*\(3,\).*\(2,\)"),
        ("sphere --bounds 1", r"--bounds .*LOW,HIGH.* '1'"),
        ("sphere --bounds 5,-5", r"bounds .*lower <= upper.*\(5.0, -5.0\).*0"),
        ("sphere --structure foo", r"structure 'foo'"),
        ("sphere --sigma0 0", r"sigma0 .*positive.* 0.0"),
        ("sphere --popsize 1", r"popsize .*integer"),
        ("sphere --workers 0", r"workers .*-1.* 0"),
        ("sphere --resume", r"--resume .*--checkpoint"),
        ("sphere --resume --checkpoint no.npz", r"no.npz does not exist.*--resume"),
        ("sphere --checkpoint rig.py", r"rig.py exists.*--resume"),
        ("sphere --checkpoint rig.py --resume", r"rig.py .*checkpoint"),
        ("sphere --history rig.py", r"rig.py .*history"),
        ("sphere --history no/h.jsonl", r"No such file or directory: no/h.jsonl"),
        ("sphere --integer 0,x", r"--integer .*'all'.* '0,x'"),
        ("sphere --dim 3 --integer 3", r"integer .*3"),
        ("sphere --fixed 1=a", r"--fixed .*INDEX=VALUE.* '1=a'"),
        ("sphere --fixed 1,1=2", r"--fixed .*once.* 1 "),
        ("sphere --dim 3 --fixed 3", r"--fixed .*0 to 2.* 3 "),
        ("sphere --dim 3 --fixed 0,1,2", r"fixed .*all"),
        ("sphere --plot x.gif", r"figure.*\.png, \.svg.* 'x.gif'"),
        ("sphere --plot no/x.png", r"figure.*exist.* 'no/x.png'"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(here: Path, words: str, message: str) -> None:
    result = command("run", *words.split(), "--max-evals", "50", code=2)
    assert result.stdout == ""
    stderr = said(result.stderr)
    assert re.match(f"error: .*{message}", stderr) and stderr.count("\n") == 1
    assert (here / "rig.py").read_text() == MODULE


def test_a_tolerance_ends_a_search_and_is_named_if_it_is_none() -> None:
    found = run("sphere", "--dim", "3", "--seed", "1", "--tolx", "1e-3")
    assert list(found["stop"]) == ["tolx"] and found["success"]
    for name in ("--tolx", "--tolfun"):
        assert "error: tolerance must be at least 0, got -1" in command("run", "sphere", name, "-1", code=2).stderr


@pytest.mark.parametrize("words", ["sphere --dim 0", "sphere --dim x", "sphere --restarts no", "sphere --seed -1"])
def test_options_that_cannot_be_read_end_with_status_2(words: str) -> None:
    assert "Traceback" not in command("run", *words.split(), code=2).stderr


def test_a_red_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(cli.app, ["run", "nothing"], color=True)
    assert result.stderr.startswith("\x1b[31merror: ") and "'nothing'" in result.stderr


def test_plot_says_what_is_wrong() -> None:
    assert re.fullmatch(r"error: .*no\.jsonl\n", command("plot", "no.jsonl", code=2).stderr)
    assert re.match(r"error: rig\.py .*history", command("plot", "rig.py", code=2).stderr)


# ---- exceptions and Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_an_exception_of_the_objective_shows_its_traceback_and_leaves_the_checkpoint(workers: tuple[str, ...]) -> None:
    result = command("run", "rig:fails_later", "--dim", "2", "--checkpoint", "c.npz", *workers, code=1)
    assert result.stdout == ""
    assert 'rig.py", line 18, in fails_later' in result.stderr
    assert "ZeroDivisionError: the rig is broken\n" in result.stderr
    assert "run_command.py" not in result.stderr
    assert re.search(r"error: rig:fails_later .*exception; c.npz .*\n$", result.stderr)
    assert 40 <= esgroup.Searcher.load("c.npz").nfev <= 80


def test_lines_say_that_packages_are_loaded_and_that_the_figure_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool, bool]] = []

    class Line(Progress):
        def begins(self, run: Any) -> None:
            self.before = Path("f.png").exists()
            super().begins(run)

        def ends(self, run: Any, error: BaseException | None) -> None:
            seen.append((self._first, self.before, Path("f.png").exists()))
            super().ends(run, error)

    monkeypatch.setattr(run_command, "Progress", Line)
    command("run", "sphere", "--dim", "2", "--max-evals", "50", "--plot", "f.png")
    assert seen == [("loading packages", False, False), ("drawing the figure", False, True)]


def test_a_fault_of_ours_is_not_taken_for_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def minimize(fun: Any, x0: Any, sigma0: Any, *, callback: Any, **_: Any) -> None:
        callback(esgroup.Searcher(x0, sigma0))
        raise ValueError("inside")

    monkeypatch.setattr("esgroup.driver.minimize.minimize", minimize)
    result = CliRunner().invoke(cli.app, ["run", "sphere"])
    assert isinstance(result.exception, RuntimeError) and str(result.exception.__cause__) == "inside"


def started(*words: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "problems"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", "from esgroup.command.cli import app; app()", "run", *words],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that a signal to the group reaches the workers too, as Ctrl-C does
    )


def interrupted(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a run that is interrupted by Ctrl-C."""
    process = started(*words, "--history", "h.jsonl")
    try:
        while process.poll() is None and (not Path("h.jsonl").exists() or len(Path("h.jsonl").read_bytes()) < 2000):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, stdout, stderr


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_ctrl_c_leaves_a_checkpoint_and_the_best_point(workers: tuple[str, ...]) -> None:
    words = ("rig:slow", "--dim", "3", "--seed", "1", "--checkpoint", "c.npz", *workers)
    code, stdout, stderr = interrupted(*words, "--plot", "f.png")
    assert code == 130, stderr
    assert said(stderr) == ""
    shown = dict(line.split(maxsplit=1) for line in stdout.splitlines())
    assert shown["stopped"] == "interrupted" and shown["files"] == "history h.jsonl, checkpoint c.npz, figure f.png"
    search = esgroup.Searcher.load("c.npz")
    assert "--resume" in shown["continue"]
    assert shown["best"] == f"{search.best_f:.10g}" and search.nfev >= read("h.jsonl").nfev[-1]
    more = str(search.nfev + 50)
    assert run(*words, "--history", "h.jsonl", "--resume", "--max-evals", more)["nfev"] >= search.nfev + 50


def test_ctrl_c_with_json_is_still_json() -> None:
    code, stdout, _ = interrupted("rig:slow", "--dim", "3", "--json")
    found = json.loads(stdout)
    assert code == 130 and found["interrupted"] and len(found["x"]) == 3
    assert found["message"].startswith("Interrupted. ")


def test_ctrl_c_before_the_search_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(job: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "run", interrupt)
    assert command("run", "sphere", code=130).stderr == "error: interrupted before the search began\n"


# ---- on a terminal ----------------------------------------------------------------------------------------------


def on_a_terminal(*words: str) -> str:
    """What a command writes to a terminal of 80 columns, on stdout and stderr together."""
    import fcntl
    import pty
    import struct
    import termios
    import threading

    path = os.pathsep.join([str(ROOT), str(ROOT / "problems"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        environment.pop(name, None)
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    written: list[bytes] = []

    def read_all() -> None:
        try:
            while part := os.read(primary, 4096):
                written.append(part)
        except OSError:  # Linux says so when the last writer is gone
            pass

    reader = threading.Thread(target=read_all)
    reader.start()
    code = "from esgroup.command.cli import app; app()"
    done = subprocess.run([sys.executable, "-c", code, *words], stdout=secondary, stderr=secondary, env=environment)
    os.close(secondary)
    reader.join(timeout=60)
    os.close(primary)
    text = b"".join(written).decode()
    assert done.returncode == 0, text
    return text


def test_a_terminal_gets_a_bar_that_is_gone_in_the_end() -> None:
    text = on_a_terminal("run", "rig:slow", "--dim", "3", "--seed", "1", "--max-evals", "100")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert re.search(r"[━─]{10} +\d+ %  best \S+ · \d+ evaluations/s · at most \d+ s left", plain)
    bar, result = text.rindex("━"), text.index("problem")
    assert "\x1b[2K" in text[bar:result]  # the line is cleared before the result is printed


def test_a_terminal_gets_a_comparison_without_markdown_unless_it_is_asked_for() -> None:
    words = ("compare", "sphere", "--dims", "2", "--methods", "esgroup,nelder-mead", "--seeds", "1", "--jobs", "1")
    words += ("--max-evals", "60", "--out", "there")
    text = on_a_terminal(*words)
    assert "| --" not in text and "**" not in text and "nelder-mead" in text and "──────" in text
    for other in (on_a_terminal(*words, "--markdown"), command(*words).stdout):  # a pipe is no terminal
        assert "| nelder-mead |" in other
    assert "| nelder-mead |" in Path("there", "table.md").read_text()


# ---- list and help ----------------------------------------------------------------------------------------------


def test_list_shows_problems_structures_and_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    text = command("list", "--dim", "12").stdout
    makers = known().makers
    for name, group in families(makers).items():
        assert name in text and (makers[group[0]].__doc__ or "").partition("\n")[0] in text
    assert "bbob_f1 ... bbob_f24" in text and "bbob_f7" not in text
    assert "heisenberg:k1=4,k2=4" in text and "Structures in dimension 12" in text


def test_every_help_has_examples_and_they_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in ((), ("run",), ("compare",), ("plot",), ("list",)):
        lines = [line.strip() for line in command(*words, "--help").stdout.splitlines()]
        shown = [line for line in lines[lines.index("Examples") :] if line]
        begin = " ".join(("$ esgroup", *words[:1]))
        assert len([line for line in shown if line.startswith(begin)]) >= 2, words
        assert not words or all(line.startswith("$ esgroup ") for line in shown[1:]), words  # none is broken
    assert "--install-completion" in command("--help").stdout


def test_the_examples_of_the_help_are_understood(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them gets as far as the work, with the options that it names."""
    import shlex

    calls: list[str] = []

    def seen(name: str) -> Any:
        def work(*_: Any, **__: Any) -> Any:
            calls.append(name)
            raise ValueError("seen")

        return work

    monkeypatch.setattr(run_command, "run", seen("run"))
    monkeypatch.setattr("esgroup.compare.command.compare", seen("compare"))
    monkeypatch.setattr("esgroup.command.watch.watch", seen("watch"))
    monkeypatch.setattr("esgroup.plots.run.plot", seen("plot"))
    monkeypatch.setattr("esgroup.plots.overlay.overlay", seen("plot"))
    epilogs = [cli.app.info.epilog, *(one.epilog for one in cli.app.registered_commands)]
    examples = [line[2:] for text in epilogs if text for line in text.splitlines() if line.startswith("$ ")]
    assert len(examples) >= 12
    for example in examples:
        _, name, *words = shlex.split(example)
        calls.clear()
        result = CliRunner().invoke(cli.app, [name, *words])
        assert (result.exit_code == 0) if name == "list" else (calls == [name]), (example, result.output)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("esgroup com", {"compare"}),
        ("esgroup run rosen", {"rosenbrock", "rosenbrock_sum"}),
        ("esgroup compare rosenbrock dixon", {"dixon_price", "dixon_price_sum"}),
        ("esgroup compare --preset q", {"quick"}),
        ("esgroup run sphere --max-e", {"--max-evals"}),
    ],
)
def test_a_shell_can_complete_commands_options_problems_and_presets(typed: str, offered: set[str]) -> None:
    code = "import sys; sys.argv[:] = ['esgroup']; from esgroup.command.cli import app; app()"
    path = os.pathsep.join([str(ROOT), str(ROOT / "problems"), os.environ.get("PYTHONPATH", "")])
    asked = {"_ESGROUP_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path} | asked, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == offered, done.stderr


def test_help_does_not_load_numerical_packages() -> None:
    code = "import sys; from esgroup.command.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'scipy', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def test_the_version_is_printed() -> None:
    assert command("--version").stdout == f"esgroup {esgroup.__version__}\n"
