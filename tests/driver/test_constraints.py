"""`minimize` with SciPy's constraints."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import esgroup
from esgroup import Choice, Real, Space
from esgroup.checks import Array
from esgroup.driver.constraints import parse_constraints
from esgroup.rankings import Evaluated
from esgroup.search.searcher import Searcher
from esgroup_problems.designs import spring
from tests.driver.support import Recorder, fail, same, squares, squares_of_rows

X0 = np.array([2.0, 1.5, 2.5])
OPTIONS: dict[str, Any] = {"sigma0": 0.5, "rng": 3, "max_evals": 1500}
MINIMUM = 3.0  # of the squares with x_1 + x_2 + x_3 >= 3
ROW = np.ones((1, 3))


def total(x: Array, scale: float = 1.0, shift: float = 0.0) -> float:
    return float(scale * x.sum() - shift)


def both(x: Array) -> Array:
    """The sum, which is at least 3 at the minimum, and a sphere around (1, 1, 1) in which the minimum is."""
    return np.array([x.sum(), ((x - 1) ** 2).sum()])


def solve(constraints: Any, fun: Any = squares, x0: Any = X0, **options: Any) -> Any:
    return esgroup.minimize(fun, x0, constraints=constraints, **(OPTIONS | options))


# ---- spellings ----------------------------------------------------------------------------------------------------

SPELLINGS: dict[str, Any] = {
    "nonlinear": NonlinearConstraint(total, 3.0, np.inf),
    "nonlinear, vector": NonlinearConstraint(both, [3.0, -np.inf], [np.inf, 4.0]),
    "nonlinear, one bound without use": NonlinearConstraint(both, [3.0, -np.inf], np.inf),
    "two sides": NonlinearConstraint(total, 3.0, 8.0),
    "equality": NonlinearConstraint(total, 3.0, 3.0),
    "linear": LinearConstraint(ROW, 3.0),
    "linear, one row": LinearConstraint([1.0, 1.0, 1.0], [3.0], [np.inf]),
    "linear, upper bound": LinearConstraint(-ROW, -np.inf, -3.0),
    "linear, equality": LinearConstraint(ROW, 3.0, 3.0),
    "sparse": LinearConstraint(scipy.sparse.csr_matrix(np.vstack([ROW, [[1, 0, 0]]])), [3.0, -9.0], [np.inf, 9.0]),
    "sparse array": LinearConstraint(scipy.sparse.coo_array(ROW), 3.0, np.inf),
    "dict": {"type": "ineq", "fun": lambda x: x.sum() - 3},
    "dict with args": {"type": "ineq", "fun": total, "args": (2.0, 6.0), "jac": None},
    "dict with one arg": {"type": "ineq", "fun": lambda x, shift: x.sum() - shift, "args": 3.0},
    "dict, equality": {"type": "eq", "fun": lambda x: [3 - x.sum()]},
    "list": [{"type": "ineq", "fun": total, "args": (1.0, 3.0)}, LinearConstraint(ROW, -np.inf, 9.0)],
    "tuple": (NonlinearConstraint(total, 3.0, np.inf),),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_scipy_is_solved(spelling: str) -> None:
    result = solve(SPELLINGS[spelling])
    assert result.fun == pytest.approx(MINIMUM, abs=2e-4) and result.x == pytest.approx(np.ones(3), abs=0.02)
    assert result.constr_violation <= 1e-5 and result.nfev <= 1500
    given = SPELLINGS[spelling]
    assert len(result.constr) == len(result.multipliers) == (len(given) if isinstance(given, (list, tuple)) else 1)


def test_spellings_of_the_same_constraint_give_the_same_search() -> None:
    found = [
        solve(one)
        for one in (
            {"type": "ineq", "fun": lambda x: x.sum() - 3.0},
            [{"type": "ineq", "fun": total, "args": (1.0, 3.0)}],
            NonlinearConstraint(lambda x: x.sum() - 3.0, 0.0, np.inf),
        )
    ]
    assert all(np.array_equal(found[0].x, other.x) for other in found[1:])


@pytest.mark.parametrize(
    "nothing", [(), [], None, NonlinearConstraint(total, -np.inf, np.inf)], ids=["tuple", "list", "None", "no bounds"]
)
def test_no_constraint_is_a_search_without_constraints(nothing: Any) -> None:
    result, plain = solve(nothing, max_evals=200), esgroup.minimize(squares, X0, **(OPTIONS | {"max_evals": 200}))
    assert np.array_equal(result.x, plain.x) and "constr" not in result


def test_values_and_multipliers_fulfill_the_conditions_of_karush_kuhn_and_tucker() -> None:
    """grad f = sum of multipliers times grad c at lower bounds, the negative of it at upper bounds and equalities."""

    def fun(x: Array) -> float:
        return float((x[0] - 3) ** 2 + 2 * x[1] ** 2 + (x[2] + 1) ** 2 + x[0] * x[1] + x[3] ** 2)

    def curved(x: Array) -> Array:
        return np.array([x[0] ** 2 + x[1] ** 2, x[2], 3.0 * x[0], x[3] + x[1]])

    constraints = [
        NonlinearConstraint(curved, [-np.inf, 0.5, -np.inf, 1.0], [2.0, 4.0, np.inf, 1.0]),
        LinearConstraint([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]], -np.inf, [1.2, 50.0]),
    ]
    result = solve(constraints, fun, [0.5, 0.0, 0.6, 0.4], max_evals=6000)
    c, x = result.constr, result.x
    assert c[0][[0, 1, 3]] == pytest.approx(curved(x)[[0, 1, 3]], abs=1e-12) and math.isnan(c[0][2])
    assert c[1] == pytest.approx([x[0] + x[1] + x[2], x[2]], abs=1e-12)
    h = 1e-6 * np.eye(4)

    def gradient(function: Any) -> Array:
        return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in h])

    first, second = result.multipliers
    assert first[2] == second[1] == 0.0  # no bound, and one that is far
    assert (first[[0, 1]] >= 0).all() and second[0] >= 0
    signs = np.array([1.0, -1.0, 0.0, 1.0])
    left = gradient(fun) + gradient(curved).T.T @ (signs * first) + second[0] * np.array([1.0, 1.0, 1.0, 0.0])
    assert left == pytest.approx(np.zeros(4), abs=0.02 * np.linalg.norm(gradient(fun)))
    assert result.constr_violation < 1e-4


# ---- arguments that are refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        (3.0, "constraints must be"),
        ("ineq", r"constraints\[0\] must be"),
        ([LinearConstraint(ROW, 3.0), 7], r"constraints\[1\] must be"),
        ({"type": "le", "fun": total}, "constraints must have the type"),
        ({"type": "ineq"}, "constraints must have a function"),
        ({"type": "ineq", "fun": total, "tol": 1}, "'tol'"),
        ([{"type": "ineq", "fun": lambda x: "much"}], r"constraints\[0\] must return"),
        (NonlinearConstraint(lambda x: x[None], 0, 1), "constraints must return"),
        (NonlinearConstraint(lambda x: [], 0, 1), "constraints must return"),
        (NonlinearConstraint(lambda x: 1j, 0, 1), "constraints must return"),
        (NonlinearConstraint(total, 2.0, 1.0), "lb <= ub"),
        (NonlinearConstraint(total, math.nan, 1.0), "lb <= ub"),
        (NonlinearConstraint(total, math.inf, math.inf), "finite"),
        (NonlinearConstraint(both, [1.0, 2.0, 3.0], np.inf), r"constraints\.lb"),
        (LinearConstraint(np.ones((1, 4)), 3.0), "3 columns"),
        (LinearConstraint(np.array([[1.0, np.nan, 1.0]]), 3.0), r"constraints\.A"),
        (NonlinearConstraint(total, 3.0, 3.0, keep_feasible=True), "equality"),
        (LinearConstraint(ROW, 8.0, keep_feasible=True), "x0 must satisfy constraints"),
        ([LinearConstraint(ROW, 3.0), NonlinearConstraint(total, 8, 9, keep_feasible=True)], r"x0.*constraints\[1\]"),
    ],
)
def test_bad_constraints_are_refused_by_name_before_the_function_is_called(constraints: Any, text: str) -> None:
    recorder = Recorder(squares)
    with pytest.raises((ValueError, TypeError), match=text):
        solve(constraints, recorder)
    assert not recorder.points


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, "small", [], [1e-6, 1e-6], [-1.0], [["small"]]], ids=repr)
@pytest.mark.parametrize("several", [False, True])
def test_a_bad_tolerance_is_refused(tolerance: Any, several: bool) -> None:
    constraint = LinearConstraint(ROW, 3.0)
    with pytest.raises((ValueError, TypeError), match="constraint_tol"):
        solve([constraint] if several else constraint, constraint_tol=tolerance)


def test_a_tolerance_is_for_a_constraint_of_the_list_or_for_one_of_its_components() -> None:
    """Components with a lower bound, an upper bound and both; g at 0 says which is which, and so does the verdict."""
    one = NonlinearConstraint(lambda x: x, [10.0, -np.inf, 30.0], [np.inf, -20.0, 30.0])
    parsed = parse_constraints([one, LinearConstraint(ROW, 40.0, 50.0)], np.zeros(3))
    assert parsed is not None
    assert parsed.g(np.zeros(3)) == (-30.0, 20.0, 10.0, -50.0, 40.0)
    assert parsed.tolerances([[0.1, 0.2, 0.3], 0.4]) == (0.3, 0.2, 0.1, 0.4, 0.4)
    fixed: dict[str, Any] = {"fun": lambda x: float(x[0]), "x0": np.zeros(3), "max_evals": 20, "sigma0": 1e-6}
    assert solve(one, constraint_tol=[11, 21, 31], **fixed).feasible
    assert not solve(one, constraint_tol=[9, 21, 31], **fixed).feasible
    assert not solve(one, constraint_tol=[11, 21, 29], **fixed).feasible


def test_what_is_feasible_depends_on_no_start_and_no_run() -> None:
    """x^6 <= 1: from far away, and with runs that begin anywhere between wide bounds."""
    wall = NonlinearConstraint(lambda x: x[0] ** 6, -np.inf, 1.0)
    far = solve(wall, lambda x: x[1] ** 2 - x[0], [100.0, 100.0], sigma0=1.0, max_evals=5000)
    assert far.success and far.x[0] == pytest.approx(1.0, abs=1e-6) and 0 <= far.constr_violation <= 1e-6

    def waves(x: Array) -> float:
        return float(-x[0] + 0.1 * np.sum(1 - np.cos(3 * x)))

    options: dict[str, Any] = {"sigma0": 0.1, "bounds": (-100, 100), "restarts": "ipop", "max_evals": 4000}
    result = solve(wall, waves, [1.2, 1.2], **options)
    assert result.restarts > 0 and result.feasible and result.constr_violation <= 1e-6
    assert result.x[0] == pytest.approx(1.0, abs=1e-6)


def test_values_that_arrive_after_their_run_are_judged_by_the_same_tolerance() -> None:
    search = Searcher(X0, 0.5, bounds=(-5, 5), constraints=1, constraint_tol=0.1, rng=1, restarts="ipop")
    out = search.ask(2)
    while search.restart == 0:
        X = search.ask()
        search.tell([9.0] * len(X), constraints=[[1e6]] * len(X))
    assert not search.feasible
    search.tell([out[0]], [Evaluated(5.0, (0.2,))])
    assert not search.feasible
    search.tell([out[1]], [Evaluated(6.0, (0.1,))])
    assert search.feasible and search.best_f == 6.0


def test_contradictory_linear_constraints_are_refused_by_name() -> None:
    good, far = LinearConstraint(ROW, 3.0), LinearConstraint(2 * ROW, -np.inf, 5.0)
    with pytest.raises(ValueError, match=r"constraints\[2\].*contradicts"):
        solve([good, NonlinearConstraint(total, 0.0, np.inf), far])
    with pytest.raises(ValueError, match=r"constraints .*contradicts the bounds or itself"):
        solve(LinearConstraint(np.vstack([ROW, ROW]), [3.0, -np.inf], [np.inf, 2.0]))
    with pytest.raises(ValueError, match=r"constraints .*contradicts the bounds"):
        solve(LinearConstraint(ROW, 10.0, 10.0), bounds=(0.0, 3.0))
    with pytest.raises(ValueError, match=r"constraints .*contradicts the bounds"):
        solve(LinearConstraint(ROW, 10.0), bounds=Bounds([0, 0, 0], [3, 3, 3]))
    assert solve(LinearConstraint(ROW, 9.0, 9.0), bounds=(0.0, 3.0 + 1e-9), max_evals=50).nfev == 50


def test_an_exception_at_x0_says_which_constraint_raised_it() -> None:
    def broken(x: Array) -> float:
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError) as caught:
        solve([LinearConstraint(ROW, 3.0), {"type": "ineq", "fun": broken}])
    assert "constraints[1]" in caught.value.__notes__[0]


# ---- failures -----------------------------------------------------------------------------------------------------


class Changes:
    """A constraint with two values, but three at the given call."""

    def __init__(self, at: int) -> None:
        self.calls, self.at = 0, at

    def __call__(self, x: Array) -> Array:
        self.calls += 1
        return np.append(both(x), 0.0) if self.calls == self.at else both(x)


@pytest.mark.parametrize("where", ["here", "threads", "asynchronous", "vectorized"])
@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_a_constraint_of_changing_length_is_an_error_that_names_it(on_error: Any, where: str) -> None:
    given: dict[str, Any] = {"on_error": on_error, "vectorized": where == "vectorized"}
    constraints = [LinearConstraint(ROW, 3.0), NonlinearConstraint(Changes(20), [3.0, -np.inf], np.inf)]
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match=r"constraints\[1\].* 2, .* 3 at"):
        if where in ("threads", "asynchronous"):
            given |= {"executor": pool, "asynchronous": where == "asynchronous"}
        solve(constraints, squares_of_rows if given["vectorized"] else squares, **given)


def three_after_the_start(x: Array) -> Array:
    return both(x) if np.array_equal(x, X0) else np.append(both(x), 0.0)


@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_so_it_is_in_other_processes(on_error: Any) -> None:
    with pytest.raises(ValueError, match=r"constraints .* 2, .* 3 at"):
        solve(NonlinearConstraint(three_after_the_start, 0.0, 9.0), workers=2, on_error=on_error)


def raises_sometimes(x: Array) -> float:
    if int(1e6 * x[0]) % 5 == 0 and not np.array_equal(x, X0):
        raise ArithmeticError("at this point")
    return total(x)


def nan_sometimes(x: Array) -> float:
    return math.nan if int(1e6 * x[0]) % 5 == 0 and not np.array_equal(x, X0) else total(x)


@pytest.mark.parametrize("constraint", [raises_sometimes, nan_sometimes])
def test_evaluations_whose_constraints_fail_have_failed(constraint: Any) -> None:
    result = solve(NonlinearConstraint(constraint, 3.0, np.inf), on_error="nan")
    assert result.nfailed > 10 and result.fun == pytest.approx(MINIMUM, abs=1e-3)
    assert "The last failure" in result.message


def test_an_exception_in_a_constraint_reaches_the_caller() -> None:
    with pytest.raises(ArithmeticError, match="at this point") as caught:
        solve(NonlinearConstraint(raises_sometimes, 3.0, np.inf))
    assert caught.value.result.nfev >= 0  # type: ignore[attr-defined]


def test_failed_constraints_in_a_row_end_the_search() -> None:
    constraint = NonlinearConstraint(lambda x: total(x) if np.array_equal(x, X0) else math.nan, 3.0, np.inf)
    result = solve(constraint, max_failures=12)
    assert result.nfev == 12 and "failures" in result.stop and not result.success


# ---- where and how often ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 6, 7, 8, 100])
def test_there_are_exactly_max_evals_evaluations(most: int) -> None:
    fun, constraint = Recorder(squares), Recorder(total)
    result = solve(NonlinearConstraint(constraint, 3.0, np.inf), fun, max_evals=most)
    assert len(fun.points) == result.nfev == most
    assert np.array_equal(constraint.points[0], X0) and same(constraint.points[1:], fun.points)


def test_functions_may_change_the_points_they_receive() -> None:
    def spoils(x: Array) -> float:
        value = total(x)
        x[:] = 0
        return value

    def fun(x: Array) -> float:
        value = squares(x)
        x[:] = 7
        return value

    result = solve([NonlinearConstraint(spoils, 3.0, np.inf), LinearConstraint(ROW, -np.inf, 9.0)], fun)
    assert np.array_equal(result.x, solve([NonlinearConstraint(total, 3, np.inf), LinearConstraint(ROW, -np.inf, 9)]).x)


def test_processes_threads_maps_and_whole_generations_give_the_same_result(threads: ThreadPoolExecutor) -> None:
    constraints = [NonlinearConstraint(both, [3.0, -np.inf], [np.inf, 4.0]), LinearConstraint(ROW, -np.inf, 9.0)]
    expected = solve(constraints, max_evals=300)
    for where in ({"workers": 2}, {"workers": map}, {"executor": threads}):
        result = solve(constraints, max_evals=300, **where)
        assert np.array_equal(result.x, expected.x) and result.nfev == 300
        assert all(np.array_equal(*pair) for pair in zip(result.multipliers, expected.multipliers, strict=True))
    result = solve(constraints, squares_of_rows, max_evals=300, vectorized=True)
    assert np.array_equal(result.x, expected.x)


@pytest.mark.parametrize("where", [{"workers": 2}, {"executor": True}], ids=str)
def test_asynchronous_searches_find_the_minimum(where: dict[str, Any], threads: ThreadPoolExecutor) -> None:
    where = {"executor": threads} if "executor" in where else where
    result = solve(NonlinearConstraint(total, 3.0, np.inf), asynchronous=True, max_evals=500, **where)
    assert result.nfev == 500 and result.fun == pytest.approx(MINIMUM, abs=1e-2) and result.constr_violation < 1e-4


def test_restarts_keep_the_best_feasible_point_of_all_runs() -> None:
    """The first run finds the minimum; later ones, which begin elsewhere, nothing better."""
    fun = Recorder(lambda x: squares(x) if x[0] > -2 else squares(x) + 50)
    result = solve(NonlinearConstraint(total, 3.0, np.inf), fun, restarts="ipop", max_evals=2500)
    assert result.restarts > 0 and result.nfev == len(fun.points) == 2500
    assert result.fun == pytest.approx(MINIMUM, abs=1e-4) and result.constr_violation < 1e-4
    assert result.constr[0] == pytest.approx([total(result.x)], abs=1e-12)
    fulfilled = [f for x in fun.points if total(x) >= 3 and (f := fun.fun(x)) is not None]
    assert result.fun <= min(fulfilled)


def test_multipliers_are_those_of_the_run_that_has_found_the_best_point(tmp_path: Path) -> None:
    """The second run has only just begun; where the first one ended, the gradient is 2 x = (2, 2, 2)."""
    limit = NonlinearConstraint(total, 3.0, np.inf)
    first = solve(limit)
    saved = tmp_path / "search.npz"
    result = solve(limit, restarts="ipop", max_evals=first.nfev + 20, checkpoint=saved)
    assert result.restarts == 1 and result.fun == first.fun
    assert result.multipliers[0] == pytest.approx([2.0], rel=1e-3)
    again = solve(limit, restarts="ipop", max_evals=first.nfev + 40, checkpoint=saved, resume=True)
    assert again.restarts == 1 and again.multipliers[0] == result.multipliers[0]


def one_value(x: Array) -> float:
    return 1.0


@pytest.mark.parametrize("kind", ["ipop", "bipop"])
def test_runs_begin_where_everything_that_must_be_kept_is_fulfilled(kind: Any) -> None:
    recorder = Recorder(one_value)
    result = solve(KEPT["two sides"], recorder, restarts=kind, max_evals=1000)
    assert result.restarts > 0 and all(3 <= x.sum() <= 6.5 for x in recorder.points)


def test_there_is_no_other_run_if_no_other_place_is_found() -> None:
    kept = NonlinearConstraint(lambda x: np.abs(x - X0).max(), -np.inf, 1e-6, keep_feasible=True)
    result = solve(kept, one_value, restarts="ipop")
    assert result.restarts == 0 and "keep_feasible" in result.stop["restarts"]


@pytest.mark.parametrize("restarts", [None, "ipop", "bipop"])
@pytest.mark.parametrize("at", [[0], [1, 3], [7, 70, 75, 76], [400, 640]], ids=str)
def test_a_run_that_was_broken_off_anywhere_continues_bit_for_bit(at: list[int], restarts: Any, tmp_path: Path) -> None:
    def coarse(x: Array) -> float:
        return round(squares(x), 2)

    options: dict[str, Any] = {"max_evals": 700, "restarts": restarts}
    constraints = [NonlinearConstraint(both, [3.0, -np.inf], [np.inf, 4.0]), LinearConstraint(ROW, -np.inf, 9.0)]
    whole = Recorder(coarse)
    expected = solve(constraints, whole, **options)
    points: list[Array] = []
    options["checkpoint"] = tmp_path / "run.npz"
    at = [call for call in at if call < len(whole.points)]
    for session, call in enumerate(at):
        part = Recorder(coarse, call - len(points), fail(RuntimeError("broken off")))
        with pytest.raises(RuntimeError, match="broken off"):
            solve(constraints, part, **options, resume=session > 0)
        points += part.points
    part = Recorder(coarse)
    result = solve(constraints, part, **options, resume=bool(at))
    assert same(points + part.points, whole.points)
    for name in ("fun", "nfev", "nit", "restarts", "success", "message", "constr_violation"):
        assert result[name] == expected[name]
    for name in ("constr", "multipliers"):
        assert all(np.array_equal(*pair) for pair in zip(result[name], expected[name], strict=True))


def test_a_checkpoint_is_a_search_with_constraints(tmp_path: Path) -> None:
    solve(NonlinearConstraint(total, 3.0, np.inf), max_evals=50, checkpoint=tmp_path / "run.npz")
    search = Searcher.load(tmp_path / "run.npz")
    assert search.constraints is not None and search.constraints.number == 1


def test_another_number_of_constraints_cannot_be_resumed(tmp_path: Path) -> None:
    given = {"max_evals": 50, "checkpoint": tmp_path / "run.npz"}
    solve(NonlinearConstraint(total, 3.0, np.inf), **given)
    for other in (NonlinearConstraint(total, 3.0, 8.0), NonlinearConstraint(total, 3.0, 3.0), ()):
        with pytest.raises(ValueError, match="constraints"):
            solve(other, **(given | {"max_evals": 100}), resume=True)
    with pytest.raises(ValueError, match="tolerance"):
        solve(NonlinearConstraint(total, 3.0, np.inf), **given, constraint_tol=1e-3, resume=True)


# ---- points that are kept feasible --------------------------------------------------------------------------------

KEPT = {
    "linear": LinearConstraint(ROW, 3.0, keep_feasible=True),
    "two sides": LinearConstraint(ROW, 3.0, 6.5, keep_feasible=True),
    "nonlinear": NonlinearConstraint(total, 3.0, np.inf, keep_feasible=True),
    "ring": NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 2.0, np.inf, keep_feasible=True),
}


@pytest.mark.parametrize("options", [{}, {"restarts": "ipop"}, {"mirrored": True}, {"bounds": (-4.0, 5.0)}], ids=str)
@pytest.mark.parametrize("kept", KEPT)
def test_no_point_is_evaluated_that_violates_what_must_be_kept(kept: str, options: dict[str, Any]) -> None:
    recorder = Recorder(lambda x: round(squares(x), 3))
    result = solve([KEPT[kept], LinearConstraint(ROW, -np.inf, 9.0)], recorder, max_evals=700, **options)
    one = KEPT[kept]
    c = np.array([one.fun(x) if hasattr(one, "fun") else x.sum() for x in recorder.points])
    assert (c >= one.lb).all() and (c <= one.ub).all()
    assert result.fun == pytest.approx(2.0 if kept == "ring" else MINIMUM, abs=0.02)
    assert result.constr_violation == 0.0


def test_asynchronous_points_are_kept_feasible(threads: ThreadPoolExecutor) -> None:
    recorder = Recorder(squares)
    solve(KEPT["linear"], recorder, executor=threads, asynchronous=True, max_evals=300)
    assert all(x.sum() >= 3 for x in recorder.points)


def test_points_are_kept_feasible_after_a_resume(tmp_path: Path) -> None:
    whole, first, second = (Recorder(squares) for _ in range(3))
    solve(KEPT["linear"], whole, max_evals=300)
    solve(KEPT["linear"], first, max_evals=100, checkpoint=tmp_path / "run.npz")
    solve(KEPT["linear"], second, max_evals=300, checkpoint=tmp_path / "run.npz", resume=True)
    assert same(first.points + second.points, whole.points) and all(x.sum() >= 3 for x in whole.points)


# ---- named parameters and designs ---------------------------------------------------------------------------------


def test_named_parameters_take_functions_of_a_dict() -> None:
    space = Space({"x": Real(-5, 5, start=3, shape=2), "k": Choice("u", "v")})

    def fun(p: dict[str, Any]) -> float:
        return squares(p["x"]) + (p["k"] == "v")

    constraint = NonlinearConstraint(lambda p: p["x"].sum() - (p["k"] == "v"), 2.0, np.inf)
    result = esgroup.minimize(fun, space, constraints=constraint, rng=1, max_evals=1500)
    assert result.fun == pytest.approx(2.0, abs=1e-3) and result.x["k"] == "u"
    with pytest.raises(ValueError, match=r"constraints.*LinearConstraint"):
        esgroup.minimize(fun, space, constraints=LinearConstraint(np.ones((1, 2)), 1.0))


def test_a_gaussian_as_start_takes_constraints() -> None:
    result = esgroup.minimize(
        squares, esgroup.Gaussian(mean=X0, sigma0=0.5), constraints=LinearConstraint(ROW, 3.0), rng=1, max_evals=1500
    )
    assert result.fun == pytest.approx(MINIMUM, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_spring_is_designed_within_6000_evaluations(seed: int) -> None:
    problem = spring()
    assert problem.constraints is not None
    constraint = NonlinearConstraint(problem.constraints, -np.inf, 0.0)
    found = esgroup.minimize(
        problem.fun,
        problem.x0,
        problem.sigma0,
        bounds=problem.bounds,
        constraints=constraint,
        rng=seed,
        max_evals=6000,
        target=0.01268,
    )
    assert "target" in found.stop and found.success and found.constr_violation < 1e-5
