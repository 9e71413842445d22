"""What `esgroup list` shows: problems, structures and methods."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from esgroup.groups import SPELLINGS, parse, spell
from esgroup.problem_registry import known, summary

METHODS = {
    "--algorithm default": "natural gradient with evolution path, step-size control and weights for bad points too",
    "--algorithm paper": "the plain published update; with structure full this is xNES",
    "--mirrored": "points in opposite pairs: fewer evaluations on smooth functions of few variables",
    "--noise adapt": "learning rates follow the signal-to-noise ratio: for noisy and rugged functions",
    "--restarts ipop": "begins anew with twice the population whenever a search has ended short of the target",
    "--restarts bipop": "the same, alternating with small populations",
}


def show(dim: int) -> None:
    """Print the three tables."""
    console = Console()
    console.print(_problems())
    console.print(_structures(dim))
    console.print(
        "Sizes may be left out; ',upper' turns a triangle round. Sparse, Kronecker, BlockDiagonal and Conjugate are "
        "composed in Python, from esgroup.groups.\n",
        highlight=False,
    )
    console.print(_methods())
    for entry, why in known().failures.items():
        Console(stderr=True).print(Text(f"problems of {entry} could not be loaded: {why}", style="yellow"))


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    table.add_column("what it is")
    return table


def _problems() -> Table:
    table = _table("Problems, for `esgroup run`", "name")
    for name, maker in sorted(known().makers.items()):
        table.add_row(name, Text(summary(maker)))
    table.add_row("MODULE:FUNCTION", "your own f(x), with --dim")
    return table


def _structures(dim: int) -> Table:
    table = _table(f"Structures in dimension {dim:,}, by the numbers that each stores", "spelling")
    table.add_column("numbers", justify="right")
    for group in sorted((parse(name, dim) for name in SPELLINGS), key=lambda group: group.size):
        doc = Text((group.__doc__ or "").strip().partition("\n")[0])  # brackets are matrices, not markup
        table.add_row(spell(group), doc, f"{group.size:,}")
    return table


def _methods() -> Table:
    table = _table("Methods", "option")
    for option, text in METHODS.items():
        table.add_row(option, text)
    return table
