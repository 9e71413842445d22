"""Block triangular and Heisenberg groups: a diagonal with dense borders, O(k dim) numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import linalg
from esgroup.groups.base import Sized
from esgroup.groups.diagonal import nonzero_diagonal
from esgroup.groups.hooks import check_bounded
from esgroup.groups.spelling import register
from esgroup.kernels import bordered as kernels


class Layout(NamedTuple):
    """Sizes of the blocks F, D, L, and the first coordinate of each block."""

    k: int
    mid: int
    q: int
    first: int
    middle: int
    last: int


class Blocks(NamedTuple):
    """Views of a packed element [[F, 0, 0], [P, D, 0], [X, Q, L]]; P is stored transposed, D as a vector."""

    f: Array
    p_t: Array
    d: Array
    q: Array
    x: Array
    last: Array


class Bordered(Sized):
    """[[F, 0, 0], [P, D, 0], [X, Q, L]] with diagonal D, up to the order of the three blocks of coordinates.

    Lower and upper, block triangular and Heisenberg differ only in `layout`; the transpose has the blocks in reverse.
    """

    @cached_property
    @abstractmethod
    def layout(self) -> Layout:
        """The sizes and places of the blocks."""

    @cached_property
    def size(self) -> int:
        k, mid, q = self.layout[:3]
        return k * k + (k + 1 + q) * mid + q * k + q * q

    @property
    def dof(self) -> int:
        k, mid, q = self.layout[:3]
        return k * (k + 1) // 2 + (k + 1 + q) * mid + q * k + q * (q + 1) // 2

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        k, _, q, first, _, last = self.layout
        return checks.read_only(np.concatenate([np.arange(first, first + k), np.arange(last, last + q)]))

    @property
    def gathered(self) -> int:
        return self.layout.mid if self.layout.q else 0

    def blocks(self, a: Array) -> Blocks:
        """Return the blocks of a packed element, as views."""
        k, mid, q = self.layout[:3]
        cuts = np.cumsum([k * k, k * mid, mid, q * mid, q * k])
        f, p_t, d, q_rows, x, last = np.split(a, cuts)
        return Blocks(
            f.reshape(k, k), p_t.reshape(k, mid), d, q_rows.reshape(q, mid), x.reshape(q, k), last.reshape(q, q)
        )

    def _pack(self, f: Array, p_t: Array, d: Array, q: Array, x: Array, last: Array) -> Array:
        return np.concatenate([f.ravel(), p_t.ravel(), d, q.ravel(), x.ravel(), last.ravel()])

    def _identity(self) -> Array:
        k, mid, q = self.layout[:3]
        return self._pack(np.eye(k), np.zeros((k, mid)), np.ones(mid), np.zeros((q, mid)), np.zeros((q, k)), np.eye(q))

    def _product(self, a: Array, b: Array) -> Array:
        out = np.empty(self.size)
        kernels.product(a, b, *self.layout[:3], out)
        return out

    def _h(self, m: Array) -> Array:
        return self._product_h(self._identity(), m)

    def _product_h(self, a: Array, m: Array, out: Array | None = None) -> Array:
        out = np.empty(self.size) if out is None else out
        kernels.product_h(a, m, *self.layout[:3], out)
        return out

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        m = self._project(z, z, weights, shift)
        check_bounded(float(np.vdot(m, m)))
        return self._product_h(a, m, out)

    def _apply(self, a: Array, x: Array) -> Array:
        out = np.empty(x.shape)
        kernels.affine(a, x, np.zeros(self.dim), *self.layout, out)
        return out

    def _apply_into(self, a: Array, x: Array, out: Array) -> None:
        kernels.affine(a, x, np.zeros(self.dim), *self.layout, out)

    def _squared_row_norms(self, a: Array) -> Array:
        first, middle, last = self._coordinates()
        b = self.blocks(a)
        norms = np.empty(self.dim)
        norms[first] = (b.f**2).sum(axis=1)
        norms[middle] = (b.p_t**2).sum(axis=0) + b.d**2
        norms[last] = (b.x**2).sum(axis=1) + (b.q**2).sum(axis=1) + (b.last**2).sum(axis=1)
        return norms

    def _squared_norm(self, a: Array) -> float:
        return float(a @ a)

    def _affine(self, a: Array, x: Array, offset: Array, out: Array) -> None:
        kernels.affine(a, x, offset, *self.layout, out)

    def _solve(self, a: Array, x: Array) -> Array:
        first, _, last = self._coordinates()
        b = self.blocks(a)
        nonzero_diagonal(b.d)
        out = np.empty(x.shape)
        out[:, first] = linalg.solve_rows(b.f, x[:, first], "a")
        kernels.eliminate(a, x, *self.layout, out)
        out[:, last] = linalg.solve_rows(b.last, out[:, last], "a")
        return out

    def _inverse(self, a: Array) -> Array:
        b = self.blocks(a)
        f, last, d = linalg.inverse(b.f, "a"), linalg.inverse(b.last, "a"), 1.0 / nonzero_diagonal(b.d)
        p_t = -(f.T @ b.p_t) * d  # P' = -D^-1 P F^-1
        q = -(last @ b.q) * d  # Q' = -L^-1 Q D^-1
        x = -(last @ (b.x @ f + b.q @ p_t.T))  # from X F' + Q P' + L X' = 0
        return self._pack(f, p_t, d, q, x, last)

    def _log_abs_det(self, a: Array) -> float:
        b = self.blocks(a)
        with np.errstate(divide="ignore"):
            middle = float(np.log(np.abs(b.d)).sum())
        return middle + linalg.log_abs_det(b.f) + linalg.log_abs_det(b.last)

    def _transpose(self, a: Array) -> Array:
        b = self.blocks(a)
        return self._pack(b.last.T, b.q, b.d, b.p_t, b.x.T, b.f.T)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        out = np.empty(self.size)
        kernels.project(left, right, weights, shift, *self.layout, out)
        return out

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        k = self.layout.k
        f, c, end = self._coordinates()
        ours, theirs = columns[:, :k], columns[:, k:]  # of F's coordinates, and of L's
        return self._pack(ours[f] / 2, ours[c].T, diagonal[c] / 2, theirs[c].T, ours[end], theirs[end] / 2)

    def _from_dense(self, matrix: Array) -> Array:
        f, c, end = self._coordinates()
        diagonal = np.diagonal(matrix)[c]
        return self._pack(matrix[f, f], matrix[c, f].T, diagonal, matrix[end, c], matrix[end, f], matrix[end, end])

    def _coordinates(self) -> tuple[slice, slice, slice]:
        k, mid, q, first, middle, last = self.layout
        return slice(first, first + k), slice(middle, middle + mid), slice(last, last + q)

    def _from_covariance(self, covariance: Array) -> Array:
        """Maximum likelihood, block after block.

        x_f is free, x_c is regressed on x_f with independent residuals, and x_l is regressed on both.
        """
        k, mid, q = self.layout[:3]
        f_at, c_at, end = self._coordinates()
        f = linalg.cholesky(covariance[f_at, f_at])
        p_t = linalg.solve_rows(f, np.ascontiguousarray(covariance[c_at, f_at]), "covariance").T  # P = S_cf F^-T
        d = np.sqrt(np.diagonal(covariance)[c_at] - (p_t**2).sum(axis=0))
        if q == 0:
            return self._pack(f, p_t, d, np.zeros((0, mid)), np.zeros((0, k)), np.zeros((0, 0)))
        before = np.r_[f_at, c_at]
        # coefficients W of x_l on (x_f, x_c); then [X, Q] = W [[F, 0], [P, D]]
        w: Array = np.linalg.solve(covariance[np.ix_(before, before)], covariance[before, end]).T
        residual = covariance[end, end] - w @ covariance[before, end]
        last = linalg.cholesky((residual + residual.T) / 2)
        return self._pack(f, p_t, d, w[:, k:] * d, w[:, :k] @ f + w[:, k:] @ p_t.T, last)


def _check_widths(group: BlockTriangular | Heisenberg, *names: str) -> None:
    """Check the widths of a frozen group and fill in the missing ones."""
    given = [name for name in names if getattr(group, name) is not None]
    for name in given:
        checks.store_whole_number(group, name, most=group.dim)
    free = group.dim - sum(getattr(group, name) for name in given)
    for name in names:
        if name not in given:
            object.__setattr__(group, name, max(0, min(4, group.dim // 2, free)))


@register
@dataclass(frozen=True)
class BlockTriangular(Bordered):
    """A dense block of k hub variables, coupled to all others, which are otherwise independent.

        lower  [[A, 0],       upper  [[A, B],
                [C, D]]               [0, D]]          A is k x k, D diagonal

    It holds (k + 1) dim - k numbers. As a covariance root, lower is "rank k plus diagonal" and upper an arrowhead (a
    precision of rank k plus diagonal). k = 0 is Diagonal, k = dim is Full (Lin et al. 2021, section 4).

    Parameters
    ----------
    dim : int
        Number of rows.
    k : int
        Number of hub variables, which come first; min(4, dim // 2) by default.
    lower : bool
        Whether the matrices are block lower or block upper triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import BlockTriangular
    >>> group = BlockTriangular(4, k=1)
    >>> a = group.from_covariance(np.eye(4) + np.ones((4, 4)))  # one long axis
    >>> (group.dense(a) != 0).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [1, 0, 1, 0],
           [1, 0, 0, 1]])
    """

    k: int = None  # type: ignore[assignment]  # min(4, dim // 2)
    lower: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_widths(self, "k")

    @cached_property
    def layout(self) -> Layout:
        k, dim = self.k, self.dim
        return Layout(k, dim - k, 0, 0, k, dim) if self.lower else Layout(0, dim - k, k, dim, k, 0)

    @property
    def transposed(self) -> BlockTriangular:
        return BlockTriangular(self.dim, self.k, not self.lower)


@register
@dataclass(frozen=True)
class Heisenberg(Bordered):
    """Two dense hubs, one at each end of a diagonal.

        lower  [[A,  0, 0],       upper  [[A, B, C],
                [B,  D, 0],               [0, D, E],
                [C,  E, F]]               [0, 0, F]]

    A is k1 x k1, D diagonal, and F k2 x k2. It holds about (k1 + k2 + 1) dim numbers. k2 = 0 is BlockTriangular(k1)
    (Lin et al. 2021, section 4 and the appendix on the Heisenberg group).

    Parameters
    ----------
    dim : int
        Number of rows.
    k1, k2 : int
        Number of hub variables at the beginning and at the end; min(4, dim // 2) by default, or less if the other hub
        leaves less room.
    lower : bool
        Whether the matrices are block lower or block upper triangular.

    Examples
    --------
    >>> from esgroup.groups import Heisenberg
    >>> group = Heisenberg(1000, k1=4, k2=4)
    >>> group.size, group.dof
    (8976, 8964)
    """

    k1: int = None  # type: ignore[assignment]  # min(4, dim // 2)
    k2: int = None  # type: ignore[assignment]  # min(4, dim // 2)
    lower: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_widths(self, "k1", "k2")
        if self.k1 + self.k2 > self.dim:
            raise ValueError(f"k1 + k2 must be at most dim = {self.dim}, got {self.k1} + {self.k2}")

    @cached_property
    def layout(self) -> Layout:
        k1, k2, mid = self.k1, self.k2, self.dim - self.k1 - self.k2
        if self.lower:
            return Layout(k1, mid, k2, 0, k1, k1 + mid)
        return Layout(k2, mid, k1, k1 + mid, k1, 0)

    @property
    def transposed(self) -> Heisenberg:
        return Heisenberg(self.dim, self.k1, self.k2, not self.lower)
