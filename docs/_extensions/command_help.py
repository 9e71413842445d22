"""The directive `command-help`: what `esgroup --help` and `esgroup COMMAND --help` print when the site is built."""

from __future__ import annotations

import os
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

WIDTH = 90  # characters


def printed(*words: str) -> str:
    """What the command prints with these words, without colors."""
    from typer import rich_utils
    from typer.testing import CliRunner

    from esgroup.command.cli import app

    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)}
    with patch.dict(os.environ, plain), patch.object(rich_utils, "MAX_WIDTH", WIDTH):
        result = CliRunner().invoke(app, [*words, "--help"], prog_name="esgroup", catch_exceptions=False)
    if result.exit_code != 0:
        raise RuntimeError(f"esgroup {' '.join(words)} --help failed: {result.output}")
    return "\n".join(line.rstrip() for line in result.output.strip("\n").splitlines())


def commands() -> list[str]:
    """The names of the sub-commands, in the order of the help."""
    import typer.main

    from esgroup.command.cli import app

    return list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


class CommandHelp(Directive):
    """A section for the command itself and one for each sub-command."""

    def run(self) -> list[nodes.Node]:
        return [self._section(words) for words in ([], *([name] for name in commands()))]

    def _section(self, words: list[str]) -> nodes.section:
        title = " ".join(["esgroup", *words])
        label = "-".join([*title.split(), "help"])  # for links: esgroup-run-help
        section = nodes.section(ids=[label], names=[label])
        section += nodes.title(title, title)
        text = printed(*words)
        section += nodes.literal_block(text, text, language="text", classes=["command-help"])
        self.state.document.note_explicit_target(section, section)
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
