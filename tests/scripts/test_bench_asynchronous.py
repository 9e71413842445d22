"""The benchmark of asynchronous search counts time and evaluations as it says, on figures made up and on quick runs."""

from __future__ import annotations

import math
from pathlib import Path

import bench_asynchronous as bench
import numpy as np
import pytest
from bench_asynchronous import Cost
from typer.testing import CliRunner

import esgroup

pytestmark = pytest.mark.scripts


def test_times_have_median_one_a_pareto_tail_and_a_cap() -> None:
    times = [bench.pareto_time(u) for u in (np.arange(10**5) + 0.5) / 10**5]
    assert np.median(times) == pytest.approx(1.0, rel=1e-4)
    for t in (2.0, 10.0, 50.0):
        assert np.mean(np.array(times) > t) == pytest.approx(0.5 * t**-1.5, rel=0.01)
    assert max(times) == bench.pareto_time(1.0 - 1e-12) == 100.0


def test_the_busy_share_is_that_between_the_start_of_all_and_the_last_evaluation() -> None:
    first = np.array([[0.0, 4.0], [5.0, 9.0]])  # idle from 4 to 5
    second = np.array([[2.0, 3.0], [3.0, 4.0], [7.0, 100.0]])  # begins late; idle from 4 to 7, when the last one begins
    assert bench.busy_share([first, second], 2) == pytest.approx((10 - 1 - 3) / 10)
    assert bench.busy_share([first, second], 3) == pytest.approx((10 - 1 - 3) / 15)  # one has never begun
    assert math.isnan(bench.busy_share([first[:1], first[:1]], 2))


@pytest.mark.parametrize("way", bench.WAYS, ids=lambda way: way.name)
def test_every_evaluation_of_every_worker_is_noted(way: bench.Way, tmp_path: Path) -> None:
    fun = bench.Sleeper(tmp_path, 0.001)
    points = np.arange(8.0).reshape(4, 2)
    assert [fun(x) for x in points] == [float(x @ x) for x in points]
    (times,) = bench.noted_times(tmp_path)
    assert len(times) == 4 and (times[:, 1] >= times[:, 0]).all() and (times[1:, 0] >= times[:-1, 1]).all()
    assert 0.0 < bench.measured_share(way, 2, 0.002, evals=30) <= 1.0


def test_one_point_out_is_the_search_by_hand_and_failures_are_infinite() -> None:
    sphere = bench.PROBLEMS[0]
    search = esgroup.Searcher(np.full(4, 3.0), 1.0, rng=100, target=1e-8)
    while not search.stop():
        x = search.ask(1)[0]
        search.tell([x], [float(x @ x)])
    for law in bench.LAWS:
        assert bench.asynchronously(sphere, 4, 100, 10**5, 1, law) == search.nfev
    assert bench.asynchronously(sphere, 4, 100, 50, 1, "Pareto") == math.inf
    assert bench.by_generations(sphere, 4, 100, 50) == math.inf


def test_points_of_constant_time_come_back_in_the_order_in_which_they_were_asked_for() -> None:
    seen: list[float] = []
    asked: list[float] = []

    def fun(x: np.ndarray) -> float:
        seen.append(float(x[0]))
        return float(x @ x)

    class Noted(esgroup.Searcher):
        def ask(self, n: int | None = None) -> np.ndarray:
            points = super().ask(n)
            asked.extend(points[:, 0])
            return points

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(esgroup, "Searcher", Noted)
        problem = bench.Problem("noted", fun, 3.0, 1.0)
        bench.asynchronously(problem, 3, 100, 100, 7, "constant")
        assert seen == asked[: len(seen)] and len(asked) == len(seen) + 6
        seen.clear()
        asked.clear()
        bench.asynchronously(problem, 3, 100, 100, 7, "Pareto")
        assert seen != asked[: len(seen)] and set(seen) <= set(asked)


def test_goals_are_judged_by_the_worst() -> None:
    processes, threads = (way.name for way in bench.WAYS if way.asynchronous)
    shares = {(bench.WAYS[0].name, 4): 0.3, (processes, 4): 0.99, (processes, 8): 0.96, (threads, 4): 0.94}
    assert [goal.met for goal in bench.busy_goals(shares)] == [True, False]
    shares[processes, 16] = math.nan
    assert [goal.met for goal in bench.busy_goals(shares)] == [False, False]
    good = [Cost("sphere", 10, "Pareto", "popsize", 1.3, 9, 9), Cost("sphere", 10, "Pareto", "100", 4.0, 9, 9)]
    assert [goal.met for goal in bench.cost_goals(good)] == [True, True]
    bad = [*good, Cost("sphere", 20, "constant", "popsize / 2", 1.31, 9, 9)]
    bad.append(Cost("ellipsoid", 10, "constant", "100", 3.0, 8, 9))
    assert [goal.met for goal in bench.cost_goals(bad)] == [False, False]
    assert str(bad[-1]) == "3.00 (8/9)"
    assert bench.cost_goals([]) == bench.busy_goals({}) == []


def test_a_quick_run_prints_its_tables() -> None:
    done = CliRunner().invoke(bench.app, ["--quick", "--seeds", "1", "--median", "0.002"])
    assert done.exit_code in (0, 1), done.output  # goals are for quiet machines
    for text in (
        "| share of time busy | 4 workers |",
        *(way.name for way in bench.WAYS),
        "| sphere, d = 10 |",
        ">= 0.95",
    ):
        assert text in done.output
