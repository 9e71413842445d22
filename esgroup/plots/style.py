"""Shared by all figures: file formats, colors, and how to make an empty figure."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

SUFFIXES = (".png", ".svg", ".pdf")
INK, PALE, GRID, RULE = "#1b4965", "#9dbccf", "#e6e6e6", "#b0563b"
# one per line of a figure; distinguishable also without telling red from green
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6a3d9a", "#555555")


def check_out(out: str | PathLike[str]) -> Path:
    """Check where to write a figure, before anything is computed, and return the path.

    Parameters
    ----------
    out
        Path that ends in .png, .svg or .pdf, in an existing folder.

    Raises
    ------
    ValueError
        If the suffix is another one, or there is no such folder.
    ImportError
        If matplotlib is not installed.
    """
    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"the figure's file must end in {', '.join(SUFFIXES)}, got {str(out)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"the figure's file must be in an existing folder, got {str(out)!r}")
    if find_spec("matplotlib") is None:  # not imported yet: that takes half a second, and a search may come first
        raise ImportError("figures need matplotlib: pip install 'esgroup[plot]'")
    return path


def new_figure(width: float, height: float) -> Any:
    """Make an empty figure of this size in inches."""
    from matplotlib.figure import Figure  # not through pyplot, which keeps figures and may open windows
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06)
    return Figure(figsize=(width, height), layout=layout, facecolor="white")
