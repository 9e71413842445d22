"""Rosenbrock and Dixon-Price: values by hand and by SciPy, and the paper's factor."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der, rosen_hess_prod

import esgroup_problems as zoo


def points(n: int, dim: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, dim))


def test_rosenbrock_is_scipys_divided_by_the_dimension() -> None:
    x = points(4, 7)
    np.testing.assert_allclose(zoo.rosenbrock(7).batch(x), rosen(x.T) / 7, rtol=1e-14)
    np.testing.assert_allclose(zoo.rosenbrock(7).gradient(x[0]), rosen_der(x[0]) / 7, rtol=1e-13)
    product = zoo.rosenbrock(7).hessian_product(x[0], x[1])
    np.testing.assert_allclose(product, rosen_hess_prod(x[0], x[1]) / 7, rtol=1e-12)


def test_rosenbrock_at_a_point_by_hand() -> None:
    # 100 (3 - 4)^2 + 1 + 100 (1 - 9)^2 + 4 = 6505
    assert zoo.rosenbrock(3).fun(np.array([2.0, 3.0, 1.0])) == pytest.approx(6505 / 3, rel=1e-15)


def test_dixon_price_at_a_point_by_hand() -> None:
    # (3 - 1)^2 + 2 (2 4 - 3)^2 + 3 (2 1 - 2)^2 + 4 (2 25 + 1)^2 = 4 + 50 + 0 + 10404
    assert zoo.dixon_price(4).fun(np.array([3.0, 2.0, -1.0, 5.0])) == pytest.approx((4 + 50 + 3 * 0 + 4 * 51**2) / 4)


def test_the_derivatives_of_dixon_price_at_a_point_by_hand() -> None:
    problem, x = zoo.get("dixon_price_sum", 2), np.array([3.0, 2.0])  # (x - 1)^2 + 2 (2 y^2 - x)^2
    assert problem.gradient(x).tolist() == [4 - 20, 160]
    assert problem.hessian_diagonal(x).tolist() == [6, 336]
    assert problem.hessian_product(x, np.array([1.0, 10.0])).tolist() == [6 - 320, -32 + 3360]


def test_only_the_first_coordinate_of_dixon_price_is_drawn_to_one() -> None:
    x = np.array([1.0, 0.3, -0.2])
    assert zoo.dixon_price(3).fun(x) == pytest.approx((2 * (0.18 - 1) ** 2 + 3 * (0.08 - 0.3) ** 2) / 3, rel=1e-14)


@pytest.mark.parametrize("name", ["rosenbrock", "dixon_price"])
def test_the_sum_is_the_mean_times_the_dimension(name: str) -> None:
    mean, total, x = zoo.get(name, 6), zoo.get(f"{name}_sum", 6), points(3, 6)
    np.testing.assert_allclose(total.batch(x), 6 * mean.batch(x), rtol=1e-14)
    np.testing.assert_allclose(total.gradient(x[0]), 6 * mean.gradient(x[0]), rtol=1e-14)
    np.testing.assert_allclose(
        total.hessian_product(x[0], x[1]), 6 * mean.hessian_product(x[0], x[1]), rtol=1e-13, atol=1e-10
    )


def test_the_minimizer_of_dixon_price_has_the_published_exponents() -> None:
    exponents = [-Fraction(2**i - 2, 2**i) for i in range(1, 31)]
    np.testing.assert_allclose(zoo.dixon_price(30).minimizer, [2.0 ** float(e) for e in exponents], rtol=1e-15)


def test_the_minimizer_of_dixon_price_does_not_overflow() -> None:
    assert zoo.dixon_price(5000).minimizer[-1] == 0.5


def test_dixon_price_has_a_local_minimum_near_zero() -> None:
    problem, there = zoo.dixon_price(6), np.array([1 / 3, 0, 0, 0, 0, 0])
    assert problem.fun(there) == pytest.approx(2 / 3 / 6)
    assert problem.batch(there + 0.01 * points(500, 6)).min() > problem.fun(there)


@pytest.mark.parametrize("name", ["rosenbrock", "dixon_price"])
def test_the_start_box_is_in_the_basin_of_the_minimum(name: str) -> None:
    problem = zoo.get(name, 10)
    assert problem.start_box == (0, 2)
    starts = [problem.start(np.random.default_rng(seed)) for seed in range(10)]
    ends = [minimize(problem.fun, x, jac=problem.gradient, method="L-BFGS-B", tol=1e-14).fun for x in starts]
    assert max(ends) < 1e-6


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "rosenbrock", "dixon_price"])
@pytest.mark.parametrize("dim", [2, 17, 300])
def test_a_point_has_the_value_of_its_row_bit_for_bit(name: str, dim: int) -> None:
    problem, x = zoo.get(name, dim), points(9, dim)
    assert problem.dim == dim
    assert [problem.fun(row) for row in x] == problem.batch(x).tolist()


def test_rosenbrock_needs_two_coordinates() -> None:
    with pytest.raises(ValueError, match="dim must be an integer >= 2, got 1"):
        zoo.rosenbrock(1)


def test_dixon_price_of_one_coordinate_is_a_parabola() -> None:
    problem, x = zoo.dixon_price(1), np.array([3.0])
    assert problem.fun(x) == 4 and problem.gradient(x) == [4] and problem.hessian_product(x, x) == [6]


@pytest.mark.parametrize("dim", [2, 7])
@pytest.mark.parametrize(("divided", "usual"), [("rosenbrock", "rosenbrock_sum"), ("dixon_price", "dixon_price_sum")])
def test_functions_that_are_divided_by_the_dimension_say_so(divided: str, usual: str, dim: int) -> None:
    x = np.random.default_rng(0).normal(size=dim)
    assert zoo.get(usual, dim).fun(x) == pytest.approx(dim * zoo.get(divided, dim).fun(x))
    assert (zoo.get(divided, dim).scaled, zoo.get(usual, dim).scaled) == ("divided by d", "")


def test_noise_does_not_change_the_factor_and_no_other_function_has_one() -> None:
    slow = ("bbob", "logistic_breast_cancer", "cart_pole", "pendulum")  # they need extras
    made = [zoo.get(name) for name in zoo.PROBLEMS if not name.startswith(slow)]
    assert [problem.name for problem in made if problem.scaled] == ["rosenbrock", "dixon_price", "noisy_rosenbrock"]
