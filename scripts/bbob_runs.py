"""One run of the bbob benchmark: a method on a problem of ioh, with the evaluation at which each target was hit."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple, TypeVar

import numpy as np
from bbob_arguments import parse_option
from bbob_rows import TARGETS, Row, Run, Setup

SIGMA0 = 2.0
T = TypeVar("T")
R = TypeVar("R")
OUT_OF_TIME = "time"  # how a run ended that was cut
RESTARTS = 9  # with a larger population, of both methods, as in Hansen 2009


class Task(NamedTuple):
    """One run: a method on one problem of the suite."""

    label: str
    setup: Setup
    run: Run

    @property
    def seed(self) -> int:
        """Seed of the method: positive, as cma takes 0 for the time, and below 2^31, as cma counts up from it."""
        function, dim, instance, popsize, seed = self.run
        return int(np.random.SeedSequence([function, dim, instance, popsize or 0, seed]).generate_state(1)[0] >> 1) or 1

    @property
    def max_evals(self) -> int:
        return self.setup.budget * self.run.dim

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of esgroup that differ from its defaults."""
        given = dict(parse_option(text) for text in self.setup.options.split(";") if text)
        return given if self.run.popsize is None else {**given, "popsize": self.run.popsize}


class Finished(Exception):
    """Raised by an objective when there is nothing more to find out."""


class Recorder:
    """Objective that notes at which of its evaluations each target was first hit.

    Raises Finished after the evaluation that hit the last target or spent the budget, so that nothing is counted
    beyond it, whichever method is calling; and in place of the first evaluation after `seconds`, if they are not 0, by
    the clock on the wall.
    """

    def __init__(
        self,
        function: Callable[[list[list[float]]], Sequence[float]],
        optimum: float,
        max_evals: int,
        targets: Sequence[float] = TARGETS,
        seconds: float = 0.0,
    ) -> None:
        self.function, self.max_evals = function, max_evals
        self.count = self.asks = 0
        self.until = time.monotonic() + (seconds or math.inf)
        self.hits: list[int] = []  # of the first targets; they decrease, so they are hit in their order
        self.thresholds = [optimum + target for target in targets]

    def generation(self, points: Any) -> list[float]:
        """Values of points, which count one after the other; those beyond the budget are not evaluated."""
        if time.monotonic() > self.until:
            raise Finished(OUT_OF_TIME)
        self.asks += 1
        affordable = np.asarray(points)[: self.max_evals - self.count]
        values = self.function(affordable.tolist())
        for value in values:
            self.note(value)
        if self.count >= self.max_evals:
            raise Finished("budget")
        return list(values)

    def note(self, value: float) -> None:
        """Count an evaluation with this value."""
        self.count += 1
        while value <= self.thresholds[len(self.hits)]:
            self.hits.append(self.count)
            if len(self.hits) == len(self.thresholds):
                raise Finished("target")

    def __call__(self, x: np.ndarray) -> float:
        return self.generation([x])[0]

    def evals(self) -> list[int | None]:
        """One entry per target."""
        return [*self.hits, *[None] * (len(self.thresholds) - len(self.hits))]


def search_cma(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """cma with its defaults; why it stopped."""
    options = {} if task.run.popsize is None else {"popsize": task.run.popsize}
    return run_cma(fun, x0, task.seed, task.setup.restarts, options)


def run_cma(fun: Recorder, x0: np.ndarray, seed: int, restarts: str, options: Mapping[str, Any]) -> str:
    """cma with restarts none, ipop or bipop and options of its own; why it stopped."""
    import cma

    options = {"maxfevals": fun.max_evals, "verbose": -9, "verb_log": 0, "seed": seed, **options}
    if restarts == "none":
        search = cma.CMAEvolutionStrategy(x0, SIGMA0, options)
        while not search.stop():
            points = search.ask()
            search.tell(points, fun.generation(points))
    else:
        way = {"bipop": True} if restarts == "bipop" else {"incpopsize": 2}
        _, search = cma.fmin2(fun, x0, SIGMA0, options, restarts=RESTARTS, parallel_objective=fun.generation, **way)
    return "+".join(search.stop())


def search_esgroup(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """Ours with the task's options; why it stopped."""
    import esgroup

    common: dict[str, Any] = {"rng": task.seed, "max_evals": task.max_evals, **task.options}
    if task.setup.restarts == "none":
        search = esgroup.Searcher(x0, SIGMA0, **common)
        while not search.stop():
            search.tell(fun.generation(search.ask()))
        return "+".join(search.stop())
    common |= {"restarts": task.setup.restarts, "target": fun.thresholds[-1], "vectorized": True}
    return "+".join(esgroup.minimize(fun.generation, x0, SIGMA0, **common).stop)


METHODS: dict[str, Callable[[Task, Recorder, Any], str]] = {"cma": search_cma, "esgroup": search_esgroup}


def search(
    task: Task, fun: Recorder, start: Any, methods: Mapping[str, Callable[[Task, Recorder, Any], str]] = METHODS
) -> str:
    """How the run ended."""
    return how_it_ended(lambda: methods[task.setup.method](task, fun, start), fun)


def how_it_ended(run: Callable[[], str], fun: Recorder) -> str:
    """What a run returns. A failure in mid-run is an end too, and kept; one before the first evaluation is raised."""
    try:
        return run()
    except Finished as end:
        return str(end)
    except Exception as error:
        if fun.count == 0:
            raise
        return f"error: {type(error).__name__}: {' '.join(str(error).split())}"


def bbob_problem(run: Run) -> Any:
    """The problem of ioh: it evaluates lists of points and knows its optimum."""
    import ioh

    return ioh.get_problem(run.function, run.instance, run.dim, ioh.ProblemClass.BBOB)


def start(run: Run) -> np.ndarray:
    """The first mean: a point from U[-4, 4]^d, the same for all methods, popsizes and seeds."""
    return np.random.default_rng([run.function, run.dim, run.instance]).uniform(-4, 4, run.dim)


def solve(task: Task) -> list[Row]:
    """One run, a row for each target."""
    problem = bbob_problem(task.run)
    fun = Recorder(problem, float(problem.optimum.y), task.max_evals)
    importlib.import_module(task.setup.method)  # not on the clock
    return recorded(task, fun, start(task.run))


def recorded(
    task: Task, fun: Recorder, start: Any, methods: Mapping[str, Callable[[Task, Recorder, Any], str]] = METHODS
) -> list[Row]:
    """Run the task's method from a start and return a row for each target."""
    since = time.process_time()
    ended = search(task, fun, start, methods)
    cpu = round(time.process_time() - since, 3)
    return [
        Row(task.label, *task.run, target, evals, fun.count, ended, cpu, *task.setup)
        for target, evals in zip(TARGETS, fun.evals(), strict=True)
    ]


def solved_tasks(tasks: Sequence[T], jobs: int, solve: Callable[[T], R]) -> Iterator[R]:
    """What `solve` makes of each task, as it comes; with one job in this process, in the order of the tasks."""
    if jobs == 1:
        yield from map(solve, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            for future in as_completed([pool.submit(solve, task) for task in tasks]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after a failure the rest is not run
