"""One run of the benchmark of searches with models: a method on a problem of ioh, its gaps and the targets it hits."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob_arguments import parse_option
from bbob_rows import Run, append_tuples, read_texts
from bbob_runs import OUT_OF_TIME, SIGMA0, Finished, Recorder, bbob_problem, how_it_ended, run_cma, start

TARGETS = tuple(10.0 ** (2 - i / 5) for i in range(51))  # above the optimum, 10^2 to 10^-8: the targets of COCO
TARGET = TARGETS[-1]  # where a run ends
CHECKPOINTS = (10, 30, 100, 400, 2000)  # evaluations per coordinate after which the gap is noted


class ModelSetup(NamedTuple):
    """What a label stands for."""

    method: str
    options: str
    budget: int  # evaluations per coordinate
    batch: str  # points in an ask (see points_an_ask), empty: as many as the method wants
    noise: float  # values are f_opt + (f - f_opt) exp(noise N(0, 1))
    seconds: float  # after which a run is cut at its next evaluation, by the clock on the wall; 0: never


class ModelRow(NamedTuple):
    """One run; one line of the CSV."""

    label: str
    function: int
    dim: int
    instance: int
    seed: int
    evals: int | None  # number of the evaluation that hit the target
    used: int
    asks: int  # generations or parts of them; evaluations of methods that ask for one point at a time
    ended: str
    cpu: float  # seconds, evaluations included
    gaps: tuple[float, ...]  # best value so far above the optimum, at the checkpoints until the budget or the cut
    hits: tuple[int, ...]  # number of the evaluation that hit each of TARGETS, up to the last that was hit
    method: str
    options: str
    budget: int
    batch: str
    noise: float
    seconds: float

    @property
    def run(self) -> Run:
        return Run(self.function, self.dim, self.instance, None, self.seed)

    @property
    def setup(self) -> ModelSetup:
        return ModelSetup(self.method, self.options, self.budget, self.batch, self.noise, self.seconds)

    @property
    def cost(self) -> int:
        """Evaluations to the target; a run that does not get there counts with its budget."""
        return self.budget * self.dim if self.evals is None else self.evals

    @property
    def cut(self) -> bool:
        """Whether the run had no more time."""
        return self.ended == OUT_OF_TIME


class ModelTask(NamedTuple):
    """One run of a label."""

    label: str
    setup: ModelSetup
    run: Run

    @property
    def max_evals(self) -> int:
        return self.setup.budget * self.run.dim

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the method that differ from its defaults."""
        return dict(parse_option(text) for text in self.setup.options.split(";") if text)

    @property
    def seed(self) -> int:
        """Seed of the method, positive and below 2^31, as cma wants it."""
        function, dim, instance, _, seed = self.run
        return int(np.random.SeedSequence([function, dim, instance, seed]).generate_state(1)[0] >> 1) or 1


def read_model_rows(path: Path) -> list[ModelRow]:
    """Rows of a file, none if there is no file."""
    try:
        texts = read_texts(path, ModelRow._fields)
    except ValueError as error:
        hint = "a file without hits and seconds is of an earlier version of this benchmark, whose runs must be run anew"
        raise ValueError(f"{error}; {hint}") from None
    return [
        ModelRow(
            row["label"],
            *(int(row[name]) for name in ("function", "dim", "instance", "seed")),
            int(row["evals"]) if row["evals"] else None,
            *(int(row[name]) for name in ("used", "asks")),
            row["ended"],
            float(row["cpu"]),
            tuple(float(gap) for gap in row["gaps"].split()),
            tuple(int(hit) for hit in row["hits"].split()),
            row["method"],
            row["options"],
            int(row["budget"]),
            row["batch"],
            float(row["noise"]),
            float(row["seconds"]),
        )
        for row in texts
    ]


def append_model_rows(path: Path, rows: Iterable[ModelRow]) -> None:
    """Write rows at the end of a file."""
    texts = (
        row._replace(gaps=" ".join(f"{gap:.6g}" for gap in row.gaps), hits=" ".join(map(str, row.hits)))  # type: ignore[arg-type]
        for row in rows
    )
    append_tuples(path, texts, ModelRow._fields)


def points_an_ask(batch: str, popsize: int) -> int:
    """A number of points, or 0.5x as many as a population has, rounded down; at least one."""
    factor = batch.removesuffix("x")
    number = float(factor) if re.fullmatch(r"[0-9]+([.][0-9]+)?", factor) else 0.0
    if number <= 0.0 or (factor == batch and number != int(number)):
        raise ValueError(f"a batch must be a number of points like 10, or of populations like 0.5x, got {batch!r}")
    return int(number) if factor == batch else max(1, int(number * popsize))


class GapRecorder(Recorder):
    """An objective that also notes the gap at the checkpoints, and may make its values noisy."""

    def __init__(self, task: ModelTask) -> None:
        problem = bbob_problem(task.run)
        self.optimum = float(problem.optimum.y)
        super().__init__(problem, self.optimum, task.max_evals, TARGETS, task.setup.seconds)
        self.at = [many * task.run.dim for many in CHECKPOINTS if many <= task.setup.budget]
        self.gaps: list[float] = []
        self.best = math.inf
        self.noise, self.rng = task.setup.noise, np.random.default_rng([7, task.seed])

    def note(self, value: float) -> None:
        self.best = min(self.best, value)
        if len(self.gaps) < len(self.at) and self.count + 1 == self.at[len(self.gaps)]:
            self.gaps.append(self.gap)
        super().note(value)

    @property
    def gap(self) -> float:
        """The best value so far above the optimum."""
        return max(0.0, self.best - self.optimum)

    def generation(self, points: Any) -> list[float]:
        values = super().generation(points)
        if self.noise == 0.0:
            return values
        factors = np.exp(self.noise * self.rng.standard_normal(len(values)))
        return [self.optimum + (value - self.optimum) * float(one) for value, one in zip(values, factors, strict=True)]

    def all_gaps(self) -> tuple[float, ...]:
        """One for each checkpoint; those after the end of a method have what was found."""
        return tuple([*self.gaps, *[self.gap] * (len(self.at) - len(self.gaps))])


# ---- methods ----------------------------------------------------------------------------------------------------


def search_esgroup(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """Ours with the task's options; with restarts, `minimize` is what begins again.

    It is not told the target, which the recorder knows without noise, and which ends the run in any case.
    """
    import esgroup

    options = {"rng": task.seed, "max_evals": task.max_evals, **task.options}
    if "restarts" in options:
        return "+".join(esgroup.minimize(fun.generation, x0, SIGMA0, vectorized=True, **options).stop)
    search = esgroup.Searcher(x0, SIGMA0, **options)
    batch = points_an_ask(task.setup.batch, search.popsize) if task.setup.batch else None
    while not search.stop():
        points = search.ask(batch)
        search.tell(points, fun.generation(points))
    return "+".join(search.stop())


def search_cma(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """cma with its defaults, or with restarts."""
    options = task.options
    return run_cma(fun, x0, task.seed, options.pop("restarts", "none"), options)


def search_lq(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """lq-CMA-ES of cma."""
    import cma

    options = {"maxfevals": task.max_evals, "verbose": -9, "verb_log": 0, "seed": task.seed}
    _, search = cma.fmin_lq_surr2(fun, x0, SIGMA0, options)
    return "+".join(search.stop())


def search_cobyqa(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """SciPy's COBYQA with the step size as its first radius."""
    from scipy.optimize import minimize

    options = {"maxfev": task.max_evals, "initial_tr_radius": SIGMA0, "final_tr_radius": 1e-10}
    return begin_again(fun, x0, lambda x: _scipy(minimize(fun, x, method="COBYQA", options=options)))


def search_bfgs(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """SciPy's BFGS by forward differences, all of whose evaluations count."""
    from scipy.optimize import minimize

    return begin_again(fun, x0, lambda x: _scipy(minimize(fun, x, method="BFGS", options={"gtol": 1e-12})))


def search_newuoa(task: ModelTask, fun: GapRecorder, x0: np.ndarray) -> str:
    """NEWUOA of NLopt with the step size as its first radius."""
    import nlopt

    def once(x: np.ndarray) -> tuple[np.ndarray, str]:
        optimizer = nlopt.opt(nlopt.LN_NEWUOA, len(x))
        stopped: list[Finished] = []

        def value(point: np.ndarray, gradient: np.ndarray) -> float:
            try:
                return fun(point)
            except Finished as end:
                stopped.append(end)
                raise nlopt.ForcedStop from None

        optimizer.set_min_objective(value)
        optimizer.set_initial_step(SIGMA0)
        optimizer.set_xtol_rel(1e-14)
        try:
            found = optimizer.optimize(x)
        except (nlopt.ForcedStop, nlopt.RoundoffLimited, RuntimeError):
            if stopped:
                raise stopped[0] from None
            return x, "roundoff"
        return found, str(optimizer.last_optimize_result())

    return begin_again(fun, x0, once)


def _scipy(found: Any) -> tuple[np.ndarray, str]:
    return found.x, f"status {found.status}"


def begin_again(fun: Any, x: np.ndarray, once: Callable[[np.ndarray], tuple[np.ndarray, str]]) -> str:
    """Begin a method again at its best point, until that brings no better `fun.best`."""
    while True:
        before = fun.best
        x, ended = once(x)
        if not fun.best < before:
            return ended


METHODS: dict[str, Callable[[ModelTask, GapRecorder, np.ndarray], str]] = {
    "esgroup": search_esgroup,
    "cma": search_cma,
    "lq": search_lq,
    "cobyqa": search_cobyqa,
    "newuoa": search_newuoa,
    "bfgs": search_bfgs,
}


@cache
def _begin(setup: ModelSetup, dim: int) -> None:
    """Import and compile what a method needs, off the clock, by a short run on the sphere; once in a process."""
    task = ModelTask("", setup._replace(budget=8, noise=0.0), Run(1, dim, 1, None, 0))
    fun = GapRecorder(task)
    how_it_ended(lambda: METHODS[setup.method](task, fun, start(task.run)), fun)


def solve_with_gaps(task: ModelTask) -> ModelRow:
    """One run."""
    run, x0 = task.run, start(task.run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _begin(task.setup, run.dim)
        fun, since = GapRecorder(task), time.process_time()
        ended = how_it_ended(lambda: METHODS[task.setup.method](task, fun, x0), fun)
    cpu = round(time.process_time() - since, 3)
    gaps = tuple(fun.gaps) if ended == OUT_OF_TIME else fun.all_gaps()  # nobody knows what the rest would have found
    return ModelRow(
        task.label, run.function, run.dim, run.instance, run.seed, fun.evals()[-1], fun.count, fun.asks, ended, cpu,
        gaps, tuple(fun.hits), *task.setup,
    )  # fmt: skip
