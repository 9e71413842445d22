"""Triangular (block) Toeplitz matrices: filters that act in one direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.groups import _fourier as fourier
from esgroup.groups import linalg
from esgroup.groups.spelling import register
from esgroup.kernels import toeplitz as kernels
from esgroup.lazy import fft

# Up to this dim, `apply` and `project` use loops instead of the FFT. Measured with 8 to 32 points, block 1, 2, 4, one
# thread: the two are equal at dim 115 to 290 for block 1 and 130 to 390 for the others, earlier with more points.
DIRECT_DIM = 192

# Up to this dim, forward substitution is one loop; beyond it, the halves are solved in turn. Measured with 16 points:
# equal at dim 512, twice as fast at 2048, four times at 4096; an inverse takes 20 to 70 % of the time of Newton's
# iteration. The cost is accuracy: an entry of the solution is accurate relative to the largest one, no longer to
# itself. The residual stays at rounding (below 1e-15 of |A| |y|), even where the inverse grows like 1.1^j and Newton's
# iteration loses 3 digits.
LEAF_DIM = 512


@register
@dataclass(frozen=True)
class ToeplitzTriangular(fourier.BlockColumn):
    """The same block along each diagonal, on one side of the main diagonal: a filter.

        lower  [[T0,  0,  0],       upper  [[T0, T1, T2],
                [T1, T0,  0],               [ 0, T0, T1],
                [T2, T1, T0]]               [ 0,  0, T0]]       Tj is block x block

    Neighbors in time or space interact in the same way everywhere, as in a moving average. Both kinds multiply like
    power series in T; block = dim is Full (Lin et al. 2021, section 4).

    Parameters
    ----------
    dim : int
        Number of rows, a multiple of `block`.
    block : int
        Number of rows of a block.
    lower : bool
        Whether the matrices are lower or upper triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import ToeplitzTriangular
    >>> group = ToeplitzTriangular(4)
    >>> group.dense(group.from_dense(np.eye(4) + 0.5 * np.eye(4, k=-1)))
    array([[1. , 0. , 0. , 0. ],
           [0.5, 1. , 0. , 0. ],
           [0. , 0.5, 1. , 0. ],
           [0. , 0. , 0.5, 1. ]])
    """

    block: int = 1
    lower: bool = True

    @property
    def dof(self) -> int:
        return self.block * (self.block + 1) // 2 + (self.count - 1) * self.block**2

    @property
    def transposed(self) -> ToeplitzTriangular:
        return ToeplitzTriangular(self.dim, self.block, not self.lower)

    def _transpose(self, a: Array) -> Array:
        return self._blocks(a).swapaxes(1, 2).flatten()

    def _turn(self, x: Array) -> Array:
        """Points with their blocks in the order in which the matrix is lower triangular."""
        return x if self.lower else self._rows(self._points(x)[:, ::-1])

    def _apply(self, a: Array, x: Array) -> Array:
        return self._turn(self._convolve(a, self._turn(x)))

    def _convolve(self, a: Array, x: Array) -> Array:
        blocks = self._blocks(a)
        if self.dim <= DIRECT_DIM:
            out = np.empty(x.shape)
            kernels.convolve(fourier.to_columns(blocks), x, self.block, out)
            return out
        length = self._padded
        y = fourier.convolve(fourier.spectrum(blocks, length), self._points(x), length)
        return self._rows(y[:, : self.count])

    @property
    def _padded(self) -> int:
        """A length of the FFT at which nothing wraps around."""
        return int(fft.next_fast_len(2 * self.count - 1, real=True))

    def _solve(self, a: Array, x: Array) -> Array:
        return self._turn(self._divide(a, self._turn(x)))

    def _inverse(self, a: Array) -> Array:
        columns = fourier.to_columns(self._blocks(self._identity()))
        return fourier.from_columns(self._divide(a, columns)).ravel()

    def _divide(self, a: Array, x: Array) -> Array:
        """Rows y with sum_j T_j y_{i-j} = x_i."""
        blocks = self._blocks(a)
        linalg.inverse(blocks[0], "a")  # raises if T_0 is singular
        rotation = _rotation(blocks[0])
        y: Array = (x.reshape(-1, self.block) @ rotation).reshape(x.shape)
        _substitute(rotation.T @ blocks, y, 0, self.count)
        return y

    def _log_abs_det(self, a: Array) -> float:
        return self.count * linalg.log_abs_det(self._blocks(a)[0])

    def _squared_row_norms(self, a: Array) -> Array:
        norms = (self._blocks(a) ** 2).sum(axis=2).cumsum(axis=0)  # of T0, then T1 and T0, ...
        return np.ascontiguousarray(norms if self.lower else norms[::-1]).ravel()

    def _squared_norm(self, a: Array) -> float:
        return float((self._blocks(a) ** 2).sum(axis=(1, 2)) @ self._lengths)

    @property
    def _lengths(self) -> NDArray[np.int64]:
        """The number of blocks on each diagonal: q, q - 1, ..., 1."""
        return np.arange(self.count, 0, -1)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        x = self._turn(left)
        sums = self._correlate(x, x if right is left else self._turn(right), weights)
        m = sums / self._lengths[:, None, None]  # the averages T_j
        m[0] = (m[0] + m[0].T) / 4 - 0.5 * shift * np.eye(self.block)
        return m.ravel()

    def _correlate(self, left: Array, right: Array, weights: Array) -> Array:
        if self.dim <= DIRECT_DIM:
            return self._correlate_direct(left, right, weights)
        x = self._points(left)
        y = x if right is left else self._points(right)
        return fourier.correlate(x, y, weights, self._padded)[: self.count]

    def _from_covariance(self, covariance: Array) -> Array:
        """The closed form, by the first block row of the inverse.

        A^-1 is determined by the row B = [B_0, B_1, ...] of its blocks, and L = tr(B Q B^T)/2 - q log|det B_0| with
        Q_jk = sum_i Sigma_[i-j, i-k]. So B Q = q [B_0^-T, 0, ...]: B_0^T B_0 = q (Q^-1)_00 and B = q B_0^-T (Q^-1)_0.
        """
        q, b = self.count, self.block
        first = np.zeros((self.dim, b))
        first[:b] = np.eye(b)
        column = np.linalg.solve(self._overlaps(covariance), first)  # of Q^-1
        root = linalg.cholesky(q * (column[:b] + column[:b].T) / 2).T
        row = np.linalg.solve(root.T, q * column.T)
        return self._inverse(row.reshape(b, q, b).swapaxes(0, 1).flatten())

    def _overlaps(self, covariance: Array) -> Array:
        """Q_jk = sum_i Sigma_[i-j, i-k]: each diagonal summed from its end."""
        turned = covariance.reshape(self.count, self.block, self.count, self.block)
        # the coordinates of the lower triangular matrix in reverse order
        sums = (turned[::-1, :, ::-1] if self.lower else turned).copy()
        for j in range(self.count - 2, -1, -1):
            sums[j, :, :-1] += sums[j + 1, :, 1:]
        return sums.reshape(self.dim, self.dim)

    def _dense(self, a: Array) -> Array:
        blocks = self._blocks(a)
        zeros = np.zeros((self.count - 1, self.block, self.block))
        return fourier.dense(np.concatenate([zeros, blocks] if self.lower else [blocks[::-1], zeros]))

    def _from_dense(self, matrix: Array) -> Array:
        if self.lower:
            return matrix[:, : self.block].flatten()
        return self._points(matrix[: self.block]).swapaxes(0, 1).flatten()


def _rotation(first: Array) -> Array:
    """Q of T_0 = Q L with a lower triangular L: Q^T A is triangular entry by entry, and no accuracy is lost."""
    if len(first) == 1:
        return np.ones((1, 1))
    q: Array = np.linalg.qr(first[:, ::-1])[0]  # T_0 J = Q' R gives T_0 = (Q' J) (J R J), J the reversal
    return q[:, ::-1]


def _substitute(blocks: Array, y: Array, start: int, stop: int) -> None:
    """Solve sum_j T_j y_{i-j} = x_i in place for the blocks start..stop of every row y; T_0 is lower triangular.

    A long range is solved in two halves; an FFT gives the effect of the first half on the second.
    """
    width, block = stop - start, blocks.shape[2]
    if width == 1 or width * block <= LEAF_DIM:
        kernels.substitute(fourier.to_columns(blocks[:width]), block, start * block, stop * block, y)
        return
    half = (width + 1) // 2
    points = y.reshape(len(y), len(blocks), block)
    _substitute(blocks, y, start, start + half)
    # at length `width` only the first half of the result is wrapped around, and it is not used
    length = int(fft.next_fast_len(width, real=True))
    effect = fourier.convolve(fourier.spectrum(blocks[:width], length), points[:, start : start + half], length)
    points[:, start + half : stop] -= effect[:, half:width]
    _substitute(blocks, y, start + half, stop)
