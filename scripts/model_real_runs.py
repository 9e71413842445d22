"""One run of the benchmark on problems from practice: a method, its evaluations to the stated value, and its course."""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob_arguments import parse_option
from bbob_rows import append_tuples, read_texts
from bbob_runs import Finished, how_it_ended
from model_real_problems import MAKERS, RealProblem, real_problem
from model_runs import begin_again

CHECKPOINTS = (25, 50, 100, 200, 400, 800)  # evaluations after which the value so far is noted
GP_EVALS = 200  # the most that the Gaussian process gets, which takes a quarter of a second for each of them


class RealSetup(NamedTuple):
    """What a label stands for."""

    method: str
    options: str
    budget: int  # evaluations of a run, 0: those of the problem


class RealRow(NamedTuple):
    """One run; one line of the CSV."""

    label: str
    problem: str
    seed: int
    evals: int | None  # evaluations to the target
    used: int
    asks: int  # generations or parts of them; evaluations of methods that ask for one point at a time
    failed: int  # evaluations that had no value
    ended: str
    cpu: float  # seconds, evaluations included, judgments of noisy points not
    values: tuple[float, ...]  # at the checkpoints within the budget: the value so far, of noisy ones as it is judged
    method: str
    options: str
    budget: int

    @property
    def run(self) -> tuple[str, int]:
        return self.problem, self.seed

    @property
    def instance(self) -> int:
        """What intervals are drawn over."""
        return self.seed

    @property
    def setup(self) -> RealSetup:
        return RealSetup(self.method, self.options, self.budget)

    @property
    def cut(self) -> bool:
        """Whether a limit in time has ended it: there is none."""
        return False

    @property
    def cost(self) -> int:
        """Evaluations to the target; a run that does not get there counts with its budget, also if it ended early."""
        return evaluations_of(self.problem, self.budget) if self.evals is None else self.evals


class RealTask(NamedTuple):
    """One run of a label."""

    label: str
    setup: RealSetup
    problem: str
    seed: int

    @property
    def run(self) -> tuple[str, int]:
        return self.problem, self.seed

    @property
    def max_evals(self) -> int:
        return evaluations_of(self.problem, self.setup.budget)

    @property
    def own_seed(self) -> int:
        """Seed of the method, positive and below 2^31, as cma wants it."""
        return int(np.random.SeedSequence([_number(self.problem), self.seed]).generate_state(1)[0] >> 1) or 1

    def start(self) -> np.ndarray:
        """The first point, the same for all methods."""
        return real_problem(self.problem).start(np.random.default_rng([11, _number(self.problem), self.seed]))


def _number(problem: str) -> int:
    return list(MAKERS).index(problem)


def evaluations_of(problem: str, budget: int) -> int:
    """Evaluations of a run: a given number, or what the problem says."""
    return budget or real_problem(problem).budget


def read_real_rows(path: Path) -> list[RealRow]:
    """Rows of a file, none if there is no file."""
    return [
        RealRow(
            row["label"],
            row["problem"],
            int(row["seed"]),
            int(row["evals"]) if row["evals"] else None,
            *(int(row[name]) for name in ("used", "asks", "failed")),
            row["ended"],
            float(row["cpu"]),
            tuple(float(value) for value in row["values"].split()),
            row["method"],
            row["options"],
            int(row["budget"]),
        )
        for row in read_texts(path, RealRow._fields)
    ]


def append_real_rows(path: Path, rows: Iterable[RealRow]) -> None:
    """Write rows at the end of a file."""
    texts = (row._replace(values=" ".join(f"{one:.6g}" for one in row.values)) for row in rows)  # type: ignore[arg-type]
    append_tuples(path, texts, RealRow._fields)


# ---- what a method sees of a problem ----------------------------------------------------------------------------


class RealRecorder:
    """An objective that counts, notes the course of the values, and ends a run at the target or after its budget.

    Points are moved to the nearest one within the bounds; methods that know bounds never need it. The value so far is
    the least one. Of a noisy problem the least value is luck, and no search sees what a point is worth: there it is the
    judged value (`RealProblem.judged`) of the point that the method would return if it were stopped now. Methods that
    have an opinion of their own, the mean of the search distribution, say so by `recommend`; for the others it is the
    point with the least observed value. Judgments are neither counted nor timed.
    """

    def __init__(self, problem: RealProblem, max_evals: int, seed: int, method: Method) -> None:
        self.problem, self.max_evals, self.method = problem, max_evals, method
        self.rng = np.random.default_rng([7, seed])  # of the noise: the same for all methods
        self.count = self.asks = self.failed = 0
        self.best = math.inf  # the least observed value
        self.now = math.inf  # the value so far
        self.course: list[float] = []  # the value so far after every evaluation
        self.hit: int | None = None
        self.judging = 0.0  # seconds

    def generation(self, points: Any) -> list[float]:
        """Values of points, one after the other."""
        self.asks += 1
        return [self._evaluate(self.problem.inside(np.asarray(point))) for point in points]

    def __call__(self, x: Any) -> float:
        return self.generation([x])[0]

    def _evaluate(self, x: np.ndarray) -> float:
        if self.count >= self.max_evals:
            raise Finished("budget")
        value = self.problem.value(x, int(self.rng.integers(2**31)))
        self.count += 1
        self.failed += math.isnan(value)
        if value < self.best:
            self.best = value
            if not self.problem.noisy:
                self.now = value
            elif not self.method.recommends:
                self.now = self._judged(x)
        self.course.append(self.now)
        self._end_at_target()
        return value if self.method.takes_nan or not math.isnan(value) else self.problem.failed

    def recommend(self, x: np.ndarray) -> None:
        """What the method takes for the best point now; noisy problems are judged by it."""
        if self.problem.noisy:
            self.now = self._judged(self.problem.inside(x))
            self.course[-1:] = [self.now]
            self._end_at_target()

    def _judged(self, x: np.ndarray) -> float:
        since = time.process_time()
        found = self.problem.judged(x)
        self.judging += time.process_time() - since
        return found

    def _end_at_target(self) -> None:
        if self.now <= self.problem.target:
            self.hit = self.count
            raise Finished("target")

    def values(self) -> tuple[float, ...]:
        """One for each checkpoint; those after the end have what was found."""
        at = [many for many in CHECKPOINTS if many <= self.max_evals]
        return tuple(self.course[min(many, len(self.course)) - 1] for many in at)


# ---- methods ----------------------------------------------------------------------------------------------------


def search_esgroup(task: RealTask, fun: RealRecorder, x0: np.ndarray) -> str:
    """Ours with the task's options."""
    import esgroup

    problem = fun.problem
    options = dict(parse_option(text) for text in task.setup.options.split(";") if text)
    options |= {"bounds": problem.box} if problem.bounded else {}
    search = esgroup.Searcher(x0, problem.sigma0, rng=task.own_seed, max_evals=fun.max_evals, **options)
    while not search.stop():
        points = search.ask()
        search.tell(points, fun.generation(points))
        fun.recommend(search.mean)
    return "+".join(search.stop())


def _cma_options(task: RealTask, fun: RealRecorder) -> dict[str, Any]:
    options = {"maxfevals": fun.max_evals, "verbose": -9, "verb_log": 0, "seed": task.own_seed}
    return options | ({"bounds": fun.problem.box.T.tolist()} if fun.problem.bounded else {})


def search_cma(task: RealTask, fun: RealRecorder, x0: np.ndarray) -> str:
    """cma with its defaults."""
    import cma

    search = cma.CMAEvolutionStrategy(x0, fun.problem.sigma0, _cma_options(task, fun))
    while not search.stop():
        points = search.ask()
        search.tell(points, fun.generation(points))
        fun.recommend(search.result.xfavorite)
    return "+".join(search.stop())


def search_lq(task: RealTask, fun: RealRecorder, x0: np.ndarray) -> str:
    """lq-CMA-ES of cma."""
    import cma

    def say(search: Any) -> None:
        fun.recommend(search.result.xfavorite)

    _, search = cma.fmin_lq_surr2(fun, x0, fun.problem.sigma0, _cma_options(task, fun), callback=say)
    return "+".join(search.stop())


def search_cobyqa(task: RealTask, fun: RealRecorder, x0: np.ndarray) -> str:
    """SciPy's COBYQA with the step size as its first radius; it begins again at its best point while that helps."""
    from scipy.optimize import minimize

    options = {"maxfev": fun.max_evals, "initial_tr_radius": fun.problem.sigma0, "final_tr_radius": 1e-8}
    bounds = fun.problem.box if fun.problem.bounded else None

    def once(x: np.ndarray) -> tuple[np.ndarray, str]:
        found = minimize(fun, x, method="COBYQA", bounds=bounds, options=options)
        return found.x, f"status {found.status}"

    return begin_again(fun, x0, once)


def search_gp(task: RealTask, fun: RealRecorder, x0: np.ndarray) -> str:
    """Optuna's sampler by a Gaussian process, with the start as its first trial; failures are failed trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    box = fun.problem.box
    names = [f"x{i}" for i in range(len(box))]
    sampler = optuna.samplers.GPSampler(seed=task.own_seed, deterministic_objective=not fun.problem.noisy)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(dict(zip(names, np.clip(x0, *box.T).tolist(), strict=True)))
    for _ in range(min(GP_EVALS, fun.max_evals)):
        trial = study.ask()
        value = fun([trial.suggest_float(name, *sides) for name, sides in zip(names, box.tolist(), strict=True)])
        if math.isnan(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
    return f"{fun.count} evaluations"


class Method(NamedTuple):
    """A search, and what it does by itself."""

    search: Callable[[RealTask, RealRecorder, np.ndarray], str]
    takes_nan: bool = False
    recommends: bool = False  # which point is the best in noise
    needs: tuple[str, ...] = ()  # packages that are not in the extras of the benchmarks


METHODS: dict[str, Method] = {
    "esgroup": Method(search_esgroup, takes_nan=True, recommends=True),
    "cma": Method(search_cma, recommends=True),
    "lq": Method(search_lq, recommends=True),
    "cobyqa": Method(search_cobyqa),
    "gp": Method(search_gp, takes_nan=True, needs=("optuna", "torch")),
}


def missing(method: str) -> list[str]:
    """Packages that a method needs and that are not installed."""
    return [name for name in METHODS[method].needs if importlib.util.find_spec(name) is None]


@cache
def _begin(setup: RealSetup, problem: str) -> None:
    """Import and compile what a method needs, off the clock, by a short run; once for every problem."""
    _searched(RealTask("", setup._replace(budget=3 * real_problem(problem).dim), problem, 0))


def _searched(task: RealTask) -> tuple[RealRecorder, str]:
    method = METHODS[task.setup.method]
    fun = RealRecorder(real_problem(task.problem), task.max_evals, task.own_seed, method)
    return fun, how_it_ended(lambda: method.search(task, fun, task.start()), fun)


def solve_real(task: RealTask) -> RealRow:
    """One run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _begin(task.setup, task.problem)
        since = time.process_time()
        fun, ended = _searched(task)
    cpu = round(time.process_time() - since - fun.judging, 3)
    return RealRow(
        task.label, task.problem, task.seed, fun.hit, fun.count, fun.asks, fun.failed, ended, cpu, fun.values(),
        *task.setup,
    )  # fmt: skip
