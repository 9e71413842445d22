"""Runs on bbob functions with noise, judged by the value without noise at the mean of the search.

The models are those of bbob-noisy (Hansen, Finck, Ros, Auger 2009: Real-parameter black-box optimization benchmarking
2009: noisy functions definitions, section 2), around any function of ioh's bbob suite, and N(0, 1) added to the values.
With f the gap to the optimum, N normal and U uniform on (0, 1), all independent,

    gauss    f exp(beta N)
    uniform  f U^beta max(1, (1e9 / (f + 1e-99))^(alpha U'))
    cauchy   f + alpha max(0, 1000 + [U < p] N / (|N'| + 1e-99))

where f >= 1e-8, and f itself below; 1.01e-8 is added to what is noisy.
"""

from __future__ import annotations

import importlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from bbob_arguments import parse_option
from bbob_rows import Run, append_tuples, read_texts
from bbob_runs import SIGMA0, bbob_problem, start
from bbob_statistics import DRAWS, Estimate
from numpy.typing import NDArray

Array = NDArray[np.float64]
CHECKPOINTS = (100, 400, 2000)  # evaluations per coordinate after which the mean is judged
FLOOR = 1e-8  # gaps below count as this: beyond it nothing is noisy
MEAN_GOAL, FUNCTION_GOAL = 1.5, 4.0  # times the best of the others


# ---- noise


def gauss(gaps: Array, rng: np.random.Generator, beta: float) -> Array:
    return gaps * np.exp(beta * rng.standard_normal(len(gaps)))


def uniform(gaps: Array, rng: np.random.Generator, alpha: float, beta: float) -> Array:
    power, exponent = rng.random((2, len(gaps)))
    return gaps * power**beta * np.maximum(1, (1e9 / (gaps + 1e-99)) ** (alpha * exponent))


def cauchy(gaps: Array, rng: np.random.Generator, alpha: float, p: float) -> Array:
    above, below = rng.standard_normal((2, len(gaps)))
    seldom = rng.random(len(gaps)) < p
    return gaps + alpha * np.maximum(0, 1000 + seldom * above / (np.abs(below) + 1e-99))


Noise = Callable[[Array, np.random.Generator, int], Array]
NOISES: dict[str, Noise] = {
    "normal": lambda f, rng, dim: f + rng.standard_normal(len(f)),
    "gauss-moderate": lambda f, rng, dim: gauss(f, rng, 0.01),
    "gauss-severe": lambda f, rng, dim: gauss(f, rng, 1.0),
    "uniform-moderate": lambda f, rng, dim: uniform(f, rng, 0.01 * (0.49 + 1 / dim), 0.01),
    "uniform-severe": lambda f, rng, dim: uniform(f, rng, 0.49 + 1 / dim, 1.0),
    "cauchy-moderate": lambda f, rng, dim: cauchy(f, rng, 0.01, 0.05),
    "cauchy-severe": lambda f, rng, dim: cauchy(f, rng, 1.0, 0.2),
    "none": lambda f, rng, dim: f.copy(),
}


def noisy(name: str, gaps: Array, rng: np.random.Generator, dim: int) -> Array:
    """Gaps with noise; that of bbob-noisy ends at 1e-8, N(0, 1) does not."""
    values = NOISES[name](gaps, rng, dim)
    if name in ("normal", "none"):
        return values
    return np.where(gaps >= 1e-8, values + 1.01e-8, gaps)


# ---- runs


class NoisyTask(NamedTuple):
    """One run: a method on one problem with noise."""

    label: str
    method: str
    options: str
    noise: str
    budget: int
    run: Run

    @property
    def seed(self) -> int:
        """Seed of the method and of the noise; positive and below 2^31 (cma)."""
        words = [*self.run._replace(popsize=0), list(NOISES).index(self.noise)]
        return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1) or 1


class NoisyRow(NamedTuple):
    """One line of the CSV: the gap of the mean without noise after `spent` evaluations per coordinate."""

    label: str
    noise: str
    function: int
    dim: int
    instance: int
    seed: int
    spent: int
    gap: float  # of the mean at the end, if the method stopped earlier by itself
    used: int  # evaluations until then
    ended: str
    cpu: float  # seconds of the whole run
    method: str
    options: str
    budget: int

    @property
    def task(self) -> NoisyTask:
        run = Run(self.function, self.dim, self.instance, None, self.seed)
        return NoisyTask(self.label, self.method, self.options, self.noise, self.budget, run)


class Objective:
    """Noisy values of points, and the gap of a point without noise. ioh's functions are defined everywhere."""

    def __init__(self, task: NoisyTask) -> None:
        self.problem = bbob_problem(task.run)
        self.optimum = float(self.problem.optimum.y)
        self.noise, self.rng = task.noise, np.random.default_rng(task.seed + 1)
        self.count = 0

    def gaps(self, points: Any) -> Array:
        """Exact differences to the optimum, none below 0."""
        return np.maximum(np.array(self.problem(np.asarray(points).tolist())) - self.optimum, 0.0)

    def __call__(self, points: Any) -> Array:
        self.count += len(points)
        return noisy(self.noise, self.gaps(points), self.rng, self.problem.meta_data.n_variables)


Generations = Iterator[tuple[Array, str]]  # the mean after each generation, and why the search stopped, "" before


def generations_esgroup(task: NoisyTask, fun: Objective, x0: Array) -> Generations:
    import esgroup

    given: dict[str, Any] = dict(parse_option(text) for text in task.options.split(";") if text)
    search = esgroup.Searcher(x0, SIGMA0, rng=task.seed, **given)
    while True:
        search.tell(fun(search.ask()))
        yield search.mean, "+".join(search.stop())


def generations_cma(task: NoisyTask, fun: Objective, x0: Array) -> Generations:
    import cma

    search = cma.CMAEvolutionStrategy(x0, SIGMA0, {"verbose": -9, "verb_log": 0, "seed": task.seed})
    while True:
        points = search.ask()
        search.tell(points, fun(points).tolist())
        yield search.mean, "+".join(search.stop())


def generations_lra(task: NoisyTask, fun: Objective, x0: Array) -> Generations:
    """LRA-CMA-ES (Nomura, Akimoto and Ono 2023) as its authors have it in cmaes."""
    import cmaes

    search = cmaes.CMA(mean=x0.copy(), sigma=SIGMA0, seed=task.seed, lr_adapt=True)
    while True:
        points = [search.ask() for _ in range(search.population_size)]
        search.tell(list(zip(points, fun(points).tolist(), strict=True)))
        yield search.mean, "stopped" if search.should_stop() else ""


NOISY_METHODS = {"esgroup": generations_esgroup, "cma": generations_cma, "lra": generations_lra}


def solve_noisy(task: NoisyTask) -> list[NoisyRow]:
    """One run, a row for each checkpoint within the budget; a failure in mid-run is an end, and kept."""
    fun, x0 = Objective(task), start(task.run)
    importlib.import_module({"lra": "cmaes"}.get(task.method, task.method))  # not on the clock
    since, mean, ended = time.process_time(), x0, ""
    search = NOISY_METHODS[task.method](task, fun, x0)
    found: list[tuple[int, float, int, str]] = []
    for spent in (each for each in CHECKPOINTS if each <= task.budget):
        while not ended and fun.count < spent * task.run.dim:
            try:
                mean, ended = next(search)
            except Exception as error:
                if fun.count == 0:
                    raise
                ended = f"error: {type(error).__name__}: {' '.join(str(error).split())}"
        found.append((spent, float(fun.gaps(mean[None])[0]), fun.count, ended or "budget"))
    cpu = round(time.process_time() - since, 3)
    function, dim, instance, _, seed = task.run
    head = (task.label, task.noise, function, dim, instance, seed)
    return [NoisyRow(*head, *each, cpu, task.method, task.options, task.budget) for each in found]


# ---- files


def read_noisy_rows(path: Path) -> list[NoisyRow]:
    """Rows of a file, none if there is no file."""
    types = get_type_hints(NoisyRow)
    texts = read_texts(path, NoisyRow._fields)
    return [NoisyRow(**{name: types[name](text) for name, text in row.items()}) for row in texts]


def append_noisy_rows(path: Path, rows: Iterable[NoisyRow]) -> None:
    """Write rows at the end of a file; the file and its header are made if need be."""
    append_tuples(path, rows, NoisyRow._fields)


# ---- comparison

Gaps = dict[str, dict[tuple[str, int, int, int], dict[tuple[int, int], float]]]


def log_gaps(rows: Iterable[NoisyRow]) -> Gaps:
    """ln gap by label, by (noise, function, dim, checkpoint), by (instance, seed)."""
    found: Gaps = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        place = (row.noise, row.function, row.dim, row.spent)
        found[row.label][place][row.instance, row.seed] = math.log(max(row.gap, FLOOR))
    return found


def ratio(ours: Mapping[Any, Mapping[Any, float]], others: Sequence[Mapping[Any, Mapping[Any, float]]]) -> Estimate:
    """Geometric mean over cells of our gap over the best of the others' gaps, with a 95 per cent interval.

    A cell is one noise, function, dimension and checkpoint; the gap of a method in a cell is the geometric mean over
    its runs, so the best of the others is one method in a cell. The bootstrap draws the runs of every cell anew, the
    same for all methods.
    """
    values, draws, repeated = [], [], False
    for place, mine in ours.items():
        runs = sorted(set(mine).intersection(*(other.get(place, {}) for other in others)))
        if not runs:
            continue
        logs = np.array([[gaps[run] for run in runs] for gaps in (mine, *(other[place] for other in others))])
        rng = np.random.default_rng(len(runs) * 1000 + place[1])
        drawn = logs[:, rng.integers(len(runs), size=(DRAWS, len(runs)))].mean(axis=2)  # (methods, DRAWS)
        values.append(logs[0].mean() - logs[1:].mean(axis=1).min())
        draws.append(drawn[0] - drawn[1:].min(axis=0))
        repeated |= len(runs) > 1
    if not values:
        return Estimate(math.nan)
    value = math.exp(np.mean(values))
    if not repeated:
        return Estimate(value)
    low, high = np.exp(np.quantile(np.mean(draws, axis=0), (0.025, 0.975)))
    return Estimate(value, float(low), float(high))


def noise_report(rows: Sequence[NoisyRow], label: str, baselines: Sequence[str]) -> tuple[str, bool]:
    """Tables in markdown of our gap over the best of the baselines', and whether the goals are met."""
    gaps = log_gaps(rows)
    for name in (label, *baselines):
        if name not in gaps:
            raise ValueError(f"label {name!r} must be one of {sorted(gaps)}")
    every, others = gaps[label], [gaps[name] for name in baselines]

    def part(**wanted: Any) -> Estimate:
        names = ("noise", "function", "dim", "spent")
        kept = {k: v for k, v in every.items() if all(k[names.index(n)] == value for n, value in wanted.items())}
        return ratio(kept, others)

    noises, functions, _, spans = (sorted({place[i] for place in every}) for i in range(4))
    instances = {run for runs in every.values() for run in runs}
    text = [
        f"## Gap of the mean without noise, {label} over the best of {', '.join(baselines)}",
        f"Geometric means over {len(functions)} functions, {len({p[2] for p in every})} dimensions, {len(instances)} "
        f"instances or seeds, with 95 per cent intervals. **Bold**: above {MEAN_GOAL:g}, or {FUNCTION_GOAL:g} for one "
        "function and one noise.",
    ]
    good = True
    head = ["noise", *(f"{spent} d" for spent in spans)]
    lines = []
    for noise in [*noises, None]:
        cells = [part(spent=s) if noise is None else part(spent=s, noise=noise) for s in spans]
        good &= all(not cell.value > MEAN_GOAL for cell in cells)
        lines.append([noise or "all", *(_shown(cell, MEAN_GOAL) for cell in cells)])
    text.append(_table(head, lines))
    for spent in spans:
        lines = []
        for function in functions:
            cells = [part(spent=spent, noise=noise, function=function) for noise in noises]
            good &= all(not cell.value > FUNCTION_GOAL for cell in cells)
            lines.append([f"f{function}", *(_shown(cell, FUNCTION_GOAL) for cell in cells)])
        text += [f"### {spent} d evaluations", _table(["function", *noises], lines)]
    lines = []
    for name in (label, *baselines, *sorted(set(gaps) - {label, *baselines})):
        for noise in noises:
            found = [
                [v for p, runs in gaps[name].items() if (p[0], p[3]) == (noise, s) for v in runs.values()]
                for s in spans
            ]
            lines.append([name, noise, *(f"{math.exp(np.mean(logs)):.3g}" if logs else "-" for logs in found)])
    text += ["### Geometric means of the gaps, of all runs of a label", _table(["label", *head], lines)]
    return "\n\n".join(text) + "\n", good


def _shown(estimate: Estimate, limit: float) -> str:
    if math.isnan(estimate.value):
        return "-"
    text = f"{estimate.value:.2g}"
    if not math.isnan(estimate.low):
        text += f" [{estimate.low:.2g}, {estimate.high:.2g}]"
    return f"**{text}**" if estimate.value > limit else text


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    body = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in body)
