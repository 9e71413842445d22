"""The augmented Lagrangian: models against least squares, multipliers against SciPy, scaling bit for bit."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from esgroup.checks import Array
from esgroup.rankings import least_squares
from esgroup.rankings.lagrangian import AugmentedLagrangian, LagrangianState
from esgroup.rankings.least_squares import Models, by_newton, fitted, non_negative

NOTHING = np.empty((40, 0))


def exact_models(n: int, m: int, seed: int) -> Models:
    """Generic models; f is convex."""
    rng = np.random.default_rng(seed)
    curvatures = np.append(1.0 + rng.random(), 0.1 * rng.standard_normal(m))
    return Models(rng.standard_normal(1 + m), rng.standard_normal((1 + m, n)), curvatures)


def values_of(models: Models, z: Array) -> Array:
    found: Array = models.at_mean + z @ models.slopes.T + 0.5 * (z**2).sum(axis=1)[:, None] * models.curvatures
    return found


def linear(at_mean: Any, slopes: Any, curvature: float = 1.0) -> Models:
    """A quadratic f, whose value at the mean does not matter, and linear constraints."""
    curvatures = np.zeros(len(slopes))
    curvatures[0] = curvature
    return Models(np.array([0.0, *at_mean]), np.array(slopes, dtype=float), curvatures)


def settled(rule: AugmentedLagrangian, models: Models, generations: int = 200) -> LagrangianState:
    """The state after many generations with the same models."""
    state = rule.start((models.slopes.shape[1],))
    for _ in range(generations):
        state = rule._with_multipliers(state, models)
    return state


def state_with(
    rule: AugmentedLagrangian, multipliers: Any, penalties: Any, margin: float = 0.05
) -> LagrangianState:
    arrays = (np.array(entries, dtype=float) for entries in (multipliers, penalties))
    first = rule.start((2,))
    state = first._replace(units=np.ones(1 + rule.number), margin=np.array([margin]))
    return state._replace(**dict(zip(("multipliers", "penalties"), arrays, strict=True)))


# ---- models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_exact_model_is_recovered_without_the_ridge(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "_RIDGE", 1e-13)
    models, z = exact_models(n, 2, n), np.random.default_rng(1).standard_normal((40, n))
    for wanted, found in zip(models, fitted(z, NOTHING, values_of(models, z)), strict=True):
        assert np.allclose(found, wanted, rtol=0, atol=1e-9)


def test_the_ridge_changes_an_exact_model_by_a_per_cent_at_most() -> None:
    models, z = exact_models(4, 2, 0), np.random.default_rng(1).standard_normal((40, 4))
    for wanted, found in zip(models, fitted(z, NOTHING, values_of(models, z)), strict=True):
        assert np.allclose(found, wanted, rtol=0, atol=0.01)


@pytest.mark.parametrize("k", [3, 6, 7, 8, 9, 30])
def test_a_model_is_the_ridge_regression_with_few_and_with_many_points(k: int) -> None:
    """Written out as least squares with further rows for the ridge; with fewer than 8 points the dual is solved."""
    n, rng = 5, np.random.default_rng(k)
    z, others, outcomes = rng.standard_normal((k, n)), rng.integers(0, 2, (k, 2)).astype(float), rng.random((k, 3))
    squares = (z**2).sum(axis=1)
    weights = 1 / (1 + (squares / (4 * n)) ** 2)
    columns = np.column_stack([z, others, squares / math.sqrt(2 * n)])
    middle, level = (np.average(rows, axis=0, weights=weights) for rows in (columns, outcomes))
    root, ridge = np.sqrt(weights)[:, None], 1e-3 * weights.sum() / n
    left = np.vstack([root * (columns - middle), math.sqrt(ridge) * np.eye(n + 3)])
    right = np.vstack([root * (outcomes - level), np.zeros((n + 3, 3))])
    wanted = np.linalg.lstsq(left, right, rcond=None)[0]
    found = fitted(z, others, outcomes)
    assert np.allclose(found.slopes, wanted[:n].T, atol=1e-10)
    assert np.allclose(found.curvatures, wanted[-1] * 2 / math.sqrt(2 * n), atol=1e-10)
    assert np.allclose(found.at_mean, level - middle @ wanted, atol=1e-10)


def test_points_far_away_do_not_count() -> None:
    models, z = exact_models(3, 1, 0), np.random.default_rng(2).standard_normal((40, 3))
    outcomes = values_of(models, z)
    z[::4], outcomes[::4] = 1e12, 1e30
    near = np.arange(40) % 4 > 0
    for wanted, found in zip(
        fitted(z[near], NOTHING[near], outcomes[near]), fitted(z, NOTHING, outcomes), strict=True
    ):
        assert np.allclose(found, wanted, rtol=1e-9)


def test_a_model_of_points_that_are_all_far_away_is_finite() -> None:
    found = fitted(np.full((40, 3), 1e9), NOTHING, np.ones((40, 2)))
    assert all(np.isfinite(part).all() for part in found)


def test_categories_explain_what_they_change() -> None:
    models, z = exact_models(3, 1, 5), np.random.default_rng(2).standard_normal((40, 3))
    others = (np.arange(40) % 3 == 0).astype(float)[:, None]
    found = fitted(z, others, values_of(models, z) + 7 * others)
    assert np.allclose(found.at_mean, models.at_mean, atol=0.05)


# ---- multipliers --------------------------------------------------------------------------------------------------


def test_a_sphere_with_one_linear_constraint_has_the_multiplier_by_hand() -> None:
    """min |z - (2, 0)|^2 / 2, z_1 <= 1/2: at the minimum the gradient is -3/2, that of 2 z_1 - 1 is 2."""
    state = settled(AugmentedLagrangian(1), linear([-1.0], [[-2.0, 0.0], [2.0, 0.0]]))
    assert state.multipliers == pytest.approx([0.75], rel=1e-9)


def test_a_constraint_that_is_not_active_has_no_multiplier() -> None:
    state = settled(AugmentedLagrangian(2), linear([-1.0, -9.0], [[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]]))
    assert state.multipliers == pytest.approx([0.75, 0.0], rel=1e-9)


@pytest.mark.parametrize(("side", "multiplier"), [(0.5, 1.5), (2.5, -0.5), (2.0, 0.0)])
def test_multipliers_of_equalities_have_either_sign(side: float, multiplier: float) -> None:
    """z_1 = side for min |z - (2, 0)|^2 / 2: the multiplier is 2 - side."""
    state = settled(AugmentedLagrangian(1, (0,)), linear([-side], [[-2.0, 0.0], [1.0, 0.0]]))
    assert state.multipliers == pytest.approx([multiplier], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_are_those_of_scipy(seed: int) -> None:
    """Four constraints, the last an equality, of different sizes; the minimum is within reach of the models."""
    rng, n, m = np.random.default_rng(seed), 5, 4
    sizes = np.array([1.0, 1e-3, 100.0, 5.0])
    slopes = rng.standard_normal((1 + m, n))
    offsets = 0.3 * rng.standard_normal(m)
    models = linear(offsets * sizes, np.vstack([slopes[0], slopes[1:] * sizes[:, None]]), 0.5 + rng.random())
    c = models.curvatures[0]
    lower = np.array([-np.inf] * 3 + [0.0])
    wanted = minimize(
        lambda z: slopes[0] @ z + c * z @ z / 2,
        np.zeros(n),
        jac=lambda z: slopes[0] + c * z,
        hess=lambda z: c * np.eye(n),
        method="trust-constr",
        constraints=LinearConstraint(slopes[1:], lower - offsets, -offsets),
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-11},
    )
    assert np.linalg.norm(wanted.x) < 2 * math.sqrt(n)
    state = settled(AugmentedLagrangian(m, (3,)), models, 400)
    assert state.multipliers * sizes == pytest.approx(wanted.v[0], rel=1e-4, abs=1e-4)


def test_curved_constraints_add_to_the_curvature_of_the_lagrangian() -> None:
    """f = -2 z_1 + |z|^2 / 2, g = 2 z_1 - 1 + |z|^2 / 2: the program takes 1 + lambda as curvature, and g linear."""
    models = Models(np.array([0.0, -1.0]), np.array([[-2.0, 0.0], [2.0, 0.0]]), np.array([1.0, 1.0]))
    multiplier = settled(AugmentedLagrangian(1), models).multipliers.item()
    assert -2 + 2 * multiplier + (1 + multiplier) * 0.5 == pytest.approx(0, abs=1e-9)  # at z_1 = 1/2


def test_contradictory_constraints_leave_multipliers_finite() -> None:
    """z_1 <= -1 and z_1 >= 1."""
    state = settled(AugmentedLagrangian(2), linear([1.0, 1.0], [[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]))
    assert np.isfinite(state.multipliers).all() and (state.multipliers > 0).all()


def test_a_constraint_that_is_constant_changes_nothing() -> None:
    rule = AugmentedLagrangian(2)
    state = settled(rule, linear([-1.0, 5.0], [[-2.0, 0.0], [2.0, 0.0], [0.0, 0.0]]))
    assert state.multipliers == pytest.approx([0.75, 0.0], rel=1e-9)
    alone = settled(AugmentedLagrangian(1), linear([5.0], [[-2.0, 0.0], [0.0, 0.0]]))
    assert alone.multipliers.item() == alone.penalties.item() == 0.0


def test_multipliers_that_go_back_and_forth_take_small_steps() -> None:
    """The share of a step is the square of its mean over the mean of its size, from 1 down to 0.05."""
    rule = AugmentedLagrangian(1, (0,))
    one, other = (linear([-side], [[-2.0, 0.0], [1.0, 0.0]]) for side in (0.5, 3.5))
    state = rule.start((2,))
    for _ in range(200):
        state = rule._with_multipliers(rule._with_multipliers(state, one), other)
    step = rule._with_multipliers(state, one).multipliers - state.multipliers
    assert 0 < step.item() < 0.2  # of 3


# ---- penalties ----------------------------------------------------------------------------------------------------


def test_penalties_begin_with_the_curvature_of_f() -> None:
    state = AugmentedLagrangian(1)._with_multipliers(
        AugmentedLagrangian(1).start((2,)), linear([-1.0], [[0.2, 0.0], [0.0, 4.0]], 3.0)
    )
    assert state.penalties == pytest.approx([3.0 / 16])


@pytest.mark.parametrize("curvature", [-1.0, -0.01])
def test_penalties_grow_where_the_lagrangian_is_concave(curvature: float) -> None:
    models = linear([0.1], [[1e-3, 0.0], [0.0, 4.0]], curvature)
    state = settled(AugmentedLagrangian(1), models)
    assert state.penalties.item() * 16 >= 0.5 * 10 * abs(curvature)
    assert state.penalties.item() * 16 <= 2**0.75 * 0.5 * 10 * abs(curvature)  # and no further than needed


def test_penalties_do_not_grow_for_a_constraint_that_is_far_from_the_mean() -> None:
    rule = AugmentedLagrangian(2)
    models = linear([0.1, -50.0], [[1e-3, 0.0], [0.0, 4.0], [4.0, 0.0]], -1.0)
    first = rule._with_multipliers(rule.start((2,)), models)
    last = settled(rule, models)
    assert last.penalties[0] > 10 * first.penalties[0] and last.penalties[1] <= first.penalties[1]


def test_penalties_that_are_far_too_large_shrink() -> None:
    rule, models = AugmentedLagrangian(1), linear([0.1], [[0.5, 0.0], [0.0, 4.0]], 1.0)
    state = state_with(rule, [0.0], [1e6])
    for _ in range(200):
        state = rule._with_multipliers(state, models)
    assert 15 < state.penalties.item() * 16 <= 20


@pytest.mark.parametrize(("width", "anew"), [(1.0, False), (0.05, False), (0.001, True)])
def test_penalties_begin_anew_in_a_distribution_that_is_far_wider_than_its_points(width: float, anew: bool) -> None:
    """As many new points as old ones, which lie within `width` standard deviations of the mean."""
    rule, rng, models = AugmentedLagrangian(1), np.random.default_rng(3), exact_models(2, 1, 1)
    z = np.concatenate([width * rng.standard_normal((20, 2)), rng.standard_normal((20, 2))])
    known = state_with(rule, [0.7], [1e9])._replace(points=z, outcomes=values_of(models, z))
    after, _ = rule.updated(known, z, NOTHING, 10)
    fresh, _ = rule.updated(known._replace(penalties=np.zeros(1)), z, NOTHING, 10)
    assert (after.penalties == fresh.penalties).all() == anew
    assert (after.penalties > 1e8).all() != anew


# ---- scaling ------------------------------------------------------------------------------------------------------


def test_a_search_is_the_same_bit_for_bit_in_other_units_of_f_and_of_each_constraint() -> None:
    """By powers of two, which lose no digit: lambda has the units of f / g."""
    rule, popsize, n = AugmentedLagrangian(3, (2,)), 8, 4
    f_unit, units = 2.0**9, 2.0 ** np.array([-20, 3, 11])
    factors = np.array([f_unit, *units])
    one, other = (rule.start((n,)) for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(12):
        points = rng.standard_normal((popsize, n))
        outcomes = values_of(exact_models(n, 3, 7), points) + 0.1 * rng.standard_normal((popsize, 4))
        one = rule.counted(one, points, outcomes)
        other = rule.counted(other, points, outcomes * factors)
        empty = np.empty((len(one.points), 0))
        one, models = rule.updated(one, one.points, empty, popsize)
        other, scaled = rule.updated(other, other.points, empty, popsize)
        assert np.array_equal(other.units, one.units * factors)
        assert all(np.array_equal(*parts) for parts in zip(scaled, models, strict=True))
        assert np.array_equal(rule.multipliers(other), rule.multipliers(one) * f_unit / units)
        for name in ("multipliers", "penalties", "trend", "travel"):
            assert np.array_equal(getattr(other, name), getattr(one, name))
        assert np.array_equal(rule.lagrangian(other, outcomes * factors), rule.lagrangian(one, outcomes) * f_unit)
        steps = rule.inner_step(one, models), rule.inner_step(other, scaled)
        assert (steps[0] is None and steps[1] is None) or np.array_equal(*steps)  # type: ignore[arg-type]
    assert (one.multipliers != 0).any()


@pytest.mark.parametrize("f_unit", [1e-320, 1e-200, 1.0, 1e200, 1e305])
@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1.0, 1e200, 1e305])
def test_the_largest_and_smallest_numbers_leave_everything_finite(f_unit: float, unit: float) -> None:
    """Without a warning, which the tests take for an error."""
    rule, popsize = AugmentedLagrangian(2, (1,)), 8
    state, rng = rule.start((3,)), np.random.default_rng(0)
    for _ in range(6):
        z = rng.standard_normal((popsize, 3))
        outcomes = np.column_stack([f_unit * (z**2).sum(axis=1), unit * (1 - z[:, 0]), unit * z[:, 1]])
        state = rule.counted(state, z, outcomes)
        state, models = rule.updated(state, state.points, np.empty((len(state.points), 0)), popsize)
        assert all(np.isfinite(part).all() for part in state)
        scores = rule.lagrangian(state, outcomes)
        assert not np.isnan(scores).any() and not np.isnan(rule.violation(outcomes[:, 1:])).any()
        step = rule.inner_step(state, models)
        assert step is None or np.isfinite(step).all()


def test_multipliers_pull_at_most_ten_times_as_strongly_as_f() -> None:
    """Where no point within reach is feasible."""
    state = settled(AugmentedLagrangian(1, (0,)), linear([-300.0], [[-2.0, 0.0], [1.0, 0.0]]))
    assert state.multipliers == pytest.approx([-20.0], rel=1e-9)


def test_a_constraint_without_a_slope_has_a_penalty_that_grows_while_it_is_violated() -> None:
    """One that only choices and integers change: omega = std(f) / mean(g^2) at first."""
    rule, z = AugmentedLagrangian(2), np.random.default_rng(0).standard_normal((40, 3))
    outcomes = np.column_stack([z[:, 0], np.full(40, 2.0), np.full(40, -2.0)])
    state = rule.counted(rule.start((3,)), z, outcomes)
    first, _ = rule.updated(state, z, NOTHING, 40)
    f_unit, g_unit, _ = first.units
    assert first.penalties * f_unit / g_unit**2 == pytest.approx(np.full(2, z[:, 0].std() / 4))
    assert (first.multipliers == 0).all()
    assert rule.updated(first, z, NOTHING, 40)[0].penalties == pytest.approx(first.penalties * [2, 1])


def test_a_constant_added_to_f_changes_no_multiplier() -> None:
    rule, z = AugmentedLagrangian(1), np.random.default_rng(0).standard_normal((40, 3))
    models = exact_models(3, 1, 1)._replace(at_mean=np.array([3.0, 1.0]))
    found = []
    for shift in (0.0, 100.0):
        state = rule.counted(rule.start((3,)), z, values_of(models, z) + np.array([shift, 0.0]))
        found.append(rule.multipliers(rule.updated(state, z, NOTHING, 8)[0]))
    assert found[0] == pytest.approx(found[1], rel=1e-9) and found[0] != 0


def test_as_many_evaluations_are_remembered_as_three_times_the_numbers_of_a_model() -> None:
    rule, z = AugmentedLagrangian(1), np.random.default_rng(0).standard_normal((40, 3))
    state = rule.counted(rule.start((3,)), z, values_of(exact_models(3, 1, 1), z))
    assert np.array_equal(rule.updated(state, z, NOTHING, 8)[0].points, z[-15:])
    assert np.array_equal(rule.updated(state, z, NOTHING, 20)[0].points, z[-20:])


# ---- scores -------------------------------------------------------------------------------------------------------


def psi(rule: AugmentedLagrangian, state: LagrangianState, g: Any) -> Array:
    g = np.asarray(g, dtype=float)
    return rule.lagrangian(state, np.column_stack([np.zeros(len(g)), g]))


def test_psi_and_its_slope_are_continuous_at_the_kink() -> None:
    rule, multiplier, penalty, h = AugmentedLagrangian(1), 1.3, 0.7, 1e-5
    state, kink = state_with(rule, [multiplier], [penalty]), -multiplier / penalty
    low, at, high = psi(rule, state, [kink - h, kink, kink + h])
    assert low == at == pytest.approx(-(multiplier**2) / (2 * penalty))
    assert high - at == pytest.approx(penalty * h**2 / 2, rel=1e-3)  # no step, no slope, curvature omega


def test_psi_is_the_augmented_lagrangian_written_out() -> None:
    rule, g = AugmentedLagrangian(1), np.linspace(-4, 4, 33)
    state = state_with(rule, [1.3], [0.7])
    wanted = (np.maximum(0.0, 1.3 + 0.7 * g) ** 2 - 1.3**2) / (2 * 0.7)  # Rockafellar 1973
    assert np.allclose(psi(rule, state, g), wanted, atol=1e-14)


def test_psi_of_an_equality_is_a_parabola_on_both_sides() -> None:
    rule, g = AugmentedLagrangian(1, (0,)), np.linspace(-4, 4, 33)
    assert np.allclose(psi(rule, state_with(rule, [-1.3], [0.7]), g), -1.3 * g + 0.35 * g**2, atol=1e-14)


def test_constraints_add_up() -> None:
    rule = AugmentedLagrangian(2)
    state = state_with(rule, [1.0, 2.0], [3.0, 4.0])
    assert rule.lagrangian(state, np.array([[10.0, 1.0, 0.5]])) == pytest.approx([10 + 2.5 + 1.5])


def test_failed_rows_have_no_score_and_are_not_remembered() -> None:
    rule = AugmentedLagrangian(2, (1,))
    state = state_with(rule, [1.0, -2.0], [3.0, 4.0])
    outcomes = np.array([[1.0, 2.0, 3.0], [np.nan] * 3, [np.inf, 0.0, 0.0], [1.0, 1e200, -1e200]])
    scores = rule.lagrangian(state, outcomes)
    assert np.array_equal(np.isnan(scores), [False, True, False, False]) and np.isinf(scores[2:]).all()
    kept = rule.counted(state, np.arange(8.0).reshape(4, 2), outcomes)
    assert kept.points.tolist() == [[0, 1], [6, 7]] and np.array_equal(kept.outcomes, outcomes[[0, 3]])


def test_a_state_without_any_evaluation_is_left_as_it_was() -> None:
    rule = AugmentedLagrangian(2)
    state, models = rule.updated(rule.start((3,)), np.empty((0, 3)), np.empty((0, 0)), 8)
    assert np.isnan(state.units).all() and (state.multipliers == 0).all() and (state.penalties == 0).all()
    assert rule.inner_step(state, models) is None


# ---- violations ---------------------------------------------------------------------------------------------------


def test_the_violation_is_exactly_0_within_the_tolerance_and_else_the_largest() -> None:
    edge = 2.0**-20
    rule = AugmentedLagrangian(2, (1,), tolerance=edge)
    rows = [[-5.0, 0.0], [edge, -edge], [np.nextafter(edge, 1), 0.0], [-9.0, -np.nextafter(edge, 1)], [8.0, -16.0]]
    found = rule.violation(np.array(rows))
    assert found[:2].tolist() == [0.0, 0.0] and (found[2:4] > 0).all() and found[4] == 16.0
    assert rule.violations(np.array(rows))[4].tolist() == [8.0, 16.0]


def test_tolerances_of_their_own_decide_for_each_constraint_and_weigh_its_violation() -> None:
    rule = AugmentedLagrangian(3, (2,), tolerance=(0.5, 100.0, 0.0))
    rows = [[0.5, 100, 0], [0.6, 0, 0], [0, 101, 0], [0, 0, -1e-300], [0, 0, 1], [1, 0, 0]]
    found = rule.violation(np.array(rows))
    assert found[0] == 0.0 and (found[1:] > 0).all()
    assert found[1] == pytest.approx(0.6 * 200) and found[2] == 101.0  # in units of the largest tolerance
    assert found[4] == found[5]  # a tolerance of 0 counts as the smallest of the others


@pytest.mark.parametrize("tolerance", [(1e-6,), (1e-6,) * 3, (1e-6, -1.0), (1e-6, math.nan), "small", -1.0, None])
def test_a_tolerance_is_one_number_or_one_for_each_constraint(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="constraint_tol"):
        AugmentedLagrangian(2, tolerance=tolerance)


def test_units_are_powers_of_two_at_the_medians_of_the_first_generation_for_ever() -> None:
    rule, z = AugmentedLagrangian(2), np.random.default_rng(0).standard_normal((7, 3))
    outcomes = np.column_stack([z[:, 0], 3 * z[:, 1], np.zeros(7)])
    state, _ = rule.updated(rule.counted(rule.start((3,)), z, outcomes), z, np.empty((7, 0)), 7)
    medians = np.median(np.abs(outcomes[:, :2]), axis=0)
    assert np.array_equal(state.units, [*2.0 ** np.floor(np.log2(medians)), 1.0])
    later, _ = rule.updated(rule.counted(state, z, 9 * outcomes), np.tile(z, (2, 1)), np.empty((14, 0)), 7)
    assert np.array_equal(later.units, state.units)


# ---- many constraints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["generic", "equal", "equalities"])
@pytest.mark.parametrize("seed", range(3))
def test_newtons_method_for_many_constraints_finds_what_nnls_finds(seed: int, kind: str) -> None:
    rng, n, m = np.random.default_rng(seed), 4, 60
    slopes = np.tile(rng.standard_normal(n), (m, 1)) if kind == "equal" else rng.standard_normal((m, n))
    weights, wanted = 10.0 ** rng.uniform(-2, 1, m), 10 * (rng.standard_normal(m) - 0.3)
    rule = AugmentedLagrangian(m, (0, 7, 8) if kind == "equalities" else ())
    few, many = (solve(slopes, weights, wanted, rule.is_equality) for solve in (non_negative, by_newton))
    assert few is not None and many is not None
    assert np.allclose(many[0], few[0], rtol=0, atol=1e-9 * np.abs(few[0]).max())
    assert np.allclose(many[1], slopes.T @ few[0], rtol=0, atol=1e-9 * np.abs(few[1]).max())
    assert (few[0] > 0).sum() > 1 and (kind == "equal" or (few[0] == 0).any())


def test_newtons_method_fulfills_the_conditions_of_a_minimum_among_a_thousand_constraints() -> None:
    """gradient = B y + w (w l - wanted) is 0 where l > 0, and not negative where l = 0."""
    rng, m = np.random.default_rng(5), 1000
    slopes, weights, wanted = rng.standard_normal((m, 6)), 10.0 ** rng.uniform(-2, 1, m), rng.standard_normal(m)
    found = non_negative(slopes, weights, wanted, np.zeros(m, bool))
    assert found is not None
    multipliers, gradient = found[0], slopes @ found[1] + weights * (weights * found[0] - wanted)
    assert (multipliers >= 0).all() and (gradient > -1e-9).all() and np.abs(gradient * multipliers).max() < 1e-6
    assert 10 < (multipliers > 0).sum() < m - 10


def test_newtons_method_refuses_numbers_beyond_all_bounds() -> None:
    assert by_newton(np.full((200, 2), np.inf), np.ones(200), np.ones(200), np.zeros(200, bool)) is None


# ---- inner points -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_inner_step_is_the_nearest_point_that_fulfills_the_linear_models_with_the_margin(seed: int) -> None:
    rng, n, m = np.random.default_rng(seed), 5, 3
    rule = AugmentedLagrangian(m, (2,))
    slopes, sizes = rng.standard_normal((1 + m, n)), np.array([1.0, 1e-3, 50.0])
    slopes[1:] *= sizes[:, None]
    models = linear(0.5 * rng.standard_normal(m) * sizes, slopes, 2.0)
    step = rule.inner_step(state_with(rule, np.zeros(m), np.ones(m), margin=0.3), models)
    assert step is not None
    lengths = np.linalg.norm(models.slopes[1:], axis=1)
    left = (models.at_mean[1:] + models.slopes[1:] @ step) / lengths
    assert (left[:2] <= -0.3 + 1e-6).all() and abs(left[2]) < 1e-6
    first = -slopes[0] / max(2.0, np.linalg.norm(slopes[0]) / math.sqrt(n))
    unit, offsets = models.slopes[1:] / lengths[:, None], models.at_mean[1:] / lengths + [0.3, 0.3, 0.0]
    nearest = minimize(
        lambda z: ((z - first) ** 2).sum(),
        np.zeros(n),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda z: -(offsets + unit @ z)[:2]},
            {"type": "eq", "fun": lambda z: (offsets + unit @ z)[2]},
        ],
        options={"ftol": 1e-14},
    )
    assert step == pytest.approx(nearest.x, abs=1e-5)


def test_there_is_no_inner_step_far_from_all_constraints_or_where_it_would_be_far() -> None:
    rule = AugmentedLagrangian(1)
    state = state_with(rule, [0.0], [1.0])
    assert rule.inner_step(state, linear([-3.0], [[1.0, 0.0], [1.0, 0.0]])) is None  # three standard deviations away
    assert rule.inner_step(state, linear([5.0], [[1.0, 0.0], [1.0, 0.0]])) is None  # further than 3 sqrt(2)
    assert rule.inner_step(state, linear([1.0], [[1.0, 0.0], [1.0, 0.0]])) is not None


def test_the_margin_grows_after_an_inner_point_that_is_outside_and_shrinks_after_others() -> None:
    rule = AugmentedLagrangian(2, (1,))
    state = state_with(rule, [0, 0], [1, 1], margin=0.3)
    assert rule.with_margin(state, np.array([[0.1, 0.0]])).margin == pytest.approx([0.6])
    assert rule.with_margin(state, np.array([[-0.1, 9.0]])).margin == pytest.approx([0.2])  # equalities have no inside
    assert rule.with_margin(state._replace(margin=np.array([0.9])), np.array([[0.1, 0.0]])).margin == [1.0]
    assert rule.with_margin(state._replace(margin=np.array([0.01])), np.array([[-0.1, 0.0]])).margin == [0.01]


# ---- arguments and files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(1, 3), [3, 1, -1], [False, True, False, True], np.array([1, 3])])
def test_equalities_are_indices_or_a_mask(given: Any) -> None:
    assert AugmentedLagrangian(4, given).equalities == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"number": 0}, "number"),
        ({"number": 1.5}, "number"),
        ({"number": 2, "equalities": (2,)}, "equalities"),
        ({"number": 2, "equalities": ("a",)}, "equalities"),
        ({"number": 2, "tolerance": -1.0}, "constraint_tol"),
        ({"number": 2, "tolerance": math.nan}, "constraint_tol"),
        ({"number": 2, "tolerance": "small"}, "constraint_tol"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        AugmentedLagrangian(**arguments)


def test_a_stored_state_is_read_again_and_a_damaged_one_refused() -> None:
    rule, z = AugmentedLagrangian(1), np.random.default_rng(0).standard_normal((40, 3))
    state = rule.counted(rule.start((3,)), z, values_of(exact_models(3, 1, 1), z))
    stored = rule.updated(state, z, NOTHING, 8)[0]._asdict()
    again = rule.read_state(stored, (3,))
    assert all(np.array_equal(array, stored[name]) for name, array in again._asdict().items())
    for name in ("multipliers", "outcomes", "margin"):
        with pytest.raises(ValueError, match=name):
            rule.read_state(stored | {name: stored[name][:0]}, (3,))
