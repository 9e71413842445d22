"""Links that work on a code host and in the site alike.

Pages link to files of the repository outside of docs, such as ../README.md or ../scripts/bench_model.py. In the site,
a link to a file that has a page leads to the page; any other file is copied into the site, for download. A link to a
file that does not exist is a warning, as everywhere.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
# files outside of docs that have a page: its path in docs
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "scripts/REPRODUCTION.md": "paper/reproduction.md",
}
LINK = re.compile(r"(?<=\]\()(?P<path>[^()\s:#]+)(?P<anchor>#[^()\s]*)?(?=\))")


def in_site(match: re.Match[str], folder: str) -> str:
    """The target of a link in a page of this folder (relative to the root), as it is in the site."""
    target = posixpath.normpath(posixpath.join(folder, match["path"]))
    anchor = match["anchor"] or ""
    if target in PAGES and (ROOT / "docs" / PAGES[target]).exists():
        return posixpath.relpath(posixpath.join("docs", PAGES[target]), folder) + anchor
    if not target.startswith("docs/"):
        return f"path:{match['path']}"  # MyST's word for a file that can be downloaded; a place in it has no address
    return match[0]


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links to the pages of the site; in a page of Markdown, before it is parsed."""
    if str(app.env.doc2path(page)).endswith(".md"):
        folder = posixpath.dirname(posixpath.join("docs", page))
        source[0] = LINK.sub(lambda match: in_site(match, folder), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
