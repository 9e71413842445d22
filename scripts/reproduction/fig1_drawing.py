"""The figure of the invariance experiment: paths over the surface, and the gap over the iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from esgroup.compare.report import drawing
from reproduction.experiment import Table
from reproduction.figures import INK, headed, label_at

OURS, NGD, GD = drawing.COLORS[0], drawing.COLORS[2], drawing.COLORS[1]
FLOOR = 1e-12


# Beside which line, the gap at which the line is met, and the angle: steep lines leave room for steep text only.
GAP_LABELS = {
    "GD in log σ": (1e-8, -78.0),
    "GD in σ": (3e-6, -80.0),
    "GD in σ²": (1e-9, -83.0),
    "GD in log σ²": (1e-5, 0.0),
    "GD in 1/σ²": (0.0, 0.0),
    "ours, covariance, Exp": (1e-10, 0.0),
}
# Beside which point of a path, and where, in points from there.
PATH_LABELS = {
    "GD in σ²": (1, (4, 6)),
    "GD in σ": (1, (4, 6)),
    "GD in log σ": (3, (-34, 12)),
    "GD in log σ²": (9, (9, -6)),
    "GD in 1/σ²": (2, (-18, -13)),
    "ours, covariance, Exp": (20, (-30, 12)),
}


def figure(table: Table, path: Path) -> None:
    (case,) = table.cases("gap")
    start, beta = case.split(", ")
    note = f"Step {beta}, {start} start. Thick blue: our four variants and NGD in log σ. Green: NGD in σ, σ², 1/σ²"
    with drawing.plain():
        made = headed("Gradient descent depends on the parameter of the scale", note, 9.0, 4.0)
        left, right = made.subplots(1, 2)
        _paths(left, table, case)
        _gaps(right, table, case)
        drawing.save(made, path)


def _look(name: str) -> dict[str, Any]:
    if name.startswith("ours"):
        return {"color": OURS, "linewidth": 4.5, "zorder": 3}
    return {"color": NGD if name.startswith("NGD") else GD, "linewidth": 1.2, "zorder": 4}


def _text(name: str) -> str:
    return name if name.startswith("GD") else "all NGD"


def _kept(table: Table, case: str) -> list[str]:
    """Those with a line of their own: NGD in logarithms is ours, and GD in log 1/σ² is GD in log σ²."""
    hidden = ("NGD in log σ", "NGD in log σ²", "NGD in log 1/σ²", "GD in log 1/σ²")
    return [name for name in table.series("gap", case) if name not in hidden]


def _paths(axes: Any, table: Table, case: str) -> None:
    rows = table.where("surface").rows
    means = np.array(sorted({row.x for row in rows}))
    logs = np.array([float(c) for c in table.cases("surface")])
    gaps = np.array([row.value for row in rows]).reshape(len(logs), len(means))
    axes.contour(means, logs, gaps, levels=np.geomspace(0.01, 300, 12), colors=INK, alpha=0.18, linewidths=0.7)
    for name in _kept(table, case):
        _, x = table.curve("mean", case, name)
        _, y = table.curve("log sigma", case, name)
        axes.plot(x, y, **_look(name), marker="o" if name.startswith("GD") else None, markersize=2.4)
        if name in PATH_LABELS:
            point, offset = PATH_LABELS[name]
            point = min(point, len(x) - 1)
            look = {"color": _look(name)["color"], "fontsize": 8.5, "textcoords": "offset points"}
            axes.annotate(_text(name), (x[point], y[point]), xytext=offset, **look)
    best = [table.value("optimum", "", name) for name in ("mean", "log sigma")]
    axes.plot(*best, marker="*", markersize=12, color=INK, zorder=5)
    axes.set(xlim=(means.min(), means.max()), ylim=(logs.min(), logs.max()))
    drawing.notebook(axes, "paths, contours of the ELBO, and its maximum")
    drawing.name_axis(axes.xaxis, "μ")
    drawing.name_axis(axes.yaxis, "log σ")


def _gaps(axes: Any, table: Table, case: str) -> None:
    axes.set(yscale="log", ylim=(FLOOR, 1e3))
    shown = 3 * len(table.curve("gap", case, "ours, covariance, Exp")[0]) // 4  # of the iterations
    for name in _kept(table, case):
        x, y = table.curve("gap", case, name)
        end = int(np.argmax(y < FLOOR)) + 1 if (y < FLOOR).any() else len(y)
        axes.plot(x[:end], np.maximum(y[:end], FLOOR), **_look(name))
        if name in GAP_LABELS:
            level, angle = GAP_LABELS[name]
            label_at(
                axes,
                x[:end][:shown],
                y[:end][:shown],
                _text(name),
                _look(name)["color"],
                level,
                angle,
                left=name == "GD in σ²",
            )
    axes.set_xlim(0, shown)
    drawing.notebook(axes, "ELBO* - ELBO")
    drawing.name_axis(axes.xaxis, "iterations")
