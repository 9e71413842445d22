"""Parts that the figures of the experiments share."""

from __future__ import annotations

from typing import Any

import numpy as np

from esgroup.compare import drawing

INK = drawing.INK


def headed(title: str, note: str, width: float, body: float) -> tuple[Any, Any]:
    """A figure with a title and a note at fixed distances from its top, and the part below them."""
    from matplotlib.figure import Figure

    height = body + 0.66
    made = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    made.get_layout_engine().set(rect=(0.0, 0.0, 1.0, body / height), w_pad=0.08, h_pad=0.06)
    made.text(0.1 / width, 1 - 0.12 / height, title, va="top", fontsize=13, fontweight="bold", color=INK)
    made.text(0.1 / width, 1 - 0.38 / height, note, va="top", fontsize=9, color=INK, alpha=0.75)
    return made, made


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
