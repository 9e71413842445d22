"""How the numbers of a comparison are written, and its answer in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from esgroup.compare.report.summary import Overall, Ratio, Row

FEWER, EVEN, MORE = "fewer", "even", "more"  # evaluations than the reference

_CLOSE = 1.1  # a mean has no interval: it counts as even up to this factor
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
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


def ratio(of: Ratio | float | None) -> str:
    """Format a ratio with its interval, if there is one: 0.71 [0.65, 0.79]."""
    middle = estimate(of)
    if middle is None:
        return "none"
    return f"{factor(middle)} [{factor(of.low)}, {factor(of.high)}]" if isinstance(of, Ratio) else factor(middle)


def estimate(of: Ratio | float | None) -> float | None:
    """The ratio without its interval; None if it is not a finite number."""
    value = of.value if isinstance(of, Ratio) else of
    return value if value is not None and math.isfinite(value) else None


def verdict(of: Ratio | float | None) -> str:
    """Whether a method needs fewer or more evaluations than the reference; even if the interval contains 1."""
    value = estimate(of)
    if value is None:
        return ""
    low, high = (of.low, of.high) if isinstance(of, Ratio) else (value / _CLOSE, value * _CLOSE)
    return FEWER if high < 1 else MORE if low > 1 else EVEN


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
    """The distinct targets, as arguments of `target`; the target of a case in which every run fails is not known."""
    there = once((row.target, row.known, row.relative) for row in rows if not math.isnan(row.target))
    return there or [(math.nan, True, False)]


def cases(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """The cases: pairs of problem and dimension."""
    return once((row.problem, row.dim) for row in rows)


def solved(rows: Sequence[Row]) -> dict[str, int]:
    """Number of cases in which at least one run of a method reached the last target, by method."""
    return {
        method: sum(1 for row in rows if row.method == method and row.solved)
        for method in once(row.method for row in rows)
    }


def overall_verdict(one: Overall, rows: Sequence[Row]) -> str:
    """The verdict on all problems together: even unless at least one case distinguishes the methods."""
    times = tally(one.method, rows)
    said = verdict(one.ratio)
    return EVEN if said and times[EVEN] and not times[FEWER] + times[MORE] else said


def tally(method: str, rows: Sequence[Row]) -> dict[str, int]:
    """Numbers of cases in which a method needs fewer evaluations than the reference, about as many, or more."""
    verdicts = [verdict(row.ratio) for row in rows if row.method == method]
    return {word: verdicts.count(word) for word in (FEWER, EVEN, MORE)}


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
        return [f"Only {only} was run; it {_solves(count[only], rows)}."]
    if not any(count.values()):
        return [f"No method solves {'the problem' if len(cases(rows)) == 1 else 'any of the ' + _all(rows)}."]
    if not count.get(reference):
        lack = f"the reference, {reference}, {_solves(0, rows) if reference in count else 'was not run'}"
        return [f"There are no ratios, since {lack}; {_most(rows)}."]
    others = [one for one in overall if one.method != reference]
    return [_lead(others[0], rows, reference), *_one_by_one(others[0], rows), *_rest(others[1:], rows, reference)]


def _lead(one: Overall, rows: Sequence[Row], reference: str) -> str:
    own, other = solved(rows).get(one.method, 0), solved(rows)[reference]
    if estimate(one.ratio) is None:
        why = "there is no ratio" if one.cells_both else f"there is no {noun(rows, 1)} that both solve, hence no ratio"
        return f"{one.method} {_solves(own, rows)}, {reference} {_solves(other, rows)}; {why}."
    average = "on average " if one.cells_both > 1 else ""
    needs = f"{one.method} needs {average}{ratio(one.ratio)} times the evaluations of {reference}"
    in_all = "" if one.cells_both == len(cases(rows)) else f"; it solves {own} in all, {reference} {other}"
    return f"{needs} on {_common(one.cells_both, rows)}{in_all}."


def _one_by_one(one: Overall, rows: Sequence[Row]) -> list[str]:
    """State in how many cases a method needs fewer evaluations than the reference, judged by the intervals."""
    times = tally(one.method, rows)
    if sum(times.values()) < 2:
        return ["The interval does not distinguish them."] if times[EVEN] else []
    ends = {FEWER: "fewer in {}", MORE: "more in {}", EVEN: "not distinguished in {}"}
    said = [end.format(times[word]) for word, end in ends.items() if times[word]]
    return [f"By the interval of each {noun(rows, 1)} it is {_listed(said)}."]


def _common(both: int, rows: Sequence[Row]) -> str:
    total = len(cases(rows))
    if total == 1:
        return "the problem"
    return _every(rows) if both == total else f"the {both} of {_all(rows)} that both solve"


def _rest(others: Sequence[Overall], rows: Sequence[Row], reference: str) -> list[str]:
    """State which of the others need fewer evaluations than the reference and which more, where both solve."""
    ends = {FEWER: ("fewer", "than"), EVEN: ("about as many", "as"), MORE: ("more", "than")}
    said: list[str] = []
    for word, (end, link) in ends.items():
        if named := [_named(one) for one in others if overall_verdict(one, rows) == word]:
            end = end if said else f"{end} evaluations {link} {reference}"
            said.append(f"{_listed(named)} {_verb('need', named)} {end}")
    if apart := [one.method for one in others if not one.cells_both]:
        said.append(f"{_listed(apart)} {_verb('solve', apart)} no {noun(rows, 1)} that {reference} solves")
    return [f"{'; '.join(said)}."] if said else []


def _named(one: Overall) -> str:
    return f"{one.method} ({ratio(one.ratio)})"


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
