"""A space of named parameters as a domain: y has the coordinates of its numbers, followed by the indices of choices.

A point is a row of the space (`esgroup.space`), which users see as a dict. Numbers are searched in coordinates u:
logarithms where log=True, and angles without a seam; a `Box` inside keeps them within bounds. Entries that are not
searched, and inactive ones, have the values of one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.base import UNKNOWN, Domain, Limits, Mask
from esgroup.domains.box import Box, make_box, margin
from esgroup.space import Space
from esgroup.space.parameters import TURN, Columns

_WIDEST = TURN / 3  # standard deviation of an angle: a uniform one has 0.29 turns, and a wider one is the same


@dataclass(frozen=True, eq=False)
class Named(Domain):
    """The points of a space, some of whose entries may be fixed.

    Parameters
    ----------
    space : Space
        The space.
    row : tuple of float
        The values of entries that are not searched or inactive.
    free : tuple of bool
        Which entries of a row are searched.
    """

    space: Space
    row: tuple[float, ...]
    free: tuple[bool, ...]

    def __post_init__(self) -> None:
        checks.instance("space", self.space, Space)
        if len(self.row) != self.space.dim or len(self.free) != self.space.dim:
            raise ValueError(f"row and free must have {self.space.dim} entries, got {len(self.row)}, {len(self.free)}")
        if not any(self.free):
            raise ValueError("fixed must leave a parameter to search, but all have only one possible value")

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.space.dim,)

    @cached_property
    def size(self) -> int:
        return len(self._searched)

    @cached_property
    def _free(self) -> Mask:
        return np.array(self.free, dtype=bool)

    @cached_property
    def _row(self) -> Array:
        return np.array(self.row, dtype=np.float64)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The entries of a row that are free numbers."""
        return np.flatnonzero(self._free & ~self.space.is_choice)

    @cached_property
    def choices(self) -> NDArray[np.int64]:
        """The entries of a row that are free choices."""
        return np.flatnonzero(self._free & self.space.is_choice)

    @cached_property
    def _searched(self) -> NDArray[np.int64]:
        return np.concatenate([self.numbers, self.choices])

    @cached_property
    def columns(self) -> Columns:
        """The free numbers in the coordinates u."""
        return self.space.columns.taken(self._free[~self.space.is_choice])

    @property
    def all_real(self) -> bool:
        """Whether only real numbers are searched. They are then always active: no condition can change."""
        return not (len(self.choices) or self.columns.whole.any())

    def box(self, start: Array | None = None, steps: Any = None) -> Box:
        """Return the bounds of the numbers u, with the start and first steps of the space or the given ones."""
        columns = self.columns
        bounds = np.column_stack([columns.lower, columns.upper])
        first = columns.start if start is None else start
        return make_box(first, bounds, None, columns.integer, columns.width if steps is None else steps)

    # ---- points -------------------------------------------------------------------------------------------------

    def decode(self, y: Array) -> Array:
        number, rows = len(self.numbers), np.tile(self._row, (len(y), 1))
        rows[:, self.numbers], rows[:, self.choices] = self.columns.rows(y[:, :number]), y[:, number:]
        return np.where(self.space.active(rows), rows, self._row) if self.space.is_conditional else rows

    def encode(self, points: Array, near: Array | None = None) -> Array:
        """Return y; inactive numbers are those of `near`, by default the start, and inactive choices `UNKNOWN`."""
        mean = self.columns.start if near is None else near[: len(self.numbers)]
        y = points[:, self._searched]
        y[:, : len(self.numbers)] = self.columns.coordinates(points[:, self.numbers], mean)
        if self.is_conditional:
            inactive = np.append(mean, np.full(len(self.choices), UNKNOWN))
            y = np.where(self.active(points), y, inactive)
        return y

    def check(self, name: str, points: Array) -> None:
        """Accept all rows, which were checked when they were read from dicts."""

    def inside(self, points: Array) -> Mask:
        """Return which rows have all fixed values."""
        return ((points == self._row) | self._free | ~self.space.active(points)).all(axis=1)

    @cached_property
    def is_conditional(self) -> bool:
        return self.space.is_conditional and not self.all_real

    def active(self, points: Array) -> Mask:
        return self.space.active(points)[:, self._searched]

    def stds(self, mean: Array, stds: Array) -> Array:
        """Return standard deviations, of logarithms where log=True; for choices the probability of another option."""
        found = np.zeros(self.space.dim)
        found[self._searched] = stds
        return found

    # ---- how users see points -----------------------------------------------------------------------------------

    def to_user(self, points: Array) -> list[dict[str, Any]]:
        return self.space.dicts(points)

    def from_user(self, name: str, points: Any) -> Array:
        rows = self.space.rows(name, points, self._row)
        wrong = (rows != self._row) & ~self._free
        if wrong.any():
            i, j = (int(k) for k in np.argwhere(wrong)[0])
            owner = self.space.names[self.space.owners[j]]
            point = f"{name}[{i}]" if not isinstance(points, Mapping) else name
            wanted = self.space.dicts(self._row[None])[0].get(owner)
            raise ValueError(f"{point}[{owner!r}] must be {wanted!r}, its fixed value")
        return rows

    def stds_to_user(self, stds: Array) -> dict[str, Any]:
        return self.space.by_name(stds)

    def fields(self, found: dict[str, Any]) -> dict[str, Any]:
        """Show the distribution of the choices as probabilities, by name and option."""
        if not len(self.choices):
            return found
        probabilities = {}
        for column, q in zip(self.choices, found["distribution"].probabilities, strict=True):
            options = self.space[self.space.names[self.space.owners[column]]].options
            probabilities[self.space.labels[column]] = dict(zip(options, np.asarray(q).tolist(), strict=True))
        return {"probabilities": probabilities}

    @property
    def labels(self) -> list[str]:
        return self.space.labels

    # ---- what helps a search ------------------------------------------------------------------------------------

    @cached_property
    def has_limits_at(self) -> bool:
        return bool(self.columns.angle.any() or self._log_integers.size)

    def limits_at(self, mean: Array, popsize: int) -> Limits:
        """Keep angles near [0, 2 pi) and not too wide, and logarithms of integers wide enough.

        An integer k is an interval of length log((k + 1/2) / (k - 1/2)) in its logarithm: in these units its smallest
        standard deviation is that of any integer (`Box.limits`).
        """
        number, angle = len(self.numbers), self.columns.angle
        turns = np.where(angle, np.rint(mean[:number] / TURN), 0.0)
        turns[np.abs(turns) <= 1] = 0.0
        turned = mean[:number] - TURN * turns if turns.any() else None
        least = None
        if self._log_integers.size:
            k = np.maximum(np.rint(np.exp(mean[self._log_integers])), 1.0)
            least = np.zeros(number)
            least[self._log_integers] = np.log((k + 0.5) / (k - 0.5)) * margin(number, popsize)
        return Limits(turned, least, np.where(angle, _WIDEST, np.inf))

    @cached_property
    def _log_integers(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.columns.log & self.columns.whole)

    @cached_property
    def has_idle(self) -> bool:
        return bool(self._conditional or self._log_integers.size)

    def idle(self, mean: Array) -> Mask:
        """Numbers that are inactive at the mean keep their width; so do logarithms of integers if there are others."""
        idle = np.zeros(len(self.numbers), dtype=bool)
        if self._conditional:
            idle = ~self.space.active(self.decode(mean[None]))[0][self.numbers]
        others = ~idle
        others[self._log_integers] = False
        if others.any():
            idle[self._log_integers] = True
        return idle

    @cached_property
    def _conditional(self) -> bool:
        """Whether a searched number can be inactive."""
        return bool(self.space.conditional[self.numbers].any())


def free_domain(space: Space, fixed: Any = None) -> Named:
    """Return the domain of a space in which a mapping fixes some parameters.

    Parameters with only one possible value, or that can never be active, are not searched either.
    """
    row, free = space.start.copy(), np.ones(space.dim, dtype=bool)
    if fixed is not None:
        if not isinstance(fixed, Mapping):
            raise TypeError(f"fixed must be a mapping of names to values with a Space, got {fixed!r}")
        for name, value in fixed.items():
            part = space.place("fixed", name)
            row[part], free[part] = space.entries("fixed", name, value), False
    free &= space.varies
    free &= space.reachable(row, free)
    return Named(space, tuple(row.tolist()), tuple(free.tolist()))
