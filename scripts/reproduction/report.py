"""The page about all experiments, from the files of their runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from reproduction.experiment import Experiment, read_rows
from reproduction.pages import page

_HEAD = """# The paper's experiments, run again

The paper's experiments were run again with this library. Each claim has a verdict, which is computed from the numbers
of its run, and a sentence. "Holds, under conditions" means that it depends on something, mostly a step or a start: the
paper gives few of them. "Undecided" means that the runs do not tell. The numbers, and how they came about, are in the
folds below each table.

`scripts/run scripts/reproduce.py NAME` runs an experiment, and `scripts/run scripts/reproduce.py report` writes
this page from the files of the runs. The network needs more packages: `ESGROUP_EXTRAS="torch sim" scripts/run
scripts/reproduce.py cnn`.
"""


def write_report(
    experiments: Sequence[Experiment], planned: dict[str, str], runs: Path, target: Path, figures: Path
) -> list[str]:
    """Write the page and its figures, and return the names of the experiments that were not run here.

    These stay on the page as they are, or have a place there if it does not have them yet.
    """
    sections, summary, missing = [], [], []
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    figures.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        source = runs / experiment.name / f"{experiment.name}.csv"
        if not source.exists():
            missing.append(experiment.name)
            sections.append(_section(before, experiment.title) or _absent(experiment.name, experiment.about))
            summary += [line for line in before.splitlines() if line.startswith(f"| [{experiment.name}](#")]
            continue
        table, image = read_rows(source), figures / f"reproduce-{experiment.name}.png"
        experiment.figure(table, image)
        sections.append(page(experiment, table, _link(image, target), level=2))
        words = [verdict.word.split(" when")[0] for verdict in experiment.verdicts(table)]
        conditional = sum(v.word.startswith("holds when") for v in experiment.verdicts(table))
        plain, fails = words.count("holds") - conditional, words.count("does not hold")
        counts = f"{plain} | {conditional} | {fails} | {words.count('undecided')}"
        summary.append(f"| [{experiment.name}](#{_anchor(experiment.title)}) | {counts} |")
    known = {experiment.name for experiment in experiments}
    for name, about in planned.items():
        if name not in known:
            missing.append(name)
            sections.append(_absent(name, about))
    titles = "| experiment | holds | under conditions | does not hold | undecided |"
    head = [_HEAD, titles, "|---|---|---|---|---|", *summary, ""]
    target.write_text("\n".join([*head, *sections]), encoding="utf-8")
    return missing


def _section(text: str, title: str) -> str:
    """A section of the page, from its title to the next one, or nothing."""
    _, found, rest = text.partition(f"\n## {title}\n")
    own, _, _ = rest.partition("\n## ")
    return f"## {title}\n{own}" if found else ""


def _absent(name: str, about: str) -> str:
    return f"## {name}\n\n{about}\n\nNot run yet.\n"


def _link(image: Path, target: Path) -> str:
    return Path(os.path.relpath(image, target.parent)).as_posix()


def _anchor(title: str) -> str:
    """GitHub's: lower case, hyphens for spaces, and no punctuation."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")
