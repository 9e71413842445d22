"""Rules about values: none are available, they no longer improve, they look noisy."""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.stopping.base import Rule, View

TOL_FUN = 1e-13  # of the values: a thousand times their resolution
NARROW = "narrow"  # the distribution is as narrow as allowed: reported as "tolx" unless `still_improving`
FAILED = 10  # generations in a row without a value
# Generations before which a search does not stagnate. Without it the rule ended 33 of 210 searches (bbob f7, 13, 19,
# 20, 21, 23, 24 with 5, 10, 20 variables, 3 or 4 population sizes), and 12 of them would have reached 20 more of the
# targets 1e2 ... 1e-8. Starting at 300 generations it would have cost 11 targets, at 500 6, at 700 3.
LEAST_AGE = 500
# Least number of generations whose best values are compared to detect noise, and the spread of values in a generation
# that counts as more than rounding. Chosen with the limit below on bbob instances 1-5 (see `looks_noisy`).
LEAST_COMPARED = 150
ROUNDING = 1e-9
INDEPENDENT = 1.5
_MOST_HISTORY = 20_000


class Look(NamedTuple):
    """The last answer of a criterion, and its generation."""

    reasons: dict[str, str]
    nit: int


@dataclass
class Record:
    """Best and median value of the generations so far, as many as the criteria look at, and their last answers."""

    best: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_HISTORY))
    median: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_HISTORY))
    worst: float = math.nan  # of the last generation, without failed evaluations
    failed_in_a_row: int = 0
    varied: bool = False  # whether values have ever differed, within a generation or from one to the next
    looks: dict[str, Look] = field(default_factory=dict)  # expensive criteria are checked every few generations

    def add(self, ranked: list[float]) -> None:
        """Note the values of a generation, from best to worst, failed ones (NaN) last."""
        if ranked[0] != ranked[0]:
            self.failed_in_a_row += 1
            return
        self.failed_in_a_row = 0
        first = self.best[0] if self.best else ranked[0]
        self.best.append(ranked[0])
        median = ranked[len(ranked) // 2]
        self.median.append(median if median == median else math.inf)  # NaN would never compare
        worst = ranked[-1]
        self.worst = worst if worst == worst else max(value for value in ranked if value == value)
        if not self.varied:
            low, high = min(first, ranked[0]), max(first, self.worst)
            size = max(abs(low), abs(high))
            self.varied = low < high and (size == math.inf or high - low > TOL_FUN * size)


@dataclass(frozen=True)
class Failed(Rule):
    """Holds if all evaluations of ten generations in a row failed."""

    name = "failed"
    of_run = True

    def look(self, view: View) -> str | None:
        number = view.record.failed_in_a_row
        return None if number < FAILED else f"all evaluations of the last {number} {moves(view.strategy)} failed"


@dataclass(frozen=True)
class Stagnation(Rule):
    """Holds if neither the best nor the median value improves, by medians of the first and the last 30 percent.

    Parameters
    ----------
    generations : default None
        How many recent generations are compared. The default is the tutorial's Stagnation: 100 + 100 n^1.5 / lambda, or
        a fifth of all generations, as in pycma. By default the rule also waits for 500 generations: on rugged functions
        values can stagnate while the distribution wanders, until it finds a valley.
    """

    generations: int | None = None
    name = "stagnation"
    of_run = True

    def __post_init__(self) -> None:
        if self.generations is not None:
            checks.whole_number("generations", self.generations, least=2)

    def look(self, view: View) -> str | None:
        record, strategy = view.record, view.strategy
        least = span = self.generations or 0
        if not span:
            usual = 100 + 100 * strategy.size**1.5 / strategy.traits.least_batch
            span = max(math.ceil(strategy.traits.patience * usual), len(record.best) // 5)
            least = max(span, LEAST_AGE)
        if len(record.best) < least:
            return None
        if not all(_no_better(values, span) for values in (record.best, record.median)):
            return None
        return f"neither the best nor the median value improved in {span} {moves(strategy)}"


def moves(strategy: Any) -> str:
    """What the record of a strategy's values counts."""
    return "generations" if strategy.traits.least_batch == strategy.popsize else "parts of generations"


def short_span(strategy: Any) -> int:
    """Generations of the tutorial's TolHistFun, 10 + 30 n / lambda."""
    return _short_span(strategy.size, strategy.traits.least_batch)


def _short_span(dim: int, popsize: int) -> int:
    return 10 + math.ceil(30 * dim / popsize)


def still_improving(record: Record, dim: int, popsize: int, narrowness: float) -> bool:
    """Whether a search that is as narrow as allowed continues because its function is sharp and values improve.

    `narrowness` is the size s of the distribution relative to the first one. The values of a smooth function then
    differ s^2 times as much as at first, those of a sharp one s times; the limit is in between, at s^1.5. At a smooth
    minimum the search ends at once. Along a sharp ridge values improve slowly, and differ more within a
    generation: the best values of the last 20 + 60 n / lambda generations are compared with those of as many before, by
    medians. With a quarter of that, 1 of 10 searches along bbob's f13 with 20 variables reaches 1e-8 instead of 7.
    Sharp minima take longer: |x| with 10 variables ends after about 3,500 evaluations instead of 2,700.
    """
    if not record.best:
        return False
    latest = [*zip(reversed(record.best), reversed(record.median), range(10), strict=False)]
    differences = np.array([_difference(best, median) for best, median, _ in latest])
    if _median(differences) < _difference(record.best[0], record.median[0]) * narrowness**1.5:
        return False
    span = 2 * _short_span(dim, popsize)
    recent = np.array(list(itertools.islice(reversed(record.best), 2 * span)))
    return len(recent) < 2 * span or _median(recent[:span]) < _median(recent[span:])


def _difference(best: float, median: float) -> float:
    """Median minus best value, infinite if either is."""
    return median - best if math.isfinite(median - best) else math.inf


def _no_better(values: deque[float], span: int) -> bool:
    recent = np.array(list(itertools.islice(reversed(values), span)))[::-1]
    part = max(1, int(0.3 * span))
    return _median(recent[-part:]) >= _median(recent[:part])


def looks_noisy(record: Record) -> bool:
    """Whether the best values of the generations vary like independent numbers around one level, far above rounding.

    With the ranks R_t of the last half of the best values, N of them and at least 150, this is Bartels' ratio

        sum_t (R_{t+1} - R_t)^2 / sum_t (R_t - (N + 1) / 2)^2 > 1.5

    (Bartels 1982, the rank version of von Neumann's ratio). For independent values it is 2 with a standard deviation of
    2 / sqrt(N); while a search makes progress, each best value is near the previous one, and the ratio is near 0. Ranks
    are robust to outliers. A function that is rugged down to the size of the distribution looks the same as noise.

    Of 480 searches of bbob's 24 functions without noise (2 to 20 variables, instances 1-5, 2000 d evaluations or 1000
    for 20) 10 look noisy in the end, all on f7, f19 and f23; after 400 d 23 do, most of them on the same functions. Of
    270 searches of nine functions with noise that matters after 400 d (5 and 10 variables; N(0, 1), severe Gauss,
    severe uniform) 252 do. With at least 100 generations it would be 12, 27 and 257, with 200: 10, 22 and 235.
    """
    number = max(LEAST_COMPARED, len(record.best) // 2)
    if len(record.best) < number:
        return False
    best, median = (np.array(list(itertools.islice(reversed(v), number))) for v in (record.best, record.median))
    if not (np.isfinite(best).all() and np.isfinite(median).all()):
        return False
    if _median(median / 2 - best / 2) <= ROUNDING * np.abs(median / 2).max():  # halves: a difference may overflow
        return False
    ranks = np.unique(best, return_inverse=True)[1].astype(np.float64)  # equal values have equal ranks
    total = float(((ranks - ranks.mean()) ** 2).sum())
    return float((np.diff(ranks) ** 2).sum()) > INDEPENDENT * total


def _median(values: Array) -> float:
    """The upper median: an average of two could overflow or not exist."""
    middle = len(values) // 2
    return float(np.partition(values, middle)[middle])
