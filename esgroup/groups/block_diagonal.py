"""Direct sums of groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Group
from esgroup.groups.composed import Composed, part_of


@dataclass(frozen=True)
class BlockDiagonal(Composed):
    """Blocks on the diagonal, each in its own group: variables that form independent parts.

        [[A1,  0],
         [ 0, A2]]

    Parameters
    ----------
    groups : sequence of Group
        The groups of the blocks, from the first variable to the last. A matrix is packed block by block.

    Examples
    --------
    >>> from esgroup.groups import BlockDiagonal, Diagonal, Full
    >>> group = BlockDiagonal([Full(2), Diagonal(3)])
    >>> group.dense(group.identity()).shape, group.size
    ((5, 5), 7)
    """

    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Iterable):
            raise TypeError(f"groups must be a sequence of groups, got {self.groups!r}")
        object.__setattr__(self, "groups", tuple(self.groups))
        if not self.groups:
            raise ValueError("groups must hold at least one group, got none")
        for i, group in enumerate(self.groups):
            part_of(f"groups[{i}]", group)

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        return sum(g.dim for g in self.groups)

    @property
    def parts(self) -> tuple[Group, ...]:
        return self.groups

    @property
    def transposed(self) -> BlockDiagonal:
        return BlockDiagonal(tuple(g.transposed for g in self.groups))

    @cached_property
    def _starts(self) -> list[int]:
        """First coordinate of each block, followed by dim."""
        return [0, *np.cumsum([g.dim for g in self.groups]).tolist()]

    def _columns(self, x: Array) -> list[Array]:
        return [np.ascontiguousarray(x[:, i:j]) for i, j in zip(self._starts, self._starts[1:], strict=False)]

    def _act(self, hook: str, a: Array, x: Array) -> Array:
        parts = zip(self.groups, self.blocks(a), self._columns(x), strict=True)
        return np.concatenate([getattr(g, hook)(block, column) for g, block, column in parts], axis=1)

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        zs = self._columns(z)
        ys = [None] * len(zs) if images is None else self._columns(images)
        parts = zip(self.groups, self.blocks(a), zs, ys, strict=True)
        moved = [g._product_h_samples(block, x, weights, shift, y, None) for g, block, x, y in parts]
        return np.concatenate(moved, out=out)

    def _squared_row_norms(self, a: Array) -> Array:
        return self._each("_squared_row_norms", a)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        lefts = self._columns(left)
        rights = lefts if right is left else self._columns(right)
        parts = zip(self.groups, lefts, rights, strict=True)
        return np.concatenate([g._project(x, y, weights, shift) for g, x, y in parts])

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        hubs = [g.hub + start for g, start in zip(self.groups, self._starts, strict=False)]
        return checks.read_only(np.concatenate(hubs))

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        parts, at = [], 0
        for g, i, j in zip(self.groups, self._starts, self._starts[1:], strict=False):
            width = len(g.hub)
            own = np.ascontiguousarray(columns[i:j, at : at + width])
            parts.append(g._project_columns(own, diagonal[i:j].copy()))
            at += width
        return np.concatenate(parts)

    def _dense_local(self, m: Array) -> Array:
        out = np.zeros((self.dim, self.dim))
        for g, block, i in zip(self.groups, self.blocks(m), self._starts, strict=False):
            out[i : i + g.dim, i : i + g.dim] = g._dense_local(block)
        return out

    def _of_blocks(self, hook: str, matrix: Array) -> Array:
        parts = zip(self.groups, self._starts, self._starts[1:], strict=False)
        return np.concatenate([getattr(g, hook)(np.ascontiguousarray(matrix[i:j, i:j])) for g, i, j in parts])

    def _from_dense(self, matrix: Array) -> Array:
        return self._of_blocks("_from_dense", matrix)

    def _from_covariance(self, covariance: Array) -> Array:
        return self._of_blocks("_from_covariance", covariance)
