"""Processes that do the runs, one at a time each, and are killed if they do not come back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from esgroup.compare.execution import Settings, execute, failed
from esgroup.compare.records import Cell, Ended, Run

GRACE = 10.0  # seconds after its time in which a run may still come back by itself
PREPARATION = 300.0  # seconds for what comes before a run's time: loading, compiling, making the problem
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A process of its own, started when the first run is sent to it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.cell: Cell | None = None
        self._process: Any = None
        self._begin()

    def _begin(self) -> None:
        # spawned: threads of BLAS do not survive a fork, and their number is read from the environment at the start
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._settings), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()

    def send(self, cell: Cell) -> None:
        """Begin a run."""
        self.cell, self._deadline = cell, time.monotonic() + PREPARATION
        self.connection.send(cell)

    def receive(self) -> Run | None:
        """The record, if the run has ended; None after the word that its time begins."""
        try:
            answer: Run | None = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            return self._replaced(Ended.KILLED, _how_it_died(self._process.exitcode))
        if answer is None:
            self._deadline = time.monotonic() + self._settings.max_time + GRACE
        else:
            self.cell = None
        return answer

    def overdue(self) -> Run | None:
        """The record of a run that has not come back in time: its process is killed."""
        if self.cell is None or time.monotonic() < self._deadline:
            return None
        return self._replaced(Ended.KILLED, f"did not come back within {self._settings.max_time + GRACE:g} s")

    def _replaced(self, ended: Ended, message: str) -> Run:
        assert self.cell is not None
        cell, self.cell = self.cell, None
        self.kill()
        self._begin()
        return failed(cell, self._settings, ended, message)

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


def _serve(connection: Connection[Any, Any], settings: Settings) -> None:
    """In the process: do runs until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair: it kills us
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what methods print would run through the progress bar
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        while True:
            connection.send(execute(connection.recv(), settings, ready=lambda: connection.send(None)))
    except (EOFError, BrokenPipeError):
        return


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
    for worker in by_connection.values():
        run = worker.receive() if worker.connection in ready else worker.overdue()
        if run is not None:
            yield run
