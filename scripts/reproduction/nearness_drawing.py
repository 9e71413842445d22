"""The figure of the metric nearness experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from esgroup.compare.report import drawing
from reproduction.experiment import Array, Table
from reproduction.figures import INK, headed, label_at

LOWEST = 1e-14  # below that, rounding
COLORS = {
    "RGD": drawing.COLORS[5],
    "our-mean": drawing.COLORS[0],
    "our-rep": drawing.COLORS[2],
    "our-fixed-rep": drawing.COLORS[3],
    "Adam, Cholesky": drawing.COLORS[1],
    "Adam, logarithm": drawing.COLORS[4],
}
# Differences from RGD: their labels, at which point, and where, in points from there.
ORDERS = {
    ("one iteration", "h, geodesic"): ("one iteration, RGD\nalong the geodesic", 2, (8, -24)),
    ("one iteration", "h, retraction"): ("one iteration,\nthe paper's RGD", 1, (-8, 4)),
    ("100 iterations", "h, geodesic"): ("100 iterations", 2, (-8, 4)),
}
# The losses at which lines have their labels; the others have them at their ends.
UNSTEADY = ("Adam, Cholesky",)  # labeled at the highest point of its second half
LEVELS = {"RGD": 3e-12, "our-mean": 1e-13, "our-rep": 1e-13, "Adam, logarithm": 1e-13}


def color(name: str) -> str:
    return COLORS[name.split(", n")[0]]


def figure(table: Table, path: Path) -> None:
    seeds = len(table.cases("test loss"))
    note = f"Test loss at the mean. Thin: {seeds} seeds; thick: medians. Steps tuned on other seeds"
    with drawing.plain():
        made = headed("Metric nearness: a positive-definite matrix from mini-batches", note, 9.0, 4.3)
        left, right = made.subplots(1, 2, width_ratios=(1.7, 1))
        _losses(left, table)
        _order(right, table)
        drawing.save(made, path)


def _losses(axes: Any, table: Table) -> None:
    axes.set(yscale="log", ylim=(LOWEST, 200))
    names = table.series("test loss")
    for name in names:
        curves = [table.curve("test loss", case, name) for case in table.cases("test loss")]
        x, middle = curves[0][0], np.median([y for _, y in curves], axis=0)
        look = {"color": color(name), "zorder": 3 if name != "RGD" else 2}
        for _, y in curves:
            axes.plot(*_shown(x, y), linewidth=0.7, alpha=0.35, **look)
        dashes = {"linestyle": (0, (4, 2)), "linewidth": 4.5, "alpha": 0.6} if name == "RGD" else {"linewidth": 2.0}
        axes.plot(*_shown(x, middle), **dashes, **look)
        end = len(x) // 2 + int(np.argmax(middle[len(x) // 2 :])) + 1 if name in UNSTEADY else len(x)
        label_at(axes, x[:end], middle[:end], name, color(name), LEVELS.get(name, 0.0))
    axes.set_xlim(0, x[-1])
    drawing.notebook(axes, "")
    axes.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")
    drawing.name_axis(axes.xaxis, "iterations")
    drawing.name_axis(axes.yaxis, "test loss")


def _shown(x: Array, y: Array) -> tuple[Array, Array]:
    """Up to where it first falls below the axis."""
    low = np.flatnonzero(y < LOWEST)
    end = int(low[0]) + 1 if low.size else len(y)
    return x[:end], np.maximum(y[:end], LOWEST)


def _order(axes: Any, table: Table) -> None:
    axes.set(xscale="log", yscale="log")
    for i, ((case, series), (label, point, offset)) in enumerate(ORDERS.items()):
        x, y = table.curve("order", case, series)
        shade = drawing.COLORS[(0, 5, 7)[i]]
        axes.plot(x, y, color=shade, marker=drawing.MARKERS[i], markersize=4)
        look = {"textcoords": "offset points", "fontsize": 8.5, "ha": "right" if offset[0] < 0 else "left"}
        axes.annotate(label, (x[point], y[point]), xytext=offset, color=shade, **look)
    x, y = table.curve("order", "one iteration", "h, geodesic")
    guide = y[-1] / 300 * (x / x[-1]) ** 3
    axes.plot(x, guide, color=INK, alpha=0.5, linewidth=1, linestyle=":")
    axes.annotate("slope 3", (x[2], guide[2]), xytext=(6, -8), textcoords="offset points", fontsize=8.5, color=INK)
    drawing.notebook(axes, "our-mean (h) against RGD, relative")
    axes.set_xticks(x, [f"{rate:g}" for rate in x])
    drawing.name_axis(axes.xaxis, "step")
