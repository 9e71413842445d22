"""The site as files: its pages, what they link to, and the places in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
# parts of pages that are not pages
_PARTS = ("_static", "_downloads", "_images", "_sources")


def pages() -> list[str]:
    """Every page, relative to the site; none if it was not built."""
    found = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    return sorted(path.as_posix() for path in found if path.parts[0] not in _PARTS)


@cache
def places(path: Path) -> frozenset[str]:
    """The names in a page that a link may end in."""
    return frozenset(re.findall(r'\s(?:id|name)="([^"]+)"', path.read_text(encoding="utf-8")))


def fault(address: str) -> str | None:
    """Why a link of the site is dead, if it is; addresses elsewhere are not asked for."""
    parts = urlsplit(address)
    if parts.scheme in ("http", "https", "mailto", "data"):
        return None
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or not path.is_relative_to(SITE):
        return f"{address} leads out of the site"
    if not path.is_file():
        return f"{address} does not exist"
    if parts.fragment and path.suffix == ".html" and unquote(parts.fragment) not in places(path):
        return f"{address} has no such place"
    return None
