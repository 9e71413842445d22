"""What is special to the sparse groups: patterns, kernels against slow twins, pivots and hubs; laws are in laws.py."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from esgroup.checks import Array
from esgroup.groups.base import Group
from esgroup.groups.bordered import BlockTriangular, Heisenberg
from esgroup.groups.diagonal import Diagonal
from esgroup.groups.full import Full
from esgroup.groups.linalg import SingularElementError
from esgroup.groups.sparse import Sparse
from esgroup.kernels import sparse as kernels
from tests.groups.elements import covariance, element

Edges = list[tuple[int, int]]


# ---- tools ------------------------------------------------------------------------------------------------------


def close_to(got: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * max(1.0, np.abs(wanted).max(initial=0.0)))


def warshall(dim: int, edges: Edges) -> np.ndarray:
    """The reflexive and transitive closure, dense and slow."""
    reach = np.eye(dim, dtype=bool)
    for i, j in edges:
        reach[i, j] = True
    for k in range(dim):
        for i in range(dim):
            for j in range(dim):
                reach[i, j] |= reach[i, k] and reach[k, j]
    return reach


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, Edges]:
    dim = draw(st.integers(1, 9))
    at = st.integers(0, dim - 1)
    return dim, draw(st.lists(st.tuples(at, at), max_size=2 * dim))


# random preorders: edges in both directions close to cycles, that is to classes with dense blocks
groups = edge_lists().map(lambda drawn: Sparse.from_edges(drawn[0], drawn[1], close=True))
seeds = st.integers(0, 2**32 - 1)
many = settings(deadline=None, max_examples=3 * settings.default.max_examples)  # patterns differ more than sizes

# {2}, {0, 3} on {2}, {1, 4, 5} on all of these, {6} alone: two classes, one with two predecessors
TWO_CLASSES = Sparse.from_edges(7, [(0, 2), (0, 3), (3, 0), (1, 3), (1, 4), (4, 5), (5, 1)], close=True)


def dense(group: Sparse, a: Array) -> Array:
    """A packed vector as a matrix, entry by entry."""
    matrix = np.zeros((group.dim, group.dim))
    for i in range(group.dim):
        for t in range(group.indptr[i], group.indptr[i + 1]):
            matrix[i, group.indices[t]] = a[t]
    return matrix


def pattern_of(group: Sparse) -> np.ndarray:
    return dense(group, np.ones(group.size)).astype(bool)


def packed(group: Sparse, matrix: Array) -> Array:
    return np.array([matrix[i, j] for i in range(group.dim) for j in np.flatnonzero(pattern_of(group)[i])])


def classes_of(group: Sparse) -> list[list[int]]:
    mutual = pattern_of(group) & pattern_of(group).T
    return [list(np.flatnonzero(row)) for i, row in enumerate(mutual) if np.flatnonzero(row)[0] == i]


# ---- the pattern ------------------------------------------------------------------------------------------------


@many
@given(edge_lists())
def test_closing_a_pattern_adds_exactly_what_can_be_reached(drawn: tuple[int, Edges]) -> None:
    dim, edges = drawn
    wanted = warshall(dim, edges)
    given_matrix = np.zeros((dim, dim), dtype=bool)
    given_matrix[tuple(np.array(edges, dtype=int).reshape(-1, 2).T)] = True
    for group in (
        Sparse.from_edges(dim, edges, close=True),
        Sparse(given_matrix, close=True),
        Sparse(sparse.coo_array(given_matrix.astype(int)), close=True),
    ):
        np.testing.assert_array_equal(group.pattern.toarray(), wanted)
        assert group.size == wanted.sum() and group.dim == dim


@many
@given(edge_lists())
def test_a_pattern_is_taken_as_it_is_exactly_if_it_is_closed(drawn: tuple[int, Edges]) -> None:
    dim, edges = drawn
    given_matrix = np.eye(dim, dtype=bool)
    given_matrix[tuple(np.array(edges, dtype=int).reshape(-1, 2).T)] = True
    if (warshall(dim, edges) == given_matrix).all():
        np.testing.assert_array_equal(Sparse(given_matrix).pattern.toarray(), given_matrix)
        assert Sparse.from_edges(dim, edges) == Sparse(given_matrix)
        return
    reached = (given_matrix.astype(int) @ given_matrix > 0) & ~given_matrix
    with pytest.raises(ValueError, match=f"lacks at least {reached.sum()} of these") as error:
        Sparse(given_matrix)
    named = re.findall(r"\((\d+), (\d+)\)", str(error.value))
    assert [tuple(map(int, pair)) for pair in named] == [tuple(p) for p in np.argwhere(reached)[:5].tolist()]


def test_an_open_pattern_is_refused_with_the_missing_entries_named() -> None:
    with pytest.raises(ValueError, match=r"lacks at least 1 of these: \(2, 0\); close=True completes it"):
        Sparse.from_edges(3, [(1, 0), (2, 1)])
    with pytest.raises(ValueError, match=r"lacks at least 10 of these: \(2, 0\), .*, \(6, 4\), \.\.\.; close=True"):
        Sparse(np.eye(12, dtype=bool) | np.eye(12, k=-1, dtype=bool))


def test_the_entries_missing_far_down_a_large_pattern_are_named_with_their_own_rows() -> None:
    with pytest.raises(ValueError, match=r"lacks at least 1 of these: \(8998, 5000\);"):
        Sparse.from_edges(9000, [(8998, 7000), (7000, 5000)])


def test_a_missing_diagonal_entry_of_a_matrix_is_a_missing_entry() -> None:
    with pytest.raises(ValueError, match=r"lacks at least 1 of these: \(1, 1\);"):
        Sparse(np.diag([True, False, True]))
    assert Sparse(np.diag([True, False, True]), close=True) == Sparse(np.eye(3, dtype=bool))


def test_a_bidiagonal_pattern_closes_to_the_full_triangle() -> None:
    group = Sparse(np.eye(9, dtype=bool) | np.eye(9, k=-1, dtype=bool), close=True)
    np.testing.assert_array_equal(group.pattern.toarray(), np.tri(9, dtype=bool))
    assert group.dof == 45


def test_a_cycle_closes_to_the_dense_matrices() -> None:
    group = Sparse.from_edges(5, [(i, (i + 1) % 5) for i in range(5)], close=True)
    assert group == Sparse(np.ones((5, 5))) and group.dof == 15


def test_a_large_sparse_pattern_is_closed_without_a_dense_matrix() -> None:
    dim = 10_000
    edges = [(i, (i - 1) // 4) for i in range(1, dim)]  # each coordinate on its parent in a tree: closes to ancestors
    tracemalloc.start()
    group = Sparse.from_edges(dim, edges, close=True)
    assert group.transposed.dof == group.dof == group.size == 72721
    assert Sparse(group.pattern) == group
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < dim * dim / 4  # bytes; a dense boolean matrix has dim^2


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (np.ones((2, 3), dtype=bool), r"pattern must have shape \(dim, dim\) with dim >= 1, got \(2, 3\)"),
        (np.ones((0, 0), dtype=bool), r"pattern must have shape \(dim, dim\) with dim >= 1, got \(0, 0\)"),
        (np.ones(4, dtype=bool), r"pattern must have shape .*, got \(4,\)"),
        (sparse.csr_array(np.ones((3, 2))), r"pattern must have shape .*, got \(3, 2\)"),
        ([[1, 0], [1]], "pattern must be an array of real numbers, got rows of unequal length"),
        (np.array([[1, 0], [2, 1]]), "pattern must hold booleans or 0 and 1, got 2"),
        (np.array([[1.0, 0.5], [0, 1]]), "pattern must hold booleans or 0 and 1, got 0.5"),
        (np.array([[1.0, np.nan], [0, 1]]), "pattern must hold booleans or 0 and 1, got nan"),
        (sparse.csr_array(-np.eye(2)), "pattern must hold booleans or 0 and 1, got -1"),
        (np.array([["x"]]), "pattern must hold booleans or 0 and 1, got dtype <U1"),
    ],
)
def test_a_bad_pattern_is_refused_with_a_reason(pattern: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sparse(pattern)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (0, 3)], r"edges must be pairs of integers from 0 to 2, got \(0, 3\) at 1"),
        ([(-1, 0)], r"edges must be pairs of integers from 0 to 2, got \(-1, 0\) at 0"),
        ([(0, 1.5)], r"edges must be pairs of integers from 0 to 2, got \(0, 1.5\) at 0"),
        ([0, 1], r"edges must have shape \(n, 2\), got \(2,\)"),
        ([(0, 1, 2)], r"edges must have shape \(n, 2\), got \(1, 3\)"),
    ],
)
def test_bad_edges_are_refused_with_a_reason(edges: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sparse.from_edges(3, edges)


def test_a_bad_dimension_or_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="dim must be an integer >= 1, got 0"):
        Sparse.from_edges(0, [])
    with pytest.raises(TypeError, match=r"dim must be an integer >= 1, got 2\.5"):
        Sparse.from_edges(2.5, [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="close must be True or False, got 'yes'"):
        Sparse(np.eye(2), close="yes")  # type: ignore[arg-type]


def test_a_group_is_a_frozen_description_that_is_equal_by_its_pattern() -> None:
    group = Sparse.from_edges(4, [(2, 0), (2, 0), (3, 0)])
    same = Sparse(sparse.csc_array(group.pattern.toarray().astype(np.uint8)))
    assert group == same and hash(group) == hash(same) and len({group, same, group.transposed}) == 2
    assert group != group.transposed and group != Sparse(np.eye(5)) and group != "Sparse"
    assert group.transposed.transposed == group
    assert repr(group) == "Sparse(dim=4, nonzeros=6)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        group.dim = 5  # type: ignore[misc]
    group.pattern.indices[:] = 0  # a copy
    assert group == same


def test_what_a_group_shares_is_read_only_also_after_a_pickle() -> None:
    for group in (TWO_CLASSES, copy.deepcopy(TWO_CLASSES), pickle.loads(pickle.dumps(TWO_CLASSES))):
        assert group == TWO_CLASSES
        for array in (group.indptr, group.indices, group.hub):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# ---- kernels against slow twins ---------------------------------------------------------------------------------


@many
@given(groups, seeds, st.integers(0, 9))
def test_the_kernel_of_apply_equals_its_twin(group: Sparse, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    a, x, out = rng.normal(size=group.size), rng.normal(size=(n, group.dim)), np.full((n, group.dim), np.nan)
    kernels.apply(a, group.indptr, group.indices, x, out)
    close_to(out, np.array([dense(group, a) @ row for row in x]).reshape(n, group.dim))


@many
@given(groups, seeds, st.integers(0, 9))
def test_the_kernel_of_project_equals_its_twin(group: Sparse, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    left, right, w = rng.normal(size=(n, group.dim)), rng.normal(size=(n, group.dim)), rng.normal(size=n)
    coefficient, out = rng.normal(size=group.size), np.full(group.size, np.nan)
    kernels.project(left, right, w, 0.7, group.indptr, group.indices, coefficient, out)
    full = -0.7 * np.eye(group.dim)
    for i in range(n):
        full += w[i] * np.outer(left[i], right[i])
    close_to(out, coefficient * packed(group, full))


@many
@given(groups, seeds)
def test_the_kernel_of_product_equals_its_twin(group: Sparse, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, out = rng.normal(size=group.size), rng.normal(size=group.size), np.full(group.size, np.nan)
    kernels.product(a, b, group.indptr, group.indices, out)
    close_to(dense(group, out), dense(group, a) @ dense(group, b))


def dominant(group: Sparse, rng: np.random.Generator) -> Array:
    """Well conditioned, but with its large entries off the diagonal of the blocks, so that pivots are needed."""
    matrix = 0.2 * rng.normal(size=(group.dim, group.dim))
    for members in classes_of(group):
        matrix[members, np.roll(members, 1)] = rng.choice([-1.0, 1.0], size=len(members)) * (1 + len(members))
        if len(members) > 1:
            matrix[members, members] = 0.0
    return packed(group, matrix)


def block_inverses(group: Sparse, a: Array) -> Array:
    matrix = np.zeros((group.dim, group.dim))
    for members in classes_of(group):
        matrix[np.ix_(members, members)] = np.linalg.inv(dense(group, a)[np.ix_(members, members)])
    return packed(group, matrix)


@many
@given(groups, seeds)
def test_the_kernel_of_invert_blocks_equals_its_twin(group: Sparse, seed: int) -> None:
    a = dominant(group, np.random.default_rng(seed))
    out, logs, rconds = np.zeros(group.size), np.zeros(group.dim), np.ones(group.dim)
    kernels.invert_blocks(a, group.indptr, group.indices, *group._classes[:2], out, logs, rconds)
    wanted_logs, wanted_rconds = np.zeros(group.dim), np.ones(group.dim)
    for members in classes_of(group):
        block = dense(group, a)[np.ix_(members, members)]
        wanted_logs[members[0]] = np.log(np.abs(np.linalg.det(block)))
        wanted_rconds[members[0]] = 1 / np.linalg.cond(block, np.inf)
    close_to(out, block_inverses(group, a))
    close_to(logs, wanted_logs)
    close_to(rconds, wanted_rconds)


@many
@given(groups, seeds, st.integers(0, 9))
def test_the_kernel_of_solve_equals_its_twin(group: Sparse, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    a, x = dominant(group, rng), rng.normal(size=(n, group.dim))
    out = np.full((n, group.dim), np.nan)
    kernels.solve(a, block_inverses(group, a), group.indptr, group.indices, *group._classes, x, out)
    close_to(out, np.linalg.solve(dense(group, a), x.T).T)


@many
@given(groups, seeds)
def test_the_kernel_of_inverse_equals_its_twin(group: Sparse, seed: int) -> None:
    a = dominant(group, np.random.default_rng(seed))
    out = np.full(group.size, np.nan)
    kernels.inverse(a, block_inverses(group, a), group.indptr, group.indices, *group._classes, out)
    close_to(dense(group, out), np.linalg.inv(dense(group, a)))


# ---- hooks without a kernel, and solves through the public methods ----------------------------------------------


@many
@given(groups, seeds)
def test_elements_with_zeros_on_the_diagonal_of_a_block_are_solved_with_pivots(group: Sparse, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, x = dominant(group, rng), rng.normal(size=(3, group.dim))
    matrix = dense(group, a)
    close_to(group.solve(a, x), np.linalg.solve(matrix, x.T).T)
    close_to(group.solve_transposed(a, x), np.linalg.solve(matrix.T, x.T).T)
    close_to(dense(group, group.inverse(a)), np.linalg.inv(matrix))
    close_to(group.log_abs_det(a), np.linalg.slogdet(matrix)[1])


def test_a_matrix_off_the_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Sparse\(dim=3, nonzeros=4\), but its entry \(0, 2\) is off by 3"):
        Sparse.from_edges(3, [(2, 0)]).from_dense([[1.0, 0, 3], [0, 1, 0], [2, 0, 1]])


def test_a_zero_on_the_diagonal_is_refused_as_singular() -> None:
    group = Sparse.from_edges(4, [(2, 0), (3, 0)])
    a = group.from_dense(np.diag([1.0, 2, 0, 4]) + np.eye(4, k=-2)[[0, 1, 2, 0]])
    x = np.ones(4)
    for method in (group.inverse, lambda b: group.solve(b, x), lambda b: group.solve_transposed(b, x)):
        with pytest.raises(SingularElementError, match="1 x 1 block of coordinate 2 is singular"):
            method(a)
    with pytest.raises(SingularElementError, match="determinant is 0"):
        group.log_abs_det(a)


@pytest.mark.parametrize("block", [np.ones((3, 3)), np.zeros((3, 3)), np.arange(1.0, 10).reshape(3, 3) / 7])
def test_a_block_that_is_singular_up_to_rounding_is_refused(block: Array) -> None:
    matrix = TWO_CLASSES.dense(element(TWO_CLASSES, np.random.default_rng(3)))
    matrix[np.ix_([1, 4, 5], [1, 4, 5])] = block
    a = TWO_CLASSES.from_dense(matrix)
    for method in (TWO_CLASSES.inverse, lambda b: TWO_CLASSES.solve(b, np.ones(7))):
        with pytest.raises(SingularElementError, match="3 x 3 block of coordinate 1 is singular"):
            method(a)


def test_an_unsorted_sparse_pattern_with_stored_zeros_is_read_and_left_alone() -> None:
    given_pattern = sparse.csr_array(([1, 0, 1, 1], [1, 0, 0, 1], [0, 2, 4]), shape=(2, 2))
    kept = given_pattern.copy()
    assert Sparse(given_pattern, close=True) == Sparse(np.ones((2, 2)))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(given_pattern, name), getattr(kept, name))


# ---- the hub ----------------------------------------------------------------------------------------------------


@many
@given(groups, seeds)
def test_the_hub_touches_all_entries_and_holds_classes_whole(group: Sparse, seed: int) -> None:
    hub = set(group.hub.tolist())
    assert group.hub.dtype == np.int64 and sorted(hub) == group.hub.tolist()
    assert all(i == j or i in hub or j in hub for i, j in np.argwhere(pattern_of(group)).tolist())
    assert all(len(members) == 1 or hub.issuperset(members) for members in classes_of(group))
    np.testing.assert_array_equal(group.transposed.hub, group.hub)
    matrix = dense(group, dominant(group, np.random.default_rng(seed)))
    for j in set(range(group.dim)) - hub:  # column j is a combination of e_j and the hub's columns
        basis = np.column_stack([np.eye(group.dim)[:, j], matrix[:, group.hub]])
        close_to(basis @ np.linalg.lstsq(basis, matrix[:, j])[0], matrix[:, j], 1e-9)


def test_the_hub_is_small_where_few_coordinates_touch_all_entries() -> None:
    star = Sparse.from_edges(50, [(i, 30) for i in range(50)])
    assert star.hub.tolist() == [30]
    two = Sparse.from_edges(50, [(i, 7) for i in range(10, 50)] + [(i, 3) for i in range(10, 50)] + [(3, 7)])
    assert two.hub.tolist() == [3, 7]
    assert Sparse(np.eye(4)).hub.tolist() == []


def test_the_hub_columns_are_all_that_project_dense_reads() -> None:
    rng = np.random.default_rng(5)
    group = Sparse.from_edges(6, [(1, 0), (4, 0), (0, 2), (4, 2), (1, 2), (5, 2)])
    assert 0 < len(group.hub) < 6
    sigma = covariance(6, rng)
    changed = sigma + np.triu(rng.normal(size=(6, 6)), 1)
    outside = np.setdiff1d(np.arange(6), group.hub)
    mixed = sigma.copy()
    mixed[np.ix_(outside, outside)] = changed[np.ix_(outside, outside)]
    mixed = np.tril(mixed.T) + np.tril(mixed.T, -1).T
    assert not np.allclose(mixed, sigma)
    np.testing.assert_array_equal(group.project_dense(mixed), group.project_dense(sigma))


# ---- patterns that are other groups -----------------------------------------------------------------------------


def block_pattern(sizes: tuple[int, ...], rows: list[list[int]]) -> np.ndarray:
    """1: a dense block, 0: zeros, 2: a diagonal."""
    kinds: list[Any] = [np.zeros, np.ones, lambda shape: np.eye(shape[0])]
    blocks = [[kinds[kind]((sizes[i], sizes[j])) for j, kind in enumerate(row)] for i, row in enumerate(rows)]
    return np.block(blocks).astype(bool)


LOW3, LOW2 = [[1, 0, 0], [1, 2, 0], [1, 1, 1]], [[1, 0], [1, 2]]
UP3, UP2 = [[1, 1, 1], [0, 2, 1], [0, 0, 1]], [[1, 1], [0, 2]]
TWINS: list[tuple[Group, np.ndarray]] = [
    (Diagonal(6), np.eye(6, dtype=bool)),
    (Full(5), np.ones((5, 5), dtype=bool)),
    (BlockTriangular(7, 0), np.eye(7, dtype=bool)),
    (BlockTriangular(7, 1), block_pattern((1, 6), LOW2)),
    (BlockTriangular(7, 3), block_pattern((3, 4), LOW2)),
    (BlockTriangular(7, 3, lower=False), block_pattern((3, 4), UP2)),
    (Heisenberg(8, 2, 3), block_pattern((2, 3, 3), LOW3)),
    (Heisenberg(8, 2, 3, lower=False), block_pattern((2, 3, 3), UP3)),
    (Heisenberg(8, 3, 1), block_pattern((3, 4, 1), LOW3)),
]


@pytest.mark.parametrize(("known", "pattern"), TWINS, ids=lambda value: repr(value) if isinstance(value, Group) else "")
def test_the_pattern_of_a_known_group_gives_that_group(known: Group, pattern: np.ndarray) -> None:
    rng = np.random.default_rng(7)
    group = Sparse(pattern)
    assert (group.dim, group.size, group.dof) == (known.dim, known.size, known.dof)
    assert set(group.hub.tolist()) <= set(known.hub.tolist())
    z, w, sigma = rng.normal(size=(11, group.dim)), rng.normal(size=11), covariance(group.dim, rng)
    close_to(group.dense_local(group.project(z, w, 0.4)), known.dense_local(known.project(z, w, 0.4)))
    close_to(group.dense_local(group.project_dense(sigma)), known.dense_local(known.project_dense(sigma)))
    ours, theirs = group.dense(group.from_covariance(sigma)), known.dense(known.from_covariance(sigma))
    close_to(ours @ ours.T, theirs @ theirs.T)
    b = element(known, rng)
    a = group.from_dense(known.dense(b))
    close_to(group.solve(a, z), known.solve(b, z))
    close_to(group.dense(group.inverse(a)), known.dense(known.inverse(b)))
    close_to(group.log_abs_det(a), known.log_abs_det(b))
    close_to(group.dense(group.product_h_samples(a, z, w / 20)), known.dense(known.product_h_samples(b, z, w / 20)))
