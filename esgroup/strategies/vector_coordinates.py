"""The local coordinates of a Gaussian, z = (sigma D A)^-1 (x - mean), as models of values and constraints see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from esgroup.checks import Array
from esgroup.groups import Diagonal, Full, Group
from esgroup.strategies.base import Indices
from esgroup.strategies.coordinates import Coordinates
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.frames import FrameEvolution
from esgroup.surrogates.base import Axes

if TYPE_CHECKING:
    from esgroup.strategies.vector import VectorSearch

FAR = 1e150  # points further out are moved here, so that nothing overflows
_AT_REST = 1.0  # standard deviation of an integer below which models of constraints treat it as fixed


@dataclass(frozen=True)
class VectorCoordinates(Coordinates):
    """z, with integers that rest apart; among integers a surrogate has (x - mean) / stds of the others.

    Multipliers say how f changes with the constraints if the numbers follow; integers with a standard deviation below
    `_AT_REST` do not. With their rows J of A and an orthonormal basis N of the null space of these, J N = 0, models of
    constraints have the coordinates u with z = N u of points moved to the integers at the mean, and the distances to
    these as others.
    """

    takes_steps: ClassVar[bool] = True

    strategy: VectorSearch
    state: SearchState

    def of(self, points: Array) -> tuple[Array, Array]:
        resting, mean = self._resting(), self.state.mean
        if not resting.size:
            return self.strategy.local(self.state, points), np.empty((len(points), 0))
        y = points.clip(mean - FAR, mean + FAR)
        others = y[:, resting] - np.rint(mean[resting])
        y[:, resting] = mean[resting]
        return self.strategy.evolution.local(self.state, y) @ self._beside(resting), others

    def at(self, z: Array) -> Array:
        resting, state = self._resting(), self.state
        z = self._beside(resting) @ z if resting.size else z
        image = self.strategy.group._apply(state.root, z[None])[0]
        return state.mean + state.sigma * state.scale * image

    def of_reals(self, points: Array) -> Array:
        """The coordinates of real variables follow A by ranks if there are integers."""
        strategy, state = self.strategy, self.state
        if strategy.has_integers:
            real = strategy.shrinking
            z = (points - state.mean)[:, real] / strategy.stds(state)[real]
            z[(np.rint(points[:, ~real]) != np.rint(state.mean[~real])).any(axis=1)] = np.nan
            return np.ascontiguousarray(z)
        white = (points - state.mean) / (state.sigma * state.scale)
        if len(state.inverse):
            return white @ state.inverse.reshape(strategy.size, strategy.size).T
        return strategy.group._solve(state.root, white)

    def at_reals(self, z: Array) -> Array:
        if not self.strategy.has_integers:
            return self.at(z)
        y, real = self.state.mean.copy(), self.strategy.shrinking
        y[real] += self.strategy.stds(self.state)[real] * z
        return y

    def change(self, new: SearchState) -> tuple[Array, Array]:
        """For x = mu + sigma D A z; T is a vector where the group is diagonal."""
        old, group = self.state, self.strategy.group
        if self.strategy.has_integers:
            real = self.strategy.shrinking
            d, scales = super().change(new)
            return d[real], scales[real]
        old_scale, new_scale = old.sigma * old.scale, new.sigma * new.scale
        moved, ratio = (new.mean - old.mean) / old_scale, new_scale / old_scale
        if len(old.inverse):  # of dense groups
            inverse = old.inverse.reshape(group.dim, group.dim)
            return inverse @ moved, inverse @ (ratio[:, None] * group._dense(new.root))
        shift = group._solve(old.root, moved[None])[0]
        if isinstance(group, Diagonal):
            ones = np.ones((1, group.dim))
            turn: Array = group._solve(old.root, ratio * group._apply(new.root, ones))[0]
            return shift, turn
        image = np.ascontiguousarray((ratio[:, None] * group._dense(new.root)).T)  # rows are the columns of D A_new
        return shift, np.ascontiguousarray(group._solve(old.root, image).T)

    def stepped(
        self, z: Array | None, axes: Axes | None, sigma_factor: float, first: Array, evaluated: int
    ) -> SearchState:
        strategy, state = self.strategy, SearchState(*(array.copy() for array in self.state))
        if z is not None:
            image = strategy.group._apply(state.root, z[None])[0]
            state.mean[:] += state.sigma * state.scale * image
        evolution = strategy.evolution
        if isinstance(evolution, FrameEvolution):
            state = evolution.stepped(state, axes, evaluated)
        elif axes is not None:
            evolution._move_by(state, root_step(strategy.group, axes))
        state.path_s[:] *= 0.5
        state.sigma[0] *= sigma_factor
        evolution._refresh_if_due(state)
        strategy.keep_limits(state, first)
        return state

    def _resting(self) -> Indices:
        """The integers, among the searched variables, that hardly change any more."""
        least = self.strategy.least
        if least is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero((least > 0) & (self.strategy.stds(self.state) < _AT_REST))

    def _beside(self, resting: Indices) -> Array:
        """N (n, n - k): an orthonormal basis of the directions in which k coordinates rest."""
        unit = np.eye(self.strategy.size)[resting]
        rows = self.strategy.group._apply_transposed(self.state.root, unit)
        return np.linalg.qr(rows.T, mode="complete")[0][:, len(resting) :]


def root_step(group: Group, axes: Axes) -> Array:
    """exp(C (.) kappa(2 V L V^T)) as an element of the group, for the full group V exp(L) V^T."""
    logs, vectors = axes
    if isinstance(group, Full) and vectors is not None:
        step: Array = (vectors * np.exp(logs)) @ vectors.T
        return step.ravel()
    basis = np.eye(len(logs)) if vectors is None else np.ascontiguousarray(vectors.T)
    return group._exp(group._project(basis, basis, 2.0 * logs, 0.0))
