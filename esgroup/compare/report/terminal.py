"""The tables of a comparison for a person at a terminal: the Markdown of `table`, drawn by rich.

What is shown is the same text, so that a terminal and a file never differ in what they say. Only the Markdown that
`table` writes is understood: headings, tables, lists, paragraphs, bold, code and escaped letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GAP = 2  # columns between two columns; one of them is the box's
_KEYS = ("problem", "d", "method")  # columns that say what a line is about: a table in parts repeats them
_INLINE = re.compile(r"\\(?P<letter>.)|\*\*(?P<bold>.+?)\*\*|(?P<fence>`+) ?(?P<code>.*?) ?(?P=fence)(?!`)")


class Grid(NamedTuple):
    """A table: texts of the head and of all lines, and for each column whether it is aligned right."""

    head: list[Text]
    lines: list[list[Text]]
    right: list[bool]


def show(markdown: str, console: Console) -> None:
    """Print the Markdown that `table` has written, in as many columns as the terminal has."""
    for part in parts(markdown, console.width):
        console.print(part, highlight=False)


def parts(markdown: str, width: int) -> Iterator[RenderableType]:
    """Yield headings, tables that are at most so wide, and texts; tables that are wider come in several parts."""
    for block in markdown.strip().split("\n\n"):
        if block.startswith("#"):
            yield Text(block.lstrip("# ") + "\n", style="bold")
        elif block.startswith("|"):
            for grid in fitting(grid_of(block), width):
                yield drawn(grid)
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


def grid_of(block: str) -> Grid:
    """Read a table."""
    head, rule, *lines = (
        [cell.strip() for cell in re.findall(r"((?:\\.|[^\\|])*)\|", line.removeprefix("|"))]
        for line in block.splitlines()
    )
    return Grid(
        [_broken(inline(cell)) for cell in head],
        [[inline(cell) for cell in line] for line in lines],
        [cell.endswith(":") for cell in rule],
    )


def _broken(name: Text) -> Text:
    """Break the name of a method where it has parts, as esgroup:heisenberg:k1=4,k2=4 does: numbers are narrow."""
    return Text(re.sub(r"[:@,](?=.)", "\\g<0>\n", name.plain))


def fitting(grid: Grid, width: int) -> Iterator[Grid]:
    """Divide a table into some that are at most so wide; the columns that name the lines are in each of them."""
    widths = [
        max(len(line) for cell in (head, *cells) for line in cell.plain.split("\n")) + _GAP
        for head, *cells in zip(grid.head, *grid.lines, strict=True)
    ]
    keys = 0
    while keys < len(grid.head) and grid.head[keys].plain in _KEYS:
        keys += 1
    room = width - sum(widths[:keys]) + _GAP  # after the last column there is none
    taken: list[int] = []
    for column in range(keys, len(grid.head)):
        if taken and sum(widths[j] for j in (*taken, column)) > room:
            yield _columns(grid, [*range(keys), *taken])
            taken = []
        taken.append(column)
    yield _columns(grid, [*range(keys), *taken])


def _columns(grid: Grid, which: list[int]) -> Grid:
    return Grid(
        [grid.head[j] for j in which], [[line[j] for j in which] for line in grid.lines], [grid.right[j] for j in which]
    )


def drawn(grid: Grid) -> Table:
    """Draw a table with one rule, below its head."""
    from rich.box import SIMPLE_HEAD

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False, header_style="bold")
    for name, right in zip(grid.head, grid.right, strict=True):
        table.add_column(name, justify="right" if right else "left", vertical="bottom", no_wrap=True)
    for line in grid.lines:
        table.add_row(*line)
    return table
