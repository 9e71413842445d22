"""Groups as a user might add them: they provide only the hooks under "must", and are packed in ways that ours are not.

They show that the hooks under "may" are correct for every group as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.files.objects import register_serial
from esgroup.groups import Group, SingularElementError


def _nonzero(*eigenvalues: float) -> None:
    if 0.0 in eigenvalues:
        raise SingularElementError("a must be invertible, but one of its eigenvalues is 0")


@register_serial
@dataclass(frozen=True)
class Scalar(Group):
    """Multiples a I of the identity: one number, stored once for all entries of the diagonal."""

    dim: int

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)

    @property
    def size(self) -> int:
        return 1

    @property
    def dof(self) -> int:
        return 1

    @property
    def transposed(self) -> Scalar:
        return self

    def _identity(self) -> Array:
        return np.ones(1)

    def _product(self, a: Array, b: Array) -> Array:
        return a * b

    def _apply(self, a: Array, x: Array) -> Array:
        return x * a

    def _solve(self, a: Array, x: Array) -> Array:
        _nonzero(*a)
        return x / a

    def _inverse(self, a: Array) -> Array:
        _nonzero(*a)
        return 1 / a

    def _log_abs_det(self, a: Array) -> float:
        return self.dim * float(np.log(np.abs(a[0]))) if a[0] else -np.inf

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        return np.array([(weights @ np.vecdot(left, right) / self.dim - shift) / 2])  # tr G / (2 dim)

    def _transpose(self, a: Array) -> Array:
        return a.copy()

    def _from_dense(self, matrix: Array) -> Array:
        return matrix[0, :1].copy()


@register_serial
@dataclass(frozen=True)
class Exchangeable(Group):
    """a I + b J with J all ones: entries on the diagonal are sums of two numbers, the others share one.

    For dim = 1 the two numbers describe one entry, so that the packed form of a matrix is not unique.
    """

    dim: int

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)

    @property
    def size(self) -> int:
        return 2

    @property
    def dof(self) -> int:
        return min(2, self.dim)

    @property
    def transposed(self) -> Exchangeable:
        return self

    def _identity(self) -> Array:
        return np.array([1.0, 0.0])

    def _product(self, a: Array, b: Array) -> Array:
        return np.array([a[0] * b[0], a[0] * b[1] + a[1] * b[0] + self.dim * a[1] * b[1]])

    def _apply(self, a: Array, x: Array) -> Array:
        return a[0] * x + a[1] * x.sum(axis=1, keepdims=True)

    def _solve(self, a: Array, x: Array) -> Array:
        return self._apply(self._inverse(a), x)

    def _inverse(self, a: Array) -> Array:
        whole = a[0] + self.dim * a[1]
        _nonzero(a[0], whole)
        return np.array([1 / a[0], -a[1] / (a[0] * whole)])

    def _log_abs_det(self, a: Array) -> float:
        with np.errstate(divide="ignore"):
            one, whole = np.log(np.abs([a[0], a[0] + self.dim * a[1]]))
        return float((self.dim - 1) * one + whole) if self.dim > 1 else float(whole)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        """Half of the mean of G on the diagonal and of its mean off the diagonal."""
        diagonal = weights @ np.vecdot(left, right)
        rest = weights @ (left.sum(axis=1) * right.sum(axis=1)) - diagonal
        b = rest / (self.dim * (self.dim - 1)) / 2 if self.dim > 1 else 0.0
        return np.array([(diagonal / self.dim - shift) / 2 - b, b])

    def _transpose(self, a: Array) -> Array:
        return a.copy()

    def _from_dense(self, matrix: Array) -> Array:
        b = matrix[0, 1] if self.dim > 1 else 0.0
        return np.array([matrix[0, 0] - b, b])
