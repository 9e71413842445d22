"""esgroup as methods of scipy.optimize.minimize."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    maxiter: int | None = None,
    maxfev: int | None = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    """Search with `esgroup.minimize`, as a method of `scipy.optimize.minimize`.

    Parameters
    ----------
    fun
        fun(x, *args) returns a number.
    x0
        The start.
    args : default ()
        Additional arguments of fun.
    bounds : default None
        Bounds in either form that SciPy accepts.
    constraints : default ()
        Constraints in any form that SciPy accepts: objects, dicts, or a list of them. SciPy passes them on unchanged;
        their derivatives are not used.
    callback : default None
        As in SciPy: callback(x) receives the best point of the current search, callback(intermediate_result) an
        OptimizeResult, and StopIteration ends the run. Its return value is ignored.
    maxiter, maxfev : default None
        SciPy's names for max_iters and max_evals.
    disp : default False
        SciPy's name for progress.
    **options
        Additional arguments of `esgroup.minimize`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    ValueError
        If jac, hess, hessp or tol is given: a search does not use them.

    Examples
    --------
    >>> import esgroup, scipy.optimize
    >>> options = {"sigma0": 0.5, "target": 1e-9, "rng": 1}
    >>> f = lambda x: (x[0] - 1) ** 2 + 100 * x[1] ** 2
    >>> method = esgroup.scipy_method
    >>> scipy.optimize.minimize(f, [0.0, 1.0], method=method, options=options).success
    True
    """
    from esgroup.driver.minimize import minimize

    unused = {name: options.pop(name, None) for name in ("jac", "hess", "hessp", "tol")}
    refuse("esgroup.scipy_method", unused)
    options = _renamed(options, disp, max_iters=maxiter, max_evals=maxfev)
    on_result = scipy_callback(callback)
    on_generation = None if on_result is None else lambda search: on_result(search.result)
    return minimize(fun, x0, args=args, bounds=bounds, constraints=constraints, callback=on_generation, **options)


def newton_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    tol: float | None = None,
    maxiter: int | None = None,
    maxfev: int | None = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    """Minimize with structured Newton, `esgroup.newton.minimize_newton`, as a method of `scipy.optimize.minimize`.

    Parameters
    ----------
    fun
        fun(x, *args) returns a number.
    x0
        The start, a vector.
    args : default ()
        Additional arguments of fun and of the derivatives.
    jac, hess, hessp : default None
        The gradient and, if available, the Hessian or Hessian-vector products.
    bounds, constraints
        Must be left out.
    callback : default None
        As in SciPy: callback(x) receives the best point, callback(intermediate_result) the result so far, and
        StopIteration ends the run.
    tol, maxiter, maxfev : default None
        SciPy's names for gtol, max_iters and max_evals.
    disp : default False
        SciPy's name for progress.
    **options
        Additional arguments of `esgroup.newton.minimize_newton`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    ValueError
        If bounds or constraints are given.

    Examples
    --------
    >>> import esgroup
    >>> from scipy.optimize import minimize, rosen, rosen_der, rosen_hess_prod
    >>> derivatives = {"jac": rosen_der, "hessp": rosen_hess_prod}
    >>> method = esgroup.newton_method
    >>> minimize(rosen, [-1.0, 1.0], method=method, **derivatives).success
    True
    """
    from esgroup.newton.method import minimize_newton

    refuse("esgroup.newton_method", {"bounds": bounds, "constraints": constraints})
    options = _renamed(options, disp, gtol=tol, max_iters=maxiter, max_evals=maxfev)
    on_result = scipy_callback(callback)
    return minimize_newton(fun, x0, args=args, jac=jac, hess=hess, hessp=hessp, callback=on_result, **options)


def _renamed(options: dict[str, Any], disp: bool, **theirs: Any) -> dict[str, Any]:
    """Options, including those under SciPy's names; one under our own name takes precedence."""
    return {name: value for name, value in theirs.items() if value is not None} | {"progress": bool(disp)} | options


def refuse(method: str, unused: dict[str, Any]) -> None:
    """Raise ValueError for an unused argument, unless it is empty, as SciPy passes it."""
    for name, given in unused.items():
        empty = isinstance(given, (tuple, list, dict)) and not given
        if given is not None and given is not False and not empty:
            raise ValueError(f"{method} does not use {name}: leave it out, got {given!r}")


def scipy_callback(callback: Callable[..., Any] | None) -> Callable[[OptimizeResult], None] | None:
    """Return a function of a result that calls back as SciPy does, with `intermediate_result=` or the best point.

    It ignores what `callback` returns: only StopIteration ends a run.
    """
    if callback is None:
        return None
    try:
        by_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]
    except ValueError:  # some functions written in C have no signature
        by_result = False

    def call(so_far: OptimizeResult) -> None:
        if by_result:
            callback(intermediate_result=so_far)
        else:
            callback(so_far.x)

    return call
