"""Searches on a Dask cluster: workers are killed, join and hang, the scheduler is lost, and no value is lost."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.executors import OnExecutor
from esgroup.driver.worker_pool import TRIES, Unavailable
from esgroup.search.ledger import PendingPoint
from esgroup.search.searcher import Searcher
from tests.driver.support import evaluator
from tests.driver.worker_pool_laws import PATIENCE, meets, point, until, waits

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


def noted(place: Path, x: Array) -> float:
    """Adds the point to a file of its process; values arrive in another order than their points were asked for."""
    time.sleep(0.01 + 0.02 * (x[0] % 1.0))
    with (place / f"process {os.getpid()}").open("ab") as file:
        file.write(x.tobytes())
    return slow(x)


def noted_points(place: Path) -> list[bytes]:
    size = X0.nbytes
    files = [path.read_bytes() for path in place.glob("process *")]
    return [data[i : i + size] for data in files for i in range(0, len(data), size)]


def hangs(place: Path, times: int, x: Array) -> float:
    """The first evaluations hang until the file `go` is there, and then have the best value of all."""
    for i in range(times):
        try:
            (place / f"hangs {i}").touch(exist_ok=False)
        except FileExistsError:
            continue
        until((place / "go").exists)
        return -1.0
    return slow(x)


def cluster_of(n_workers: int) -> Any:
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster_of(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The points of an asynchronous search whose values were passed on, as bytes."""
    points: list[bytes] = []
    original = Searcher.tell_place

    def tell_place(self: Searcher, place: PendingPoint, value: Any) -> None:
        original(self, place, value)
        points.append(place.point.tobytes())

    monkeypatch.setattr(Searcher, "tell_place", tell_place)
    return points


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


def test_a_point_that_was_lost_before_is_not_to_blame_when_the_cluster_is_lost(client: Any, tmp_path: Path) -> None:
    with distributed.Client(client.cluster.scheduler_address) as lost:
        worker_pool = OnExecutor(partial(waits, tmp_path), lost)
        worker_pool.submit("key", point(0))
        until((tmp_path / "begun 0").exists)
        for job in worker_pool._jobs.values():
            job.losses = TRIES - 1
    ((key, outcome),) = worker_pool.collect(PATIENCE)
    (tmp_path / "go").touch()
    assert key == "key" and isinstance(outcome, Unavailable) and "lost its scheduler" in str(outcome)


# ---- asynchronous -----------------------------------------------------------------------------------------------

ALONE = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_of_three_workers_one_is_killed_and_a_fourth_joins_and_every_value_counts_once(
    tmp_path: Path, told: list[bytes]
) -> None:
    path = tmp_path / "run.npz"
    with cluster_of(3) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(3, timeout=60)
        victim = min(client.run(os.getpid).values())

        def callback(search: Searcher) -> None:
            if not dead and (tmp_path / f"process {victim}").exists():
                dead.append(search.nfev)
                os.kill(victim, signal.SIGKILL)
                cluster.scale(4)

        dead: list[int] = []
        result = esgroup.minimize(
            partial(noted, tmp_path),
            X0,
            0.5,
            rng=5,
            max_evals=400,
            executor=client,
            asynchronous=True,
            callback=callback,
            checkpoint=path,
        )
        client.wait_for_workers(4, timeout=60)
        assert victim not in client.run(os.getpid).values()
    assert 0 < dead[0] < 300
    assert result.nfev == 400 == len(told) == len(set(told)) and result.nfailed == 0
    assert set(told) == set(noted_points(tmp_path))
    assert Searcher.load(path).nfev == 400 and not Searcher.load(path).ledger.out


def test_a_worker_that_joins_gets_a_point_while_the_others_are_still_busy(client: Any, tmp_path: Path) -> None:
    """Evaluations end when three are under way: on the two workers of the beginning, they would never end."""
    client.wait_for_workers(2, timeout=30)
    fun = partial(meets, tmp_path, 3)

    def join() -> None:
        until(lambda: len(list(tmp_path.glob("begun *"))) == 2)
        client.cluster.scale(3)

    thread = threading.Thread(target=join)
    thread.start()
    try:
        result = esgroup.minimize(fun, X0, 0.5, rng=5, max_evals=9, executor=client, asynchronous=True)
    finally:
        thread.join()
        client.cluster.scale(2)
    assert result.nfev == 9


@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_when_the_scheduler_is_lost_a_resumed_run_evaluates_what_was_out(
    on_error: Any, client: Any, tmp_path: Path, told: list[bytes]
) -> None:
    """That nobody evaluates any more is no failed evaluation: the budget is not used up by NaN."""
    script, path = tmp_path / "cluster.py", tmp_path / "run.npz"
    script.write_text(ALONE)
    options: dict[str, Any] = {"sigma0": 0.5, "rng": 5, "max_evals": 150, "asynchronous": True, "on_error": on_error}
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], stdin=pipe, stdout=pipe, text=True, env=environment) as alone:
        try:
            assert alone.stdout is not None
            lost = distributed.Client(alone.stdout.readline().strip(), timeout=2)
            lost.wait_for_workers(2, timeout=30)
            with pytest.raises(RuntimeError, match=r"lost its scheduler: reconnect, then resume") as caught:
                esgroup.minimize(
                    partial(noted, tmp_path),
                    X0,
                    **options,
                    executor=lost,
                    checkpoint=path,
                    callback=lambda search: alone.kill() if search.nfev >= 40 else None,
                )
        finally:
            alone.kill()
    search, before = Searcher.load(path), len(told)
    out = [place.point.tobytes() for place in search.ledger.out]
    assert caught.value.result.nfev == search.nfev == before < 150  # type: ignore[attr-defined]
    assert search.nfailed == 0 and len(out) == 2
    where: dict[str, Any] = {"workers": 2} if on_error == "raise" else {"executor": client}
    result = esgroup.minimize(partial(noted, tmp_path), X0, **options, **where, checkpoint=path, resume=True)
    assert result.nfev == 150 == len(told) == len(set(told)) and result.nfailed == 0
    assert set(out) <= set(told[before:]) & set(noted_points(tmp_path))


def test_an_evaluation_that_hangs_is_nan_and_its_place_is_lost_until_it_ends(client: Any, tmp_path: Path) -> None:
    client.wait_for_workers(2, timeout=30)
    client.run(slow, X0)  # the time to import is no part of the evaluation
    out: dict[str, list[int]] = {"before": [], "meanwhile": [], "after": []}

    def callback(search: Searcher) -> bool:
        if not search.nfailed:
            phase = "before"
        elif len(out["meanwhile"]) < 10:
            phase = "meanwhile"
        else:
            phase = "after"
            (tmp_path / "go").touch()
        out[phase].append(len(search.ledger.out))
        return phase == "after" and out[phase][-1] > 0

    try:
        result = esgroup.minimize(
            partial(hangs, tmp_path, 1),
            X0,
            0.5,
            rng=5,
            max_evals=5000,
            executor=client,
            asynchronous=True,
            eval_timeout=3.0,
            callback=callback,
        )
    finally:
        (tmp_path / "go").touch()
    # a value has just come back: of two places there is one left, and none while the other evaluation hangs; another
    # value may have arrived together with the first failure
    assert set(out["meanwhile"][1:]) == {0}
    assert out["after"][-1] == 1 and "callback" in result.stop
    assert result.nfailed == 1 and result.fun >= 0.0


def test_when_evaluations_hang_on_all_workers_the_error_says_so(client: Any, tmp_path: Path) -> None:
    client.wait_for_workers(2, timeout=30)
    try:
        with pytest.raises(RuntimeError, match=r"all 2 slots .*eval_timeout=0\.5 s.*workers=n") as caught:
            esgroup.minimize(
                partial(hangs, tmp_path, 9), X0, 0.5, rng=5, executor=client, asynchronous=True, eval_timeout=0.5
            )
    finally:
        (tmp_path / "go").touch()
    result = caught.value.result  # type: ignore[attr-defined]
    assert (result.nfev, result.nfailed) == (2, 2)
