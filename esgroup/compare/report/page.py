"""The HTML page of a comparison: the answer in words, tables, figures and how it was made. It needs no network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from esgroup.compare.records import Cost
from esgroup.compare.report import words
from esgroup.compare.report.summary import Overall, Row
from esgroup.files.markup import content_policy


class Picture(NamedTuple):
    """A figure: its title, its text alternative, its SVG, which is trusted, and its panels, for reading off numbers.

    The width is in CSS pixels: a figure much smaller than this has text that cannot be read.
    """

    title: str
    alt: str
    svg: str
    panels: Sequence[dict[str, Any]] = ()
    width: float = 960.0


class About(NamedTuple):
    """How a comparison was made."""

    command: str
    versions: dict[str, str]
    settings: dict[str, str]
    date: str
    cpu: str
    runs: int
    failures: int


def page(
    title: str,
    rows: Sequence[Row],
    overall: Sequence[Overall],
    pictures: Sequence[Picture],
    about: About,
    reference: str,
) -> str:
    """Return the whole page; the same arguments give the same text. Needs Jinja2, from the extra "compare"."""
    first, *others = words.answer(rows, overall, reference)
    reach = _reach(rows, overall)
    source = files("esgroup.compare.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    return _template(source).render(
        policy=content_policy(source),
        title=title,
        answer=first,
        others=others,
        rows=rows,
        best={
            case: _smallest_of_case([row for row in rows if (row.problem, row.dim) == case])
            for case in words.cases(rows)
        },
        problems=words.once(row.problem for row in rows),
        dims=sorted({row.dim for row in rows}),
        methods=words.once(row.method for row in rows),
        targets=words.targets(rows),
        relative=any(row.relative for row in rows),
        counts={row.counts for row in rows},
        cases=len(words.cases(rows)),
        case=words.noun(rows, 1),
        overall=overall,
        solved=words.solved(rows),
        meaning_of_solves=words.meaning_of_solves(rows) if rows else "",
        tallies=[words.tally(one.method, reference, rows) for one in overall],
        runs_behind=[words.runs_each(chain(*words.solved_by_both(one.method, reference, rows))) for one in overall],
        scaled=words.once((row.problem, row.scaled) for row in rows if row.scaled),
        marks=[_marks(one, rows, reference, reach) for one in overall],
        reach=reach,
        pictures=[_inline(picture, f"figure{number}-") for number, picture in enumerate(pictures, start=1)],
        panels=[json.dumps(picture.panels) for picture in pictures],
        failures=words.failures(rows),
        about=about,
        reference=reference,
        words=words,
    )


def _template(source: str) -> Any:
    from jinja2 import Environment, StrictUndefined  # `outputs` has checked that it is installed

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"breakable": breakable, "printable": printable}
    return environment.from_string(source)


# ---- text -----------------------------------------------------------------------------------------------------------


def breakable(name: str) -> Any:
    """Convert a long name to HTML in which lines may break after punctuation."""
    from markupsafe import Markup  # comes with Jinja2

    return Markup("<wbr>").join(re.split(r"(?<=[:,_.])(?=\w)", name))  # which escapes the parts


def printable(text: str) -> str:
    """Replace control characters and lone surrogates, which HTML and UTF-8 cannot hold; newlines stay."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


# ---- numbers --------------------------------------------------------------------------------------------------------


def _smallest_of_case(rows: Sequence[Row]) -> dict[str, float | None]:
    """Smallest numbers of a case, over the methods without gradients; None where there is nothing to mark."""
    without = [row for row in rows if row.counts is not Cost.GRADIENTS] if len(rows) > 1 else []
    unsolved = [row for row in without if not any(other.solved for other in rows)]  # runs that reach the target stop
    return {
        "median": _smallest(row.median for row in without),
        "expected": _smallest(row.expected for row in without),
        "last": _smallest(row.best for row in unsolved),
    }


def _smallest(values: Iterable[float]) -> float | None:
    return min(filter(math.isfinite, values), default=None)


def _reach(rows: Sequence[Row], overall: Sequence[Overall]) -> float:
    """End of the axis of ratios, which extends from 1 / reach to reach."""
    ratios = [words.estimate(of) for of in (*(row.ratio for row in rows), *(one.ratio for one in overall))]
    return max([2.0, *(max(ratio, 1 / ratio) for ratio in ratios if ratio)])


def _marks(one: Overall, rows: Sequence[Row], reference: str, reach: float) -> dict[str, Any] | None:
    """Positions of the ratios of a method on a logarithmic axis with 1 in the middle: 0 is left, 100 is right."""
    of = one.ratio
    if of is None or not words.estimate(of):
        return None
    low, high = (_place(min(max(end, 1 / reach), reach), reach) for end in of[1:])  # at the ends of the axis if beyond
    interval = (low, high) if words.has_interval(of) else None
    cases = [row.ratio.value for row, _ in words.solved_by_both(one.method, reference, rows) if row.ratio]
    places = [_place(case, reach) for case in cases]
    return {"overall": _place(of.value, reach), "interval": interval, "cases": places}


def _place(ratio: float, reach: float) -> float:
    return 50 + 50 * math.log(ratio) / math.log(reach)


# ---- figures --------------------------------------------------------------------------------------------------------


def _inline(picture: Picture, prefix: str) -> Picture:
    """Prepare the SVG for a page: nothing before its element, and names that no other figure has."""
    svg = picture.svg[max(picture.svg.find("<svg"), 0) :]
    return picture._replace(svg=re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg))


