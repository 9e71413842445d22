"""Budgets that are exact to one call of a user's function, wherever in an iteration the call is made."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field
from typing import Any

from esgroup.newton.precision import Breakdown
from esgroup.stopping.budgets import Limits, Totals, budget_reasons


@dataclass(eq=False)
class CallBudget:
    """Counts the calls of fun, including those for gradients if it returns both, and refuses calls beyond the limits.

    Attributes
    ----------
    limits : Limits
        The limits, of which max_evals and max_time are enforced here.
    calls : int
        Calls of fun so far.
    strict : bool
        Whether calls are refused: not before the first point is known, and not while evaluating the gradient of an
        accepted point, without which the point could not be the result.
    """

    limits: Limits
    calls: int = 0
    strict: bool = False
    _started: float = field(default_factory=time.monotonic)

    def guarded(self, function: Any, *, counts: bool = False) -> Any:
        """Return the function, wrapped so that it ends the run instead of making a call beyond the limits."""
        if not callable(function):
            return function

        limits = Limits(max_evals=self.limits.max_evals if counts else None, max_time=self.limits.max_time)

        @functools.wraps(function, updated=())
        def call(*args: Any) -> Any:
            if self.strict:
                totals = Totals(self.calls, 0, time.monotonic() - self._started, 0.0)
                for reason in budget_reasons(limits, totals).items():
                    raise Breakdown(*reason)
            self.calls += counts
            return function(*args)

        return call
