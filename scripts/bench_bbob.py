"""Evaluations to reach targets on the 24 functions of the bbob suite (coco-experiment), and their comparison.

    python scripts/bench_bbob.py run cma --out cma.csv --indices 1-5
    python scripts/bench_bbob.py run esgroup --out ours.csv --indices 1-5
    python scripts/bench_bbob.py run esgroup --out ours.csv --label mirrored --option mirrored=True
    python scripts/bench_bbob.py run cma --out bipop.csv --restarts bipop --budget 10000 --dims 5
    python scripts/bench_bbob.py table ours.csv cma.csv --label esgroup --baseline cma

A run starts at the suite's initial solution with step size 2 and ends when the last target is hit, the budget is spent
or the method stops by itself. The targets are differences to the optimum, which `ioh` knows for the same instance. An
index of the suite is not an instance's number: indices 6-10 are the instances 71-75 of a recent suite. A run depends on
function, dimension and index alone. Files are appended to, and what they hold already is not run again. BLAS runs on
one thread. Needs coco-experiment, ioh and, for the baseline, cma.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
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
from bbob_tables import TARGETS, Row, Setup, append_rows, finished, read_rows, report, setups

SIGMA0 = 2.0


class Method(StrEnum):
    esgroup = "esgroup"
    cma = "cma"


class Restarts(StrEnum):
    none = "none"
    bipop = "bipop"


class Task(NamedTuple):
    """One run: a method on one problem of the suite."""

    label: str
    setup: Setup
    function: int
    dim: int
    index: int  # type: ignore[assignment]  # hides tuple.index

    @property
    def seed(self) -> int:
        """Positive, as cma takes 0 for the time."""
        return 1_000_000 * self.function + 1000 * self.dim + self.index

    @property
    def max_evals(self) -> int:
        return self.setup.budget * self.dim


class Finished(Exception):
    """Raised by an objective when there is nothing more to find out."""


class Recorder:
    """Objective that notes at which of its evaluations each target was first hit.

    Raises Finished after the evaluation that hit the last target or spent the budget, so that nothing is counted
    beyond it, whichever method is calling.
    """

    def __init__(self, function: Callable[[np.ndarray], float], optimum: float, max_evals: int) -> None:
        self.function, self.max_evals = function, max_evals
        self.count = 0
        self.hits: list[int] = []  # of the first targets; they decrease, so they are hit in their order
        self.thresholds = [optimum + target for target in TARGETS]

    def __call__(self, x: np.ndarray) -> float:
        value = float(self.function(x))
        self.count += 1
        while len(self.hits) < len(TARGETS) and value <= self.thresholds[len(self.hits)]:
            self.hits.append(self.count)
        if len(self.hits) == len(TARGETS):
            raise Finished("target")
        if self.count >= self.max_evals:
            raise Finished("budget")
        return value

    def evals(self) -> list[int | None]:
        """One entry per target."""
        return [*self.hits, *[None] * (len(TARGETS) - len(self.hits))]


def search_cma(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """cma with its defaults; why it stopped."""
    import cma

    options = {"maxfevals": task.max_evals, "verbose": -9, "verb_log": 0, "seed": task.seed}
    if task.setup.restarts == Restarts.bipop:
        _, search = cma.fmin2(fun, x0, SIGMA0, options, restarts=9, bipop=True)
        return "+".join(search.stop())
    search = cma.CMAEvolutionStrategy(x0, SIGMA0, options)
    while not search.stop():
        points = search.ask()
        search.tell(points, [fun(x) for x in points])
    return "+".join(search.stop())


def search_esgroup(task: Task, fun: Recorder, x0: np.ndarray) -> str:
    """Ours with the task's options; why it stopped."""
    import esgroup

    options: dict[str, Any] = dict(parse_option(text) for text in task.setup.options.split(";") if text)
    common = {"rng": task.seed, "max_evals": task.max_evals, **options}
    if task.setup.restarts == Restarts.bipop:
        target = fun.thresholds[-1]
        return "+".join(esgroup.minimize(fun, x0, SIGMA0, restarts="bipop", target=target, **common).stop)
    search = esgroup.Searcher(x0, SIGMA0, target=None, **common)
    while not search.stop():
        search.tell([fun(x) for x in search.ask()])
    return "+".join(search.stop())


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


def suite_problem(task: Task) -> tuple[Any, Any]:
    """The suite with this one problem, which lives as long as the suite, and the problem."""
    import cocoex

    chosen = f"instance_indices:{task.index} dimensions:{task.dim} function_indices:{task.function}"
    suite = cocoex.Suite("bbob", "", chosen)
    if len(suite) != 1:
        raise ValueError(f"the suite must have one problem for {chosen}, it has {len(suite)}")
    return suite, suite[0]


def optimum(problem: Any, rng: np.random.Generator) -> float:
    """Smallest value of a problem, by ioh, after a check that ioh's function is the same one."""
    import ioh

    twin = ioh.get_problem(problem.id_function, problem.id_instance, problem.dimension, ioh.ProblemClass.BBOB)
    best = float(twin.optimum.y)
    for x in rng.uniform(-5, 5, (3, problem.dimension)):
        ours, theirs = problem(x), twin(x)
        if not abs(ours - theirs) <= 1e-9 * max(1.0, abs(ours - best)):
            raise RuntimeError(f"coco and ioh must agree on {problem.id} at {x.tolist()}, got {ours!r} and {theirs!r}")
    return best


def solve(task: Task) -> list[Row]:
    """One run, a row for each target."""
    _checked, problem = suite_problem(task)
    best = optimum(problem, np.random.default_rng(task.seed))
    _suite, problem = suite_problem(task)  # a new one, with no evaluations
    fun = Recorder(problem, best, task.max_evals)
    importlib.import_module(task.setup.method)  # not on the clock
    start = time.process_time()
    ended = search(task, fun, np.array(problem.initial_solution))
    cpu = round(time.process_time() - start, 3)
    if problem.evaluations != fun.count:
        raise RuntimeError(f"{problem.id} must have been evaluated {fun.count} times, coco says {problem.evaluations}")
    run = (task.label, task.function, task.dim, task.index, problem.id_instance, task.seed)
    return [
        Row(*run, target, evals, fun.count, ended, cpu, *task.setup)
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


def parse_range(text: str) -> list[int]:
    """1,2,6,8-14 as a list of integers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            raise typer.BadParameter(f"must be numbers and ranges like 1,2,6,8-14, got {text!r}") from None
    return numbers


def parse_option(text: str) -> tuple[str, Any]:
    """key=value, the value a Python literal or else a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or ";" in text:
        raise typer.BadParameter(f"must be key=value without a semicolon, got {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def say(rows: Sequence[Row], number: int, total: int, since: float) -> None:
    """A line of progress."""
    run, hit = rows[0], sum(row.evals is not None for row in rows)
    left = (time.monotonic() - since) / number * (total - number) / 60
    print(
        f"{number}/{total} {run.label} f{run.function} d{run.dim} index {run.index}: {hit} of {len(rows)} targets, "
        f"{run.used} evaluations, {run.ended}, {run.cpu:.1f} s; about {left:.0f} min left",
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
    indices: Annotated[str, typer.Option(help="Instances of the suite: 1-5 to tune, 6-10 to report.")] = "1-5",
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")] = 3000,
    restarts: Restarts = Restarts.none,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run one method and append a row per problem and target."""
    options = sorted(option or [])
    for text in options:
        parse_option(text)
    if options and method is not Method.esgroup:
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    name, setup = label or str(method), Setup(str(method), ";".join(options), budget, str(restarts))
    rows = read_rows(out)
    if (known := setups(rows).get(name, setup)) != setup:
        raise typer.BadParameter(f"label {name!r} stands for {known} in {out}; choose another --label")
    every = [
        Task(name, setup, function, dim, index)
        for dim in parse_range(dims)
        for function in parse_range(functions)
        for index in parse_range(indices)
    ]
    done = finished(rows)
    tasks = [task for task in every if (task.label, task.function, task.dim, task.index) not in done]
    print(f"{len(tasks)} problems to run, {len(every) - len(tasks)} in {out} already", file=sys.stderr, flush=True)
    since = time.monotonic()
    for number, new in enumerate(solved_tasks(tasks, jobs), 1):
        append_rows(out, new)
        say(new, number, len(tasks), since)


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
