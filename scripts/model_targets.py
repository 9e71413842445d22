"""Targets that searches with models reach, in markdown: beside the noise of the plain search, and with restarts.

The targets are the 51 of COCO, 10^2 to 10^-8 above the optimum. Evaluations are compared on targets that both labels
reach (see bbob_statistics.py). The plain search with other seeds shows what is chance: against itself its ratio is 1 in
truth, and it reaches as many targets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bbob_statistics import Cell, Comparison, Outcome, Outcomes
from bbob_tables import (
    cell_ratios,
    interval,
    markdown_table,
    marked_ratio,
    restart_section,
    share,
    spans,
    surely_above,
    versus,
)
from model_runs import TARGETS, ModelRow
from model_tables import cut_runs, must_have

LIMIT = 1.1  # a cell whose interval lies above it is named


def outcomes_by(
    rows: Iterable[ModelRow], label: str, budget: int | None = None
) -> dict[tuple[Cell, int], list[Outcome]]:
    """Runs of a label by cell and instance, by seed, within a budget per coordinate; of repeated ones the last."""
    found: dict[tuple[Cell, int], dict[int, Outcome]] = defaultdict(dict)
    for row in rows:
        if row.label != label:
            continue
        if budget is not None and row.budget < budget:
            raise ValueError(f"label {label!r} must have runs of {budget} d evaluations, got runs of {row.budget} d")
        within = [hit for hit in row.hits if hit <= (budget or row.budget) * row.dim]
        hits = (*within, *[None] * (len(TARGETS) - len(within)))
        found[Cell(row.function, row.dim), row.instance][row.seed] = Outcome(hits, row.ended)
    return {place: [outcome for _, outcome in sorted(seeds.items())] for place, seeds in found.items()}


# ---- against the plain search


class BesideChance(NamedTuple):
    """A label, and the plain search with other seeds, both against the plain search within a budget per coordinate."""

    budget: int
    judged: Comparison
    chance: Comparison

    @classmethod
    def of(cls, rows: Sequence[ModelRow], names: Sequence[str], budget: int) -> BesideChance:
        """Compare on problems that all three labels have, with as many seeds of each."""
        found: list[Outcomes] = [outcomes_by(rows, name, budget) for name in names]
        places = set.intersection(*(set(one) for one in found))
        if not places:
            raise ValueError(f"labels {', '.join(map(repr, names))} must have a problem in common, they have none")
        seeds = {place: min(len(one[place]) for one in found) for place in places}
        ours, plain, again = ({place: one[place][: seeds[place]] for place in places} for one in found)
        return cls(budget, Comparison.paired(ours, plain), Comparison.paired(again, plain))

    def only(self, functions: Iterable[int] | None = None, dims: Iterable[int] | None = None) -> BesideChance:
        """The cells with these values; None takes all."""
        return self._replace(judged=self.judged.only(functions, dims), chance=self.chance.only(functions, dims))

    @property
    def targets(self) -> str:
        """Targets of the label, of the plain search, and of the plain search with other seeds."""
        return versus((*self.judged.counts.targets, self.chance.counts.targets[0]))

    @property
    def solved(self) -> str:
        """Runs to the last target, of the same three."""
        return versus((*self.judged.counts.solved, self.chance.counts.solved[0]))


def plain(rows: Sequence[ModelRow], label: str, baseline: str, again: str, budgets: Sequence[int]) -> str:
    """Targets and evaluations of a label against the plain search, beside the plain search with other seeds."""
    names = [label, baseline, again]
    must_have(rows, names)
    found = [BesideChance.of(rows, names, budget) for budget in budgets]
    comparison = found[0].judged
    instances = sorted({pair.instance for pairs in comparison.pairs.values() for pair in pairs})
    ratios = [f"{label} : {baseline}", f"{again} : {baseline}"]
    parts = [
        f"## {label} against {baseline}, beside {again}",
        f"{len(comparison.functions)} functions, instances {spans(instances)}, {len(TARGETS)} targets a run. Ratios of "
        "evaluations are geometric means on targets that both reach, with 95 per cent intervals, where there is more "
        f"than one instance. What {again} : {baseline} shows is chance: they are one search with other seeds.",
        *cut_runs([row for row in rows if row.label in names]),
        _summary(found, names, ratios),
        f"### Cells whose interval lies above {LIMIT}",
        _cells_above(found, ratios),
    ]
    for one in found:
        where = f"within {one.budget} d evaluations"
        parts += [
            f"### Targets {where}, {' : '.join(names)}",
            _by_function(one, lambda part: part.targets if part.judged.pairs else "-"),
            f"### Evaluations {where}, {ratios[0]}",
            f"**Bold** has its interval above {LIMIT}, ? its value only.",
            _by_function(one, lambda part: marked_ratio(part.judged.ratio, LIMIT)),
            f"### Evaluations {where}, {ratios[1]}",
            _by_function(one, lambda part: marked_ratio(part.chance.ratio, LIMIT)),
        ]
    return "\n\n".join(parts)


def _summary(found: Sequence[BesideChance], names: Sequence[str], ratios: Sequence[str]) -> str:
    """A line for each dimension and budget."""
    lines = []
    for one in found:
        for dim, dims in [*((str(d), [d]) for d in one.judged.dims), ("all", one.judged.dims)]:
            part = one.only(dims=dims)
            counts, both = part.judged.counts, (interval(part.judged.ratio), interval(part.chance.ratio))
            targets, runs = f"{part.targets} of {counts.of_targets}", f"{part.solved} of {counts.runs}"
            lines.append([dim, f"{one.budget} d", targets, runs, *both])
    three = " : ".join(names)
    return markdown_table(["d", "within", f"targets, {three}", f"runs to 1e-8, {three}", *ratios], lines)


def _cells_above(found: Sequence[BesideChance], ratios: Sequence[str]) -> str:
    """Names of the cells, for each dimension and budget."""
    lines = []
    for one in found:
        for dim in one.judged.dims:
            part = one.only(dims=[dim])
            above = (surely_above(cell_ratios(both), LIMIT) for both in (part.judged, part.chance))
            lines.append([str(dim), f"{one.budget} d", *above])
    return markdown_table(["d", "within", *ratios], lines)


def _by_function(found: BesideChance, text: Callable[[BesideChance], str]) -> str:
    """A line for each function, a column for each dimension."""
    dims = found.judged.dims
    lines = [
        [f"f{function}", *(text(found.only([function], [dim])) for dim in dims), text(found.only([function]))]
        for function in found.judged.functions
    ]
    lines.append(["all", *(text(found.only(dims=[dim])) for dim in dims), text(found)])
    return markdown_table(["function", *(f"d = {dim}" for dim in dims), "all d"], lines)


# ---- restarts


def successes(rows: Sequence[ModelRow], label: str) -> str:
    """Runs to 1e-8 of every label by dimension, and a label against every other function by function."""
    must_have(rows, [label])
    names = sorted({row.label for row in rows}, key=lambda name: (name != label, name))
    dims = sorted({row.dim for row in rows})
    lines = []
    for name in names:
        mine = [row for row in rows if row.label == name]
        parts = [*([row for row in mine if row.dim == dim] for dim in dims), mine]
        lines.append([name, *(share(sum(row.evals is not None for row in p), len(p)) if p else "-" for p in parts)])
    ours, sections = outcomes_by(rows, label), []
    for name in names[1:]:
        comparison = Comparison.paired(ours, outcomes_by(rows, name))
        if comparison.pairs:
            sections.append(restart_section(comparison, label, name).text)
    return "\n\n".join(
        [
            "## Runs to 1e-8",
            "Number, and share of the runs.",
            *cut_runs(rows),
            markdown_table(["", *(f"d = {dim}" for dim in dims), "all d"], lines),
            *sections,
        ]
    )
