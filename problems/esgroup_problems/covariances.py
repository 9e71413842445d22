"""Statistics of covariance matrices: sparse precision by maximum likelihood, and the nearest correlation matrix.

As in all positive-definite problems of the zoo, a matrix stands for its symmetric part, and gradients are symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.lazy import Lazy
from esgroup.problem_registry import summary
from esgroup_problems.making import convex_minimizer, instance_rng
from esgroup_problems.matrices import SPD_SIGMA0, inverse, squares, symmetric_part
from esgroup_problems.problem import OnPoint, Problem, register

_sparse: Any = Lazy("scipy.sparse.linalg")

_DEMPSTER = "Dempster: Covariance selection (Biometrics 28, 1972), with soft zeros"
_HIGHAM = (
    "Higham: Computing the nearest correlation matrix, a problem from finance (IMA J. Numerical Analysis 22, 2002)"
)


@dataclass(frozen=True, eq=False)
class PenalizedLikelihood:
    """f(W) = -log det W + tr(S W) + 1/2 sum_ij R_ij W_ij^2, and +inf where W is not positive definite.

    It is strictly convex, and grows without bound toward the boundary of the cone and toward infinity.
    """

    moments: Array
    penalties: Array

    def rows(self, w: Array) -> Array:
        w = symmetric_part(w)
        smooth: Array = (self.moments * w + 0.5 * self.penalties * w**2).sum(axis=(-2, -1))
        return smooth - log_determinants(w)

    def gradient(self, w: Array) -> Array:
        w = symmetric_part(w)
        return self.moments + self.penalties * w - inverse(w)

    def product(self, w: Array, v: Array) -> Array:
        covariance, v = inverse(symmetric_part(w)), symmetric_part(v)
        return self.penalties * v + symmetric_part(covariance @ v @ covariance)

    def solve(self, w: Array, g: Array) -> Array:
        """Inverse Hessian at W times G, by conjugate gradients; the preconditioner W G W is exact without penalties."""
        shape, size = w.shape, w.size
        hessian = _operator(size, lambda v: self.product(w, v.reshape(shape)).ravel())
        without = _operator(size, lambda v: (w @ v.reshape(shape) @ w).ravel())
        found, _ = _sparse.cg(hessian, g.ravel(), rtol=1e-10, M=without)
        return symmetric_part(found.reshape(shape))


@dataclass(frozen=True, eq=False)
class CorrelationDistance:
    """f(W) = 1/2 |R - A|_F^2 with the correlations R_ij = W_ij / sqrt(W_ii W_jj) of W; A has ones on its diagonal.

    It is invariant under scaling, W to D W D with a diagonal D. It is NaN where the diagonal of W is not positive.
    """

    target: Array

    def rows(self, w: Array) -> Array:
        correlations, _ = _correlations(symmetric_part(w))
        return 0.5 * squares(correlations - self.target)

    def gradient(self, w: Array) -> Array:
        r, scales = _correlations(symmetric_part(w))
        gap = r - self.target
        return gap * scales - np.diag((gap * r).sum(axis=1) * np.diag(scales))

    def product(self, w: Array, v: Array) -> Array:
        w, v = symmetric_part(w), symmetric_part(v)
        r, scales = _correlations(w)
        # along V: log W_ii changes by c_i, the scales 1 / sqrt(W_ii W_jj) by the factor -(c_i + c_j) / 2, R by turn
        c = np.diag(v) / np.diag(w)
        shrink = -0.5 * (c[:, None] + c)
        turn = v * scales + r * shrink
        gap = r - self.target
        sums, moved = (gap * r).sum(axis=1), (turn * (r + gap)).sum(axis=1)
        return (turn + gap * shrink) * scales - np.diag((moved - sums * c) * np.diag(scales))


def log_determinants(w: Array) -> Array:
    """log det of each of several symmetric matrices, (n,); -inf for those that are not positive definite."""
    try:
        roots = np.linalg.cholesky(w)
    except np.linalg.LinAlgError:  # at least one of them is not positive definite: check each
        return np.array([-np.inf]) if len(w) == 1 else np.concatenate([log_determinants(one[None]) for one in w])
    return 2 * np.log(np.diagonal(roots, axis1=-2, axis2=-1)).sum(axis=-1)


@register
def covariance_selection(dim: int = 10, samples: int | None = None, *, seed: int = 0) -> Problem:
    """Precision matrix of a sparse Gaussian graph, with a penalty on entries off the graph.

    f(W) = -log det W + tr(S W) + 1/2 sum_ij R_ij W_ij^2: twice the negative log-likelihood of W per sample, without its
    constant, where S is the covariance of 10 dim samples. Dempster sets W_ij = 0 where the graph has no edge; here
    those entries have R_ij = 10, a normal prior, and all others R_ij = 0, so that f is smooth and defined on the whole
    cone. (The graphical lasso, with |W_ij|, is not smooth.) The graph has three edges per node on average, and so does
    the precision matrix of the distribution that the samples come from. The minimum is found by Newton's method, to
    machine precision.
    """
    dim = checks.whole_number("dim", dim, least=1)
    # with fewer samples than dimensions S is singular, and f may have no minimum
    samples = 10 * dim if samples is None else checks.whole_number("samples", samples, least=dim)
    rng = instance_rng("covariance_selection", dim, seed)
    precision = _sparse_precision(dim, rng)
    x = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((dim, samples)))  # ~ N(0, precision^-1)
    function = PenalizedLikelihood(x @ x.T / samples, np.where(precision == 0, 10.0, 0.0))
    minimizer = convex_minimizer(OnPoint(function.rows), function.gradient, function.solve, np.eye(dim))
    minimum = OnPoint(function.rows)(minimizer)
    return _problem(covariance_selection, function, dim, _DEMPSTER, minimum=minimum, minimizer=minimizer)


@register
def nearest_correlation(dim: int = 10, *, seed: int = 0) -> Problem:
    """Positive-definite W whose correlations are nearest to an indefinite matrix.

    f(W) = 1/2 |R - A|_F^2 for the correlations R of W: Higham's problem. Its solution X has rank dim - k and lies on
    the boundary of the cone, so that f approaches its minimum without reaching it: eigenvalues of W shrink to zero. For
    a known minimum, A is made from its solution: A = X - Z + diag(Z), where Z projects on the k = max(1, dim // 4)
    directions that X lacks. A has a diagonal of ones and is indefinite; f(X) = 1/2 |Z - diag(Z)|_F^2, and X is the
    nearest because X - A = Z - diag(Z) with Z positive semidefinite and Z X = 0 (Higham, section 2).
    """
    dim = checks.whole_number("dim", dim, least=2)
    lacking = max(1, dim // 4)
    rows = instance_rng("nearest_correlation", dim, seed).standard_normal((dim, dim - lacking))
    rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
    basis = np.linalg.qr(rows, mode="complete")[0][:, dim - lacking :]
    away = basis @ basis.T
    np.fill_diagonal(away, 0.0)
    target = rows @ rows.T - away
    np.fill_diagonal(target, 1.0)
    minimum = 0.5 * float((away**2).sum())
    return _problem(nearest_correlation, CorrelationDistance(target), dim, _HIGHAM, minimum=minimum, minimizer=None)


def _problem(
    maker: Callable[..., Problem],
    function: PenalizedLikelihood | CorrelationDistance,
    dim: int,
    source: str,
    *,
    minimum: float,
    minimizer: Array | None,
) -> Problem:
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        space="spd",
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        x0=np.eye(dim),
        sigma0=SPD_SIGMA0,
        minimizer=minimizer,
        minimum=minimum,
    )


def _sparse_precision(dim: int, rng: np.random.Generator) -> Array:
    # three edges per node on average, of either sign; positive definite because the diagonal exceeds each row sum by 1
    edges = np.triu(rng.random((dim, dim)) < 3 / max(dim - 1, 1), 1)
    upper = np.where(edges, rng.uniform(0.3, 1.0, (dim, dim)) * rng.choice([-1.0, 1.0], (dim, dim)), 0.0)
    both = upper + upper.T
    return both + np.diag(1 + np.abs(both).sum(axis=1))


def _correlations(w: Array) -> tuple[Array, Array]:
    # R and the scales 1 / sqrt(W_ii W_jj) that give it, for one matrix or several
    diagonal = np.diagonal(w, axis1=-2, axis2=-1)
    roots = 1 / np.sqrt(np.where(diagonal > 0, diagonal, np.nan))
    scales = roots[..., :, None] * roots[..., None, :]
    return w * scales, scales


def _operator(size: int, times: Callable[[Array], Array]) -> Any:
    return _sparse.LinearOperator((size, size), matvec=times, dtype=np.float64)
