"""Limits that a caller sets, and the status of a result for the reasons to stop."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from esgroup import checks

TARGET = "target"
TOLERANCES = ("tolx", "tolfun", "gtol", "dof", "limit", "modes", "width")
CONTRADICTIONS = ("resolution", "divergence", "failed", "flat")  # where one of these holds, no tolerance means anything
BUDGETS = ("max_evals", "max_iters", "max_time")


class Limits(NamedTuple):
    """Budgets and the value to reach; None means no limit."""

    max_evals: int | None = None
    max_iters: int | None = None
    max_time: float | None = None
    target: float | None = None


def parse_limits(max_evals: Any, max_iters: Any, max_time: Any, target: Any) -> Limits:
    """Check the limits that a caller has set.

    Parameters
    ----------
    max_evals, max_iters
        Whole numbers of evaluations and iterations (1e4 is accepted), or None or inf for no limit.
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
    """Check a budget; 1e4 counts as a whole number."""
    if _is(math.inf, value):
        return None
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    return checks.whole_number(name, value, least=1)


def _is(unlimited: float, value: Any) -> bool:
    return value is None or (isinstance(value, float) and value == unlimited)


def budget_reasons(limits: Limits, nfev: int, nit: int, seconds: float, best_f: float) -> dict[str, str]:
    """The limits that are reached, with an explanation of each."""
    reasons = {}
    if limits.target is not None and best_f <= limits.target:
        reasons["target"] = f"the best value {best_f:.6g} is at or below the target {limits.target:.6g}"
    if limits.max_evals is not None and nfev >= limits.max_evals:
        reasons["max_evals"] = f"{nfev:,} evaluations were made, max_evals is {limits.max_evals:,}"
    if limits.max_iters is not None and nit >= limits.max_iters:
        reasons["max_iters"] = f"{nit:,} generations were made, max_iters is {limits.max_iters:,}"
    if limits.max_time is not None and seconds >= limits.max_time:
        reasons["max_time"] = f"{seconds:.3g} s have passed, max_time is {limits.max_time:.3g}"
    return reasons


def status_of(reasons: dict[str, str]) -> int:
    """Status of a result: -1 still running, 0 a tolerance, 1 the target, 2 a budget, 3 anything else."""
    if not reasons:
        return -1
    if TARGET in reasons:
        return 1
    if any(name in reasons for name in TOLERANCES) and not any(name in reasons for name in CONTRADICTIONS):
        return 0
    return 2 if any(name in reasons for name in BUDGETS) else 3
