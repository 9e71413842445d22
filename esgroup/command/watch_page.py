"""The page of `esgroup watch`: numbers, panels and events of a history, as one HTML file that needs nothing else.

Panels are SVG without text, stretched to their box; their labels are text of the page. So letters keep their size on a
phone, colors follow the theme, and no drawing library is needed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Literal, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.files.markup import Html, content_policy, data_block, html, joined
from esgroup.plots.axes import coordinate, drawable
from esgroup.running.follow import Followed, Generation

MARK = '<meta name="generator" content="esgroup watch">'  # marks a page as ours
MOST_POINTS = 500  # of a line
MOST_NUMBERS = 15_000  # of all lines of a panel: with many variables each has fewer points
POINTED = 250  # generations whose numbers can be pointed at
SPEEDS = 40  # parts of the run in which evaluations per second are measured
MOST_NAMED = 6  # variables in a legend
MOST_EVENTS = 10
MOST_RULES = 40  # vertical lines at restarts
NEAR = 1e-12  # a target is drawn if it is no less than this part of the best value: otherwise the rest would be flat
LATER = 30  # seconds after which a page that is no longer written looks for another one
WIDTH, HEIGHT = 4000, 2000  # units of a panel's drawing

ENDS = {"interrupted": ("interrupted", "Interrupted"), "failed": ("failed", "Failed")}  # class and words of a state

State = Literal["waiting", "running", "quiet", "ended", "left"]


class Moment(NamedTuple):
    """What a page says besides the history: its state, times in seconds since 1970, and how often it is written."""

    state: State
    now: float
    changed: float | None  # when the history was written last
    every: float
    history: str  # the name of the file


def page(run: Followed, moment: Moment) -> str:
    """The page as text."""
    template = files("esgroup.command").joinpath("watch.html").read_text(encoding="utf-8")
    live = moment.state in ("waiting", "running", "quiet")
    name = run.header.get("problem") or moment.history
    best = f"{number(run.generations[-1].best_f)} · " if run.generations else ""
    refresh = '<noscript><meta http-equiv="refresh" content="{}"></noscript>\n'
    return Template(template).substitute(
        policy=content_policy(template, "; frame-src 'self' file:"),
        refresh=html(refresh, max(1, round(moment.every))) if live else "",
        title=html("{}{}{}", "" if live else "■ ", best, name),
        content=joined(_content(run, moment, name, live), "\n"),
    )


def _content(run: Followed, moment: Moment, name: str, live: bool) -> Iterable[Html]:
    yield _head(run, moment, name)
    pointed: dict[str, Any] = {"x": [], "label": [], "shows": {}}
    if run.generations:
        course = Course(run.generations)
        panels = _panels(run, course)
        rows = _picked(len(course.x), POINTED)
        pointed["x"] = course.x[rows].round(4).tolist()
        pointed["label"] = [f"{nfev:,.0f}" for nfev in course.nfev[rows]]
        for panel in panels:
            for key, values in panel.shows.items():
                pointed["shows"][key] = [number(v, panel.digits) for v in values[rows]]
        yield _tiles(run, live)
        figures = joined((_figure(panel, course) for panel in panels), "\n")
        last = _last_generations(run.generations[-8:], _best_digits(run))
        yield html('<div class="panels">\n{}\n{}{}</div>', figures, _events(run), last)
    elif live:
        yield html('<p class="message">No generations yet. The first one will appear here.</p>')
    yield _foot(moment, live)
    yield data_block(pointed)


# ---- head, numbers, events, foot ------------------------------------------------------------------------------------


def _head(run: Followed, moment: Moment, name: str) -> Html:
    how = run.end.get("how", "")
    state, words = {
        "waiting": ("waiting", "Waiting for the first generation"),
        "running": ("running", "Searching"),
        "quiet": ("quietly", "No updates"),
        "ended": ENDS.get(how, ("ended", "Ended")),
        "left": ("quietly", "No longer watched"),
    }[moment.state]
    parts = [_size(run.header), run.header.get("structure"), moment.history if name != moment.history else ""]
    about = " · ".join(str(part) for part in parts if part)
    message = html("")
    if run.end:
        message = html('<p class="message {}">{}</p>', how if how in ENDS else "", run.end["message"])
    elif moment.state == "left":
        message = html('<p class="message">The search may still be running: esgroup watch stopped first.</p>')
    news = html("")
    if moment.changed is not None:
        clock = time.strftime("%H:%M:%S", time.localtime(moment.changed))
        last = '<p class="about">last generation <time data-at="{:.1f}">at {}</time></p>'
        news = html(last, moment.changed, clock)
    return html(
        '<header><div><h1>{}</h1><p class="about">{}</p></div><div><p class="state {}">{}</p>{}</div></header>{}',
        *(name, about, state, words, news, message),
    )


def _size(header: dict[str, Any]) -> str:
    shape = header.get("shape", ())
    if len(shape) == 2:
        return " × ".join(map(str, shape)) + " matrices"
    return _counted(header["dim"], "variable") if header else ""


def _tiles(run: Followed, live: bool) -> Html:
    last, limits = run.generations[-1], run.limits
    target, most, longest = (limits.get(name) for name in ("target", "max_evals", "max_time"))
    best = [] if target is None else [f"target {number(target)}"]
    if not last.feasible:
        best.append("not feasible" + (f", violated by {number(last.violation)}" if last.violation > 0 else ""))
    elif math.isfinite(last.violation):
        best.append("feasible")
    speed, left, rounds = _speed(run.generations), _time_left(run) if live else "", limits.get("max_iters")
    counts = [] if rounds is None else [f"of {rounds:,}"]
    counts += [_counted(last.restart, "restart")] if last.restart else []
    tiles = [
        _tile("Best value", number(last.best_f, _best_digits(run)), ", ".join(best)),
        _tile("Evaluations", f"{last.nfev:,.0f}", "" if most is None else f"of {most:,}", _share(last.nfev, most)),
        _tile("Time", duration(last.elapsed), left, _share(last.elapsed, longest)),
        _tile("Evaluations per second", "–" if math.isnan(speed) else number(speed, 3), ""),
        _tile("Generations", f"{last.nit:,.0f}", ", ".join(counts), _share(last.nit, rounds)),
    ]
    if math.isfinite(last.sigma):
        ratio = f"axis ratio {number(last.axis_ratio, 3)}" if math.isfinite(last.axis_ratio) else ""
        tiles.append(_tile("Step size", number(last.sigma, 3), ratio))
    return html('<dl class="tiles">{}</dl>', joined(tiles))


def _best_digits(run: Followed) -> int:
    """Digits of the best value: more where values are large compared with their differences."""
    return 8 if _shift(np.array([g.best_f for g in run.generations]))[0] else 4


def _tile(name: str, value: str, more: str, share: float | None = None) -> Html:
    bar = html("")
    if share is not None:
        bar = html(
            '<div class="bar" role="progressbar" aria-label="{}, share of the limit" aria-valuenow="{:.0f}">'
            '<i style="width:{:.0f}%"></i></div>',
            *(name, 100 * share, 100 * share),
        )
    return html('<div><dt>{}</dt><dd>{}</dd><dd class="more">{}{}</dd></div>', name, value, bar, more)


def _share(value: float, most: float | None) -> float | None:
    return None if not most else min(1.0, value / most)


def _speed(generations: Sequence[Generation]) -> float:
    """Evaluations per second in the last tenth of the run, or its last ten seconds if that is more; NaN if unknown."""
    last = generations[-1]
    since = last.elapsed - max(10.0, last.elapsed / 10)
    first = next((g for g in reversed(generations) if g.elapsed <= since), generations[0])
    seconds = last.elapsed - first.elapsed
    if seconds > 0:
        return (last.nfev - first.nfev) / seconds
    return last.nfev / last.elapsed if last.elapsed > 0 else math.nan


def _time_left(run: Followed) -> str:
    """The time until a budget is used up at the current speed; empty without a budget."""
    last, speed = run.generations[-1], _speed(run.generations)
    rounds = last.nit / last.elapsed if last.elapsed > 0 else 0.0  # per second
    known = (("max_time", last.elapsed, 1.0), ("max_evals", last.nfev, speed), ("max_iters", last.nit, rounds))
    budgets = [(run.limits.get(name), spent, rate) for name, spent, rate in known if rate > 0]
    left = min(((most - spent) / rate for most, spent, rate in budgets if most is not None), default=math.inf)
    return "" if math.isinf(left) else f"at most about {duration(max(0.0, left))} left"


def _events(run: Followed) -> Html:
    last = run.generations[-1]
    known = [(event.nfev, event.elapsed, event.text) for event in run.events]
    how = run.end.get("how", "last generation so far")
    known.append((last.nfev, last.elapsed, {"stopped": "ended", "left": "closed"}.get(how, how)))
    items = [
        html("<li>{}<span>{:,.0f} evaluations, {}</span></li>", text, nfev, duration(elapsed))
        for nfev, elapsed, text in known[: -MOST_EVENTS - 1 : -1]
    ]
    more = len(known) - len(items)
    items += [html("<li>{} before</li>", _counted(more, "event"))] if more else []
    return html('<section><h2>Events, newest first</h2><ol class="events">{}</ol></section>', joined(items))


def _last_generations(generations: Sequence[Generation], digits: int) -> Html:
    title = "The last generations" if len(generations) > 1 else "The first generation"
    names = ("Evaluations", "Best value", "Best of generation", "Step size", "Seconds")
    rows = []
    for g in reversed(generations):
        values = number(g.best_f, digits), number(g.gen_best, digits), number(g.sigma, 3)
        cells = f"{g.nfev:,.0f}", *values, f"{g.elapsed:,.2f}"
        rows.append(html("<tr>{}</tr>", joined(html("<td>{}</td>", cell) for cell in cells)))
    return html(
        '<section><h2 id="last">{}</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="last">'
        "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></section>",
        *(title, joined(html('<th scope="col">{}</th>', name) for name in names), joined(rows)),
    )


def _foot(moment: Moment, live: bool) -> Html:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment.now))
    every = f"{moment.every:g}" if live else LATER
    again = f", and updated every {every} s; no need to reload" if live else " for the last time"
    stale = "This page has not been updated for some time: esgroup watch seems to have stopped."
    return html(
        '<footer data-every="{}" data-live="{}" data-written="{:.1f}">'
        "<p>Written by esgroup watch at {}{}. Nothing is sent anywhere.</p>"
        '<p class="stale" hidden>{}</p></footer>',
        *(every, "yes" if live else "no", moment.now, at, again, stale),
    )


# ---- what is drawn --------------------------------------------------------------------------------------------------


class Course:
    """The generations as arrays: places on the axis of evaluations, and any entry by its name.

    `drawn` has an entry as it is drawn: without values that are too large for any axis.
    """

    def __init__(self, generations: Sequence[Generation]) -> None:
        self._generations = generations
        self.nfev, self.restart = self["nfev"], self["restart"]
        self.x = self.nfev / self.nfev[-1]

    def __getitem__(self, name: str) -> Array:
        return np.array([getattr(g, name) for g in self._generations], dtype=np.float64)

    def drawn(self, name: str) -> Array:
        return drawable(self[name])


class Line(NamedTuple):
    """One line of a panel; `x` is the course's unless it has its own."""

    kind: str  # the class that gives it its color
    y: Array
    x: Array | None = None
    style: str = ""


class Key(NamedTuple):
    """One entry of a legend, and the name under which its numbers can be pointed at."""

    kind: str
    name: str
    value: float = math.nan
    shows: str = ""
    style: str = ""


class Panel(NamedTuple):
    """A title, lines over the evaluations, and the numbers shown at the pointer."""

    title: str
    lines: list[Line]
    shows: dict[str, Array]  # by the name of the place that shows them; the panel's own is the first
    legend: Sequence[Key] = ()
    log: bool = True
    zero: bool = False  # whether the axis starts at zero
    digits: int = 4  # of the numbers to point at
    wide: bool = False


def _panels(run: Followed, course: Course) -> list[Panel]:
    found = [
        _best_value(run, course),
        _one_line(course, "Step size", "sigma"),
        _one_line(course, "Axis ratio", "axis_ratio"),
        _coordinates(run, course, "Mean", "mean", log=False),
        _coordinates(run, course, "Standard deviations", "stds", log=True),
        _speeds(course),
        _one_line(course, "Largest violation at the best point", "violation", kind="unfeasible"),
    ]
    # without step sizes in the space, or before there are two times, there is nothing to draw
    return [panel for panel in found if panel.wide or any(np.isfinite(line.y).any() for line in panel.lines)]


def _one_line(course: Course, title: str, name: str, *, kind: str = "curve") -> Panel:
    return Panel(title, [Line(kind, course.drawn(name))], {name: course[name]})


def _best_value(run: Followed, course: Course) -> Panel:
    best, of_generation, feasible = course.drawn("best_f"), course.drawn("gen_best"), course["feasible"] > 0
    target = run.limits.get("target")
    shift, title = _shift(best)
    shown, lines, legend = best - shift, [], []
    if shift and (shown > 0).any():
        shown = np.where(shown <= 0, shown[shown > 0].min() / 3, shown)  # the lowest itself is at the bottom
    if np.isfinite(of_generation).any():
        lines.append(Line("of-generation", of_generation - shift))
        how = "of the generation" + ", by the Lagrangian" * bool(np.isfinite(course["violation"]).any())
        legend.append(Key("of-generation", how, course["gen_best"][-1], "gen_best"))
    if not feasible.all():
        lines.append(Line("unfeasible", np.where(feasible, np.nan, shown)))
        legend.append(Key("unfeasible", "so far, not feasible"))
    if np.isfinite(shown[feasible]).any():
        lines.append(Line("curve", np.where(feasible, shown, np.nan)))
        legend.append(Key("curve", "so far"))
    known = shown[shown > 0]
    if target is not None and len(known) and target - shift >= NEAR * known.min():
        lines.append(Line("target", drawable(np.full(2, target - shift)), np.array([0.0, 1.0])))
        legend.append(Key("target", "target", target))
    if run.events and course.restart[-1] > 0:
        legend.append(Key("restarts", "restarts"))
    shows = {name: course[name] for name in ("best_f", "gen_best")}
    return Panel(title, lines, shows, legend, wide=True, digits=_best_digits(run))


def _shift(values: Array) -> tuple[float, str]:
    """What to subtract from the values for a logarithmic axis, and the title that says so."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 1.0)
    if low > 0 and (high >= 2 * low or high == low):
        return 0.0, "Best value"
    return low, f"Best value, above the lowest so far ({number(low, 8)})"


def _coordinates(run: Followed, course: Course, title: str, name: str, *, log: bool) -> Panel:
    values, drawn = course[name], course.drawn(name)
    count, dim = values.shape[1], run.header["dim"]
    width = 1.75 if count <= 10 else 1.1 if count <= 40 else 0.7
    style = [f"--i:{j / max(1, count - 1):.3f};--w:{width}" for j in range(count)]
    named = _picked(count, MOST_NAMED).tolist()
    names = _names(run.header, count)
    legend = [Key("coordinate", names[j], values[-1, j], f"{name}{j}", style[j]) for j in named]
    lines = [Line("coordinate", drawn[:, j], style=style[j]) for j in range(count)]
    title += "" if count == dim else f", first {count} of {dim:,}"
    return Panel(title, lines, {f"{name}{j}": values[:, j] for j in named}, legend, log)


def _names(header: dict[str, Any], count: int) -> list[str]:
    """Names of variables: those of parameters, row and column of matrices, or x₁, x₂, ..."""
    if header.get("names"):
        return list(header["names"])
    shape = header.get("shape", ())
    if len(shape) == 2:
        return [f"[{j // shape[1] + 1}, {j % shape[1] + 1}]" for j in range(count)]
    return [coordinate(j) for j in range(count)]


def _speeds(course: Course) -> Panel:
    """Evaluations per second in equal parts of the generations."""
    nfev, elapsed = course.nfev, course["elapsed"]
    ends = _picked(len(nfev), SPEEDS + 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        speed = np.diff(nfev[ends]) / np.diff(elapsed[ends])
    speed[~np.isfinite(speed) | (speed < 0)] = np.nan
    everywhere = np.full(len(nfev), np.nan)
    for begin, end, value in zip(ends[:-1], ends[1:], speed, strict=True):
        everywhere[begin : end + 1] = value
    line = Line("curve", drawable(speed), course.x[ends[1:]])
    return Panel("Evaluations per second", [line], {"speed": everywhere}, log=False, zero=True)


# ---- how it is drawn ------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """The scale of a panel: values at its bottom and top, after the logarithm if it has one, and its labels."""

    low: float
    high: float
    log: bool
    ticks: list[tuple[float, str]]  # height in [0, 1] and label

    def heights(self, values: Array) -> Array:
        """Heights of values in [0, 1]; NaN where there is none."""
        if self.log:
            values = np.log10(np.where(values > 0, values, np.nan))
        return (values - self.low) / (self.high - self.low)


def _figure(panel: Panel, course: Course) -> Html:
    axis = _axis(panel)
    breaks: Any = np.flatnonzero(np.diff(course.restart)) + 1
    ends = course.nfev[breaks - 1] / course.nfev[-1]
    columns = [(v / course.nfev[-1], _evaluations(v)) for v in _ticks(0.0, float(course.nfev[-1]), 5) if v == int(v)]
    grid = "".join(f"M0 {round(HEIGHT * (1 - float(y)))}H{WIDTH}" for y, _ in axis.ticks)
    grid += "".join(f"M{_right(x)} 0V{HEIGHT}" for x, _ in columns) + f"M0 0V{HEIGHT}H{WIDTH}"
    paths = [_drawn("grid", grid)]
    if 0 < len(ends) <= MOST_RULES:
        paths.append(_drawn("restarts", "".join(f"M{_right(x)} 0V{HEIGHT}" for x in ends)))
    most = min(MOST_POINTS, max(60, MOST_NUMBERS // max(1, len(panel.lines))))
    for line in panel.lines:
        x = course.x if line.x is None else line.x
        where = _path(x, axis.heights(line.y), breaks if line.x is None else [], most)
        if where:
            paths.append(_drawn(line.kind, where, line.style))
    labels = [html('<span class="y" style="top:{:.1f}%">{}</span>', 100 * (1 - y), label) for y, label in axis.ticks]
    for x, label in columns:
        edge = " last" if x > 0.94 else ""
        labels.append(html('<span class="x{}" style="left:{:.1f}%">{}</span>', edge, 100 * x, label))
    if not any(np.isfinite(line.y).any() for line in panel.lines):
        labels.append(html('<span class="none">no finite value so far</span>'))
    shown, values = next(iter(panel.shows.items()))
    now = html("")
    if panel.wide or not panel.legend:
        known = values[np.isfinite(values)]
        last = float(known[-1]) if len(known) else math.nan
        now = html('<span data-shows="{}">{}</span>', shown, number(last, panel.digits))
    return html(
        '<figure class="{}"><figcaption><h2>{}</h2>'
        '<span class="now"><span data-at-row></span>{}</span></figcaption>'
        '<div class="plot" role="img" aria-label="{}">'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
        '{}<div class="cursor" hidden></div></div>{}</figure>',
        *("wide" if panel.wide else "narrow", panel.title, now, _described(panel, course)),
        *(WIDTH, HEIGHT, joined(paths), joined(labels), _legend(panel)),
    )


def _drawn(kind: str, where: str, style: str = "") -> Html:
    return html('<path class="{}"{} d="{}"/>', kind, _style(style), where)


def _style(style: str) -> Html:
    return html(' style="{}"', style) if style else html("")


def _legend(panel: Panel) -> Html:
    items = []
    for key in panel.legend:
        value = html("")
        if key.shows:
            value = html(' <b data-shows="{}">{}</b>', key.shows, number(key.value, panel.digits))
        elif math.isfinite(key.value):
            value = html(" <b>{}</b>", number(key.value))
        items.append(html('<li class="{}"{}><span>{}{}</span></li>', key.kind, _style(key.style), key.name, value))
    return html('<ul class="legend">{}</ul>', joined(items)) if items else html("")


def _described(panel: Panel, course: Course) -> str:
    """What a panel shows, for users who cannot see it."""
    text = f"{panel.title} over {course.nfev[-1]:,.0f} evaluations"
    if panel.legend and not panel.wide:
        return f"{text}: {_counted(len(panel.lines), 'line')}; the last values of some are listed below"
    values = next(iter(panel.shows.values()))
    known = values[np.isfinite(values)]
    return text + (f", from {number(known[0])} to {number(known[-1])}" if len(known) else ", no finite value so far")


def _path(x: Array, y: Array, breaks: Any, most: int) -> str:
    """A path through the finite points, thinned, and broken at missing points and at `breaks`."""
    keep = _picked(len(x), most)
    known = np.isfinite(y[keep])
    same = np.diff(np.searchsorted(breaks, keep, side="right")) == 0
    joined = np.append(known[:-1] & known[1:] & same, False)  # with the next point
    after = np.append(False, joined[:-1])  # with the one before
    right, down = np.rint(WIDTH * x[keep]), np.rint(HEIGHT * (1 - np.clip(np.where(known, y[keep], 0.0), -1.0, 2.0)))
    points = zip(known.tolist(), after.tolist(), joined.tolist(), right.tolist(), down.tolist(), strict=True)
    return "".join(
        # a point between missing points is a very short line
        f"{'L' if old else 'M'}{x:.0f} {y:.0f}{'' if old or new else 'h1'}"
        for drawn, old, new, x, y in points
        if drawn
    )


def _right(x: float) -> int:
    return round(WIDTH * float(x))


def _picked(count: int, most: int) -> Any:
    """At most `most` indices, evenly spread, with the first and the last one."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _axis(panel: Panel) -> Axis:
    values = np.concatenate([line.y for line in panel.lines]) if panel.lines else np.empty(0)
    values = values[np.isfinite(values)]
    if panel.log:
        values = np.log10(values[values > 0])
    if not len(values):
        return Axis(0.0, 1.0, panel.log, [])
    low, high = float(values.min()), float(values.max())
    low = 0.0 if panel.zero else low
    room = 0.05 * (high - low) if high > low else 0.5 if panel.log else max(0.5 * abs(high), 1e-300)
    low, high = (low if panel.zero else low - room), high + room
    places = _log_ticks(low, high) if panel.log else _ticks(low, high, 5)
    if panel.log:
        ticks = [((math.log10(v) - low) / (high - low), number(v, 3, most=4)) for v in places]
    else:
        ticks = [((v - low) / (high - low), number(v, 6)) for v in places]
    return Axis(low, high, panel.log, ticks)


def _log_ticks(low: float, high: float) -> list[float]:
    """Values to label between two powers of ten: decades, or 1, 2 and 5 times them, or as on a linear axis."""
    step = math.ceil((high - low) / 6)
    decades = [10.0**k for k in range(math.ceil(low), math.floor(high) + 1) if k % step == 0]
    if len(decades) >= 3:
        return decades
    finer = [m * 10.0**k for k in range(math.floor(low), math.floor(high) + 1) for m in (1, 2, 5)]
    finer = [v for v in finer if low <= math.log10(v) <= high]
    if len(finer) >= 2:
        return finer
    return [v for v in _ticks(10.0**low, 10.0**high, 6) if v > 0]


def _ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values, 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / most
    if not (rough > 0 and math.isfinite(rough)):
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= rough), 10 * power)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(k * step, 12 - math.floor(math.log10(step))) for k in range(first, min(last, first + 2 * most) + 1)]


def _evaluations(count: float) -> str:
    return f"{count:,.0f}" if count < 1e6 else f"{count / 1e6:g}M"


# ---- words ----------------------------------------------------------------------------------------------------------


def number(value: float, digits: int = 4, least: int = -3, most: int = 6) -> str:
    """A readable number: 1,234, 0.05, but 3.21×10⁻⁶ where its power of ten is below `least`, or `most` or more."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if least <= power < most:
        plain = f"{value:,.{max(0, digits - 1 - power)}f}"
        return (plain.rstrip("0").rstrip(".") if "." in plain else plain).replace("-", "−")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    times = {"1": "", "-1": "−"}.get(mantissa, mantissa.replace("-", "−") + "×")
    return f"{times}10{raised}"


def duration(seconds: float) -> str:
    """A readable time: 0.04 s, 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h, but 3×10¹⁰ d."""
    if seconds >= 1e12:
        return f"{number(seconds / 86400, 2)} d"
    if seconds < 0.095:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = round(seconds)
    for large, small, name, part in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {name}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"
