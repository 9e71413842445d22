"""Formulas as MathML, which browsers draw themselves: no script, no font and no network is needed.

The converter is that of docutils, which Sphinx needs anyway. A formula that it does not know is a warning, and so an
error of the build: write it with simpler means.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
SIZED = re.compile(r"\\(big|Big|bigg|Bigg)(?![a-zA-Z])")  # docutils knows \bigl and \bigr, and sizes both alike

# Firefox draws these as large as a sum where they stand between two letters of a displayed formula
BINARY = re.compile("<mo>([⊕⊗⊙])</mo>")


def converted(self: HTML5Translator, node: nodes.math | nodes.math_block, *, block: bool) -> str:
    text = SIZED.sub(r"\\\1l", node.astext().strip())
    if block and r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"  # as Sphinx does for other renderers
    try:
        return BINARY.sub(r'<mo largeop="false">\1</mo>', str(tex2mathml(text, as_block=block)))
    except MathError as error:
        logger.warning("a formula cannot be converted to MathML: %s: %s", text, error, location=node, type="mathml")
        return f"<code>{self.encode(text)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(converted(self, node, block=False))
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(converted(self, node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
