"""Variational inference as one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.files.autosave import must_be_new
from esgroup.files.npz import Path
from esgroup.gradients.estimators import Estimator, Pathwise, Reinforce, Stein
from esgroup.gradients.function import Gradients, Products, Values
from esgroup.running.interrupts import Interrupts
from esgroup.variational.fit import Best, Fit
from esgroup.variational.fit_file import FitKeeper, resume_from
from esgroup.variational.iteration import Estimate, Objective
from esgroup.variational.posterior import Posterior
from esgroup.variational.schedule import Schedule, empty_window
from esgroup.variational.target import Target, make_target
from esgroup.variational.watching import FitHistory, FitProgress

SAMPLES = 10  # draws of a component per iteration, by default
SAMPLES_OF_VALUES = 40  # the same if there are values only
RATE = 0.5  # the first step size; the schedule halves it in time
# The same for several components. In heavy tails the Hessian has the wrong sign at most points, and an axis of a
# component can run away; a small rate makes that rarer, but does not exclude it with few samples. On mixtures of
# Student's t distributions (20 variables, 10 full components, Stein) it happened with 4 samples at 0.5 and at 0.1, and
# in none of four fits with 10 samples at 0.1, nor in four with Pathwise.
RATE_OF_SEVERAL = 0.1
MOVING = "the mean is still moving: start nearer, e.g. at the minimum of -logp, or allow more iterations"


def fit_posterior(
    logp: Callable[..., Any],
    x0: Any = None,
    *,
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    family: Gaussian | Mixture | None = None,
    estimator: Estimator[Any] | str = "auto",
    gamma: float = 1.0,
    rate: float | None = None,
    samples: int | None = None,
    rng: Any = None,
    max_iters: int = 2000,
    tol: float = 0.01,
    elbo_samples: int = 1000,
    progress: bool = False,
    callback: Callable[[Fit], Any] | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    history: Path | None = None,
) -> Posterior:
    """Fit a Gaussian or a mixture of Gaussians with structure to the density exp(logp), which need not be normalised.

    It maximises the ELBO E_q[logp] - gamma E_q[log q] over the parameters of `family` by natural-gradient steps
    (paper, sections 3 and 4): `Gaussian(structure, ...)`, whose mean may be left out and is x0 then, or `Mixture(...)`.
    None is a full covariance.

    `jac`, `hessp`, `hess` and `hess_diag` are the gradient of logp, products with its Hessian, the Hessian, its
    diagonal, as in SciPy; jac=True says that logp returns (value, gradient). With `vectorized` all of them take rows of
    points: logp(x) returns n numbers, jac(x) and hess_diag(x) n rows, hess(x) n matrices, and hessp(x, v) takes pairs
    of rows.

    `estimator` "auto" is Stein with pairs of samples if products with the Hessian are known, Pathwise with gradients,
    Reinforce with values only, with `samples` points per component and iteration (10; 40 for values). Or an estimator
    of `esgroup.gradients`; Stein() at the mean alone is Laplace's approximation, iterated. In heavy tails take
    Pathwise, or many samples: there most Hessians have the wrong sign, and with few of them a fit by Stein may fail.

    `rate` is the first step size, at most 1 (None: 0.5, and 0.1 for several components); it is halved whenever the
    steps have become noise. The fit has converged when that noise costs less than `tol`, in nats, and nothing but noise
    is left. It ends after `max_iters` iterations at the latest, when callback(fit) returns something true or raises
    StopIteration, or when values are no longer finite; the best state so far is kept. Where noise prevails, parameters
    are averaged over the last window. In the end the ELBO of the last state, that of the average and that of the best
    window are compared, and the ELBO of the result is estimated: `elbo_samples` values of logp for each that differs,
    which the counts of the result include. A logp that is not finite at some draws of the result has no ELBO: then the
    fit has not converged, and other variables, the logarithm of a positive one say, are what it needs.

    `progress=True` shows a line on a terminal; `history` is a file of JSON lines. `checkpoint` is a file that is
    replaced as often as a tenth of the time allows, and in the end, whatever ends the fit; `resume=True` goes on from
    it, and with the same arguments comes to the same result, bit for bit; with a smaller `tol` also after its end. A
    KeyboardInterrupt carries the result so far as its attribute `result`; its ELBO is that of the iterations.
    """
    mixture, single = _as_mixture(family, x0)
    known = {"jac": jac, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}
    target = make_target(logp, mixture.dim, hessp_vectorized=hessp_vectorized, vectorized=vectorized, **known)
    chosen = _as_estimator(estimator, samples, target.function)
    objective = Objective(mixture, target, chosen, checks.real_number("gamma", gamma, positive=True))
    schedule = Schedule(_checked_rate(rate, mixture.count), checks.real_number("tol", tol, positive=True))
    max_iters = checks.whole_number("max_iters", max_iters, least=1)
    elbo_samples = checks.whole_number("elbo_samples", elbo_samples, least=2)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Fit, got {callback!r}")
    fit = _new_fit(objective, schedule, np.random.default_rng(rng))
    if checks.flag("resume", resume):
        resume_from(checkpoint, fit)
    else:
        must_be_new(checkpoint)
        _check_start(target, fit.state)
    with ExitStack() as stack:
        line = stack.enter_context(FitProgress()) if checks.flag("progress", progress) else None
        lines = None if history is None else stack.enter_context(FitHistory(history, fit.nit if resume else None))
        watch = partial(_watch, line, lines, max_iters)
        return _run(fit, Ends(max_iters, elbo_samples, single), FitKeeper(checkpoint), watch, callback)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _as_mixture(family: Any, x0: Any) -> tuple[Mixture, bool]:
    """The family as a mixture, and whether it is a Gaussian."""
    family = Gaussian("full") if family is None else family
    if isinstance(family, Mixture):
        if x0 is not None:
            raise ValueError("x0 must be left out for a Mixture: its components have means")
        return family, False
    if not isinstance(family, Gaussian):
        raise TypeError(f"family must be a Gaussian or a Mixture, got {family!r}")
    if family.mean is None and x0 is None:
        raise ValueError("x0 must be given, or family must be a Gaussian with a mean")
    if family.mean is not None and x0 is not None:
        raise ValueError("x0 or the family's mean must be given, not both")
    return Mixture((family if x0 is None else replace(family, mean=checks.real_array("x0", x0, (None,))),)), True


def _as_estimator(estimator: Any, samples: Any, function: Values) -> Estimator[Any]:
    if isinstance(estimator, Estimator):
        if samples is not None:
            raise ValueError("samples must be left out if the estimator is given: it has a number of its own")
        estimator.check(function)
        return estimator
    if estimator != "auto":
        raise TypeError(f"estimator must be 'auto' or an estimator of esgroup.gradients, got {estimator!r}")
    if samples is not None:
        samples = checks.whole_number("samples", samples, least=1)
    if isinstance(function, Products):
        return Stein(samples or SAMPLES, antithetic=(samples or SAMPLES) % 2 == 0)
    if isinstance(function, Gradients):
        return Pathwise(samples or SAMPLES)
    return Reinforce(samples or SAMPLES_OF_VALUES)


def _checked_rate(rate: Any, count: int) -> float:
    if rate is None:
        return RATE if count == 1 else RATE_OF_SEVERAL
    number = checks.real_number("rate", rate, positive=True)
    if number > 1:
        raise ValueError(f"rate must be at most 1, got {number}")
    return number


def _new_fit(objective: Objective, schedule: Schedule, rng: np.random.Generator) -> Fit:
    state = objective.mixture.state()
    window, best = empty_window(objective.mixture, state), Best(state, -np.inf, 0.0)
    return Fit(objective, schedule, rng, state, window, schedule.rate, best)


def _check_start(target: Target, state: MixtureState) -> None:
    values = target.function.values(state.means)
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"logp must be finite at the start, got {-values[k]} at the mean {state.means[k]}")


# ---- the fit --------------------------------------------------------------------------------------------------------


class Ends(NamedTuple):
    """When a fit ends, and what is made of it: a Gaussian if it is `single`."""

    max_iters: int
    elbo_samples: int
    single: bool


def _run(fit: Fit, ends: Ends, keeper: FitKeeper, watch: Callable[[Fit], None], callback: Any) -> Posterior:
    """All iterations and the judgement. What is known is on file whatever happens."""
    keeper.write(fit)  # a path that does not work is noticed at once
    with Interrupts() as interrupts:
        fit.allowed = interrupts.allowed
        try:
            message = _iterate(fit, ends.max_iters, keeper, watch, callback)
            keeper.write(fit)
            found = _judged(fit, message, ends)
            interrupts.let_through()
        except BaseException as error:
            keeper.write_after(error, fit)
            if isinstance(error, KeyboardInterrupt):
                error.result = _unjudged(fit, ends)  # type: ignore[attr-defined]
            raise
    return found


def _iterate(fit: Fit, max_iters: int, keeper: FitKeeper, watch: Callable[[Fit], None], callback: Any) -> str:
    """Go on to the end; why it is that."""
    while not fit.message and fit.nit < max_iters:
        fit.iterate()
        watch(fit)
        with fit.allowed():
            wanted = callback is None or not _wants_end(callback, fit)
        if not wanted:
            return "the callback asked for it"
        keeper.write_if_cheap(fit)
    if fit.message:
        return fit.message
    used = f"the {max_iters:,} iterations of max_iters are used up"
    return f"{used}; {MOVING}" if fit.travelling else used


def _watch(line: FitProgress | None, lines: FitHistory | None, max_iters: int, fit: Fit) -> None:
    if line is not None:
        line.show(fit, max_iters)
    if lines is not None:
        lines.record(fit)


def _wants_end(callback: Callable[[Fit], Any], fit: Fit) -> bool:
    try:
        return bool(callback(fit))
    except StopIteration:
        return True


# ---- the result -----------------------------------------------------------------------------------------------------


def _judged(fit: Fit, message: str, ends: Ends) -> Posterior:
    state, found = fit.result(ends.elbo_samples)
    if not found.failed:
        return _posterior(fit, state, found, fit.converged, message, ends.single)
    failed = f"logp is not finite at {found.failed} of {ends.elbo_samples} draws of the result: change variables"
    message = failed if fit.converged else f"{message}; {failed}"
    return _posterior(fit, state, found, False, message, ends.single)


def _unjudged(fit: Fit, ends: Ends) -> Posterior:
    """Without another evaluation: the average of the last window if it was noise, else where the fit is."""
    state = fit.state if fit.averaged is None else fit.averaged
    found = Estimate(fit.elbo, fit.elbo_stderr, 0)
    return _posterior(fit, state, found, fit.converged, "it was interrupted", ends.single)


def _posterior(
    fit: Fit, state: MixtureState, found: Estimate, converged: bool, message: str, single: bool
) -> Posterior:
    objective, counts = fit.objective, replace(fit.objective.target.counts)
    if fit.skipped:
        message += f"; logp or its derivatives were not finite in {fit.skipped} of {fit.nit} iterations"
    own: Any = objective.mixture.component_states(state)[0] if single else state
    family = objective.mixture.components[0] if single else objective.mixture
    return Posterior(family, own, found.elbo, found.stderr, converged, message, fit.nit, counts, objective, state)
