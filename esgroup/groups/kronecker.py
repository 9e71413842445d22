"""Kronecker products of two groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.groups.base import Group
from esgroup.groups.composed import Composed, part_of


@dataclass(frozen=True)
class Kronecker(Composed):
    """A1 (x) A2 with A1 in `first` and A2 in `second`: rows and columns of a matrix, each with its own structure.

    A point is a p1 x p2 matrix X read row by row, and A1 (x) A2 maps it to A1 X A2^T, as in numpy.kron. An element is
    packed as A1, then A2. A local vector (M1, M2) stands for M1 (x) I + I (x) M2, and h acts factor by factor,
    A1 h(M1) (x) A2 h(M2), since h of the sum would leave the group. (cI, -cI) stands for 0, so dof is dof1 + dof2 - 1.

    Parameters
    ----------
    first : Group
        The group of A1, which acts on the p1 rows.
    second : Group
        The group of A2, which acts on the p2 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import Diagonal, Full, Kronecker
    >>> group = Kronecker(Diagonal(20), Full(30))  # for 20 x 30 matrices, row by row
    >>> group.dim, group.size
    (600, 920)
    """

    first: Group
    second: Group
    uses_images = False  # each factor would need its own images

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            part_of(name, getattr(self, name))

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.first.dim * self.second.dim

    @property
    def parts(self) -> tuple[Group, ...]:
        return self.first, self.second

    @property
    def dof(self) -> int:
        return super().dof - 1

    @property
    def transposed(self) -> Kronecker:
        return Kronecker(self.first.transposed, self.second.transposed)

    def _local_identity(self) -> Array:
        return 0.5 * super()._local_identity()

    def _rows_of_first(self, x: Array) -> Array:
        """(n, p1 p2) to (n p2, p1): the rows that `first` acts on."""
        p1, p2 = self.first.dim, self.second.dim
        return np.ascontiguousarray(x.reshape(-1, p1, p2).swapaxes(1, 2)).reshape(-1, p1)

    def _act(self, hook: str, a: Array, x: Array) -> Array:
        (a1, a2), p1, p2 = self.blocks(a), self.first.dim, self.second.dim
        y: Array = getattr(self.second, hook)(a2, x.reshape(-1, p2))
        y = getattr(self.first, hook)(a1, self._rows_of_first(y))
        return np.ascontiguousarray(y.reshape(-1, p2, p1).swapaxes(1, 2)).reshape(x.shape)

    def _scale(self, a: Array, factor: float) -> Array:
        return super()._scale(a, np.sqrt(factor))

    def _squared_row_norms(self, a: Array) -> Array:
        square, a1, a2 = self._balanced(a)
        return square * np.outer(self.first._squared_row_norms(a1), self.second._squared_row_norms(a2)).ravel()

    def _squared_norm(self, a: Array) -> float:
        square, a1, a2 = self._balanced(a)
        return square * self.first._squared_norm(a1) * self.second._squared_norm(a2)

    def _balanced(self, a: Array) -> tuple[float, Array, Array]:
        """Both factors, scaled to sizes near 1, and the square of the scale: one may be huge, the product not."""
        a1, a2 = self.blocks(a)
        size1, size2 = float(np.abs(a1).max()) or 1.0, float(np.abs(a2).max()) or 1.0
        return (size1 * size2) ** 2, self.first._scale(a1, 1 / size1), self.second._scale(a2, 1 / size2)

    def _squared_local_norm(self, m: Array) -> float:
        """|M1 (x) I + I (x) M2|^2 = p2 |M1|^2 + p1 |M2|^2 + 2 tr M1 tr M2."""
        m1, m2 = self.blocks(m)
        norm1, norm2 = self.first._squared_local_norm(m1), self.second._squared_local_norm(m2)
        cross = 2 * _trace(self.first, m1) * _trace(self.second, m2)
        return self.second.dim * norm1 + self.first.dim * norm2 + cross

    def _log_abs_det(self, a: Array) -> float:
        a1, a2 = self.blocks(a)
        return self.second.dim * self.first._log_abs_det(a1) + self.first.dim * self.second._log_abs_det(a2)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        """The exact natural gradient.

        It is that of each factor from the partial traces of G, minus a quarter of the mean eigenvalue t of G in both,
        since the factors share the scale (the block-diagonal Fisher matrix of the paper's appendix on matrix Gaussians
        would count it twice).
        """
        p1, p2 = self.first.dim, self.second.dim
        left1 = self._rows_of_first(left)
        right1 = left1 if right is left else self._rows_of_first(right)
        left2 = left.reshape(-1, p2)
        right2 = left2 if right is left else right.reshape(-1, p2)
        n1 = self.first._project(left1, right1, np.repeat(weights / p2, p2), shift)
        n2 = self.second._project(left2, right2, np.repeat(weights / p1, p1), shift)
        t = weights @ np.vecdot(left, right) / self.dim - shift
        n1 -= t / 4 * self.first._local_identity()
        n2 -= t / 4 * self.second._local_identity()
        return np.concatenate([n1, n2])

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        p1, p2 = self.first.dim, self.second.dim
        # `_project` subtracts t/4 I from both factors, which is a further shift by t/2
        common = shift + (weights @ np.vecdot(z, z) / self.dim - shift) / 2
        a1, a2 = self.blocks(a)
        rows1, rows2 = self._rows_of_first(z), z.reshape(-1, p2)
        moved1 = self.first._product_h_samples(a1, rows1, np.repeat(weights / p2, p2), common, None, None)
        moved2 = self.second._product_h_samples(a2, rows2, np.repeat(weights / p1, p1), common, None, None)
        return np.concatenate([moved1, moved2], out=out)

    def _dense_local(self, m: Array) -> Array:
        m1, m2 = self.blocks(m)
        left = np.kron(self.first._dense_local(m1), np.eye(self.second.dim))
        return left + np.kron(np.eye(self.first.dim), self.second._dense_local(m2))

    def _from_dense(self, matrix: Array) -> Array:
        """A Kronecker product has rank one when its blocks are rearranged as rows (Van Loan and Pitsianis 1993)."""
        p1, p2 = self.first.dim, self.second.dim
        rows = matrix.reshape(p1, p2, p1, p2).transpose(0, 2, 1, 3).reshape(p1 * p1, p2 * p2)
        i, j = np.unravel_index(np.abs(rows).argmax(), rows.shape)
        balance = np.sqrt(np.abs(rows[i, j])) or 1.0
        a1 = self.first._from_dense((rows[:, j] / balance).reshape(p1, p1))
        a2 = self.second._from_dense((rows[i] / balance * np.sign(rows[i, j])).reshape(p2, p2))
        return np.concatenate([a1, a2])


def _trace(group: Group, m: Array) -> float:
    """tr M of a local vector, from |M + I|^2 = |M|^2 + 2 tr M + p."""
    shifted = group._squared_local_norm(m + group._local_identity())
    return 0.5 * (shifted - group._squared_local_norm(m) - group.dim)
