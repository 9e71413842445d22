"""The results of runs, in SciPy's form."""

from __future__ import annotations

from typing import Any

from scipy.optimize import OptimizeResult

from esgroup.checks import Array


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """What every run found.

    Attributes
    ----------
    x
        The best point.
    fun
        Its value.
    success
        Whether the target or a tolerance was reached.
    status
        -1 still running, 0 a tolerance, 1 the target, 2 a budget, 3 anything else.
    message
        Why the run stopped, in words.
    stop
        The reasons by name.
    nfev, nit
        Evaluations of the function, and generations or iterations.
    structure
        The structure that was used.
    """

    x: Any
    fun: float
    success: bool
    status: int
    message: str
    stop: dict[str, str]
    nfev: int
    nit: int
    structure: str

    def __repr__(self) -> str:
        # SciPy's own cannot print an empty dict: that of the reasons while a search runs
        return repr(OptimizeResult((k, "none yet" if isinstance(v, dict) and not v else v) for k, v in self.items()))


class SearchResult(Result):
    """What a search found.

    Attributes
    ----------
    xmean, stds
        Mean and standard deviations of the distribution in the end.
    nfailed
        Evaluations that failed.
    noisy
        Whether the values of a search that has stopped, with restarts those of the last run, look noisy or rugged: the
        best of each generation varied at random about one level. If there is noise, `xmean` is a better answer than x,
        the point of the luckiest value.
    restarts
        Restarts, in results of `minimize`.
    modes
        In searches for several optima: each with point, value and weight, the best first.
    feasible, constr, constr_violation, multipliers
        In searches with constraints: whether x fulfils all of them within their tolerance; their values at x; the
        largest violation, in its own units, 0 where all are fulfilled; Lagrange multipliers, positive where a
        constraint is active. `minimize` has a list of arrays, one for each of its constraints c, with multipliers of
        the bound that is active; with ask and tell these are arrays for g <= 0. x is the best feasible point, or that
        of the smallest violation if there is none.
    """

    xmean: Array
    stds: Array
    nfailed: int
    noisy: bool
    restarts: int
    modes: list[Any]
    feasible: bool
    constr: Any
    constr_violation: float
    multipliers: Any


class NewtonResult(Result):
    """What structured Newton found.

    Attributes
    ----------
    jac
        The gradient at x.
    njev, nhvp, ndiag, nhess
        Evaluations of the gradient, of products with the Hessian, of its diagonal and of the whole.
    hess_inv
        The inverse of the last estimate of the Hessian, a `LinearOperator`.
    """

    jac: Array
    njev: int
    nhvp: int
    ndiag: int
    nhess: int
    hess_inv: Any
