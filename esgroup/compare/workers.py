"""Processes that do the runs, one at a time each, and are killed if they do not come back."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from esgroup.compare.execution import Settings, execute, failed
from esgroup.compare.methods import choose
from esgroup.compare.records import Cell, Ended, Run

GRACE = 10.0  # seconds after its time in which a run may still come back by itself
PREPARATION = 300.0  # seconds for what comes before a run's time: loading, compiling, making the problem
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A process of its own, which is replaced when it dies, hangs, or would disturb the next run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.cell: Cell | None = None
        self._begin()

    def _begin(self) -> None:
        # spawned: threads of BLAS do not survive a fork, and their number is read from the environment at the start
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: Any = context.Process(target=_serve, args=(theirs, self._settings, os.getpid()), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()
        self._used = False  # whether it has done a run

    def send(self, cell: Cell) -> None:
        """Begin a run."""
        self.cell = cell
        self._allow(PREPARATION, "begin")
        try:
            self.connection.send(cell)
        except OSError:  # it has died since its last run
            self._renew()
            self.connection.send(cell)

    def _allow(self, seconds: float, what: str) -> None:
        self._deadline, self._late = time.monotonic() + seconds, f"did not {what} within {seconds:g} s"

    def receive(self) -> Run | None:
        """The record, if the run has ended; None after the word that its time begins."""
        assert self.cell is not None
        try:
            answer: Run | None = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            if not self._used:
                return self._given_up(_how_it_died(self._process.exitcode))
            self._renew()  # something that an earlier run has left may be to blame
            self.send(self.cell)
            return None
        if answer is None:
            self._allow(self._settings.max_time + GRACE, "come back")
            return None
        self.cell, self._used = None, True
        if choose(answer.method).method.traces:
            self._renew()
        return answer

    def overdue(self) -> Run | None:
        """The record of a run that has not come back in time: its process is killed."""
        return self._given_up(self._late) if self.cell is not None and time.monotonic() > self._deadline else None

    def _given_up(self, message: str) -> Run:
        assert self.cell is not None
        cell, self.cell = self.cell, None
        self._renew()
        return failed(cell, Ended.KILLED, message)

    def _renew(self) -> None:
        self.kill()
        self._begin()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _how_it_died(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process left with status {code}"


@contextmanager
def _one_thread() -> Iterator[None]:
    """BLAS on one thread for what is started here: runs share the cores, and times must be comparable."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---- in the process -------------------------------------------------------------------------------------------------


def _serve(connection: Connection[Any, Any], settings: Settings, parent: int) -> None:
    """Do runs until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair: it kills us
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what methods print would run through the progress bar
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        while True:
            cell = connection.recv()
            _seed_everything(cell.seed)
            connection.send(execute(cell, settings, ready=lambda: connection.send(None)))
    except (EOFError, OSError):
        return


def _leave_with(parent: int) -> None:
    """A parent that was killed cannot kill us."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _seed_everything(seed: int) -> None:
    """Functions of the user's may draw from global generators: what they draw must not depend on earlier runs."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


# ---- all of them ----------------------------------------------------------------------------------------------------


def run_all(cells: Sequence[Cell], settings: Settings, jobs: int) -> Iterator[Run]:
    """The runs as they end, `jobs` at a time. When the caller goes away, so do the processes."""
    waiting = list(reversed(cells))
    workers = [Worker(settings) for _ in range(min(jobs, len(cells)))]
    try:
        while waiting or any(worker.cell for worker in workers):
            for worker in workers:
                if worker.cell is None and waiting:
                    worker.send(waiting.pop())
            yield from _ended(workers)
    finally:
        for worker in workers:
            worker.kill()


def _ended(workers: Sequence[Worker]) -> Iterator[Run]:
    by_connection = {worker.connection: worker for worker in workers if worker.cell is not None}
    ready = wait(list(by_connection), timeout=0.5)
    for connection, worker in by_connection.items():
        run = worker.receive() if connection in ready else worker.overdue()
        if run is not None:
            yield run
