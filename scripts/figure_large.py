"""The figure docs/large.png: axes of a frame that come, turn and go while it searches, and what they are worth.

    python scripts/figure_large.py [--out large.png]        half a minute; needs matplotlib

160 coordinates; axes in random directions: two that are a thousand times as long as the others, and two as short.
"""
# extras: plot

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from esgroup import Searcher
from esgroup.plots.style import check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "large.png"
COLORS = {"frame": "#d1495b", "full": "#2a7f9e", "diagonal": "#8c6d46"}
TARGET = 1e-8
Rows = Callable[[np.ndarray], np.ndarray]


class Course(NamedTuple):
    """A search: evaluations and best values after every generation, and the lengths of its axes, if it has any."""

    evaluations: list[int]
    best: list[float]
    lengths: list[np.ndarray]


def axes_of_both_kinds(dim: int, seed: int = 1) -> Rows:
    """Return |y|^2 with y = x - 1, times 1e-6 along two random directions and 1e6 along two others."""
    u = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, 4)))[0]
    extra = np.array([1e-6, 1e-6, 1e6, 1e6]) - 1.0

    def rows(x: np.ndarray) -> np.ndarray:
        y = x - 1.0
        values: np.ndarray = np.vecdot(y, y) + (y @ u) ** 2 @ extra
        return values

    return rows


def course(structure: str, rows: Rows, dim: int, budget: int) -> Course:
    """Search until the target is reached or the budget is spent."""
    search = Searcher(np.zeros(dim), 2.0, structure=structure, rng=1, target=TARGET, max_evals=budget)
    found = Course([], [], [])
    while not search.stop():
        search.tell(rows(search.ask()))
        group, state = search.structure, search.state
        found.evaluations.append(search.nfev)
        found.best.append(max(search.best_f, TARGET))
        found.lengths.append(group.axes(state.root).ratios.copy() if group.follows else np.empty(0))
    return found


def draw(out: Path, dim: int = 160, budget: int = 250_000) -> None:
    """Run the searches and draw both panels."""
    figure = new_figure(9.6, 3.8)
    values, axes = figure.subplots(1, 2)
    rows = axes_of_both_kinds(dim)
    for structure, color in COLORS.items():
        found = course(structure, rows, dim, budget)
        values.plot(found.evaluations, found.best, color=color, linewidth=1.7, label=structure)
        if structure != "frame":
            continue
        pairs = [(n, s) for n, lengths in zip(found.evaluations, found.lengths, strict=True) for s in lengths]
        x, y = np.array(pairs).T if pairs else np.empty((2, 0))
        axes.scatter(x, y, s=1.5, color=color, linewidths=0, rasterized=True)
    values.set(xlabel="evaluations", ylabel="best value", yscale="log")
    axes.set(xlabel="evaluations", ylabel="length, relative to all other directions", yscale="log")
    titles = f"four special axes among {dim} coordinates", "the axes of the frame"
    for panel, title in zip((values, axes), titles, strict=True):
        panel.set_title(title, loc="left", fontsize=10, color="#222222")
        panel.tick_params(colors="#555555", labelsize=9)
        panel.spines[:].set_color("#888888")
    values.legend(frameon=False)
    figure.savefig(out, dpi=150)


def main(out: Path = OUT) -> None:
    """Search and draw."""
    path = check_out(out)
    draw(path)
    print(f"figure {path.name}")


if __name__ == "__main__":
    typer.run(main)
