"""Distributions of Optuna as parameters of a `Space`, and parameters of trials as its points."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from esgroup.space import Choice, Integer, Real, Space

_MOST_INTEGER = 2**53  # up to which every integer is a float64


@dataclass(frozen=True)
class Number:
    """A number: as it is, by its place on a grid, or by its logarithm."""

    distribution: FloatDistribution | IntDistribution

    @property
    def step(self) -> float | None:
        """The step of the grid; None where numbers are searched as they are, as integers on a logarithmic scale."""
        return None if self.distribution.log else self.distribution.step

    def parameter(self, start: Any, share: float) -> Real | Integer:
        """What is searched, starting at a value or else in the middle, with a share of the range as width."""
        distribution = self.distribution
        low, high, log = distribution.low, distribution.high, distribution.log
        first = None if start is None else self.inner(start)
        if self.step is not None:
            last = self.inner(high)
            return Integer(0, last, start=first, width=max(0.5, share * last))  # the least that Integers have
        if isinstance(distribution, IntDistribution):
            width = share * math.log((high + 0.5) / (low - 0.5))
            return Integer(distribution.low, distribution.high, log=True, start=first, width=width)
        width = share * (math.log(high / low) if log else high - low)
        return Real(low, high, log=log, start=first, width=width)

    def inner(self, value: Any) -> Any:
        """The value as it is searched."""
        return value if self.step is None else round((value - self.distribution.low) / self.step)

    def outer(self, inner: Any) -> Any:
        """The value as Optuna has it."""
        if self.step is None:
            return inner
        return min(self.distribution.low + inner * self.step, self.distribution.high)  # on the grid but for rounding


@dataclass(frozen=True)
class Category:
    """A choice by the place of the option: options of Optuna need neither differ nor be hashable."""

    distribution: CategoricalDistribution

    def parameter(self, start: Any, share: float) -> Choice:
        """What is searched, from an option, or with all of them equally likely."""
        return Choice(*range(len(self.distribution.choices)), start=None if start is None else self.inner(start))

    def inner(self, value: Any) -> int:
        """The place of an option."""
        return int(self.distribution.to_internal_repr(value))

    def outer(self, inner: int) -> Any:
        """The option at a place."""
        return self.distribution.choices[inner]


def searchable(distribution: BaseDistribution) -> bool:
    """Whether there is something to search, and numbers can be told apart."""
    if distribution.single():
        return False
    if isinstance(distribution, IntDistribution):
        return max(abs(distribution.low), abs(distribution.high)) <= _MOST_INTEGER
    if isinstance(distribution, FloatDistribution):
        width, step = distribution.high - distribution.low, distribution.step
        return width < math.inf if step is None else width / step < _MOST_INTEGER
    return isinstance(distribution, CategoricalDistribution)


def _part(distribution: Any) -> Number | Category:
    return Category(distribution) if isinstance(distribution, CategoricalDistribution) else Number(distribution)


class Translation:
    """Translates parameters of trials to points of a `Space` and back."""

    def __init__(
        self, distributions: Mapping[str, BaseDistribution], x0: Mapping[str, Any], sigma0: float
    ) -> None:
        self.distributions = dict(distributions)
        self.parts = {name: _part(distribution) for name, distribution in distributions.items()}
        self.checksum = zlib.crc32(repr(sorted((name, repr(one)) for name, one in distributions.items())).encode())
        self.space = Space({name: part.parameter(x0.get(name), sigma0) for name, part in self.parts.items()})

    def point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The point of a trial; None if some parameters have no value, or another distribution."""
        for name, distribution in self.distributions.items():
            other = trial.distributions.get(name)
            if other is not distribution and other != distribution:
                return None
        return {name: part.inner(trial.params[name]) for name, part in self.parts.items()}

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a trial at a point."""
        return {name: part.outer(point[name]) for name, part in self.parts.items()}
