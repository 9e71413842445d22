"""Several independent numbers, each with an exponential family of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.univariate import Local, Sign, Univariate, UnivariateState, checked, natural, unconstrained


@dataclass(frozen=True)
class Product:
    """Independent numbers w_1, ..., w_k of the same or of different families: a positive scale, a probability, a count.

    Points are rows (n, k); a state holds the unconstrained parameters of all families, one after the other. Fisher
    matrices are block-diagonal, so that natural gradients are those of the families.
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
        """How many numbers a point has."""
        return len(self.families)

    @cached_property
    def signs(self) -> tuple[Sign, ...]:
        """Of all natural parameters."""
        return sum((family.signs for family in self.families), ())

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the parameters of each family are."""
        ends = np.cumsum([family.size for family in self.families]).tolist()
        return tuple(slice(end - family.size, end) for family, end in zip(self.families, ends, strict=True))

    # ---- parameters --------------------------------------------------------------------------------------------

    def state(self) -> UnivariateState:
        """The parameters of all constructors, unconstrained."""
        return UnivariateState(np.concatenate([family.state().unconstrained for family in self.families]))

    def split(self, state: UnivariateState) -> list[UnivariateState]:
        """The state of each family."""
        state = checked(state, len(self.signs))
        return [UnivariateState(state.unconstrained[part]) for part in self.slices]

    def at(self, state: UnivariateState) -> Product:
        """The same families with the usual parameters of a state."""
        return Product(tuple(f.at(part) for f, part in zip(self.families, self.split(state), strict=True)))

    def natural(self, state: UnivariateState) -> Array:
        """All natural parameters."""
        return natural(checked(state, len(self.signs)).unconstrained, self.signs)

    def state_of(self, tau: Any) -> UnivariateState:
        """The state with given natural parameters; undoes `natural`."""
        return UnivariateState(unconstrained(checks.real_array("tau", tau, (len(self.signs),)), self.signs))

    # ---- density -----------------------------------------------------------------------------------------------

    def check_points(self, name: str, points: Any) -> Array:
        """`points` as rows (n, k) whose numbers are in the supports of their families."""
        rows = checks.real_array(name, points, (None, self.dim))
        for j, family in enumerate(self.families):
            family.check_points(f"{name}[:, {j}]", rows[:, j])
        return rows

    def sample(self, state: UnivariateState, n: int, rng: np.random.Generator) -> Array:
        """n points as rows, family by family."""
        parts = zip(self.families, self.split(state), strict=True)
        return np.column_stack([family.sample(part, n, rng) for family, part in parts])

    def log_density(self, state: UnivariateState, points: Any) -> Array:
        """The sum of the log densities of the families, -inf outside of the support."""
        points = checks.real_array("points", points, (None, self.dim))
        parts = zip(self.families, self.split(state), points.T, strict=True)
        densities = [family.log_density(part, column) for family, part, column in parts]
        total: Array = np.sum(densities, axis=0)
        return total

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
        """lambda + step."""
        step = checks.real_array("step", step, (len(self.signs),))
        return UnivariateState(checked(state, len(self.signs)).unconstrained + step)

    # ---- what a search needs, in natural parameters --------------------------------------------------------------

    def local(self, tau: Array, points: Array) -> Local:
        """White scores of all numbers, each (n, k)."""
        parts = zip(self.families, self.slices, points.T, strict=True)
        scores = [family._local(tau[part].tolist(), column) for family, part, column in parts]
        return Local(np.column_stack([s.z for s in scores]), np.column_stack([s.y for s in scores]))
