"""What a run found, in SciPy's form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.optimize import OptimizeResult

from esgroup.checks import Array
from esgroup.newton.precision import Precision
from esgroup.running.limits import status_of
from esgroup.running.result import Result

if TYPE_CHECKING:
    from esgroup.newton.run import Run


def result(run: Run) -> OptimizeResult:
    """Best point, value, gradient, counts and why it stopped; `hess_inv` is S^-1 of the last iteration."""
    counts, status = run.function.counts, status_of(run.reasons)
    return Result(
        x=run.best.x.copy(),
        fun=run.best.fun,
        jac=run.best.jac.copy(),
        nit=run.nit,
        nfev=counts.nfev,
        njev=counts.njev,
        nhvp=counts.nhvp,
        ndiag=counts.ndiag,
        nhess=counts.nhess,
        success=status in (0, 1) and math.isfinite(run.best.fun),
        status=status,
        message=_message(run.reasons),
        stop=dict(run.reasons),
        structure=repr(run.options.structure),
        **_inverse(run.precision, len(run.best.x)),
    )


def _message(reasons: dict[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in reasons.items()) or "The iteration is still running"


def _inverse(precision: Precision | None, dim: int) -> dict[str, Any]:
    if precision is None:
        return {}
    from scipy.sparse.linalg import LinearOperator  # slow to import

    def solve(vector: Array) -> Array:
        return precision.solve(vector.ravel())

    return {"hess_inv": LinearOperator((dim, dim), matvec=solve, rmatvec=solve, dtype=float)}
