"""Search over matrices with a matrix Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.domains.base import Arrays
from esgroup.groups import Full, Group, Kronecker, Triangular, described
from esgroup.groups.linalg import SingularElementError
from esgroup.strategies.base import CONDITION, Drawn, Strategy, Told
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.recombination import Cumulative, Published, Recombination
from esgroup.strategies.sampling import Sampling, shortened

Algorithm = Literal["default", "paper"]

_DENSE = 300  # rows up to which the singular values of a factor cost at most a tenth of a generation


@dataclass(frozen=True)
class MatrixGaussianSearch(Strategy):
    """The update of `Evolution` on matrices read row by row, with the Kronecker product of both groups.

    Paths, step size, weights and rates are those of a vector search with structure=Kronecker(rows, cols), which it
    equals generation by generation: the rates depend on the degrees of freedom dof1 + dof2 - 1. A matrix of one column
    is searched like a vector, diagonal decoding included.

    A distribution in precision form is searched by the roots B^-T and A^-T, which lie in the transposed groups: the
    same family, the same start, the same natural gradient. They move by h(M), which is h(-M)^-T of the precision form
    except for terms of second order. With `exact=False` of the distribution, steps of the scale that come from samples
    are twice as long.

    The state is a `SearchState` of vectors, which is copied before it changes. Its local coordinates are matrices Z
    read row by row.

    Parameters
    ----------
    distribution : MatrixGaussian
        The first distribution.
    popsize_wanted : int, optional
        Points in a generation, at least 2; by default 4 + floor(3 ln(m k)) for m x k matrices.
    algorithm : {"default", "paper"}
        "paper" is the plain published update: utilities, one rate, neither paths nor step-size control.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or out of its range.
    """

    distribution: MatrixGaussian
    popsize_wanted: int | None = None
    algorithm: Algorithm = "default"

    def __post_init__(self) -> None:
        checks.instance("distribution", self.distribution, MatrixGaussian)
        if self.popsize_wanted is not None:
            checks.store_whole_number(self, "popsize_wanted", least=2)
        if self.algorithm not in ("default", "paper"):
            raise ValueError(f"algorithm must be 'default' or 'paper', got {self.algorithm!r}")

    @cached_property
    def domain(self) -> Arrays:
        return Arrays(self.distribution.shape)

    @property
    def size(self) -> int:
        return self.distribution.mean.size

    @property
    def popsize(self) -> int:
        """4 + floor(3 ln(m k)), as in CMA-ES."""
        return self.popsize_wanted or 4 + int(3 * math.log(self.size))

    @property
    def about(self) -> str:
        rows, cols = (described(side) for side in self.distribution.sides)
        return f"MatrixGaussian, rows {rows}, columns {cols}"

    @cached_property
    def evolution(self) -> Evolution:
        """The update of matrices read row by row."""
        paper, group = self.algorithm == "paper", self.distribution.group
        if self.distribution.form == "precision":
            group = group.transposed
        recombination: Recombination = Published() if paper else Cumulative()
        decoded = isinstance(group, Full | Triangular) and self.size > 1 and not paper  # as for vectors
        return Evolution(group, recombination, Decoding() if decoded else None, sampling=Sampling(orthogonal=not paper))

    # ---- state --------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None = None) -> SearchState:
        distribution, first = self.distribution, self.distribution.state()
        if distribution.form == "precision":
            distribution, first = distribution.converted(first)
        state = self.evolution.start(first.mean.ravel(), np.ones(self.size))
        state.root[:] = first.root
        self.evolution.refresh(state)
        return state

    def mean(self, state: SearchState) -> Array:
        return state.mean.reshape(self.shape).copy()

    def stds(self, state: SearchState) -> Array:
        return np.sqrt(self.evolution.variances(state)).reshape(self.shape)

    # ---- generations --------------------------------------------------------------------------------------------

    def sample(self, state: SearchState, n: int, rng: np.random.Generator, out: Drawn | None = None) -> Drawn:
        generation, points = Generation.empty(n, self.size), np.empty((n, self.size))
        self.evolution.sample(state, n, rng, generation, points)
        return Drawn(points.reshape(n, *self.shape), generation.z[:n])

    def local(self, state: SearchState, points: Array) -> Array:
        return self.evolution.local(state, np.ascontiguousarray(points).reshape(len(points), self.size))

    def update(self, state: SearchState, told: Told, out: Any = None) -> SearchState:
        moved = SearchState(*(array.copy() for array in state))
        generation = Generation.empty(len(told.local), self.size)
        generation.z[:-1] = told.local
        self.evolution.place(moved, generation, np.empty((0, self.size)))  # images only: the points are known
        self.evolution.update(moved, generation, told.order)
        if told.plateau and self.algorithm != "paper":
            self.evolution.leave_plateau(moved, len(told.order))
        return moved

    def shortened(self, local: Array, then: Array | None = None) -> Array:
        return shortened(local, None if then is None else np.linalg.norm(then, axis=1))

    # ---- ends ---------------------------------------------------------------------------------------------------

    def stop_reasons(self, state: SearchState) -> dict[str, str]:
        group, root = self.evolution.group, state.root
        if _condition_bound(group, root) <= CONDITION:  # cheap, and usually sufficient
            return {}
        condition = _condition(group, root)
        text = f"the condition number of the covariance is {condition:.3g}, above {CONDITION:g}"
        return {"condition": text} if condition > CONDITION else {}

    def result_fields(self, state: SearchState) -> dict[str, Any]:
        """Return sigma, the geometric mean of the standard deviations."""
        return {"sigma": math.exp(0.5 * float(np.log(self.evolution.variances(state)).mean()))}


def _condition_bound(group: Group, root: Array) -> float:
    """tr(C) tr(C^-1) of C = A A^T, which is between the condition number and n^2 times it."""
    try:
        return group._squared_norm(root) * group._squared_norm(group._inverse(root))
    except SingularElementError:
        return math.inf


def _condition(group: Group, root: Array) -> float:
    """Condition number of A A^T: for a Kronecker product from its factors, for a large factor a lower bound of it."""
    if isinstance(group, Kronecker):
        a1, a2 = group.factors(root)
        return _condition(group.first, a1) * _condition(group.second, a2)
    if group.dim > _DENSE:
        return _condition_bound(group, root) / group.dim**2
    return float(np.linalg.cond(group._dense(root))) ** 2
