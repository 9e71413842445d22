"""Domains: the map between the vectors y that a strategy searches and the points that users see."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files import objects

Mask = NDArray[np.bool_]
D = TypeVar("D", bound="Domain")
_BLOCK = 1_000_000  # numbers that are decoded at once
_CLOSE = 1e-6  # relative and absolute difference of a point from its image that counts as rounding
UNKNOWN = -1.0  # category of a choice that does not affect the value of a point


class Place(NamedTuple):
    """Where a search starts, in the vectors y: the mean and the standard deviations."""

    mean: Array
    steps: Array


class Limits(NamedTuple):
    """What a domain requires of a distribution over y; None: nothing."""

    mean: Array | None = None  # where the mean should be: one turn less, for an angle
    least: Array | None = None  # standard deviations; 0 for no limit
    most: Array | None = None


class Domain(ABC):
    """The set of valid points. Points are arrays (n, *shape); every vector y, in arrays (n, size), stands for a point.

    A strategy over vectors of `size` numbers searches a domain inside `esgroup.strategies.Within`. You must define how
    points are made from y, and y from points; everything else has a default. A domain is frozen, and its methods are
    pure.
    """

    # ---- must ---------------------------------------------------------------------------------------------------

    shape: Any  # of one point, a tuple of integers

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers y has."""

    @abstractmethod
    def decode(self, y: Array) -> Array:
        """Return the points (n, *shape) of any finite y (n, size), as a new array."""

    @abstractmethod
    def encode(self, points: Array, near: Array | None = None) -> Array:
        """Return y (n, size) with decode(y) = points; if there are several, the one nearest to the vector `near`."""

    # ---- may: points --------------------------------------------------------------------------------------------

    def check(self, name: str, points: Array) -> None:
        """Refuse points (n, *shape) outside the domain with a ValueError that names them.

        By default, those that `decode(encode(points))` does not reproduce up to rounding.
        """
        points = checks.real_array(name, points, (None, *self.shape))
        with np.errstate(all="ignore"):  # formulas may fail outside
            back = self.decode(self.encode(points))
        bad = np.argwhere(~np.isclose(back, points, rtol=_CLOSE, atol=_CLOSE))
        if len(bad):
            i = int(bad[0, 0])
            raise ValueError(f"{name} must be points of {self}, but {name}[{i}] is {points[i].tolist()}")

    def inside(self, points: Array) -> Mask:
        """Return which points are in the domain."""
        return (self.decode(self.encode(points)) == points).reshape(len(points), -1).all(axis=1)

    def stds(self, mean: Array, stds: Array) -> Array:
        """Return standard deviations of the entries of a point, from those of y around a mean (size,).

        By default, from differences over one standard deviation of each number, which is exact for linear maps.
        """
        squares, block = np.zeros(self.shape), max(1, _BLOCK // self.size)
        for first in range(0, self.size, block):  # so that memory does not grow with the square of the size
            chosen = np.arange(first, min(first + block, self.size))
            steps = np.zeros((len(chosen), self.size))
            steps[np.arange(len(chosen)), chosen] = stds[chosen]
            squares += (((self.decode(mean + steps) - self.decode(mean - steps)) / 2) ** 2).sum(axis=0)
        return np.sqrt(squares)

    def begin(self) -> Place | None:
        """Return where a search starts; None if the strategy has its own start, or starts at N(0, I)."""
        return None

    def elsewhere(self, factor: float, rng: np.random.Generator, first: Place) -> tuple[Domain, Place] | None:
        """Return the domain of a search that starts elsewhere, with steps times a factor, and where it starts.

        `first` is where this one started. None: in this domain, at a start chosen by the strategy.
        """
        return None

    # ---- may: how users see points ------------------------------------------------------------------------------

    def to_user(self, points: Array) -> Any:
        """Return points (n, *shape) as users see them: unchanged, or, for example, as a list of dicts."""
        return points

    def from_user(self, name: str, points: Any) -> Array:
        """Return one or more points in the form of `to_user` as an array (n, *shape); `name` is for errors.

        The array must equal the one that `to_user` received, bit for bit, so that a search recognizes its own points.
        """
        shape = self.shape
        if len(shape) == 1:
            return checks.points(name, points, shape[0]).reshape(-1, shape[0])
        array = np.asarray(points)
        return checks.real_array(name, array[None] if array.shape == shape else points, (None, *shape))

    def stds_to_user(self, stds: Array) -> Any:
        """Return standard deviations of the entries of a point as users see them: unchanged, or by name."""
        return stds

    def fields(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the additional fields of a result, as users see them, from those of the inner strategy."""
        return found

    @property
    def labels(self) -> list[str] | None:
        """Names of the entries of a point, for histories and figures; None without names."""
        return None

    def are_pairs(self, told: Any) -> bool:
        """Whether the only argument of `tell` is [(point, value), ...] rather than a list of values."""
        first = told[0] if isinstance(told, (list, tuple)) and told else None
        if not isinstance(first, (list, tuple)) or len(first) != 2:
            return False
        point, value = first
        if len(self.shape) > 1:
            return np.ndim(point) == len(self.shape) and np.size(value) == 1
        return isinstance(point, Mapping) or (_is_row(point) and (not _is_row(value) or len(value) == 1))

    # ---- may: what helps a search -------------------------------------------------------------------------------

    @property
    def folds(self) -> bool:
        """Whether all samples around a mean can be the same point, as in the corner of a box."""
        return False

    def limits(self, popsize: int) -> Limits:
        """Return limits of standard deviations that hold everywhere; the lower limits are for integers."""
        return Limits()

    @cached_property
    def has_limits_at(self) -> bool:
        """Whether `limits_at` may be anything but None."""
        return type(self).limits_at is not Domain.limits_at

    def limits_at(self, mean: Array, popsize: int) -> Limits | None:
        """Return additional limits around a mean (size,); None if there are none."""
        return None

    @cached_property
    def has_idle(self) -> bool:
        """Whether `idle` may be anything but None."""
        return type(self).idle is not Domain.idle

    def idle(self, mean: Array) -> Mask | None:
        """Return which entries of y do not become narrow at an optimum with this mean (size,); None if all do."""
        return None

    def tried(self, mean: Array, stds: Array) -> Array | None:
        """Return a y (size,) near the mean that samples do not reach but that is worth evaluating, if any."""
        return None

    def behind(self, y: Array, mean: Array) -> Mask | None:
        """Return which y are mirror images of points nearer to the mean; None if there never are any."""
        return None

    @property
    def is_conditional(self) -> bool:
        """Whether some entries of y may not affect the value of a point."""
        return False

    def active(self, points: Array) -> Mask:
        """Return which entries of y (n, size) affect the values of points, in a conditional domain."""
        return np.ones((len(points), self.size), dtype=bool)


def register(cls: type[D]) -> type[D]:
    """Make a domain class of your own, a frozen dataclass, storable in files; usable as a class decorator."""
    return objects.register_derived(cls, Domain)


class RowByRow(Domain):
    """Arrays of one shape; y is a point read row by row."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def decode(self, y: Array) -> Array:
        return y.reshape(-1, *self.shape).copy()

    def encode(self, points: Array, near: Array | None = None) -> Array:
        return points.reshape(len(points), -1)

    def stds(self, mean: Array, stds: Array) -> Array:
        return stds.reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Arrays(RowByRow):
    """Arrays of one shape, unchanged. `rule` raises ValueError for invalid points."""

    shape: tuple[int, ...]
    rule: Callable[[str, Array], Any] | None = field(default=None, metadata={"stored": False})

    def check(self, name: str, points: Array) -> None:
        checks.real_array(name, points, (None, *self.shape))
        if self.rule is not None:
            self.rule(name, points)


@dataclass(frozen=True, eq=False)
class Affine(Domain):
    """Points x = shift + scale y, which move a strategy's own start elsewhere."""

    shift: Array
    scale: Array

    @classmethod
    def between(cls, one: Place, other: Place) -> Affine:
        """The map that takes one place to another."""
        scale = other.steps / one.steps
        return cls(other.mean - scale * one.mean, scale)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shift.shape

    @property
    def size(self) -> int:
        return len(self.shift)

    def check(self, name: str, points: Array) -> None:
        checks.real_array(name, points, (None, *self.shape))

    def decode(self, y: Array) -> Array:
        return self.shift + self.scale * y

    def encode(self, points: Array, near: Array | None = None) -> Array:
        return (points - self.shift) / self.scale

    def stds(self, mean: Array, stds: Array) -> Array:
        return self.scale * stds


@dataclass(frozen=True, eq=False)
class Shaped(RowByRow):
    """Arrays of a shape whose entries are a point of another domain, such as a box."""

    shape: tuple[int, ...]
    entries: Domain

    def check(self, name: str, points: Array) -> None:
        checks.real_array(name, points, (None, *self.shape))
        self.entries.check(name, self.encode(points))

    def inside(self, points: Array) -> Mask:
        return self.entries.inside(self.encode(points))


def _is_row(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return not value or not isinstance(value[0], (list, tuple, np.ndarray))
    return np.ndim(value) == 1
