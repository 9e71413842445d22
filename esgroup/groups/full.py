"""All invertible matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import linalg
from esgroup.groups.base import Group
from esgroup.groups.hooks import check_samples_bounded
from esgroup.groups.spelling import register
from esgroup.kernels import full as kernels
from esgroup.lazy import blas

_SMALL = 48  # measured: the loop takes 2.0 us at d = 10 and 6.9 at 40, BLAS 6.5 and 9.4; at 64 it is 13.1 to 11.1


@register
@dataclass(frozen=True)
class Full(Group):
    """Any invertible matrix.

        [[a, b],
         [c, d]]

    With symmetric local steps, C = J/2, this is xNES (Glasmachers et al. 2010).
    """

    dim: int
    uses_images = True
    carries_inverse = True

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "dim", least=1)

    @property
    def size(self) -> int:
        return self.dim**2

    @property
    def dof(self) -> int:
        return self.dim * (self.dim + 1) // 2

    @property
    def transposed(self) -> Full:
        return self

    def _square(self, a: Array) -> Array:
        return a.reshape(self.dim, self.dim)

    def _identity(self) -> Array:
        return np.eye(self.dim).ravel()

    def _product(self, a: Array, b: Array) -> Array:
        return (self._square(a) @ self._square(b)).ravel()

    def _apply(self, a: Array, x: Array) -> Array:
        return x @ self._square(a).T

    def _apply_into(self, a: Array, x: Array, out: Array) -> None:
        np.matmul(x, self._square(a).T, out=out)

    def _apply_transposed(self, a: Array, x: Array) -> Array:
        return x @ self._square(a)

    def _solve(self, a: Array, x: Array) -> Array:
        return linalg.solve_rows(self._square(a), x, "a")

    def _solve_transposed(self, a: Array, x: Array) -> Array:
        return linalg.solve_rows(self._square(a), x, "a", transposed=True)

    def _inverse(self, a: Array) -> Array:
        return linalg.inverse(self._square(a), "a").ravel()

    def _log_abs_det(self, a: Array) -> float:
        return linalg.log_abs_det(self._square(a))

    def _transpose(self, a: Array) -> Array:
        return self._square(a).T.flatten()

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        m = left.T @ (right * (0.5 * weights)[:, None])
        m.ravel()[:: self.dim + 1] -= 0.5 * shift
        return m.ravel()

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        """A h(M) for M = (Z^T W Z - s I)/2 of rank n plus identity, without forming M or any d x d x d product.

        M^2 = (Z^T W (Z Z^T) W Z - 2 s Z^T W Z + s^2 I)/4, so that A h(M) = (1 - s/2 + s^2/8) A + Y^T K Z with
        Y = Z A^T and K = (1/2 - s/4) W + W Z Z^T W / 8: one gemm, in place.
        """
        check_samples_bounded(z, weights, shift)
        small = self.dim <= _SMALL and len(z) <= 2 * _SMALL
        if len(z) > self.dim and not small:  # M is no longer of low rank
            return super()._product_h_samples(a, z, weights, shift, images, out)
        y = self._apply(a, z) if images is None else images
        if small:
            out = np.empty(self.size) if out is None else out
            kernels.product_h_samples(a, z, y, weights, shift, out)
            return out
        if out is None:
            out = a.copy()
        elif out is not a:
            out[:] = a
        weighted = z * weights[:, None]
        core = weighted @ z.T  # 8 K = (W Z Z^T + (4 - 2 s) I) W
        core.ravel()[:: len(z) + 1] += 4.0 - 2.0 * shift
        keep = 1.0 - 0.5 * shift + 0.125 * shift**2
        # BLAS sees the transposes: A^T <- keep A^T + (K Z)^T Y
        blas.dgemm(0.125, (core @ weighted).T, y.T, beta=keep, c=self._square(out).T, trans_b=True, overwrite_c=True)
        return out

    def _inverse_h_samples(self, inverse: Array, z: Array, pulled: Array, weights: Array, shift: float) -> None:
        """h(M)^-1 = (I - Z^T S Z) / alpha for h(M) = alpha I + Z^T K Z, with S = (alpha I + K Z Z^T)^-1 K (Woodbury).

        alpha and K are those of `_product_h_samples`; S is symmetric.
        """
        gram = z @ z.T
        core = gram * (0.125 * np.outer(weights, weights))
        core.ravel()[:: len(z) + 1] += (0.5 - 0.25 * shift) * weights
        keep = 1.0 - 0.5 * shift + 0.125 * shift**2
        left = core @ gram
        left.ravel()[:: len(z) + 1] += keep
        right = np.linalg.solve(left, core) @ pulled
        square = self._square(inverse)
        blas.dgemm(-1.0 / keep, right.T, z.T, beta=1.0 / keep, c=square.T, trans_b=True, overwrite_c=True)

    def _squared_row_norms(self, a: Array) -> Array:
        square = self._square(a)
        norms: Array = np.vecdot(square, square)
        return norms

    def _squared_column_norms(self, a: Array) -> Array:
        square = self._square(a)
        norms: Array = np.einsum("ij,ij->j", square, square)
        return norms

    def _from_dense(self, matrix: Array) -> Array:
        return matrix.ravel().copy()

    def _from_covariance(self, covariance: Array) -> Array:
        return linalg.cholesky(covariance).ravel()
