"""Products of univariate exponential families: several independent numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.univariate import (
    Sign,
    Univariate,
    UnivariateState,
    WhiteScores,
    checked_state,
    natural,
    unconstrained,
)


@dataclass(frozen=True)
class Product:
    """Independent numbers w_1, ..., w_k of the same or of different families: a positive scale, a probability, a count.

    Points are rows (n, k); a state holds the unconstrained parameters of all families, one after another. Fisher
    matrices are block-diagonal, so that natural gradients are those of the families.

    Parameters
    ----------
    families : sequence of Univariate
        The family of each number.

    Examples
    --------
    >>> from esgroup.distributions.families import Beta, Gamma, Product
    >>> product = Product((Gamma(shape=4.0, rate=2.0), Beta(a=1.0, b=3.0)))
    >>> means, stds = product.moments(product.state())
    >>> means.tolist()
    [2.0, 0.25]
    """

    families: tuple[Univariate, ...]

    def __post_init__(self) -> None:
        families = self.families
        if not isinstance(families, (tuple, list)) or not families:
            raise TypeError(f"families must be a tuple of at least one univariate distribution, got {families!r}")
        for i, family in enumerate(families):
            checks.instance(f"families[{i}]", family, Univariate)
        object.__setattr__(self, "families", tuple(families))

    @property
    def dim(self) -> int:
        """k, the number of variables of a point."""
        return len(self.families)

    @cached_property
    def signs(self) -> tuple[Sign, ...]:
        """Signs of all natural parameters."""
        return sum((family.signs for family in self.families), ())

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The slice of the parameters that belongs to each family."""
        ends = np.cumsum([family.size for family in self.families]).tolist()
        return tuple(slice(end - family.size, end) for family, end in zip(self.families, ends, strict=True))

    # ---- parameters --------------------------------------------------------------------------------------------

    def state(self) -> UnivariateState:
        """The initial parameters: those of all constructors, unconstrained."""
        return UnivariateState(np.concatenate([family.state().unconstrained for family in self.families]))

    def split(self, state: UnivariateState) -> list[UnivariateState]:
        """The state of each family."""
        state = checked_state(state, len(self.signs))
        return [UnivariateState(state.unconstrained[part]) for part in self.slices]

    def at(self, state: UnivariateState) -> Product:
        """The same families with the usual parameters of a state."""
        return Product(tuple(f.at(part) for f, part in zip(self.families, self.split(state), strict=True)))

    def natural(self, state: UnivariateState) -> Array:
        """The natural parameters of all families."""
        return natural(checked_state(state, len(self.signs)).unconstrained, self.signs)

    def state_of(self, tau: Any) -> UnivariateState:
        """The state with given natural parameters; undoes `natural`."""
        return UnivariateState(unconstrained(checks.real_array("tau", tau, (len(self.signs),)), self.signs))

    # ---- density -----------------------------------------------------------------------------------------------

    def check_points(self, name: str, points: Any) -> Array:
        """Check that all numbers are in the supports of their families.

        Parameters
        ----------
        name : str
            The name of the argument, for the message.
        points : array_like, shape (n, k)
            The points as rows.

        Returns
        -------
        ndarray, shape (n, k)
            The points as float64.
        """
        rows = checks.real_array(name, points, (None, self.dim))
        for j, family in enumerate(self.families):
            family.check_points(f"{name}[:, {j}]", rows[:, j])
        return rows

    def sample(self, state: UnivariateState, n: int, rng: np.random.Generator) -> Array:
        """Draw n points as rows, family by family."""
        parts = zip(self.families, self.split(state), strict=True)
        return np.column_stack([family.sample(part, n, rng) for family, part in parts])

    def log_density(self, state: UnivariateState, points: Any) -> Array:
        """The sum of the log densities of the families, -inf outside the support."""
        points = checks.real_array("points", points, (None, self.dim))
        parts = zip(self.families, self.split(state), points.T, strict=True)
        densities = [family.log_density(part, column) for family, part, column in parts]
        return np.sum(densities, axis=0)

    def moments(self, state: UnivariateState) -> tuple[Array, Array]:
        """Means and standard deviations, infinite where they do not exist."""
        pairs = [family.moments(part) for family, part in zip(self.families, self.split(state), strict=True)]
        means, stds = np.array(pairs).T
        return means, stds

    def entropy(self, state: UnivariateState) -> float:
        """The sum of the entropies of the families."""
        return sum(family.entropy(part) for family, part in zip(self.families, self.split(state), strict=True))

    # ---- natural gradients -------------------------------------------------------------------------------------

    def natural_score(self, state: UnivariateState, points: Any, weights: Any) -> Array:
        """Natural gradient in lambda of sum_i weights_i log q(w_i), family by family."""
        points = self.check_points("points", points)
        parts = zip(self.families, self.split(state), points.T, strict=True)
        return np.concatenate([family.natural_score(part, column, weights) for family, part, column in parts])

    def move(self, state: UnivariateState, step: Any) -> UnivariateState:
        """The parameters after a step, lambda + step."""
        step = checks.real_array("step", step, (len(self.signs),))
        return UnivariateState(checked_state(state, len(self.signs)).unconstrained + step)

    # ---- for searches, in natural parameters -------------------------------------------------------------------

    def local(self, tau: Array, points: Array) -> WhiteScores:
        """White scores of points at natural parameters tau; z and y are (n, k)."""
        parts = zip(self.families, self.slices, points.T, strict=True)
        scores = [family._local(tau[part].tolist(), column) for family, part, column in parts]
        return WhiteScores(np.column_stack([s.z for s in scores]), np.column_stack([s.y for s in scores]))
