"""The figure of a run, made from its history file only."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.files.autosave import must_differ
from esgroup.files.outage import naming
from esgroup.plots.axes import coordinate, drawable, head, log_scale, minus, notebook, positive, shift, short, thinned
from esgroup.plots.style import INK, PALE, RULE, check_out, new_figure
from esgroup.running.history import Recorded, read

MOST_LABELS = 6  # names of variables next to a panel
LONGEST_NAME, LONGEST_TITLE = 40, 110  # letters
DRAWN = ("best_f", "gen_best", "sigma", "axis_ratio", "mean", "stds")


def plot(history: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """Draw a history: best value, step size, axis ratio, mean and standard deviations over evaluations.

    With constraints, the best value is drawn dashed in another color until there is a feasible point. Needs
    matplotlib, from the extra "plot".

    Parameters
    ----------
    history
        A file written by `minimize(..., history=...)`.
    out
        Path of the figure, ending in .png, .svg or .pdf.

    Returns
    -------
    Path
        `out` as a path.

    Raises
    ------
    ValueError
        If `history` is not a history, or `out` is the same file, has another suffix or is in a folder that does not
        exist.
    ImportError
        If matplotlib is not installed.
    """
    path = check_out(out)
    must_differ({"history": history, "out": out})
    run = read(history)
    figure = new_figure(11.0, 7.0)
    _draw(figure, run)
    with naming(path):
        figure.savefig(path, dpi=150)
    return path


def _draw(figure: Any, recorded: Recorded) -> None:
    shown: dict[str, Any] = {name: drawable(getattr(recorded, name)) for name in DRAWN}
    run = recorded._replace(**shown)
    grid = figure.add_gridspec(4, 2, width_ratios=(1.0, 1.05))
    value = figure.add_subplot(grid[:2, 0])
    mean, stds = (figure.add_subplot(grid[rows, 1], sharex=value) for rows in (slice(0, 2), slice(2, 4)))
    sigma, ratio = (figure.add_subplot(grid[row, 0], sharex=value) for row in (2, 3))
    _best_value(value, run)
    _one_line(sigma, run, run.sigma, "step size")
    _one_line(ratio, run, run.axis_ratio, "axis ratio")
    _coordinates(mean, run, run.mean, "mean", "linear")
    _coordinates(stds, run, run.stds, "standard deviations", "log")
    restarts = run.nfev[:-1][np.diff(run.restart) > 0]  # the evaluations at which the search was restarted
    for axes in (value, mean, stds, sigma, ratio):
        notebook(axes, run.nfev[-1], named=axes in (ratio, stds))
        for x in restarts:
            axes.axvline(x, color=RULE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    _name_restarts(value, restarts)
    figure.align_ylabels([value, sigma, ratio])
    figure.align_ylabels([mean, stds])
    head(figure, [run.header], LONGEST_TITLE)
    value.set_title(_summary(recorded), loc="left", fontsize=9.5, color="#444444")


# ---- panels ---------------------------------------------------------------------------------------------------------


def _best_value(axes: Any, run: Recorded) -> None:
    constrained = bool(np.isfinite(run.violation).any())
    zero, label = shift(run.best_f)
    if np.isfinite(run.gen_best).any():
        name = "of the generation" + ", by the Lagrangian" * constrained
        _line(axes, run, positive(run.gen_best - zero), color=PALE, linewidth=0.8, label=name)
    best = positive(run.best_f - zero)
    if not run.feasible.all():
        style = {"color": RULE, "linewidth": 1.4, "linestyle": (0, (3, 1.5)), "label": "so far, not feasible"}
        _line(axes, run, np.where(run.feasible, np.nan, best), **style)
    if run.feasible.any():
        name = "so far" + ", feasible" * constrained
        _line(axes, run, np.where(run.feasible, best, np.nan), color=INK, linewidth=1.8, label=name)
    log_scale(axes, run.best_f - zero)
    axes.set_ylabel(label)
    if len(axes.lines) > 1:
        axes.legend(loc="best", framealpha=0.85, edgecolor="none", fontsize=8.5, labelcolor="#444444")
    if not np.isfinite(run.best_f).any():
        axes.text(0.5, 0.5, "no finite value so far", transform=axes.transAxes, ha="center", color="#777777")


def _one_line(axes: Any, run: Recorded, values: Array, label: str) -> None:
    known = np.isfinite(values)  # the axis ratio is not computed in every generation
    there = run._replace(nfev=run.nfev[known], restart=run.restart[known])
    _line(axes, there, positive(values[known]), color=INK, linewidth=1.4)
    log_scale(axes, values)
    axes.set_ylabel(label)


def _coordinates(axes: Any, run: Recorded, values: Array, label: str, scale: str) -> None:
    from matplotlib import colormaps

    count, dim = values.shape[1], run.header["dim"]
    colors = colormaps["viridis"](np.linspace(0.0, 0.9, count))
    width = 1.4 if count <= 10 else 0.9 if count <= 40 else 0.5
    shown = positive(values) if scale == "log" else values
    for j in range(count):
        _line(axes, run, shown[:, j], color=colors[j], linewidth=width)
    if scale == "log":
        log_scale(axes, values)
    axes.set_ylabel(label if count == dim else f"{label}, first {count} of {dim:,}")
    names = run.header.get("names") or [coordinate(j) for j in range(count)]
    _name_lines(axes, shown[-1], colors, names)


# ---- how things are drawn -------------------------------------------------------------------------------------------


def _line(axes: Any, run: Recorded, values: Array, **style: Any) -> None:
    """Draw a line over the evaluations, thinned to what is visible, and broken where the search restarted."""
    keep = thinned(len(values))
    x, y, breaks = run.nfev[keep], values[keep], np.flatnonzero(np.diff(run.restart[keep])) + 1
    if len(x) < 3:
        style["marker"] = "."
    axes.plot(np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan), **style)


def _name_lines(axes: Any, ends: Array, colors: Array, names: Sequence[str]) -> None:
    """Write the names of a few lines at the right edge, moved apart if they would touch."""
    axes.set_ylim(axes.get_ylim())  # heights are final from here
    picked = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), MOST_LABELS)).round().astype(int))
    picked = picked[np.isfinite(ends[picked])]
    to_axes = axes.transData + axes.transAxes.inverted()
    at = {int(j): float(to_axes.transform((0.0, ends[j]))[1]) for j in picked}
    order = sorted(at, key=lambda j: (round(at[j], 2), -j))
    for j, y in zip(order, _apart([at[j] for j in order], gap=0.07), strict=True):
        axes.plot([1.0, 1.03], [at[j], y], transform=axes.transAxes, color=colors[j], linewidth=0.7, clip_on=False)
        place = {"transform": axes.transAxes, "va": "center", "parse_math": False}  # a name may have dollar signs
        axes.text(1.035, y, short(names[j], LONGEST_NAME), fontsize=8.5, color=colors[j], **place)


def _apart(heights: list[float], gap: float) -> list[float]:
    """Heights in [0, 1], each at least `gap` above the one before it, as close as possible to those given.

    With v_i = height_i - i gap this is least squares under v_1 <= v_2 <= ..., isotonic regression: the solution is
    max_{j <= i} min_{k >= i} of the mean of v_j, ..., v_k (Barlow et al., Statistical inference under order
    restrictions, 1972). SciPy's takes longer to load than a figure to draw.
    """
    count, v = len(heights), [height - i * gap for i, height in enumerate(heights)]
    flat = [max(min(fmean(v[j : k + 1]) for k in range(i, count)) for j in range(i + 1)) for i in range(count)]
    return [min(max(one, 0.0), 1 - gap * (count - 1)) + i * gap for i, one in enumerate(flat)]


def _name_restarts(axes: Any, places: Array) -> None:
    if 0 < len(places) <= 8:
        style = {"fontsize": 7.5, "color": RULE, "va": "top", "rotation": 90 if len(places) > 3 else 0}
        for k, x in enumerate(places, start=1):
            axes.text(x, 1.0, f" restart {k}", transform=axes.get_xaxis_transform(), **style)


# ---- words ----------------------------------------------------------------------------------------------------------


def _summary(run: Recorded) -> str:
    restarts = int(run.restart[-1])
    parts = [
        f"best value {minus(f'{run.best_f[-1]:.4g}')}" + ("" if run.feasible[-1] else " (not feasible)"),
        f"{run.nfev[-1]:,.0f} evaluations",
        f"{run.nit[-1]:,.0f} generations",
        f"{run.elapsed[-1]:,.3g} s",
    ]
    return ",  ".join(parts + [f"{restarts} restart{'s' * (restarts != 1)}"] * (restarts > 0))
