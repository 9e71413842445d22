"""The evaluation of a generation: in a loop, in one call, through a map, on processes of our own, on any executor.

Every way is a function evaluate(X, arrived) that returns the values in the order of the rows, and stores the value of
row i in arrived[i] as soon as it is known. When the objective raises, the caller therefore has the values that had
arrived, and receives the exception unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from esgroup.checks import Array, flag, whole_number
from esgroup.driver.crew import Call, Crew
from esgroup.driver.executors import OnExecutor, sendable
from esgroup.driver.processes import Processes

Evaluate = Callable[[Array, dict[int, Any]], Any]


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
        with OnExecutor(call, executor) as crew:
            yield _private(partial(_by_a_crew, crew))
    elif callable(workers):
        yield _private(partial(_through_map, workers, sendable(workers, call)))
    elif (n := _number_of_workers(workers)) > 1:
        with Processes(call, n, ahead=1) as crew:
            yield _private(partial(_by_a_crew, crew))
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


# ---- crews ------------------------------------------------------------------------------------------------------


def _by_a_crew(crew: Crew, X: Array, arrived: dict[int, Any]) -> list[Any]:
    """Evaluate; after a failure, what has not begun is cancelled, and what has begun is awaited."""
    failure: Exception | None = None
    try:
        for i, x in enumerate(X):
            crew.submit(i, x)
        while crew.out:
            for i, outcome in crew.collect():
                if not isinstance(outcome, BaseException):
                    arrived[i] = outcome
                elif not isinstance(outcome, Exception):
                    raise outcome
                elif failure is None:
                    failure = outcome
            if failure is not None:
                crew.cancel()
    except BaseException:  # an interrupt: cancel what has not begun, and wait for nothing
        crew.cancel()
        raise
    if failure is not None:
        raise failure
    return [arrived[i] for i in range(len(X))]
