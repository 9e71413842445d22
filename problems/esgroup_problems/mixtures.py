"""Negative log density of a mixture of Student's t distributions: many basins, heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.functions import Function
from esgroup_problems.making import instance_rng
from esgroup_problems.problem import OnPoint, Problem, register

_PAPER = (
    "Lin, Nielsen, Khan, Schmidt: Tractable structured natural-gradient descent (ICML 2021), section 5.2; after "
    "Lin, Schmidt, Khan: Handling the positive-definite constraint in the Bayesian learning rule (ICML 2020)"
)
_SPREAD = 20.0  # the paper's s: every coordinate of a center is uniform in (-s, s)
_DEGREES = 2.0  # the paper's alpha


@dataclass(frozen=True, eq=False)
class StudentMixture(Function):
    """f(x) = -log(1/C sum_c T(x | u_c, V_c, a)), T being Student's t with location u, shape V and a degrees of freedom.

    `centers` are the u_c, (C, dim), `precisions` the V_c^-1, (C, dim, dim), `heights` log(T(u_c | u_c, V_c, a) / C).
    """

    centers: Array
    precisions: Array
    heights: Array
    degrees: float

    def rows(self, x: Array) -> Array:
        gaps = x - self.centers[:, None, :]  # (C, n, dim)
        logs = self._logs((gaps @ self.precisions * gaps).sum(axis=-1).T)
        top = logs.max(axis=1)
        return -top - np.log(np.exp(logs - top[:, None]).sum(axis=1))

    def gradient(self, x: Array) -> Array:
        shares, pulls, _ = self._at(x)
        return shares @ pulls

    def product(self, x: Array, v: Array) -> Array:
        # Hessian = sum_c share_c (H_c - s_c s_c^T) + g g^T with H_c = strength_c P_c - s_c s_c^T / power, s_c = pull_c
        shares, pulls, strengths = self._at(x)
        ahead, mean = (self.precisions @ v) * strengths[:, None], shares @ pulls
        bent = (1 + 1 / self._power) * (pulls @ v)
        return shares @ (ahead - bent[:, None] * pulls) + (mean @ v) * mean

    def diagonal(self, x: Array) -> Array:
        shares, pulls, strengths = self._at(x)
        ahead = np.einsum("cii->ci", self.precisions) * strengths[:, None]
        return shares @ (ahead - (1 + 1 / self._power) * pulls**2) + (shares @ pulls) ** 2

    def mode(self, x: Array) -> Array:
        """Local minimizer that mean-shift steps reach from x; no step increases f.

        Each step minimizes a quadratic above f: x <- (sum_c w_c P_c)^-1 sum_c w_c P_c u_c with w_c = share_c strength_c
        (Carreira-Perpinan: Gaussian mean-shift is an EM algorithm, IEEE Transactions PAMI 29, 2007).
        """
        for _ in range(1000):
            shares, _, strengths = self._at(x)
            weighted = (shares * strengths)[:, None, None] * self.precisions
            new = np.linalg.solve(weighted.sum(axis=0), np.einsum("cij,cj->i", weighted, self.centers))
            x, moved = new, np.abs(new - x).max()
            if moved < 1e-12 * _SPREAD:
                break
        return x

    @property
    def _power(self) -> float:
        return (self.degrees + len(self.centers[0])) / 2

    def _logs(self, distances: Array) -> Array:
        # log(T_c(x) / C) from the squared distances of x to all centers, which are on the last axis
        return self.heights - self._power * np.log1p(distances / self.degrees)

    def _at(self, x: Array) -> tuple[Array, Array, Array]:
        # per component: its share of the density at x; its pull -grad log T_c = strength_c P_c (x - u_c); the strength
        gaps = x - self.centers
        ahead = np.einsum("cij,cj->ci", self.precisions, gaps)
        distances = (ahead * gaps).sum(axis=1)
        logs = self._logs(distances)
        shares = np.exp(logs - logs.max())
        strengths = 2 * self._power / (self.degrees + distances)
        return shares / shares.sum(), strengths[:, None] * ahead, strengths


def student_mixture_function(centers: Array, precisions: Array, degrees: float) -> StudentMixture:
    """Make the function of these components, all with the same weight."""
    count, dim = centers.shape
    gammas = math.lgamma((degrees + dim) / 2) - math.lgamma(degrees / 2)
    constant = gammas - dim / 2 * math.log(degrees * math.pi) - math.log(count)
    return StudentMixture(centers, precisions, constant + 0.5 * np.linalg.slogdet(precisions)[1], degrees)


@register
def student_t_mixture(dim: int = 20, *, components: int = 10, narrow: bool = False, seed: int = 0) -> Problem:
    """Negative log density of ten Student's t distributions: ten basins, heavy tails.

    There are two degrees of freedom. Centers are uniform in (-20, 20)^dim; the shape matrices are V = A^T A + I with
    normal A of variance 0.1 dim. The text of the paper is ambiguous about the latter: in the code published with the
    article of 2020 A has the standard deviation 0.1 dim and A^T A + I is the inverse of V, which is the variant
    `narrow=True`.

    The stated minimum is the lowest of the local minima that descents from all centers reach.
    """
    dim = checks.whole_number("dim", dim, least=1)
    components, narrow = checks.whole_number("components", components, least=1), checks.flag("narrow", narrow)
    rng = instance_rng("student_t_mixture", dim, seed)
    centers = rng.uniform(-_SPREAD, _SPREAD, (components, dim))
    a = (0.1 * dim if narrow else math.sqrt(0.1 * dim)) * rng.standard_normal((components, dim, dim))
    shapes = a.swapaxes(1, 2) @ a + np.eye(dim)
    precisions = shapes if narrow else np.asarray(np.linalg.inv(shapes), dtype=np.float64)
    function = student_mixture_function(centers, precisions, _DEGREES)
    lowest = min(OnPoint(function.rows)(function.mode(center)) for center in centers)
    return Problem(
        name=student_t_mixture.__name__,
        description=summary(student_t_mixture),
        source=_PAPER,
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        hessian_diagonal=function.diagonal,
        x0=np.zeros(dim),
        sigma0=_SPREAD / 2,
        start_box=(-_SPREAD, _SPREAD),
        minimum=lowest,
    )
