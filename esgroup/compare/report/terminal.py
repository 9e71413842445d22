"""The tables of a comparison for a person at a terminal: the Markdown of `table`, drawn by rich.

The text is the same, so a terminal and a file never differ. Only the Markdown that `table` writes is supported:
headings, tables, lists, paragraphs, bold, code and escaped letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GAP = 2  # columns between two columns; one of them is the box's
_KEYS = ("problem", "d", "method")  # columns that identify a line: a table in parts repeats them
_INLINE = re.compile(r"\\(?P<letter>.)|\*\*(?P<bold>.+?)\*\*|(?P<fence>`+) ?(?P<code>.*?) ?(?P=fence)(?!`)")


class Column(NamedTuple):
    """A column of a table: the texts of its head and of all lines, and whether it is aligned right."""

    head: Text
    cells: list[Text]
    right: bool

    @property
    def width(self) -> int:
        """Columns of the terminal that it takes, with the gap after it."""
        return max(len(line) for cell in (self.head, *self.cells) for line in cell.plain.split("\n")) + _GAP


def show(markdown: str, console: Console) -> None:
    """Print the Markdown that `table` has written, in as many columns as the terminal has."""
    for part in parts(markdown, console.width):
        console.print(part, highlight=False)


def parts(markdown: str, width: int) -> Iterator[RenderableType]:
    """Yield headings, tables of at most this width, and texts; wider tables come in several parts."""
    for block in markdown.strip().split("\n\n"):
        if block.startswith("#"):
            yield Text(block.lstrip("# ") + "\n", style="bold")
        elif block.startswith("|"):
            for columns in fitting(columns_of(block), width):
                yield drawn(columns)
                yield ""
        else:
            for line in block.splitlines():
                bullet = line.startswith("- ")
                yield Padding(inline(line.removeprefix("- ") if bullet else line, "dim"), (0, 0, 0, 2 * bullet))
            yield ""


def inline(text: str, style: str = "") -> Text:
    """Read bold, code and escaped letters."""
    shown, at = Text(style=style), 0
    for found in _INLINE.finditer(text):
        shown.append(text[at : found.start()])
        if found["bold"] is not None:
            shown.append(inline(found["bold"]).plain, style="bold green")
        else:
            shown.append(found["letter"] or found["code"] or "")
        at = found.end()
    return shown.append(text[at:])


def columns_of(block: str) -> list[Column]:
    """Read a table."""
    lines = (
        [cell.strip() for cell in re.findall(r"((?:\\.|[^\\|])*)\|", line.removeprefix("|"))]
        for line in block.splitlines()
    )
    return [
        Column(_broken(inline(head)), [inline(cell) for cell in cells], rule.endswith(":"))
        for head, rule, *cells in zip(*lines, strict=True)
    ]


def _broken(name: Text) -> Text:
    """Break the name of a method where it has parts, as esgroup:heisenberg:k1=4,k2=4 does: numbers are narrow."""
    return Text(re.sub(r"[:@,](?=.)", "\\g<0>\n", name.plain))


def fitting(columns: list[Column], width: int) -> Iterator[list[Column]]:
    """Split a table into tables of at most this width; each has the columns that name the lines."""
    keys = list(takewhile(lambda column: column.head.plain in _KEYS, columns))
    room = width + _GAP  # after the last column there is none
    taken = list(keys)
    for column in columns[len(keys) :]:
        if len(taken) > len(keys) and sum(one.width for one in (*taken, column)) > room:
            yield taken
            taken = list(keys)
        taken.append(column)
    yield taken


def drawn(columns: list[Column]) -> Table:
    """Draw a table with one rule, below its head."""
    from rich.box import SIMPLE_HEAD

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False, header_style="bold")
    for one in columns:
        table.add_column(one.head, justify="right" if one.right else "left", vertical="bottom", no_wrap=True)
    for line in zip(*(one.cells for one in columns), strict=True):
        table.add_row(*line)
    return table
