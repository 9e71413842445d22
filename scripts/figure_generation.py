"""The figure docs/concepts/generation.png: one generation of a search, step by step.

    python scripts/figure_generation.py [--out generation.png]        seconds; needs matplotlib

The first generation on a tilted valley, with the update of the package itself: samples, their ranks, the step of the
mean, and the new shape. The seed was chosen so that all steps can be seen at once; a generation usually changes less.
"""
# extras: compare

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from figure_search import save

from esgroup import Searcher
from esgroup.plots.style import INK, check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "concepts" / "generation.png"
START, SIGMA0, POPSIZE, SEED = (-0.9, 0.6), 0.75, 12, 12
VIEW = ((-2.75, 1.45), (-1.75, 2.45))
CONTOUR, GOAL, TEXT, PALER, BETTER, WORSE = "#c3ccd2", "#c03a4d", "#222222", "#555555", "#1b6ca8", "#b9b9b9"
NEW = "#c8642b"
LEVELS = np.arange(0.4, 8, 0.55) ** 2


def valley(x: np.ndarray) -> np.ndarray:
    """Return a quadratic function whose level lines are tilted ellipses around (0.6, -0.6); of rows of points."""
    u, v = x[..., 0] - 0.6, x[..., 1] + 0.6
    values: np.ndarray = 0.5 * (u + v) ** 2 * 6 + 0.5 * (u - v) ** 2 * 0.6
    return values


class Generation(NamedTuple):
    """One generation: the distribution before and after it, by its mean and points at one deviation, and its points."""

    points: np.ndarray
    order: np.ndarray  # indices of the points, the best first
    means: tuple[np.ndarray, np.ndarray]
    ellipses: tuple[np.ndarray, np.ndarray]


def generation(seed: int = SEED) -> Generation:
    """Ask and tell once."""
    search = Searcher(np.array(START), SIGMA0, popsize=POPSIZE, rng=seed)
    mean, ellipse = search.mean.copy(), _ellipse(search)
    points = search.ask()
    values = valley(points)
    search.tell(values)
    return Generation(points, np.argsort(values), (mean, search.mean.copy()), (ellipse, _ellipse(search)))


def _ellipse(search: Searcher) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.array([search.strategy.coordinates(search.state).at(z) for z in circle])


# ---- the figure -----------------------------------------------------------------------------------------------------


def draw(found: Generation, out: Path) -> None:
    """Draw four steps in a row."""
    figure = new_figure(9.0, 2.7)
    panels = figure.subplots(1, 4, sharey=True)
    for number, (axes, step) in enumerate(zip(panels, STEPS, strict=True)):
        _landscape(axes)
        step.draw(axes, found)
        axes.set_title(f"{number + 1}  {step.title}", loc="left", fontsize=10.5, color=TEXT)
        axes.set_xlabel(step.note, loc="left", fontsize=8.5, color=PALER)
    save(figure, out)


def _landscape(axes: Any) -> None:
    (left, right), (low, high) = VIEW
    x = np.stack(np.meshgrid(np.linspace(left, right, 200), np.linspace(low, high, 200)), axis=-1)
    axes.contour(x[..., 0], x[..., 1], valley(x), levels=LEVELS, colors=CONTOUR, linewidths=0.8, zorder=1)
    axes.plot(0.6, -0.6, marker="*", markersize=10, color=GOAL, markeredgecolor="white", zorder=6)
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_color("#999999")


def _outline(axes: Any, found: Generation, which: int, **style: Any) -> None:
    axes.plot(*found.ellipses[which].T, color=INK, linewidth=1.3, zorder=3, **style)
    axes.plot(*found.means[which], marker="+", markersize=8, markeredgewidth=1.6, color=INK, zorder=5)


def _ranked(axes: Any, found: Generation) -> None:
    half = POPSIZE // 2
    axes.scatter(*found.points[found.order[:half]].T, s=22, color=BETTER, linewidths=0, zorder=4)
    axes.scatter(*found.points[found.order[half:]].T, s=22, color=WORSE, linewidths=0, zorder=4)


def _sample(axes: Any, found: Generation) -> None:
    _outline(axes, found, 0)
    axes.scatter(*found.points.T, s=22, color=INK, linewidths=0, zorder=4)


def _rank(axes: Any, found: Generation) -> None:
    _outline(axes, found, 0, linestyle=(0, (4, 2)), alpha=0.6)
    _ranked(axes, found)
    for rank, index in enumerate(found.order):
        color = BETTER if rank < POPSIZE // 2 else PALER
        axes.annotate(str(rank + 1), found.points[index], xytext=(3.5, 2.5), textcoords="offset points", fontsize=8.5,
                      color=color, zorder=7)  # fmt: skip


def _move(axes: Any, found: Generation) -> None:
    _outline(axes, found, 0, linestyle=(0, (4, 2)), alpha=0.6)
    _ranked(axes, found)
    old, new = found.means
    arrow = {"arrowstyle": "-|>", "color": NEW, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=new, xytext=old, zorder=8, arrowprops=arrow)


def _change(axes: Any, found: Generation) -> None:
    _outline(axes, found, 0, linestyle=(0, (4, 2)), alpha=0.6)
    axes.plot(*found.ellipses[1].T, color=NEW, linewidth=2, zorder=4)
    axes.plot(*found.means[1], marker="+", markersize=8, markeredgewidth=1.6, color=NEW, zorder=5)


class Step(NamedTuple):
    """A panel."""

    title: str
    note: str
    draw: Callable[[Any, Generation], None]


STEPS = (
    Step("sample", "points from the distribution", _sample),
    Step("rank", "only the order of values counts", _rank),
    Step("move the mean", "toward the better half", _move),
    Step("change the shape", "longer where steps were good", _change),
)


def main(out: Path = OUT, seed: int = SEED) -> None:
    """Search and draw."""
    path = check_out(out)
    draw(generation(seed), path)
    print(f"figure {path.name}")


if __name__ == "__main__":
    typer.run(main)
