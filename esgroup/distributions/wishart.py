"""Wishart distributions over positive-definite matrices: samples, densities, natural gradients, moves.

At the end are functions of whole generations of positive-definite matrices: Bartlett's samples, roots, checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions import gamma_functions
from esgroup.distributions.base import Distribution, RowMap, checked_parts
from esgroup.groups import Group, as_group


class WishartState(NamedTuple):
    """Parameters of a Wishart distribution.

    Attributes
    ----------
    b : ndarray, shape ()
        Determines the degrees of freedom, n = 2 softplus(b) + p - 1.
    root : ndarray
        The packed B.
    """

    b: Array
    root: Array


class WishartSamples(NamedTuple):
    """One generation of samples of a Wishart distribution.

    Attributes
    ----------
    factors : ndarray, shape (count, p, p)
        Lower triangular factors F of Z = B^T W B = F F^T.
    points : ndarray, shape (count, p, p)
        The matrices W.
    """

    factors: Array
    points: Array


class WishartStep(NamedTuple):
    """A vector of the local space of a Wishart distribution.

    Attributes
    ----------
    delta : ndarray, shape ()
        The part for b.
    m : ndarray
        The part M for B, packed.
    """

    delta: Array
    m: Array

    def scaled(self, rate: float, dof_rate: float | None = None) -> WishartStep:
        """Multiply the step by a rate, or m by `rate` and delta by `dof_rate`."""
        return WishartStep((rate if dof_rate is None else dof_rate) * self.delta, rate * self.m)


@dataclass(frozen=True, eq=False)
class Wishart(Distribution):
    """W = B^-T Z B^-1 with n Z ~ Wishart(I, n): positive-definite p x p matrices with the mean (B B^T)^-1.

    Paper, section 3.3 and appendix on Wishart distributions: S = n B B^T is the precision matrix, B lies in a group,
    n = 2 softplus(b) + p - 1, and the local map is b + delta, B h(M). Its Fisher matrix at 0 has no cross term, and is
    (n/2) <M + M^T, M' + M'^T> for M and sigmoid(b)^2 D for delta, D = psi'_p(n/2) - 2p/n. Entries vary by
    Var W_ij = (m_ij^2 + m_ii m_jj) / n around the mean m. With p = 1 it is the Gamma distribution.

    Parameters
    ----------
    mean : array_like, shape (p, p)
        The initial mean, positive definite. A structure other than full starts at the nearest mean that it can
        represent (`Group.from_covariance`).
    dof : float, optional
        The initial degrees of freedom n > p - 1. The default 10 p (p + 1) gives the entries of Z deviations of
        1 / sqrt(20 N), N = p (p + 1) / 2, or sqrt(2) times that.
    structure : Group or str
        The group of B, or its spelling.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup import Wishart
    >>> wishart = Wishart(np.diag([1.0, 4.0]), dof=50)
    >>> state = wishart.state()
    >>> wishart.sample(state, 3, np.random.default_rng(0)).points.shape
    (3, 2, 2)
    >>> round(wishart.dof_of(state), 6)
    50.0
    """

    mean: Array
    dof: float | None = None
    structure: Group | str = "full"

    def __post_init__(self) -> None:
        mean = checks.real_array("mean", self.mean, (None, None))
        if mean.shape[0] != mean.shape[1] or mean.size == 0:
            raise ValueError(f"mean must be a square matrix, got shape {mean.shape}")
        dim = len(mean)
        self._store("mean", checks.read_only(checks.covariance("mean", self.mean, dim)))
        self._store("structure", as_group(self.structure, dim))
        if self.dof is not None:
            dof = checks.real_number("dof", self.dof)
            if not dof > dim - 1:
                raise ValueError(f"dof must be greater than p - 1 = {dim - 1}, got {dof:g}")
            self._store("dof", dof)

    @property
    def dim(self) -> int:
        """p, the number of rows of a point."""
        return len(self.mean)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (p, p) of one point."""
        return self.dim, self.dim

    @cached_property
    def group(self) -> Group:
        """The group of B."""
        return as_group(self.structure, self.dim)

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self) -> WishartState:
        """The initial parameters."""
        least = (self.first_dof() - (self.dim - 1)) / 2
        b = least + math.log(-math.expm1(-least))  # softplus(b) = least
        transposed = self.group.transposed
        return WishartState(np.array(b), transposed._transpose(transposed._inverse(self.first_outward())))

    def first_dof(self) -> float:
        """The initial degrees of freedom: `dof`, or its default 10 p (p + 1)."""
        return 10.0 * self.dim * (self.dim + 1) if self.dof is None else self.dof

    def first_outward(self) -> Array:
        """L = B^-T of the initial parameters, a packed element of the transposed group: the mean is L L^T."""
        return self.group.transposed.from_covariance(self.mean)

    def dof_of(self, state: WishartState) -> float:
        """The degrees of freedom n = 2 softplus(b) + p - 1 of a state."""
        return 2 * _least(self._checked(state)) + self.dim - 1

    def mean_of(self, state: WishartState) -> Array:
        """The mean E W = (B B^T)^-1 of a state."""
        rows = self.group._solve_transposed(self._checked(state).root, np.eye(self.dim))  # (B^-T)^T
        return gram(rows)

    # ---- samples and density ------------------------------------------------------------------------------------

    def sample(self, state: WishartState, n: int, rng: np.random.Generator) -> WishartSamples:
        """Draw n points at once; each is exactly symmetric."""
        checks.instance("rng", rng, np.random.Generator)
        state, count = self._checked(state), checks.whole_number("n", n)
        factors = bartlett(_least(state), self.dim, count, rng)
        rows = np.ascontiguousarray(factors.swapaxes(1, 2)).reshape(-1, self.dim)
        images = self.group._solve_transposed(state.root, rows)  # rows of (B^-T F)^T
        return WishartSamples(factors, gram(images.reshape(factors.shape)))

    def local(self, state: WishartState, points: Any) -> Array:
        """Lower triangular F with F F^T = B^T W B of one point or of several, for points that were not sampled."""
        state, w = self._checked(state), self._points(points)
        return checks.positive_roots("points", self._on_both_sides(self.group._apply_transposed, state, w))

    def log_density(self, state: WishartState, points: Any) -> Array:
        """log q(W) of one or several points.

        (n - p - 1)/2 log|W| + n/2 log|S| - tr(S W)/2 - (n p/2) log 2 - log Gamma_p(n/2), written as
        (n/2) t - (p + 1)/2 log|Z| + (p + 1) log|B| + log_normalizer with t = log|Z| - tr Z + p: stable for large n.
        """
        factors = self.local(state, points)
        p, least = self.dim, _least(state)
        n = 2 * least + p - 1
        constant = (p + 1) * self.group.log_abs_det(state.root) + gamma_functions.log_normalizer(least, p)
        logs = 2 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)
        return n / 2 * log_det_excess(factors) - (p + 1) / 2 * logs + constant

    def entropy(self, state: WishartState) -> float:
        """-E[log q(W)]: the density with E tr Z = p and E log|Z| = psi_p(n/2) - p log(n/2)."""
        p, least = self.dim, _least(self._checked(state))
        gap, n = gamma_functions.digamma_gap(least, p), 2 * least + p - 1
        volume = (p + 1) * self.group.log_abs_det(state.root)
        return (n - p - 1) / 2 * gap - volume - gamma_functions.log_normalizer(least, p)

    # ---- natural gradients --------------------------------------------------------------------------------------

    def natural_score(self, state: WishartState, factors: Any, weights: Any) -> WishartStep:
        """Natural gradient of sum_i weights_i log q(W_i), from factors F_i F_i^T = Z_i.

        M = -C (.) kappa(sum w (Z - I)) and delta = sum w s / (sigmoid(b) D) with the score
        s = log|Z| - tr Z + p + p log(n/2) - psi_p(n/2).

        Parameters
        ----------
        state : WishartState
            The parameters.
        factors : array_like, shape (count, p, p)
            The lower triangular F_i, from `sample` or `local`.
        weights : array_like, shape (count,)
            One weight per point.
        """
        state, f = self._checked(state), self._factors(factors)
        weights = checks.real_array("weights", weights, (len(f),))
        rows = np.ascontiguousarray(f.swapaxes(1, 2)).reshape(-1, self.dim)  # Z = sum of outer squares of F's columns
        m = self.group._project(rows, rows, np.repeat(-weights, self.dim), -float(weights.sum()))
        least = _least(state)
        score = weights @ (log_det_excess(f) + gamma_functions.digamma_gap(least, self.dim))
        return WishartStep(np.array(score / self._dof_fisher(state) * _sigmoid(state)), m)

    def natural_gradient(self, state: WishartState, factors: Any, gradients: Any) -> WishartStep:
        """Pathwise estimate of the natural gradient of E f, from the gradients G_i of f at sampled points.

        With K = B^-1 G B^-T: M = -C (.) kappa(mean of Z K + K Z) / n; and delta = 2 (dL/dn) / (sigmoid(b) D) with
        dL/dn = 2 <K F, dF/dn>, where 2 d log F_ii / dn = (q_i + (i - 1)/n) / (n - i + 1) by implicit differentiation of
        n F_ii^2 / 2 ~ Gamma((n - i + 1)/2) (q: `sample_elasticity`), and 2 dF_ij / dn = -F_ij / n below the
        diagonal (paper, appendix on reparametrizable gradients). Unbiased for every group.

        Parameters
        ----------
        state : WishartState
            The parameters that the samples were drawn with.
        factors : array_like, shape (count, p, p)
            The factors of the samples.
        gradients : array_like, shape (count, p, p)
            The gradients of f at the points of the samples.
        """
        state, f = self._checked(state), self._factors(factors)
        g = checks.real_array("gradients", gradients, f.shape)
        if len(f) == 0:
            raise ValueError("factors must have at least one sample, got none")
        n = self.dof_of(state)
        k = self._on_both_sides(self.group._solve, state, checks.symmetric_part(g))
        product = f @ (f.swapaxes(1, 2) @ k)  # Z K
        m = self.group._project_dense(checks.symmetric_part(2 * product.mean(axis=0))) / -n
        slope = 2 * float(np.vdot(k @ f, self._factor_slopes(state, f))) / len(f)
        return WishartStep(np.array(2 * slope / self._dof_fisher(state) * _sigmoid(state)), m)

    def natural_gradient_at_mean(self, state: WishartState, gradient: Any) -> WishartStep:
        """Natural gradient from one gradient G of f at the mean: M = -C (.) kappa(2 B^-1 G B^-T) / n, delta = 0.

        `move(state, step.scaled(-rate * n / 2))` is Riemannian gradient descent with that rate on the cone of
        positive-definite matrices, up to third order; with map="exp" it follows the geodesic (paper, section 3.4).
        """
        state = self._checked(state)
        g = checks.symmetric("gradient", gradient, self.dim)
        m = self.group._project_dense(2 * self._on_both_sides(self.group._solve, state, g)) / -self.dof_of(state)
        return WishartStep(np.array(0.0), m)

    def _on_both_sides(self, hook: RowMap, state: WishartState, matrices: Array) -> Array:
        """H X H^T of symmetric matrices X, for the H = B^T or B^-1 by which the group's hook maps rows."""
        half = hook(state.root, matrices.reshape(-1, self.dim)).reshape(matrices.shape)  # X H^T
        rows = np.ascontiguousarray(half.swapaxes(-1, -2)).reshape(-1, self.dim)
        return checks.symmetric_part(hook(state.root, rows).reshape(matrices.shape))

    def _factor_slopes(self, state: WishartState, f: Array) -> Array:
        """dF/dn at fixed probabilities of the entries of sqrt(n) F."""
        i, n = np.arange(self.dim), self.dof_of(state)
        a = np.broadcast_to(gamma_functions.shapes(_least(state), self.dim), f.shape[:2])
        diagonal = np.diagonal(f, axis1=1, axis2=2)
        g = np.maximum(n / 2 * diagonal**2, 1e-300)
        q = gamma_functions.sample_elasticity(a, g, (n * (diagonal - 1) * (diagonal + 1) + i) / 2)
        slopes = np.tril(f, -1) / (-2 * n)
        slopes[:, i, i] = diagonal * (q + i / n) / (4 * a)
        return slopes

    def _dof_fisher(self, state: WishartState) -> float:
        """sigmoid(b)^2 D, the Fisher matrix of delta."""
        return _sigmoid(state) ** 2 * gamma_functions.trigamma_gap(_least(state), self.dim)

    # ---- moves --------------------------------------------------------------------------------------------------

    def move(self, state: WishartState, step: WishartStep, map: Literal["h", "exp"] = "h") -> WishartState:
        """The parameters after a step: b + delta and B h(M), or B Exp(M) for map="exp"."""
        state, group = self._checked(state), self.group
        delta, m = checked_parts("step", step, WishartStep, (), (group.size,))
        checks.one_of("map", map, "h", "exp")
        root = group._product_h(state.root, m) if map == "h" else group._product(state.root, group._exp(m))
        return WishartState(np.asarray(state.b + delta), root)

    # ---- checks -------------------------------------------------------------------------------------------------

    def _checked(self, state: WishartState) -> WishartState:
        b, root = checked_parts("state", state, WishartState, (), (self.group.size,))
        if not b > -700:  # below, the degrees of freedom are p - 1 to the last bit
            raise ValueError(f"state.b must be greater than -700, got {float(b):g}")
        return WishartState(b, root)

    def _factors(self, factors: Any) -> Array:
        f = checks.real_array("factors", factors, (None, *self.shape))
        if np.triu(f, 1).any():
            raise ValueError("factors must be lower triangular, as `sample` and `local` return them")
        return f

    def _points(self, points: Any) -> Array:
        single = np.ndim(points) == 2
        w = checks.real_array("points", points, self.shape if single else (None, *self.shape))
        checks.check_symmetric("points", w)
        return w


def _least(state: WishartState) -> float:
    """softplus(b) = (n - p + 1)/2."""
    return float(np.logaddexp(0.0, state.b))


def _sigmoid(state: WishartState) -> float:
    return 1 / (1 + math.exp(-max(float(state.b), -700.0)))


# ---- whole generations of positive-definite matrices --------------------------------------------------------------


def bartlett(least: float, p: int, count: int, rng: np.random.Generator) -> Array:
    """Draw lower triangular F, (count, p, p), with n F F^T ~ Wishart(I, n) for n = 2 least + p - 1 > p - 1.

    n F_ii^2 / 2 ~ Gamma((n - i + 1)/2), sqrt(n) F_ij ~ N(0, 1) for i > j, independent (Bartlett 1933).
    """
    n = 2 * least + p - 1
    factors = np.zeros((count, p * p))
    factors[:, _entries_below(p)] = rng.standard_normal((count, p * (p - 1) // 2))
    factors[:, :: p + 1] = np.sqrt(2 * rng.standard_gamma(gamma_functions.shapes(least, p), (count, p)))
    factors /= math.sqrt(n)
    return factors.reshape(count, p, p)


@lru_cache(maxsize=16)
def _entries_below(p: int) -> NDArray[np.int64]:
    """Indices of the entries below the diagonal of a p x p matrix read row by row."""
    return np.flatnonzero(np.tri(p, k=-1))


def log_det_excess(factors: Array) -> Array:
    """log|Z| - tr Z + p <= 0 of Z = F F^T, F lower triangular, without cancellation near Z = I."""
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    excess = (diagonal - 1) * (diagonal + 1)  # F_ii^2 - 1
    near = np.log1p(np.maximum(excess, -0.75))
    logs = np.where(excess > -0.5, near, 2 * np.log(np.maximum(diagonal, 1e-300)))
    return (logs - excess).sum(axis=-1) - (np.tril(factors, -1) ** 2).sum(axis=(-2, -1))


def gram(rows: Array) -> Array:
    """R^T R, symmetric to the last bit."""
    return checks.symmetric_part(rows.swapaxes(-1, -2) @ rows)
