"""Runs on functions of real numbers, integers and categories, after the papers on CatCMA.

With n real numbers x, n integers z from -10 to 10 (in some) and n categories c out of K = 5, of which 0 is the best:

    sphere_com         |x|^2 + number of c_i that are not 0
    rosenbrock_clo     Rosenbrock(x) + n - number of leading c_i that are 0
    mc_proximity       |x - c / K|^2 + sum_i c_i / K
    sphere_int_com     |x|^2 + |z|^2 + number of c_i that are not 0
    ellipsoid_int_clo  sum_i 10^(6 (i - 1) / (2 n - 1)) (x, z)_i^2 + n - number of leading c_i that are 0

The first three are those of Hamano et al. 2024 (CatCMA: Stochastic Optimization for Mixed-Category Problems), the
fourth is that of Hamano et al. 2025 (CatCMA with Margin), and the last is made of the same pieces. The minimum is 0.
All methods begin with means from U[1, 5], rounded for integers, standard deviations of 1, and equally likely
categories. A run is a success if it comes to 1e-8 within the budget.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob_rows import append_tuples, read_texts
from bbob_runs import Finished
from bbob_tables import markdown_table

CATEGORIES, REACH, TARGET = 5, 10, 1e-8
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def ones(c: np.ndarray) -> float:
    """How many categories are not the best one."""
    return float((c != 0).sum())


def leading(c: np.ndarray) -> float:
    """How many categories there are from the first that is not the best one."""
    return float(len(c) - (c == 0).cumprod().sum())


def rosenbrock(x: np.ndarray) -> float:
    return float((100 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1) ** 2).sum())


def ellipsoid(y: np.ndarray) -> float:
    return float(10 ** (6 * np.arange(len(y)) / (len(y) - 1)) @ y**2)


FUNCTIONS: dict[str, Function] = {
    "sphere_com": lambda x, z, c: float(x @ x) + ones(c),
    "rosenbrock_clo": lambda x, z, c: rosenbrock(x) + leading(c),
    "mc_proximity": lambda x, z, c: float(((x - c / CATEGORIES) ** 2).sum() + (c / CATEGORIES).sum()),
    "sphere_int_com": lambda x, z, c: float(x @ x + z @ z) + ones(c),
    "ellipsoid_int_clo": lambda x, z, c: ellipsoid(np.concatenate([x, z])) + leading(c),
}


class CategoryRow(NamedTuple):
    """One run; one line of the CSV."""

    label: str
    method: str
    function: str
    size: int  # n
    seed: int
    budget: int  # evaluations for each of the variables
    evals: int | None  # at which the target was hit
    used: int
    ended: str

    @property
    def run(self) -> tuple[str, str, int, int]:
        return self.label, self.function, self.size, self.seed


def read_category_rows(path: Path) -> list[CategoryRow]:
    """Rows of a file, none if there is no file."""
    return [
        CategoryRow(
            row["label"],
            row["method"],
            row["function"],
            *(int(row[name]) for name in ("size", "seed", "budget")),
            int(row["evals"]) if row["evals"] else None,
            int(row["used"]),
            row["ended"],
        )
        for row in read_texts(path, CategoryRow._fields)
    ]


def append_category_rows(path: Path, rows: Iterable[CategoryRow]) -> None:
    """Write rows at the end of a file."""
    append_tuples(path, rows, CategoryRow._fields)


class Problem:
    """A function with the start of a run, which counts evaluations and ends the run at its target or budget."""

    def __init__(self, name: str, size: int, seed: int, budget: int) -> None:
        rng = np.random.default_rng([sorted(FUNCTIONS).index(name), size, seed])
        self.function, self.size, self.seed = FUNCTIONS[name], size, seed
        self.x0 = rng.uniform(1, 5, size)
        self.z0 = np.rint(rng.uniform(1, 5, size)) if "_int_" in name else np.empty(0)
        self.max_evals = budget * (2 * size + len(self.z0))
        self.count, self.hit = 0, False

    def __call__(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> float:
        self.count += 1
        value = self.function(x, z, c)
        if value <= TARGET:
            self.hit = True
            raise Finished("target")
        if self.count >= self.max_evals:
            raise Finished("budget")
        return value


# ---- methods


def search_esgroup(problem: Problem) -> str:
    """Ours over a space of arrays."""
    import esgroup
    from esgroup import Choice, Integer, Real, Space

    n = problem.size
    parameters: dict[str, Any] = {"x": Real(start=problem.x0, width=1.0, shape=n)}
    if len(problem.z0):
        parameters["z"] = Integer(-REACH, REACH, start=problem.z0.astype(int), width=1.0, shape=n)
    search = esgroup.Searcher(Space({**parameters, "c": Choice(*range(CATEGORIES), shape=n)}), rng=problem.seed)
    none = np.empty(0)
    while not search.stop():
        points = search.ask()
        search.tell([problem(p["x"], np.asarray(p.get("z", none), float), p["c"].astype(int)) for p in points])
    return "+".join(search.stop())


def search_catcma(problem: Problem) -> str:
    """CatCMA of cmaes, which has no integers."""
    from cmaes import CatCMA

    search = CatCMA(problem.x0, 1.0, np.full(problem.size, CATEGORIES), seed=problem.seed)
    while not search.should_stop():
        points = [search.ask() for _ in range(search.population_size)]
        search.tell([((x, c), problem(x, problem.z0, c.argmax(axis=1))) for x, c in points])
    return "stopped"


def search_catcmawm(problem: Problem) -> str:
    """CatCMA with margin of cmaes."""
    from cmaes import CatCMAwM

    whole = len(problem.z0)
    search = CatCMAwM(
        x_space=[[-math.inf, math.inf]] * problem.size,
        z_space=[list(range(-REACH, REACH + 1))] * whole if whole else None,
        c_space=[CATEGORIES] * problem.size,
        mean=np.concatenate([problem.x0, problem.z0]),
        sigma=1.0,
        seed=problem.seed,
    )
    while not search.should_stop():
        points = [search.ask() for _ in range(search.population_size)]
        values = [problem(p.x, problem.z0 if p.z is None else p.z, p.c.argmax(axis=1)) for p in points]
        search.tell(list(zip(points, values, strict=True)))
    return "stopped"


METHODS: dict[str, Callable[[Problem], str]] = {
    "esgroup": search_esgroup,
    "catcma": search_catcma,
    "catcmawm": search_catcmawm,
}


def solve(label: str, method: str, function: str, size: int, seed: int, budget: int) -> CategoryRow:
    """One run. A failure in mid-run is an end too, and kept."""
    problem = Problem(function, size, seed, budget)
    try:
        ended = METHODS[method](problem)
    except Finished as end:
        ended = str(end)
    except Exception as error:
        if problem.count == 0:
            raise
        ended = f"error: {type(error).__name__}: {' '.join(str(error).split())}"
    evals = problem.count if problem.hit else None
    return CategoryRow(label, method, function, size, seed, budget, evals, problem.count, ended)


# ---- tables


def report(rows: Sequence[CategoryRow], labels: Sequence[str]) -> str:
    """Successes and the median evaluations of all runs, in markdown; a median is infinite if half of them fail."""
    found: dict[tuple[str, int], dict[str, dict[int, CategoryRow]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row.function, row.size][row.label][row.seed] = row
    known = {row.label for row in rows}
    if missing := [label for label in labels if label not in known]:
        raise ValueError(f"label {missing[0]!r} must be one of {sorted(known)}")
    lines = []
    places = {name: place for place, name in enumerate(FUNCTIONS)}
    for function, size in sorted(found, key=lambda key: (places[key[0]], key[1])):
        by_label = found[function, size]
        line = [f"{function} n = {size}"]
        for label in labels:
            runs = list(by_label[label].values())
            line.append(_cell(runs) if runs else "-")
        lines.append(line)
    text = f"Runs to {TARGET:g}, and the median of their evaluations, those that fail counted as infinite."
    return "\n\n".join(["## Categories", text, markdown_table(["function", *labels], lines)]) + "\n"


def _cell(runs: Sequence[CategoryRow]) -> str:
    hits = sum(run.evals is not None for run in runs)
    median = statistics.median_high([math.inf if run.evals is None else run.evals for run in runs])
    return f"{hits} of {len(runs)}, {median:.0f}"
