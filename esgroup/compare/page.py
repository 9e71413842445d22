"""One HTML page of a comparison: the answer in words, tables, figures and how it was made. It needs no network."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from esgroup.compare import words
from esgroup.compare.records import Cost
from esgroup.compare.summary import Overall, Row

_PIXELS = {"pt": 96 / 72, "in": 96.0}  # of CSS
_USUAL_WIDTH = 960.0  # of a figure that does not say its own


class Picture(NamedTuple):
    """A figure, the words that stand for it where it cannot be seen, and its SVG, which is trusted."""

    title: str
    alt: str
    svg: str


class About(NamedTuple):
    """How a comparison was made."""

    command: str
    versions: dict[str, str]
    settings: dict[str, str]
    date: str
    cpu: str
    runs: int
    failures: int


class Best(NamedTuple):
    """The smallest numbers of a case, of the methods without gradients; None where there is nothing to mark."""

    median: float | None
    expected: float | None
    last: float | None  # gap, where no method reaches the target: runs that reach it stop there


class Mark(NamedTuple):
    """Ratios of a method on a logarithmic axis with 1 in the middle: 0 is left, 100 is right."""

    overall: float
    cases: list[float]


class Failure(NamedTuple):
    """A message, and where it came from."""

    method: str
    message: str
    cases: list[tuple[str, int]]


def page(
    title: str,
    rows: Sequence[Row],
    overall: Sequence[Overall],
    pictures: Sequence[Picture],
    about: About,
    reference: str,
) -> str:
    """The whole page in one string; the same arguments give the same bytes. Needs Jinja2, of the extra "compare"."""
    first, *others = words.answer(rows, overall, reference)
    reach = _reach(rows, overall)
    text: str = _template().render(
        title=title,
        answer=first,
        others=others,
        rows=rows,
        best={case: _best([row for row in rows if (row.problem, row.dim) == case]) for case in words.cases(rows)},
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
        tallies=[words.tally(one.method, rows) for one in overall],
        marks=[_mark(one, rows, reach) for one in overall],
        reach=reach,
        pictures=[_inline(picture, f"figure{number}-") for number, picture in enumerate(pictures, start=1)],
        widths=[_width(picture.svg) for picture in pictures],
        failures=_failures(rows),
        about=about,
        reference=reference,
        words=words,
    )
    return text


def _template() -> Any:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError("the page of a comparison needs Jinja2: pip install 'esgroup[compare]'") from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"breakable": breakable, "printable": printable}
    return environment.from_string(files("esgroup.compare").joinpath("page.html.j2").read_text(encoding="utf-8"))


# ---- text -----------------------------------------------------------------------------------------------------------


def breakable(name: str) -> Any:
    """A long name as HTML that may be broken after its punctuation."""
    from markupsafe import Markup  # comes with Jinja2

    return Markup("<wbr>").join(re.split(r"(?<=[:,_.])(?=\w)", name))  # which escapes the parts


def printable(text: str) -> str:
    """Without control characters and halves of pairs, which HTML and UTF-8 cannot hold; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


# ---- numbers --------------------------------------------------------------------------------------------------------


def _best(rows: Sequence[Row]) -> Best:
    without = [row for row in rows if row.counts is not Cost.GRADIENTS] if len(rows) > 1 else []
    return Best(
        _smallest(row.median for row in without),
        _smallest(row.expected for row in without),
        _smallest(row.best for row in without if not any(other.solved for other in rows)),
    )


def _smallest(values: Iterable[float]) -> float | None:
    return min(filter(math.isfinite, values), default=None)


def _reach(rows: Sequence[Row], overall: Sequence[Overall]) -> float:
    """The axis of ratios goes from 1 / reach to reach."""
    ratios = [words.estimate(of) for of in (*(row.ratio for row in rows), *(one.ratio for one in overall))]
    return max([2.0, *(max(ratio, 1 / ratio) for ratio in ratios if ratio)])


def _mark(one: Overall, rows: Sequence[Row], reach: float) -> Mark | None:
    ratio = words.estimate(one.ratio)
    cases = [row.ratio.value for row in rows if row.method == one.method and row.ratio]
    return Mark(_place(ratio, reach), [_place(case, reach) for case in cases]) if ratio else None


def _place(ratio: float, reach: float) -> float:
    return 50 + 50 * math.log(ratio) / math.log(reach)


def _failures(rows: Sequence[Row]) -> list[Failure]:
    """Each message once for each method."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in rows:
        for message in row.failures:
            found.setdefault((row.method, message), []).append((row.problem, row.dim))
    return [Failure(method, message, cases) for (method, message), cases in found.items()]


# ---- figures --------------------------------------------------------------------------------------------------------


def _inline(picture: Picture, prefix: str) -> Picture:
    """The SVG as part of a page: nothing in front of its element, and names that no other figure has."""
    svg = picture.svg[max(picture.svg.find("<svg"), 0) :]
    return picture._replace(svg=re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg))


def _width(svg: str) -> float:
    """In pixels of CSS: a figure that shrinks far below it has letters that cannot be read."""
    found = re.search(r'<svg\b[^>]*?\bwidth="([\d.]+)(pt|px|in)?"', svg)
    return round(float(found[1]) * _PIXELS.get(found[2], 1.0), 1) if found else _USUAL_WIDTH
