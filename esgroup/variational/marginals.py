"""Figures of the marginal densities of a posterior."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.plots.style import GRID, INK, PALE, check_out

if TYPE_CHECKING:
    from esgroup.variational.posterior import Posterior

PANELS = 9
COLUMNS = 3
REACH = 4.0  # standard deviations on both sides of the mean


def plot_marginals(posterior: Posterior, path: str | PathLike[str], coordinates: Any, samples: Any) -> Path:
    """Draw one panel per coordinate: q's density, and a histogram of `samples` behind it if there are some."""
    out = check_out(path)
    dim = len(posterior.mean)
    chosen = _checked_coordinates(coordinates, dim)
    if samples is not None:
        samples = checks.real_array("samples", samples, (None, dim))
    figure = _figure(len(chosen))
    columns = min(COLUMNS, len(chosen))
    for i, coordinate in enumerate(chosen):
        axes = figure.add_subplot(math.ceil(len(chosen) / columns), columns, i + 1)
        _panel(axes, posterior, coordinate, None if samples is None else samples[:, coordinate])
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(out, dpi=150)
    return out


def _checked_coordinates(coordinates: Any, dim: int) -> list[int]:
    if coordinates is None:
        return list(range(min(PANELS, dim)))
    chosen = [checks.whole_number("coordinates", c, most=dim - 1) for c in coordinates]
    if not chosen:
        raise ValueError("coordinates must name at least one, got none")
    return chosen


def _figure(panels: int) -> Any:
    from matplotlib.figure import Figure

    columns = min(COLUMNS, panels)
    return Figure(figsize=(3.4 * columns, 2.4 * math.ceil(panels / columns)), layout="constrained", facecolor="white")


def _panel(axes: Any, posterior: Posterior, coordinate: int, samples: Array | None) -> None:
    middle, reach = posterior.mean[coordinate], REACH * posterior.stds[coordinate]
    x = np.linspace(middle - reach, middle + reach, 400)
    if samples is not None:
        inside = samples[np.abs(samples - middle) <= reach]
        if len(inside):
            heights, edges = np.histogram(inside, bins=50)
            share = heights / (len(samples) * np.diff(edges))  # of all samples, those outside as well
            axes.stairs(share, edges, fill=True, color=PALE, label="samples")
    axes.plot(x, posterior.marginal_density(coordinate, x), color=INK, linewidth=1.4, label="approximation")
    axes.set_title(f"coordinate {coordinate}", loc="left", fontsize=9.5, color="#444444")
    axes.set_yticks([])
    axes.set_ylim(bottom=0.0)
    axes.grid(True, axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#888888")
    axes.tick_params(colors="#555555", labelsize=8)
