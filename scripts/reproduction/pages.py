"""An experiment in Markdown: its figure, a verdict and a sentence on each claim, and the numbers, which fold away.

The folds are HTML, which both GitHub and Sphinx show; between their tags is Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reproduction.experiment import Experiment, Plan, Table, Verdict, plan_rows, read_rows, write_rows
from reproduction.readings import kind, reading


def page(experiment: Experiment, table: Table, image: str, level: int = 1) -> str:
    """Return the verdicts of a run in Markdown, with its figure."""
    verdicts, notes = experiment.verdicts(table), experiment.notes(table)
    return laid_out(experiment, how(experiment, table), verdicts, notes, image, level)


def laid_out(
    experiment: Experiment, command: str, verdicts: Sequence[Verdict], notes: Sequence[str], image: str, level: int = 1
) -> str:
    """Return the page from its parts: how it was run, verdicts, notes (which may end with a table), a figure."""
    lines = [f"{'#' * level} {experiment.title}", "", experiment.about, "", f"![{experiment.title}]({image})", ""]
    lines += ["| claim | verdict | what was found |", "|---|---|---|"]
    lines += [_row(v.claim, f"**{kind(v)}**", reading(experiment.name, v)) for v in verdicts]
    measured = ["| claim | verdict | measured |", "|---|---|---|", *(_row(v.claim, v.word, v.why) for v in verdicts)]
    lines += ["", *_fold("The numbers behind these verdicts", measured)]
    lines += ["", *_fold("How it was run", [command, *(("", *_listed(notes)) if notes else ())])]
    return "\n".join(lines) + "\n"


def _listed(notes: Sequence[str]) -> list[str]:
    """Notes as a list; a table in a note is moved out of the list, and a new list begins after it."""
    lines: list[str] = []
    for note in notes:
        text, _, rest = note.partition("\n\n")
        lines += [f"- {text}", *(("", rest, "") if rest else ())]
    return lines


def _fold(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def how(experiment: Experiment, table: Table) -> str:
    """Return a sentence with the command of the run, its size and the versions."""
    quick, seed = (table.value("run", "", name) for name in ("quick", "seed"))
    flags = " --quick" * bool(quick) + f" --seed {seed:.0f}" * bool(seed)
    versions = ", ".join(f"{row.series} {row.case}" for row in table.where("version").rows)
    size = "A quick try, not a result" if quick else "Full size"
    return f"{size}: `scripts/run scripts/reproduce.py {experiment.name}{flags}` ({versions})."


# ---- files ----------------------------------------------------------------------------------------------------------


def perform(experiment: Experiment, plan: Plan, folder: Path) -> Table:
    """Run, and write NAME.csv, then NAME.png and NAME.md from the CSV file."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [*plan_rows(plan), *experiment.run(replace(plan, folder=folder))]
    write_rows(folder / f"{experiment.name}.csv", rows)
    return draw_and_judge(experiment, folder)


def draw_and_judge(experiment: Experiment, folder: Path) -> Table:
    """Figure and verdicts again, from the CSV file of a run."""
    table = read_rows(folder / f"{experiment.name}.csv")
    experiment.figure(table, folder / f"{experiment.name}.png")
    (folder / f"{experiment.name}.md").write_text(page(experiment, table, f"{experiment.name}.png"), encoding="utf-8")
    return table
