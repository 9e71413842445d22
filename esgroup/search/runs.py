"""Restarts: when a run has ended, the search starts another one elsewhere, within its own limits.

Counts, limits, the best point and the pending points belong to the search; the strategy, the state and the values used
by stopping rules belong to the current run. A run ends where a search without restarts would stop for a reason other
than a limit; the next one starts with the next `ask`.
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

# Evaluations per variable after which no further run starts without a budget: a common budget on bbob. Restarts do not
# end by themselves in a reasonable time: BIPOP made 788,157 evaluations and 53 restarts on a function of 12 variables
# that its first run had solved, and had not ended.
WITHOUT_BUDGET = 10_000
_PLACES = 1000  # starts that are tried to satisfy constraints with keep_feasible=True, before the search ends


class Next(NamedTuple):
    """A run that can begin: its plan, and the generator as planning left it."""

    schedule: Schedule
    plan: Plan
    strategy: Strategy
    rng: np.random.Generator


class Runs:
    """The runs of a search with restarts.

    Parameters
    ----------
    restarts : Restarts or None
        The restart strategy; None: the current run is the last one.
    first : Strategy
        The strategy of the first run, from which all others are made.
    rng : numpy.random.Generator
        The source of starts and generators of later runs.
    """

    def __init__(self, restarts: Restarts | None, first: Strategy, rng: np.random.Generator) -> None:
        if restarts is not None and not can_begin_elsewhere(first):
            raise ValueError(f"restarts need a search that can start elsewhere, got one over {first.about}")
        self.restarts, self.first, self.rng = restarts, first, rng
        self.schedule, self.plan = Schedule(first.popsize), Plan(first.popsize)
        self.best: Array | None = None  # the best outcome before the current run, and the multipliers of its run
        self.multipliers: Array | None = None
        self.is_over = False  # whether the current run has ended and another can begin
        self.judged = -1  # how many values had been told when this was determined
        self._next: Next | str | None = None

    def verdict(self, search: Searcher, reasons: dict[str, str]) -> dict[str, str]:
        """Return why the search stops, given the reasons of the current run: nothing while another run can begin."""
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
        """Whether the best point is from an earlier run."""
        return self.best is not None and np.array_equal(self.best, ledger.best)  # type: ignore[arg-type]

    def leaves(self, search: Searcher) -> bool:
        """Whether the current run may use more evaluations."""
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
    """The start of a strategy, as users see it."""
    return strategy.domain.to_user(strategy.mean(strategy.start())[None])[0]
