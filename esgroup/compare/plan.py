"""The runs of a comparison, checked before the first one starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from esgroup import checks
from esgroup.compare.charts import CHARTS, chart
from esgroup.compare.execution import Settings, Starts
from esgroup.compare.methods import Chosen, check_installed, choose
from esgroup.compare.records import Cell
from esgroup.problem_registry import Task, find


@dataclass(frozen=True)
class ComparisonPlan:
    """Every method on every problem, given as (name, dimension), with every seed."""

    problems: tuple[tuple[str, int], ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    reference: str
    settings: Settings

    @property
    def cells(self) -> list[Cell]:
        """The runs, seed after seed: an interrupted comparison has treated all methods alike."""
        return [
            Cell(problem, dim, method, seed)
            for seed in self.seeds
            for problem, dim in self.problems
            for method in self.methods
        ]

    @property
    def fields(self) -> dict[str, Any]:
        """The contents of the plan by name, settings included, for storing and for comparing with an earlier plan."""
        every = {**vars(self), **vars(self.settings)}
        return {name: value for name, value in every.items() if name != "settings"}


def plan(
    problems: Sequence[str],
    dims: Sequence[int] = (),
    methods: Sequence[str] = ("esgroup", "cma", "bfgs"),
    seeds: Sequence[int] = range(5),
    *,
    reference: str | None = None,
    targets: Sequence[float] | None = None,
    max_evals: int | None = None,
    max_time: float = 600.0,
    starts: Starts = "random",
) -> ComparisonPlan:
    """Return the plan of a comparison, if it can be carried out.

    Parameters
    ----------
    problems
        Names of problems, or MODULE:FUNCTION.
    dims
        Dimensions; without them each problem has its default dimension.
    methods
        Spellings of methods, as `methods.choose` reads them.
    seeds
        Seeds of the instance, the start and the method.
    reference
        The method to compare the others with: cma by default, or the first method if cma is not among them.
    targets
        Gaps to reach, or values where the minimum of a problem is not known; by default those of each problem.
    max_evals, max_time
        Maximum evaluations (by default 3000 per variable) and seconds of a run.
    starts
        "random" or "default".

    Raises
    ------
    ValueError, TypeError, ImportError
        If an argument is wrong, a method does not fit a problem, or a package is missing.
    """
    gaps = None
    if targets is not None:
        gaps = tuple(sorted({checks.real_number("a target", target) for target in targets}, reverse=True))
    settings = Settings(gaps, max_evals, checks.real_number("max_time", max_time, positive=True), starts)
    methods = _each_once("methods", methods)
    chosen = [choose(method) for method in methods]
    check_installed([one.method for one in chosen])
    if reference is None:
        names = [one.method.name for one in chosen]
        reference = methods[names.index("cma") if "cma" in names else 0]
    if reference not in methods:
        raise ValueError(f"reference must be one of the methods {', '.join(methods)}, got {reference!r}")
    whole = tuple(checks.whole_number("a seed", seed) for seed in _each_once("seeds", seeds))
    sizes: Sequence[int | None] = dims or [None]
    tasks = [_task(name, dim, max(whole)) for name in _each_once("problems", problems) for dim in sizes]
    for one in chosen:
        _check_fits(one, tasks)
    if settings.targets and settings.targets[-1] < 0 and any(task.minimum is not None for task in tasks):
        raise ValueError(f"targets must be distances to the minimum, got {settings.targets[-1]:g}")
    pairs = tuple(dict.fromkeys((task.name, len(task.x0)) for task in tasks))
    return ComparisonPlan(pairs, methods, whole, reference, settings)


def _task(name: str, dim: int | None, seed: int) -> Task:
    """Make the problem with the largest seed: some have a limited number of instances."""
    if ":" in name and dim is None:
        raise ValueError(f"{name} needs its number of variables: pass --dims")
    try:
        return find(name, dim, seed=seed)
    except (ValueError, TypeError, ImportError):
        raise
    except Exception as error:  # raised by a problem of another package
        raise ValueError(f"{name} cannot be made: {type(error).__name__}: {error}") from error


def _each_once(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if not values:
        raise ValueError(f"{name} must not be empty")
    return tuple(dict.fromkeys(values))


def _check_fits(chosen: Chosen, tasks: Sequence[Task]) -> None:
    """Refuse a chart that no problem has, which is probably misspelled, and a method that does not fit a problem."""
    for task in tasks:
        chosen.method.check_fits(task)
    if chosen.chart is not None and not any(chosen.chart in CHARTS[task.space] for task in tasks):
        chart(chosen.chart, tasks[0].space, tasks[0].x0.shape)
    if chosen.structure is None:
        return
    for task in tasks:
        coordinates = chart(None, task.space, task.x0.shape).vector(task.x0)
        for size in task.x0.shape if chosen.method.spaces else coordinates.shape:  # each side of a matrix, or all
            chosen.method.check_structure(chosen.structure, size)
