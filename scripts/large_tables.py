"""What bench_large.py says of its records, in markdown.

The ratio of a function is the geometric mean, over the instances that both methods have run, of evaluations to the last
target, where a run that does not get there counts with its budget; that of several functions is the geometric mean of
theirs. If neither method gets there in any run the ratio is 1, and is marked. Intervals are 95 per cent by bootstrap:
the instances of every function are drawn anew; from a single instance there is none. The best peer of a function is the
one that a method looks worst against.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from bbob_statistics import DRAWS, Estimate
from bbob_tables import interval, markdown_table, marked_ratio, spans
from large_real import RealRecord
from large_runs import METHODS, NOISY, OUR_METHODS, SUITE, Record, targets

FORMER_LIMIT, PEER_LIMIT = 1.1, 1.3  # of the ratio on one function
NEITHER = "†"  # marks a ratio of two methods that never got there


# ---- ratios ---------------------------------------------------------------------------------------------------------


class Ratio(NamedTuple):
    """log(ours / theirs) of the evaluations on one function, one for each instance that both have run."""

    logs: tuple[float, ...]
    neither: bool  # whether no run of either got to the last target

    @property
    def value(self) -> float:
        """The geometric mean."""
        return math.exp(statistics.fmean(self.logs))


def solved(records: Iterable[Record]) -> int:
    """Return how many runs got to the last target."""
    return sum(record.evals is not None for record in records)


def ratio_of(ours: Sequence[Record], theirs: Sequence[Record]) -> Ratio | None:
    """Return the ratio of two methods on one function, None if they have no instance in common."""
    other = {record.task.instance: record for record in theirs}
    pairs = [(record, other[record.task.instance]) for record in ours if record.task.instance in other]
    if not pairs:
        return None
    if not any(solved(pair) for pair in pairs):
        return Ratio((0.0,) * len(pairs), neither=True)
    return Ratio(tuple(math.log(a.cost / b.cost) for a, b in pairs), neither=False)


def estimate(ratios: Sequence[Ratio]) -> Estimate:
    """Return the geometric mean over functions, with an interval if every function has several instances."""
    if not ratios:
        return Estimate(math.nan)
    value = math.exp(statistics.fmean(statistics.fmean(ratio.logs) for ratio in ratios))
    if any(len(ratio.logs) == 1 for ratio in ratios):
        return Estimate(value)
    rng, draws = np.random.default_rng(1), np.zeros(DRAWS)
    for ratio in ratios:
        logs = np.array(ratio.logs)
        draws += logs[rng.integers(len(logs), size=(DRAWS, len(logs)))].mean(axis=1) / len(ratios)
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    return Estimate(value, float(low), float(high))


ByMethod = Mapping[str, Sequence[Record]]  # records of one function


def best_peer(found: ByMethod, label: str) -> tuple[str, Ratio] | None:
    """Return the peer that a method looks worst against, and the ratio; of equal ones, one that solves something."""
    ratios = {
        name: ratio
        for name, records in found.items()
        if name not in OUR_METHODS and (ratio := ratio_of(found.get(label, []), records)) is not None
    }
    if not ratios:
        return None
    best = max(ratios, key=lambda name: (ratios[name].value, not ratios[name].neither))
    return best, ratios[best]


# ---- tables of evaluations ------------------------------------------------------------------------------------------


class Group(NamedTuple):
    """Runs that belong in one table."""

    kind: str
    dim: int
    target: float
    relative: bool
    popsize: int | None

    @property
    def title(self) -> str:
        name = "bbob-largescale" if self.kind == SUITE else "Own problems"
        above = f"{self.target:g} of the first value" if self.relative else f"{self.target:g} above the optimum"
        popsize = "" if self.popsize is None else f", popsize {self.popsize}"
        return f"{name}, d = {self.dim:,}, to {above}{popsize}"


def group_of(record: Record) -> Group:
    """Return the table that a record belongs in."""
    task = record.task
    return Group(task.kind, task.dim, task.target, task.relative, task.popsize)


def grouped(records: Iterable[Record]) -> dict[Group, dict[str, dict[str, list[Record]]]]:
    """Return records by table, problem and method; of several records of one run the last counts."""
    latest = {record.task.run: record for record in records}
    found: dict[Group, dict[str, dict[str, list[Record]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for record in latest.values():
        found[group_of(record)][record.task.problem][record.task.method].append(record)
    return dict(sorted(found.items(), key=lambda item: (item[0].kind != SUITE, *item[0][1:4], item[0].popsize or 0)))


def in_order(problems: Iterable[str]) -> list[str]:
    """Return functions by their number, then names as they come."""
    return sorted(problems, key=lambda name: int(name[1:]) if name[1:].isdecimal() else math.inf)


def methods_in_order(problems: Mapping[str, ByMethod], label: str) -> list[str]:
    """Return the method that is judged, then the others as the list of methods has them."""
    present = {name for found in problems.values() for name in found}
    return sorted(present, key=lambda name: (name != label, list(METHODS).index(name)))


def evaluations(records: Sequence[Record]) -> str:
    """Return the median of the evaluations, how many runs got there, and the mean number of targets; - if none ran."""
    if not records:
        return "-"
    middle = statistics.median(record.cost for record in records)
    reached = statistics.fmean(len(record.hits) for record in records)
    return f"{middle:,.0f} ({solved(records)}/{len(records)}), {reached:.3g}"


def marked(ratio: Ratio | None, limit: float) -> str:
    """Return a ratio with its interval; 1 with a mark if neither got there."""
    if ratio is None:
        return "-"
    return f"1 {NEITHER}" if ratio.neither else marked_ratio(estimate([ratio]), limit)


class Ratios(NamedTuple):
    """The ratios of a table, by problem."""

    to_former: dict[str, Ratio]
    to_peer: dict[str, Ratio]
    peers: dict[str, str]  # names of the best ones, - if neither got there


def table_ratios(problems: Mapping[str, ByMethod], label: str, former: str) -> Ratios:
    """Return the ratios of a method to the former one, and to the best peer."""
    found = Ratios({}, {}, {})
    for name, by_method in problems.items():
        if (ratio := ratio_of(by_method.get(label, []), by_method.get(former, []))) is not None and label != former:
            found.to_former[name] = ratio
        if (best := best_peer(by_method, label)) is not None:
            found.peers[name], found.to_peer[name] = "-" if best[1].neither else best[0], best[1]
    return found


def means(ratios: Mapping[str, Ratio], marks: bool) -> str:
    """Return the geometric mean over functions, with those that are marked or without; how many there are."""
    chosen = [ratio for ratio in ratios.values() if marks or not ratio.neither]
    return f"{interval(estimate(chosen))} ({len(chosen)})" if chosen else "-"


def above(ratios: Mapping[str, Ratio], limit: float, what: str) -> str:
    """Return a sentence that says which functions are above a limit."""
    names = [
        f"{name} {marked_ratio(found, limit)}"
        for name in in_order(ratios)
        if (found := estimate([ratios[name]])).value > limit
    ]
    return f"Above {limit:g} against {what}: {', '.join(names) or 'none'} (of {len(ratios)})."


def evaluations_table(problems: Mapping[str, ByMethod], label: str, former: str) -> str:
    """Return the table of one group, its means and what is above the limits."""
    methods, ratios = methods_in_order(problems, label), table_ratios(problems, label, former)
    head = ["function", *methods, f"{label} : best peer", "best peer", f"{label} : {former}"]
    lines = [
        [
            name,
            *(evaluations(problems[name].get(method, [])) for method in methods),
            marked(ratios.to_peer.get(name), PEER_LIMIT),
            ratios.peers.get(name, "-"),
            marked(ratios.to_former.get(name), FORMER_LIMIT),
        ]
        for name in in_order(problems)
    ]
    for title, marks in (("geometric mean", True), (f"without those marked {NEITHER}", False)):
        last = [means(ratios.to_peer, marks), "", means(ratios.to_former, marks)]
        lines.append([title, *(solved_share(problems, method) if marks else "" for method in methods), *last])
    parts = [
        markdown_table(head, lines),
        above(ratios.to_former, FORMER_LIMIT, former),
        above(ratios.to_peer, PEER_LIMIT, "the best peer"),
        *runs_that_lack(problems, methods),
        *cut_runs(problems),
        budgets(problems),
    ]
    return "\n\n".join(parts)


def solved_share(problems: Mapping[str, ByMethod], method: str) -> str:
    """Return how many of all runs of a method got to the last target."""
    runs = [record for found in problems.values() for record in found.get(method, [])]
    return f"{solved(runs)} of {len(runs)}"


def runs_that_lack(problems: Mapping[str, ByMethod], methods: Sequence[str]) -> list[str]:
    """Return a sentence that says which runs some methods do not have that others have, none if all have all."""
    texts = []
    for method in methods:
        lacking = []
        for name in in_order(problems):
            wanted = {record.task.instance for found in problems[name].values() for record in found}
            there = {record.task.instance for record in problems[name].get(method, [])}
            if wanted - there:
                lacking.append(name if not there else f"{name} ({spans(sorted(wanted - there))})")
        if lacking:
            texts.append(f"{method} on {', '.join(lacking)}")
    return [f"Not run, and left out of what is compared: {'; '.join(texts)}."] if texts else []


def cut_runs(problems: Mapping[str, ByMethod]) -> list[str]:
    """Return a sentence that says which runs were cut by the clock, none if there are none."""
    texts = []
    for name in in_order(problems):
        for method, records in problems[name].items():
            if cut := sum(record.cut for record in records):
                texts.append(f"{method} on {name} ({cut} of {len(records)})")
    return [f"Cut by the clock, and counted as unsolved with their budget: {', '.join(texts)}."] if texts else []


def budgets(problems: Mapping[str, ByMethod]) -> str:
    """Return a sentence with the evaluations that runs were given, and the packages."""
    runs = [record for found in problems.values() for records in found.values() for record in records]
    named = defaultdict(list)
    for name in in_order(problems):
        given = sorted({record.task.budget for found in problems[name].values() for record in found})
        named[" or ".join(f"{budget:,}" for budget in given)].append(name)
    most = max(named, key=lambda budget: len(named[budget]))
    others = "; ".join(f"{', '.join(names)}: {budget}" for budget, names in named.items() if budget != most)
    instances = spans(sorted({record.task.instance for record in runs}))
    which = "instances" if runs[0].task.kind == SUITE else "seeds"
    packages = ", ".join(sorted({record.package for record in runs}))
    return f"Budgets: {most} evaluations{f' ({others})' if others else ''}. {which} {instances}. {packages}."


def evaluations_report(records: Sequence[Record], label: str, former: str) -> list[str]:
    """Return the tables of all runs without noise."""
    groups = grouped(record for record in records if not record.task.problem.startswith(NOISY))
    parts = []
    for group, problems in groups.items():
        number = len(targets(group.target))
        about = (
            f"Median evaluations (runs that got there / runs), where the others count with their budget; then the mean "
            f"number of the {number} targets that were reached. {NEITHER}: neither got there in any run. Bold: the "
            f"interval is above {PEER_LIMIT:g} against a peer, {FORMER_LIMIT:g} against {former}; ?: the value is."
        )
        parts += [f"## {group.title}", about, evaluations_table(problems, label, former)]
    return parts


# ---- noise ----------------------------------------------------------------------------------------------------------


def noise_report(records: Sequence[Record], label: str) -> list[str]:
    """Return tables of the exact value of the recommended point, a median over seeds."""
    groups = grouped(record for record in records if record.task.problem.startswith(NOISY))
    parts = []
    for group, problems in groups.items():
        methods = methods_in_order(problems, label)
        lines = []
        for name in problems:
            evals = sorted({many for found in problems[name].values() for run in found for many, _ in run.course})
            values = {method: median_course(problems[name].get(method, [])) for method in methods}
            for many in evals:
                lines.append([f"{name}, {many:,}", *(_value(values[method].get(many)) for method in methods)])
        parts += [
            f"## With noise, d = {group.dim:,}{'' if group.popsize is None else f', popsize {group.popsize}'}",
            "The value without noise of the mean of the search after so many evaluations; medians over seeds.",
            markdown_table(["problem, evaluations", *methods], lines),
        ]
    return parts


def median_course(records: Sequence[Record]) -> dict[int, float]:
    """Return the median value at each checkpoint that all runs have."""
    values = defaultdict(list)
    for record in records:
        for many, value in record.course:
            values[many].append(value)
    return {many: statistics.median(found) for many, found in values.items() if len(found) == len(records)}


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


# ---- real problems --------------------------------------------------------------------------------------------------


def real_report(records: Sequence[RealRecord]) -> list[str]:
    """Return a table for each real problem: medians of the objective, and of the accuracy where there is one."""
    latest = {record.task.run: record for record in records}
    problems: dict[str, dict[str, list[RealRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in latest.values():
        problems[record.task.problem][record.task.method].append(record)
    parts = []
    for name, by_method in problems.items():
        evals = sorted({entry.evals for runs in by_method.values() for run in runs for entry in run.course})
        lines = []
        for method, runs in by_method.items():
            lines.append([method, str(len(runs)), *(_entry(runs, many) for many in evals)])
        rates = [
            f"{method} {rate:g}"
            for method, runs in by_method.items()
            for rate in sorted({run.task.rate for run in runs if run.task.rate is not None})
        ]
        parts += [
            f"## {name}",
            "Median objective after so many evaluations, of the better one of the best point and the mean of the "
            "search (and the test accuracy there).",
            markdown_table(["method", "runs", *(f"{many:,}" for many in evals)], lines),
            *([f"Rates, chosen on other seeds: {', '.join(rates)}."] if rates else []),
        ]
    return parts


def _entry(runs: Sequence[RealRecord], many: int) -> str:
    """Return the median at a checkpoint that all runs have, - if some do not."""
    entries = [entry for run in runs for entry in run.course if entry.evals == many]
    if len(entries) < len(runs):
        return "-"
    text = f"{statistics.median(entry.value for entry in entries):.4g}"
    shares = [entry.accuracy for entry in entries if entry.accuracy is not None]
    return f"{text} ({100 * statistics.median(shares):.1f} %)" if shares else text


# ---- time -----------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Time of ask and tell, of one contender in one dimension."""

    name: str
    dim: int
    micros: float  # of CPU time for each evaluation
    limit: float  # microseconds of the linear limit for each evaluation, measured before and after
    peak: float  # MB of the process at its largest
    grown: float  # MB by which the process has grown at its largest

    @property
    def ratio(self) -> float:
        """Time to the linear limit."""
        return self.micros / self.limit


def growth_exponent(dims: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of log time over log dimension by least squares, NaN with fewer than two dimensions."""
    if len(set(dims)) < 2:
        return math.nan
    return float(np.polyfit(np.log(dims), np.log(times), 1)[0])


def _slope(dims: Sequence[int], times: Sequence[float]) -> str:
    slope = growth_exponent(dims, times)
    return "-" if math.isnan(slope) else f"{slope:z.2f}"  # z: no minus before zero


def cost_report(costs: Sequence[Cost]) -> list[str]:
    """Return tables of times, ratios to the limit and memory; of several measurements of one case the last counts."""
    latest = {(cost.name, cost.dim): cost for cost in costs}
    if not latest:
        return []
    dims, names = sorted({dim for _, dim in latest}), list(dict.fromkeys(name for name, _ in latest))
    heads = [f"d = {dim:,}" for dim in dims]
    micros, ratios, memory = [], [], []
    for name in names:
        found = [latest.get((name, dim)) for dim in dims]
        there = [cost for cost in found if cost is not None]
        slope = _slope([cost.dim for cost in there], [cost.micros for cost in there])
        micros.append([name, *("-" if cost is None else f"{cost.micros:,.3g}" for cost in found), slope])
        ratios.append([name, *("-" if cost is None else f"{cost.ratio:.2f}" for cost in found)])
        memory.append([name, *("-" if cost is None else f"{cost.peak:,.0f} ({cost.grown:,.0f})" for cost in found)])
    limits = [statistics.median(cost.limit for cost in latest.values() if cost.dim == dim) for dim in dims]
    micros.append(["linear limit", *(f"{limit:,.3g}" for limit in limits), _slope(dims, limits)])
    return [
        "## Time of ask and tell",
        "CPU microseconds for each evaluation; the exponent is the slope of logarithms by least squares.",
        markdown_table(["structure or peer", *heads, "exponent"], micros),
        "Ratio to the linear limit: `standard_normal(d)` and one axpy for each sample.",
        markdown_table(["structure or peer", *heads], ratios),
        "Memory of the process at its largest in MB (and by how much it has grown since before the search).",
        markdown_table(["structure or peer", *heads], memory),
    ]
