"""One run of the benchmark with many coordinates: the problems, the methods, and what is noted of a run.

Problems are those of the suite bbob-largescale, or our own ones, which are evaluated in whole generations. Methods are
ours with several structures, and peers with their default settings and the same start; a run has no restarts. Every run
is done in a process of its own. What it came to is one line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import math
import multiprocessing
import re
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")
Array = np.ndarray

SIGMA0 = 2.0  # the first step size; the first mean is 0
TARGET = 1e-8  # above the optimum, where runs of the suite end
CONDITION = 1e6  # of the ellipsoid, cigars and discuses
OUT_OF_TIME = "time"  # how a run ended that was cut
SUITE, OWN = "suite", "own"

# Evaluations of a run of the suite, by dimension and function.
BUDGETS = {80: 200_000, 160: 400_000, 320: 600_000, 640: 800_000}
LONGER_BUDGETS = {(160, 10): 800_000, (160, 14): 800_000}
OTHER_BUDGET = 2_500  # evaluations for each coordinate in other dimensions, as with d = 80
OWN_BUDGET = 1_000  # evaluations for each coordinate of our own problems


def suite_budget(dim: int, function: int) -> int:
    """Return the evaluations of a run of the suite."""
    return LONGER_BUDGETS.get((dim, function), BUDGETS.get(dim, OTHER_BUDGET * dim))


def targets(last: float) -> list[float]:
    """Return 51 targets over ten decades, five in each, of which the last one is given: 10^2 to 10^-8 for 1e-8."""
    return [last * 10.0 ** (10 - i / 5) for i in range(51)]


# ---- runs and what they came to -------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One run: a method on a problem."""

    kind: str  # SUITE or OWN
    problem: str  # f10 of the suite, or the name of an own problem
    dim: int
    instance: int  # of the suite, or the seed of an own problem
    method: str
    budget: int  # evaluations
    target: float = TARGET
    relative: bool = False  # whether targets are multiples of the first value
    popsize: int | None = None  # None is the method's default
    seconds: float = 0.0  # after which a run is cut at its next evaluation, by the clock on the wall; 0: never

    @property
    def run(self) -> tuple[Any, ...]:
        """What is done once: all but the limits."""
        return self._replace(budget=0, seconds=0.0)

    @property
    def seed(self) -> int:
        """Seed of the method: positive, as cma takes 0 for the time, and below 2^31, as cma counts up from it."""
        numbers = [zlib.crc32(self.problem.encode()), self.dim, self.instance]
        return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1) or 1

    def __str__(self) -> str:
        which = "instance" if self.kind == SUITE else "seed"
        return f"{self.method} {self.problem} d{self.dim} {which} {self.instance}"


class Record(NamedTuple):
    """What one run came to."""

    task: Task
    hits: tuple[int, ...]  # number of the evaluation that reached each target first, up to the last that was reached
    used: int  # evaluations of the whole run
    gap: float  # least value above the optimum; without noise
    ended: str
    cpu: float  # seconds, evaluations included
    course: tuple[tuple[int, float], ...]  # with noise: evaluations, and the exact value of the point recommended then
    package: str  # with its version

    @property
    def evals(self) -> int | None:
        """Evaluations to the last target, None if it was not reached."""
        return self.hits[-1] if len(self.hits) == len(targets(self.task.target)) else None

    @property
    def cost(self) -> int:
        """Evaluations to the last target; a run that does not get there counts with its budget."""
        return self.task.budget if self.evals is None else self.evals

    @property
    def cut(self) -> bool:
        """Whether the run had no more time."""
        return self.ended == OUT_OF_TIME

    def line(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {**self.task._asdict(), **{name: value for name, value in self._asdict().items() if name != "task"}}

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Record:
        """Return the record of a line of a file."""
        task = Task(**{name: line[name] for name in Task._fields})
        course = tuple((int(evals), float(value)) for evals, value in line["course"])
        rest = {name: line[name] for name in ("used", "gap", "ended", "cpu", "package")}
        return cls(task, hits=tuple(line["hits"]), course=course, **rest)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON, none if there is no file. One that was cut off by a kill is left out."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    try:
        found = [json.loads(line) for line in lines]
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} must have one object of JSON in each line, got {error.doc.strip()!r}") from None
    return found


def read_records(path: Path, make: Callable[[Mapping[str, Any]], R]) -> list[R]:
    """Return the records of a file, none if there is no file; a file of another kind is refused."""
    try:
        return [make(line) for line in read_lines(path)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} must have lines of this benchmark, got one without {error}") from None


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Write one line at the end of a file, after dropping one that was cut off by a kill."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not (content := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def tasks_to_do(tasks: Sequence[Task], records: Sequence[Record]) -> list[Task]:
    """Return the tasks that were not done yet; one that was done with other limits is refused."""
    done = {record.task.run: record.task for record in records}
    for task in tasks:
        known = done.get(task.run, task)
        if (known.budget, known.seconds) != (task.budget, task.seconds):
            raise ValueError(
                f"--budget and --seconds of {task} must be those of its run in the folder, {known.budget} and "
                f"{known.seconds:g}, got {task.budget} and {task.seconds:g}; choose another --out"
            )
    return [task for task in tasks if task.run not in done]


# ---- what a method sees of a problem --------------------------------------------------------------------------------


class Finished(Exception):
    """Raised by a recorder when there is nothing more to find out."""


class Recorder:
    """An objective that counts, notes when each target was first reached, and ends the run.

    It raises Finished after the evaluation that reached the last target or spent the budget, so that nothing is counted
    beyond it, whichever method is calling; and in place of the first evaluation after `seconds`, if they are not 0. At
    the checkpoints it notes what `judge` says of it. A method sets `favorite`, which returns the point that it would
    recommend if it were stopped now, its mean; without it that is the point with the least value.
    """

    def __init__(
        self,
        function: Callable[[Array], Array],
        max_evals: int,
        thresholds: Sequence[float] = (),
        seconds: float = 0.0,
        checkpoints: Sequence[int] = (),
        judge: Callable[[Recorder], Any] | None = None,
        noise: np.random.Generator | None = None,
    ) -> None:
        self.function, self.max_evals, self.thresholds = function, max_evals, list(thresholds)
        self.until = time.monotonic() + (seconds or math.inf)
        self.checkpoints, self.judge = [many for many in checkpoints if many <= max_evals], judge
        self.noise = noise  # N(0, 1) is added to every value that the method sees
        self.count = 0
        self.hits: list[int] = []  # of the first thresholds; they decrease, so they are reached in their order
        self.best, self.best_x = math.inf, np.empty(0)
        self.course: list[Any] = []  # one entry for each checkpoint that was passed
        self.favorite: Callable[[], Array] = lambda: self.best_x

    def batch(self, points: Any) -> Array:
        """Return the values of points, which count one after the other; those beyond the budget are not evaluated."""
        if time.monotonic() > self.until:
            raise Finished(OUT_OF_TIME)
        affordable = np.asarray(points, dtype=float)[: self.max_evals - self.count]
        values = np.asarray(self.function(affordable), dtype=float)
        self._note(affordable, np.where(np.isnan(values), math.inf, values))
        while len(self.course) < len(self.checkpoints) and self.count >= self.checkpoints[len(self.course)]:
            self._judge()
        if self.count >= self.max_evals:
            raise Finished("budget")
        return values if self.noise is None else values + self.noise.standard_normal(len(values))

    def __call__(self, x: Array) -> float:
        return float(self.batch(np.asarray(x, dtype=float).reshape(1, -1))[0])

    def _note(self, points: Array, values: Array) -> None:
        least = int(np.argmin(values))
        if values[least] < self.best:
            self.best, self.best_x = float(values[least]), points[least].copy()
        if len(self.hits) < len(self.thresholds) and values[least] <= self.thresholds[len(self.hits)]:
            self._note_hits(values)
        self.count += len(values)

    def _note_hits(self, values: Array) -> None:
        for place, value in enumerate(values, 1):
            while value <= self.thresholds[len(self.hits)]:
                self.hits.append(self.count + place)
                if len(self.hits) == len(self.thresholds):
                    self.count += place
                    raise Finished("target")

    def _judge(self) -> None:
        self.course.append(None if self.judge is None else self.judge(self))

    def fill_course(self) -> None:
        """Note at the checkpoints after the end of a run what it has found."""
        while len(self.course) < len(self.checkpoints):
            self._judge()


def how_it_ended(run: Callable[[], str], fun: Recorder) -> str:
    """Return how a run ended. A failure in mid-run is an end too; one before the first evaluation is raised."""
    try:
        return run()
    except Finished as end:
        return str(end)
    except Exception as error:
        if fun.count == 0:
            raise
        return f"error: {type(error).__name__}: {' '.join(str(error).split())}"


# ---- problems -------------------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """A function of the rows of an array, and its least value."""

    values: Callable[[Array], Array]
    optimum: float
    noisy: bool = False


def suite_problem(function: int, dim: int, instance: int) -> Problem:
    """Return a problem of bbob-largescale.

    The suite knows its best point but not its value, and writes the point to a file in the folder in which it is; a
    second copy of the problem is evaluated there.
    """
    import cocoex

    where = f"dimensions: {dim} function_indices: {function}"
    suites = [cocoex.Suite("bbob-largescale", f"instances: {instance}", where) for _ in range(2)]
    problem, copy = (suite[0] for suite in suites)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        best = np.loadtxt("._bbob_problem_best_parameter.txt")
    optimum = float(copy(best))

    def values(points: Array, suites: Any = suites) -> Array:  # a suite must live as long as its problems
        return np.array([problem(x) for x in points])

    return Problem(values, optimum)


def ellipsoid_scales(dim: int) -> Array:
    """Return weights from 1 to the condition on a logarithmic scale."""
    return np.logspace(0.0, math.log10(CONDITION), dim)


def special_axes(dim: int, number: int, rng: np.random.Generator) -> Array:
    """Return a random d x n matrix with orthonormal columns."""
    if number >= dim:
        raise ValueError(f"the number of special axes must be below the dimension {dim}, got {number}")
    return np.linalg.qr(rng.standard_normal((dim, number)))[0]


def sphere(y: Array) -> Array:
    """Return |y|^2 of every row."""
    found: Array = np.einsum("ij,ij->i", y, y)
    return found


def discus(y: Array, axes: Array) -> Array:
    """Return |y|^2 + (c - 1) |V^T y|^2 of every row: the special axes are steep."""
    return sphere(y) + (CONDITION - 1) * sphere(y @ axes)


def cigar(y: Array, axes: Array) -> Array:
    """Return |V^T y|^2 + c |y - V V^T y|^2 of every row: the special axes are flat."""
    along = y @ axes
    return sphere(along) + CONDITION * sphere(y - along @ axes.T)


def rosenbrock(y: Array) -> Array:
    """Return Rosenbrock's function of every row, shifted so that its minimum is at 0."""
    z = y + 1.0
    found: Array = 100.0 * sphere(z[:, 1:] - z[:, :-1] ** 2) + sphere(y[:, :-1])
    return found


def rastrigin(y: Array) -> Array:
    """Return 10 sum(1 - cos 2 pi y_i) + |y|^2 of every row."""
    found: Array = 10.0 * np.sum(1.0 - np.cos(2.0 * math.pi * y), axis=1) + sphere(y)
    return found


PLAIN_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sphere": sphere,
    "rosenbrock": rosenbrock,
    "rastrigin": rastrigin,
}
AXES_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {"cigar": cigar, "discus": discus}
NOISY = "noisy_"  # what the names of noisy problems begin with
NOISY_FUNCTIONS = ("sphere", "ellipsoid")
OWN_PROBLEMS = (*PLAIN_FUNCTIONS, "ellipsoid", "cigar<n>", "discus<n>", *(NOISY + name for name in NOISY_FUNCTIONS))


def special_name(name: str) -> tuple[str, int] | None:
    """Return cigar10 as cigar and 10, None for other names."""
    found = re.fullmatch(f"({'|'.join(AXES_FUNCTIONS)})([1-9][0-9]*)", name)
    return (found[1], int(found[2])) if found else None


def check_own_problem(name: str) -> str:
    """Return the name of an own problem; one that is unknown is refused."""
    if "<" in name or (name not in OWN_PROBLEMS and special_name(name) is None):
        raise ValueError(f"a problem must be among {', '.join(OWN_PROBLEMS)}, got {name!r}")
    return name


def own_function(name: str, dim: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return a function of rows with its minimum, 0, at 0; random axes come from a generator."""
    if special := special_name(name):
        function, axes = AXES_FUNCTIONS[special[0]], special_axes(dim, special[1], rng)
        return lambda y: function(y, axes)
    if name == "ellipsoid":
        roots = np.sqrt(ellipsoid_scales(dim))
        return lambda y: sphere(roots * y)
    return PLAIN_FUNCTIONS[name]


def own_problem(name: str, dim: int, seed: int) -> Problem:
    """Return an own problem: its minimum is 0, at a point that is uniform in [-4, 4]^d, and its axes are random."""
    rng = np.random.default_rng([17, dim, seed])
    x_opt = rng.uniform(-4.0, 4.0, dim)
    function = own_function(check_own_problem(name).removeprefix(NOISY), dim, rng)
    return Problem(lambda points: function(points - x_opt), 0.0, noisy=name.startswith(NOISY))


def grid(most: int) -> list[int]:
    """Return 1, 2 and 5 times the powers of ten from 100 on, up to a number, and this number."""
    steps = (factor * 10**power for power in range(2, 12) for factor in (1, 2, 5))
    return [*(step for step in steps if step < most), most]


# ---- methods --------------------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """What a method is told besides the function."""

    x0: Array
    sigma0: float
    seed: int
    max_evals: int
    popsize: int | None = None

    @property
    def dim(self) -> int:
        return len(self.x0)

    @property
    def usual_popsize(self) -> int:
        """The population size that was asked for, or the usual one, 4 + floor(3 ln d)."""
        return self.popsize or 4 + int(3 * math.log(self.dim))


Search = Callable[[Recorder, Start], str]  # returns why it stopped by itself


def search_ours(structure: Callable[[int], Any]) -> Search:
    """Return a search of ours with the structure that a dimension has."""

    def search(fun: Recorder, start: Start) -> str:
        import esgroup

        searcher = esgroup.Searcher(
            start.x0,
            start.sigma0,
            structure=structure(start.dim),
            popsize=start.popsize,
            rng=start.seed,
            max_evals=start.max_evals,
        )
        fun.favorite = lambda: searcher.mean
        while not searcher.stop():
            searcher.tell(fun.batch(searcher.ask()))
        return "+".join(searcher.stop())

    return search


def former_structure(dim: int) -> str:
    """Return what "auto" was before: the full matrix up to 1000 coordinates, and the diagonal above."""
    return "full" if dim <= 1000 else "diagonal"


def search_cma(fun: Recorder, start: Start, vkd: bool = False) -> str:
    """Run cma with its full matrix, or as VkD-CMA-ES.

    Criteria that may stop it before its budget are switched off: tolerances of values and points, stagnation, flat
    values and the number of generations. Those against numerical trouble are left. All else are its defaults.
    """
    import cma
    from cma.restricted_gaussian_sampler import GaussVkDSampler

    unlimited = 10**12
    options: dict[str, Any] = {
        "maxfevals": start.max_evals,
        "maxiter": unlimited,
        "tolfun": 0,
        "tolfunhist": 0,
        "tolx": 0,
        "tolstagnation": unlimited,
        "tolflatfitness": unlimited,
        "tolxstagnation": False,
        "seed": start.seed,
        "verbose": -9,
        "verb_log": 0,
    }
    options |= {} if start.popsize is None else {"popsize": start.popsize}
    search = cma.CMAEvolutionStrategy(
        start.x0, start.sigma0, GaussVkDSampler.extend_cma_options(options) if vkd else options
    )
    fun.favorite = lambda: search.mean
    while not search.stop():
        points = search.ask()
        search.tell(points, fun.batch(points).tolist())
    return "+".join(search.stop())


def search_vkd(fun: Recorder, start: Start) -> str:
    """Run VkD-CMA-ES of cma, which adapts the number k of its axes."""
    return search_cma(fun, start, vkd=True)


def search_crfmnes(fun: Recorder, start: Start) -> str:
    """Run CR-FM-NES of fcmaes in C++ with the population of its paper, 4 + floor(3 ln d), which must be even.

    Its samples are mirrored at its mean, so that the mean is that of a generation.
    """
    from fcmaes.crfmnescpp import CRFMNES_C

    rng = np.random.Generator(np.random.PCG64DXSM(start.seed))
    popsize = start.usual_popsize + start.usual_popsize % 2
    search = CRFMNES_C(start.dim, x0=start.x0, input_sigma=start.sigma0, popsize=popsize, rg=rng)
    points = start.x0[None]
    fun.favorite = lambda: points.mean(axis=0)
    while True:
        found = search.ask()
        if found is None:
            return "error: ask has failed"
        points = np.asarray(found)
        if stopped := search.tell(fun.batch(points)):
            return f"status {stopped}"


def search_sepcma(fun: Recorder, start: Start) -> str:
    """Run SepCMA of cmaes with its defaults."""
    import cmaes

    search = cmaes.SepCMA(start.x0.copy(), start.sigma0, seed=start.seed, population_size=start.popsize)
    fun.favorite = lambda: search.mean
    while not search.should_stop():
        points = [search.ask() for _ in range(search.population_size)]
        search.tell(list(zip(points, fun.batch(points).tolist(), strict=True)))
    return "should_stop"


def search_pypop7(module: str, kind: str, update: str) -> Search:
    """Return a search of pypop7 without its restarts, with the name of its method that returns the mean first."""

    def search(fun: Recorder, start: Start) -> str:
        problem = {"fitness_function": fun, "ndim_problem": start.dim}
        options: dict[str, Any] = {
            "max_function_evaluations": start.max_evals,
            "mean": start.x0.copy(),
            "sigma": start.sigma0,
            "seed_rng": start.seed,
            "is_restart": False,
            "verbose": 0,
        }
        options |= {} if start.popsize is None else {"n_individuals": start.popsize}
        optimizer = getattr(importlib.import_module(f"pypop7.optimizers.es.{module}"), kind)(problem, options)
        plain, mean = getattr(optimizer, update), [start.x0]

        def updated(*arguments: Any) -> Any:
            found = plain(*arguments)
            mean[0] = found[0]
            return found

        setattr(optimizer, update, updated)
        fun.favorite = lambda: mean[0]
        return str(optimizer.optimize()["termination_signal"].name).lower()

    return search


class Method(NamedTuple):
    """A search, the package that it is in and what else must be there."""

    search: Search
    package: str = "esgroup"

    @property
    def missing(self) -> str:
        """What to install, empty if nothing."""
        return "" if importlib.util.find_spec(self.package) else self.package

    @property
    def version(self) -> str:
        """The package with its version."""
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{self.package} {importlib.metadata.version(self.package)}"
        return f"{self.package} {getattr(importlib.import_module(self.package), '__version__', '')}".strip()


OUR_METHODS = {
    "ours": Method(search_ours(lambda dim: "auto")),
    "frame": Method(search_ours(lambda dim: "frame")),
    "former": Method(search_ours(former_structure)),
    "full": Method(search_ours(lambda dim: "full")),
    "diagonal": Method(search_ours(lambda dim: "diagonal")),
}
METHODS = {
    **OUR_METHODS,
    "vkd": Method(search_vkd, "cma"),
    "crfmnes": Method(search_crfmnes, "fcmaes"),
    "lmcma": Method(search_pypop7("lmcma", "LMCMA", "update_distribution"), "pypop7"),
    "lmma": Method(search_pypop7("lmmaes", "LMMAES", "_update_distribution"), "pypop7"),
    "mmes": Method(search_pypop7("mmes", "MMES", "_update_distribution"), "pypop7"),
    "ddcma": Method(search_pypop7("ddcma", "DDCMA", "_update_distribution"), "pypop7"),
    "cma": Method(search_cma, "cma"),
    "sepcma": Method(search_sepcma, "cmaes"),
}


# ---- one run --------------------------------------------------------------------------------------------------------


def problem_of(task: Task) -> Problem:
    """Return the problem of a task."""
    if task.kind == SUITE:
        return suite_problem(int(task.problem.removeprefix("f")), task.dim, task.instance)
    return own_problem(task.problem, task.dim, task.instance)


def recorder_of(task: Task, problem: Problem) -> Recorder:
    """Return the objective of a run; with noise there are no targets, but the course of the recommended point."""
    if problem.noisy:
        return Recorder(
            problem.values,
            task.budget,
            seconds=task.seconds,
            checkpoints=grid(task.budget),
            judge=lambda fun: exact_value(problem, fun.favorite()),
            noise=np.random.default_rng([7, task.seed]),
        )
    scale = exact_value(problem, np.zeros(task.dim)) if task.relative else 1.0
    thresholds = [problem.optimum + target * scale for target in targets(task.target)]
    return Recorder(problem.values, task.budget, thresholds, task.seconds)


def exact_value(problem: Problem, x: Array) -> float:
    """Return the value of a point above the optimum, without noise."""
    return float(problem.values(np.asarray(x, dtype=float)[None])[0]) - problem.optimum


def solve(task: Task) -> Record:
    """Do one run."""
    method, problem = METHODS[task.method], problem_of(task)
    fun = recorder_of(task, problem)
    start = Start(np.zeros(task.dim), SIGMA0, task.seed, task.budget, task.popsize)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # peers that overflow or divide by zero are judged as they are
        importlib.import_module(method.package)  # not on the clock
        since = time.process_time()
        ended = how_it_ended(lambda: method.search(fun, start), fun)
        cpu = time.process_time() - since
        if ended != OUT_OF_TIME:  # nobody knows what the rest would have found
            fun.fill_course()
    course = tuple(zip(fun.checkpoints, fun.course, strict=False))
    return Record(
        task, tuple(fun.hits), fun.count, fun.best - problem.optimum, ended, round(cpu, 3), course, method.version
    )


# ---- processes ------------------------------------------------------------------------------------------------------


class Crashed(Exception):
    """The process of a run has ended without a word."""


def _send(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Send what a function returns, or what it raises."""
    try:
        sender.send((function(*arguments), ""))
    except Exception:
        sender.send((None, traceback.format_exc()))


def in_new_process(function: Callable[..., R], *arguments: Any) -> R:
    """Return the result of a function in an interpreter of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        found, error = receiver.recv()
    except EOFError:
        process.join()
        raise Crashed(f"its process has ended with exit code {process.exitcode}") from None
    finally:
        receiver.close()
    process.join()
    if error:
        raise RuntimeError(error)
    result: R = found
    return result


def done_tasks(tasks: Sequence[T], jobs: int, solve: Callable[[T], R]) -> Iterator[tuple[T, R | Crashed]]:
    """Yield tasks with what `solve` makes of each, in a process of its own, as it comes, or how the process crashed."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(in_new_process, solve, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except Crashed as crash:
                    yield futures[future], crash
        finally:
            pool.shutdown(cancel_futures=True)  # after a failure the rest is not run
