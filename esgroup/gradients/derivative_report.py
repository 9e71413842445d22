"""The measurements of a derivative check, Taylor remainders and identities, and its report as text and as a figure.

A Taylor remainder over a range of steps shows whether a derivative is correct, without any reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.plots.axes import framed
from esgroup.plots.style import INK, PALE, RULE, new_figure

STEPS: Array = 0.5 ** np.arange(1.0, 37.0)  # down to 1e-11
CLEAR = 1e3  # times the rounding error: only larger remainders are used
WINDOW = 5  # number of the smallest usable steps: a small error of a derivative shows there and nowhere else
SPACINGS = (1e-9, 1e-6)  # of the points that show rounding errors; the second one works in float32 as well
FEWEST = 3  # points that determine a slope
SLACK = 0.25  # how far a slope may be below the order

Evaluate = Callable[[Array], Array]  # rows F(x_i) from rows x_i

# ---- Taylor remainders ----------------------------------------------------------------------------------------------


class Remainders(NamedTuple):
    """|F(x + h v) - Taylor polynomial| for several directions v (rows) and steps h; it should fall as h^order."""

    name: str
    order: int
    steps: Array  # (n,)
    values: Array  # (directions, n)
    floors: Array  # (directions, n), how large rounding alone may be

    @property
    def slopes(self) -> Array:
        """d log|remainder| / d log h just above rounding, for every direction; inf if there is only rounding."""
        pairs = zip(self.values, self.floors, strict=True)
        return np.array([_slope(self.steps, value, floor) for value, floor in pairs])

    @property
    def slope(self) -> float:
        """Median of `slopes`, since one direction may happen to contain a change of sign."""
        return float(np.median(self.slopes))

    @property
    def fall(self) -> str:
        """`slope` as a text."""
        return "rounding only" if np.isinf(self.slope) else f"falls as h^{self.slope:.2f}"

    @property
    def ok(self) -> bool:
        """Whether the remainder falls as it should."""
        return self.slope > self.order - SLACK


def remainders(
    name: str, evaluate: Evaluate, x: Array, directions: Array, coefficients: Sequence[Array], noise: float
) -> Remainders:
    """Return the remainders of F, given c_0 = F(x), c_1 = F'(x) v, ..., each of shape (directions, m).

    The polynomial is sum_j c_j h^j / j!, so that the remainder falls as h^(number of coefficients).
    """
    lines = [_along(evaluate, x, v, [c[i] for c in coefficients], noise) for i, v in enumerate(directions)]
    values, floors = (np.array(part) for part in zip(*lines, strict=True))
    return Remainders(name, len(coefficients), STEPS, values, floors)


def _along(evaluate: Evaluate, x: Array, v: Array, coefficients: Sequence[Array], noise: float) -> tuple[Array, Array]:
    """The remainders of one direction, and how large rounding alone may be."""
    with np.errstate(all="ignore"):  # large steps may leave the domain: values that are not finite are not used
        far = evaluate(x + STEPS[:, None] * v)
        polynomial, size, power = np.zeros(far.shape), np.linalg.norm(far, axis=1), np.ones(len(STEPS))
        for j, c in enumerate(coefficients):
            power = power * STEPS / j if j else power
            polynomial += np.outer(power, c)
            size = size + np.abs(power) * np.linalg.norm(c)
        gap = np.linalg.norm(far - polynomial, axis=1)
    return gap, noise + np.finfo(np.float64).eps * size


def _slope(steps: Array, values: Array, floors: Array) -> float:
    with np.errstate(invalid="ignore"):
        clear = np.flatnonzero(np.isfinite(values) & (values > CLEAR * floors))[-WINDOW:]
    if len(clear) < FEWEST:
        return float("inf")
    return float(np.polyfit(np.log(steps[clear]), np.log(values[clear]), 1)[0])


def roughness(evaluate: Evaluate, x: Array, v: Array) -> float:
    """Return the evaluation error of F: fourth differences over tiny steps, which vanish for a smooth F.

    Differences of order 4 multiply the variance of independent errors by 1 + 16 + 36 + 16 + 1 = 70 (More and Wild
    2011).
    """
    with np.errstate(invalid="ignore"):  # F may be infinite
        points = [x + np.arange(-4.0, 5.0)[:, None] * (spacing * v) for spacing in SPACINGS]
        differences = [np.diff(evaluate(rows), n=4, axis=0) for rows in points]
    return max(float(np.sqrt((rows**2).sum(axis=1).mean() / 70)) for rows in differences)


# ---- the report -----------------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """An identity between derivatives: its relative error, and its tolerance."""

    name: str
    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the identity holds."""
        return self.error <= self.tolerance


@dataclass(frozen=True, eq=False)
class DerivativeReport:
    """The result of `check_derivatives`. `str(report)` is a short table; the report is true if nothing is wrong.

    Attributes
    ----------
    dim : int
        Number of variables.
    remainders : tuple of Remainders
        Taylor remainders: `name`, `order`, `steps`, `values`, `slope` and `ok` of each.
    laws : tuple of Law
        Identities between derivatives: `name`, `error`, `tolerance` and `ok` of each.
    problems : tuple of str
        What is wrong, empty if nothing is.
    unclear : tuple of str
        Names of the remainders that are hidden by rounding before they fall as they should.
    notes : tuple of str
        What cannot be decided at this point.
    """

    dim: int
    remainders: tuple[Remainders, ...]
    laws: tuple[Law, ...]
    problems: tuple[str, ...]
    unclear: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = [(r.name, r.fall, f"h^{r.order}", self._verdict(r.name, r.ok)) for r in self.remainders]
        rows += [(a.name, f"error {a.error:.1e}", f"{a.tolerance:.0e}", self._verdict(a.name, a.ok)) for a in self.laws]
        width = max((len(row[0]) for row in rows), default=0)
        title = f"derivatives in {self.dim} variables: " + ("right" if self.ok else "wrong")
        lines = [f"  {name:<{width}}  {found:<15}  {wanted:<5}  {verdict}" for name, found, wanted, verdict in rows]
        return "\n".join([title, *lines, *(f"  {text}" for text in (*self.problems, *self.notes))])

    def _verdict(self, name: str, ok: bool) -> str:
        return "ok" if ok else "unclear" if name in self.unclear else "WRONG"


# ---- the figure -----------------------------------------------------------------------------------------------------


def draw_report(report: DerivativeReport, path: Path) -> None:
    """Draw one panel per remainder: its directions, the rounding errors, and the power of h that it should follow."""
    panels = report.remainders
    figure = new_figure(1.0 + 3.6 * max(1, len(panels)), 3.7)
    for k, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(1, len(panels), k + 1), panel)
    title = f"derivatives in {report.dim:,} variables: {'right' if report.ok else 'wrong'}"
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color="#222222")
    figure.savefig(path, dpi=150)


def _draw_panel(axes: Any, panel: Remainders) -> None:
    h = panel.steps
    for k, (values, floors) in enumerate(zip(panel.values, panel.floors, strict=True)):
        _draw_line(axes, h, floors, color=PALE, linewidth=0.8, label="rounding" if k == 0 else None)
        name = panel.fall if k == 0 else None
        _draw_line(axes, h, values, color=INK, linewidth=1.1, marker=".", markersize=4, label=name)
    _draw_expected(axes, panel)
    axes.set(xscale="log", yscale="log" if axes.lines else "linear")
    axes.set_title(panel.name, loc="left", fontsize=9.5, color="#222222")
    axes.set_xlabel("step h", fontsize=9.5, color="#222222")
    framed(axes)
    if axes.lines:
        axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor="#444444")


def _draw_line(axes: Any, h: Array, values: Array, **style: Any) -> None:
    """Draw the values that can be shown on a logarithmic axis."""
    shown = np.isfinite(values) & (values > 0)
    if shown.any():
        axes.loglog(h[shown], values[shown], **style)


def _draw_expected(axes: Any, panel: Remainders) -> None:
    """Draw a line h^order through the largest remainder of the first direction."""
    h, values = panel.steps, panel.values[0]
    positive = np.flatnonzero(np.isfinite(values) & (values > 0))
    if len(positive):
        line = values[positive[0]] * (h / h[positive[0]]) ** panel.order
        style = {"color": RULE, "linewidth": 1.2, "linestyle": (0, (4, 3)), "label": f"should fall as h^{panel.order}"}
        _draw_line(axes, h, np.where(line > axes.get_ylim()[0], line, np.nan), **style)
