"""Policies are played as gymnasium plays them, and the populations are those of the differential equation."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import esgroup_problems as zoo
from esgroup.checks import Array
from esgroup_problems import populations
from esgroup_problems.populations import lynx_hare
from esgroup_problems.simulators import LinearSwitch, Network, cart_pole, pendulum

HARES = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6]
HARES += [16.2, 24.7]
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]

# ---- gymnasium ---------------------------------------------------------------------------------------------------


def test_a_switch_is_on_where_the_sum_is_positive() -> None:
    act = LinearSwitch().controller(np.array([1.0, -2.0, 0.0, 0.5, -1.0]))
    assert act(np.array([3.0, 0.5, 9.0, 0.0])) == 1  # 3 - 1 - 1 = 1
    assert act(np.array([2.0, 0.5, 9.0, -0.2])) == 0  # 2 - 1 - 0.1 - 1 = -0.1


def test_a_network_by_hand() -> None:
    policy = Network(hidden=2, scales=(1.0, 4.0), high=3.0)
    assert policy.size == 9
    act = policy.controller(np.array([1.0, 2.0, 3.0, 4.0, 0.1, 0.2, 5.0, -6.0, 0.3]))
    first, second = np.tanh(1 * 0.5 + 2 * 0.25 + 0.1), np.tanh(3 * 0.5 + 4 * 0.25 + 0.2)
    assert act(np.array([0.5, 1.0])) == pytest.approx([3 * np.tanh(5 * first - 6 * second + 0.3)], rel=1e-14)


@pytest.mark.parametrize(("maker", "task"), [(cart_pole, "CartPole-v1"), (pendulum, "Pendulum-v1")])
def test_a_value_is_the_negative_mean_return_of_the_episodes(maker: type[zoo.Problem], task: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    problem = maker(seed=3)
    weights = np.random.default_rng(1).standard_normal(problem.dim)
    act, returns = problem.batch.policy.controller(weights), []
    for seed in problem.batch.seeds:
        environment = gymnasium.make(task)  # a new one for each, with its checks
        observation, _ = environment.reset(seed=seed)
        rewards, over = [], False
        while not over:
            observation, reward, terminated, truncated, _ = environment.step(act(observation))
            rewards.append(reward)
            over = terminated or truncated
        returns.append(np.sum(rewards))
    assert len(returns) == 3 and len(set(problem.batch.seeds)) == 3
    assert problem.fun(weights) == pytest.approx(-np.mean(returns), rel=1e-12)


def test_the_pole_falls_at_once_without_control_and_stands_with_it() -> None:
    pytest.importorskip("gymnasium")
    problem = cart_pole(seed=1)
    upright = np.array([0.1, 0.5, 1.0, 1.0, 0.0])  # push to where the pole leans, and a little back to the middle
    assert problem.minimum == -500 == problem.fun(upright)
    assert -12 < problem.fun(np.zeros(5)) < -7


def test_threads_do_not_disturb_each_other() -> None:
    pytest.importorskip("gymnasium")
    problem = cart_pole()
    x = np.random.default_rng(2).standard_normal((12, 5))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(problem.fun, x)) == problem.batch(x).tolist()


def test_a_simulated_task_has_its_own_number_of_weights() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(ValueError, match="dim must be 5 for cart_pole, got 4"):
        cart_pole(4)
    with pytest.raises(ValueError, match="dim must be 41 for pendulum, got 20"):
        pendulum(20)


def test_without_gymnasium_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"the simulated tasks need gymnasium: pip install 'esgroup\[sim\]'"):
        cart_pole()


# ---- hares and lynxes --------------------------------------------------------------------------------------------


def residuals(weights: Array) -> Array:
    """The model in its textbook form, on populations instead of logarithms, with another integrator."""
    a, b, c, d, hares, lynxes = np.exp(weights)

    def slopes(_: float, y: Array) -> list[float]:
        return [(a - b * y[1]) * y[0], (d * y[0] - c) * y[1]]

    solution = solve_ivp(slopes, (0, 20), [hares, lynxes], "DOP853", range(21), rtol=1e-9, atol=1e-9)
    return np.concatenate([np.log(solution.y[0] / HARES), np.log(solution.y[1] / LYNXES)])


def test_the_misfit_is_that_of_the_textbook_model() -> None:
    problem = lynx_hare()
    for x in (problem.x0, problem.minimizer + 0.1):
        assert problem.fun(x) == pytest.approx((residuals(x) ** 2).sum(), rel=1e-7)


def test_in_equilibrium_the_populations_stay() -> None:
    # a / b = 20 lynxes and c / d = 30 hares
    x = np.log([1.0, 0.05, 0.6, 0.02, 30.0, 20.0])
    expected = (np.log(30 / np.array(HARES)) ** 2).sum() + (np.log(20 / np.array(LYNXES)) ** 2).sum()
    assert lynx_hare().fun(x) == pytest.approx(expected, rel=1e-9)


def test_the_minimum_is_that_of_least_squares() -> None:
    problem = lynx_hare()
    found = least_squares(residuals, problem.minimizer + 0.03, xtol=1e-10, ftol=1e-12)
    assert 2 * found.cost == pytest.approx(problem.minimum, abs=1e-7)
    assert problem.minimum == pytest.approx(2.0186612, abs=1e-7)
    np.testing.assert_allclose(found.x, problem.minimizer, atol=1e-5)


def test_what_cannot_be_integrated_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lynx_hare()
    assert np.isnan(problem.fun(np.full(6, 800.0)))  # exp overflows
    assert np.isnan(problem.fun(np.full(6, np.nan)))
    monkeypatch.setattr(populations, "_PATIENCE", 100)
    assert np.isnan(problem.fun(problem.x0))


def test_the_model_has_six_weights() -> None:
    with pytest.raises(ValueError, match="dim must be 6 for lynx_hare, got 4"):
        lynx_hare(4)
