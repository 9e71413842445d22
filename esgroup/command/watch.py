"""`esgroup watch`: keep a page next to a history up to date with the search, until the search has ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from esgroup.command.watch_page import MARK, Moment, State, page
from esgroup.files.autosave import must_differ
from esgroup.files.replacing import replace_text
from esgroup.running.follow import Followed

QUIET = 30.0  # seconds without a line, at least, before the page says that there are no updates
LONGER = 5.0  # and at least this multiple of the average generation


def watch(
    history: Path,
    out: Path | None = None,
    every: float = 5.0,
    *,
    once: bool = False,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Write the page every few seconds until the search has ended or Ctrl-C; return False after Ctrl-C.

    Parameters
    ----------
    history
        The file that a search writes. If it does not exist yet, wait for it, unless `once` is set.
    out
        The page; by default it has the name of the history with the suffix .html.
    every
        Seconds between updates.
    once
        Whether to write the page only once.
    say
        Receives messages for the user, line by line.
    sleep
        Waits for a number of seconds.

    Raises
    ------
    ValueError
        If the history or another file would be overwritten, or the file is not a history.
    OSError
        If the history cannot be read, or the first or the last page cannot be written.
    """
    place = _place(history, out)
    watching = _Watching(history, place, every, say)
    if once:
        if not history.exists():
            raise ValueError(f"{history} does not exist; leave out --once to wait for it")
        watching.read()
        watching.write()
        say(f"{'page':9}{place}")
        return True
    try:
        watching.begin()
        while not watching.run.end:
            sleep(every)
            watching.look()
    except KeyboardInterrupt:
        watching.write("left")
        say(f"no longer watching: {place} shows {watching.extent()}; the search is not affected")
        return False
    say(f"the search has ended: {place} shows {watching.extent()}")
    say(f"{'':9}{watching.run.end.get('message', '')}")
    return True


class _Watching:
    """A history, its page, and what the user has been told about them."""

    def __init__(self, history: Path, place: Path, every: float, say: Callable[[str], None]) -> None:
        self.run = Followed(history)
        self._place, self._every, self._say = place, every, say
        self._missing = self._failing = False  # whether the user was told: no history, page cannot be written

    def begin(self) -> None:
        """Write the first page, which must succeed."""
        self.read()
        self.write()
        self._say(f"{'page':9}{self._place}, updated every {self._every:g} s until the search ends; Ctrl-C quits")

    def look(self) -> None:
        """Read what is new and write the page; writing may fail, except for the last page."""
        self.read()
        try:
            self.write()
        except OSError as error:
            if self.run.end:
                raise
            if not self._failing:
                self._say(f"warning: {self._place} could not be written ({error.strerror}); retrying")
            self._failing = True
        else:
            self._failing = False

    def read(self) -> None:
        """Read what is new; say once that the file does not exist."""
        try:
            self.run.read_on()
            self._missing = False
        except ValueError as error:
            hint = "name a file that `esgroup run --history FILE` or minimize(history=FILE) writes"
            raise ValueError(f"{error}; {hint}") from error
        except FileNotFoundError:
            if not self._missing:
                when = "no longer exists" if self.run.header else "does not exist yet"
                self._say(f"{'waiting':9}for {self.run.path}, which {when}")
            self._missing = True

    def write(self, state: State | None = None) -> None:
        """Write the page in this state, by default the state of the search."""
        now, changed = time.time(), None
        with contextlib.suppress(FileNotFoundError):
            changed = self.run.path.stat().st_mtime
        moment = Moment(state or self._state(now, changed), now, changed, self._every, self.run.path.name)
        replace_text(self._place, page(self.run, moment))

    def _state(self, now: float, changed: float | None) -> State:
        if self.run.end:
            return "ended"
        if not self.run.generations:
            return "waiting"
        last = self.run.generations[-1]
        usual = max(QUIET, LONGER * last.elapsed / max(last.nit, 1.0))
        return "running" if changed is not None and now - changed <= usual else "quiet"

    def extent(self) -> str:
        """How far the search has come."""
        if not self.run.generations:
            return "no generation yet"
        return f"{self.run.generations[-1].nfev:,.0f} evaluations"


def _place(history: Path, out: Path | None) -> Path:
    """Check where to write the page: not over the history, nor over any file but an earlier page."""
    if history.is_dir():
        raise ValueError(f"the history must be a file, got the folder {history}")
    page = history.with_suffix(".html") if out is None else out
    if not page.parent.is_dir():
        raise ValueError(f"the page must be in an existing folder, got {page}")
    if page.is_dir():
        raise ValueError(f"the page must be a file, got the folder {page}: choose another name with --out")
    must_differ({"the page": page, "the history": history})
    if page.exists():
        with page.open("rb") as file:
            start = file.read(1000)
        if start and MARK.encode() not in start:
            raise ValueError(f"{page} exists and was not written by esgroup watch: choose another name with --out")
    return page
