"""Many coordinates: evaluations, time and memory of searches in 80 to a million dimensions, beside peers.

    python scripts/bench_large.py suite --dims 80,160 --instances 11-13 --jobs 2 --out large
    python scripts/bench_large.py suite --dims 320 --functions 1,8 --methods ours,former,vkd --seconds 3600 --out large
    python scripts/bench_large.py own --dims 1000 --problems sphere,cigar10,discus10 --seeds 1-3 --out large
    python scripts/bench_large.py own --dims 10000 --problems ellipsoid --target 1e-3 --relative --out large
    python scripts/bench_large.py own --dims 100 --problems rastrigin --popsize 500 --out large
    python scripts/bench_large.py own --dims 100 --problems noisy_sphere,noisy_ellipsoid --out large
    python scripts/bench_large.py cost --out large
    python scripts/bench_large.py tune --problems digits --seeds 101-102 --jobs 2 --out large
    python scripts/bench_large.py real --problems digits --seeds 1-3 --jobs 2 --out large
    python scripts/bench_large.py table large

suite: functions of bbob-largescale, from x0 = 0 with step size 2, for all methods; a run ends 1e-8 above the optimum,
when its budget is spent or when the method stops by itself, and has no restarts. The number of the evaluation at which
each of 51 targets from 10^2 to 10^-8 was reached is noted.

own: functions that are evaluated in whole generations, with a minimum that is uniform in [-4, 4]^d, from the same
start. cigar<n> and discus<n> have n special axes in random directions. With --relative targets are multiples of the
first value, that of x0. To the values of noisy_sphere and noisy_ellipsoid N(0, 1) is added; such a run has no targets,
and the value without noise of the mean of the search is noted on the way.

cost: CPU time of ask and tell for each evaluation, with values from a fixed array in place of a function, as a ratio to
the linear limit of bench_groups.py: `standard_normal(d)` and one axpy for each sample.
Each case has a process of its own, whose memory at its largest is what the system says.

real: weights of networks by values only (large_real.py, large_policies.py). The rates of OpenAI-ES and SNES are chosen
by tune, on other seeds, and kept in the folder.

Methods: ours ("auto"), frame, former (the full matrix up to 1000 coordinates, the diagonal above), full, diagonal; cma,
vkd (VkD-CMA-ES of cma); crfmnes (CR-FM-NES of fcmaes); lmcma, lmma, mmes, ddcma (of pypop7); sepcma (of cmaes). Peers
have their default settings, but do not stop early if that can be switched off. One that is not installed is left out.

What a run came to is one line of JSON in a file of the folder; runs that are there already are not done again. Every
run has a process of its own, with BLAS on one thread. --jobs changes times and what --seconds cuts, and nothing else; a
run that is cut counts as unsolved with its budget. Needs coco-experiment for suite, and scikit-learn and gymnasium for
real; typer is not needed, so that an environment for the peers can be small.
"""
# extras: bench sim

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import importlib.util
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import large_real
import large_tables
import numpy as np
from bench_groups import limit as linear_limit
from large_real import REAL_METHODS, REAL_PROBLEMS, TUNED, RealRecord, RealTask
from large_runs import (
    METHODS,
    OWN,
    OWN_BUDGET,
    SIGMA0,
    SUITE,
    TARGET,
    Crashed,
    Method,
    Record,
    Task,
    append_line,
    check_own_problem,
    done_tasks,
    in_new_process,
    read_records,
    solve,
    suite_budget,
    tasks_to_do,
)
from large_tables import Cost

T = TypeVar("T")
SUITE_DIMS = (20, 40, 80, 160, 320, 640)
SUITE_FUNCTIONS = "1,2,6,8,10,11,12,13,14,17,20"
SUITE_METHODS = "ours,former,vkd,crfmnes,lmcma,lmma,mmes,ddcma,cma"
OWN_PROBLEMS = "sphere,ellipsoid,cigar1,cigar10,discus1,discus10,rosenbrock"
SUITE_FILE, OWN_FILE, COST_FILE = "suite.jsonl", "own.jsonl", "cost.jsonl"
REAL_FILE, TUNING_FILE, RATES_FILE = "real.jsonl", "tune.jsonl", "rates.json"


def say(text: str) -> None:
    """Print a line about the course of things."""
    print(text, file=sys.stderr, flush=True)


# ---- arguments ------------------------------------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    """Return 1,2,6,8-14 as a list of integers, each once."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and 1 <= int(first) <= int(last or first)):
            raise argparse.ArgumentTypeError(f"must be numbers from 1 on and ranges like 1,2,6,8-14, got {text!r}")
        found.extend(range(int(first), int(last or first) + 1))
    return list(dict.fromkeys(found))


def among(known: Sequence[T], make: Callable[[str], list[T]]) -> Callable[[str], list[T]]:
    """Return a reader of lists whose entries must be known."""

    def read(text: str) -> list[T]:
        if unknown := [one for one in make(text) if one not in known]:
            raise argparse.ArgumentTypeError(f"must be among {', '.join(map(str, known))}, got {unknown[0]!r}")
        return make(text)

    return read


def names(text: str) -> list[str]:
    """Return a,b as a list of names, each once."""
    return list(dict.fromkeys(text.split(",")))


def own_problems(text: str) -> list[str]:
    """Return the names of own problems."""
    try:
        return [check_own_problem(name) for name in names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(kind: Callable[[str], T], zero: bool = False) -> Callable[[str], T]:
    """Return a reader of numbers that must be finite and above 0, or with `zero` at least 0."""

    def read(text: str) -> T:
        try:
            number = kind(text)
            good = math.isfinite(float(text)) and (float(text) > 0 or (zero and float(text) == 0))
        except ValueError:
            good = False
        if not good:
            what = "an integer" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what} {'of at least' if zero else 'above'} 0, got {text!r}")
        return number

    return read


def installed(methods: Sequence[str], known: Mapping[str, Method]) -> list[str]:
    """Return the methods whose package is there; a line for each of the others says what to install."""
    found = []
    for name in methods:
        if missing := known[name].missing:
            say(f"{name} is left out: it needs the package {missing} (pip install {missing})")
        else:
            found.append(name)
    return found


# ---- runs -----------------------------------------------------------------------------------------------------------


class Progress:
    """Says what was run, and how long the rest may take; a run is taken to cost what its weight says."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.number, self.total = 0, len(weights)
        self.done, self.whole = 0.0, math.fsum(weights)
        self.since = time.monotonic()

    def say(self, what: str, weight: float) -> None:
        """Print a line about a run that has ended."""
        self.number, self.done = self.number + 1, self.done + weight
        left = (time.monotonic() - self.since) * (self.whole / self.done - 1) / 60
        say(f"{self.number}/{self.total} {what}; about {left:.0f} min left")


def run_all(path: Path, tasks: Sequence[Task], jobs: int) -> int:
    """Do the runs that a file does not hold yet, append a line for each, and return how many have crashed."""
    to_do = tasks_to_do(tasks, read_records(path, Record.of))
    say(f"{len(to_do)} runs to do, {len(tasks) - len(to_do)} in {path} already")
    progress, crashed = Progress([task.budget * task.dim for task in to_do]), 0
    for task, record in done_tasks(to_do, jobs, solve):
        if isinstance(record, Crashed):
            crashed += 1
            what = f"{record}; it is not in the file"
        else:
            append_line(path, record.line())
            what = f"{len(record.hits)} targets, {record.used:,} evaluations, {record.ended}, {record.cpu:.1f} s"
        progress.say(f"{task}: {what}", task.budget * task.dim)
    return crashed


def run_suite(given: argparse.Namespace) -> int:
    """Run methods on the suite."""
    if not importlib.util.find_spec("cocoex"):
        raise ValueError("suite needs the package coco-experiment (pip install coco-experiment), not installed here")
    tasks = [  # by instances, so that a part of the benchmark has something of everything
        Task(
            SUITE,
            f"f{function}",
            dim,
            instance,
            method,
            given.budget or suite_budget(dim, function),
            seconds=given.seconds,
        )
        for methods in [installed(given.methods, METHODS)]
        for instance in given.instances
        for dim in given.dims
        for function in given.functions
        for method in methods
    ]
    return run_all(given.out / SUITE_FILE, tasks, given.jobs)


def run_own(given: argparse.Namespace) -> int:
    """Run methods on our own problems."""
    tasks = [
        Task(
            OWN,
            problem,
            dim,
            seed,
            method,
            given.budget or OWN_BUDGET * dim,
            given.target,
            given.relative,
            given.popsize,
            given.seconds,
        )
        for methods in [installed(given.methods, METHODS)]
        for seed in given.seeds
        for dim in given.dims
        for problem in given.problems
        for method in methods
    ]
    return run_all(given.out / OWN_FILE, tasks, given.jobs)


# ---- real problems --------------------------------------------------------------------------------------------------


def present_problems(problems: Sequence[str]) -> list[str]:
    """Return the real problems that can be run; a line for each of the others says what to install."""
    found = []
    for name in problems:
        if missing := large_real.missing_for(name):
            say(f"{name} is left out: it needs the package {missing} (pip install {missing})")
        else:
            found.append(name)
    return found


def run_real_tasks(path: Path, tasks: Sequence[RealTask], jobs: int) -> int:
    """Do the runs that a file does not hold yet, append a line for each, and return how many have crashed."""
    to_do = large_real.real_tasks_to_do(tasks, read_records(path, RealRecord.of))
    say(f"{len(to_do)} runs to do, {len(tasks) - len(to_do)} in {path} already")
    progress, crashed = Progress([max(task.budgets) for task in to_do]), 0
    for task, record in done_tasks(to_do, jobs, large_real.solve_real):
        if isinstance(record, Crashed):
            crashed += 1
            what = f"{record}; it is not in the file"
        else:
            append_line(path, record.line())
            value = record.course[-1].value
            what = f"{value:.4g} after {record.used:,} evaluations, {record.ended}, {record.cpu:.1f} s"
        progress.say(f"{task}: {what}", max(task.budgets))
    return crashed


def run_tune(given: argparse.Namespace) -> int:
    """Run OpenAI-ES and SNES with several rates, and keep the best ones."""
    budgets = tuple(sorted({math.ceil(given.budget * part) for part in (0.25, 0.5, 1.0)}))
    tasks = [
        RealTask(problem, seed, method, budgets, rate)
        for problem in present_problems(given.problems)
        for method in given.methods
        for rate in large_real.rates_to_try(method, large_real.real_problem(problem, 1).dim)
        for seed in given.seeds
    ]
    crashed = run_real_tasks(given.out / TUNING_FILE, tasks, given.jobs)
    rates = large_real.chosen_rates(read_records(given.out / TUNING_FILE, RealRecord.of))
    if rates:
        large_real.write_rates(given.out / RATES_FILE, rates)
    for (problem, method), chosen in rates.items():
        edge = ", at the edge of those that were tried" if chosen.at_the_edge else ""
        say(f"{method} on {problem}: rate {chosen.rate:g}, chosen on seeds {', '.join(map(str, chosen.seeds))}{edge}")
    return crashed


def run_real(given: argparse.Namespace) -> int:
    """Run methods on networks."""
    methods = installed(given.methods, {name: METHODS.get(name, METHODS["ours"]) for name in REAL_METHODS})
    rates = large_real.read_rates(given.out / RATES_FILE)
    tasks = [
        RealTask(problem, seed, method, tuple(sorted(given.budgets)), rate)
        for problem in present_problems(given.problems)
        for method in methods
        for rate in [large_real.rate_for(rates, problem, method, given.seeds)]
        for seed in given.seeds
    ]
    return run_real_tasks(given.out / REAL_FILE, tasks, given.jobs)


# ---- time of ask and tell -------------------------------------------------------------------------------------------

COST_DIMS = (100, 1000, 10**4, 10**5, 10**6)
STRUCTURES = ("frame:k=4", "frame:k=16", "diagonal")
MOST_OF_PEERS = 10**5  # dimensions in which peers are measured
MOST_GENERATIONS = 2000  # of a turn: with values from nowhere a search wanders, and must not get lost
WARM_UP = 20  # generations of a search before it is timed


class Contender(NamedTuple):
    """One search: ask, and tell with the points that were asked for and their values."""

    ask: Callable[[], Any]
    tell: Callable[[Any, np.ndarray], Any]


def usual_popsize(dim: int) -> int:
    """Return 4 + floor(3 ln d)."""
    return 4 + int(3 * math.log(dim))


def our_contender(structure: str, dim: int, seed: int) -> Contender:
    """Return a search of ours."""
    import esgroup

    search = esgroup.Searcher(np.zeros(dim), SIGMA0, structure=structure, popsize=usual_popsize(dim), rng=seed)
    return Contender(search.ask, lambda points, values: search.tell(values[: len(points)]))


def sepcma_contender(dim: int, seed: int) -> Contender:
    """Return SepCMA of cmaes."""
    import cmaes

    n = usual_popsize(dim)
    search = cmaes.SepCMA(np.zeros(dim), SIGMA0, population_size=n, seed=seed)
    return Contender(
        lambda: [search.ask() for _ in range(n)],
        lambda points, values: search.tell(list(zip(points, values.tolist(), strict=False))),
    )


def crfmnes_contender(dim: int, seed: int) -> Contender:
    """Return CR-FM-NES of fcmaes in C++, whose population must be even."""
    from fcmaes.crfmnescpp import CRFMNES_C

    n, rng = usual_popsize(dim), np.random.Generator(np.random.PCG64DXSM(seed))
    search = CRFMNES_C(dim, x0=np.zeros(dim), input_sigma=SIGMA0, popsize=n + n % 2, rg=rng)
    return Contender(search.ask, lambda points, values: search.tell(values[: len(points)]))


COST_PEERS: dict[str, tuple[str, Callable[[int, int], Contender]]] = {
    "sepcma": ("cmaes", sepcma_contender),
    "crfmnes": ("fcmaes", crfmnes_contender),
}


def make_contender(name: str, dim: int, seed: int) -> Contender:
    """Return a search of a peer, or ours with a structure."""
    return COST_PEERS[name][1](dim, seed) if name in COST_PEERS else our_contender(name, dim, seed)


def turn(contender: Contender, values: np.ndarray, generations: int, clock: Callable[[], float]) -> float:
    """Return the seconds for each evaluation of so many generations, with values from a fixed array."""
    evaluations, since = 0, clock()
    for number in range(generations):
        points = contender.ask()
        contender.tell(points, values[number % len(values)])
        evaluations += len(points)
    return (clock() - since) / evaluations


def turn_length(contender: Contender, values: np.ndarray, seconds: float, clock: Callable[[], float]) -> int:
    """Return the generations that take about some seconds, after a few that warm up."""
    each = turn(contender, values, 2, clock)
    warm_up = max(1, min(WARM_UP, int(seconds / max(each * values.shape[1], 1e-9))))
    each = turn(contender, values, warm_up, clock)
    return max(2, min(MOST_GENERATIONS, int(seconds / max(each * values.shape[1], 1e-9))))


def limit_seconds(generation: Callable[[], None], dim: int, seconds: float, clock: Callable[[], float]) -> float:
    """Return the seconds for each evaluation at the limit, over about some seconds."""
    since, done = clock(), 0
    while done < 2 or clock() - since < seconds:
        generation()
        done += 1
    return (clock() - since) / (done * usual_popsize(dim))


def peak_memory() -> float:
    """Return MB of this process at its largest so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measured_cost(name: str, dim: int, seconds: float, rounds: int) -> Cost:
    """Measure one contender in this process: memory in its first turn, then turns between those of the limit."""
    clock = time.process_time
    rng = np.random.default_rng(1)
    small = make_contender(name, 20, 1)  # imports and compiles
    turn(small, rng.random((8, usual_popsize(20) + 1)), 8, clock)
    before = peak_memory()
    values = rng.random((64, usual_popsize(dim) + usual_popsize(dim) % 2))
    generations = turn_length(make_contender(name, dim, 1), values, seconds, clock)
    peak = peak_memory()
    limit, times, limits = linear_limit(dim, full=False), [], []
    for seed in range(1, rounds + 1):
        limits.append(limit_seconds(limit, dim, seconds / 4, clock))
        contender = make_contender(name, dim, seed)
        turn(contender, values, min(WARM_UP, generations), clock)
        times.append(turn(contender, values, generations, clock))
        limits.append(limit_seconds(limit, dim, seconds / 4, clock))
        del contender
    return Cost(name, dim, 1e6 * statistics.median(times), 1e6 * statistics.median(limits), peak, peak - before)


def check_contender(name: str) -> str:
    """Return why a contender cannot take part, empty if it can; an unknown structure is refused."""
    if name in COST_PEERS:
        package = COST_PEERS[name][0]
        return "" if importlib.util.find_spec(package) else f"it needs the package {package} (pip install {package})"
    from esgroup.groups import parse

    try:
        parse(name, 100)
    except ValueError as error:
        raise ValueError(f"--contenders must be structures, {', '.join(COST_PEERS)}, got {name!r}: {error}") from None
    return ""


def run_cost(given: argparse.Namespace) -> int:
    """Measure time and memory, and print the tables."""
    contenders = []
    for name in given.contenders:
        if why := check_contender(name):
            say(f"{name} is left out: {why}")
        else:
            contenders.append(name)
    costs, crashed = [], 0
    for dim in given.dims:
        for name in contenders:
            if name in COST_PEERS and dim > MOST_OF_PEERS:
                continue
            try:
                cost = in_new_process(measured_cost, name, dim, given.seconds, given.rounds)
            except Crashed as crash:
                crashed += 1
                say(f"{name}, d = {dim}: {crash}")
                continue
            costs.append(cost)
            if given.out is not None:
                append_line(given.out / COST_FILE, cost._asdict())
            say(f"{name}, d = {dim}: {cost.micros:.3g} us, {cost.ratio:.2f} of the limit, {cost.peak:.0f} MB")
    print("\n\n".join(large_tables.cost_report(costs)))
    return crashed


# ---- tables ---------------------------------------------------------------------------------------------------------


def print_tables(given: argparse.Namespace) -> int:
    """Print what the records of a folder say."""
    if not given.folder.is_dir():
        raise ValueError(f"FOLDER must be a folder with records, got {given.folder}")
    records = [one for name in (SUITE_FILE, OWN_FILE) for one in read_records(given.folder / name, Record.of)]
    parts = [
        *large_tables.evaluations_report(records, given.label, given.former),
        *large_tables.noise_report(records, given.label),
        *large_tables.real_report(read_records(given.folder / REAL_FILE, RealRecord.of)),
        *large_tables.cost_report(read_records(given.folder / COST_FILE, lambda line: Cost(**line))),
    ]
    if not parts:
        raise ValueError(f"FOLDER must have records, got {given.folder} without any")
    print("\n\n".join(parts))
    return 0


# ---- command --------------------------------------------------------------------------------------------------------


def add_running(command: argparse.ArgumentParser) -> None:
    """Add the arguments that all commands with runs have."""
    command.add_argument("--jobs", type=positive(int), default=1, help="processes at the same time")
    command.add_argument("--out", type=Path, required=True, help="folder whose files are appended to")


def add_limits(command: argparse.ArgumentParser, budget: str) -> None:
    """Add the arguments about how long a run may be."""
    command.add_argument("--budget", type=positive(int), help=f"evaluations of a run; {budget} if not given")
    command.add_argument(
        "--seconds",
        type=positive(float, zero=True),
        default=0.0,
        help="on the wall, after which a run is cut; 0: never",
    )


def add_suite(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `suite`."""
    command.add_argument("--dims", type=among(SUITE_DIMS, numbers), default="80,160")
    command.add_argument("--functions", type=among(range(1, 25), numbers), default=SUITE_FUNCTIONS)
    command.add_argument("--instances", type=numbers, default="11-13")
    command.add_argument("--methods", type=among(list(METHODS), names), default=SUITE_METHODS)
    add_limits(command, "those of a table by dimension and function")
    add_running(command)
    command.set_defaults(action=run_suite)


def add_own(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `own`."""
    command.add_argument("--dims", type=numbers, default="1000")
    command.add_argument("--problems", type=own_problems, default=OWN_PROBLEMS)
    command.add_argument("--seeds", type=numbers, default="1-3")
    command.add_argument("--methods", type=among(list(METHODS), names), default=SUITE_METHODS)
    command.add_argument("--target", type=positive(float), default=TARGET, help="where a run ends")
    command.add_argument("--relative", action="store_true", help="targets are multiples of the first value, that of x0")
    command.add_argument("--popsize", type=positive(int), help="points in a generation; else what the method wants")
    add_limits(command, f"{OWN_BUDGET:,} for each coordinate")
    add_running(command)
    command.set_defaults(action=run_own)


def add_cost(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `cost`."""
    command.add_argument(
        "--dims", type=numbers, default=list(COST_DIMS), help=f"above {MOST_OF_PEERS:,} peers are left out"
    )
    command.add_argument(
        "--contenders", nargs="+", default=[*STRUCTURES, *COST_PEERS], help="structures of ours, and peers"
    )
    command.add_argument("--seconds", type=positive(float), default=1.0, help="of CPU time, roughly, in each turn")
    command.add_argument("--rounds", type=positive(int), default=3, help="turns of each contender")
    command.add_argument("--out", type=Path, help="folder whose file is appended to; none if not given")
    command.set_defaults(action=run_cost)


def add_tune(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `tune`."""
    command.add_argument("--problems", type=among(REAL_PROBLEMS, names), default=",".join(REAL_PROBLEMS))
    command.add_argument("--methods", type=among(list(TUNED), names), default=",".join(TUNED))
    command.add_argument("--seeds", type=numbers, default="101-102", help="must not be those of the runs")
    command.add_argument("--budget", type=positive(int), default=10_000, help="evaluations of a run")
    add_running(command)
    command.set_defaults(action=run_tune)


def add_real(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `real`."""
    command.add_argument("--problems", type=among(REAL_PROBLEMS, names), default=",".join(REAL_PROBLEMS))
    command.add_argument("--methods", type=among(REAL_METHODS, names), default=",".join(REAL_METHODS))
    command.add_argument("--seeds", type=numbers, default="1-3")
    command.add_argument(
        "--budgets", type=numbers, default=list(large_real.BUDGETS), help="evaluations after which values are noted"
    )
    add_running(command)
    command.set_defaults(action=run_real)


def add_table(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `table`."""
    command.add_argument("folder", type=Path, metavar="FOLDER")
    command.add_argument("--label", choices=list(METHODS), default="ours", help="method that is judged")
    command.add_argument("--former", choices=list(METHODS), default="former", help="method it is compared with")
    command.set_defaults(action=print_tables)


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "suite": ("run methods on bbob-largescale", add_suite),
    "own": ("run methods on our own problems", add_own),
    "cost": ("measure time and memory of ask and tell", add_cost),
    "tune": ("choose the rates of OpenAI-ES and SNES", add_tune),
    "real": ("run methods on networks", add_real),
    "table": ("print what the records of a folder say, in markdown", add_table),
}


def parser() -> argparse.ArgumentParser:
    """Return the reader of the command line."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, add) in COMMANDS.items():
        add(commands.add_parser(name, help=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    return whole


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return its exit code: 1 if a run has crashed, 2 if an argument is wrong."""
    whole = parser()
    given = whole.parse_args(words)
    try:
        crashed: int = given.action(given)
    except ValueError as error:
        whole.error(str(error))
    if crashed:
        say(f"{crashed} runs have crashed and are not in the file; the same command tries them again")
    return int(crashed > 0)


if __name__ == "__main__":
    sys.exit(main())
