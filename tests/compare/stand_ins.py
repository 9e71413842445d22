"""Comparisons that were never run: each test says what matters to it, the rest is plain."""

from __future__ import annotations

import math
from typing import Any

from esgroup.compare.records import Cost
from esgroup.compare.report.page import About, Picture, page
from esgroup.compare.report.summary import Overall, Ratio, Row

NEVER = math.inf


def row(method: str, expected: float = 1000.0, **changes: Any) -> Row:
    """A method on the sphere in 5 dimensions: 5 runs that all reach the target, or none if that takes for ever."""
    plain = Row(
        problem="sphere",
        dim=5,
        method=method,
        counts=Cost.VALUES,
        runs=5,
        solved=0 if math.isinf(expected) else 5,
        target=1e-8,
        known=True,
        median=expected,
        expected=expected,
        ratio=None,
        best=9e-9,
        cpu=2.3e-5,
        cpu_whole=1.4e-3,
        failures=(),
    )
    return plain._replace(**changes)


def total(
    method: str, ratio: float | Ratio | None = None, both: int = 0, counts: tuple[Cost, ...] = (Cost.VALUES,)
) -> Overall:
    """A method on all problems together; a ratio that is a number gets an interval from 0.9 to 1.1 of it."""
    return Overall(method, counts, around(ratio) if isinstance(ratio, float) else ratio, both, 20, 25)


def around(value: float, factor: float = 1.1) -> Ratio:
    """A ratio with an interval."""
    return Ratio(value, value / factor, value * factor)


# ---- a page ----------------------------------------------------------------------------------------------------------

NASTY = """<script>alert("1 & 2")</script> it's </pre></table> &amp; <b"""
SVG = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" width="792pt" height="200pt" viewBox="0 0 792 200">
<defs><clipPath id="clip"><rect width="700" height="200"/></clipPath></defs>
<g id="lines" clip-path="url(#clip)"><path d="M0 200L792 0" stroke="currentColor"/></g>
<text x="9" y="20" font-size="10" fill="currentColor">evaluations</text></svg>"""
PICTURES = [
    Picture("Convergence", 'Gaps "fall" <fast>', SVG, width=1056.0),
    Picture("Profiles", "Shares rise", SVG, width=1056.0),
]
ABOUT = About(
    command="esgroup compare sphere --methods 'esgroup:block:k=2,cma' --out \"a  b\"",
    versions={"numpy": "2.4.0"},
    settings={"seeds": "5"},
    date="2031-02-03",
    cpu="3 s",
    runs=1050,
    failures=2,
)
EXPECTED = {"cma": 1000.0, "esgroup": 90.0, "esgroup:block:k=2": 9000.0, "lost": NEVER, "bfgs": 40.0}


def sample_rows() -> list[Row]:
    """Three problems; costs as EXPECTED, so that 9000 comes before 90 for who sorts letters."""
    return [
        row(
            method,
            expected,
            problem=problem,
            dim=dim,
            ratio=None if method == "cma" or math.isinf(expected) else around(expected / 1000),
            counts=Cost.GRADIENTS if method == "bfgs" else Cost.VALUES,
            failures=(f"{NASTY} (2 runs)",) if (method, problem) == ("lost", "discus") else (),
        )
        for problem, dim in (("sphere", 5), ("sphere", 40), ("discus", 5))
        for method, expected in EXPECTED.items()
    ]


def sample_totals() -> list[Overall]:
    ratios = {"cma": 1.0, "esgroup": 0.09, "esgroup:block:k=2": 9.0, "lost": None, "bfgs": 0.04}
    return [total(method, ratio, 0 if ratio is None else 3) for method, ratio in ratios.items()]


def sample(**changes: Any) -> str:
    """A page of five methods in three cases."""
    parts: dict[str, Any] = {
        "title": "A comparison",
        "rows": sample_rows(),
        "overall": sample_totals(),
        "pictures": PICTURES,
        "about": ABOUT,
        "reference": "cma",
    }
    return page(**(parts | changes))
