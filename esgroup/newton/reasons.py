"""Why an iteration should end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from esgroup.checks import all_finite
from esgroup.running.limits import budget_reasons

if TYPE_CHECKING:
    from esgroup.newton.run import Run

UNBOUNDED = -1e50  # a value below it is not one of a function with a minimum
FAR = 1e10  # times the size of x0: no minimum is that far away
PATIENCE = 200  # iterations without a better value


def reasons_at(run: Run) -> dict[str, str]:
    """All reasons at the present point, by name."""
    found = _what_is_wrong(run)
    found |= budget_reasons(run.limits, run.function.counts.nfev, run.nit, run.seconds, run.best.fun)
    if "max_iters" in found:
        found["max_iters"] = f"{run.nit:,} iterations were made, max_iters is {run.limits.max_iters:,}"
    return found or _what_is_found(run)


def _what_is_wrong(run: Run) -> dict[str, str]:
    fun = run.point.fun
    far = FAR * (1.0 + float(np.abs(run.start).max()))
    if fun < UNBOUNDED or (np.abs(run.point.x).max() > far and fun < np.inf):
        where = f"the value is {fun:.3g} at a point of size {np.abs(run.point.x).max():.3g}"
        return {"unbounded": f"{where}: the function seems to have no minimum"}
    if not np.isfinite(fun):
        return {"not_finite": f"the value is {fun}"}
    if not all_finite(run.point.jac):
        return {"not_finite": "jac(x) has entries that are not finite"}
    return {}


def _what_is_found(run: Run) -> dict[str, str]:
    largest = float(np.abs(run.point.jac).max())
    if largest <= run.options.gtol:
        return {"gtol": f"the largest entry of the gradient is {largest:.3g}, gtol is {run.options.gtol:.3g}"}
    if run.last_step is not None and not run.last_step.any():
        return {"tolx": "the last step did not change the point: it is at full precision"}
    if run.nit - run.best_at >= PATIENCE:
        return {"stagnation": f"the value did not get better in {PATIENCE} iterations"}
    return {}
