"""What a surrogate is: a model of a function in the local coordinates z of a search, judged before it learns.

Local coordinates are those in which samples are z ~ N(0, I). A search hands all values in the same order: new ones are
judged against what was predicted, then learned; at the end of a generation the distribution has moved, and with it the
coordinates. A surrogate of several functions is a state for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from esgroup.checks import Array
from esgroup.files import objects, states

UNJUDGED = 0.0, 0.0, 1.0  # the judgment of a surrogate that has predicted nothing
FORGET = 0.7  # of judged pairs, from one frame to the next
ERROR_RATE = 0.1  # of the mean of squared errors, for each value

S = TypeVar("S", bound="type[Surrogate]")


class Axes(NamedTuple):
    """A symmetric matrix V diag(e) V^T."""

    values: Array  # e
    vectors: Array | None  # V, None for the identity

    def out(self, u: Array) -> Array:
        """V u."""
        return u if self.vectors is None else self.vectors @ u


class Minimum(NamedTuple):
    """Where a surrogate is least in a ball, and what it predicts there."""

    z: Array
    value: float
    at_edge: bool  # whether it is on the boundary


class Surrogate(ABC):
    """A model of a function of z: a frozen object of sizes and constants, a dataclass if searches are to be saved.

    What changes is the state, a NamedTuple of float64 arrays, which the search keeps and its files hold; where their
    shapes change or they may hold NaN, `checked` must be replaced. Methods are pure. `judge` as it stands keeps its
    numbers in a field `judged` of the state, an array that begins as `UNJUDGED`.
    """

    dim: int  #: number of coordinates
    #: What it is, in words.
    about: ClassVar[str] = "surrogate"
    #: Whether a fit is cheap enough to follow every part of a generation; else it waits for the end.
    fits_often: bool = True

    # ---- must ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many of the last points `fit` is given at most."""

    @property
    @abstractmethod
    def least(self) -> int:
        """How many points it needs to be of any use."""

    @abstractmethod
    def start(self) -> Any:
        """Return the first state, which predicts 0."""

    @abstractmethod
    def fit(self, state: Any, z: Array, values: Array) -> Any:
        """Return the state after learning the values (N,) at the last points (N, dim), oldest first."""

    @abstractmethod
    def predict(self, state: Any, z: Array) -> Array:
        """Return the values (N,) that are predicted at z (N, dim)."""

    @abstractmethod
    def size(self, state: Any) -> float:
        """Return the standard deviation of predictions for z ~ N(0, I), roughly; 0 if nothing is known."""

    @abstractmethod
    def minimizer(self, state: Any, radius: float) -> Minimum:
        """Return the least prediction over |z| <= radius, as far as it can be found; no worse than that at 0."""

    @abstractmethod
    def moved(self, state: Any, shift: Array, turn: Array) -> Any:
        """Return the same function in coordinates z' with z = shift + turn z', as far as it can be kept.

        `turn` is a matrix, or a vector for a diagonal one. Pairs that were judged count `FORGET` times.
        """

    # ---- may ----------------------------------------------------------------------------------------------------

    def judge(self, state: Any, z: Array, values: Array, new: int) -> Any:
        """Return the state after comparing predictions with the last `new` values, which it has not learned.

        Every new value f_i is compared with all before it: pairs that the predictions q order as the values do count 1,
        the others -1. The mean of squared errors follows min(1, |f_i - q_i| / (size max(1, |z_i|^2 / n)))^2.
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
        """Return what `judge` has found: agreeing less other pairs, all pairs, the mean squared error (3,)."""
        return state.judged

    def curvature(self, state: Any) -> Axes | None:
        """Return log lengths of the axes along which the function looks rounder, for the step of A; None: unknown.

        A <- A V exp(L) V^T for Axes(L, V), in groups other than the full one its projection. Without it A learns from
        ranks only.
        """
        return None

    def checked(self, state: Any) -> Any:
        """Return a state from a file if it can be one of this surrogate, else raise ValueError.

        As it stands, every array must be finite, and of the shape that it has in the first state.
        """
        states.same_shapes(state, self.start())
        states.all_finite(state)
        return state

    def tau(self, state: Any) -> float:
        """Return Kendall's tau out of sample."""
        agreement, pairs, _ = self.judgment(state)
        return float(agreement / max(1.0, pairs))


def forgotten(judged: Array) -> Array:
    """Judgments (..., 3) as they count in a new frame."""
    return judged * (FORGET, FORGET, 1.0)


def register(cls: S) -> S:
    """Let searches with a surrogate of your own be saved and loaded; usable as a class decorator."""
    return objects.register_derived(cls, Surrogate)
