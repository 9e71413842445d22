"""The figure docs/wishart-nearness.png: metric nearness with a Wishart search and with cma, best f over evaluations.

    python scripts/figure_wishart.py                          about four minutes; needs cma and matplotlib
    python scripts/figure_wishart.py --quick --out try.png    fewer evaluations and seeds, under a minute
    python scripts/figure_wishart.py --data runs.csv          the runs are kept there; they are drawn if it exists

W is 10 x 10 (55 numbers) and 50 x 50 (1,275 numbers). cma searches the entries of log W, or of W's Cholesky factor with
the logarithm of its diagonal, with sigma0 = 0.1: its best of 0.1, 0.3 and 1 on small matrices, and of 0.03, 0.1 and 0.3
on large ones. At 1,275 variables it has a diagonal covariance: with a full one, in seven times the time, it came to 0.6
instead of 0.8 on the first seed, and on the Cholesky factor to 1.7. Seeds begin at 100, each has a matrix of its own,
and nothing was tuned on them.
"""
# extras: compare

from __future__ import annotations

import spaces_threads  # noqa: F401  # before NumPy is imported

# isort: split
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from spaces_runs import Step, generations, generations_of_cma

from esgroup import Searcher, Wishart
from esgroup.compare.charts import CholeskyFactor, Logarithm
from esgroup.compare.report import drawing
from esgroup_problems.matrices import metric_nearness
from esgroup_problems.problem import Problem

OUT = Path(__file__).parents[1] / "docs" / "wishart-nearness.png"
SIGMA0, FLOOR = 0.1, 1e-12  # below that nothing is drawn
WIDTH, HEIGHT = 8.0, 4.2
TITLE = "Metric nearness: the positive-definite W that sends Q x back to x"
NOTE = (
    "f(W) = ½ E |W Q x - x|² over x ~ N(0, I). Thin lines: seeds, each with a Q of its own; thick lines: their medians"
)
COLORS = {"wishart": drawing.COLORS[0], "log": drawing.COLORS[1], "cholesky": drawing.COLORS[2]}


class Line(NamedTuple):
    """A method in a panel: how many seeds, its label, and where that begins, as parts of the panel."""

    method: str
    seeds: int
    label: str
    place: tuple[float, float]


class Panel(NamedTuple):
    """Matrices of one size."""

    dim: int
    evals: int
    lines: tuple[Line, ...]


PANELS = (
    Panel(
        10,
        20_000,
        (
            Line("wishart", 15, "Wishart\nsearch", (0.02, 0.15)),
            Line("log", 7, "cma on\nlog W", (0.385, 0.15)),
            Line("cholesky", 7, "cma on the\nCholesky factor", (0.575, 0.8)),
        ),
    ),
    Panel(
        50,
        80_000,
        (
            Line("wishart", 5, "Wishart\nsearch", (0.58, 0.42)),
            Line("log", 3, "cma on log W, diagonal covariance", (0.09, 0.985)),
        ),
    ),
)


class Trace(NamedTuple):
    """A run: evaluations and the best value so far, generation by generation."""

    dim: int
    method: str
    seed: int
    evals: list[int]
    best: list[float]


# ---- runs -----------------------------------------------------------------------------------------------------------


def steps(method: str, problem: Problem, seed: int) -> Iterator[Step]:
    """The generations of a method."""
    if method == "wishart":
        return generations(Searcher(Wishart(problem.x0), rng=seed), problem.batch)
    chart = (Logarithm if method == "log" else CholeskyFactor)(problem.x0.shape)
    return generations_of_cma(problem, chart, SIGMA0, seed, diagonal=problem.x0.size > 1000)


def trace(dim: int, method: str, seed: int, max_evals: int) -> Trace:
    """A run until its budget, or below what is drawn."""
    found = Trace(dim, method, seed, [], [])
    for step in steps(method, metric_nearness(dim, seed=seed), seed):
        found.evals.append(step.evals)
        found.best.append(step.best)
        if step.evals >= max_evals or step.best < FLOOR:
            break
    return found


def traces(quick: bool) -> Iterator[Trace]:
    """All runs."""
    for panel in PANELS:
        for line in panel.lines:
            for seed in range(100, 102 if quick else 100 + line.seeds):
                print(f"{panel.dim} x {panel.dim}, {line.method}, seed {seed}", file=sys.stderr)
                yield trace(panel.dim, line.method, seed, panel.evals // 8 if quick and panel.dim > 10 else panel.evals)


def write(path: Path, runs: list[Trace]) -> None:
    """A row for each generation."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        for run in runs:
            table.writerows((*run[:3], *values) for values in zip(run.evals, run.best, strict=True))


def read(path: Path) -> list[Trace]:
    """What `write` wrote."""
    runs: dict[tuple[int, str, int], Trace] = {}
    with path.open(newline="") as file:
        for dim, method, seed, evals, best in csv.reader(file):
            key = int(dim), method, int(seed)
            run = runs.setdefault(key, Trace(*key, [], []))
            run.evals.append(int(evals))
            run.best.append(float(best))
    return list(runs.values())


# ---- figure ---------------------------------------------------------------------------------------------------------


def middle(runs: list[Trace]) -> tuple[list[int], np.ndarray]:
    """The median over runs until it is below what is drawn; a run that has ended keeps its last value."""
    longest = max(runs, key=lambda run: len(run.evals))
    padded = [np.pad(run.best, (0, len(longest.best) - len(run.best)), mode="edge") for run in runs]
    medians = np.median(padded, axis=0)
    kept = 1 + np.count_nonzero(medians >= FLOOR)  # they never rise
    return longest.evals[:kept], medians[:kept]


def draw_panel(axes: Any, panel: Panel, runs: list[Trace]) -> None:
    """Seeds thin, medians thick, labels beside them."""
    axes.set(yscale="log", xlim=(0, panel.evals), ylim=(FLOOR, 200))
    for line in panel.lines:
        color, own = COLORS[line.method], [run for run in runs if (run.dim, run.method) == (panel.dim, line.method)]
        for run in own:
            axes.plot(run.evals, run.best, color=color, linewidth=0.7, alpha=0.35)
        axes.plot(*middle(own), color=color, linewidth=2.4)
        look = {"color": color, "fontsize": 10, "fontweight": "bold", "va": "top", "linespacing": 1.15}
        axes.text(*line.place, line.label, transform=axes.transAxes, **look)
    numbers = panel.dim * (panel.dim + 1) // 2
    drawing.notebook(axes, f"{panel.dim} x {panel.dim}: {numbers:,} numbers")
    axes.set_xticks(np.linspace(0, panel.evals, 5))
    axes.xaxis.set_major_formatter(lambda x, position: f"{x:,.0f}")
    drawing.name_axis(axes.xaxis, "evaluations")


def figure(runs: list[Trace]) -> Any:
    """Two panels under a head."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=(0.0, 0.0, 1.0, 1 - 0.62 / HEIGHT))
    made = Figure(figsize=(WIDTH, HEIGHT), layout=layout, facecolor="white")
    for text, down, look in ((TITLE, 0.12, {"fontsize": 13, "fontweight": "bold"}), (NOTE, 0.4, {"fontsize": 9})):
        made.text(0.1 / WIDTH, 1 - down / HEIGHT, text, va="top", color=drawing.INK, **look)
    panels = made.subplots(1, len(PANELS), sharey=True)
    for axes, panel in zip(panels, PANELS, strict=True):
        draw_panel(axes, panel, runs)
    drawing.name_axis(panels[0].yaxis, "best f(W) so far")
    return made


def main(
    quick: Annotated[bool, typer.Option("--quick", help="fewer evaluations and seeds, to try it")] = False,
    out: Annotated[Path, typer.Option(help="the figure")] = OUT,
    data: Annotated[Path | None, typer.Option(help="a CSV file of the runs, drawn if it exists")] = None,
) -> None:
    """Run, unless it was done, and draw."""
    stored = data is not None and data.exists()
    runs = read(data) if stored else list(traces(quick))
    if data is not None and not stored:
        write(data, runs)
    with drawing.plain():
        drawing.save(figure(runs), out)


if __name__ == "__main__":
    typer.run(main)
