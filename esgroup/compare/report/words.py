"""How the numbers of a comparison are written, and its answer in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from esgroup.compare.records import Cost
from esgroup.compare.report.statistics import FEWEST
from esgroup.compare.report.summary import Overall, Ratio, Row

FEWER, UNDECIDED, MORE = "fewer", "undecided", "more"  # evaluations than the reference

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_GIVEN = "with gradients"
_Item = TypeVar("_Item")

# ---- numbers --------------------------------------------------------------------------------------------------------


def cost(value: float) -> str:
    """Format a number of evaluations: 1,234, or never."""
    return f"{value:,.0f}" if math.isfinite(value) else "never"


def factor(value: float) -> str:
    """Format a factor with two digits or more: 1,234, 12.3, 0.71, 0.047."""
    if math.isinf(value):
        return "∞"
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else _short(f"{value:#.2g}") if value else "0"


def ratio(of: Ratio | None) -> str:
    """Format a ratio with its interval: 0.71 [0.65, 0.79], or 0.71 [no interval]."""
    if of is None or not math.isfinite(of.value):
        return "none"
    interval = f"{factor(of.low)}, {factor(of.high)}" if has_interval(of) else "no interval"
    return f"{factor(of.value)} [{interval}]"


def has_interval(of: Ratio | None) -> bool:
    """Whether the interval is bounded on some side; with too few runs it is not."""
    return of is not None and (of.low > 0 or of.high < math.inf)


def estimate(of: Ratio | None) -> float | None:
    """The ratio without its interval; None if it is not a finite number."""
    return of.value if of is not None and math.isfinite(of.value) else None


def verdict(of: Ratio | None) -> str:
    """Whether a method needs fewer or more evaluations than the reference; undecided if the interval includes 1."""
    if of is None or not math.isfinite(of.value):
        return ""
    return FEWER if of.high < 1 else MORE if of.low > 1 else UNDECIDED


def judged(of: Ratio | None) -> str:
    """Format a ratio, and say so if its interval includes 1: 0.95 [0.80, 1.12] undecided."""
    return f"{ratio(of)}{f' {UNDECIDED}' * (verdict(of) == UNDECIDED and has_interval(of))}"


def gap(value: float) -> str:
    """Format a distance to the minimum with two digits: 1.2e-8, 0.50, 3.0."""
    if not math.isfinite(value):
        return "no value"
    return _short(f"{value:#.2g}" if 0.01 <= value < 10 else f"{value:.1e}") if value else "0"


def level(value: float) -> str:
    """Format a value of a problem whose minimum is not known."""
    return _short(f"{value:.5g}") if math.isfinite(value) else "no value"


def target(value: float, known: bool, relative: bool = False) -> str:
    """Format a target: a gap, or a value."""
    if math.isnan(value):
        return "not known"
    return f"{'relative ' * relative}gap {_short(f'{value:g}')}" if known else f"f ≤ {_short(f'{value:g}')}"


def seconds(value: float) -> str:
    """Format seconds with two digits and a unit: 23 µs, 1.4 ms."""
    if not math.isfinite(value):
        return "not known"
    rounded = float(f"{value:.2g}")  # first: 999.7 µs is 1.0 ms
    size, unit = next((pair for pair in _UNITS if abs(rounded) >= pair[0]), _UNITS[-1])
    digits = f"{rounded / size:.1f}" if abs(rounded) < 10 * size else f"{rounded / size:,.0f}"
    return f"{digits} {unit}" if rounded else "0 s"


def _short(text: str) -> str:
    """Remove the leading zero of an exponent."""
    return text.replace("e-0", "e-").replace("e+0", "e+")


# ---- cases ----------------------------------------------------------------------------------------------------------


def once(items: Iterable[_Item]) -> list[_Item]:
    """Each item once, in the order of its first appearance."""
    return list(dict.fromkeys(items))


def targets(rows: Sequence[Row]) -> list[tuple[float, bool, bool]]:
    """The distinct targets, as arguments of `target`; the target of a case in which every run fails is unknown."""
    there = once((row.target, row.known, row.relative) for row in rows if not math.isnan(row.target))
    return there or [(math.nan, True, False)]


def cases(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """The cases: pairs of problem and dimension."""
    return once((row.problem, row.dim) for row in rows)


def solved(rows: Sequence[Row]) -> dict[str, int]:
    """Number of cases that a method solves, by method."""
    return {
        method: sum(1 for row in rows if row.method == method and row.solves)
        for method in once(row.method for row in rows)
    }


def solved_by_both(method: str, reference: str, rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Rows of a method and of the reference in the cases that both solve."""
    theirs = {(row.problem, row.dim): row for row in rows if row.method == reference and row.solves}
    ours = [row for row in rows if row.method == method and row.solves]
    return [(row, theirs[row.problem, row.dim]) for row in ours if (row.problem, row.dim) in theirs]


def tally(method: str, reference: str, rows: Sequence[Row]) -> dict[str, int]:
    """Numbers of cases that both solve in which a method needs fewer evaluations, or more, or it is undecided."""
    verdicts = [verdict(row.ratio) for row, _ in solved_by_both(method, reference, rows)]
    return {word: verdicts.count(word) for word in (FEWER, UNDECIDED, MORE)}


def failures(rows: Sequence[Row]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """The cases with failed runs, by method and message."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in rows:
        for message in row.failures:
            found.setdefault((row.method, message), []).append((row.problem, row.dim))
    return found


def runs_each(rows: Iterable[Row]) -> str:
    """How many runs each method has in each case: 5 runs each, or 3 to 5 runs each."""
    numbers = {row.runs for row in rows} or {0}
    few, many = min(numbers), max(numbers)
    return f"{few} run{'s' * (few != 1)} each" if few == many else f"{few} to {many} runs each"


def noun(rows: Sequence[Row], number: int) -> str:
    """Call cases problems, unless some problem occurs in several dimensions."""
    one = "problem" if len(cases(rows)) == len({row.problem for row in rows}) else "case"
    return one if number == 1 else one + "s"


# ---- sentences ------------------------------------------------------------------------------------------------------


def answer(rows: Sequence[Row], overall: Sequence[Overall], reference: str) -> list[str]:
    """The answer in sentences: first about the first method that is not the reference, then about the others."""
    count = solved(rows)
    if not rows:
        return ["There are no runs."]
    if len(count) == 1:
        (only,) = count
        return [f"Only {only} was run; it {_solves(count[only], rows)} ({runs_each(rows)})."]
    if not any(count.values()):
        which = "the problem" if len(cases(rows)) == 1 else f"any of the {_all(rows)}"
        return [f"No method solves {which} ({runs_each(rows)})."]
    if not count.get(reference):
        lack = f"the reference, {reference}, {_solves(0, rows) if reference in count else 'was not run'}"
        return [f"There are no ratios, since {lack}; {_most(rows)} ({runs_each(rows)})."]
    others = [one for one in overall if one.method != reference]
    return [*_lead(others[0], rows, reference), *_rest(others[1:], rows, reference)]


def meaning_of_solves(rows: Sequence[Row]) -> str:
    """What it means that a method solves a case."""
    there = targets(rows)
    aim = f"the last target ({target(*there[0])})" if len(there) == 1 else "its last target"
    return f"A method solves a {noun(rows, 1)} if more than half of its runs reach {aim}, so that their median exists."


def _lead(one: Overall, rows: Sequence[Row], reference: str) -> list[str]:
    own, other = solved(rows).get(one.method, 0), solved(rows)[reference]
    both = solved_by_both(one.method, reference, rows)
    each = f"{one.method} {_solves(own, rows)}, {reference} {_solves(other, rows)}"
    if estimate(one.ratio) is None:
        why = "there is no ratio" if both else f"there is no {noun(rows, 1)} that both solve, hence no ratio"
        return [f"{each} ({runs_each(rows)}); {why}."]
    runs = [row for pair in both for row in pair]
    over = "on" if len(both) == 1 else "by the geometric mean over"
    basis = f"{over} {_common(len(both), rows)}, {runs_each(runs)}"
    name = f"{one.method} ({_GIVEN})" if Cost.GRADIENTS in one.counts else one.method
    times, said = ratio(one.ratio), verdict(one.ratio)
    start = [f"{name} needs {said} evaluations than {reference}: {times} times as many, {basis}."]
    if not has_interval(one.ratio):
        few = min((row.runs for row in runs), default=0) < FEWEST
        why = f"An interval needs {FEWEST} runs" if few else "These runs do not bound the ratio"
        start = [
            f"In these runs {name} needs {times} times as many evaluations as {reference}, {basis}.",
            f"{why}: the difference may be due to chance.",
        ]
    elif said == UNDECIDED:
        apart = f"These runs do not tell {name} and {reference} apart"
        start = [
            f"{apart}: {one.method} needs {times} times as many evaluations, {basis}.",
            "The interval includes 1: either may need fewer. This does not show that they are equal.",
        ]
    everything = own == other == len(cases(rows))
    return [*start, *_one_by_one(one, rows, reference), *([] if everything else [f"{each}."])]


def _one_by_one(one: Overall, rows: Sequence[Row], reference: str) -> list[str]:
    """State in how many cases a method needs fewer evaluations than the reference, judged by the intervals."""
    times = tally(one.method, reference, rows)
    intervals = [row for row, _ in solved_by_both(one.method, reference, rows) if has_interval(row.ratio)]
    if sum(times.values()) < 2 or not intervals:
        return []
    said = [f"{word} in {times[word]}" for word in (FEWER, MORE, UNDECIDED) if times[word]]
    return [f"{noun(rows, 1).capitalize()} by {noun(rows, 1)}, by their intervals: {_listed(said)}."]


def _common(both: int, rows: Sequence[Row]) -> str:
    total = len(cases(rows))
    if total == 1:
        return "the problem"
    return _every(rows) if both == total else f"the {both} of {_all(rows)} that both solve"


def _rest(others: Sequence[Overall], rows: Sequence[Row], reference: str) -> list[str]:
    """State which of the others need fewer evaluations than the reference and which more, where both solve."""
    said: list[str] = []
    for word in (FEWER, MORE):
        if named := [_named(one, rows) for one in others if verdict(one.ratio) == word]:
            end = word if said else f"{word} evaluations than {reference}"
            said.append(f"{_listed(named)} {_verb('need', named)} {end}")
    undecided = [one for one in others if verdict(one.ratio) == UNDECIDED]
    if named := [_named(one, rows) for one in undecided if has_interval(one.ratio)]:
        said.append(f"{_listed(named)} cannot be told apart from {reference} by these runs")
    if apart := [one.method for one in others if not one.cells_both]:
        said.append(f"{_listed(apart)} {_verb('solve', apart)} no {noun(rows, 1)} that {reference} solves")
    sentences = [f"{'; '.join(said)}."] if said else []
    if named := [_named(one, rows) for one in undecided if not has_interval(one.ratio)]:
        who = "it needs" if len(named) == 1 else "they need"
        sentences.append(f"For {_listed(named)} these runs do not show whether {who} fewer than {reference}.")
    return sentences


def _named(one: Overall, rows: Sequence[Row]) -> str:
    given = f", {_GIVEN}" * (Cost.GRADIENTS in one.counts)
    number = _all(rows) if one.cells_both == len(cases(rows)) else f"{one.cells_both} of {_all(rows)}"
    return f"{one.method} ({ratio(one.ratio)}, {number}{given})"


def _verb(stem: str, subjects: Sequence[str]) -> str:
    return stem + "s" * (len(subjects) == 1)


def _most(rows: Sequence[Row]) -> str:
    count = solved(rows)
    best = max(count.values())
    winners = [method for method, number in count.items() if number == best]
    if len(cases(rows)) == 1:
        return f"{_listed(winners)} {_verb('solve', winners)} the problem"
    most = _every(rows) if best == len(cases(rows)) else f"{best} of {_all(rows)}"
    return f"the most are solved by {_listed(winners)}: {most}"


def _solves(number: int, rows: Sequence[Row]) -> str:
    total = len(cases(rows))
    if total == 1:
        return "solves the problem" if number else "does not solve the problem"
    if number in (0, total):
        return f"solves {_every(rows)}" if number else f"solves none of the {_all(rows)}"
    return f"solves {number} of {_all(rows)}"


def _every(rows: Sequence[Row]) -> str:
    return f"both {noun(rows, 2)}" if len(cases(rows)) == 2 else f"all {_all(rows)}"


def _all(rows: Sequence[Row]) -> str:
    total = len(cases(rows))
    return f"{total} {noun(rows, total)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
