"""Evaluation on the caller's executor: threads, processes, or a Dask cluster."""

from __future__ import annotations

import math
import pickle
import secrets
import sys
import time
from collections.abc import Hashable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from esgroup.driver.calling import Call, call_objective
from esgroup.driver.sending import pickled, sendable_error
from esgroup.driver.worker_pool import TICK, Unavailable, WorkerPool, caused, too_slow

_FRESH = 2.0  # seconds before asking the scheduler of a cluster again for its number of threads


@dataclass
class _Job:
    """A submitted point."""

    key: Hashable
    x: Any
    due: float
    losses: int


class OnExecutor(WorkerPool):
    """Evaluates points on an executor, which is left open.

    If an evaluation takes longer than `timeout` seconds after submission, its value is ignored, and it occupies a slot
    until it ends. `max_pending` is the number of slots, with `timeout` at most the number of workers of the executor;
    None asks the executor, which may not know it.
    """

    def __init__(
        self, call: Call, executor: Any, *, timeout: float | None = None, max_pending: int | None = None
    ) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor must have a method submit, like those of concurrent.futures, got {executor!r}")
        if hasattr(executor, "get_executor"):  # a Dask Client, whose own futures are different
            executor = executor.get_executor()
        self._executor, self._call = executor, sendable(executor, call)
        is_dask = type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "_client")
        self._cluster = _Cluster(executor._client) if is_dask else None
        self._task = _guarded_task if is_process_pool(executor) else _task
        self._timeout = math.inf if timeout is None else timeout
        self._max_pending = max_pending
        self._run, self._number = secrets.token_hex(8), count()
        self._jobs: dict[Future[Any], _Job] = {}
        self._late: set[Future[Any]] = set()
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._arrived = []

    def __exit__(self, *_: object) -> None:
        self.cancel()
        for future in self._late:  # if it is still waiting, it need not start
            future.cancel()

    # ---- the interface -------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int | None:
        """How many points are evaluated at a time; None if that is unknown."""
        if self._max_pending is not None and self._timeout == math.inf:
            return self._max_pending
        size = _number_of_workers(self._executor) if self._cluster is None else self._cluster.threads()
        if self._max_pending is None or size is None:
            return size or self._max_pending
        return min(size, self._max_pending)  # waiting for a worker would count as evaluation time

    @property
    def lost(self) -> int:
        """How many slots are occupied by evaluations that took too long."""
        if self._late:
            self._late = {future for future in self._late if not future.done()}
        return len(self._late)

    def submit(self, key: Hashable, x: Any, losses: int = 0) -> None:
        """Submit a point to the executor, which has lost it `losses` times with a worker."""
        # the unique name: Dask merges equal calls, which would remove noise and second tries
        name = f"{self._run}-{next(self._number)}"
        due = time.monotonic() + self._timeout
        try:
            future = self._executor.submit(self._task, self._call, x, name)
        except Exception as error:  # shut down or broken: submitted points may still return
            self._arrived.append((key, self._cannot_submit(error)))
        else:
            self._jobs[future] = _Job(key, x, due, losses)
            future.add_done_callback(self._done.put)

    def cancel(self) -> list[Hashable]:
        """Cancel what has not begun and return its keys; Dask does not report this, so everything on it is canceled."""
        return [self._jobs.pop(future).key for future in list(self._jobs) if future.cancel()]

    # ---- what happens meanwhile ----------------------------------------------------------------------------------

    def _unfinished(self) -> int:
        return len(self._jobs)

    def _serve(self, end: float) -> None:
        """Receive what arrives before `end`, and give up late evaluations."""
        now, due = time.monotonic(), math.inf
        if self._timeout < math.inf:
            due = min((job.due for job in self._jobs.values()), default=math.inf)
        pause = max(0.0, min(TICK, end - now, due - now)) if self._jobs and not self._arrived else 0.0
        try:
            self._receive(self._done.get(timeout=pause) if pause else self._done.get_nowait())
            while True:
                self._receive(self._done.get_nowait())
        except Empty:
            if self._timeout < math.inf:
                self._give_up_the_late()
            if self._cluster is not None and self._cluster.lost:
                self._arrived += [(job.key, _lost_cluster()) for job in self._jobs.values()]
                self._jobs.clear()

    def _receive(self, future: Future[Any]) -> None:
        job = self._jobs.pop(future, None)
        if job is None:  # it was canceled or is late
            return
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            self._arrived.append((job.key, future.result()))
        elif not _is_loss(error):
            self._arrived.append((job.key, error))
        elif self._cluster is not None and self._cluster.lost:  # not a fault of the point
            self._arrived.append((job.key, caused(_lost_cluster(), error)))
        elif not self._gives_up(job.key, job.losses + 1, error):
            self.submit(job.key, job.x, job.losses + 1)

    def _give_up_the_late(self) -> None:
        now = time.monotonic()
        for future, job in [item for item in self._jobs.items() if now > item[1].due]:
            del self._jobs[future]
            if self._cluster is not None or not future.cancel():  # Dask would cancel it without ending it
                self._late.add(future)
            self._arrived.append((job.key, too_slow(self._timeout)))

    def _cannot_submit(self, error: Exception) -> Unavailable:
        if self._cluster is not None and self._cluster.lost:
            return caused(_lost_cluster(), error)
        text = str(error)
        if isinstance(error, BrokenExecutor):
            advice = "create a new one, or pass workers=n, which recovers"
            text = f"the executor is broken and accepts no more points: {advice} ({error})"
        return caused(Unavailable(text), error)


def _number_of_workers(executor: Any) -> int | None:
    """Return what an executor says about its size; None if it says nothing.

    Those of concurrent.futures, and many modeled on them, have `_max_workers`. That of mpi4py has `num_workers`, which
    waits until the workers exist.
    """
    for name in ("_max_workers", "num_workers", "_num_workers", "max_workers"):
        with suppress(Exception):  # of a property, as after a shutdown
            if type(number := getattr(executor, name, None)) is int and number > 0:
                return number
    return None


# ---- Dask -------------------------------------------------------------------------------------------------------


class _Cluster:
    """The cluster of a Dask client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._threads, self._asked = 1, -math.inf

    @property
    def lost(self) -> bool:
        """Whether the client has given up on the scheduler, after trying to reconnect for a while."""
        return self._client.status in ("closing", "closed")

    def threads(self) -> int:
        """Return the number of threads of all workers, which may join and leave, but at least 1.

        An adaptive cluster may have no workers before the first point is submitted.
        """
        if time.monotonic() > self._asked + _FRESH and self._client.status == "running":
            with suppress(Exception):  # the scheduler was just lost
                self._threads = max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._threads


def _lost_cluster() -> Unavailable:
    return Unavailable("the Dask client is closed, or has lost its scheduler: reconnect, then resume")


# ---- tasks ------------------------------------------------------------------------------------------------------


def sendable(where: Any, call: Call) -> Call:
    """Return `call`, made sendable if it is for the processes of a standard pool (or its map)."""
    return _Pickled(call) if is_process_pool(getattr(where, "__self__", where)) else call


class _Pickled:
    """An objective that is pickled once, with cloudpickle if necessary; unpickling returns the objective itself."""

    def __init__(self, call: Call) -> None:
        self._call, self._payload = call, pickled(call)

    def __call__(self, x: Any) -> Any:
        return self._call(x)

    def __reduce__(self) -> Any:
        return pickle.loads, (self._payload,)


def is_process_pool(pool: Any) -> bool:
    """Return whether this is a process pool of the standard library, without importing its slow modules."""
    kinds = (("concurrent.futures.process", "ProcessPoolExecutor"), ("multiprocessing.pool", "Pool"))
    loaded = [getattr(sys.modules[module], name) for module, name in kinds if module in sys.modules]
    return isinstance(pool, tuple(loaded)) and type(pool).__name__ != "ThreadPool"


def _task(call: Call, x: Any, name: str) -> Any:
    return call_objective(call, x)


def _guarded_task(call: Call, x: Any, name: str) -> Any:
    """Evaluate; an exception that cannot be pickled, and would break the pool, is replaced by one that can."""
    try:
        return call_objective(call, x)
    except Exception as error:
        sent = sendable_error(error)
        if sent is error:
            raise
    raise sent  # outside of `except`, so that it has no link to the exception that cannot be pickled


def _is_loss(error: BaseException) -> bool:
    """Return whether the point was lost with its worker, rather than the objective raising."""
    dask = sys.modules.get("distributed")  # its errors cannot occur unless it is loaded
    return isinstance(error, (BrokenExecutor, CancelledError, getattr(dask, "KilledWorker", BrokenExecutor)))
