"""Whole runs against the iteration written out on dense matrices; counts, fields and seeds of the result."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from esgroup.groups import Heisenberg
from esgroup.newton import Exponential, Inverse, Moving, minimize_newton
from tests.newton.reference import MASKS, Quadratic, cosh, iterate, pattern, positive_definite

DIM = 6
X0 = np.random.default_rng(3).standard_normal(DIM)
PLAIN = {"line_search": "none", "clip": None, "absolute": False, "gtol": 0.0}


def solve(function=None, x0=X0, **given) -> OptimizeResult:
    function = cosh(DIM) if function is None else function
    known = {"jac": function.jac, "hess": function.hess, "structure": "heisenberg"}
    return minimize_newton(function.fun, x0, **known | given)


@pytest.mark.parametrize("spelling", MASKS)
def test_a_run_is_the_iteration_written_out(spelling: str) -> None:
    mask = pattern(spelling, DIM)
    for t in (1, 2, 6):
        last = []
        solve(
            structure=spelling, rate=0.6, max_iters=t, callback=lambda so_far, seen=last: seen.append(so_far.x), **PLAIN
        )
        wanted = iterate(cosh(DIM), X0, mask, t, rate=0.6, mean_rate=0.6)
        np.testing.assert_allclose(last[-1], wanted, rtol=1e-8, atol=1e-10)


def test_momentum_and_schedule_are_the_papers() -> None:
    """Z_t = (1 - c1) g + c1 Z_{t-1} and beta_t = beta (1 - c2^t) / (1 - c1^t), for mean and root."""

    def factors(t: int) -> tuple[float, float]:
        factor = (1 - 0.8**t) / (1 - 0.6**t)
        return factor, factor

    wanted = iterate(cosh(DIM), X0, pattern("full", DIM), 5, rate=0.3, mean_rate=0.3, momentum=0.6, factors=factors)
    found = solve(structure="full", rate=0.3, momentum=0.6, schedule=Exponential(0.8), max_iters=5, **PLAIN)
    np.testing.assert_allclose(found.x, wanted, rtol=1e-9)


def test_other_schedules_correct_the_momentum_in_the_mean_only() -> None:
    def factors(t: int) -> tuple[float, float]:
        return 1 / (1 + (t - 1) / 4) / (1 - 0.6**t), 1 / (1 + (t - 1) / 4)

    wanted = iterate(cosh(DIM), X0, pattern("full", DIM), 5, rate=0.3, mean_rate=0.2, momentum=0.6, factors=factors)
    found = solve(structure="full", rate=0.3, mean_rate=0.2, momentum=0.6, schedule=Inverse(4), max_iters=5, **PLAIN)
    np.testing.assert_allclose(found.x, wanted, rtol=1e-9)


def test_an_average_that_points_uphill_is_restarted() -> None:
    """Beyond the minimum, the average of the past gradients points uphill, where no length gives a decrease."""
    found = solve(x0=4 * X0, momentum=0.9, mean_rate=0.3, max_iters=100)
    assert list(found.stop) == ["gtol"]


@pytest.mark.parametrize("structure", ["full", "moving:k=6"])
def test_a_parabola_is_solved_as_by_newtons_method(structure: str) -> None:
    rng = np.random.default_rng(4)
    bowl = Quadratic(positive_definite(DIM, rng), rng.standard_normal(DIM))
    found = solve(bowl, structure=structure, gtol=1e-10)
    assert found.success
    np.testing.assert_allclose(found.x, bowl.center, atol=1e-8)


def test_a_moving_block_of_all_coordinates_needs_one_step_on_a_parabola() -> None:
    rng = np.random.default_rng(5)
    bowl = Quadratic(positive_definite(DIM, rng), rng.standard_normal(DIM))
    assert solve(bowl, structure=Moving(DIM), damping=0.0, gtol=1e-9).nit == 1


def test_damping_shortens_the_first_step_as_its_formula_says() -> None:
    bowl = Quadratic(np.diag([4.0, 1.0]), np.zeros(2))
    x0, step = np.array([1.0, 1.0]), np.array([4.0, 1.0]) / (np.array([4.0, 1.0]) + 10 * 4)
    np.testing.assert_allclose(solve(bowl, x0, structure="moving:k=1", max_iters=1).x, x0 - step, rtol=1e-12)


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_damping_falls_with_the_iterations_or_with_the_gradient(decay: float) -> None:
    """mu_t = 10 max|d_0| min(decay^t, |g_t| / |g_0|)."""
    bowl = Quadratic(np.diag([4.0, 1.0]), np.zeros(2))
    x, d = np.array([1.0, 1.0]), np.array([4.0, 1.0])
    for t in range(3):
        mu = 10 * 4 * min(decay**t, np.linalg.norm(d * x) / np.sqrt(17))
        x = x - d * x / (d + mu)
    found = solve(bowl, np.ones(2), structure="moving:k=1", max_iters=3, damping_decay=decay)
    np.testing.assert_allclose(found.x, x, rtol=1e-12)


def test_precision_starts_at_the_largest_curvature_or_at_precision0() -> None:
    bowl = Quadratic(np.diag([4.0, 1.0]), np.zeros(2))
    m = 0.9 / 2 * (np.array([1.0, 0.25]) - 1)
    s = 4 * (1 + m + m**2 / 2) ** 2
    np.testing.assert_allclose(
        solve(bowl, np.ones(2), structure="diagonal", max_iters=1).x, 1 - np.array([4, 1]) / s, rtol=1e-12
    )
    given = solve(bowl, np.ones(2), structure="diagonal", precision0=4.0, max_iters=1)
    np.testing.assert_allclose(given.x, 1 - np.array([4, 1]) / s, rtol=1e-12)
    other = solve(bowl, np.ones(2), structure="diagonal", precision0=5.0, max_iters=1)
    assert not np.allclose(other.x, given.x)


# ---- the result ---------------------------------------------------------------------------------------------------


def test_the_result_has_scipys_fields_and_the_counts() -> None:
    function, group = cosh(DIM), Heisenberg(DIM, 2, 1)
    calls = {"fun": 0, "jac": 0, "hessp": 0, "diag": 0}

    def counted(name, inner):
        def call(*given):
            calls[name] += 1
            return inner(*given)

        return call

    found = minimize_newton(
        counted("fun", function.fun),
        X0,
        jac=counted("jac", function.jac),
        hessp=counted("hessp", function.hessp),
        hess_diag=counted("diag", function.hess_diag),
        structure=group,
    )
    assert (found.nfev, found.njev, found.nhvp, found.ndiag) == tuple(calls.values())
    assert found.njev == found.nit + 1
    assert found.nhvp == 3 * found.nit
    assert found.ndiag == found.nit
    assert (found.success, found.status) == (True, 0)
    assert found.message.startswith("gtol: ") and list(found.stop) == ["gtol"]
    assert found.fun == function.fun(found.x)
    np.testing.assert_array_equal(found.jac, function.jac(found.x))
    assert np.abs(found.jac).max() <= 1e-5
    assert found.structure == repr(group)


def test_the_inverse_hessian_of_the_result_is_near_the_true_one() -> None:
    function = cosh(DIM)
    found = solve(function, structure="full", gtol=1e-10)
    np.testing.assert_allclose(
        found.hess_inv @ np.eye(DIM), np.linalg.inv(function.hess(found.x)), rtol=1e-3, atol=1e-4
    )


def test_products_without_a_hessian_give_the_same_run() -> None:
    function = cosh(DIM)
    whole = solve(function, max_iters=5)
    given = {"jac": function.jac, "max_iters": 5, "structure": "heisenberg"}
    products = minimize_newton(function.fun, X0, hessp=function.hessp, hess_diag=function.hess_diag, **given)
    rows = minimize_newton(
        function.fun,
        X0,
        hessp=lambda x, v: v @ function.hess(x),
        hessp_vectorized=True,
        hess_diag=function.hess_diag,
        **given,
    )
    differences = minimize_newton(function.fun, X0, hess_diag=function.hess_diag, **given)
    exact_probes = minimize_newton(function.fun, X0, probes=DIM, **given)
    for found, close in ((products, 1e-12), (rows, 1e-12), (differences, 1e-6), (exact_probes, 1e-6)):
        np.testing.assert_allclose(found.x, whole.x, rtol=close, atol=close)
    assert whole.nhess == 5 and whole.nhvp == 0
    assert differences.njev == 6 + 2 * differences.nhvp


def test_fun_may_return_the_gradient_too_and_take_arguments() -> None:
    function, calls = cosh(DIM), []

    def both(x, shift):
        calls.append(1)
        return function.fun(x - shift), function.jac(x - shift)

    hess = {"hess": lambda x, shift: function.hess(x - shift)}
    found = minimize_newton(both, X0 + 1, args=(1.0,), jac=True, structure="heisenberg", **hess)
    wanted = solve(function)
    np.testing.assert_allclose(found.x - 1, wanted.x, atol=1e-9)
    assert len(calls) == wanted.nfev  # the gradient costs no call of its own


def test_a_seed_determines_the_run() -> None:
    function = cosh(DIM)

    def run(seed):
        return minimize_newton(function.fun, X0, jac=function.jac, probes=2, rng=seed, max_iters=4)

    state = np.random.get_state()[1].copy()
    np.testing.assert_array_equal(run(1).x, run(1).x)
    assert not np.array_equal(run(1).x, run(2).x)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_the_start_is_not_changed_and_points_cannot_be() -> None:
    x0, function = X0.copy(), cosh(DIM)

    def careless(x):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 7.0
        return function.fun(x)

    minimize_newton(careless, x0, jac=function.jac, hess=function.hess, max_iters=2)
    np.testing.assert_array_equal(x0, X0)
