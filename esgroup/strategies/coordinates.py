"""Coordinates in which models of values and constraints are fitted: those of a state of a strategy.

Two kinds of models use them. Models of constraints explain values by z and additional numbers: `of` and `at`.
Surrogates see real variables only, at points that share the integers and choices of the mean: `of_reals` and
`at_reals`, which are the same if all variables are real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from esgroup.checks import Array
from esgroup.surrogates.base import Axes

if TYPE_CHECKING:
    from esgroup.strategies.base import Strategy


@dataclass(frozen=True)
class Coordinates:
    """z = (x - mean) / stds for every entry that varies; N(0, I) for samples.

    Parameters
    ----------
    strategy : Strategy
        The strategy that searches.
    state
        Its state, which must not change while this object is in use.
    """

    #: Whether `stepped` is defined. If not, a surrogate only adds the points that it recommends; steps are by ranks.
    takes_steps: ClassVar[bool] = False

    strategy: Strategy
    state: Any

    def of(self, points: Array) -> tuple[Array, Array]:
        """Return z (n, k) of points, and other numbers (n, l), 0 at the mean, that may help to explain values."""
        mean, stds = self._middle()
        varies = stds > 0
        z = (points.reshape(len(points), mean.size) - mean)[:, varies] / stds[varies]
        return z, np.empty((len(points), 0))

    def at(self, z: Array) -> Array | None:
        """Return the point with coordinates z (k,) and all other numbers 0; None if there is none."""
        point, stds = self._middle()
        varies = stds > 0
        point[varies] += stds[varies] * z
        point = point.reshape(self.strategy.shape)
        try:
            self.strategy.domain.check("x", point[None])
        except ValueError:
            return None
        return point

    def of_reals(self, points: Array) -> Array:
        """Return z (n, k) of the real variables, NaN where these cannot explain a value.

        They are NaN for points whose integers and choices differ from those of the mean.
        """
        return np.ascontiguousarray(self.of(points)[0])

    def at_reals(self, z: Array) -> Array | None:
        """Return the point with the coordinates z (k,) and the integers and choices of the mean; None if none."""
        return self.at(z)

    def change(self, new: Any) -> tuple[Array, Array]:
        """Return d and T with z = d + T z_new for real variables and a new state; a vector T is diagonal."""
        mean, stds = self._middle()
        new_mean, new_stds = self.strategy.mean(new).ravel(), self.strategy.stds(new).ravel()
        return (new_mean - mean) / stds, new_stds / stds

    def stepped(self, z: Array | None, axes: Axes | None, sigma_factor: float, first: Array, evaluated: int) -> Any:
        """Return the state after a step that a surrogate recommends, if local coordinates are those of reals.

        Parameters
        ----------
        z
            The new position of the mean; None to keep it.
        axes
            Logarithms L and axes V: A <- A V exp(L) V^T as far as A can represent it; None to keep A.
        sigma_factor
            Factor on the step size.
        first
            The initial spread.
        evaluated
            How many values the generation had.
        """
        raise NotImplementedError

    def _middle(self) -> tuple[Array, Array]:
        return self.strategy.mean(self.state).flatten(), self.strategy.stds(self.state).ravel()


@dataclass(frozen=True)
class Through(Coordinates):
    """Coordinates of another search inside this one.

    Parameters
    ----------
    strategy, state
        As in `Coordinates`.
    inner : Coordinates
        The coordinates of the other search.
    into, back : callable
        Map points to points of the other search, and back, several at once.
    """

    inner: Coordinates
    into: Callable[[Array], Array]
    back: Callable[[Array], Array]

    def of(self, points: Array) -> tuple[Array, Array]:
        return self.inner.of(self.into(points))

    def at(self, z: Array) -> Array | None:
        return self._back(self.inner.at(z))

    def of_reals(self, points: Array) -> Array:
        return self.inner.of_reals(self.into(points))

    def at_reals(self, z: Array) -> Array | None:
        return self._back(self.inner.at_reals(z))

    def change(self, new: Any) -> tuple[Array, Array]:
        return self.inner.change(new)

    def _back(self, point: Array | None) -> Array | None:
        return None if point is None else self.back(point[None])[0]
