"""What docstrings need beyond autodoc and napoleon.

Docstrings are plain text with backticks and numpydoc sections. Here the characters that reStructuredText would read as
markup are escaped (|x|, *args), drawings of matrices stay as they are drawn, short names become links, and the
boilerplate of named tuples is left out.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")
CODE = re.compile(r"(`[^`]*`)")
RULE = re.compile(r"-{3,}\s*$")
OF_TEXT = ("", "Notes")  # sections, and the text before the first one, whose indented parts are drawings


def as_markup(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText with numpydoc sections, which napoleon reads next."""
    section, in_doctest, in_drawing, result = "", False, False, []
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and not line.startswith(" ") and RULE.match(following):
            section = line.strip()
        in_doctest = bool(line.strip()) and (in_doctest or line.lstrip().startswith(">>> "))
        indented = line.startswith("    ") and not in_doctest
        if indented and section in OF_TEXT and not in_drawing and not (result and result[-1].strip()):
            in_drawing = True
            result += [".. code-block:: text", ""]
        elif line.strip() and not indented:
            in_drawing = False
        is_name = section not in OF_TEXT and not line.startswith(" ")
        result.append(line if in_doctest or in_drawing or is_name else escaped(line))
    lines[:] = result


def escaped(line: str) -> str:
    """A line of plain text, with the characters of markup escaped outside of backticks."""
    return "".join(part if part.startswith("`") else MARKUP.sub(r"\\\g<0>", part) for part in CODE.split(line))


def words_are_no_links(app: Sphinx, document: nodes.document) -> None:
    """Leave words in the descriptions of types, as in "array, shape (n, dim)", as they are: classes have capitals."""
    for node in list(document.findall(addnodes.pending_xref)):
        target = node.get("reftarget", "")
        if node.get("refdomain") == "py" and node.get("refspecific") and target.islower() and "." not in target:
            node.replace_self(node.children)


def attributes_by_their_name(app: Sphinx, document: nodes.document) -> None:
    """Head the list of attributes by the word of the docstring, which Sphinx calls variables."""
    for name in document.findall(nodes.field_name):
        if name.astext() == "Variables":
            name[:] = [nodes.Text("Attributes")]


def by_short_name(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Link `Searcher` or `Searcher.ask` wherever it is written, if the reference has one such name only."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target:
        return None
    objects = env.domains.python_domain.objects
    named = [entry for name, entry in objects.items() if name.endswith(f".{target}") and not entry.aliased]
    if len(named) != 1:
        return None
    return make_refnode(app.builder, node["refdoc"], named[0].docname, named[0].node_id, content, target)


def skip_boilerplate(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out fields of named tuples that have no documentation of their own."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", as_markup, priority=100)  # before napoleon
    app.connect("autodoc-skip-member", skip_boilerplate)
    app.connect("doctree-read", words_are_no_links)
    app.connect("doctree-read", attributes_by_their_name)
    app.connect("missing-reference", by_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
