"""The figure of the experiment with networks: loss and accuracy over epochs and seconds, accuracy over Adam's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.cnn_verdicts import gain
from reproduction.experiment import Array, Table
from reproduction.figures import drawing, headed

#: Methods with a line, in the order of the legend; the others are in the last panel only.
LOOKS = {
    "Adam": drawing.Style(drawing.COLORS[4], (), "o"),
    "SGD": drawing.Style(drawing.COLORS[6], (5.0, 1.6), "s"),
    "SINGD": drawing.Style(drawing.COLORS[3], (1.3, 1.3), "^"),
    "SOAP": drawing.Style(drawing.COLORS[1], (6.0, 1.5, 1.3, 1.5), "D"),
    "ours, Tri-low": drawing.Style(drawing.COLORS[3], (6.0, 1.5, 1.3, 1.5), "X"),
    "ours, k = 4": drawing.Style(drawing.COLORS[5], (5.0, 1.6), "v"),
    "ours, k = 16": drawing.Style(drawing.COLORS[2], (1.3, 1.3), "P"),
    "ours, dense": drawing.Style(drawing.COLORS[0], (), "o"),
}
PARTS = {"validation loss": "validation loss", "validation accuracy": "validation accuracy in %"}


def figure(table: Table, path: Path) -> None:
    broken = set(table.series("failed"))  # methods with runs that have no end have no means
    names = [name for name in LOOKS if name in table.series("validation loss") and name not in broken]
    (weights,) = table.where("network").rows
    seeds = len(table.cases("validation loss"))
    data = table.cases("size")[0]
    note = (
        f"{data}, {weights.value:,.0f} weights: means of {seeds} seeds, with bands of one standard deviation; "
        "seconds are CPU time of training on one thread"
    )
    with drawing.plain():
        made = headed("A convolutional network: structured natural gradients and other methods", note, 11.0, 6.0)
        axes = made.subplot_mosaic([["00", "01", "gain"], ["10", "11", "gain"]], width_ratios=(1, 1, 0.9))
        for i, part in enumerate(PARTS):
            for j, over in enumerate(("epochs", "seconds")):
                _panel(axes[f"{i}{j}"], table, names, part, over)
        _legend(axes["10"], names)
        _gains(axes["gain"], table)
        drawing.save(made, path)


def _curves(table: Table, part: str, name: str) -> Array:
    """A row for every seed."""
    found = [table.curve(part, case, name)[1] for case in table.cases(part)]
    return np.array([values for values in found if len(values)])


def _panel(axes: Any, table: Table, names: list[str], part: str, over: str) -> None:
    factor = 100 if part.endswith("accuracy") else 1
    ends = []
    for name in names:
        values, look = factor * _curves(table, part, name), LOOKS[name]
        if not np.isfinite(values).all():
            continue
        epochs = np.arange(1, values.shape[1] + 1)
        x = epochs if over == "epochs" else _curves(table, "seconds", name).mean(axis=0)
        mean = values.mean(axis=0)
        half = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
        drawing.line(axes, x, mean, look, marker=look.marker, markersize=3)
        axes.fill_between(x, mean - half, mean + half, color=look.color, alpha=0.13, linewidth=0)
        ends.append(mean[min(1, len(mean) - 1) :])
    if ends:  # the first epoch of slow methods would hide the differences at the end
        low, high = min(part.min() for part in ends), max(part.max() for part in ends)
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axes.set_xlim(left=0)
    drawing.notebook(axes, f"{PARTS[part]} over {over}")
    drawing.name_axis(axes.xaxis, over)


def _legend(axes: Any, names: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for name in names:
        look = LOOKS[name]
        handles.append(Line2D([], [], color=look.color, marker=look.marker, markersize=4, linewidth=1.5, label=name))
        handles[-1].set_dashes(look.dashes)
    axes.legend(handles=handles, frameon=False, fontsize=8, labelcolor=drawing.INK, handlelength=3.2)


def _gains(axes: Any, table: Table) -> None:
    """Points of test accuracy over Adam, with intervals; of methods with failed runs, their number."""
    names = [name for name in table.series("test accuracy") if name != "Adam"]
    failed = {name: len(table.where("failed", series=name).rows) for name in names}
    if "Adam" in table.series("test accuracy"):
        axes.axvline(0, color=drawing.INK, alpha=0.5, linewidth=1, linestyle=":")
        found = [gain(table, name, "Adam") for name in names]
        means = [abs(one.mean) for name, one in zip(names, found, strict=True) if not failed[name]]
        reach = 1.15 * max((mean for mean in means if np.isfinite(mean)), default=1.0) + 0.5
        for height, (name, one) in enumerate(zip(names, found, strict=True)):
            if failed[name]:
                look = {"ha": "center", "va": "center", "fontsize": 8.5, "color": drawing.INK}
                axes.text(0, height, f"{failed[name]} runs failed", **look, backgroundcolor="white")
                continue
            color = LOOKS[name].color if name in LOOKS else drawing.INK
            low, high = (float(np.clip(value, -2 * reach, 2 * reach)) for value in (one.low, one.high))
            axes.plot([low, high], [height, height], color=color, linewidth=1.5)
            axes.plot([one.mean], [height], color=color, marker="o", markersize=5)
        axes.set_xlim(-reach, reach)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    drawing.notebook(axes, "test accuracy over Adam's")
    drawing.name_axis(axes.xaxis, "points, with intervals of 95 %")
