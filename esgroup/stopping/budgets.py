"""Limits that a caller sets, and the status of a result by its reasons to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from esgroup import checks
from esgroup.stopping.base import BUDGET, OTHER, REACHED, TOLERANCE, Rule

TARGET = "target"
TOLERANCES = ("tolx", "tolfun", "gtol", "dof", "limit", "modes", "width")
CONTRADICTIONS = ("resolution", "divergence", "failed", "flat")  # if one of these holds, tolerances are meaningless
BUDGETS = ("max_evals", "max_iters", "max_time")
_STATUS = dict.fromkeys(TOLERANCES, TOLERANCE) | {TARGET: REACHED} | dict.fromkeys(BUDGETS, BUDGET)


class Limits(NamedTuple):
    """Budgets and the value to reach; None means no limit."""

    max_evals: int | None = None
    max_iters: int | None = None
    max_time: float | None = None
    target: float | None = None


def parse_limits(max_evals: Any = None, max_iters: Any = None, max_time: Any = None, target: Any = None) -> Limits:
    """Check the limits that a caller has set.

    Parameters
    ----------
    max_evals, max_iters
        Integer numbers of evaluations and iterations (1e4 is accepted), or None or inf for no limit.
    max_time
        Seconds, or None or inf for no limit.
    target
        Value to reach, or None or -inf for no target.

    Raises
    ------
    ValueError, TypeError
        If one of them is not such a number.
    """
    return Limits(
        _whole("max_evals", max_evals),
        _whole("max_iters", max_iters),
        None if _is(math.inf, max_time) else checks.real_number("max_time", max_time, positive=True),
        None if _is(-math.inf, target) else checks.real_number("target", target),
    )


def _whole(name: str, value: Any) -> int | None:
    """Check a budget; 1e4 counts as an integer."""
    if _is(math.inf, value):
        return None
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    return checks.whole_number(name, value, least=1)


def _is(unlimited: float, value: Any) -> bool:
    return value is None or (isinstance(value, float) and value == unlimited)


class Totals(NamedTuple):
    """The counts that budgets look at, for computations other than searches."""

    nfev: int
    nit: int
    seconds: float
    best_f: float
    feasible: bool = True


@dataclass(frozen=True)
class Target(Rule):
    """Holds as soon as the best feasible value is at or below the target."""

    value: float
    name = TARGET
    status = REACHED

    def __post_init__(self) -> None:
        parse_limits(target=self.value)

    def look(self, view: Any) -> str | None:
        if view.best_f <= self.value and view.feasible:
            return f"target {self.value:.6g} reached (best value {view.best_f:.6g})"
        return None


@dataclass(frozen=True)
class _Budget(Rule):
    """Holds as soon as the budget is used up."""

    most: float
    status = BUDGET
    counts: ClassVar[str]  # in the search
    text: ClassVar[str]  # with what was used, and the limit

    def __post_init__(self) -> None:
        parse_limits(**{self.name: self.most})

    def look(self, view: Any) -> str | None:
        used = getattr(view, self.counts)
        return self.text.format(used, self.most) if used >= self.most else None


class MaxEvals(_Budget):
    """Holds after this many evaluations."""

    name = "max_evals"
    counts = "nfev"
    text = "limit of {1:,} evaluations reached ({0:,} made)"


class MaxIters(_Budget):
    """Holds after this many generations."""

    name = "max_iters"
    counts = "nit"
    text = "limit of {1:,} generations reached ({0:,} made)"


class MaxTime(_Budget):
    """Holds after this many seconds."""

    name = "max_time"
    counts = "seconds"
    text = "limit of {1:.3g} s reached ({0:.3g} s elapsed)"


@lru_cache(maxsize=64)
def budget_rules(limits: Limits) -> tuple[Rule, ...]:
    """Return the rules of the limits that are set."""
    known: tuple[Callable[[Any], Rule], ...] = Target, MaxEvals, MaxIters, MaxTime
    given = zip(known, (limits.target, *limits[:3]), strict=True)
    return tuple(rule(value) for rule, value in given if value is not None)


def budget_reasons(limits: Limits, totals: Any) -> dict[str, str]:
    """Return the limits that are reached, each with an explanation; `totals` is a `Totals` or a search."""
    found: dict[str, str] = {}
    for rule in budget_rules(limits):
        if isinstance(text := rule.look(totals), str):
            found[rule.name] = text
    return found


def status_of(reasons: Collection[str], others: Mapping[str, int] = MappingProxyType({})) -> int:
    """Return the status of a result: -1 still running, 0 a tolerance, 1 the target, 2 a budget, 3 anything else.

    `others` has the status of user-defined rules, by name.
    """
    if not reasons:
        return -1
    found = {others.get(name, _STATUS.get(name, OTHER)) for name in reasons}
    if any(name in reasons for name in CONTRADICTIONS):
        found.discard(TOLERANCE)
    return next((status for status in (REACHED, TOLERANCE, BUDGET) if status in found), OTHER)
