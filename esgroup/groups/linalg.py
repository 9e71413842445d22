"""Dense solves that refuse singular matrices; shared by the groups that hold dense blocks."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from esgroup.checks import Array


class SingularElementError(ValueError):
    """An element without an inverse was given where one is needed."""


def _factor(matrix: Array, what: str) -> tuple[Array, Array]:
    # LU of the transpose: a C-ordered matrix is its transpose in LAPACK's order, so nothing is copied twice
    lu, pivots, info = lapack.dgetrf(matrix.T)
    if info == 0:
        rcond, _ = lapack.dgecon(lu, np.abs(matrix).sum(axis=1).max(initial=0.0))
    if info != 0 or not rcond >= np.finfo(float).eps / 4:
        size = len(matrix)
        raise SingularElementError(f"{what} must be invertible, but is singular to rounding ({size} x {size} block)")
    return lu, pivots


def solve_rows(matrix: Array, rows: Array, what: str, *, transposed: bool = False) -> Array:
    """Rows y with matrix @ y = row (matrix.T @ y = row if transposed), by LU with a condition estimate."""
    if matrix.size == 0 or rows.size == 0:
        return np.zeros(rows.shape)
    lu, pivots = _factor(matrix, what)
    solution, _ = lapack.dgetrs(lu, pivots, rows.T, trans=0 if transposed else 1)
    return np.ascontiguousarray(solution.T)


def inverse(matrix: Array, what: str) -> Array:
    """The inverse of a dense matrix."""
    return np.ascontiguousarray(solve_rows(matrix, np.eye(len(matrix)), what).T)


def cholesky(covariance: Array) -> Array:
    """The lower triangular root of a positive-definite matrix."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def log_abs_det(matrix: Array) -> float:
    """log|det|, -inf for a singular matrix."""
    return float(np.linalg.slogdet(matrix)[1])
