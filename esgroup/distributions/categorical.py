"""Categorical distributions: independent choices among a few categories each, with separate probabilities.

With local coordinates eta at the current probabilities q, for one choice of K categories,

    q(eta)_c = q_c e^{eta_c} / sum_b q_b e^{eta_b},

the score of category c is e_c - q and the Fisher matrix F = diag(q) - q q^T. It is singular along (1, ..., 1), which
changes nothing. For a gradient g = sum_i w_i (e_{c_i} - q), the natural gradient, the solution of F m = g with
q m = 0, is

    m_c = g_c / q_c,

and a step along it, to first order in eta, is q <- q (1 + m) = q + g: in the expectation parameters q the natural
gradient is a weighted average of samples (Akimoto et al. 2019, ASNG-NAS, section 3). Scores, steps and states of
several choices are concatenated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Distribution

Indices = NDArray[np.int64]


class CategoricalState(NamedTuple):
    """Probabilities of all choices, one after the other."""

    probabilities: Array


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """Independent choices; a point holds the index of a category, from 0 to K - 1, for each of them.

    Parameters
    ----------
    probabilities
        Those of one choice, [0.2, 0.3, 0.5], or of several, [[0.5, 0.5], [0.2, 0.3, 0.5]]: positive, with a sum of 1.

    Raises
    ------
    ValueError
        If they are not probabilities, or a choice has fewer than two categories.

    Examples
    --------
    >>> one = Categorical([0.2, 0.3, 0.5])
    >>> one.natural_gradient(one.state(), [[2]], [1.0]).tolist()
    [-1.0, -1.0, 1.0]
    """

    probabilities: Any  # in the end a tuple of tuples

    def __post_init__(self) -> None:
        given = self.probabilities
        several = isinstance(given, (list, tuple, np.ndarray)) and len(given) > 0 and np.ndim(given[0]) == 1
        found = []
        for part in given if several else [given]:
            q = checks.real_array("probabilities", part, (None,))
            if len(q) < 2 or not (q > 0).all() or abs(q.sum() - 1) > 1e-9:
                raise ValueError(f"probabilities must be two or more positive numbers that sum to 1, got {part!r}")
            rounded = abs(q.sum() - 1) <= len(q) * np.finfo(np.float64).eps  # dividing again would change the last bits
            found.append(tuple((q if rounded else q / q.sum()).tolist()))
        self._store("probabilities", tuple(found))

    @classmethod
    def uniform(cls, *sizes: int) -> Categorical:
        """Return choices with equally likely categories; `sizes` are their numbers."""
        return cls([[1 / size] * checks.whole_number("sizes", size, least=2) for size in sizes])

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """Number of choices."""
        return len(self.sizes)

    @cached_property
    def sizes(self) -> Indices:
        """Number of categories of each choice."""
        return checks.read_only(np.array([len(q) for q in self.probabilities], dtype=np.int64))

    @cached_property
    def offsets(self) -> Indices:
        """Where each choice begins among all categories."""
        return checks.read_only(np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64))

    @cached_property
    def owners(self) -> Indices:
        """The choice to which each category belongs."""
        return checks.read_only(np.repeat(np.arange(self.dim), self.sizes))

    @property
    def dof(self) -> int:
        """Free probabilities: K - 1 for each choice."""
        return int((self.sizes - 1).sum())

    # ---- states -------------------------------------------------------------------------------------------------

    def state(self) -> CategoricalState:
        """Return the state of this distribution."""
        return CategoricalState(np.concatenate([np.array(q) for q in self.probabilities]))

    def at(self, state: CategoricalState) -> Categorical:
        """Return the distribution of a state."""
        return Categorical(np.split(state.probabilities, self.offsets[1:]))

    def sums(self, per_category: Array) -> Array:
        """Sum one number per category over each choice, along the last axis."""
        return np.add.reduceat(per_category, self.offsets, axis=-1)

    def check_points(self, name: str, points: Any) -> Array:
        """Check that all numbers are indices of categories; `name` is the argument's name for the message."""
        given = checks.real_array(name, points, (None, self.dim))
        if ((given != np.rint(given)) | (given < 0) | (given >= self.sizes)).any():
            raise ValueError(f"{name} must be places of categories, from 0 to {self.sizes - 1}, got {points!r}")
        return given

    def places(self, points: Any) -> Indices:
        """Return the position of the points' (n, dim) categories among all; ValueError for an unknown category."""
        return self.check_points("points", points).astype(np.int64) + self.offsets

    # ---- samples and densities ----------------------------------------------------------------------------------

    def sample(self, state: CategoricalState, n: int, rng: np.random.Generator) -> Array:
        """Draw n points (n, dim), each from the distribution, together as evenly as possible.

        For each choice the n numbers (pi(i) + u_i) / n, with a random permutation pi and uniform u_i, are looked up
        among the cumulated probabilities: n samples have each category n q times, rounded up or down.
        """
        ranks = rng.permuted(np.tile(np.arange(n), (self.dim, 1)), axis=1)  # (dim, n)
        levels = (ranks + rng.random((self.dim, n))) / n
        points = np.empty((n, self.dim))
        for j, (start, size) in enumerate(zip(self.offsets, self.sizes, strict=True)):
            edges = np.cumsum(state.probabilities[start : start + size - 1])
            points[:, j] = np.searchsorted(edges, levels[j], side="right")
        return points

    def log_density(self, state: CategoricalState, points: Any) -> Array:
        """Return the logarithms of the probabilities of points (n, dim)."""
        return np.log(state.probabilities)[self.places(points)].sum(axis=1)

    def score(self, state: CategoricalState, points: Any) -> Array:
        """Return the scores e_c - q of points, one row of all categories for each."""
        hot = np.zeros((len(points), len(state.probabilities)))
        np.put_along_axis(hot, self.places(points), 1.0, axis=1)
        return hot - state.probabilities

    def fisher(self, state: CategoricalState) -> Array:
        """Return the Fisher matrix in local coordinates: diag(q) - q q^T for each choice."""
        q = state.probabilities
        return np.diag(q) - np.outer(q, q) * (self.owners[:, None] == self.owners)

    def natural_gradient(self, state: CategoricalState, points: Any, weights: Any) -> Array:
        """Return m, the natural gradient of sum_i w_i log p(x_i) in local coordinates."""
        w = checks.real_array("weights", weights, (len(points),))
        return (w @ self.score(state, points)) / state.probabilities

    def move(self, state: CategoricalState, m: Array, floor: Array | None = None) -> CategoricalState:
        """Return the state q (1 + m), in which no probability is below its floor (0 by default).

        The parts above the floors are scaled so that the sum is 1: q = floor + (q - floor)^+ / norm.
        """
        q = state.probabilities * (1 + m)
        least = np.zeros_like(q) if floor is None else floor
        above = np.maximum(q - least, 0.0)
        room = 1 - self.sums(least)
        return CategoricalState(least + above * (room / self.sums(above))[self.owners])
