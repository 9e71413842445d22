"""Our own worker processes, which evaluate points."""

from __future__ import annotations

import math
import pickle
import time
import traceback
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from esgroup.driver.calling import Call, call_objective, flush_output
from esgroup.driver.sending import INSTALL, cloudpickle_or_none, dumps, pickled, sendable_error
from esgroup.driver.worker_pool import TICK, CannotLoad, Unavailable, WorkerPool, caused, too_slow
from esgroup.running.child import Child, Line, end_all, wait_for

_READY, _END = b"ready", b"end"  # messages: from a worker that has loaded the objective, and to one that may end


@dataclass
class _Job:
    """A submitted point."""

    key: Hashable
    message: bytes
    losses: int = 0


@dataclass
class _Worker:
    """A process and its points: it evaluates the first one, and the others wait in its line."""

    child: Child
    jobs: deque[_Job] = field(default_factory=deque)
    ready: bool = False  # whether it has loaded the objective
    since: float = math.inf  # when it began the first point


class Processes(WorkerPool):
    """Evaluates points in `workers` processes, which start when they are needed and are replaced when they die.

    Each process receives the objective once. An evaluation that takes longer than `timeout` seconds is ended together
    with its process and everything that it started. For each process, `ahead` points may wait in its line, so that it
    need not wait for this process between points; points waiting there cannot be canceled. This process never waits for
    one that accepts nothing, for example because it is stopped.
    """

    slots = 0
    lost = 0  # a process whose evaluation takes too long is killed, and occupies nothing

    def __init__(self, call: Call, workers: int, *, timeout: float | None = None, ahead: int = 0) -> None:
        self.slots = workers
        self._payload, self._timeout, self._ahead = pickled(call), math.inf if timeout is None else timeout, ahead
        self._workers: list[_Worker] = []
        self._waiting: deque[_Job] = deque()
        self._arrived = []
        self._checked = -math.inf  # when the processes were last checked to be alive

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(gently=kind is None or issubclass(kind, Exception))

    def close(self, *, gently: bool = True) -> None:
        """End the processes: with `gently`, idle ones on request; others are terminated."""
        self._waiting.clear()
        for worker in self._workers:
            if not gently or worker.jobs or not _send(worker, _END):
                worker.child.process.terminate()
        end_all(worker.child for worker in self._workers)
        self._workers.clear()

    # ---- the interface -------------------------------------------------------------------------------------------

    def submit(self, key: Hashable, x: Any) -> None:
        """Evaluate a point as soon as a process is free."""
        try:
            message = dumps(x)
        except Exception as error:
            self._arrived.append((key, caused(RuntimeError(f"the point cannot be sent to a process ({error})"), error)))
            return
        self._waiting.append(_Job(key, message))
        self._feed()

    def cancel(self) -> list[Hashable]:
        """Cancel points not yet sent to a process, and return their keys."""
        keys = [job.key for job in self._waiting]
        self._waiting.clear()
        return keys

    # ---- what happens meanwhile ----------------------------------------------------------------------------------

    def _unfinished(self) -> int:
        return len(self._waiting) + sum(len(worker.jobs) for worker in self._workers)

    def _serve(self, end: float) -> None:
        """Receive what arrives before `end`, and check that every process has work, is on time and is alive."""
        busy = {worker.child.line: worker for worker in self._workers if worker.jobs}
        if busy:
            due = min(worker.since for worker in busy.values()) + self._timeout
            now = time.monotonic()
            pause = 0.0 if self._arrived else max(0.0, min(TICK, end - now, due - now))
            for line in wait_for(busy, pause):
                self._receive(busy[line])
            self._end_the_late()
            self._bury_the_dead()
        self._feed()

    def _receive(self, worker: _Worker) -> None:
        line = worker.child.line
        try:
            line.flush()
            while worker.jobs and (message := line.receive()) is not None:
                worker.since = time.monotonic()
                if worker.ready:
                    self._arrived.append((worker.jobs.popleft().key, _outcome(message)))
                worker.ready = True
        except (EOFError, OSError):
            self._bury(worker)

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.jobs and now > worker.since + self._timeout]:
            worker.child.process.terminate()
            end_all([worker.child])
            self._arrived.append((worker.jobs.popleft().key, too_slow(self._timeout)))
            self._remove(worker)

    def _bury_the_dead(self) -> None:
        """Detect dead processes whose end of the line is kept open by a process forked in the meantime."""
        if time.monotonic() > self._checked + TICK:
            for worker in [worker for worker in self._workers if worker.jobs and not worker.child.process.is_alive()]:
                self._receive(worker)  # it may have answered before
                if worker in self._workers and worker.jobs:
                    self._bury(worker)
            self._checked = time.monotonic()

    def _bury(self, worker: _Worker) -> None:
        """Remove a dead process, and give its points to others."""
        cause = ChildProcessError(worker.child.cause_of_death())
        worker.child.kill()
        worker.jobs[0].losses += 1
        if self._gives_up(worker.jobs[0].key, worker.jobs[0].losses, cause):
            worker.jobs.popleft()
        self._remove(worker)

    def _remove(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._waiting.extendleft(reversed(worker.jobs))

    def _feed(self) -> None:
        """Send waiting points to processes that can take one."""
        while self._waiting and (worker := self._next_worker()) is not None:
            if not worker.jobs and worker.ready:
                worker.since = time.monotonic()
            job = self._waiting.popleft()
            worker.jobs.append(job)
            if not _send(worker, job.message):
                self._bury(worker)

    def _next_worker(self) -> _Worker | None:
        """Return a process that can take a point: an idle one, a new one, or one with room in its line."""
        for worker in [worker for worker in self._workers if not worker.jobs]:
            if worker.child.process.is_alive():
                return worker
            worker.child.kill()
            self._workers.remove(worker)
        if len(self._workers) < self.slots:
            return self._start()
        able = [worker for worker in self._workers if len(worker.jobs) <= self._ahead]
        return min(able, key=lambda worker: len(worker.jobs), default=None)

    def _start(self) -> _Worker | None:
        try:
            worker = _Worker(Child(_work, self._payload))
        except Exception as error:  # too many processes, or none allowed
            if not self._workers:
                text = f"a worker process could not be started ({error})"
                if isinstance(error, ConnectionError | EOFError):  # the fork server ran the script first and ended
                    text += ": the cause may be a script without `if __name__ == '__main__':`"
                self._arrived.append((self._waiting.popleft().key, caused(Unavailable(text), error)))
            return None
        self._workers.append(worker)
        return worker


def _send(worker: _Worker, message: bytes) -> bool:
    """Send a message, and return whether the process could be reached."""
    try:
        worker.child.line.send(message)
    except OSError:
        return False
    return True


class WorkerTraceback(Exception):
    """The cause of an exception that came from a worker: it shows where it was raised."""


def _outcome(message: bytes) -> Any:
    """Return what a worker sent, the value or an exception."""
    try:
        value, where = pickle.loads(message)
    except Exception as error:
        return caused(RuntimeError(f"the value of fun cannot be read in this process ({error})"), error)
    if where is not None:
        value.__cause__ = WorkerTraceback(f"\n{where}")
    return value


# ---- in the process ---------------------------------------------------------------------------------------------


def _work(line: Line, payload: bytes) -> None:
    """Evaluate the points that arrive on the line."""
    call = _loaded(payload)
    try:
        line.send(_READY)
        while (message := line.receive()) not in (_END, None):
            answer = _answer(call, message)
            flush_output()
            line.send(answer)
    except (EOFError, OSError):
        return


def _loaded(payload: bytes) -> Call:
    """Return the objective; if it cannot be loaded, the first point reports that and this process continues."""
    try:
        call: Call = pickle.loads(payload)
    except (Exception, SystemExit) as error:
        advice = "define it in a module that they can import"
        if cloudpickle_or_none() is None:
            advice += f", or install cloudpickle ({INSTALL})"
        text = f"the worker processes cannot load fun ({error}): {advice}"

        def call(x: Any) -> Any:
            raise CannotLoad(text)

    return call


def _answer(call: Call, message: bytes) -> bytes:
    """Return the pickled pair of the value and None, or of an exception and its traceback."""
    try:
        value = call_objective(call, pickle.loads(message))
        try:
            return dumps((value, None))
        except Exception as error:
            raise TypeError(f"fun must return a number, got a {type(value).__name__} that cannot be sent") from error
    except BaseException as error:
        return dumps((sendable_error(error), "".join(traceback.format_exception(error))))
