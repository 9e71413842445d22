"""Diagonal matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups.base import Sized
from esgroup.groups.linalg import SingularElementError
from esgroup.groups.spelling import register
from esgroup.kernels import diagonal as kernels


@register
@dataclass(frozen=True)
class Diagonal(Sized):
    """Diagonal matrices: every variable has its own scale.

        [[a1,  0,  0],
         [ 0, a2,  0],
         [ 0,  0, a3]]

    Parameters
    ----------
    dim : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import Diagonal
    >>> group = Diagonal(3)
    >>> group.apply(group.from_covariance(np.diag([4.0, 9.0, 16.0])), np.ones(3))
    array([2., 3., 4.])
    """

    @property
    def size(self) -> int:
        return self.dim

    @property
    def dof(self) -> int:
        return self.dim

    @property
    def transposed(self) -> Diagonal:
        return self

    @cached_property
    def hub(self) -> NDArray[np.int64]:
        return checks.read_only(np.arange(0))

    def _identity(self) -> Array:
        return np.ones(self.dim)

    def _product(self, a: Array, b: Array) -> Array:
        return a * b

    def _apply(self, a: Array, x: Array) -> Array:
        return x * a

    def _affine(self, a: Array, x: Array, offset: Array, out: Array) -> None:
        kernels.affine(a, x, offset, out)

    def _apply_into(self, a: Array, x: Array, out: Array) -> None:
        np.multiply(x, a, out=out)

    def _squared_row_norms(self, a: Array) -> Array:
        return a * a

    def _squared_norm(self, a: Array) -> float:
        return float(a @ a)

    def _solve(self, a: Array, x: Array) -> Array:
        return x / nonzero_diagonal(a)

    def _inverse(self, a: Array) -> Array:
        return 1.0 / nonzero_diagonal(a)

    def _log_abs_det(self, a: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(np.abs(a)).sum())

    def _transpose(self, a: Array) -> Array:
        return a.copy()

    def _h(self, m: Array) -> Array:
        return 1.0 + m * (1.0 + 0.5 * m)

    def _flow(self, z: Array, weights: Array, shift: float) -> Array:
        """sqrt(1 - s + sum_i w_i z_ij^2) for every coordinate j."""
        return np.sqrt(1.0 + 2.0 * self._project(z, z, weights, shift))

    def _exp(self, m: Array) -> Array:
        return np.exp(m)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        half = np.empty(self.dim)
        kernels.project(left, right, weights, shift, half)
        return half

    def _project_columns(self, columns: Array, diagonal: Array) -> Array:
        return 0.5 * diagonal

    def _from_dense(self, matrix: Array) -> Array:
        return np.diagonal(matrix).copy()

    def _from_covariance(self, covariance: Array) -> Array:
        return np.sqrt(np.diagonal(covariance))


def nonzero_diagonal(a: Array) -> Array:
    """Return the diagonal `a`; SingularElementError if an entry is 0."""
    if not a.all():
        raise SingularElementError(f"a must be invertible, but its diagonal entry {int(np.argmin(np.abs(a)))} is 0")
    return a
