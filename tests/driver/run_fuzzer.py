"""Random calls of `minimize`, each checked against plain Python over all points that it evaluated.

    python -m tests.driver.run_fuzzer --seed 12               one run, with its options
    python -m tests.driver.run_fuzzer --runs 500              seeds 0 to 499

Points are vectors or named parameters; there are constraints of any unit with tolerances of their own, restarts,
failures, interruptions with a resume, threads, and processes whose objective forks. Whatever the options are:

- the result is the best point by value and tolerance, over all runs and sessions; counts are those of the calls;
- a search that was interrupted and resumed evaluates the points of one that was not;
- a value is that of its point, and no process is left, although the objective forks;
- a result can be printed and pickled, and says nothing else afterwards;
- its history is read whole, and a damaged one raises ValueError or is read.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint

import esgroup
from esgroup import Choice, Integer, Real, Space
from esgroup.running import history as histories
from tests.search.fuzz_bits import frozen

Rng = np.random.Generator
DAMAGES = 5  # of each history


class Interrupted(Exception):
    """Raised by an objective in the middle of a run."""


@dataclass(frozen=True)
class Wall:
    """A constraint: a linear or curved function of the numbers of a point, in some unit."""

    slope: tuple[float, ...]
    power: int
    unit: float

    def __call__(self, x: Any) -> float:
        inner = float(np.dot(self.slope, numbers_of(x)))
        return self.unit * inner**self.power


@dataclass(frozen=True)
class Objective:
    """A rugged function, NaN in a corner."""

    center: float
    fails: bool
    forks: bool = False

    def __call__(self, x: Any) -> float:
        if self.forks:
            child = os.fork()
            if child == 0 and np.ravel(numbers_of(x))[0] > self.center:
                sys.exit(3)  # as some libraries do; below, the child returns as well
            if child:
                os.waitpid(child, 0)
        z = numbers_of(x) - self.center
        if self.fails and z[0] > 1.0:
            return math.nan
        return float(z @ z + 0.3 * np.sum(1 - np.cos(5 * z)))


def numbers_of(x: Any) -> np.ndarray:
    """The numbers of a point; of named ones without choices."""
    if isinstance(x, dict):
        return np.array([float(value) for name, value in sorted(x.items()) if name != "choice"])
    return np.asarray(x, dtype=float)


@dataclass
class Recorded:
    """An objective that keeps its points, in this process, and may raise at a call."""

    function: Objective
    raise_at: int = -1
    points: list[Any] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def __call__(self, x: Any) -> float:
        with self.lock:
            if len(self.points) == self.raise_at:
                raise Interrupted
            self.points.append(dict(x) if isinstance(x, dict) else np.array(x))
        return self.function(x)


@dataclass(frozen=True)
class Run:
    """One call of `minimize`, in plain words."""

    start: Any
    options: dict[str, Any]
    walls: tuple[Wall, ...]
    bounds: tuple[tuple[float, float], ...]  # lb and ub of each wall
    tolerances: tuple[float, ...]
    objective: Objective
    sessions: tuple[int, ...]  # calls after which the run is interrupted
    threads: bool

    @property
    def text(self) -> str:
        constraints = f"{self.walls} within {self.bounds}, tolerances {self.tolerances}"
        return f"minimize({self.objective}, {self.start}, {self.options}, {constraints})"

    def violations(self, x: Any) -> list[float]:
        pairs = zip(self.walls, self.bounds, strict=True)
        return [max(low - wall(x), wall(x) - high, 0.0) for wall, (low, high) in pairs]

    def best(self, points: list[Any]) -> tuple[float, float, Any] | None:
        """Violation in proportion to tolerances, value and point of the best one, the first of equal ones."""
        best = None
        scale = max(self.tolerances, default=0.0)
        for x in points:
            value, g = self.objective(x), self.violations(x)
            if math.isnan(value):
                continue
            beyond = [v * (scale / t) for v, t in zip(g, self.tolerances, strict=True) if v > t]
            if best is None or (max(beyond, default=0.0), value) < best[:2]:
                best = (max(beyond, default=0.0), value, x)
        return best


def random_run(seed: int) -> Run:
    """The run of a seed."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    named = rng.random() < 0.35
    options: dict[str, Any] = {"rng": int(rng.integers(10**6)), "max_evals": int(rng.integers(1, 400))}
    if named:
        whole = Integer(-3, 3) if rng.random() < 0.5 else Real(-3, 3)
        choice = Choice(None, 2.5, True, (1, "x"), "text")
        start: Any = Space({**{f"r{i}": Real(-3, 3) for i in range(d)}, "whole": whole, "choice": choice})
        d += 1
    else:
        start, options["sigma0"] = rng.normal(size=d), 0.5
        if rng.random() < 0.5:
            options["bounds"] = (-4.0, 4.0)
            start = start.clip(-3.9, 3.9)
    if rng.random() < 0.6:
        options["restarts"] = str(rng.choice(["ipop", "bipop"]))
    if rng.random() < 0.2:
        options["target"] = 0.5
    m = int(rng.integers(0, 4))
    walls, bounds, tolerances = [], [], []
    for _ in range(m):
        unit = float(rng.choice([1.0, 1e-30, 1e5, 1e200]))
        wall = Wall(tuple(rng.normal(size=d).tolist()), int(rng.choice([1, 3])), unit)
        low, high = (-math.inf, 0.5) if rng.random() < 0.5 else (0.0, 0.0) if rng.random() < 0.3 else (-0.3, 0.7)
        walls.append(wall)
        bounds.append((low * wall.unit, high * wall.unit))
        tolerances.append(float(rng.choice([1e-3, 0.2]) * wall.unit))
    function = Objective(float(rng.normal()), bool(rng.random() < 0.3))
    sessions: tuple[int, ...] = ()
    threads = rng.random() < 0.1
    if not threads and rng.random() < 0.4:
        sessions = tuple(sorted(set(rng.integers(0, options["max_evals"], int(rng.integers(1, 3))).tolist())))
    return Run(start, options, tuple(walls), tuple(bounds), tuple(tolerances), function, sessions, threads)


def solve(run: Run, fun: Any, **others: Any) -> Any:
    """Call `minimize`."""
    limits = [NonlinearConstraint(wall, *both) for wall, both in zip(run.walls, run.bounds, strict=True)]
    constrained = {"constraints": limits, "constraint_tol": list(run.tolerances)} if limits else {}
    return esgroup.minimize(fun, run.start, **run.options, **constrained, **others)


def check(run: Run, folder: Path) -> None:
    """Run it, and assert all of the above."""
    whole, history = Recorded(run.objective), folder / "run.jsonl"
    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(2)) if run.threads else None
        result = solve(run, whole, history=history, executor=executor)
    points = whole.points
    _check_result(run, result, points)
    if run.sessions:
        _check_resumed(run, result, points, folder)
    _check_history(result, history, np.random.default_rng(len(points)))


def _check_result(run: Run, result: Any, points: list[Any]) -> None:
    assert result.nfev == len(points) <= run.options["max_evals"], (result.nfev, len(points))
    best = run.best(points)
    assert result.nfailed == sum(math.isnan(run.objective(x)) for x in points)
    if best is not None and not run.threads:  # whose points come in any order
        assert (result.fun, frozen(result.x)) == (best[1], frozen(best[2])), f"{result} instead of {best}"
    if best is not None and run.walls:
        assert result.feasible == (best[0] == 0.0) and result.success <= result.feasible, (result, best)
        worst = max(run.violations(result.x))
        assert math.isclose(result.constr_violation, worst, rel_tol=1e-9, abs_tol=1e-9 * min(run.tolerances)), worst
    again = pickle.loads(pickle.dumps(result))
    assert frozen(again) == frozen(result) and str(again) == str(result) != ""


def _check_resumed(run: Run, result: Any, points: list[Any], folder: Path) -> None:
    """Interrupted at some calls, the search continues with the same points to the same result."""
    seen: list[Any] = []
    given = {"checkpoint": folder / "run.npz", "history": folder / "parts.jsonl"}
    resumed = None
    for stop in [*run.sessions, None]:
        part = Recorded(run.objective, -1 if stop is None else stop - len(seen))
        with suppress(Interrupted):
            resumed = solve(run, part, **given, resume=(folder / "run.npz").exists())
        seen += part.points
    assert frozen(seen) == frozen(points), f"{len(seen)} points instead of {len(points)}, or others"
    assert resumed is not None
    for name in ("x", "fun", "nfev", "nit", "nfailed", "restarts", "success", "status"):
        assert frozen(resumed[name]) == frozen(result[name]), name


def _check_history(result: Any, history: Path, rng: Rng) -> None:
    """The history has the whole run; damaged, it is read, or refused by ValueError."""
    if result.nit:
        assert histories.read(history).nfev[-1] == result.nfev
    content = history.read_bytes()
    for _ in range(DAMAGES):
        damaged = bytearray(content)
        for i in rng.integers(len(damaged), size=int(rng.integers(1, 4))):
            damaged[i] = int(rng.integers(256))
        history.write_bytes(damaged[: int(rng.integers(len(damaged)))] if rng.random() < 0.3 else damaged)
        with suppress(ValueError):
            histories.read(history)


def check_forks(seed: int) -> None:
    """Objectives that fork, in processes: each value is that of its point, and no process is left."""
    run = random_run(seed)
    forking = Objective(run.objective.center, run.objective.fails, forks=True)
    options = run.options | {"max_evals": min(20, run.options["max_evals"])}
    before = _children()
    result = solve(Run(**{**vars(run), "options": options}), forking, workers=2, eval_timeout=60)
    assert result.nfev <= options["max_evals"]
    if not math.isnan(result.fun):
        assert result.fun == run.objective(result.x), f"{result.fun} at {result.x}, whose value is another"
    assert _children() <= before, f"processes are left: {_children() - before}"


def _children() -> set[str]:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(children.read_text().split()) if children.exists() else set()


def verify(seed: int) -> None:
    """Run the call of a seed; what goes wrong says what was called."""
    run = random_run(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(run, Path(folder))
        except Exception as error:
            error.add_note(f"{run.text}\nseed {seed}, again with: python -m tests.driver.run_fuzzer --seed {seed}")
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Random calls of minimize.")
    parser.add_argument("--seed", type=int, default=None, help="of the only run")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--forks", action="store_true", help="objectives that fork, in processes")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.runs) if given.seed is None else [given.seed]
    failing = []
    for seed in seeds:
        try:
            (check_forks if given.forks else verify)(seed)
        except Exception as error:
            if given.seed is not None:
                raise
            failing.append(seed)
            print(f"{type(error).__name__}: {error}", *getattr(error, "__notes__", []), "", sep="\n", flush=True)
    print(f"{len(seeds)} runs, {len(failing)} failed: {failing}")
    sys.exit(bool(failing))


if __name__ == "__main__":
    main()
