"""Each compiled loop against its slow twin (those of the Toeplitz and sparse groups are beside their groups' tests)."""

import numpy as np
import pytest

from esgroup.kernels import bordered, bordered_products, diagonal, full, triangular
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
    bordered_products.product(a, b, *sizes, out)
    close(out, naive.packed_bordered(naive.bordered(a, *sizes) @ naive.bordered(b, *sizes), sizes[0], sizes[1]))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bordered_product_h(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(9)
    a, m = packed(rng, *sizes), 0.3 * packed(rng, *sizes)
    dense, out = naive.bordered(m, *sizes), np.empty(len(a))
    expected = naive.bordered(a, *sizes) @ (np.eye(sum(sizes)) + dense + dense @ dense / 2)
    bordered_products.product_h(a, m, *sizes, out)
    close(out, naive.packed_bordered(expected, sizes[0], sizes[1]))
    bordered_products.product_h(a, m, *sizes, a)  # in place
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


def test_the_loops_do_the_same_without_the_compiler() -> None:
    rng = np.random.default_rng(6)
    sizes = (2, 3, 1)
    a, x = packed(rng, *sizes), rng.standard_normal((3, 6))
    compiled, plain = np.empty(x.shape), np.empty(x.shape)
    bordered.affine(a, x, x[0], *layouts(*sizes)[0], compiled)
    bordered.affine.python(a, x, x[0], *layouts(*sizes)[0], plain)
    close(compiled, plain)
