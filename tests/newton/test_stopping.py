"""Why runs end; the best point is the result in every case."""

import time

import numpy as np
import pytest
from scipy.optimize import minimize

from esgroup import newton_method
from esgroup.newton import minimize_newton
from tests.newton.reference import Quadratic, cosh

DIM = 6
X0 = np.random.default_rng(3).standard_normal(DIM)
STRUCTURES = ("full", "diagonal", "heisenberg", "moving:k=2")


def solve(**given):
    function = cosh(DIM)
    known = {"fun": function.fun, "x0": X0, "jac": function.jac, "hess": function.hess}
    return minimize_newton(**known | {"structure": "heisenberg"} | given)


@pytest.mark.parametrize(
    ("limit", "status", "success"),
    [
        ({"max_iters": 2}, 2, False),
        ({"max_evals": 3}, 2, False),
        ({"max_time": 1e-9}, 2, False),
        ({"target": 1e9}, 1, True),
        ({"gtol": 1e9}, 0, True),
    ],
)
def test_every_limit_ends_a_run_under_its_name(limit: dict, status: int, success: bool) -> None:
    found = solve(**limit)
    assert list(found.stop) == list(limit)
    assert (found.status, found.success) == (status, success)
    assert found.message.startswith(next(iter(limit)) + ": ")


def test_limits_are_exact() -> None:
    assert solve(max_iters=2).nit == 2
    assert solve(max_evals=3).nfev == 3
    assert solve(target=1e9).nit == 0


def test_as_in_scipy_there_are_200_iterations_per_coordinate() -> None:
    slow = Quadratic(np.eye(1), np.zeros(1))
    found = minimize_newton(
        slow.fun, [1.0], jac=slow.jac, hess=slow.hess, structure="diagonal", mean_rate=1e-4, gtol=0.0
    )
    assert found.nit == 200 and list(found.stop) == ["max_iters"]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("line_search", ["none", "armijo"])
def test_a_function_without_a_minimum_is_noticed(structure: str, line_search: str) -> None:
    hill = Quadratic(-2 * np.eye(DIM), np.zeros(DIM))
    found = solve(fun=hill.fun, jac=hill.jac, hess=hill.hess, structure=structure, line_search=line_search)
    assert list(found.stop) == ["unbounded"]
    assert not found.success and found.status == 3
    assert found.fun < -1e18 and found.fun == hill.fun(found.x)


def test_a_gradient_that_becomes_nan_ends_the_run_at_the_best_point() -> None:
    function, calls = cosh(DIM), []

    def jac(x):
        calls.append(x.copy())
        return function.jac(x) if len(calls) < 4 else np.full(DIM, np.nan)

    found = solve(jac=jac)
    assert list(found.stop) == ["not_finite"] and "jac(x)" in found.message
    assert not found.success and found.status == 3 and found.nit == 3
    assert found.fun == function.fun(found.x) == min(map(function.fun, calls))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_curvature_that_is_not_finite_ends_the_run(bad: float) -> None:
    function = cosh(DIM)
    found = minimize_newton(
        function.fun, X0, jac=function.jac, hessp=lambda x, v: bad + v, hess_diag=function.hess_diag
    )
    assert list(found.stop) == ["not_finite"] and "hessp(x, v)" in found.message
    assert found.fun == function.fun(X0) and found.nit == 0
    found = minimize_newton(function.fun, X0, jac=function.jac, hessp=function.hessp, hess_diag=lambda x: x * bad)
    assert "diagonal" in found.message


def test_a_start_without_a_value_is_the_result() -> None:
    found = solve(fun=lambda x: np.nan)
    assert list(found.stop) == ["not_finite"] and not found.success
    np.testing.assert_array_equal(found.x, X0)


def test_without_a_line_search_a_value_that_is_lost_ends_the_run_at_the_best_point() -> None:
    function = cosh(DIM)
    found = solve(fun=lambda x: function.fun(x) if function.fun(x) > 8.0 else np.nan, line_search="none")
    assert list(found.stop) == ["not_finite"] and "nan" in found.message
    assert found.fun == function.fun(found.x) > 8.0


def test_with_a_line_search_the_run_avoids_points_without_a_value() -> None:
    """log x + 1/x exists for positive x only; its minimum is at 1."""
    found = minimize_newton(
        lambda x: (np.log(x) + 1 / x).sum() if (x > 0).all() else np.nan,
        np.full(3, 1.9),
        jac=lambda x: 1 / x - 1 / x**2,
        hess=lambda x: np.diag(-1 / x**2 + 2 / x**3),
        structure="heisenberg",
        precision0=1e-3,
    )
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


def test_the_best_point_is_kept_when_values_rise() -> None:
    function = Quadratic(np.diag([1.0, 100.0]), np.zeros(2))
    values = []
    found = minimize_newton(
        lambda x: values.append(function.fun(x)) or values[-1],
        np.ones(2),
        jac=function.jac,
        hess=function.hess,
        line_search="none",
        precision0=1e-3,
        structure="diagonal",
        rate=0.1,
        max_iters=20,
    )
    assert values[-1] > min(values)
    assert found.fun == min(values) == function.fun(found.x)
    np.testing.assert_array_equal(found.jac, function.jac(found.x))


def test_a_wrong_gradient_is_distinguished_from_rounding() -> None:
    function = cosh(DIM)
    found = solve(jac=lambda x: -function.jac(x))
    assert list(found.stop) == ["line_search"] and not found.success
    assert "jac" in found.message
    flat = Quadratic(np.eye(2), np.zeros(2))
    found = minimize_newton(
        lambda x: flat.fun(x) + 1e9, np.full(2, 1e-5), jac=flat.jac, hess=flat.hess, gtol=0.0, max_iters=50
    )
    assert list(found.stop) in (["tolfun"], ["gtol"]) and found.success


def test_a_value_that_does_not_improve_ends_the_run() -> None:
    found = solve(fun=lambda x: 1.0, jac=np.ones_like, line_search="none", max_iters=10_000)
    assert list(found.stop) == ["stagnation"] and found.nit == 200


@pytest.mark.parametrize("how", ["return", "raise"])
def test_the_callback_may_end_the_run(how: str) -> None:
    seen = []

    def callback(so_far):
        seen.append(so_far)
        if len(seen) < 3:
            return None
        if how == "raise":
            raise StopIteration
        return True

    found = solve(callback=callback)
    assert list(found.stop) == ["callback"] and found.nit == 3
    assert [so_far.nit for so_far in seen] == [1, 2, 3]
    assert seen[0].status == -1 and seen[0].fun > seen[2].fun == found.fun


def test_an_interrupt_carries_the_result() -> None:
    function, calls = cosh(DIM), []

    def fun(x):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return function.fun(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        solve(fun=fun)
    assert caught.value.result.nit == 2
    assert caught.value.result.fun == function.fun(caught.value.result.x)


def test_an_exception_of_the_objective_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        solve(fun=lambda x: 1 / 0)


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    solve(progress=True)
    assert capsys.readouterr() == ("", "")


# ---- SciPy --------------------------------------------------------------------------------------------------------


def test_it_is_a_method_of_scipy() -> None:
    function, seen = cosh(DIM), []
    options = {"structure": "full", "maxiter": 50}
    found = minimize(
        function.fun,
        X0,
        jac=function.jac,
        hess=function.hess,
        method=newton_method,
        tol=1e-9,
        callback=lambda x: seen.append(x),
        options=options,
    )
    wanted = solve(structure="full", gtol=1e-9, max_iters=50)
    np.testing.assert_array_equal(found.x, wanted.x)
    assert found.nit == wanted.nit == len(seen)
    np.testing.assert_array_equal(seen[-1], found.x)
    oracle = minimize(function.fun, X0, jac=function.jac, method="BFGS", tol=1e-9)
    np.testing.assert_allclose(found.x, oracle.x, atol=1e-7)


def test_scipys_other_form_of_callback_may_end_the_run() -> None:
    function = cosh(DIM)

    def stop(intermediate_result):
        if intermediate_result.nit == 2:
            raise StopIteration

    found = minimize(
        lambda x: (function.fun(x), function.jac(x)),
        X0,
        jac=True,
        hessp=function.hessp,
        method=newton_method,
        callback=stop,
    )
    assert found.nit == 2 and "callback" in found.stop


def test_scipys_bounds_and_constraints_are_refused() -> None:
    function = cosh(DIM)
    for given in ({"bounds": [(0, 1)] * DIM}, {"constraints": {"type": "eq", "fun": np.sum}}):
        with pytest.raises(ValueError, match=f"does not use {next(iter(given))}"):
            minimize(function.fun, X0, jac=function.jac, hess=function.hess, method=newton_method, **given)


# ---- more limits --------------------------------------------------------------------------------------------------


def test_the_budget_of_values_holds_within_a_line_search() -> None:
    function = cosh(DIM)
    found = solve(jac=lambda x: -function.jac(x), max_evals=5)
    assert found.nfev == 5 and list(found.stop) == ["max_evals"] and found.status == 2


def test_a_linear_function_has_no_minimum_for_any_structure() -> None:
    for structure in STRUCTURES:
        flat = {"fun": lambda x: -x.sum(), "jac": lambda x: -np.ones(DIM), "hess": lambda x: np.zeros((DIM, DIM))}
        found = solve(structure=structure, **flat)
        assert list(found.stop) == ["unbounded"] and found.nit < 1000


def test_scipys_maxfev_limits_the_values() -> None:
    function = cosh(DIM)
    known = {"jac": function.jac, "hess": function.hess, "method": newton_method}
    assert minimize(function.fun, X0, options={"maxfev": 4}, **known).nfev == 4
    assert "Moving" in minimize(function.fun, X0, options={"structure": "auto"}, **known).structure


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("both", [True, False])
def test_fun_is_never_called_more_often_than_max_evals(structure: str, both: bool) -> None:
    """With jac=True the differences of gradients that stand for products are calls of fun, too."""
    function = cosh(DIM)
    for most in (1, 2, 3, 10, 40):
        calls = []

        def fun(x, calls=calls):
            calls.append(1)
            return (function.fun(x), function.jac(x)) if both else function.fun(x)

        found = minimize_newton(
            fun, X0, jac=True if both else function.jac, structure=structure, max_evals=most, gtol=0.0, rng=1
        )
        assert found.nfev == len(calls) <= most


def test_no_more_than_one_evaluation_follows_the_end_of_the_time() -> None:
    """A product that takes longer than the whole run may is the last; then the best point is returned."""
    function = cosh(DIM)
    seen: list[str] = []

    def hessp(x, v):
        seen.append("hessp")
        time.sleep(0.02)
        return function.hess(x) @ v

    found = minimize_newton(function.fun, X0, jac=function.jac, hessp=hessp, structure="full", max_time=0.01, rng=1)
    assert list(found.stop) == ["max_time"] and seen == ["hessp"] and found.fun == function.fun(found.x)
