"""Structured Newton as one call, and how `esgroup.minimize` passes its arguments to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from esgroup import checks
from esgroup.distributions.gaussian import Form
from esgroup.gradients.differences import with_difference_products
from esgroup.gradients.function import PROBES, Products, as_function, with_args
from esgroup.groups import Group
from esgroup.newton.budget import CallBudget
from esgroup.newton.moving import Moving
from esgroup.newton.options import CLIP, LineSearchName, NewtonSettings, ScheduleName, parse_options
from esgroup.newton.run import NewtonRun, begin_run
from esgroup.newton.steps import DECAY, RateSchedule
from esgroup.running.loop import run_to_end
from esgroup.running.observers import Observer, as_observers
from esgroup.running.progress import Progress
from esgroup.stopping.budgets import parse_limits

if TYPE_CHECKING:
    from esgroup.running.result import NewtonResult


@checks.explained
def minimize_newton(
    fun: Callable[..., Any],
    x0: Any,
    *,
    args: tuple[Any, ...] = (),
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    hessp_vectorized: bool = False,
    probes: int = PROBES,
    structure: Group | Moving | str = "moving:k=10",
    form: Form = "precision",
    rate: float | None = None,
    mean_rate: float | None = None,
    schedule: RateSchedule | ScheduleName | Callable[[int], float] = "constant",
    momentum: float = 0.0,
    line_search: LineSearchName = "armijo",
    clip: float | None = CLIP,
    absolute: bool = True,
    damping: float | None = None,
    damping_decay: float = DECAY,
    precision0: float | None = None,
    rng: Any = None,
    max_evals: int | None = None,
    max_iters: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    gtol: float = 1e-5,
    callback: Callable[[NewtonResult], Any] | Observer | None = None,
    progress: bool = False,
) -> NewtonResult:
    """Minimize a function using its gradient and a few products with its Hessian.

    S = B B^T estimates the Hessian H, with B in the group `structure` (paper, sections 3.2, 4; at the mean, gamma = 1):

        B <- B h(rate C (.) kappa(B^-1 H B^-T - I)),     x <- x - mean_rate S^-1 g

    with the new B. An iteration evaluates one gradient, one product for each coordinate of the structure's hub (k1 + k2
    for Heisenberg), one diagonal, and the values of the line search.

    Parameters
    ----------
    fun : callable
        The function fun(x, *args), which returns a float.
    x0 : array_like, shape (dim,)
        The starting point.
    args : tuple
        Further arguments of fun, jac, hessp, hess and hess_diag.
    jac : callable or True
        The gradient jac(x, *args); True if fun returns (value, gradient).
    hessp : callable, optional
        Products with the Hessian, hessp(x, v, *args). Without hessp and hess, differences of gradients are used.
    hess : callable, optional
        The whole Hessian hess(x, *args), instead of hessp.
    hess_diag : callable, optional
        The diagonal of the Hessian, hess_diag(x, *args). Without it the diagonal is estimated from random products.
    hessp_vectorized : bool
        Whether hessp accepts several vectors as the rows of v and returns their products as rows.
    probes : int
        Number of random products used to estimate a diagonal.
    structure : Group, Moving or str
        "moving:k=10" is a block of k variables that is chosen anew in every iteration and needs no knowledge of the
        function (see `Moving`). A group or its spelling, such as "heisenberg", takes fewer products and iterations if
        its hub consists of the right variables.
    form : {"precision", "covariance"}
        "covariance" parametrizes the inverse instead: S^-1 = A A^T with A in the group.
    rate : float, optional
        Step size of the update of B, 0.9 by default.
    mean_rate : float, optional
        Step size of x: 1 by default, or `rate` without a line search.
    schedule : RateSchedule, str or callable
        Factors on both rates: "constant", "linear" (to 0.01 at max_iters), "inverse", "exponential", a `RateSchedule`,
        or a function of the iteration t = 1, 2, ...
    momentum : float
        c in Z_t = (1 - c) g_t + c Z_{t-1}, along which x moves instead of g; at least 0 and below 1.
    line_search : {"armijo", "none"}
        "none" is the plain iteration of the paper.
    clip : float or None
        Bound on the largest entry of the argument of h.
    absolute : bool
        Whether X = B^-1 H B^-T is replaced by |X|, so that negative curvature counts by its size.
    damping : float, optional
        mu = damping max|H_ii(x0)| min(damping_decay^t, |g| / |g_0|) times the identity is added to H. By default 10 for
        the moving block and 0 for groups.
    damping_decay : float
        See `damping`; at least 0 and below 1.
    precision0 : float, optional
        S starts at precision0 I, by default at max|H_ii(x0)| I.
    rng : seed or numpy.random.Generator, optional
        Source of the random products for estimated diagonals.
    max_evals, max_iters : int, optional
        Limits on the calls of fun, including those for gradients if jac is True, and on the iterations. max_iters
        defaults to 200 dim, as in SciPy.
    max_time : float, optional
        Time limit in seconds.
    target : float, optional
        The run ends at a value at or below this one.
    gtol : float
        The run ends when max|g_i| <= gtol min(1, max|H_ii|): if a function is scaled by a small factor, or flat at the
        start, a small gradient does not mean that it is solved.
    callback : callable or Observer, optional
        Called after every iteration with the result so far. The run ends if it returns a true value or raises
        StopIteration. Or an `Observer`, whose `run` is the `NewtonRun`.
    progress : bool
        Whether to show a progress line on a terminal.

    Returns
    -------
    NewtonResult
        A `scipy.optimize.OptimizeResult`. It has the best point `x` with `fun` and `jac`, however the run ended; `stop`
        maps the names of the stop reasons to their texts, which `message` joins; `success` and `status` are as for
        searches. `hess_inv` is S^-1 as a linear operator; `nit`, `nfev`, `njev`, `nhvp`, `ndiag` and `nhess` count
        iterations and evaluations.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, or the structure does not use it: the moving block has no rate, clip, absolute or
        precision0.
    Exception, KeyboardInterrupt
        Any exception that ends a run in progress; its attribute `result` is the result so far.

    Examples
    --------
    >>> from scipy.optimize import rosen, rosen_der, rosen_hess_prod
    >>> from esgroup.newton import minimize_newton
    >>> derivatives = {"jac": rosen_der, "hessp": rosen_hess_prod}
    >>> minimize_newton(rosen, [0.5, 1.5, 0.3], **derivatives).success
    True
    """
    given = locals()
    start = checks.real_array("x0", x0, (None,)).copy()
    if len(start) == 0:
        raise ValueError("x0 must have at least one variable, got none")
    settings = NewtonSettings(**{one.name: given[one.name] for one in fields(NewtonSettings)})
    options = parse_options(settings, structure, len(start), max_iters)
    limits = parse_limits(max_evals, 200 * len(start) if max_iters is None else max_iters, max_time, target)
    budget = CallBudget(limits)
    names = ("fun", "jac", "hessp", "hess", "hess_diag")
    guarded = {name: budget.guarded(given[name], counts=name == "fun") for name in names}
    function = _with_products(guarded, len(start), args, settings)
    observers: list[Observer] = [Progress()] if checks.flag("progress", progress) else []
    observers += as_observers(callback, "result", NewtonRun.result)
    return run_to_end(begin_run(function, start, options, np.random.default_rng(rng), budget), observers)


def _with_products(given: dict[str, Any], dim: int, args: Any, settings: NewtonSettings) -> Products:
    """`as_function`, with differences of gradients instead of products if neither hessp nor hess is given."""
    if not given["jac"]:
        raise ValueError(f"jac must be given, since structured Newton needs the gradient, got {given['jac']!r}")
    known = given | {"args": args, "hessp_vectorized": settings.hessp_vectorized}
    if given["hessp"] is None and given["hess"] is None:
        diagonal = known.pop("hess_diag")
        plain: Any = as_function(dim=dim, **known)
        diagonal = None if diagonal is None else with_args("hess_diag", diagonal, args)
        return with_difference_products(plain, hess_diag=diagonal, probes=settings.probes)
    function = as_function(dim=dim, probes=settings.probes, **known)
    assert isinstance(function, Products)  # since there is hessp or hess
    return function


# ---- esgroup.minimize(method="newton") ----------------------------------------------------------------------------


def newton_arguments(
    caller: Callable[..., Any], given: Mapping[str, Any], settings: NewtonSettings | None
) -> dict[str, Any]:
    """Return the arguments for `minimize_newton`: the settings, and what in `given` differs from `caller`'s defaults.

    An argument that only searches have must be at its default.
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(caller).parameters.items()}
    chosen = {name: value for name, value in given.items() if not _is_default(value, defaults[name])}
    known = inspect.signature(minimize_newton).parameters
    for name, value in chosen.items():
        if name not in known:
            raise ValueError(f"{name} is an option of searches: leave it out with method='newton', got {value!r}")
    if settings is not None:
        checks.instance("newton", settings, NewtonSettings)
        chosen |= {field.name: getattr(settings, field.name) for field in fields(settings)}
    return chosen


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
