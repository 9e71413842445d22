"""Dense triangular matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.groups import linalg
from esgroup.groups.base import Sized
from esgroup.groups.diagonal import nonzero_diagonal
from esgroup.groups.hooks import check_samples_bounded
from esgroup.groups.spelling import register
from esgroup.kernels import triangular as kernels
from esgroup.lazy import blas

_BLOCK = 64  # number of columns that are multiplied at once where M is used without being formed


@register
@dataclass(frozen=True)
class Triangular(Sized):
    """Dense triangular matrices, such as Cholesky factors.

        lower  [[a, 0],       upper  [[a, b],
                [b, c]]               [0, c]]

    Every covariance has exactly one such root with a positive diagonal. A matrix is packed row by row, in
    dim (dim + 1) / 2 numbers. An upper triangular matrix is packed as the lower triangular matrix obtained by reversing
    the order of the variables, so every operation is the lower triangular one between two reversals.

    Parameters
    ----------
    dim : int
        Number of rows.
    lower : bool
        Whether the matrices are lower or upper triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import Triangular
    >>> group = Triangular(2)
    >>> group.dense(group.from_covariance(np.array([[4.0, 2.0], [2.0, 2.0]])))
    array([[2., 0.],
           [1., 1.]])
    """

    lower: bool = True

    @property
    def size(self) -> int:
        return self.dim * (self.dim + 1) // 2

    @property
    def dof(self) -> int:
        return self.size

    @property
    def transposed(self) -> Triangular:
        return Triangular(self.dim, not self.lower)

    def _flip(self, rows: Array) -> Array:
        return rows if self.lower else np.ascontiguousarray(rows[:, ::-1])

    def _flip_both(self, matrix: Array) -> Array:
        return matrix if self.lower else np.ascontiguousarray(matrix[::-1, ::-1])

    def _square(self, a: Array) -> Array:
        """The lower triangular matrix (in reversed coordinates if upper)."""
        out = np.empty((self.dim, self.dim))
        kernels.unpack(a, out)
        return out

    def _pack(self, square: Array, out: Array | None = None) -> Array:
        out = np.empty(self.size) if out is None else out
        kernels.pack(square, 0, out)
        return out

    def _squared_row_norms(self, a: Array) -> Array:
        norms: Array = np.add.reduceat(a * a, self._row_starts)
        return norms if self.lower else norms[::-1].copy()

    def _squared_norm(self, a: Array) -> float:
        return float(a @ a)

    @cached_property
    def _row_starts(self) -> NDArray[np.int64]:
        return np.arange(self.dim) * np.arange(1, self.dim + 1) // 2

    def _identity(self) -> Array:
        return self._pack(np.eye(self.dim))

    def _product(self, a: Array, b: Array) -> Array:
        # in BLAS's order the matrices are transposed: (A B)^T = B^T A^T with A^T upper triangular
        return self._pack(blas.dtrmm(1.0, self._square(a).T, self._square(b).T, side=1, overwrite_b=True).T)

    def _apply(self, a: Array, x: Array) -> Array:
        return self._flip(blas.dtrmm(1.0, self._square(a).T, self._flip(x).T, trans_a=True).T)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        return self._flip(blas.dtrmm(1.0, self._square(a).T, self._flip(x).T).T)

    def _solve(self, a: Array, x: Array, *, transposed: bool = False) -> Array:
        nonzero_diagonal(self._diagonal(a))
        return self._flip(blas.dtrsm(1.0, self._square(a).T, self._flip(x).T, trans_a=not transposed).T)

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        return self._solve(a, x, transposed=True)

    def _inverse(self, a: Array) -> Array:
        nonzero_diagonal(self._diagonal(a))
        return self._pack(blas.dtrsm(1.0, self._square(a).T, np.eye(self.dim).T, overwrite_b=True).T)

    def _diagonal(self, a: Array) -> Array:
        rows = np.arange(self.dim)
        return a[rows * (rows + 3) // 2]

    def _log_abs_det(self, a: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(np.abs(self._diagonal(a))).sum())

    def _transpose(self, a: Array) -> Array:
        # transposed and reversed, A is lower triangular again
        return self._pack(np.ascontiguousarray(self._square(a).T[::-1, ::-1]))

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        left, weighted = self._flip(left), self._flip(right) * weights[:, None]
        out = np.empty(self.size)
        for rows in _blocks(self.dim):
            part = left[:, rows].T @ weighted[:, : rows.stop]
            _halve_diagonal(part[:, rows], shift)
            kernels.pack(part, rows.start, out)
        return out

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        """A h(M) in O(n dim^2) without forming M, which is the lower triangle of a matrix of rank n."""
        check_samples_bounded(z, weights, shift)
        z = self._flip(z)
        square = self._square(a)
        first = _times_local(square, z, weights, shift)
        second = _times_local(first, z, weights, shift)
        square += first
        second *= 0.5
        square += second
        return self._pack(square, out)

    def _flow(self, z: Array, weights: Array, shift: float) -> Array:
        """The Cholesky factor of (1 - s) I + sum_i w_i z_i z_i^T."""
        check_samples_bounded(z, weights, shift)
        return self._from_covariance(linalg.moments(z, weights, shift))

    def _dense(self, a: Array) -> Array:
        return self._flip_both(self._square(a))

    def _from_dense(self, matrix: Array) -> Array:
        return self._pack(self._flip_both(matrix))

    def _from_covariance(self, covariance: Array) -> Array:
        return self._pack(linalg.cholesky(self._flip_both(covariance)))


def _blocks(dim: int) -> Iterator[slice]:
    for start in range(0, dim, _BLOCK):
        yield slice(start, min(start + _BLOCK, dim))


def _halve_diagonal(block: Array, shift: float) -> None:
    diagonal = np.arange(len(block))
    block[diagonal, diagonal] = 0.5 * (block[diagonal, diagonal] - shift)


def _times_local(lower: Array, z: Array, weights: Array, shift: float) -> Array:
    """L M for a lower triangular L and M = C (.) kappa(Z^T W Z - shift I).

    Columns J of L M are (sum_{I > J} L_I Z_I^T) W Z_J + L_J M_JJ; the sum in brackets is accumulated block by block.
    """
    out = np.zeros(lower.shape)
    carried = np.zeros((len(lower), len(z)))
    for columns in reversed(list(_blocks(len(lower)))):
        below = slice(columns.start, None)  # rows above the block are zero
        z_block = z[:, columns]
        weighted = z_block * weights[:, None]
        corner = np.tril(z_block.T @ weighted)
        _halve_diagonal(corner, shift)
        out[below, columns] = carried[below] @ weighted + lower[below, columns] @ corner
        carried[below] += lower[below, columns] @ z_block.T
    return out
