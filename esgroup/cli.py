"""The command `esgroup`. Every command imports what it needs when it is called, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="Black-box search with evolution strategies whose search distributions have structure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from esgroup import __version__

        typer.echo(f"esgroup {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_structures(
    dim: Annotated[int, typer.Option(min=1, help="Dimension for which the stored numbers are counted.")] = 100,
) -> None:
    """List the structures that have a spelling."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from esgroup.groups import SPELLINGS, parse, spell

    table = Table(title=f"Structures in dimension {dim:,}, by the numbers that each stores", title_justify="left")
    table.add_column("spelling", no_wrap=True)
    table.add_column("what it is")
    table.add_column("numbers", justify="right")
    for group in sorted((parse(name, dim) for name in SPELLINGS), key=lambda group: group.size):
        summary = Text((group.__doc__ or "").strip().partition("\n")[0])  # brackets are matrices, not markup
        table.add_row(spell(group), summary, f"{group.size:,}")
    console = Console()
    console.print(table)
    console.print(
        "Sizes may be left out; ',upper' turns a triangle round. Sparse, Kronecker, BlockDiagonal and Conjugate are "
        "composed in Python, from esgroup.groups.",
        highlight=False,
    )


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 1,
    max_evals: Annotated[int, typer.Option(min=1, help="Evaluations that each structure may use.")] = 40_000,
) -> None:
    """Search one narrow valley with three structures: a first look, a few seconds."""
    from esgroup.demo import main

    main(seed=seed, max_evals=max_evals)
