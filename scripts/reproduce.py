"""The paper's experiments again: `python scripts/reproduce.py NAME` runs one, `report` writes the page about all.

    python scripts/reproduce.py fig1                     reproduction/fig1/fig1.csv, .png and .md
    python scripts/reproduce.py nearness --quick         a try of seconds, not a result
    python scripts/reproduce.py report                   scripts/REPRODUCTION.md from what lies in reproduction/

Each experiment is a file in scripts/reproduction. It writes its numbers to a CSV file; figure and verdicts are made
from that file only.
"""

# A folder of results has the name of the package: with it there, the order of imports would be another.
# isort: skip_file
from __future__ import annotations

import spaces_threads  # noqa: F401  # before NumPy is imported

import sys
from pathlib import Path
from typing import Annotated

import typer
from reproduction import EXPERIMENTS, PLANNED
from reproduction.experiment import Experiment, Plan, draw_and_judge, perform
from reproduction.report import write_report

HERE = Path(__file__).parent
FOLDER = Path("reproduction")

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True, rich_markup_mode=None)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def add_command(experiment: Experiment) -> None:
    """`reproduce.py NAME` for one experiment."""

    def command(
        quick: Annotated[bool, typer.Option("--quick", help="a size for tests, done in seconds")] = False,
        out: Annotated[Path | None, typer.Option(help="folder of the files [default: reproduction/NAME]")] = None,
        seed: Annotated[int, typer.Option(min=0, help="of data and samples")] = 0,
        draw: Annotated[bool, typer.Option("--draw", help="figure and verdicts only, from the CSV file there")] = False,
    ) -> None:
        folder = FOLDER / experiment.name if out is None else out
        if draw:
            table = draw_and_judge(experiment, folder)
        else:
            table = perform(experiment, Plan(quick, seed, say), folder)
        for verdict in experiment.verdicts(table):
            typer.echo(f"{verdict.word}: {verdict.claim}\n    {verdict.why}")
        say(f"written to {folder}")

    app.command(experiment.name, help=experiment.about)(command)


for _experiment in EXPERIMENTS:
    add_command(_experiment)


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="where the folders of the experiments are")] = FOLDER,
    page: Annotated[Path, typer.Option(help="the page")] = HERE / "REPRODUCTION.md",
    figures: Annotated[Path, typer.Option(help="folder of its figures")] = HERE.parent / "docs",
) -> None:
    """Write the page about all experiments from the files of their runs."""
    missing = write_report(EXPERIMENTS, PLANNED, out, page, figures)
    for name in missing:
        say(f"{name}: no run in {out / name}")
    say(f"written to {page}")


if __name__ == "__main__":
    app()
