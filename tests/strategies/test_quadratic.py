"""Quadratic models in local coordinates: fits are least squares, changes of frame are exact, minimisers are minima."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from esgroup.groups import BlockDiagonal, BlockTriangular, Diagonal, Full, Group, Heisenberg, Triangular
from esgroup.strategies import quadratic
from esgroup.strategies.quadratic import Quadratic, Support, changed_frame, fit, fit_few, least_in_ball, near_weights

Array = NDArray[np.float64]

GROUPS = [Full(5), Diagonal(5), BlockTriangular(5, 2), BlockTriangular(5, 2, False), Heisenberg(6, 1, 2), Full(1)]


def some_model(support: Support, rng: np.random.Generator) -> Quadratic:
    curvature = rng.standard_normal(support.shape)
    if not support.diagonal:
        curvature = support.masked(curvature + curvature.T)
    return Quadratic(float(rng.standard_normal()), rng.standard_normal(support.dim), curvature)


def dense(model: Quadratic) -> Array:
    return np.diag(model.curvature) if model.diagonal else model.curvature


def features(support: Support, z: Array) -> tuple[Array, list[tuple[int, int]]]:
    """1, z_i, (z_i^2 - 1) / sqrt(2), and z_i z_j for the pairs of the support, from the definition."""
    n = support.dim
    mask = np.eye(n, dtype=bool) if support.diagonal else support.mask
    mask = np.ones((n, n), dtype=bool) if mask is None else mask
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if mask[i, j]]
    squares = [(z[:, i] ** 2 - 1) / math.sqrt(2) for i in range(n)]
    columns = [np.ones(len(z)), *z.T, *squares, *(z[:, i] * z[:, j] for i, j in pairs)]
    return np.stack(columns, axis=1), pairs


def unpacked(support: Support, theta: Array, pairs: list[tuple[int, int]]) -> tuple[float, Array, Array]:
    n = support.dim
    curvature = np.diag(theta[1 + n : 1 + 2 * n])
    for (i, j), entry in zip(pairs, theta[1 + 2 * n :], strict=True):
        curvature[i, j] = curvature[j, i] = entry / math.sqrt(2)
    return float(theta[0]), theta[1 : 1 + n], curvature


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_values_are_those_of_the_definition_and_features_are_as_many_as_degrees_of_freedom(group: Group) -> None:
    rng, support = np.random.default_rng(1), Support.of(group)
    model, z = some_model(support, rng), rng.standard_normal((7, group.dim))
    G = dense(model)
    expected = [model.constant + model.slope @ x + (x @ G @ x - np.trace(G)) / math.sqrt(2) for x in z]
    assert np.allclose(model.values(z), expected, rtol=1e-13, atol=1e-13)
    assert features(support, z)[0].shape[1] == support.features == 1 + group.dim + group.dof


def test_features_are_orthonormal_so_that_the_size_of_a_model_is_its_standard_deviation() -> None:
    rng = np.random.default_rng(2)
    model = some_model(Support.of(Full(3)), rng)
    values = model.values(rng.standard_normal((200_000, 3)))
    assert abs(values.mean() - model.constant) < 5 * model.size / math.sqrt(len(values))
    assert values.std() == pytest.approx(model.size, rel=0.02)


def test_a_bordered_group_whose_hub_is_empty_or_everything_has_the_support_of_the_simpler_one() -> None:
    assert Support.of(BlockTriangular(4, 0)).diagonal
    assert Support.of(BlockTriangular(4, 4)).mask is None and not Support.of(BlockTriangular(4, 4)).diagonal


@pytest.mark.parametrize("group", [Triangular(4), BlockDiagonal((Full(2), Full(2)))], ids=str)
def test_other_structures_are_refused_by_name(group: Group) -> None:
    with pytest.raises(ValueError, match=r"structure must be 'full'.*got "):
        Support.of(group)


@pytest.mark.parametrize("looped", [True, False], ids=["loop", "products"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_a_fit_run_to_its_end_is_dense_weighted_least_squares_with_the_prior_as_rows(
    group: Group, ridge: float, looped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quadratic, "_LOOPED", 10**6 if looped else 0)
    rng, support, n = np.random.default_rng(3), Support.of(group), group.dim
    start, z = some_model(support, rng), rng.standard_normal((3 * support.features, n))
    y, weights = rng.standard_normal(len(z)), rng.uniform(0.2, 2.0, len(z))
    found = fit(support, start, z, y, weights, steps=500, tolerance=1e-14, ridge=ridge)
    columns, pairs = features(support, z)
    wide = math.sqrt(4 * n)
    root = np.eye(columns.shape[1])  # P^(1/2): of c and b, and of the common curvature
    root[range(1 + n), range(1 + n)] = wide
    root[1 + n : 1 + 2 * n, 1 + n : 1 + 2 * n] += (wide - 1) / n
    half = np.sqrt(weights)
    rows = np.concatenate([half[:, None] * columns, math.sqrt(ridge) * np.linalg.inv(root)])
    right = np.concatenate([half * (y - start.values(z)), np.zeros(columns.shape[1])])
    theta = np.linalg.lstsq(rows, right, rcond=None)[0]
    constant, slope, curvature = unpacked(support, theta, pairs)
    assert found.constant == pytest.approx(start.constant + constant, abs=1e-9)
    assert np.allclose(found.slope, start.slope + slope, atol=1e-9)
    assert np.allclose(dense(found), dense(start) + curvature, atol=1e-9)


@pytest.mark.parametrize("looped", [True, False], ids=["loop", "products"])
def test_a_fit_to_fewer_points_than_features_changes_the_model_least_in_the_metric_of_the_prior(
    looped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quadratic, "_LOOPED", 10**6 if looped else 0)
    rng, support, n = np.random.default_rng(4), Support.of(Full(4)), 4
    start, z, y = some_model(support, rng), rng.standard_normal((8, 4)), rng.standard_normal(8)
    found = fit(support, start, z, y, np.ones(8), steps=200, tolerance=1e-13)
    columns, pairs = features(support, z)
    variances = np.eye(columns.shape[1])
    variances[range(1 + n), range(1 + n)] = 4 * n
    variances[1 + n : 1 + 2 * n, 1 + n : 1 + 2 * n] += (4 * n - 1) / n
    theta = variances @ columns.T @ np.linalg.solve(columns @ variances @ columns.T, y - start.values(z))
    _, slope, curvature = unpacked(support, theta, pairs)
    assert np.allclose(found.values(z), y, atol=1e-9)
    assert np.allclose(found.slope, start.slope + slope, atol=1e-8)
    assert np.allclose(found.curvature, start.curvature + curvature, atol=1e-8)


@pytest.mark.parametrize("group", GROUPS[:5], ids=str)
def test_the_loop_takes_the_same_steps_as_products_of_matrices(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, support = np.random.default_rng(5), Support.of(group)
    start, z = some_model(support, rng), rng.standard_normal((20, group.dim))
    y, weights = rng.standard_normal(20), rng.uniform(0.2, 2.0, 20)
    found = []
    for looped in (10**6, 0):
        monkeypatch.setattr(quadratic, "_LOOPED", looped)
        found.append(fit(support, start, z, y, weights, steps=4, ridge=0.1))
    assert found[0].constant == pytest.approx(found[1].constant, rel=1e-10)
    assert np.allclose(found[0].slope, found[1].slope, rtol=1e-10)
    assert np.allclose(found[0].curvature, found[1].curvature, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("group", [Full(4), Diagonal(4)], ids=str)
@pytest.mark.parametrize("curvatures", [1, 4])
def test_models_with_few_features_are_exact_from_as_many_points(group: Group, curvatures: int) -> None:
    rng, support = np.random.default_rng(6), Support.of(group)
    diagonal = np.full(4, 0.7) if curvatures == 1 else rng.standard_normal(4)
    true = Quadratic(3.0, rng.standard_normal(4), diagonal if support.diagonal else np.diag(diagonal))
    z = rng.standard_normal((1 + 4 + curvatures, 4))
    found = fit_few(support, z, true.values(z), rng.uniform(0.5, 1.0, len(z)), curvatures=curvatures)
    assert found.constant == pytest.approx(true.constant, abs=1e-7)
    assert np.allclose(found.slope, true.slope, atol=1e-7) and np.allclose(found.curvature, true.curvature, atol=1e-7)


def test_models_with_few_features_are_weighted_least_squares() -> None:
    rng, support = np.random.default_rng(7), Support.of(Full(3))
    z, y, weights = rng.standard_normal((30, 3)), rng.standard_normal(30), rng.uniform(0.1, 2.0, 30)
    half = np.sqrt(weights)
    columns = features(Support.of(Diagonal(3)), z)[0]
    theta = np.linalg.lstsq(half[:, None] * columns, half * y, rcond=None)[0]
    found = fit_few(support, z, y, weights, curvatures=3)
    assert np.allclose([found.constant, *found.slope, *np.diagonal(found.curvature)], theta, atol=1e-9)


def test_weights_are_one_near_the_mean_and_fall_with_the_square_of_the_model_far_from_it() -> None:
    z = np.array([[1.0, 1.0], [math.sqrt(6.0), 0.0], [300.0, 0.0]])
    assert near_weights(z) == pytest.approx([1.0, 0.25, (3.0 / 300.0**2) ** 2])


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_a_change_of_frame_is_exact_to_rounding_within_the_support(group: Group) -> None:
    rng, support, n = np.random.default_rng(8), Support.of(group), group.dim
    model, shift, z = some_model(support, rng), rng.standard_normal(n), rng.standard_normal((9, n))
    turn = rng.uniform(0.5, 2.0, n)
    if not support.diagonal and support.mask is None:
        turn = rng.standard_normal((n, n))  # the support of all others is kept by scales only
    T = np.diag(turn) if turn.ndim == 1 else turn
    moved = changed_frame(support, model, shift, turn if support.diagonal else T)
    assert np.allclose(moved.values(z), model.values(shift + z @ T.T), rtol=1e-12, atol=1e-11)


def test_a_change_of_frame_drops_what_the_support_cannot_hold_and_nothing_else() -> None:
    rng, support = np.random.default_rng(9), Support.of(BlockTriangular(4, 1))
    model, T = some_model(support, rng), rng.standard_normal((4, 4))
    moved = changed_frame(support, model, np.zeros(4), T)
    assert support.mask is not None
    assert np.allclose(moved.curvature[support.mask], (T.T @ model.curvature @ T)[support.mask])
    assert not moved.curvature[~support.mask].any()
    assert moved.values(np.zeros((1, 4))) == pytest.approx(model.values(np.zeros((1, 4))))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("radius", [0.3, 2.0, 20.0])
def test_the_minimiser_in_a_ball_is_that_of_brute_force(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    model = some_model(Support.of(Full(2)), rng)
    if seed % 3 == 0:  # convex
        model = model._replace(curvature=model.curvature @ model.curvature + 0.1 * np.eye(2))
    z, at_edge = least_in_ball(model, model.axes(), radius)
    angles, radii = np.linspace(0, 2 * math.pi, 1441), radius * np.linspace(0, 1, 301)
    grid = (radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)).reshape(-1, 2)
    spacing = max(radius / 300, radius * 2 * math.pi / 1440)
    steepest = np.linalg.norm(model.slope) + math.sqrt(2) * np.linalg.norm(model.curvature, 2) * radius
    best, found = model.values(grid).min(), model.values(z[None])[0]
    assert np.linalg.norm(z) <= radius * (1 + 1e-9)
    assert best - steepest * spacing <= found <= best + 1e-9 * abs(best)
    assert at_edge == (np.linalg.norm(z) > radius * (1 - 1e-9))


@pytest.mark.parametrize("group", [Full(6), Diagonal(6), Heisenberg(6, 1, 1)], ids=str)
@pytest.mark.parametrize("radius", [0.1, 1.0, 50.0])
def test_the_minimiser_in_a_ball_fulfils_the_conditions_of_more_and_sorensen(group: Group, radius: float) -> None:
    for seed in range(20):
        model = some_model(Support.of(group), np.random.default_rng(seed))
        z, at_edge = least_in_ball(model, model.axes(), radius)
        hessian = math.sqrt(2) * dense(model)
        gradient = model.slope + hessian @ z
        multiplier = -float(gradient @ z) / float(z @ z) if at_edge else 0.0
        assert np.allclose(gradient + multiplier * z, 0.0, atol=1e-6 * (1 + np.linalg.norm(gradient)))
        assert np.linalg.eigvalsh(hessian).min() + multiplier >= -1e-6
        assert np.linalg.norm(z) == pytest.approx(radius) if at_edge else np.linalg.norm(z) <= radius


def test_a_slope_without_a_part_along_the_lowest_axis_is_no_obstacle() -> None:
    model = Quadratic(0.0, np.array([0.0, 1.0]), np.diag([-1.0, 2.0]))
    z, at_edge = least_in_ball(model, model.axes(), 2.0)
    second = -1.0 / (math.sqrt(2) * 3.0)
    assert at_edge and np.allclose(np.abs(z), [math.sqrt(4.0 - second**2), -second])
    flat = Quadratic(0.0, np.zeros(2), np.zeros((2, 2)))
    assert least_in_ball(flat, flat.axes(), 2.0)[0].tolist() == [0.0, 0.0]
