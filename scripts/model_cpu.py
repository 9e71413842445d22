"""CPU time of a search with a model per evaluation, beside the plain search, cma and lq-CMA-ES, in markdown.

The time is that of the search itself, from its first evaluation to its last, without the function's: tell, whether to
stop, ask. In a round every method has one run of each case, of a fixed number of evaluations, with the round as its
seed; figures are medians over rounds, of ratios too, so that load on the machine meets all alike. What is compiled or
loaded at the first use is so before the first round. A search that ends by itself or is cut has fewer evaluations, and
the table says how many. lq-CMA-ES has no diagonal structure, and is left out where the others have one.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from bbob_rows import Run
from bbob_runs import Recorder, bbob_problem, how_it_ended, start
from bbob_tables import markdown_table
from bench_overhead import clock_cost, number
from model_runs import METHODS, ModelSetup, ModelTask

Function = Callable[[list[list[float]]], Sequence[float]]  # of a list of points
CONTENDERS = {  # the method and its options for full matrices and, if it has any, for diagonal ones
    "plain": ("esgroup", {"full": "structure=full", "diagonal": "structure=diagonal"}),
    "model": ("esgroup", {"full": "model=quadratic;structure=full", "diagonal": "model=quadratic;structure=diagonal"}),
    "cma": ("cma", {"full": "", "diagonal": "CMA_diagonal=True"}),
    "lq": ("lq", {"full": ""}),
}


class Case(NamedTuple):
    """A function, and how long it is searched."""

    name: str
    function: int  # of bbob; 0 is `quartic_ellipsoid`
    dim: int
    structure: str
    budget: int  # evaluations per coordinate


CASES = (
    *(Case("Rosenbrock, f8", 8, dim, "full", 100) for dim in (5, 10, 20, 40)),
    Case("attractive sector, f6, where the model is mostly off", 6, 20, "full", 100),
    *(Case("ellipsoid with quartic terms", 0, dim, "diagonal", budget) for dim, budget in ((100, 20), (1000, 3))),
)


def quartic_ellipsoid(points: Sequence[Sequence[float]]) -> list[float]:
    """sum_i 10^(4 (i-1)/(d-1)) y_i^2 + y_i^4 with y = x - 1, of each point."""
    squares = (np.asarray(points) - 1.0) ** 2
    weights = 10.0 ** np.linspace(0.0, 4.0, squares.shape[1])
    return list((squares * weights + squares**2).sum(axis=1).tolist())


class TimedRecorder(Recorder):
    """An objective without an end but its budget, that knows how much CPU time was spent outside of it."""

    def __init__(self, function: Function, max_evals: int, seconds: float) -> None:
        super().__init__(function, 0.0, max_evals, (-math.inf,), seconds)
        self.left = math.nan  # when the function was left
        self.outside = 0.0  # seconds since it was left first
        self.told = 0  # evaluations that these seconds are about

    def generation(self, points: Any) -> list[float]:
        if self.count:
            self.outside += time.process_time() - self.left
            self.told = self.count
        try:
            return super().generation(points)
        finally:
            self.left = time.process_time()


class Spent(NamedTuple):
    """What a run has cost."""

    millis: float  # of an evaluation, outside of the function
    used: int
    asks: int


def spent(contender: str, case: Case, seed: int, seconds: float = 0.0) -> Spent | None:
    """Run a contender on a case, None if it has not the structure."""
    method, options = CONTENDERS[contender]
    if case.structure not in options:
        return None
    run = Run(case.function, case.dim, 1, None, seed)
    task = ModelTask(contender, ModelSetup(method, options[case.structure], case.budget, "", 0.0, seconds), run)
    function = bbob_problem(run) if case.function else quartic_ellipsoid
    fun = TimedRecorder(function, task.max_evals, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how_it_ended(lambda: METHODS[method](task, fun, start(run)), fun)
    own = fun.outside - clock_cost(time.process_time) * (fun.asks - 1)
    return Spent(1000 * own / max(1, fun.told), fun.count, fun.asks)


def measure(
    cases: Sequence[Case], contenders: Sequence[str], rounds: int, seconds: float
) -> dict[tuple[Case, str], list[Spent]]:
    """Runs of every contender on every case, by round."""
    for small in dict.fromkeys(case._replace(dim=5, budget=100) for case in cases):
        for contender in contenders:
            spent(contender, small, 0)
    found: dict[tuple[Case, str], list[Spent]] = {}
    for seed in range(1, rounds + 1):
        for case in cases:
            for contender in contenders:
                if (one := spent(contender, case, seed, seconds)) is not None:
                    found.setdefault((case, contender), []).append(one)
        print(f"round {seed} of {rounds}", file=sys.stderr, flush=True)
    return found


def table(found: dict[tuple[Case, str], list[Spent]], label: str = "model") -> str:
    """Milliseconds of all contenders by case, and their ratios to one of them."""
    cases, contenders = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    others = [name for name in contenders if name != label] if label in contenders else []
    lines = []
    for case in cases:
        mine = found.get((case, label), [])
        asks = f"{sum(one.used for one in mine) / sum(one.asks for one in mine):.1f}" if mine else "-"
        lines.append(
            [
                f"{case.name}, {case.structure}",
                str(case.dim),
                f"{case.budget * case.dim:,}",
                asks,
                *(_millis(found.get((case, name), []), case.budget * case.dim) for name in contenders),
                *(_ratio(mine, found.get((case, name), [])) for name in others),
            ]
        )
    head = ["function, structure", "d", "evaluations", f"points an ask of {label}"]
    head += [*(f"{name}, ms" for name in contenders), *(f"{label} : {name}" for name in others)]
    packages = ["esgroup", "numpy", *(["cma"] if {"cma", "lq"} & {*contenders} else [])]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    rounds = max(len(runs) for runs in found.values())
    return "\n\n".join(
        [
            "## CPU time of the search itself",
            f"Milliseconds an evaluation, without the function's; medians over rounds ({rounds}; {versions}). In "
            "brackets: the evaluations of runs that have ended earlier.",
            markdown_table(head, lines),
        ]
    )


def _millis(runs: Sequence[Spent], evaluations: int) -> str:
    """The median, and that of the evaluations if some run had fewer than it should."""
    if not runs:
        return "-"
    used = [one.used for one in runs]
    text = f"{statistics.median(one.millis for one in runs):.3g}"
    return text if min(used) == evaluations else f"{text} ({statistics.median(used):,.0f})"


def _ratio(ours: Sequence[Spent], theirs: Sequence[Spent]) -> str:
    """The median over rounds."""
    return number(statistics.median(a.millis / b.millis for a, b in zip(ours, theirs, strict=True))) if theirs else "-"
