"""Posteriors and densities against SciPy and scikit-learn."""

import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_t, t

import esgroup_problems as zoo
from esgroup.checks import Array
from esgroup_problems.inference import (
    LogisticPosterior,
    logistic_breast_cancer,
    logistic_regression,
    logistic_regression_1d,
)
from esgroup_problems.mixtures import StudentMixture, student_mixture_function, student_t_mixture

RNG = np.random.default_rng(9)


def mixture(problem: zoo.Problem) -> StudentMixture:
    function: StudentMixture = problem.batch.__self__
    return function


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("dim", [1, 6])
def test_the_mixture_is_that_of_scipys_densities(dim: int, narrow: bool) -> None:
    problem = student_t_mixture(dim, components=4, narrow=narrow, seed=2)
    function = mixture(problem)
    x = np.concatenate([RNG.uniform(-20, 20, (5, dim)), function.centers])
    parts = zip(function.centers, np.linalg.inv(function.precisions), strict=True)
    logs = [multivariate_t(center, shape, df=2).logpdf(x) for center, shape in parts]
    np.testing.assert_allclose(problem.batch(x), -(logsumexp(logs, axis=0) - np.log(4)), rtol=1e-11)


def test_one_component_in_one_dimension_is_students_t() -> None:
    function = student_mixture_function(np.array([[3.0]]), np.array([[[0.25]]]), degrees=5.0)
    x = np.array([[-1.0], [3.0], [40.0]])
    np.testing.assert_allclose(function.rows(x), -t(5, loc=3, scale=2).logpdf(x[:, 0]), rtol=1e-13)


@pytest.mark.parametrize(("narrow", "deviation"), [(False, np.sqrt(0.1 * 30)), (True, 0.1 * 30)])
def test_shapes_have_the_size_that_is_told(narrow: bool, deviation: float) -> None:
    # the mean of tr(A^T A + I) is dim^2 deviation^2 + dim, over ten matrices within a few percent
    function = mixture(student_t_mixture(30, narrow=narrow, seed=1))
    matrices = function.precisions if narrow else np.linalg.inv(function.precisions)
    assert np.trace(matrices, axis1=1, axis2=2).mean() == pytest.approx(900 * deviation**2 + 30, rel=0.05)
    assert np.linalg.eigvalsh(matrices).min() > 1 - 1e-9
    assert function.centers.shape == (10, 30) and 19 < np.abs(function.centers).max() < 20


def test_the_curvature_at_the_center_of_one_component_is_known() -> None:
    # log T = const - (a + d)/2 log(1 + q / a) has the Hessian -(a + d)/a P at q = 0
    g = RNG.standard_normal((3, 3))
    p, center, v = g @ g.T + np.eye(3), RNG.standard_normal(3), RNG.standard_normal(3)
    function = student_mixture_function(center[None], p[None], degrees=2.0)
    np.testing.assert_allclose(function.product(center, v), 2.5 * p @ v, rtol=1e-12)
    np.testing.assert_allclose(function.diagonal(center), 2.5 * np.diag(p), rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 20])
def test_the_minimum_is_the_lowest_of_the_modes(dim: int) -> None:
    problem = student_t_mixture(dim, seed=3)
    function = mixture(problem)
    modes = np.array([function.mode(center) for center in function.centers])
    assert max(np.abs(problem.gradient(mode)).max() for mode in modes) < 1e-8
    assert (problem.batch(modes) <= problem.batch(function.centers) + 1e-12).all()
    assert problem.minimum == pytest.approx(problem.batch(modes).min(), rel=1e-14)
    assert problem.batch(RNG.uniform(-20, 20, (500, dim))).min() > problem.minimum


def test_far_away_the_density_is_small_but_not_zero() -> None:
    assert np.isfinite(student_t_mixture(20).fun(np.full(20, 1e100)))


def plain_posterior(w: Array, signed: Array) -> float:
    return float(-np.log(expit(signed @ w)).sum() + 0.5 * w @ w)


def test_the_posterior_is_the_sum_over_the_data() -> None:
    problem = logistic_regression(4, samples=30, seed=1)
    signed, w = problem.batch.__self__.signed, RNG.standard_normal(4)
    assert signed.shape == (30, 4)
    assert problem.fun(w) == pytest.approx(plain_posterior(w, signed), rel=1e-12)


def test_a_posterior_with_two_samples_by_hand() -> None:
    function = LogisticPosterior(np.array([[1.0, 0.0], [-2.0, 1.0]]))
    # margins of w = (1, 2): 1 and 0
    w = np.array([1.0, 2.0])
    assert function.rows(w[None])[0] == pytest.approx(np.log1p(np.exp(-1)) + np.log(2) + 2.5)
    wrong = 1 / (1 + np.e)
    np.testing.assert_allclose(function.gradient(w), [1 - wrong + 1, 2 - 0.5])
    np.testing.assert_allclose(function.diagonal(w), [1 + wrong * (1 - wrong) + 1, 1 + 0.25])


def test_the_minimum_of_the_posterior_is_that_of_scipy() -> None:
    problem = logistic_regression(6, seed=2)
    signed = problem.batch.__self__.signed
    found = minimize(plain_posterior, np.zeros(6), args=(signed,), method="BFGS", options={"gtol": 1e-6})
    assert problem.minimum == pytest.approx(found.fun, abs=1e-10)
    np.testing.assert_allclose(problem.minimizer, found.x, atol=1e-5)
    assert np.abs(problem.gradient(problem.minimizer)).max() < 1e-12


def test_large_weights_do_not_overflow() -> None:
    problem = logistic_regression(3, samples=5)
    w = np.full(3, 1e6)
    assert np.isfinite(problem.fun(w)) and np.isfinite(problem.gradient(w)).all()


def test_labels_come_from_the_model() -> None:
    # with many samples the prior and the noise fade: the weight is 2 +- 1/sqrt(information)
    problem = logistic_regression_1d(samples=20_000, seed=4)
    deviation = problem.hessian_diagonal(problem.minimizer)[0] ** -0.5
    assert abs(problem.minimizer[0] - 2) < 5 * deviation < 0.2


def test_one_weight_is_a_scalar() -> None:
    problem = logistic_regression_1d(seed=1)
    assert problem.space == "scalar" and problem.dim == 1 and len(problem.batch.__self__.signed) == 20
    with pytest.raises(ValueError, match="dim must be 1 for logistic_regression_1d, got 3"):
        logistic_regression_1d(3)


def test_breast_cancer_has_the_optimum_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    problem = logistic_breast_cancer()
    signed = problem.batch.__self__.signed
    labels = signed[:, -1]  # the intercept's column is y times one
    model = linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    weights = model.fit(labels[:, None] * signed, labels).coef_[0]
    assert signed.shape == (569, 31) and (labels == 1).sum() == 357
    assert problem.fun(weights) == pytest.approx(problem.minimum, abs=1e-8)
    np.testing.assert_allclose(problem.minimizer, weights, atol=1e-4)
    np.testing.assert_allclose((labels[:, None] * signed)[:, :30].std(axis=0), 1, rtol=1e-12)


def test_breast_cancer_has_31_weights() -> None:
    with pytest.raises(ValueError, match="dim must be 31 for logistic_breast_cancer, got 30"):
        logistic_breast_cancer(30)


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"the breast cancer data need scikit-learn: pip install 'esgroup\[sim\]'"):
        logistic_breast_cancer()
