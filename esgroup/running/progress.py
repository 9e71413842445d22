"""A live progress line for a running search, on a terminal only."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

from esgroup.running.shown import Shown

INTERVAL = 0.1  # seconds between two updates: nobody reads faster


class Progress:
    """A line on stderr while the context is open, updated at most ten times a second; silent without a terminal."""

    def __init__(self) -> None:
        self._live: Any = None
        self._shown = -INTERVAL
        self._since: tuple[float, int] | None = None  # time and evaluations from which the speed is measured

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._live = _live_line()
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(
        self,
        search: Shown,
        max_evals: int | None = None,
        target: float | None = None,
        max_time: float | None = None,
    ) -> None:
        """Show the progress of the search, with the limits that are set."""
        if self._live is None:
            return
        now = time.monotonic()
        if self._since is None:  # excludes earlier sessions, and compilation before the first generation
            self._since = now, search.nfev
        if now >= self._shown + INTERVAL:
            self._shown = now
            then, before = self._since
            speed = (search.nfev - before) / (now - then) if now > then else None
            self._show(line(search, speed, max_evals, target, max_time))

    def _show(self, text: str) -> None:
        from rich.text import Text

        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)


def line(
    search: Shown,
    speed: float | None,
    max_evals: int | None = None,
    target: float | None = None,
    max_time: float | None = None,
) -> str:
    """Text of the progress line; `speed` is in evaluations per second, None if not known yet."""
    restart = getattr(search, "restart", 0)  # a plain Searcher has none
    parts = [
        f"{search.nfev:,}" + (f" of {max_evals:,}" if max_evals else "") + " evaluations",
        f"best {search.best_f:.4g}" + (f" (target {target:.4g})" if target is not None else ""),
        f"step {search.sigma:.2g}",
        *([] if speed is None else [f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s"]),
        f"{search.seconds:,.0f} s" + (f" of {max_time:,.0f} s" if max_time else ""),
    ]
    return " · ".join(parts + [f"restart {restart}"] * (restart > 0))


def _live_line() -> Any:
    from rich.console import Console
    from rich.live import Live

    # what the objective prints appears above the line, unless stdout is a file or a pipe: there it stays
    redirect = sys.stdout.isatty()
    return Live(console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=redirect)
