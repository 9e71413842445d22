"""The directive `problem-table`: the problems that `esgroup list` knows, asked when the site is built."""

from __future__ import annotations

from docstrings import escaped
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ProblemTable(SphinxDirective):
    """A table with a row for every problem, or for every family of them."""

    def run(self) -> list[nodes.Node]:
        from esgroup.problem_registry import families, known, summary

        makers = known().makers
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 70", "", "   * - name", "     - what it is"]
        for name, group in families(makers).items():
            text = " ... ".join(summary(makers[one]) for one in dict.fromkeys((group[0], group[-1])))
            lines += [f"   * - ``{name}``", f"     - {escaped(text)}"]
        return self.parse_text_to_nodes("\n".join(lines) + "\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("problem-table", ProblemTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
