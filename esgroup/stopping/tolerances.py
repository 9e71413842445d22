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
    """Holds where all standard deviations, `search.stds`, are below a number, in the units of x.

    It is absolute, not relative to sigma0; in a `Space` it is that of the logarithm where log=True. Whole numbers and
    choices keep some spread, so that it does not end a search over some of them: a function of the search can.

    Parameters
    ----------
    tolerance
        The number.

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
    """Holds where the best values of some generations, and all values of the last one, differ by no more than a number.

    Where they differ by no more than rounding it holds for every number; a search looks for that by itself.

    Parameters
    ----------
    tolerance
        The number, in the units of the values.
    generations : default None
        How many of the last generations; by default 10 + 30 n / lambda for n coordinates and lambda values in each,
        those of TolHistFun in the CMA-ES tutorial.

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
        # values of the last generation alone that are too far apart: size is that of all, at most twice that of these
        if len(best) < span or worst - best[-1] > max(self.tolerance, 2 * TOL_FUN * max(abs(worst), abs(best[-1]))):
            return None
        recent = [*itertools.islice(reversed(best), span), worst]
        low, high = min(recent), max(recent)
        gap = 0.0 if low == high else high - low  # also of infinite ones
        rounding = TOL_FUN * max(abs(low), abs(high))
        if not (gap == 0.0 or gap <= max(self.tolerance, rounding) < math.inf):
            return None
        least = "rounding" if gap <= rounding else f"the tolerance {self.tolerance:g}"
        found = {"tolfun": f"the values of {span} {moves(view.strategy)} differ by {gap:.3g}, no more than {least}"}
        if not record.varied:
            found["flat"] = "no two values differed by more than rounding: there was nothing to go by"
        return found


def _check(tolerance: float) -> None:
    if checks.real_number("tolerance", tolerance) < 0:
        raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
