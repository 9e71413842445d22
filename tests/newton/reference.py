"""The method written out on dense matrices, and small functions with all their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def pattern(spelling: str, dim: int) -> Array:
    """Where matrices of a group may be non-zero, from its drawing; k = 2, k1 = 2, k2 = 1."""
    mask, i = np.eye(dim, dtype=bool), np.arange(dim)
    hub, end = i < 2, i >= dim - 1
    if spelling == "full":
        mask[:] = True
    elif spelling == "triangular":
        mask = np.tri(dim, dtype=bool)
    elif spelling.startswith("block_triangular"):
        mask[:, hub] = True
    elif spelling.startswith("heisenberg"):
        mask[:, hub] = True
        mask[end, :] = True
    if spelling.startswith("block_triangular") and "upper" in spelling:
        mask = mask.T
    if spelling.startswith("heisenberg") and "upper" in spelling:
        mask = np.eye(dim, dtype=bool)
        mask[hub, :] = True
        mask[:, end] = True
    return mask


#: Spellings that `pattern` knows.
MASKS = (
    "diagonal",
    "full",
    "triangular",
    "block_triangular:k=2",
    "block_triangular:k=2,upper",
    "heisenberg:k1=2,k2=1",
    "heisenberg:k1=2,k2=1,upper",
)


def coefficients(mask: Array) -> Array:
    """C: 1/2 where an entry and its mirror image are free (so on the diagonal), 1 where it alone is, else 0."""
    return np.where(mask & mask.T, 0.5, np.where(mask, 1.0, 0.0))


def h(m: Array) -> Array:
    return np.eye(len(m)) + m + m @ m / 2


def update(root: Array, hessian: Array, mask: Array, rate: float, form: str = "precision") -> Array:
    """B h(beta C (.) (B^-1 H B^-T - I)), or A h(-beta C (.) (A^T H A - I))."""
    if form == "covariance":
        return root @ h(-rate * coefficients(mask) * (root.T @ hessian @ root - np.eye(len(root))))
    inverse = np.linalg.inv(root)
    return root @ h(rate * coefficients(mask) * (inverse @ hessian @ inverse.T - np.eye(len(root))))


def positive_definite(dim: int, rng: np.random.Generator) -> Array:
    a = rng.standard_normal((dim, dim))
    return a @ a.T + 0.5 * np.eye(dim)


def symmetric(dim: int, rng: np.random.Generator) -> Array:
    a = rng.standard_normal((dim, dim))
    return (a + a.T) / 2


@dataclass(frozen=True)
class Quadratic:
    """(x - c)^T H (x - c) / 2."""

    matrix: Array
    center: Array

    def fun(self, x: Array) -> float:
        return float((x - self.center) @ self.matrix @ (x - self.center) / 2)

    def jac(self, x: Array) -> Array:
        return self.matrix @ (x - self.center)

    def hess(self, x: Array) -> Array:
        return self.matrix


@dataclass(frozen=True)
class Cosh:
    """sum_i cosh(a_i^T x) - b^T x with rows a_i: convex, with a Hessian that changes."""

    rows: Array
    slope: Array

    def fun(self, x: Array) -> float:
        return float(np.cosh(self.rows @ x).sum() - self.slope @ x)

    def jac(self, x: Array) -> Array:
        return self.rows.T @ np.sinh(self.rows @ x) - self.slope

    def hess(self, x: Array) -> Array:
        return (self.rows.T * np.cosh(self.rows @ x)) @ self.rows

    def hessp(self, x: Array, v: Array) -> Array:
        return self.hess(x) @ v

    def hess_diag(self, x: Array) -> Array:
        return np.diagonal(self.hess(x)).copy()


def cosh(dim: int, seed: int = 0) -> Cosh:
    rng = np.random.default_rng(seed)
    return Cosh(rng.standard_normal((dim + 2, dim)) / np.sqrt(dim), rng.standard_normal(dim))


def iterate(
    function: Cosh,
    x: Array,
    mask: Array,
    iterations: int,
    *,
    rate: float,
    mean_rate: float,
    momentum: float = 0.0,
    factors: Callable[[int], tuple[float, float]] = lambda t: (1.0, 1.0),
) -> Array:
    """x <- x - mean_rate S^-1 Z with the new S: the whole iteration without safeguards; S begins at max H_ii I."""
    root = np.sqrt(np.diagonal(function.hess(x)).max()) * np.eye(len(x))
    z = np.zeros(len(x))
    for t in range(1, iterations + 1):
        mean_factor, root_factor = factors(t)
        gradient = function.jac(x)
        root = update(root, function.hess(x), mask, rate * root_factor)
        z = (1 - momentum) * gradient + momentum * z
        x = x - mean_rate * mean_factor * np.linalg.solve(root @ root.T, z)
    return x
