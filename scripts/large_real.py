"""Networks whose weights are searched by values only: a classifier of digits, and policies of classic control.

    digits            a network 64-16-10 on scikit-learn's digits, 1,210 weights: cross-entropy and a penalty
    cart_pole1000     a policy of about 1,000 weights that balances a pole; cart_pole5000 has about 5,000
    acrobot1000       a policy that swings up two joined links; acrobot5000
    pendulum1000      a policy that swings up a pendulum; pendulum5000

Methods: ours with several structures; `kronecker`, ours with a Kronecker product of two full matrices for each matrix
of weights and a diagonal for the biases; SepCMA of cmaes; and two that are written out here, OpenAI-ES and SNES, whose
rates are chosen on other seeds than those of the runs (`tune` of bench_large.py). The tasks of the policies are in
large_policies.py. Needs scikit-learn for `digits`, and gymnasium for the first states of policies.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import re
import statistics
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from large_networks import Layers, RealProblem, first_weights, kronecker_structure, split
from large_policies import CONTROLS, SIZES, policy
from large_runs import (
    OUR_METHODS,
    Array,
    Method,
    Recorder,
    Search,
    Start,
    how_it_ended,
    search_ours,
    search_sepcma,
    sphere,
)

BUDGETS = (2_000, 5_000, 10_000, 20_000, 50_000)  # evaluations after which the objective is noted
SIGMA0 = 0.1  # the first step size, a fraction of the first weights
TRAINING, PENALTY = 600, 1e-3  # of digits
OPENAI_POPSIZE = 40  # mirrored


# ---- digits ---------------------------------------------------------------------------------------------------------

DIGITS_LAYERS = ((16, 64), (10, 16))


@cache
def digits_data() -> tuple[Array, Array, Array, Array]:
    """Return pixels from 0 to 1 and classes, of 600 rows to fit and of the others to judge by, drawn once for all."""
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    among = np.random.default_rng(1).permutation(len(classes))
    fit, judge = among[:TRAINING], among[TRAINING:]
    return pixels[fit] / 16, classes[fit], pixels[judge] / 16, classes[judge]


def logits(weights: Array, inputs: Array, layers: Layers) -> Array:
    """Return what networks with tanh between their layers say of inputs: (n, rows, outputs)."""
    found = np.broadcast_to(inputs, (len(weights), *inputs.shape))
    for number, (matrix, bias) in enumerate(split(weights, layers)):
        found = np.matmul(np.tanh(found) if number else found, matrix.transpose(0, 2, 1)) + bias[:, None, :]
    return found


def digits_values(weights: Array) -> Array:
    """Return the mean cross-entropy on the training data plus 1e-3 |w|^2, biases included, of rows of weights."""
    inputs, classes, _, _ = digits_data()
    scores = logits(weights, inputs, DIGITS_LAYERS)
    highest = scores.max(axis=2)
    totals = highest + np.log(np.exp(scores - highest[:, :, None]).sum(axis=2))
    losses = totals - scores[:, np.arange(len(classes)), classes]
    found: Array = losses.mean(axis=1) + PENALTY * sphere(weights)
    return found


def digits_accuracy(weights: Array) -> float:
    """Return the share of the test data that is classified rightly."""
    _, _, inputs, classes = digits_data()
    return float((logits(weights[None], inputs, DIGITS_LAYERS)[0].argmax(axis=1) == classes).mean())


def digits(seed: int) -> RealProblem:
    """Return the classifier; data are the same for all seeds."""
    return RealProblem(DIGITS_LAYERS, digits_values, digits_accuracy)


# ---- problems -------------------------------------------------------------------------------------------------------

REAL_PROBLEMS = ("digits", *(f"{name}{size}" for name in CONTROLS for size in SIZES))


def real_problem(name: str, seed: int) -> RealProblem:
    """Return the problem with this name; one that is unknown is refused."""
    if name == "digits":
        return digits(seed)
    found = re.fullmatch(f"({'|'.join(CONTROLS)})([0-9]+)", name)
    if name not in REAL_PROBLEMS or found is None:
        raise ValueError(f"a problem must be among {', '.join(REAL_PROBLEMS)}, got {name!r}")
    return policy(found[1], int(found[2]), seed)


def missing_for(problem: str) -> str:
    """Return what to install for a problem, empty if nothing."""
    module, package = ("sklearn", "scikit-learn") if problem == "digits" else ("gymnasium", "gymnasium")
    return "" if importlib.util.find_spec(module) else package


# ---- methods that are written out -----------------------------------------------------------------------------------


def centerd_ranks(values: Array) -> Array:
    """Return 1/2 for the least value to -1/2 for the largest, in equal steps."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return 0.5 - ranks / (len(values) - 1)


def search_openai(rate: float) -> Search:
    """Return OpenAI-ES (Salimans, Ho, Chen, Sidor, Sutskever 2017): mirrored samples, centerd ranks, Adam.

    The standard deviation of the samples is constant, and there is no decay of weights beyond that of the objective.
    """

    def search(fun: Recorder, start: Start) -> str:
        rng, n = np.random.default_rng(start.seed), start.popsize or OPENAI_POPSIZE
        mean = start.x0.copy()
        first, second, step = np.zeros(start.dim), np.zeros(start.dim), 0
        fun.favorite = lambda: mean
        while True:
            half = rng.standard_normal((n // 2, start.dim))
            noise = np.concatenate([half, -half])
            good = centerd_ranks(fun.batch(mean + start.sigma0 * noise))
            ascent = good @ noise / (n * start.sigma0)
            step += 1
            first += 0.1 * (ascent - first)
            second += 0.001 * (ascent**2 - second)
            mean += rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)

    return search


def snes_utilities(n: int) -> Array:
    """Return max(0, ln(n/2 + 1) - ln i) for i = 1 to n, with sum 1, minus 1/n."""
    raw = np.maximum(0.0, math.log(n / 2 + 1) - np.log(np.arange(1, n + 1)))
    found: Array = raw / raw.sum() - 1 / n
    return found


def snes_rate(dim: int) -> float:
    """Return the rate of the standard deviations that Wierstra et al. propose, (3 + ln d) / (5 sqrt d)."""
    return (3 + math.log(dim)) / (5 * math.sqrt(dim))


def search_snes(rate: float) -> Search:
    """Return SNES (Wierstra, Schaul, Glasmachers, Sun, Peters, Schmidhuber 2014), with this rate of the deviations."""

    def search(fun: Recorder, start: Start) -> str:
        rng, n = np.random.default_rng(start.seed), start.usual_popsize
        mean, stds, utilities = start.x0.copy(), np.full(start.dim, start.sigma0), snes_utilities(start.usual_popsize)
        fun.favorite = lambda: mean
        while True:
            noise = rng.standard_normal((n, start.dim))
            order = np.argsort(fun.batch(mean + stds * noise), kind="stable")
            ordered = noise[order]
            mean += stds * (utilities @ ordered)
            stds *= np.exp(rate / 2 * (utilities @ (ordered**2 - 1)))

    return search


TUNED: dict[str, Callable[[float], Search]] = {"openai": search_openai, "snes": search_snes}
REAL_METHODS = ("ours", "frame", "diagonal", "kronecker", "sepcma", *TUNED)


def rates_to_try(method: str, dim: int) -> list[float]:
    """Return the rates from which one is chosen; those of SNES are multiples of the usual one."""
    if method == "openai":
        return [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    return [float(f"{factor * snes_rate(dim):.3g}") for factor in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)]


def real_method(name: str, layers: Layers, rate: float | None) -> Method:
    """Return a method for a network; those that are tuned must have a rate."""
    if name in TUNED:
        if rate is None:
            raise ValueError(f"{name} must have a rate, got none: run `tune` first")
        return Method(TUNED[name](rate), "numpy")
    if name == "kronecker":
        return Method(search_ours(lambda dim: kronecker_structure(layers)))
    if name == "sepcma":
        return Method(search_sepcma, "cmaes")
    return OUR_METHODS[name]


# ---- runs -----------------------------------------------------------------------------------------------------------


class RealTask(NamedTuple):
    """One run of a method on a network."""

    problem: str
    seed: int
    method: str
    budgets: tuple[int, ...]  # evaluations after which the objective is noted; the last one ends the run
    rate: float | None = None

    @property
    def run(self) -> tuple[Any, ...]:
        """What is done once."""
        return self._replace(budgets=())

    @property
    def own_seed(self) -> int:
        """Seed of the method, the same for all rates."""
        return int(np.random.SeedSequence([zlib.crc32(self.problem.encode()), self.seed]).generate_state(1)[0] >> 1)

    def __str__(self) -> str:
        rate = "" if self.rate is None else f" rate {self.rate:g}"
        return f"{self.method}{rate} {self.problem} seed {self.seed}"


class Noted(NamedTuple):
    """What a run has after so many evaluations."""

    evals: int
    best: float  # the least value of an evaluated point
    at_mean: float  # the value of the mean of the search, which is not counted
    accuracy: float | None  # on the test data, of the better one of these

    @property
    def value(self) -> float:
        """The objective of the better one."""
        return min(self.best, self.at_mean)


class RealRecord(NamedTuple):
    """What one run came to."""

    task: RealTask
    course: tuple[Noted, ...]  # at the budgets
    used: int
    ended: str
    cpu: float  # seconds, evaluations included
    package: str

    def line(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {**self.task._asdict(), **{name: value for name, value in self._asdict().items() if name != "task"}}

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> RealRecord:
        """Return the record of a line of a file."""
        given = {name: line[name] for name in RealTask._fields}
        task = RealTask(**{**given, "budgets": tuple(given["budgets"])})
        rest = {name: line[name] for name in ("used", "ended", "cpu", "package")}
        return cls(task, tuple(Noted(*entry) for entry in line["course"]), **rest)


def noted(problem: RealProblem, fun: Recorder) -> tuple[float, float, float | None]:
    """Return the least value, that of the mean, and the accuracy of the better one."""
    mean = np.asarray(fun.favorite(), dtype=float)
    at_mean = float(problem.values(mean[None])[0])
    better = mean if at_mean < fun.best else fun.best_x
    return fun.best, at_mean, None if problem.accuracy is None else problem.accuracy(better)


def solve_real(task: RealTask) -> RealRecord:
    """Do one run."""
    problem = real_problem(task.problem, task.seed)
    method = real_method(task.method, problem.layers, task.rate)
    budgets = sorted(task.budgets)
    x0 = first_weights(problem.layers, np.random.default_rng([29, task.seed]))
    start = Start(x0, SIGMA0, task.own_seed, budgets[-1])
    thresholds = [problem.floor] if math.isfinite(problem.floor) else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(method.package)  # not on the clock
        fun = Recorder(problem.values, budgets[-1], thresholds, 0.0, budgets, lambda seen: noted(problem, seen))
        since = time.process_time()
        ended = how_it_ended(lambda: method.search(fun, start), fun)
        cpu = round(time.process_time() - since, 3)
        fun.fill_course()
    course = tuple(Noted(many, *found) for many, found in zip(fun.checkpoints, fun.course, strict=True))
    return RealRecord(task, course, fun.count, ended, cpu, method.version)


def real_tasks_to_do(tasks: Sequence[RealTask], records: Sequence[RealRecord]) -> list[RealTask]:
    """Return the tasks that were not done yet; one that was done with other budgets is refused."""
    done = {record.task.run: record.task for record in records}
    for task in tasks:
        if (known := done.get(task.run, task)).budgets != task.budgets:
            raise ValueError(
                f"--budgets of {task} must be those of its run in the folder, {known.budgets}, got {task.budgets}; "
                "choose another --out"
            )
    return [task for task in tasks if task.run not in done]


# ---- rates ----------------------------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """The rate that was chosen for a method on a problem, on which seeds, and among which."""

    rate: float
    seeds: tuple[int, ...]
    tried: tuple[float, ...]

    @property
    def at_the_edge(self) -> bool:
        """Whether there is reason to try more: the least or the largest rate was the best of several."""
        return len(self.tried) > 1 and self.rate in (min(self.tried), max(self.tried))


Rates = dict[tuple[str, str], Chosen]  # by problem and method


def chosen_rates(records: Iterable[RealRecord]) -> Rates:
    """Return the rate with the least mean objective at the end of its runs, and on the way if that is equal."""
    found: dict[tuple[str, str], dict[float, list[RealRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.task.rate is not None:
            found[record.task.problem, record.task.method][record.task.rate].append(record)

    def quality(runs: Sequence[RealRecord]) -> tuple[float, float]:
        last = statistics.fmean(run.course[-1].value for run in runs)
        return last, statistics.fmean(entry.value for run in runs for entry in run.course)

    rates = {}
    for place, tried in found.items():
        finite = {rate: runs for rate, runs in tried.items() if math.isfinite(quality(runs)[0])}
        best = min(finite or tried, key=lambda rate: (quality(tried[rate]), rate))
        seeds = sorted({run.task.seed for runs in tried.values() for run in runs})
        rates[place] = Chosen(best, tuple(seeds), tuple(sorted(tried)))
    return rates


def write_rates(path: Path, rates: Rates) -> None:
    """Write the rates that were chosen as JSON, in place of what the file had."""
    lines = [{"problem": problem, "method": method, **chosen._asdict()} for (problem, method), chosen in rates.items()]
    path.write_text(json.dumps(lines, indent=1) + "\n")


def read_rates(path: Path) -> Rates:
    """Return the rates that were chosen, none if there is no file."""
    lines = json.loads(path.read_text()) if path.exists() else []
    return {
        (line["problem"], line["method"]): Chosen(line["rate"], tuple(line["seeds"]), tuple(line["tried"]))
        for line in lines
    }


def rate_for(rates: Rates, problem: str, method: str, seeds: Sequence[int]) -> float | None:
    """Return the rate of a method, None for those without; it must have been chosen, and on other seeds."""
    if method not in TUNED:
        return None
    if (chosen := rates.get((problem, method))) is None:
        raise ValueError(f"{method} on {problem} must have a rate in the folder, got none: run `tune` first")
    if same := sorted(set(chosen.seeds) & set(seeds)):
        raise ValueError(f"--seeds must not have those on which the rate of {method} was chosen, got {same}")
    return chosen.rate
