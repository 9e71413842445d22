"""Groups in rotated or reordered coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Group
from esgroup.groups.composed import Composed, part_of


@dataclass(frozen=True, eq=False, repr=False)
class Conjugate(Composed):
    """Q A' Q^T with A' in `group` and a fixed orthogonal Q: the same structure in rotated or reordered coordinates.

    An element is packed as A'. Since Q is orthogonal, the Fisher matrix keeps its form,
    C (.) kappa(G) = Q C' (.) kappa'(Q^T G Q) Q^T; for any other similarity transformation it would not.

    Parameters
    ----------
    group : Group
        The group of A'.
    by : array
        Q as an orthogonal matrix, or a permutation as a vector of integers: its i-th entry is the variable that `group`
        sees as its i-th, so Conjugate(BlockTriangular(10, k=2), [7, 3, ...]) has variables 7 and 3 as its hub.

    Examples
    --------
    >>> from esgroup.groups import BlockTriangular, Conjugate
    >>> hub = BlockTriangular(4, k=1)
    >>> group = Conjugate(hub, [2, 0, 1, 3])  # variable 2 is the hub
    >>> group.dim, group.size
    (4, 7)
    """

    group: Group
    by: NDArray[Any]

    def __post_init__(self) -> None:
        part_of("group", self.group)
        by = np.asarray(self.by)
        by = _orthogonal(self.by, self.group.dim) if by.ndim == 2 else _permutation(by, self.group.dim)
        object.__setattr__(self, "by", checks.read_only(by))

    def __repr__(self) -> str:
        kind = "permutation" if self._permutes else "orthogonal matrix"
        return f"Conjugate({self.group!r}, by {kind})"

    @property
    def _permutes(self) -> bool:
        return self.by.ndim == 1

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.group.dim

    @property
    def parts(self) -> tuple[Group, ...]:
        return (self.group,)

    @property
    def transposed(self) -> Conjugate:
        return Conjugate(self.group.transposed, self.by)

    def _inward(self, x: Array) -> Array:
        """Rows Q^T x_i."""
        return np.ascontiguousarray(x[:, self.by]) if self._permutes else x @ self.by

    def _outward(self, x: Array) -> Array:
        """Rows Q x_i."""
        return np.ascontiguousarray(x[:, self._back]) if self._permutes else x @ self.by.T

    @cached_property
    def _back(self) -> NDArray[np.int64]:
        return np.argsort(self.by)

    def _both_inward(self, matrix: Array) -> Array:
        """Q^T X Q."""
        return np.ascontiguousarray(self._inward(np.ascontiguousarray(self._inward(matrix).T)).T)

    def _act(self, hook: str, a: Array, x: Array) -> Array:
        return self._outward(getattr(self.group, hook)(a, self._inward(x)))

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        images = self._inward(images) if images is not None and self.group.uses_images else None
        return self.group._product_h_samples(a, self._inward(z), weights, shift, images, out)

    def _squared_row_norms(self, a: Array) -> Array:
        if self._permutes:
            return self.group._squared_row_norms(a)[self._back]
        rows = self.group._apply_transposed(a, self.by)  # of Q A'
        return np.vecdot(rows, rows)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        inner = self._inward(left)
        return self.group._project(inner, inner if right is left else self._inward(right), weights, shift)

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        # a rotation mixes all coordinates: the diagonal of Q^T X Q depends on all of X
        return checks.read_only(self.by[self.group.hub] if self._permutes else np.arange(self.dim))

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        if self._permutes:
            return self.group._project_columns(np.ascontiguousarray(columns[self.by]), diagonal[self.by])
        return self.group._project_dense(self._both_inward(columns))

    def _dense_local(self, m: Array) -> Array:
        outward = self._outward(self.group._dense_local(m))  # M' Q^T
        return np.ascontiguousarray(self._outward(np.ascontiguousarray(outward.T)).T)

    def _from_dense(self, matrix: Array) -> Array:
        return self.group._from_dense(self._both_inward(matrix))

    def _from_covariance(self, covariance: Array) -> Array:
        inner = self._both_inward(covariance)
        return self.group._from_covariance((inner + inner.T) / 2)


def _orthogonal(by: Any, dim: int) -> Array:
    q = checks.real_array("by", by, (dim, dim)) + 0.0  # a copy, without -0.0
    gap = np.abs(q.T @ q - np.eye(dim)).max()
    if gap > 1e-12:
        raise ValueError(f"by must be orthogonal, but by.T @ by differs from the identity by {gap:.3g}")
    return q


def _permutation(by: NDArray[Any], dim: int) -> NDArray[np.int64]:
    if by.dtype.kind not in "iu" or by.shape != (dim,) or not np.array_equal(np.sort(by), np.arange(dim)):
        wanted = f"an orthogonal ({dim}, {dim}) matrix or a permutation of 0 ... {dim - 1}"
        raise ValueError(f"by must be {wanted}, got an array of shape {by.shape} and dtype {by.dtype}")
    return by.astype(np.int64)
