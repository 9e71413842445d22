"""Evaluation without generations: a new point goes out whenever a value comes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from esgroup.driver.crew import Crew
from esgroup.driver.evaluate import collected
from esgroup.driver.failures import Failures
from esgroup.driver.restarted import RestartedSearch
from esgroup.running.interrupts import Interrupts
from esgroup.running.limits import BUDGETS


class Out(NamedTuple):
    """A point that is being evaluated: it, and the run that asked for it."""

    x: Any
    restart: int


class Asynchronous:
    """Keeps a crew busy: at most `max_pending` points are out, and never more than the budget allows.

    If `max_pending` is None, it is the number of slots, which is asked again and again, because the workers of a
    cluster join and leave; if the crew does not know it, a generation is out. Values are passed on one by one. Those
    that a run left out when it ended count, but move nothing. What is out when the search ends on a budget is awaited;
    otherwise it is cancelled, and stays in the checkpoint as out.
    """

    def __init__(
        self, crew: Crew, failures: Failures, max_pending: int | None = None, eval_timeout: float | None = None
    ) -> None:
        self._crew, self._failures, self._max_pending, self._eval_timeout = crew, failures, max_pending, eval_timeout
        self._out: dict[int, Out] = {}
        self._arrived: deque[tuple[Any, Any]] = deque()  # keys and outcomes that were not passed on yet
        self._number = 0

    def search(self, restarted: RestartedSearch, after_generation: Callable[[], None], interrupts: Interrupts) -> None:
        """Search until there is a reason to stop; `after_generation` is called after every `popsize` values."""
        try:
            reasons = self._search(restarted, after_generation, interrupts)
        except BaseException:
            with suppress(Exception):  # of several errors, the first one is raised
                self._tell_arrived(restarted)
            raise
        self._tell_arrived(restarted)
        if self._out and not reasons.keys().isdisjoint(BUDGETS):
            self._drain(restarted, interrupts)
            after_generation()

    def _search(
        self, restarted: RestartedSearch, after_generation: Callable[[], None], interrupts: Interrupts
    ) -> dict[str, str]:
        """Search, and return the reasons to stop; values that had arrived by then are not passed on yet."""
        waiting = restarted.points_out()
        told = 0
        while True:
            reasons = restarted.stop()
            if reasons:
                if not restarted.begin_next_run(reasons):
                    return reasons
                waiting = []
                continue
            wanted = self._submit(restarted, waiting)
            if not self._arrived:
                self._receive(interrupts, wanted)
            if self._arrived:
                # one at a time: each point is drawn after the same values, however many have arrived together
                self._tell_next(restarted)
                told += 1
            if told >= restarted.popsize:
                told = 0
                after_generation()

    def _submit(self, restarted: RestartedSearch, waiting: list[Any]) -> bool:
        """Submit points while there is room; return whether there would be more of them."""
        crew, budget = self._crew, restarted.limits.max_evals
        most = self._max_pending or crew.slots or restarted.popsize
        while budget is None or restarted.nfev + len(self._out) < budget:
            if len(self._out) + crew.lost >= most:
                return True
            x = waiting.pop(0) if waiting else restarted.search.ask(1)[0]
            self._number += 1
            self._out[self._number] = Out(x, restarted.restart)
            crew.submit(self._number, _own(x))
        return False

    def _receive(self, interrupts: Interrupts, wanted: bool) -> None:
        with interrupts.allowed():
            self._arrived.extend(collected(self._crew, self._eval_timeout, wanted=wanted))

    def _tell_next(self, restarted: RestartedSearch) -> None:
        key, outcome = self._arrived.popleft()
        x, restart = self._out.pop(key)
        restarted.tell_one(x, self._failures.value_of(outcome), current=restart == restarted.restart)
        restarted.other_reasons |= self._failures.reasons()

    def _tell_arrived(self, restarted: RestartedSearch) -> None:
        """Pass on all values that have arrived; then raise the first error among them."""
        failure: Exception | None = None
        while self._arrived:
            try:
                self._tell_next(restarted)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _drain(self, restarted: RestartedSearch, interrupts: Interrupts) -> None:
        for key in self._crew.cancel():
            del self._out[key]  # type: ignore[arg-type]
        while self._out:
            self._receive(interrupts, False)
            self._tell_arrived(restarted)


def _own(x: Any) -> Any:
    """Return a copy that the objective may change and keep."""
    return x.copy() if hasattr(x, "copy") else x
