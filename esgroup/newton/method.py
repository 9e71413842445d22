"""Structured Newton as one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from esgroup import checks
from esgroup.gradients.function import PROBES
from esgroup.groups import Group
from esgroup.newton.derivatives import products_of
from esgroup.newton.moving import Moving
from esgroup.newton.options import CLIP, DECAY, options
from esgroup.newton.result import result
from esgroup.newton.run import Run, begin
from esgroup.newton.schedules import Schedule
from esgroup.newton.watching import watcher
from esgroup.running.limits import parse_limits

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


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
    form: str = "precision",
    rate: float | None = None,
    mean_rate: float | None = None,
    schedule: Schedule | str | Callable[[int], float] = "constant",
    momentum: float = 0.0,
    line_search: str = "armijo",
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
    callback: Callable[[OptimizeResult], Any] | None = None,
    progress: bool = False,
) -> OptimizeResult:
    """Minimize fun(x, *args) with its gradient and a few products with its Hessian; a `scipy.optimize.OptimizeResult`.

    S = B B^T estimates the Hessian H, with B in the group `structure` (paper, sections 3.2, 4; at the mean, gamma = 1):

        B <- B h(rate C (.) kappa(B^-1 H B^-T - I)),     x <- x - mean_rate S^-1 g   with the new B

    What is known of fun is said as in SciPy: `jac(x)`, or True if fun returns both; `hessp(x, v)`, or `hess(x)`;
    `hess_diag(x)` is the Hessian's diagonal, otherwise estimated from `probes` random products. Without hessp and hess
    the products are differences of gradients. An iteration takes a gradient, as many products as the structure's hub
    has coordinates (k1 + k2 for Heisenberg) and a diagonal.

    `structure`: "moving:k=10", a block of k coordinates that follows the iteration and needs no knowledge (`Moving`),
    or a group or its spelling, such as "heisenberg": fewer products and iterations where its hub is the right one.
    `form`: "covariance" has S^-1 = A A^T. `rate`: 0.9. `mean_rate`: 1, or `rate` without a line search. `schedule`:
    "constant", "linear" (to 0.01 at max_iters), "inverse", "exponential", a `Schedule` or a function of t = 1, 2, ...:
    factors of both rates. `momentum` c: the mean moves along Z_t = (1 - c) g_t + c Z_{t-1}. `line_search`: "armijo", or
    "none" for the paper's plain iteration. `clip` bounds the argument of h, `absolute` takes |X| where curvature is
    negative. `damping`: mu = damping max|H_ii(x0)| min(damping_decay^t, |g| / |g_0|) is added to H; 10 for the moving
    block, else 0. `precision0`: S begins at precision0 I, by default max|H_ii(x0)| I. The moving block has no rate,
    clip, absolute and precision0.

    It ends when max|g_i| <= gtol, at the `target`, at max_evals values of fun, max_iters iterations (200 dim, as in
    SciPy) or max_time seconds, when `callback(result so far)` returns something true or raises StopIteration, and when
    it cannot go on; the best point is in the result in any case, and the reason in `stop` and `message`. A
    KeyboardInterrupt carries the result so far as its attribute `result`.
    """
    start = checks.real_array("x0", x0, (None,)).copy()
    if len(start) == 0:
        raise ValueError("x0 must have at least one coordinate, got none")
    chosen = options(
        len(start),
        structure=structure,
        form=form,
        rate=rate,
        mean_rate=mean_rate,
        schedule=schedule,
        momentum=momentum,
        line_search=line_search,
        clip=clip,
        absolute=absolute,
        damping=damping,
        damping_decay=damping_decay,
        precision0=precision0,
        gtol=gtol,
        max_iters=max_iters,
    )
    limits = parse_limits(max_evals, 200 * len(start) if max_iters is None else max_iters, max_time, target)
    function = products_of(
        fun,
        len(start),
        args=args,
        jac=jac,
        hessp=hessp,
        hess=hess,
        hess_diag=hess_diag,
        hessp_vectorized=hessp_vectorized,
        probes=probes,
    )
    with ExitStack() as stack:
        watch = watcher(stack, callback, checks.flag("progress", progress))
        return _run(begin(function, start, chosen, limits, np.random.default_rng(rng)), watch)


def _run(run: Run, watch: Callable[[Run], bool]) -> OptimizeResult:
    try:
        while not run.reasons:
            run.iterate()
            if run.reasons:
                break
            run.check()
            if not watch(run):
                run.reasons["callback"] = "the callback asked for it"
    except KeyboardInterrupt as interrupt:
        interrupt.result = result(run)  # type: ignore[attr-defined]
        raise
    return result(run)
