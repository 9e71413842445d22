"""A measure where nothing is known of a problem: the best value that any method has found."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import median

from esgroup.compare.records import Run

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def measured(runs: Sequence[Run]) -> list[Run]:
    """The same runs; those without targets get relative gaps, (f - best) / (first - best), and TARGETS.

    `best` is the lowest value of all runs on the same function, `first` the median of their first values. Gaps are
    taken from the points that are kept of a run, so that costs may be too large by the distance of two, one per cent.
    """
    unknown: dict[Hashable, list[Run]] = {}
    for run in runs:
        if not run.targets and run.trajectory:
            unknown.setdefault(_function(run), []).append(run)
    scales = {function: _scale(group) for function, group in unknown.items()}
    return [_relative(run, *scales[_function(run)]) if not run.targets and run.trajectory else run for run in runs]


def _function(run: Run) -> Hashable:
    """A function from a module is the same for all seeds; a problem with a name may have an instance for each."""
    return (run.problem, run.dim) if ":" in run.problem else (run.problem, run.dim, run.seed)


def _scale(runs: Sequence[Run]) -> tuple[float, float]:
    best = min(point.gap for run in runs for point in run.trajectory)
    first = median(run.trajectory[0].gap for run in runs)
    return best, first - best if first > best else 1.0


def _relative(run: Run, best: float, scale: float) -> Run:
    trajectory = tuple(point._replace(gap=(point.gap - best) / scale) for point in run.trajectory)
    hits = tuple(next((float(p.cost) for p in trajectory if p.gap <= target), math.inf) for target in TARGETS)
    return run._replace(minimum=best, targets=TARGETS, hits=hits, trajectory=trajectory, relative=True)
