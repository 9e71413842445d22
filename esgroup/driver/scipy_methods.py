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
    callback: Callable[..., Any] | None = None,
    maxiter: int | None = None,
    maxfev: int | None = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    """`scipy.optimize.minimize(fun, x0, method=esgroup.scipy_method, options={"sigma0": 0.5, "max_evals": 1000})`.

    Options are the arguments of `esgroup.minimize`, and SciPy's maxiter (max_iters), maxfev (max_evals) and disp
    (progress). As SciPy has it, callback(x) gets the best point of the present search,
    callback(intermediate_result) an OptimizeResult, and StopIteration ends the run. Derivatives, constraints and tol
    are refused: they would not be used.
    """
    from esgroup.driver.minimize import minimize

    unused = {name: options.pop(name, None) for name in ("jac", "hess", "hessp", "constraints", "tol")}
    refuse("esgroup.scipy_method", unused)
    if maxiter is not None:
        options.setdefault("max_iters", maxiter)
    if maxfev is not None:
        options.setdefault("max_evals", maxfev)
    options.setdefault("progress", bool(disp))
    heard = scipy_callback(callback)
    told = None if heard is None else lambda search: heard(search.result)
    return minimize(fun, x0, args=args, bounds=bounds, callback=told, **options)


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
    """`scipy.optimize.minimize(fun, x0, jac=..., hessp=..., method=esgroup.newton_method, options={...})`.

    Options are the arguments of `esgroup.newton.minimize_newton`, and SciPy's maxiter (max_iters), maxfev (max_evals)
    and disp (progress); tol is gtol. As SciPy has it, callback(x) gets the best point, callback(intermediate_result)
    the result so far. Bounds and constraints are refused.
    """
    from esgroup.newton.method import minimize_newton

    refuse("esgroup.newton_method", {"bounds": bounds, "constraints": constraints})
    for name, value in (("gtol", tol), ("max_iters", maxiter), ("max_evals", maxfev)):
        if value is not None:
            options.setdefault(name, value)
    options.setdefault("progress", bool(disp))
    heard = scipy_callback(callback)
    return minimize_newton(fun, x0, args=args, jac=jac, hess=hess, hessp=hessp, callback=heard, **options)


def refuse(method: str, unused: dict[str, Any]) -> None:
    """An error for what was given and would not be used; SciPy hands over empty ones."""
    for name, given in unused.items():
        empty = isinstance(given, (tuple, list, dict)) and not given
        if given is not None and given is not False and not empty:
            raise ValueError(f"{method} does not use {name}: leave it out, got {given!r}")


def scipy_callback(callback: Callable[..., Any] | None) -> Callable[[OptimizeResult], None] | None:
    """A function of a result that calls back as SciPy does: by `intermediate_result`, or with the best point.

    What it returns does not matter: StopIteration ends a run.
    """
    if callback is None:
        return None
    by_result = _parameters(callback) == ["intermediate_result"]

    def tell(so_far: OptimizeResult) -> None:
        if by_result:
            callback(intermediate_result=so_far)
        else:
            callback(so_far.x)

    return tell


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:  # some that are written in C do not say
        return []
