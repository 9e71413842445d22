"""The ledger of every search: what it asked, what it was told, and the best point."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.kernels import jit
from esgroup.rankings import Ranking
from esgroup.stopping.values import Record
from esgroup.strategies.base import Indices, Proposed

_MOST_OUT = 10_000  # pending points that are remembered,
_MOST_NUMBERS_OUT = 4_000_000  # and how many numbers they may have


class PooledSamples(NamedTuple):
    """Local coordinates, tags and outcomes of points, pooled until they make a generation."""

    local: Array
    tags: Indices
    outcomes: Array  # (n, 1 + columns)


@dataclass(eq=False)
class Batch:
    """Points of one ask, some of which have no value yet."""

    drawn: Proposed
    nit: int  # the generation in which they were asked
    out: set[int]  # rows without a value
    run: int = 0  # that asked for them

    @cached_property
    def keys(self) -> list[bytes]:
        """A key for recognizing each of its points."""
        return _keys(self.drawn.points)


class PendingPoint(NamedTuple):
    """A pending point: the batch and row in which it was asked for."""

    asked: Batch
    row: int

    @property
    def point(self) -> Array:
        """The point itself."""
        return self.asked.drawn.points[self.row]

    @property
    def local(self) -> Array:
        """Its local coordinates in the distribution it was drawn from."""
        return self.asked.drawn.local[self.row]

    @property
    def tag(self) -> int:
        """Its tag, 0 if it has none."""
        tags = self.asked.drawn.tags
        return 0 if tags is None else int(tags[self.row])

    @property
    def id(self) -> int:
        """Its id, -1 if it has none."""
        ids = self.asked.drawn.ids
        return -1 if ids is None else int(ids[self.row])


class Began(NamedTuple):
    """The counts when the current run began."""

    nfev: int = 0
    nit: int = 0  # moves
    generations: int = 0


class Mark(NamedTuple):
    """The ledger before part of a generation was told, to return to."""

    nfev: int
    nfailed: int
    pool: int
    best_x: Array | None
    best: Array | None  # the outcome of the best point
    ranked: int  # the mark of the ranking


class Clock:
    """Seconds since a search began, the time it used itself, and how long its caller took for each value.

    The time between saving and loading does not count. The caller's time runs from the end of one call of the search to
    the beginning of `tell`, except the first time, when processes start and functions are compiled. `own` is the time
    within `ask` and `tell` since the search was created or loaded, without loading and compiling kernels.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.own = 0.0
        self._before, self._since = seconds, time.monotonic()
        self._handed_over: float | None = None  # when the caller's turn began
        self._turn = 0.0  # seconds of the caller's last turn
        self._turns, self._waited, self._values = 0, 0.0, 0

    @property
    def seconds(self) -> float:
        """The time so far."""
        return self._before + time.monotonic() - self._since

    def take_over(self) -> float:
        """Start the turn of the search; return the time, for `hand_over`."""
        now = time.monotonic()
        self._turn = 0.0 if self._handed_over is None else now - self._handed_over
        return now - jit.prepared

    def hand_over(self, since: float, values: int = 0) -> None:
        """End the turn of the search, which began at `take_over`; the caller's last turn brought so many values."""
        if values and self._turns:
            self._waited, self._values = self._waited + self._turn, self._values + values
        self._turns += values > 0
        self._handed_over = now = time.monotonic()
        self.own += now - jit.prepared - since

    @property
    def interval(self) -> float | None:
        """Average seconds that the caller took per value, None if not known yet."""
        return self._waited / self._values if self._values else None

    def __getstate__(self) -> float:
        return self.seconds

    def __setstate__(self, seconds: float) -> None:
        self.__init__(seconds)  # type: ignore[misc]  # another machine's clock means nothing here


class Ledger:
    """Counts, the best point, the pending points, and values that do not make a generation yet.

    Points have rows of outcomes (n, 1 + columns); `ranking` decides which one is the best.
    """

    def __init__(self, shape: tuple[int, ...], ranking: Ranking) -> None:
        self.ranking, self.standing = ranking, ranking.start(shape)  # the state of the ranking
        self.nfev = self.nfailed = 0
        self.nit = 0  # moves of the distribution: generations, or parts of them (`Strategy.generations` counts)
        self.run, self.began = 0, Began()  # restarts so far
        self.set_best(None, None)
        self.record = Record()
        self.clock = Clock()
        self.asked: list[Batch] = []  # with pending points, oldest first
        self.last: Batch | None = None  # the batch that tell(fitness) is for
        self.reserve: Proposed | None = None  # drawn with points that were asked for one by one, and not asked yet
        self.lag = 0.0  # how many generations late values usually are
        self.pool: list[PooledSamples] = []
        self.injected = np.empty((0, *shape))
        self._by_point: dict[bytes, list[PendingPoint]] = {}  # all pending points: only tell(X, fitness) needs this
        self._indexed = 0  # how many of the first asks are in it

    def __getstate__(self) -> dict[str, Any]:
        # copies and pickles omit the memos of strategies, whose arrays may share memory
        asked = [Batch(kept.drawn._replace(memo=None), kept.nit, set(kept.out), kept.run) for kept in self.asked]
        last = None if self.last is None else asked[self.asked.index(self.last)]
        return self.__dict__ | {"asked": asked, "last": last, "_by_point": {}, "_indexed": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.set_best(self.best_x, self.best)  # read-only, which copies of arrays are not

    # ---- asks ---------------------------------------------------------------------------------------------------

    def hand_out(self, drawn: Proposed) -> None:
        """Note points that are now pending."""
        self.last = Batch(drawn, self.nit, set(range(len(drawn.points))), self.run)
        self.asked.append(self.last)

    def ask_again(self) -> None:
        """Make all points of the last ask pending again, and not late."""
        self.last = last = self.asked[-1]
        last.nit, last.out = self.nit, set(range(len(last.drawn.points)))

    @property
    def out(self) -> list[PendingPoint]:
        """All pending points, oldest first."""
        return [PendingPoint(asked, row) for asked in self.asked for row in sorted(asked.out)]

    @property
    def newest(self) -> PendingPoint:
        """The point asked for last."""
        asked = self.asked[-1]
        return PendingPoint(asked, len(asked.drawn.points) - 1)

    def drawn_together(self, n: int, batch: int, draw: Callable[[int], Proposed]) -> Proposed:
        """n points; those of one generation are drawn together, which spreads them more evenly.

        Points are copies: a pending row does not keep the others in memory, and nothing else can write to them.
        """
        reserve: Any = self.reserve
        missing = n - (0 if reserve is None else len(reserve.points))
        if missing > 0:
            drawn = draw(max(batch, missing))
            drawn = Proposed(drawn.points, drawn.local, tags_of(drawn), ids_of(drawn))
            reserve = drawn if reserve is None else map(np.concatenate, [*zip(reserve, drawn, strict=True)][:4])
        points, local, tags, ids, *_ = reserve
        self.reserve = Proposed(points[n:], local[n:], tags[n:], ids[n:]) if len(points) > n else None
        return Proposed(points[:n].copy(), local[:n].copy(), tags[:n].copy(), ids[:n].copy())

    def recognized(self, points: Array) -> list[PendingPoint | None]:
        """Where each point was asked for, None if it is not pending; for points asked twice, the older ask first."""
        for asked in self.asked[self._indexed :]:
            for row, key in enumerate(asked.keys):
                if row in asked.out:
                    self._by_point.setdefault(key, []).append(PendingPoint(asked, row))
        self._indexed = len(self.asked)
        seen: dict[bytes, int] = {}
        found: list[PendingPoint | None] = []
        for key in _keys(points):
            places = [place for place in self._by_point.get(key, ()) if place.row in place.asked.out]
            again = seen[key] = seen.get(key, -1) + 1  # the same point, told several times at once
            found.append(places[again] if again < len(places) else None)
        return found

    def take_back(self, found: Iterable[PendingPoint | None]) -> None:
        """Mark these points as no longer pending; tell(fitness) no longer applies to the last ask if it has any."""
        for place in found:
            if place is not None:
                place.asked.out.discard(place.row)
                if place.asked is self.last:
                    self.last = None

    # ---- values -------------------------------------------------------------------------------------------------

    def count(self, points: Array, outcomes: Array, least: int | None = None) -> None:
        """Count outcomes and keep the best point; `least` is the row of the smallest value, if known to rank first."""
        self.nfev += len(outcomes)
        if least is None:
            self.nfailed += int(np.count_nonzero(np.isnan(outcomes[:, 0])))
            self.note_best(points, outcomes)
        elif not self.best_f <= outcomes.item(least):  # NaN before there is one
            self.set_best(points[least].copy(), outcomes[least].copy())

    def note_best(self, points: Array, outcomes: Array) -> None:
        """Keep the best of these points, the first if tied, if it is the best so far; they are counted elsewhere."""
        if (i := self.ranking.best(outcomes, self.best)) is not None:
            self.set_best(points[i].copy(), outcomes[i].copy())

    def count_past(self, points: Array, outcomes: Array) -> None:
        """Count outcomes of points of an earlier run, which do not concern the current one."""
        self.began = self.began._replace(nfev=self.began.nfev + len(outcomes))
        self.count(points, outcomes)

    def begin_run(self, generations: int) -> None:
        """Begin another run, after so many generations of all runs: only counts and pending points remain."""
        self.run, self.began = self.run + 1, Began(self.nfev, self.nit, generations)
        self.standing, self.record = self.ranking.start(self.injected.shape[1:]), Record()
        self.last, self.reserve, self.lag, self.pool = None, None, 0.0, []

    def set_best(self, x: Array | None, outcome: Array | None) -> None:
        """Set the best point and its outcome, both of which may be None."""
        self.best_x, self.best = x, outcome
        self.best_f = math.nan
        if x is not None and outcome is not None:
            x.setflags(write=False)
            outcome.setflags(write=False)
            self.best_f = outcome.item(0)

    @property
    def feasible(self) -> bool:
        """Whether the best point can be the answer."""
        row = np.full(1 + self.ranking.columns, math.nan) if self.best is None else self.best
        return bool(self.ranking.feasible(row[None])[0])

    def end_generation(self, ranked: list[float], width: int) -> None:
        """Count a generation, or a part of one: from now on pending points belong to an older distribution.

        The newest asks are kept, as many as memory allows: some may never be told. `width` is the number of local
        coordinates of a point.
        """
        self.record.add(ranked)
        self.nit += 1
        self.reserve = None
        asked = self.asked
        if len(asked) == 1 and not (asked[0].out or self._indexed):  # usually: all points of the last ask were told
            self.asked = []
        elif asked:
            self._forget(max(2 * len(ranked), min(_MOST_OUT, _MOST_NUMBERS_OUT // width)))

    def _forget(self, most_out: int) -> None:
        """Forget all asks except the newest ones with at most so many pending points."""
        kept, number = [], 0
        for asked in reversed(self.asked):
            number += len(asked.drawn.points) if asked.out else 0
            if asked is self.last or (asked.out and number <= most_out):
                kept.append(asked)
            else:
                asked.out.clear()
        self._unindex()
        self.asked = kept[::-1]

    def _unindex(self) -> None:
        """Remove asks without pending points from the index."""
        for asked in self.asked[: self._indexed]:
            if not asked.out:
                self._indexed -= 1
                for key in asked.keys:
                    places = self._by_point.pop(key, [])
                    if len(places) == 1 and places[0].asked is asked:  # usually
                        continue
                    if others := [place for place in places if place.asked is not asked]:
                        self._by_point[key] = others

    # ---- back and forth -----------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """The current ledger."""
        ranked = self.ranking.mark(self.standing)
        return Mark(self.nfev, self.nfailed, len(self.pool), self.best_x, self.best, ranked)

    def rewind(self, mark: Mark) -> None:
        """Forget values told since the mark; no generation may have ended since."""
        self.nfev, self.nfailed = mark.nfev, mark.nfailed
        self.set_best(mark.best_x, mark.best)
        self.standing = self.ranking.rewound(self.standing, mark.ranked)
        del self.pool[mark.pool :]


def tags_of(drawn: Proposed) -> Indices:
    """The tags of points, 0 where there are none."""
    return np.zeros(len(drawn.points), dtype=np.int64) if drawn.tags is None else drawn.tags


def ids_of(drawn: Proposed) -> Indices:
    """The ids of points, -1 where there are none."""
    return np.full(len(drawn.points), -1) if drawn.ids is None else drawn.ids


def _keys(points: Array) -> list[bytes]:
    """A key for each point, the same for the same point."""
    return [*map(np.ndarray.tobytes, points + 0.0)]  # without negative zeros
