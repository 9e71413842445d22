"""How the figures of a comparison look, and how they become files."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from esgroup.checks import Array
from esgroup.compare.report.words import gap
from esgroup.files.outage import naming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#22272b"  # everything except the lines of methods; `to_svg` replaces it. Grays are this color with less opacity
# Okabe and Ito's colors without black and yellow, a brown and a violet: they differ for all kinds of color vision,
# and are visible on white and on black. The numbers of colors and dashes have no common factor, nor have those of
# dashes and markers, so that pairs repeat late.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8b5a2b", "#7b4fd8")
DASHES = ((), (5.0, 1.6), (1.3, 1.3), (6.0, 1.5, 1.3, 1.5), (3.0, 1.2, 1.0, 1.2, 1.0, 1.2))
MARKERS = ("o", "s", "^", "D", "v", "P")
BELOW = 0.6  # the lower end of a logarithmic axis, as a multiple of the lowest value that is drawn
_CURVE = "curve-"


class Style(NamedTuple):
    """How the lines of a method look. Dashes and markers distinguish them without color."""

    color: str
    dashes: tuple[float, ...]  # lengths of strokes and gaps, empty for a solid line
    marker: str


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Choose a style for each method: the same methods in the same order have the same styles in all figures."""
    return {
        name: Style(COLORS[i % len(COLORS)], DASHES[i % len(DASHES)], MARKERS[i % len(MARKERS)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def plain() -> AbstractContextManager[None]:
    """Use matplotlib's own settings, whatever the user's are; in SVG text stays text, and names do not change."""
    from matplotlib import style

    return style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "esgroup", "text.parse_math": False}])


def blank(label: str, width: float, body: float, title: str, note: str, looks: dict[str, Style]) -> Figure:
    """Make a figure with a head above its body: title, note and legend, at fixed distances from the top."""
    from matplotlib.figure import Figure  # without pyplot, which would keep the figure and might open a window
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    columns = max(1, min(len(looks), int(width / (0.75 + 0.078 * max(map(len, looks))))))  # 9 pt, the longest name
    height = body + 0.64 + 0.19 * math.ceil(len(looks) / columns)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=(0.0, 0.0, 1.0, body / height))
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    figure.set_label(label)
    figure.text(0.1 / width, 1 - 0.12 / height, title, va="top", fontsize=13, fontweight="bold", color=INK)
    figure.text(0.1 / width, 1 - 0.37 / height, note, va="top", fontsize=9, color=INK, alpha=0.75)
    look = {"frameon": False, "fontsize": 9, "labelcolor": INK, "handlelength": 3.2, "ncols": columns}
    samples = [
        Line2D([], [], color=one.color, dashes=one.dashes, marker=one.marker, markersize=4, label=name)
        for name, one in looks.items()
    ]
    figure.legend(handles=samples, loc="upper left", bbox_to_anchor=(0.0, 1 - 0.52 / height), **look)
    return figure


def line(axes: Any, x: Array, y: Array, look: Style, **style: Any) -> Any:
    (line,) = axes.plot(x, y, color=look.color, dashes=look.dashes, linewidth=1.5, **style)
    return line


def readable(line: Any) -> None:
    """Name the group of a line in the SVG, so that a page can find its points and say what they are."""
    number = sum(str(other.get_gid()).startswith(_CURVE) for other in line.axes.lines)
    line.set_gid(f"{_CURVE}{line.axes.get_subplotspec().num1}-{number}")


def notebook(axes: Any, title: str, longest: int = 1000) -> None:
    """Give a panel its title, grid and ticks; a title of more than `longest` letters is smaller."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_title(title, loc="left", fontsize=9.5 * min(1.0, longest / max(len(title), 1)), color=INK)
    axes.grid(True, color=INK, alpha=0.1, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=INK, alpha=0.5)
    axes.tick_params(color=INK, labelcolor=INK, labelsize=8.5)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(numticks=6))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(lambda x, position: _power(x))


def name_axis(axis: Any, text: str) -> None:
    axis.set_label_text(text, fontsize=9, color=INK)


def _power(x: float) -> str:
    """Format a number as a power of ten if that is shorter: 100, but 10⁻⁶."""
    if 0.01 <= x < 10_000:
        return f"{x:,g}"
    return "10" + f"{math.log10(x):.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def settled(figure: Figure) -> Figure:
    """Fix the layout: otherwise it is computed, slowly, for each file, and differs a little between formats."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


# ---- files ----------------------------------------------------------------------------------------------------------


def save(figure: Figure, path: str | PathLike[str]) -> Path:
    """Write a figure as .png or .svg on white; equal runs give equal bytes."""
    path = Path(path)
    with naming(path), plain():
        if path.suffix.lower() == ".svg":
            path.write_text(_svg(figure, transparent=False), encoding="utf-8", newline="")
        else:
            figure.savefig(path, dpi=160)
    return path


def to_svg(figure: Figure) -> str:
    """Convert a figure to an SVG element of a page: transparent, with its ink in the color of the text around it.

    All names in it start with the figure's label, so that several figures on one page do not conflict. Text stays
    text, in the page's sans-serif font. A readable line has a title, which browsers show under the pointer.
    """
    svg = _svg(figure, transparent=True)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    for axes in figure.axes:
        for one in _readable(axes):
            group = f'<g id="{one.get_gid()}">'
            svg = svg.replace(group, f"{group}<title>{escape(_last_point(one))}</title>", 1)
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{figure.get_label()}-", svg)


def panels(figure: Figure) -> list[dict[str, Any]]:
    """The panels of a figure as JSON types, with which the script of a page finds the numbers at a position.

    A panel is described by its place in the SVG: positions in units of its viewBox, and the numbers at the ends of its
    axes. The x axis is logarithmic; if y is logarithmic as well, values below `floor` are drawn there. Each line has
    the end of its name in the SVG, its label, and its color.
    """
    return [_panel(axes, *(72 * figure.get_size_inches())) for axes in figure.axes]


def _panel(axes: Any, width: float, height: float) -> dict[str, Any]:
    box, (y0, y1) = axes.get_position(), axes.get_ylim()
    return {
        "title": axes.get_title(loc="left"),
        "left": round(width * box.x0, 2),
        "right": round(width * box.x1, 2),
        "top": round(height * (1 - box.y1), 2),
        "bottom": round(height * (1 - box.y0), 2),
        "x": [float(end) for end in axes.get_xlim()],
        "y": [float(y0), float(y1)],
        "floor": float(y0) / BELOW if axes.get_yscale() == "log" else None,
        "x_label": _x_label(axes),
        "y_label": str(axes.get_label()),
        "lines": [
            {"name": one.get_gid(), "label": one.get_label(), "color": one.get_color()} for one in _readable(axes)
        ],
    }


def _x_label(axes: Any) -> str:
    """The label of the horizontal axis, which only the lowest panels have."""
    return next((one.get_xlabel() for one in axes.figure.axes if one.get_xlabel()), "")


def _readable(axes: Any) -> list[Any]:
    return [one for one in axes.lines if str(one.get_gid()).startswith(_CURVE)]


def _last_point(line: Any) -> str:
    """The last point of a line, in words."""
    there = [(x, y) for x, y in zip(*line.get_data(), strict=True) if math.isfinite(y)]
    if not there:
        return str(line.get_label())
    (x, y), axes = there[-1], line.axes
    value = gap(y) if axes.get_yscale() == "log" else f"{math.floor(100 * y)} %"  # 100 % means all
    return f"{line.get_label()}: {axes.get_label()} {value} at {x:,.4g} {_x_label(axes)}"


def _svg(figure: Figure, *, transparent: bool) -> str:
    """SVG without date, metadata, style rules that would apply to a whole page, and invisible digits."""
    file = io.StringIO()
    with plain():
        figure.savefig(file, format="svg", transparent=transparent)
    svg = re.sub(r" *<(metadata|style)\b.*?</\1>\n", "", file.getvalue(), flags=re.DOTALL)
    svg = svg.replace("<svg ", '<svg style="stroke-linejoin: round; stroke-linecap: butt" ', 1)
    svg = re.sub(r"(font-family: |font: [^;\"']*px )[^;\"]*", r"\1sans-serif", svg)
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"\d+\.\d+", _rounded, path[0]), svg)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
