"""Figure 1 (III): Bayesian logistic regression with one weight, and gradient descent in several parameterisations.

q = N(mu, sigma^2) minimizes L = E_q f + E_q log q (ELBO = -L), where f is the negative log posterior. Expectations are
Gauss-Hermite sums. With G = dL/d log sigma and a parameter theta(sigma) of slope J = d theta / d log sigma:

    GD      mu - beta dL/dmu            theta - beta G / J
    NGD     mu - beta sigma^2 dL/dmu    theta - beta J G / 2        (the Fisher matrix is diag(1/sigma^2, 2/J^2))
    ours    `Gaussian.natural_score` and `move`: A or B times Exp(M) or h(M)

The paper gives neither data nor start nor step. The data are the problem `logistic_regression_1d`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import roots_hermitenorm

from esgroup import Gaussian
from esgroup_problems.inference import logistic_regression_1d
from reproduction.experiment import Array, Experiment, Plan, Row
from reproduction.fig1_drawing import figure
from reproduction.fig1_verdicts import TARGET, notes, verdicts

NODES = 250
ITERATIONS = 400
BETAS = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0)
QUICK_BETAS = (0.1, 0.2, 0.5)
STARTS = {"prior": (0.0, 1.0), "wide": (-2.0, 3.0), "narrow": (-2.0, 0.2)}  # mean and standard deviation
SHOWN = ("narrow", 0.1)  # start and step of the figure


class Point(NamedTuple):
    mean: float
    sigma: float


class Objective:
    """L and its gradient by Gauss-Hermite quadrature: from values of f alone, since E f' = E[f z] / sigma."""

    def __init__(self, batch: Callable[[Array], Array], nodes: int = NODES) -> None:
        z, weights = roots_hermitenorm(nodes)
        self.batch, self.z, self.weights = batch, z, weights / weights.sum()

    def values(self, at: Point) -> Array:
        """f at the nodes."""
        return self.batch((at.mean + at.sigma * self.z)[:, None])

    def loss(self, at: Point) -> float:
        return float(self.weights @ self.values(at)) - 0.5 * math.log(2 * math.pi * math.e) - math.log(at.sigma)

    def gradient(self, at: Point) -> tuple[float, float]:
        """By mu and by log sigma; the entropy has the gradient (0, 1)."""
        weighted = self.weights * self.values(at)
        return float(weighted @ self.z) / at.sigma, float(weighted @ (self.z**2 - 1)) - 1


# ---- methods --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """theta = sigma^power, or factor log sigma for power 0."""

    power: float
    factor: float = 1.0

    def theta(self, sigma: float) -> float:
        return sigma**self.power if self.power else self.factor * math.log(sigma)

    def slope(self, sigma: float) -> float:
        """d theta / d log sigma."""
        return self.power * sigma**self.power if self.power else self.factor

    def sigma(self, theta: float) -> float:
        """NaN if theta has left its domain."""
        if not self.power:
            return math.exp(theta / self.factor) if abs(theta) < 500 else math.nan
        return theta ** (1 / self.power) if theta > 0 else math.nan


SCALES = {
    "log σ": Scale(0),
    "log σ²": Scale(0, 2.0),
    "σ": Scale(1),
    "σ²": Scale(2),
    "1/σ²": Scale(-2),
    "log 1/σ²": Scale(0, -2.0),
}


class Method(Protocol):
    """One iteration of a method."""

    def __call__(self, objective: Objective, at: Point, beta: float) -> Point: ...


@dataclass(frozen=True)
class Descent:
    """GD in mu and theta."""

    scale: Scale

    def __call__(self, objective: Objective, at: Point, beta: float) -> Point:
        by_mean, by_log = objective.gradient(at)
        theta = self.scale.theta(at.sigma) - beta * by_log / self.scale.slope(at.sigma)
        return Point(at.mean - beta * by_mean, self.scale.sigma(theta))


@dataclass(frozen=True)
class NaturalDescent:
    """Standard NGD in mu and theta."""

    scale: Scale

    def __call__(self, objective: Objective, at: Point, beta: float) -> Point:
        by_mean, by_log = objective.gradient(at)
        theta = self.scale.theta(at.sigma) - beta * self.scale.slope(at.sigma) * by_log / 2
        return Point(at.mean - beta * at.sigma**2 * by_mean, self.scale.sigma(theta))


@dataclass(frozen=True)
class Local:
    """The package's update in local coordinates, with the quadrature's nodes for samples."""

    form: Literal["covariance", "precision"]
    map: Literal["h", "exp"]

    def __call__(self, objective: Objective, at: Point, beta: float) -> Point:
        family = Gaussian("full", mean=np.array([at.mean]), sigma0=at.sigma, form=self.form)
        state, z = family.state(), objective.z[:, None]
        log_q = family.log_density(state, family.points(state, z).x)
        step = family.natural_score(z, objective.weights * (objective.values(at) + log_q))
        moved = family.move(state, step.scaled(-beta), map=self.map)
        return Point(float(moved.mean[0]), math.sqrt(family.dense_covariance(moved)[0, 0]))


METHODS: dict[str, Method] = {
    "ours, covariance, Exp": Local("covariance", "exp"),
    "ours, precision, Exp": Local("precision", "exp"),
    "ours, covariance, h": Local("covariance", "h"),
    "ours, precision, h": Local("precision", "h"),
    **{f"NGD in {name}": NaturalDescent(scale) for name, scale in SCALES.items()},
    **{f"GD in {name}": Descent(scale) for name, scale in SCALES.items()},
}
REFERENCE = "ours, covariance, Exp"

# ---- run ------------------------------------------------------------------------------------------------------------


def path_of(method: Method, objective: Objective, start: Point, beta: float, iterations: int) -> list[Point]:
    """The iterates; they end where the scale leaves its domain or the numbers become too large."""
    points = [start]
    for _ in range(iterations):
        try:
            point = method(objective, points[-1], beta)
        except (ValueError, OverflowError, np.linalg.LinAlgError):
            break
        if not (abs(point.mean) < 1e6 and 1e-6 < point.sigma < 1e6):
            break
        points.append(point)
    return points


def distance(path: list[Point], reference: list[Point]) -> float:
    """The largest distance of iterates in the Fisher metric, inf if one path ends early."""
    if len(path) != len(reference):
        return math.inf
    pairs = zip(path, reference, strict=True)
    return max(math.hypot((a.mean - b.mean) / b.sigma, math.sqrt(2) * math.log(a.sigma / b.sigma)) for a, b in pairs)


def optimum(objective: Objective) -> Point:
    """The minimizer of L: NGD has a linear rate, so that 500 steps are enough."""
    at, method = Point(0.0, 1.0), Local("covariance", "exp")
    for _ in range(500):
        at = method(objective, at, 0.3)
    return at


def run(plan: Plan) -> Iterator[Row]:
    problem = logistic_regression_1d(seed=plan.seed)
    objective = Objective(problem.batch)
    best = optimum(objective)
    yield from _facts(problem.batch, objective, best)
    yield from _surface(objective, best, 11 if plan.quick else 41)
    starts = {SHOWN[0]: STARTS[SHOWN[0]]} if plan.quick else STARTS
    for start, values in starts.items():
        for beta in QUICK_BETAS if plan.quick else BETAS:
            plan.say(f"start {start}, step {beta:g}")
            yield from _case(objective, best, start, Point(*values), beta, 40 if plan.quick else ITERATIONS)


def _facts(batch: Callable[[Array], Array], objective: Objective, best: Point) -> Iterator[Row]:
    yield Row("optimum", "", "mean", 0, best.mean)
    yield Row("optimum", "", "log sigma", 0, math.log(best.sigma))
    yield Row("optimum", "", "gradient", 0, max(map(abs, objective.gradient(best))))
    finer = Objective(batch, 2 * NODES)
    for name, at in {**{name: Point(*start) for name, start in STARTS.items()}, "optimum": best}.items():
        yield Row("quadrature", name, "error", NODES, abs(finer.loss(at) - objective.loss(at)))


def _surface(objective: Objective, best: Point, count: int) -> Iterator[Row]:
    """L - L* on a grid; the case is log sigma."""
    lowest = objective.loss(best)
    for log_sigma in np.linspace(-1.9, 0.9, count):
        for mean in np.linspace(-2.5, 2.5, count):
            gap = objective.loss(Point(float(mean), math.exp(log_sigma))) - lowest
            yield Row("surface", f"{log_sigma:.6g}", "gap", float(mean), gap)


def _case(objective: Objective, best: Point, start: str, point: Point, beta: float, iterations: int) -> Iterator[Row]:
    case, lowest = f"{start}, {beta:g}", objective.loss(best)
    paths = {name: path_of(method, objective, point, beta, iterations) for name, method in METHODS.items()}
    yield Row("between", case, "GD in log σ, log σ²", beta, distance(paths["GD in log σ"], paths["GD in log σ²"]))
    for name, path in paths.items():
        gaps = np.array([objective.loss(at) - lowest for at in path])
        below = np.flatnonzero(gaps <= TARGET)
        yield Row("iterations", case, name, beta, float(below[0]) if below.size else math.inf)
        yield Row("distance", case, name, beta, distance(path, paths[REFERENCE]))
        if (start, beta) == SHOWN:
            yield from _whole(case, name, path, gaps)


def _whole(case: str, name: str, path: list[Point], gaps: Array) -> Iterator[Row]:
    for t, (at, gap) in enumerate(zip(path, gaps, strict=True)):
        yield Row("mean", case, name, t, at.mean)
        yield Row("log sigma", case, name, t, math.log(at.sigma))
        yield Row("gap", case, name, t, float(gap))


FIG1 = Experiment(
    name="fig1",
    title="Invariance to the parameterisation (figure 1 (III))",
    about=(
        "Bayesian logistic regression with one weight: a Gaussian fitted by gradient descent (GD) and natural-gradient "
        "descent (NGD) in several parameters of its scale. Three starts, seven steps, exact expectations."
    ),
    run=run,
    figure=figure,
    verdicts=verdicts,
    notes=notes,
)
