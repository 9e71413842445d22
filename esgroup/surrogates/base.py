"""The interface of a surrogate: a model of a function in the local coordinates z of a search, judged before it learns.

In local coordinates samples are z ~ N(0, I). A search passes all values in the same way: it first compares new values
with the predictions, then fits the surrogate to them; at the end of a generation the distribution moves, and the
coordinates move with it. A surrogate of several functions has one state per function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from esgroup.checks import Array
from esgroup.files import objects, states

UNJUDGED = 0.0, 0.0, 1.0  # the judgment of a surrogate that has not predicted anything yet
FORGET = 0.7  # factor on the count of judged pairs from one frame to the next
ERROR_RATE = 0.1  # rate of the mean squared error, per value

S = TypeVar("S", bound="type[Surrogate]")


class Axes(NamedTuple):
    """A symmetric matrix V diag(e) V^T."""

    values: Array  # e
    vectors: Array | None  # V, None for the identity

    def out(self, u: Array) -> Array:
        """V u."""
        return u if self.vectors is None else self.vectors @ u


class Minimum(NamedTuple):
    """The minimizer of a surrogate in a ball, and the value that it predicts there."""

    z: Array
    value: float
    at_edge: bool  # whether it is on the boundary


class Surrogate(ABC):
    """A model of a function of z: a frozen object of sizes and constants, a dataclass if searches are to be saved.

    Everything that changes is in the state, a NamedTuple of float64 arrays that the search keeps and saves. If the
    shapes of these arrays change or they may contain NaN, override `checked`. Methods are pure. The default `judge`
    keeps its numbers in a field `judged` of the state, an array that starts as `UNJUDGED`.
    """

    dim: int  #: number of coordinates
    #: A short description.
    about: ClassVar[str] = "surrogate"
    #: Whether a fit is cheap enough to run after every part of a generation; otherwise it runs at the end.
    fits_often: bool = True

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def capacity(self) -> int:
        """The largest number of recent points that `fit` receives."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The number of points that the surrogate needs to be useful."""

    @abstractmethod
    def start(self) -> Any:
        """Return the initial state, which predicts 0."""

    @abstractmethod
    def fit(self, state: Any, z: Array, values: Array) -> Any:
        """Return the state after learning the values (N,) at the last points (N, dim), oldest first."""

    @abstractmethod
    def predict(self, state: Any, z: Array) -> Array:
        """Return the predicted values (N,) at z (N, dim)."""

    @abstractmethod
    def size(self, state: Any) -> float:
        """Return the approximate standard deviation of predictions for z ~ N(0, I); 0 before the first fit."""

    @abstractmethod
    def minimizer(self, state: Any, radius: float) -> Minimum:
        """Return the smallest prediction found for |z| <= radius, no worse than the prediction at 0."""

    @abstractmethod
    def moved(self, state: Any, shift: Array, turn: Array) -> Any:
        """Return the same function in coordinates z' with z = shift + turn z', as closely as possible.

        `turn` is a matrix, or a vector if it is diagonal. The counts of judged pairs are multiplied by `FORGET`.
        """

    # ---- may ----------------------------------------------------------------------------------------------------

    def judge(self, state: Any, z: Array, values: Array, new: int) -> Any:
        """Return the state after comparing predictions with the last `new` values, which it has not been fitted to.

        Every new value f_i is compared with all earlier ones: a pair counts 1 if the predictions q order it as the
        values do, and -1 otherwise. The mean squared error follows min(1, |f_i - q_i| / (size max(1, |z_i|^2 / n)))^2.
        """
        size = self.size(state)
        if size == 0.0:
            return state
        predicted, (agreement, pairs, error) = self.predict(state, z), state.judged
        far = np.maximum(1.0, np.vecdot(z, z) / self.dim)
        for i in range(len(values) - new, len(values)):
            agreement += float(np.sign(values[i] - values[:i]) @ np.sign(predicted[i] - predicted[:i]))
            pairs += i
            error += ERROR_RATE * (min(1.0, abs(values[i] - predicted[i]) / (size * far[i])) ** 2 - error)
        return state._replace(judged=np.array([agreement, pairs, error]))

    def judgment(self, state: Any) -> Array:
        """Return the results of `judge` (3,): concordant minus discordant pairs, all pairs, the mean squared error."""
        return state.judged

    def curvature(self, state: Any) -> Axes | None:
        """Return the log lengths and axes of a step of A that makes the function rounder; None if unknown.

        A <- A V exp(L) V^T for Axes(L, V), or its projection in groups other than the full one. Without it A learns
        from ranks only.
        """
        return None

    def checked(self, state: Any) -> Any:
        """Return a state loaded from a file if it is valid for this surrogate, else raise ValueError.

        By default, every array must be finite and have the same shape as in the initial state.
        """
        states.same_shapes(state, self.start())
        states.all_finite(state)
        return state

    def tau(self, state: Any) -> float:
        """Return the out-of-sample Kendall's tau."""
        agreement, pairs, _ = self.judgment(state)
        return float(agreement / max(1.0, pairs))


def forgotten(judged: Array) -> Array:
    """Judgments (..., 3) as they count in a new frame."""
    return judged * (FORGET, FORGET, 1.0)


def register(cls: S) -> S:
    """Let searches with a surrogate of your own be saved and loaded; works as a class decorator."""
    return objects.register_derived(cls, Surrogate)
