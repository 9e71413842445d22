"""Doing the runs of a comparison in separate processes, and showing how many are done.

Each process does one run at a time and is killed if it does not finish in time.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from esgroup.compare.execution import Settings, execute, failed
from esgroup.compare.methods import choose
from esgroup.compare.records import Cell, Ended, RunRecord
from esgroup.running.child import Child, Line, wait_for
from esgroup.running.progress import duration as duration  # reports use it as well

GRACE = 10.0  # seconds after max_time in which a run can still end by itself
PREPARATION = 300.0  # seconds for loading, compiling and making the problem, before the clock of a run starts
QUIET = 20.0  # seconds between two progress lines where stderr is not a terminal
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A process that does runs; it is replaced if it dies, hangs, or would disturb the next run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.cell: Cell | None = None
        self._begin()

    def _begin(self) -> None:
        with _one_thread():
            # spawn, not fork: BLAS threads do not survive a fork, and their number is read from the environment
            self._child = Child(_serve, self._settings, method="spawn", daemon=True)
        self.line = self._child.line
        self._used = False  # whether the process has completed a run

    def send(self, cell: Cell) -> None:
        """Start a run in the process."""
        self.cell = cell
        self._allow(PREPARATION, "start")
        try:
            self.line.send(pickle.dumps(cell))
        except OSError:  # the process has died since its last run
            self._renew()
            self.line.send(pickle.dumps(cell))

    def _allow(self, seconds: float, what: str) -> None:
        self._deadline, self._late = time.monotonic() + seconds, f"did not {what} within {seconds:g} s"

    def receive(self) -> RunRecord | None:
        """Return the record if the run has ended; None if it has not, or its clock has only just started."""
        assert self.cell is not None
        try:
            self.line.flush()
            message = self.line.receive()
        except (EOFError, OSError):
            if not self._used:
                return self._given_up(self._child.cause_of_death())
            self._renew()  # an earlier run may have left the process in a bad state: try again in a new one
            self.send(self.cell)
            return None
        if message is None:
            return None
        answer: RunRecord | None = pickle.loads(message)
        if answer is None:
            self._allow(self._settings.max_time + GRACE, "finish")
            return None
        self.cell, self._used = None, True
        if choose(answer.method).method.traces:
            self._renew()
        return answer

    def overdue(self) -> RunRecord | None:
        """Kill the process if its run is past the deadline, and return the record of that run."""
        return self._given_up(self._late) if self.cell is not None and time.monotonic() > self._deadline else None

    def _given_up(self, message: str) -> RunRecord:
        assert self.cell is not None
        cell, self.cell = self.cell, None
        self._renew()
        return failed(cell, Ended.KILLED, message)

    def _renew(self) -> None:
        self.kill()
        self._begin()

    def kill(self) -> None:
        self._child.kill()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit BLAS to one thread in processes started here: runs share the cores, and times must be comparable."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)


# ---- in the process -------------------------------------------------------------------------------------------------


def _serve(line: Line, settings: Settings) -> None:
    """Do the runs that arrive on the line until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and kills this process
    nowhere = os.open(os.devnull, os.O_WRONLY)  # what methods print would disturb the progress bar
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        while (message := line.receive()) is not None:
            cell = pickle.loads(message)
            random.seed(cell.seed)  # a user's function may draw from global generators, independently of earlier runs
            np.random.seed(cell.seed % 2**32)
            record = execute(cell, settings, ready=lambda: line.send(pickle.dumps(None)))
            line.send(pickle.dumps(record))
    except (EOFError, OSError):
        return


# ---- all runs -------------------------------------------------------------------------------------------------------


def run_all(cells: Sequence[Cell], settings: Settings, jobs: int) -> Iterator[RunRecord]:
    """Do the runs, `jobs` at a time, and yield their records as they end; closing the generator ends the processes."""
    waiting = list(reversed(cells))
    workers = [Worker(settings) for _ in range(min(jobs, len(cells)))]
    try:
        while waiting or any(worker.cell for worker in workers):
            for worker in workers:
                if worker.cell is None and waiting:
                    worker.send(waiting.pop())
            by_line = {worker.line: worker for worker in workers if worker.cell is not None}
            ready = wait_for(by_line, 0.5)
            for line, worker in by_line.items():
                run = worker.receive() if line in ready else worker.overdue()
                if run is not None:
                    yield run
    finally:
        for worker in workers:
            worker.kill()


# ---- progress -------------------------------------------------------------------------------------------------------


class Watch:
    """Shows on stderr how many of `total` runs have ended: a progress bar on a terminal, else a line every 20 seconds.

    `done` is the number of runs that had ended before.
    """

    def __init__(self, total: int, done: int) -> None:
        self._total, self._done, self._before = total, done, done
        self._failures = 0
        self._begin = self._printed = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, completed=self._done, failures="", left="")
        elif self._done < self._total:
            print(f"{self._total - self._done:,} runs to do", file=sys.stderr, flush=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, run: RunRecord) -> None:
        """Count another run that has ended."""
        self._done += 1
        self._failures += run.failed
        failures = f"{self._failures} failed" if self._failures else ""
        if self._bar is not None:
            about = {"description": f"{run.problem} {run.dim}", "failures": failures, "left": self._left()}
            self._bar.update(self._task, completed=self._done, **about)
        elif time.monotonic() > self._printed + QUIET:
            self._printed = time.monotonic()
            parts = (f"{self._done:,} of {self._total:,} runs", self._left(), failures)
            print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)

    def _left(self) -> str:
        """Estimate the time left: runs are ordered by seed, so those ahead take about as long as those done."""
        per_run = (time.monotonic() - self._begin) / (self._done - self._before)
        return f"{duration(per_run * (self._total - self._done))} left"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("[red]{task.fields[failures]}"),
        TextColumn("[dim]{task.description}"),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
