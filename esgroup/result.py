"""What a search found, in SciPy's form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy.optimize import OptimizeResult

from esgroup import stopping

if TYPE_CHECKING:
    from esgroup.searcher import Searcher


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """SciPy's, which cannot print an empty dict: that of the reasons while a search runs."""

    def __repr__(self) -> str:
        return repr(OptimizeResult((k, "none yet" if isinstance(v, dict) and not v else v) for k, v in self.items()))


def status_of(reasons: dict[str, str]) -> int:
    """-1 still running, 0 a tolerance, 1 the target, 2 a budget, 3 anything else."""
    if not reasons:
        return -1
    if stopping.TARGET in reasons:
        return 1
    if any(name in reasons for name in stopping.TOLERANCES):
        return 0
    return 2 if any(name in reasons for name in stopping.BUDGETS) else 3


def result(search: Searcher) -> OptimizeResult:
    """Best point, value, counts and why the search stopped."""
    reasons = search.stop()
    status = status_of(reasons)
    x = search.best_x
    return Result(
        x=search.mean if x is None else x.copy(),
        fun=search.best_f,
        nfev=search.nfev,
        nit=search.nit,
        success=status in (0, 1) and search.best_f < math.inf,
        status=status,
        message=message(search, reasons),
        xmean=search.mean,
        stds=search.stds,
        stop=reasons,
        nfailed=search.nfailed,
        structure=str(search.structure),
        **search.details,
    )


def message(search: Searcher, reasons: dict[str, str]) -> str:
    """The reasons as a sentence, what failed, and which structure was chosen."""
    parts = ["; ".join(f"{name}: {text}" for name, text in reasons.items()) or "The search is still running"]
    if search.nfev == 0 and search.best_x is None:
        parts.append("No value was told yet")
    elif search.best_x is None:
        parts.append(f"All {search.nfailed:,} evaluations failed: x is the mean of the search distribution")
    elif search.nfailed:
        parts.append(f"{search.nfailed:,} of {search.nfev:,} evaluations failed (NaN)")
    if search.structure_note:
        parts.append(search.structure_note)
    return ". ".join(parts)  # the names of reasons as they are spelled
