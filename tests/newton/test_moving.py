"""The moving block against dense matrices and against the group update whose fixed point it is."""

import numpy as np
import pytest

from esgroup.groups import BlockTriangular, Conjugate
from esgroup.newton import Moving
from esgroup.newton.moving import FLOOR, MovingPrecision, moving_precision, parse_moving
from esgroup.newton.precision import GroupPrecision, UpdateData, group_precision
from tests.newton.reference import positive_definite, symmetric

DIM, K = 7, 3


def data_of(
    hessian: np.ndarray, gradient: np.ndarray, damping: float = 0.0, last_step: np.ndarray | None = None
) -> UpdateData:
    return UpdateData(gradient, lambda rows: rows @ hessian, np.diagonal(hessian).copy(), damping, 0.9, last_step)


def advanced(hessian: np.ndarray, seed: int = 0, damping: float = 0.0, k: int = K) -> MovingPrecision:
    gradient = np.random.default_rng(seed).standard_normal(len(hessian))
    return moving_precision(Moving(k), len(hessian)).advance(data_of(hessian, gradient, damping))


def order(found: MovingPrecision) -> np.ndarray:
    """The hub, then all others."""
    hub = found.block.hub
    return np.concatenate([hub, np.setdiff1d(np.arange(len(found.scores)), hub)])


def written_out(hessian: np.ndarray, hub: np.ndarray, damping: float) -> np.ndarray:
    """B in the order of the coordinates, from the three formulas."""
    dim, floor = len(hessian), FLOOR * np.abs(np.diagonal(hessian)).max()
    rest = np.setdiff1d(np.arange(dim), hub)
    e, u = np.linalg.eigh(hessian[np.ix_(hub, hub)])
    a = u @ np.diag(np.sqrt(np.maximum(np.abs(e), floor) + damping))
    c = hessian[np.ix_(rest, hub)] @ np.linalg.inv(a).T
    d = np.sqrt(np.maximum(np.abs(np.diagonal(hessian)[rest] - (c**2).sum(axis=1)), floor) + damping)
    root = np.zeros((dim, dim))
    root[np.ix_(hub, hub)], root[np.ix_(rest, hub)], root[rest, rest] = a, c, d
    return root


@pytest.mark.parametrize("damping", [0.0, 0.8])
@pytest.mark.parametrize("make", [positive_definite, symmetric])
def test_the_step_is_that_of_the_formulas_written_out(make, damping: float) -> None:
    hessian = make(DIM, np.random.default_rng(1))
    found = advanced(hessian, damping=damping)
    root, g = written_out(hessian, found.block.hub, damping), np.random.default_rng(2).standard_normal(DIM)
    np.testing.assert_allclose(found.solve(g), np.linalg.solve(root @ root.T, g), rtol=1e-9)


def test_its_root_is_in_the_block_triangular_group_in_another_order() -> None:
    hessian = positive_definite(DIM, np.random.default_rng(3))
    found = advanced(hessian)
    group = Conjugate(BlockTriangular(DIM, K), order(found))
    root = group.from_dense(written_out(hessian, found.block.hub, 0.0))  # which checks the structure
    g = np.random.default_rng(4).standard_normal(DIM)
    np.testing.assert_allclose(found.solve(g), group.solve_transposed(root, group.solve(root, g)), rtol=1e-9)


def test_it_is_the_fixed_point_of_the_group_update() -> None:
    hessian = positive_definite(DIM, np.random.default_rng(5))
    found = advanced(hessian)
    group = Conjugate(BlockTriangular(DIM, K), order(found))
    root = group.from_dense(written_out(hessian, found.block.hub, 0.0))
    there = GroupPrecision(group_precision(group, "precision", 1.0, 1.0, True).family, root)
    after = there.advance(data_of(hessian, np.ones(DIM)))
    np.testing.assert_allclose(after.root, root, atol=1e-10)


def test_a_block_of_all_coordinates_is_newtons_method_with_the_absolute_hessian() -> None:
    hessian = symmetric(DIM, np.random.default_rng(6))
    e, u = np.linalg.eigh(hessian)
    assert e.min() < 0
    g = np.random.default_rng(7).standard_normal(DIM)
    np.testing.assert_allclose(advanced(hessian, k=99).solve(g), (u / np.abs(e)) @ (u.T @ g), rtol=1e-9)


def test_a_diagonal_hessian_is_matched_whatever_the_hub() -> None:
    diagonal = np.array([1.0, 2.0, 5.0, 0.1, 30.0, 4.0, 7.0])
    np.testing.assert_allclose(advanced(np.diag(diagonal)).solve(np.ones(DIM)), 1 / diagonal, rtol=1e-12)


def test_the_hub_is_where_a_diagonal_step_would_be_largest() -> None:
    gradient, diagonal = np.array([4.0, 1, 3, 1, 1, 1, 2]), np.array([1.0, 0.01, 100, 1, 1, 1, 1])
    # |g| / sqrt(d) = 4, 10, 0.3, 1, 1, 1, 2
    found = moving_precision(Moving(K), DIM).advance(data_of(np.diag(diagonal), gradient))
    assert found.block.hub.tolist() == [0, 1, 6]


def test_the_hub_remembers_for_a_while() -> None:
    strong, weak = np.zeros(DIM), np.full(DIM, 0.1)
    strong[[2, 4, 5]], weak[[0, 1, 3]] = 1.0, 0.3
    now = moving_precision(Moving(K), DIM).advance(data_of(np.eye(DIM), strong))
    hubs = []
    for _ in range(3):
        now = now.advance(data_of(np.eye(DIM), weak))
        hubs.append(now.block.hub.tolist())
    assert hubs == [[2, 4, 5], [0, 1, 3], [0, 1, 3]]  # 0.5 > 0.3 > 0.25
    assert moving_precision(Moving(K, memory=0.0), DIM).advance(data_of(np.eye(DIM), strong)).advance(
        data_of(np.eye(DIM), weak)
    ).block.hub.tolist() == [0, 1, 3]


def test_the_residual_rule_scores_what_the_diagonal_has_missed() -> None:
    hessian = np.diag(np.full(DIM, 4.0))
    hessian[1, 5] = hessian[5, 1] = 1.0
    step, gradient = np.ones(DIM), np.array([9.0, 0, 9, 0, 0, 0, 0])
    found = moving_precision(Moving(2, rule="residual"), DIM).advance(data_of(hessian, gradient, last_step=step))
    assert found.block.hub.tolist() == [1, 5]
    np.testing.assert_allclose(found.scores, [0, 0.5, 0, 0, 0, 0.5, 0])


def test_the_residual_rule_starts_with_the_gradient() -> None:
    gradient = np.array([9.0, 0, 9, 0, 0, 0, 0])
    found = moving_precision(Moving(2, rule="residual"), DIM).advance(data_of(np.eye(DIM), gradient))
    assert found.block.hub.tolist() == [0, 2]


def test_a_text_spells_a_moving_block() -> None:
    assert parse_moving("moving") == Moving(10)
    assert parse_moving(" moving : k=3 ") == Moving(3)
    assert parse_moving("moving:k=5,residual") == Moving(5, rule="residual")
    assert parse_moving("full") is None
    with pytest.raises(ValueError, match=r"'q=3'.*'moving:q=3'"):
        parse_moving("moving:q=3")


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"k": 0}, "k must be"), ({"memory": 1.0}, "memory must be"), ({"rule": "luck"}, "rule must be")],
)
def test_an_invalid_moving_block_is_refused(bad: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Moving(**bad)


def test_a_hub_of_everything_is_newtons_method_for_any_condition() -> None:
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))
    hessian = (turned * np.geomspace(1, 1e12, 6)) @ turned.T
    hessian = (hessian + hessian.T) / 2
    gradient = hessian @ np.ones(6)
    data = UpdateData(gradient, lambda rows: rows @ hessian, np.diagonal(hessian).copy(), 0.0, 1.0, None)
    precision = moving_precision(Moving(k=6), 6).advance(data)
    np.testing.assert_allclose(precision.solve(gradient), np.ones(6), rtol=1e-3)
