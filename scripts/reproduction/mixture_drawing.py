"""The figure of the mixture experiment: ELBOs of the structures, and marginals of two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Table
from reproduction.figures import INK, drawing, headed

LINES = {"Tri-up": drawing.COLORS[0], "Tri-low": drawing.COLORS[1]}
MARKS = (("o", 0.12), ("D", -0.16))  # of the small and the large setting, and how far beside the line of a structure

PANELS = ((0, "density 0"), (0, "density 1"), (1, "density 0"))  # which size, which coordinate
SUBSCRIPTS = "₁₂₃₄₅"
SHAPES = {"o": "●", "D": "◆"}


def figure(table: Table, path: Path) -> None:
    cases = table.cases("density 0")
    variants = list(dict.fromkeys(case.split(", ")[1] for case in cases))
    note = "Left: distance to the target, all seeds. Right: marginals of the target (gray) and of two approximations"
    with drawing.plain():
        made = headed("Structured mixtures for mixtures of Student's t", note, 10.0, 4.6)
        grid = made.subplots(len(variants), len(PANELS) + 1, width_ratios=(1.5,) + (1.0,) * len(PANELS))
        for row, variant in zip(grid, variants, strict=True):
            _elbos(row[0], table, variant)
            own = [case for case in cases if case.endswith(f", {variant}")]
            for axes, (size, part) in zip(row[1:], PANELS, strict=True):
                _marginal(axes, table, part, own[size])
        _name_lines(grid[0][1])
        drawing.save(made, path)


def _elbos(axes: Any, table: Table, variant: str) -> None:
    names = table.series("ELBO")
    cases = [case for case in table.cases("ELBO") if case.endswith(f", {variant}")]
    for (marker, shift), case, color in zip(MARKS, cases, drawing.COLORS[2::5], strict=False):
        for i, name in enumerate(names):
            values = -table.curve("ELBO", case, name)[1]
            axes.plot(values, np.full(len(values), i - shift), marker, color=color, markersize=5, alpha=0.8)
        name, height = (
            case.split(",")[0],
            0.9 if marker == "o" else 0.8,
        )  # above on the right: large distances are below
        look = {"transform": axes.transAxes, "color": color, "fontsize": 9, "ha": "right"}
        axes.text(0.97, height, f"{SHAPES[marker]} {name}", **look)
    axes.set(xscale="log", yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.9))
    drawing.notebook(axes, f"{variant}: KL(q || target)")


def _marginal(axes: Any, table: Table, part: str, case: str) -> None:
    x, y = table.curve(part, case, "target")
    axes.fill_between(x, y, color=INK, alpha=0.18, linewidth=0)
    for name, color in LINES.items():
        axes.plot(*table.curve(part, case, name), color=color, linewidth=1.2)
    axes.set(ylim=(0, 1.6 * y.max()), xlim=(x[0], x[-1]), yticks=[])
    drawing.notebook(axes, f"{case}, x{SUBSCRIPTS[int(part.split()[1])]}")


def _name_lines(axes: Any) -> None:
    for i, (name, color) in enumerate(LINES.items()):
        axes.text(0.03, 0.9 - 0.13 * i, name, transform=axes.transAxes, color=color, fontsize=9)
