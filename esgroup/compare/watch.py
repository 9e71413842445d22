"""How far a comparison is: a bar with the time left on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

from esgroup.compare.records import Run

QUIET = 20.0  # seconds between two lines where no terminal is


class Watch:
    """Shows how many of `total` runs have ended, on stderr, while the context is open; `done` were there before."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._done, self._before = total, done, done
        self._failures = 0
        self._begin = self._said = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, completed=self._done, failures="", left="")
        elif self._done < self._total:
            print(f"{self._total - self._done:,} runs to do", file=sys.stderr, flush=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, run: Run) -> None:
        """Another run has ended."""
        self._done += 1
        self._failures += run.failed
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=self._done,
                description=f"{run.problem} {run.dim}",
                failures=f"{self._failures} failed" if self._failures else "",
                left=self._left(),
            )
        elif time.monotonic() > self._said + QUIET:
            self._said = time.monotonic()
            failures = f", {self._failures} failed" if self._failures else ""
            print(f"{self._done:,} of {self._total:,} runs, {self._left()}{failures}", file=sys.stderr, flush=True)

    def _left(self) -> str:
        """Runs come seed by seed, so those to come take about as long as those that were."""
        per_run = (time.monotonic() - self._begin) / (self._done - self._before)
        return f"{duration(per_run * (self._total - self._done))} left"


def duration(seconds: float) -> str:
    """Seconds in words: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("[red]{task.fields[failures]}"),
        TextColumn("[dim]{task.description}"),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
