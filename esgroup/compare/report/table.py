"""The comparison as Markdown tables: all problems together, each problem separately, and the failures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby

from esgroup.compare.records import Cost
from esgroup.compare.report import words
from esgroup.compare.report.summary import Overall, Row

MARKS = {Cost.VALUES: "", Cost.GRADIENTS: "¹", Cost.DIFFERENCES: "²"}
NOTES = {
    Cost.GRADIENTS: "¹ uses gradients: values and gradients count as one evaluation each. A product of the Hessian "
    "with a vector, or its diagonal, counts as one gradient.",
    Cost.DIFFERENCES: "² uses finite-difference gradients: all values count as evaluations, those for differences too.",
}
NOTHING = "-"
UNDECIDED = (
    "Undecided means that the interval includes 1: these runs do not show which of the two needs fewer evaluations. It "
    "does not mean that they are equal."
)


def markdown(rows: Sequence[Row], reference: str, totals: Sequence[Overall] = (), *, brief: bool = False) -> str:
    """Format the rows of `summarize`, after those of `overall` if given, in GitHub's Markdown.

    In brief, for a terminal, there are no details where one table shows all problems.
    """
    glance = _at_a_glance(rows)
    details = "" if brief and glance else _by_problem(rows, reference)
    there = {row.counts for row in rows}
    notes = "\n".join(f"- {note}" for counts, note in NOTES.items() if counts in there)
    parts = [_all_problems(rows, totals, reference), glance, details, notes, _failures(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


# ---- the parts ------------------------------------------------------------------------------------------------------


def _all_problems(rows: Sequence[Row], totals: Sequence[Overall], reference: str) -> str:
    if not totals:
        return ""
    head = ["method", f"ratio to {reference}", "over cases", "targets reached"]
    lines = [
        [
            _cell(one.method) + "".join(MARKS[counts] for counts in one.counts),
            "1" if one.method == reference else NOTHING if one.ratio is None else words.judged(one.ratio),
            str(one.cells_both),
            f"{100 * one.solved_pairs // one.pairs} % ({one.solved_pairs:,}/{one.pairs:,})",
        ]
        for one in totals
    ]  # percentages are rounded down, so that 100 % means all
    note = (
        "The ratio is the geometric mean of ratios of expected running times, over the cases (a problem in one "
        f"dimension) that both solve, {words.runs_each(rows)}, with a 95 % bootstrap interval for these cases. A "
        f"method solves a case if more than half of its runs reach the last target. {UNDECIDED} All targets of each "
        "run are counted, including the easier ones."
    )
    return "\n\n".join(["## All problems together", _table([head, *lines], "lrrr"), note])


def _at_a_glance(rows: Sequence[Row]) -> str:
    """One row per case and one column per method; empty if there is only one case or one method."""
    names, blocks = words.once(row.method for row in rows), [list(block) for _, block in groupby(rows, key=_case)]
    if len(names) < 2 or len(blocks) < 2:
        return ""
    marks = {name: _mark({row.counts for row in rows if row.method == name}) for name in names}
    lines = [["problem", "d", *(_cell(name) + marks[name] for name in names)]]
    for block in blocks:
        cells = {row.method: _short(row, _best(block), marks[row.method]) for row in block}
        lines.append([_cell(block[0].problem), str(block[0].dim), *(cells.get(name, NOTHING) for name in names)])
    note = (
        f"{_target(rows)}Medians of all runs; the share of runs that reached the target is in brackets if not all did. "
        f"**Bold** is the smallest of the methods without gradients.{_scaled(rows)}"
    )
    return "\n\n".join(["## Evaluations to the target", _table(lines, "lr" + "r" * len(names)), note])


def _short(row: Row, best: float, mark: str) -> str:
    text = _median(row, best) if math.isfinite(row.median) else NOTHING
    text += MARKS[row.counts] if row.counts is not Cost.VALUES and not mark else ""
    return text if row.solved == row.runs else f"{text} ({row.solved}/{row.runs})"


def _mark(counts: set[Cost]) -> str:
    """Mark of a method that counts the same everywhere; otherwise its cells are marked."""
    return MARKS[next(iter(counts))] if len(counts) == 1 else ""


def _target(rows: Sequence[Row]) -> str:
    there = words.targets(rows)
    text = f"Target: {words.target(*there[0])}. " if len(there) == 1 else ""
    if any(row.relative for row in rows):
        text += "Relative gaps are 1 at the start and 0 at the best value that any method found. "
    return text


def _scaled(rows: Sequence[Row]) -> str:
    """Name the problems whose values differ from the usual ones by a factor: gaps and targets do, too."""
    named = words.once(f"{_cell(row.problem)} is {row.scaled}" for row in rows if row.scaled)
    return f" Gaps and targets are those of the function as it was run: {', '.join(named)}." if named else ""


def _best(rows: Sequence[Row]) -> float:
    """Smallest median of the methods without gradients; inf if there is only one method."""
    medians = [row.median for row in rows if row.counts is not Cost.GRADIENTS]
    return min(medians) if len(rows) > 1 and medians else math.inf


def _by_problem(rows: Sequence[Row], reference: str) -> str:
    same = len(words.targets(rows)) < 2
    head = ["problem", "d", "method", "evaluations to target", "reached", f"ratio to {reference}", "CPU per evaluation"]
    head += [] if same else ["target"]
    lines = [line for _, block in groupby(rows, key=_case) for line in _block(list(block), reference, same)]
    note = (
        f"{_target(rows)}Evaluations to target are the median of all runs; where half of them or more do not reach it, "
        "the median of the final gaps is given. **Bold** is the smallest of the methods without gradients. The ratio "
        "compares expected running times, the evaluations of all runs per run that reached the target, with a 95 % "
        f"bootstrap interval (which needs five runs); below 1 means fewer than {reference}. {UNDECIDED} CPU is the "
        "method's own time, without the problem's function. Noisy problems are judged by their values without noise."
        f"{_scaled(rows)}"
    )
    return "\n\n".join(["## Each problem", _table([head, *lines], "lrlrrrr" + "r" * (not same)), note])


def _block(rows: list[Row], reference: str, same_target: bool) -> list[list[str]]:
    """Lines of one case; its problem and dimension are named in the first line."""
    best, lines = _best(rows), []
    for i, row in enumerate(rows):
        line = [
            _cell(row.problem) if i == 0 else "",
            str(row.dim) if i == 0 else "",
            _cell(row.method) + MARKS[row.counts],
            _evaluations(row, best),
            f"{row.solved}/{row.runs}",
            _ratio(row, reference),
            words.seconds(row.cpu) if math.isfinite(row.cpu) else NOTHING,
        ]
        target = words.target(row.target, row.known, row.relative) if i == 0 else ""
        lines.append(line if same_target else [*line, target])
    return lines


def _failures(rows: Sequence[Row]) -> str:
    """List failed runs: each message of a method once, with the cases in which it appeared."""
    methods, items = words.once(row.method for row in rows), []
    for (method, message), cases in sorted(words.failures(rows).items(), key=lambda one: methods.index(one[0][0])):
        where = ", ".join(f"{_cell(problem)} d = {dim}" for problem, dim in cases)
        items.append(f"- {_cell(method)}: {_code(message)} in {where}")
    return "\n\n".join(["## Failed runs", "\n".join(items)]) if items else ""


# ---- cells ----------------------------------------------------------------------------------------------------------


def _median(row: Row, best: float) -> str:
    text = words.cost(row.median)
    return f"**{text}**" if row.counts is not Cost.GRADIENTS and row.median == best else text


def _evaluations(row: Row, best: float) -> str:
    if math.isfinite(row.median):
        return _median(row, best)
    if not math.isfinite(row.best):
        return NOTHING
    return f"{NOTHING} (gap {words.gap(row.best)})" if row.known else f"{NOTHING} (value {words.level(row.best)})"


def _ratio(row: Row, reference: str) -> str:
    if row.method == reference and row.solved:
        return "1"
    return NOTHING if row.ratio is None else words.judged(row.ratio)


def _case(row: Row) -> tuple[str, int]:
    return row.problem, row.dim


def _cell(text: str) -> str:
    """Escape what Markdown or HTML would interpret; an underscore within a word has no meaning."""
    return re.sub(r"[\\|*`<>\[\]]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", " ".join(text.split()))


def _code(text: str) -> str:
    """Format as code, fenced by more backticks than occur inside: nothing else has a meaning there."""
    fence = "`" * (1 + max((len(list(ticks)) for letter, ticks in groupby(text) if letter == "`"), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}"


def _table(lines: list[list[str]], sides: str) -> str:
    """Format a table whose source is aligned, too; `sides` has l or r for each column."""
    widths = [max(3, *(len(line[j]) for line in lines)) for j in range(len(sides))]
    rule = ["-" * (w - 1) + ("-" if side == "l" else ":") for w, side in zip(widths, sides, strict=True)]
    return "\n".join(_line(line, widths, sides) for line in (lines[0], rule, *lines[1:]))


def _line(cells: Sequence[str], widths: list[int], sides: str) -> str:
    padded = (f"{cell:{'<' if side == 'l' else '>'}{w}}" for cell, w, side in zip(cells, widths, sides, strict=True))
    return f"| {' | '.join(padded)} |"
