"""Shared parts of the panels of figures: values on a logarithmic axis, grids, numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.plots.style import GRID

MOST_POINTS = 2000  # per line: more cannot be seen, and make files large
FURTHEST = 1e150  # larger and smaller values are drawn at it and its inverse: sums, margins and squares stay finite


def thinned(count: int, most: int = MOST_POINTS) -> Array:
    """Indices of the points of a line to draw, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def drawable(values: Array) -> Array:
    """Clip values that are too large or too small for an axis; zeros and NaN stay."""
    return np.where(values == 0, 0.0, np.copysign(np.clip(np.abs(values), 1 / FURTHEST, FURTHEST), values))


def shift(values: Array) -> tuple[float, str]:
    """What to subtract from the values for a logarithmic axis, and the label of the axis."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (1.0, 1.0)
    if low > 0 and (high >= 2 * low or high == low):
        return 0.0, "best value"
    return float(low), f"best value − lowest ({minus(f'{low:.8g}')})"


def positive(values: Array) -> Array:
    """Replace values without a logarithm by NaN."""
    return np.where(values > 0, values, np.nan)


def log_scale(axes: Any, values: Array) -> None:
    """Make the y axis logarithmic if a value is positive."""
    if (values[np.isfinite(values)] > 0).any():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_log_formatter())
        axes.yaxis.set_minor_formatter(_log_formatter())


def _log_formatter() -> Any:
    """Formatter that uses powers of ten where they are shorter: 0.05 and 20, but 10^-6."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Formatter(LogFormatterSciNotation):
        def __call__(self, x: float, pos: Any = None) -> str:
            text = super().__call__(x, pos)  # empty where there would be too many labels
            return f"{x:g}" if text and 0.01 <= x < 10_000 else text

    return Formatter(labelOnlyBase=False, minor_thresholds=(1.0, 0.4))


def framed(axes: Any) -> None:
    """Give a panel its grid, spines and ticks."""
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(colors="#555555", labelsize=8.5, which="both")


def notebook(axes: Any, evaluations: float, *, named: bool) -> None:
    """Frame a panel over this many evaluations; `named` says whether its x axis has a name."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    framed(axes)
    axes.tick_params(labelbottom=named, which="both")
    axes.tick_params(which="minor", length=2, labelsize=7.5)
    axes.set_xlim(0, evaluations)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.label.set(size=9.5, color="#222222")
    if named:
        axes.set_xlabel("evaluations", fontsize=9.5, color="#222222")


def head(figure: Any, headers: Sequence[dict[str, Any]], most: int) -> None:
    """Write above a figure what all its runs have in common, in at most `most` letters."""
    parts = (
        {header.get("problem") for header in headers},
        {size(header["dim"], header.get("shape", ())) for header in headers},
        {header.get("structure") for header in headers},
    )
    common = [str(one) for values in parts if len(values) == 1 and (one := next(iter(values)))]
    title = short("  ·  ".join(common), most) or f"{len(headers)} runs"
    look = {"fontsize": 13, "fontweight": "bold", "color": "#222222"}
    figure.suptitle(title, x=0.012, ha="left", parse_math=False, **look)


def size(dim: int, shape: Sequence[int]) -> str:
    """Name the number of variables, or the shape of matrices."""
    return f"{dim:,} variable{'s' * (dim != 1)}" if len(shape) < 2 else " x ".join(map(str, shape))


def coordinate(j: int) -> str:
    """Name of a variable that has none: x₁, x₂, ..."""
    return "x" + str(j + 1).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def short(text: str, most: int) -> str:
    """Truncate text that would leave no room for the panels."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def minus(number: str) -> str:
    """Write a number with a minus sign instead of a hyphen."""
    return number.replace("-", "−")
