"""The circulant groups: the FFT against dense algebra, C (.) kappa against Fisher, fits, singular elements."""

from __future__ import annotations

import itertools
import tracemalloc
from functools import cache

import numpy as np
import pytest
import scipy.linalg

from esgroup.checks import Array
from esgroup.groups import _fourier, circulant
from esgroup.groups.circulant import DIRECT_DIM, Circulant
from esgroup.groups.full import Full
from esgroup.groups.linalg import SingularElementError
from tests.groups.elements import covariance, element, frozen

SHAPES = [Circulant(q * block, block) for q, block in itertools.product((1, 2, 3, 4, 5, 6), (1, 2, 3))]
# on either side of the switch from dense products to the FFT; rings of even, odd and prime length
AROUND = [
    Circulant(q * block, block)
    for block in (1, 2, 3)
    for q in (DIRECT_DIM // block + extra for extra in (-1, 0, 1, 2, 3))
]


def close(actual: object, expected: object, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def matrix(group: Circulant, a: Array) -> Array:
    """The matrix by its definition: block (i - j) mod q at (i, j)."""
    b, q = group.block, group.dim // group.block
    i, j = np.indices((q, q))
    return a.reshape(q, b, b)[(i - j) % q].swapaxes(1, 2).reshape(group.dim, group.dim)


@cache
def local_basis(group: Circulant) -> Array:
    """Symmetric matrices that commute with a turn of the ring by one place, as a null space."""
    d = group.dim
    turn = np.kron(np.roll(np.eye(d // group.block), 1, axis=0), np.eye(group.block))
    units = np.eye(d * d).reshape(-1, d, d)
    conditions = np.concatenate([turn @ units - units @ turn, units - units.swapaxes(1, 2)], axis=1)
    return scipy.linalg.null_space(conditions.reshape(d * d, -1).T).T.reshape(-1, d, d)


def natural_gradient(basis: Array, g: Array) -> Array:
    """The local matrix that solves the Fisher system F_ij = <B_i + B_i^T, B_j + B_j^T>/2, g_i = <B_i, G>."""
    symmetric = (basis + basis.swapaxes(1, 2)).reshape(len(basis), -1)
    coordinates = np.linalg.solve(symmetric @ symmetric.T / 2, basis.reshape(len(basis), -1) @ g.ravel())
    return np.tensordot(coordinates, basis, 1)


@pytest.fixture(params=["dense", "fft"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compute directly at every size, or by the FFT."""
    monkeypatch.setattr(circulant, "DIRECT_DIM", 10**9 if request.param == "dense" else 0)
    return str(request.param)


# ---- the matrices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 5, 6])
def test_single_entries_are_scipys_circulant_matrices(dim: int) -> None:
    a = np.random.default_rng(0).standard_normal(dim)
    np.testing.assert_array_equal(Circulant(dim).dense(a), scipy.linalg.circulant(a))


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_the_dense_matrix_has_the_blocks_in_their_places(group: Circulant) -> None:
    a = np.random.default_rng(1).standard_normal(group.size)
    dense = group.dense(a)
    np.testing.assert_array_equal(dense, matrix(group, a))
    np.testing.assert_array_equal(group.from_dense(dense), a)
    np.testing.assert_array_equal(group.dense(group.transpose(a)), dense.T)
    close(group.squared_norm(a), (dense**2).sum())
    assert group.transposed is group
    assert dense.flags.c_contiguous and dense.flags.writeable


def test_a_single_block_is_the_full_group(way: str) -> None:
    rng, group, full = np.random.default_rng(2), Circulant(5, 5), Full(5)
    a, z, w = element(full, rng), rng.standard_normal((4, 5)), rng.standard_normal(4)
    assert (group.size, group.dof) == (full.size, full.dof)
    close(group.product(a, a), full.product(a, a))
    close(group.inverse(a), full.inverse(a))
    close(group.log_abs_det(a), full.log_abs_det(a))
    close(group.project(z, w, 0.3), full.project(z, w, 0.3))


# ---- both ways of computing ---------------------------------------------------------------------------------------


def unsymmetric(group: Circulant, rng: np.random.Generator) -> Array:
    """Any element near the identity: products of symmetric steps alone would commute and stay symmetric for block 1."""
    return frozen(group.identity() + 0.3 * rng.standard_normal(group.size) / np.sqrt(group.size))


def compare_with_dense(group: Circulant) -> None:
    rng = np.random.default_rng(group.dim)
    a, b, x = unsymmetric(group, rng), unsymmetric(group, rng), frozen(rng.standard_normal((3, group.dim)))
    dense = matrix(group, a)
    close(group.apply(a, x), x @ dense.T)
    close(group.apply_transposed(a, x), x @ dense)
    close(group.solve(a, x), np.linalg.solve(dense, x.T).T)
    close(group.solve_transposed(a, x), np.linalg.solve(dense.T, x.T).T)
    close(matrix(group, group.product(a, b)), dense @ matrix(group, b))
    close(matrix(group, group.inverse(a)), np.linalg.inv(dense))
    close(group.log_abs_det(a), np.linalg.slogdet(dense)[1])
    assert group.apply(a, x).flags.c_contiguous and group.solve(a, x).flags.c_contiguous


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_both_ways_equal_dense_algebra(group: Circulant, way: str) -> None:
    compare_with_dense(group)


@pytest.mark.parametrize("group", AROUND, ids=str)
def test_dense_algebra_holds_on_both_sides_of_the_threshold(group: Circulant) -> None:
    compare_with_dense(group)


@pytest.mark.parametrize("group", AROUND, ids=str)
def test_the_fft_equals_the_direct_way_around_the_threshold(group: Circulant, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, x, w = unsymmetric(group, rng), rng.standard_normal((3, group.dim)), rng.standard_normal(3)
    results = []
    for limit in (10**9, 0):
        monkeypatch.setattr(circulant, "DIRECT_DIM", limit)
        results.append((group.apply(a, x), group.product(a, a)))
        results[-1] += (group.project(x, w, 0.3), group.project_pairs(x, x[::-1], w, 0.3))
    for direct, fft in zip(*results, strict=True):
        close(fft, direct)


# ---- C (.) kappa --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [g for g in SHAPES if g.dim <= 12], ids=str)
def test_project_solves_the_fisher_system(group: Circulant, way: str) -> None:
    rng = np.random.default_rng(4)
    x, y = frozen(rng.standard_normal((4, group.dim))), frozen(rng.standard_normal((4, group.dim)))
    w, basis, one = frozen(rng.standard_normal(4)), local_basis(group), np.eye(group.dim)
    alone, pairs = (x.T * w) @ x - 0.3 * one, ((x.T * w) @ y + (y.T * w) @ x) / 2 - 0.3 * one
    close(group.dense_local(group.project(x, w, 0.3)), natural_gradient(basis, alone))
    close(group.dense_local(group.project_pairs(x, y, w, 0.3)), natural_gradient(basis, pairs))
    close(group.dense_local(group.project_dense(pairs)), natural_gradient(basis, pairs))


@pytest.mark.parametrize("group", [g for g in SHAPES if g.dim <= 12], ids=str)
def test_dof_is_the_dimension_of_the_symmetric_circulants(group: Circulant) -> None:
    assert group.dof == len(local_basis(group))


@pytest.mark.parametrize("group", SHAPES + AROUND, ids=str)
def test_projections_are_exactly_symmetric(group: Circulant, way: str) -> None:
    rng = np.random.default_rng(5)
    x, y, w = *rng.standard_normal((2, 4, group.dim)), rng.standard_normal(4)
    for m in (group.project(x, w, 0.3), group.project_pairs(x, y, w, 0.3)):
        dense = group.dense_local(m)
        np.testing.assert_array_equal(dense, dense.T)


def test_no_samples_project_to_minus_half_the_shift(way: str) -> None:
    group = Circulant(12, 3)
    close(group.project(np.zeros((0, 12)), np.zeros(0), 0.8), -0.4 * group.identity())


def test_samples_are_transformed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    transform = _fourier.fft.rfft
    monkeypatch.setattr(_fourier.fft, "rfft", lambda *args, **options: calls.append(1) or transform(*args, **options))
    dim = DIRECT_DIM + 8
    Circulant(dim).project(np.ones((3, dim)), np.ones(3))
    assert len(calls) == 1


def test_projecting_never_forms_a_square_matrix(way: str) -> None:
    group = Circulant(3000, 3)
    z, w = np.ones((2, 3000)), np.ones(2)
    group.project(z, w)  # the first call may compile
    tracemalloc.start()
    group.project(z, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 20


# ---- fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [g for g in SHAPES if g.dim <= 12], ids=str)
def test_the_fit_to_a_covariance_has_no_gradient_left(group: Circulant, way: str) -> None:
    sigma = covariance(group.dim, np.random.default_rng(6))
    inverse = np.linalg.inv(group.dense(group.from_covariance(sigma)))
    left = natural_gradient(local_basis(group), inverse @ sigma @ inverse.T - np.eye(group.dim))
    assert np.abs(left).max() < 1e-12


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_the_fit_recovers_a_circulant_covariance(group: Circulant) -> None:
    dense = matrix(group, unsymmetric(group, np.random.default_rng(7)))
    found = matrix(group, group.from_covariance(dense @ dense.T))
    close(found @ found.T, dense @ dense.T)


# ---- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "dim must be an integer >= 1, got 0"),
        ((6, 0), "block must be an integer >= 1, got 0"),
        ((6, 4), "dim must be a multiple of block = 4, got 6"),
        ((3, 6), "dim must be a multiple of block = 6, got 3"),
    ],
)
def test_bad_sizes_are_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Circulant(*arguments)


def singular_elements() -> list[tuple[Circulant, Array]]:
    elements = [(Circulant(q), np.ones(q)) for q in (2, 3, 7, 100, 997)]  # all frequencies but one vanish
    ring = np.zeros(30)
    ring[:2] = 1.0  # the highest frequency alone vanishes
    elements.append((Circulant(30), ring))
    waves = np.cos(2 * np.pi * np.outer(np.arange(1, 50), np.arange(101)) / 101)  # frequencies 0 and 50 vanish
    elements.append((Circulant(101), waves.sum(axis=0)))
    elements.append((Circulant(8, 2), np.concatenate([[1.0, 2.0, 2.0, 4.0], np.zeros(12)])))
    elements.append((Circulant(8, 2), np.zeros(16)))
    return elements


@pytest.mark.parametrize(("group", "a"), singular_elements(), ids=str)
def test_elements_that_are_singular_to_rounding_are_refused(group: Circulant, a: Array) -> None:
    x = np.ones(group.dim)
    for act in (group.inverse, lambda a: group.solve(a, x), lambda a: group.solve_transposed(a, x)):
        with pytest.raises(SingularElementError, match="a must be invertible"):
            act(a)


def test_the_determinant_of_a_singular_element_is_refused() -> None:
    with pytest.raises(SingularElementError, match="its determinant is 0"):
        Circulant(4).log_abs_det(np.ones(4))


@pytest.mark.parametrize("block", [1, 2])
def test_elements_of_condition_1e12_are_not_refused(block: int) -> None:
    group = Circulant(64 * block, block)
    hat = np.geomspace(1e-12, 1.0, 33)
    a = np.kron(np.fft.irfft(hat, 64)[:, None], np.eye(block)).ravel()
    x = np.random.default_rng(8).standard_normal(group.dim)
    close(group.apply(a, group.solve(a, x)), x, 1e-3)


def test_matrices_without_the_structure_are_refused() -> None:
    dense = scipy.linalg.circulant(np.arange(1.0, 5))
    dense[3, 2] += 1e-3
    with pytest.raises(ValueError, match=r"matrix must have the structure of .*entry \(3, 2\)"):
        Circulant(4).from_dense(dense)
    with pytest.raises(ValueError, match=r"a must have shape \(8,\), got \(4,\)"):
        Circulant(4, 2).inverse(np.ones(4))
