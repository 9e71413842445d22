"""Why a search should end: budgets that the caller sets, and signs that going on is of no use."""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import Array
from esgroup.groups.linalg import SingularElementError
from esgroup.running.limits import budget_reasons
from esgroup.strategies.base import CONDITION

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

TOL_X = 1e-12  # of the first standard deviations: the tutorial's TolX
TOL_X_PRECISE = 1e-4  # the same where a coordinate cannot be told more precisely
TOL_FUN = 1e-13  # of the values: a thousand times their resolution
DIVERGENCE = 1e10  # times the first standard deviations
FAILED = 10  # generations in a row without a value
_MOST_HISTORY = 20_000


@dataclass
class Record:
    """Best and median value of the generations so far, as many as the criteria look at."""

    best: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_HISTORY))
    median: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_HISTORY))
    worst: float = math.nan  # of the last generation, failed runs apart
    failed_in_a_row: int = 0
    # reasons that are dear to find out are looked at now and then, and stand until the next look
    stagnation: str = ""
    stagnation_at: int = 0
    spread: dict[str, str] = field(default_factory=dict)
    spread_at: int = 0
    condition: str = ""
    condition_at: int = 0

    def add(self, ranked: list[float]) -> None:
        """Note the values of a generation, from best to worst, failed ones (NaN) last."""
        if ranked[0] != ranked[0]:
            self.failed_in_a_row += 1
            return
        self.failed_in_a_row = 0
        self.best.append(ranked[0])
        median = ranked[len(ranked) // 2]
        self.median.append(median if median == median else math.inf)  # NaN would never compare
        worst = ranked[-1]
        self.worst = worst if worst == worst else max(value for value in ranked if value == value)


def reasons(search: Searcher) -> dict[str, str]:
    """All reasons why a search should end."""
    evolution = search._evolution
    found = budget_reasons(search._limits, search.nfev, search.nit, search.seconds, search.best_f)
    patience = 1.0 if evolution.adaptation is None else math.inf
    found |= value_reasons(search._record, search.nit, evolution.dim, search.popsize, patience=patience)
    return found | spread_reasons(search)


def value_reasons(record: Record, nit: int, dim: int, popsize: int, *, patience: float) -> dict[str, str]:
    """What the values say: they differ no more, get better no more, or there are none.

    `patience` is how much longer than usual values may stand still. That of a search that adapts its learning rates is
    infinite: to stand still for long is its way of averaging.
    """
    reasons = {}
    if record.failed_in_a_row >= FAILED:
        reasons["failed"] = f"no evaluation of the last {record.failed_in_a_row} generations gave a value"
    span = 10 + math.ceil(30 * dim / popsize)  # the tutorial's TolHistFun
    if nit >= span and len(record.best) >= span:
        recent = [*itertools.islice(reversed(record.best), span), record.worst]
        low, high = min(recent), max(recent)
        gap = 0.0 if low == high else high - low  # also of infinite ones
        if gap == 0.0 or gap <= TOL_FUN * max(abs(low), abs(high)) < math.inf:
            reasons["tolfun"] = f"the values of {span} generations differ by {gap:.3g}, no more than rounding"
    if patience < math.inf and nit - record.stagnation_at >= 10:  # sorting a long history each time would be dear
        record.stagnation, record.stagnation_at = _stagnation(record, dim, popsize, patience), nit
    if record.stagnation:
        reasons["stagnation"] = record.stagnation
    return reasons


def _stagnation(record: Record, dim: int, popsize: int, patience: float) -> str:
    """The tutorial's Stagnation: medians of the first and last 30 per cent of a long history.

    Its length, 100 + 100 n^1.5 / lambda generations or a fifth of all, is that of pycma: rugged functions need it.
    """
    span = max(math.ceil(patience * (100 + 100 * dim**1.5 / popsize)), len(record.best) // 5)
    if len(record.best) < span or not all(_no_better(values, span) for values in (record.best, record.median)):
        return ""
    return f"neither best nor median value got better in {span} generations"


def _no_better(values: deque[float], span: int) -> bool:
    recent = np.array(list(itertools.islice(reversed(values), span)))[::-1]
    part = max(1, int(0.3 * span))
    return _median(recent[-part:]) >= _median(recent[:part])


def _median(values: Array) -> float:
    """The upper median: an average of two could overflow or not exist."""
    middle = len(values) // 2
    return float(np.partition(values, middle)[middle])


def spread_reasons(search: Searcher) -> dict[str, str]:
    """What the distribution says, at the last look: each is a pass over the whole root, or a decomposition of it."""
    record, nit, dim = search._record, search.nit, search._evolution.dim
    if nit - record.spread_at >= max(1, dim // 10):
        record.spread, record.spread_at = _spread(search), nit
    if nit - record.condition_at >= max(100, dim // 10):
        record.condition, record.condition_at = _condition(search), nit
    return record.spread | ({"condition": record.condition} if record.condition else {})


def _spread(search: Searcher) -> dict[str, str]:
    """Whether it is a point, or beyond all bounds."""
    state, first, least = search._state, search._first_stds, search._least_steps
    reasons: dict[str, str] = {}
    stds = np.sqrt(search._evolution.variances(state))
    free = slice(None) if least is None else least == 0.0
    relative = (stds / first)[free]
    precise = (state.mean + 0.2 * stds == state.mean)[free]  # the tutorial's NoEffectCoord
    small = TOL_X_PRECISE if precise.any() else TOL_X
    if relative.size and (relative.max() < small or precise.all()):
        reasons["tolx"] = f"the standard deviations fell to {relative.max():.1g} times the first ones"
        reasons["tolx"] += " and the mean is at full precision" if precise.any() else ""
    elif precise.any():
        reasons["precision"] = "a fifth of a standard deviation no longer changes the mean: it is at full precision"
    if not np.isfinite(stds).all() or (stds / first).max() > DIVERGENCE:
        reasons["divergence"] = f"standard deviations grew to more than {DIVERGENCE:g} times the first ones"
    return reasons


def relative_spread(relative: Array) -> dict[str, str]:
    """The same for standard deviations relative to the first ones, where no more is known of the distribution."""
    if not np.isfinite(relative).all() or relative.max() > DIVERGENCE:
        return {"divergence": f"standard deviations grew to more than {DIVERGENCE:g} times the first ones"}
    if relative.max() < TOL_X:
        return {"tolx": f"the standard deviations fell to {relative.max():.1g} times the first ones"}
    return {}


def _condition(search: Searcher) -> str:
    try:
        condition = search._evolution.condition(search._state)
    except SingularElementError:
        condition = math.inf
    return f"the condition number of the covariance is {condition:.3g}, above {CONDITION:g}" * (condition > CONDITION)
