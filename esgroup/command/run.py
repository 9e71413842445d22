"""`esgroup run`: find the problem, check the input, search, and return the outcome."""

from __future__ import annotations

import math
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from esgroup.command import lists
from esgroup.command.job import Job
from esgroup.command.outcome import NewtonOutcome, Outcome
from esgroup.driver.calling import call_objective
from esgroup.kernels import jit
from esgroup.running.observers import watched
from esgroup.running.progress import Progress

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from esgroup.checks import Array
    from esgroup.problem_registry import Task
    from esgroup.search.searcher import Searcher

# spaces of problems that `minimize` has too; all others, such as single numbers, are searched as vectors
_SPACES: dict[str, Literal["vector", "spd", "matrix"]] = {"spd": "spd", "matrix": "matrix"}
# modules that every search imports, but only when it needs them
_SLOW_MODULES = ("esgroup.driver.minimize", "esgroup.search.result", "numba", "scipy.optimize")


class ObjectiveError(Exception):
    """The objective raised an exception; the argument is its traceback as text, which can be pickled."""


@dataclass(frozen=True)
class Guarded:
    """The objective; its exceptions become ObjectiveError, to distinguish them from those of the search.

    Exceptions in `failures`, which count as failed evaluations, pass unchanged.
    """

    fun: Callable[..., Any]
    failures: tuple[type[Exception], ...] = ()

    def __call__(self, *x: Any) -> Any:
        try:
            return call_objective(self.fun, *x)
        except self.failures:
            raise
        except Exception as error:
            trace = error.__traceback__
            for _ in range(2):  # without our own frames
                trace = trace.tb_next if trace is not None else None
            raise ObjectiveError("".join(traceback.format_exception(type(error), error, trace))) from None


@dataclass(frozen=True)
class Timed:
    """A function of the user and the seconds its calls took, for methods that call it in this process."""

    fun: Callable[..., Any]
    spent: list[float]  # one number for several functions

    def __call__(self, *x: Any) -> Any:
        begin = time.monotonic()
        try:
            return self.fun(*x)
        finally:
            self.spent[0] += time.monotonic() - begin


class _KeepSearch:
    """A callback that keeps the search; None before the end of its first generation."""

    search: Searcher | None = None

    def __call__(self, search: Searcher) -> None:
        self.search = search


def run(job: Job) -> Outcome:
    """Run the job and return its outcome.

    Raises ValueError, TypeError, ImportError or OSError for arguments that cannot be used, and ObjectiveError if the
    objective raised; the checkpoint then has all earlier values.
    """
    if job.method == "newton":
        return _run_newton(job)
    with ExitStack() as stack:
        task = _checked_task(job)
        history = job.history
        if job.plot is not None and history is None:
            history = Path(stack.enter_context(tempfile.TemporaryDirectory()), "history.jsonl")
        latest, begin = _KeepSearch(), _loaded()
        result, interrupted = _search(job, task, history, latest)
        seconds = max(0.0, _clock() - begin)
        files, trouble = _written_files(job, history if latest.search is not None else None)
    own = 0.0 if latest.search is None else latest.search.ledger.clock.own
    return Outcome(task, result, latest.search, own, seconds, interrupted, files, trouble, resumed=job.resume)


def _loaded() -> float:
    """Load packages, and return the time after that, by our clock."""
    with watched(None, Progress("loading packages")):
        for module in _SLOW_MODULES:
            import_module(module)
    return _clock()


def _clock() -> float:
    """The time on a clock that stops while kernels are compiled."""
    return time.monotonic() - jit.prepared


def _run_newton(job: Job) -> Outcome:
    for name in ("history", "plot", "checkpoint", "resume"):
        if getattr(job, name):
            raise ValueError(f"--{name} cannot be combined with --method newton: leave it out")
    task, begin, spent = _with_derivatives(_checked_task(job), job), _loaded(), [0.0]
    from esgroup.driver.minimize import minimize  # already loaded, while the progress line said so

    functions: dict[str, Any] = {"fun": task.fun, "jac": task.gradient, "hessp": task.hessian_product}
    functions["hess_diag"] = task.hessian_diagonal
    arguments: dict[str, Any] = {name: Timed(Guarded(one), spent) for name, one in functions.items() if one is not None}
    # arguments of searches; method="newton" rejects them unless they have their defaults
    arguments |= {name: getattr(job, name) for name in ("sigma0", "bounds", "workers", "on_error")}
    arguments |= job.passed_on
    result, interrupted = _until_interrupted(minimize, x0=task.x0, method="newton", progress=True, **arguments)
    seconds = max(0.0, _clock() - begin)
    return NewtonOutcome(task, result, None, max(0.0, seconds - spent[0]), seconds, interrupted, {})


def _with_derivatives(task: Task, job: Job) -> Task:
    """Return the problem with the derivatives named by --jac and --hessp, or else its own."""
    from esgroup.problem_registry import load_function

    if task.constraints is not None:
        raise ValueError(f"--method newton does not support constraints, and {task.name} has them: use --method search")
    gradient: Any = task.gradient if job.jac is None else load_function(job.jac)
    product: Any = task.hessian_product if job.hessp is None else load_function(job.hessp)
    if gradient is None:
        raise ValueError(
            f"{task.name} has no gradient, which --method newton needs: name one with --jac MODULE:FUNCTION"
        )
    if task.x0.ndim != 1:
        raise ValueError(f"--method newton is for vectors, and {task.name} is a function of matrices")
    return replace(task, gradient=gradient, hessian_product=product)


def _until_interrupted(minimize: Callable[..., Any], *start: Any, **options: Any) -> tuple[OptimizeResult, bool]:
    """Return the result, empty if there is none yet, and whether Ctrl-C ended the run."""
    try:
        return minimize(*start, **options), False
    except KeyboardInterrupt as interrupt:
        return getattr(interrupt, "result", {}), True


def _checked_task(job: Job) -> Task:
    """Return the problem, after checking everything that can be checked before the search."""
    from esgroup.files.autosave import must_differ
    from esgroup.plots.style import check_out
    from esgroup.problem_registry import find, load_function

    must_differ({"--history": job.history, "--checkpoint": job.checkpoint, "--plot": job.plot})
    if job.plot is not None:
        check_out(job.plot)
    path = job.checkpoint
    if job.resume and path is None:
        raise ValueError("--resume needs --checkpoint, the file to continue from")
    if job.resume and path is not None and not path.exists():
        raise ValueError(f"{path} does not exist; leave out --resume to start a new search")
    if not job.resume and path is not None and path.exists():
        raise ValueError(f"{path} exists; add --resume to continue, or choose another name")
    if job.space is not None:
        task = _task_over_space(job, job.space)
    else:
        task = find(job.problem, job.dim, None if job.x0 is None else lists.numbers("--x0", job.x0))
    if job.constraints is None:
        return task
    constraints: Any = load_function(job.constraints)  # of a point, like the function
    return replace(task, constraints=constraints)


def _task_over_space(job: Job, name: str) -> Task:
    """Return a function of named parameters; its x0 is the row of their starts."""
    from esgroup.problem_registry import Task, load, load_function
    from esgroup.space import Space

    if ":" not in job.problem:
        raise ValueError(f"--space needs a function of a dict, MODULE:FUNCTION, got the problem {job.problem}")
    given = {"dim": job.dim, "x0": job.x0, "sigma0": job.sigma0, "bounds": job.bounds, "basins": job.basins}
    for option, value in (given | {"integer": job.options.get("integer")}).items():
        if value is not None:
            raise ValueError(f"--{option} cannot be combined with --space, which has its own")
    if job.method != "search":
        raise ValueError("--method newton is for vectors: leave out --space")
    space = load(name)
    if not isinstance(space, Space):
        raise ValueError(f"--space must name a Space, got {type(space).__name__} {space!r}")
    return Task(job.problem, load_function(job.problem), space.start, start_space=space)


def _search(job: Job, task: Task, history: Path | None, latest: _KeepSearch) -> tuple[OptimizeResult, bool]:
    """Return the result, and whether Ctrl-C ended the search; `latest` then has the last search."""
    from esgroup.driver.minimize import minimize
    from esgroup.driver.origin import CheckpointFile
    from esgroup.running.history import HistoryFile

    on_error = lists.exceptions(job.on_error)
    caught = {"raise": (), "nan": (Exception,)}[on_error] if isinstance(on_error, str) else on_error
    workers = 1 if job.workers is None and job.eval_timeout is not None else job.workers
    one_by_one = caught or job.eval_timeout is not None or job.asynchronous
    in_one_call = task.batch is not None and workers in (None, 1) and not one_by_one
    try:
        return _until_interrupted(
            minimize,
            Guarded(task.batch if in_one_call and task.batch is not None else task.fun, caught),
            task.x0 if task.start_space is None else task.start_space,
            _sigma0(job, task),
            space=_SPACES.get(task.space, "vector"),
            bounds=task.bounds if job.bounds is None else lists.bounds(job.bounds),
            constraints=_constraints(task, caught),
            vectorized=in_one_call,
            workers=workers,
            on_error=on_error,
            callback=latest,
            progress=True,
            history=None if history is None else HistoryFile(history, task.name),
            checkpoint=None if job.checkpoint is None else CheckpointFile(job.checkpoint, *_origin(job, task)),
            resume=job.resume,
            **job.passed_on | _parsed(job.options, task),
        )
    except Exception as error:
        if latest.search is None or isinstance(error, ObjectiveError | MemoryError):
            raise
        raise RuntimeError("the search failed") from error  # not because of the input: show a traceback


def _origin(job: Job, task: Task) -> tuple[str, tuple[str, ...]]:
    """Return the problem as a checkpoint names it, and the arguments of `minimize` that the user did not give."""
    size = f"{len(task.x0):,} variables" if task.x0.ndim == 1 else f"{' x '.join(map(str, task.x0.shape))} matrices"
    return f"{task.name} with {size}", tuple(name for name in ("x0", "sigma0") if getattr(job, name) is None)


def _constraints(task: Task, caught: tuple[type[Exception], ...]) -> Any:
    """Return the constraints of the problem as `minimize` takes them."""
    if task.constraints is None:
        return ()
    from scipy.optimize import NonlinearConstraint

    return NonlinearConstraint(Guarded(task.constraints, caught), -math.inf, 0.0)


def _parsed(options: dict[str, Any], task: Task) -> dict[str, Any]:
    """Return the options that are lists as `minimize` takes them; integers default to the problem's."""
    given = {name: options[name] for name in ("integer", "fixed") if options.get(name) is not None}
    if given and task.x0.ndim != 1:
        raise ValueError(f"--{next(iter(given))} is for vectors: {task.name} is a function of matrices")
    if "integer" in given:
        given["integer"] = lists.integer(given["integer"])
    elif task.integer:
        given["integer"] = list(task.integer)
    if "fixed" in given:
        if task.start_space is None:
            given["fixed"] = lists.fixed(given["fixed"], task.x0.tolist())
        else:
            given["fixed"] = lists.fixed_by_name(given["fixed"], task.start_space)
    return given


def _sigma0(job: Job, task: Task) -> float | Array | None:
    """Return --sigma0, or the problem's unless that is one of logarithms ("spd") or bounds spread the basins."""
    spread_over_bounds = job.basins is not None and (task.bounds is not None or job.bounds is not None)
    if job.sigma0 is not None or task.space == "spd" or spread_over_bounds:
        return job.sigma0
    return task.sigma0


def _written_files(job: Job, history: Path | None) -> tuple[dict[str, Path], str | None]:
    """Draw the figure; return the files written and why the figure failed, so that the result is not lost with it."""
    from esgroup.plots.run import plot

    files = {} if job.history is None or history is None else {"history": job.history}
    files |= {} if job.checkpoint is None else {"checkpoint": job.checkpoint}
    if job.plot is None or history is None:
        return files, None
    try:
        with watched(None, Progress("drawing the figure")):
            return files | {"figure": plot(history, job.plot)}, None
    except Exception as error:
        return files, f"the figure could not be drawn: {type(error).__name__}: {error}"
