"""A surrogate that esgroup does not know: interpolation by radial basis functions."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.surrogates import Minimum, Surrogate, register
from esgroup.surrogates.base import UNJUDGED, forgotten


class RadialState(NamedTuple):
    """The coordinates of the fit, u = shift + turn z, stay what they are when those of the search move."""

    centers: Array  # (capacity, n), those without a weight are not there
    weights: Array  # (capacity,)
    tail: Array  # (1 + n,)
    shift: Array
    turn: Array
    judged: Array


@register
@dataclass(frozen=True)
class Radial(Surrogate):
    """q(u) = sum_i w_i |u - u_i|^3 + c + b^T u through all points (Powell 1992)."""

    about = "radial basis functions"

    dim: int

    @property
    def capacity(self) -> int:
        return 6 * self.dim

    @property
    def least(self) -> int:
        return self.dim + 2

    def start(self) -> RadialState:
        n, m = self.dim, self.capacity
        return RadialState(
            np.zeros((m, n)), np.zeros(m), np.zeros(1 + n), np.zeros(n), np.eye(n), np.array(UNJUDGED)
        )

    def fit(self, state: RadialState, z: Array, values: Array) -> RadialState:
        n, m = self.dim, len(z)
        if m < self.least:
            return state
        cubes = np.linalg.norm(z[:, None] - z, axis=2) ** 3
        linear = np.column_stack([np.ones(m), z])
        matrix = np.block([[cubes, linear], [linear.T, np.zeros((1 + n, 1 + n))]])
        solution = np.linalg.lstsq(matrix, np.concatenate([values, np.zeros(1 + n)]))[0]
        new = self.start()
        new.centers[:m], new.weights[:m], new.tail[:] = z, solution[:m], solution[m:]
        return new._replace(judged=state.judged)

    def predict(self, state: RadialState, z: Array) -> Array:
        u = state.shift + z @ state.turn.T
        cubes = np.linalg.norm(u[:, None] - state.centers, axis=2) ** 3
        predicted: Array = cubes @ state.weights + state.tail[0] + u @ state.tail[1:]
        return predicted

    def _gradient(self, state: RadialState, z: Array) -> Array:
        apart = state.shift + state.turn @ z - state.centers
        pulls = 3 * state.weights * np.linalg.norm(apart, axis=1)
        gradient: Array = (pulls @ apart + state.tail[1:]) @ state.turn
        return gradient

    def size(self, state: RadialState) -> float:
        axes = math.sqrt(self.dim) * np.eye(self.dim)
        return float(self.predict(state, np.concatenate([axes, -axes])).std())

    def minimizer(self, state: RadialState, radius: float) -> Minimum:
        """Descend along the gradient from the center of the ball, with steps that are halved where they are no use."""
        z, step = np.zeros(self.dim), radius
        value = float(self.predict(state, z[None])[0])
        for _ in range(60):
            gradient = self._gradient(state, z)
            trial = z - step * gradient / max(float(np.linalg.norm(gradient)), 1e-300)
            trial *= min(1.0, radius / max(float(np.linalg.norm(trial)), 1e-300))
            found = float(self.predict(state, trial[None])[0])
            z, value, step = (trial, found, 1.2 * step) if found < value else (z, value, step / 2)
        return Minimum(z, value, bool(np.linalg.norm(z) > 0.999 * radius))

    def moved(self, state: RadialState, shift: Array, turn: Array) -> RadialState:
        turn = np.diag(turn) if turn.ndim == 1 else turn
        to = state.shift + state.turn @ shift, state.turn @ turn
        return state._replace(shift=to[0], turn=to[1], judged=forgotten(state.judged))
