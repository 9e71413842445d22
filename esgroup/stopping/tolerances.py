"""Tolerances: how close values or points must be for a search to count as converged."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from esgroup import checks
from esgroup.stopping.base import TOLERANCE, Answer, Rule, View
from esgroup.stopping.values import TOL_FUN, moves, short_span


@dataclass(frozen=True)
class TolX(Rule):
    """Holds if all standard deviations, `search.stds`, are below a tolerance, in the units of x.

    The tolerance is absolute, not relative to sigma0; in a `Space` it applies to the logarithm where log=True. Integers
    and choices keep some spread, so this rule does not end a search that has any; use a function of the search instead.

    Parameters
    ----------
    tolerance
        The tolerance.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.stopping import TolX
    >>> f = lambda x: x @ x
    >>> result = esgroup.minimize(f, [3.0, 1.0], 0.5, stop=TolX(1e-3), rng=1)
    >>> result.success, bool(result.stds.max() < 1e-3)
    (True, True)
    """

    tolerance: float
    name = "tolx"
    of_run = True
    status = TOLERANCE

    def __post_init__(self) -> None:
        _check(self.tolerance)

    def look(self, view: View) -> str | None:
        widest = view.stds.max()
        if widest < self.tolerance:
            return f"the largest standard deviation is {widest:.3g}, below {self.tolerance:g}"
        return None


@dataclass(frozen=True)
class TolFun(Rule):
    """Holds if the best values of recent generations, and all values of the last one, differ by at most a tolerance.

    It also holds, for any tolerance, if they differ only by rounding error; every search checks this by itself.

    Parameters
    ----------
    tolerance
        The tolerance, in the units of the values.
    generations : default None
        How many recent generations; the default is 10 + 30 n / lambda for n variables and lambda values per generation,
        as TolHistFun in the CMA-ES tutorial.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.stopping import TolFun
    >>> f = lambda x: x @ x + 5
    >>> esgroup.minimize(f, [3.0, 1.0], 0.5, stop=TolFun(1e-3), rng=1).success
    True
    """

    tolerance: float
    generations: int | None = None
    name = "tolfun"
    of_run = True
    status = TOLERANCE

    def __post_init__(self) -> None:
        _check(self.tolerance)
        if self.generations is not None:
            checks.whole_number("generations", self.generations, least=1)

    def look(self, view: View) -> Answer:
        record = view.record
        best, worst = record.best, record.worst
        span = self.generations or short_span(view.strategy)
        # the last generation alone already differs too much: the size of all values is at most twice that of these
        if len(best) < span or worst - best[-1] > max(self.tolerance, 2 * TOL_FUN * max(abs(worst), abs(best[-1]))):
            return None
        recent = [*itertools.islice(reversed(best), span), worst]
        low, high = min(recent), max(recent)
        gap = 0.0 if low == high else high - low  # also for infinite values
        rounding = TOL_FUN * max(abs(low), abs(high))
        if not (gap == 0.0 or gap <= max(self.tolerance, rounding) < math.inf):
            return None
        least = "rounding error" if gap <= rounding else f"the tolerance {self.tolerance:g}"
        found = {"tolfun": f"the values of {span} {moves(view.strategy)} differ by {gap:.3g}, no more than {least}"}
        if not record.varied:
            found["flat"] = "the function is constant to rounding error"
        return found


def _check(tolerance: float) -> None:
    if checks.real_number("tolerance", tolerance) < 0:
        raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
