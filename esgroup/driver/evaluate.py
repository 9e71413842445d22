"""The evaluation of a generation: in a loop, in one call, through a map, on processes of our own, on any executor.

Every way is a function evaluate(X, arrived) that returns the values in the order of the rows, and stores the value of
row i in arrived[i] as soon as it is known. When the objective raises, the caller therefore has the values that had
arrived, and receives the exception unchanged.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from esgroup.checks import Array, flag, whole_number
from esgroup.driver import pool
from esgroup.driver.pool import Call, Submit

Evaluate = Callable[[Array, dict[int, Any]], Any]

TRIES = 3  # a point whose worker died is submitted twice more; after that, the point itself is suspect


@dataclass(frozen=True)
class Objective:
    """x -> fun(x, *args); unlike a closure, it can be pickled."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]

    def __call__(self, x: Array) -> Any:
        return self.fun(x, *self.args)


@contextmanager
def evaluator(
    fun: Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    vectorized: bool = False,
    workers: int | Callable[..., Iterable[Any]] | None = None,
    executor: Any = None,
) -> Iterator[Evaluate]:
    """Yield the function that evaluates generations as the arguments of `minimize` say; it works within the context.

    The objective receives writeable rows of its own. An executor of the caller's is left open.
    """
    call = _objective(fun, args)
    _check_one_way(flag("vectorized", vectorized), workers, executor)
    if executor is not None:
        yield _private(partial(_on_executor, _submitter(executor, call)))
    elif callable(workers):
        yield _private(partial(_through_map, workers, pool.sendable(workers, call)))
    elif (n := _number_of_workers(workers)) > 1:
        with pool.own_processes(call, n) as submit:
            # for each worker, one point that runs and one that waits
            yield _private(partial(_on_executor, submit, most=2 * n))
    else:
        yield _private(partial(_in_one_call if vectorized else _in_a_loop, call))


def _objective(fun: Any, args: Any) -> Call:
    """Return fun as a function of the point alone."""
    if not callable(fun):
        raise TypeError(f"fun must be a function of a point, got {fun!r}")
    args = args if isinstance(args, tuple) else (args,)
    return Objective(fun, args) if args else fun


def _check_one_way(vectorized: bool, workers: Any, executor: Any) -> None:
    """Raise ValueError if the arguments name more than one way to evaluate, or a map without order."""
    if getattr(workers, "__name__", "") == "imap_unordered":
        raise ValueError("workers must return values in the order of the points: pass imap, not imap_unordered")
    if workers is not None and executor is not None:
        raise ValueError("workers and executor both say where to evaluate: pass only one of them")
    if vectorized and (executor is not None or workers not in (None, 1)):
        raise ValueError("vectorized=True evaluates the whole generation in one call: leave out workers and executor")


def _number_of_workers(workers: Any) -> int:
    """Return the number of processes that `workers` means; -1 is one per core."""
    if workers is None:
        return 1
    try:
        number = whole_number("workers", workers, least=-1)
    except TypeError:
        wanted = "a number of processes, -1 for one per core, or a function like map"
        raise TypeError(f"workers must be {wanted}, got {workers!r}") from None
    if number == 0:
        raise ValueError("workers must be at least 1, or -1 for one process per core, got 0")
    if number > 0:
        return number
    allowed = getattr(os, "sched_getaffinity", None)  # the cores that this process may use; not on every system
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _private(evaluate: Evaluate) -> Evaluate:
    """Return `evaluate` on a copy: a generation is read-only, but objectives may change their x and keep it."""
    return lambda X, arrived: evaluate(X.copy(), arrived)


def _in_a_loop(call: Call, X: Array, arrived: dict[int, Any]) -> list[Any]:
    for i, x in enumerate(X):
        arrived[i] = call(x)
    return list(arrived.values())


def _in_one_call(call: Call, X: Array, arrived: dict[int, Any]) -> Any:
    n = len(X)  # before the call, which may change X
    values = call(X)
    try:
        got: Any = len(values)
    except TypeError:
        got = repr(values)
    if got != n:
        raise ValueError(f"fun must return one value for each of the {n} rows when vectorized=True, got {got}")
    arrived.update(enumerate(values))
    return values


def _through_map(mapper: Callable[..., Iterable[Any]], call: Call, X: Array, arrived: dict[int, Any]) -> list[Any]:
    for i, value in enumerate(mapper(call, list(X))):
        arrived[i] = value
    if len(arrived) != len(X):
        got = len(arrived)
        arrived.clear()  # it is unknown which value belongs to which point
        raise ValueError(f"workers must return one value for each of the {len(X)} points, got {got}")
    return list(arrived.values())


# ---- executors --------------------------------------------------------------------------------------------------


def _submitter(executor: Any, call: Call) -> Submit:
    """Return the function that submits a point to the caller's executor."""
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must have a method submit, like those of concurrent.futures, got {executor!r}")
    if hasattr(executor, "get_executor"):  # a Dask Client, whose own futures are of another kind
        executor = executor.get_executor()
    call, task = pool.sendable(executor, call), pool.task if pool.is_process_pool(executor) else _task
    run, number = secrets.token_hex(8), count()
    return lambda x: executor.submit(task, call, x, f"{run}-{next(number)}")


def _task(call: Call, x: Array, name: str) -> Any:
    """Call with a unique name: Dask merges equal calls, and would thereby lose noise and second tries."""
    return call(x)


def _on_executor(submit: Submit, X: Array, arrived: dict[int, Any], *, most: float = math.inf) -> list[Any]:
    generation = _Generation(submit, X, arrived, most)
    try:
        generation.evaluate()
    except BaseException:  # an interrupt: cancel what has not begun, and wait for nothing
        generation.cancel()
        raise
    if generation.failure is not None:
        raise generation.failure
    return [arrived[i] for i in range(len(X))]


class _Generation:
    """Points on an executor, at most `most` at a time; after a failure, waits for those that have begun."""

    def __init__(self, submit: Submit, X: Array, arrived: dict[int, Any], most: float) -> None:
        self._submit, self._X, self._arrived, self._most = submit, X, arrived, most
        self._waiting = deque(range(len(X)))
        self._tries = [0] * len(X)
        self._out: dict[Future[Any], int] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self.failure: Exception | None = None

    def evaluate(self) -> None:
        while self._waiting or self._out:
            while self._waiting and len(self._out) < self._most:
                self._send(self._waiting.popleft())
            with suppress(Empty):  # on some systems, a wait without timeout would not notice Ctrl-C
                future = self._done.get(timeout=1.0 if self._out else 0.0)
                self._receive(future, self._out.pop(future))

    def cancel(self) -> None:
        """Cancel what has not begun; not on a pool of our own (`most` is finite), which could not cope if it broke."""
        self._waiting.clear()
        for future in list(self._out) if self._most == math.inf else ():
            future.cancel()

    def _send(self, i: int) -> None:
        self._tries[i] += 1
        try:
            future = self._submit(self._X[i])
        except Exception as error:  # shut down or broken: points that were submitted may still return
            self._fail(_cannot_submit(error) if isinstance(error, BrokenExecutor) else error)
        else:
            self._out[future] = i
            future.add_done_callback(self._done.put)

    def _receive(self, future: Future[Any], i: int) -> None:
        try:
            self._arrived[i] = future.result()
        except Exception as error:
            if not _lost(error):
                self._fail(error)
            elif self._tries[i] >= TRIES:
                self._fail(_lost_too_often(error))
            elif self.failure is None:
                self._waiting.appendleft(i)

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            self.cancel()


def _lost(error: Exception) -> bool:
    """Return whether the point was lost with its worker, rather than that the objective raised."""
    dask = sys.modules.get("distributed")  # its errors cannot occur unless it is loaded
    return isinstance(error, (BrokenExecutor, CancelledError, getattr(dask, "KilledWorker", BrokenExecutor)))


def _cannot_submit(error: BaseException) -> RuntimeError:
    text = "the executor is broken and accepts no more points: create one, or pass workers=n, which recovers"
    return _caused(RuntimeError(f"{text} ({error})"), error)


def _lost_too_often(error: BaseException) -> RuntimeError:
    causes = "killed, out of memory, a crash in the objective, or a script without `if __name__ == '__main__':`"
    return _caused(RuntimeError(f"a point was lost with its worker {TRIES} times: {causes} ({error!r})"), error)


def _caused(error: RuntimeError, cause: BaseException) -> RuntimeError:
    error.__cause__ = cause
    return error
