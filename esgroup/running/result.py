"""The results of runs, in SciPy's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from esgroup.checks import Array


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """The result of a run.

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
        Why the run stopped, as text.
    stop
        The reasons by name.
    nfev, nit
        Number of function evaluations, and of generations or iterations.
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
        return repr(OptimizeResult((name, _shown(value)) for name, value in self.items()))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not _equal(self, other)


def _shown(value: Any) -> Any:
    """A dict as lines "key: value". SciPy cannot print an empty dict, or one whose keys are not strings.

    Keys are options of a choice, which may be anything; if one is not a string, or has several lines, all are written
    as in code, so that 1 and "1" differ.
    """
    if not isinstance(value, dict):
        return value
    if not value:
        return "none yet"  # the reasons to stop, while a search runs
    plain = all(isinstance(key, str) and "\n" not in key for key in value)
    keys = [key if plain else repr(key) for key in value]
    width = max(map(len, keys))
    lines = []
    # arrays as SciPy prints them
    with np.printoptions(linewidth=60, edgeitems=2, threshold=12, formatter={"float_kind": "{:10.3e}".format}):
        for key, one in zip(keys, value.values(), strict=True):
            text = repr(one) if isinstance(one, str) and "\n" in one else str(_shown(one))
            lines.append(f"{key:>{width}}: " + text.replace("\n", "\n" + " " * (width + 2)))
    return "\n".join(lines)


def _equal(one: Any, other: Any) -> bool:
    """Whether two results, or parts of them, have the same values; NaN equals NaN, as in a copy."""
    one, other = (part.tolist() if isinstance(part, np.ndarray) else part for part in (one, other))
    if isinstance(one, dict) or isinstance(other, dict):
        known = isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()
        return known and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one is other or bool(one == other) or bool(one != one and other != other)


class SearchResult(Result):
    """The result of a search.

    Attributes
    ----------
    xmean, stds
        Final mean and standard deviations of the distribution.
    nfailed
        Number of failed evaluations.
    noisy
        Whether the function looks noisy or rugged, for a search that has stopped (with restarts, in the last run): the
        best value of each generation varied at random around one level. If the function is noisy, `xmean` is a better
        answer than x, whose value benefits from the noise.
    restarts
        Number of restarts, in results of `minimize`.
    modes
        In searches for several optima: point, value and weight of each, best first.
    feasible, constr, constr_violation, multipliers
        In searches with constraints: whether x satisfies all of them within their tolerance; their values at x; the
        largest violation, in its own units, 0 if all are satisfied; Lagrange multipliers, positive where a constraint
        is active. `minimize` returns lists of arrays, one for each of its constraints c, with multipliers of the active
        bound; with ask and tell these are arrays for g <= 0. x is the best feasible point, or the point with the
        smallest violation if there is none.
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
    """The result of structured Newton.

    Attributes
    ----------
    jac
        The gradient at x.
    njev, nhvp, ndiag, nhess
        Number of evaluations of the gradient, of Hessian-vector products, of the Hessian's diagonal and of the Hessian.
    hess_inv
        The inverse of the last estimate of the Hessian, a `LinearOperator`.
    """

    jac: Array
    njev: int
    nhvp: int
    ndiag: int
    nhess: int
    hess_inv: Any
