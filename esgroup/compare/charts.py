"""Coordinates of matrices, with their gradients, for methods that search vectors only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esgroup.checks import Array
from esgroup.problem_registry import near


class Chart:
    """A map from vectors onto a space of points. Both may have a leading axis for several of them.

    This one leaves points unchanged, for methods that search the space itself.
    """

    straight = True  # whether the Hessian is that of the points: a curved chart adds its own, times the gradient

    def vector(self, point: Array) -> Array:
        """Coordinates of one point."""
        return point

    def points(self, vectors: Array) -> Array:
        """Points with these coordinates."""
        return vectors

    def pull_back(self, vector: Array, gradient: Array) -> Array:
        """Gradient with respect to coordinates, from the gradient G with respect to the point: df = <G, dpoint>."""
        return gradient


class Flat(Chart):
    """The coordinates are the entries, row by row."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def vector(self, point: Array) -> Array:
        return point.ravel()

    def points(self, vectors: Array) -> Array:
        return vectors.reshape(*vectors.shape[:-1], *self._shape)

    def pull_back(self, vector: Array, gradient: Array) -> Array:
        return gradient.ravel()


class _Triangle(Chart):
    """The lower triangle of p x p matrices as a vector, with off-diagonal entries multiplied by a factor."""

    straight = False

    def __init__(self, shape: tuple[int, ...], off_diagonal: float = 1.0) -> None:
        self._dim = shape[0]
        self._rows, self._cols = np.tril_indices(self._dim)
        self._scale = np.where(self._rows == self._cols, 1.0, off_diagonal)

    def _packed(self, lower: Array) -> Array:
        return self._scale * lower[..., self._rows, self._cols]

    def _unpacked(self, vectors: Array) -> Array:
        lower = np.zeros((*vectors.shape[:-1], self._dim, self._dim))
        lower[..., self._rows, self._cols] = vectors / self._scale
        return lower


class Logarithm(_Triangle):
    """W = exp(S) with S symmetric; off the diagonal sqrt(2) S_ij, so that |vector| = |S|_F."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape, off_diagonal=np.sqrt(2.0))

    def vector(self, point: Array) -> Array:
        values, u = np.linalg.eigh(point)
        return self._packed(u * np.log(values) @ u.T)

    def points(self, vectors: Array) -> Array:
        values, u = np.linalg.eigh(self._unpacked(vectors))  # eigh reads the lower triangle only
        w: Array = (u * np.exp(values)[..., None, :]) @ u.swapaxes(-1, -2)
        return (w + w.swapaxes(-1, -2)) / 2

    def pull_back(self, vector: Array, gradient: Array) -> Array:
        """U (K * U' G U) U', K_ij = (e^s_i - e^s_j) / (s_i - s_j): the derivative of exp (Daleckii and Krein 1965)."""
        s, u = np.linalg.eigh(self._unpacked(vector))
        half = (s[:, None] - s) / 2
        sinhc = np.where(half == 0, 1.0, np.sinh(half) / np.where(half == 0, 1.0, half))
        k = np.exp((s[:, None] + s) / 2) * sinhc  # the quotient without cancellation
        inner = u @ (k * (u.T @ ((gradient + gradient.T) / 2) @ u)) @ u.T
        return self._packed(inner)  # S_ij and S_ji both change by v / sqrt(2), hence the factor sqrt(2) again


class CholeskyFactor(_Triangle):
    """W = L L' with L lower triangular; on the diagonal log L_ii."""

    def vector(self, point: Array) -> Array:
        factor = np.asarray(np.linalg.cholesky(point), dtype=np.float64)
        return self._packed(_with_diagonal(factor, np.log(np.diagonal(factor))))

    def points(self, vectors: Array) -> Array:
        factor = self._factor(vectors)
        return factor @ factor.swapaxes(-1, -2)

    def pull_back(self, vector: Array, gradient: Array) -> Array:
        """dW = dL L' + L dL', so df = <2 G L, dL>; dL_ii = L_ii d log L_ii."""
        factor = self._factor(vector)
        by_factor = (gradient + gradient.T) @ factor
        return self._packed(_with_diagonal(by_factor, np.diagonal(by_factor) * np.diagonal(factor)))

    def _factor(self, vectors: Array) -> Array:
        lower = self._unpacked(vectors)
        return _with_diagonal(lower, np.exp(np.diagonal(lower, axis1=-2, axis2=-1)))


def _with_diagonal(matrices: Array, diagonal: Array) -> Array:
    result = matrices.copy()
    i = np.arange(matrices.shape[-1])
    result[..., i, i] = diagonal
    return result


#: Charts of each space, the default one first.
CHARTS: dict[str, dict[str, Callable[[tuple[int, ...]], Chart]]] = {
    "vector": {"flat": Flat},
    "scalar": {"flat": Flat},
    "matrix": {"flat": Flat},
    "spd": {"log": Logarithm, "cholesky": CholeskyFactor},
}


def chart(name: str | None, space: str, shape: tuple[int, ...]) -> Chart:
    """Return the chart with this name on a space, or the default one; an unknown name raises ValueError."""
    offered = CHARTS[space]
    name = next(iter(offered)) if name is None else name
    if name not in offered:
        raise ValueError(f"unknown chart {name!r}{near(name, offered)}: the charts of {space} are {', '.join(offered)}")
    return offered[name](shape)
