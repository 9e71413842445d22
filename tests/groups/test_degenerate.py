"""A degenerate case equals the simpler thing."""

import numpy as np
import pytest

from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    ToeplitzTriangular,
    Triangular,
)
from esgroup.groups.fit import fit_covariance
from tests.groups.elements import covariance
from tests.groups.laws import close
from tests.groups.strangers import Scalar

PAIRS = [
    (BlockTriangular(5, 0), Diagonal(5)),
    (BlockTriangular(5, 0, lower=False), Diagonal(5)),
    (BlockTriangular(5, 5), Full(5)),
    (BlockTriangular(5, 5, lower=False), Full(5)),
    (Heisenberg(5, 0, 0), Diagonal(5)),
    (Heisenberg(5, 2, 0), BlockTriangular(5, 2)),
    (Heisenberg(5, 2, 0, lower=False), BlockTriangular(5, 2, lower=False)),
    (Heisenberg(5, 0, 2), Conjugate(BlockTriangular(5, 2, lower=False), [3, 4, 0, 1, 2])),
    (Heisenberg(5, 0, 5), Full(5)),
    (Heisenberg(3, 1, 1), Triangular(3)),
    (Heisenberg(3, 1, 1, lower=False), Triangular(3, lower=False)),
    (Kronecker(Full(1), Heisenberg(5, 1, 2)), Heisenberg(5, 1, 2)),
    (Kronecker(Triangular(4), Diagonal(1)), Triangular(4)),
    (Conjugate(Heisenberg(5, 1, 2), np.arange(5)), Heisenberg(5, 1, 2)),
    (Conjugate(Heisenberg(5, 1, 2), np.eye(5)), Heisenberg(5, 1, 2)),
    (Conjugate(Triangular(5), [4, 3, 2, 1, 0]), Triangular(5, lower=False)),
    (BlockDiagonal([Triangular(4)]), Triangular(4)),
    (BlockDiagonal([Diagonal(2), Diagonal(3)]), Diagonal(5)),
    (ToeplitzTriangular(4, block=4), Full(4)),
    (ToeplitzTriangular(4, block=4, lower=False), Full(4)),
    (Circulant(4, block=4), Full(4)),
    (Circulant(1), Diagonal(1)),
    (Scalar(1), Diagonal(1)),
]


@pytest.mark.parametrize(("special", "simple"), PAIRS, ids=[f"{a} is {b}" for a, b in PAIRS])
def test_special_case(special: Group, simple: Group) -> None:
    """Same matrices, same projections, same fits, same steps."""
    rng = np.random.default_rng(4)
    d = simple.dim
    assert (special.dim, special.dof) == (simple.dim, simple.dof)
    assert special.size == simple.size + (isinstance(special, Kronecker) and 1)  # of a factor that is 1 x 1
    z, weights = rng.standard_normal((6, d)), 0.1 * rng.standard_normal(6)
    m, n = special.project(z, weights, 0.3), simple.project(z, weights, 0.3)
    close(special.dense_local(m), simple.dense_local(n))
    a = special.from_dense(simple.dense(simple.h(n)))
    b = simple.h(n)
    close(special.dense(special.product(a, a)), simple.dense(simple.product(b, b)))
    close(special.dense(special.inverse(a)), simple.dense(simple.inverse(b)))
    close(special.log_abs_det(a), simple.log_abs_det(b))
    close(special.apply(a, z), simple.apply(b, z))
    close(special.solve(a, z), simple.solve(b, z))
    moved = special.dense(special.product_h_samples(a, z, weights, 0.3))
    if isinstance(special, Kronecker):  # h acts factor by factor: equal to first order
        tiny = 1e-5 * weights
        moved = special.dense(special.product_h_samples(a, z, tiny, 0.0))
        close(moved, simple.dense(simple.product_h_samples(b, z, tiny, 0.0)), 1e-8)
    else:
        close(moved, simple.dense(simple.product_h_samples(b, z, weights, 0.3)))
    sigma = covariance(d, rng)
    fit, plain = special.dense(special.from_covariance(sigma)), simple.dense(simple.from_covariance(sigma))
    close(fit @ fit.T, plain @ plain.T, 1e-7)


def test_a_permuted_group_has_its_hub_where_the_permutation_says() -> None:
    group = Conjugate(BlockTriangular(6, 2), [4, 1, 0, 2, 3, 5])
    dense = group.dense(group.h(group.project(np.random.default_rng(0).standard_normal((9, 6)), np.ones(9))))
    off_diagonal = dense - np.diag(np.diagonal(dense))
    assert np.flatnonzero(np.abs(off_diagonal).sum(axis=0)).tolist() == [1, 4]


def test_the_fallback_fit_finds_the_closed_forms() -> None:
    rng = np.random.default_rng(8)
    for group in (Diagonal(5), Full(5), Triangular(5, False), BlockTriangular(6, 2), Heisenberg(7, 2, 1, False)):
        sigma = covariance(group.dim, rng)
        a, b = group.dense(group.from_covariance(sigma)), group.dense(fit_covariance(group, sigma))
        close(a @ a.T, b @ b.T, 1e-7)


@pytest.mark.parametrize("dim", [3, 60])
def test_the_fused_step_of_the_full_group_is_exact_on_both_of_its_ways(dim: int) -> None:
    """A h(M) without M: by a loop in small dimensions, by one gemm in larger ones."""
    rng = np.random.default_rng(1)
    group = Full(dim)
    a, z, weights = rng.standard_normal((dim, dim)), rng.standard_normal((7, dim)), 0.1 * rng.standard_normal(7)
    m = ((z.T * weights) @ z - 0.3 * np.eye(dim)) / 2
    expected = a @ (np.eye(dim) + m + m @ m / 2)
    close(group.product_h_samples(a.ravel(), z, weights, 0.3).reshape(dim, dim), expected)
    out = np.empty(dim * dim)
    group.product_h_samples(a.ravel(), z, weights, 0.3, images=z @ a.T, out=out)
    close(out.reshape(dim, dim), expected)


@pytest.mark.parametrize("lower", [True, False])
def test_a_triangular_group_of_several_blocks_is_exact(lower: bool) -> None:
    """Beyond 64 rows projections and fused steps go block by block."""
    rng = np.random.default_rng(2)
    group = Triangular(150, lower)
    z, weights = rng.standard_normal((7, 150)), 0.01 * rng.standard_normal(7)
    g = (z.T * weights) @ z - 0.3 * np.eye(150)
    m = (np.tril(g, -1) if lower else np.triu(g, 1)) + np.diag(np.diagonal(g)) / 2
    close(group.dense(group.project(z, weights, 0.3)), m)
    a = group.h(0.1 * group.project(rng.standard_normal((9, 150)), 0.1 * rng.standard_normal(9)))
    expected = group.dense(a) @ (np.eye(150) + m + m @ m / 2)
    close(group.dense(group.product_h_samples(a, z, weights, 0.3)), expected)


@pytest.mark.parametrize("group", [ToeplitzTriangular(12), ToeplitzTriangular(12, 2, False), Circulant(12, 3)])
def test_fits_are_exact_for_covariances_of_very_different_scales(group: Group) -> None:
    rng = np.random.default_rng(3)
    scales = np.logspace(-5, 5, 12)
    sigma = covariance(12, rng) * np.outer(scales, scales)
    a = group.from_covariance(sigma)
    inverse = np.linalg.inv(group.dense(a))
    whitened = inverse @ sigma @ inverse.T
    close(group.dense_local(group.project_dense((whitened + whitened.T) / 2)), np.eye(12) / 2, 1e-5)


def test_a_composed_group_takes_the_fused_way_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    z, weights = rng.standard_normal((3, 14)), 0.1 * rng.standard_normal(3)
    monkeypatch.setattr(Full, "_product_h", None)  # the way through a dense M is closed
    for group in (BlockDiagonal([Full(7), Full(7)]), Conjugate(Full(14), np.arange(14)[::-1])):
        assert group.uses_images
        group.product_h_samples(group.identity(), z, weights)
    Kronecker(Full(14), Diagonal(1)).product_h_samples(np.append(np.eye(14).ravel(), 1.0), z, weights)
