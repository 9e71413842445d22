"""All invertible matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esgroup.checks import Array
from esgroup.groups import linalg
from esgroup.groups.base import Sized
from esgroup.groups.hooks import check_samples_bounded
from esgroup.groups.spelling import register
from esgroup.kernels import full as kernels
from esgroup.lazy import blas

_LOOPED = 200  # measured, rows A z_i: the loop takes 15 us at d = 100 and 45 at 200, BLAS 18 and 56; 630 to 625 at 640
_SMALL = 48  # measured: the loop takes 2.0 us at d = 10 and 6.9 at 40, BLAS 6.5 and 9.4; at 64 it is 13.1 to 11.1


@register
@dataclass(frozen=True)
class Full(Sized):
    """Any invertible matrix.

        [[a, b],
         [c, d]]

    With symmetric local steps, C = J/2, this is xNES (Glasmachers et al. 2010). A matrix is packed row by row.

    Parameters
    ----------
    dim : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.groups import Full
    >>> group = Full(2)
    >>> a = group.from_covariance(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> np.round(group.dense(a) @ group.dense(a).T, 6)
    array([[2., 1.],
           [1., 2.]])
    """

    uses_images = True
    carries_inverse = True

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
        _add_product(self._square(out), 1.0 - 0.5 * shift + 0.125 * shift**2, y, core @ weighted, 0.125)
        return out

    def _flow(self, z: Array, weights: Array, shift: float) -> Array:
        """((1 - s) I + sum_i w_i z_i z_i^T)^(1/2), the symmetric root: local coordinates turn as little as possible."""
        check_samples_bounded(z, weights, shift)
        values, vectors = np.linalg.eigh(linalg.moments(z, weights, shift))
        return ((vectors * np.sqrt(values)) @ vectors.T).ravel()

    def _step_with_inverse(
        self, a: Array, inverse: Array, z: Array, images: Array, pulled: Array, weights: Array, shift: float
    ) -> None:
        """A h(M) = alpha A + Y^T K Z as above, and h(M)^-1 = (I - Z^T S Z) / alpha with S = (alpha I + K Z Z^T)^-1 K.

        The second is Woodbury's identity; S is symmetric.
        """
        check_samples_bounded(z, weights, shift)
        if len(z) > max(32, 2 * self.dim):  # M is cheaper than matrices of samples by samples
            step = self._square(self._h(self._project(z, z, weights, shift)))
            a[:] = (self._square(a) @ step).ravel()
            inverse[:] = np.linalg.solve(step, self._square(inverse)).ravel()  # h(M) is positive definite
            return
        up, down = np.empty((2, len(z), len(z)))
        kernels.cores(z, weights, shift, up, down)
        keep = 1.0 - 0.5 * shift + 0.125 * shift**2
        _add_product(self._square(a), keep, images, up @ z, 1.0)
        _add_product(self._square(inverse), 1.0 / keep, z, down @ pulled, -1.0 / keep)

    def _place(
        self, frame: int, a: Array, path: Array, mean: Array, sigma: Array, scale: Array, z: Array, y: Array, x: Array
    ) -> None:
        if self.dim > _LOOPED:
            super()._place(frame, a, path, mean, sigma, scale, z, y, x)
        else:
            kernels.place(frame, a, path, mean, sigma, scale, z, y, x)

    def _squared_row_norms(self, a: Array) -> Array:
        square = self._square(a)
        return np.vecdot(square, square)

    def _squared_norm(self, a: Array) -> float:
        return float(a @ a)

    def _squared_column_norms(self, a: Array) -> Array:
        square = self._square(a)
        return np.einsum("ij,ij->j", square, square)

    def _from_dense(self, matrix: Array) -> Array:
        return matrix.ravel().copy()

    def _from_covariance(self, covariance: Array) -> Array:
        return linalg.cholesky(covariance).ravel()


def _add_product(square: Array, keep: float, left: Array, right: Array, factor: float) -> None:
    """square <- keep square + factor left^T right, in place; BLAS sees the transposes."""
    blas.dgemm(factor, right.T, left.T, beta=keep, c=square.T, trans_b=True, overwrite_c=True)
