"""The methods of the metric nearness experiment. Each sees the gradient of a mini-batch and has a point, its mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from esgroup import Wishart
from esgroup.compare.charts import CholeskyFactor, Logarithm
from esgroup.distributions.wishart import WishartState, WishartStep
from reproduction.experiment import Array

Gradient = Callable[[Array], Array]  # of the mini-batch, at a positive-definite matrix
LARGEST_GROWTH = 1.05  # of the degrees of freedom in one iteration, either way


class Method(Protocol):
    """A method while it runs."""

    point: Array

    def advance(self, gradient: Gradient) -> None:
        """One iteration."""
        ...


def _exponential(symmetric: Array) -> Array:
    values, vectors = np.linalg.eigh(symmetric)
    result: Array = (vectors * np.exp(values)) @ vectors.T
    return result


def geodesic(point: Array, gradient: Array, rate: float) -> Array:
    """L Exp(-rate L^T G L) L^T with Z = L L^T: Riemannian gradient descent on the cone along its geodesic."""
    root = np.linalg.cholesky(point)
    half = root @ _exponential(-0.5 * rate * (root.T @ gradient @ root))
    result: Array = half @ half.T
    return result


def retraction(point: Array, gradient: Array, rate: float) -> Array:
    """U + rate G + rate^2/2 G U^-1 G for U = Z^-1, then Z again: the paper's RGD (section 3.4)."""
    moved = np.linalg.inv(point) + rate * gradient + 0.5 * rate**2 * gradient @ point @ gradient
    back = np.linalg.inv(moved)
    return (back + back.T) / 2


class Riemannian:
    """RGD."""

    def __init__(self, start: Array, rate: float) -> None:
        self.point, self.rate = start, rate

    def advance(self, gradient: Gradient) -> None:
        self.point = geodesic(self.point, gradient(self.point), self.rate)


class AtMean:
    """Our update with the gradient at the mean; beta = rate n / 2, so that n does not matter."""

    def __init__(self, start: Array, rate: float, map: Literal["h", "exp"] = "h") -> None:
        self.family, self.rate, self.map = Wishart(start), rate, map
        self.state, self.point = self.family.state(), start

    def advance(self, gradient: Gradient) -> None:
        step = self.family.natural_gradient_at_mean(self.state, gradient(self.point))
        beta = self.rate * self.family.dof_of(self.state) / 2
        self.state = self.family.move(self.state, step.scaled(-beta), map=self.map)
        self.point = self.family.mean_of(self.state)


class Sampled:
    """Our update with reparameterised gradients of one sample, of B and b (`joint`) or of B only; beta = rate n / 2.

    n changes by at most 5 % in an iteration: one sample says little about it.
    """

    def __init__(self, start: Array, rate: float, dof: float, joint: bool, rng: np.random.Generator) -> None:
        self.family, self.rate, self.joint, self.rng = Wishart(start, dof=dof), rate, joint, rng
        self.state, self.point = self.family.state(), start

    @property
    def dof(self) -> float:
        return self.family.dof_of(self.state)

    def advance(self, gradient: Gradient) -> None:
        samples = self.family.sample(self.state, 1, self.rng)
        step = self.family.natural_gradient(self.state, samples.factors, gradient(samples.points[0])[None])
        beta = self.rate * self.dof / 2
        moved = self._bounded(step.scaled(-beta, -beta if self.joint else 0.0))
        self.state = self.family.move(self.state, moved)
        self.point = self.family.mean_of(self.state)

    def _bounded(self, step: WishartStep) -> WishartStep:
        b, n, p = float(self.state.b), self.dof, self.family.dim
        wanted = self.family.dof_of(WishartState(np.array(max(b + float(step.delta), -500.0)), self.state.root))
        allowed = min(max(wanted, n / LARGEST_GROWTH, p - 1 + (n - p + 1) / LARGEST_GROWTH), n * LARGEST_GROWTH)
        if allowed == wanted:
            return step
        least = (allowed - (p - 1)) / 2
        return WishartStep(np.array(least + math.log(-math.expm1(-least)) - b), step.m)


class Adam:
    """Adam on the coordinates of a chart, with its usual constants (Kingma and Ba 2015): trivialisation."""

    def __init__(self, start: Array, rate: float, chart: CholeskyFactor | Logarithm) -> None:
        self.chart, self.rate, self.vector, self.point = chart, rate, chart.vector(start), start
        self.first, self.second, self.count = np.zeros_like(self.vector), np.zeros_like(self.vector), 0

    def advance(self, gradient: Gradient) -> None:
        g, self.count = self.chart.pull_back(self.vector, gradient(self.point)), self.count + 1
        self.first += 0.1 * (g - self.first)
        self.second += 0.001 * (g * g - self.second)
        first, second = self.first / (1 - 0.9**self.count), self.second / (1 - 0.999**self.count)
        self.vector = self.vector - self.rate * first / (np.sqrt(second) + 1e-8)
        self.point = self.chart.points(self.vector)


@dataclass(frozen=True)
class Setup:
    """A method of the table: its name, how it is made from (start, rate, generator), and the grid of its rates."""

    name: str
    make: Callable[[Array, float, np.random.Generator], Method]
    rates: tuple[float, ...]


def _sampled(dof: float, joint: bool) -> Callable[[Array, float, np.random.Generator], Method]:
    return lambda start, rate, rng: Sampled(start, rate, dof, joint, rng)


def setups(dim: int) -> tuple[Setup, ...]:
    """All methods. n is 2 p at the start of the sampled ones, and larger for those that keep it."""
    few = 2.0 * dim
    fixed = (Setup(fixed_name(n), _sampled(n, False), _OURS) for n in (few, 1e5, 1e8))
    return (
        Setup("RGD", lambda start, rate, rng: Riemannian(start, rate), _MEAN),
        Setup("our-mean", lambda start, rate, rng: AtMean(start, rate), _MEAN),
        Setup("our-rep", _sampled(few, True), _OURS),
        *fixed,
        Setup("Adam, Cholesky", lambda start, rate, rng: Adam(start, rate, CholeskyFactor(start.shape)), _ADAM),
        Setup("Adam, logarithm", lambda start, rate, rng: Adam(start, rate, Logarithm(start.shape)), _ADAM),
    )


def fixed_name(dof: float) -> str:
    return f"our-fixed-rep, n = {dof:g}"


_MEAN = (0.03, 0.05, 0.1, 0.2)
_OURS = (0.01, 0.03, 0.1)
_ADAM = (0.001, 0.003, 0.01, 0.03)
