"""The figure docs/search.png: a distribution that adapts to Rosenbrock's valley, and what a search there costs.

    python scripts/figure_search.py [--out search.png]        half a minute; needs matplotlib and cma

On the left three generations of one search in two dimensions. On the right esgroup and cma, both with their defaults,
in twenty dimensions: medians and quartiles of the best value over fifteen seeds. All begin at 0 with sigma0 = 0.5.
Beside each line stands how many of these runs reached 1e-8; the others ended at the function's local minimum.
"""
# extras: compare

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from esgroup import Searcher
from esgroup.plots.style import GRID, INK, check_out, new_figure

OUT = Path(__file__).parents[1] / "docs" / "search.png"
START, SIGMA0 = (-1.2, 1.0), 0.1  # in two dimensions
POPSIZE = 30  # more than the default, so that a generation can be seen
SEED = 4
STAGES = (0, 8, 24)  # generations
VIEW = ((-1.65, 1.5), (-0.65, 1.7))
LEVELS = 10.0 ** np.arange(-0.5, 3.5, 0.5)
DIM, SEEDS, TARGET, BUDGET = 20, 15, 1e-8, 60_000
GRID_POINTS = 400
DPI = 200
CONTOUR, SAMPLE, GOAL, TEXT, PALER = "#c3ccd2", "#e0922f", "#c03a4d", "#222222", "#555555"
COLORS = {"esgroup": "#1b6ca8", "cma": "#c8642b"}
STYLES: dict[str, Any] = {"esgroup": "-", "cma": (0, (5, 1.5))}


def rosenbrock(x: np.ndarray) -> np.ndarray:
    """Return the values of rows of points."""
    values: np.ndarray = (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(axis=-1)
    return values


# ---- one search in two dimensions -----------------------------------------------------------------------------------


class Stage(NamedTuple):
    """A generation."""

    nfev: int  # evaluations before it
    points: np.ndarray
    mean: np.ndarray
    ellipse: np.ndarray  # points at two standard deviations from the mean


def stages(seed: int = SEED, count: int = STAGES[-1] + 1) -> list[Stage]:
    """Search by ask and tell, and return the first generations."""
    search = Searcher(np.array(START), SIGMA0, popsize=POPSIZE, rng=seed)
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    found = []
    for _ in range(count):
        ellipse = np.array([search.strategy.coordinates(search.state).at(z) for z in circle])
        points = search.ask()
        found.append(Stage(search.nfev, points, search.mean.copy(), ellipse))
        search.tell(rosenbrock(points))
    return found


# ---- many searches in twenty ----------------------------------------------------------------------------------------


class Course(NamedTuple):
    """A run: evaluations and the best value so far, generation by generation."""

    evaluations: list[int]
    best: list[float]


def course_of_esgroup(dim: int, seed: int, budget: int) -> Course:
    """Run esgroup with its defaults until the target is reached or the budget is spent."""
    search, found = Searcher(np.zeros(dim), 0.5, rng=seed, target=TARGET, max_evals=budget), Course([], [])
    while not search.stop():
        search.tell(rosenbrock(search.ask()))
        found.evaluations.append(search.nfev)
        found.best.append(search.best_f)
    return found


def course_of_cma(dim: int, seed: int, budget: int) -> Course:
    """Run cma with its defaults until the target is reached, the budget is spent, or it stops."""
    import cma

    options = {"seed": seed, "ftarget": TARGET, "maxfevals": budget, "verbose": -9, "verb_log": 0}
    search, found = cma.CMAEvolutionStrategy(np.zeros(dim), 0.5, options), Course([], [])
    while not search.stop():
        points = search.ask()
        search.tell(points, rosenbrock(np.array(points)).tolist())
        found.evaluations.append(search.countevals)
        found.best.append(search.best.f)
    return found


COURSES: dict[str, Callable[[int, int, int], Course]] = {"esgroup": course_of_esgroup, "cma": course_of_cma}


def quartiles(runs: Sequence[Course], evaluations: np.ndarray) -> np.ndarray:
    """Return 25 %, 50 % and 75 % of the best values at these numbers of evaluations: shape (3, n).

    A run that has ended keeps its last value. Before its first generation it has none, which counts as infinite.
    """
    values = []
    for run in runs:
        at = np.searchsorted(run.evaluations, evaluations, side="right") - 1
        values.append(np.where(at < 0, np.inf, np.array(run.best)[at]))
    return np.quantile(values, [0.25, 0.5, 0.75], axis=0, method="nearest")


def evaluations_needed(runs: Sequence[Course]) -> list[int]:
    """Return the evaluations of those runs that reached the target."""
    return [run.evaluations[-1] for run in runs if run.best[-1] <= TARGET]


# ---- the figure -----------------------------------------------------------------------------------------------------


def draw(out: Path, found: Sequence[Stage], runs: dict[str, list[Course]], dim: int = DIM) -> None:
    """Draw three stages beside the courses of many runs."""
    figure = new_figure(9.0, 3.15)
    *panels, values = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.42])
    for axes, number in zip(panels, STAGES, strict=True):
        _landscape(axes)
        _stage(axes, found, number)
        axes.set_title(f"evaluations {found[number].nfev + 1}–{found[number].nfev + POPSIZE}", **_title())
    panels[0].set_ylabel("second coordinate")
    _courses(values, runs)
    values.set_title(f"Rosenbrock, {dim} dimensions", **_title())
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), frameon=False, fontsize=9,
                  handlelength=1.8, columnspacing=1.6)  # fmt: skip
    save(figure, out)


def save(figure: Any, out: Path, dpi: int = DPI) -> None:
    """Write the figure; a PNG with a palette of colors, which takes a third of the bytes and looks the same."""
    if out.suffix.lower() != ".png":
        figure.savefig(out)
        return
    from PIL import Image

    with BytesIO() as pixels:
        figure.savefig(pixels, format="png", dpi=dpi)
        Image.open(pixels).convert("RGB").quantize(255, dither=Image.Dither.NONE).save(out, optimize=True)


def _title() -> dict[str, Any]:
    return {"loc": "left", "fontsize": 9.5, "color": TEXT}


def _landscape(axes: Any) -> None:
    (left, right), (low, high) = VIEW
    x = np.stack(np.meshgrid(np.linspace(left, right, 300), np.linspace(low, high, 300)), axis=-1)
    axes.contour(x[..., 0], x[..., 1], rosenbrock(x), levels=LEVELS, colors=CONTOUR, linewidths=0.8, zorder=1)
    axes.set(xlim=(left, right), ylim=(low, high), xticks=[-1, 0, 1], yticks=[0, 1], xlabel="first coordinate")
    _quiet(axes)


def _stage(axes: Any, found: Sequence[Stage], number: int) -> None:
    now, means = found[number], np.array([stage.mean for stage in found[: number + 1]])
    axes.scatter(*now.points.T, s=10, color=SAMPLE, linewidths=0, zorder=4, label="samples")
    axes.plot(*now.ellipse.T, color=INK, linewidth=1.2, zorder=5, label="two standard deviations")
    axes.plot(*means.T, color=INK, linewidth=1.0, marker=".", markersize=3.5, zorder=5, label="path of the mean")
    axes.plot(1, 1, marker="*", markersize=11, color=GOAL, markeredgecolor="white", linestyle="", zorder=6,
              label="minimum")  # fmt: skip


def _courses(axes: Any, runs: dict[str, list[Course]]) -> None:
    longest = max(run.evaluations[-1] for own in runs.values() for run in own)
    for name, own in runs.items():
        needed = evaluations_needed(own)
        end = int(np.median(needed)) if needed else longest
        evaluations = np.linspace(0, longest, GRID_POINTS)
        low, middle, high = np.maximum(quartiles(own, evaluations), TARGET)
        shown = evaluations <= end
        color, seen = COLORS[name], np.isfinite(high)
        axes.fill_between(evaluations[seen], low[seen], high[seen], color=color, alpha=0.22, linewidth=0)
        axes.plot(evaluations[shown & seen], middle[shown & seen], color=color, linewidth=1.9, linestyle=STYLES[name])
        half = np.sqrt(TARGET)
        at = evaluations[np.argmax(middle <= half)] if (middle <= half).any() else end
        label = {"color": color, "ha": "right", "va": "center"}
        axes.text(at - 0.03 * longest, 3 * half, name, fontsize=10, fontweight="bold", **label)
        axes.text(at - 0.03 * longest, half / 3, f"{len(needed)} of {len(own)}", fontsize=8.5, **label)
    axes.set(yscale="log", xlim=(0, 1.03 * longest), ylim=(TARGET, None), xlabel="evaluations", ylabel="best value")
    axes.xaxis.set_major_formatter(lambda x, position: f"{x:,.0f}")
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    _quiet(axes)


def _quiet(axes: Any) -> None:
    axes.tick_params(colors=PALER, labelsize=8.5, length=3)
    axes.xaxis.label.set(color=PALER, fontsize=9)
    axes.yaxis.label.set(color=PALER, fontsize=9)
    axes.spines[:].set_color("#999999")


def main(out: Path = OUT, seeds: int = SEEDS) -> None:
    """Search, print the medians and draw."""
    path = check_out(out)
    runs = {name: [run(DIM, seed, BUDGET) for seed in range(1, seeds + 1)] for name, run in COURSES.items()}
    for name, own in runs.items():
        needed = evaluations_needed(own)
        spread = f": {np.quantile(needed, 0.5):.0f} [{np.quantile(needed, 0.25):.0f}, {np.quantile(needed, 0.75):.0f}]"
        print(f"{name}: {len(needed)} of {seeds} runs to {TARGET:g}, evaluations of these" + spread * bool(needed))
    draw(path, stages(), runs)
    print(f"figure {path.name}")


if __name__ == "__main__":
    typer.run(main)
