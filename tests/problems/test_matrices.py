"""Functions of matrices against sums over the data, dense Hessians, SciPy and the projections of Higham's article."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import esgroup_problems as zoo
from esgroup.checks import Array
from esgroup_problems import covariances, making, matrices
from esgroup_problems.matrices import kronecker_ellipsoid, matrix_inversion, metric_nearness, metric_nearness_minibatch
from esgroup_problems.scalars import itakura_saito

RNG = np.random.default_rng(8)


def positive(dim: int, n: int) -> Array:
    g = RNG.standard_normal((n, dim, 2 * dim))
    return g @ g.swapaxes(1, 2) / dim


def mean_loss(w: Array, q: Array, data: Array) -> float:
    return sum(float(((w @ q @ x - x) ** 2).sum()) for x in data) / (2 * len(data))


# ---- metric nearness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [3, 200])  # fewer than dimensions, and more
def test_the_loss_of_all_samples_is_the_mean_over_them(samples: int) -> None:
    noisy = metric_nearness_minibatch(5, samples, seed=3)
    drawn, w = noisy.batch.__self__, positive(5, 2)
    expected = [mean_loss(one, drawn.q, drawn.data) for one in w]
    assert drawn.data.shape == (samples, 5)
    np.testing.assert_allclose(noisy.noiseless(w), expected, rtol=1e-12)
    np.testing.assert_allclose(metric_nearness(5, samples, seed=3).batch(w), expected, rtol=1e-12)


def test_a_mini_batch_is_the_mean_over_the_points_it_draws() -> None:
    noisy, w = metric_nearness_minibatch(4, 50, 6, seed=1), positive(4, 3)
    drawn = noisy.batch.__self__
    chosen = drawn.data[pickle.loads(pickle.dumps(drawn.rng)).integers(50, size=6)]
    np.testing.assert_allclose(noisy.batch(w), [mean_loss(one, drawn.q, chosen) for one in w], rtol=1e-12)


def test_mini_batches_are_right_on_average() -> None:
    noisy, w = metric_nearness_minibatch(4, 500, 20, seed=2), positive(4, 1)
    values = np.array([noisy.batch(w)[0] for _ in range(2000)])
    assert abs(values.mean() - noisy.noiseless(w)[0]) < 5 * values.std() / np.sqrt(2000)


def test_the_matrices_of_a_call_meet_the_same_points_and_those_of_the_next_call_others() -> None:
    noisy, w = metric_nearness_minibatch(4, seed=2), positive(4, 1)[0]
    first, second = noisy.batch(np.stack([w, w]))
    assert first == second != noisy.fun(w)


def test_there_is_no_noise_at_the_minimizer() -> None:
    noisy = metric_nearness_minibatch(6, seed=4)
    assert max(noisy.fun(noisy.minimizer) for _ in range(20)) < 1e-25


def test_a_noisy_problem_goes_on_with_the_same_points_after_pickling() -> None:
    noisy, w = metric_nearness_minibatch(4, seed=5), positive(4, 1)[0]
    noisy.fun(w)
    copy = pickle.loads(pickle.dumps(noisy))
    assert [copy.fun(w), copy.batch(w[None])[0]] == [noisy.fun(w), noisy.batch(w[None])[0]]


def test_the_derivatives_of_a_noisy_problem_are_those_of_all_samples() -> None:
    noisy, exact, w = metric_nearness_minibatch(4, 70, seed=5), metric_nearness(4, 70, seed=5), positive(4, 2)
    assert (noisy.gradient(w[0]) == exact.gradient(w[0])).all()
    assert (noisy.hessian_product(*w) == exact.hessian_product(*w)).all()


def test_infinitely_many_samples_have_the_identity_as_second_moments() -> None:
    problem, w = metric_nearness(7, seed=2), positive(7, 1)[0]
    q = np.linalg.inv(problem.minimizer)
    assert problem.fun(w) == pytest.approx(0.5 * np.linalg.norm(w @ q - np.eye(7)) ** 2, rel=1e-12)
    assert np.linalg.eigvalsh(q)[0] > 0.1 - 1e-12  # Q = G G^T / dim + 0.1 I
    assert metric_nearness(7, 100_000, seed=2).fun(w) == pytest.approx(problem.fun(w), rel=0.03)


def test_the_matrix_to_invert_has_condition_100() -> None:
    problem = matrix_inversion(5, seed=3)
    eigenvalues = np.array([0.1, 10**-0.5, 1, 10**0.5, 10])
    np.testing.assert_allclose(np.linalg.eigvalsh(np.linalg.inv(problem.minimizer)), eigenvalues, rtol=1e-10)
    assert problem.fun(np.eye(5)) == pytest.approx(0.5 * ((eigenvalues - 1) ** 2).sum(), rel=1e-12)
    assert abs(problem.minimizer[0, 1]) > 1e-3


@pytest.mark.parametrize("name", ["metric_nearness", "matrix_inversion", "covariance_selection", "nearest_correlation"])
def test_a_matrix_counts_as_its_symmetric_part(name: str) -> None:
    problem, w, skew = zoo.get(name, 4), positive(4, 1)[0], RNG.standard_normal((4, 4))
    skew, v = skew - skew.T, RNG.standard_normal((4, 4))
    assert problem.fun(w + skew) == pytest.approx(problem.fun(w), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(w + skew), problem.gradient(w), rtol=1e-10, atol=1e-12)
    product = problem.hessian_product(w + skew, v)
    np.testing.assert_allclose(product, problem.hessian_product(w, (v + v.T) / 2), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(product, product.T, rtol=1e-12, atol=1e-14)


def test_sizes_that_are_too_small_are_refused() -> None:
    with pytest.raises(ValueError, match="samples must be an integer >= 1, got 0"):
        metric_nearness(3, 0)
    with pytest.raises(ValueError, match="batch_size must be an integer >= 1, got 0"):
        metric_nearness_minibatch(3, batch_size=0)
    with pytest.raises(ValueError, match="samples must be an integer >= 5, got 4"):
        covariances.covariance_selection(5, 4)
    with pytest.raises(ValueError, match="columns must be an integer >= 1, got 0"):
        kronecker_ellipsoid(3, columns=0)


# ---- a matrix of any shape ---------------------------------------------------------------------------------------


def dense_hessian(product: Callable[[Array, Array], Array], shape: tuple[int, int]) -> Array:
    units = np.eye(np.prod(shape)).reshape(-1, *shape)
    return np.array([product(np.zeros(shape), unit).ravel() for unit in units])


def test_a_two_sided_quadratic_has_a_kronecker_product_as_hessian() -> None:
    left, center, right, x = (RNG.standard_normal(shape) for shape in [(3, 3), (3, 4), (4, 4), (3, 4)])
    function = matrices.TwoSided(left, center, right)
    dense, gap = np.kron(left.T @ left, right @ right.T), (x - center).ravel()
    np.testing.assert_allclose(dense_hessian(function.product, (3, 4)), dense, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(function.diagonal(x).ravel(), np.diag(dense), rtol=1e-12)
    np.testing.assert_allclose(function.gradient(x).ravel(), dense @ gap, rtol=1e-12)
    assert function.rows(x[None])[0] == pytest.approx(0.5 * gap @ dense @ gap, rel=1e-12)


def test_the_kronecker_ellipsoid_has_condition_ten_thousand() -> None:
    problem = kronecker_ellipsoid(3, 4, seed=1)
    eigenvalues = np.linalg.eigvalsh(dense_hessian(problem.hessian_product, (3, 4)))
    assert eigenvalues[[0, -1]] == pytest.approx([1, 1e4], rel=1e-9)


def test_the_kronecker_ellipsoid_is_square_unless_told_otherwise() -> None:
    assert kronecker_ellipsoid().x0.shape == (30, 30)
    assert kronecker_ellipsoid(2, 5).x0.shape == (2, 5)
    assert kronecker_ellipsoid(2, 5).space == "matrix"


# ---- covariances -------------------------------------------------------------------------------------------------


def test_without_penalties_it_is_the_gaussian_log_likelihood() -> None:
    data, w = RNG.standard_normal((40, 3)) @ RNG.standard_normal((3, 3)), positive(3, 1)[0]
    function = covariances.PenalizedLikelihood(data.T @ data / 40, np.zeros((3, 3)))
    logs = multivariate_normal(np.zeros(3), np.linalg.inv(w)).logpdf(data)
    assert function.rows(w[None])[0] == pytest.approx(-2 * logs.mean() - 3 * np.log(2 * np.pi), rel=1e-12)
    found = making.convex_minimizer(zoo.OnPoint(function.rows), function.gradient, function.solve, np.eye(3))
    np.testing.assert_allclose(found, np.linalg.inv(function.moments), rtol=1e-10)


def test_the_penalty_counts_both_halves_of_the_matrix() -> None:
    penalties = np.array([[0.0, 10.0], [10.0, 0.0]])
    w = np.array([[2.0, 0.5], [0.5, 1.0]])
    value = covariances.PenalizedLikelihood(np.eye(2), penalties).rows(w[None])[0]
    assert value == pytest.approx(-np.log(1.75) + 3 + 10 * 0.25)


def test_the_minimum_of_covariance_selection_is_that_of_another_method() -> None:
    problem = zoo.get("covariance_selection", 4)
    lower = np.tril_indices(4)

    def of_root(entries: Array) -> float:
        root = np.zeros((4, 4))
        root[lower] = entries
        return problem.fun(root @ root.T)

    found = minimize(of_root, np.eye(4)[lower], method="BFGS", options={"gtol": 1e-7})
    assert found.fun == pytest.approx(problem.minimum, abs=1e-9)


def test_the_minimizer_of_covariance_selection_is_exact_and_small_off_the_graph() -> None:
    problem = zoo.PROBLEMS["covariance_selection"](12, seed=3)
    function: covariances.PenalizedLikelihood = problem.batch.__self__
    off = function.penalties > 0
    assert np.abs(problem.gradient(problem.minimizer)).max() < 1e-13
    assert 0.4 < off.mean() < 0.9 and not off.diagonal().any()
    free = np.linalg.inv(function.moments)
    assert np.abs(problem.minimizer[off]).max() < 0.2 * np.abs(free[off]).max()
    assert np.abs(problem.minimizer[~off & ~np.eye(12, dtype=bool)]).min() > np.abs(problem.minimizer[off]).mean()


def test_a_matrix_outside_the_cone_is_infinitely_bad_and_leaves_others_alone() -> None:
    problem, good = zoo.get("covariance_selection", 2), positive(2, 1)[0]
    values = problem.batch(np.stack([good, np.diag([-1.0, -2.0]), good, np.diag([1.0, 0.0])]))
    assert values.tolist() == [problem.fun(good), np.inf, problem.fun(good), np.inf]


def nearest_correlation_matrix(a: Array) -> Array:
    """Higham's alternating projections on the cone and on unit diagonals, with Dykstra's correction."""
    y, correction = a.copy(), np.zeros_like(a)
    for _ in range(3000):
        values, vectors = np.linalg.eigh(y - correction)
        x = vectors * np.maximum(values, 0) @ vectors.T
        correction = x - (y - correction)
        y = x.copy()
        np.fill_diagonal(y, 1.0)
    return y


@pytest.mark.parametrize(("dim", "seed"), [(3, 0), (8, 1)])
def test_the_infimum_is_that_of_highams_projections(dim: int, seed: int) -> None:
    problem = zoo.PROBLEMS["nearest_correlation"](dim, seed=seed)
    target = problem.batch.__self__.target
    nearest = nearest_correlation_matrix(target)
    assert np.linalg.eigvalsh(target)[0] < -0.1 and (np.diag(target) == 1).all()
    assert problem.fun(nearest) == pytest.approx(problem.minimum, abs=1e-6)
    inner = 0.999999 * nearest + 1e-6 * np.eye(dim)
    assert 0 < problem.fun(inner) - problem.minimum < 1e-4


def test_the_nearest_correlation_in_two_dimensions_by_hand() -> None:
    # X = [[1, s], [s, 1]] with a sign s lacks (1, -s) / sqrt 2, so that A_12 = 3 s / 2; W = I has the correlation 0
    problem = zoo.get("nearest_correlation", 2)
    assert problem.minimum == pytest.approx(0.25, rel=1e-14)
    assert problem.fun(np.eye(2)) == pytest.approx(2.25, rel=1e-14)


def test_correlations_do_not_depend_on_scales() -> None:
    problem, w, d = zoo.get("nearest_correlation", 5), positive(5, 1)[0], np.diag([0.1, 2.0, 30.0, 1.0, 5.0])
    assert problem.fun(d @ w @ d) == pytest.approx(problem.fun(w), rel=1e-12)


def test_a_diagonal_that_is_not_positive_has_no_correlations() -> None:
    problem = zoo.get("nearest_correlation", 2)
    assert np.isnan(problem.batch(np.stack([np.diag([1.0, -1.0]), np.diag([0.0, 1.0])]))).all()


def test_newtons_method_says_when_it_does_not_end() -> None:
    with pytest.raises(RuntimeError, match="100 steps"):
        making.convex_minimizer(lambda x: float(x[0]), lambda x: np.ones(1), lambda x, g: g, np.zeros(1))


# ---- one number --------------------------------------------------------------------------------------------------


def test_the_itakura_saito_divergence_by_hand() -> None:
    problem = itakura_saito()
    assert problem.batch(np.array([[1.0], [4.0]])) == pytest.approx([1 - np.log(2), np.log(2) - 0.5], rel=1e-14)
    assert problem.hessian_diagonal(np.array([4.0])) == 0
    assert problem.fun(np.array([2 + 1e-7])) == pytest.approx((1e-7 / 2) ** 2 / 2, rel=1e-6)


def test_only_positive_numbers_have_a_divergence() -> None:
    assert np.isnan(itakura_saito().batch(np.array([[0.0], [-1.0]]))).all()


def test_one_number_is_one_number() -> None:
    with pytest.raises(ValueError, match="dim must be 1 for itakura_saito, got 2"):
        itakura_saito(2)
    assert itakura_saito().space == "scalar"
