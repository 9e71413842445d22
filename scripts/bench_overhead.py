"""Time of ask + tell per solution beside cma, cmaes and fcmaes, as ratios to the machine's limit in the same run.

    python scripts/bench_overhead.py                          everything, less than ten minutes on a machine of its own
    python scripts/bench_overhead.py --quick                  few and short rounds
    python scripts/bench_overhead.py --dims 2,10 --only esgroup --no-memory --no-growth

The limits are those of bench_groups.py: linear, standard_normal(d) and one axpy per sample; full, that plus one gemm of
the generation. Everybody has lambda = 4 + floor(3 ln d). A contender's turn is between two turns of its limit, its
ratio is its mean time to the mean of theirs, and the figure is the median of the ratios over the rounds, so that load
on the machine meets all alike. A turn is a whole number of the periods in which a contender renews lazily what it
derives from its matrix. The values told are those of a sphere and are computed off the clock. BLAS runs on one thread.
Exit code 1 if a goal is missed. Peers that are not installed are left out; memory is read from /proc (Linux).
"""
# extras: bench

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import contextlib
import csv
import importlib
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import typer
from bench_groups import limit, popsize

FULL_DIMS = (2, 10, 40, 100, 200, 640, 1000)
LINEAR_DIMS = (*FULL_DIMS, 3000, 10**4)
T = TypeVar("T")
X0, SIGMA0, DRIFT = 1.0, 0.5, 0.01  # of every coordinate

FULL, PLAIN = "esgroup full, defaults", "esgroup full, decoding=False"
HEISENBERG, DIAGONAL = "esgroup heisenberg:k1=4,k2=4", "esgroup diagonal"
CMA, CMAES, ACMA = "cma (full)", "cmaes CMA (full)", "fcmaes C++ (full)"
SEPCMA, CRFMNES = "cmaes SepCMA (linear)", "fcmaes CR-FM-NES C++ (linear)"

RATIO_GOALS = {
    FULL: {2: 2.0, 10: 2.0, 40: 2.0, 100: 3.0, 200: 3.0, 640: 3.0, 1000: 3.0},
    PLAIN: {dim: 2.2 for dim in FULL_DIMS if dim >= 40},
    HEISENBERG: {100: 3.5, 1000: 2.6, 10**4: 2.5},
    DIAGONAL: {10**4: 1.6},
}
AHEAD_GOALS = ((FULL, CMA, 2), (FULL, CMAES, 2), (DIAGONAL, SEPCMA, 2), (FULL, ACMA, 100))  # from this dimension on
MEMORY_GOALS = {(FULL, 1000): 50.0, (HEISENBERG, 10**4): 10.0, (DIAGONAL, 10**4): 10.0}  # MB
MEMORY_CASES = (*MEMORY_GOALS, (CMA, 1000), (CMAES, 1000), (ACMA, 1000), (SEPCMA, 10**4), (CRFMNES, 10**4))
GROWTH_DIM, GROWTH_GENERATIONS, GROWTH_GOAL = 5, 10**5, 0.5  # MB: 5 bytes a generation, less than a pointer has


# ---- contenders -------------------------------------------------------------------------------------------------


class Search(NamedTuple):
    """One search of a contender; only ask and tell are on the clock."""

    ask: Callable[[], Any]
    pack: Callable[[Any, np.ndarray], tuple[Any, ...]]  # points and values to the arguments of tell
    tell: Callable[..., Any]  # returns something true if the search has stopped


@dataclass(frozen=True)
class Contender:
    name: str
    package: str
    full: bool  # which limit it is compared with
    make: Callable[[int, int, int], Search]  # dim, popsize, seed
    period: Callable[[int], int]  # generations in which whatever is renewed lazily is renewed a whole number of times
    least_dim: int = 2

    @property
    def dims(self) -> list[int]:
        return [dim for dim in (FULL_DIMS if self.full else LINEAR_DIMS) if dim >= self.least_dim]


def esgroup_search(structure: str, **options: Any) -> Callable[[int, int, int], Search]:
    def make(dim: int, n: int, seed: int) -> Search:
        import esgroup

        start = np.full(dim, X0)
        search = esgroup.Searcher(start, SIGMA0, structure=structure, popsize=n, rng=seed, **options)
        return Search(search.ask, lambda points, values: (values,), search.tell)

    return make


def cma_search(dim: int, n: int, seed: int) -> Search:
    import cma

    options = {"popsize": n, "seed": seed, "verbose": -9, "verb_log": 0}
    search = cma.CMAEvolutionStrategy(np.full(dim, X0), SIGMA0, options)
    return Search(search.ask, lambda points, values: (points, values.tolist()), search.tell)


def cmaes_search(kind: str) -> Callable[[int, int, int], Search]:
    def make(dim: int, n: int, seed: int) -> Search:
        import cmaes

        search = getattr(cmaes, kind)(np.full(dim, X0), SIGMA0, population_size=n, seed=seed)
        return Search(
            lambda: [search.ask() for _ in range(n)],
            lambda points, values: (list(zip(points, values.tolist(), strict=True)),),
            search.tell,
        )

    return make


def fcmaes_search(module: str, kind: str, **options: Any) -> Callable[[int, int, int], Search]:
    def make(dim: int, n: int, seed: int) -> Search:
        rng = np.random.Generator(np.random.PCG64DXSM(seed))
        maker = getattr(importlib.import_module(f"fcmaes.{module}"), kind)
        search = maker(dim, x0=np.full(dim, X0), input_sigma=SIGMA0, popsize=n, rg=rng, **options)
        return Search(search.ask, lambda points, values: (values,), search.tell)

    return make


def eigen_period(dim: int, offset: float = 0.0) -> int:
    """Generations between eigendecompositions, 1 / (10 n (c_1 + c_mu)), with the tutorial's rates.

    That is what fcmaes does. In cma, c_mu has mu_eff + 1/4 in its numerator: offset 1/4.
    """
    n = popsize(dim)
    weights = math.log((n + 1) / 2) - np.log(np.arange(1, n // 2 + 1))
    mu_eff = float(weights.sum() ** 2 / (weights**2).sum())
    c_1 = 2 / ((dim + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (offset + mu_eff - 2 + 1 / mu_eff) / ((dim + 2) ** 2 + mu_eff))
    return math.ceil(1 / (10 * dim * (c_1 + c_mu)))


def every_time(dim: int) -> int:
    """The period of those who put nothing off."""
    return 1


CONTENDERS = (
    # ours renew the inverse every max(1000, d) generations with decoding, norms every 100 without
    Contender(FULL, "esgroup", True, esgroup_search("full"), lambda dim: max(1000, dim)),
    Contender(PLAIN, "esgroup", True, esgroup_search("full", decoding=False), lambda dim: 100),
    # peers have a few eigendecompositions in a turn
    Contender(CMA, "cma", True, cma_search, lambda dim: 4 * eigen_period(dim, 0.25)),
    Contender(CMAES, "cmaes", True, cmaes_search("CMA"), every_time),
    Contender(
        ACMA,
        "fcmaes",
        True,
        fcmaes_search("cmaescpp", "ACMA_C", max_evaluations=2**31 - 1),
        lambda dim: 4 * eigen_period(dim),
    ),
    Contender(HEISENBERG, "esgroup", False, esgroup_search("heisenberg:k1=4,k2=4", decoding=False), lambda dim: 100, 8),
    Contender(DIAGONAL, "esgroup", False, esgroup_search("diagonal"), lambda dim: 100),
    Contender(SEPCMA, "cmaes", False, cmaes_search("SepCMA"), every_time),
    Contender(CRFMNES, "fcmaes", False, fcmaes_search("crfmnescpp", "CRFMNES_C"), every_time),
)


def why_missing(contender: Contender) -> str:
    """Why a peer cannot take part, empty if it can; building one imports what it needs. Ours must be there."""
    try:
        contender.make(10, 10, 1)
    except (ImportError, AttributeError) as error:  # not installed, or a version without it
        if contender.package == "esgroup":
            raise
        return str(error) or type(error).__name__
    return ""


# ---- time -------------------------------------------------------------------------------------------------------


class Sphere:
    """|x - c|^2 - n t after t generations, with an optimum c that wanders.

    No search converges, so it may go on as long as it likes without tiny numbers; and since values fall by n from one
    generation to the next, nearly every generation has a new best point to note, as in a search that converges.
    """

    def __init__(self, dim: int, rng: np.random.Generator) -> None:
        self.center, self.rng, self.fallen = np.zeros(dim), rng, 0.0
        self.nearest = math.nan  # smallest |x - c|^2 of the last generation

    def __call__(self, points: Any) -> np.ndarray:
        self.center += self.rng.normal(scale=DRIFT, size=len(self.center))
        self.fallen += len(self.center)
        squares = np.array([self.square(point) for point in points])
        self.nearest = float(squares.min())
        return squares - self.fallen

    def square(self, point: np.ndarray) -> float:
        """Of one point, so that the objective needs no memory to speak of."""
        away = point - self.center
        return float(away @ away)


class Runner:
    """A contender in a search that never ends; it starts again if it stopped, got lost or has converged."""

    def __init__(self, contender: Contender, dim: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.contender, self.dim, self.clock, self.tick = contender, dim, clock, clock_cost(clock)
        self.starts = self.generations = 0
        self.begin()

    def begin(self) -> None:
        self.starts += 1
        self.search = self.contender.make(self.dim, popsize(self.dim), self.starts)
        self.sphere = Sphere(self.dim, np.random.default_rng(self.starts))

    def run(self, generations: int) -> float:
        """Mean seconds of ask and tell per solution."""
        clock, spent, solutions = self.clock, 0.0, 0
        for _ in range(generations):
            ask, pack, tell = self.search
            start = clock()
            points = ask()
            spent += clock() - start
            arguments = pack(points, self.sphere(points))
            start = clock()
            try:
                stopped = tell(*arguments)
            except AssertionError:  # cmaes, when a search of its gets lost
                stopped = True
            spent += clock() - start
            solutions += len(points)
            if stopped or not 1e-12 < self.sphere.nearest < 100 * self.dim:
                self.begin()
        self.generations += generations
        return (spent - 2 * generations * self.tick) / solutions

    def warm_up(self, seconds: float) -> float:
        """Seconds of a generation, roughly, after some that compile and allocate."""
        self.run(2)
        start, done, most = time.perf_counter(), 0, self.contender.period(self.dim)
        while done == 0 or (done < most and time.perf_counter() - start < seconds):
            self.run(1)
            done += 1
        return (time.perf_counter() - start) / done


class LimitRunner:
    """The machine's limit."""

    def __init__(self, dim: int, full: bool, seconds: float, clock: Callable[[], float]) -> None:
        self.generation, self.clock, self.n = limit(dim, full), clock, popsize(dim)
        fastest = min(self.run_for(3) for _ in range(5))
        self.generations = max(3, int(seconds / max(fastest * self.n, 1e-9)))

    def run_for(self, generations: int) -> float:
        start = self.clock()
        for _ in range(generations):
            self.generation()
        return (self.clock() - start) / (generations * self.n)

    def run(self) -> float:
        """Mean seconds per solution."""
        return self.run_for(self.generations)


def clock_cost(clock: Callable[[], float]) -> float:
    """What a pair of readings of the clock shows of itself; the median of many."""
    readings = [clock() for _ in range(1001)]
    return float(np.median(np.diff(readings)))


def turn_length(period: int, generation: float, seconds: float) -> int:
    """Generations of a turn: a whole number of periods, at least one, that takes about some seconds."""
    return period * max(1, round(seconds / (period * generation)))


class Sample(NamedTuple):
    """Seconds per solution of a contender in one turn, and of its limit before and after it."""

    spent: float
    before: float
    after: float

    @property
    def limit(self) -> float:
        return (self.before + self.after) / 2

    @property
    def ratio(self) -> float:
        return self.spent / self.limit


class Measured(NamedTuple):
    """A line of the CSV: medians over the rounds, and quartiles of the ratio."""

    name: str
    dim: int
    ratio: float
    low: float
    high: float
    micros: float
    limit_micros: float
    rounds: int
    generations: int
    starts: int

    @classmethod
    def of(cls, runner: Runner, samples: Sequence[Sample]) -> Measured:
        low, ratio, high = np.quantile([sample.ratio for sample in samples], [0.25, 0.5, 0.75]).tolist()
        micros = 1e6 * float(np.median([sample.spent for sample in samples]))
        limit_micros = 1e6 * float(np.median([sample.limit for sample in samples]))
        counts = (len(samples), runner.generations, runner.starts)
        return cls(runner.contender.name, runner.dim, ratio, low, high, micros, limit_micros, *counts)


def measure(
    contenders: Sequence[Contender], dim: int, rounds: int, seconds: float, clock: Callable[[], float]
) -> Iterator[Measured]:
    """All contenders of one dimension, in rounds in which each has one turn."""
    limits = {full: LimitRunner(dim, full, seconds / 4, clock) for full in {c.full for c in contenders}}
    runners = [Runner(contender, dim, clock) for contender in contenders]
    turns = [turn_length(r.contender.period(dim), r.warm_up(seconds), seconds) for r in runners]
    samples: list[list[Sample]] = [[] for _ in runners]
    for _ in range(rounds):
        for runner, turn, taken in zip(runners, turns, samples, strict=True):
            beside = limits[runner.contender.full]
            before = beside.run()
            spent = runner.run(turn)
            taken.append(Sample(spent, before, beside.run()))
    yield from (Measured.of(runner, taken) for runner, taken in zip(runners, samples, strict=True))


# ---- memory -----------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """MB by which a process has grown: at its largest, and what it has at the end."""

    peak: float
    kept: float

    @classmethod
    def of(cls, before: float, peak_before: float, peak: float, after: float) -> Memory:
        """A peak that is no higher than an earlier one says nothing of the time since."""
        kept = after - before
        return cls(max(kept, peak - before) if peak > peak_before else kept, kept)


def process_memory() -> tuple[float, float]:
    """MB of this process, now and at its largest (which, unlike getrusage's, is not that of its parent)."""
    status = Path("/proc/self/status").read_text()
    now, peak = (float(status.split(key)[1].split()[0]) * 1024 / 1e6 for key in ("VmRSS:", "VmHWM:"))
    return now, peak


def forget_peak() -> None:
    """Let the largest memory be the present one, where the system allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def search_memory(name: str, dim: int) -> Memory:
    """Growth in a search that renews everything once, after a small one of the same kind."""
    contender = next(c for c in CONTENDERS if c.name == name)
    Runner(contender, 10).run(contender.period(10) + 2)
    forget_peak()
    before, peak_before = process_memory()
    runner = Runner(contender, dim)
    runner.run(contender.period(dim) + 2)
    after, peak = process_memory()
    return Memory.of(before, peak_before, peak, after)


def long_run_growth(name: str, dim: int, generations: int) -> float:
    """MB by which a process grows over many generations, after a quarter of them, in which bounded histories fill."""
    runner = Runner(next(c for c in CONTENDERS if c.name == name), dim)
    runner.run(generations // 4)
    before, _ = process_memory()
    runner.run(generations)
    return process_memory()[0] - before


def in_new_process(function: Callable[..., T], *arguments: Any) -> T:
    """The result of a function in an interpreter of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


# ---- goals and tables -------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A value that must be at most, or with `strict` below, a limit; NaN was not measured."""

    text: str
    value: float
    limit: float
    strict: bool = False

    @property
    def outcome(self) -> str:
        if math.isnan(self.value):
            return "not measured"
        good = self.value < self.limit if self.strict else self.value <= self.limit
        return "met" if good else "missed"


Ratios = dict[tuple[str, int], float]  # of a contender in a dimension


def ratio_goals(ratios: Ratios) -> list[Goal]:
    return [
        Goal(f"{name}, d = {dim}", ratios.get((name, dim), math.nan), goal)
        for name, goals in RATIO_GOALS.items()
        for dim, goal in goals.items()
    ]


def ahead_goals(ratios: Ratios) -> list[Goal]:
    """Ours to theirs in the dimension where it is largest."""
    goals = []
    for ours, theirs, least in AHEAD_GOALS:
        dims = [d for name, d in ratios if name == ours and d >= least and (theirs, d) in ratios]
        worst, dim = max(((ratios[ours, d] / ratios[theirs, d], d) for d in dims), default=(math.nan, least))
        where = f", largest at d = {dim}" if dims else ""
        goals.append(Goal(f"{ours} : {theirs} from d = {least} on{where}", worst, 1.0, strict=True))
    return goals


def memory_goals(memory: dict[tuple[str, int], Memory], growth: float) -> list[Goal]:
    unknown = Memory(math.nan, math.nan)
    goals = [
        Goal(f"{name}, d = {dim}, growth of memory in MB", memory.get((name, dim), unknown).kept, goal)
        for (name, dim), goal in MEMORY_GOALS.items()
    ]
    text = f"{FULL}, d = {GROWTH_DIM}, growth in MB over {GROWTH_GENERATIONS:,} generations"
    return [*goals, Goal(text, growth, GROWTH_GOAL)]


def number(value: float) -> str:
    """Three digits or so, a dash for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def ratio_table(measured: Sequence[Measured]) -> str:
    """A line per contender, and the limits in microseconds below."""
    dims = sorted({m.dim for m in measured})
    ratios = {(m.name, m.dim): m.ratio for m in measured}
    lines = [
        [contender.name, *(number(ratios.get((contender.name, dim), math.nan)) for dim in dims)]
        for contender in CONTENDERS
        if any(m.name == contender.name for m in measured)
    ]
    for full, kind in ((False, "linear"), (True, "full")):
        names = [contender.name for contender in CONTENDERS if contender.full == full]
        if any(m.name in names for m in measured):
            lines.append([f"limit, {kind} (us)", *(number(limit_micros(measured, names, dim)) for dim in dims)])
    return markdown(["ratio to the limit", *(f"d = {dim}" for dim in dims)], lines)


def limit_micros(measured: Sequence[Measured], names: Sequence[str], dim: int) -> float:
    """The limit beside some contenders: the median of theirs."""
    found = [m.limit_micros for m in measured if m.dim == dim and m.name in names]
    return float(np.median(found)) if found else math.nan


def memory_table(memory: dict[tuple[str, int], Memory]) -> str:
    lines = [[name, str(dim), number(grown.peak), number(grown.kept)] for (name, dim), grown in memory.items()]
    return markdown(["memory of a search", "d", "peak, MB", "kept, MB"], lines)


def goals_table(goals: Sequence[Goal]) -> str:
    lines = []
    for goal in goals:
        value = "-" if math.isnan(goal.value) else f"{goal.value:.3f}"
        outcome = f"**{goal.outcome}**" if goal.outcome == "missed" else goal.outcome
        lines.append([goal.text, value, f"{'<' if goal.strict else '<='} {goal.limit:g}", outcome])
    return markdown(["goal", "value", "limit", ""], lines)


def verdict(goals: Sequence[Goal]) -> str:
    outcomes = [goal.outcome for goal in goals]
    counts = {outcome: outcomes.count(outcome) for outcome in ("met", "missed", "not measured")}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


def write_csv(path: Path, measured: Iterable[Measured]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Measured._fields)
        writer.writerows(measured)


# ---- command ----------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def present(only: str) -> list[Contender]:
    """The contenders with a text in their name that are installed; a line for each that is not."""
    chosen = []
    for contender in (c for c in CONTENDERS if only in c.name):
        if missing := why_missing(contender):
            print(f"{contender.name} is left out: {missing}", flush=True)
        else:
            chosen.append(contender)
    if not chosen:
        raise typer.BadParameter(f"--only must be part of the name of a contender that is installed, got {only!r}")
    return chosen


def measured_dims(
    contenders: Sequence[Contender], dims: Sequence[int], rounds: int, seconds: float, clock: Callable[[], float]
) -> list[Measured]:
    measured: list[Measured] = []
    for dim in dims:
        start = time.monotonic()
        measured += measure([c for c in contenders if dim in c.dims], dim, rounds, seconds, clock)
        say(f"d = {dim}: {time.monotonic() - start:.0f} s")
    return measured


def measured_memory(contenders: Sequence[Contender]) -> dict[tuple[str, int], Memory]:
    names = {contender.name for contender in contenders}
    memory = {}
    for name, dim in (case for case in MEMORY_CASES if case[0] in names):
        memory[name, dim] = in_new_process(search_memory, name, dim)
        say(f"memory of {name}, d = {dim}: {number(memory[name, dim].kept)} MB")
    return memory


def parse_dims(text: str) -> list[int]:
    dims = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if unknown := [dim for dim in dims if dim not in LINEAR_DIMS]:
        raise typer.BadParameter(f"must be some of {', '.join(map(str, LINEAR_DIMS))}, got {text!r} with {unknown}")
    return dims


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(help=(__doc__ or "").replace("    python", "\b\n    python", 1))  # the examples keep their lines
def main(
    quick: Annotated[bool, typer.Option("--quick", help="3 rounds of short turns, no long run.")] = False,
    dims: Annotated[str, typer.Option(help="Dimensions.")] = ",".join(map(str, LINEAR_DIMS)),
    only: Annotated[str, typer.Option(help="Only contenders whose name contains this text.")] = "",
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds; 7, or 3 if quick.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Of a turn; 0.4, or 0.05 if quick.")] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="CPU time in place of wall time, for a busy machine.")] = False,
    memory: Annotated[bool, typer.Option(help="Measure memory of searches.")] = True,
    growth: Annotated[bool | None, typer.Option(help="Measure growth over a long run; not if quick.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write.")] = None,
) -> None:
    chosen, contenders = parse_dims(dims), present(only)
    readable = Path("/proc/self/status").exists()
    clock = time.process_time if cpu else time.perf_counter
    rounds, seconds = rounds or (3 if quick else 7), seconds or (0.05 if quick else 0.4)
    measured = measured_dims(contenders, chosen, rounds, seconds, clock)
    if out is not None:
        write_csv(out, measured)
    print("\n" + ratio_table(measured) + "\n", flush=True)
    grown = measured_memory(contenders) if memory and readable else {}
    if grown:
        print(memory_table(grown) + "\n", flush=True)
    long = readable and (not quick if growth is None else growth) and any(c.name == FULL for c in contenders)
    growing = in_new_process(long_run_growth, FULL, GROWTH_DIM, GROWTH_GENERATIONS) if long else math.nan
    ratios = {(m.name, m.dim): m.ratio for m in measured}
    goals = [*ratio_goals(ratios), *ahead_goals(ratios), *memory_goals(grown, growing)]
    print(f"{goals_table(goals)}\n\nGoals: {verdict(goals)}.")
    raise typer.Exit(any(goal.outcome == "missed" for goal in goals))


if __name__ == "__main__":
    app()
