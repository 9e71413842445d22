"""The figure of several runs: best value over evaluations, made from their history files only."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.files.autosave import must_differ
from esgroup.files.outage import naming
from esgroup.plots.axes import drawable, head, log_scale, notebook, positive, shift, short, thinned
from esgroup.plots.style import LINES, check_out, new_figure
from esgroup.running.history import Recorded, read

STYLES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))  # where there are more runs than colors
MOST_INSIDE = 8  # names in a legend inside the panel; longer legends are next to it
LONGEST_NAME, LONGEST_TITLE = 60, 90  # letters


def overlay(histories: Sequence[str | PathLike[str]], out: str | PathLike[str]) -> Path:
    """Draw the best values of several runs over their evaluations, one color for each history.

    With constraints, a line is dotted and thin until there is a feasible point. Needs matplotlib, from the extra
    "plot".

    Parameters
    ----------
    histories
        Files written by `minimize(..., history=...)`, at least one.
    out
        Path of the figure, ending in .png, .svg or .pdf.

    Returns
    -------
    Path
        `out` as a path.

    Raises
    ------
    ValueError
        If there is no history, a file is not a history, or `out` is one of the files, has another suffix or is in a
        folder that does not exist.
    ImportError
        If matplotlib is not installed.
    """
    path = check_out(out)
    if not histories:
        raise ValueError("histories must be at least one file, got none")
    for history in histories:
        must_differ({"histories": history, "out": out})
    runs = [read(history) for history in histories]
    figure = new_figure(9.0, 5.4)
    draw(figure, runs, names([Path(history) for history in histories]))
    with naming(path):
        figure.savefig(path, dpi=150)
    return path


def names(paths: Sequence[Path]) -> list[str]:
    """A name for each file: the shortest end of its path that distinguishes all files."""
    plain = [path.with_suffix("").parts for path in paths]
    longest = max(len(parts) for parts in plain)
    for length in range(1, longest + 1):
        short = ["/".join(parts[-length:]) for parts in plain]
        if len(set(short)) == len(set(paths)):
            return short
    return [str(path) for path in paths]  # they differ only in their suffix


def draw(figure: Any, runs: Sequence[Recorded], labels: Sequence[str]) -> None:
    """Draw the runs into an empty figure."""
    axes = figure.add_subplot()
    everything = drawable(np.concatenate([run.best_f for run in runs]))
    zero, name = shift(everything)
    for i, (run, label) in enumerate(zip(runs, labels, strict=True)):
        style = {"color": LINES[i % len(LINES)], "linestyle": STYLES[i // len(LINES) % len(STYLES)]}
        _line(axes, run, positive(drawable(run.best_f) - zero), short(label, LONGEST_NAME), style)
    log_scale(axes, everything - zero)
    axes.set_ylabel(name)
    notebook(axes, 1.02 * max(run.nfev[-1] for run in runs), named=True)
    place = {"loc": "best"} if len(runs) <= MOST_INSIDE else {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    legend = axes.legend(framealpha=0.85, edgecolor="none", fontsize=9, labelcolor="#333333", **place)
    for text in legend.get_texts():
        text.set_parse_math(False)  # the name of a file may have dollar signs
    if not np.isfinite(everything).any():
        axes.text(0.5, 0.5, "no finite value so far", transform=axes.transAxes, ha="center", color="#777777")
    head(figure, [run.header for run in runs], LONGEST_TITLE)


def _line(axes: Any, run: Recorded, values: Any, label: str, style: dict[str, Any]) -> None:
    """Draw one run; a dot marks its last value, so that the end of a short line is visible."""
    keep = thinned(len(values))
    x, y, feasible = run.nfev[keep], values[keep], run.feasible[keep]
    if not feasible.all():
        axes.plot(x, np.where(feasible, np.nan, y), **style | {"linewidth": 1.0, "linestyle": (0, (1, 1.5))})
    axes.plot(x, np.where(feasible, y, np.nan), linewidth=1.8, label=label, **style)
    known = np.flatnonzero(np.isfinite(y))
    if len(known):
        axes.plot(x[known[-1]], y[known[-1]], marker="o", markersize=4.5, color=style["color"])
