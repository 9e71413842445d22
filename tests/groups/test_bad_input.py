"""An error names the argument, what it must be and what it was."""

import dataclasses
import pickle

import numpy as np
import pytest

from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Heisenberg,
    Kronecker,
    SingularElementError,
    Sparse,
    ToeplitzTriangular,
    Triangular,
    as_group,
    parse,
    spell,
)
from tests.groups.laws import close
from tests.groups.strangers import Exchangeable, Scalar

full, heisenberg = Full(3), Heisenberg(6, 1, 2)
NEARLY = np.zeros((4, 4))
NEARLY[3, 2] = 1e-3

VALUES = [
    (lambda: Full(0), "dim must be an integer >= 1, got 0"),
    (lambda: Diagonal(-3), "dim must be an integer >= 1, got -3"),
    (lambda: BlockTriangular(4, 5), "k must be an integer from 0 to 4, got 5"),
    (lambda: BlockTriangular(4, -1), "k must be an integer from 0 to 4, got -1"),
    (lambda: Heisenberg(4, 3, 2), r"k1 \+ k2 must be at most dim = 4, got 3 \+ 2"),
    (lambda: Heisenberg(4, -1, 2), "k1 must be an integer from 0 to 4, got -1"),
    (lambda: ToeplitzTriangular(0), "dim must be an integer >= 1, got 0"),
    (lambda: ToeplitzTriangular(6, 0), "block must be an integer >= 1, got 0"),
    (lambda: ToeplitzTriangular(6, 4), "dim must be a multiple of block = 4, got 6"),
    (lambda: ToeplitzTriangular(3, 6), "dim must be a multiple of block = 6, got 3"),
    (lambda: Circulant(0), "dim must be an integer >= 1, got 0"),
    (lambda: Circulant(6, 0), "block must be an integer >= 1, got 0"),
    (lambda: Circulant(6, 4), "dim must be a multiple of block = 4, got 6"),
    (lambda: Circulant(3, 6), "dim must be a multiple of block = 6, got 3"),
    (lambda: ToeplitzTriangular(4, 2).inverse(np.ones(4)), r"a must have shape \(8,\), got \(4,\)"),
    (lambda: Circulant(4, 2).inverse(np.ones(4)), r"a must have shape \(8,\), got \(4,\)"),
    (lambda: BlockDiagonal([]), "groups must hold at least one group"),
    (lambda: Conjugate(full, np.ones((3, 3))), "by must be orthogonal, but by.T @ by differs from the identity by 3"),
    (lambda: Conjugate(full, [0, 1, 1]), "by must be .* a permutation of 0 ... 2"),
    (lambda: Conjugate(full, [0.0, 1.0, 2.0]), "by must be .* a permutation"),
    (lambda: Conjugate(full, np.eye(4)), r"by must have shape \(3, 3\), got \(4, 4\)"),
    (lambda: full.apply(np.ones(8), np.ones(3)), r"a must have shape \(9,\), got \(8,\)"),
    (lambda: full.apply(np.ones(9), np.ones(4)), r"x must have shape \(3,\), got \(4,\)"),
    (lambda: full.apply(np.ones(9), np.ones((2, 4))), r"x must have shape \(n, 3\), got \(2, 4\)"),
    (lambda: full.apply(np.ones(9), np.ones((2, 2, 3))), r"x must have shape \(3,\) or \(n, 3\), got \(2, 2, 3\)"),
    (lambda: full.apply(np.ones(9), [1, np.nan, 2]), "x must be finite, got nan at index 1"),
    (lambda: full.apply(np.full(9, np.inf), np.ones(3)), "a must be finite, got inf at index 0"),
    (lambda: full.apply(np.ones(9), [1j, 0, 0]), "x must be an array of real numbers, got dtype complex128"),
    (lambda: full.apply(np.ones(9), [None, 0, 0]), "x must be an array of real numbers, got dtype object"),
    (lambda: full.apply(np.ones(9), ["a", "b", "c"]), "x must be an array of real numbers, got dtype <U1"),
    (lambda: full.apply(np.ones(9), [[1, 2, 3], [4, 5]]), "x must"),
    (lambda: full.project(np.ones((2, 3)), np.ones(3)), r"weights must have shape \(2,\), got \(3,\)"),
    (lambda: full.project(np.ones((2, 3)), np.ones(2), np.nan), "shift must be a finite number, got nan"),
    (lambda: full.project_dense(np.arange(9.0).reshape(3, 3)), "matrix must be symmetric, but differs .* by 4"),
    (lambda: full.from_covariance(-np.eye(3)), "covariance must be positive definite, .* smallest eigenvalue is -1"),
    (lambda: full.from_covariance(np.ones((2, 3))), r"covariance must have shape \(3, 3\), got \(2, 3\)"),
    (lambda: full.scale(np.ones(9), -1), "factor must be a positive finite number, got -1"),
    (lambda: Diagonal(3).from_dense(np.ones((3, 3))), r"structure of Diagonal.*entry \(0, 1\) is off by 1"),
    (lambda: ToeplitzTriangular(4).from_dense(np.eye(4) + NEARLY), r"structure of Toep.*entry \(3, 2\) is off by 0"),
    (lambda: Circulant(4).from_dense(np.eye(4) + NEARLY), r"structure of Circulant.*entry \(3, 2\) is off by 0.001"),
    (lambda: heisenberg.product_h_samples(heisenberg.identity(), np.ones((1, 6)), [1], out=np.ones(3)), "out must be"),
    (lambda: parse("fulll", 3), "unknown structure 'fulll' .did you mean 'full'"),
    (lambda: parse("full:k=2", 3), "'k=2' in structure 'full:k=2' is not recognized: full takes no sizes"),
    (lambda: parse("heisenberg:k1", 8), "'k1' in structure 'heisenberg:k1' must be lower, upper or a size such as k=4"),
    (lambda: parse("heisenberg:k1=2,k1=3", 8), "'k1=3' in structure .* is given twice"),
    (lambda: parse("block_triangular:k=9", 3), "k must be an integer from 0 to 3, got 9"),
    (lambda: parse("full", 0), "dim must be an integer >= 1, got 0"),
    (lambda: spell(Kronecker(full, full)), "has no spelling"),
    (lambda: as_group(full, 4), "structure must have dimension 4, got Full.*of dimension 3"),
]


@pytest.mark.parametrize(("call", "message"), VALUES, ids=[m for _, m in VALUES])
def test_a_bad_value_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


TYPES = [
    (lambda: Full(2.5), "dim must be an integer >= 1, got 2.5"),
    (lambda: Full("3"), "dim must be an integer >= 1, got '3'"),
    (lambda: Full(True), "dim must be an integer >= 1, got True"),
    (lambda: BlockTriangular(4, 1.0), "k must be an integer from 0 to 4, got 1.0"),
    (lambda: Triangular(4, lower=1), "lower must be True or False, got 1"),
    (lambda: ToeplitzTriangular(6, 2, 1), "lower must be True or False, got 1"),
    (lambda: ToeplitzTriangular(6, 2.0), "block must be an integer >= 1, got 2.0"),
    (lambda: Kronecker(full, "full"), "second must be a group, got 'full'"),
    (lambda: BlockDiagonal([full, 3]), r"groups\[1\] must be a group, got 3"),
    (lambda: BlockDiagonal(full), "groups must be a sequence of groups"),
    (lambda: Conjugate("full", [0]), "group must be a group, got 'full'"),
    (lambda: parse(3, 3), "structure must be a str, got 3"),
    (lambda: as_group(3, 3), "structure must be a group or a spelling such as 'full', got 3"),
]


@pytest.mark.parametrize(("call", "message"), TYPES, ids=[m for _, m in TYPES])
def test_a_bad_type_is_named(call, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


SINGULAR = [
    Diagonal(3), full, Triangular(3), Triangular(3, False), BlockTriangular(4, 2), Heisenberg(5, 1, 2, False),
    ToeplitzTriangular(4), ToeplitzTriangular(4, 2, False), Circulant(4), Circulant(4, 2), Exchangeable(3), Scalar(3),
    Kronecker(full, Diagonal(2)), BlockDiagonal([full, Diagonal(2)]), Conjugate(full, [2, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("group", SINGULAR, ids=repr)
def test_a_singular_element_is_refused_wherever_an_inverse_is_needed(group) -> None:
    zero = 0 * group.identity()
    for call in (group.inverse, group.log_abs_det, lambda a: group.solve(a, np.ones(group.dim)),
                 lambda a: group.solve_transposed(a, np.ones(group.dim))):  # fmt: skip
        with pytest.raises(SingularElementError, match="a must be invertible"):
            call(zero)


def test_a_matrix_that_is_singular_only_to_rounding_is_refused() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 2))
    with pytest.raises(SingularElementError, match="singular to rounding"):
        full.inverse((rows @ rows.T).ravel())


def test_an_output_array_is_the_element_itself_or_does_not_overlap_it() -> None:
    room = np.ones(heisenberg.size + 1)
    with pytest.raises(ValueError, match="out must not overlap a in memory"):
        heisenberg.product_h_samples(room[:-1], np.ones((1, 6)), [0.1], out=room[1:])


def test_units_do_not_make_a_matrix_singular() -> None:
    rows, columns, plain = np.array([1e-150, 1, 1e150]), np.array([1e20, 1e-20, 1]), np.add(np.eye(3), [0.1, 0.2, 0.3])
    graded = rows[:, None] * plain * columns
    close(full.solve(graded.ravel(), rows * (plain @ np.ones(3))) * columns, np.ones(3))
    close(full.solve_transposed(graded.ravel(), columns * (plain.T @ np.ones(3))) * rows, np.ones(3))
    close(full.log_abs_det(graded.ravel()), np.log(np.linalg.det(plain)))
    assert full.from_covariance(np.diag([1e-20, 1.0, 1e20])).reshape(3, 3)[2, 2] == pytest.approx(1e10)


def test_sizes_of_any_integer_type_become_ints() -> None:
    """A size of eight bits would overflow in the number of packed entries, and a loop would write past its end."""
    group = Triangular(np.uint8(20), lower=np.True_)
    assert (group.size, type(group.dim), type(group.lower)) == (210, int, bool)
    assert Kronecker(Diagonal(np.int8(100)), Diagonal(np.int8(100))).dim == 10_000
    assert BlockTriangular(2000, k=np.int8(100)).size == 100**2 + 101 * 1900
    assert Full(np.int32(50_000)).size == 2_500_000_000
    assert {type(v) for v in dataclasses.astuple(Heisenberg(np.int64(9), np.int64(1), np.int16(2)))} == {int, bool}
    assert type(Circulant(np.int8(4), np.int8(2)).block) is int


@pytest.mark.parametrize("group", [*SINGULAR, Sparse([[1, 0], [1, 1]])], ids=repr)
def test_groups_survive_a_pickle(group) -> None:
    assert group.hub is group.hub  # cached, and shared
    copy = pickle.loads(pickle.dumps(group))
    assert copy == group
    assert hash(copy) == hash(group)
    assert not copy.hub.flags.writeable
    if isinstance(group, Conjugate):
        assert not copy.by.flags.writeable


def test_integer_and_nested_list_input_is_accepted() -> None:
    assert full.apply(list(range(9)), [1, 0, 0]).tolist() == [0.0, 3.0, 6.0]


SPELLINGS = {
    "full": Full(9),
    "diagonal": Diagonal(9),
    "triangular": Triangular(9),
    "triangular:upper": Triangular(9, False),
    "block_triangular:k=2": BlockTriangular(9, 2),
    "heisenberg:k1=4,k2=3,upper": Heisenberg(9, 4, 3, False),
    "toeplitz_triangular": ToeplitzTriangular(9),
    "toeplitz_triangular:block=3,upper": ToeplitzTriangular(9, 3, False),
    "circulant:block=3": Circulant(9, 3),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_spellings_are_read_and_printed(text: str) -> None:
    assert parse(text, 9) == SPELLINGS[text]
    assert spell(SPELLINGS[text]) == text
    assert as_group(text, 9) == as_group(SPELLINGS[text], 9)


def test_sizes_left_out_are_four_or_half_the_dimension() -> None:
    assert parse("heisenberg", 20) == Heisenberg(20, 4, 4)
    assert parse("block_triangular: upper", 5) == BlockTriangular(5, 2, False)
    assert parse("heisenberg:lower", 1) == Heisenberg(1, 0, 0)
    assert parse("heisenberg:k1=6", 8) == Heisenberg(8, 6, 2) == Heisenberg(8, np.int64(6))
    assert Heisenberg(8, k2=7) == Heisenberg(8, 1, 7)


def test_groups_are_equal_by_their_description_and_read_well() -> None:
    assert Conjugate(full, [2, 0, 1]) == Conjugate(full, [2, 0, 1]) != Conjugate(full, [0, 1, 2])
    assert len({Conjugate(Full(2), [[1.0, 0.0], [0.0, 1.0]]), Conjugate(Full(2), [[1.0, -0.0], [0.0, 1.0]])}) == 1
    assert len({Heisenberg(9, 1, 2), Heisenberg(9, 1, 2), Conjugate(full, [2, 0, 1])}) == 2
    assert repr(Heisenberg(9, 1, 2)) == "Heisenberg(dim=9, k1=1, k2=2, lower=True)"
    assert repr(Conjugate(full, [2, 0, 1])) == "Conjugate(Full(dim=3), by permutation)"


def test_shared_arrays_are_read_only() -> None:
    for shared in (Conjugate(full, [2, 0, 1]).by, Heisenberg(9, 1, 2).hub, full.hub):
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 1
