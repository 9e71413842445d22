"""The laws of a worker pool, which hold wherever points are evaluated, and objectives that leave traces in files."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup.checks import Array
from esgroup.driver.calling import Call
from esgroup.driver.worker_pool import WorkerPool

PATIENCE = 30.0  # seconds after which something is taken to hang


def total(x: Array) -> float:
    return float(np.sum(x))


def fails_at_three(x: Array) -> float:
    if x[0] == 3:
        raise ZeroDivisionError("at three")
    return total(x)


def exits_at_three(x: Array) -> float:
    if x[0] == 3:
        sys.exit(3)
    return total(x)


def interrupts(x: Array) -> float:
    raise KeyboardInterrupt


def waits(place: Path, x: Array) -> float:
    """Says that it has begun, and waits at points below 1 until the file `go` is there."""
    (place / f"begun {x[0]:g}").touch()
    if x[0] < 1:
        until((place / "go").exists)
    return total(x)


def fails_beside_one_that_waits(place: Path, x: Array) -> float:
    if x[0] == 0:
        return waits(place, x)
    until((place / "begun 0").exists)
    raise ZeroDivisionError("visible")


def meets(place: Path, many: int, x: Array) -> float:
    """Returns when as many evaluations are under way."""
    (place / f"begun {x[0]:g}").touch()
    until(lambda: len(list(place.glob("begun *"))) >= many)
    return total(x)


def length(x: Any) -> int:
    return len(x)


def dies_the_first_time(place: Path, x: Array) -> float:
    """Kills its process at every fifth point, the first time only."""
    mark = place / f"died {x[0]:g}"
    if x[0] % 5 == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return total(x)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "nothing happened for a long time"
        time.sleep(0.002)


def point(first: float) -> Array:
    return np.array([first, 10.0])


def submit_all(worker_pool: WorkerPool, points: dict[Any, Any]) -> None:
    for key, x in points.items():
        worker_pool.submit(key, x)


def collect_all(worker_pool: WorkerPool) -> dict[Hashable, Any]:
    """Collect until nothing is out: every key once."""
    outcomes: dict[Hashable, Any] = {}
    end = time.monotonic() + 2 * PATIENCE
    while worker_pool.out:
        before = worker_pool.out
        got = worker_pool.collect(1.0)
        assert worker_pool.out == before - len(got)
        assert not outcomes.keys() & dict(got).keys() and len(dict(got)) == len(got)
        outcomes.update(got)
        assert time.monotonic() < end, "points do not come back"
    assert worker_pool.collect() == []
    return outcomes


class WorkerPoolLaws:
    """Derive from it and say how a worker pool is made."""

    def worker_pool(
        self, call: Call, slots: int = 2, timeout: float | None = None
    ) -> AbstractContextManager[WorkerPool]:
        raise NotImplementedError

    def test_every_key_comes_back_once_with_its_value(self) -> None:
        points = {f"key {i}": point(i) for i in range(50)} | {(1, 2): point(50), None: point(51)}
        with self.worker_pool(total) as worker_pool:
            assert worker_pool.slots == 2 == worker_pool.free and worker_pool.out == 0 and worker_pool.lost == 0
            for _ in range(2):
                submit_all(worker_pool, points)
                assert worker_pool.out == 52 and worker_pool.free == 0
                assert collect_all(worker_pool) == {key: total(x) for key, x in points.items()}
            assert worker_pool.free == 2 and worker_pool.out == 0

    def test_nothing_is_collected_where_nothing_is_out_or_ready(self, tmp_path: Path) -> None:
        with self.worker_pool(partial(waits, tmp_path)) as worker_pool:
            assert worker_pool.collect() == worker_pool.collect(0.0) == []
            worker_pool.submit("slow", point(0))
            assert worker_pool.collect(0.0) == worker_pool.collect(0.05) == []
            assert worker_pool.out == worker_pool.free == 1
            (tmp_path / "go").touch()
            assert worker_pool.collect() == [("slow", 10.0)]

    def test_points_may_be_of_any_kind(self) -> None:
        points = {0: "word", 1: {"a": 1, "b": 2}, 2: (1, 2, 3), 3: np.zeros((6, 2))}
        with self.worker_pool(length) as worker_pool:
            submit_all(worker_pool, points)
            assert collect_all(worker_pool) == {0: 4, 1: 2, 2: 3, 3: 6}

    def test_all_slots_are_busy_at_once(self, tmp_path: Path) -> None:
        with self.worker_pool(partial(meets, tmp_path, 4), slots=4) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(4)})
            assert collect_all(worker_pool) == {i: 10.0 + i for i in range(4)}

    def test_exceptions_are_outcomes_and_the_others_go_on(self) -> None:
        with self.worker_pool(fails_at_three) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(8)})
            outcomes = collect_all(worker_pool)
        error = outcomes.pop(3)
        assert isinstance(error, ZeroDivisionError) and error.args == ("at three",)
        assert outcomes == {i: 10.0 + i for i in range(8) if i != 3}

    def test_sys_exit_is_an_error_of_the_objective(self) -> None:
        with self.worker_pool(exits_at_three) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(8)})
            outcomes = collect_all(worker_pool)
        error = outcomes.pop(3)
        assert isinstance(error, RuntimeError) and str(error) == "fun called sys.exit(3)"
        assert outcomes == {i: 10.0 + i for i in range(8) if i != 3}

    def test_an_interrupt_that_the_objective_raises_is_handed_on(self) -> None:
        with self.worker_pool(interrupts) as worker_pool:
            worker_pool.submit("key", point(0))
            ((key, outcome),) = worker_pool.collect(PATIENCE)
        assert key == "key" and isinstance(outcome, KeyboardInterrupt)

    def test_an_error_is_seen_while_another_evaluation_hangs(self, tmp_path: Path) -> None:
        with self.worker_pool(partial(fails_beside_one_that_waits, tmp_path)) as worker_pool:
            worker_pool.submit("hangs", point(0))
            worker_pool.submit("fails", point(1))
            ((key, outcome),) = worker_pool.collect(PATIENCE)
            assert key == "fails" and isinstance(outcome, ZeroDivisionError)
            assert worker_pool.out == worker_pool.free == 1
            (tmp_path / "go").touch()
            assert collect_all(worker_pool) == {"hangs": 10.0}

    def test_what_has_not_begun_can_be_cancelled(self, tmp_path: Path) -> None:
        with self.worker_pool(partial(waits, tmp_path)) as worker_pool:
            submit_all(worker_pool, {i: point(i / 100) for i in range(20)})
            until(lambda: len(list(tmp_path.glob("begun *"))) == 2)
            cancelled = worker_pool.cancel()
            (tmp_path / "go").touch()
            outcomes = collect_all(worker_pool)
            assert len(cancelled) >= 14
            assert sorted([*cancelled, *outcomes]) == list(range(20))
            assert len(list(tmp_path.glob("begun *"))) == len(outcomes)
            worker_pool.submit("later", point(2))
            assert collect_all(worker_pool) == {"later": 12.0}

    def test_an_evaluation_that_takes_too_long_ends_in_a_timeout(self, tmp_path: Path) -> None:
        with self.worker_pool(partial(waits, tmp_path), timeout=1.2) as worker_pool:
            worker_pool.submit("slow", point(0))
            worker_pool.submit("fast", point(1))
            assert worker_pool.collect(PATIENCE) == [("fast", 11.0)]
            ((key, outcome),) = worker_pool.collect(PATIENCE)
            assert key == "slow" and isinstance(outcome, TimeoutError)
            assert str(outcome) == "the evaluation took longer than eval_timeout=1.2 s"
            assert worker_pool.out == 0 and worker_pool.free == 2 - worker_pool.lost
            worker_pool.submit("next", point(2))
            assert collect_all(worker_pool) == {"next": 12.0}
            (tmp_path / "go").touch()
            until(lambda: worker_pool.free == 2)
            assert worker_pool.collect(0.1) == []  # the late value is ignored

    def test_after_the_context_nothing_new_begins(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), self.worker_pool(partial(waits, tmp_path)) as worker_pool:
            submit_all(worker_pool, {i: point(i / 100) for i in range(20)})
            until(lambda: len(list(tmp_path.glob("begun *"))) == 2)
            threading.Timer(0.5, (tmp_path / "go").touch).start()  # a pool waits at its end for what has begun
            raise ZeroDivisionError
        assert len(list(tmp_path.glob("begun *"))) <= 6  # those that a pool had taken already
