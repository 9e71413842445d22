"""The overhead benchmark times, compares and judges as it says, on made-up clocks and figures; no peer is needed."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_overhead as bench
import numpy as np
import pytest
import typer
from bench_overhead import Contender, Goal, Measured, Memory, Runner, Sample, Search
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts


class Clock:
    """Time passes only when somebody says so, and a little with every reading."""

    def __init__(self, reading: float = 0.0) -> None:
        self.now, self.reading = 0.0, reading

    def __call__(self) -> float:
        self.now += self.reading
        return self.now


def fake_contender(clock: Clock, told: list[Any], stops_at: int = -1, offset: float = 0.5) -> Contender:
    """A search whose ask takes 3 seconds, tell 5, and everything between them 1000."""

    def make(dim: int, n: int, seed: int) -> Search:
        def ask() -> np.ndarray:
            clock.now += 3.0
            return np.full((n, dim), offset)

        def pack(points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, int]:
            clock.now += 1000.0
            return values, seed

        def tell(values: np.ndarray, seed: int) -> bool:
            clock.now += 5.0
            told.append((values, seed))
            return len(told) == stops_at

        return Search(ask, pack, tell)

    return Contender("fake", "fake", True, make, bench.every_time)


def measured(name: str, dim: int, ratio: float, limit_micros: float = 3.0) -> Measured:
    return Measured(name, dim, ratio, ratio, ratio, ratio * limit_micros, limit_micros, 7, 700, 1)


def every_goal_met() -> dict[tuple[str, int], float]:
    """Ratios exactly at their limits, peers a bit above ours."""
    ours = {(name, dim): goal for name, goals in bench.RATIO_GOALS.items() for dim, goal in goals.items()}
    ours |= {(bench.DIAGONAL, dim): 1.6 for dim in bench.LINEAR_DIMS}
    peers = {(peer, dim): 4.01 for peer in (bench.CMA, bench.CMAES, bench.ACMA) for dim in bench.FULL_DIMS}
    return ours | peers | {(bench.SEPCMA, dim): 1.61 for dim in bench.LINEAR_DIMS}


# ---- time


def test_only_ask_and_tell_are_on_the_clock() -> None:
    clock = Clock()
    runner = Runner(fake_contender(clock, []), 10, clock)
    assert runner.run(4) == pytest.approx((3 + 5) / 10, rel=1e-12)  # lambda is 10 at d = 10


def test_the_cost_of_reading_the_clock_is_taken_off() -> None:
    clock = Clock(reading=0.25)
    assert bench.clock_cost(clock) == pytest.approx(0.25)
    runner = Runner(fake_contender(clock, []), 10, clock)
    assert runner.run(4) == pytest.approx((3 + 5) / 10, rel=1e-12)


def test_a_search_that_stopped_begins_again_with_another_seed() -> None:
    clock, told = Clock(), []  # type: tuple[Clock, list[Any]]
    runner = Runner(fake_contender(clock, told, stops_at=2), 10, clock)
    runner.run(5)
    assert [seed for _, seed in told] == [1, 1, 2, 2, 2]
    assert (runner.starts, runner.generations) == (2, 5)


@pytest.mark.parametrize("offset", [math.nan, 100.0])
def test_a_search_that_got_lost_begins_again(offset: float) -> None:
    clock = Clock()
    runner = Runner(fake_contender(clock, [], offset=offset), 10, clock)
    runner.run(3)
    assert runner.starts == 4


def test_the_limit_is_the_mean_time_of_a_sample() -> None:
    clock = Clock()
    runner = bench.LimitRunner(10, full=False, seconds=0.0, clock=lambda: clock() + 1.0)
    calls = []

    def generation() -> None:
        calls.append(1)
        clock.now += 20.0

    runner.generation, runner.generations = generation, 6
    assert runner.run() == pytest.approx(2.0)
    assert len(calls) == 6


@pytest.mark.parametrize(
    ("period", "generation", "seconds", "turn"), [(100, 1e-3, 0.5, 500), (100, 1.0, 0.5, 100), (9, 0.01, 0.4, 36)]
)
def test_a_turn_is_a_whole_number_of_periods(period: int, generation: float, seconds: float, turn: int) -> None:
    assert bench.turn_length(period, generation, seconds) == turn


def test_the_period_of_eigendecompositions_is_that_of_the_tutorials_rates() -> None:
    assert [bench.eigen_period(dim) for dim in (2, 10, 100, 200, 1000)] == [1, 1, 2, 3, 9]
    assert [bench.eigen_period(dim, 0.25) for dim in (2, 40, 200, 640, 1000)] == [1, 1, 3, 6, 8]  # as cma's own


def test_values_are_those_of_a_sphere_that_wanders_and_falls() -> None:
    sphere = bench.Sphere(4, np.random.default_rng(1))
    points = np.random.default_rng(2).normal(size=(6, 4))
    first = sphere(list(points))
    center = bench.DRIFT * np.random.default_rng(1).normal(size=4)
    assert np.allclose(first, ((points - center) ** 2).sum(axis=1) - 4, rtol=1e-14, atol=0)
    assert sphere.nearest == pytest.approx(first.min() + 4)
    assert sphere(points).max() < first.min() + 20 and sphere.fallen == 8
    assert not np.array_equal(sphere.center, center)


# ---- statistics


def test_the_ratio_is_to_the_mean_of_the_limits_before_and_after() -> None:
    assert Sample(6.0, 2.0, 4.0).ratio == 2.0


def test_figures_are_medians_over_rounds() -> None:
    clock = Clock()
    runner = Runner(fake_contender(clock, []), 10, clock)
    runner.run(3)
    samples = [Sample(2e-6, 1e-6, 1e-6), Sample(90e-6, 1e-6, 2e-6), Sample(9e-6, 3e-6, 3e-6)]
    found = Measured.of(runner, samples)
    assert found[:2] == ("fake", 10)
    assert found[2:7] == pytest.approx((3.0, 2.5, 31.5, 9.0, 1.5))
    assert found[7:] == (3, 3, 1)


def test_every_contender_has_its_turns_between_those_of_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, turns = Clock(), []  # type: tuple[Clock, list[Any]]

    def limit(dim: int, full: bool) -> Callable[[], None]:
        def generation() -> None:
            turns.append("full limit" if full else "linear limit")
            clock.now += 20.0 if full else 10.0

        return generation

    monkeypatch.setattr(bench, "limit", limit)
    monkeypatch.setattr(bench, "turn_length", lambda *arguments: 1)
    full = fake_contender(clock, turns)
    linear = dataclasses.replace(full, name="linear", full=False)
    found = list(bench.measure([full, linear], 10, 2, 0.0, clock))
    assert [(m.name, m.ratio, m.rounds) for m in found] == [("fake", 0.4, 2), ("linear", 0.8, 2)]
    kinds = [kind for kind, _ in itertools.groupby(turns, key=kind_of_turn)]
    around = ["full limit", "told", "full limit", "linear limit", "told", "linear limit"]
    assert kinds[-12:] == [*around, *around]


def kind_of_turn(turn: Any) -> str:
    return turn if isinstance(turn, str) else "told"


@pytest.mark.parametrize(
    ("before", "peak_before", "peak", "after", "grown"),
    [(100, 100, 180, 120, (80, 20)), (100, 200, 200, 120, (20, 20)), (100, 150, 160, 130, (60, 30))],
)
def test_a_peak_counts_from_the_memory_before_unless_it_is_older(
    before: float, peak_before: float, peak: float, after: float, grown: tuple[float, float]
) -> None:
    assert Memory.of(before, peak_before, peak, after) == grown


# ---- goals


def test_a_goal_is_met_at_its_limit_unless_it_is_strict() -> None:
    assert Goal("", 2.5, 2.5).outcome == "met"
    assert Goal("", 2.5001, 2.5).outcome == "missed"
    assert Goal("", 1.0, 1.0, strict=True).outcome == "missed"
    assert Goal("", 0.999, 1.0, strict=True).outcome == "met"
    assert Goal("", math.nan, 1.0).outcome == "not measured"


def test_figures_at_their_limits_meet_every_goal() -> None:
    ratios = every_goal_met()
    goals = [*bench.ratio_goals(ratios), *bench.ahead_goals(ratios)]
    assert [goal.outcome for goal in goals] == ["met"] * 20


def test_the_limits_are_those_of_the_issue() -> None:
    limits = [goal.limit for goal in bench.ratio_goals({})]
    assert limits == [2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, *[2.2] * 5, 3.5, 2.6, 2.5, 1.6]
    assert [goal.limit for goal in bench.memory_goals({}, math.nan)] == [50.0, 10.0, 10.0, 0.5]


@pytest.mark.parametrize(
    ("peer", "dim", "text"),
    [(bench.CMA, 2, "from d = 2 on, largest at d = 2"), (bench.ACMA, 200, "from d = 100 on, largest at d = 200")],
)
def test_to_be_behind_a_peer_in_one_dimension_is_a_miss(peer: str, dim: int, text: str) -> None:
    ratios = every_goal_met() | {(peer, dim): 0.5}
    (missed,) = [goal for goal in bench.ahead_goals(ratios) if goal.outcome == "missed"]
    assert missed.text == f"{bench.FULL} : {peer} {text}"
    assert missed.value == pytest.approx(ratios[bench.FULL, dim] / 0.5)


def test_a_tie_is_not_ahead() -> None:
    ratios = every_goal_met() | {(bench.SEPCMA, 10**4): 1.6}
    assert [goal.outcome for goal in bench.ahead_goals(ratios)] == ["met", "met", "missed", "met"]


def test_to_be_behind_compiled_code_in_small_dimensions_is_no_miss() -> None:
    ratios = every_goal_met() | {(bench.ACMA, 40): 0.5}
    assert all(goal.outcome == "met" for goal in bench.ahead_goals(ratios))


def test_nobody_is_ahead_of_a_peer_that_was_not_measured() -> None:
    ratios = {key: ratio for key, ratio in every_goal_met().items() if key[0] != bench.CMA}
    assert [goal.outcome for goal in bench.ahead_goals(ratios)] == ["not measured", "met", "met", "met"]


def test_memory_is_judged_by_what_is_kept() -> None:
    memory = {case: Memory(goal, goal + 1) for case, goal in bench.MEMORY_GOALS.items()}
    assert [goal.outcome for goal in bench.memory_goals(memory, 0.5)] == ["missed", "missed", "missed", "met"]


# ---- tables


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234, "1.23"), (9.996, "10.0"), (99.96, "100"), (1443.6, "1,444"), (-0.004, "-0.00"), (math.nan, "-")],
)
def test_numbers_have_three_digits_or_so(value: float, text: str) -> None:
    assert bench.number(value) == text


def test_the_table_has_a_line_per_contender_and_the_limits_below() -> None:
    rows = [
        measured(bench.CMA, 2, 30.0, limit_micros=4.0),
        measured(bench.FULL, 2, 2.25, limit_micros=6.0),
        measured(bench.DIAGONAL, 2, 1.5),
        measured(bench.DIAGONAL, 10_000, 1.25, limit_micros=141.0),
    ]
    assert bench.ratio_table(rows).splitlines() == [
        "| ratio to the limit | d = 2 | d = 10000 |",
        "| --- | ---: | ---: |",
        "| esgroup full, defaults | 2.25 | - |",
        "| cma (full) | 30.0 | - |",
        "| esgroup diagonal | 1.50 | 1.25 |",
        "| limit, linear (us) | 3.00 | 141 |",
        "| limit, full (us) | 5.00 | - |",
    ]


def test_the_goals_are_listed_with_their_outcome() -> None:
    goals = [Goal("a", 2.0004, 2.0), Goal("b", 0.5, 1.0, strict=True), Goal("c", math.nan, 50.0)]
    assert bench.goals_table(goals).splitlines()[2:] == [
        "| a | 2.000 | <= 2 | **missed** |",
        "| b | 0.500 | < 1 | met |",
        "| c | - | <= 50 | not measured |",
    ]
    assert bench.verdict(goals) == "1 met, 1 missed, 1 not measured"
    assert bench.verdict(goals[1:2]) == "1 met"


def test_memory_is_listed_with_peak_and_rest() -> None:
    lines = bench.memory_table({(bench.FULL, 1000): Memory(40.0, 22.125)}).splitlines()
    assert lines[2:] == ["| esgroup full, defaults | 1000 | 40.0 | 22.1 |"]


def test_the_csv_has_every_figure(tmp_path: Path) -> None:
    bench.write_csv(tmp_path / "out.csv", [measured(bench.FULL, 2, 2.5)])
    with (tmp_path / "out.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["name"] == bench.FULL and float(row["ratio"]) == 2.5 and row["generations"] == "700"


# ---- command


def test_every_contender_has_a_name_of_its_own_and_every_goal_a_contender() -> None:
    names = [contender.name for contender in bench.CONTENDERS]
    asked = {*bench.RATIO_GOALS, *(name for goal in bench.AHEAD_GOALS for name in goal[:2])}
    assert len(set(names)) == len(names) == 9
    assert asked | {name for name, _ in bench.MEMORY_CASES} <= set(names)


def test_a_structure_has_only_the_dimensions_that_it_can_have() -> None:
    heisenberg = next(contender for contender in bench.CONTENDERS if contender.name == bench.HEISENBERG)
    assert heisenberg.dims == [10, 40, 100, 200, 640, 1000, 3000, 10_000]


def absent(error: Exception) -> Callable[[int, int, int], Search]:
    def make(dim: int, n: int, seed: int) -> Search:
        raise error

    return make


def test_a_peer_that_is_not_installed_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    here = fake_contender(clock, [])
    gone = Contender("gone", "gone", True, absent(ImportError("No module named 'gone'")), bench.every_time)
    monkeypatch.setattr(bench, "CONTENDERS", (here, gone))
    assert bench.present("") == [here]
    assert capsys.readouterr().out == "gone is left out: No module named 'gone'\n"
    with pytest.raises(typer.BadParameter, match="'gone'"):
        bench.present("gone")


def test_ours_is_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Contender("ours", "esgroup", True, absent(AttributeError("broken")), bench.every_time)
    monkeypatch.setattr(bench, "CONTENDERS", (broken,))
    with pytest.raises(AttributeError, match="broken"):
        bench.present("")


@pytest.mark.parametrize(("ratio", "code", "verdict"), [(2.0, 0, "1 met"), (2.1, 1, "1 missed")])
def test_a_missed_goal_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ratio: float, code: int, verdict: str
) -> None:
    monkeypatch.setattr(bench, "present", lambda only: list(bench.CONTENDERS[:1]))
    monkeypatch.setattr(bench, "measured_dims", lambda *arguments: [measured(bench.FULL, 2, ratio)])
    out = tmp_path / "out.csv"
    result = CliRunner().invoke(bench.app, ["--no-memory", "--no-growth", "--dims", "2", "--out", str(out)])
    assert result.exit_code == code
    assert f"Goals: {verdict}, 23 not measured." in result.output
    assert out.exists()


def test_a_dimension_without_goals_is_refused() -> None:
    result = CliRunner().invoke(bench.app, ["--dims", "2,7"])
    assert result.exit_code == 2
    assert "[7]" in result.output
