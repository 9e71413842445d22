"""Random sequences of calls: twenty in every run of the tests, a thousand more with the marker `slow`."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.distributions import families
from tests.groups.cases import CASES
from tests.search import fuzz_cases, fuzzer

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_whatever_is_called_in_whatever_order_the_books_are_right(first: int) -> None:
    for seed in range(first, first + 5):
        fuzzer.verify(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 1070, 50))
def test_the_books_are_right_in_many_more_sequences(first: int) -> None:
    for seed in range(first, first + 50):
        fuzzer.verify(seed)


def test_every_group_and_every_family_is_among_the_searches() -> None:
    assert set(fuzz_cases.GROUPS) - {"strangers", "frame"} == set(CASES)
    univariate = {name for name, value in vars(families).items() if isinstance(value, type)}
    assert set(fuzz_cases.FAMILIES) == univariate - {"Product", "Categorical"}


def test_a_sequence_has_operations_of_its_own_and_is_the_same_again() -> None:
    first, again, other = [], [], []  # type: tuple[list[str], list[str], list[str]]
    some = frozenset(range(12))
    assert fuzzer.run(7, some, first) == fuzzer.run(7, some, again)
    fuzzer.run(8, some, other)
    assert first == again != other


def break_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Searcher.tell

    def tell(search: Searcher, *told: Any, **beside: Any) -> None:
        whole(search, *told, **beside)
        search.ledger.nfev += len(told) == 2

    monkeypatch.setattr(Searcher, "tell", tell)


def test_a_failing_sequence_is_short_and_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    break_counts(monkeypatch)
    with pytest.raises(fuzzer.SequenceFailed, match=r"nfev.*must be") as failed:
        for seed in range(50):
            fuzzer.verify(seed)
    text = str(failed.value)
    assert "Searcher(" in text and "tell(" in text
    command = re.search(r"python -m tests.search.fuzzer --seed (\d+) --only ([\d,]+)$", text)
    assert command is not None
    needed = frozenset(map(int, command[2].split(",")))
    assert len(needed) <= 3
    assert fuzzer.failure(int(command[1]), needed) is not None
    monkeypatch.undo()
    assert fuzzer.failure(int(command[1]), needed) is None


def test_a_sequence_is_repeated_on_the_command_line() -> None:
    command = [sys.executable, "-m", "tests.search.fuzzer", "--seed", "3", "--only", "0,1,2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    log: list[str] = []
    fuzzer.run(3, frozenset([0, 1, 2]), log)
    assert done.stdout.splitlines() == "\n".join(log).splitlines()


# ---- faults of the kinds that it is for ---------------------------------------------------------------------------


def fails(monkeypatch: pytest.MonkeyPatch, seeds: int = 60) -> bool:
    found = any(fuzzer.failure(seed) is not None for seed in range(seeds))
    monkeypatch.undo()
    return found


def test_a_generator_that_a_file_does_not_restore_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Searcher.load.__func__  # type: ignore[attr-defined]

    def load(cls: Any, path: Any) -> Any:
        search = whole(cls, path)
        search.rng = np.random.default_rng(1)
        return search

    monkeypatch.setattr(Searcher, "load", classmethod(load))
    assert fails(monkeypatch)


def test_points_that_are_kept_and_change_later_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Searcher.inject

    def inject(search: Searcher, X: Any) -> None:
        whole(search, X)
        if isinstance(X, np.ndarray) and len(search.ledger.injected) == len(X) and X.dtype == float:
            search.ledger.injected = X

    monkeypatch.setattr(Searcher, "inject", inject)
    assert fails(monkeypatch)


def test_a_refused_call_that_draws_numbers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Searcher.tell

    def tell(search: Searcher, *told: Any, **beside: Any) -> None:
        try:
            whole(search, *told, **beside)
        except ValueError:
            search.rng.random()
            raise

    monkeypatch.setattr(Searcher, "tell", tell)
    assert fails(monkeypatch)
