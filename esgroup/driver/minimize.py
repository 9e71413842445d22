"""The search as one call, in SciPy's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from esgroup import checks
from esgroup.driver.evaluate import Evaluate, evaluator
from esgroup.driver.restarted import Campaign
from esgroup.driver.resume import Keeper, resume_from
from esgroup.driver.spaces import Space, distribution_over, mixture_over
from esgroup.files.autosave import must_be_new
from esgroup.files.npz import Path
from esgroup.groups import Group
from esgroup.restarts import Restarts, as_restarts
from esgroup.running.interrupts import Interrupts
from esgroup.running.limits import parse_limits
from esgroup.search.arguments import generator
from esgroup.search.searcher import Searcher

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Observe = Callable[[Campaign], bool]


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
    space: Space = "vector",
    basins: int | None = None,
    structure: Group | str = "auto",
    popsize: int | None = None,
    bounds: Any = None,
    algorithm: str = "default",
    decoding: bool | str = "auto",
    mirrored: bool = False,
    noise: str | None = None,
    cov0: Any = None,
    fixed: Any = None,
    integer: Any = None,
    rng: Any = None,
    max_evals: int | None = None,
    max_iters: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    restarts: str | Restarts | None = None,
    vectorized: bool = False,
    workers: int | Callable[..., Iterable[Any]] | None = None,
    executor: Any = None,
    callback: Callable[[Searcher], Any] | None = None,
    progress: bool = False,
    history: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    **newton: Any,
) -> OptimizeResult:
    """Minimize fun(x, *args) and return a `scipy.optimize.OptimizeResult`.

    `method="newton"` is another optimiser altogether: structured Newton, for functions with a gradient `jac` and, if
    possible, products with the Hessian (`hessp`, `hess`, `hess_diag`); its further arguments are those of
    `esgroup.newton.minimize_newton`. All that follows is about searches, which use values only.

    `x0` to `target` are the arguments of `Searcher`. NaN is the value of a failed evaluation. The objective gets an
    array of its own, which it may change and keep. If it raises, the values that had arrived are told, and the
    exception reaches the caller as it is.

    With `space="spd"` x0 is a positive-definite matrix and a Wishart searches, with `space="matrix"` any matrix and a
    matrix Gaussian (see `space_start.py` for what `sigma0` and `structure` are there). `basins=K` looks for several
    optima at once with a mixture of K Gaussians, spread over the bounds or around x0; `result.modes` has all that were
    found, the best first: point, value, and weight, the share of descents that ended there.

    `restarts`: "ipop", "bipop", or `IPOP(...)`, `BIPOP(...)` of `esgroup.restarts`: when a search ends short of the
    target and of its budgets, another one begins elsewhere. The budgets and counts are those of all runs together;
    `xmean` and `stds` of the result belong to the last one.

    Where to evaluate: `vectorized=True`, fun gets the whole generation (n, dim) and returns n values; `workers`, a
    number of processes (-1: one per core) or a function like `map`, which returns values in the order of the points;
    `executor`, anything with a method `submit`: a pool of threads or processes of concurrent.futures, or a Dask Client.
    Processes need a function that is defined at the top level of a module. The result does not depend on the order in
    which values arrive.

    After every generation `callback(search)` gets the present Searcher; if it returns something true or raises
    StopIteration, the run ends. `progress=True` shows a line on a terminal. `history` is a file of JSON lines, one per
    generation, for plots.

    `checkpoint` is a file that is replaced after generations, as often as a tenth of the time allows, and always in the
    end, whatever ends the run; `Searcher.load` reads it too. `resume=True` goes on from it, and with the same arguments
    comes to what the uninterrupted run would have come to, bit for bit; limits that are given replace the saved ones.
    A KeyboardInterrupt carries the result so far as its attribute `result`.
    """
    given = {name: value for name, value in locals().items() if name not in ("fun", "x0", "method", "newton")}
    if method == "newton":
        from esgroup.newton.method import minimize_newton, newton_arguments

        return minimize_newton(fun, x0, **newton_arguments(minimize, given, newton))
    if method != "search":
        raise ValueError(f"method must be 'search' or 'newton', got {method!r}")
    _refuse_for_search({"jac": jac, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}, newton)
    limits = parse_limits(max_evals, max_iters, max_time, target)
    if space != "vector" or basins is not None:
        rng = generator(rng)
        if basins is None:
            x0 = distribution_over(space, x0, sigma0, structure)
        else:
            x0 = mixture_over(basins, space, x0, sigma0, structure, bounds, rng)
        sigma0, structure = None, "auto"
    options: dict[str, Any] = {
        "structure": structure,
        "bounds": bounds,
        "algorithm": algorithm,
        "decoding": decoding,
        "mirrored": mirrored,
        "noise": noise,
        "cov0": cov0,
        "fixed": fixed,
        "integer": integer,
    }
    first = Searcher(x0, sigma0, popsize=popsize, rng=rng, **limits._asdict(), **options)
    campaign = Campaign(first, _restarts(restarts, x0))
    if checks.flag("resume", resume):
        resume_from(checkpoint, campaign)
    else:
        must_be_new(checkpoint)
    with ExitStack() as stack:
        evaluate = stack.enter_context(evaluator(fun, args, vectorized=vectorized, workers=workers, executor=executor))
        observe = _observer(stack, callback, checks.flag("progress", progress), history, resume)
        return _run(campaign, evaluate, observe, Keeper(checkpoint))


def _refuse_for_search(derivatives: dict[str, Any], more: dict[str, Any]) -> None:
    """A search uses no derivatives, and has no arguments that it does not name."""
    for name, value in derivatives.items():
        if value is not None:
            raise ValueError(f"{name} is not used by a search: leave it out, or choose method='newton'")
    for name in more:
        from esgroup.newton.method import is_known

        hint = " without method='newton'" if is_known(name) else ""
        raise TypeError(f"minimize() has no argument {name!r}{hint}")


def _restarts(restarts: Any, x0: Any) -> Restarts | None:
    strategy = as_restarts(restarts)
    if strategy is not None and np.ndim(x0) != 1:
        raise ValueError(f"restarts are for searches over vectors from a point, got {type(x0).__name__}")
    return strategy


# ---- the run ----------------------------------------------------------------------------------------------------


def _run(campaign: Campaign, evaluate: Evaluate, observe: Observe, keeper: Keeper) -> OptimizeResult:
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

        shows.append(stack.enter_context(History(history, append=resume)).record)  # type: ignore[arg-type]
    if progress:
        from esgroup.running.progress import Progress

        line = stack.enter_context(Progress())
        shows.append(lambda c: line.update(c, c.limits.max_evals, c.limits.target, c.limits.max_time))  # type: ignore[arg-type]
    return partial(_observe, shows, callback)


def _observe(shows: list[Callable[[Campaign], None]], callback: Any, campaign: Campaign) -> bool:
    for show in shows:
        show(campaign)
    try:
        return callback is None or not callback(campaign.search)
    except StopIteration:
        return False
