"""What bench_model.py says of its rows, in markdown.

The ratio of a cell, one function in one dimension, is the geometric mean over the runs that both labels have; that of
several cells is the geometric mean of theirs. Intervals are 95 per cent by bootstrap over instances (see
bbob_statistics.py), which in a single instance there is none.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from bbob_statistics import DRAWS, Estimate
from bbob_tables import interval, markdown_table
from model_runs import CHECKPOINTS, TARGET, ModelRow

Report = Callable[[Sequence[ModelRow]], str]
Cell = tuple[int, int]  # dimension and function
EASY = (1, 2)  # the sphere and the separable ellipsoid: means are given with and without them


def by_cell(rows: Iterable[ModelRow]) -> dict[str, dict[Cell, list[ModelRow]]]:
    """Rows by label and cell."""
    found: dict[str, dict[Cell, list[ModelRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.label][row.dim, row.function].append(row)
    return found


def log_ratios(ours: Sequence[ModelRow], theirs: Sequence[ModelRow]) -> dict[int, list[float]]:
    """log(ours / theirs) of the runs that both have, by instance."""
    other = {row.run: row.cost for row in theirs}
    found: dict[int, list[float]] = defaultdict(list)
    for row in ours:
        if row.run in other:
            found[row.instance].append(math.log(row.cost / other[row.run]))
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
    centre = math.exp(statistics.fmean(value))
    if len(draws) < len(cells):
        return Estimate(centre)
    low, high = np.exp(np.quantile(np.mean(draws, axis=0), [0.025, 0.975]))
    return Estimate(centre, float(low), float(high))


def solved(rows: Sequence[ModelRow]) -> str:
    """Median evaluations, unsolved runs counted as infinite, and how many of how many are solved, if not all."""
    if not rows:
        return "-"
    good = [row.evals for row in rows if row.evals is not None]
    middle = statistics.median([math.inf if row.evals is None else row.evals for row in rows])
    text = f"{middle:,.0f}" if math.isfinite(middle) else "fail"
    return text if len(good) == len(rows) else f"{text} ({len(good)}/{len(rows)})"


def best_other(found: dict[str, dict[Cell, list[ModelRow]]], others: Sequence[str], cell: Cell) -> str | None:
    """The label, among others, with the least geometric mean in a cell."""
    means = {
        name: statistics.fmean(math.log(row.cost) for row in found[name][cell])
        for name in others
        if found.get(name, {}).get(cell)
    }
    return min(means, key=means.__getitem__) if means else None


def evaluations(rows: Sequence[ModelRow], label: str, baseline: str, others: Sequence[str]) -> str:
    """Evaluations to the target of all labels by cell, and the ratios of one of them."""
    found = by_cell(rows)
    if label not in found:
        raise ValueError(f"the files must have runs of label {label!r}, got {', '.join(sorted(found)) or 'none'}")
    labels = sorted(found, key=lambda name: (name != label, name))
    cells = sorted(found[label])
    head = ["d, f", *labels, f"{label} : {baseline}", f"{label} : best other", "best other", "ms an evaluation"]
    lines, to_baseline, to_best = [], {}, {}
    for cell in cells:
        mine, name = found[label][cell], best_other(found, others, cell)
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
            ratios = (interval(estimate([part[cell] for cell in chosen])) for part in (to_baseline, to_best))
            runs = (
                f"{sum(row.evals is not None for cell in chosen for row in found.get(name, {}).get(cell, []))}"
                for name in (label, baseline)
            )
            sums.append([str(dim), title, *ratios, " : ".join(runs)])
    return "\n\n".join(
        [
            "## Evaluations to 1e-8",
            "Medians; ratios are geometric means over runs, in which unsolved runs count with their budget.",
            markdown_table(head, lines),
            markdown_table(["d", "functions", f": {baseline}", ": best other", "runs solved"], sums),
        ]
    )


def gaps(rows: Sequence[ModelRow], label: str) -> str:
    """Median gaps of all labels by cell and checkpoint, and the cells that one of them has won."""
    found = by_cell(rows)
    if label not in found:
        raise ValueError(f"the files must have runs of label {label!r}, got {', '.join(sorted(found)) or 'none'}")
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
