"""What more points in an ask cost a search with a model, and what they save, in markdown.

The serial search asks for as many points as it wants, often two or three. Evaluations to 1e-8 say what a batch costs;
asks to 1e-8 say how long a search takes whose points of an ask are evaluated at the same time. A run that does not get
there counts with its budget, and with the asks that its budget would have taken at the rate at which it went.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bbob_tables import interval, markdown_table
from model_runs import ModelRow
from model_tables import by_cell, cut_runs, estimate, log_ratios, mean_over, must_have, runs_that_lack, solved

Cost = Callable[[ModelRow], float]


def evaluations(row: ModelRow) -> float:
    """Evaluations to the target."""
    return row.cost


def asks(row: ModelRow) -> float:
    """Asks to the target."""
    return row.asks * row.cost / max(1, row.used)


def batches(rows: Sequence[ModelRow], label: str) -> str:
    """Evaluations and asks of runs with batches, against the runs of a label, which are serial."""
    must_have(rows, [label])
    serial = next(row.setup for row in rows if row.label == label)
    if serial.batch:
        raise ValueError(f"label {label!r} must stand for runs without --batch, got --batch {serial.batch}")
    alike = [row for row in rows if row.setup._replace(batch="") == serial and (row.batch or row.label == label)]
    alike = [row._replace(label=row.batch or "serial") for row in alike]
    found = by_cell(alike)
    sizes = sorted(found.keys() - {"serial"}, key=lambda batch: (batch.endswith("x"), float(batch.removesuffix("x"))))
    if not sizes:
        raise ValueError(f"the files must have runs with --batch that are otherwise those of label {label!r}, got none")

    def ratio(cell: tuple[int, int], batch: str, cost: Cost) -> dict[int, list[float]]:
        return log_ratios(found[batch].get(cell, []), found["serial"][cell], cost)

    cells, means, ratios, times = sorted(found["serial"]), [], [], []
    for dim in sorted({dim for dim, _ in cells}):
        chosen = [cell for cell in cells if cell[0] == dim]
        for cost in (evaluations, asks):
            over = (mean_over([ratio(cell, batch, cost) for cell in chosen]) for batch in sizes)
            means.append([str(dim), cost.__name__, *over])
    for cell in cells:
        name, mine = f"{cell[0]}, f{cell[1]}", found["serial"][cell]
        to_serial = (interval(estimate([ratio(cell, batch, evaluations)])) for batch in sizes)
        unsolved = (_unsolved(found[batch].get(cell, [])) for batch in sizes)
        ratios.append([name, solved(mine), *map("".join, zip(to_serial, unsolved, strict=True))])
        times.append([name, *(_median_asks(found[batch].get(cell, [])) for batch in ("serial", *sizes))])
    return "\n\n".join(
        [
            f"## Points in an ask: {label}",
            f"{serial.method} {serial.options}, {serial.budget} d evaluations; 2x are the points of two populations. "
            "Ratios are to the serial search, which asks for what it wants: geometric means, 95 per cent intervals.",
            *cut_runs(alike),
            *runs_that_lack(found, "serial"),
            markdown_table(["d", "ratio of", *sizes], means),
            "### Evaluations to 1e-8",
            "Medians of the serial search, and ratios to it; in brackets runs that get there, if not all.",
            markdown_table(["d, f", "serial", *sizes], ratios),
            "### Asks to 1e-8",
            "Medians; a run that does not get there counts with the asks of its whole budget.",
            markdown_table(["d, f", "serial", *sizes], times),
        ]
    )


def _unsolved(rows: Sequence[ModelRow]) -> str:
    good = sum(row.evals is not None for row in rows)
    return "" if good == len(rows) else f" ({good}/{len(rows)})"


def _median_asks(rows: Sequence[ModelRow]) -> str:
    return f"{statistics.median(map(asks, rows)):,.0f}" if rows else "-"
