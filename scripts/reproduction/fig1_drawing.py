"""The figure of the invariance experiment: paths over the surface, and the gap over the iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from reproduction.experiment import Table
from reproduction.figures import INK, drawing, headed

OURS, NGD, GD = drawing.COLOURS[0], drawing.COLOURS[2], drawing.COLOURS[1]
FLOOR = 1e-13


def figure(table: Table, path: Path) -> None:
    (case,) = table.cases("gap")
    start, beta = case.split(", ")
    note = f"Step {beta}, {start} start. Blue: ours, four variants, on one line with NGD in log σ. Orange: GD. Green: NGD"
    with drawing.plain():
        made, body = headed("Gradient descent depends on the parameter of the scale", note, 9.0, 4.0)
        left, right = body.subplots(1, 2)
        _paths(left, table, case)
        _gaps(right, table, case)
        drawing.save(made, path)


def _look(name: str) -> dict[str, Any]:
    if name.startswith("ours"):
        return {"color": OURS, "linewidth": 2.6, "zorder": 3}
    return {"color": NGD if name.startswith("NGD") else GD, "linewidth": 1.3, "zorder": 4}


def _kept(table: Table, case: str) -> list[str]:
    """Those with a line of their own: the logarithms of NGD lie on ours."""
    hidden = ("NGD in log σ", "NGD in log σ²", "NGD in log 1/σ²", "GD in log 1/σ²")
    return [name for name in table.series("gap", case) if name not in hidden]


def _paths(axes: Any, table: Table, case: str) -> None:
    rows = table.where("surface").rows
    means = np.array(sorted({row.x for row in rows}))
    logs = np.array([float(c) for c in table.cases("surface")])
    gaps = np.array([row.value for row in rows]).reshape(len(logs), len(means))
    levels = np.geomspace(0.01, 300, 12)
    axes.contour(means, logs, gaps, levels=levels, colors=INK, alpha=0.18, linewidths=0.7)
    for name in _kept(table, case):
        _, x = table.curve("mean", case, name)
        _, y = table.curve("log sigma", case, name)
        axes.plot(x, y, **_look(name), marker="o", markersize=1.8)
    best = [table.value("optimum", "", name) for name in ("mean", "log sigma")]
    axes.plot(*best, marker="*", markersize=11, color=INK, zorder=5)
    axes.set(xlim=(means.min(), means.max()), ylim=(logs.min(), logs.max()))
    drawing.notebook(axes, "paths; contours of ELBO, star: its maximum")
    drawing.name_axis(axes.xaxis, "μ")
    drawing.name_axis(axes.yaxis, "log σ")


def _gaps(axes: Any, table: Table, case: str) -> None:
    axes.set(yscale="log")
    ends = []
    for name in _kept(table, case):
        x, y = table.curve("gap", case, name)
        end = int(np.argmax(y < FLOOR)) if (y < FLOOR).any() else len(y)
        axes.plot(x[:end], np.maximum(y[:end], FLOOR), **_look(name))
        ends.append((name, x[:end], y[:end]))
    axes.set_ylim(FLOOR, 1e3)
    drawing.notebook(axes, "ELBO* - ELBO")
    drawing.name_axis(axes.xaxis, "iterations")
    for name, x, y in ends:
        axes.text(x[-1], y[-1], name, fontsize=7.5, color=_look(name)["color"])
