"""Limits that a caller sets, and the status of a result for the reasons to stop."""

import math
from pathlib import Path

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.search import ledger as module
from esgroup.stopping.budgets import Limits, status_of
from tests.search.support import generation, run, searcher


def test_a_search_that_runs_has_no_reasons_to_stop() -> None:
    search = searcher()
    assert search.stop() == {}
    generation(search)
    assert search.stop() == {}


def test_budgets_are_named_like_the_arguments() -> None:
    search = searcher(max_evals=7, max_iters=1, max_time=1e-9, target=1e9)
    generation(search)
    reasons = search.stop()
    assert list(reasons) == ["target", "max_evals", "max_iters", "max_time"]
    assert reasons["max_evals"] == "limit of 7 evaluations reached (7 made)"
    assert reasons["max_iters"] == "limit of 1 generations reached (1 made)"
    assert "limit of 1e-09 s reached" in reasons["max_time"]
    assert reasons["target"] == f"target 1e+09 reached (best value {search.best_f:.6g})"


@pytest.mark.parametrize("max_evals", [1, 7, 8, 100])
def test_evaluations_exceed_their_budget_by_less_than_a_generation(max_evals: int) -> None:
    search = run(searcher(max_evals=max_evals))
    assert max_evals <= search.nfev < max_evals + search.popsize
    assert list(search.stop()) == ["max_evals"]


def test_failed_evaluations_count_toward_the_budget() -> None:
    search = searcher(max_evals=14)
    run(search, lambda x: math.nan)
    assert search.nfev == 14 and "max_evals" in search.stop()


def test_points_never_asked_count_toward_the_budget() -> None:
    search = searcher(max_evals=2)
    search.tell([[1, 2, 3], [3, 2, 1]], [1.0, 2.0])
    assert list(search.stop()) == ["max_evals"] and search.nit == 0


def test_generations_are_counted_to_max_iters() -> None:
    assert run(searcher(max_iters=12)).nit == 12


@pytest.mark.parametrize(
    ("value", "stops"), [(2.0, True), (1.5, True), (2.1, False), (-math.inf, True), (math.inf, False)]
)
def test_the_target_may_be_met_exactly(value: float, stops: bool) -> None:
    search = searcher(target=2.0)
    search.tell([[1, 2, 3]], [value])
    assert ("target" in search.stop()) == stops


def test_no_target_is_reached_before_a_value_is_told() -> None:
    search = searcher(target=1e300)
    assert search.stop() == {}
    search.tell([[1, 2, 3]], [math.nan])
    assert search.stop() == {}


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def test_time_is_counted_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    search = searcher(max_time=5.0)
    clock.now += 4.9
    assert search.stop() == {} and search.seconds == pytest.approx(4.9)
    clock.now += 0.2
    assert search.stop() == {"max_time": "limit of 5 s reached (5.1 s elapsed)"}


def test_time_is_counted_over_save_and_load_but_not_between(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = Clock(monkeypatch)
    search = searcher(max_time=5.0)
    clock.now += 3.0
    search.save(tmp_path / "run.npz")
    clock.now = 7.0  # another machine, or after a reboot
    loaded = Searcher.load(tmp_path / "run.npz")
    assert loaded.seconds == 3.0 and loaded.stop() == {}
    clock.now += 1.9
    assert loaded.stop() == {}
    clock.now += 0.2
    assert list(loaded.stop()) == ["max_time"]


def test_a_budget_may_be_a_whole_float_and_infinity_is_none() -> None:
    search = Searcher(np.ones(3), max_evals=1e3, max_iters=math.inf, max_time=math.inf, target=-math.inf)
    assert search.limits == Limits(1000, None, None, None)


REASONS = [
    ({}, -1, False),
    ({"tolx": ""}, 0, True),
    ({"tolx": "", "resolution": ""}, 3, False),
    ({"divergence": "", "tolfun": ""}, 3, False),
    ({"failed": "", "tolx": "", "max_evals": ""}, 2, False),
    ({"tolfun": ""}, 0, True),
    ({"target": ""}, 1, True),
    ({"max_evals": ""}, 2, False),
    ({"max_iters": ""}, 2, False),
    ({"max_time": ""}, 2, False),
    ({"stagnation": ""}, 3, False),
    ({"failed": ""}, 3, False),
    ({"divergence": ""}, 3, False),
    ({"max_evals": "", "target": ""}, 1, True),
    ({"max_evals": "", "tolfun": ""}, 0, True),
    ({"stagnation": "", "max_time": ""}, 2, False),
]


@pytest.mark.parametrize(("reasons", "status", "success"), REASONS)
def test_status_and_success_follow_from_the_reasons(
    reasons: dict[str, str], status: int, success: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status_of(reasons) == status
    search = searcher()
    generation(search)
    monkeypatch.setattr(search, "stop", lambda: reasons)
    assert (search.result.status, search.result.success) == (status, success)
