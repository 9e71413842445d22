"""Evaluation without generations: a new point is submitted whenever a value arrives."""

from __future__ import annotations

import math
from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from esgroup.driver.calling import own_point
from esgroup.driver.generations import SearchRun
from esgroup.search.ledger import PendingPoint
from esgroup.stopping.budgets import BUDGETS, budget_reasons


class Asynchronous(SearchRun):
    """Keeps a worker pool busy: at most `max_pending` points are pending, and never more than the budget allows.

    If `max_pending` is None, it is the number of slots, which is queried repeatedly, because the workers of a cluster
    join and leave; if the pool does not know it, one generation is pending.

    Values are told one by one, each before the next point is asked for, so that the same values in the same order give
    the same search. Values of points left pending by an ended run count, but move nothing. When the search ends on a
    budget, pending points are awaited; otherwise they are canceled and stay pending in the checkpoint. A generation is
    complete after every `popsize` values.
    """

    def prepare(self, stack: ExitStack) -> None:
        """Make the worker pool ready."""
        self._pool = self.evaluation.pool(stack)
        # points with their places: to be submitted before any new one; submitted but not yet told
        self._waiting: list[tuple[Any, PendingPoint]] = self.unfinished.points_out()
        self._out: dict[int, tuple[Any, PendingPoint]] = {}
        self._arrived: deque[tuple[Any, Any]] = deque()  # keys and outcomes not yet told
        self._number = 0
        self._told = 0  # since the last generation
        self._over = False  # whether to wait only for pending points
        self._judged: Any = None  # the state when the search last checked whether to stop, and its age
        self._judged_nit = -1

    def goes_on(self) -> bool:
        """Return whether there is no reason to stop, or pending points to wait for."""
        if not self._over:
            reasons = self._reasons()
            if not reasons:
                return True
            if not self._out or reasons.keys().isdisjoint(BUDGETS):
                return False
            self._over = True
            for key in self._pool.cancel():
                del self._out[key]  # type: ignore[arg-type]
        return bool(self._out or self._told)

    def step(self) -> bool:
        """Submit points while there is room, and tell the next value if one arrives soon."""
        wanted = not self._over and self._submit()
        if not self._arrived:
            with self.interrupts.allowed:
                self._arrived.extend(self.evaluation.collected(self._pool, wanted=wanted))
        if self._arrived:
            self._tell_next()
        if self._told < self.search.strategy.popsize and (self._out or not self._over):
            return False
        self._told = 0
        return True

    def _reasons(self) -> dict[str, str]:
        """Return why the search should stop: limits are checked after every value, the rest after every move."""
        search = self.search
        state, nit = search.state, search.ledger.nit
        if state is self._judged and nit == self._judged_nit and not search.noted:
            small = search.runs is None or search.runs.leaves(search)
            if small and not budget_reasons(search.limits, search):
                return {}
        self._judged, self._judged_nit = state, nit
        return search.stop()

    def settle(self) -> None:
        """Tell the values that have arrived: they count, however the run ended."""
        while self._arrived:
            with suppress(Exception):
                self._tell_next()

    def _submit(self) -> bool:
        """Submit points while there is room; return whether there are more to submit."""
        search, pool, budget = self.search, self._pool, self.search.limits.max_evals
        most = self.evaluation.max_pending if self.evaluation.executor is None else None  # else the slots are limited
        most = (most or pool.slots or search.popsize) - pool.lost
        left = math.inf if budget is None else budget - search.nfev
        while len(self._out) < left:
            if len(self._out) >= most:
                return True
            if search.runs is not None and search.runs.is_over:
                self._waiting = []  # points of the run that has ended
            x, place = self._waiting.pop(0) if self._waiting else (search.ask(1)[0], search.ledger.newest)
            self._number += 1
            self._out[self._number] = x, place
            pool.submit(self._number, own_point(x))
        return False

    def _tell_next(self) -> None:
        key, outcome = self._arrived.popleft()
        (x, place), failures = self._out.pop(key), self.failures
        self.search.tell_place(place, failures.value_of(outcome, x))
        self._told += 1
        if failures.too_many:
            self.stop_for("failures", failures.too_many)
