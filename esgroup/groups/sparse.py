"""Matrices that are zero outside a sparse pattern, for variables known to influence few others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Group
from esgroup.groups.linalg import SingularElementError
from esgroup.kernels import sparse as kernels
from esgroup.lazy import Lazy

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = Lazy("scipy.sparse")

Index = NDArray[np.int64]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Sparse(Group):
    """Matrices that are zero outside a pattern that is a preorder: with (i, j) and (j, k) it contains (i, k).

        [[a, 0, 0, 0],
         [0, b, c, 0],
         [0, d, e, 0],
         [0, f, g, h]]

    Here (1, 2) and (2, 1) are both in the pattern: {1, 2} is a class, with a dense block, and (3, 1) requires (3, 2).
    The pattern contains the diagonal. These matrices are the units of the pattern's incidence algebra; products of
    matrices of any other pattern (a band, for example) leave it, and `close=True` completes it. C is 1/2 where (i, j)
    and (j, i) are in the pattern, 1 where only (i, j) is (Lin et al. 2021, section 4). The pattern of the identity
    gives Diagonal, that of all ones gives Full. A matrix is packed row by row, sorted by column.

    Parameters
    ----------
    pattern : array or scipy.sparse array, shape (dim, dim)
        Booleans, or 0 and 1.
    close : bool
        Whether to complete a pattern that is not a preorder; otherwise it is an error.

    Raises
    ------
    ValueError
        If the pattern is not a preorder and `close` is False; the message lists missing entries.

    Examples
    --------
    >>> from esgroup.groups import Sparse
    >>> # variable 1 depends on 0, and 2 on 1, hence on 0
    >>> group = Sparse.from_edges(4, [(1, 0), (2, 1)], close=True)
    >>> group.size
    7
    """

    dim: int
    indptr: Index
    indices: Index

    def __init__(self, pattern: Any, close: bool = False) -> None:
        self._set((_closure if checks.flag("close", close) else _closed)(_boolean(pattern)))

    @classmethod
    def from_edges(cls, dim: int, edges: Any, close: bool = False) -> Sparse:
        """Return the group of a pattern given by its entries.

        Parameters
        ----------
        dim : int
            Number of rows.
        edges : iterable of pairs of int
            Row and column of each entry; the diagonal is always part of the pattern and can be omitted.
        close : bool
            Whether to complete a pattern that is not a preorder.
        """
        dim = checks.whole_number("dim", dim, least=1)
        if not isinstance(edges, Iterable):
            raise TypeError(f"edges must be pairs (row, column), got {edges!r}")
        pairs = checks.real_array("edges", list(edges) or np.zeros((0, 2)), (None, 2))
        wrong = ((pairs < 0) | (pairs >= dim) | (pairs % 1 != 0)).any(axis=1)
        if wrong.any():
            (i, j), at = pairs[wrong][0], int(wrong.argmax())
            raise ValueError(f"edges must be pairs of integers from 0 to {dim - 1}, got ({i:.9g}, {j:.9g}) at {at}")
        entries = np.ones(len(pairs), dtype=bool), tuple(pairs.T.astype(np.int64))
        return cls(_with_diagonal(sparse.csr_array(entries, shape=(dim, dim))), close)

    def _set(self, pattern: sparse.csr_array) -> None:
        pattern.sort_indices()
        object.__setattr__(self, "dim", pattern.shape[0])
        for name in ("indptr", "indices"):
            object.__setattr__(self, name, checks.read_only(getattr(pattern, name).astype(np.int64)))

    @property
    def pattern(self) -> sparse.csr_array:
        """The pattern, as a new boolean CSR array."""
        ones = np.ones(self.size, dtype=bool)
        return sparse.csr_array((ones, self.indices, self.indptr), shape=(self.dim, self.dim), copy=True)

    def __repr__(self) -> str:
        return f"Sparse(dim={self.dim}, nonzeros={self.size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.pattern,)  # a pickled array would not stay read-only

    @property
    def size(self) -> int:
        return len(self.indices)

    @property
    def dof(self) -> int:
        return self.size - int(self._mutual.sum() - self.dim) // 2  # an entry and its mirror image are one number

    @cached_property
    def transposed(self) -> Sparse:
        group = object.__new__(Sparse)
        group._set(self.pattern.T.tocsr())
        return group

    @cached_property
    def _rows(self) -> Index:
        return np.repeat(np.arange(self.dim), np.diff(self.indptr))

    @cached_property
    def gathered(self) -> int:
        one_way = np.add.reduceat(~self._mutual, self.indptr[:-1], dtype=np.int64)
        return int(one_way.max())

    def _squared_row_norms(self, a: Array) -> Array:
        return np.add.reduceat(a * a, self.indptr[:-1])  # no row is empty

    def _squared_norm(self, a: Array) -> float:
        return float(a @ a)

    @cached_property
    def _mutual(self) -> NDArray[np.bool_]:
        """Whether the mirror image of an entry is in the pattern as well: these entries form the dense blocks."""
        return np.isin(self.indices * self.dim + self._rows, self._rows * self.dim + self.indices)

    @cached_property
    def _classes(self) -> tuple[Index, Index, Index]:
        """The places of the dense blocks, and the coordinates class by class, each after those its rows refer to."""
        inside = np.flatnonzero(self._mutual)
        inside_ptr = np.searchsorted(inside, self.indptr)
        first = self.indices[inside[inside_ptr[:-1]]]  # the first coordinate of each coordinate's class
        # a row that contains j contains all of row j, so that later classes have longer rows
        return inside_ptr, inside, np.lexsort((first, np.diff(self.indptr)))

    @cached_property
    def _flip(self) -> Index:
        return np.argsort(self.indices, kind="stable")  # packed places in the order of the transpose

    @cached_property
    def hub(self) -> Index:
        """A vertex cover of the pattern's graph: all classes of several coordinates, then others greedily.

        A class is contained as a whole: with one column less, a block like [[0, 1], [1, 0]] would not span e_j.
        """
        covered = np.diff(self._classes[0]) > 1
        loose = ~(covered[self._rows] | covered[self.indices] | (self._rows == self.indices))
        both = np.concatenate([self._rows[loose], self.indices[loose]])
        ends = np.concatenate([self.indices[loose], self._rows[loose]])
        degree = np.bincount(both, minlength=self.dim)
        neighbors = np.split(ends[np.argsort(both, kind="stable")], np.cumsum(degree)[:-1])
        i = int(degree.argmax())
        while degree[i] > 0:  # one pass for each column of the hub, which is cheap compared to using them
            covered[i], degree[i] = True, 0
            degree[neighbors[i]] -= 1
            i = int(degree.argmax())
        return checks.read_only(np.flatnonzero(covered))

    def _identity(self) -> Array:
        return np.where(self._rows == self.indices, 1.0, 0.0)

    def _product(self, a: Array, b: Array) -> Array:
        out = np.empty(self.size)
        kernels.product(a, b, self.indptr, self.indices, out)
        return out

    def _apply(self, a: Array, x: Array) -> Array:
        out = np.empty(x.shape)
        kernels.apply(a, self.indptr, self.indices, x, out)
        return out

    def _invert_blocks(self, a: Array) -> tuple[Array, Array, Array]:
        blocks, log_dets, rconds = np.zeros(self.size), np.zeros(self.dim), np.ones(self.dim)
        kernels.invert_blocks(a, self.indptr, self.indices, *self._classes[:2], blocks, log_dets, rconds)
        return blocks, log_dets, rconds

    def _regular_blocks(self, a: Array) -> Array:
        """The inverses of the dense blocks, in packed form."""
        blocks, _, rconds = self._invert_blocks(a)
        regular = rconds >= np.finfo(float).eps / 4  # as in linalg; False for NaN
        if not regular.all():
            i, m = regular.argmin(), np.diff(self._classes[0])[regular.argmin()]
            raise SingularElementError(f"a must be invertible, but the {m} x {m} block of coordinate {i} is singular")
        return blocks

    def _solve(self, a: Array, x: Array) -> Array:
        out = np.empty(x.shape)
        kernels.solve(a, self._regular_blocks(a), self.indptr, self.indices, *self._classes, x, out)
        return out

    def _inverse(self, a: Array) -> Array:
        out = np.empty(self.size)
        kernels.inverse(a, self._regular_blocks(a), self.indptr, self.indices, *self._classes, out)
        return out

    def _log_abs_det(self, a: Array) -> float:
        return float(self._invert_blocks(a)[1].sum())

    def _transpose(self, a: Array) -> Array:
        return a[self._flip]

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        out = np.empty(self.size)
        kernels.project(left, right, weights, shift, self.indptr, self.indices, 1.0 - 0.5 * self._mutual, out)
        return out

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        at = np.full(self.dim, -1)  # -1 is the diagonal, as one more column
        at[self.hub] = np.arange(len(self.hub))
        # X is symmetric: X_ij is in column j or in column i
        i, j = np.where(at[self.indices] >= 0, (self._rows, self.indices), (self.indices, self._rows))
        out: Array = np.column_stack([columns, diagonal])[i, at[j]]
        return np.where(self._mutual, 0.5 * out, out)

    def _dense(self, a: Array) -> Array:
        out = np.zeros((self.dim, self.dim))
        out[self._rows, self.indices] = a
        return out

    def _from_dense(self, matrix: Array) -> Array:
        return matrix[self._rows, self.indices]

    def _from_covariance(self, covariance: Array) -> Array:
        """Maximum likelihood: each class c is regressed on all S that it depends on.

        x_c = W x_S + residual, and A_cS = W A_SS.
        """
        a = np.zeros((self.dim, self.dim))
        for i in self._classes[2]:
            row = slice(self.indptr[i], self.indptr[i + 1])
            c, s = self.indices[row][self._mutual[row]], self.indices[row][~self._mutual[row]]
            if c[0] == i:  # once per class
                cross = covariance[np.ix_(s, c)]
                w = np.linalg.solve(covariance[np.ix_(s, s)], cross).T
                residual = covariance[np.ix_(c, c)] - w @ cross
                a[np.ix_(c, s)] = w @ a[np.ix_(s, s)]
                a[np.ix_(c, c)] = np.linalg.cholesky((residual + residual.T) / 2)
        return self._from_dense(a)


def _boolean(pattern: Any) -> sparse.csr_array:
    """`pattern` as a new boolean CSR array without stored zeros."""
    given = isinstance(pattern, np.ndarray) or sparse.issparse(pattern)
    matrix = pattern if given else checks.real_array("pattern", pattern, (None, None))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"pattern must have shape (dim, dim) with dim >= 1, got {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"pattern must hold booleans or 0 and 1, got dtype {matrix.dtype}")
    matrix = sparse.csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (matrix.data == 1).all():
        raise ValueError(f"pattern must hold booleans or 0 and 1, got {matrix.data[matrix.data != 1][0]:g}")
    return matrix.astype(bool)


def _with_diagonal(pattern: sparse.csr_array) -> sparse.csr_array:
    return pattern + sparse.eye_array(pattern.shape[0], dtype=bool, format="csr")  # "or", for booleans


def _closure(pattern: sparse.csr_array) -> sparse.csr_array:
    """The smallest closed pattern that contains this one: paths of at most 1, 2, 4, ... edges."""
    closed = _with_diagonal(pattern)
    while (longer := closed @ closed).nnz > closed.nnz:
        closed = longer
    return closed


def _closed(pattern: sparse.csr_array) -> sparse.csr_array:
    """Return the pattern; ValueError if it lacks a diagonal entry or an entry of a product of two of its matrices."""
    reached, named, count = _with_diagonal(pattern), list[str](), 0
    step = 1 + 10**7 // pattern.shape[0]  # rows at a time: an open pattern may reach all dim^2 entries
    for start in range(0, pattern.shape[0], step):
        some = slice(start, start + step)
        rows, columns = (reached[some] @ reached > pattern[some]).sorted_indices().nonzero()
        named += [f"({i + start}, {j})" for i, j in zip(rows[:5], columns[:5], strict=True)]
        count += len(rows)
    if count:
        wanted = "pattern must contain the diagonal and, with (i, j) and (j, k), also (i, k)"
        first = ", ".join(named[:5]) + (", ..." if count > 5 else "")
        raise ValueError(f"{wanted}, but lacks at least {count} of these: {first}; close=True completes it")
    return pattern
