"""Variational inference as one call, and its result: an approximation of the posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.files import npz as files
from esgroup.files.autosave import must_be_new, must_differ
from esgroup.gradients.estimators import Estimator, Pathwise, Reinforce, Stein
from esgroup.gradients.function import Counts, Gradients, Products, Values
from esgroup.gradients.rows import RowFunction
from esgroup.plots.axes import framed
from esgroup.plots.style import INK, PALE, check_out, new_figure
from esgroup.running.interrupts import Interrupts
from esgroup.running.loop import Run, run_to_end
from esgroup.running.observers import Observer, as_observers
from esgroup.variational.batches import DataTarget, Likelihood, make_data_target
from esgroup.variational.fit import Fit
from esgroup.variational.fit_files import FitHistory, FitProgress, FitWriter, resume_from
from esgroup.variational.iteration import ElboEstimate, VariationalObjective
from esgroup.variational.log_density import Target, component_variances, make_target
from esgroup.variational.schedule import FitSchedule

SAMPLES = 10  # draws of a component per iteration, by default
SAMPLES_OF_VALUES = 40  # the same for estimates from values only
SAMPLES_OF_BATCHES = 4  # the same with batches of data, whose noise dominates
MAX_ITERS = 2000  # by default; with batches
MAX_EPOCHS = 400  # if that is more
ELBO_SAMPLES = 1000  # values of logp for the ELBO, by default
ELBO_SAMPLES_OF_BATCHES = 100  # with batches: each uses all data
RATE = 0.5  # the first step size of a single Gaussian, by default
# The first step size of several components, by default. In heavy tails the Hessian has the wrong sign at most points,
# and an axis of a component can diverge; a small rate makes that rarer but does not rule it out with few samples. On
# mixtures of Student's t distributions (20 variables, 10 full components, Stein) it happened with 4 samples at 0.5 and
# at 0.1, but in none of four fits with 10 samples at 0.1, nor in four with Pathwise.
RATE_OF_SEVERAL = 0.1
MOVING = "the mean is still moving: start closer, e.g. at the minimum of -logp, or allow more iterations"
PANELS = 9  # of a figure of marginals, by default
COLUMNS = 3
REACH = 4.0  # standard deviations that a panel shows on each side of the mean


@checks.explained
def fit_posterior(
    logp: Callable[..., Any] | Values,
    x0: Any = None,
    *,
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    likelihood: Callable[..., Any] | Likelihood | RowFunction | None = None,
    data: Any = None,
    batch_size: int | None = None,
    family: Gaussian | Mixture | None = None,
    estimator: Estimator[Any] | str = "auto",
    gamma: float = 1.0,
    rate: float | None = None,
    samples: int | None = None,
    rng: Any = None,
    max_iters: int | None = None,
    tol: float = 0.01,
    elbo_samples: int | None = None,
    progress: bool = False,
    callback: Callable[[Fit], Any] | Observer | None = None,
    checkpoint: files.Path | None = None,
    resume: bool = False,
    history: files.Path | None = None,
) -> Posterior:
    """Fit a structured Gaussian or mixture of Gaussians to the density exp(logp), which need not be normalized.

    The fit maximizes the ELBO E_q[logp] - gamma E_q[log q] over the parameters of `family` by natural-gradient steps
    (paper, sections 3 and 4). With `likelihood` and `data`, logp is the log prior, and the posterior is fitted; the log
    likelihood, a sum over the data, can be estimated from one batch at a time.

    Parameters
    ----------
    logp : callable, or a function made by `jax_function`, `torch_function` or `as_function`
        The log density of one point, up to a constant: maps an array (dim,) to a number. It must be finite at the
        start. A function from `esgroup.gradients` comes with its derivatives; one in JAX or PyTorch is evaluated at all
        points of an iteration at once.
    x0 : array_like, shape (dim,), optional
        The initial mean of a Gaussian; omit it if `family` has means.
    jac : callable or True, optional
        The gradient of logp; True if logp returns (value, gradient).
    hessp, hess, hess_diag : callable, optional
        Products with the Hessian of logp, hessp(x, v), the Hessian, and its diagonal, as in SciPy.
    hessp_vectorized : bool
        Whether hessp(x, v) takes several vectors v as rows for one point x.
    vectorized : bool
        Whether all functions take rows of points: logp(x) returns n numbers, jac(x) and hess_diag(x) n rows, hess(x) n
        matrices, and hessp(x, v) takes pairs of rows.
    likelihood : Likelihood, callable, or a function made by `jax_function` or `torch_function`, optional
        The log likelihood of a batch, likelihood(x, *batch): a sum over the rows of the batch. logp is then the log
        prior. Use a `Likelihood` to pass derivatives; it must have the same ones as logp.
    data : array_like or tuple of array_like, optional
        The data of the likelihood: one array, or several with the same number of rows.
    batch_size : int, optional
        The number of rows in a batch; by default all. Each iteration uses another batch and multiplies its log
        likelihood and derivatives by the number of rows of data over batch_size, which is unbiased. Every epoch is a
        new permutation.
    family : Gaussian or Mixture, optional
        The distribution to fit: `Gaussian(structure, ...)`, whose mean defaults to x0, or `Mixture(...)`. By default a
        Gaussian with a full covariance.
    estimator : Estimator or "auto"
        An estimator from `esgroup.gradients`. "auto" is Stein with pairs of samples if products with the Hessian are
        known, Pathwise with gradients, Reinforce with values only. Stein() at the mean alone is an iterated Laplace
        approximation. For heavy tails use Pathwise or many samples: most Hessians have the wrong sign there, and with
        few samples a Stein fit may fail.
    gamma : float
        The weight of the entropy, which is the temperature of the target.
    rate : float, optional
        The first step size, at most 1; by default 0.5, or 0.1 for several components. It is halved whenever the steps
        are only noise.
    samples : int, optional
        Points per component and iteration for estimator="auto"; by default 10, or 4 with batches, and 40 with values
        only.
    rng : int or numpy.random.Generator, optional
        The seed, or the source of all random numbers.
    max_iters : int, optional
        The largest number of iterations; by default 2000, or 400 epochs if these are more.
    tol : float
        The fit has converged when only noise is left and the noise costs less than this, in nats.
    elbo_samples : int, optional
        The number of values of logp used to estimate the ELBO at the end, for each candidate for the result; by
        default 1000, or 100 with batches. Each value uses all data, in chunks of batch_size.
    progress : bool
        Whether to show a progress line on a terminal.
    callback : callable or Observer, optional
        Called as callback(fit) after each iteration. The fit ends if it returns a true value or raises StopIteration.
        Or an `Observer`, whose `run` is the fit.
    checkpoint : path-like, optional
        A file to which the fit is saved, as often as possible within a tenth of the run time, and at the end, whatever
        ends the fit.
    resume : bool
        Continue from the checkpoint. With the same arguments the result is that of an uninterrupted fit, bit for bit
        on the same machine with the same number of BLAS threads.
        With a smaller `tol`, a converged fit continues as well.
    history : path-like, optional
        A file of JSON lines, one per iteration.

    Returns
    -------
    Posterior
        The approximation, with its ELBO.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, if logp is not finite at the start, or if the checkpoint belongs to another fit.
    FileExistsError, FileNotFoundError
        If the checkpoint exists without `resume`, or does not exist with it.
    Exception, KeyboardInterrupt
        Any exception that ends a running fit. Its attribute `result` is the result so far, with the ELBO of the
        iterations.

    Notes
    -----
    Where noise dominates, parameters are averaged over the last window. At the end the fit compares the ELBO of the
    last state, the average and the best window, with `elbo_samples` values for each that differs; the counts of the
    result include them. If values are no longer finite, the fit ends and keeps the best state so far. If logp is not
    finite at some draws from the result, there is no ELBO: the fit has not converged and needs other variables, for
    example the logarithm of a positive one.

    The noise of batches does not vanish at the optimum. So rates fall, parameters are averaged over whole epochs, where
    that noise cancels, and the fit has converged only if its averages at two successive rates agree up to `tol`; a
    larger `tol` takes fewer epochs. The ELBO of the iterations is that of their batches, the ELBO of the result that of
    all data. Counts are evaluations of the likelihood on one batch. A checkpoint contains a checksum of the data, not
    the data.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup import fit_posterior
    >>> stds = np.array([1.0, 2.0])
    >>> logp = lambda x: -0.5 * np.sum((x / stds) ** 2)
    >>> found = fit_posterior(logp, [3.0, 3.0], jac=lambda x: -x / stds**2, rng=0)
    >>> found.converged
    True
    >>> found.stds.round(3).tolist()
    [1.0, 2.0]
    """
    mixture, single = _as_mixture(family, x0)
    known: dict[str, Any] = {"jac": jac, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}
    target: Target | DataTarget
    target = make_target(logp, mixture.dim, hessp_vectorized=hessp_vectorized, vectorized=vectorized, **known)
    _check_data(likelihood, data, batch_size)
    if likelihood is not None:
        target = make_data_target(target, likelihood, data, batch_size)
    chosen = _as_estimator(estimator, samples, target)
    objective = VariationalObjective(mixture, target, chosen, checks.real_number("gamma", gamma, positive=True))
    default = RATE if mixture.count == 1 else RATE_OF_SEVERAL
    first_rate = default if rate is None else checks.real_number("rate", rate, positive=True)
    if first_rate > 1:
        raise ValueError(f"rate must be at most 1, got {rate}")
    schedule = FitSchedule(first_rate, checks.real_number("tol", tol, positive=True), target.batches)
    if max_iters is None:
        max_iters = max(MAX_ITERS, MAX_EPOCHS * target.batches) if target.takes_batches else MAX_ITERS
    if elbo_samples is None:
        elbo_samples = ELBO_SAMPLES_OF_BATCHES if target.takes_batches else ELBO_SAMPLES
    max_iters = checks.whole_number("max_iters", max_iters, least=1)
    elbo_samples = checks.whole_number("elbo_samples", elbo_samples, least=2)
    observers: list[Observer] = [FitProgress(max_iters)] if checks.flag("progress", progress) else []
    if history is not None:
        observers.append(FitHistory(history, append=resume))
    observers += as_observers(callback, "Fit", lambda fit: fit)
    must_differ({"history": history, "checkpoint": checkpoint})
    fit = Fit(objective, schedule, np.random.default_rng(rng))
    if checks.flag("resume", resume):
        resume_from(checkpoint, fit)
    else:
        must_be_new(checkpoint)
        _check_start(target, fit.state)
    if checkpoint is not None:
        observers.append(FitWriter(checkpoint))
    return run_to_end(_FitRun(fit, max_iters, elbo_samples, single), observers)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _as_mixture(family: Any, x0: Any) -> tuple[Mixture, bool]:
    """The family as a mixture, and whether it is a single Gaussian."""
    family = Gaussian("full") if family is None else family
    if isinstance(family, Mixture):
        if x0 is not None:
            raise ValueError(f"x0 must be left out for a Mixture, whose components have means, got {x0!r}")
        return family, False
    if not isinstance(family, Gaussian):
        raise TypeError(f"family must be a Gaussian or a Mixture, got {family!r}")
    if family.mean is None and x0 is None:
        raise ValueError("x0 must be given, or family must have a mean, got neither")
    if family.mean is not None and x0 is not None:
        raise ValueError("x0 or the family's mean must be given, got both")
    return Mixture((family if x0 is None else replace(family, mean=checks.real_array("x0", x0, (None,))),)), True


def _as_estimator(estimator: Any, samples: Any, target: Target | DataTarget) -> Estimator[Any]:
    function = target.function
    if isinstance(estimator, Estimator):
        if samples is not None:
            raise ValueError(f"samples must be left out for {estimator}, which sets its own number, got {samples!r}")
        estimator.check(function)
        return estimator
    if estimator != "auto":
        raise TypeError(f"estimator must be 'auto' or an estimator of esgroup.gradients, got {estimator!r}")
    if samples is not None:
        samples = checks.whole_number("samples", samples, least=1)
    number = samples or (SAMPLES_OF_BATCHES if target.takes_batches else SAMPLES)
    if isinstance(function, Products):
        return Stein(number, antithetic=number % 2 == 0)
    if isinstance(function, Gradients):
        return Pathwise(number)
    return Reinforce(samples or SAMPLES_OF_VALUES)


def _check_data(likelihood: Any, data: Any, batch_size: Any) -> None:
    if likelihood is None and data is not None:
        raise ValueError("likelihood must be given with data: the log likelihood of a batch, likelihood(x, *batch)")
    if likelihood is not None and data is None:
        raise ValueError("data must be given with a likelihood: an array or a tuple of arrays, got None")
    if batch_size is not None and data is None:
        raise ValueError(f"data and likelihood must be given with batch_size, got batch_size={batch_size!r} alone")


def _check_start(target: Target | DataTarget, state: MixtureState) -> None:
    values = target.values(state.means)
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"logp must be finite at the start, got {-values[k]} at the mean {state.means[k]}")


# ---- the run --------------------------------------------------------------------------------------------------------


class _FitRun(Run["Posterior"]):
    """All iterations of a fit and its result: a Gaussian if `single`, else a mixture."""

    def __init__(self, fit: Fit, max_iters: int, elbo_samples: int, single: bool) -> None:
        self.interrupts = Interrupts()
        self.fit, self.max_iters, self.elbo_samples, self.single = fit, max_iters, elbo_samples, single
        self.message = ""  # why the fit ends, if the reason is external
        fit.allowed = self.interrupts.allowed

    @property
    def view(self) -> Fit:
        """The fit."""
        return self.fit

    def goes_on(self) -> bool:
        """Return whether there is no reason to stop."""
        return not (self.message or self.fit.message) and self.fit.nit < self.max_iters

    def step(self) -> bool:
        """Make one iteration."""
        self.fit.iterate()
        return True

    def stop_for(self, name: str, text: str) -> None:
        """Record an external reason to stop."""
        self.message = text

    def result(self) -> Posterior:
        """Return the best candidate, with an ELBO from new draws."""
        message = self.message or self.fit.message
        if not message:
            message = f"max_iters = {self.max_iters:,} reached"
            message += f"; {MOVING}" if self.fit.traveling else ""
        state, found = self.fit.result(self.elbo_samples)
        if not found.failed:
            return self._posterior(state, found, self.fit.converged, message)
        failed = f"logp is not finite at {found.failed} of {self.elbo_samples} draws from the result: change variables"
        message = failed if self.fit.converged else f"{message}; {failed}"
        return self._posterior(state, found, False, message)

    def result_so_far(self) -> Posterior:
        """Without further evaluations: the average of the last window if that was noise, else the current state."""
        fit = self.fit
        state = fit.state if fit.averaged is None else fit.averaged
        found = ElboEstimate(fit.elbo, fit.elbo_stderr, 0)
        return self._posterior(state, found, fit.converged, "the fit was interrupted")

    def _posterior(self, state: MixtureState, found: ElboEstimate, converged: bool, message: str) -> Posterior:
        fit, objective, mixture = self.fit, self.fit.objective, self.fit.objective.mixture
        if fit.skipped:
            message += f"; logp or its derivatives were not finite in {fit.skipped} of {fit.nit} iterations"
        own: Any = mixture.component_states(state)[0] if self.single else state
        family = mixture.components[0] if self.single else mixture
        counts = replace(objective.target.counts)  # a copy
        return Posterior(family, own, found.elbo, found.stderr, converged, message, fit.nit, counts, objective, state)


# ---- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Posterior:
    """The result of `fit_posterior`: q, the Gaussian or mixture of Gaussians with the highest ELBO found.

    ELBO = E_q[logp] - gamma E_q[log q]; with gamma = 1 it is log Z - KL(q || posterior), where exp(logp) is Z times the
    posterior density.

    Attributes
    ----------
    distribution : Gaussian or Mixture
        The family of q.
    state : State or MixtureState
        Its parameters.
    elbo : float
        The ELBO, estimated from draws that the iterations did not use.
    elbo_stderr : float
        The standard error of `elbo`.
    converged : bool
        Whether the fit has converged.
    message : str
        Why the fit ended.
    nit : int
        The number of iterations.
    counts : Counts
        All evaluations of logp and its derivatives, including those for `elbo`.

    Examples
    --------
    >>> import numpy as np
    >>> import esgroup
    >>> def logp(w):  # N(1, I), not normalized
    ...     return -0.5 * float((w - 1.0) @ (w - 1.0))
    >>> post = esgroup.fit_posterior(logp, np.zeros(2), jac=lambda w: 1.0 - w, rng=1)
    >>> post.converged, bool(np.allclose(post.mean, 1.0, atol=0.05))
    (True, True)
    >>> bool(np.allclose(post.stds, 1.0, atol=0.05))
    True
    >>> post.sample(1000, np.random.default_rng(2)).shape
    (1000, 2)
    """

    distribution: Gaussian | Mixture
    state: State | MixtureState
    elbo: float
    elbo_stderr: float
    converged: bool
    message: str
    nit: int
    counts: Counts
    _objective: VariationalObjective = field(repr=False)
    _mixture_state: MixtureState = field(repr=False)

    @property
    def nfev(self) -> int:
        """How often logp was evaluated."""
        return self.counts.nfev

    @property
    def njev(self) -> int:
        """How often the gradient of logp was evaluated."""
        return self.counts.njev

    @property
    def nhvp(self) -> int:
        """How many products with the Hessian of logp were evaluated."""
        return self.counts.nhvp

    @property
    def mean(self) -> Array:
        """The mean E_q[x]."""
        return self._mixture.mean(self._mixture_state)

    def covariance(self) -> Array:
        """The covariance of q as a (dim, dim) matrix."""
        return self._mixture.dense_covariance(self._mixture_state)

    @property
    def stds(self) -> Array:
        """The standard deviations of the variables under q, computed without a dense matrix."""
        pi, gaps = self._mixture.mixing_weights(self._mixture_state), self._mixture_state.means - self.mean
        return np.sqrt(pi @ (component_variances(self._mixture, self._mixture_state) + gaps**2))

    def sample(self, n: int, rng: Any = None) -> Array:
        """Draw n points from q, as rows."""
        return self._mixture.sample(self._mixture_state, n, np.random.default_rng(rng)).x

    def log_density(self, x: Any) -> Array:
        """log q(x) at one point or at rows of points."""
        return self._mixture.log_density(self._mixture_state, x)

    def elbo_estimate(self, n: int, rng: Any = None) -> tuple[float, float]:
        """Estimate the ELBO by evaluating logp at n draws from q.

        Parameters
        ----------
        n : int
            The number of draws, at least 2.
        rng : int or numpy.random.Generator, optional
            The seed, or the source of random numbers.

        Returns
        -------
        elbo, stderr : float
            The estimate and its standard error.
        """
        n = checks.whole_number("n", n, least=2)
        found = self._objective.elbo(self._mixture_state, n, np.random.default_rng(rng))
        return found.elbo, found.stderr

    def marginal_density(self, coordinate: int, x: Any) -> Array:
        """The marginal density of one variable under q.

        Parameters
        ----------
        coordinate : int
            The index of the variable.
        x : array_like, shape (n,)
            Where to evaluate the density.
        """
        coordinate = checks.whole_number("coordinate", coordinate, most=self._mixture.dim - 1)
        x = checks.real_array("x", x, (None,))[:, None]
        stds = np.sqrt(component_variances(self._mixture, self._mixture_state)[:, coordinate])
        z = (x - self._mixture_state.means[:, coordinate]) / stds
        return (np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * stds)) @ np.exp(self._mixture_state.log_weights)

    def plot_marginals(self, path: str | PathLike[str], coordinates: Any = None, samples: Any = None) -> Path:
        """Plot the marginal densities of some variables, one panel each.

        This needs matplotlib, which comes with the extra "plot".

        Parameters
        ----------
        path : path-like
            The file; its name must end in .png, .svg or .pdf.
        coordinates : sequence of int, optional
            The indices of the variables; by default the first nine.
        samples : array_like, shape (n, dim), optional
            Samples from another source, plotted as histograms behind the densities.

        Returns
        -------
        pathlib.Path
            The file.
        """
        out = check_out(path)
        chosen = _checked_coordinates(coordinates, self._mixture.dim)
        if samples is not None:
            samples = checks.real_array("samples", samples, (None, self._mixture.dim))
        columns = min(COLUMNS, len(chosen))
        rows = math.ceil(len(chosen) / columns)
        figure = new_figure(3.4 * columns, 2.4 * rows)
        for i, coordinate in enumerate(chosen):
            axes = figure.add_subplot(rows, columns, i + 1)
            _draw_marginal(axes, self, coordinate, None if samples is None else samples[:, coordinate])
        figure.axes[0].legend(frameon=False, fontsize=8)
        figure.savefig(out, dpi=150)
        return out

    @property
    def _mixture(self) -> Mixture:
        return self._objective.mixture


# ---- figures --------------------------------------------------------------------------------------------------------


def _checked_coordinates(coordinates: Any, dim: int) -> list[int]:
    if coordinates is None:
        return list(range(min(PANELS, dim)))
    chosen = [checks.whole_number("coordinates", c, most=dim - 1) for c in coordinates]
    if not chosen:
        raise ValueError("coordinates must have at least one index, got none")
    return chosen


def _draw_marginal(axes: Any, posterior: Posterior, coordinate: int, samples: Array | None) -> None:
    """Plot q's marginal density of one variable, with a histogram of samples behind it if there are any."""
    middle, reach = posterior.mean[coordinate], REACH * posterior.stds[coordinate]
    x = np.linspace(middle - reach, middle + reach, 400)
    if samples is not None:
        inside = samples[np.abs(samples - middle) <= reach]
        if len(inside):
            density, edges = np.histogram(inside, bins=50, density=True)
            share = len(inside) / len(samples)  # the density refers to all samples, including those outside
            axes.stairs(share * density, edges, fill=True, color=PALE, label="samples")
    axes.plot(x, posterior.marginal_density(coordinate, x), color=INK, linewidth=1.4, label="approximation")
    axes.set_title(f"coordinate {coordinate}", loc="left", fontsize=9.5, color="#444444")
    axes.set_yticks([])
    axes.set_ylim(bottom=0.0)
    framed(axes)
    axes.spines["left"].set_visible(False)
