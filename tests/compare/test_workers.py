"""Runs in processes: whatever one of them does, the others go on."""

from importlib.util import find_spec

import pytest

from esgroup.compare import workers
from esgroup.compare.execution import Settings, execute
from esgroup.compare.records import Cell, Ended, RunRecord
from esgroup.compare.workers import run_all

ODD = "tests.compare.oddities"
SETTINGS = Settings((1e-3,), max_evals=500, max_time=20.0)


def ended(cells: list[Cell], settings: Settings = SETTINGS, jobs: int = 2) -> dict[str, RunRecord]:
    return {run.method.partition(":")[2] or run.method: run for run in run_all(cells, settings, jobs)}


def test_runs_that_die_or_hang_are_failures_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.1)
    names = ("dying", "hanging", "raising", "printing", "giving_up")
    cells = [Cell("sphere", 3, f"{ODD}:{name}", 0) for name in names] + [Cell("sphere", 3, "nelder-mead", 0)]
    settings = Settings((1e-3,), max_evals=500, max_time=0.5)
    monkeypatch.setattr(workers, "PREPARATION", 15.0)
    runs = ended(cells, settings)
    assert len(runs) == 6
    assert runs["dying"].ended is Ended.KILLED and "SIGKILL" in runs["dying"].message
    assert runs["hanging"].ended is Ended.KILLED and "did not finish" in runs["hanging"].message
    assert runs["raising"].ended is Ended.ERROR
    assert runs["giving_up"].ended is Ended.STOPPED and runs["printing"].ended is Ended.STOPPED
    assert runs["nelder-mead"].ended is Ended.TARGET


def test_a_process_gives_the_run_that_is_had_without_one(capfd: pytest.CaptureFixture[str]) -> None:
    cell = Cell("rosenbrock", 3, "esgroup", 4)
    (run,) = run_all([cell], SETTINGS, 1)
    here = execute(cell, SETTINGS)
    assert run.hits == here.hits and run.trajectory == here.trajectory
    assert capfd.readouterr() == ("", "")


def test_a_run_is_not_blamed_for_what_an_earlier_one_has_left() -> None:
    cells = [Cell("sphere", 3, f"{ODD}:leaving_a_bomb", 0), Cell(f"{ODD}:slow_sphere", 3, "nelder-mead", 0)]
    runs = ended(cells, Settings((1e-3,), max_evals=500, max_time=20.0), jobs=1)
    assert runs["leaving_a_bomb"].ended is Ended.STOPPED and runs["nelder-mead"].ended is Ended.TARGET


@pytest.mark.skipif(find_spec("fcmaes") is None, reason="fcmaes is not installed")
def test_methods_that_leave_traces_are_given_a_process_for_each_run() -> None:
    cells = [Cell("rosenbrock", 3, "fcmaes", seed) for seed in (0, 1)]
    first = {run.seed: run.hits for run in run_all(cells, SETTINGS, 1)}
    (alone,) = run_all(cells[1:], SETTINGS, 1)
    assert first[1] == alone.hits


def test_no_cells_need_no_processes() -> None:
    assert list(run_all([], SETTINGS, 4)) == []
