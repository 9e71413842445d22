"""What a search has asked, what it was told, and what is best: the books that every search keeps."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.search.stopping import Record
from esgroup.strategies.base import Drawn, Indices


class PooledSamples(NamedTuple):
    """Local coordinates, tags and values of points: less than a generation of them waits in the pool."""

    local: Array
    tags: Indices
    values: Array


class Mark(NamedTuple):
    """The books before part of a generation was told, to go back to."""

    nfev: int
    nfailed: int
    pool: int
    best_f: float
    best_x: Array | None


class Clock:
    """Seconds since a search began; the time between saving and loading does not count."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._before, self._since = seconds, time.monotonic()

    @property
    def seconds(self) -> float:
        """The time so far."""
        return self._before + time.monotonic() - self._since

    def __getstate__(self) -> float:
        return self.seconds

    def __setstate__(self, seconds: float) -> None:
        self.__init__(seconds)  # type: ignore[misc]  # the clock of another machine means nothing here


class Ledger:
    """Counts, the best point, the points that are out, and values that do not make a generation yet."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.nfev = self.nit = self.nfailed = 0
        self.best_x: Array | None = None
        self.best_f = math.nan
        self.record = Record()
        self.clock = Clock()
        self.asked: list[Drawn] = []  # from the present distribution, oldest first
        self.last: Drawn | None = None  # whose values tell(fitness) brings
        self.last_nit = 0  # the generation in which they were handed out
        self.pool: list[PooledSamples] = []
        self.injected = np.empty((0, *shape))
        self._by_point: dict[bytes, list[tuple[Array, int]]] = {}  # local coordinates and tags of the first asks
        self._indexed = 0  # how many of them: only tell(X, fitness) needs this

    def __getstate__(self) -> dict[str, Any]:
        # in copies and pickles without the memos of strategies, whose arrays may be parts of each other
        without = {id(drawn): drawn._replace(memo=None) for drawn in (*self.asked, self.last) if drawn is not None}
        last = None if self.last is None else without[id(self.last)]
        return self.__dict__ | {"asked": [without[id(drawn)] for drawn in self.asked], "last": last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.best_x is not None:
            checks.read_only(self.best_x)  # which copies of arrays are not

    # ---- asks ---------------------------------------------------------------------------------------------------

    def hand_out(self, drawn: Drawn) -> None:
        """Note points that are now out."""
        self.last, self.last_nit = drawn, self.nit
        self.asked.append(drawn)

    def recognised(self, points: Array) -> list[tuple[Array, int] | None]:
        """Local coordinates and tag of each point that is out; of points asked for twice, the older ask is first."""
        for drawn in self.asked[self._indexed :]:
            for key, z, tag in zip(_keys(drawn.points), drawn.local, tags_of(drawn), strict=True):
                self._by_point.setdefault(key, []).append((z, int(tag)))
        self._indexed = len(self.asked)
        found: list[tuple[Array, int] | None] = []
        for key in _keys(points):
            same = self._by_point.get(key)
            found.append(None if same is None else same.pop(0) if len(same) > 1 else same[0])
        return found

    def forget_last_if_among(self, points: Array) -> None:
        """tell(fitness) is no longer for the last ask once some of its points were told."""
        if self.last is not None and not set(_keys(self.last.points)).isdisjoint(_keys(points)):
            self.last = None

    # ---- values -------------------------------------------------------------------------------------------------

    def count(self, points: Array, values: Array) -> None:
        """Count values, some of which may be NaN, and keep the best point."""
        failed = np.isnan(values)
        self.nfev += len(values)
        self.nfailed += int(failed.sum())
        good = np.flatnonzero(~failed)
        if len(good):
            i = good[values[good].argmin()]
            self.note_best(points, i, values[i].item())

    def note_best(self, points: Array, i: Any, value: float) -> None:
        """Keep point i if its value is the best so far."""
        if not value >= self.best_f:  # which may be NaN
            self.best_x, self.best_f = checks.read_only(points[i].copy()), value

    def end_generation(self, ranked: list[float]) -> None:
        """Count a generation: points that are out belong to an older distribution from now on."""
        self.record.add(ranked)
        self.nit += 1
        self.asked.clear()
        if self._indexed:
            self._by_point, self._indexed = {}, 0

    # ---- back and forth -----------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """The present books."""
        return Mark(self.nfev, self.nfailed, len(self.pool), self.best_f, self.best_x)

    def rewind(self, mark: Mark) -> None:
        """Forget values that were told since the mark; no generation may have ended since."""
        self.nfev, self.nfailed, self.best_f, self.best_x = mark.nfev, mark.nfailed, mark.best_f, mark.best_x
        del self.pool[mark.pool :]


def tags_of(drawn: Drawn) -> Indices:
    """The tags of points, 0 where there are none."""
    return np.zeros(len(drawn.points), dtype=np.int64) if drawn.tags is None else drawn.tags


def _keys(points: Array) -> list[bytes]:
    """A key for each point, the same for the same point."""
    return [row.tobytes() for row in points + 0.0]  # without negative zeros
