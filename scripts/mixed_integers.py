"""Runs on COCO's suite bbob-mixint: bbob functions of which four fifths of the coordinates are integers.

The suite (Tusar, Brockhoff, Hansen 2019: Mixed-integer benchmark problems for single- and bi-objective optimization)
has coordinates with 2, 4, 8, 16 integers and real ones from -5 to 5, a fifth of each. All methods begin at the same
point, uniform between the bounds, with the same standard deviations: a quarter of the range, and at least 0.5 for
integers.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from bbob_rows import Row, Run, setups
from bbob_runs import Recorder, Task, recorded
from bbob_statistics import Comparison
from bbob_tables import Goal, at_least_theirs, at_most, describe, goals_table, markdown_table, marked_ratio, share

RATIO_GOAL = 0.85  # evaluations, times those of cma


class MixedProblem:
    """A problem of the suite, evaluated in lists, with its bounds, its integers, its optimum and the start of runs."""

    def __init__(self, run: Run) -> None:
        import cocoex

        self.run = run
        which = f"dimensions:{run.dim} function_indices:{run.function}"
        self.suite = cocoex.Suite("bbob-mixint", f"instances:{run.instance}", which)  # problems live as long as it does
        self.problem = self.suite.get_problem(0)
        self.lower, self.upper = np.array(self.problem.lower_bounds), np.array(self.problem.upper_bounds)
        self.whole = list(range(self.problem.number_of_integer_variables))

    def __call__(self, points: Sequence[Sequence[float]]) -> list[float]:
        return [float(self.problem(point)) for point in points]

    @cached_property
    def optimum(self) -> float:
        """The least value; COCO says where it is in a file of the current directory only."""
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            self.problem._best_parameter("print")
            return float(self.problem(np.loadtxt(Path(folder) / "._bbob_problem_best_parameter.txt")))

    @cached_property
    def x0(self) -> np.ndarray:
        """The first mean: every integer has the same chance."""
        rng = np.random.default_rng([self.run.function, self.run.dim, self.run.instance])
        grown = np.isin(np.arange(self.run.dim), self.whole) * 0.5
        point = rng.uniform(self.lower - grown, self.upper + grown)
        point[self.whole] = np.clip(np.rint(point[self.whole]), self.lower[self.whole], self.upper[self.whole])
        return point

    @cached_property
    def steps0(self) -> np.ndarray:
        """The first standard deviations."""
        steps = (self.upper - self.lower) / 4
        steps[self.whole] = np.maximum(steps[self.whole], 0.5)
        return steps


# ---- methods


def search_esgroup(task: Task, fun: Recorder, problem: MixedProblem) -> str:
    """Ours with the task's options."""
    import esgroup

    bounds = list(zip(problem.lower, problem.upper, strict=True))
    given: dict[str, Any] = {"rng": task.seed, "max_evals": task.max_evals, **task.options}
    search = esgroup.Searcher(problem.x0, problem.steps0, bounds=bounds, integer=problem.whole, **given)
    while not search.stop():
        search.tell(fun.generation(search.ask()))
    return "+".join(search.stop())


def search_cma(task: Task, fun: Recorder, problem: MixedProblem) -> str:
    """cma with its handling of integers: least standard deviations, centering, a larger population."""
    import cma

    options = {
        "maxfevals": task.max_evals,
        "verbose": -9,
        "verb_log": 0,
        "seed": task.seed,
        "bounds": [list(problem.lower), list(problem.upper)],
        "integer_variables": problem.whole,
        "CMA_stds": problem.steps0,
    }
    if task.run.popsize is not None:
        options["popsize"] = task.run.popsize
    search = cma.CMAEvolutionStrategy(problem.x0, 1.0, options)
    while not search.stop():
        points = search.ask()
        search.tell(points, fun.generation(points))
    return "+".join(search.stop())


def search_cmawm(task: Task, fun: Recorder, problem: MixedProblem) -> str:
    """CMA-ES with margin of the package cmaes."""
    from cmaes import CMAwM

    steps = np.zeros(task.run.dim)
    steps[problem.whole] = 1.0
    search = CMAwM(
        problem.x0,
        1.0,
        bounds=np.column_stack([problem.lower, problem.upper]),
        steps=steps,
        cov=np.diag(problem.steps0**2),
        seed=task.seed,
        population_size=task.run.popsize,
    )
    while not search.should_stop():
        pairs = [search.ask() for _ in range(search.population_size)]
        values = fun.generation([evaluated for evaluated, _ in pairs])
        search.tell([(told, value) for (_, told), value in zip(pairs, values, strict=True)])
    return "stopped"


METHODS: dict[str, Callable[[Task, Recorder, Any], str]] = {
    "esgroup": search_esgroup,
    "cma": search_cma,
    "cmawm": search_cmawm,
}


def solve(task: Task) -> list[Row]:
    """One run, a row for each target."""
    problem = MixedProblem(task.run)
    fun = Recorder(problem, problem.optimum, task.max_evals)
    importlib.import_module(task.setup.method.replace("cmawm", "cmaes"))  # not on the clock
    return recorded(task, fun, problem, METHODS)


# ---- tables


def report(rows: Sequence[Row], label: str, baselines: Sequence[str]) -> tuple[str, bool]:
    """The comparison of a label with each of the baselines in markdown, and whether every goal is met."""
    known = setups(rows)
    for name in (label, *baselines):
        if name not in known:
            raise ValueError(f"label {name!r} must be one of {sorted(known)}")
    goals: list[Goal] = []
    parts = [f"## {label} on bbob-mixint", "\n".join(f"- {describe(rows, name)}" for name in (label, *baselines))]
    for baseline in baselines:
        comparison = Comparison.of(rows, label, baseline)
        judged = known[label].method != known[baseline].method
        lines = []
        for name, dims in [*((str(d), [d]) for d in comparison.dims), ("all", comparison.dims)]:
            part = comparison.only(dims=dims)
            ours, theirs = part.counts.targets
            total = part.counts.of_targets
            lines.append([name, share(ours, total), share(theirs, total), marked_ratio(part.ratio, math.inf)])
            if judged:
                goals.append(at_least_theirs(f"{baseline}, d = {name}: targets hit", (ours, theirs)))
        if judged and known[baseline].method == "cma":
            goals.append(at_most("cma: ratio of evaluations", comparison.ratio, RATIO_GOAL))
        parts += [
            f"### {label} : {baseline}",
            "Targets hit; geometric mean of evaluations on targets that both hit, with 95 per cent intervals.",
            markdown_table(["d", f"targets, {label}", f"targets, {baseline}", "ratio"], lines),
        ]
    parts += [goals_table(goals)] if goals else []
    return "\n\n".join(parts) + "\n", all(goal.met for goal in goals)
