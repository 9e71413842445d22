"""Groups on tensors against the same groups on NumPy arrays, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of networks are skipped")

from esgroup.groups import Circulant, Group, parse  # noqa: E402
from esgroup.torch.groups import TensorGroup, tensor_group  # noqa: E402
from tests.torch.networks import moved_one  # noqa: E402

CASES = [
    ("diagonal", 5),
    ("diagonal", 1),
    ("block_triangular:k=2", 6),
    ("block_triangular:k=2,upper", 6),
    ("block_triangular:k=0", 4),
    ("block_triangular:k=5", 5),
    ("heisenberg:k1=2,k2=1", 7),
    ("heisenberg:k1=1,k2=2,upper", 7),
    ("heisenberg:k1=2,k2=0", 5),
    ("full", 4),
    ("triangular", 5),
    ("triangular:upper", 5),
    ("toeplitz_triangular", 6),
    ("toeplitz_triangular:upper", 6),
    ("toeplitz_triangular:block=2", 6),
    ("toeplitz_triangular:block=2,upper", 6),
]
cases = pytest.mark.parametrize(("spelling", "dim"), CASES)


def made(spelling: str, dim: int) -> tuple[Group, TensorGroup, np.random.Generator]:
    group = parse(spelling, dim)
    return group, tensor_group("rows", group), np.random.default_rng(dim)


def local(group: Group, rng: np.random.Generator) -> np.ndarray:
    return group.project(rng.standard_normal((3, group.dim)), 0.3 * rng.standard_normal(3))


def two(group: Group, rng: np.random.Generator) -> np.ndarray:
    """Two generic elements: products of two, not symmetric."""
    return np.array([group.product(group.h(local(group, rng)), group.h(local(group, rng))) for _ in range(2)])


def close(found: torch.Tensor, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=1e-13 * max(1.0, float(np.abs(wanted).max())))


@cases
def test_products_with_rows_and_their_gram_matrices(spelling: str, dim: int) -> None:
    group, ours, rng = made(spelling, dim)
    a, x = two(group, rng), rng.standard_normal((2, 4, dim))
    dense = np.array([group.dense(one) for one in a])
    of_a, of_x = torch.from_numpy(a), torch.from_numpy(x)
    close(ours.apply(of_a, of_x), x @ dense.swapaxes(1, 2))
    close(ours.apply_transposed(of_a, of_x), x @ dense)
    close(ours.gram_right(ours.gram(of_a), of_x), x @ dense.swapaxes(1, 2) @ dense)
    close(ours.gram_left(ours.gram(of_a), of_x.mT), dense.swapaxes(1, 2) @ dense @ x.swapaxes(1, 2))
    close(ours.squared_norm(of_a), (dense**2).sum((1, 2)))


@cases
def test_local_vectors(spelling: str, dim: int) -> None:
    group, ours, rng = made(spelling, dim)
    a, x = two(group, rng), rng.standard_normal((2, 4, dim))
    found = ours.project(torch.from_numpy(x), 0.3)
    seen = np.array([group.project(one, np.full(4, 0.3)) for one in x])
    close(found, seen)
    rows = [np.ascontiguousarray(group.dense(one).T) for one in a]
    grams = np.array([group.project(one, np.full(dim, 0.5)) for one in rows])
    amounts = np.array([[1.0], [3.0]])
    ours.add_gram(found, torch.from_numpy(a), torch.from_numpy(amounts), 0.5)
    close(found, seen + amounts * grams)


@cases
def test_a_step_is_a_solution_with_h(spelling: str, dim: int) -> None:
    group, ours, rng = made(spelling, dim)
    a, m = two(group, rng), np.array([local(group, rng) for _ in range(2)])
    less = m - 0.35 * group.identity()
    wanted = [group.product(group.inverse(group.h(step)), one) for step, one in zip(less, a, strict=True)]
    before = torch.from_numpy(m)
    close(moved_one(ours, torch.from_numpy(a), before, 0.35), np.array(wanted))
    close(before, m)
    close(ours.identity(torch.empty(0, dtype=torch.float64)), group.identity())


@pytest.mark.parametrize("spelling", ["diagonal", "block_triangular:k=2", "block_triangular:k=2,upper", "full"])
def test_several_sizes_move_together_as_they_do_alone(spelling: str) -> None:
    several = [made(spelling, dim) for dim in (5, 3, 8)]
    groups = [ours for _, ours, _ in several]
    elements = [torch.from_numpy(two(group, rng)) for group, _, rng in several]
    steps = [torch.from_numpy(np.array([local(group, rng) for _ in range(2)])) for group, _, rng in several]
    assert len({group.kind for group in groups}) == 1
    together = groups[0].moved_together(groups, elements, steps, 0.1)
    for group, a, m, found in zip(groups, elements, steps, together, strict=True):
        close(found, moved_one(group, a, m, 0.1).numpy())


def test_a_group_that_tensors_do_not_have_is_named() -> None:
    with pytest.raises(ValueError, match=r"cols must be one of the groups Diagonal, .* got circulant"):
        tensor_group("cols", Circulant(4))
