"""Dense linear algebra for the groups: solves that reject singular matrices, and the geometric mean."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array
from esgroup.lazy import lapack


class SingularElementError(ValueError):
    """Raised if an inverse is needed but an element has none."""


class _Factors(NamedTuple):
    """LU factors of R M C in LAPACK's order; the diagonal R and C are powers of two that bring its entries near 1."""

    lu: Array
    pivots: Array
    rows: Array
    columns: Array


def _factor(matrix: Array, what: str) -> _Factors:
    rows = _scales(matrix, axis=1)
    scaled = matrix * rows[:, None]
    columns = _scales(scaled, axis=0)
    scaled *= columns
    norm = np.abs(scaled).sum(axis=1).max(initial=0.0)
    # LU of the transpose, in place: a C-ordered matrix is its transpose in LAPACK's order
    lu, pivots, info = lapack.dgetrf(scaled.T, overwrite_a=True)
    if info == 0:
        rcond, _ = lapack.dgecon(lu, norm)
    if info != 0 or not rcond >= np.finfo(float).eps / 4:
        size = len(matrix)
        raise SingularElementError(f"{what} must be invertible, but is singular to rounding ({size} x {size} block)")
    return _Factors(lu, pivots, rows, columns)


def _scales(matrix: Array, axis: int) -> Array:
    """Powers of two that bring the largest entry of each row or column near 1.

    Scaling by them is exact, and makes the test for singularity independent of the units of the coordinates.
    """
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.exp2(-np.rint(np.log2(np.where(largest > 0, largest, 1.0))))


def solve_rows(matrix: Array, rows: Array, what: str, *, transposed: bool = False) -> Array:
    """Solve matrix @ y = row (matrix.T @ y = row if transposed) for every row, by LU with a condition estimate.

    Raises SingularElementError, which names `what`, if the matrix is singular to rounding.
    """
    if matrix.size == 0 or rows.size == 0:
        return np.zeros(rows.shape)
    factors = _factor(matrix, what)
    before, after = (factors.columns, factors.rows) if transposed else (factors.rows, factors.columns)
    scaled = rows * before
    solution, _ = lapack.dgetrs(factors.lu, factors.pivots, scaled.T, trans=0 if transposed else 1)
    return np.ascontiguousarray(solution.T * after)


def inverse(matrix: Array, what: str) -> Array:
    """The inverse of a dense matrix; SingularElementError, which names `what`, if it is singular to rounding."""
    if matrix.size == 0:
        return np.zeros(matrix.shape)
    factors = _factor(matrix, what)
    result: Array = lapack.dgetri(factors.lu, factors.pivots, overwrite_lu=True)[0].T  # of R M C
    result *= factors.columns[:, None]
    result *= factors.rows
    return result


def moments(z: Array, weights: Array, shift: float) -> Array:
    """(1 - shift) I + sum_i weights_i z_i z_i^T."""
    matrix: Array = z.T @ (z * weights[:, None])
    matrix.ravel()[:: len(matrix) + 1] += 1.0 - shift
    return matrix


def cholesky(covariance: Array) -> Array:
    """The lower triangular root of a positive-definite matrix."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def log_abs_det(matrix: Array) -> float:
    """log|det|, -inf for a matrix that `solve_rows` would reject."""
    if matrix.size == 0:
        return 0.0
    try:
        factors = _factor(matrix, "")
    except SingularElementError:
        return -np.inf
    pivots = np.log(np.abs(np.diagonal(factors.lu))).sum()
    return float(pivots - np.log(factors.rows).sum() - np.log(factors.columns).sum())


# ---- scales -----------------------------------------------------------------------------------------------------


def geometric_mean(positive: Array) -> float:
    """exp of the mean logarithm of positive numbers."""
    return math.exp(float(np.log(positive).mean()))
