"""The paper's experiments again: `python scripts/reproduce.py NAME` runs one, `report` writes the page about all.

    python scripts/reproduce.py fig1                     reproduction/fig1/fig1.csv, .png and .md
    python scripts/reproduce.py nearness --quick         a try of seconds, not a result
    python scripts/reproduce.py report                   docs/paper/reproduction.md from what lies in reproduction/

Each experiment is a file in scripts/reproduction. It writes its numbers to a CSV file; figure and verdicts are made
from that file only.
"""
# extras: plot

# A folder of results has the name of the package: with it there, the order of imports would be another.
# isort: skip_file
from __future__ import annotations

import spaces_threads  # noqa: F401  # before NumPy is imported

import sys
from pathlib import Path
from typing import Annotated

import typer
from reproduction import EXPERIMENTS, PLANNED
from reproduction.experiment import Experiment, Plan
from reproduction.pages import draw_and_judge, perform
from reproduction.report import write_report

HERE = Path(__file__).parent
FOLDER = Path("reproduction")

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True, rich_markup_mode=None)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


Quick = Annotated[bool, typer.Option("--quick", help="a size for tests, done in seconds")]
Out = Annotated[Path | None, typer.Option(help="folder of the files [default: reproduction/NAME]")]
Seed = Annotated[int, typer.Option(min=0, help="of data and samples")]
Draw = Annotated[bool, typer.Option("--draw", help="figure and verdicts only, from the CSV file there")]
Jobs = Annotated[int, typer.Option(min=1, help="processes, of one thread each")]
Data = Annotated[str | None, typer.Option(help="'digits', or a folder with Fashion-MNIST, CIFAR-10 or STL-10")]


def add_command(experiment: Experiment) -> None:
    """`reproduce.py NAME` for one experiment."""

    def command(quick: Quick = False, out: Out = None, seed: Seed = 0, draw: Draw = False) -> None:
        _run(experiment, out, draw, Plan(quick, seed, say))

    def resumable(
        quick: Quick = False, out: Out = None, seed: Seed = 0, draw: Draw = False, jobs: Jobs = 1, data: Data = None
    ) -> None:
        _run(experiment, out, draw, Plan(quick, seed, say, jobs=jobs, data=data))

    app.command(experiment.name, help=experiment.about)(resumable if experiment.resumable else command)


def _run(experiment: Experiment, out: Path | None, draw: bool, plan: Plan) -> None:
    folder = FOLDER / experiment.name if out is None else out
    try:
        table = draw_and_judge(experiment, folder) if draw else perform(experiment, plan, folder)
    except (FileNotFoundError, ImportError) as error:  # data or packages of the user, which the message names
        say(f"{experiment.name}: {error}")
        raise typer.Exit(1) from error
    for verdict in experiment.verdicts(table):
        typer.echo(f"{verdict.word}: {verdict.claim}\n    {verdict.why}")
    say(f"written to {folder}")


for _experiment in EXPERIMENTS:
    add_command(_experiment)


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="where the folders of the experiments are")] = FOLDER,
    page: Annotated[Path, typer.Option(help="the page")] = HERE.parent / "docs" / "paper" / "reproduction.md",
    figures: Annotated[Path, typer.Option(help="folder of its figures")] = HERE.parent / "docs",
) -> None:
    """Write the page about all experiments from the files of their runs."""
    missing = write_report(EXPERIMENTS, PLANNED, out, page, figures)
    for name in missing:
        say(f"{name}: no run in {out / name}, stays as it is on the page")
    say(f"written to {page}")


if __name__ == "__main__":
    app()
