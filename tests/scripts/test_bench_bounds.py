"""The benchmark within bounds: its minima are minima, its starts feasible, its table says what was found."""

from __future__ import annotations

import bench_bounds as bench
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts

APP = typer.Typer()
APP.command()(bench.main)


def limits(problem: bench.Problem) -> tuple[float, float]:
    low, high = problem.bounds
    return -np.inf if low is None else low, np.inf if high is None else high


@pytest.mark.parametrize("dim", [2, 5])
def test_no_feasible_point_is_below_the_minimum_and_a_search_gets_there(dim: int) -> None:
    for problem in bench.problems(dim):
        low, high = limits(problem)
        assert low < problem.starts[0] < problem.starts[1] < high
        assert problem.minimum == pytest.approx(best_of_long_search(problem, dim), abs=1e-9)


def best_of_long_search(problem: bench.Problem, dim: int) -> float:
    """The best value of a search that runs until it ends by itself, and of many random points."""
    low, high = limits(problem)
    rng = np.random.default_rng(1)
    points = rng.uniform(max(low, -9), min(high, 9), (20_000, dim))
    start = points[problem.f(points).argmin()]
    search = bench.esgroup.Searcher(start, problem.sigma0, bounds=problem.bounds, rng=2, max_evals=20_000)
    while not search.stop():
        search.tell(problem.f(search.ask()))
    return min(search.best_f, float(problem.f(points).min()))


def test_a_cell_has_the_median_of_what_was_solved_and_the_number_of_failures() -> None:
    assert bench.cell([1200, 100, 3000]) == "1,200"
    assert bench.cell([None, 100, 3000, None]) == "1,550 ✗2"
    assert bench.cell([None]) == "- ✗1"


def test_the_table_has_a_row_for_every_problem_and_counts_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fake(problem: bench.Problem, x0: np.ndarray, seed: int, most: int) -> int | None:
        seen.append((problem.name, seed, most))
        assert (x0 > problem.starts[0]).all() and (x0 < problem.starts[1]).all() and len(x0) == 3
        return None if problem.name == "linear" else 10 * seed

    monkeypatch.setattr(bench, "METHODS", {"esgroup": fake})
    result = CliRunner().invoke(APP, ["--dim", "3", "--seeds", "2", "--first-seed", "7"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert len(lines) == 10 and lines[1].endswith("75") and lines[2].endswith("- ✗2") and lines[-1].endswith("2 of 16")
    assert len(seen) == 16 and {seed for _, seed, _ in seen} == {7, 8} and seen[0][2] == 6000


def test_searches_count_to_the_target_and_give_up_at_the_limit() -> None:
    corner = bench.problems(4)[0]
    needed = bench.by_esgroup(corner, np.zeros(4), 1, 5000)
    assert needed is not None and needed < 200
    assert bench.by_esgroup(corner, np.zeros(4), 1, 8) is None


def test_cma_is_run_with_the_same_rules() -> None:
    pytest.importorskip("cma")
    corner = bench.problems(4)[0]
    for name in ("cma BoundPenalty", "cma BoundTransform"):
        needed = bench.METHODS[name](corner, np.zeros(4), 1, 5000)
        assert needed is not None and needed < 2000
        assert bench.METHODS[name](corner, np.zeros(4), 1, 8) is None


@pytest.mark.parametrize("arguments", [["--dim", "1"], ["--seeds", "0"], ["--only", "nobody"]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(APP, arguments)
    assert result.exit_code == 2 and arguments[0] in result.output
