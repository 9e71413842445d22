"""Quadratic models in local coordinates: fits are least squares, changes of frame are exact, minimizers are minima."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from esgroup.groups import BlockDiagonal, BlockTriangular, Diagonal, Full, Group, Heisenberg, Triangular
from esgroup.surrogates.quadratic_model import (
    Quadratic,
    Quadratics,
    Support,
    changed_frame,
    fit,
    fit_few,
    near_weights,
)

Array = NDArray[np.float64]

GROUPS = [Full(5), Diagonal(5), BlockTriangular(5, 2), BlockTriangular(5, 2, False), Heisenberg(6, 1, 2), Full(1)]


def some_model(support: Support, rng: np.random.Generator) -> Quadratic:
    curvature = rng.standard_normal(support.shape)
    if not support.diagonal:
        curvature = (curvature + curvature.T) * (1.0 if support.mask is None else support.mask)
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


def prior_root(support: Support) -> Array:
    """P^(1/2): of c and b, and of the common curvature, as a matrix over all features."""
    n, wide = support.dim, math.sqrt(4 * support.dim)
    root = np.eye(support.features)
    root[range(1 + n), range(1 + n)] = wide
    root[1 + n : 1 + 2 * n, 1 + n : 1 + 2 * n] += (wide - 1) / n
    return root


def stacked(models: list[Quadratic]) -> Quadratics:
    return Quadratics(*(np.array(part) for part in zip(*models, strict=True)))


def fitted(
    support: Support, start: Quadratic, z: Array, y: Array, weights: Array, steps: int, again: int = 1
) -> Quadratic:
    """One model, fitted to all points; `again` fits follow each other, so that single precision does not show."""
    models = stacked([start])
    for _ in range(again):
        fit(support, models, z, y, weights, windows=[len(z)], steps=[steps], tolerance=1e-6 if again > 1 else 1e-12)
    return models.one(0)


def corrected(
    support: Support, start: Quadratic, z: Array, y: Array, weights: Array, steps: int
) -> tuple[float, Array, Array]:
    """c, b and the dense G after steps of CGLS on the matrix of features, written out in double precision."""
    half, (columns, pairs) = np.sqrt(weights), features(support, z)
    matrix = half[:, None] * columns @ prior_root(support)
    residual = half * (y - start.values(z))
    u, gradient = np.zeros(support.features), matrix.T @ residual
    direction = gradient.copy()
    for _ in range(steps):
        image = matrix @ direction
        length = gradient @ gradient / (image @ image)
        u, residual = u + length * direction, residual - length * image
        before, gradient = gradient @ gradient, matrix.T @ residual
        direction = gradient + gradient @ gradient / before * direction
    constant, slope, curvature = unpacked(support, prior_root(support) @ u, pairs)
    return start.constant + constant, start.slope + slope, dense(start) + curvature


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_fits_that_follow_each_other_end_with_dense_weighted_least_squares(group: Group) -> None:
    rng, support = np.random.default_rng(3), Support.of(group)
    start, z = some_model(support, rng), rng.standard_normal((3 * support.features, group.dim))
    y, weights = rng.standard_normal(len(z)), rng.uniform(0.2, 2.0, len(z))
    found = fitted(support, start, z, y, weights, steps=60, again=8)
    (columns, pairs), half = features(support, z), np.sqrt(weights)
    theta = np.linalg.lstsq(half[:, None] * columns, half * y, rcond=None)[0]
    constant, slope, curvature = unpacked(support, theta, pairs)
    assert found.constant == pytest.approx(constant, abs=1e-6)
    assert np.allclose(found.slope, slope, atol=1e-6)
    assert np.allclose(dense(found), curvature, atol=1e-6)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_fits_that_follow_each_other_find_a_quadratic_function_to_the_last_digits(group: Group) -> None:
    rng, support = np.random.default_rng(13), Support.of(group)
    start, true, z = some_model(support, rng), some_model(support, rng), rng.standard_normal((60, group.dim))
    found = fitted(support, start, z, true.values(z), rng.uniform(0.2, 2.0, 60), steps=60, again=8)
    assert found.constant == pytest.approx(true.constant, abs=1e-11)
    assert np.allclose(found.slope, true.slope, atol=1e-11)
    assert np.allclose(found.curvature, true.curvature, atol=1e-11)


def test_a_fit_to_fewer_points_than_features_changes_the_model_least_in_the_metric_of_the_prior() -> None:
    rng, support = np.random.default_rng(4), Support.of(Full(4))
    start, z, y = some_model(support, rng), rng.standard_normal((8, 4)), rng.standard_normal(8)
    found = fitted(support, start, z, y, np.ones(8), steps=60, again=8)
    columns, pairs = features(support, z)
    variances = prior_root(support) @ prior_root(support).T
    theta = variances @ columns.T @ np.linalg.solve(columns @ variances @ columns.T, y - start.values(z))
    _, slope, curvature = unpacked(support, theta, pairs)
    assert np.allclose(found.values(z), y, atol=1e-9)
    assert np.allclose(found.slope, start.slope + slope, atol=1e-6)
    assert np.allclose(found.curvature, start.curvature + curvature, atol=1e-6)


def test_models_that_are_too_large_are_refused_with_what_to_do() -> None:
    assert Support.of(Full(107)).features == 5886 and Support.of(Diagonal(2999)).features == 5999
    with pytest.raises(ValueError, match=r"structure must have at most 6,000 .*got Full.*6,105: use 'diagonal'"):
        Support.of(Full(109))
    with pytest.raises(ValueError, match=r"Diagonal.*6,001: you can leave the model out"):
        Support.of(Diagonal(3000))


@pytest.mark.parametrize("group", GROUPS[:5], ids=str)
@pytest.mark.parametrize("steps", [1, 4])
def test_the_steps_of_a_fit_are_those_of_conjugate_gradients_written_out(group: Group, steps: int) -> None:
    rng, support = np.random.default_rng(5), Support.of(group)
    start, z = some_model(support, rng), rng.standard_normal((22, group.dim))
    y, weights = rng.standard_normal(22), rng.uniform(0.2, 2.0, 22)
    found = fitted(support, start, z, y, weights, steps)
    constant, slope, curvature = corrected(support, start, z, y, weights, steps)
    assert found.constant == pytest.approx(constant, abs=1e-5)
    assert np.allclose(found.slope, slope, atol=1e-5) and np.allclose(dense(found), curvature, atol=1e-5)


@pytest.mark.parametrize("group", [Full(4), Diagonal(4)], ids=str)
def test_models_that_are_fitted_together_are_fitted_as_if_alone_each_to_the_last_points(group: Group) -> None:
    rng, support = np.random.default_rng(15), Support.of(group)
    first, second = some_model(support, rng), some_model(support, rng)
    z, y, weights = rng.standard_normal((30, 4)), rng.standard_normal(30), rng.uniform(0.2, 2.0, 30)
    models, last = stacked([first, second]), slice(-20, None)
    fit(support, models, z, y, weights, windows=[30, 20], steps=[5, 3])
    alone = [fitted(support, first, z, y, weights, 5), fitted(support, second, z[last], y[last], weights[last], 3)]
    for found, expected in zip((models.one(0), models.one(1)), alone, strict=True):
        assert found.constant == pytest.approx(expected.constant, abs=1e-5)
        assert np.allclose(found.slope, expected.slope, atol=1e-5)
        assert np.allclose(found.curvature, expected.curvature, atol=1e-5)


def test_the_second_of_chained_models_begins_with_the_first() -> None:
    rng, support = np.random.default_rng(16), Support.of(Full(3))
    first, second = some_model(support, rng), some_model(support, rng)
    z, y, weights = rng.standard_normal((12, 3)), rng.standard_normal(12), np.ones(12)
    models = stacked([first, second])
    fit(support, models, z, y, weights, windows=[12, 12], steps=[3, 2], chained=True)
    before = fitted(support, first, z, y, weights, 3)
    assert np.allclose(models.slopes[1], fitted(support, before, z, y, weights, 2).slope, atol=1e-6)


def test_the_entries_of_a_support_are_in_runs() -> None:
    for group in (Full(4), Heisenberg(6, 1, 2), BlockTriangular(5, 2, False), Diagonal(3)):
        support = Support.of(group)
        runs = zip(*(part.tolist() for part in support.runs), strict=True)
        pairs = features(support, np.ones((1, group.dim)))[1]
        assert [(i, j) for i, begin, end in runs for j in range(begin, end)] == pairs


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
def test_the_minimizer_in_a_ball_is_that_of_brute_force(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    model = some_model(Support.of(Full(2)), rng)
    if seed % 3 == 0:  # convex
        model = model._replace(curvature=model.curvature @ model.curvature + 0.1 * np.eye(2))
    z, at_edge = model.least_in_ball(radius)
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
def test_the_minimizer_in_a_ball_fulfills_the_conditions_of_more_and_sorensen(group: Group, radius: float) -> None:
    for seed in range(20):
        model = some_model(Support.of(group), np.random.default_rng(seed))
        z, at_edge = model.least_in_ball(radius)
        hessian = math.sqrt(2) * dense(model)
        gradient = model.slope + hessian @ z
        multiplier = -float(gradient @ z) / float(z @ z) if at_edge else 0.0
        assert np.allclose(gradient + multiplier * z, 0.0, atol=1e-6 * (1 + np.linalg.norm(gradient)))
        assert np.linalg.eigvalsh(hessian).min() + multiplier >= -1e-6
        assert np.linalg.norm(z) == pytest.approx(radius) if at_edge else np.linalg.norm(z) <= radius


def test_a_slope_without_a_part_along_the_lowest_axis_is_no_obstacle() -> None:
    model = Quadratic(0.0, np.array([0.0, 1.0]), np.diag([-1.0, 2.0]))
    z, at_edge = model.least_in_ball(2.0)
    second = -1.0 / (math.sqrt(2) * 3.0)
    assert at_edge and np.allclose(np.abs(z), [math.sqrt(4.0 - second**2), -second])
    flat = Quadratic(0.0, np.zeros(2), np.zeros((2, 2)))
    assert flat.least_in_ball(2.0)[0].tolist() == [0.0, 0.0]
