"""Restarts: when a run has come to its end, the search begins another one elsewhere, within its own limits.

Counts, limits, the best point and the points that are out are those of the search; its strategy, state and the values
by which it is judged are those of the present run. A run ends where a search without restarts would stop, but for
limits; the next one begins with the next `ask`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.restarts import Plan, Restarts, Schedule
from esgroup.stopping.budgets import BUDGETS, budget_reasons
from esgroup.strategies.base import Strategy
from esgroup.strategies.in_domain import can_begin_elsewhere, elsewhere

if TYPE_CHECKING:
    from esgroup.search.ledger import Ledger
    from esgroup.search.searcher import Searcher

# Evaluations for each variable after which no further run begins without a budget: a usual budget on bbob. Restarts
# have no end of their own within reach: BIPOP made 788,157 evaluations and 53 restarts on a function of 12 variables
# that its first run had solved, and was not at its end.
WITHOUT_BUDGET = 10_000
_PLACES = 1000  # that are tried for one that fulfills what has keep_feasible=True, before there is no other run


class Next(NamedTuple):
    """A run that can begin: what it is, and the generator after the numbers that it took to plan it."""

    schedule: Schedule
    plan: Plan
    strategy: Strategy
    rng: np.random.Generator


class Runs:
    """What a search with restarts knows of its runs.

    Parameters
    ----------
    restarts : Restarts or None
        The restart strategy; None: the present run is the last one.
    first : Strategy
        That of the first run, from which all others are made.
    rng : numpy.random.Generator
        From which places and the generators of later runs come.
    """

    def __init__(self, restarts: Restarts | None, first: Strategy, rng: np.random.Generator) -> None:
        if restarts is not None and not can_begin_elsewhere(first):
            raise ValueError(f"restarts need a search that can start elsewhere, got one over {first.about}")
        self.restarts, self.first, self.rng = restarts, first, rng
        self.schedule, self.plan = Schedule(first.popsize), Plan(first.popsize)
        self.best: Array | None = None  # the best outcome before the present run, and the multipliers of its run
        self.multipliers: Array | None = None
        self.is_over = False  # whether the present run has ended, and another one can begin
        self.judged = -1  # how many values had been told when that was seen
        self._next: Next | str | None = None

    def verdict(self, search: Searcher, reasons: dict[str, str]) -> dict[str, str]:
        """Return why the search ends, for the reasons of the present run: nothing as long as another run can begin."""
        used = search.ledger.nfev - search.ledger.began.nfev
        if not self.leaves(search):
            reasons["small_run"] = f"this run with a small population has used its {self.plan.max_evals:,} evaluations"
        if search.ledger.nfev != self.judged:
            self.is_over, self.judged, self._next = False, search.ledger.nfev, None
        if not reasons or search.noted or self.restarts is None or budget_reasons(search.limits, search):
            return reasons
        if any(rule.name in reasons for rule in search.rules if not rule.of_run):
            return reasons
        if self._next is None:
            self._next = self._planned(search, self.restarts, used)
        if isinstance(self._next, str):
            return reasons | {"restarts": self._next}
        self.is_over = True
        return {}

    def found_best(self, ledger: Ledger) -> bool:
        """Whether the best point is one of an earlier run."""
        return self.best is not None and np.array_equal(self.best, ledger.best)  # type: ignore[arg-type]

    def leaves(self, search: Searcher) -> bool:
        """Whether the present run may have more evaluations."""
        most = self.plan.max_evals
        return most is None or search.ledger.nfev - search.ledger.began.nfev < most

    def _planned(self, search: Searcher, restarts: Restarts, used: int) -> Next | str:
        """The next run, or why there is none; nothing changes before it begins."""
        unlimited = all(getattr(search.limits, name) is None for name in BUDGETS)
        if unlimited and search.nfev >= WITHOUT_BUDGET * self.first.size:
            enough = f"without a budget, restarts end after {WITHOUT_BUDGET:,} evaluations per variable"
            return f"{enough}: set max_evals for a longer search"
        rng, accepts = copy.deepcopy(self.rng), search.accepts
        planned = restarts.next(self.schedule, used, rng)
        if planned is None:
            return f"the restart strategy ended the search after {search.restart} restarts"
        schedule, plan = planned
        for _ in range(_PLACES):
            strategy = elsewhere(self.first, plan.popsize, plan.sigma_factor, rng)
            if strategy is None:
                return "the strategy has no other place to start"
            if accepts is None or accepts(_start_of(strategy)):
                return Next(schedule, plan, strategy, rng)
        return "no other start was found that satisfies the constraints with keep_feasible=True"

    def begin(self, search: Searcher) -> None:
        """Begin the next run."""
        coming = self._next
        assert isinstance(coming, Next)
        if not self.found_best(search.ledger):
            self.best, self.multipliers = search.ledger.best, search.multipliers
        self.schedule, self.plan, strategy, self.rng = coming
        search.begin_run(strategy, self.rng.spawn(1)[0])
        self.is_over, self._next = False, None


def _start_of(strategy: Strategy) -> Any:
    """The point at which a strategy begins, as users see it."""
    return strategy.domain.to_user(strategy.mean(strategy.start())[None])[0]
