"""The benchmark on problems from practice: functions are what their sources say, and evaluations count as it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench_model_real as bench
import model_real_problems as problems
import model_real_runs as runs
import model_real_tables as tables
import numpy as np
import pytest
from model_real_problems import RealProblem
from model_real_runs import METHODS, RealRecorder, RealRow, RealSetup, RealTask
from typer.testing import CliRunner, Result

pytestmark = pytest.mark.scripts

BOX = np.tile([-2.0, 2.0], (3, 1))


def invoke(*words: Any) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


def row(label: str, evals: int | None, *values: float, problem: str = "pinene", seed: int = 1) -> RealRow:
    return RealRow(label, problem, seed, evals, evals or 200, 9, 0, "x", 0.5, values, label, "", 0)


def bowl(value: Callable[[np.ndarray, int], float] | None = None, **changes: Any) -> RealProblem:
    """Squared distance to (1, 0, -0.5), to 0.01."""

    def plain(x: np.ndarray, seed: int) -> float:
        return float(((x - [1.0, 0.0, -0.5]) ** 2).sum())

    given: dict[str, Any] = {"target": 0.01, "budget": 400, "failed": 99.0} | changes
    return RealProblem(value or plain, BOX, 0.5, start=problems.anywhere(BOX), **given)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[RealProblem], None]]:
    """Puts a problem in the place of pinene."""

    def put(problem: RealProblem) -> None:
        monkeypatch.setitem(problems.MAKERS, "pinene", lambda: problem)
        problems.real_problem.cache_clear()
        runs._begin.cache_clear()

    yield put
    problems.real_problem.cache_clear()
    runs._begin.cache_clear()


def task(method: str = "esgroup", options: str = "", problem: str = "pinene", seed: int = 1) -> RealTask:
    return RealTask("a", RealSetup(method, options, 0), problem, seed)


# ---- problems


def test_the_reaction_has_the_minimum_that_is_published() -> None:
    rates = [5.9259e-5, 2.9634e-5, 2.0473e-5, 2.7449e-4, 3.9981e-5]  # COPS states 19.8721
    assert problems.pinene_value(np.log10(rates)) == pytest.approx(19.872, abs=0.001)


def test_the_reaction_loses_no_matter() -> None:
    from scipy.linalg import expm

    x = np.array([-4.0, -4.5, -5.0, -3.5, -4.2])
    k1, k2, k3, k4, k5 = 10**x
    rates = np.zeros((5, 5))
    rates[:, 0] = -k1 - k2, k1, k2, 0, 0
    rates[:, 2] = 0, 0, -k3 - k4, k3, k4
    rates[:, 4] = 0, 0, k5, 0, -k5
    modeled = np.array([100 * expm(rates * t)[:, 0] for t in problems.MINUTES]).T
    np.testing.assert_allclose(modeled.sum(axis=0), 100)
    assert problems.pinene_value(x) == pytest.approx(((modeled - problems.YIELDS) ** 2).sum(), rel=1e-6)


def test_the_loss_of_the_tuning_depends_on_the_seed_alone() -> None:
    pytest.importorskip("sklearn")
    x = np.array([0.5, 0.2, 0.8, 0.2])
    assert problems.tuning_value(x, 3) == problems.tuning_value(x, 3) != problems.tuning_value(x, 4)
    problem = problems.real_problem("tuning")
    assert problem.judged(x) == pytest.approx(np.mean([problem.value(x, seed) for seed in range(20)]))
    assert problem.judged(x) < 0.3 < problem.judged(np.array([0.0, 1.0, 0.0, 1.0]))  # log 4 = 1.39 is a guess


@pytest.mark.parametrize("name", problems.MAKERS)
def test_starts_are_those_of_the_seed_and_lie_in_the_bounds(name: str) -> None:
    pytest.importorskip("gymnasium")
    problem = problems.real_problem(name)
    starts = [RealTask("a", RealSetup(method, "", 0), name, seed).start() for method in METHODS for seed in (1, 2)]
    np.testing.assert_array_equal(starts[0], starts[2])
    assert not np.array_equal(starts[0], starts[1]) and starts[0].shape == (problem.dim,)
    assert not problem.bounded or all(np.array_equal(problem.inside(x), x) for x in starts)


def test_the_zoo_knows_minima_at_or_below_the_targets() -> None:
    pytest.importorskip("gymnasium")
    for name in ("lynx_hare", "cart_pole"):
        problem, minimum = problems.real_problem(name), problems.zoo.get(name).minimum
        assert minimum <= problem.target <= minimum + 0.011 * abs(minimum)


# ---- runs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bounded", [True, False])
def test_every_method_finds_the_bottom_of_a_bowl(method: str, bounded: bool, made_up: Any) -> None:
    for package in ("cma", *METHODS[method].needs):
        pytest.importorskip(package)
    made_up(bowl(bounded=bounded))
    found = runs.solve_real(task(method))
    assert found.ended == "target" and found.evals == found.used <= 400 and found.failed == 0
    assert len(found.values) == 5 and all(a >= b for a, b in zip(found.values, found.values[1:], strict=False))


def test_every_evaluation_counts_and_none_is_beyond_the_budget(made_up: Any) -> None:
    seen: list[np.ndarray] = []
    made_up(bowl(lambda x, seed: seen.append(x) or 1.0, budget=37))
    found = runs.solve_real(task("cobyqa"))
    short = 9  # evaluations of the run that is off the clock
    assert found.evals is None and found.used == len(seen) - short <= 37


def test_points_beyond_the_bounds_have_the_value_of_the_nearest_one_inside() -> None:
    fun = RealRecorder(bowl(), 9, 1, METHODS["cma"])
    assert fun([9.0, 0.0, -0.5]) == 1.0
    assert RealRecorder(bowl(bounded=False), 9, 1, METHODS["cma"])([9.0, 0.0, -0.5]) == 64.0


@pytest.mark.parametrize(("method", "told"), [("esgroup", math.nan), ("gp", math.nan), ("cma", 99.0), ("lq", 99.0)])
def test_failures_are_told_as_a_method_can_take_them(method: str, told: float) -> None:
    fun = RealRecorder(bowl(lambda x, seed: math.nan), 9, 1, METHODS[method])
    np.testing.assert_array_equal(fun.generation(np.zeros((2, 3))), [told, told])
    assert fun.failed == fun.count == 2 and fun.now == math.inf


def test_a_noisy_run_is_judged_by_what_the_method_recommends() -> None:
    # the judges see |x|^2, searches less 5 by luck at the second evaluation
    luck = iter([0.0, -5.0, 0.0, 0.0])
    noisy = bowl(lambda x, seed: float((x**2).sum()) + (next(luck) if seed > 9 else 0.0), judges=(1, 2))
    fun = RealRecorder(noisy, 9, 1, METHODS["esgroup"])
    fun.generation([[0.5, 0, 0], [1.0, 0, 0]])
    assert fun.now == math.inf and fun.best == -4.0
    fun.recommend(np.array([0.2, 0, 0]))
    assert fun.now == pytest.approx(0.04) and fun.course == [math.inf, fun.now]
    with pytest.raises(runs.Finished, match="target"):
        fun.recommend(np.zeros(3))
    assert fun.hit == fun.count == 2


def test_a_method_without_an_opinion_is_judged_by_its_least_value() -> None:
    luck = iter([0.0, -5.0, 0.0])
    noisy = bowl(lambda x, seed: float((x**2).sum()) + (next(luck) if seed > 9 else 0.0), judges=(1, 2))
    fun = RealRecorder(noisy, 9, 1, METHODS["cobyqa"])
    fun.generation([[0.5, 0, 0], [1.0, 0, 0], [0.0, 0, 0]])
    assert fun.course == [0.25, 1.0, 1.0] and fun.hit is None  # the third is better, and nobody knows


def test_values_are_those_after_so_many_evaluations() -> None:
    fun = RealRecorder(bowl(lambda x, seed: float(x[0]), target=-1e9, bounded=False), 100, 1, METHODS["cma"])
    for k in range(60):
        fun([-float(k), 0, 0])
    assert fun.values() == (-24.0, -49.0, -59.0)


def test_rows_are_written_and_read_again(tmp_path: Path) -> None:
    rows = [row("a", 17, 3.5, 1e-9), row("b", None, math.inf)]
    runs.append_real_rows(tmp_path / "rows.csv", rows)
    assert runs.read_real_rows(tmp_path / "rows.csv") == rows


def test_runs_are_resumed_and_a_label_stands_for_one_thing(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["run", "esgroup", "--out", out, "--problems", "pinene", "--budget", 20, "--seeds"]
    assert invoke(*words, "1").exit_code == 0
    again = invoke(*words, "1-3", "--part", "1/2")  # seeds 1 and 3
    assert again.exit_code == 0 and "1 runs to do, 1 in" in again.stderr and "min left" in again.stderr
    assert [(one.seed, one.used) for one in runs.read_real_rows(out)] == [(1, 20), (3, 20)]
    other = invoke(*words, "1", "--option", "model=quadratic")
    assert other.exit_code == 2 and "choose another --label" in other.stderr


def test_commands_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    refused = invoke("run", "cma", "--out", tmp_path / "rows.csv", "--option", "model=quadratic")
    assert refused.exit_code == 2 and "for esgroup only" in refused.stderr
    refused = invoke("run", "cma", "--out", tmp_path / "rows.csv", "--problems", "pinene,chess")
    assert refused.exit_code == 2 and "'chess'" in refused.stderr
    assert invoke("table", tmp_path / "none.csv").exit_code == 2


def test_the_gaussian_process_is_left_out_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "missing", lambda method: ["torch"])
    found = invoke("run", "gp", "--out", tmp_path / "rows.csv")
    assert found.exit_code == 0 and "gp is left out: it needs torch" in found.stderr
    assert not (tmp_path / "rows.csv").exists()


# ---- tables


def test_unsolved_runs_count_with_the_budget_of_the_problem_also_if_they_ended_early() -> None:
    assert row("a", 40).cost == 40 and row("a", None).cost == problems.real_problem("pinene").budget == 1000
    assert row("a", None)._replace(budget=70).cost == 70


def test_the_table_has_medians_ratios_and_values() -> None:
    rows = [row("model", 50, 30.0), row("model", 100, 20.0, seed=2), row("esgroup", 200, 40.0)]
    rows += [row("esgroup", 400, 60.0, seed=2), row("gp", None, 90.0), row("model", 9, -500.0, problem="cart_pole")]
    text = tables.report(rows, "model", "esgroup")
    assert "| pinene | 5 | 20.07 | 1,000 | 75 | 300 | fail (0/1) | 0.25 [0.25, 0.25] |" in text
    assert "| model : this |  |  |  |  | 0.25 [0.25, 0.25] | 0.05 |  |" in text
    assert "| pinene | 25 | 25 | 50 | 90 |" in text
    with pytest.raises(ValueError, match="label 'plain'"):
        tables.report(rows, "plain", "esgroup")


def test_the_command_says_the_table(tmp_path: Path) -> None:
    runs.append_real_rows(tmp_path / "rows.csv", [row("model", 50, 1.0), row("esgroup", 200, 2.0)])
    found = invoke("table", tmp_path / "rows.csv")
    assert found.exit_code == 0 and "| pinene | 5 |" in found.stdout
