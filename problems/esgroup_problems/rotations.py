"""Functions in rotated coordinates: one random rotation, or one for each small block of coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup_problems.functions import Function, Separable


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """z = P B P' x: coordinates are shuffled, multiplied block by block, and shuffled again; O(n dim size).

    Before B, slot k holds coordinate x[take[k]]; after B, z[j] is slot put[j]. Each stack, (count, size, size), holds
    the blocks of one size.
    """

    stacks: tuple[Array, ...]
    take: NDArray[np.intp]
    put: NDArray[np.intp]

    def forward(self, x: Array) -> Array:
        """Multiply every row of x, (n, dim), by the matrix."""
        return _times(self.stacks, x[:, self.take])[:, self.put]

    def backward(self, z: Array) -> Array:
        """Multiply every row of z, (n, dim), by the transposed matrix: the inverse for orthogonal blocks."""
        slots, x = np.empty_like(z), np.empty_like(z)
        slots[:, self.put] = z
        x[:, self.take] = _times(tuple(stack.transpose(0, 2, 1) for stack in self.stacks), slots)
        return x

    def squared(self) -> BlockMatrix:
        """The matrix with the squares of all entries."""
        return replace(self, stacks=tuple(stack**2 for stack in self.stacks))


@dataclass(frozen=True, eq=False)
class Rotated(Function):
    """g(x) = f(R x) for a separable f and an orthogonal R. Its Hessian is R^T diag(f'') R."""

    inner: Separable
    rotation: BlockMatrix

    def rows(self, x: Array) -> Array:
        return self.inner.rows(self.rotation.forward(x))

    def gradient(self, x: Array) -> Array:
        return self.rotation.backward(self.inner.gradient(self.rotation.forward(x[None])))[0]

    def product(self, x: Array, v: Array) -> Array:
        turned = self.rotation.forward(np.stack([x, v]))
        return self.rotation.backward(self.inner.product(*turned)[None])[0]

    def diagonal(self, x: Array) -> Array:
        bends = self.inner.bends(self.rotation.forward(x[None]))
        return self.rotation.squared().backward(bends)[0]  # sum_j R_ji^2 f_j''


def orthogonal(count: int, size: int, rng: np.random.Generator) -> Array:
    """Draw orthogonal matrices, (count, size, size), uniformly distributed (Haar).

    They are QR factors of normal matrices; R must have a positive diagonal for Q to be uniform (Mezzadri: How to
    generate random matrices from the classical compact groups, Notices of the AMS 54, 2007).
    """
    q, r = np.linalg.qr(rng.standard_normal((count, size, size)))
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


def rotation(dim: int, rng: np.random.Generator) -> BlockMatrix:
    """Draw a uniformly distributed rotation of all coordinates: O(dim^2) numbers."""
    return BlockMatrix((orthogonal(1, dim, rng),), np.arange(dim), np.arange(dim))


def block_rotation(dim: int, size: int, rng: np.random.Generator) -> BlockMatrix:
    """Draw rotations of blocks of `size` randomly chosen coordinates, and of the smaller block left over: O(dim size).

    The second shuffle mixes scales: without it a block of neighbors would have nearly equal weights.
    Ait ElHara, Auger, Hansen: Permuted orthogonal block-diagonal transformation matrices for large scale optimization
    benchmarking (GECCO 2016); they shuffle less, by swaps of limited range.
    """
    count, left = divmod(dim, size)
    stacks = (orthogonal(count, size, rng), orthogonal(1, left, rng)) if left else (orthogonal(count, size, rng),)
    return BlockMatrix(stacks, rng.permutation(dim), rng.permutation(dim))


def _times(stacks: tuple[Array, ...], slots: Array) -> Array:
    n, begin, out = len(slots), 0, np.empty_like(slots)
    for stack in stacks:
        count, size, _ = stack.shape
        part = slice(begin, begin + count * size)
        blocks = slots[:, part].reshape(n, count, size).swapaxes(0, 1)  # (count, n, size)
        out[:, part] = (blocks @ stack.swapaxes(1, 2)).swapaxes(0, 1).reshape(n, count * size)
        begin += count * size
    return out
