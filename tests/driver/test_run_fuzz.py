"""Random calls of `minimize`: forty in every run of the tests, hundreds more with the marker `slow`."""

import pytest

from esgroup.rankings import AugmentedLagrangian
from esgroup.search.ledger import Ledger
from tests.driver import run_fuzzer


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_whatever_the_options_are_the_result_is_that_of_the_points(first: int) -> None:
    for seed in range(first, first + 10):
        run_fuzzer.verify(seed)


@pytest.mark.parametrize("seed", range(3))
def test_objectives_that_fork_are_asked_once_and_leave_nothing(seed: int) -> None:
    run_fuzzer.check_forks(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 540, 50))
def test_the_result_is_that_of_the_points_in_many_more_runs(first: int) -> None:
    for seed in range(first, first + 50):
        run_fuzzer.verify(seed)


# ---- faults of the kinds that it is for ---------------------------------------------------------------------------


def fails() -> bool:
    for seed in range(40):
        try:
            run_fuzzer.verify(seed)
        except Exception:
            return True
    return False


def test_a_tolerance_that_is_relative_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AugmentedLagrangian.violations
    monkeypatch.setattr(AugmentedLagrangian, "violations", lambda rule, g: whole(rule, g) / (1 + abs(g)))
    assert fails()


def test_a_best_point_that_is_infeasible_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AugmentedLagrangian, "violation", lambda rule, g: 0.0 * g[:, 0])
    assert fails()


def test_values_of_a_session_that_count_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "rewind", lambda ledger, mark: None)
    assert fails()
