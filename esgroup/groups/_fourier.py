"""The common base of block Toeplitz and block circulant matrices: one column of blocks, and products by the FFT."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Sized
from esgroup.kernels import toeplitz as kernels
from esgroup.lazy import fft

Spectrum = NDArray[np.complexfloating[Any, Any]]


class BlockColumn(Sized):
    """Matrices given by q blocks A_0, ..., A_{q-1} of size block x block, packed one after another, each row by row."""

    block: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.store_whole_number(self, "block", least=1)
        if self.dim % self.block:
            raise ValueError(f"dim must be a multiple of block = {self.block}, got {self.dim}")

    @abstractmethod
    def _convolve(self, a: Array, x: Array) -> Array:
        """Rows y with y_i = sum_j A_j x_{i-j}, i counting blocks."""

    @property
    def count(self) -> int:
        """The number q of blocks."""
        return self.dim // self.block

    @property
    def size(self) -> int:
        return self.dim * self.block

    def _blocks(self, a: Array) -> Array:
        return a.reshape(self.count, self.block, self.block)

    def _points(self, x: Array) -> Array:
        return x.reshape(len(x), self.count, self.block)

    def _rows(self, points: Array) -> Array:
        return np.ascontiguousarray(points).reshape(len(points), self.dim)

    def _identity(self) -> Array:
        return np.eye(self.dim, self.block).ravel()

    def _product(self, a: Array, b: Array) -> Array:
        # the column of A B is A times that of B
        return from_columns(self._convolve(a, to_columns(self._blocks(b)))).ravel()

    def _correlate_direct(self, left: Array, right: Array, weights: Array) -> Array:
        """`correlate` without wrap-around, by a loop over pairs of blocks."""
        out = np.empty((self.block, self.dim))
        kernels.correlate(left, right, weights, self.block, out)
        return from_columns(out)


def to_columns(blocks: Array) -> Array:
    """A block column of shape (q, block, block) as points: its `block` columns become rows."""
    block = blocks.shape[2]
    return np.ascontiguousarray(blocks.reshape(-1, block).T)


def from_columns(rows: Array) -> Array:
    """The inverse of `to_columns`."""
    block = len(rows)
    return np.ascontiguousarray(rows.T).reshape(-1, block, block)


def dense(diagonals: Array) -> Array:
    """The matrix with block A_{i-j} at (i, j), from A_{1-q}, ..., A_{q-1}."""
    q, block = (len(diagonals) + 1) // 2, diagonals.shape[2]
    down, row, column = diagonals.strides
    view = as_strided(diagonals[q - 1 :], (q, block, q, block), (down, row, -down, column), writeable=False)
    return np.array(view, order="C").reshape(q * block, q * block)


def spectrum(blocks: Array, length: int) -> Spectrum:
    """The Fourier transform of the blocks, padded with zeros to `length`."""
    return fft.rfft(blocks, length, axis=0)


def series(hat: Spectrum, length: int) -> Array:
    """The blocks that have this spectrum."""
    return fft.irfft(hat, length, axis=0)


def convolve(hat: Spectrum, points: Array, length: int) -> Array:
    """y_i = sum_j A_j x_{i-j}, indices modulo `length`, for points (n, at most length, block); hat is A's spectrum."""
    x = fft.rfft(points, length, axis=1)
    # one product per frequency; for 1 x 1 blocks plain multiplication is two to three times faster than matmul
    y = x * hat[:, :, 0] if points.shape[2] == 1 else (x.swapaxes(0, 1) @ hat.swapaxes(1, 2)).swapaxes(0, 1)
    return fft.irfft(y, length, axis=1)


def correlate(left: Array, right: Array, weights: Array, length: int) -> Array:
    """C_j = sum_k weights_k sum_i left_k[i + j] right_k[i]^T, indices modulo `length`; points as in `convolve`."""
    x = fft.rfft(left, length, axis=1)
    y = (x if right is left else fft.rfft(right, length, axis=1)).conj()
    if left.shape[2] == 1:
        return series((weights @ (x * y)[:, :, 0])[:, None, None], length)
    return series((x * weights[:, None, None]).transpose(1, 2, 0) @ y.swapaxes(0, 1), length)
