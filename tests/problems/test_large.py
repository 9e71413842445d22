"""Rotations in blocks, and that large dimensions cost no more than they must."""

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup_problems.rotations import BlockMatrix, block_rotation, orthogonal, rotation

DENSE = ("rotated_ellipsoid", "tablet")
COUPLED = {"sharp_ridge", "rosenbrock", "rosenbrock_sum", "lunacek", "powell_singular"}  # need more than one coordinate
MODULES = ("convex", "valleys", "separable", "multimodal", "chains", "large")
LINEAR = [
    name
    for name, maker in zoo.PROBLEMS.items()
    if maker.__module__.removeprefix("esgroup_problems.") in MODULES and name not in DENSE
]


def matrix(turned: BlockMatrix, dim: int) -> np.ndarray:
    return turned.forward(np.eye(dim)).T


@pytest.mark.parametrize("dim, size", [(23, 10), (20, 10), (7, 7), (5, 1)])
def test_backward_undoes_forward_and_both_are_one_matrix(dim: int, size: int) -> None:
    rng = np.random.default_rng(1)
    turned, x = block_rotation(dim, size, rng), rng.standard_normal((3, dim))
    dense = matrix(turned, dim)
    np.testing.assert_allclose(dense.T @ dense, np.eye(dim), atol=1e-14)
    np.testing.assert_allclose(turned.forward(x), x @ dense.T, atol=1e-13)
    np.testing.assert_allclose(turned.backward(x), x @ dense, atol=1e-13)
    np.testing.assert_allclose(turned.squared().forward(x), x @ (dense**2).T, atol=1e-13)


def test_blocks_have_their_size_and_are_shuffled() -> None:
    dense = matrix(block_rotation(23, 10, np.random.default_rng(1)), 23)
    coupled = (dense != 0).astype(int)
    assert sorted(coupled.sum(axis=0)) == sorted(coupled.sum(axis=1)) == [3] * 3 + [10] * 20
    first = np.flatnonzero(coupled[0])
    assert first[-1] - first[0] > 10  # columns of a block are not neighbors
    assert not (coupled[:10] == coupled[0]).all()  # nor are its rows


def test_one_block_is_a_dense_rotation() -> None:
    dense = matrix(rotation(6, np.random.default_rng(1)), 6)
    np.testing.assert_array_equal(dense, orthogonal(1, 6, np.random.default_rng(1))[0])


def test_random_rotations_are_uniform() -> None:
    # for uniform Q: E Q_ij = 0, E Q_ij^2 = 1/n, and E det Q = 0; QR without the change of signs has Q_11 < 0 always
    n, count = 3, 4000
    q = orthogonal(count, n, np.random.default_rng(1))
    assert np.abs(q.mean(axis=0)).max() < 5 * (1 / n / count) ** 0.5
    assert np.abs((q**2).mean(axis=0) - 1 / n).max() < 5 * count**-0.5
    assert abs(np.linalg.det(q).mean()) < 5 * count**-0.5
    trace = np.trace(q, axis1=1, axis2=2)
    assert (trace**2).mean() == pytest.approx(1, abs=5 * (2 / count) ** 0.5)


def test_a_block_rotated_ellipsoid_has_the_spectrum_of_the_ellipsoid() -> None:
    problem = zoo.PROBLEMS["block_rotated_ellipsoid"](23, block=5, seed=2)
    h = np.stack([problem.hessian_product(problem.x0, e) for e in np.eye(23)])
    np.testing.assert_allclose(np.linalg.eigvalsh(h), 2 * np.logspace(0, 6, 23), rtol=1e-8)
    assert (np.abs(h) > 1e-9).sum() == 4 * 25 + 9


def test_blocks_meet_weights_from_the_whole_range() -> None:
    problem = zoo.PROBLEMS["block_rotated_ellipsoid"](1000, seed=2)
    diagonal = problem.hessian_diagonal(problem.x0)
    assert np.median(diagonal) > 1e4  # a tenth of a large weight is in nearly every coordinate; without shuffling 2e3


def test_blocks_of_one_are_permutations() -> None:
    problem = zoo.PROBLEMS["block_rotated_ellipsoid"](6, block=1)
    assert sorted(problem.batch(np.eye(6))) == pytest.approx(np.logspace(0, 6, 6))
    with pytest.raises(ValueError, match="block must be an integer >= 1, got 0"):
        zoo.PROBLEMS["block_rotated_ellipsoid"](6, block=0)
    with pytest.raises(ValueError, match="seed must be an integer >= 0, got -1"):
        zoo.PROBLEMS["block_rotated_ellipsoid"](6, seed=-1)


def test_a_block_of_all_coordinates_is_the_dense_rotation_up_to_order() -> None:
    problem = zoo.PROBLEMS["block_rotated_powers"](4, block=100)
    assert problem.fun(problem.minimizer) == 0
    assert np.count_nonzero(problem.gradient(np.array([1.0, 0.0, 0.0, 0.0]))) == 4


@pytest.mark.parametrize("name", LINEAR)
def test_a_hundred_thousand_coordinates_are_no_trouble(name: str) -> None:
    # a dense Hessian would take 80 GB
    problem = zoo.get(name, 100_000)
    x = problem.start(np.random.default_rng(1))
    gradient = problem.gradient(x)
    for result in (gradient, problem.hessian_product(x, gradient), problem.hessian_diagonal(x)):
        assert result.shape == (100_000,) and np.isfinite(result).all()
    down = x - 1e-9 * problem.sigma0 * gradient / np.abs(gradient).max()
    assert problem.fun(down) < problem.fun(x)


@pytest.mark.parametrize("name", sorted({*LINEAR, *DENSE} - COUPLED))
def test_one_coordinate_is_enough_for_most(name: str) -> None:
    problem = zoo.get(name, 1)
    assert problem.fun(problem.minimizer) == pytest.approx(problem.minimum, abs=1e-30)
    assert problem.fun(problem.x0) > problem.minimum or name.startswith("dixon_price")  # that begins at 1
    assert problem.hessian_product(problem.x0, np.ones(1)) == pytest.approx(problem.hessian_diagonal(problem.x0))
