"""Wishart distributions over positive-definite matrices: samples, densities, natural gradients, moves."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions import multigamma
from esgroup.distributions.bartlett import bartlett, bend, check_symmetric, gram, positive_roots, symmetric_part
from esgroup.groups import Group, as_group


class WishartState(NamedTuple):
    """Parameters: b, an array of shape (), with n = 2 softplus(b) + p - 1 degrees of freedom, and the packed B."""

    b: Array
    root: Array


class WishartSamples(NamedTuple):
    """A generation: lower triangular factors F of Z = B^T W B = F F^T, and the points W, both (count, p, p)."""

    factors: Array
    points: Array


class WishartStep(NamedTuple):
    """A vector of the local space: delta for b, an array of shape (), and the packed m for B."""

    delta: Array
    m: Array

    def scaled(self, rate: float, dof_rate: float | None = None) -> WishartStep:
        """The step times a rate, or m times one rate and delta times another."""
        return WishartStep((rate if dof_rate is None else dof_rate) * self.delta, rate * self.m)


@dataclass(frozen=True, eq=False)
class Wishart:
    """W = B^-T Z B^-1 with n Z ~ Wishart(I, n): positive-definite p x p matrices with the mean (B B^T)^-1.

    Paper, section 3.3 and appendix on Wishart distributions: S = n B B^T is the precision matrix, B lies in a group,
    n = 2 softplus(b) + p - 1, and the local map is b + delta, B h(M). Its Fisher matrix at 0 has no cross term, and is
    (n/2) <M + M^T, M' + M'^T> for M and sigmoid(b)^2 D for delta, D = psi'_p(n/2) - 2p/n. Entries vary by
    Var W_ij = (m_ij^2 + m_ii m_jj) / n around the mean m. With p = 1 it is the Gamma distribution.

    `mean` is where `state()` begins; a structure other than the full one begins at the nearest mean that it can hold
    (`Group.from_covariance`). `dof` is the first n, 10 p (p + 1) if left out: the entries of Z then have deviations of
    1 / sqrt(20 N), N = p (p + 1) / 2, or sqrt(2) times that. `structure` is a group or its spelling.
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

    def _store(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wishart):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and self._fields()[1:] == other._fields()[1:]

    def __hash__(self) -> int:
        return hash((self.dim, *self._fields()[1:]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()  # through the constructor, so that shared arrays stay read-only

    @property
    def dim(self) -> int:
        """p, the number of rows of a point."""
        return len(self.mean)

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point."""
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
        """`dof`, or its default 10 p (p + 1)."""
        return 10.0 * self.dim * (self.dim + 1) if self.dof is None else self.dof

    def first_outward(self) -> Array:
        """L = B^-T of the initial parameters, a packed element of the transposed group: the mean is L L^T."""
        return self.group.transposed.from_covariance(self.mean)

    def dof_of(self, state: WishartState) -> float:
        """n = 2 softplus(b) + p - 1."""
        return 2 * _least(self._checked(state)) + self.dim - 1

    def mean_of(self, state: WishartState) -> Array:
        """E W = (B B^T)^-1."""
        rows = self.group._solve_transposed(self._checked(state).root, np.eye(self.dim))  # (B^-T)^T
        return gram(rows)

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: WishartState, n: int, rng: np.random.Generator) -> WishartSamples:
        """n points at once; each is symmetric to the last bit."""
        checks.instance("rng", rng, np.random.Generator)
        state, count = self._checked(state), checks.whole_number("n", n)
        factors = bartlett(_least(state), self.dim, count, rng)
        rows = np.ascontiguousarray(factors.swapaxes(1, 2)).reshape(-1, self.dim)
        images = self.group._solve_transposed(state.root, rows)  # rows of (B^-T F)^T
        return WishartSamples(factors, gram(images.reshape(factors.shape)))

    def local(self, state: WishartState, points: Any) -> Array:
        """Lower triangular F with F F^T = B^T W B, of a point or of several: for points that were not sampled."""
        state, w = self._checked(state), self._points(points)
        half = self.group._apply_transposed(state.root, w.reshape(-1, self.dim)).reshape(-1, *self.shape)  # W B
        rows = np.ascontiguousarray(half.swapaxes(1, 2)).reshape(-1, self.dim)
        z = self.group._apply_transposed(state.root, rows).reshape(w.shape)
        return positive_roots("points", (z + z.swapaxes(-1, -2)) / 2)

    def log_density(self, state: WishartState, points: Any) -> Array:
        """log q(W) of a point or of several.

        (n - p - 1)/2 log|W| + n/2 log|S| - tr(S W)/2 - (n p/2) log 2 - log Gamma_p(n/2), written as
        (n/2) t - (p + 1)/2 log|Z| + (p + 1) log|B| + log_normaliser with t = log|Z| - tr Z + p: stable for large n.
        """
        factors = self.local(state, points)
        p, least = self.dim, _least(state)
        n = 2 * least + p - 1
        constant = (p + 1) * self.group.log_abs_det(state.root) + multigamma.log_normaliser(least, p)
        logs = 2 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)
        density: Array = n / 2 * bend(factors) - (p + 1) / 2 * logs + constant
        return density

    def entropy(self, state: WishartState) -> float:
        """-E[log q(W)]: the density with E tr Z = p and E log|Z| = psi_p(n/2) - p log(n/2)."""
        p, least = self.dim, _least(self._checked(state))
        gap, n = multigamma.digamma_gap(least, p), 2 * least + p - 1
        volume = (p + 1) * self.group.log_abs_det(state.root)
        return (n - p - 1) / 2 * gap - volume - multigamma.log_normaliser(least, p)

    # ---- natural gradients --------------------------------------------------------------------------------------

    def natural_score(self, state: WishartState, factors: Any, weights: Any) -> WishartStep:
        """Natural gradient of sum_i weights_i log q(W_i), from factors F_i F_i^T = Z_i.

        M = -C (.) kappa(sum w (Z - I)) and delta = sum w s / (sigmoid(b) D) with the score
        s = log|Z| - tr Z + p + p log(n/2) - psi_p(n/2).
        """
        state, f = self._checked(state), self._factors(factors)
        weights = checks.real_array("weights", weights, (len(f),))
        rows = np.ascontiguousarray(f.swapaxes(1, 2)).reshape(-1, self.dim)  # Z = sum of outer squares of F's columns
        m = self.group._project(rows, rows, np.repeat(-weights, self.dim), -float(weights.sum()))
        least = _least(state)
        score = weights @ (bend(f) + multigamma.digamma_gap(least, self.dim))
        return WishartStep(np.array(score / self._dof_fisher(state) * _sigmoid(state)), m)

    def natural_gradient(self, state: WishartState, factors: Any, gradients: Any) -> WishartStep:
        """The same of E f, pathwise: from samples' factors and the gradients G_i of f at their points, averaged.

        With K = B^-1 G B^-T: M = -C (.) kappa(mean of Z K + K Z) / n; and delta = 2 (dL/dn) / (sigmoid(b) D) with
        dL/dn = 2 <K F, dF/dn>, where 2 d log F_ii / dn = (q_i + (i - 1)/n) / (n - i + 1) by implicit differentiation of
        n F_ii^2 / 2 ~ Gamma((n - i + 1)/2) (q: `multigamma.sample_elasticity`), and 2 dF_ij / dn = -F_ij / n below the
        diagonal (paper, appendix on reparametrizable gradients). Unbiased for every group.
        """
        state, f = self._checked(state), self._factors(factors)
        g = checks.real_array("gradients", gradients, f.shape)
        if len(f) == 0:
            raise ValueError("factors must have at least one sample, got none")
        n = self.dof_of(state)
        k = self._pulled(state, symmetric_part(g))
        product = f @ (f.swapaxes(1, 2) @ k)  # Z K
        m = self._projected(symmetric_part(2 * product.mean(axis=0))) / -n
        slope = 2 * float(np.vdot(k @ f, self._factor_slopes(state, f))) / len(f)
        return WishartStep(np.array(2 * slope / self._dof_fisher(state) * _sigmoid(state)), m)

    def natural_gradient_at_mean(self, state: WishartState, gradient: Any) -> WishartStep:
        """The same from one gradient G of f at the mean: M = -C (.) kappa(2 B^-1 G B^-T) / n, delta = 0.

        `move(state, step.scaled(-rate * n / 2))` is Riemannian gradient descent with that rate on the cone of
        positive-definite matrices, up to third order; with map="exp" it follows the geodesic (paper, section 3.4).
        """
        state = self._checked(state)
        g = checks.symmetric("gradient", gradient, self.dim)
        m = self._projected(2 * self._pulled(state, g[None])[0]) / -self.dof_of(state)
        return WishartStep(np.array(0.0), m)

    def _pulled(self, state: WishartState, g: Array) -> Array:
        """B^-1 G B^-T of symmetric matrices."""
        half = self.group._solve(state.root, g.reshape(-1, self.dim)).reshape(g.shape)  # G B^-T
        rows = np.ascontiguousarray(half.swapaxes(1, 2)).reshape(-1, self.dim)
        return symmetric_part(self.group._solve(state.root, rows).reshape(g.shape))

    def _projected(self, matrix: Array) -> Array:
        return self.group._project_columns(np.ascontiguousarray(matrix[:, self.group.hub]), np.diagonal(matrix).copy())

    def _factor_slopes(self, state: WishartState, f: Array) -> Array:
        """dF/dn at fixed probabilities of the entries of sqrt(n) F."""
        i, n = np.arange(self.dim), self.dof_of(state)
        a = np.broadcast_to(multigamma.shapes(_least(state), self.dim), f.shape[:2])
        diagonal = np.diagonal(f, axis1=1, axis2=2)
        g = np.maximum(n / 2 * diagonal**2, 1e-300)
        q = multigamma.sample_elasticity(a, g, (n * (diagonal - 1) * (diagonal + 1) + i) / 2)
        slopes = np.tril(f, -1) / (-2 * n)
        slopes[:, i, i] = diagonal * (q + i / n) / (4 * a)
        return slopes

    def _dof_fisher(self, state: WishartState) -> float:
        """sigmoid(b)^2 D, the Fisher matrix of delta."""
        return _sigmoid(state) ** 2 * multigamma.trigamma_gap(_least(state), self.dim)

    # ---- moves --------------------------------------------------------------------------------------------------

    def move(self, state: WishartState, step: WishartStep, map: Literal["h", "exp"] = "h") -> WishartState:
        """b + delta and B h(M), or B Exp(M) for map = "exp"."""
        state, group = self._checked(state), self.group
        checks.instance("step", step, WishartStep)
        delta = checks.real_array("step.delta", step.delta, ())
        m = checks.real_array("step.m", step.m, (group.size,))
        if map not in ("h", "exp"):
            raise ValueError(f"map must be 'h' or 'exp', got {map!r}")
        root = group._product_h(state.root, m) if map == "h" else group._product(state.root, group._exp(m))
        return WishartState(np.asarray(state.b + delta), root)

    # ---- checks -------------------------------------------------------------------------------------------------

    def _checked(self, state: WishartState) -> WishartState:
        checks.instance("state", state, WishartState)
        b = checks.real_array("state.b", state.b, ())
        if not b > -700:  # below, the degrees of freedom are p - 1 to the last bit
            raise ValueError(f"state.b must be greater than -700, got {float(b):g}")
        return WishartState(b, checks.real_array("state.root", state.root, (self.group.size,)))

    def _factors(self, factors: Any) -> Array:
        f = checks.real_array("factors", factors, (None, *self.shape))
        if np.triu(f, 1).any():
            raise ValueError("factors must be lower triangular, as those of `sample` and `local` are")
        return f

    def _points(self, points: Any) -> Array:
        single = np.ndim(points) == 2
        w = checks.real_array("points", points, self.shape if single else (None, *self.shape))
        check_symmetric("points", w)
        return w


def _least(state: WishartState) -> float:
    """softplus(b) = (n - p + 1)/2."""
    return float(np.logaddexp(0.0, state.b))


def _sigmoid(state: WishartState) -> float:
    return 1 / (1 + math.exp(-max(float(state.b), -700.0)))
