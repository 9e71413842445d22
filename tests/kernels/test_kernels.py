"""Each kernel against its slow twin (those of the sparse groups are in tests/groups/test_sparse.py)."""

import itertools

import numpy as np
import pytest

from esgroup.groups import ToeplitzTriangular
from esgroup.kernels import bordered, diagonal, full, toeplitz, triangular
from tests.groups import oracle
from tests.groups.elements import frozen
from tests.groups.laws import close
from tests.kernels import naive

# sizes of the three blocks, among them none, and a middle that takes more than one strip
SIZES = [(2, 3, 1), (0, 4, 2), (3, 4, 0), (2, 0, 2), (0, 0, 3), (0, 5, 0), (2, 2 * bordered.STRIP + 7, 3)]


def layouts(k: int, mid: int, q: int) -> list[tuple[int, ...]]:
    """The blocks of coordinates in their order, and in reverse order."""
    return [(k, mid, q, 0, k, k + mid), (k, mid, q, mid + q, q, 0)]


def order(k: int, mid: int, q: int, f: int, c: int, last: int) -> np.ndarray:
    return np.r_[f : f + k, c : c + mid, last : last + q]


def packed(rng: np.random.Generator, k: int, mid: int, q: int) -> np.ndarray:
    return rng.standard_normal(k * k + (k + 1 + q) * mid + q * k + q * q)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_affine(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    a, x, offset = packed(rng, *sizes), rng.standard_normal((3, sum(sizes))), rng.standard_normal(sum(sizes))
    for layout in layouts(*sizes):
        out, at = np.empty(x.shape), order(*layout)
        bordered.affine(a, x, offset, *layout, out)
        close(out[:, at], x[:, at] @ naive.bordered(a, *sizes).T + offset[at])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_eliminate_is_the_middle_of_a_forward_substitution(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    k, mid, _ = sizes
    a, x = packed(rng, *sizes), rng.standard_normal((3, sum(sizes)))
    dense = naive.bordered(a, *sizes)
    for layout in layouts(*sizes):
        at = order(*layout)
        rhs, out = x[:, at], rng.standard_normal(x.shape)
        first = out[:, at[:k]]
        middle = (rhs[:, k : k + mid] - first @ dense[k : k + mid, :k].T) / np.diagonal(dense)[k : k + mid]
        last = rhs[:, k + mid :] - first @ dense[k + mid :, :k].T - middle @ dense[k + mid :, k : k + mid].T
        bordered.eliminate(a, x, *layout, out)
        close(out[:, at], np.hstack([first, middle, last]))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_project(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(2)
    k, mid, _ = sizes
    x, weights = rng.standard_normal((4, sum(sizes))), rng.standard_normal(4)
    factors = np.ones((sum(sizes), sum(sizes)))
    for part in (slice(0, k), slice(k, k + mid), slice(k + mid, None)):
        factors[part, part] = 0.5
    for layout in layouts(*sizes):
        at = order(*layout)
        g = naive.weighted_outer_products(x[:, at], x[:, at], weights, 0.7)
        out = np.empty(len(packed(rng, *sizes)))
        bordered.project(x, x, weights, 0.7, *layout, out)
        close(out, naive.packed_bordered(factors * g, k, mid))
        # two arrays whose sum of outer products is symmetric: G = I G
        identity, dense = np.eye(sum(sizes)), np.empty((sum(sizes), sum(sizes)))
        dense[np.ix_(at, at)] = g
        bordered.project(identity, dense, np.ones(sum(sizes)), 0.0, *layout, out)
        close(out, naive.packed_bordered(factors * g, k, mid))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_product(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(3)
    a, b = packed(rng, *sizes), packed(rng, *sizes)
    out = np.empty(len(a))
    bordered.product(a, b, *sizes, out)
    close(out, naive.packed_bordered(naive.bordered(a, *sizes) @ naive.bordered(b, *sizes), sizes[0], sizes[1]))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_product_h(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(9)
    a, m = packed(rng, *sizes), 0.3 * packed(rng, *sizes)
    dense, out = naive.bordered(m, *sizes), np.empty(len(a))
    expected = naive.bordered(a, *sizes) @ (np.eye(sum(sizes)) + dense + dense @ dense / 2)
    bordered.product_h(a, m, *sizes, out)
    close(out, naive.packed_bordered(expected, sizes[0], sizes[1]))
    bordered.product_h(a, m, *sizes, a)  # in place
    close(a, out)


def test_full_product_h_samples() -> None:
    rng = np.random.default_rng(7)
    for n, dim in ((3, 1), (4, 5), (7, 3)):
        a, z = rng.standard_normal((dim, dim)), rng.standard_normal((n, dim))
        weights, shift = rng.standard_normal(n), 0.4
        m = naive.weighted_outer_products(z, z, weights, shift) / 2
        expected = a @ (np.eye(dim) + m + m @ m / 2)
        out = a.ravel().copy()
        full.product_h_samples(out, z, z @ a.T, weights, shift, out)
        close(out.reshape(dim, dim), expected)


def test_diagonal_project() -> None:
    rng = np.random.default_rng(4)
    for dim in (1, 5, 2500):
        (x, y), weights, out = rng.standard_normal((2, 3, dim)), rng.standard_normal(3), np.empty(dim)
        diagonal.project(x, y, weights, 0.3, out)
        close(out, [(sum(weights * x[:, j] * y[:, j]) - 0.3) / 2 for j in range(dim)])


def test_diagonal_affine() -> None:
    rng = np.random.default_rng(8)
    (a, offset), x, out = rng.standard_normal((2, 5)), rng.standard_normal((3, 5)), np.empty((3, 5))
    diagonal.affine(a, x, offset, out)
    close(out, [[a[j] * row[j] + offset[j] for j in range(5)] for row in x])


def test_triangular_pack_and_unpack() -> None:
    rng = np.random.default_rng(5)
    dense = np.tril(rng.standard_normal((6, 6)))
    packed, out = dense[np.tril_indices(6)], rng.standard_normal((6, 6))
    triangular.unpack(packed, out)
    close(out, dense)
    again = np.zeros(21)
    triangular.pack(out[:2].copy(), 0, again)
    triangular.pack(out[2:].copy(), 2, again)
    close(again, packed)


# ---- block triangular Toeplitz matrices ---------------------------------------------------------------------------

BLOCKS = pytest.mark.parametrize(("block", "q"), [(1, 1), (1, 6), (2, 3), (3, 4), (4, 1)])
COMPILED = pytest.mark.parametrize("compiled", [True, False])


def columns_and_matrix(block: int, q: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    blocks = rng.standard_normal((q, block, block))
    blocks[0] += 3 * np.eye(block)
    whole = oracle.matrix(ToeplitzTriangular(q * block, block), blocks.ravel())
    return frozen(np.ascontiguousarray(whole[:, :block].T)), whole


@COMPILED
@BLOCKS
def test_toeplitz_convolve_multiplies_by_the_matrix(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(0)
    columns, whole = columns_and_matrix(block, q, rng)
    x, out = frozen(rng.standard_normal((3, q * block))), np.full((3, q * block), np.nan)
    (toeplitz.convolve if compiled else toeplitz.convolve.python)(columns, x, block, out)
    close(out, x @ whole.T, 1e-12)


@COMPILED
@BLOCKS
def test_toeplitz_substitute_solves_with_a_triangular_first_block(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(1)
    columns, whole = columns_and_matrix(block, q, rng)
    x = rng.standard_normal((3, q * block))
    y, unread = x.copy(), columns.copy()
    unread[:, :block][np.tril_indices(block, -1)] = np.nan  # above the diagonal of T_0, columns being transposed
    (toeplitz.substitute if compiled else toeplitz.substitute.python)(unread, block, 0, q * block, y)
    close(y, np.linalg.solve(np.tril(whole), x.T).T, 1e-12)


@COMPILED
def test_toeplitz_substitute_changes_only_its_own_coordinates(compiled: bool) -> None:
    rng = np.random.default_rng(2)
    columns, whole = columns_and_matrix(2, 6, rng)
    x = rng.standard_normal((3, 12))
    y = x.copy()
    (toeplitz.substitute if compiled else toeplitz.substitute.python)(columns, 2, 4, 10, y)
    close(y[:, 4:10], np.linalg.solve(np.tril(whole)[:6, :6], x[:, 4:10].T).T, 1e-12)
    np.testing.assert_array_equal(np.delete(y, range(4, 10), 1), np.delete(x, range(4, 10), 1))


@COMPILED
@BLOCKS
def test_toeplitz_correlate_sums_the_outer_products_of_blocks(block: int, q: int, compiled: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((2, 5, q, block))
    weights = frozen(rng.standard_normal(5))
    expected = np.zeros((q, block, block))
    for k, j in itertools.product(range(5), range(q)):
        for i in range(q - j):
            expected[j] += weights[k] * np.outer(left[k, i + j], right[k, i])
    out = np.full((block, q * block), np.nan)
    correlate = toeplitz.correlate if compiled else toeplitz.correlate.python
    correlate(frozen(left.reshape(5, -1)), frozen(right.reshape(5, -1)), weights, block, out)
    close(out, expected.reshape(-1, block).T, 1e-12)


def test_the_loops_do_the_same_without_the_compiler() -> None:
    rng = np.random.default_rng(6)
    sizes = (2, 3, 1)
    a, x = packed(rng, *sizes), rng.standard_normal((3, 6))
    compiled, plain = np.empty(x.shape), np.empty(x.shape)
    bordered.affine(a, x, x[0], *layouts(*sizes)[0], compiled)
    bordered.affine.python(a, x, x[0], *layouts(*sizes)[0], plain)
    close(compiled, plain)
