"""Learning rates and rank weights, which an evolution strategy adds to a natural gradient, as functions of sizes.

The letters are those of the CMA-ES tutorial (Hansen 2016, arXiv 1604.00772, table 1); n is the number of searched
variables, lambda the number of values per generation, m the degrees of freedom of the group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array

_MOST_LEARNED = 0.95  # of the covariance in one generation


class RankWeights(NamedTuple):
    """Weights by rank, best first, for the mean and for the square root."""

    mean: Array
    root: Array
    mu_eff: float  # of the positive root weights, which the rates of the square root depend on
    mean_mu_eff: float  # 1 / sum of squares of the mean weights: sum_i u_i z_i sqrt(mu_eff) ~ N(0, I) without selection


def log_ranks(popsize: int) -> Array:
    """ln((lambda + 1) / 2) - ln rank: positive for the better half (tutorial, eq. 49)."""
    return math.log((popsize + 1) / 2) - np.log(np.arange(1, popsize + 1))


def halves(popsize: int) -> tuple[Array, Array]:
    """The ln-ranks of the better half, scaled to sum 1, and those of the worse half, scaled to sum -1."""
    ranks = log_ranks(popsize)
    better, worse = np.maximum(ranks, 0.0), np.minimum(ranks, 0.0)
    return better / better.sum(), worse / max(1e-300, -worse.sum())


def effective(weights: Array) -> float:
    """(sum |w|)^2 / sum w^2, the effective number of samples."""
    square = float(weights @ weights)
    return float(np.abs(weights).sum() ** 2) / square if square > 0 else 0.0


def path_rate(dim: int, mu_eff: float) -> float:
    """c_c = (4 + mu_eff / n) / (n + 4 + 2 mu_eff / n)  (tutorial, eq. 56)."""
    return (4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim)


def root_rates(dim: int, dof: int, mu_eff: float, gathered: int = 0) -> tuple[float, float]:
    """c_1 = 2 / (2 m + 1.6 n + 1.7 + mu_eff), c_mu = 2 k (mu_eff - 1.75 + 1/mu_eff) / (2 m + 3 n + 4 + mu_eff).

    k is 1 for the full group and min(2, n (n + 1) / (2 m)) for others: doubling the rate of rank-mu updates helps with
    few degrees of freedom, doubling c_1 does not (tuned on bbob f2, f8, f11, f12 at n = 40). Up to m = n, for diagonal
    matrices above all, 5 takes the place of 2, which makes c_mu about 2 (mu_eff - 1.75) / n (separable ellipsoids, 5 to
    2: 0.79, 0.68, 0.60, 0.45 of the evaluations for n = 20, 40, 80, 160, sphere 0.95; with 8 another 0.8, not taken;
    block triangular matrices with k = 2 and 4 lose, 1.06 and 1.09). For the full group,
    2 m = n^2 + n, these are the tutorial's 2 / ((n + 1.3)^2 + mu_eff), with 1.7 for 1.69, and
    2 (mu_eff - 1.75 + 1/mu_eff) / ((n + 2)^2 + mu_eff) (eqs. 57, 58); a group with fewer degrees of freedom learns
    faster in proportion to how much less it has to learn.

    Where one coordinate depends on many independent ones (`gathered` of them, the long rows of a block upper or
    Heisenberg matrix), c_1 is at most 16 / gathered^2. The path p asks for a longer axis in its own direction; such a
    group can only answer by making a hub coordinate follow the path, which does not shorten it: with a larger c_1 the
    hub's standard deviation grows without bound (measured on the sphere: 160, 320 and 1000 coordinates are stable at
    16, 16 and 20, unstable at 31, 31 and 50).

    c_1 + c_mu is at most 0.95: whatever the points of a generation, a twentieth of what was learned before remains.
    """
    boost = min(2.0 if dof > dim else 5.0, dim * (dim + 1) / (2 * dof))
    c_1 = 2 / (2 * dof + 1.6 * dim + 1.7 + mu_eff)
    if gathered:
        c_1 = min(c_1, 16 / gathered**2)
    c_mu = 2 * boost * (mu_eff - 1.75 + 1 / mu_eff) / (2 * dof + 3 * dim + 4 + mu_eff)
    return c_1, max(0.0, min(_MOST_LEARNED - c_1, c_mu))


def expected_norm(dim: int) -> float:
    """E|z| of z ~ N(0, I): sqrt(2) Gamma((n + 1) / 2) / Gamma(n / 2)."""
    return math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))


def recombination(popsize: int, dim: int, c_1: float, c_mu: float, negative_mean: float | None) -> RankWeights:
    """Return the CMA-ES weights of the square root, and of the mean: the positive and part of the negative weights.

    Root: w_i = ln-ranks, the positive ones scaled to sum 1, the negative ones to sum
    -min(1 + c_1/c_mu, 1 + 2 mu_eff^- / (mu_eff + 2), (1 - c_1 - c_mu) / (n c_mu))  (tutorial, eqs. 49-53).
    Mean: the positive ones, and the negative ones scaled to sum -negative_mean (None: `negative_share`); a mean that
    also moves away from the worst points uses samples that CMA-ES uses for the covariance only.
    """
    better, worse = halves(popsize)
    mu_eff, mu_eff_worse = effective(better), effective(worse)
    total = 1 + 2 * mu_eff_worse / (mu_eff + 2)
    if c_mu > 0:
        total = min(total, 1 + c_1 / c_mu, (1 - c_1 - c_mu) / (dim * c_mu))
    if negative_mean is None:
        negative_mean = negative_share(dim, mu_eff)
    mean = better + negative_mean * worse
    return RankWeights(checks.read_only(mean), checks.read_only(better + total * worse), mu_eff, 1 / float(mean @ mean))


def utilities(popsize: int) -> Array:
    """u_i = max(0, ln(lambda/2 + 1) - ln rank_i), scaled to sum 1, less 1/lambda (Wierstra et al. 2014)."""
    by_rank = np.maximum(0.0, math.log(popsize / 2 + 1) - np.log(np.arange(1, popsize + 1)))
    return by_rank / by_rank.sum() - 1 / popsize


def utility_rate(dim: int, dof: int) -> float:
    """(3 + ln n) / (5 sqrt n) min(1, 3 (n + 1) / (2 m)).

    This is the rate of SNES for the diagonal group, m = n, and that of xNES, (9 + 3 ln n) / (5 n sqrt n), for the full
    group, m = n (n + 1) / 2, n > 2 (defaults of Wierstra et al. 2014); between them the rate falls as 1 / m.
    """
    return float((3 + math.log(dim)) / (5 * math.sqrt(dim)) * min(1.0, 1.5 * (dim + 1) / dof))


def step_size_rates(dim: int, mu_eff: float) -> tuple[float, float]:
    """c_s = min(1/2, (mu_eff + 2) / (n + mu_eff + 5)), d_s = 1 + 2 max(0, sqrt((mu_eff - 1) / (n + 1)) - 1) + c_s.

    Tutorial, eq. 55; mu_eff is that of the weights of the mean. The limit, which is that of pycma, keeps a path with
    memory for large populations: with the optimum within reach the first step of the mean is long whatever the step
    size is, and c_s near 1 would take it for a reason to grow (bbob-like f15, n = 10, popsize 128: 32 of 60 runs find
    the optimum, 21 without the limit).
    """
    c_s = min(0.5, (mu_eff + 2) / (dim + mu_eff + 5))
    return c_s, 1 + 2 * max(0.0, math.sqrt(max(0.0, mu_eff - 1) / (dim + 1)) - 1) + c_s


def negative_share(dim: int, mu_eff: float) -> float:
    """max(0, 1/2 - 1/n) min(1, 10 n / (3 mu_eff)): how much the mean moves away from the worse half.

    The first factor is tuned on bbob instances 1-5. The step size of a population of mu_eff is about mu_eff / n of the
    distance to the optimum; where that is large the worst points lie on all sides, and what they say about the
    direction is their asymmetry (f1, 8, 10, 12, 15, 17, n = 5, 10, popsizes 512, 1024: 5 percent fewer evaluations with
    the second factor, as many as without the worse half; at popsize 128, leaving it out finds the optimum of f15 less
    often, in 5 runs of 20 instead of 10).
    """
    return max(0.0, 0.5 - 1 / dim) * asymmetry(dim, mu_eff)


def asymmetry(dim: int, mu_eff: float) -> float:
    """min(1, 10 n / (3 mu_eff)): how much of the worse half says where to go, by `negative_share`."""
    return min(1.0, 10 * dim / (3 * mu_eff))


def damping_factor(dim: int, mu_eff: float) -> float:
    """max(0.7, min(1, 0.55 + 0.3 mu_eff / n)), which multiplies d_s.

    A mean that also moves away from the worse half makes longer steps, and d_s may be smaller: 0.7 (tuned on bbob
    instances 1-5 at the default population). A large population has a step size of the order of the distance to the
    optimum, and there this ends in divergence on functions that are much steeper on one side: f12 of bbob with other
    rotations, n = 20, popsize 104, mu_eff / n = 1.4: 7 of 15 runs with 0.7, none with 1 (nor of 15 on bbob's instances
    1-5), which also finds the optimum of f15 more often (n = 10, popsize 128: 31 of 60 runs, 21 with 0.7) and takes 6
    percent more on f10.
    """
    return max(0.7, min(1.0, 0.55 + 0.3 * mu_eff / dim))


def decoding_rates(dim: int, mu_eff: float) -> tuple[float, float, float]:
    """Rates of log D, at most 1/2 each, and the least share of its steps that is taken (`Decoding`).

    With c_1 and c_mu of the full group and f = max(1, (n + 1) / 3), c_1d = f c_1 and c_mud is the larger of
    min(0.2, 3 f c_mu) and f c_mu. D has n numbers to learn, while the full group has n (n + 1) / 2 (dd-CMA-ES, Akimoto
    and Hansen 2020, uses the same idea with other constants).

    Tuned on separable ellipsoids of 20 to 80 coordinates: f c_mu takes 1.35, 1.5 and 1.9 times as many evaluations as
    3 f c_mu for n = 20, 40, 80, 6 f c_mu 0.9 times as many at n = 80, and 3 f c_1 2.5 times as many. Where 3 f c_mu
    is larger than the limit it helps little, and searches with late values suffer: with 100 points pending, told in
    random order, n = 10, the sphere takes 1.6 times as long without a limit and 1.0 with 0.2 or 0.3; with 10 points
    pending 1.09 with 0.3 and 1.03 with 0.2. The least share is min(1, 2 c_mu / c_mud).
    """
    c_1, c_mu = root_rates(dim, dim * (dim + 1) // 2, mu_eff)
    factor = max(1.0, (dim + 1) / 3)
    c_1d = min(0.5, factor * c_1)
    c_mud = min(0.5, 1 - c_1d, max(factor * c_mu, min(0.2, 3 * factor * c_mu)))
    return c_1d, c_mud, min(1.0, 2 * c_mu / c_mud) if c_mud > 0 else 1.0
