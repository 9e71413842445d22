"""The figure of the structured Newton experiment: f over the iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Array, Table
from reproduction.figures import drawing, headed

COLORS = {
    "Hs-low": drawing.COLORS[0],
    "moving block": drawing.COLORS[2],
    "diagonal": drawing.COLORS[7],
    "BFGS": drawing.COLORS[1],
    "Adam": drawing.COLORS[4],
}
TITLES = {"rosenbrock": "Rosenbrock", "dixon_price": "Dixon-Price"}


def figure(table: Table, path: Path) -> None:
    note = "f over the iterations, one run each; a line that ends above the dotted one was not solved"
    cases = table.cases("path")
    with drawing.plain():
        made = headed("Structured Newton's method: it depends on the start", note, 10.0, 3.7)
        for axes, case in zip(made.subplots(1, len(cases), sharey=True), cases, strict=True):
            _panel(axes, table, case)
        drawing.name_axis(made.axes[0].yaxis, "f")
        drawing.save(made, path)


def _panel(axes: Any, table: Table, case: str) -> None:
    function, kind = case.split(", ", 1)
    goal = table.value("target", case, "")
    axes.set(xscale="log", yscale="log", xlim=(1, 12_000), ylim=(goal / 3, 3e3))
    axes.axhline(goal, color=drawing.INK, alpha=0.5, linewidth=1, linestyle=":")
    names = table.series("path", case)
    ends = {}
    for name in names:
        x, y = table.curve("path", case, name)
        axes.plot(x[1:], np.maximum(y[1:], goal / 2), color=COLORS[name], linewidth=1.8)
        axes.plot(x[-1:], np.maximum(y[-1:], goal / 2), color=COLORS[name], marker="o", markersize=4)
        ends[name] = (x[-1], max(y[-1], goal / 2))
    _label(axes, table, case, ends, goal)
    drawing.notebook(axes, f"{TITLES[function]} from {kind}")
    axes.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")
    drawing.name_axis(axes.xaxis, "iterations")


def _label(axes: Any, table: Table, case: str, ends: dict[str, tuple[float, float]], goal: float) -> None:
    """Names at the ends that are above the target, and beside the last parts of the others, on three levels.

    White behind the letters keeps them readable where another line passes.
    """
    behind = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    look = {"fontsize": 8.5, "textcoords": "offset points", "bbox": behind}
    arrived = sorted((name for name in ends if ends[name][1] <= goal), key=lambda name: ends[name][0])
    for i, name in enumerate(arrived):
        x, y = table.curve("path", case, name)
        level = goal * (4.0, 40.0, 400.0)[i % 3]
        at = _crossing(x, y, level)
        axes.annotate(name, (at, level), xytext=(4, 0), va="center", color=COLORS[name], **look)
    lost = sorted((name for name in ends if ends[name][1] > goal), key=lambda name: ends[name][1])
    for name, height in zip(lost, _apart([ends[name][1] for name in lost]), strict=True):
        axes.annotate(name, (ends[name][0], height), xytext=(5, 0), va="center", color=COLORS[name], **look)


def _crossing(x: Array, y: Array, level: float) -> float:
    """Where a falling line goes below a level for the last time."""
    above = np.flatnonzero(y > level)
    return float(x[min(above[-1] + 1, len(x) - 1)]) if above.size else 1.0


def _apart(heights: list[float], factor: float = 4.0) -> list[float]:
    """Rising heights moved up until each is that many times the one below."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] * factor) if placed else height)
    return placed
