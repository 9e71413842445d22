"""What all searches have in common: which points are out, which values were told, and what is best."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.search import stopping, tell_input
from esgroup.search.late import Asked


class Telling(ABC):
    """The side of a search that is told: values of whole generations or of single points, in any order.

    All values count, those of points never asked as well. As soon as `popsize` of them are there the distribution moves
    by local coordinates of the points and the order of their values. What these are is the search's own: the methods
    under "of the search".
    """

    popsize: int

    # ---- of the search ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of a point."""

    @abstractmethod
    def _check_feasible(self, points: Array) -> None:
        """Refuse points that cannot be searched."""

    @abstractmethod
    def _whitened(self, x: Array) -> Array:
        """The local coordinates of any points."""

    @abstractmethod
    def _rows(self, generation: Any) -> Array:
        """The local coordinates of the points of a generation."""

    @abstractmethod
    def _gathered(self, z: Array) -> Any:
        """The generation of points with these local coordinates."""

    @abstractmethod
    def _advance(self, generation: Any, order: Any, ranked: list[float]) -> None:
        """Move the distribution by a generation, best first."""

    # ---- state -----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self.nfev = self.nit = self.nfailed = 0
        self.best_x: Array | None = None
        self.best_f = math.nan
        self._record = stopping.Record()
        self._asked: list[Asked] = []  # from the present distribution; the last one for tell(fitness)
        self._known: dict[bytes, list[Array]] = {}  # points of the first asks to local coordinates, if looked for
        self._known_asks = 0
        self._last: Asked | None = None
        self._spare: Any = None  # arrays to use again
        self._pool: list[tuple[Array, Array]] = []  # local coordinates and values of less than a generation
        self._injected = np.empty((0, *self.shape))
        self._seconds, self._since = 0.0, time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the search began, that before `save` included and that between `save` and `load` not."""
        return self._seconds + time.monotonic() - self._since

    # ---- tell ---------------------------------------------------------------------------------------------------

    def tell(self, *told_values: Any) -> None:
        """tell(fitness) for the last ask, tell(X, fitness) for any points, or tell([(x, f), ...]); NaN = failed."""
        if len(told_values) == 1 and not tell_input.are_pairs(told_values[0], len(self.shape)):
            self._tell_last(told_values[0])
        elif len(told_values) in (1, 2):
            X, fitness = told_values if len(told_values) == 2 else tell_input.from_pairs(told_values[0])
            self._tell_points(tell_input.points(X, self.shape), fitness)
        else:
            raise TypeError(f"tell() takes fitness, or X and fitness, got {len(told_values)} arguments")

    def _tell_last(self, fitness: Any) -> None:
        last = self._last
        if last is None:
            again = "tell(fitness) was called twice for one ask(), or without one: ask() again, or tell(X, fitness)"
            raise RuntimeError(again if self.nfev else "tell() was called before ask()")
        values = tell_input.values(fitness, len(last.x))
        if self._pool or last.nit != self.nit or len(values) < self.popsize:
            z = self._rows(last.generation) if last.nit == self.nit else self._whitened(last.x)
            self._add(last.x, z, values)
        else:
            self._move(last.x, last.generation, values)
            self._spare = last.generation
        self._last = None

    def _tell_points(self, x: Array, fitness: Any) -> None:
        last = self._last
        if last is not None and np.array_equal(last.x, x):
            self._tell_last(fitness)
            return
        values = tell_input.values(fitness, len(x))
        if len(x):
            self._add(x, self._recalled(x), values)
        if last is not None and tell_input.have_a_row_in_common(last.x, x):
            self._last = None  # its values are not to be told again

    def _known_points(self) -> dict[bytes, list[Array]]:
        for asked in self._asked[self._known_asks :]:
            for key, z in zip(tell_input.keys(asked.x), self._rows(asked.generation), strict=True):
                self._known.setdefault(key, []).append(z)
        self._known_asks = len(self._asked)
        return self._known

    def _recalled(self, x: Array) -> Array:
        """The local coordinates that points were asked with; those of others, which must be feasible, are computed."""
        known, keys = self._known_points(), tell_input.keys(x)
        missing = [i for i, key in enumerate(keys) if key not in known]
        if missing:
            self._check_feasible(x)
        found = [_next(known[key]) if key in known else None for key in keys]
        computed = dict(zip(missing, self._whitened(x[missing]) if missing else (), strict=True))
        return np.array([computed[i] if z is None else z for i, z in enumerate(found)])

    def _add(self, x: Array, z: Array, values: Array) -> None:
        """Keep less than a generation; move with all that is there once it is one."""
        pool = [*self._pool, (z.copy(), values.copy())]
        count = sum(len(v) for _, v in pool)
        if count < self.popsize:
            self._note(x, values)
            self._pool = pool
            return
        generation = self._gathered(np.concatenate([z for z, _ in pool]))
        self._move(x, generation, np.concatenate([v for _, v in pool]), values)
        self._pool = []

    def _move(self, x: Array, generation: Any, values: Array, new: Array | None = None) -> None:
        """One generation; a generation of failed runs moves nothing."""
        order = values.argsort(kind="stable")  # NaN last
        ranked = values[order].tolist()  # a list is quicker to look into
        if ranked[0] == ranked[0]:
            self._advance(generation, order, ranked)
        self._record.add(ranked)
        self.nit += 1
        self._asked.clear()
        if self._known_asks:
            self._known, self._known_asks = {}, 0
        if new is None and ranked[-1] == ranked[-1]:
            self.nfev += len(ranked)
            self._note_best(x, order[0], ranked[0])
        else:
            self._note(x, values if new is None else new)

    def _note(self, x: Array, values: Array) -> None:
        """Count values, of which some may be NaN, and keep the best point."""
        failed = np.isnan(values)
        self.nfev += len(values)
        self.nfailed += int(failed.sum())
        told_ones = np.flatnonzero(~failed)
        if len(told_ones):
            i = told_ones[values[told_ones].argmin()]
            self._note_best(x, i, values[i].item())

    def _note_best(self, x: Array, i: Any, value: float) -> None:
        if not value >= self.best_f:  # which may be NaN
            self.best_x, self.best_f = checks.read_only(x[i].copy()), value


def _next(asked: list[Array]) -> Array:
    """The local coordinates of a point that may have been asked for more than once: in turn."""
    return asked.pop(0) if len(asked) > 1 else asked[0]
