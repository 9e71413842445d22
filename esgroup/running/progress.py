"""A live progress bar for a running search, only on a terminal: progress, best value, speed and time left."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from esgroup.running.observers import Observer
from esgroup.stopping.base import View

if TYPE_CHECKING:
    from rich.text import Text

    from esgroup.stopping.budgets import Limits

INTERVAL = 0.1  # seconds between two updates
BAR = 10, 30  # columns of the bar, at least and at most


class Speed(NamedTuple):
    """Evaluations and generations per second."""

    evaluations: float
    generations: float


class Progress(Observer):
    """A line on stderr during a run, updated at most ten times a second; silent without a terminal.

    Parameters
    ----------
    first
        The line until the first update.
    """

    def __init__(self, first: str = "computing the first values") -> None:
        self._first = first
        self._live: Any = None
        self._shown = -INTERVAL
        self._since: tuple[float, int, int] | None = None  # time and counts from which the speed is measured

    def begins(self, run: Any) -> None:
        """Show the line, if stderr is a terminal."""
        if sys.stderr.isatty():
            self._live = _live_line()
            self._live.start()
            self._show(self._first)

    def generation(self, run: Any) -> None:
        """Update the line."""
        if self._live is None:
            return
        now = time.monotonic()
        if self._since is None:  # excludes earlier sessions, and compilation before the first generation
            self._since = now, run.nfev, run.nit
        if now >= self._shown + INTERVAL:
            self._shown = now
            self._show(self.text(run, now))

    def ends(self, run: Any, error: BaseException | None) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def text(self, run: Any, now: float) -> str | Text:
        """Return the line."""
        then, nfev, nit = self._since or (now, 0, 0)
        passed = now - then
        speed = Speed((run.nfev - nfev) / passed, (run.nit - nit) / passed) if passed > 0 else None
        options = self._live.console.options
        return line(run, speed, run.limits, options.max_width, ascii_only=options.ascii_only)

    def _show(self, text: str | Text) -> None:
        from rich.text import Text

        line = Text(text) if isinstance(text, str) else text
        line.no_wrap, line.overflow = True, "ellipsis"
        self._live.update(line, refresh=True)


def line(search: View, speed: Speed | None, limits: Limits, width: int, *, ascii_only: bool = False) -> Text:
    """Return the line: a bar if there is a budget, then as many parts as fit into `width` columns."""
    from rich.text import Text

    share = used(search, limits)
    begin = Text()
    if share is not None:
        columns = min(max(width - 70, BAR[0]), BAR[1])
        full = int(share * columns)
        done, rest = ("#", "-") if ascii_only else ("━", "─")  # different even without colors
        begin = Text.assemble((done * full, "green"), (rest * (columns - full), "bright_black"))
        begin.append(f" {math.floor(100 * share):>2} %  ")
    between, shown = " | " if ascii_only else " · ", ""
    for part in parts(search, speed, limits):
        longer = shown + between + part if shown else part
        if shown and len(begin) + len(longer) > width:
            break
        shown = longer
    return begin.append(shown)


def parts(search: View, speed: Speed | None, limits: Limits) -> list[str]:
    """The parts of the line, the most important first; `speed` is None if it is not known yet."""
    restart = getattr(search, "restart", 0)  # a plain Searcher has none
    left = seconds_left(search, speed, limits)
    most, whole = limits.max_evals, limits.max_time
    return [
        f"best {search.best_f:.4g}",
        *([] if speed is None else [_per_second(speed.evaluations)]),
        *([] if left is None else [f"at most {duration(left)} left"]),
        *([] if limits.target is None else [f"target {limits.target:.4g}"]),
        f"{search.nfev:,}" + ("" if most is None else f" of {most:,}") + " evaluations",
        duration(search.seconds) + ("" if whole is None else f" of {duration(whole)}"),
        *[f"restart {restart}"] * (restart > 0),
        f"step {search.sigma:.2g}",
    ]


def _budgets(search: View, speed: Speed | None, limits: Limits) -> list[tuple[float, float, float]]:
    """How much of each budget is used, its size, and its rate of use, 0 if unknown."""
    evaluations, generations = speed or (0.0, 0.0)
    budgets = (
        (search.nfev, limits.max_evals, evaluations),
        (search.nit, limits.max_iters, generations),
        (search.seconds, limits.max_time, 1.0),
    )
    return [(spent, most, rate) for spent, most, rate in budgets if most is not None]


def used(search: View, limits: Limits) -> float | None:
    """The share of the budget that is used, the largest of several; None without a budget."""
    return max((min(1.0, spent / most) for spent, most, _ in _budgets(search, None, limits)), default=None)


def seconds_left(search: View, speed: Speed | None, limits: Limits) -> float | None:
    """Seconds until a budget ends, at the speed so far; None if unknown. The search may end earlier."""
    left = [(most - spent) / rate for spent, most, rate in _budgets(search, speed, limits) if rate > 0]
    return max(0.0, min(left)) if left else None


def duration(seconds: float) -> str:
    """Format seconds as 42 s, 3 min 20 s or 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def _per_second(rate: float) -> str:
    if rate >= 1:
        return (f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}") + " evaluations/s"
    return f"{rate * 60:.2g} evaluations/min"


def _live_line() -> Any:
    from rich.console import Console
    from rich.live import Live

    # output of the objective appears above the line, unless stdout is a file or a pipe, which receives it as usual
    redirect = sys.stdout.isatty()
    return Live(console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=redirect)
