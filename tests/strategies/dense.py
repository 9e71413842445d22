"""One generation on dense matrices, written out from the published formulas; only two rates come from the package."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import gamma

from esgroup.groups import BlockDiagonal, Conjugate, Diagonal, Full, Group, Kronecker, Triangular
from esgroup.strategies import rates
from tests.groups import oracle

Array = np.ndarray


class Numbers(NamedTuple):
    """Weights by rank and rates, with the letters of the CMA-ES tutorial; c_1d, c_mud are those of log D."""

    u: Array
    w: Array
    mu_eff: float
    mean_mu_eff: float
    c_s: float
    d_s: float
    c_c: float
    c_1: float
    c_mu: float
    c_1d: float
    c_mud: float
    least: float  # share of a step of log D


def chi(n: int) -> float:
    """E|N(0, I)|."""
    return math.sqrt(2) * gamma((n + 1) / 2) / gamma(n / 2)


def numbers(n: int, popsize: int, dof: int, negative_mean: float = 0.0, damping: float = 1.0) -> Numbers:
    """Hansen, arXiv 1604.00772, eqs. 49-58; c_1 and c_mu depend on the degrees of freedom as test_rates says."""
    raw = np.array([math.log((popsize + 1) / 2) - math.log(i) for i in range(1, popsize + 1)])
    mu = popsize // 2
    plus, minus = raw[:mu], raw[mu:]
    mu_eff, mu_eff_minus = plus.sum() ** 2 / (plus**2).sum(), minus.sum() ** 2 / (minus**2).sum()
    c_1, c_mu = rates.root_rates(n, dof, mu_eff)
    total = min(1 + c_1 / c_mu, 1 + 2 * mu_eff_minus / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu))
    u = np.concatenate([plus / plus.sum(), negative_mean * minus / -minus.sum()])
    w = np.concatenate([plus / plus.sum(), total * minus / -minus.sum()])
    mean_mu_eff = 1 / (u**2).sum()
    c_s = min(0.5, (mean_mu_eff + 2) / (n + mean_mu_eff + 5))
    d_s = damping * (1 + 2 * max(0, math.sqrt(max(0, mean_mu_eff - 1) / (n + 1)) - 1) + c_s)
    c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
    faster = max(1, (n + 1) / 3)
    c_1d = min(0.5, faster * 2 / (n**2 + 2.6 * n + 1.7 + mu_eff))
    c_mu_full = 2 * (mu_eff - 1.75 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff)
    c_mud = min(0.5, 1 - c_1d, max(faster * c_mu_full, min(0.2, 3 * faster * c_mu_full)))
    least = min(1, 2 * c_mu_full / c_mud)
    return Numbers(u, w, mu_eff, mean_mu_eff, c_s, d_s, c_c, c_1, c_mu, c_1d, c_mud, least)


def projection(group: Group) -> Callable[[Array], Array]:
    """C (.) kappa of dense symmetric matrices, from a basis B_i: F n = g, F_ij = <B_i + B_i^T, B_j + B_j^T> / 2."""
    if isinstance(group, Full) and group.dim > 9:
        return lambda g: g / 2  # the same, without a basis of thousands of matrices
    basis = np.array(oracle.local_basis(group))
    flat = basis.reshape(len(basis), -1)
    symmetric = (basis + basis.transpose(0, 2, 1)).reshape(len(basis), -1)
    solution = np.linalg.solve(symmetric @ symmetric.T / 2, flat)
    return lambda g: np.tensordot(solution @ g.ravel(), basis, 1)


def h(group: Group, m: Array) -> Array:
    """I + M + M^2/2, factor by factor in a Kronecker product, whose factors share the trace of M evenly."""
    match group:
        case Kronecker():
            p, q = group.first.dim, group.second.dim
            blocks, half = m.reshape(p, q, p, q), np.trace(m) / (2 * p * q)
            m1 = np.trace(blocks, axis1=1, axis2=3) / q - half * np.eye(p)
            m2 = np.trace(blocks, axis1=0, axis2=2) / p - half * np.eye(q)
            return np.kron(h(group.first, m1), h(group.second, m2))
        case BlockDiagonal():
            out, start = np.zeros(m.shape), 0
            for part in group.groups:
                own = slice(start, start + part.dim)
                out[own, own], start = h(part, m[own, own]), start + part.dim
            return out
        case Conjugate():
            q = group.by if group.by.ndim == 2 else np.eye(group.dim)[:, group.by]
            return q @ h(group.group, q.T @ m @ q) @ q.T
    return np.eye(len(m)) + m + m @ m / 2


def flow(group: Group, project: Callable[[Array], Array], z: Array, w: Array, shift: float) -> Array:
    """S with S S^T = (1 - s) I + sum_i w_i z_i z_i^T, or midpoint steps of its natural gradients in other groups."""
    wanted = (1 - shift) * np.eye(len(z.T)) + (z.T * w) @ z
    match group:
        case Full():
            return scipy.linalg.sqrtm(wanted).real
        case Triangular():
            turn = slice(None) if group.lower else slice(None, None, -1)
            return np.linalg.cholesky(wanted[turn, turn])[turn, turn]
        case Diagonal():
            return np.diag(np.sqrt(np.diagonal(wanted)))
    steps = max(1, round(4 * (np.abs(w) @ z**2).max()))
    time = (-math.log1p(-shift) / shift if shift else 1.0) / steps  # rounding may leave a shift of 1e-17
    s = np.eye(len(wanted))

    def gradient(at: Array) -> Array:
        inverse = np.linalg.inv(at)
        return project(time * (inverse @ (z.T * w) @ z @ inverse.T - shift * np.eye(len(wanted))))

    for _ in range(steps):
        s = s @ h(group, gradient(s @ h(group, gradient(s) / 2)))
    return s


@dataclass
class Rates:
    """LRA-CMA-ES: rate, E and V of one kind of step (Nomura, Akimoto and Ono 2023, section 3)."""

    beta: float
    eta: float = 1.0
    mean: Array | float = 0.0
    square: float = 0.0

    def update(self, step: Array, alpha: float = 1.4, gamma_: float = 0.1) -> None:
        beta = self.beta
        self.mean = (1 - beta) * self.mean + beta * step
        self.square = (1 - beta) * self.square + beta * (step**2).sum()
        signal = (self.mean**2).sum()
        snr = (signal - beta / (2 - beta) * self.square) / (self.square - signal)
        drive = min(1, max(-1, snr / (alpha * self.eta) - 1))
        self.eta = min(1, self.eta * math.exp(min(gamma_ * self.eta, beta) * drive))


class Trend:
    """How much of a step of log D is taken, from all its steps so far."""

    def __init__(self, n: int) -> None:
        self.steps: list[Array] = []
        self.b = 1 / (2 * n)

    def share(self, step: Array, least: float, slope: float = 0.5) -> float:
        """The ratio of the squared mean of the steps to what it is without a signal, with weights b (1 - b)^age."""
        self.steps.append(step)
        n, weights = len(step), self.b * (1 - self.b) ** np.arange(len(self.steps))[::-1]
        mean = weights @ np.array(self.steps)
        noise = (weights**2).sum() * (weights @ [s @ s for s in self.steps]) / weights.sum()
        return min(1, max(least, slope * (mean @ mean / noise - 1 - math.sqrt(2 / n))))


@dataclass
class Dense:
    """A search with x = mean + sigma D A z, D = diag(d), and how it moves."""

    group: Group
    numbers: Numbers
    mean: Array
    sigma: float
    d: Array
    a: Array
    decoded: bool = False
    adapted: bool = False
    t: int = 0
    report: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.mean)
        self.p_s, self.p_c = np.zeros(n), np.zeros(n)
        self.project = projection(self.group)
        self.of_mean, self.of_root = Rates(0.1), Rates(0.03)
        self.fisher = self.information()
        self.trend = Trend(n)

    def information(self) -> Array:
        """F sqrt(max F / 2) with the Fisher information F of log D."""
        covariance = self.a @ self.a.T
        fisher = 1 + np.diagonal(covariance) * np.diagonal(np.linalg.inv(covariance))
        return fisher * math.sqrt(fisher.max() / 2)

    def copy(self) -> "Dense":
        return copy.deepcopy(self)

    def points(self, z: Array) -> Array:
        return self.mean + self.sigma * self.d * (z @ self.a.T)

    def move(self, z: Array, order: Array) -> None:
        """Do one generation of samples z (rows), `order` from best to worst."""
        k, n, best_first = self.numbers, len(self.mean), z[order]
        delta = k.u @ best_first
        eta_mean, eta_root = self.of_mean.eta, self.of_root.eta
        self.mean = self.mean + eta_mean * self.sigma * self.d * (self.a @ delta)
        self.t += 1
        self.p_s = (1 - k.c_s) * self.p_s + math.sqrt(k.c_s * (2 - k.c_s) * k.mean_mu_eff) * delta
        length = np.linalg.norm(self.p_s)
        log_step = min(1.0, k.c_s / k.d_s * (length / chi(n) - 1))
        steady = length / math.sqrt(1 - (1 - k.c_s) ** (2 * self.t)) < (1.4 + 2 / (n + 1)) * chi(n)
        gain = math.sqrt(k.c_c * (2 - k.c_c) * k.mean_mu_eff) if steady else 0.0
        self.p_c = (1 - k.c_c) * self.p_c + gain * delta
        pull = 1 if steady else 1 - k.c_c * (2 - k.c_c)
        # negative weights are those of samples of length sqrt(n), except for points at the mean, without a direction
        squares = [s @ s if s @ s > 1e-8 * n else n for s in best_first]
        w = np.array([w * n / square if w < 0 else w for w, square in zip(k.w, squares, strict=True)])
        g = k.c_1 * (np.outer(self.p_c, self.p_c) - pull * np.eye(n))
        g += k.c_mu * ((best_first.T * w) @ best_first - k.w.sum() * np.eye(n))
        clip = 1 / max(1, (k.c_1 * self.p_c**2 + k.c_mu * np.abs(w) @ best_first**2).max())
        m = self.project(clip * g)
        exponent = np.zeros(n)
        if self.decoded:
            if isinstance(self.group, Full) and n <= 48:  # at every step; for others when the search refreshes
                self.fisher = self.information()
            exponent = eta_root * self.score(best_first, w, pull) / self.fisher
            step = np.clip(exponent, -1, 1)
            self.d = self.d * np.exp(self.trend.share(step, k.least) * step)
        if k.c_1 + k.c_mu > 0.1 and not self.adapted:
            rows, weights = np.vstack([best_first, self.p_c]), clip * np.append(k.c_mu * w, k.c_1)
            step = flow(self.group, self.project, rows, weights, clip * (k.c_1 * pull + k.c_mu * k.w.sum()))
        else:
            step = h(self.group, eta_root * m)
        self.a = self.a @ step
        self.sigma *= math.exp(eta_root * log_step)
        if self.adapted:
            self.of_mean.update(delta)
            self.of_root.update(m + log_step * np.eye(n))
            self.sigma *= eta_mean / self.of_mean.eta
        self.report = {"steady": steady, "clip": clip, "log_step": log_step, "exponent": np.abs(exponent).max()}

    def score(self, best_first: Array, w: Array, pull: float) -> Array:
        """The derivative by log D of the weighted log densities: (A^-T z)_j (A z)_j - 1 for each sample."""
        k = self.numbers
        inverse = np.linalg.inv(self.a)
        ratio = (best_first @ inverse) * (best_first @ self.a.T)
        path = (self.p_c @ inverse) * (self.a @ self.p_c)
        return k.c_1d * (path - pull) + k.c_mud * (w @ ratio - k.w.sum())
