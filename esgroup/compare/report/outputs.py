"""The files of a report: table.md, the figures and index.html."""

from __future__ import annotations

import platform
from datetime import date
from importlib.util import find_spec
from typing import Any

from esgroup.compare.execution import EVALS_PER_COORDINATE, installed
from esgroup.compare.folder import Folder
from esgroup.compare.report import drawing, figures, summary, table
from esgroup.compare.report.page import About, Picture, page
from esgroup.compare.report.summary import measured
from esgroup.compare.workers import duration
from esgroup.files.replacing import replace_text
from esgroup.problem_registry import find

_LIBRARIES = {"matplotlib": "matplotlib", "jinja2": "Jinja2"}


def check_libraries() -> None:
    """Raise ImportError if a package that the report needs is missing."""
    absent = [name for module, name in _LIBRARIES.items() if find_spec(module) is None]
    if absent:
        raise ImportError(f"a comparison needs {' and '.join(absent)}: pip install 'esgroup[compare]'")


def write(folder: Folder, title: str, command: str) -> str:
    """Write all files of a report, and return the short table for the terminal.

    Parameters
    ----------
    folder
        The folder of the comparison, with its runs.
    title
        Heading of the table and the page.
    command
        The command line that made the comparison.

    Raises
    ------
    ValueError
        If the folder has no runs of its reference, or runs that do not belong together.
    """
    about = _about(folder, command)
    runs, reference, here = measured(folder.runs), folder.plan.reference, folder.path
    try:
        rows, totals = summary.summarize(runs, reference), summary.overall(runs, reference)
    except ValueError as error:  # of runs that are missing, or do not belong together
        raise ValueError(f"{here / 'runs.csv'}: {error}") from error
    scaled = {case: _scaled(*case) for case in summary.blocks(runs)}
    rows = [row._replace(scaled=scaled[row.problem, row.dim]) for row in rows]
    versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
    made = f"Made by `{about.command}` on {about.date}, with {versions}."
    text = f"# {title}\n\n{table.markdown(rows, reference, totals)}\n{made}\n"
    replace_text(here / "table.md", text)
    drawn = {"profile": figures.profile(runs)}
    drawn |= {str(figure.get_label()): figure for figure in figures.convergence(runs, scaled)}
    for name, figure in drawn.items():
        for suffix in (".png", ".svg"):
            drawing.save(figure, here / f"{name}{suffix}")
    pictures = [_picture(name, figure, summary.methods(runs)) for name, figure in drawn.items()]
    replace_text(here / "index.html", f"{page(title, rows, totals, pictures, about, reference)}\n")
    return table.markdown(rows, reference, totals, brief=True)


def _scaled(problem: str, dim: int) -> str:
    """By what factor a problem differs from the usual one; empty if it does not, or no longer exists."""
    if ":" in problem:  # a user's function, which is not imported again
        return ""
    try:
        return str(find(problem, dim).scaled)
    except Exception:  # of whatever package offers it
        return ""


def _about(folder: Folder, command: str) -> About:
    settings, runs = folder.plan.settings, folder.runs
    packages = ("esgroup", "numpy", "scipy")
    versions = {"Python": platform.python_version(), **{name: installed(name) for name in packages}}
    words = dict.fromkeys(word for run in runs for word in run.versions.split(", ") if word)
    for name, _, number in (word.partition(" ") for word in words):
        known = versions.setdefault(name, number)
        if number not in known.split(" and "):
            versions[name] = f"{known} and {number}"
    budget = f"{EVALS_PER_COORDINATE:,} per variable" if settings.max_evals is None else f"{settings.max_evals:,}"
    return About(
        command=command,
        versions=versions,
        settings={
            "evaluations per run, at most": budget,
            "seconds per run, at most": f"{settings.max_time:g}",
            "targets": ", ".join(f"{target:g}" for target in settings.targets or ()) or "default",
            "starts": settings.starts,
            "seeds": ", ".join(map(str, folder.plan.seeds)),
        },
        date=date.today().isoformat(),
        cpu=duration(sum(run.cpu for run in runs)),
        runs=len(runs),
        failures=sum(run.failed for run in runs),
    )


def _picture(name: str, figure: Any, methods: list[str]) -> Picture:
    curves = f"One curve each for {', '.join(methods)}."
    if name == "profile":
        title = "Runtime profiles: the share of targets that are reached, over evaluations per dimension"
        alt = f"{title}. {curves} The higher a curve, the more targets are reached within so many evaluations."
    else:
        title = "Convergence: the best value so far, medians and quartiles over the seeds"
        alt = f"{title}, a panel for each problem. {curves} The further down and to the left, the better."
    width = 96.0 * figure.get_figwidth()  # CSS pixels are 1/96 inch
    return Picture(title, alt, drawing.to_svg(figure), drawing.panels(figure), round(float(width), 1))
