"""What bench_model_real.py says of its rows, in markdown.

A ratio is the geometric mean over the runs that both labels have, in which a run that does not reach the target counts
with the budget of its problem. Intervals are 95 per cent by bootstrap over seeds (see model_tables.py).
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from bbob_tables import interval, markdown_table, spans
from model_real_problems import MAKERS, real_problem
from model_real_runs import CHECKPOINTS, RealRow, evaluations_of
from model_tables import estimate, log_ratios, solved

Found = dict[str, dict[str, list[RealRow]]]


def by_problem(rows: Iterable[RealRow]) -> Found:
    """Rows by label and problem."""
    found: Found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.label][row.problem].append(row)
    return found


def report(rows: Sequence[RealRow], label: str, baseline: str) -> str:
    """Evaluations to the stated values, the values on the way, and what the methods take besides."""
    found = by_problem(rows)
    for name in (label, baseline):
        if name not in found:
            raise ValueError(f"the files must have runs of label {name!r}, got {', '.join(sorted(found)) or 'none'}")
    labels = sorted(found, key=lambda name: (name != label, name != baseline, name))
    problems = [name for name in MAKERS if name in found[label]]
    seeds = sorted({row.seed for row in rows})
    return "\n\n".join(
        [
            "## Evaluations to a stated value",
            f"Medians over seeds {spans(seeds)}, and how many runs get there within the budget, if not all. Ratios are "
            "geometric means over runs, in which a run that does not get there counts with the budget.",
            evaluations_table(found, labels, problems, baseline),
            "## Values on the way",
            "Medians of the least values, of `tuning` those that are judged.",
            values_table(found, labels, problems),
            "## Besides",
            besides_table(found, labels, problems),
        ]
    )


def evaluations_table(found: Found, labels: Sequence[str], problems: Sequence[str], baseline: str) -> str:
    """One line for each problem; the last has the ratio over all of them."""
    label, others = labels[0], labels[1:]
    ratios = {
        (other, name): log_ratios(found[label][name], found[other].get(name, []))  # type: ignore[arg-type]
        for other in others
        for name in problems
    }
    lines = []
    for name in problems:
        problem, budget = real_problem(name), evaluations_of(name, found[label][name][0].budget)
        lines.append(
            [
                name,
                str(problem.dim),
                f"{problem.target:g}",
                f"{budget:,}",
                *(solved(found[one].get(name, [])) for one in labels),  # type: ignore[arg-type]
                interval(estimate([ratios[baseline, name]])),
            ]
        )
    every = [interval(estimate([ratios[other, name] for name in problems])) for other in others]
    lines.append([f"{label} : this", "", "", "", "", *every, ""])
    return markdown_table(["problem", "d", "value", "budget", *labels, f"{label} : {baseline}"], lines)


def values_table(found: Found, labels: Sequence[str], problems: Sequence[str]) -> str:
    """One line for each problem and checkpoint."""
    lines = []
    for name in problems:
        for place, many in enumerate(CHECKPOINTS):
            medians = [_median(found[one].get(name, []), place) for one in labels]
            if medians[0] != "-":
                lines.append([name, str(many), *medians])
    return markdown_table(["problem", "evaluations", *labels], lines)


def _median(rows: Sequence[RealRow], place: int) -> str:
    if not rows or any(len(row.values) <= place for row in rows):
        return "-"
    return f"{statistics.median(row.values[place] for row in rows):.4g}"


def besides_table(found: Found, labels: Sequence[str], problems: Sequence[str]) -> str:
    """Milliseconds an evaluation, that of the function included, evaluations that have failed, and runs that broke."""
    lines = []
    for one in labels:
        rows = [row for name in problems for row in found[one].get(name, [])]
        times = []
        for name in problems:
            cell = found[one].get(name, [])
            times.append(f"{1000 * sum(row.cpu for row in cell) / sum(row.used for row in cell):.1f}" if cell else "-")
        broken = sum(row.ended.startswith("error") for row in rows)
        lines.append([one, *times, str(sum(row.failed for row in rows)), str(broken)])
    return markdown_table(["", *(f"{name}, ms" for name in problems), "failed evaluations", "broken runs"], lines)
