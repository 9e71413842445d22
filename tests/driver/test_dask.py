"""A search on a Dask cluster continues when a worker is killed, with the same result as without."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.search.searcher import Searcher
from tests.driver.support import evaluator

distributed = pytest.importorskip("distributed")

# Dask's own warnings, about ports and the speed of its loop, are no fault of ours
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:::distributed"),
    pytest.mark.filterwarnings("ignore:::tornado"),
]

X0 = np.array([1.0, -0.5, 2.0])


def slow(x: Array) -> float:
    time.sleep(0.01)
    return float(x @ (np.array([1.0, 10.0, 100.0]) * x))


def fails_when_good(x: Array) -> float:
    value = slow(x)
    if value < 20.0:
        raise ZeroDivisionError("too good")
    return value


def noise(x: Array) -> float:
    return float(np.random.default_rng().random())


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_worker_that_is_killed_in_mid_run_changes_nothing(client: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"sigma0": 0.5, "rng": 5, "max_iters": 10}
    expected = esgroup.minimize(slow, X0, **options)
    workers = set(client.run(os.getpid).values())
    victim = min(workers)
    told: list[int] = []

    def callback(search: Searcher) -> None:
        told.append(search.nfev)
        if search.nit == 4:  # in the middle of the next generation
            threading.Timer(0.02, os.kill, (victim, signal.SIGKILL)).start()

    path = tmp_path / "run.npz"
    result = esgroup.minimize(slow, X0, **options, executor=client.get_executor(), callback=callback, checkpoint=path)
    client.wait_for_workers(2, timeout=20)
    assert victim not in client.run(os.getpid).values()
    assert told == list(range(7, result.nfev + 1, 7))
    assert result.nfev == expected.nfev == Searcher.load(path).nfev
    assert (result.fun, result.nit, result.nfailed) == (expected.fun, expected.nit, 0)
    assert np.array_equal(result.x, expected.x)
    assert np.array_equal(result.xmean, expected.xmean)


def test_the_client_itself_will_do_and_equal_points_are_evaluated_each(client: Any) -> None:
    seen = []

    def callback(search: Searcher) -> None:
        seen.extend(search.ledger.record.best)

    result = esgroup.minimize(noise, [2.0], 0.5, integer=True, rng=1, max_iters=3, executor=client, callback=callback)
    assert result.nit == 3
    assert len(set(seen)) == 3


def test_an_exception_on_a_worker_reaches_the_caller(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(ZeroDivisionError, match="too good"):
        esgroup.minimize(fails_when_good, X0, 0.5, rng=5, executor=client.get_executor(), checkpoint=path)
    whole = esgroup.minimize(slow, X0, 0.5, rng=5, max_iters=8)
    result = esgroup.minimize(
        slow, X0, 0.5, rng=5, max_iters=8, executor=client.get_executor(), checkpoint=path, resume=True
    )
    assert np.array_equal(result.xmean, whole.xmean)


def test_lambdas_travel_to_a_cluster(client: Any) -> None:
    result = esgroup.minimize(lambda x: float(x @ x), X0, 0.5, rng=1, max_iters=2, executor=client.get_executor())
    assert result.nit == 2


@pytest.mark.parametrize("times", [2, 3])
def test_a_task_that_dask_has_given_up_is_handed_out_again_twice(times: int) -> None:
    """A scheduler abandons a task with which several workers have died, although the task may not be the cause."""
    lost = distributed.KilledWorker("task", None, 3)

    class GivesUp(Executor):
        left = times

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if self.left > 0 and args[1][0] < 1:
                self.left -= 1
                future.set_exception(lost)
            else:
                future.set_result(fn(*args))
            return future

    points = np.array([[2.0], [0.5]])
    with evaluator(lambda x: float(x[0]), executor=GivesUp()) as evaluate:
        if times == 2:
            assert evaluate(points, {}) == [2.0, 0.5]
        else:
            with pytest.raises(RuntimeError, match="lost with its worker 3 times") as caught:
                evaluate(points, {})
            assert caught.value.__cause__ is lost
