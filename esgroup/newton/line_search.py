"""How far to go along a direction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.newton.precision import Breakdown

Value = Callable[[Array], float]


class Trial(NamedTuple):
    """A point and its value."""

    x: Array
    fun: float


class LineSearch(ABC):
    """Chooses the point x + length s of a direction s."""

    @abstractmethod
    def search(self, value: Value, here: Trial, direction: Array, slope: float, length: float) -> Trial:
        """The point where to go on, from the length that is tried first; `slope` is g^T s < 0."""


@dataclass(frozen=True)
class FullStep(LineSearch):
    """The first length, whatever the value there."""

    def search(self, value: Value, here: Trial, direction: Array, slope: float, length: float) -> Trial:
        return _trial(value, here, direction, length)


@dataclass(frozen=True)
class Armijo(LineSearch):
    """Shorter and shorter steps until f(x + a s) <= f(x) + decrease a g^T s, and below f(x) in floating point.

    The next length is the minimum of the parabola through what is known, kept between a tenth and a half of the last
    one (Nocedal, Wright: Numerical optimization, section 3.5); a value that is not finite is too large.
    """

    decrease: float = 1e-4
    trials: int = 60

    def search(self, value: Value, here: Trial, direction: Array, slope: float, length: float) -> Trial:
        for _ in range(self.trials):
            trial = _trial(value, here, direction, length)
            enough = trial.fun <= here.fun + self.decrease * length * slope
            if enough and trial.fun < here.fun:  # very short steps would be enough by rounding
                return trial
            length = _shorter(length, slope, trial.fun - here.fun)
        raise _no_length(here.fun, slope, self.trials)


def _trial(value: Value, here: Trial, direction: Array, length: float) -> Trial:
    with np.errstate(over="ignore", invalid="ignore"):
        x = here.x + length * direction
    return Trial(x, value(x))


def _shorter(length: float, slope: float, rise: float) -> float:
    above = rise - length * slope  # over the tangent; positive, since the decrease was too small
    best = -slope * length * (length / (2.0 * above)) if math.isfinite(above) and above > 0.0 else 0.0
    return min(max(best, 0.1 * length), 0.5 * length)


def _no_length(fun: float, slope: float, trials: int) -> Breakdown:
    """Whether nothing more can be gained, or something is wrong with the derivatives."""
    if -slope <= 1e-14 * abs(fun):
        return Breakdown("tolfun", f"the slope promises a decrease of {-slope:.3g}, no more than rounding")
    return Breakdown("line_search", f"no decrease along a slope of {slope:.3g} in {trials} trials: is jac right?")


LINE_SEARCHES: dict[str, LineSearch] = {"none": FullStep(), "armijo": Armijo()}
