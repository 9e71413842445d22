"""Step sizes: how the rate changes with the iterations, how the Hessian is damped, and how long a step is.

A `RateSchedule` gives factors on the rates, damping is a multiple of the identity that shortens the first steps, and a
line search chooses the length along a direction.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.newton.precision import EstimateBreakdown

# ---- the rate -----------------------------------------------------------------------------------------------------


class RateSchedule(ABC):
    """A factor on the rate for every iteration t = 1, 2, ...

    For a schedule of your own, derive from this class and define `factor`, or pass a function of t.
    """

    @abstractmethod
    def factor(self, t: int) -> float:
        """Return the factor on the rate in iteration t."""

    def factors(self, t: int, momentum: float) -> tuple[float, float]:
        """Return two factors: for the step of the mean along the average gradient Z, and for the update of the root.

        Z_t = (1 - c) g_t + c Z_{t-1} is too short in the first iterations: the mean's factor is divided by 1 - c^t.
        """
        factor = self.factor(t)
        return factor / (1.0 - momentum**t), factor


@dataclass(frozen=True)
class Constant(RateSchedule):
    """The factor 1 in every iteration.

    Examples
    --------
    >>> from esgroup.newton import Constant
    >>> Constant().factor(1), Constant().factor(100)
    (1.0, 1.0)
    """

    def factor(self, t: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(RateSchedule):
    """A straight line from 1 in the first iteration to `last` in iteration number `iterations`, then constant.

    Parameters
    ----------
    iterations : int
        The iteration in which the factor reaches `last`, at least 1.
    last : float
        The final factor, above 0 and at most 1.

    Examples
    --------
    >>> from esgroup.newton import Linear
    >>> [round(Linear(last=0.1, iterations=10).factor(t), 2) for t in (1, 4, 10)]
    [1.0, 0.7, 0.1]
    """

    iterations: int
    last: float = 0.01

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "iterations", least=1)
        if not 0 < checks.real_number("last", self.last) <= 1:
            raise ValueError(f"last must be above 0 and at most 1, got {self.last!r}")

    def factor(self, t: int) -> float:
        done = min(1.0, (t - 1) / max(1, self.iterations - 1))
        return 1.0 + done * (self.last - 1.0)


@dataclass(frozen=True)
class Inverse(RateSchedule):
    """1 / (1 + (t - 1) / half): 1 in the first iteration, one half after `half` more, in the limit as 1/t.

    Parameters
    ----------
    half : float
        Number of iterations after which the factor has fallen to one half, positive.

    Examples
    --------
    >>> from esgroup.newton import Inverse
    >>> Inverse(half=10).factor(1), Inverse(half=10).factor(11)
    (1.0, 0.5)
    """

    half: float = 100.0

    def __post_init__(self) -> None:
        checks.real_number("half", self.half, positive=True)

    def factor(self, t: int) -> float:
        return 1.0 / (1.0 + (t - 1) / self.half)


@dataclass(frozen=True)
class Exponential(RateSchedule):
    """(1 - c2^t) / (1 - c1^t) for mean and root alike, where c1 is the momentum (paper, eq. gauss_newton_matgauss).

    In the paper beta_t is this factor alone; the rate multiplies it here. Without momentum it is 1 - c2^t.

    Parameters
    ----------
    c2 : float
        Decay of the numerator, at least 0 and below 1.

    Examples
    --------
    >>> from esgroup.newton import Exponential
    >>> [round(f, 3) for f in Exponential().factors(1, momentum=0.9)]
    [0.01, 0.01]
    """

    c2: float = 0.999

    def __post_init__(self) -> None:
        checks.not_negative("c2", self.c2, below=1)

    def factor(self, t: int) -> float:
        return float(1.0 - self.c2**t)

    def factors(self, t: int, momentum: float) -> tuple[float, float]:
        factor = self.factor(t) / (1.0 - momentum**t)
        return factor, factor


@dataclass(frozen=True)
class FunctionSchedule(RateSchedule):
    """A schedule given as a function of t."""

    function: Callable[[int], Any]

    def factor(self, t: int) -> float:
        return checks.real_number("schedule(t)", self.function(t), positive=True)


def as_schedule(schedule: Any, max_iters: int | None) -> RateSchedule:
    """Convert a schedule, its name ("constant", "linear", "inverse", "exponential") or a function of t."""
    if isinstance(schedule, RateSchedule):
        return schedule
    if schedule == "linear":
        if max_iters is None:
            raise ValueError("schedule='linear' ends at max_iters: give max_iters=, or pass Linear(iterations)")
        return Linear(max_iters)
    names: dict[Any, type[RateSchedule]] = {"constant": Constant, "inverse": Inverse, "exponential": Exponential}
    if isinstance(schedule, str) and schedule in names:
        return names[schedule]()
    if not callable(schedule):
        named = "'constant', 'linear', 'inverse', 'exponential'"
        raise ValueError(f"schedule must be {named}, a RateSchedule or a function of t, got {schedule!r}")
    return FunctionSchedule(schedule)


# ---- damping ------------------------------------------------------------------------------------------------------

DAMPING = 10.0  # of the moving block: with 1, four of five runs from (-1.2, 1, ...) end in the local minimum near -1
DECAY = 0.9  # factor of the damping per iteration


def damping_at(t: int, start: float, decay: float, scale: float, slope_ratio: float) -> float:
    """Return mu_t = start scale min(decay^t, |g_t| / |g_0|), a multiple of the identity that is added to the Hessian.

    `scale` is the largest |H_ii| at the start. With a large `start`, the first steps resemble gradient steps
    (Levenberg), which leads to better basins. Damping below 1e-12 scale counts as zero.
    """
    damping = start * scale * min(decay**t, slope_ratio)
    return damping if damping >= 1e-12 * scale else 0.0


# ---- line searches ------------------------------------------------------------------------------------------------

ValueAt = Callable[[Array], float]

DECREASE = 1e-4  # of the decrease that the slope predicts
TRIALS = 60


class LinePoint(NamedTuple):
    """A point on the search line, and its value."""

    x: Array
    fun: float


#: Returns the next point x + length s, given f, the point x, the direction s, the slope g^T s < 0, and the length to
#: try first.
LineSearch = Callable[[ValueAt, LinePoint, Array, float, float], LinePoint]


def full_step(value: ValueAt, here: LinePoint, direction: Array, slope: float, length: float) -> LinePoint:
    """Take the first length, regardless of the value there."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = here.x + length * direction
    return LinePoint(x, value(x))


def armijo(
    value: ValueAt, here: LinePoint, direction: Array, slope: float, length: float, *, decrease: float = DECREASE
) -> LinePoint:
    """Shorten the step until f(x + a s) <= f(x) + decrease a g^T s, and f(x + a s) < f(x) in floating point.

    The next length is the minimum of the parabola through the known values, kept between a tenth and a half of the
    last one (Nocedal, Wright: Numerical optimization, section 3.5). A value that is not finite counts as too large.
    """
    for _ in range(TRIALS):
        trial = full_step(value, here, direction, slope, length)
        enough = trial.fun <= here.fun + decrease * length * slope
        if enough and trial.fun < here.fun:  # by rounding alone, very short steps would pass the first condition
            return trial
        length = _shorter(length, slope, trial.fun - here.fun)
    if -slope <= 1e-14 * abs(here.fun):
        raise EstimateBreakdown("tolfun", f"the slope predicts a decrease of {-slope:.3g}, no more than rounding error")
    text = f"no decrease along a slope of {slope:.3g} in {TRIALS} trials: is jac correct?"
    raise EstimateBreakdown("line_search", text)


def _shorter(length: float, slope: float, rise: float) -> float:
    above = rise - length * slope  # height above the tangent; positive, since the decrease was too small
    best = -slope * length * (length / (2.0 * above)) if math.isfinite(above) and above > 0.0 else 0.0
    return min(max(best, 0.1 * length), 0.5 * length)


LINE_SEARCHES: dict[str, LineSearch] = {"none": full_step, "armijo": armijo}
