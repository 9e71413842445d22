"""Least squares over matrices: positive-definite inverses of a given matrix, and an ellipsoid with two sides.

A positive-definite problem replaces any square matrix W by its symmetric part (W + W^T) / 2. Its gradient, the
symmetric G with df = tr(G dW), is therefore also the gradient with respect to all entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.making import instance_rng
from esgroup_problems.problem import OnPoint, Problem, register
from esgroup_problems.rotations import orthogonal

_PAPER = "Lin, Nielsen, Khan, Schmidt: Tractable structured natural-gradient descent (ICML 2021), section 5.1; "
_NEARNESS = (
    _PAPER + "after Brickell, Dhillon, Sra, Tropp: The metric nearness problem (SIAM J. Matrix Analysis 30, 2008)"
)
#: Standard deviation of a first sample around the identity, in the entries of log W.
SPD_SIGMA0 = 0.3


def symmetric_part(w: Array) -> Array:
    """(W + W^T) / 2 for one matrix or for several."""
    return (w + w.swapaxes(-1, -2)) / 2


def inverse(w: Array) -> Array:
    """Inverse of a symmetric matrix, exactly symmetric."""
    return symmetric_part(np.asarray(np.linalg.inv(w), dtype=np.float64))


def squares(gaps: Array) -> Array:
    """|E|_F^2 for each of several matrices, (n,)."""
    return (gaps**2).sum(axis=(-2, -1))


@dataclass(frozen=True, eq=False)
class Undoing:
    """f(W) = 1/2 |W Q L - L|_F^2 for a positive-definite Q: zero at W = Q^-1. `forward` is Q L, `target` is L.

    With L L^T = (1/N) sum_i x_i x_i^T it is the mean of 1/2 |W Q x_i - x_i|^2 over N points, at the cost of one.
    """

    forward: Array
    target: Array

    def rows(self, w: Array) -> Array:
        return 0.5 * squares(self._gaps(w))

    def gradient(self, w: Array) -> Array:
        return symmetric_part(self._gaps(w) @ self.forward.T)

    def product(self, w: Array, v: Array) -> Array:
        return symmetric_part(symmetric_part(v) @ self.forward @ self.forward.T)

    def _gaps(self, w: Array) -> Array:
        return symmetric_part(w) @ self.forward - self.target


@dataclass(eq=False)
class MiniBatch:
    """f(W) = 1/(2 size) sum_j |W Q x_j - x_j|^2 over `size` points, drawn from `data`, (N, dim), for every call.

    All matrices of one call use the same points.
    """

    q: Array
    data: Array
    size: int
    rng: np.random.Generator

    def rows(self, w: Array) -> Array:
        chosen = self.data[self.rng.integers(len(self.data), size=self.size)].T  # with replacement, (dim, size)
        return squares(symmetric_part(w) @ (self.q @ chosen) - chosen) / (2 * self.size)


@dataclass(frozen=True, eq=False)
class TwoSided:
    """f(X) = 1/2 |A (X - C) B|_F^2: the Hessian is the Kronecker product of A^T A on rows and B B^T on columns."""

    left: Array
    center: Array
    right: Array

    def rows(self, x: Array) -> Array:
        return 0.5 * squares(self.left @ (x - self.center) @ self.right)

    def gradient(self, x: Array) -> Array:
        return self.product(x, x - self.center)

    def product(self, x: Array, v: Array) -> Array:
        return self.left.T @ (self.left @ v @ self.right) @ self.right.T

    def diagonal(self, x: Array) -> Array:
        return np.outer((self.left**2).sum(axis=0), (self.right**2).sum(axis=1))


@register
def metric_nearness(dim: int = 10, samples: int | None = None, *, seed: int = 0) -> Problem:
    """Positive-definite W that maps Q x back to x, for N samples x or for the whole of N(0, I).

    f(W) = 1/(2N) sum_i |W Q x_i - x_i|^2 with Q = G G^T / dim + 0.1 I and normal G and x_i; `samples` is N, or None for
    the whole of N(0, I). The points are stored as a triangular root of their second moments, so that a value costs
    O(dim^3) for any N. With fewer points than dimensions f is zero at other matrices, too.
    """
    dim = checks.whole_number("dim", dim, least=1)
    rng = instance_rng("metric_nearness", dim, seed)
    q = _nearness_matrix(dim, rng)
    root = np.eye(dim) if samples is None else _moment_root(_points(rng, samples, dim))
    return _undoing(metric_nearness, q, root, _NEARNESS)


@register
def metric_nearness_minibatch(dim: int = 10, samples: int = 12_500, batch_size: int = 100, *, seed: int = 0) -> Problem:
    """Metric nearness on 100 of 12,500 samples, drawn again for every call: noisy.

    The matrices of one call share their mini-batch. The noise is zero at the minimizer, where every term is zero.
    `noiseless` and the derivatives are those of all samples: `metric_nearness` with the same arguments.
    """
    size = checks.whole_number("batch_size", batch_size, least=1)
    dim = checks.whole_number("dim", dim, least=1)
    rng = instance_rng("metric_nearness", dim, seed)
    q = _nearness_matrix(dim, rng)
    data = _points(rng, samples, dim)
    noisy = MiniBatch(q, data, size, rng)
    return _undoing(metric_nearness_minibatch, q, _moment_root(data), _NEARNESS, noisy)


@register
def matrix_inversion(dim: int = 10, *, seed: int = 0) -> Problem:
    """Positive-definite W that inverts a matrix of condition 100: 1/2 |W Q - I|^2.

    Q has eigenvalues from 0.1 to 10, evenly spaced in their logarithms, and random eigenvectors.
    """
    dim = checks.whole_number("dim", dim, least=1)
    q = _with_eigenvalues(np.geomspace(0.1, 10, dim), instance_rng("matrix_inversion", dim, seed))
    source = (
        "folklore: the matrix equation W Q = I in least squares, as a test of search over positive-definite matrices"
    )
    return _undoing(matrix_inversion, q, np.eye(dim), source)


@register
def kronecker_ellipsoid(dim: int = 30, columns: int | None = None, *, seed: int = 0) -> Problem:
    """Quadratic of a matrix whose Hessian is a Kronecker product of condition 10^4.

    f(X) = 1/2 |A (X - C) B|_F^2. A and B are symmetric with eigenvalues from 1 to 10, evenly spaced in their
    logarithms, and random eigenvectors, so that A^2 and B^2 have condition 100 each; C is normal. `dim` is the number
    of rows, and of columns unless `columns` is given.
    """
    dim = checks.whole_number("dim", dim, least=1)
    columns = dim if columns is None else checks.whole_number("columns", columns, least=1)
    rng = instance_rng("kronecker_ellipsoid", dim, seed)
    left, right = (_with_eigenvalues(np.geomspace(1, 10, size), rng) for size in (dim, columns))
    function = TwoSided(left, rng.standard_normal((dim, columns)), right)
    return Problem(
        name=kronecker_ellipsoid.__name__,
        description=summary(kronecker_ellipsoid),
        source="folklore: the ellipsoid function, for searches with a covariance of rows and one of columns",
        space="matrix",
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        hessian_diagonal=function.diagonal,
        x0=np.zeros((dim, columns)),
        sigma0=1.0,
        start_box=(-2.0, 2.0),
        minimizer=function.center,
        minimum=0.0,
    )


def _undoing(
    maker: Callable[..., Problem], q: Array, root: Array, source: str, noisy: MiniBatch | None = None
) -> Problem:
    function = Undoing(q @ root, root)
    rows = function.rows if noisy is None else noisy.rows
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        space="spd",
        fun=OnPoint(rows),
        batch=rows,
        noiseless=None if noisy is None else function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        x0=np.eye(len(q)),
        sigma0=SPD_SIGMA0,
        minimizer=inverse(q),
        minimum=0.0,
    )


def _nearness_matrix(dim: int, rng: np.random.Generator) -> Array:
    g = rng.standard_normal((dim, dim))
    return g @ g.T / dim + 0.1 * np.eye(dim)


def _points(rng: np.random.Generator, samples: int, dim: int) -> Array:
    return rng.standard_normal((checks.whole_number("samples", samples, least=1), dim))


def _moment_root(data: Array) -> Array:
    # L with L L^T = X^T X / N, from X = O R: does not square the data, and is correct for N < dim
    triangle: Array = np.asarray(np.linalg.qr(data, mode="r")) / np.sqrt(len(data))
    return triangle.T


def _with_eigenvalues(values: Array, rng: np.random.Generator) -> Array:
    vectors = orthogonal(1, len(values), rng)[0]
    return symmetric_part(vectors * values @ vectors.T)
