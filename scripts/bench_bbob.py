"""Evaluations to reach targets on the 24 functions of the bbob suite, and their comparison.

    python scripts/bench_bbob.py run cma --out cma.csv --instances 1-5
    python scripts/bench_bbob.py run esgroup --out ours.csv --instances 1-5 --jobs 2
    python scripts/bench_bbob.py run esgroup --out ours.csv --label mirrored --option mirrored=True
    python scripts/bench_bbob.py run cma --out popsizes.csv --functions 1,8,10 --dims 5,10 --popsizes 8,16,64
    python scripts/bench_bbob.py run cma --out bipop.csv --restarts bipop --budget 10000 --dims 5 --part 2/4
    python scripts/bench_bbob.py table ours.csv cma.csv --label esgroup --baseline cma

The problems and their instances are those of `ioh`. A run starts at a point from U[-4, 4]^d, the same for all methods
and seeds, with step size 2, and ends when the last target is hit, the budget is spent or the method stops by itself.
The targets are differences to the optimum. Files are appended to, and runs that they hold already are left out. BLAS
runs on one thread. Needs ioh and, for the baseline, cma.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import ast
import importlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from bbob_rows import TARGETS, Row, Run, Setup, append_rows, finished, read_rows, setups
from bbob_tables import report

SIGMA0 = 2.0
RESTARTS = 9  # with a larger population, of both methods, as in Hansen 2009


class Method(StrEnum):
    esgroup = "esgroup"
    cma = "cma"


class Restarts(StrEnum):
    none = "none"
    bipop = "bipop"
    ipop = "ipop"


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
    beyond it, whichever method is calling.
    """

    def __init__(
        self, function: Callable[[list[list[float]]], Sequence[float]], optimum: float, max_evals: int
    ) -> None:
        self.function, self.max_evals = function, max_evals
        self.count = 0
        self.hits: list[int] = []  # of the first targets; they decrease, so they are hit in their order
        self.thresholds = [optimum + target for target in TARGETS]

    def generation(self, points: Any) -> list[float]:
        """Values of points, which count one after the other; those beyond the budget are not evaluated."""
        affordable = np.asarray(points)[: self.max_evals - self.count]
        values = self.function(affordable.tolist())
        for value in values:
            self.count += 1
            while value <= self.thresholds[len(self.hits)]:
                self.hits.append(self.count)
                if len(self.hits) == len(TARGETS):
                    raise Finished("target")
        if self.count >= self.max_evals:
            raise Finished("budget")
        return list(values)

    def __call__(self, x: np.ndarray) -> float:
        return self.generation([x])[0]

    def evals(self) -> list[int | None]:
        """One entry per target."""
        return [*self.hits, *[None] * (len(TARGETS) - len(self.hits))]


def search_cma(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """cma with its defaults; why it stopped."""
    import cma

    options = {"maxfevals": task.max_evals, "verbose": -9, "verb_log": 0, "seed": task.seed}
    if task.run.popsize is not None:
        options["popsize"] = task.run.popsize
    if task.setup.restarts == Restarts.none:
        search = cma.CMAEvolutionStrategy(x0, SIGMA0, options)
        while not search.stop():
            points = search.ask()
            search.tell(points, fun.generation(points))
    else:
        way = {"bipop": True} if task.setup.restarts == Restarts.bipop else {"incpopsize": 2}
        _, search = cma.fmin2(fun, x0, SIGMA0, options, restarts=RESTARTS, parallel_objective=fun.generation, **way)
    return "+".join(search.stop())


def search_esgroup(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """Ours with the task's options; why it stopped."""
    import esgroup

    common: dict[str, Any] = {"rng": task.seed, "max_evals": task.max_evals, **task.options}
    if task.setup.restarts == Restarts.none:
        search = esgroup.Searcher(x0, SIGMA0, **common)
        while not search.stop():
            search.tell(fun.generation(search.ask()))
        return "+".join(search.stop())
    way, target = task.setup.restarts, fun.thresholds[-1]
    result = esgroup.minimize(fun.generation, x0, SIGMA0, vectorized=True, restarts=way, target=target, **common)
    return "+".join(result.stop)


METHODS: dict[str, Callable[[Task, Recorder, np.ndarray], str]] = {"cma": search_cma, "esgroup": search_esgroup}


def search(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """How the run ended. A failure in mid-run is an end too, and kept; one before the first evaluation is raised."""
    try:
        return METHODS[task.setup.method](task, fun, x0)
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
    since = time.process_time()
    ended = search(task, fun, start(task.run))
    cpu = round(time.process_time() - since, 3)
    return [
        Row(task.label, *task.run, target, evals, fun.count, ended, cpu, *task.setup)
        for target, evals in zip(TARGETS, fun.evals(), strict=True)
    ]


def solved_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[list[Row]]:
    """Rows of each task, as they come; with one job in this process."""
    if jobs == 1:
        yield from map(solve, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            for future in as_completed([pool.submit(solve, task) for task in tasks]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after a failure the rest is not run


def parse_range(text: str, name: str, least: int, most: int | None = None) -> list[int]:
    """1,2,6,8-14 as a list of integers, each once."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            span = range(int(first), int(last or first) + 1)
        except ValueError:
            span = range(0)
        if not span:
            raise typer.BadParameter(f"{name} must be numbers and ranges like 1,2,6,8-14, got {text!r}")
        if span[0] < least or (most is not None and span[-1] > most):
            limits = f"at least {least}" if most is None else f"between {least} and {most}"
            raise typer.BadParameter(f"{name} must be {limits}, got {text!r}")
        numbers.extend(span)
    return list(dict.fromkeys(numbers))


def parse_part(text: str) -> slice:
    """2/4 as a slice that takes the second of every four."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise typer.BadParameter(f"--part must be k/n with k from 1 to n, like 2/4, got {text!r}")
    return slice(int(number) - 1, None, int(count))


def parse_option(text: str) -> tuple[str, Any]:
    """key=value, the value a Python literal or else a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or ";" in text:
        raise typer.BadParameter(f"--option must be key=value without a semicolon, got {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


class Progress:
    """Says what was run and how long the rest may take; a run in d dimensions is taken to cost d^2."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.number, self.total = 0, len(tasks)
        self.done, self.cost = 0, sum(task.run.dim**2 for task in tasks)
        self.since = time.monotonic()

    def say(self, rows: Sequence[Row]) -> None:
        """A line about a run that has ended."""
        row, hit = rows[0], sum(row.evals is not None for row in rows)
        self.number, self.done = self.number + 1, self.done + row.dim**2
        left = (time.monotonic() - self.since) * (self.cost / self.done - 1) / 60
        popsize = "" if row.popsize is None else f" popsize {row.popsize}"
        print(
            f"{self.number}/{self.total} {row.label} f{row.function} d{row.dim} instance {row.instance}{popsize}: "
            f"{hit} of {len(rows)} targets, {row.used} evaluations, {row.ended}, {row.cpu:.1f} s; "
            f"about {left:.0f} min left",
            file=sys.stderr,
            flush=True,
        )


app = typer.Typer(
    help=(__doc__ or "").replace("    python", "\b\n    python", 1),  # the examples keep their lines
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # messages in one piece, not in a box
)


@app.command()
def run(
    method: Method,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the Searcher; may be repeated.")] = None,
    functions: str = "1-24",
    dims: str = "5,10,20,40",
    instances: Annotated[str, typer.Option(help="Instances of ioh; constants were tuned on 1-5.")] = "1-5",
    popsizes: Annotated[str, typer.Option(help="Population sizes; the method's default if not given.")] = "",
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")] = 3000,
    restarts: Restarts = Restarts.none,
    seed: Annotated[int, typer.Option(min=0, help="Runs with another seed are other runs.")] = 0,
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run one method and append a row per run and target."""
    options = sorted(option or [])
    if options and method is not Method.esgroup:
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    if any(parse_option(text)[0] == "popsize" for text in options):
        raise typer.BadParameter(f"--option must not set popsize, which --popsizes does, got {options}")
    name, setup = label or str(method), Setup(str(method), ";".join(options), budget, str(restarts))
    rows = read_rows(out)
    if (known := setups(rows).get(name, setup)) != setup:
        raise typer.BadParameter(f"label {name!r} stands for {known} in {out}; choose another --label")
    sizes: list[int | None] = [*parse_range(popsizes, "--popsizes", 2)] if popsizes else [None]
    every = [  # by instances, so that a part of the benchmark has something of everything
        Task(name, setup, Run(function, dim, instance, popsize, seed))
        for instance in parse_range(instances, "--instances", 1)
        for popsize in sizes
        for dim in parse_range(dims, "--dims", 2)
        for function in parse_range(functions, "--functions", 1, 24)
    ][parse_part(part)]
    done = finished(rows)
    tasks = [task for task in every if (task.label, task.run) not in done]
    print(f"{len(tasks)} runs to do, {len(every) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    progress = Progress(tasks)
    for new in solved_tasks(tasks, jobs):
        append_rows(out, new)
        progress.say(new)


@app.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "esgroup",
    baseline: Annotated[str, typer.Option(help="Label it is compared with.")] = "cma",
) -> None:
    """Compare two labels in markdown; exit code 1 if a goal is missed."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    text, good = report([row for path in files for row in read_rows(path)], label, baseline)
    typer.echo(text)
    raise typer.Exit(not good)


if __name__ == "__main__":
    app()
