"""`minimize`: a whole search in one call, with the interface of scipy.optimize.minimize."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.driver.asynchronous import Asynchronous
from esgroup.driver.constraints import Constraints, parse_constraints
from esgroup.driver.evaluate import Evaluation, objective
from esgroup.driver.failures import Failures, OnError
from esgroup.driver.generations import Generations
from esgroup.driver.resume import SearchWriter
from esgroup.driver.spaces import SpaceName, distribution_over, mixture_over
from esgroup.driver.unfinished import Unfinished
from esgroup.files.autosave import must_be_new, must_differ, must_exist
from esgroup.files.npz import Path
from esgroup.groups import Group
from esgroup.groups.spelling import follows
from esgroup.options import DEFAULT_MODEL, Algorithm, Auto, Model, Noise, StepSizeRule, chosen, documented
from esgroup.options import NAMES as OPTION_NAMES
from esgroup.restarts import Restarts
from esgroup.running.loop import run_to_end
from esgroup.running.observers import Observer, as_observers
from esgroup.search.arguments import generator, refuse_start
from esgroup.search.searcher import Searcher
from esgroup.space import Space
from esgroup.stopping.base import Stop
from esgroup.stopping.budgets import parse_limits

if TYPE_CHECKING:
    from esgroup.newton.options import NewtonSettings
    from esgroup.running.result import NewtonResult, SearchResult


@checks.explained
@documented
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    sigma0: Any = None,
    *,
    method: Literal["search", "newton"] = "search",
    args: tuple[Any, ...] = (),
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    newton: NewtonSettings | None = None,
    space: SpaceName = "vector",
    basins: int | None = None,
    structure: Group | str = "auto",
    popsize: int | None = None,
    bounds: Any = None,
    algorithm: Algorithm = "default",
    decoding: bool | Auto = "auto",
    mirrored: bool = False,
    noise: Noise | None = None,
    step_size: StepSizeRule = "csa",
    model: Model | None = DEFAULT_MODEL,
    cov0: Any = None,
    fixed: Any = None,
    integer: Any = None,
    constraints: Any = (),
    constraint_tol: float | list[Any] | tuple[Any, ...] | Array = 1e-6,
    rng: Any = None,
    max_evals: int | None = None,
    max_iters: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    stop: Stop = (),
    restarts: Literal["ipop", "bipop"] | Restarts | None = None,
    vectorized: bool = False,
    workers: int | Callable[..., Iterable[Any]] | None = None,
    executor: Any = None,
    asynchronous: bool = False,
    max_pending: int | None = None,
    on_error: OnError = "raise",
    max_failures: int | None = None,
    eval_timeout: float | None = None,
    callback: Callable[[Searcher], Any] | Observer | None = None,
    progress: bool = False,
    history: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> SearchResult | NewtonResult:
    """Minimize a function.

    Parameters
    ----------
    fun
        fun(x, *args) returns a number, or NaN if the evaluation failed. It receives its own copy of the point, which it
        may change and keep. `on_error` says what happens if it raises; sys.exit() in it becomes a RuntimeError.
    x0
        The start: a point, a `Space` of named parameters, a distribution, another search or a strategy, as for
        `Searcher`. With a `Space`, fun receives a dict, and points of the result are dicts.
    sigma0 : default None
        Standard deviation of the first points: about a quarter of the width of the region in which you expect the
        minimum, one number or one per variable. By default it is a quarter of the range between finite bounds,
        elsewhere 0.3 max|x0|, or 1 if x0 is 0. With a `Space`, a mapping of names to widths or a factor for all widths.
    method : default "search"
        "search" uses only values. "newton" is a different optimizer, structured Newton, for functions with a gradient;
        of the arguments after `newton` it uses structure, rng, the limits, callback and progress.
    args : default ()
        Additional arguments of fun.
    jac, hessp, hess, hess_diag : default None
        For method="newton": the gradient and, if available, Hessian-vector products, the Hessian or its diagonal.
    newton : default None
        For method="newton": additional settings.
    space : default "vector"
        "spd": x0 is a positive-definite matrix, and the search uses a Wishart distribution. "matrix": x0 is any matrix,
        and the search uses a matrix Gaussian. See `esgroup.driver.spaces.distribution_over` for the meaning of `sigma0`
        and `structure`, except that a frame covers all entries.
    basins : default None
        Search for several optima at once with a mixture of this many Gaussians, spread over the bounds or around x0.
        `result.modes` lists the optima found, best first: point, value, and weight, the share of descents that ended
        there.
    {options}
    constraints : default ()
        SciPy's NonlinearConstraint and LinearConstraint (lb <= c(x) <= ub, an equality where lb = ub) and SciPy's dicts
        ("ineq": c(x) >= 0, "eq": c(x) = 0), one or a list. Each point is evaluated with all its constraints; each
        function is also called once at x0, to find out how many values it returns. With keep_feasible=True, which needs
        a cheap inequality and an x0 that satisfies it, no point that violates it is evaluated. Derivatives are not
        used.
    constraint_tol : default 1e-6
        How much a constraint may be violated, in its own units, and still count as satisfied: one number, or a list
        with one entry per constraint, a number or an array with one number per component.
    rng : default None
        A seed or a generator.
    max_evals, max_iters, max_time, target : default None
        When to stop: evaluations, generations, seconds, a value that is good enough. They apply to all restarts
        together. There are never more than `max_evals` evaluations, and none starts after `max_time`.
    stop : default ()
        Additional stopping rules, one or a list: rules of `esgroup.stopping`, such as TolX(1e-6), or functions of the
        Searcher that return a string or True to stop it. They are checked from the end of the first generation on. With
        restarts, tolerances end the current run, and all others end the search. Pass them again to resume a run.
    restarts : default None
        "ipop", "bipop", or `IPOP(...)`, `BIPOP(...)` from `esgroup.restarts`: if a run ends before it reaches the
        target or a budget, another one starts elsewhere. `xmean` and `stds` of the result are from the last run.
    vectorized : default False
        Whether fun receives a whole generation, an array of shape (n, dim), and returns n values. With `workers` or
        `executor`, each call receives one point, an array of shape (1, dim).
    workers : default None
        The number of processes (-1: one per core), or a function like `map` that returns values in the order of the
        points. Processes need a function defined at the top level of a module, or cloudpickle.
    executor : default None
        Anything with a method `submit`: a thread or process pool from concurrent.futures, or a Dask Client. The result
        does not depend on the order in which values arrive, unless `asynchronous` is set.
    asynchronous : default False
        Whether to submit a new point whenever a value arrives, rather than after a whole generation, so that no worker
        waits for another: for evaluations that take different times. Needs `workers` or `executor`. The same values in
        the same order give the same result.
    max_pending : default None
        With `workers` or `executor`: how many points are pending at a time, by default one per worker (one generation
        if an executor does not report its number of workers). More than a few generations cost extra evaluations.
    on_error : default "raise"
        What to do with an exception in fun. "raise": raise it, with the result so far as its attribute `result`. "nan":
        count a failed evaluation, as if the value were NaN. Or the exception types that count as failed evaluations;
        all others are raised.
    max_failures : default None
        How many failed evaluations in a row end the search.
    eval_timeout : default None
        Seconds allowed for one evaluation, with `workers` or `executor`; one that takes longer has failed, regardless
        of `on_error`. A process of `workers` is terminated together with everything it started, and replaced. On an
        executor the evaluation continues; its value is ignored, and its slot counts as lost until it ends.
    callback : default None
        callback(search) receives the current Searcher after every generation. The run ends if it returns a true value
        or raises StopIteration. Or an `esgroup.Observer`, which is also notified when the run begins and ends.
    progress : default False
        Whether to show a progress bar on a terminal.
    history : default None
        A file of JSON lines, one per generation, for plots. If the disk is full, the run warns and continues.
    checkpoint : default None
        A file that is rewritten after generations, using at most a tenth of the running time, and always at the end,
        however the run ends. `Searcher.load` can read it, too.
    resume : default False
        Continue from the checkpoint. With the same arguments the result equals that of an uninterrupted run bit for
        bit, on the same machine with the same versions and number of BLAS threads; limits that you pass replace the
        saved ones. A different x0, sigma0, cov0, popsize or seed is an error; generators cannot be compared.

    Returns
    -------
    SearchResult or NewtonResult
        A `scipy.optimize.OptimizeResult`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; nothing has been evaluated then.
    Exception, KeyboardInterrupt
        Whatever interrupts the run, such as an exception in fun or Ctrl-C; its attribute `result` is the result so far.

    Examples
    --------
    >>> import esgroup
    >>> f = lambda x: (x[0] - 1) ** 2 + 100 * x[1] ** 2
    >>> result = esgroup.minimize(f, [0.0, 1.0], 0.5, target=1e-9, rng=1)
    >>> result.success
    True
    """
    given = locals()
    if not callable(fun) and callable(x0):
        raise TypeError(f"fun must be a function of a point, got {checks.shown(fun)}: fun comes first, then x0")
    refuse_start(x0, bounds, matrices=True)
    for name in ("history", "checkpoint"):
        if not isinstance(given[name], str | PathLike | None):
            raise TypeError(f"{name} must be a path, got {given[name]!r}")
    if method == "newton" and isinstance(x0, Space):
        raise ValueError("method='newton' is for vectors, got a Space: leave method out to search it")
    if method == "newton":
        from esgroup.newton.method import minimize_newton, newton_arguments

        others = {name: value for name, value in given.items() if name not in ("fun", "x0", "method", "newton")}
        return minimize_newton(fun, x0, **newton_arguments(minimize, others, newton))
    if method != "search":
        raise ValueError(f"method must be 'search' (a relative of CMA-ES) or 'newton', got {method!r}")
    for name in ("jac", "hessp", "hess", "hess_diag", "newton"):
        if given[name] is not None:
            raise ValueError(f"{name} is not used by a search: leave it out, or choose method='newton'")
    must_differ({"history": history, "checkpoint": checkpoint})
    limits = parse_limits(max_evals, max_iters, max_time, target)
    constrained = _constraints(constraints, x0, bounds)
    call, failures = constrained.beside(objective(fun, args), vectorized=vectorized), Failures(on_error, max_failures)
    evaluation = Evaluation(call, failures, vectorized, workers, executor, eval_timeout, max_pending, asynchronous)
    options = {name: given[name] for name in OPTION_NAMES}
    if space != "vector" or basins is not None:
        rng = generator(rng)
        if basins is None:
            turns = follows(structure)  # over all entries; other structures belong to the distribution
            x0 = distribution_over(space, x0, sigma0, "auto" if turns else structure)
            options["structure"] = structure if turns else "auto"
        elif restarts is not None:
            raise ValueError("restarts cannot be combined with basins, whose descents restart by themselves")
        else:
            x0 = mixture_over(basins, space, x0, sigma0, chosen(options), rng)
            options = {"model": options["model"]}
        sigma0 = None
    ranking = constrained.ranking(constraint_tol)
    more: dict[str, Any] = {"constraints": ranking, "rng": rng, "stop": stop, "restarts": restarts}
    unfinished = Unfinished(Searcher(x0, sigma0, **more, **limits._asdict(), **options))
    observers: list[Observer] = []
    if history is not None:
        from esgroup.running.history import History

        observers.append(History(history, append=resume))
    if checks.flag("progress", progress):
        from esgroup.running.progress import Progress

        observers.append(Progress())
    observers += as_observers(callback, "Searcher")
    if checks.flag("resume", resume):
        must_exist(checkpoint, "search")
    else:
        must_be_new(checkpoint)
    if checkpoint is not None:
        observers.append(writer := SearchWriter(checkpoint, given, unfinished))
        if resume:
            writer.resume()
    unfinished.search.accepts = constrained.kept
    kind = Asynchronous if asynchronous else Generations
    with ExitStack() as stack:
        return run_to_end(kind(evaluation, unfinished, constrained, stack), observers)


def _constraints(constraints: Any, x0: Any, bounds: Any) -> Constraints:
    """Read constraints on the points of a search that starts at x0."""
    if constraints is None or (isinstance(constraints, (list, tuple)) and not constraints):
        return Constraints()
    start = x0 if isinstance(x0, (list, tuple, np.ndarray)) else Searcher(x0).result.xmean
    return parse_constraints(constraints, start, bounds=bounds)
