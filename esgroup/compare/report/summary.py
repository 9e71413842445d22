"""From runs to the rows of the table: one row for each method on each problem in each dimension.

A case is a problem in one dimension. Where nothing is known about a problem, `measured` takes the best value that any
method has found as the reference for gaps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

from esgroup.compare.records import Cost, Ended, RunRecord
from esgroup.compare.report import statistics
from esgroup.compare.report.statistics import Ratio as Ratio  # part of a Row, so it is exported here as well
from esgroup.compare.report.statistics import Sides

RELATIVE_TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class Row(NamedTuple):
    """Results of a method on a problem. Costs count values and gradients; inf means never.

    `target` is the last target: a gap where the minimum is `known`, otherwise a value. `cpu` is the method's own time
    in seconds per evaluation, without the problem's functions; `cpu_whole` includes them.
    """

    problem: str
    dim: int
    method: str
    counts: Cost
    runs: int
    solved: int
    target: float
    known: bool
    median: float  # cost to the target, over all runs
    expected: float  # expected running time: cost of all runs per run that reached the target
    ratio: Ratio | None  # expected running time over the reference's; None where either never reached the target
    best: float  # median of the final gaps
    cpu: float
    cpu_whole: float
    failures: tuple[str, ...]  # each message of failed runs, with its number of runs
    relative: bool = False  # whether gaps are relative to the best value found
    scaled: str = ""  # how the function differs from the usual one by a factor, such as "divided by d"

    @property
    def solves(self) -> bool:
        """Whether more than half of the runs reached the last target, which is when the median exists."""
        return math.isfinite(self.median)


class Overall(NamedTuple):
    """Results of a method on all problems together.

    `ratio` is the geometric mean of the ratios of expected running times to the reference, over the `cells_both` cases
    that both solve, with an interval; 1 for the reference, None if there is no such case. A method solves a case if
    more than half of its runs reach the last target. `solved_pairs` of the `pairs` of a target and a run were reached.
    All methods have the same pairs: a missing run counts as one that reached no target.
    """

    method: str
    counts: tuple[Cost, ...]
    ratio: Ratio | None
    cells_both: int
    solved_pairs: int
    pairs: int


Block = dict[str, list[RunRecord]]  # the runs of each method, by seed, on one problem in one dimension


def summarize(runs: Sequence[RunRecord], reference: str) -> list[Row]:
    """Return the rows by problem, dimension and method, in the order of `blocks`, with ratios to the reference."""
    _check_reference(runs, reference)
    return [
        _row(group, None if method == reference else block.get(reference), block)
        for block in blocks(runs).values()
        for method, group in block.items()
    ]


def overall(runs: Sequence[RunRecord], reference: str) -> list[Overall]:
    """Summarize all problems together, for each method."""
    _check_reference(runs, reference)
    sorted_runs = blocks(runs)
    return [_overall(method, list(sorted_runs.values()), reference) for method in methods(runs)]


def methods(runs: Iterable[RunRecord]) -> list[str]:
    """Names of the methods in the order of their first appearance."""
    return list(dict.fromkeys(run.method for run in runs))


def blocks(runs: Sequence[RunRecord]) -> dict[tuple[str, int], Block]:
    """Group runs by problem, in order of first appearance, and ascending dimension; then by method and by seed.

    If a cell has several runs, the last one counts.
    """
    last = {run.cell: run for run in runs}.values()
    problems, names = list(dict.fromkeys(run.problem for run in runs)), methods(runs)
    sorted_runs: dict[tuple[str, int], Block] = {}
    for run in sorted(last, key=lambda run: (problems.index(run.problem), run.dim, names.index(run.method), run.seed)):
        sorted_runs.setdefault((run.problem, run.dim), {}).setdefault(run.method, []).append(run)
    for place, block in sorted_runs.items():
        different = {run.targets for run in _all(block) if run.targets}
        if len(different) > 1:
            lists = " and ".join(str(list(targets)) for targets in sorted(different))
            raise ValueError(f"targets must be the same in all runs of {place[0]} in dimension {place[1]}, got {lists}")
    return sorted_runs


def pairs(block: Block) -> int:
    """Number of pairs of a target and a seed that at least one method has run."""
    return len(targets(block)) * len({run.seed for run in _all(block)})


def targets(block: Block) -> tuple[float, ...]:
    """The targets that all runs share; a run that failed early may have none."""
    return next((run.targets for run in _all(block) if run.targets), ())


def known(block: Block) -> bool:
    """Whether gaps are distances to a minimum."""
    return not any(math.isnan(run.minimum) for run in _all(block) if run.targets)


def _all(block: Block) -> list[RunRecord]:
    return [run for runs in block.values() for run in runs]


# ---- rows -----------------------------------------------------------------------------------------------------------


def _row(runs: list[RunRecord], reference: list[RunRecord] | None, block: Block) -> Row:
    first, costs = runs[0], _costs(runs)
    timed = [run for run in runs if math.isfinite(run.cpu) and math.isfinite(run.cpu_fun)]
    return Row(
        problem=first.problem,
        dim=first.dim,
        method=first.method,
        # a run that did not start is recorded as counting values
        counts=next((run.cost for run in runs if run.cost is not Cost.VALUES), Cost.VALUES),
        runs=len(runs),
        solved=sum(run.solved for run in runs),
        target=targets(block)[-1] if targets(block) else math.nan,
        known=known(block),
        median=statistics.median(costs),
        expected=statistics.expected_running_time(costs, _used(runs)),
        ratio=_ratio(runs, reference),
        best=float(statistics.quantile([last_gap(run) for run in runs], 0.5)),
        cpu=_per_evaluation(timed, sum(run.cpu - run.cpu_fun for run in timed)),
        cpu_whole=_per_evaluation(timed, sum(run.cpu for run in timed)),
        failures=_failures(runs),
        relative=any(run.relative for run in _all(block)),
    )


def last_gap(run: RunRecord) -> float:
    """Final gap of a run, or final value where the minimum is not known; inf if there is none.

    The trajectory comes first: subtracting a minimum that was added to a gap would lose digits.
    """
    if run.trajectory:
        return min(point.gap for point in run.trajectory)
    gap = run.best if math.isnan(run.minimum) else run.best - run.minimum
    return math.inf if math.isnan(gap) else gap


def _ratio(runs: list[RunRecord], reference: list[RunRecord] | None) -> Ratio | None:
    """Ratio to the reference. Runs are ordered by seed: where seeds agree, run i of both had the same start."""
    if reference is None or not (any(run.solved for run in runs) and any(run.solved for run in reference)):
        return None
    return statistics.ratio(_sides(runs, reference))


def _sides(runs: list[RunRecord], reference: list[RunRecord]) -> Sides:
    paired = [run.seed for run in runs] == [run.seed for run in reference]
    return Sides(_costs(runs), _used(runs), _costs(reference), _used(reference), paired)


def _failures(runs: list[RunRecord]) -> tuple[str, ...]:
    messages = Counter(run.message or str(run.ended) for run in runs if run.failed)
    return tuple(f"{message} ({times} run{'s' * (times != 1)})" for message, times in messages.items())


def _per_evaluation(runs: list[RunRecord], seconds: float) -> float:
    used = sum(run.used for run in runs)
    return seconds / used if used else math.nan


def _costs(runs: list[RunRecord]) -> list[float]:
    return [run.hits[-1] if run.hits else math.inf for run in runs]


def _used(runs: list[RunRecord]) -> list[int]:
    """Cost of each run; that of a killed run is not known, so the largest of the others is charged."""
    most = max(run.used for run in runs)
    return [most if run.ended is Ended.KILLED else run.used for run in runs]


# ---- all together ---------------------------------------------------------------------------------------------------


def _overall(method: str, all_blocks: list[Block], reference: str) -> Overall:
    own = [run for block in all_blocks for run in block.get(method, [])]
    both = [
        _sides(block[method], block[reference])
        for block in all_blocks
        if _solves(block, method) and _solves(block, reference)
    ]
    return Overall(
        method=method,
        # everything that the method counts, which may depend on the problem
        counts=tuple(cost for cost in Cost if any(run.used and run.cost is cost for run in own)) or (Cost.VALUES,),
        ratio=Ratio(1.0, 1.0, 1.0) if method == reference else statistics.mean_ratio(both) if both else None,
        cells_both=len(both),
        solved_pairs=sum(math.isfinite(hit) for run in own for hit in run.hits),
        pairs=sum(pairs(block) for block in all_blocks),
    )


def _solves(block: Block, method: str) -> bool:
    return method in block and math.isfinite(statistics.median(_costs(block[method])))


# ---- checks ---------------------------------------------------------------------------------------------------------


def _check_reference(runs: Sequence[RunRecord], reference: str) -> None:
    if reference not in methods(runs):
        raise ValueError(f"reference must be one of the methods {', '.join(methods(runs))}, got {reference!r}")


# ---- relative gaps --------------------------------------------------------------------------------------------------


def measured(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Give runs without targets relative gaps, (f - best) / (first - best), and RELATIVE_TARGETS; keep the others.

    `best` is the lowest value of all runs on the same function, `first` the median of their first values. Gaps come
    from the stored improvements of a run, so costs may be too large by the distance of two of them, one per cent.
    """
    unknown: dict[Hashable, list[RunRecord]] = {}
    for run in runs:
        if not run.targets and run.trajectory:
            unknown.setdefault(_objective(run), []).append(run)
    scales = {function: _best_and_scale(group) for function, group in unknown.items()}
    return [_relative(run, *scales[_objective(run)]) if not run.targets and run.trajectory else run for run in runs]


def _objective(run: RunRecord) -> Hashable:
    """What identifies a function: MODULE:FUNCTION is the same for all seeds, a named problem may have instances."""
    return (run.problem, run.dim) if ":" in run.problem else (run.problem, run.dim, run.seed)


def _best_and_scale(runs: Sequence[RunRecord]) -> tuple[float, float]:
    best = min(point.gap for run in runs for point in run.trajectory)
    first = median(run.trajectory[0].gap for run in runs)
    return best, first - best if first > best else 1.0


def _relative(run: RunRecord, best: float, scale: float) -> RunRecord:
    trajectory = tuple(point._replace(gap=(point.gap - best) / scale) for point in run.trajectory)
    hits = tuple(next((float(p.cost) for p in trajectory if p.gap <= target), math.inf) for target in RELATIVE_TARGETS)
    return run._replace(minimum=best, targets=RELATIVE_TARGETS, hits=hits, trajectory=trajectory, relative=True)
