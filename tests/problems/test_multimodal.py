"""Functions with many minima: values by hand, minimizers by root finding, and their published text written out."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import esgroup_problems as zoo


def test_rastrigin_by_hand() -> None:
    problem = zoo.get("rastrigin", 2)
    assert problem.fun(np.array([1.0, -2.0])) == pytest.approx(5, rel=1e-14)
    assert problem.fun(np.array([1.0, 0.5])) == pytest.approx(1 + 0.25 + 20)
    np.testing.assert_allclose(problem.gradient(np.array([1.0, 0.25])), [2, 0.5 + 20 * np.pi], rtol=1e-14)


@pytest.mark.parametrize(
    "name, other, tolerance", [("rastrigin", "rastrigin", 1e-13), ("schwefel", "schwefelmult", 1e-10)]
)
def test_lattices_are_those_of_another_library(name: str, other: str, tolerance: float) -> None:
    fitness = pytest.importorskip("cma").ff
    problem = zoo.get(name, 6)
    x = problem.start(np.random.default_rng(1))
    assert problem.fun(x) == pytest.approx(getattr(fitness, other)(x), rel=tolerance)


def test_schwefel_by_hand() -> None:
    problem, x = zoo.get("schwefel", 1), np.array([(np.pi / 2) ** 2])
    assert problem.fun(np.zeros(1)) == pytest.approx(418.9829, abs=2e-5)  # what most texts round to
    assert problem.fun(x) == pytest.approx(418.98288727243374 - np.pi**2 / 4)
    assert problem.fun(-x) == pytest.approx(418.98288727243374 + np.pi**2 / 4)
    assert problem.gradient(x) == pytest.approx([-1])
    assert problem.hessian_diagonal(np.zeros(1)) == [0]
    assert problem.bounds == (-500, 500)


def test_the_minimizer_of_schwefel_is_the_best_of_the_whole_box() -> None:
    root = brentq(lambda s: math.sin(s) + s / 2 * math.cos(s), 20, 21, xtol=1e-15, rtol=1e-15) ** 2
    problem = zoo.get("schwefel", 1)
    assert problem.minimizer == pytest.approx([root], rel=1e-14)
    grid = np.linspace(-500, 500, 200_001)
    values = problem.batch(grid[:, None])
    assert grid[values.argmin()] == pytest.approx(root, abs=0.005)
    assert 0 <= values.min() < 1e-6


def test_styblinski_tang_by_hand() -> None:
    problem = zoo.get("styblinski_tang", 2)
    assert problem.fun(np.array([2.0, -3.0])) == -19 - 39
    assert problem.gradient(np.array([2.0, -3.0])).tolist() == [-13.5, -3.5]


def test_the_minimum_of_styblinski_tang_is_at_the_least_root() -> None:
    problem, roots = zoo.get("styblinski_tang", 3), np.roots([4, 0, -32, 5])
    np.testing.assert_allclose(problem.minimizer, roots.min(), rtol=1e-14)
    values = (roots**4 - 16 * roots**2 + 5 * roots) / 2
    assert (
        problem.minimum
        == pytest.approx(3 * values.min(), rel=1e-14)
        == pytest.approx(3 * -39.16616570377142, rel=1e-14)
    )


def levy_as_published(x: np.ndarray) -> float:
    w = 1 + (x - 1) / 4
    middle = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return math.sin(math.pi * w[0]) ** 2 + middle + last


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_levy_is_the_published_text(dim: int) -> None:
    x = np.random.default_rng(dim).uniform(-10, 10, dim)
    assert zoo.get("levy", dim).fun(x) == pytest.approx(levy_as_published(x), rel=1e-13)


def test_levy_by_hand() -> None:
    problem = zoo.get("levy", 2)
    assert problem.fun(np.array([1.0, 5.0])) == pytest.approx(1)
    assert problem.fun(np.array([5.0, 1.0])) == pytest.approx(1 + 10 * math.sin(1) ** 2)
    assert problem.fun(np.array([3.0, 3.0])) == pytest.approx(1 + 0.25 * (1 + 10 * math.cos(1) ** 2) + 0.25)


def test_ackley_by_hand() -> None:
    problem = zoo.get("ackley", 3)
    assert problem.fun(np.ones(3)) == pytest.approx(3.6253849384403627, rel=1e-14)  # 20 (1 - exp(-0.2))
    half = 20 * (1 - math.exp(-0.1)) + math.e - math.exp(-1)
    assert problem.fun(np.full(3, -0.5)) == pytest.approx(half, rel=1e-14)


def test_ackley_is_exact_near_its_kink_where_the_gradient_is_taken_as_zero() -> None:
    problem = zoo.get("ackley", 4)
    assert problem.fun(np.full(4, 1e-12)) == pytest.approx(4e-12, rel=1e-6)  # 20 (r/5)
    assert problem.gradient(np.zeros(4)).tolist() == [0, 0, 0, 0]
    # what is left of the Hessian is that of -exp(c): 4 pi^2 e / d
    np.testing.assert_allclose(problem.hessian_diagonal(np.zeros(4)), np.pi**2 * np.e)


def test_griewank_by_hand() -> None:
    problem = zoo.get("griewank", 2)
    assert problem.fun(np.array([np.pi, 0.0])) == pytest.approx(np.pi**2 / 4000 + 2)
    there = np.array([0.0, np.pi / np.sqrt(2)])  # the second cosine is zero, and its tangent infinite
    assert problem.fun(there) == pytest.approx(np.pi**2 / 8000 + 1)
    np.testing.assert_allclose(problem.gradient(there), [0, there[1] / 2000 + 2**-0.5], atol=1e-15)
    np.testing.assert_allclose(problem.hessian_diagonal(there), 1 / 2000, rtol=1e-12)


def test_the_coordinates_of_griewank_are_coupled() -> None:
    # P = cos x cos(y / sqrt 2): the mixed derivative of -P is -sin x sin(y / sqrt 2) / sqrt 2
    problem, x = zoo.get("griewank", 2), np.array([np.pi / 3, np.pi / 4 * np.sqrt(2)])
    column = problem.hessian_product(x, np.array([1.0, 0.0]))
    product = math.cos(math.pi / 3) * math.cos(math.pi / 4)
    assert column[0] == pytest.approx(1 / 2000 + product, rel=1e-14)
    assert column[1] == pytest.approx(-math.sin(math.pi / 3) * math.sin(math.pi / 4) / math.sqrt(2), rel=1e-14)


def lunacek_as_published(x: np.ndarray) -> float:
    dim, mu0 = len(x), 2.5
    s = 1 - 1 / (2 * math.sqrt(dim + 20) - 8.2)
    mu1 = -math.sqrt((mu0**2 - 1) / s)
    bowls = sum((v - mu0) ** 2 for v in x), dim + s * sum((v - mu1) ** 2 for v in x)
    return min(bowls) + 10 * (dim - sum(math.cos(2 * math.pi * (v - mu0)) for v in x))


@pytest.mark.parametrize("sign", [1, -1])
def test_lunacek_is_the_published_text_in_both_bowls(sign: int) -> None:
    x = sign * np.random.default_rng(1).uniform(1, 4, 5)
    assert zoo.get("lunacek", 5).fun(x) == pytest.approx(lunacek_as_published(x), rel=1e-13)


def test_lunacek_by_hand() -> None:
    problem = zoo.get("lunacek", 2)
    assert problem.fun(np.zeros(2)) == pytest.approx(2 * 2.5**2 + 2 * 20)
    assert problem.fun(np.array([2.5, 3.5])) == pytest.approx(1)
    np.testing.assert_allclose(problem.hessian_diagonal(np.full(2, 2.5)), 2 + 40 * np.pi**2)


def test_the_bowls_of_lunacek_meet_at_zero() -> None:
    problem, diagonal = zoo.get("lunacek", 4), np.ones(4)
    right, left = (problem.gradient(side * 1e-9 * diagonal) for side in (1, -1))
    assert (right < left - 5).all()
