"""From runs to the rows of the table: one row for each method on each problem in each dimension."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from esgroup.compare import statistics
from esgroup.compare.records import Cost, Ended, Run
from esgroup.compare.statistics import Ratio as Ratio  # it is imported from here, too


class Row(NamedTuple):
    """How a method did on a problem. Costs count values and gradients; inf is never.

    `target` is the last of the targets, a gap where the minimum is `known`, else a value. `cpu` is the method's own
    time in seconds per evaluation, without the problem's functions, `cpu_whole` the time with them.
    """

    problem: str
    dim: int
    method: str
    counts: Cost
    runs: int
    solved: int
    target: float
    known: bool
    median: float  # cost to the target, of all runs
    expected: float  # running time: cost of all runs, per run that reached the target
    ratio: Ratio | None  # of expected running times, to the reference method; None where either never got there
    best: float  # median of the last gaps
    cpu: float
    cpu_whole: float
    failures: tuple[str, ...]  # messages of runs that went wrong, each once, with its number of runs
    relative: bool = False  # whether gaps are relative, and the minimum the best value that was found


class Overall(NamedTuple):
    """How a method did on all problems together.

    `ratio` is the geometric mean of the ratios of expected running times to the reference, over the `cells_both`
    pairs of problem and dimension that both have solved; 1 for the reference, None without such a pair.
    `solved_pairs` of the `pairs` of a target and a run were reached. All methods have the same pairs: a run that is
    missing counts as one that reached nothing.
    """

    method: str
    counts: tuple[Cost, ...]
    ratio: float | None
    cells_both: int
    solved_pairs: int
    pairs: int


Block = dict[str, list[Run]]  # the runs of each method, by seed, on one problem in one dimension


def summarise(runs: Sequence[Run], reference: str) -> list[Row]:
    """Rows by problem, dimension and method, in the order of `blocks`; ratios are to the reference."""
    _check_reference(runs, reference)
    return [
        _row(group, None if method == reference else block.get(reference), block)
        for block in blocks(runs).values()
        for method, group in block.items()
    ]


def overall(runs: Sequence[Run], reference: str) -> list[Overall]:
    """All problems together, for each method."""
    _check_reference(runs, reference)
    sorted_runs = blocks(runs)
    return [_overall(method, list(sorted_runs.values()), reference) for method in methods(runs)]


def methods(runs: Iterable[Run]) -> list[str]:
    """In the order of their first appearance."""
    return list(dict.fromkeys(run.method for run in runs))


def blocks(runs: Sequence[Run]) -> dict[tuple[str, int], Block]:
    """Runs by problem, in the order of first appearance, and dimension, ascending; then by method and by seed.

    Of several runs of the same cell the last one counts.
    """
    last = {run.cell: run for run in runs}.values()
    order = {problem: i for i, problem in enumerate(dict.fromkeys(run.problem for run in runs))}
    places = sorted({(run.problem, run.dim) for run in last}, key=lambda place: (order[place[0]], place[1]))
    sorted_runs: dict[tuple[str, int], Block] = {place: {} for place in places}
    names = {method: i for i, method in enumerate(methods(runs))}
    for run in sorted(last, key=lambda run: (names[run.method], run.seed)):
        sorted_runs[run.problem, run.dim].setdefault(run.method, []).append(run)
    for place, block in sorted_runs.items():
        _check_targets(place, block)
    return sorted_runs


def pairs(block: Block) -> int:
    """Pairs of a target and a seed that at least one method has run."""
    return len(targets(block)) * len({run.seed for run in _all(block)})


def targets(block: Block) -> tuple[float, ...]:
    """Those of all runs; one that went wrong early may have none."""
    return next((run.targets for run in _all(block) if run.targets), ())


def known(block: Block) -> bool:
    """Whether gaps are above a minimum."""
    return not any(math.isnan(run.minimum) for run in _all(block) if run.targets)


def _all(block: Block) -> list[Run]:
    return [run for runs in block.values() for run in runs]


# ---- rows -----------------------------------------------------------------------------------------------------------


def _row(runs: list[Run], reference: list[Run] | None, block: Block) -> Row:
    first, costs = runs[0], _costs(runs)
    timed = [run for run in runs if math.isfinite(run.cpu) and math.isfinite(run.cpu_fun)]
    return Row(
        problem=first.problem,
        dim=first.dim,
        method=first.method,
        counts=_counts(runs),
        runs=len(runs),
        solved=sum(run.solved for run in runs),
        target=targets(block)[-1] if targets(block) else math.nan,
        known=known(block),
        median=statistics.median(costs),
        expected=_expected(runs),
        ratio=_ratio(runs, reference),
        best=float(statistics.quantile([last_gap(run) for run in runs], 0.5)),
        cpu=_per_evaluation(timed, sum(run.cpu - run.cpu_fun for run in timed)),
        cpu_whole=_per_evaluation(timed, sum(run.cpu for run in timed)),
        failures=_failures(runs),
        relative=any(run.relative for run in _all(block)),
    )


def last_gap(run: Run) -> float:
    """What a run has come to in the end: the best gap, or value where the minimum is not known; inf if there is none.

    The trajectory is asked first: a minimum that has been added to a gap cannot be subtracted without loss.
    """
    if run.trajectory:
        return min(point.gap for point in run.trajectory)
    gap = run.best if math.isnan(run.minimum) else run.best - run.minimum
    return math.inf if math.isnan(gap) else gap


def _ratio(runs: list[Run], reference: list[Run] | None) -> Ratio | None:
    """Runs are in the order of their seeds: where these agree, run i of both had the same start and instance."""
    if reference is None or not (any(run.solved for run in runs) and any(run.solved for run in reference)):
        return None
    paired = [run.seed for run in runs] == [run.seed for run in reference]
    return statistics.ratio(_costs(runs), _used(runs), _costs(reference), _used(reference), paired=paired)


def _failures(runs: list[Run]) -> tuple[str, ...]:
    messages = Counter(run.message or str(run.ended) for run in runs if run.failed)
    return tuple(f"{message} ({times} run{'s' * (times != 1)})" for message, times in messages.items())


def _per_evaluation(runs: list[Run], seconds: float) -> float:
    used = sum(run.used for run in runs)
    return seconds / used if used else math.nan


def _costs(runs: list[Run]) -> list[float]:
    return [run.hits[-1] if run.hits else math.inf for run in runs]


def _used(runs: list[Run]) -> list[int]:
    """What runs have spent; a killed one, of which that is not known, is charged with the most."""
    most = max(run.used for run in runs)
    return [most if run.ended is Ended.KILLED else run.used for run in runs]


def _expected(runs: list[Run]) -> float:
    return statistics.expected_running_time(_costs(runs), _used(runs))


def _counts(runs: list[Run]) -> Cost:
    """What a method counts in a case; a run that has not begun says values."""
    return next((run.cost for run in runs if run.cost is not Cost.VALUES), Cost.VALUES)


def _all_counts(runs: list[Run]) -> tuple[Cost, ...]:
    """What a method counts, which may depend on the problem."""
    there = {run.cost for run in runs if run.used}
    return tuple(cost for cost in Cost if cost in there) or (Cost.VALUES,)


# ---- all together ---------------------------------------------------------------------------------------------------


def _overall(method: str, all_blocks: list[Block], reference: str) -> Overall:
    own = [run for block in all_blocks for run in block.get(method, [])]
    logs = [
        math.log(_expected(block[method]) / _expected(block[reference]))
        for block in all_blocks
        if _solves(block, method) and _solves(block, reference)
    ]
    return Overall(
        method=method,
        counts=_all_counts(own),
        ratio=1.0 if method == reference else math.exp(sum(logs) / len(logs)) if logs else None,
        cells_both=len(logs),
        solved_pairs=sum(math.isfinite(hit) for run in own for hit in run.hits),
        pairs=sum(pairs(block) for block in all_blocks),
    )


def _solves(block: Block, method: str) -> bool:
    return any(run.solved for run in block.get(method, []))


# ---- checks ---------------------------------------------------------------------------------------------------------


def _check_reference(runs: Sequence[Run], reference: str) -> None:
    if reference not in methods(runs):
        raise ValueError(f"reference must be one of the methods {', '.join(methods(runs))}, got {reference!r}")


def _check_targets(place: tuple[str, int], block: Block) -> None:
    different = {run.targets for run in _all(block) if run.targets}
    if len(different) > 1:
        lists = " and ".join(str(list(targets)) for targets in sorted(different))
        raise ValueError(f"targets must be the same in all runs of {place[0]} in dimension {place[1]}, got {lists}")
