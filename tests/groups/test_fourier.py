"""What is special to the Toeplitz and circulant groups: two ways of computing, their thresholds and accuracy.

All laws run on both groups and both ways in test_laws.py; their kernels are tested in tests/kernels/test_kernels.py.
"""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.linalg

from esgroup.checks import Array
from esgroup.groups import Circulant, Group, SingularElementError, ToeplitzTriangular, _fourier, circulant, toeplitz
from tests.groups import oracle
from tests.groups.elements import element, frozen

# On either side of the switch from loops to the FFT, and of that from one substitution to halves; rings of even,
# odd and prime length. Upper matrices are lower ones with their blocks reversed: every other one suffices.
AROUND: list[Group] = [
    ToeplitzTriangular(q * block, block, lower=(q + block) % 2 == 0)
    for limit, block in itertools.product((toeplitz.DIRECT_DIM, toeplitz.LEAF_DIM), (1, 2, 3))
    for q in (limit // block, limit // block + 1)
]
AROUND += [
    Circulant(q * block, block)
    for block in (1, 2, 3)
    for q in (circulant.DIRECT_DIM // block + extra for extra in (0, 1, 3))
]
SMALL: list[Group] = [
    ToeplitzTriangular(12, 3), ToeplitzTriangular(8, 1, lower=False), Circulant(12, 3), Circulant(7), Circulant(8, 2)
]  # fmt: skip


def close(actual: object, expected: object, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def choose(patch: pytest.MonkeyPatch, way: str) -> None:
    """Compute directly at every size, by the FFT at every size, or as the thresholds say."""
    if way != "threshold":
        limit = 10**9 if way == "direct" else 0
        for module, name in ((toeplitz, "DIRECT_DIM"), (toeplitz, "LEAF_DIM"), (circulant, "DIRECT_DIM")):
            patch.setattr(module, name, limit)


@pytest.fixture(params=["direct", "fft"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    choose(monkeypatch, request.param)
    return str(request.param)


def test_single_entries_are_scipys_matrices() -> None:
    for dim in (1, 2, 5, 6):
        a = np.random.default_rng(0).standard_normal(dim)
        expected = scipy.linalg.toeplitz(a, np.zeros(dim))
        np.testing.assert_array_equal(ToeplitzTriangular(dim).dense(a), expected)
        np.testing.assert_array_equal(ToeplitzTriangular(dim, lower=False).dense(a), expected.T)
        np.testing.assert_array_equal(Circulant(dim).dense(a), scipy.linalg.circulant(a))


# ---- both ways of computing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", AROUND, ids=str)
def test_both_ways_equal_dense_algebra_around_the_thresholds(group: Group) -> None:
    rng = np.random.default_rng(group.dim)
    a, b, x = element(group, rng), element(group, rng), frozen(rng.standard_normal((3, group.dim)))
    w = rng.standard_normal(3)
    dense, inverse = group.dense(a), np.linalg.inv(group.dense(a))
    projected = []
    for way in ("threshold", "direct", "fft"):
        with pytest.MonkeyPatch.context() as patch:
            choose(patch, way)
            close(group.apply(a, x), x @ dense.T)
            close(group.apply_transposed(a, x), x @ dense)
            close(group.solve(a, x), x @ inverse.T)
            close(group.solve_transposed(a, x), x @ inverse)
            close(group.dense(group.product(a, b)), dense @ group.dense(b))
            close(group.dense(group.inverse(a)), inverse)
            close(group.log_abs_det(a), np.linalg.slogdet(dense)[1])
            projected.append((group.project(x, w, 0.3), group.project_pairs(x, x[::-1], w, 0.3)))
    for one, pairs in projected[1:]:
        close(one, projected[0][0])
        close(pairs, projected[0][1])


def test_solutions_that_grow_by_a_hundred_orders_have_a_residual_of_rounding() -> None:
    group = ToeplitzTriangular(3000)
    a = np.zeros(group.size)
    a[:2] = 1.0, -1.1  # the inverse is 1.1^j
    inverse = group.inverse(a)
    np.testing.assert_allclose(inverse, 1.1 ** np.arange(3000.0), rtol=1e-11)


# ---- C (.) kappa --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [*SMALL, Circulant(66), Circulant(69, 3), ToeplitzTriangular(198, 3)], ids=str)
def test_projections_are_exactly_symmetric_where_the_local_space_is(group: Group, way: str) -> None:
    """A circulant step as a whole, a Toeplitz step in its first block."""
    rng = np.random.default_rng(5)
    x, y, w = *rng.standard_normal((2, 4, group.dim)), rng.standard_normal(4)
    for m in (group.project(x, w, 0.3), group.project_pairs(x, y, w, 0.3)):
        symmetric = group.dense_local(m)
        if isinstance(group, ToeplitzTriangular):
            symmetric = symmetric[: group.block, : group.block]
        np.testing.assert_array_equal(symmetric, symmetric.T)


@pytest.mark.parametrize("group", SMALL, ids=str)
def test_projections_solve_the_fisher_system_to_rounding(group: Group, way: str) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((2, 4, group.dim))
    w, one = rng.standard_normal(4), np.eye(group.dim)
    alone, pairs = (x.T * w) @ x - 0.3 * one, ((x.T * w) @ y + (y.T * w) @ x) / 2 - 0.3 * one
    close(group.dense_local(group.project(x, w, 0.3)), oracle.natural_gradient(group, alone))
    close(group.dense_local(group.project_pairs(x, y, w, 0.3)), oracle.natural_gradient(group, pairs))


def test_symmetric_matrices_that_commute_with_a_turn_of_the_ring_are_the_local_space() -> None:
    """As a null space: that of the oracle is written down by its blocks."""
    for group in (Circulant(1), Circulant(5), Circulant(6), Circulant(6, 2), Circulant(8, 2), Circulant(9, 3)):
        d = group.dim
        turn = np.kron(np.roll(np.eye(d // group.block), 1, axis=0), np.eye(group.block))
        units = np.eye(d * d).reshape(-1, d, d)
        conditions = np.concatenate([turn @ units - units @ turn, units - units.swapaxes(1, 2)], axis=1)
        space = scipy.linalg.null_space(conditions.reshape(d * d, -1).T)
        basis = np.array([b.ravel() for b in oracle.local_basis(group)]).T
        assert group.dof == space.shape[1] == basis.shape[1]
        close(space @ (space.T @ basis), basis)


@pytest.mark.parametrize(
    "group", [ToeplitzTriangular(200), ToeplitzTriangular(200, lower=False), Circulant(72)], ids=str
)
def test_samples_are_transformed_once(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    transform = _fourier.fft.rfft
    monkeypatch.setattr(_fourier.fft, "rfft", lambda *args, **options: calls.append(1) or transform(*args, **options))
    group.project(np.ones((3, group.dim)), np.ones(3))
    assert len(calls) == 1


@pytest.mark.parametrize("group", [ToeplitzTriangular(3000, 3), Circulant(3000, 3)], ids=str)
def test_projecting_never_forms_a_square_matrix(group: Group, way: str) -> None:
    z, w = np.ones((2, 3000)), np.ones(2)
    group.project(z, w)  # the first call may compile
    tracemalloc.start()
    group.project(z, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 20


# ---- singular elements --------------------------------------------------------------------------------------------


def singular_elements() -> list[tuple[Group, Array]]:
    elements: list[tuple[Group, Array]] = []
    for block, first in ((1, [0.0]), (2, [1.0, 2.0, 2.0, 4.0])):
        rest = np.ones(4 * block - block**2)
        elements += [(ToeplitzTriangular(4, block, lower), np.append(first, rest)) for lower in (True, False)]
    elements += [(Circulant(q), np.ones(q)) for q in (2, 3, 7, 100, 997)]  # all frequencies but one vanish
    ring = np.zeros(30)
    ring[:2] = 1.0  # the highest frequency alone vanishes
    elements.append((Circulant(30), ring))
    waves = np.cos(2 * np.pi * np.outer(np.arange(1, 50), np.arange(101)) / 101)  # frequencies 0 and 50 vanish
    elements.append((Circulant(101), waves.sum(axis=0)))
    elements.append((Circulant(8, 2), np.concatenate([[1.0, 2.0, 2.0, 4.0], np.zeros(12)])))
    elements.append((Circulant(8, 2), np.zeros(16)))
    return elements


@pytest.mark.parametrize(("group", "a"), singular_elements(), ids=str)
def test_elements_that_are_singular_to_rounding_are_refused(group: Group, a: Array, way: str) -> None:
    x = np.ones(group.dim)
    for act in (group.inverse, lambda a: group.solve(a, x), lambda a: group.solve_transposed(a, x)):
        with pytest.raises(SingularElementError, match="a must be invertible"):
            act(a)


@pytest.mark.parametrize(("group", "a"), [*singular_elements()[:4], (Circulant(4), np.ones(4))], ids=str)
def test_the_determinant_of_a_singular_element_is_refused(group: Group, a: Array) -> None:
    with pytest.raises(SingularElementError, match="its determinant is 0"):
        group.log_abs_det(a)


@pytest.mark.parametrize("block", [1, 2])
def test_circulant_elements_of_condition_1e12_are_not_refused(block: int) -> None:
    group = Circulant(64 * block, block)
    hat = np.geomspace(1e-12, 1.0, 33)
    a = np.kron(np.fft.irfft(hat, 64)[:, None], np.eye(block)).ravel()
    x = np.random.default_rng(8).standard_normal(group.dim)
    close(group.apply(a, group.solve(a, x)), x, 1e-3)
