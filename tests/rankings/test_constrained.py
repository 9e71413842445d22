"""Searches with constraints by ask and tell."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from esgroup import Choice, Integer, Real, Searcher, Space
from esgroup.rankings import Scored
from tests.search.support import STRUCTURES, Array, everything, unchanged

X0 = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])
MINIMUM = 1.5  # of the sphere with x_1 + ... + x_6 >= 3


def sphere(x: Array) -> float:
    return float(x @ x)


def halfspace(x: Array) -> list[float]:
    """x_1 + ... + x_n >= 3."""
    return [3.0 - float(x.sum())]


def two(x: Array) -> list[float]:
    """The same in other units, and x_1 >= 0.8."""
    return [300.0 - 100 * float(x.sum()), 0.8 - float(x[0])]


def searcher(number: int = 1, **options: Any) -> Searcher:
    return Searcher(options.pop("x0", X0), options.pop("sigma0", 0.5), constraints=number, rng=1, **options)


def generation(search: Searcher, g: Callable[[Any], Any] = halfspace, f: Callable[[Any], float] = sphere) -> Any:
    X = search.ask()
    search.tell([f(x) for x in X], constraints=[g(x) for x in X])
    return X


def run(search: Searcher, g: Callable[[Any], Any] = halfspace, f: Callable[[Any], float] = sphere) -> Searcher:
    while not search.stop():
        generation(search, g, f)
    return search


# ---- spellings ----------------------------------------------------------------------------------------------------

SPELLINGS: dict[str, Callable[[Searcher, Array, list[float], list[list[float]]], None]] = {
    "rows": lambda search, X, f, G: search.tell(f, constraints=G),
    "array": lambda search, X, f, G: search.tell(np.array(f), constraints=np.array(G)),
    "points": lambda search, X, f, G: search.tell(X, f, constraints=G),
    "points as lists": lambda search, X, f, G: search.tell(X.tolist(), f, constraints=G),
    "triples": lambda search, X, f, G: search.tell(list(zip(X, f, G, strict=True))),
    "triples of lists": lambda search, X, f, G: search.tell(tuple(zip(X.tolist(), f, G, strict=True))),
    "pairs": lambda search, X, f, G: search.tell(list(zip(X, f, strict=True)), constraints=G),
}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_tell_is_the_same(spelling: str, number: int) -> None:
    one, other = searcher(number), searcher(number)
    for _ in range(8):
        X, Y = one.ask(), other.ask()
        f, G = [sphere(x) for x in X], [two(x)[:number] for x in X]
        one.tell(f, constraints=G)
        SPELLINGS[spelling](other, Y, f, G)
    assert everything(one) == everything(other)


def test_one_constraint_may_be_a_flat_list() -> None:
    one, other = searcher(), searcher()
    for _ in range(4):
        X, Y = one.ask(), other.ask()
        one.tell([sphere(x) for x in X], constraints=[halfspace(x) for x in X])
        other.tell([sphere(x) for x in Y], constraints=[halfspace(x)[0] for x in Y])
    assert everything(one) == everything(other)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [[0.0, 0.0]],
        [[0.0]] * 9,
        [0.0] * 9,
        0.0,
        np.zeros((2, 9)),
        [["a", "b"]] * 9,
        [["1.0", "2.0"]] * 9,
        [[0.0, 1j]] * 9,
        np.full((9, 2), 1j),
        [[0.0, None]] * 9,
        [[0.0, 1.0]] * 8 + [[0.0]],
        np.ma.masked_less(np.zeros((9, 2)), -1.0),
        {"a": 1},
    ],
    ids=lambda bad: f"{type(bad).__name__}{np.shape(bad) if isinstance(bad, np.ndarray) else ''}",
)
def test_constraints_of_another_form_are_refused_and_the_search_stays_as_it_was(bad: Any) -> None:
    search = searcher(2)
    generation(search, two)
    X = search.ask()
    assert len(X) == 9
    with unchanged(search), pytest.raises(ValueError, match="constraints"):
        search.tell([1.0] * 9, constraints=bad)
    with unchanged(search), pytest.raises(ValueError, match="constraints"):
        search.tell(X, [1.0] * 9, constraints=bad)
    search.tell([1.0] * 9, constraints=[[0.0, 0.0]] * 9)


def test_bad_values_points_and_triples_leave_the_search_as_it_was() -> None:
    search = searcher()
    X = search.ask()
    G = [[0.0]] * len(X)
    for told in ([1.0] * 8, ["a"] * 9, 1.0):
        with unchanged(search), pytest.raises(ValueError, match="fitness"):
            search.tell(told, constraints=G)
    with unchanged(search), pytest.raises(ValueError, match="triple"):
        search.tell([(X[0], 1.0, [0.0]), (X[1], 1.0)])
    with unchanged(search), pytest.raises(ValueError, match="X"):
        search.tell([[1.0, 2.0]], [1.0], constraints=[[0.0]])


def test_constraints_are_refused_by_a_search_without_any() -> None:
    search = Searcher(X0, 0.5, rng=1)
    X = search.ask()
    with unchanged(search), pytest.raises(ValueError, match="constraints"):
        search.tell([1.0] * len(X), constraints=[[0.0]] * len(X))
    with unchanged(search), pytest.raises(ValueError, match="constraints"):
        search.tell(X, [1.0] * len(X), constraints=[[0.0]] * len(X))


@pytest.mark.parametrize("zero", [0, None])
def test_no_constraints_are_a_search_without_constraints(zero: Any) -> None:
    one, other = searcher(zero), Searcher(X0, 0.5, rng=1)
    for _ in range(3):
        for search in (one, other):
            search.tell([sphere(x) for x in search.ask()])
    assert everything(one) == everything(other)
    assert one.feasible and one.multipliers is None and one.best_constraints is None and "constr" not in one.result


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"constraints": -1}, "constraints"),
        ({"constraints": 1.5}, "constraints"),
        ({"constraints": "one"}, "constraints"),
        ({"constraints": 2, "equalities": [2]}, "equalities"),
        ({"equalities": [0]}, "equalities"),
        ({"constraints": 1, "constraint_tol": -1e-6}, "constraint_tol"),
    ],
)
def test_bad_arguments_are_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        Searcher(X0, 0.5, **options)


# ---- the best point -----------------------------------------------------------------------------------------------


def test_the_best_point_is_the_best_feasible_one_else_that_of_the_least_violation() -> None:
    search = searcher(2)
    X = search.ask()
    G = np.full((9, 2), 4.0)
    G[3] = [2.0, 1.0]
    search.tell(np.arange(9.0), constraints=G)
    assert search.best_f == 3.0 and np.array_equal(search.best_x, X[3]) and not search.feasible
    assert search.best_constraints is not None and search.best_constraints.tolist() == [2.0, 1.0]
    result = search.result
    assert not result.success and result.constr_violation == 2.0 and "No feasible point" in result.message
    X = search.ask()
    G[2], G[5] = -1.0, 0.0
    search.tell(100 + np.arange(9.0), constraints=G)
    assert search.best_f == 102.0 and np.array_equal(search.best_x, X[2]) and search.feasible
    assert search.result.constr_violation == 0.0 and search.result.constr.tolist() == [-1.0, -1.0]
    search.ask()
    search.tell(np.arange(9.0), constraints=np.full((9, 2), 1e-3))
    assert search.best_f == 102.0  # however good the others are


def test_violations_within_the_tolerance_count_as_fulfilled_from_the_first_value_on() -> None:
    search = searcher(constraint_tol=0.1)
    X = search.ask()
    search.tell(X[:3], [3.0, 2.0, 1.0], constraints=[[0.05], [0.1], [0.11]])  # not a generation yet
    assert search.feasible and search.best_f == 2.0 and search.best_constraints == [0.1]
    search.tell(X[3:], [0.5] * 6, constraints=[[1e9]] * 5 + [[0.09]])  # however large the others are
    assert search.best_f == 0.5 and search.best_constraints == [0.09] and search.result.constr_violation == 0.09
    search.ask()
    search.tell([0.1] * 9, constraints=[[0.11]] * 9)
    assert search.best_f == 0.5


def test_every_constraint_may_have_a_tolerance_of_its_own(tmp_path: Path) -> None:
    search = searcher(2, constraint_tol=[1.0, 0.01])
    search.ask()
    search.tell(np.arange(9.0), constraints=[[0.9, 0.02]] * 4 + [[0.9, 0.01]] * 5)
    assert search.feasible and search.best_f == 4.0
    search.save(tmp_path / "search.npz")
    loaded = Searcher.load(tmp_path / "search.npz")
    assert loaded.constraints == search.constraints and loaded.feasible and loaded.best_f == 4.0


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 2.0**-40, 1e3, 1e155, 1e200, 1e300])
def test_the_unit_of_a_constraint_changes_no_point_and_only_the_verdict(unit: float) -> None:
    """No number overflows, which a warning would say, and the tolerance is in the same unit."""
    plain, other = (searcher(max_evals=600, constraint_tol=one * 2.0**-20) for one in (1.0, unit))
    run(plain)
    run(other, lambda x: [unit * halfspace(x)[0]])
    assert np.allclose(other.mean, plain.mean, rtol=0, atol=1e-6) and other.feasible
    assert other.nfev == plain.nfev and other.best_f == pytest.approx(MINIMUM, abs=1e-3)
    strict = searcher(max_evals=600)
    run(strict, lambda x: [unit * halfspace(x)[0]])  # 1e-6 of any unit
    assert strict.result.constr_violation <= 1e-6 or not strict.feasible


def test_many_constraints_that_are_all_active_are_not_left_to_a_method_of_cubic_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SciPy's NNLS took 0.8 s a generation for 800 equal constraints, and minutes for 2,000."""
    whole, columns = scipy.optimize.nnls, [0]

    def nnls(matrix: Array, *others: Any) -> Any:
        columns.append(matrix.shape[1])
        return whole(matrix, *others)

    monkeypatch.setattr(scipy.optimize, "nnls", nnls)
    for number in (10, 250):
        search = searcher(number)
        for _ in range(6):
            generation(search, lambda x, number=number: halfspace(x) * number)
        assert search.multipliers is not None and (search.multipliers > 0).all()
    assert max(columns) == 10


def test_a_thousand_constraints_of_which_few_become_active_are_solved() -> None:
    """Tangent planes of a sphere around 0: points outside of all of them are refused."""
    normals = np.random.default_rng(0).standard_normal((1000, 6))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    search = searcher(1000, max_evals=1500, x0=0.1 * X0)
    run(search, lambda x: normals @ x - 1.0, lambda x: -float(x[0]))
    from scipy.optimize import linprog

    wanted = linprog([-1, 0, 0, 0, 0, 0], A_ub=normals, b_ub=np.ones(1000), bounds=(None, None)).fun
    assert search.feasible and search.best_f == pytest.approx(wanted, abs=0.02)


def test_failed_evaluations_are_counted_and_never_the_best() -> None:
    search = searcher()
    search.ask()
    f, g = [1.0] * 9, [[-1.0]] * 9
    f[0], g[1], g[2] = math.nan, [math.nan], [-math.inf]
    search.tell(f, constraints=g)
    assert search.nfailed == 3 and search.nfev == 9
    search.ask()
    search.tell([math.nan] * 9, constraints=[[0.0]] * 9)
    assert search.nfailed == 12 and search.nit == 2 and search.best_f == 1.0
    assert np.isfinite(search.ledger.standing.outcomes).all()


def test_a_search_whose_first_generations_fail_recovers() -> None:
    search = searcher(max_evals=2000)
    for _ in range(3):
        X = search.ask()
        search.tell([math.nan] * len(X), constraints=[[math.nan]] * len(X))
    assert search.best_x is None and math.isnan(search.result.constr_violation) and not search.result.success
    run(search)
    assert search.feasible and search.best_f < MINIMUM + 1e-5


def test_the_target_counts_for_feasible_points_only() -> None:
    search = searcher(target=1.0)
    search.ask()
    search.tell([0.0] * 9, constraints=[[1.0]] * 9)
    assert "target" not in search.stop()
    search.ask()
    search.tell([0.5] * 9, constraints=[[1.0]] * 8 + [[-1.0]])
    assert "target" in search.stop() and search.result.success


def test_a_search_without_a_feasible_point_is_no_success() -> None:
    search = run(searcher(max_evals=10_000), lambda x: [1.0 + sphere(x)])
    assert search.result.stop and not search.result.success and not search.feasible


def test_data_without_constraints_tell_no_best_point(tmp_path: Path) -> None:
    """Whether points of earlier runs are feasible is not known."""
    rng = np.random.default_rng(0)
    X = X0 + rng.standard_normal((30, 6))
    search = Searcher.from_data(X, [sphere(x) for x in X], constraints=1, rng=1, max_evals=3000)
    assert search.best_x is None and math.isnan(search.best_f)
    search.save(tmp_path / "search.npz")
    run(Searcher.load(tmp_path / "search.npz"))
    run(search)
    assert search.feasible and search.best_f == pytest.approx(MINIMUM, abs=1e-5)


# ---- other orders -------------------------------------------------------------------------------------------------


def test_values_told_one_by_one_are_those_of_a_generation() -> None:
    one, other = searcher(2), searcher(2)
    for _ in range(8):
        generation(one, two)
        for x in other.ask():
            other.tell([x], [sphere(x)], constraints=[two(x)])
    assert one.multipliers is not None and np.array_equal(one.multipliers, other.multipliers)
    assert np.array_equal(one.best_x, other.best_x) and one.nfev == other.nfev


def test_points_asked_and_told_singly_find_the_minimum() -> None:
    search = searcher(max_evals=3000)
    while not search.stop():
        x = search.ask(1)[0]
        search.tell([(x, sphere(x), halfspace(x))])
    assert search.feasible and search.best_f == pytest.approx(MINIMUM, abs=1e-5)


def test_values_that_come_a_generation_late_find_the_minimum() -> None:
    search = searcher(max_evals=5000)
    out = [search.ask(1)[0] for _ in range(9)]
    while not search.stop():
        x = out.pop(0)
        search.tell([x], [sphere(x)], constraints=[halfspace(x)])
        out.append(search.ask(1)[0])
    assert search.feasible and search.best_f == pytest.approx(MINIMUM, abs=1e-4)


def test_points_that_were_not_asked_count() -> None:
    search = searcher(max_evals=1500)
    best = np.full(6, 0.5)
    search.tell([best], [sphere(best)], constraints=[halfspace(best)])
    assert search.feasible and search.best_f == MINIMUM
    run(search)
    assert search.best_f == pytest.approx(MINIMUM, abs=1e-5)


@pytest.mark.parametrize("told", [0, 4], ids=["whole", "torn"])
@pytest.mark.parametrize("generations", [0, 1, 4, 5, 25])
def test_a_saved_search_continues_bit_for_bit(generations: int, told: int, tmp_path: Path) -> None:
    search = searcher(2, equalities=[0])
    for _ in range(generations):
        generation(search, two)
    X = search.ask()
    for x in X[:told]:
        search.tell([x], [sphere(x)], constraints=[two(x)])
    search.save(tmp_path / "search.npz")
    loaded = Searcher.load(tmp_path / "search.npz")
    assert everything(loaded) == everything(search) and loaded.constraints == search.constraints
    for _ in range(9):
        for one in (search, loaded):
            generation(one, two)
    assert everything(loaded) == everything(search)


# ---- problems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_solves_a_sphere_with_a_linear_constraint(structure: str) -> None:
    search = run(searcher(structure=STRUCTURES[structure], max_evals=4000, target=MINIMUM + 1e-4))
    assert search.feasible and "target" in search.stop()


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "adapt"},
        {"algorithm": "paper"},
        {"mirrored": True},
        {"step_size": "tpa"},
        {"decoding": False},
        {"popsize": 4},
        {"popsize": 40},
        {"bounds": (-3.0, 4.0)},
        {"bounds": (0.5, 4.0)},
        {"fixed": {5: 0.5}},
    ],
    ids=str,
)
def test_every_option_solves_it(options: dict[str, Any]) -> None:
    search = run(searcher(max_evals=15_000, target=MINIMUM + 1e-3, **options))
    assert search.feasible and "target" in search.stop()


def test_the_multiplier_is_that_of_the_minimum() -> None:
    """grad f = 2 x = 1 in every coordinate, that of the constraint is -1; in units of 100 the multiplier is 0.01."""
    search = run(searcher(max_evals=3000))
    assert search.multipliers == pytest.approx([1.0], rel=0.02)
    search = run(searcher(2, max_evals=4000), lambda x: [100 * halfspace(x)[0], -9.0 - float(x[0])])
    assert search.multipliers == pytest.approx([0.01, 0.0], rel=0.02, abs=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_equality_is_met_with_either_sign(sign: float) -> None:
    search = run(searcher(equalities=[0], max_evals=5000), lambda x: [sign * halfspace(x)[0]])
    assert search.feasible and search.best_f == pytest.approx(MINIMUM, abs=1e-4)
    assert search.multipliers == pytest.approx([sign], rel=0.05)
    assert search.best_constraints is not None and abs(search.best_constraints[0]) < 1e-4


def test_a_constraint_far_away_is_reached() -> None:
    """Two thousand standard deviations from the start."""
    search = run(searcher(x0=np.zeros(3), equalities=[0], max_evals=6000), lambda x: [float(x[0]) - 1000.0])
    assert search.feasible and search.best_f == pytest.approx(1e6, rel=1e-5)


def test_whole_numbers_under_a_constraint() -> None:
    search = run(searcher(integer=[0, 1], max_evals=1500, x0=[4.0, 5.0, 3.0]), lambda x: [2.3 - float(x[0] + x[1])])
    assert search.feasible and search.best_f == pytest.approx(5.0, abs=1e-4)
    assert sorted(search.best_x[:2].tolist()) == [1.0, 2.0]


def test_named_parameters_with_a_choice_under_a_constraint() -> None:
    """The choice moves the constraint: with "far" it is x_1 + x_2 >= 4, and the value is better by 1 only."""
    space = Space({"x": Real(-5, 5, start=3, shape=2), "k": Choice("near", "far"), "n": Integer(0, 5)})

    def f(p: dict[str, Any]) -> float:
        return float(p["x"] @ p["x"]) - (p["k"] == "far") + (p["n"] - 2) ** 2

    def g(p: dict[str, Any]) -> list[float]:
        return [(4.0 if p["k"] == "far" else 2.0) - float(p["x"].sum())]

    search = run(Searcher(space, constraints=1, rng=1, max_evals=1500), g, f)
    assert search.feasible and search.best_f == pytest.approx(2.0, abs=1e-3)
    assert search.best_x["k"] == "near" and search.best_x["n"] == 2


def test_a_space_of_choices_only_takes_constraints() -> None:
    space = Space({name: Choice(*range(4)) for name in "abc"})
    search = Searcher(space, constraints=1, rng=1, max_evals=300)
    run(search, lambda p: [5 - sum(p.values())], lambda p: float(sum(p.values())))
    assert search.feasible and search.best_f == 5.0


def test_a_constraint_that_is_never_active_changes_no_rank() -> None:
    """The search is that without constraints, apart from inner points, which a far constraint does not have."""
    one, other = searcher(), Searcher(X0, 0.5, rng=1)
    for _ in range(30):
        X = generation(one, lambda x: [float(x[0]) - 1e4])
        Y = other.ask()
        other.tell([sphere(x) for x in Y])
        assert np.array_equal(X, Y)


def test_result_fields() -> None:
    result = run(searcher(2, max_evals=4000), two).result
    assert result.success == (result.status in (0, 1))
    assert result.constr.shape == result.multipliers.shape == (2,) and result.constr_violation < 1e-3
    result.multipliers[:] = 9.0  # a copy
    result.constr[:] = 9.0


@pytest.mark.parametrize("constant", [0.0, 5.0, -1e6])
def test_where_the_function_is_constant_a_feasible_point_is_found(constant: float) -> None:
    search = Searcher(np.full(4, 2.0), 0.5, constraints=2, rng=1, max_evals=1500)
    while not search.stop() and not search.feasible:
        X = search.ask()
        search.tell(np.full(len(X), constant), constraints=[[x @ x - 0.01, 0.02 - x.sum()] for x in X])
    assert search.feasible and search.best_f == constant
    assert search.best_x @ search.best_x <= 0.011


def generic(search: Searcher) -> None:
    """Give a search over vectors a root that is neither symmetric nor near the identity."""
    rng, n = np.random.default_rng(5), search.strategy.size
    search.state.root[:] = (np.eye(n) + 0.4 * rng.standard_normal((n, n))).ravel()
    search.state.mean[:] += 0.3


def test_a_step_beside_integers_at_rest_leaves_them_and_has_its_coordinates() -> None:
    search = Searcher([3.0, 1.0, -2.0, 0.5], [0.5, 1.0, 0.5, 2.0], integer=[0, 2], decoding=False, rng=1)
    generic(search)
    search.state.sigma[0] *= 0.3
    strategy, state = search.strategy, search.state
    assert (search.stds[[0, 2]] < 1).all()
    for u in np.random.default_rng(2).standard_normal((5, 2)):
        point = strategy.coordinates(state).at(u)
        assert np.array_equal(point[[0, 2]], np.rint(state.mean[[0, 2]]))
        z, others = strategy.coordinates(state).of(point[None])
        assert z[0] == pytest.approx(u, abs=1e-12) and not others.any()
        moved = point + np.array([2.0, 0.0, -1.0, 0.0])
        z, others = strategy.coordinates(state).of(moved[None])
        assert z[0] == pytest.approx(u, abs=1e-12) and others[0].tolist() == [2.0, -1.0]


def test_a_generation_computes_its_multipliers_from_every_point_with_its_own_values() -> None:
    search = Searcher([1.0, 2.0, 0.5], 0.3, constraints=1, rng=1)
    for _ in range(6):
        X = search.ask()
        F, G = [x @ x + x[0] for x in X], np.array([[1.5 - x[0] - 0.5 * x[1]] for x in X])
        ledger, rule = search.ledger, search.constraints
        assert rule is not None
        before = rule.counted(ledger.standing, np.array(X), np.column_stack([F, G]))
        coordinates = search.strategy.coordinates(search.state).of(before.points)
        expected = rule.updated(before, *coordinates, search.popsize)[0]
        search.tell(F, constraints=G)
        assert np.array_equal(search.multipliers, rule.multipliers(expected))
        assert np.array_equal(ledger.standing.penalties, expected.penalties)
    assert search.multipliers[0] > 0


# ---- integers -----------------------------------------------------------------------------------------------------


def test_a_generation_is_as_good_as_its_best_feasible_point() -> None:
    """Its score may be anything; points without a value or with unknown constraints are not feasible."""
    search = searcher(2)
    generation(search, two)
    outcomes = np.array([[1.0, 5.0, -1.0], [3.0, -1.0, -1.0], [2.0, 0.0, -9.0], [math.nan, -1.0, -1.0]])
    now = search.ledger.standing, search.strategy, search.state

    def scored(outcomes: Array) -> Scored:
        standing, *searched = now
        return search.ranking.scores(standing, outcomes, None, *searched)

    assert scored(outcomes).best == 2.0
    assert scored(outcomes[:1]).best == math.inf


def vessel(x: Array) -> float:
    """A cost that grows with an integer k and a real number r."""
    return float(3 * x[0] + x[1])


def wall(x: Array) -> list[float]:
    """k r >= 6, of which (2, 3) is the cheapest pair, and r <= 4."""
    return [6.0 - float(x[0] * x[1]), float(x[1]) - 4.0]


def test_a_search_among_integers_comes_to_rest_at_its_best_feasible_point_and_leaves_from_there() -> None:
    search = Searcher([5.0, 3.5], 1.0, integer=[0], bounds=[(1, 9), (0, 9)], constraints=2, rng=1)
    while search.state.rest[4] == 0:
        best_x = search.ledger.best_x
        generation(search, wall, vessel)
        assert search.nfev < 3000
    np.testing.assert_array_equal(search.state.mean, search.strategy.domain.encode(best_x[None], search.state.mean)[0])
    np.testing.assert_allclose(best_x, [2.0, 3.0], atol=1e-3)
    assert search.state.rest[3] == search.best_f  # the record of rests: f, not a Lagrangian
    run(search, wall, vessel)
    assert search.best_f == pytest.approx(9.0, abs=1e-4)


def test_named_integers_leave_from_their_best_feasible_point_too() -> None:
    space = Space({"k": Integer(1, 9, start=5), "r": Real(0, 9, start=3.5), "c": Choice("a", "b")})
    search = Searcher(space, constraints=2, rng=2)
    numbers = search.strategy.inner.numbers

    def state() -> Any:
        return search.state.numbers

    def cost(point: dict[str, Any]) -> float:
        return vessel(np.array([point["k"], point["r"]])) + (point["c"] == "b")

    while state().rest[4] == 0:
        best = search.best_x
        generation(search, lambda point: wall(np.array([point["k"], point["r"]])), cost)
        assert search.nfev < 5000
    np.testing.assert_allclose(numbers.mean(state()), [best["k"], best["r"]], rtol=1e-12)
