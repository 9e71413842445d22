"""Search over choices: independent categorical distributions, moved by natural gradients with separate rates.

With probabilities q of the K categories of a choice, samples c_i ranked by their values and weights w by rank, one
generation is

    g   = sum_i w_i (e_{c_i} - q)                                   natural gradient in the expectation parameters
    s   = g / sqrt(q)                                               the same in white coordinates: |s|^2 = m^T F m
    p   <- (1 - b) p + sqrt(b (2 - b) / sum_i w_i^2) s,             b = min(0.9, B r)
    r   <- r exp(b (|p|^2 / (K - 1) / A - gamma))                   between the limits R
    q   <- q + r g                                                  not below the floor

where gamma = E|p|^2 / (K - 1) for values that do not depend on the choice. A choice that matters makes p long, and its
rate r grows; if it does not matter, r falls as 1 / t, so q stays the same. This is the adaptive stochastic natural
gradient (Akimoto et al. 2019, also used by CatCMA, Hamano et al. 2024) with one rate per choice rather than one for
all, and without normalized steps: some choices matter more than others, and many matter only later in the search.

Because of the floor, no category is ever lost for good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.categorical import Categorical, CategoricalState
from esgroup.domains.base import Arrays
from esgroup.files import states
from esgroup.options import Algorithm
from esgroup.strategies import rates
from esgroup.strategies.base import Proposed, Ranked, Relocation, StateView, Strategy, Traits
from esgroup.strategies.coordinates import Coordinates
from esgroup.strategies.criteria import Criterion

# Tuned on a sphere with choices that cost 1 each (sphere) or 1, 0.1, 0.01, ... (wcom), and a sphere whose center
# depends on the choices (dep): 10 numbers, 10 choices of 5 categories, evaluations to 1e-8 by success, seeds 0-23. Slow
# at first, quick to follow: with first rates 0.1 and 0.15, dep succeeds in 20 and 15 of 24 searches, and sphere takes
# 1,467 and 1,443. With B = 1 and 2 wcom takes 1,768 and 1,644, and dep succeeds 20 times with both. Of 8 searches of
# dep with a first rate of 0.5, B = 1/2 and NEGATIVE = 1/2, 2 succeeded.
#
# Those first rates are for 10 choices. With 3 choices of 2 to 4 categories and 5 numbers, of which 3 are conditional, a
# first rate of 0.3 has a better value than one of 0.1 in 0.68, 0.64 and 0.68 of 120 searches after 60, 120 and 240
# evaluations; the median after 240 is 0.009, not 0.011, but the mean 0.103, not 0.095. Evaluations to 1e-8 on functions
# of scripts/mixed_categories.py, 8 to 16 seeds, with 0.3 over those with 0.1, 3 choices: sphere_com 0.95,
# rosenbrock_clo 0.99 (15 and 16 of 16 succeed), mc_proximity 1.06, sphere_int_com 0.94; with 0.2 over those with 0.1,
# 5 choices: sphere_com 0.95, mc_proximity 1.05, sphere_int_com 1.01.
FIRST_RATES = 0.1, 0.3  # limits of 1 / m for m choices: see `CategoricalSearch.first_rate`
RATES = 0.02, 1.0
MEMORY = 2.0  # B
SIGNAL = 1.5  # A; with 1.2, 1.5, 2 (and B = 1) sphere takes 1,399, 1,513, 1,676, dep succeeds 8, 9, 8 times of 10
NEGATIVE = 1.0  # weight of the worse half: with 1/4 and 1, sphere takes 1,787 and 1,455 (first rate 0.15, SHARE = 1)
SHARE = 1.5  # samples of a generation that have another category than the likeliest somewhere, if all are at the floor
_TRIED = 5.0  # times that every category of every choice has come up, on average, before a settled search ends


class CategoricalSearchState(NamedTuple):
    """Everything the next generation needs."""

    probabilities: Array  # of all categories, choice by choice
    path: Array  # p, in the same order
    rates: Array  # r of each choice
    expected: Array  # gamma of each choice
    calm: Array  # (1,): generations since a likeliest category last changed, while all others were near the floor


@dataclass(frozen=True)
class CategoricalSearch(Strategy):
    """Search over choices; a point holds the index of a category for each choice.

    Parameters
    ----------
    distribution : Categorical
        The initial probabilities.
    popsize_wanted : int, optional
        Points per generation, at least 2; by default 4 + floor(3 ln m) for m choices.
    algorithm : {"default", "paper"}
        "paper" moves by the plain natural gradient with one rate.
    """

    distribution: Categorical
    popsize_wanted: int | None = None
    algorithm: Algorithm = "default"

    def __post_init__(self) -> None:
        checks.instance("distribution", self.distribution, Categorical)
        if self.popsize_wanted is not None:
            checks.store_whole_number(self, "popsize_wanted", least=2)
        checks.one_of("algorithm", self.algorithm, "default", "paper")

    # ---- sizes --------------------------------------------------------------------------------------------------

    @cached_property
    def traits(self) -> Traits:
        dim = self.distribution.dim
        return Traits(
            size=self.distribution.dof,
            # 4 + floor(3 ln m) for m choices, at least 6
            popsize=self.popsize_wanted or max(6, 4 + int(3 * math.log(dim))),
            about=f"{dim} choice{'s' * (dim > 1)}",
            domain=Arrays((dim,), self.distribution.check_points),
            criteria=(Criterion("own", 0, self.settled),),
        )

    @cached_property
    def floor(self) -> Array:
        """The least probability of each category.

        If all likeliest categories are as likely as possible, a sample has another one somewhere with probability
        SHARE / popsize, at most 0.27, which is CatCMA's: 1 - (1 - (K - 1) floor)^m.
        """
        chosen = self.distribution
        each = 1 - (1 - min(0.27, SHARE / self.popsize)) ** (1 / chosen.dim)
        least = np.minimum(each / (chosen.sizes - 1), 0.5 / chosen.sizes)
        return checks.read_only(least[chosen.owners])

    @property
    def first_rate(self) -> float:
        """1 / m for m choices, between 0.1 and 0.3.

        If m choices matter equally, each explains a share 1 / m of the variance of the ranks: the fewer there are, the
        more a generation says about each.
        """
        return min(max(1 / self.distribution.dim, FIRST_RATES[0]), FIRST_RATES[1])

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> CategoricalSearchState:
        chosen = self.distribution
        first = chosen.move(chosen.state(), np.zeros(len(chosen.owners)), self.floor).probabilities
        rate = np.full(chosen.dim, self.first_rate)
        return CategoricalSearchState(first, np.zeros(len(first)), rate, np.zeros(chosen.dim), np.zeros(1))

    def checked(self, state: CategoricalSearchState) -> CategoricalSearchState:
        state = super().checked(state)
        states.all_finite(state)
        q = state.probabilities
        if (q <= 0).any() or not np.allclose(self.distribution.sums(q), 1.0):
            raise ValueError("the probabilities of every choice must be positive and sum to 1")
        return state

    def relocated(self, to: Relocation) -> CategoricalSearch:
        """Restart with the initial probabilities: only the random numbers and popsize differ."""
        return CategoricalSearch(self.distribution, to.popsize, self.algorithm)

    # ---- generations --------------------------------------------------------------------------------------------

    def sample(
        self, state: CategoricalSearchState, n: int, rng: np.random.Generator, out: Proposed | None = None
    ) -> Proposed:
        points = self.distribution.sample(CategoricalState(state.probabilities), n, rng)
        return Proposed(points, points.copy())

    def local(self, state: CategoricalSearchState, points: Array) -> Array:
        """The categories themselves: their scores are those of the current distribution."""
        return points.copy()

    def gradient(self, state: CategoricalSearchState, told: Ranked) -> tuple[Array, float]:
        """g of every category, and sum_i w_i^2; `UNKNOWN` in place of a category contributes nothing."""
        chosen, n = self.distribution, len(told.order)
        weights = rates.utilities(n) if self.algorithm == "paper" else _weights(n)
        local = told.local[told.order]
        known = local >= 0  # (n, m)
        places = (local + chosen.offsets)[known].astype(np.int64)
        spread = np.broadcast_to(weights[:, None], known.shape)[known]
        hot = np.bincount(places, spread, minlength=len(chosen.owners))
        total = weights @ known
        g: Array = hot - state.probabilities * total[chosen.owners]
        return g, float(weights @ weights)

    def update(self, state: CategoricalSearchState, told: Ranked, out: Any = None) -> CategoricalSearchState:
        if len(told.order) < 2:
            return state  # a single point has no meaningful rank
        chosen, q = self.distribution, state.probabilities
        g, mass = self.gradient(state, told)
        path, rate, expected = state.path, state.rates, state.expected
        if self.algorithm == "paper":
            rate = np.full(chosen.dim, rates.utility_rate(self.size, self.size))
        else:
            b = np.minimum(0.9, MEMORY * rate)
            b_each = b[chosen.owners]
            path = (1 - b_each) * path + np.sqrt(b_each * (2 - b_each) / mass) * g / np.sqrt(q)
            expected = (1 - b) ** 2 * expected + b * (2 - b)
            length = chosen.sums(path**2) / (chosen.sizes - 1)
            rate = (rate * np.exp(np.minimum(1.0, b * (length / SIGNAL - expected)))).clip(*RATES)
        moved = chosen.move(CategoricalState(q), rate[chosen.owners] * g / q, self.floor).probabilities
        calm = np.zeros(1)
        if self._settled(moved) and (self._likeliest(moved) == self._likeliest(q)).all():
            calm = state.calm + 1
        return CategoricalSearchState(moved, path, rate, expected, calm)

    def _likeliest(self, probabilities: Array) -> Array:
        chosen = self.distribution
        most = np.maximum.reduceat(probabilities, chosen.offsets)
        places = np.flatnonzero(probabilities == most[chosen.owners])
        first = places[places.searchsorted(chosen.offsets)]  # the first of equal ones
        return (first - chosen.offsets).astype(np.float64)

    def _settled(self, probabilities: Array) -> bool:
        """Whether in every choice all categories but one are near the floor."""
        chosen = self.distribution
        most = np.maximum.reduceat(probabilities, chosen.offsets)
        return bool((1 - most <= 2 * chosen.sums(self.floor) * (1 - 1 / chosen.sizes)).all())

    def coordinates(self, state: CategoricalSearchState) -> Coordinates:
        return Categories(self, state)

    def tried(self, state: CategoricalSearchState, points: Array) -> Array:
        """For every category except the likeliest of its choice: whether a point has it, 1.0 or 0.0."""
        likeliest = self.mean(state).astype(np.int64).tolist()
        columns = zip(points.T, self.distribution.sizes.tolist(), likeliest, strict=True)
        has = [column[:, None] == np.delete(np.arange(size), first) for column, size, first in columns]
        return np.concatenate(has, axis=1).astype(np.float64)

    # ---- what is known ------------------------------------------------------------------------------------------

    def mean(self, state: CategoricalSearchState) -> Array:
        """Return the likeliest categories."""
        return self._likeliest(state.probabilities)

    def stds(self, state: CategoricalSearchState) -> Array:
        """Return, for each choice, the probability of a category other than the likeliest."""
        return 1 - np.maximum.reduceat(state.probabilities, self.distribution.offsets)

    def view(self, state: CategoricalSearchState) -> StateView:
        """The spread of a choice is sqrt(1 - sum_c q_c^2), the standard deviation of the corners e_c around q.

        A result includes the final distribution.
        """
        q = state.probabilities
        return StateView(
            lambda: np.sqrt(1 - self.distribution.sums(q**2)),
            fields=lambda: {"distribution": self.distribution.at(CategoricalState(q))},
        )

    # ---- when to stop -------------------------------------------------------------------------------------------

    def settled(self, state: CategoricalSearchState, first: Array) -> dict[str, str]:
        """Stop when the likeliest categories have stayed the same while all others were tried repeatedly.

        At the floor, a generation has popsize q_min samples of a category; after `_TRIED` / (popsize q_min) generations
        the probability that one of them was never drawn is e^-5.
        """
        needed = _TRIED / (self.popsize * float(self.floor.min()))
        if state.calm.item() < needed:
            return {}
        number = int(state.calm.item())
        return {"tolx": f"the choices have settled: the most likely categories did not change in {number} generations"}


@dataclass(frozen=True)
class Categories(Coordinates):
    """No numbers; categories explain values."""

    strategy: CategoricalSearch

    def of(self, points: Array) -> tuple[Array, Array]:
        return np.empty((len(points), 0)), self.strategy.tried(self.state, points)


def _weights(n: int) -> Array:
    """Logarithmic weights by rank: the better half with sum 1, the worse half with sum -NEGATIVE."""
    better, worse = rates.halves(n)
    return better + NEGATIVE * worse
