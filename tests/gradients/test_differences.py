"""Products by differences of gradients against SciPy's exact ones."""

import pickle

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from esgroup.gradients import Products, Stein, as_function, with_difference_products
from tests.groups.laws import close

X = np.array([1.3, -0.7, 0.8, 1.9, 0.0])


def relative_error(x: np.ndarray, v: np.ndarray) -> float:
    function = with_difference_products(as_function(rosen, len(x), jac=rosen_der))
    exact = rosen_hess(x) @ v
    return float(np.linalg.norm(function.products(x, v[None])[0] - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("length", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_products_are_right_to_nine_digits_at_every_scale_of_point_and_vector(scale: float, length: float) -> None:
    rng = np.random.default_rng(0)
    for v in (rng.standard_normal(5), np.eye(5)[1]):
        assert relative_error(scale * X, length * v) < 2e-9


def test_a_large_coordinate_does_not_spoil_the_others() -> None:
    """The step is relative to the coordinates that v moves."""
    x = np.array([1.3, -0.7, 0.8, 1.9, 1e8])
    assert relative_error(x, np.eye(5)[0]) < 2e-9
    assert relative_error(x, np.eye(5)[4]) < 2e-9


def test_a_typical_size_makes_products_right_for_small_coordinates() -> None:
    """For f = sum sin(x / s)^2 with s = 1e-6, a step of eps^(1/3) would be far too long."""
    s, x = 1e-6, 1e-6 * X
    plain = as_function(lambda x: (np.sin(x / s) ** 2).sum(), 5, jac=lambda x: np.sin(2 * x / s) / s)
    v = np.ones((1, 5))
    exact = 2 * np.cos(2 * X) / s**2
    found = with_difference_products(plain, typical=s).products(x, v)[0]
    close(found / np.abs(exact).max(), exact / np.abs(exact).max(), 1e-8)
    assert np.abs(with_difference_products(plain).products(x, v)[0] / exact - 1).max() > 0.1


def test_a_product_counts_two_gradients_in_the_counts_of_the_function() -> None:
    plain = as_function(rosen, 5, jac=rosen_der)
    function = with_difference_products(plain)
    assert isinstance(function, Products)
    function.products(X, np.eye(5)[:3])
    assert function.counts is plain.counts
    assert (plain.counts.nhvp, plain.counts.njev, plain.counts.nfev) == (3, 6, 0)
    assert function.value(X) == rosen(X)
    close(function.gradient(X), rosen_der(X))


def test_the_product_with_zero_is_zero() -> None:
    function = with_difference_products(as_function(rosen, 5, jac=rosen_der))
    assert not function.products(X, np.zeros((1, 5))).any()
    assert function.products(X, np.zeros((0, 5))).shape == (0, 5)


def test_a_vectorized_function_gets_all_gradients_in_one_call() -> None:
    calls = []
    plain = as_function(
        lambda x: (x**4).sum(axis=1), 5, jac=lambda x: calls.append(len(x)) or 4 * x**3, vectorized=True
    )  # fmt: skip
    found = with_difference_products(plain).products(X, np.eye(5))
    close(found, np.diag(12 * X**2), 1e-8)
    assert calls == [10]


def test_a_diagonal_may_be_given_and_estimators_take_the_result() -> None:
    from esgroup.distributions import Gaussian

    plain = as_function(rosen, 5, jac=rosen_der)
    function = with_difference_products(plain, hess_diag=lambda x: np.diagonal(rosen_hess(x)))
    family = Gaussian("block_triangular:k=2", mean=X)
    found = Stein().step(family, family.state(), function, np.random.default_rng(0))
    exact = as_function(rosen, 5, jac=rosen_der, hess=rosen_hess)
    close(found.m, Stein().step(family, family.state(), exact, np.random.default_rng(0)).m, 1e-6)
    assert (plain.counts.nhvp, plain.counts.ndiag, plain.counts.njev) == (2, 1, 1 + 4)


def test_differences_survive_a_pickle() -> None:
    function = pickle.loads(pickle.dumps(with_difference_products(as_function(rosen, 5, jac=rosen_der))))
    close(function.products(X, np.eye(5)) / 1e3, rosen_hess(X) / 1e3, 1e-8)
    assert function.counts.njev == 10


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match="function must be a Gradients, got"):
        with_difference_products(as_function(rosen, 5))
    with pytest.raises(ValueError, match="typical must be a positive finite number, got 0"):
        with_difference_products(as_function(rosen, 5, jac=rosen_der), typical=0)
