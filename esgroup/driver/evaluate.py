"""The evaluation of a generation: in a loop, in one call, through a map, on our own processes, on any executor.

Each of these is a function evaluate(X, arrived, should_stop) that stores the value of row i in arrived[i] as soon as it
is known. It begins no evaluation once should_stop() is true. If the objective raises, the caller therefore has the
values that had arrived, and receives the exception unchanged. The points of a generation are read-only: each evaluation
gets a copy, which the objective may change and keep.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from esgroup import checks
from esgroup.checks import Array
from esgroup.driver.calling import Call, call_objective, own_point
from esgroup.driver.constraints import one_each
from esgroup.driver.executors import OnExecutor, sendable
from esgroup.driver.failures import Failures, guarded
from esgroup.driver.processes import Processes
from esgroup.driver.worker_pool import TICK, Outcomes, WorkerPool
from esgroup.files.outage import level_of_the_user

ShouldStop = Callable[[], bool]
Arrived = dict[int, Any]  # values by row
Evaluate = Callable[[Array, Arrived, ShouldStop | None], None]

GRACE = 1.0  # seconds for evaluations to end after another one raised; longer if they usually take longer


def _with_args(fun: Callable[..., Any], args: tuple[Any, ...], x: Any) -> Any:
    """fun(x, *args)."""
    return fun(x, *args)


def _one_row(fun: Call, x: Any) -> Any:
    """fun([x])[0]: a vectorized function for a single point."""
    values = fun(x[None] if hasattr(x, "shape") else [x])
    return values[0] if one_each(values, 1) else values  # anything else is refused as a value


@dataclass(frozen=True)
class Evaluation:
    """Where and how to evaluate, as the arguments of `minimize` say.

    The objective receives writeable copies of points. The caller's executor is left open.
    """

    call: Call
    failures: Failures
    vectorized: bool = False
    workers: int | Callable[..., Iterable[Any]] | None = None
    executor: Any = None
    eval_timeout: float | None = None
    max_pending: int | None = None
    asynchronous: bool = False

    def __post_init__(self) -> None:
        checks.flag("vectorized", self.vectorized)
        checks.flag("asynchronous", self.asynchronous)
        if getattr(self.workers, "__name__", "") == "imap_unordered":
            raise ValueError("workers must return values in the order of the points: pass imap, not imap_unordered")
        if self.workers is not None and self.executor is not None:
            raise ValueError("workers and executor both say where to evaluate: pass only one of them")
        for name in ("eval_timeout", "max_pending"):
            if getattr(self, name) is not None and not self._has_pool:
                wanted = "workers=n (one process is enough) or executor="
                raise ValueError(f"{name} needs {wanted}")
        if self.asynchronous and not self._has_pool:
            raise ValueError("asynchronous=True needs workers=n, a number of processes, or executor=")
        if self.eval_timeout is not None:
            checks.real_number("eval_timeout", self.eval_timeout, positive=True)
        if self.max_pending is not None:
            checks.whole_number("max_pending", self.max_pending, least=1)

    @cached_property
    def least_batch(self) -> int:
        """How many points the workers can use when a search chooses how many are worth evaluating."""
        return 1 if callable(self.workers) else number_of_workers(self.workers)

    @property
    def _has_pool(self) -> bool:
        return self.executor is not None or (self.workers is not None and not callable(self.workers))

    @property
    def _of_one(self) -> Call:
        return partial(_one_row, self.call) if self.vectorized else self.call

    def pool(self, stack: ExitStack, *, ahead: int = 0) -> WorkerPool:
        """Return the worker pool, until the stack is closed."""
        if self.executor is None:
            number = number_of_workers(self.workers)
            return stack.enter_context(Processes(self._of_one, number, timeout=self.eval_timeout, ahead=ahead))
        pool = OnExecutor(self._of_one, self.executor, timeout=self.eval_timeout, max_pending=self.max_pending)
        if self.eval_timeout is not None and pool.slots is None:
            kind = type(self.executor).__name__
            raise ValueError(f"max_pending must be given with eval_timeout: {kind} does not report its size")
        if self.asynchronous and pool.slots is None:
            text = f"{type(self.executor).__name__} does not say how many workers it has"
            advice = "pass max_pending=n to keep n of them busy"
            warnings.warn(f"{text}: popsize points are pending at a time; {advice}", stacklevel=level_of_the_user())
        return stack.enter_context(pool)

    def generations(self, stack: ExitStack, *, timed: bool) -> Evaluate:
        """Return the function that evaluates a generation, until the stack is closed.

        `timed` says whether there is a time limit: then no point waits where it can no longer be canceled.
        """
        if self.executor is None and callable(self.workers):
            call = partial(guarded, sendable(self.workers, self._of_one), self.failures.caught)
            return partial(self._through_map, call)
        if self.executor is not None or number_of_workers(self.workers) > 1 or self.eval_timeout is not None:
            limits = self.eval_timeout, self.max_pending, self.failures.most
            limited = timed or limits != (None, None, None)
            pool = self.pool(stack, ahead=0 if limited else 1)
            return partial(self._by_a_pool, pool, (self.max_pending or math.inf) if limited else None)
        return self._in_one_call if self.vectorized else self._in_a_loop

    # ---- here ---------------------------------------------------------------------------------------------------

    def _in_a_loop(self, X: Array, arrived: Arrived, should_stop: ShouldStop | None) -> None:
        call, failures = self.call, self.failures
        for i, (x, own) in enumerate(zip(X, _own(X), strict=True)):
            if should_stop is not None and should_stop():
                return
            try:
                value = call_objective(call, own)
            except Exception as error:
                value = error
            ordinary = isinstance(value, float) and value == value and not failures.in_a_row
            arrived[i] = value if ordinary else failures.value_of(value, x)

    def _in_one_call(self, X: Array, arrived: Arrived, should_stop: ShouldStop | None) -> None:
        n = len(X)
        try:
            values = call_objective(self.call, _own(X))
        except Exception as error:
            arrived.update((i, self.failures.value_of(error)) for i in range(n))
            return
        if not one_each(values, n):
            wanted = f"with vectorized=True it must return {n} numbers, one for each row of x: an array of shape ({n},)"
            raise ValueError(f"the function returned {checks.shown(values)}, but {wanted}")
        arrived.update((i, self.failures.value_of(value, X[i])) for i, value in enumerate(values))

    def _through_map(self, call: Call, X: Array, arrived: Arrived, should_stop: ShouldStop | None) -> None:
        mapper: Any = self.workers
        outcomes = mapper(call, list(_own(X)))
        lazy = isinstance(outcomes, map)  # it evaluates points on demand; others have started all of them
        for i, outcome in enumerate(outcomes):
            arrived[i] = self.failures.value_of(outcome, X[i] if i < len(X) else None)
            if lazy and i + 1 < len(X) and should_stop is not None and should_stop():
                return
        if len(arrived) != len(X):
            got = len(arrived)
            arrived.clear()  # it is unknown which value belongs to which point
            raise ValueError(f"workers must return one value for each of the {len(X)} points, got {got}")

    # ---- by a pool ----------------------------------------------------------------------------------------------

    def _by_a_pool(
        self, pool: WorkerPool, most_out: float | None, X: Array, arrived: Arrived, should_stop: ShouldStop | None
    ) -> None:
        """Evaluate; after an exception, cancel what has not begun, and give what has begun some time to end.

        With `most_out`, a point is submitted only if it would begin at once and fewer than `most_out` are pending:
        waiting is not part of an evaluation, and no evaluation begins after `should_stop` is true.
        """
        waiting, begun, longest = list(reversed(range(len(X)))), {}, GRACE
        failure: Exception | None = None
        until = math.inf
        try:
            while waiting or pool.out:
                if should_stop is not None and should_stop():
                    waiting = []
                    pool.cancel()
                while waiting and (most_out is None or (pool.free > 0 and pool.out < most_out)):
                    begun[waiting[-1]] = time.monotonic()
                    pool.submit(waiting[-1], own_point(X[waiting.pop()]))
                for i, outcome in self.collected(pool, wanted=bool(waiting)):
                    longest = max(longest, time.monotonic() - begun[i])
                    try:
                        arrived[i] = self.failures.value_of(outcome, X[i])
                    except Exception as error:
                        failure, waiting = failure or error, []
                        until = min(until, time.monotonic() + longest)
                        pool.cancel()
                if time.monotonic() > until:
                    break
        except BaseException:  # an interrupt: cancel what has not begun, and do not wait
            pool.cancel()
            raise
        if failure is not None:
            raise failure

    def collected(self, pool: WorkerPool, *, wanted: bool) -> Outcomes:
        """Return what has arrived after a short wait; `wanted` says whether there are points to submit.

        Raises RuntimeError if there are, but evaluations that timed out have taken all slots for too long.
        """
        if pool.out or not wanted:
            return pool.collect(TICK / 10)
        lost, seconds = pool.lost, self.eval_timeout or 0.0
        end = time.monotonic() + seconds
        while lost and pool.lost >= lost:
            if time.monotonic() > end:
                taken = f"all {lost} slots are taken by evaluations that exceeded eval_timeout={seconds:g} s"
                raise RuntimeError(f"{taken} and do not end: pass workers=n, whose processes can be terminated")
            time.sleep(TICK / 100)
        return []


def _own(X: Any) -> Any:
    """Copies of points that an objective may change: arrays, dicts that may hold arrays, or other objects."""
    return [own_point(x) for x in X] if isinstance(X, list) else X.copy()


def objective(fun: Any, args: Any) -> Call:
    """Return fun as a function of the point alone."""
    if not callable(fun):
        called = ": pass the function itself, not its value" if isinstance(fun, (int, float)) else ""
        raise TypeError(f"fun must be a function of a point, got {checks.shown(fun)}{called}")
    args = args if isinstance(args, tuple) else (args,)
    return partial(_with_args, fun, args) if args else fun  # unlike a closure, it can be pickled


def number_of_workers(workers: Any) -> int:
    """Return the number of processes for `workers`; -1 is one per core."""
    if workers is None:
        return 1
    try:
        number = checks.whole_number("workers", workers, least=-1)
    except TypeError:
        wanted = "a number of processes, -1 for one per core, or a function like map"
        raise TypeError(f"workers must be {wanted}, got {workers!r}") from None
    if number == 0:
        raise ValueError("workers must be at least 1, or -1 for one process per core, got 0")
    if number > 0:
        return number
    allowed = getattr(os, "sched_getaffinity", None)  # the cores this process may use; not on every system
    return len(allowed(0)) if allowed else os.cpu_count() or 1
