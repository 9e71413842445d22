"""One run: a method on a problem with one seed, and its record."""

from __future__ import annotations

import math
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.compare.charts import Chart, chart
from esgroup.compare.methods import Chosen, Method, choose, known
from esgroup.compare.records import Cell, Cost, Ended, RunRecord
from esgroup.compare.trial import Over, Recorder, Trial
from esgroup.domains.box import make_box
from esgroup.problem_registry import Task, find
from esgroup.rankings import outcomes
from esgroup.version import __version__

Starts = Literal["random", "default"]

TARGETS = (1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-5, 1e-8)  # gaps to the minimum, unless others are set
EVALS_PER_COORDINATE = 3000  # budget of a run, unless max_evals is set
_WARM_UP = 60  # evaluations: at least one generation of every method


@dataclass(frozen=True)
class Settings:
    """What all runs of a comparison share. `max_time` is in seconds, `max_evals` counts values and gradients."""

    targets: tuple[float, ...] | None = None  # None: the problem's targets, or TARGETS
    max_evals: int | None = None
    max_time: float = 600.0
    starts: Starts = "random"


class Stage(NamedTuple):
    """A problem prepared for a method: `chart` is the identity if the method searches the space itself."""

    task: Task
    chart: Chart
    x0: Array
    sigma0: float
    bounds: Array | None
    box: Array
    size: int  # number of coordinates


def execute(cell: Cell, settings: Settings, ready: Callable[[], None] = lambda: None) -> RunRecord:
    """Do a run. Errors are stored in the record; `ready` is called when its clock starts."""
    try:
        chosen = choose(cell.method)
        stage = prepare(cell, chosen, settings)
        if chosen.method.name.partition(":")[0] in known():  # a user's own method could hang here
            _warm_up(cell.method, stage.x0.shape)
    except Exception as error:
        return failed(cell, Ended.ERROR, _described(error))
    ready()
    recorder = _recorder(stage, settings)
    begin = time.process_time()
    trial = recorder.trial(stage.x0.copy(), stage.sigma0, stage.bounds, stage.box, cell.seed)
    ended, message = _searched(chosen.method, trial, recorder)
    minimum = _minimum(stage.task)
    return RunRecord(
        *cell,
        ended=ended,
        message=message,
        evals=recorder.evals,
        gradients=recorder.gradients,
        size=stage.size,
        best=recorder.gap + (0.0 if math.isnan(minimum) else minimum),
        minimum=minimum,
        cost=Cost.GRADIENTS if recorder.gradients else chosen.method.counts(stage.task.gradient is not None),
        cpu=time.process_time() - begin,
        cpu_fun=recorder.cpu,
        versions=versions_of(cell.method),
        targets=recorder.targets,
        hits=tuple(recorder.hits),
        trajectory=recorder.trajectory,
    )


def failed(cell: Cell, ended: Ended, message: str) -> RunRecord:
    """The record of a run that did not start, or about which nothing is known."""
    return RunRecord(*cell, ended, message, size=cell.dim, versions=versions_of(cell.method))


def prepare(cell: Cell, chosen: Chosen, settings: Settings) -> Stage:
    """Prepare the problem of a cell: its start, in the coordinates of a chart or in the space itself."""
    task = find(cell.problem, cell.dim, seed=cell.seed)
    chosen.method.check_fits(task)
    if task.constraints is not None:
        raise ValueError(f"{cell.problem} has constraints, which a comparison does not support")
    rng = np.random.default_rng([cell.seed, zlib.crc32(cell.problem.encode()), cell.dim])
    coordinates = chart(chosen.chart, task.space, task.x0.shape)
    where = task.bounds
    if isinstance(where, np.ndarray):  # as pairs, because an array of two pairs is ambiguous
        where = [(float(low), float(high)) for low, high in where]
    if where is not None and not chosen.method.bounded:
        raise ValueError(f"{chosen.method.name} does not support bounds, and {cell.problem} has bounds")
    x0 = coordinates.vector(task.x0)
    described = make_box(x0, where, sigma0=task.sigma0)
    limits = None if where is None else np.column_stack([described.lower, described.upper])
    if settings.starts == "random":
        x0 = _random_start(task, coordinates, described.steps0, limits, rng)
    box, size = _box(task, described.steps0, x0, limits), len(x0)
    if chosen.method.spaces:  # the same start as that of methods which search its coordinates
        coordinates, x0 = Chart(), coordinates.points(x0)
    return Stage(task, coordinates, x0, float(np.median(described.steps0)), limits, box, size)


def _random_start(
    task: Task, coordinates: Chart, steps: Array, limits: Array | None, rng: np.random.Generator
) -> Array:
    """A start drawn by the problem, or x0 + sigma0 N(0, I) clipped to the bounds."""
    if task.start is not None:
        return coordinates.vector(task.start(rng))
    x0: Array = coordinates.vector(task.x0) + steps * rng.standard_normal(len(steps))
    return x0 if limits is None else np.clip(x0, *limits.T)


def _box(task: Task, steps: Array, x0: Array, limits: Array | None) -> Array:
    """The finite bounds, else the box of random starts, else x0 +- 5 sigma0, extended to include the start."""
    near = np.column_stack([x0 - 5 * steps, x0 + 5 * steps])
    if task.start_box is not None and len(x0) == task.x0.size:
        near[:] = task.start_box
    box = near if limits is None else np.where(np.isfinite(limits), limits, near)
    return np.column_stack([np.minimum(box[:, 0], x0), np.maximum(box[:, 1], x0)])


def _recorder(stage: Stage, settings: Settings) -> Recorder:
    task, chart, minimum = stage.task, stage.chart, _minimum(stage.task)
    known: Any = task  # only existing functions will be called

    def gradient(x: Array) -> Any:
        return chart.pull_back(x, known.gradient(chart.points(x)))

    def product(x: Array, v: Array) -> Any:
        return chart.vector(known.hessian_product(chart.points(x), chart.points(v)))

    def diagonal(x: Array) -> Any:
        return chart.vector(known.hessian_diagonal(chart.points(x)))

    def noiseless(x: Array) -> Any:
        return known.noiseless(chart.points(x))

    return Recorder(
        lambda x: _values(task, chart.points(x)),
        gradient=gradient if task.gradient else None,
        product=product if task.hessian_product and chart.straight else None,
        diagonal=diagonal if task.hessian_diagonal and chart.straight else None,
        noiseless=noiseless if task.noiseless else None,
        minimum=0.0 if math.isnan(minimum) else minimum,
        targets=targets_of(task, settings),
        budget=EVALS_PER_COORDINATE * stage.size if settings.max_evals is None else settings.max_evals,
        deadline=time.monotonic() + settings.max_time,
    )


def _values(task: Task, points: Array) -> Array:
    values = [task.fun(point) for point in points] if task.batch is None else task.batch(points)
    return outcomes.values(values, len(points))  # accepts what a search accepts


def _minimum(task: Task) -> float:
    return math.nan if task.minimum is None else float(task.minimum)


def targets_of(task: Task, settings: Settings) -> tuple[float, ...]:
    """Targets of a run: those in `settings`, or TARGETS where the minimum is known, or else the problem's values.

    They are gaps where the minimum is known and values otherwise. There are none where nothing is known about the
    problem; gaps are then relative to the best value found (`report.summary.measured`).
    """
    usual = TARGETS if task.minimum is not None else task.targets
    return tuple(sorted(map(float, usual if settings.targets is None else settings.targets), reverse=True))


def _searched(method: Method, trial: Trial, recorder: Recorder) -> tuple[Ended, str]:
    """Run the method and return why it ended, in one word and in the method's own words."""
    message = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of a method are not for the terminal
            message = str(method.run(trial) or "")
    except Over:
        pass
    except Exception as error:
        if recorder.over is None:
            return Ended.ERROR, _described(recorder.error or error)
    if recorder.over is None and recorder.error is not None:  # the method swallowed the error
        return Ended.ERROR, _described(recorder.error)
    if recorder.over is Ended.TIMEOUT:
        return Ended.TIMEOUT, "the run used up its time"
    if not recorder.evals:
        return Ended.ERROR, f"the method did not evaluate the function{f' ({message})' if message else ''}"
    if not recorder.finite:
        return Ended.NAN, f"none of {recorder.evals:,} values was a finite number"
    return recorder.over or Ended.STOPPED, message


@cache
def _warm_up(spelling: str, shape: tuple[int, ...]) -> None:
    """Load and compile what the method needs, on a sphere, so that runs do not include that time."""
    recorder = Recorder(_squares, gradient=lambda x: 2 * x, targets=(-1.0,), budget=_WARM_UP)
    x0 = np.ones(shape) if len(shape) == 1 else np.eye(shape[0], shape[1])  # positive definite
    box = np.tile([-5.0, 5.0], (x0.size, 1))
    trial = replace(
        recorder.trial(x0, 1.0, None, box, 0),
        product=lambda x, v: 2 * v,  # not counted: a full structure uses more than the budget at its first point
        diagonal=lambda x: np.full_like(x, 2.0),
    )
    _searched(choose(spelling).method, trial, recorder)


def _squares(points: Array) -> Array:
    return (points.reshape(len(points), -1) ** 2).sum(axis=1)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def versions_of(spelling: str) -> str:
    """Versions of the packages that a method uses."""
    try:
        packages = choose(spelling).method.packages
    except ValueError:
        return ""
    return ", ".join(f"{package} {installed(package)}" for package in packages)


def installed(package: str) -> str:
    """Version of a package; ours is known even if the source tree is used without installing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return __version__ if package == "esgroup" else "?"
