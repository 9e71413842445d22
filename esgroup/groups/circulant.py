"""(Block) circulant matrices: variables on a ring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.groups import _fourier as fourier
from esgroup.groups.linalg import SingularElementError
from esgroup.groups.spelling import register

# Up to this dim, a dense product (in `project` a loop) is used instead of the FFT. Measured with 1 to 32 points, block
# 1, 2, 4, one thread: it mostly takes 0.4 to 0.8 of the FFT's time at dim 64; the two are equal at dim 60 to 130.
DIRECT_DIM = 64


@register
@dataclass(frozen=True)
class Circulant(fourier.BlockColumn):
    """The same block along each diagonal, with wrap-around: variables on a ring.

        [[A0, A2, A1],
         [A1, A0, A2],
         [A2, A1, A0]]       Aj is block x block

    All positions on the ring are equivalent, and the Fourier transform makes the matrix block diagonal. A is any
    invertible circulant matrix, a local step M a symmetric one, M_{-j} = M_j^T: with a skew part the Fisher matrix
    would be singular. block = dim is Full.

    Parameters
    ----------
    dim : int
        Number of rows, a multiple of `block`.
    block : int
        Number of rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import Circulant
    >>> group = Circulant(4)
    >>> group.dense(group.from_dense(np.eye(4) + np.roll(np.eye(4), 1, axis=0)))
    array([[1., 0., 0., 1.],
           [1., 1., 0., 0.],
           [0., 1., 1., 0.],
           [0., 0., 1., 1.]])
    """

    block: int = 1

    @property
    def dof(self) -> int:
        # M_0, and M_{q/2} for even q, are symmetric; the others come in pairs M_j, M_{-j} = M_j^T
        pairs, alone = (self.count - 1) // 2, 2 - self.count % 2
        return pairs * self.block**2 + alone * self.block * (self.block + 1) // 2

    @property
    def transposed(self) -> Circulant:
        return self

    def _transpose(self, a: Array) -> Array:
        return _reflected(self._blocks(a)).ravel()

    def _apply(self, a: Array, x: Array) -> Array:
        return self._convolve(a, x)

    def _convolve(self, a: Array, x: Array) -> Array:
        if self.dim <= DIRECT_DIM:
            return x @ self._dense(a).T
        return self._rows(fourier.convolve(self._spectrum(a), self._points(x), self.count))

    def _spectrum(self, a: Array) -> fourier.Spectrum:
        return fourier.spectrum(self._blocks(a), self.count)

    def _solve(self, a: Array, x: Array) -> Array:
        return self._rows(fourier.convolve(_inverse(self._spectrum(a)), self._points(x), self.count))

    def _inverse(self, a: Array) -> Array:
        return fourier.series(_inverse(self._spectrum(a)), self.count).ravel()

    def _log_abs_det(self, a: Array) -> float:
        logs = np.linalg.slogdet(self._spectrum(a))[1]
        times = np.full(len(logs), 2)  # a frequency and its conjugate
        times[0] = 1  # except frequency 0
        if self.count % 2 == 0:
            times[-1] = 1  # and the highest frequency of an even ring
        return float(times @ logs)

    def _squared_row_norms(self, a: Array) -> Array:
        return np.tile((self._blocks(a) ** 2).sum(axis=(0, 2)), self.count)

    def _squared_norm(self, a: Array) -> float:
        return self.count * float(a @ a)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        sums = self._correlate(left, right, weights)
        m = (sums + _reflected(sums)) / (2 * self.count)
        m[0] -= 0.5 * shift * np.eye(self.block)
        return m.ravel()

    def _correlate(self, left: Array, right: Array, weights: Array) -> Array:
        """Blocks S_j with S_j + S_{-j}^T = sum_i G_[(i + j) mod q, i]."""
        if self.dim <= DIRECT_DIM:
            # G is symmetric: the part that wraps around is the sum over diagonal q - j, transposed
            sums = self._correlate_direct(left, right, weights)
            sums[0] /= 2
            return sums
        x = self._points(left)
        y = x if right is left else self._points(right)
        return fourier.correlate(x, y, weights / 2, self.count)

    def _dense(self, a: Array) -> Array:
        blocks = self._blocks(a)
        return fourier.dense(np.concatenate([blocks[1:], blocks]))

    def _from_dense(self, matrix: Array) -> Array:
        return matrix[:, : self.block].flatten()

    def _from_covariance(self, covariance: Array) -> Array:
        """The root, frequency by frequency, of circ(T) with the averages T_j of Sigma's diagonals.

        tr((A A^T)^-1 Sigma) depends on Sigma by these averages only, so that A A^T = circ(T) at the minimum.
        """
        averages = 2 * self._project_dense(covariance)
        roots = np.linalg.cholesky(self._spectrum(averages))
        return fourier.series(roots, self.count).ravel()


def _reflected(blocks: Array) -> Array:
    """The blocks A_{-j}^T of the transposed matrix."""
    return np.roll(blocks[::-1], 1, axis=0).swapaxes(1, 2)


def _inverse(hat: fourier.Spectrum) -> fourier.Spectrum:
    """The inverse at every frequency; SingularElementError for a matrix that is singular to rounding."""
    try:
        inverse = np.linalg.inv(hat)
    except np.linalg.LinAlgError:
        raise SingularElementError("a must be invertible, but one of its frequencies is singular") from None
    # The norms of the matrix and of its inverse are the largest ones of any frequency. The error of the FFT is of order
    # eps log q.
    rcond = 1.0 / (_norm(hat) * _norm(inverse))
    if not rcond >= np.finfo(float).eps * (1 + np.log2(len(hat))):
        raise SingularElementError(f"a must be invertible, but is singular to rounding (rcond {rcond:.1g})")
    return inverse


def _norm(hat: fourier.Spectrum) -> float:
    return float(np.abs(hat).sum(axis=1).max())
