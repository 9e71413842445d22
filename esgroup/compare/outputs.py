"""The files that a comparison ends with: table.md, the figures and index.html."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from esgroup.compare import drawing, figures, summary, table
from esgroup.compare.folder import Folder, replace_text
from esgroup.compare.page import About, Picture, page
from esgroup.compare.relative import measured

_LIBRARIES = {"matplotlib": "matplotlib", "jinja2": "Jinja2"}


def check_libraries() -> None:
    """Refuse to begin what could not be shown in the end."""
    absent = [name for module, name in _LIBRARIES.items() if find_spec(module) is None]
    if absent:
        raise ImportError(f"a comparison needs {' and '.join(absent)}: pip install 'esgroup[compare]'")


def write(folder: Folder, title: str, about: About) -> str:
    """Write all of them, from the runs alone; gives the table in brief."""
    runs, reference, here = measured(folder.runs), folder.plan.reference, folder.path
    rows, totals = summary.summarise(runs, reference), summary.overall(runs, reference)
    text = f"# {title}\n\n{table.markdown(rows, reference, totals)}\n{_made_by(about)}"
    replace_text(here / "table.md", text)
    drawn = {"profile": figures.profile(runs)}
    drawn |= {str(figure.get_label()): figure for figure in figures.convergence(runs)}
    for name, figure in drawn.items():
        for suffix in (".png", ".svg"):
            drawing.save(figure, here / f"{name}{suffix}")
    pictures = [_picture(name, figure, summary.methods(runs)) for name, figure in drawn.items()]
    replace_text(here / "index.html", page(title, rows, totals, pictures, about, reference))
    return table.brief(rows, reference, totals)


def _made_by(about: About) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
    return f"Made by `{about.command}` on {about.date}, with {versions}."


def _picture(name: str, figure: Any, methods: list[str]) -> Picture:
    curves = f"One curve each for {', '.join(methods)}."
    if name == "profile":
        title = "Runtime profiles: the share of targets that are reached, over evaluations per dimension"
        alt = f"{title}. {curves} The higher a curve, the more targets are reached within so many evaluations."
    else:
        title = "Convergence: the best value so far, medians and quartiles over the seeds"
        alt = f"{title}, a panel for each problem. {curves} The further down and to the left, the better."
    return Picture(title, alt, drawing.to_svg(figure))
