"""The triangular Toeplitz groups: kernels against slow twins, FFT against loops, C (.) kappa against Fisher."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.linalg

from esgroup.checks import Array
from esgroup.groups import _fourier, toeplitz
from esgroup.groups.full import Full
from esgroup.groups.linalg import SingularElementError
from esgroup.groups.toeplitz import DIRECT_DIM, LEAF_DIM, ToeplitzTriangular
from esgroup.kernels import toeplitz as kernels
from tests.groups.elements import covariance, element, frozen

SHAPES = [
    ToeplitzTriangular(q * block, block, lower)
    for q, block, lower in itertools.product((1, 2, 3, 4, 7, 8), (1, 2, 3), (True, False))
]
# on either side of the switch from loops to the FFT, and from one substitution to halves
AROUND = [
    ToeplitzTriangular(q * block, block, lower)
    for limit, block, lower in itertools.product((DIRECT_DIM, LEAF_DIM), (1, 2, 3), (True, False))
    for q in (limit // block, limit // block + 1)
]


def close(actual: object, expected: object, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def matrix(group: ToeplitzTriangular, a: Array) -> Array:
    """The matrix by its definition, diagonal by diagonal."""
    b, q = group.block, group.dim // group.block
    out = np.zeros((q, b, q, b))
    for lag, block in enumerate(a.reshape(q, b, b)):
        far, near = np.arange(lag, q), np.arange(q - lag)
        out[(far, slice(None), near) if group.lower else (near, slice(None), far)] = block
    return out.reshape(group.dim, group.dim)


def local_basis(group: ToeplitzTriangular) -> Array:
    """M_0 symmetric, M_j free."""
    b, q = group.block, group.dim // group.block
    basis = []
    for lag, r, s in itertools.product(range(q), range(b), range(b)):
        unit = np.zeros((b, b))
        unit[r, s] = 1.0
        if lag == 0:
            unit[s, r] = 1.0
        if lag > 0 or r <= s:
            basis.append(np.kron(np.eye(q, k=-lag if group.lower else lag), unit))
    return np.array(basis)


def natural_gradient(basis: Array, g: Array) -> Array:
    """The local matrix that solves the Fisher system F_ij = <B_i + B_i^T, B_j + B_j^T>/2, g_i = <B_i, G>."""
    symmetric = (basis + basis.swapaxes(1, 2)).reshape(len(basis), -1)
    coordinates = np.linalg.solve(symmetric @ symmetric.T / 2, basis.reshape(len(basis), -1) @ g.ravel())
    return np.tensordot(coordinates, basis, 1)


# ---- kernels and their slow twins ---------------------------------------------------------------------------------


def columns_and_matrix(block: int, q: int, rng: np.random.Generator) -> tuple[Array, Array]:
    blocks = rng.standard_normal((q, block, block))
    blocks[0] += 3 * np.eye(block)
    whole = matrix(ToeplitzTriangular(q * block, block), blocks.ravel())
    return frozen(np.ascontiguousarray(whole[:, :block].T)), whole


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("block", "q"), [(1, 1), (1, 6), (2, 3), (3, 4), (4, 1)])
def test_the_kernel_convolve_multiplies_by_the_matrix(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(0)
    columns, whole = columns_and_matrix(block, q, rng)
    x, out = frozen(rng.standard_normal((3, q * block))), np.full((3, q * block), np.nan)
    (kernels.convolve if compiled else kernels.convolve.python)(columns, x, block, out)
    close(out, x @ whole.T)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("block", "q"), [(1, 1), (1, 6), (2, 3), (3, 4), (4, 1)])
def test_the_kernel_substitute_solves_with_a_triangular_first_block(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(1)
    columns, whole = columns_and_matrix(block, q, rng)
    x = rng.standard_normal((3, q * block))
    y, unread = x.copy(), columns.copy()
    unread[:, :block][np.tril_indices(block, -1)] = np.nan  # above the diagonal of T_0, columns being transposed
    (kernels.substitute if compiled else kernels.substitute.python)(unread, block, 0, q * block, y)
    close(y, np.linalg.solve(np.tril(whole), x.T).T)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_kernel_substitute_keeps_to_its_stretch(compiled: bool) -> None:
    rng = np.random.default_rng(2)
    columns, whole = columns_and_matrix(2, 6, rng)
    x = rng.standard_normal((3, 12))
    y = x.copy()
    (kernels.substitute if compiled else kernels.substitute.python)(columns, 2, 4, 10, y)
    close(y[:, 4:10], np.linalg.solve(np.tril(whole)[:6, :6], x[:, 4:10].T).T)
    np.testing.assert_array_equal(np.delete(y, range(4, 10), 1), np.delete(x, range(4, 10), 1))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("block", "q"), [(1, 1), (1, 6), (2, 3), (3, 4), (4, 1)])
def test_the_kernel_correlate_sums_the_outer_products_of_blocks(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((2, 5, q, block))
    weights = frozen(rng.standard_normal(5))
    expected = np.zeros((q, block, block))
    for k, j in itertools.product(range(5), range(q)):
        for i in range(q - j):
            expected[j] += weights[k] * np.outer(left[k, i + j], right[k, i])
    out = np.full((block, q * block), np.nan)
    correlate = kernels.correlate if compiled else kernels.correlate.python
    correlate(frozen(left.reshape(5, -1)), frozen(right.reshape(5, -1)), weights, block, out)
    close(out, expected.reshape(-1, block).T)


# ---- the matrices ---------------------------------------------------------------------------------------------------


def test_single_entries_are_scipys_toeplitz_matrices() -> None:
    a = np.random.default_rng(4).standard_normal(6)
    expected = scipy.linalg.toeplitz(a, np.zeros(6))
    np.testing.assert_array_equal(ToeplitzTriangular(6).dense(a), expected)
    np.testing.assert_array_equal(ToeplitzTriangular(6, lower=False).dense(a), expected.T)


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_the_dense_matrix_has_the_blocks_in_their_places(group: ToeplitzTriangular) -> None:
    a = np.random.default_rng(5).standard_normal(group.size)
    dense = group.dense(a)
    np.testing.assert_array_equal(dense, matrix(group, a))
    np.testing.assert_array_equal(group.from_dense(dense), a)
    np.testing.assert_array_equal(group.transposed.dense(group.transpose(a)), dense.T)
    close(group.squared_norm(a), (dense**2).sum())
    assert dense.flags.c_contiguous and dense.flags.writeable


@pytest.mark.parametrize("group", [ToeplitzTriangular(5, 5), ToeplitzTriangular(5, 5, lower=False)], ids=str)
def test_a_single_block_is_the_full_group(group: ToeplitzTriangular) -> None:
    rng, full = np.random.default_rng(6), Full(5)
    a, z, w = element(full, rng), rng.standard_normal((4, 5)), rng.standard_normal(4)
    assert (group.size, group.dof) == (full.size, full.dof)
    close(group.product(a, a), full.product(a, a))
    close(group.inverse(a), full.inverse(a))
    close(group.log_abs_det(a), full.log_abs_det(a))
    close(group.project(z, w, 0.3), full.project(z, w, 0.3))


# ---- both ways of computing ----------------------------------------------------------------------------------------


def compare_with_dense(group: ToeplitzTriangular) -> None:
    rng = np.random.default_rng(group.dim)
    a, b, x = element(group, rng), element(group, rng), frozen(rng.standard_normal((3, group.dim)))
    dense = matrix(group, a)
    close(group.apply(a, x), x @ dense.T)
    close(group.apply_transposed(a, x), x @ dense)
    close(group.solve(a, x), np.linalg.solve(dense, x.T).T)
    close(group.solve_transposed(a, x), np.linalg.solve(dense.T, x.T).T)
    close(matrix(group, group.product(a, b)), dense @ matrix(group, b))
    close(matrix(group, group.inverse(a)), np.linalg.inv(dense))
    close(group.log_abs_det(a), np.linalg.slogdet(dense)[1])
    assert group.apply(a, x).flags.c_contiguous and group.solve(a, x).flags.c_contiguous


@pytest.fixture(params=["loops", "fft"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compute by loops at every size, or by the FFT."""
    monkeypatch.setattr(toeplitz, "DIRECT_DIM", 10**9 if request.param == "loops" else 0)
    monkeypatch.setattr(toeplitz, "LEAF_DIM", 10**9 if request.param == "loops" else 1)
    return str(request.param)


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_both_ways_equal_dense_algebra(group: ToeplitzTriangular, way: str) -> None:
    compare_with_dense(group)


@pytest.mark.parametrize("group", AROUND, ids=str)
def test_dense_algebra_holds_on_both_sides_of_the_thresholds(group: ToeplitzTriangular) -> None:
    compare_with_dense(group)


@pytest.mark.parametrize("group", AROUND, ids=str)
def test_the_fft_equals_the_loops_around_the_thresholds(
    group: ToeplitzTriangular, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    a, x, w = element(group, rng), rng.standard_normal((3, group.dim)), rng.standard_normal(3)
    results = []
    for limit in (10**9, 0):
        monkeypatch.setattr(toeplitz, "DIRECT_DIM", limit)
        monkeypatch.setattr(toeplitz, "LEAF_DIM", limit)
        results.append((group.apply(a, x), group.solve(a, x), group.inverse(a), group.product(a, a)))
        results[-1] += (group.project(x, w, 0.3), group.project_pairs(x, x[::-1], w, 0.3))
    for loops, fft in zip(*results, strict=True):
        close(fft, loops)


def test_solutions_that_grow_by_a_hundred_orders_have_a_residual_of_rounding() -> None:
    group = ToeplitzTriangular(3000)
    a = np.zeros(group.size)
    a[:2] = 1.0, -1.1  # the inverse is 1.1^j
    inverse = group.inverse(a)
    np.testing.assert_allclose(inverse, 1.1 ** np.arange(3000.0), rtol=1e-11)


# ---- C (.) kappa -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", SHAPES, ids=str)
def test_project_solves_the_fisher_system(group: ToeplitzTriangular, way: str) -> None:
    rng = np.random.default_rng(8)
    x, y = frozen(rng.standard_normal((4, group.dim))), frozen(rng.standard_normal((4, group.dim)))
    w, basis, one = frozen(rng.standard_normal(4)), local_basis(group), np.eye(group.dim)
    assert group.dof == len(basis)
    alone, pairs = (x.T * w) @ x - 0.3 * one, ((x.T * w) @ y + (y.T * w) @ x) / 2 - 0.3 * one
    close(group.dense_local(group.project(x, w, 0.3)), natural_gradient(basis, alone))
    close(group.dense_local(group.project_pairs(x, y, w, 0.3)), natural_gradient(basis, pairs))
    close(group.dense_local(group.project_dense(pairs)), natural_gradient(basis, pairs))


def test_the_first_block_of_a_projection_is_exactly_symmetric(way: str) -> None:
    rng = np.random.default_rng(9)
    first = ToeplitzTriangular(12, 3).project(rng.standard_normal((7, 12)), rng.standard_normal(7))[:9].reshape(3, 3)
    np.testing.assert_array_equal(first, first.T)


def test_no_samples_project_to_minus_half_the_shift(way: str) -> None:
    group = ToeplitzTriangular(12, 3, lower=False)
    close(group.project(np.zeros((0, 12)), np.zeros(0), 0.8), -0.4 * group.identity())


@pytest.mark.parametrize("lower", [True, False])
def test_samples_are_transformed_once(lower: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    transform = _fourier.fft.rfft
    monkeypatch.setattr(_fourier.fft, "rfft", lambda *args, **options: calls.append(1) or transform(*args, **options))
    dim = DIRECT_DIM + 8
    ToeplitzTriangular(dim, lower=lower).project(np.ones((3, dim)), np.ones(3))
    assert len(calls) == 1


def test_projecting_never_forms_a_square_matrix(way: str) -> None:
    group = ToeplitzTriangular(3000, 3)
    z, w = np.ones((2, 3000)), np.ones(2)
    group.project(z, w)  # the first call may compile
    tracemalloc.start()
    group.project(z, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 20


# ---- fits and bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [g for g in SHAPES if g.dim <= 16], ids=str)
def test_the_fit_to_a_covariance_has_no_gradient_left(group: ToeplitzTriangular) -> None:
    sigma = covariance(group.dim, np.random.default_rng(10))
    inverse = np.linalg.inv(group.dense(group.from_covariance(sigma)))
    left = natural_gradient(local_basis(group), inverse @ sigma @ inverse.T - np.eye(group.dim))
    assert np.abs(left).max() < 1e-10


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
        ToeplitzTriangular(*arguments)


def test_arguments_of_the_wrong_type_are_refused() -> None:
    with pytest.raises(TypeError, match=r"block must be an integer >= 1, got 2\.0"):
        ToeplitzTriangular(6, 2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lower must be True or False, got 1"):
        ToeplitzTriangular(6, 2, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("lower", [True, False])
def test_a_singular_first_block_is_refused(block: int, lower: bool, way: str) -> None:
    group = ToeplitzTriangular(4, block, lower)
    a = np.ones(group.size)
    a[: block * block] = 0.0 if block == 1 else [1.0, 2.0, 2.0, 4.0]
    for act in (group.inverse, lambda a: group.solve(a, np.ones(4)), lambda a: group.solve_transposed(a, np.ones(4))):
        with pytest.raises(SingularElementError, match="a must be invertible"):
            act(a)
    with pytest.raises(SingularElementError, match="its determinant is 0"):
        group.log_abs_det(a)


def test_matrices_without_the_structure_are_refused() -> None:
    dense = scipy.linalg.toeplitz(np.arange(1.0, 5), np.zeros(4))
    dense[3, 2] += 1e-3
    with pytest.raises(ValueError, match=r"matrix must have the structure of .*entry \(3, 2\)"):
        ToeplitzTriangular(4).from_dense(dense)
    with pytest.raises(ValueError, match=r"a must have shape \(8,\), got \(4,\)"):
        ToeplitzTriangular(4, 2).inverse(np.ones(4))
