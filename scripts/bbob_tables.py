"""What bench_bbob.py prints about two labels: goals, tables in markdown, and the runs that would settle a doubt.

Single runs with default populations, runs with given population sizes, and runs with restarts have tables and goals of
their own. Goals are set against cma; for two labels of the same method there are none.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bbob_rows import Row, Run, Setup, setups
from bbob_statistics import Cell, Comparison, Estimate

NINE = (1, 6, 8, 9, 10, 11, 12, 13, 14)  # functions on which single runs reach the optimum, without f2
TEN = (1, 2, *NINE[1:])

NINE_GOAL, F2_GOAL, CELL_LIMIT = 0.78, 0.25, 1.05  # single runs with default populations
POPSIZE_GOAL, POPSIZE_CELL_LIMIT = 0.9, 1.1


class Goal(NamedTuple):
    text: str
    value: str
    met: bool


class Section(NamedTuple):
    """One kind of runs: its part of the report, its goals, and the cells that look worse than a goal."""

    text: str
    goals: list[Goal]
    doubtful: dict[Cell, str]


# ---- pieces of markdown


def interval(estimate: Estimate, digits: int = 2) -> str:
    if math.isnan(estimate.value):
        return "-"
    if math.isnan(estimate.low):
        return f"{estimate.value:.{digits}f}"
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def marked_ratio(estimate: Estimate, limit: float) -> str:
    """Bold if the interval lies above the limit, with a question mark if only the value does."""
    if estimate.low > limit:
        return f"**{interval(estimate)}**"
    return f"{interval(estimate)} ?" if estimate.value > limit else interval(estimate)


def versus(counts: Sequence[int]) -> str:
    return " : ".join(map(str, counts))


def share(count: int, total: int) -> str:
    return f"{count} ({count / total:.3f})"


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    body = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in body)


def _name(cell: Cell) -> str:
    return f"f{cell.function} d{cell.dim}" + ("" if cell.popsize is None else f" popsize {cell.popsize}")


def goals_table(goals: Sequence[Goal]) -> str:
    return markdown_table(["goal", "value", ""], [(g.text, g.value, "met" if g.met else "**missed**") for g in goals])


# ---- goals


def at_most(text: str, estimate: Estimate, limit: float) -> Goal:
    """A goal for a ratio; NaN, nothing measured, meets none. Nine digits: an exact 0.78 may come out an ulp above."""
    return Goal(f"{text} <= {limit}", interval(estimate, 3), round(estimate.value, 9) <= limit)


def at_least_theirs(text: str, counts: tuple[int, int]) -> Goal:
    return Goal(f"{text}, at least the baseline's", versus(counts), counts[0] >= counts[1])


def cell_ratios(comparison: Comparison) -> dict[Cell, Estimate]:
    """The ratio of every cell."""
    return {cell: Comparison({cell: pairs}).ratio for cell, pairs in comparison.pairs.items()}


def surely_above(ratios: Mapping[Cell, Estimate], limit: float) -> str:
    """Names of the cells whose interval lies above a limit."""
    return ", ".join(_name(cell) for cell, ratio in ratios.items() if ratio.low > limit) or "none"


def _above(comparison: Comparison, limit: float) -> tuple[Goal, dict[Cell, str]]:
    """The goal that no cell is surely above a limit, and the cells that may be."""
    ratios = cell_ratios(comparison)
    worse = surely_above(ratios, limit)
    doubtful = {
        cell: f"ratio {interval(ratio)}"
        for cell, ratio in ratios.items()
        if ratio.value > limit and not ratio.low > limit
    }
    return Goal(f"no cell with an interval above {limit}", worse, worse == "none"), doubtful


def _fewer(comparison: Comparison) -> dict[Cell, str]:
    """Cells in which fewer targets were hit than by the baseline."""
    every = {cell: Comparison({cell: pairs}).counts.targets for cell, pairs in comparison.pairs.items()}
    return {cell: f"targets {versus(hits)}" for cell, hits in every.items() if hits[0] < hits[1]}


# ---- single runs with default populations


def ratio_table(comparison: Comparison, limit: float) -> str:
    """Ratio of every function and dimension, and the targets hit; the ten have a star."""
    dims = comparison.dims

    def line(name: str, part: Comparison, limit: float = math.inf) -> list[str]:
        cells = [marked_ratio(part.only(dims=[dim]).ratio, limit) for dim in dims]
        return [name, *cells, interval(part.ratio), versus(part.counts.targets)]

    lines = [
        line(f"f{f}{' *' if f in TEN else ''}", comparison.only([f]), limit if f in TEN else math.inf)
        for f in comparison.functions
    ]
    lines.append(line("nine * without f2", comparison.only(NINE)))
    lines.append(line("ten *", comparison.only(TEN)))
    lines.append(line("all", comparison))
    return markdown_table(["function", *(f"d = {dim}" for dim in dims), "all d", "targets"], lines)


def solved_table(comparison: Comparison, label: str, baseline: str) -> str:
    """Targets hit and runs to the last one, by dimension."""
    lines = []
    for name, dims in [*((str(d), [d]) for d in comparison.dims), ("all", comparison.dims)]:
        counts = comparison.only(dims=dims).counts
        targets = [share(count, counts.of_targets) for count in counts.targets]
        lines.append([name, *targets, *(share(count, counts.runs) for count in counts.solved)])
    head = ["d", f"targets, {label}", f"targets, {baseline}", f"runs to 1e-8, {label}", f"runs to 1e-8, {baseline}"]
    return markdown_table(head, lines)


def single_section(comparison: Comparison, label: str, baseline: str) -> Section:
    """Evaluations by function and dimension."""
    goals = [at_most("nine functions without f2, all dimensions: ratio", comparison.only(NINE).ratio, NINE_GOAL)]
    if (f2 := comparison.only([2], [20])).pairs:
        goals.append(at_most("f2, d = 20: ratio", f2.ratio, F2_GOAL))
    above, doubtful = _above(comparison.only(TEN), CELL_LIMIT)
    goals.append(above._replace(text=f"ten functions: {above.text}"))
    for dim in comparison.dims:
        part = comparison.only(dims=[dim])
        goals.append(at_least_theirs(f"d = {dim}: targets hit", part.counts.targets))
        if not goals[-1].met:
            doubtful = {**_fewer(part), **doubtful}
    text = [
        f"### Evaluations, {label} : {baseline}",
        "Geometric means on targets that both hit, with 95 per cent intervals; targets hit by each. Of the ten "
        f"functions (*), **bold** has its interval above {CELL_LIMIT}, ? its value only.",
        ratio_table(comparison, CELL_LIMIT),
        "### Targets hit",
        solved_table(comparison, label, baseline),
    ]
    return Section("\n\n".join(text), goals, doubtful)


# ---- population sizes


def popsize_section(comparison: Comparison, label: str, baseline: str) -> Section:
    """Evaluations by population size."""
    goals, lines = [], []
    for popsize in comparison.popsizes:
        part = comparison.only(popsizes=[popsize])
        diverged = part.ended("divergence")[0]
        goals.append(at_most(f"popsize {popsize}: ratio", part.ratio, POPSIZE_GOAL))
        lines.append(
            [
                str(popsize),
                interval(part.ratio),
                f"{versus(part.counts.targets)} of {part.counts.of_targets}",
                f"{versus(part.counts.solved)} of {part.counts.runs}",
                str(diverged),
            ]
        )
    above, doubtful = _above(comparison, POPSIZE_CELL_LIMIT)
    diverged = comparison.ended("divergence")[0]
    goals += [
        above._replace(text=f"popsizes: {above.text}"),
        Goal("popsizes: no run ends on divergence", str(diverged), diverged == 0),
    ]
    places = sorted({cell[:2] for cell in comparison.pairs})
    cells = [
        [f"f{f} d{d}"]
        + [marked_ratio(comparison.only([f], [d], [size]).ratio, POPSIZE_CELL_LIMIT) for size in comparison.popsizes]
        for f, d in places
    ]
    text = [
        f"### Evaluations by population size, {label} : {baseline}",
        "Geometric means on targets that both hit, with 95 per cent intervals; targets hit and runs to 1e-8 by each; "
        f"runs of {label} that ended on divergence.",
        markdown_table(["popsize", "ratio", "targets", "to 1e-8", "divergence"], lines),
        f"**Bold** has its interval above {POPSIZE_CELL_LIMIT}, ? its value only.",
        markdown_table(["popsize", *map(str, comparison.popsizes)], cells),
    ]
    return Section("\n\n".join(text), goals, doubtful)


# ---- restarts


def restart_section(comparison: Comparison, label: str, baseline: str) -> Section:
    """Targets hit and runs to the last one, by function and dimension."""
    from scipy.stats import fisher_exact  # slow to load

    def line(name: str, part: Comparison) -> list[str]:
        every = [*(part.only(dims=[dim]) for dim in comparison.dims), part]
        return [name, *(f"{versus(p.counts.targets)} ({versus(p.counts.solved)})" if p.pairs else "-" for p in every)]

    counts = comparison.counts
    (ours, theirs), runs = counts.solved, counts.runs
    p = fisher_exact([[ours, runs - ours], [theirs, runs - theirs]]).pvalue
    lines = [line(f"f{f}", comparison.only([f])) for f in comparison.functions]
    text = [
        f"### Targets hit with restarts, {label} : {baseline}, in brackets runs to 1e-8",
        markdown_table(
            ["function", *(f"d = {dim}" for dim in comparison.dims), "all d"], [*lines, line("all", comparison)]
        ),
        f"Runs to 1e-8: {ours} and {theirs} of {runs}, p = {p:.2g} (Fisher's exact test, two-sided). Evaluations on "
        f"targets that both hit, {label} : {baseline}: {interval(comparison.ratio)}.",
    ]
    goals = [
        at_least_theirs("restarts: targets hit", counts.targets),
        at_least_theirs("restarts: runs to 1e-8", counts.solved),
    ]
    return Section("\n\n".join(text), goals, _fewer(comparison) if not all(goal.met for goal in goals) else {})


# ---- more runs


def rectangles(cells: Iterable[Cell]) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, ...]]]:
    """Functions, dimensions and popsizes whose products are exactly these cells: a command takes products."""
    functions: dict[Any, list[int]] = defaultdict(list)
    for cell in cells:
        functions[cell.dim, cell.popsize].append(cell.function)
    popsizes: dict[Any, list[int | None]] = defaultdict(list)
    for (dim, popsize), found in functions.items():
        popsizes[tuple(sorted(found)), dim].append(popsize)
    dims: dict[Any, list[int]] = defaultdict(list)
    for (found, dim), sizes in popsizes.items():
        dims[found, tuple(sizes)].append(dim)
    return [(found, tuple(sorted(where)), sizes) for (found, sizes), where in dims.items()]


def command(setup: Setup, label: str, out: str, more: Sequence[str]) -> str:
    """The command line that adds runs to a label."""
    words = ["python", "scripts/bench_bbob.py", "run", setup.method, "--out", out]
    words += ["--label", label] if label != setup.method else []
    words += [word for option in setup.options.split(";") if option for word in ("--option", option)]
    words += ["--restarts", setup.restarts] if setup.restarts != "none" else []
    return shlex.join([*words, "--budget", str(setup.budget), *more])


def more_runs(
    comparison: Comparison, doubtful: Mapping[Cell, str], labels: Mapping[str, tuple[Setup, str, int]]
) -> str:
    """The cells that look worse than a goal and the commands that double their instances."""
    commands = []
    instances: dict[tuple[int, ...], list[Cell]] = defaultdict(list)
    for cell in doubtful:
        instances[tuple(sorted({pair.instance for pair in comparison.pairs[cell]}))].append(cell)
    for known, cells in instances.items():
        first, last = known[-1] + 1, known[-1] + len(known)
        for functions, dims, popsizes in rectangles(cells):
            more = ["--functions", _list(functions), "--dims", _list(dims)]
            more += ["--instances", str(first) if first == last else f"{first}-{last}"]
            more += ["--popsizes", _list(popsizes)] if popsizes != (None,) else []
            for label, (setup, out, seed) in labels.items():
                commands.append(command(setup, label, out, [*more, *(["--seed", str(seed)] if seed else [])]))
    names = "\n".join(f"- {_name(cell)}: {why}" for cell, why in doubtful.items())
    return f"### Needs more runs\n\n{names}\n\n```\n" + "\n".join(commands) + "\n```"


def _list(values: Iterable[int | None]) -> str:
    return ",".join(map(str, values))


# ---- the whole


def describe(rows: Iterable[Row], label: str) -> str:
    """One line: what a label stands for, how many runs, how they ended."""
    runs: dict[Run, Row] = {row.run: row for row in rows if row.label == label}
    setup = next(iter(runs.values())).setup
    ended = Counter(row.ended.split(":")[0] for row in runs.values()).most_common()
    if len(ended) > 6:  # cma has many combinations of reasons
        ended = [*ended[:5], ("others", sum(count for _, count in ended[5:]))]
    what = f"{setup.method} {setup.options}".strip()
    return (
        f"{label}: {what}, {setup.budget} d evaluations, restarts {setup.restarts}, "
        f"seeds {_list(sorted({run.seed for run in runs}))}; {len(runs)} runs, "
        f"{sum(row.cpu for row in runs.values()):.0f} s; ended by "
        + ", ".join(f"{reason} {count}" for reason, count in ended)
    )


def report(rows: Sequence[Row], label: str, baseline: str, files: Mapping[str, str]) -> tuple[str, bool]:
    """The whole comparison in markdown, and whether every goal is met; `files` says where each label is kept."""
    known = setups(rows)
    for name in (label, baseline):
        if name not in known:
            raise ValueError(f"label {name!r} must be one of {sorted(known)}")
    if known[label].budget != known[baseline].budget:
        budgets = f"{known[label].budget} and {known[baseline].budget}"
        raise ValueError(f"labels {label!r} and {baseline!r} must have the same budget, got {budgets}")
    comparison = Comparison.of(rows, label, baseline)
    if known[label].restarts != "none":
        sections = [restart_section(comparison, label, baseline)]
    else:
        given = [size for size in comparison.popsizes if size is not None]
        single, sized = comparison.only(popsizes=[None]), comparison.only(popsizes=given)
        sections = [single_section(single, label, baseline)] if single.pairs else []
        sections += [popsize_section(sized, label, baseline)] if sized.pairs else []
    judged = known[label].method != known[baseline].method
    goals = [goal for section in sections for goal in section.goals] if judged else []
    doubtful = {cell: why for section in sections for cell, why in section.doubtful.items()} if judged else {}
    seeds = {name: min(row.seed for row in rows if row.label == name) for name in (label, baseline)}
    where = {name: (known[name], files.get(name, f"{name}.csv"), seeds[name]) for name in (label, baseline)}
    instances = sorted({pair.instance for pairs in comparison.pairs.values() for pair in pairs})
    parts = [
        f"## {label} against {baseline}",
        f"{comparison.counts.runs} runs of each on the same problems: {len(comparison.functions)} functions, "
        f"d = {_list(comparison.dims)}, instances {spans(instances)}.",
        f"- {describe(rows, label)}\n- {describe(rows, baseline)}",
        goals_table(goals) if judged else f"No goals: both are runs of {known[label].method}.",
        *(section.text for section in sections),
        *([more_runs(comparison, doubtful, where)] if doubtful else []),
    ]
    return "\n\n".join(parts) + "\n", all(goal.met for goal in goals)


def spans(numbers: Sequence[int]) -> str:
    """Increasing numbers as 1-5,8."""
    texts, first = [], 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            texts.append(str(number) if first == i else f"{numbers[first]}-{number}")
            first = i + 1
    return ",".join(texts)
