"""Evaluation without generations: a new point goes out whenever a value comes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from esgroup.driver.evaluate import collected
from esgroup.driver.failures import Failures
from esgroup.driver.restarted import RestartedSearch
from esgroup.driver.worker_pool import WorkerPool, own_point
from esgroup.running.interrupts import Interrupts
from esgroup.running.limits import BUDGETS


class Out(NamedTuple):
    """A point that is being evaluated: it, and the run that asked for it."""

    x: Any
    restart: int


class Asynchronous:
    """Keeps a worker pool busy: at most `max_pending` points are out, and never more than the budget allows.

    If `max_pending` is None, it is the number of slots, which is asked again and again, because the workers of a
    cluster join and leave; if the worker pool does not know it, a generation is out.

    Values are passed on one by one, each before the next point is asked for, so that the same values in the same order
    give the same search. Those that a run left out when it ended count, but move nothing. What is out when the search
    ends on a budget is awaited; otherwise it is cancelled, and stays in the checkpoint as out.
    """

    def __init__(
        self, pool: WorkerPool, failures: Failures, max_pending: int | None = None, eval_timeout: float | None = None
    ) -> None:
        self._pool, self._failures, self._max_pending, self._eval_timeout = pool, failures, max_pending, eval_timeout
        self._out: dict[int, Out] = {}  # submitted and not yet told
        self._arrived: deque[tuple[Any, Any]] = deque()  # keys and outcomes that were not yet told
        self._number = 0
        self._told = 0  # since the last generation

    def search(self, restarted: RestartedSearch, after_generation: Callable[[], None], interrupts: Interrupts) -> None:
        """Search until there is a reason to stop; `after_generation` is called after every `popsize` values."""
        try:
            self._search(restarted, after_generation, interrupts)
        finally:  # whatever has ended it, values that have arrived count
            while self._arrived:
                with suppress(Exception):
                    self._tell_next(restarted)

    def _search(self, restarted: RestartedSearch, after_generation: Callable[[], None], interrupts: Interrupts) -> None:
        waiting = restarted.points_out()
        while True:
            reasons = restarted.stop()
            if reasons:
                if not restarted.begin_next_run(reasons):
                    break
                waiting = []
                continue
            wanted = self._submit(restarted, waiting)
            self._receive(restarted, after_generation, interrupts, wanted)
        if self._out and not reasons.keys().isdisjoint(BUDGETS):
            for key in self._pool.cancel():
                del self._out[key]  # type: ignore[arg-type]
            while self._out:
                self._receive(restarted, after_generation, interrupts, False)
            if self._told:
                after_generation()

    def _submit(self, restarted: RestartedSearch, waiting: list[Any]) -> bool:
        """Submit points while there is room; return whether there would be more of them."""
        pool, budget = self._pool, restarted.limits.max_evals
        most = self._max_pending or pool.slots or restarted.popsize
        while budget is None or restarted.nfev + len(self._out) < budget:
            if len(self._out) + pool.lost >= most:
                return True
            x = waiting.pop(0) if waiting else restarted.search.ask(1)[0]
            self._number += 1
            self._out[self._number] = Out(x, restarted.restart)
            pool.submit(self._number, own_point(x))
        return False

    def _receive(
        self, restarted: RestartedSearch, after_generation: Callable[[], None], interrupts: Interrupts, wanted: bool
    ) -> None:
        """Pass on the next value, if there is one within a short while."""
        if not self._arrived:
            with interrupts.allowed():
                self._arrived.extend(collected(self._pool, self._eval_timeout, wanted=wanted))
        if self._arrived:
            self._tell_next(restarted)
            if self._told >= restarted.popsize:
                self._told = 0
                after_generation()

    def _tell_next(self, restarted: RestartedSearch) -> None:
        key, outcome = self._arrived.popleft()
        x, restart = self._out.pop(key)
        restarted.tell_one(x, self._failures.value_of(outcome, x), current=restart == restarted.restart)
        self._told += 1
        restarted.other_reasons |= self._failures.reasons()
