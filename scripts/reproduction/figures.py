"""Parts that the figures of the experiments share."""

from __future__ import annotations

from typing import Any

import numpy as np

from esgroup.compare.report import drawing

INK = drawing.INK


def headed(title: str, note: str, width: float, body: float, arranged: bool = True) -> Any:
    """A figure with a title and a note at fixed distances from its top; its panels are arranged below, unless told."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    height = body + 0.66
    layout = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, body / height), w_pad=0.08, h_pad=0.06)
    made = Figure(figsize=(width, height), layout=layout if arranged else None, facecolor="white")
    made.text(0.1 / width, 1 - 0.12 / height, title, va="top", fontsize=13, fontweight="bold", color=INK)
    made.text(0.1 / width, 1 - 0.38 / height, note, va="top", fontsize=9, color=INK, alpha=0.75)
    return made


def picture(axes: Any, matrix: np.ndarray, title: str) -> None:
    """A matrix: zeros white, other entries in a blue that is deeper the larger they are."""
    size = np.abs(matrix)
    shade = np.where(size > 1e-12 * size.max(), 0.25 + 0.6 * size / size.max(), 0.0)
    axes.imshow(shade, cmap="Blues", vmin=0, vmax=1.1, interpolation="nearest")
    edges = np.arange(len(matrix) + 1) - 0.5
    axes.set_xticks(edges, minor=True)
    axes.set_yticks(edges, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color=INK, alpha=0.4)
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)


def label_at(
    axes: Any,
    x: np.ndarray,
    y: np.ndarray,
    text: str,
    color: str,
    level: float,
    angle: float = 0.0,
    left: bool = False,
) -> None:
    """A label beside a falling curve, where it goes through a level, or at its end if it stays above the level."""
    from matplotlib.patheffects import withStroke

    below = np.flatnonzero(y <= level)
    look = {"color": color, "fontsize": 8.5, "textcoords": "offset points", "va": "center", "rotation": angle}
    look |= {"path_effects": [withStroke(linewidth=3, foreground="white")], "zorder": 10}
    if not below.size:
        axes.annotate(text, (x[-1], y[-1]), xytext=(-4, 7), ha="right", **look)
        return
    offset = (-3, 0) if left else (2 if angle else 5, 0)
    axes.annotate(text, (x[below[0]], level), xytext=offset, ha="right" if left else "left", **look)
