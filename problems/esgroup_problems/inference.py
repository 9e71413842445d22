"""Logistic regression with a normal prior: the negative log posterior, which is convex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.functions import Function
from esgroup_problems.making import convex_minimizer, fixed_dim, instance_rng, optional_module
from esgroup_problems.problem import OnPoint, Problem, Space, register
from esgroup_problems.rotations import orthogonal

_JAAKKOLA = "Jaakkola, Jordan: Bayesian parameter estimation via variational methods (Statistics & Computing 10, 2000)"
_STREET = (
    "Street, Wolberg, Mangasarian: Nuclear feature extraction for breast tumor diagnosis (SPIE 1905, 1993); "
    "the Wisconsin diagnostic data as shipped with scikit-learn"
)
_FIGURE = "Lin, Nielsen, Khan, Schmidt: Tractable structured natural-gradient descent (ICML 2021), figure 1 (III)"


@dataclass(frozen=True, eq=False)
class LogisticPosterior(Function):
    """f(w) = sum_i log(1 + exp(-m_i)) + 1/2 |w|^2 with the margins m_i = y_i x_i^T w; `signed` has the rows y_i x_i.

    It is the negative log posterior under the prior N(0, I), without constants.
    """

    signed: Array

    def rows(self, x: Array) -> Array:
        losses = np.logaddexp(0.0, -(x @ self.signed.T))
        return losses.sum(axis=-1) + 0.5 * (x**2).sum(axis=-1)

    def gradient(self, x: Array) -> Array:
        return x - self._wrong(x) @ self.signed

    def product(self, x: Array, v: Array) -> Array:
        return v + (self._bends(x) * (self.signed @ v)) @ self.signed

    def diagonal(self, x: Array) -> Array:
        return 1 + self._bends(x) @ self.signed**2

    def solve(self, x: Array, g: Array) -> Array:
        """Inverse Hessian at w times g."""
        hessian = np.eye(len(x)) + (self._bends(x)[:, None] * self.signed).T @ self.signed
        return np.asarray(np.linalg.solve(hessian, g), dtype=np.float64)

    def _wrong(self, x: Array) -> Array:
        # probability of the wrong label, 1 / (1 + exp(m)), without overflow
        return 0.5 - 0.5 * np.tanh(0.5 * (self.signed @ x))

    def _bends(self, x: Array) -> Array:
        wrong = self._wrong(x)
        return wrong * (1 - wrong)


@register
def logistic_regression(dim: int = 20, *, samples: int | None = None, seed: int = 0) -> Problem:
    """Logistic regression on generated data (10 dim samples) with a normal prior: convex.

    f(w) = sum_i log(1 + exp(-y_i x_i^T w)) + 1/2 |w|^2. The features are normal with a covariance of condition 100 and
    random eigenvectors; labels are drawn from the model with normal weights. The minimum is found by Newton's method,
    to machine precision.
    """
    dim = checks.whole_number("dim", dim, least=1)
    samples = 10 * dim if samples is None else checks.whole_number("samples", samples, least=1)
    rng = instance_rng("logistic_regression", dim, seed)
    scales = np.geomspace(0.1, 1, dim)
    features = rng.standard_normal((samples, dim)) * scales @ orthogonal(1, dim, rng)[0]
    weights = 3 / np.sqrt((scales**2).sum()) * rng.standard_normal(dim)  # x_i^T w has a standard deviation of about 3
    return _problem(logistic_regression, _labeled(features, weights, rng), _JAAKKOLA)


@register
def logistic_regression_1d(dim: int = 1, *, samples: int = 20, seed: int = 0) -> Problem:
    """Logistic regression with one weight, 20 generated samples and a normal prior.

    f(w) = sum_i log(1 + exp(-y_i x_i w)) + 1/2 w^2 with normal x_i and labels drawn from the model at w = 2. The paper
    does not publish its data. The minimum is found by Newton's method, to machine precision.
    """
    dim = fixed_dim("logistic_regression_1d", dim, 1)
    rng = instance_rng("logistic_regression_1d", dim, seed)
    features = rng.standard_normal((checks.whole_number("samples", samples, least=1), dim))
    return _problem(logistic_regression_1d, _labeled(features, np.full(dim, 2.0), rng), _FIGURE, space="scalar")


@register
def logistic_breast_cancer(dim: int = 31) -> Problem:
    """Logistic regression on the breast cancer data: 569 cases, 30 features, intercept.

    f(w) = sum_i log(1 + exp(-y_i x_i^T w)) + 1/2 |w|^2. The features have mean 0 and variance 1, a column of ones comes
    last, and y is 1 for benign and -1 for malignant. The prior applies to all weights. The minimum is found by Newton's
    method, to machine precision. Needs scikit-learn.
    """
    dim = fixed_dim("logistic_breast_cancer", dim, 31)
    who = "the breast cancer data"
    datasets = optional_module("sklearn.datasets", package="scikit-learn", extra="sim", who=who)
    features, benign = datasets.load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    with_ones = np.column_stack([features, np.ones(len(features))])
    return _problem(logistic_breast_cancer, np.where(benign, 1.0, -1.0)[:, None] * with_ones, _STREET)


def _labeled(features: Array, weights: Array, rng: np.random.Generator) -> Array:
    # y_i x_i with P(y_i = 1) = 1 / (1 + exp(-x_i^T w))
    positive = rng.logistic(size=len(features)) < features @ weights
    return np.where(positive, 1.0, -1.0)[:, None] * features


def _problem(maker: Callable[..., Problem], signed: Array, source: str, *, space: Space = "vector") -> Problem:
    function = LogisticPosterior(signed)
    start = np.zeros(signed.shape[1])
    minimizer = convex_minimizer(OnPoint(function.rows), function.gradient, function.solve, start)
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        space=space,
        fun=OnPoint(function.rows),
        batch=function.rows,
        gradient=function.gradient,
        hessian_product=function.product,
        hessian_diagonal=function.diagonal,
        x0=start,
        sigma0=1.0,
        start_box=(-2.0, 2.0),
        minimizer=minimizer,
        minimum=OnPoint(function.rows)(minimizer),
    )
