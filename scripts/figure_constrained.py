"""The figure docs/constrained.png: a search in two dimensions under two nonlinear constraints, in four stages.

    python scripts/figure_constrained.py [--out constrained.png]        some seconds; needs matplotlib

With other seeds the search ends at the same point, but some of them first overshoot the feasible region.
"""
# extras: plot

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from scipy.optimize import minimize

import esgroup
from esgroup.plots.style import INK, RULE, check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "constrained.png"
RADIUS = 1.5
START, SIGMA0 = np.array([-1.5, -1.2]), 0.3
POPSIZE = 20  # more than the default, so that a generation can be seen
STAGES = (0, 3, 7, 13)  # generations
VIEW = ((-2.4, 2.4), (-2.1, 2.1))
ZOOM = 0.075  # size of the last panel, relative to the others
LEVELS = np.arange(0.5, 9, 0.75) ** 2
SHADE, LIMIT, CONTOUR, SAMPLE, GOAL = "#efe9e1", "#8c6d46", "#b9c4cc", "#2a7f9e", "#d1495b"


def f(x: np.ndarray) -> np.ndarray:
    """A tilted quadratic function, whose minimum (2.4, 0.9) is not feasible; of rows of points."""
    u, v = x[..., 0] - 2.4, x[..., 1] - 0.9
    return (u + 0.5 * v) ** 2 + 4 * (v - 0.5 * u) ** 2


def g(x: np.ndarray) -> np.ndarray:
    """At most 0 within a disc and above a parabola; of rows of points."""
    disc = x[..., 0] ** 2 + x[..., 1] ** 2 - RADIUS**2
    parabola = 0.6 * x[..., 0] ** 2 - 0.2 - x[..., 1]
    return np.stack([disc, parabola], axis=-1)


class Stage(NamedTuple):
    """A generation."""

    nfev: int  # evaluations before it
    points: np.ndarray
    mean: np.ndarray
    ellipse: np.ndarray  # points at two standard deviations from the mean


def search(seed: int) -> tuple[list[Stage], esgroup.Searcher]:
    """Search by ask and tell; return the generations and the search in the end."""
    found = esgroup.Searcher(START, SIGMA0, popsize=POPSIZE, constraints=2, rng=seed, max_evals=2000)
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    stages = []
    while not found.stop():
        ellipse = np.array([found.strategy.coordinates(found.state).at(z) for z in circle])
        points = found.ask()
        stages.append(Stage(found.nfev, points, found.mean.copy(), ellipse))
        found.tell(f(points), constraints=g(points))
    return stages, found


def optimum() -> np.ndarray:
    """The solution by SciPy's SLSQP, which uses derivatives."""
    x: np.ndarray = minimize(
        f, [0.5, 0.9], method="SLSQP", constraints={"type": "ineq", "fun": lambda x: -g(x)}, tol=1e-14
    ).x
    return x


# ---- the figure -----------------------------------------------------------------------------------------------------


def draw(stages: Sequence[Stage], best: np.ndarray, out: Path) -> None:
    """Draw four stages, the last one magnified."""
    figure = new_figure(9.6, 8.6)
    panels = figure.subplots(2, 2).ravel()
    halves = [ZOOM * (high - low) / 2 for low, high in VIEW]
    box = tuple((c - half, c + half) for c, half in zip(best.tolist(), halves, strict=True))
    for k, (axes, number) in enumerate(zip(panels, STAGES, strict=True)):
        last = k == len(STAGES) - 1
        _landscape(axes, box if last else VIEW)
        _stage(axes, stages, number, best)
        first = stages[number].nfev + 1
        title = f"generation {number + 1}, evaluations {first} to {first + POPSIZE - 1}"
        axes.set_title(title + ", magnified" * last, loc="left", fontsize=10.5, color="#222222")
    _frame(panels[2], box)
    _words(panels[0])
    handles, labels = panels[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10)
    figure.savefig(out, dpi=150)


def _landscape(axes: Any, view: Any) -> None:
    (left, right), (low, high) = view
    x = np.stack(np.meshgrid(np.linspace(left, right, 500), np.linspace(low, high, 500)), axis=-1)
    limits = g(x)
    levels = LEVELS if right - left > 1 else np.arange(0.5, 9, 0.075) ** 2
    axes.contourf(x[..., 0], x[..., 1], limits.max(axis=-1), levels=[0, np.inf], colors=[SHADE], zorder=0)
    axes.contour(x[..., 0], x[..., 1], f(x), levels=levels, colors=CONTOUR, linewidths=0.8, zorder=1)
    for j in range(2):
        axes.contour(x[..., 0], x[..., 1], limits[..., j], levels=[0], colors=LIMIT, linewidths=1.5, zorder=2)
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")
    axes.tick_params(colors="#555555", labelsize=9)
    axes.spines[:].set_color("#888888")


def _stage(axes: Any, stages: Sequence[Stage], number: int, best: np.ndarray) -> None:
    now, means = stages[number], np.array([stage.mean for stage in stages[: number + 1]])
    feasible = (g(now.points) <= 0).all(axis=-1)
    axes.plot(*means.T, color=INK, linewidth=1.4, marker=".", markersize=5, zorder=4, label="path of the mean")
    axes.plot(*now.ellipse.T, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=4, label="two deviations")
    style = {"s": 26, "linewidths": 1.1, "edgecolors": SAMPLE, "zorder": 5}
    axes.scatter(*now.points[feasible].T, color=SAMPLE, label="samples, feasible", **style)
    axes.scatter(*now.points[~feasible].T, facecolors="white", label="not feasible", **style)
    axes.plot(*best, marker="*", markersize=15, color=GOAL, markeredgecolor="white", linestyle="", zorder=6,
              label="optimum")  # fmt: skip


def _frame(axes: Any, box: Any) -> None:
    (left, right), (low, high) = box
    axes.plot([left, right, right, left, left], [low, low, high, high, low], color=RULE, linewidth=0.9, zorder=3)


def _words(axes: Any) -> None:
    style: dict[str, Any] = {"fontsize": 9.5, "color": LIMIT, "ha": "center", "va": "center"}
    axes.text(0.12, 0.98, "feasible", **style)
    axes.text(-0.1, 1.75, "outside the disc", **style)
    axes.text(0.35, -0.7, "below the parabola", **style)


def main(out: Path = OUT, seed: int = 3) -> None:
    """Search and draw."""
    path = check_out(out)
    stages, found = search(seed)
    best, result = optimum(), found.result
    print(f"{result.nfev} evaluations: x {result.x.round(6)}, f {result.fun:.9f}; SLSQP {best.round(6)}, {f(best):.9f}")
    print(f"multipliers {result.multipliers.round(6)}, largest violation {result.constr_violation:.1e}")
    draw(stages, best, path)
    print(f"figure {path}")


if __name__ == "__main__":
    typer.run(main)
