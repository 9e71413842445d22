"""Asynchronous search beside search by generations: how busy workers are, and what it costs in evaluations.

    python scripts/bench_asynchronous.py                      everything, about half an hour
    python scripts/bench_asynchronous.py --quick              few workers, few seeds, one problem
    python scripts/bench_asynchronous.py --no-costs           busy workers only
    python scripts/bench_asynchronous.py --no-busy            evaluations only

Busy: evaluations sleep for a time from a Pareto law (alpha = 1.5, at most 100 medians) that the point determines. Each
worker notes when it begins and ends an evaluation, in a file of its own. The share is the time in evaluations to all
time of all workers, from the moment when every worker has begun its first evaluation to the beginning of the last one:
the start of processes is no part of it, nor is the end, when nothing is left to do. The search by generations has
as many points in a generation as there are workers. This process needs about a third of a millisecond for a value that
comes late, and the goal is out of reach where values come faster: 64 workers with a median of 20 ms (--median 0.02).

Evaluations: the ratio of evaluations to reach 1e-8, asynchronous to by generations with the default popsize, medians
over the seeds; a run that does not get there within 20 times the evaluations of the search by generations counts as
infinitely many. Time is virtual: a heap of completions, so that nobody sleeps and the order is the same in every run.
"popsize = 100" is a search by generations with 100 points each, which would keep as many workers busy. The constants of
late values were chosen on the sphere and Rosenbrock's function with seeds 0-8; seeds here begin at 100.

BLAS runs on one thread. Exit code 1 if a goal is missed.
"""
# extras: compare

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import heapq
import math
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from bench_overhead import markdown

import esgroup

ALPHA, LONGEST = 1.5, 100.0  # the Pareto law of times, and its cap in medians
FIRST_SEED = 100
TARGET, MOST = 1e-8, 20  # of a run, and evaluations that it may take, in those of the search by generations
BUSY_GOAL, RATIO_GOAL = 0.95, 1.3


def pareto_time(uniform: float) -> float:
    """Return the time of an evaluation in medians: P(T > t) = (t_0 / t)^alpha with t_0 = 2^(-1 / alpha), cut off."""
    return min(LONGEST, (2.0 * (1.0 - uniform)) ** (-1.0 / ALPHA))


# ---- busy workers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sleeper:
    """Sleeps for the time of a point, and notes beginning and end in a file of its thread; the value is a sphere's."""

    place: Path
    median: float  # seconds

    def __call__(self, x: np.ndarray) -> float:
        begin = time.monotonic()  # the same clock in all processes
        time.sleep(self.median * pareto_time(zlib.crc32(x.tobytes()) / 2**32))
        value = float(x @ x)
        with (self.place / f"{os.getpid()}-{threading.get_ident()}").open("ab") as file:
            file.write(struct.pack("dd", begin, time.monotonic()))
        return value


def noted_times(place: Path) -> list[np.ndarray]:
    """Return beginnings and ends, an array of shape (evaluations, 2) for each worker."""
    return [np.frombuffer(path.read_bytes()).reshape(-1, 2) for path in place.iterdir()]


def busy_share(times: Sequence[np.ndarray], workers: int) -> float:
    """Return the share of time in evaluations, after all workers have begun and before the last evaluation begins.

    A worker without any evaluation, as in a pool of threads that starts new ones only if none is idle, is idle.
    """
    begin, end = max(t[:, 0].min() for t in times), max(t[:, 0].max() for t in times)
    if end <= begin:
        return math.nan
    spent = sum(float(np.maximum(0.0, np.minimum(t[:, 1], end) - np.maximum(t[:, 0], begin)).sum()) for t in times)
    return spent / (workers * (end - begin))


class Way(NamedTuple):
    """How to evaluate: by generations, or asynchronously in processes or threads."""

    name: str
    asynchronous: bool
    threads: bool
    evals: int  # for each worker; by generations, most of the time passes in waiting


WAYS = (
    Way("processes, by generations", False, False, 40),
    Way("processes, asynchronous", True, False, 100),
    Way("threads, asynchronous", True, True, 100),
)


def measured_share(way: Way, workers: int, median: float, dim: int = 10, evals: int | None = None) -> float:
    """Return how busy the workers of a run were."""
    options: dict[str, Any] = {"rng": FIRST_SEED, "max_evals": workers * (evals or way.evals)}
    options |= {"asynchronous": True} if way.asynchronous else {"popsize": workers}
    with tempfile.TemporaryDirectory() as place:
        fun = Sleeper(Path(place), median)
        if way.threads:
            with ThreadPoolExecutor(workers) as pool:
                esgroup.minimize(fun, np.full(dim, 3.0), 1.0, executor=pool, **options)
        else:
            esgroup.minimize(fun, np.full(dim, 3.0), 1.0, workers=workers, **options)
        times = noted_times(Path(place))
    return busy_share(times, workers)


# ---- evaluations ------------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """A function with minimum 0, a start and the first standard deviation."""

    name: str
    fun: Callable[[np.ndarray], float]
    start: float
    sigma0: float


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def ellipsoid(x: np.ndarray) -> float:
    return float(10.0 ** (6.0 * np.arange(len(x)) / (len(x) - 1)) @ x**2)


def rosenbrock(x: np.ndarray) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1.0) ** 2).sum())


PROBLEMS = (
    Problem("sphere", sphere, 3.0, 1.0),
    Problem("ellipsoid", ellipsoid, 3.0, 1.0),
    Problem("Rosenbrock", rosenbrock, 0.0, 0.3),
)
LAWS: dict[str, Callable[[np.random.Generator], float]] = {
    "constant": lambda rng: 1.0,
    "Pareto": lambda rng: pareto_time(rng.random()),
}


def searcher(problem: Problem, dim: int, seed: int, most: int | None, **options: Any) -> esgroup.Searcher:
    start = np.full(dim, problem.start)
    return esgroup.Searcher(start, problem.sigma0, rng=seed, target=TARGET, max_evals=most, **options)


def by_generations(problem: Problem, dim: int, seed: int, most: int, popsize: int | None = None) -> float:
    """Return the evaluations to the target, infinity if it is not reached."""
    search = searcher(problem, dim, seed, most, popsize=popsize)
    while not (reasons := search.stop()):
        search.tell([problem.fun(x) for x in search.ask()])
    return search.nfev if "target" in reasons else math.inf


def asynchronously(problem: Problem, dim: int, seed: int, most: int, out: int, law: str) -> float:
    """Return the evaluations to the target with `out` points out, by a virtual clock; infinity if it is not reached."""
    search, rng, duration = searcher(problem, dim, seed, most), np.random.default_rng([seed, 1]), LAWS[law]
    coming: list[tuple[float, int, np.ndarray]] = []  # when a value arrives; of equal times, in the order of asking
    asked, now = 0, 0.0
    while not (reasons := search.stop()):
        while len(coming) < out:
            heapq.heappush(coming, (now + duration(rng), asked, search.ask(1)[0]))
            asked += 1
        now, _, x = heapq.heappop(coming)
        search.tell([x], [problem.fun(x)])
    return search.nfev if "target" in reasons else math.inf


class Cost(NamedTuple):
    """Evaluations of one way to those by generations: the ratio of medians, and how many runs reached the target."""

    problem: str
    dim: int
    law: str  # empty by generations
    out: str
    ratio: float
    reached: int
    runs: int

    def __str__(self) -> str:
        missing = "" if self.reached == self.runs else f" ({self.reached}/{self.runs})"
        return f"{self.ratio:.2f}{missing}"


def measured_costs(problem: Problem, dim: int, seeds: Sequence[int], outs: Sequence[str]) -> list[Cost]:
    """Return all costs of a problem in one dimension; the first one is the search by generations itself."""
    unlimited = 10**6
    base = [by_generations(problem, dim, seed, unlimited) for seed in seeds]
    median = float(np.median(base))
    if not math.isfinite(median):
        raise RuntimeError(f"{problem.name}, d = {dim}: the search by generations does not reach {TARGET:g}")
    most, popsize = int(MOST * median), searcher(problem, dim, 0, None).popsize

    def cost(law: str, out: str, evals: Sequence[float]) -> Cost:
        reached = sum(map(math.isfinite, evals))
        return Cost(problem.name, dim, law, out, float(np.median(evals)) / median, reached, len(evals))

    costs = [cost("", "default", base)]
    for law in LAWS:
        for out in outs:
            points = {"popsize / 2": popsize // 2, "popsize": popsize}.get(out) or int(out)
            costs.append(cost(law, out, [asynchronously(problem, dim, seed, most, points, law) for seed in seeds]))
    costs.append(cost("", "popsize = 100", [by_generations(problem, dim, seed, most, 100) for seed in seeds]))
    return costs


# ---- goals and tables -------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    text: str
    value: str
    limit: str
    met: bool


Shares = dict[tuple[str, int], float]  # of a way, with so many workers


def busy_goals(shares: Shares) -> list[Goal]:
    goals = []
    for way in (way for way in WAYS if way.asynchronous):
        found = [(share, n) for (name, n), share in shares.items() if name == way.name]
        if found:
            worst, n = min(found, key=lambda item: (not math.isnan(item[0]), item[0]))
            text = f"busy, {way.name}, least with {n} workers"
            goals.append(Goal(text, f"{worst:.3f}", f">= {BUSY_GOAL:g}", worst >= BUSY_GOAL))
    return goals


def cost_goals(costs: Sequence[Cost]) -> list[Goal]:
    goals = []
    few = [cost for cost in costs if cost.law and cost.out in ("popsize / 2", "popsize")]
    if few:
        worst = max(few, key=lambda cost: cost.ratio)
        text = f"evaluations, up to popsize out, most on {worst.problem}, d = {worst.dim}, {worst.law}, {worst.out}"
        goals.append(Goal(text, f"{worst.ratio:.2f}", f"<= {RATIO_GOAL:g}", worst.ratio <= RATIO_GOAL))
    many = [cost for cost in costs if cost.law and cost.out == "100" and cost.dim == 10]
    if many:
        reached, runs = sum(cost.reached for cost in many), sum(cost.runs for cost in many)
        goals.append(Goal(f"runs that reach {TARGET:g}, d = 10, 100 out", str(reached), f"= {runs}", reached == runs))
    return goals


def busy_table(shares: Shares) -> str:
    counts = sorted({n for _, n in shares})
    lines = [[way.name, *(f"{shares[way.name, n]:.3f}" for n in counts)] for way in WAYS]
    return markdown(["share of time busy", *(f"{n} workers" for n in counts)], lines)


def cost_table(costs: Sequence[Cost]) -> str:
    columns = list(dict.fromkeys((cost.law, cost.out) for cost in costs if cost.out != "default"))
    rows = dict.fromkeys((cost.problem, cost.dim) for cost in costs)
    found = {(cost.problem, cost.dim, cost.law, cost.out): cost for cost in costs}
    heads = [f"{law}, {out} out" if law else out for law, out in columns]
    lines = [[f"{name}, d = {dim}", *(str(found[name, dim, *column]) for column in columns)] for name, dim in rows]
    return markdown(["evaluations to those by generations", *heads], lines)


def goals_table(goals: Iterable[Goal]) -> str:
    lines = [[goal.text, goal.value, goal.limit, "met" if goal.met else "**missed**"] for goal in goals]
    return markdown(["goal", "value", "limit", ""], lines)


# ---- command ----------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(help=(__doc__ or "").replace("    python", "\b\n    python", 1))  # the examples keep their lines
def main(
    quick: Annotated[bool, typer.Option("--quick", help="4 workers, the sphere with d = 10, 3 seeds.")] = False,
    busy: Annotated[bool, typer.Option(help="Measure how busy workers are.")] = True,
    costs: Annotated[bool, typer.Option(help="Measure evaluations.")] = True,
    median: Annotated[float, typer.Option(min=0.001, help="Seconds of an evaluation, the median.")] = 0.05,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds, from 100 on; 9, or 3 if quick.")] = None,
) -> None:
    shares: Shares = {}
    if busy:
        for n in (4,) if quick else (4, 8, 16, 32, 64):
            for way in WAYS:
                shares[way.name, n] = measured_share(way, n, median, evals=25 if quick else None)
                say(f"{n} workers, {way.name}: {shares[way.name, n]:.3f}")
        print(busy_table(shares) + "\n", flush=True)
    found: list[Cost] = []
    if costs:
        chosen = range(FIRST_SEED, FIRST_SEED + (seeds or (3 if quick else 9)))
        outs = ("popsize", "100") if quick else ("popsize / 2", "popsize", "30", "100")
        for problem in PROBLEMS[:1] if quick else PROBLEMS:
            for dim in (10,) if quick else (10, 20):
                start = time.monotonic()
                found += measured_costs(problem, dim, chosen, outs)
                say(f"{problem.name}, d = {dim}: {time.monotonic() - start:.0f} s")
        print(cost_table(found) + "\n", flush=True)
    goals = [*busy_goals(shares), *cost_goals(found)]
    print(goals_table(goals), flush=True)
    raise typer.Exit(not all(goal.met for goal in goals))


if __name__ == "__main__":
    app()
