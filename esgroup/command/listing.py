"""`esgroup list`: tables of problems, structures, and methods to compare a search with."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from esgroup.compare import methods
from esgroup.compare.presets import PRESETS
from esgroup.groups import SPELLINGS, parse, spell
from esgroup.problem_registry import families, known, summary


def show(dim: int) -> None:
    """Print the tables; `dim` is the dimension for counting the numbers that structures store."""
    console = Console()
    console.print(_table("Problems, for `esgroup run` and `esgroup compare`", _problems()))
    console.print(_structures(dim))
    console.print(
        "Sizes are optional; ',upper' makes a triangle upper instead of lower. Sparse, Kronecker, BlockDiagonal and "
        "Conjugate are composed in Python, from esgroup.groups.\n",
        highlight=False,
    )
    console.print(_table("Methods, for `esgroup compare --methods`", _methods()))
    presets = {name: preset.about for name, preset in PRESETS.items()}
    console.print(_table("Presets, for `esgroup compare --preset`", presets))
    for kind, failures in (("problems", known().failures), ("methods", methods.failures())):
        for entry, why in failures.items():
            Console(stderr=True).print(Text(f"{kind} of {entry} could not be loaded: {why}", style="yellow"))


def _table(title: str, entries: Mapping[str, str], first: str = "name") -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    table.add_column("what it is")
    for name, text in entries.items():
        table.add_row(name, Text(text))  # brackets are not markup
    return table


def _problems() -> dict[str, str]:
    makers, told = known().makers, {}
    for name, group in families(makers).items():
        told[name] = " ... ".join(summary(makers[one]) for one in dict.fromkeys((group[0], group[-1])))
    return told | {"MODULE:FUNCTION": "your own f(x); also pass the number of variables"}


def _structures(dim: int) -> Table:
    table = _table(f"Structures in dimension {dim:,}, by how many numbers they store", {}, "spelling")
    table.add_column("numbers", justify="right")
    for group in sorted((parse(name, dim) for name in SPELLINGS), key=lambda group: group.size):
        doc = Text((group.__doc__ or "").strip().partition("\n")[0])
        table.add_row(spell(group), doc, f"{group.size:,}")
    return table


def _methods() -> dict[str, str]:
    told = {}
    for name, method in methods.known().items():
        missing = method.missing()
        told[name] = method.about + (f" ({missing})" if missing else "")
    return told | {"MODULE:NAME": "your own, an esgroup.compare.methods.Method"}
