"""The benchmark with noise: the models are the published ones, and the gaps of means come out as they are."""

from __future__ import annotations

import math
from pathlib import Path

import bbob_noise as noise
import bench_bbob as bench
import numpy as np
import pytest
from bbob_rows import Run
from typer.testing import CliRunner, Result

pytestmark = pytest.mark.scripts

GAPS = np.array([0.0, 1e-9, 1e-8, 2.0, 1e5])


def invoke(*words: object) -> Result:
    return CliRunner().invoke(bench.app, [str(word) for word in words])


# ---- models


class Given:
    """Random numbers that are known."""

    def __init__(self, normal: object = None, uniform: object = None) -> None:
        self.normal, self.uniform = iter(normal or []), iter(uniform or [])

    def standard_normal(self, shape: object) -> np.ndarray:
        return np.broadcast_to(
            np.reshape(next(self.normal), (-1, 1)), shape if isinstance(shape, tuple) else (1, shape)
        ).squeeze()

    def random(self, shape: object) -> np.ndarray:
        return np.broadcast_to(
            np.reshape(next(self.uniform), (-1, 1)), shape if isinstance(shape, tuple) else (1, shape)
        ).squeeze()


def close(found: np.ndarray, expected: object) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_models_written_out() -> None:
    f = np.array([2.0, 1e5])
    close(noise.gauss(f, Given([0.5]), 0.3), f * math.exp(0.15))
    power = (1e9 / f) ** (0.7 * 0.2)
    close(noise.uniform(f, Given(uniform=[[0.5, 0.2]]), 0.7, 1.5), f * 0.5**1.5 * power)
    close(noise.cauchy(f, Given([[3.0, -0.5]], [0.1]), 2.0, 0.2), f + 2 * (1000 + 6))
    close(noise.cauchy(f, Given([[-9e3, 0.5]], [0.1]), 2.0, 0.2), f)  # 1000 - 18000 is below 0
    close(noise.cauchy(f, Given([[3.0, 0.5]], [0.3]), 2.0, 0.2), f + 2000)


def test_levels_are_those_of_bbob_noisy() -> None:
    f = np.array([2.0])
    close(noise.NOISES["gauss-moderate"](f, Given([1.0]), 5), 2 * math.exp(0.01))
    close(noise.NOISES["gauss-severe"](f, Given([1.0]), 5), 2 * math.e)
    close(noise.NOISES["uniform-moderate"](f, Given(uniform=[[0.5, 1.0]]), 5), 2 * 0.5**0.01 * 5e8 ** (0.01 * 0.69))
    close(noise.NOISES["uniform-severe"](f, Given(uniform=[[0.5, 1.0]]), 5), 5e8**0.69)
    close(noise.NOISES["cauchy-moderate"](f, Given([[1.0, 1.0]], [0.049]), 5), 2 + 10.01)
    close(noise.NOISES["cauchy-severe"](f, Given([[1.0, 1.0]], [0.199]), 5), 1003)


@pytest.mark.parametrize("name", [name for name in noise.NOISES if name not in ("normal", "none")])
def test_there_is_no_noise_below_1e_8(name: str) -> None:
    values = noise.noisy(name, GAPS, np.random.default_rng(1), 5)
    assert (values[:2] == GAPS[:2]).all() and (values[2:] != GAPS[2:]).all()


def test_normal_noise_is_added_everywhere() -> None:
    values = noise.noisy("normal", np.full(40_000, 3.0), np.random.default_rng(1), 5)
    assert abs(values.mean() - 3) < 5 / 200 and abs(values.std() - 1) < 5 / 280


# ---- runs and files


@pytest.mark.parametrize("method", noise.NOISY_METHODS)
def test_a_run_has_the_gap_of_the_mean_at_every_checkpoint(method: str) -> None:
    task = noise.NoisyTask("a", method, "", "none", 400, Run(1, 2, 3, None, 0))
    rows = noise.solve_noisy(task)
    assert [row.spent for row in rows] == [100, 400] and rows == [row._replace(cpu=rows[0].cpu) for row in rows]
    assert rows[0].gap > rows[1].gap >= 0 and rows[1].gap < 1e-8 and 200 <= rows[0].used < 220
    assert {row.task for row in rows} == {task}


def test_the_mean_is_judged_without_noise() -> None:
    task = noise.NoisyTask("a", "esgroup", "noise=adapt", "normal", 100, Run(1, 3, 1, None, 0))
    fun, x0 = noise.Objective(task), noise.start(task.run)
    search = noise.generations_esgroup(task, fun, x0)
    while fun.count < 300:
        mean, _ = next(search)
    best = np.array(fun.problem.optimum.x)
    assert noise.solve_noisy(task)[0].gap == pytest.approx(((mean - best) ** 2).sum(), rel=1e-9)


def test_runs_are_appended_and_left_out_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "noisy.csv"
    words = ["run", "esgroup", "--out", path, "--functions", "1,5", "--dims", 2, "--instances", 1, "--budget", 100]
    words += ["--noise", "normal,gauss-severe"]
    result = invoke(*words)
    assert result.exit_code == 0 and "4 runs to do, 0 in" in result.output
    rows = noise.read_noisy_rows(path)
    assert len(rows) == 4 and {row.noise for row in rows} == {"normal", "gauss-severe"}
    path.write_text(path.read_text()[:-3])  # killed while it wrote
    result = invoke(*words)
    assert "1 runs to do, 3 in" in result.output
    assert [row._replace(cpu=0) for row in noise.read_noisy_rows(path)] == [row._replace(cpu=0) for row in rows]
    refused = invoke(*words, "--option", "noise=adapt")
    assert refused.exit_code == 2 and "choose another --label" in refused.output


@pytest.mark.parametrize(
    "words, said",
    [
        (["--noise", "loud"], "--noise must be some of normal"),
        (["--noise", "normal", "--popsizes", "8"], "--noise takes neither"),
        (["--noise", "normal", "--budget", "99"], "--budget must be at least 100"),
    ],
)
def test_what_cannot_be_run_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    result = invoke("run", "esgroup", "--out", tmp_path / "a.csv", *words)
    assert result.exit_code == 2 and said in result.output and not (tmp_path / "a.csv").exists()


def test_lra_without_noise_is_refused(tmp_path: Path) -> None:
    result = invoke("run", "lra", "--out", tmp_path / "a.csv")
    assert result.exit_code == 2 and "with --noise" in result.output


# ---- tables


def rows_of(label: str, gaps: dict[tuple[int, int], float], spent: int = 100) -> list[noise.NoisyRow]:
    return [
        noise.NoisyRow(label, "normal", function, 5, instance, 0, spent, gap, 500, "budget", 0.1, "esgroup", "", 100)
        for (function, instance), gap in gaps.items()
    ]


def test_the_ratio_is_to_the_better_of_the_others_in_each_cell() -> None:
    ours = rows_of("adapt", {(1, 1): 2.0, (1, 2): 8.0, (8, 1): 6.0})
    first = rows_of("plain", {(1, 1): 1.0, (1, 2): 4.0, (8, 1): 60.0})
    second = rows_of("lra", {(1, 1): 0.5, (1, 2): 1e3, (8, 1): 3.0})
    gaps = noise.log_gaps([*ours, *first, *second])
    found = noise.ratio(gaps["adapt"], [gaps["plain"], gaps["lra"]])
    assert found.value == pytest.approx(2.0)  # f1: 4 over 2, not over 0.5 and 4; f8: 6 over 3
    assert found.low <= found.value <= found.high


def test_gaps_below_1e_8_are_equal() -> None:
    gaps = noise.log_gaps([*rows_of("adapt", {(1, 1): 1e-20}), *rows_of("plain", {(1, 1): 0.0})])
    assert noise.ratio(gaps["adapt"], [gaps["plain"]]).value == 1.0


@pytest.mark.parametrize("gap, code", [(1.4, 0), (1.6, 1)])
def test_the_table_says_whether_the_goals_are_met(gap: float, code: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    noise.append_noisy_rows(path, [*rows_of("adapt", {(1, 1): gap}), *rows_of("plain", {(1, 1): 1.0})])
    result = invoke("noise-table", path, "--baselines", "plain")
    assert result.exit_code == code and f"{gap}" in result.output and ("**1.6**" in result.output) == bool(code)
    assert invoke("noise-table", path).exit_code == 2  # no runs of lra
