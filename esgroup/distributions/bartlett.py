"""Positive-definite matrices by their triangular factors: Bartlett's samples, roots and checks of whole generations."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions import multigamma


def bartlett(least: float, p: int, count: int, rng: np.random.Generator) -> Array:
    """Lower triangular F, (count, p, p), with n F F^T ~ Wishart(I, n) for n = 2 least + p - 1 > p - 1.

    n F_ii^2 / 2 ~ Gamma((n - i + 1)/2), sqrt(n) F_ij ~ N(0, 1) for i > j, independent (Bartlett 1933).
    """
    n = 2 * least + p - 1
    factors = np.zeros((count, p * p))
    factors[:, _below(p)] = rng.standard_normal((count, p * (p - 1) // 2))
    factors[:, :: p + 1] = np.sqrt(2 * rng.standard_gamma(multigamma.shapes(least, p), (count, p)))
    factors /= math.sqrt(n)
    return factors.reshape(count, p, p)


@lru_cache(maxsize=16)
def _below(p: int) -> NDArray[np.int64]:
    """Places below the diagonal of a p x p matrix read row by row."""
    return np.flatnonzero(np.tri(p, k=-1))


def check_symmetric(name: str, matrices: Array) -> None:
    """Refuse a matrix, or the first of several, that differs from its transpose by more than rounding."""
    gaps = np.abs(matrices - matrices.swapaxes(-1, -2)).max(axis=(-2, -1), initial=0.0)
    bad = np.flatnonzero(gaps > 1e-10 * np.abs(matrices).max(axis=(-2, -1), initial=0.0))
    if len(bad):
        where = name if matrices.ndim == 2 else f"{name}[{bad[0]}]"
        gap = np.atleast_1d(gaps)[bad[0]]
        raise ValueError(f"{where} must be symmetric, but differs from its transpose by {gap:.3g}")


def positive_roots(name: str, matrices: Array) -> Array:
    """Cholesky factors of symmetric matrices, or an error that names the first that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        smallest = np.atleast_1d(np.linalg.eigvalsh(matrices)[..., 0])
        worst = int(np.argmin(smallest))
        where = name if matrices.ndim == 2 else f"{name}[{worst}]"
        raise ValueError(f"{where} {checks.not_positive_definite(smallest[worst])}") from None


def bend(factors: Array) -> Array:
    """log|Z| - tr Z + p <= 0 of Z = F F^T, F lower triangular, without cancellation near Z = I."""
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    excess = (diagonal - 1) * (diagonal + 1)  # F_ii^2 - 1
    near = np.log1p(np.maximum(excess, -0.75))
    logs = np.where(excess > -0.5, near, 2 * np.log(np.maximum(diagonal, 1e-300)))
    bend: Array = (logs - excess).sum(axis=-1) - (np.tril(factors, -1) ** 2).sum(axis=(-2, -1))
    return bend


def gram(rows: Array) -> Array:
    """R^T R, symmetric to the last bit."""
    return symmetric_part(rows.swapaxes(-1, -2) @ rows)


def symmetric_part(matrices: Array) -> Array:
    """(X + X^T) / 2."""
    half: Array = (matrices + matrices.swapaxes(-1, -2)) / 2
    return half
