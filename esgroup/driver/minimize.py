"""The search as one call, in SciPy's shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import fields
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar
from warnings import warn

import numpy as np

from esgroup import checks
from esgroup.driver.evaluate import Evaluate, evaluator
from esgroup.driver.restarted import Campaign
from esgroup.driver.resume import Keeper, resume_from
from esgroup.driver.spaces import Space, distribution_over, mixture_over
from esgroup.files.autosave import must_be_new
from esgroup.files.npz import Path
from esgroup.groups import Group
from esgroup.options import NAMES as OPTION_NAMES
from esgroup.options import Algorithm, Auto, Noise, StepSizeRule, documented
from esgroup.restarts import Restarts, as_restarts
from esgroup.running.interrupts import Interrupts
from esgroup.running.limits import parse_limits
from esgroup.search.arguments import generator
from esgroup.search.searcher import Searcher

if TYPE_CHECKING:
    from esgroup.newton.options import NewtonSettings
    from esgroup.running.result import NewtonResult, SearchResult

Observe = Callable[[Campaign], bool]
P = ParamSpec("P")
R = TypeVar("R")


def _old_newton_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let `minimize` take Newton's own options by their names, with a warning: since 0.2 they belong to `newton`."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        more = [name for name in kwargs if name not in known]
        if more:
            from esgroup.newton.options import NewtonSettings

            settings = [field.name for field in fields(NewtonSettings)]
            for name in more:
                if name not in settings or kwargs.get("method") != "newton":
                    hint = " without method='newton'" if name in settings else ""
                    raise TypeError(f"minimize() has no argument {name!r}{hint}")
            if kwargs.get("newton") is not None:
                raise TypeError(f"minimize() got newton= and, by its old spelling, {more[0]}=: put it into newton=")
            spelling = f"newton=NewtonSettings({more[0]}=...)"
            warn(f"minimize({more[0]}=...) is the old spelling of {spelling}", DeprecationWarning, stacklevel=2)
            kwargs["newton"] = NewtonSettings(**{name: kwargs.pop(name) for name in more})  # type: ignore[arg-type]
        return function(*args, **kwargs)

    return call


@_old_newton_arguments
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
    space: Space = "vector",
    basins: int | None = None,
    structure: Group | str = "auto",
    popsize: int | None = None,
    bounds: Any = None,
    algorithm: Algorithm = "default",
    decoding: bool | Auto = "auto",
    mirrored: bool = False,
    noise: Noise | None = None,
    step_size: StepSizeRule = "csa",
    cov0: Any = None,
    fixed: Any = None,
    integer: Any = None,
    rng: Any = None,
    max_evals: int | None = None,
    max_iters: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    restarts: Literal["ipop", "bipop"] | Restarts | None = None,
    vectorized: bool = False,
    workers: int | Callable[..., Iterable[Any]] | None = None,
    executor: Any = None,
    callback: Callable[[Searcher], Any] | None = None,
    progress: bool = False,
    history: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> SearchResult | NewtonResult:
    """Minimize a function.

    Parameters
    ----------
    fun
        fun(x, *args) returns a number, NaN if the evaluation failed. It gets an array of its own, which it may change
        and keep. If it raises, the values that had arrived are told, and the exception reaches the caller as it is.
    x0
        The start: a point, a distribution, another search or a strategy, as for `Searcher`.
    sigma0 : default None
        Standard deviation of the first points.
    method : default "search"
        "newton" is another optimiser altogether: structured Newton, for functions with a gradient. Everything below
        `newton` is about searches, which use values only.
    args : default ()
        Further arguments of fun.
    jac, hessp, hess, hess_diag : default None
        Of method="newton": the gradient and, if possible, products with the Hessian, the Hessian, its diagonal.
    newton : default None
        Of method="newton": further settings.
    space : default "vector"
        "spd": x0 is a positive-definite matrix, and a Wishart searches. "matrix": x0 is any matrix, and a matrix
        Gaussian searches. `sigma0` and `structure` then mean what `esgroup.driver.spaces.distribution_over` says.
    basins : default None
        Search for several optima at once with a mixture of so many Gaussians, spread over the bounds or around x0.
        `result.modes` has all that were found, the best first: point, value, and weight, the share of descents that
        ended there.
    {options}
    rng : default None
        A seed or a generator.
    max_evals, max_iters, max_time, target : default None
        When to stop: evaluations, generations, seconds, a value that is good enough. They hold over restarts.
    restarts : default None
        "ipop", "bipop", or `IPOP(...)`, `BIPOP(...)` of `esgroup.restarts`: when a search ends short of the target and
        of its budgets, another one begins elsewhere. `xmean` and `stds` of the result belong to the last one.
    vectorized : default False
        Whether fun gets the whole generation (n, dim) and returns n values.
    workers : default None
        A number of processes (-1: one per core), or a function like `map`, which returns values in the order of the
        points. Processes need a function that is defined at the top level of a module.
    executor : default None
        Anything with a method `submit`: a pool of threads or processes of concurrent.futures, or a Dask Client. The
        result does not depend on the order in which values arrive.
    callback : default None
        callback(search) gets the present Searcher after every generation. The run ends if it returns a true value or
        raises StopIteration.
    progress : default False
        Whether to show a line on a terminal.
    history : default None
        A file of JSON lines, one per generation, for plots.
    checkpoint : default None
        A file that is replaced after generations, as often as a tenth of the time allows, and always in the end,
        whatever ends the run. `Searcher.load` reads it too.
    resume : default False
        Continue from the checkpoint. With the same arguments the run comes to what the uninterrupted run would have
        come to, bit for bit; limits that are given replace the saved ones.

    Returns
    -------
    SearchResult or NewtonResult
        A `scipy.optimize.OptimizeResult`.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid: nothing has been evaluated.
    KeyboardInterrupt
        With the result so far as its attribute `result`.

    Examples
    --------
    >>> import esgroup
    >>> result = esgroup.minimize(lambda x: (x[0] - 1) ** 2 + 100 * x[1] ** 2, [0.0, 1.0], 0.5, target=1e-9, rng=1)
    >>> result.success
    True
    """
    given = locals()
    if method == "newton":
        from esgroup.newton.method import minimize_newton, newton_arguments

        others = {name: value for name, value in given.items() if name not in ("fun", "x0", "method", "newton")}
        return minimize_newton(fun, x0, **newton_arguments(minimize, others, newton))
    if method != "search":
        raise ValueError(f"method must be 'search' or 'newton', got {method!r}")
    for name in ("jac", "hessp", "hess", "hess_diag", "newton"):
        if given[name] is not None:
            raise ValueError(f"{name} is not used by a search: leave it out, or choose method='newton'")
    limits = parse_limits(max_evals, max_iters, max_time, target)
    options = {name: given[name] for name in OPTION_NAMES}
    if space != "vector" or basins is not None:
        rng = generator(rng)
        if basins is None:
            x0 = distribution_over(space, x0, sigma0, structure)
        else:
            x0 = mixture_over(basins, space, x0, sigma0, structure, bounds, rng)
        sigma0, options["structure"] = None, "auto"
    first = Searcher(x0, sigma0, rng=rng, **limits._asdict(), **options)
    campaign = Campaign(first, _restarts(restarts, x0))
    if checks.flag("resume", resume):
        resume_from(checkpoint, campaign)
    else:
        must_be_new(checkpoint)
    with ExitStack() as stack:
        evaluate = stack.enter_context(evaluator(fun, args, vectorized=vectorized, workers=workers, executor=executor))
        observe = _observer(stack, callback, checks.flag("progress", progress), history, resume)
        return _run(campaign, evaluate, observe, Keeper(checkpoint))


def _restarts(restarts: Any, x0: Any) -> Restarts | None:
    strategy = as_restarts(restarts)
    if strategy is not None and np.ndim(x0) != 1:
        raise ValueError(f"restarts are for searches over vectors from a point, got {type(x0).__name__}")
    return strategy


# ---- the run ----------------------------------------------------------------------------------------------------


def _run(campaign: Campaign, evaluate: Evaluate, observe: Observe, keeper: Keeper) -> SearchResult:
    """All generations of all runs; what is known is on file whatever happens."""
    keeper.write(campaign)  # a path that does not work is noticed before the first evaluation
    with Interrupts() as interrupts:
        try:
            _search(campaign, evaluate, observe, keeper, interrupts)
            campaign.tell_torn()  # if new limits have ended the run before the generation was whole
            keeper.write(campaign)
            interrupts.let_through()
        except BaseException as error:
            keeper.write_after(error, campaign)
            if isinstance(error, KeyboardInterrupt):
                error.result = campaign.result  # type: ignore[attr-defined]
            raise
    return campaign.result


def _search(campaign: Campaign, evaluate: Evaluate, observe: Observe, keeper: Keeper, interrupts: Interrupts) -> None:
    while True:
        while not (reasons := campaign.stop()):
            _generation(campaign, evaluate, interrupts)
            with interrupts.allowed():
                wanted = observe(campaign)
            if not wanted:
                campaign.ended["callback"] = "the callback asked for it"
            keeper.write_if_cheap(campaign)
        if not campaign.go_on(reasons):
            return


def _generation(campaign: Campaign, evaluate: Evaluate, interrupts: Interrupts) -> None:
    X = campaign.ask()
    arrived: dict[int, Any] = {}
    try:
        with interrupts.allowed():
            values = evaluate(X, arrived)
        campaign.tell(values)
    except BaseException:
        campaign.rescue(arrived)
        raise


def _observer(stack: ExitStack, callback: Any, progress: bool, history: Path | None, resume: bool) -> Observe:
    """What happens after a generation: history, progress, callback; false if the callback wants no more."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Searcher, got {callback!r}")
    shows: list[Callable[[Campaign], None]] = []
    if history is not None:
        from esgroup.running.history import History

        shows.append(stack.enter_context(History(history, append=resume)).record)
    if progress:
        from esgroup.running.progress import Progress

        line = stack.enter_context(Progress())
        shows.append(lambda c: line.update(c, c.limits.max_evals, c.limits.target, c.limits.max_time))
    return partial(_observe, shows, callback)


def _observe(shows: list[Callable[[Campaign], None]], callback: Any, campaign: Campaign) -> bool:
    for show in shows:
        show(campaign)
    try:
        return callback is None or not callback(campaign.search)
    except StopIteration:
        return False
