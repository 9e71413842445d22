"""Statistics of runs, which have at least one each.

Costs are evaluations up to a target, positive numbers; inf means that a run did not reach it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from esgroup.checks import Array

FEWEST = 5  # runs, at least, from which an interval is estimated
LEVEL = 0.95  # of intervals


class Ratio(NamedTuple):
    """An estimate with its bootstrap interval."""

    value: float
    low: float
    high: float


# ---- one method -----------------------------------------------------------------------------------------------------


def median(costs: ArrayLike) -> float:
    """The middle cost, or the mean of the two in the middle, which is inf if one of them is."""
    return float(quantile(costs, 0.5))


def expected_running_time(costs: ArrayLike, used: ArrayLike) -> float:
    """Evaluations of all runs per success; inf without a success.

    ERT = (sum of the costs of runs that reached the target + sum of what the others used) / number of successes:
    the expected cost if the method is run repeatedly until it succeeds (Hansen et al., COCO: performance assessment,
    arXiv:1605.03560, 2016).
    """
    charged, reached = _charged(costs, used)
    return float(_per_success(np.ones(len(charged)), charged, reached))


def ecdf(costs: ArrayLike, total: int | None = None) -> tuple[Array, Array]:
    """Empirical distribution function of costs: where it steps, and the share of runs that reached the target by then.

    Equal costs are one step. `total` is the number of runs, if `costs` does not include all that failed.
    """
    array = np.asarray(costs, dtype=np.float64)
    x, times = np.unique(array[np.isfinite(array)], return_counts=True)
    return x, np.cumsum(times) / max(len(array) if total is None else total, 1)


# ---- one method against another -------------------------------------------------------------------------------------


class Sides(NamedTuple):
    """The costs of the runs of two methods in one case, and what each run used.

    `paired` says that run i of both had the same seed, hence the same start and instance; both then have as many runs.
    Pairs are drawn together: difficulties that both share cancel, which independent draws would miss. Nothing is lost
    if seeds do not matter.
    """

    ours: ArrayLike
    ours_used: ArrayLike
    theirs: ArrayLike
    theirs_used: ArrayLike
    paired: bool = True


def ratio(sides: Sides, *, draws: int = 2000, seed: int = 0) -> Ratio:
    """Our expected running time divided by theirs, with a bootstrap interval; the same runs give the same interval.

    The interval is the expanded percentile interval (Hesterberg, What teachers should know about the bootstrap, The
    American Statistician 69, 2015): quantiles of the draws at Phi(-+ sqrt(n / (n - 1)) t), with t of n - 1 degrees of
    freedom, which corrects for the bootstrap's variance being (n - 1) / n too small and for the normal tails. On
    log-normal run lengths, with and without failures, 95 % intervals from pairs cover 0.90 to 0.96 at n = 5 and 0.93
    to 0.95 at n = 10 and 15; plain percentiles 0.79 to 0.86, 0.87 to 0.91 and 0.90 to 0.93, and BCa is no better. With
    fewer runs it would be too short, as it cannot extend beyond the most extreme run (0.73 at n = 3): it is [0, inf].

    A draw in which we never succeed is inf, one in which they never do is 0. A draw in which neither does carries no
    information: it counts as 0 for the lower end and as inf for the upper end. So the ends may be 0 and inf.
    """
    drawn, runs = _drawn_ratios(sides, np.random.default_rng(seed), draws)
    return Ratio(_ratio_of(sides), *_interval(drawn, _tail(runs, runs - 1)))


def mean_ratio(cases: Sequence[Sides], *, draws: int = 2000, seed: int = 0) -> Ratio:
    """Geometric mean, over one case or several, of the ratios of expected running times, with a bootstrap interval.

    Runs are drawn within each case, independently of the other cases: the interval is about these cases, with the
    chance of their runs, and not about other cases that might have been chosen. It is expanded as that of `ratio`, with
    the degrees of freedom of a sum of independent means (Satterthwaite, An approximate distribution of estimates of
    variance components, Biometrics Bulletin 2, 1946). For one case it is the interval of `ratio`.

    On log-normal run lengths in 3 and 10 cases, 95 % intervals cover 0.92 to 0.96 at n = 5, 10 and 15; with one failure
    in five runs 0.95 to 1, as many then have an open end. With fewer than five runs in any case it is [0, inf]. A draw
    in which we never succeed in some case is inf, one in which they never do is 0, and one with both carries no
    information.
    """
    rng = np.random.default_rng(seed)
    drawn, runs = zip(*(_drawn_ratios(case, rng, draws) for case in cases), strict=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and inf - inf: some case of each never succeeds
        logs = np.log(drawn)
        means = np.exp(logs.mean(axis=0))
    value = float(np.exp(np.mean([math.log(_ratio_of(case)) for case in cases])))
    return Ratio(value, *_interval(means, _tail(min(runs), _freedom(logs, np.array(runs)))))


def _freedom(logs: Array, runs: Array) -> float:
    """Degrees of freedom of the variance of a mean over cases, from draws of each; the fewest if draws are infinite."""
    if not np.isfinite(logs).all() or not logs.std(axis=1).any():
        return float(runs.min() - 1)
    variances = logs.var(axis=1)
    return float(variances.sum() ** 2 / (variances**2 / np.maximum(runs - 1, 1)).sum())


def _ratio_of(sides: Sides) -> float:
    ours = expected_running_time(sides.ours, sides.ours_used)
    return ours / expected_running_time(sides.theirs, sides.theirs_used)


def _drawn_ratios(sides: Sides, rng: np.random.Generator, draws: int) -> tuple[Array, int]:
    """Ratios in which runs are drawn with replacement, and the number of runs of the side that has fewer."""
    we, they = _charged(sides.ours, sides.ours_used), _charged(sides.theirs, sides.theirs_used)
    our_runs, their_runs = len(we[0]), len(they[0])
    times = _resampled(rng, our_runs, draws)
    their_times = times if sides.paired else _resampled(rng, their_runs, draws)
    with np.errstate(invalid="ignore"):  # inf / inf: neither succeeds
        return _per_success(times, *we) / _per_success(their_times, *they), min(our_runs, their_runs)


def _resampled(rng: np.random.Generator, runs: int, draws: int) -> Array:
    """How often each run occurs in each draw, with replacement, of the same number of runs: (draws, runs)."""
    return rng.multinomial(runs, np.full(runs, 1 / runs), size=draws).astype(np.float64)


def _tail(runs: int, freedom: float) -> float:
    """Share of the draws outside the interval, at each end; 0 if there are too few runs."""
    if runs < FEWEST:
        return 0.0
    t = special.stdtrit(freedom, (1 + LEVEL) / 2)
    return float(special.ndtr(-math.sqrt(runs / (runs - 1)) * t))


def _interval(drawn: Array, tail: float) -> tuple[float, float]:
    if tail == 0:
        return 0.0, math.inf
    unknown, outside = np.isnan(drawn), math.floor(tail * len(drawn))
    low, high = np.sort(np.where(unknown, 0.0, drawn)), np.sort(np.where(unknown, math.inf, drawn))
    return float(low[outside]), float(high[-1 - outside])


def _per_success(times: Array, charged: Array, reached: Array) -> Array:
    """Expected running times if run i occurs times[..., i] times."""
    successes = times @ reached
    return np.where(successes > 0, times @ charged / np.maximum(successes, 1.0), math.inf)


def _charged(costs: ArrayLike, used: ArrayLike) -> tuple[Array, Array]:
    """Cost charged to each run, and 1 for the runs that reached the target."""
    array = np.asarray(costs, dtype=np.float64)
    reached = np.isfinite(array)
    return np.where(reached, array, np.asarray(used, dtype=np.float64)), reached.astype(np.float64)


# ---- curves ---------------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """Quartiles, over runs, of the best gap so far, at some costs."""

    cost: Array
    low: Array
    middle: Array
    high: Array


def curve(
    costs: Sequence[Sequence[float]],
    gaps: Sequence[Sequence[float]],
    used: Sequence[float],
    *,
    target: float,
    points: int,
) -> Curve:
    """Quartiles of the best gap so far of several runs, from the first point of any run to the end of the median.

    A run that has ended keeps its last gap, a run without points has the gap inf, and gaps below the target are raised
    to it. The end is where more than half of the runs have ended, or where the median improves for the last time, if
    that is later. If runs end at the target and more than half of them reach it, this is the median cost to the target.
    """
    every = np.unique(np.concatenate([np.asarray(run, dtype=np.float64) for run in costs]))
    if not len(every):
        return Curve(*np.empty((4, 0)))

    def quartiles(at: Array) -> list[Array]:
        best = [np.maximum(best_so_far(*run, at), target) for run in zip(costs, gaps, strict=True)]
        return [quantile(best, share) for share in (0.25, 0.5, 0.75)]

    middle = quartiles(every)[1]
    improved = every[1:][middle[1:] < middle[:-1]]
    end = max(sorted(used)[len(used) // 2], improved.max(initial=every[0]))
    at = np.unique(np.geomspace(every[0], end, points))
    return Curve(at, *quartiles(at))


def quantile(values: ArrayLike, share: float) -> Array:
    """Quantile along the first axis, linear between order statistics; inf where an infinite one has any weight."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    place = share * (len(ordered) - 1)
    below, weight = math.floor(place), place % 1
    if weight == 0:
        return np.asarray(ordered[below])
    return np.asarray((1 - weight) * ordered[below] + weight * ordered[below + 1])


def best_so_far(costs: ArrayLike, gaps: ArrayLike, at: Array) -> Array:
    """Smallest gap found at a cost of at most `at`, inf before the first point. Costs must be ascending."""
    best = np.minimum.accumulate(np.append(math.inf, np.nan_to_num(gaps, nan=math.inf, posinf=math.inf)))
    return np.asarray(best[np.searchsorted(costs, at, side="right")])
