"""Positive-definite matrices as a domain, by their logarithms, which are arbitrary symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.base import Domain

_MOST = 700.0  # the largest logarithm of an eigenvalue, so that numbers stay finite


@dataclass(frozen=True, eq=False)
class PositiveDefinite(Domain):
    """Matrices W = L exp(S) L^T around the matrix M = L L^T, with symmetric S.

    y has the entries of S on and below the diagonal, row by row, those on it over sqrt(2). With y ~ N(0, I / n) the
    entries of W have, to first order in 1/sqrt(n), the variances of a Wishart with the mean M and n degrees of freedom,
    (m_ij^2 + m_ii m_jj) / n: the affine-invariant metric at M is |dy|^2 up to a factor.

    Parameters
    ----------
    root : array (p, p)
        L.
    """

    root: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.root.shape

    @property
    def size(self) -> int:
        return len(self._scales)

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.tril_indices(len(self.root))

    @cached_property
    def _scales(self) -> Array:
        rows, columns = self._places
        return np.where(rows == columns, np.sqrt(2.0), 1.0)

    def decode(self, y: Array) -> Array:
        s = np.zeros((len(y), *self.shape))
        s[:, *self._places] = self._scales * y
        logs, axes = np.linalg.eigh(s)  # it reads the lower half
        half = self.root @ (axes * np.exp(0.5 * np.clip(logs, -_MOST, _MOST))[:, None])
        return checks.symmetric_part(half @ half.swapaxes(1, 2))

    def encode(self, points: Array, near: Array | None = None) -> Array:
        half = np.linalg.solve(self.root, points)
        values, axes = np.linalg.eigh(checks.symmetric_part(np.linalg.solve(self.root, half.swapaxes(1, 2))))
        s = (axes * np.log(np.maximum(values, np.exp(-_MOST)))[:, None]) @ axes.swapaxes(1, 2)
        return s[:, *self._places] / self._scales

    def check(self, name: str, points: Array) -> None:
        checks.real_array(name, points, (None, *self.shape))
        checks.check_symmetric(name, points)
        checks.positive_roots(name, checks.symmetric_part(points))

    def inside(self, points: Array) -> NDArray[np.bool_]:
        return np.array([bool((np.linalg.eigvalsh(point) > 0).all() and (point == point.T).all()) for point in points])

    def stds(self, mean: Array, stds: Array) -> Array:
        """sqrt(m_ij^2 + m_ii m_jj) times the geometric mean of the standard deviations, for the matrix m of y."""
        m = self.decode(mean[None])[0]
        diagonal = np.diagonal(m)
        return np.sqrt(m**2 + np.outer(diagonal, diagonal)) * np.exp(np.log(stds).mean())
