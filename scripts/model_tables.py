"""What bench_model.py says of its rows, in markdown.

The ratio of a cell, one function in one dimension, is the geometric mean over the runs that both labels have; that of
several cells is the geometric mean of theirs. Intervals are 95 per cent by bootstrap over instances (see
bbob_statistics.py), which in a single instance there is none.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from bbob_statistics import DRAWS, Estimate
from bbob_tables import interval, markdown_table, spans
from model_runs import CHECKPOINTS, TARGET, ModelRow

Report = Callable[[Sequence[ModelRow]], str]
Cell = tuple[int, int]  # dimension and function
ByCell = Mapping[str, Mapping[Cell, Sequence[ModelRow]]]  # rows by label and cell
EASY = (1, 2)  # the sphere and the separable ellipsoid: means are given with and without them


def by_cell(rows: Iterable[ModelRow]) -> dict[str, dict[Cell, list[ModelRow]]]:
    """Rows by label and cell."""
    found: dict[str, dict[Cell, list[ModelRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.label][row.dim, row.function].append(row)
    return found


def must_have(rows: Iterable[ModelRow], labels: Iterable[str]) -> None:
    """Refuse labels that have no runs."""
    known = {row.label for row in rows}
    for label in labels:
        if label not in known:
            raise ValueError(f"the files must have runs of label {label!r}, got {', '.join(sorted(known)) or 'none'}")


def log_ratios(
    ours: Iterable[ModelRow], theirs: Iterable[ModelRow], cost: Callable[[ModelRow], float] = lambda row: row.cost
) -> dict[int, list[float]]:
    """log(ours / theirs) of the costs of the runs that both have, by instance."""
    other = {row.run: cost(row) for row in theirs}
    found: dict[int, list[float]] = defaultdict(list)
    for row in ours:
        if row.run in other:
            found[row.instance].append(math.log(cost(row) / other[row.run]))
    return found


def estimate(cells: Sequence[dict[int, list[float]]]) -> Estimate:
    """The geometric mean over cells of their geometric means, with an interval."""
    cells = [cell for cell in cells if cell]
    if not cells:
        return Estimate(math.nan)
    rng = np.random.default_rng(1)
    value, draws = [], []
    for cell in cells:
        means = np.array([statistics.fmean(one) for one in cell.values()])
        value.append(means.mean())
        if len(means) > 1:
            draws.append(means[rng.integers(len(means), size=(DRAWS, len(means)))].mean(axis=1))
    center = math.exp(statistics.fmean(value))
    if len(draws) < len(cells):
        return Estimate(center)
    low, high = np.exp(np.quantile(np.mean(draws, axis=0), [0.025, 0.975]))
    return Estimate(center, float(low), float(high))


def solved(rows: Sequence[ModelRow]) -> str:
    """Median evaluations, unsolved runs counted as infinite; if not all are solved, how many, and how many were cut."""
    if not rows:
        return "-"
    good, cut = sum(row.evals is not None for row in rows), sum(row.cut for row in rows)
    middle = statistics.median([math.inf if row.evals is None else row.evals for row in rows])
    text = f"{middle:,.0f}" if math.isfinite(middle) else "fail"
    return text if good == len(rows) else f"{text} ({good}/{len(rows)}{f', {cut} cut' if cut else ''})"


def best_other(found: ByCell, label: str, others: Sequence[str], cell: Cell) -> str | None:
    """The label, among others, that a label looks worst against, on the runs of a cell that both have."""
    ratios = {name: log_ratios(found[label][cell], found.get(name, {}).get(cell, [])) for name in others}
    means = {name: estimate([ratio]).value for name, ratio in ratios.items() if ratio}
    return max(means, key=means.__getitem__) if means else None


def cut_runs(rows: Iterable[ModelRow]) -> list[str]:
    """A sentence that says how many runs were cut, none if there are none."""
    texts = []
    for label, cells in sorted(by_cell(rows).items()):
        runs: dict[int, list[ModelRow]] = defaultdict(list)
        for (dim, _), found in sorted(cells.items()):
            runs[dim] += found
        for dim, found in runs.items():
            if cut := [row for row in found if row.cut]:
                seconds = " or ".join(f"{one:g}" for one in sorted({row.seconds for row in cut}))
                texts.append(f"{label}, d = {dim}: {len(cut)} of {len(found)} after {seconds} s")
    what = "Runs that were cut, and count as unsolved with their budget; their gaps end where they were cut"
    return [f"{what}: {'; '.join(texts)}."] if texts else []


def runs_that_lack(found: ByCell, label: str) -> list[str]:
    """A sentence that says which runs of a label other labels do not have, none if they have all."""
    texts = []
    for name in sorted(set(found) - {label}):
        lacking: dict[tuple[int, str], list[int]] = defaultdict(list)
        for cell, rows in sorted(found[label].items()):
            wanted, there = {row.run for row in rows}, {row.run for row in found[name].get(cell, [])}
            if missing := wanted - there:
                what = "" if missing == wanted else f" ({len(wanted - missing)} of {len(wanted)} runs)"
                lacking[cell[0], what].append(cell[1])
        texts += [f"{name}, d = {dim}: f{spans(functions)}{what}" for (dim, what), functions in sorted(lacking.items())]
    return [f"Not run, and left out of what is compared: {'; '.join(texts)}."] if texts else []


def evaluations(rows: Sequence[ModelRow], label: str, baseline: str, others: Sequence[str]) -> str:
    """Evaluations to the target of all labels by cell, and the ratios of one of them."""
    must_have(rows, [label])
    found = by_cell(rows)
    labels = sorted(found, key=lambda name: (name != label, name))
    cells = sorted(found[label])
    head = ["d, f", *labels, f"{label} : {baseline}", f"{label} : best other", "best other", "ms an evaluation"]
    lines, to_baseline, to_best = [], {}, {}
    for cell in cells:
        mine, name = found[label][cell], best_other(found, label, others, cell)
        to_baseline[cell] = log_ratios(mine, found.get(baseline, {}).get(cell, []))
        to_best[cell] = {} if name is None else log_ratios(mine, found[name][cell])
        cost = 1000 * sum(row.cpu for row in mine) / max(1, sum(row.used for row in mine))
        lines.append(
            [
                f"{cell[0]}, f{cell[1]}",
                *(solved(found[one].get(cell, [])) for one in labels),
                interval(estimate([to_baseline[cell]])),
                interval(estimate([to_best[cell]])),
                name or "-",
                f"{cost:.2f}",
            ]
        )
    sums = []
    for dim in sorted({dim for dim, _ in cells}):
        for title, chosen in (
            ("all", [cell for cell in cells if cell[0] == dim]),
            ("without f1, f2", [cell for cell in cells if cell[0] == dim and cell[1] not in EASY]),
        ):
            ratios = (mean_over([part[cell] for cell in chosen]) for part in (to_baseline, to_best))
            runs = ([row for cell in chosen for row in found[name].get(cell, [])] for name in labels)
            solutions = (f"{sum(row.evals is not None for row in part)} of {len(part)}" for part in runs)
            sums.append([str(dim), title, *ratios, *solutions])
    return "\n\n".join(
        [
            "## Evaluations to 1e-8",
            "Medians; ratios are geometric means over runs, in which unsolved runs count with their budget.",
            *cut_runs(rows),
            *runs_that_lack(found, label),
            markdown_table(head, lines),
            "Means over functions, and runs that get to 1e-8:",
            markdown_table(["d", "functions", f": {baseline}", ": best other", *labels], sums),
        ]
    )


def mean_over(cells: Sequence[dict[int, list[float]]]) -> str:
    """The mean over cells, and how many there were if some have no ratio."""
    there = sum(bool(cell) for cell in cells)
    text = interval(estimate(cells))
    return text if there in (0, len(cells)) else f"{text}, {there} of {len(cells)} functions"


def gaps(rows: Sequence[ModelRow], label: str) -> str:
    """Median gaps of all labels by cell and checkpoint, and the cells that one of them has won."""
    must_have(rows, [label])
    found = by_cell(rows)
    labels = sorted(found, key=lambda name: (name != label, name))
    lines = []
    points: dict[tuple[str, int], list[float]] = defaultdict(list)
    for cell in sorted(found[label]):
        for place, many in enumerate(CHECKPOINTS):
            medians = {name: median_gap(found[name].get(cell, []), place) for name in labels}
            if medians[label] is None:
                continue
            lines.append([f"{cell[0]}, f{cell[1]}", f"{many} d", *map(_gap, medians.values())])
            for name in labels[1:]:
                if (other := medians[name]) is not None:
                    points[name, many].append(score(medians[label] or 0.0, other))
    won = [
        [name, f"{many} d", f"{sum(one):g} of {len(one)}", f"{sum(one) / len(one):.2f}"]
        for (name, many), one in sorted(points.items(), key=lambda item: (item[0][0], item[0][1]))
    ]
    return "\n\n".join(
        [
            "## Median gaps",
            *cut_runs(rows),
            *runs_that_lack(found, label),
            markdown_table(["d, f", "evaluations", *labels], lines),
            f"## Cells in which {label} has the smaller gap",
            "Gaps below 1e-8 are equal; equal ones count half.",
            markdown_table(["against", "evaluations", "cells", "share"], won),
        ]
    )


def median_gap(rows: Sequence[ModelRow], place: int) -> float | None:
    """The median gap at a checkpoint, None if a run was not so long."""
    if not rows or any(len(row.gaps) <= place for row in rows):
        return None
    return statistics.median(row.gaps[place] for row in rows)


def score(ours: float, theirs: float) -> float:
    """1 for a smaller gap, 1/2 for an equal one."""
    ours, theirs = (0.0 if gap < TARGET else gap for gap in (ours, theirs))
    return 0.5 if ours == theirs else float(ours < theirs)


def _gap(gap: float | None) -> str:
    return "-" if gap is None else f"{gap:.2g}"
