"""The common base of groups made of other groups: elements are packed part by part."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from esgroup.checks import Array
from esgroup.groups.base import Group


class Composed(Group):
    """Matrices made of one matrix for each part, with products taken part by part.

    Degrees of freedom, squared norms and logarithms of determinants are sums over the parts, as for a direct sum.
    """

    @property
    @abstractmethod
    def parts(self) -> tuple[Group, ...]:
        """The groups of the parts."""

    @abstractmethod
    def _act(self, hook: str, a: Array, x: Array) -> Array:
        """The rows that a hook like `_apply` or `_solve` returns, from the results of the parts' hooks."""

    @cached_property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def dof(self) -> int:
        return sum(part.dof for part in self.parts)

    @property
    def gathered(self) -> int:
        return max(part.gathered for part in self.parts)

    @cached_property
    def uses_images(self) -> bool:  # type: ignore[override]
        return any(part.uses_images for part in self.parts)

    @cached_property
    def _slices(self) -> list[slice]:
        ends = np.cumsum([part.size for part in self.parts]).tolist()
        return [slice(end - part.size, end) for part, end in zip(self.parts, ends, strict=True)]

    def blocks(self, a: Array) -> list[Array]:
        """Return the packed parts of an element, as views."""
        return [a[own] for own in self._slices]

    def _each(self, hook: str, *elements: Array) -> Array:
        """Call a hook that maps packed elements to a packed element on every part; concatenate the results."""
        own = zip(self.parts, *(self.blocks(a) for a in elements), strict=True)
        return np.concatenate([getattr(part, hook)(*blocks) for part, *blocks in own])

    def _total(self, hook: str, a: Array) -> float:
        return sum(getattr(part, hook)(block) for part, block in zip(self.parts, self.blocks(a), strict=True))

    def _identity(self) -> Array:
        return self._each("_identity")

    def _local_identity(self) -> Array:
        return self._each("_local_identity")

    def _product(self, a: Array, b: Array) -> Array:
        return self._each("_product", a, b)

    def _inverse(self, a: Array) -> Array:
        return self._each("_inverse", a)

    def _transpose(self, a: Array) -> Array:
        return self._each("_transpose", a)

    def _h(self, m: Array) -> Array:
        return self._each("_h", m)

    def _exp(self, m: Array) -> Array:
        return self._each("_exp", m)

    def _product_h(self, a: Array, m: Array) -> Array:
        return self._each("_product_h", a, m)

    def _scale(self, a: Array, factor: float) -> Array:
        scaled = zip(self.parts, self.blocks(a), strict=True)
        return np.concatenate([part._scale(block, factor) for part, block in scaled])

    def _squared_norm(self, a: Array) -> float:
        return self._total("_squared_norm", a)

    def _squared_local_norm(self, m: Array) -> float:
        return self._total("_squared_local_norm", m)

    def _log_abs_det(self, a: Array) -> float:
        return self._total("_log_abs_det", a)

    def _apply(self, a: Array, x: Array) -> Array:
        return self._act("_apply", a, x)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        return self._act("_apply_transposed", a, x)

    def _solve(self, a: Array, x: Array) -> Array:
        return self._act("_solve", a, x)

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        return self._act("_solve_transposed", a, x)


def part_of(name: str, group: Group) -> Group:
    """Return a group to build another one from: TypeError if it is not a group, ValueError if it follows a search."""
    if not isinstance(group, Group):
        raise TypeError(f"{name} must be a group, got {group!r}")
    if group.follows:
        raise ValueError(f"{name} must be a group with a projection, got {group}, whose directions follow a search")
    return group
