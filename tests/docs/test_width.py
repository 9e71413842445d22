"""Code in README, pages and tutorials is as narrow as a page of the site, so that nobody has to scroll to read a line.

At 1280 pixels and more a block of code holds 90 characters; `test_site_in_browser.py` looks at the site itself.
"""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from tests.docs.test_commands import PAGES, ROOT

WIDTH = 88


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_fits_into_a_page(page: Path) -> None:
    """In fences, and indented."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```|(?<=\n\n)((?:    [^\n]*\n)+)", text, re.DOTALL | re.MULTILINE)
    lines = [line for fenced, indented in blocks for line in (fenced or textwrap.dedent(indented)).splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_code_fits_into_a_tutorial(path: Path) -> None:
    """Docstring and comments are prose, but for what is indented in them."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0].end_lineno
    code = [line for line in text.splitlines()[first:] if not re.match(r"#(?!     )", line)]
    assert [line for line in code if len(line.removeprefix("#     ")) > WIDTH] == []
