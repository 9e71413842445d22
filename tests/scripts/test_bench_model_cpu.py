"""The CPU time of searches with models is what is spent outside of the function, and the table says its medians."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import bench_model as bench
import model_cpu as cpu
import numpy as np
import pytest
from bbob_runs import Finished
from model_cpu import Case, Spent
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts

ROSENBROCK = Case("Rosenbrock", 8, 3, "full", 20)
SEPARABLE = Case("quartic", 0, 3, "diagonal", 20)


def test_the_quartic_ellipsoid_is_that_of_its_formula() -> None:
    x = [[1.0, 1.0, 1.0], [2.0, 0.0, 4.0]]
    assert cpu.quartic_ellipsoid(x) == pytest.approx([0.0, 1 + 100 + 9e4 + 1 + 1 + 81])


def test_time_is_counted_from_leaving_the_function_to_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()  # a second from one look at the clock to the next
    monkeypatch.setattr(cpu, "time", SimpleNamespace(process_time=lambda: float(next(looks))))
    fun = cpu.TimedRecorder(lambda points: [0.0] * len(points), 20, 0.0)
    fun.generation(np.zeros((5, 2)))
    assert (fun.outside, fun.told) == (0.0, 0)
    fun.generation(np.zeros((4, 2)))
    assert (fun.outside, fun.told) == (1.0, 5)
    with pytest.raises(Finished, match="budget"):
        fun.generation(np.zeros((50, 2)))
    assert (fun.outside, fun.told, fun.count, fun.asks) == (2.0, 9, 20, 3)


def test_the_time_of_the_function_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(points: list[list[float]]) -> list[float]:
        end = time.process_time() + 0.005 * len(points)
        while time.process_time() < end:
            pass
        return quick(points)

    quick = cpu.quartic_ellipsoid
    cpu.spent("plain", SEPARABLE, 0)  # compiles
    monkeypatch.setattr(cpu, "quartic_ellipsoid", slow)
    found = cpu.spent("plain", SEPARABLE, 1)
    assert found is not None and found.used == 60 and 0.0 < found.millis < 2.5  # an evaluation takes 5


@pytest.mark.parametrize("contender", cpu.CONTENDERS)
def test_every_contender_is_measured_where_it_has_the_structure(contender: str) -> None:
    pytest.importorskip("ioh"), pytest.importorskip("cma")
    found = cpu.spent(contender, ROSENBROCK, 1)
    assert found is not None and found.used == 60 and found.millis > 0.0
    assert (cpu.spent(contender, SEPARABLE, 1) is None) == (contender == "lq")


def test_the_table_has_medians_of_times_and_of_ratios() -> None:
    pytest.importorskip("cma")
    found = {
        (ROSENBROCK, "plain"): [Spent(1.0, 60, 9), Spent(2.0, 60, 9), Spent(3.0, 60, 9)],
        (ROSENBROCK, "model"): [Spent(2.0, 60, 30), Spent(20.0, 60, 30), Spent(9.0, 60, 30)],
        (SEPARABLE, "plain"): [Spent(0.5, 60, 9)] * 3,
        (SEPARABLE, "model"): [Spent(0.25, 40, 20), Spent(0.25, 60, 20), Spent(0.25, 40, 20)],
        (ROSENBROCK, "lq"): [Spent(90.0, 60, 60)] * 3,
    }
    text = cpu.table(found)
    assert "medians over rounds (3; esgroup " in text
    assert "| Rosenbrock, full | 3 | 60 | 2.0 | 2 | 9 | 90 | 3.00 | 0.10 |" in text
    assert "| quartic, diagonal | 3 | 60 | 2.3 | 0.5 | 0.25 (40) | - | 0.50 | - |" in text
    alone = cpu.table({(ROSENBROCK, "plain"): [Spent(1.0, 60, 9)]})
    assert "| Rosenbrock, full | 3 | 60 | - | 1 |" in alone


def test_the_command_measures_what_it_is_told() -> None:
    pytest.importorskip("ioh")
    words = ["cpu", "--methods", "plain,model", "--dims", "5", "--rounds", "1", "--budget", "10"]
    found = CliRunner().invoke(bench.app, words)
    assert (
        found.exit_code == 0 and "| Rosenbrock, f8, full | 5 | 50 |" in found.stdout and "cma, ms" not in found.stdout
    )
    for wrong, message in ((["--methods", "plain,pycma"], "got pycma"), (["--dims", "7"], "got '7'")):
        refused = CliRunner().invoke(bench.app, ["cpu", *wrong])
        assert refused.exit_code == 2 and message in refused.stderr
