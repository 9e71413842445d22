"""What bench_constrained.py prints: targets hit, evaluations of one label against another, and runs that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from bbob_rows import Row, setups
from bbob_statistics import Cell, Comparison, Outcome, outcomes
from bbob_tables import describe, interval, markdown, share, versus
from constrained_runs import ACTIVE, BASES, DESIGN_TARGETS, DESIGNS, SUITE_TARGETS

_VERSIONS = len(ACTIVE)


def base(cell: Cell) -> int:
    """Place of a function's base function in BASES."""
    return (cell.function - 1) // _VERSIONS


def version(cell: Cell) -> int:
    """Place of a function's number of constraints in ACTIVE."""
    return (cell.function - 1) % _VERSIONS


# ---- the suite

Found = dict[tuple[Cell, int], list[Outcome]]
Wanted = Callable[[Cell], bool]


def suite_report(rows: Sequence[Row], label: str, baseline: str) -> str:
    """Targets hit by every label, on the problems that all of them have run, and two labels compared."""
    known = setups(rows)
    if not known:
        raise ValueError("the files must have runs, they have none")
    found = {name: outcomes(rows, name, SUITE_TARGETS) for name in known}
    common = set.intersection(*(set(one) for one in found.values()))
    if not common:
        raise ValueError(f"the labels {', '.join(known)} must have a problem in common, they have none")
    found = {name: {place: one[place] for place in common} for name, one in found.items()}
    dims = sorted({cell.dim for cell, _ in common})
    parts = [
        f"## {', '.join(known)} on bbob-constrained",
        f"{len(common)} problems that all labels have run. Targets, {', '.join(f'{t:g}' for t in SUITE_TARGETS)} above "
        "the optimum, are hit by feasible points.",
        "\n".join(f"- {describe(rows, name)}" for name in known),
        "### Targets hit, by dimension",
        _hits_table("d", found, [(str(d), lambda cell, d=d: cell.dim == d) for d in dims]),
        "### Targets hit, by the number of active constraints",
        _hits_table("active", found, [(n, lambda cell, k=k: version(cell) == k) for k, n in enumerate(ACTIVE)]),
        "### Targets hit, by base function",
        _hits_table("base", found, [(n, lambda cell, b=b: base(cell) == b) for b, n in enumerate(BASES)]),
        "### Runs that hit each target",
        _targets_table(found),
    ]
    if label in known and baseline in known and label != baseline:
        parts += _ratios(Comparison.of(rows, label, baseline, SUITE_TARGETS), label, baseline)
    return "\n\n".join(parts) + "\n"


def _hits_table(head: str, found: dict[str, Found], groups: Sequence[tuple[str, Wanted]]) -> str:
    lines = []
    for name, wanted in [*groups, ("all", lambda cell: True)]:
        hits = [_hits(one, wanted) for one in found.values()]
        if hits[0][1]:
            lines.append([name, *(share(*counts) for counts in hits)])
    return markdown([head, *found], lines)


def _hits(found: Found, wanted: Wanted) -> tuple[int, int]:
    """Targets hit, and how many there were, in the cells that are wanted."""
    runs = [run for (cell, _), several in found.items() if wanted(cell) for run in several]
    return sum(run.hits for run in runs), len(SUITE_TARGETS) * len(runs)


def _targets_table(found: dict[str, Found]) -> str:
    runs = [[run for several in one.values() for run in several] for one in found.values()]
    lines = [
        [f"{target:g}", *(share(sum(run.hits > i for run in some), len(some)) for some in runs)]
        for i, target in enumerate(SUITE_TARGETS)
    ]
    lines.append(["ended by an error", *(str(sum(run.ended.startswith("error") for run in some)) for some in runs)])
    return markdown(["target", *found], lines)


def _ratios(comparison: Comparison, label: str, baseline: str) -> list[str]:
    dims = comparison.dims

    def line(name: str, part: Comparison) -> list[str]:
        cells = [interval(part.only(dims=[dim]).ratio) for dim in dims]
        return [name, *cells, interval(part.ratio), versus(part.counts.targets), versus(part.counts.solved)]

    def of(wanted: Wanted) -> Comparison:
        return Comparison({cell: pairs for cell, pairs in comparison.pairs.items() if wanted(cell)})

    head = [*(f"d = {dim}" for dim in dims), "all d", "targets", "runs to the last target"]
    by_base = [line(name, of(lambda cell, b=b: base(cell) == b)) for b, name in enumerate(BASES)]
    by_active = [line(name, of(lambda cell, k=k: version(cell) == k)) for k, name in enumerate(ACTIVE)]
    return [
        f"### Evaluations, {label} : {baseline}",
        "Geometric means on targets that both hit, with 95 per cent intervals by bootstrap over instances; targets hit "
        "and runs to the last one by each.",
        markdown(["active", *head], [*by_active, line("all", comparison)]),
        markdown(["base", *head], [*by_base, line("all", comparison)]),
    ]


# ---- the designs


def designs_report(rows: Sequence[Row]) -> str:
    """Evaluations to the last target of every label and design, and failures."""
    known = setups(rows)
    if not known:
        raise ValueError("the files must have runs, they have none")
    found = {name: outcomes(rows, name, DESIGN_TARGETS) for name in known}
    numbers = sorted({cell.function for one in found.values() for cell, _ in one})
    lines = [
        [DESIGNS[number - 1], *(evaluations(_runs(one, number)) for one in found.values())] for number in numbers
    ]
    totals = [[run for several in one.values() for run in several] for one in found.values()]
    lines.append(["solved", *(f"{sum(map(_solved, runs))} of {len(runs)}" for runs in totals)])
    parts = [
        "## Designs",
        f"Median evaluations to a feasible point within {DESIGN_TARGETS[-1]:g} of the optimum over the runs that found "
        "one; after ✗ the number of those that did not.",
        "\n".join(f"- {describe(rows, name)}" for name in known),
        markdown(["design", *known], lines),
    ]
    return "\n\n".join(parts) + "\n"


def _runs(found: Found, number: int) -> list[Outcome]:
    return [run for (cell, _), several in found.items() if cell.function == number for run in several]


def _solved(run: Outcome) -> bool:
    return run.evals[-1] is not None


def evaluations(runs: Iterable[Outcome]) -> str:
    """Median of the evaluations to the last target, and the number of runs that missed it."""
    last = [run.evals[-1] for run in runs]
    if not last:
        return ""
    solved = [count for count in last if count is not None]
    text = f"{np.median(solved):,.0f}" if solved else "-"
    return text if len(solved) == len(last) else f"{text} ✗{len(last) - len(solved)}"
