"""Values worked out by hand or by SciPy, minima, and that a point and a row are the same thing."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import rosen

import esgroup_problems as zoo

NAMES = ("sphere", "ellipsoid", "rosenbrock", "dixon_price")


def points(n: int, dim: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, dim))


def test_rosenbrock_is_scipys_divided_by_the_dimension() -> None:
    x = points(4, 7)
    np.testing.assert_allclose(zoo.rosenbrock(7).batch(x), rosen(x.T) / 7, rtol=1e-14)


def test_rosenbrock_at_a_point_by_hand() -> None:
    # 100 (3 - 4)^2 + 1 + 100 (1 - 9)^2 + 4 = 6505
    assert zoo.rosenbrock(3).fun(np.array([2.0, 3.0, 1.0])) == pytest.approx(6505 / 3, rel=1e-15)


def test_dixon_price_at_a_point_by_hand() -> None:
    # (3 - 1)^2 + 2 (2 4 - 3)^2 + 3 (2 1 - 2)^2 + 4 (2 25 + 1)^2 = 4 + 50 + 0 + 10404
    assert zoo.dixon_price(4).fun(np.array([3.0, 2.0, -1.0, 5.0])) == pytest.approx((4 + 50 + 3 * 0 + 4 * 51**2) / 4)


def test_only_the_first_coordinate_of_dixon_price_is_drawn_to_one() -> None:
    x = np.array([1.0, 0.3, -0.2])
    assert zoo.dixon_price(3).fun(x) == pytest.approx((2 * (0.18 - 1) ** 2 + 3 * (0.08 - 0.3) ** 2) / 3, rel=1e-14)


def test_the_minimiser_of_dixon_price_has_the_published_exponents() -> None:
    exponents = [-Fraction(2**i - 2, 2**i) for i in range(1, 31)]
    np.testing.assert_allclose(zoo.dixon_price(30).minimiser, [2.0 ** float(e) for e in exponents], rtol=1e-15)


def test_the_minimiser_of_dixon_price_does_not_overflow() -> None:
    assert zoo.dixon_price(5000).minimiser[-1] == 0.5


def test_dixon_price_has_a_local_minimum_near_zero() -> None:
    problem, there = zoo.dixon_price(6), np.array([1 / 3, 0, 0, 0, 0, 0])
    assert problem.fun(there) == pytest.approx(2 / 3 / 6)
    assert problem.batch(there + 0.01 * points(500, 6)).min() > problem.fun(there)


def test_the_ellipsoid_has_condition_a_million() -> None:
    assert zoo.ellipsoid(4).batch(np.eye(4)) == pytest.approx([1, 100, 10**4, 10**6])
    assert zoo.ellipsoid(1).fun(np.array([3.0])) == 9


def test_the_sphere_is_the_squared_length() -> None:
    assert zoo.sphere(2).fun(np.array([3.0, -4.0])) == 25


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [2, 3, 20, 300])
def test_the_minimum_is_at_the_minimiser(name: str, dim: int) -> None:
    problem = zoo.get(name, dim)
    assert problem.dim == dim
    assert problem.fun(problem.minimiser) == pytest.approx(problem.minimum, abs=1e-30)
    assert problem.batch(problem.minimiser + 0.01 * points(50, dim)).min() > problem.minimum + 1e-6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [2, 17, 300])
def test_a_point_has_the_value_of_its_row_bit_for_bit(name: str, dim: int) -> None:
    problem, x = zoo.get(name, dim), points(9, dim)
    assert [problem.fun(row) for row in x] == problem.batch(x).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_can_be_sent_to_another_process(name: str) -> None:
    problem, x = zoo.get(name, 3), np.array([0.5, -1.0, 2.0])
    assert pickle.loads(pickle.dumps(problem.fun))(x) == problem.fun(x)


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    problem = zoo.get(name)
    assert problem.name == name and problem.description and problem.source
    assert problem.dim == 20


def test_rosenbrock_needs_two_coordinates() -> None:
    with pytest.raises(ValueError, match="dim must be an integer >= 2, got 1"):
        zoo.rosenbrock(1)
