"""Points on executors of the caller's."""

import logging
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from esgroup.driver.calling import Call
from esgroup.driver.executors import OnExecutor
from esgroup.driver.worker_pool import TRIES, WorkerPool
from tests.driver.worker_pool_laws import (
    PATIENCE,
    WorkerPoolLaws,
    collect_all,
    dies_the_first_time,
    point,
    submit_all,
    total,
    until,
    waits,
)


class TestLawsOnThreads(WorkerPoolLaws):
    @contextmanager
    def worker_pool(self, call: Call, slots: int = 2, timeout: float | None = None) -> Iterator[WorkerPool]:
        with ThreadPoolExecutor(slots) as pool, OnExecutor(call, pool, timeout=timeout) as worker_pool:
            yield worker_pool


class TestLawsOnAProcessPool(WorkerPoolLaws):
    @contextmanager
    def worker_pool(self, call: Call, slots: int = 2, timeout: float | None = None) -> Iterator[WorkerPool]:
        with ProcessPoolExecutor(slots) as pool, OnExecutor(call, pool, timeout=timeout) as worker_pool:
            yield worker_pool


class AtOnce(Executor):
    """Evaluates while it is handed the point; it does not say how many it can take."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


class Forgetting(Executor):
    """Never answers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        return future


def test_the_number_of_slots_is_what_the_caller_says_or_what_the_executor_knows() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert OnExecutor(total, pool).slots == 3
        assert OnExecutor(total, pool, max_pending=7).slots == 7
    worker_pool = OnExecutor(total, AtOnce())
    assert worker_pool.slots is None and worker_pool.free == math.inf
    worker_pool = OnExecutor(total, Forgetting(), max_pending=2)
    submit_all(worker_pool, {i: point(i) for i in range(3)})
    assert worker_pool.free == 0 and worker_pool.out == 3


@pytest.mark.parametrize("name", ["_max_workers", "num_workers", "_num_workers", "max_workers"])
def test_an_executor_may_say_under_other_names_how_many_workers_it_has(name: str) -> None:
    """As that of mpi4py does."""
    executor = Forgetting()
    for useless in (None, 0, True, 2.0, "many"):
        setattr(executor, name, useless)
        assert OnExecutor(total, executor).slots is None
    setattr(executor, name, 64)
    assert OnExecutor(total, executor).slots == 64


def test_an_executor_whose_number_of_workers_cannot_be_had_is_one_that_does_not_say_it() -> None:
    class Closed(Forgetting):
        @property
        def num_workers(self) -> int:
            raise RuntimeError("after shutdown")

    assert OnExecutor(total, Closed()).slots is None


def test_values_may_be_there_before_they_are_collected() -> None:
    with OnExecutor(total, AtOnce()) as worker_pool:
        submit_all(worker_pool, {i: point(i) for i in range(3)})
        assert sorted(worker_pool.collect(0.0)) == [(0, 10.0), (1, 11.0), (2, 12.0)]


def test_a_late_evaluation_occupies_its_slot_until_it_ends(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool, OnExecutor(partial(waits, tmp_path), pool, timeout=0.2) as worker_pool:
        worker_pool.submit("late", point(0))
        assert isinstance(collect_all(worker_pool)["late"], TimeoutError)
        assert (worker_pool.lost, worker_pool.free, worker_pool.out, worker_pool.slots) == (1, 1, 0, 2)
        (tmp_path / "go").touch()
        pool.shutdown()
        assert (worker_pool.lost, worker_pool.free) == (0, 2)


def test_a_point_that_never_began_is_called_back_when_its_time_is_over(tmp_path: Path) -> None:
    begun = threading.Event()

    def blocks() -> None:
        begun.set()
        assert release.wait(PATIENCE)

    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(blocks)
        assert begun.wait(PATIENCE)
        with OnExecutor(partial(waits, tmp_path), pool, timeout=0.2) as worker_pool:
            worker_pool.submit("waits", point(1))
            assert isinstance(collect_all(worker_pool)["waits"], TimeoutError)
            assert worker_pool.lost == 0
        release.set()
    assert not list(tmp_path.iterdir())


def test_the_time_of_a_second_try_is_counted_anew() -> None:
    """The first try is lost when most of the time is over."""
    handed: list[Future[Any]] = []

    class Late(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            handed.append(Future())
            threading.Timer(0.6, handed[-1].cancel if len(handed) == 1 else partial(handed[-1].set_result, 5.0)).start()
            return handed[-1]

    with OnExecutor(total, Late(), timeout=1.0) as worker_pool:
        worker_pool.submit("key", point(0))
        assert collect_all(worker_pool) == {"key": 5.0}
    assert len(handed) == 2


def test_a_pool_that_breaks_ends_in_outcomes_for_every_point(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as pool, OnExecutor(partial(dies_the_first_time, tmp_path), pool) as worker_pool:
        submit_all(worker_pool, {i: point(i) for i in range(8)})
        outcomes = collect_all(worker_pool)
        assert isinstance(outcomes[0], RuntimeError) and "executor is broken" in str(outcomes[0])
        assert outcomes.keys() == set(range(8))


def test_a_point_that_is_lost_again_and_again_is_given_up() -> None:
    class Losing(Executor):
        submitted = 0

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            self.submitted += 1
            future: Future[Any] = Future()
            future.cancel()
            return future

    executor = Losing()
    with OnExecutor(total, executor) as worker_pool:
        worker_pool.submit("key", point(0))
        outcome = collect_all(worker_pool)["key"]
    assert executor.submitted == TRIES
    assert isinstance(outcome, RuntimeError) and f"lost with its worker {TRIES} times" in str(outcome)


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:::distributed")
@pytest.mark.filterwarnings("ignore:::tornado")
class TestDask:
    def check(self, worker_pool: WorkerPool, outcomes: dict[Any, Any]) -> None:
        worker_pool.submit("later", point(2))
        outcomes |= collect_all(worker_pool)
        assert outcomes.keys() == {*range(5), "later"}
        for outcome in outcomes.values():
            assert isinstance(outcome, RuntimeError) and "lost its scheduler" in str(outcome)

    def test_a_client_that_is_closed_ends_in_outcomes(self, tmp_path: Path) -> None:
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        with cluster, distributed.Client(cluster) as client:
            worker_pool = OnExecutor(partial(waits, tmp_path), client)
            assert worker_pool.slots == worker_pool.free == 2
            submit_all(worker_pool, {i: point(i / 100) for i in range(5)})
            assert worker_pool.collect(0.1) == [] and worker_pool.free == 0
            client.close()
            self.check(worker_pool, collect_all(worker_pool))
            (tmp_path / "go").touch()

    def test_a_scheduler_that_is_killed_ends_in_outcomes(self, tmp_path: Path) -> None:
        """The client tries to reach it again for a while, here two seconds, and then gives up."""
        distributed = pytest.importorskip("distributed")
        address = tmp_path / "scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", "127.0.0.1"]
        with subprocess.Popen([*command, "--port", "0", "--scheduler-file", address], stderr=subprocess.DEVNULL) as it:
            try:
                until(address.exists)
                client = distributed.Client(scheduler_file=str(address), timeout=2)
                worker_pool = OnExecutor(total, client)
                assert (
                    worker_pool.slots == worker_pool.free == 1
                )  # there is no worker yet; the first point may bring one
                submit_all(worker_pool, {i: point(i) for i in range(5)})
                assert worker_pool.collect(0.1) == []
                it.kill()
                self.check(worker_pool, collect_all(worker_pool))
            finally:
                it.kill()
