"""The result of a search, in SciPy's form."""

from __future__ import annotations

import copy
import math
from typing import Any

from esgroup.running.result import SearchResult
from esgroup.search import models
from esgroup.stopping.budgets import status_of


def result(search: Any) -> SearchResult:
    """Best point, value, counts and reason to stop of a Searcher, or of an object with the same attributes."""
    reasons = search.stop()
    status = status_of(reasons, {rule.name: rule.status for rule in search.rules})
    strategy = search.strategy
    mean = strategy.domain.to_user(search.mean[None])[0]
    best, noisy = search.best_x, search.noisy if reasons else False  # too expensive for every generation
    return SearchResult(
        x=copy.copy(mean if best is None else best),
        fun=search.best_f,
        nfev=search.nfev,
        nit=search.nit,
        success=status in (0, 1) and search.best_f < math.inf and search.feasible,
        status=status,
        message=message(search, reasons, noisy),
        xmean=mean,
        stds=strategy.domain.stds_to_user(search.stds),
        stop=reasons,
        nfailed=search.nfailed,
        noisy=noisy,
        restarts=search.restart,
        structure=str(search.structure),
        **search.result_fields,
        **search.ranking.fields(search.best_outcome, search.multipliers),
    )


def message(search: Any, reasons: dict[str, str], noisy: bool) -> str:
    """The message: reasons, failures, noise, the structure that was chosen, and models."""
    parts = ["; ".join(f"{name}: {text}" for name, text in reasons.items()) or "The search is still running"]
    if search.nfev == 0 and search.best_x is None:
        parts.append("There are no values yet")
    elif search.best_x is None:
        parts.append(f"All {search.nfailed:,} evaluations failed: x is the mean of the search distribution")
    elif search.nfailed:
        parts.append(f"{search.nfailed:,} of {search.nfev:,} evaluations failed (NaN)")
    if search.best_outcome is not None and (remark := search.ranking.note(search.best_outcome)):
        parts.append(remark)
    if noisy:
        advice = ', and try noise="adapt"' * search.strategy.traits.may_adapt
        parts.append(f"The function looks noisy or rugged. If it is noisy, use result.xmean, not result.x{advice}")
    if search.structure_note:
        parts.append(search.structure_note)
    if remark := models.remark(search, ended=bool(reasons), noisy=noisy):
        parts.append(remark)
    if search.restart:
        parts.append(f"Restarts: {search.restart}; xmean and stds are from the last run")
    return ". ".join(parts)  # without capitals: names of reasons keep their spelling
