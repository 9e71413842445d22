"""Reading a growing history: each time only what is new, keeping an even selection of generations."""

from __future__ import annotations

import math
import os
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.running.history_lines import LONGEST, complete_lines, parse_generation, parse_header, parse_scalars

MOST_KEPT = 1000  # most generations kept, temporarily twice as many: a plot cannot show more


class Generation(NamedTuple):
    """One line of a history; NaN where a number is unknown."""

    nit: float
    nfev: float
    best_f: float
    gen_best: float
    sigma: float
    axis_ratio: float  # the last one that was computed
    restart: int
    elapsed: float
    mean: Array
    stds: Array
    violation: float
    feasible: bool


_NUMBERS = ("nit", "nfev", "best_f", "gen_best", "sigma", "axis_ratio", "elapsed", "violation")  # floats, or NaN


class Event(NamedTuple):
    """An event other than a generation, with the evaluations and seconds until then."""

    nfev: float
    elapsed: float
    text: str


class Followed:
    """A history that may still grow.

    Parameters
    ----------
    path
        The file, which need not exist yet.

    Attributes
    ----------
    header : dict
        The first line; empty as long as there is none.
    generations : list of Generation
        At most a few thousand of those in the file, evenly spread and including the last one.
    events : list of Event
        Restarts, the first feasible point, and resumes of the run.
    limits : dict
        The limits of the run by name, empty if the history does not have them.
    end : dict
        How the run ended ("how", "message"); empty while it may continue.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._forget()

    def _forget(self) -> None:
        self.header: dict[str, Any] = {}
        self.generations: list[Generation] = []
        self.events: list[Event] = []
        self.limits: dict[str, Any] = {}
        self.end: dict[str, str] = {}
        self._kept: list[Generation] = []  # every `_stride`-th generation
        self._stride, self._count = 1, 0
        self._last: dict[str, Any] = {}  # the last generation as in the file, with the last known axis ratio
        self._line, self._number, self._place = b"", 0, 0  # the last line, its number from 1, and where it begins

    def read_on(self) -> bool:
        """Read what is new; return whether there was anything.

        A file that another run has replaced is read from its beginning. An incomplete last line is left for later.

        Raises
        ------
        FileNotFoundError
            If there is no such file (yet).
        ValueError
            If the file is not a history.
        """
        with self.path.open("rb") as file:
            news = self._line_again(file)
            if news is None:
                return False
            for number, line in complete_lines(file, self.path, self._number + 1):
                self._take(line, number)
                news = True
        if news and self._last:
            last = self._whole()
            self.generations = [g for g in self._kept if g.nfev < last.nfev] + [last]
        return news

    def _line_again(self, file: IO[bytes]) -> bool | None:
        """Reread the last line, whose end may have been added since: whether it was, or None while it is being added.

        If another line is in its place, another run has replaced the file, and everything read so far is dropped.
        """
        if not self._line:
            return False
        if os.fstat(file.fileno()).st_size > self._place:
            file.seek(self._place)
            again, before = file.readline(LONGEST), self._line.removesuffix(b"}\n")
            if again == self._line:
                return False
            if self._number > 1:  # nothing is ever added to a header
                if again.startswith(before) and again.endswith(b"\n"):
                    self._line = again
                    self.end = self._parsed_line().get("end", {})
                    return True
                if before.startswith(again) or again.startswith(before):
                    return None
        self._forget()
        file.seek(0)
        return True

    def _take(self, line: bytes, number: int) -> None:
        entry = parse_header(line, self.path) if number == 1 else parse_scalars(line, self.path, number)
        self._number, self._place, self._line = number, self._place + len(self._line), line
        if number == 1:
            self.header, self.limits = entry, entry.get("limits") or {}
            return
        last = self._last
        if last and entry["nfev"] <= last["nfev"]:  # repeated after the run was resumed from a checkpoint
            self._kept = [g for g in self._kept if g.nfev < entry["nfev"]]
            self.events = [event for event in self.events if event.nfev < entry["nfev"]]
        if entry["axis_ratio"] is None and last:
            entry["axis_ratio"] = last["axis_ratio"]
        self._note_events(last, entry)
        self.end = entry.get("end", {})
        self._last = entry
        if self._count % self._stride == 0:
            self._kept.append(self._whole())
        if len(self._kept) > 2 * MOST_KEPT:
            self._kept, self._stride = self._kept[::2], 2 * self._stride
        self._count += 1

    def _note_events(self, last: dict[str, Any], entry: dict[str, Any]) -> None:
        if entry.get("limits") is not None:
            self.limits = entry["limits"]
            self.events.append(Event(entry["nfev"], entry["elapsed"], "continued from a checkpoint"))
        if last and entry["restart"] > last["restart"]:
            self.events.append(Event(last["nfev"], last["elapsed"], f"restart {entry['restart']}"))
        if last and entry.get("feasible", True) and not last.get("feasible", True):
            self.events.append(Event(entry["nfev"], entry["elapsed"], "the first feasible point"))

    def _whole(self) -> Generation:
        """The last generation with its mean and standard deviations."""
        entry = self._parsed_line()
        last = {name: self._last.get(name) for name in _NUMBERS}
        known: dict[str, Any] = {name: math.nan if value is None else float(value) for name, value in last.items()}
        known |= {name: np.array(entry[name], dtype=np.float64) for name in ("mean", "stds")}
        return Generation(**known, restart=self._last["restart"], feasible=self._last.get("feasible", True))

    def _parsed_line(self) -> dict[str, Any]:
        return parse_generation(self._line, self.path, self._number, self.header)
