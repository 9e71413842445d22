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

from esgroup.driver.crew import TRIES, Call, Crew
from esgroup.driver.executors import OnExecutor
from tests.driver.crew_laws import (
    PATIENCE,
    CrewLaws,
    collect_all,
    dies_the_first_time,
    point,
    submit_all,
    total,
    until,
    waits,
)


class TestLawsOnThreads(CrewLaws):
    @contextmanager
    def crew(self, call: Call, slots: int = 2, timeout: float | None = None) -> Iterator[Crew]:
        with ThreadPoolExecutor(slots) as pool, OnExecutor(call, pool, timeout=timeout) as crew:
            yield crew


class TestLawsOnAProcessPool(CrewLaws):
    @contextmanager
    def crew(self, call: Call, slots: int = 2, timeout: float | None = None) -> Iterator[Crew]:
        with ProcessPoolExecutor(slots) as pool, OnExecutor(call, pool, timeout=timeout) as crew:
            yield crew


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
    crew = OnExecutor(total, AtOnce())
    assert crew.slots is None and crew.free == math.inf
    crew = OnExecutor(total, Forgetting(), max_pending=2)
    submit_all(crew, {i: point(i) for i in range(3)})
    assert crew.free == 0 and crew.out == 3


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
    with OnExecutor(total, AtOnce()) as crew:
        submit_all(crew, {i: point(i) for i in range(3)})
        assert sorted(crew.collect(0.0)) == [(0, 10.0), (1, 11.0), (2, 12.0)]


def test_a_late_evaluation_occupies_its_slot_until_it_ends(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool, OnExecutor(partial(waits, tmp_path), pool, timeout=0.2) as crew:
        crew.submit("late", point(0))
        assert isinstance(collect_all(crew)["late"], TimeoutError)
        assert (crew.lost, crew.free, crew.out, crew.slots) == (1, 1, 0, 2)
        (tmp_path / "go").touch()
        pool.shutdown()
        assert (crew.lost, crew.free) == (0, 2)


def test_a_point_that_never_began_is_called_back_when_its_time_is_over(tmp_path: Path) -> None:
    begun = threading.Event()

    def blocks() -> None:
        begun.set()
        assert release.wait(PATIENCE)

    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(blocks)
        assert begun.wait(PATIENCE)
        with OnExecutor(partial(waits, tmp_path), pool, timeout=0.2) as crew:
            crew.submit("waits", point(1))
            assert isinstance(collect_all(crew)["waits"], TimeoutError)
            assert crew.lost == 0
        release.set()
    assert not list(tmp_path.iterdir())


def test_the_time_of_a_second_try_is_counted_anew() -> None:
    """The first try is lost when most of the time is over."""
    handed: list[Future[Any]] = []

    class Late(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            handed.append(Future())
            threading.Timer(1.5, handed[-1].cancel if len(handed) == 1 else partial(handed[-1].set_result, 5.0)).start()
            return handed[-1]

    with OnExecutor(total, Late(), timeout=2.5) as crew:
        crew.submit("key", point(0))
        assert collect_all(crew) == {"key": 5.0}
    assert len(handed) == 2


def test_a_pool_that_breaks_ends_in_outcomes_for_every_point(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as pool, OnExecutor(partial(dies_the_first_time, tmp_path), pool) as crew:
        submit_all(crew, {i: point(i) for i in range(8)})
        outcomes = collect_all(crew)
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
    with OnExecutor(total, executor) as crew:
        crew.submit("key", point(0))
        outcome = collect_all(crew)["key"]
    assert executor.submitted == TRIES
    assert isinstance(outcome, RuntimeError) and f"lost with its worker {TRIES} times" in str(outcome)


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:::distributed")
@pytest.mark.filterwarnings("ignore:::tornado")
class TestDask:
    def check(self, crew: Crew, outcomes: dict[Any, Any]) -> None:
        crew.submit("later", point(2))
        outcomes |= collect_all(crew)
        assert outcomes.keys() == {*range(5), "later"}
        for outcome in outcomes.values():
            assert isinstance(outcome, RuntimeError) and "lost its scheduler" in str(outcome)

    def test_a_client_that_is_closed_ends_in_outcomes(self, tmp_path: Path) -> None:
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        with cluster, distributed.Client(cluster) as client:
            crew = OnExecutor(partial(waits, tmp_path), client)
            assert crew.slots == crew.free == 2
            submit_all(crew, {i: point(i / 100) for i in range(5)})
            assert crew.collect(0.1) == [] and crew.free == 0
            client.close()
            self.check(crew, collect_all(crew))
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
                crew = OnExecutor(total, client)
                assert crew.slots == crew.free == 1  # there is no worker yet; the first point may bring one
                submit_all(crew, {i: point(i) for i in range(5)})
                assert crew.collect(0.1) == []
                it.kill()
                self.check(crew, collect_all(crew))
            finally:
                it.kill()
