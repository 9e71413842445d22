"""The figure of a check of derivatives: remainders against the step."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.gradients.derivative_report import DerivativeReport
from esgroup.gradients.taylor import Remainders
from esgroup.plots.style import GRID, INK, PALE, RULE, check_out, new_figure


def draw(report: DerivativeReport, out: str | PathLike[str]) -> Path:
    """One panel for each remainder: its directions, rounding, and the power of h that it should follow."""
    path = check_out(out)
    panels = report.remainders
    figure = new_figure(1.0 + 3.6 * max(1, len(panels)), 3.7)
    for k, found in enumerate(panels):
        _panel(figure.add_subplot(1, len(panels), k + 1), found)
    word = "right" if report.ok else "wrong"
    title = f"derivatives in {report.dim:,} coordinates: {word}"
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color="#222222")
    figure.savefig(path, dpi=150)
    return path


def _panel(axes: Any, found: Remainders) -> None:
    h = found.steps
    for k, (values, floors) in enumerate(zip(found.values, found.floors, strict=True)):
        _line(axes, h, floors, color=PALE, linewidth=0.8, label="rounding" if k == 0 else None)
        name = found.fall if k == 0 else None
        _line(axes, h, values, color=INK, linewidth=1.1, marker=".", markersize=4, label=name)
    _expected(axes, found)
    axes.set(xscale="log", yscale="log" if axes.lines else "linear")
    axes.set_title(found.name, loc="left", fontsize=9.5, color="#222222")
    axes.set_xlabel("step h", fontsize=9.5, color="#222222")
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(colors="#555555", labelsize=8.5, which="both")
    if axes.lines:
        axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor="#444444")


def _line(axes: Any, h: Array, values: Array, **style: Any) -> None:
    """What a logarithm can show."""
    seen = np.isfinite(values) & (values > 0)
    if seen.any():
        axes.loglog(h[seen], values[seen], **style)


def _expected(axes: Any, found: Remainders) -> None:
    """A line h^order through the largest remainder of the first direction."""
    h, values = found.steps, found.values[0]
    seen = np.flatnonzero(np.isfinite(values) & (values > 0))
    if len(seen):
        line = values[seen[0]] * (h / h[seen[0]]) ** found.order
        shown = line > axes.get_ylim()[0]
        style = {"color": RULE, "linewidth": 1.2, "linestyle": (0, (4, 3))}
        axes.loglog(h[shown], line[shown], label=f"should fall as h^{found.order}", **style)
