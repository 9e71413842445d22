"""Figures of a comparison: convergence, and runtime profiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.compare.records import Cost, RunRecord
from esgroup.compare.report import drawing
from esgroup.compare.report.drawing import BELOW, INK, Style
from esgroup.compare.report.statistics import Curve, curve, ecdf
from esgroup.compare.report.summary import Block, blocks, known, methods, pairs, targets
from esgroup.plots.axes import thinned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 24  # per figure
POINTS = 80  # per line of convergence
MOST_STEPS = 300  # per line of a profile
GAP = "gap to the minimum"
_LONGEST = 36  # letters of a panel's title; a longer one would run into the next panel

Panels = list[tuple[tuple[str, int], Block]]


# ---- convergence ----------------------------------------------------------------------------------------------------


def convergence(runs: Sequence[RunRecord], scaled: Mapping[tuple[str, int], str] | None = None) -> list[Figure]:
    """Draw gaps over evaluations, one panel for each problem in each dimension, at most 24 in a figure.

    A line is the median over runs of the best gap so far, a band lies between the quartiles. A run that has ended keeps
    its last gap; a run without any value has the gap inf, which leaves the band open. A line ends, with a marker, where
    more than half of the runs have ended and the median no longer changes: at the median cost of the table, if that is
    finite. Where the minimum is not known, the lowest median is subtracted from the values.

    `scaled` maps cases, pairs of problem and dimension, to the factor by which they differ from the usual function; the
    title of a panel repeats it. The label of a figure is convergence, or convergence-1, convergence-2, ... if there are
    several.
    """
    panels, looks = list(blocks(runs).items()), drawing.styles(methods(runs))
    parts = [panels[i : i + MOST_PANELS] for i in range(0, len(panels), MOST_PANELS)]
    labels = ["convergence"] if len(parts) == 1 else [f"convergence-{k}" for k in range(1, len(parts) + 1)]
    columns = min(_columns(panels), len(panels))
    with drawing.plain():
        return [
            _convergence(part, label, columns, looks, scaled or {}) for part, label in zip(parts, labels, strict=True)
        ]


def _columns(panels: Panels) -> int:
    """Choose a row for one or two problems, if all of them occur in the same few dimensions."""
    dims = len({dim for (_, dim), _ in panels})
    whole = len(panels) == dims * len({problem for (problem, _), _ in panels})
    return 4 if whole and dims in (2, 4) else 3


def _convergence(
    panels: Panels, label: str, columns: int, looks: dict[str, Style], scaled: Mapping[tuple[str, int], str]
) -> Figure:
    rows, width = math.ceil(len(panels) / columns), {1: 6.5, 2: 8.0}.get(columns, 11.0)
    note = "best so far: median of the runs, and quartiles; the horizontal line is the last target"
    figure = drawing.blank(label, width, (3.4 if columns == 1 else 2.45) * rows, "Convergence", note, looks)
    for i, ((problem, dim), block) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        shown = _converge(axes, block, looks)
        axes.set_label(f"median {shown}")
        factor = scaled.get((problem, dim))
        title = f"{problem}  ·  d = {dim:,}{f'  ·  {factor}' if factor else ''}"
        drawing.notebook(axes, title, _LONGEST if factor and columns > 2 else len(title))
        if i % columns == 0 or shown != GAP:
            drawing.name_axis(axes.yaxis, shown)
        if i + columns >= len(panels):
            drawing.name_axis(axes.xaxis, _counted(panels))
    return drawing.settled(figure)


def _counted(panels: Panels) -> str:
    gradients = any(run.cost is Cost.GRADIENTS for _, block in panels for runs in block.values() for run in runs)
    return "values and gradients" if gradients else "evaluations"


def _converge(axes: Any, block: Block, looks: dict[str, Style]) -> str:
    """Draw the curves of all methods and return the label of the vertical axis."""
    last = (targets(block) or (1.0,))[-1]
    curves = {method: _curve(runs, last) for method, runs in block.items()}
    middle = np.concatenate([one.middle for one in curves.values()])
    height = _height(known(block), last, middle[np.isfinite(middle)])
    axes.set(xscale="log", yscale="log", ylim=(BELOW * height.floor, height.top), xlim=_span(curves.values()))
    for method, one in curves.items():
        _band(axes, one, height, looks[method], opacity=min(0.13, 0.8 / len(curves)), label=method)
    if last >= height.shift:
        target = max(last - height.shift, height.floor)
        axes.axhline(target, color=INK, alpha=0.45, linewidth=0.8, zorder=1)
    if not np.isfinite(middle).any():
        axes.text(0.5, 0.5, "no median", transform=axes.transAxes, ha="center", color=INK, alpha=0.6, fontsize=9)
    return height.label


def _curve(runs: list[RunRecord], target: float) -> Curve:
    costs, gaps = ([[getattr(p, name) for p in run.trajectory] for run in runs] for name in ("cost", "gap"))
    return curve(costs, gaps, [run.used for run in runs], target=target, points=POINTS)


def _band(axes: Any, one: Curve, height: Height, look: Style, *, opacity: float, label: str) -> None:
    low, middle, high = (np.maximum(part - height.shift, height.floor) for part in one[1:])
    upper = np.minimum(high, height.top)  # it may be inf
    axes.fill_between(one.cost, low, upper, where=low < upper, color=look.color, alpha=opacity, linewidth=0)
    drawing.readable(drawing.line(axes, one.cost, np.where(np.isfinite(middle), middle, np.nan), look, label=label))
    axes.plot(one.cost[-1:], middle[-1:], look.marker, color=look.color, markersize=4.2)


class Height(NamedTuple):
    """A logarithmic axis for gaps: what is subtracted from them, its ends and its label."""

    shift: float
    floor: float
    top: float
    label: str


def _height(minimum_known: bool, target: float, middle: Array) -> Height:
    """An axis from the target, or the smallest median above the lowest, to beyond the largest."""
    lowest = 0.0 if minimum_known or not len(middle) else float(middle.min())
    above = middle[middle > lowest] - lowest
    largest = float(above.max(initial=0.0))
    positive = minimum_known and target > 0
    floor = target if positive else max(float(above.min(initial=largest or 1.0)), 1e-6 * largest)
    label = GAP if minimum_known else f"value − lowest ({lowest:.4g})".replace("-", "−")
    return Height(lowest, floor, 2.5 * max(largest, 4 * floor), label)


def _span(curves: Iterable[Curve]) -> tuple[float, float]:
    """Range of costs in which a good part of the shortest line is visible."""
    ends = [float(one.cost[-1]) for one in curves if np.isfinite(one.middle).any()] or [100.0]
    return max(min(ends) / 30, 0.8), 1.25 * max(ends)


# ---- profiles -------------------------------------------------------------------------------------------------------


def profile(runs: Sequence[RunRecord]) -> Figure:
    """Draw runtime profiles: the share of targets, over all runs, reached within so many evaluations per dimension.

    This is the empirical distribution function of cost / size over all pairs of a run and a target (Hansen et al.,
    COCO: performance assessment, arXiv:1605.03560, 2016), for all problems together, and for each dimension if there
    are several. A target that was not reached counts as inf, and so does a missing run. A cross shows where the longest
    run of a method ended; beyond it the line is thin, because nothing was tried there.
    """
    all_blocks, looks = blocks(runs), drawing.styles(methods(runs))
    dims = sorted({dim for _, dim in all_blocks})
    panels = {"all": list(all_blocks.values())}
    if len(dims) > 1:
        panels |= {f"d = {dim:,}": [block for (_, at), block in all_blocks.items() if at == dim] for dim in dims}
    with drawing.plain():
        return _profile(panels, {1: 1, 4: 2}.get(len(panels), 3), looks)


def _profile(panels: dict[str, list[Block]], columns: int, looks: dict[str, Style]) -> Figure:
    rows, (width, high) = math.ceil(len(panels) / columns), {1: (7.5, 4.2), 2: (11.0, 3.1), 3: (11.0, 2.7)}[columns]
    note = f"{sum(map(pairs, panels['all'])):,} pairs of a run and a target; × where a method's longest run has ended"
    figure = drawing.blank("profile", width, high * rows, "Runtime profiles", note, looks)
    for i, (name, panel) in enumerate(panels.items()):
        axes: Any = figure.add_subplot(rows, columns, i + 1)
        axes.set(xscale="log", xlim=_reach(panels.values(), looks), ylim=(0, 1.03), label="targets reached")
        axes.set_yticks(np.linspace(0, 1, 5), ["0", "25 %", "50 %", "75 %", "100 %"])
        for method, look in looks.items():
            _distribution(axes, panel, method, look)
        drawing.notebook(axes, name if len(panels) == 1 else f"{name}  ·  {sum(map(pairs, panel)):,} pairs")
        if i % columns == 0:
            drawing.name_axis(axes.yaxis, "targets reached")
        if i + columns >= len(panels):
            drawing.name_axis(axes.xaxis, "evaluations / dimension")
    return drawing.settled(figure)


def _distribution(axes: Any, panel: list[Block], method: str, look: Style) -> None:
    runs = [run for block in panel for run in block.get(method, [])]
    if not runs:
        return
    x, share = ecdf([hit / run.size for run in runs for hit in run.hits], sum(map(pairs, panel)))
    kept = thinned(len(x), MOST_STEPS)
    x, share = x[kept], share[kept]
    (left, right), end = axes.get_xlim(), _longest(runs)
    x, share = np.concatenate([x[:1] if len(x) else [left], x, [end]]), np.append(0.0, share)  # starts at zero
    steps = drawing.line(axes, x, np.append(share, share[-1]), look, label=method, drawstyle="steps-post")
    steps.set(marker=look.marker, markersize=3.6, markevery=(0.1, 0.3))
    drawing.readable(steps)
    axes.plot([end, right], [share[-1]] * 2, color=look.color, linewidth=0.7)
    if share[-1] < 1:
        axes.plot([end], share[-1:], "x", color=look.color, markersize=7, markeredgewidth=1.6, clip_on=False)


def _reach(panels: Iterable[list[Block]], names: Iterable[str]) -> tuple[float, float]:
    """Range from the first target that was reached to beyond the longest run, in evaluations per dimension."""
    groups = [[run for block in panel for run in block.get(name, [])] for panel in panels for name in names]
    ends = [_longest(runs) for runs in groups if runs]
    return 0.8 * min([hit / run.size for runs in groups for run in runs for hit in run.hits] + ends), 2 * max(ends)


def _longest(runs: list[RunRecord]) -> float:
    """Evaluations per dimension of the longest run; at least one evaluation, for the logarithmic axis."""
    return max(max(run.used, 1) / run.size for run in runs)
