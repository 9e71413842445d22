"""Quadratics, powers and the ridge: values by hand, spectra, and other people's definitions."""

import numpy as np
import pytest

import esgroup_problems as zoo


def hessian(problem: zoo.Problem) -> np.ndarray:
    return np.stack([problem.hessian_product(problem.x0, e) for e in np.eye(problem.dim)])


def test_the_sphere_is_the_squared_length() -> None:
    assert zoo.sphere(2).fun(np.array([3.0, -4.0])) == 25
    assert zoo.sphere(2).gradient(np.array([3.0, -4.0])).tolist() == [6, -8]


def test_the_ellipsoid_has_condition_a_million() -> None:
    assert zoo.ellipsoid(4).batch(np.eye(4)) == pytest.approx([1, 100, 10**4, 10**6])
    assert zoo.ellipsoid(1).fun(np.array([3.0])) == 9


def test_the_cigar_has_one_long_axis_and_the_discus_one_short_axis() -> None:
    x = np.array([2.0, 3.0, -1.0])
    assert zoo.get("cigar", 3).fun(x) == 4 + 1e6 * 10
    assert zoo.get("discus", 3).fun(x) == 1e6 * 4 + 10


@pytest.mark.parametrize("name, other", [("ellipsoid", "elli"), ("cigar", "cigar"), ("discus", "tablet")])
def test_quadratics_are_those_of_another_library(name: str, other: str) -> None:
    fitness = pytest.importorskip("cma").ff
    x = np.random.default_rng(1).normal(size=7)
    assert zoo.get(name, 7).fun(x) == pytest.approx(getattr(fitness, other)(x), rel=1e-13)


@pytest.mark.parametrize(
    "name, weights",
    [("rotated_ellipsoid", np.logspace(0, 6, 5)), ("tablet", [1, 1, 1, 1, 1e6])],
)
def test_a_rotation_keeps_the_spectrum_and_no_coordinate_is_an_axis(name: str, weights: list[float]) -> None:
    h = hessian(zoo.PROBLEMS[name](5, seed=3))
    np.testing.assert_allclose(np.linalg.eigvalsh(h), 2 * np.asarray(weights), rtol=1e-8)
    turned = np.abs(np.linalg.eigh(h)[1][:, -1])
    assert turned.max() < 0.99 and turned.min() > 1e-3


def test_every_quadratic_is_half_its_hessian_form() -> None:
    for name in ("sphere", "ellipsoid", "rotated_ellipsoid", "cigar", "discus", "tablet", "block_rotated_ellipsoid"):
        problem, x = zoo.get(name, 13), np.random.default_rng(2).normal(size=13)
        assert problem.fun(x) == pytest.approx(x @ hessian(problem) @ x / 2, rel=1e-12)


def test_different_powers_at_a_point_by_hand() -> None:
    # the powers are 2, 7, 12
    x = np.array([2.0, -2.0, 1.0])
    assert zoo.get("different_powers", 3).fun(x) == 4 + 128 + 1
    assert zoo.get("different_powers", 3).gradient(x).tolist() == [4, -7 * 64, 12]
    assert zoo.get("different_powers", 3).hessian_diagonal(x).tolist() == [2, 42 * 32, 132]
    assert zoo.get("different_powers", 3).hessian_diagonal(np.zeros(3)).tolist() == [2, 0, 0]


def test_the_sharp_ridge_at_a_point_by_hand() -> None:
    problem, x = zoo.get("sharp_ridge", 3), np.array([3.0, 3.0, -4.0])
    assert problem.fun(x) == 9 + 100 * 5
    np.testing.assert_allclose(problem.gradient(x), [6, 60, -80])
    # 100/5 (I - u u^T) with u = (0.6, -0.8), times (1, 0)
    np.testing.assert_allclose(problem.hessian_product(x, np.array([1.0, 1.0, 0.0])), [2, 12.8, 9.6])
    np.testing.assert_allclose(problem.hessian_diagonal(x), [2, 12.8, 7.2])


def test_on_the_ridge_only_the_smooth_part_has_derivatives() -> None:
    problem, x = zoo.get("sharp_ridge", 3), np.array([3.0, 0.0, 0.0])
    assert problem.gradient(x).tolist() == [6, 0, 0]
    assert problem.hessian_product(x, np.ones(3)).tolist() == [2, 0, 0]
    assert problem.hessian_diagonal(x).tolist() == [2, 0, 0]


@pytest.mark.parametrize("dim, error", [(1, ValueError), (2.0, TypeError)])
def test_a_ridge_needs_two_coordinates(dim: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"dim must be an integer >= 2, got {dim}"):
        zoo.get("sharp_ridge", dim)
