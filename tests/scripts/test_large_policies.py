"""Episodes that are simulated side by side are those of gymnasium, to which policies are shown one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import large_policies as policies
import numpy as np
import pytest
from large_networks import Layers, weights_in
from large_policies import CONTROLS, Control

pytestmark = pytest.mark.scripts
gymnasium = pytest.importorskip("gymnasium")

Array = np.ndarray
STARTS = [11, 12, 13]
HIDDEN = {name: policies.policy_layers(len(one.scales), one.outputs, 300) for name, one in CONTROLS.items()}


def random_weights(name: str) -> Array:
    return np.random.default_rng(7).normal(size=(9, weights_in(HIDDEN[name]))) * 0.5


def made(control: Control) -> Any:
    return gymnasium.make(control.name, disable_env_checker=True)


class Course(NamedTuple):
    """An episode, step by step."""

    seen: Array
    actions: Array
    rewards: Array
    ended: Array


def theirs(control: Control, weights: Array, layers: Layers, start: int) -> Course:
    """An episode of gymnasium, with a network that is written out for one observation."""
    environment, found, at = made(control), [], 0
    network = []
    for outputs, inputs in layers:
        middle, end = at + outputs * inputs, at + outputs * (inputs + 1)
        network.append((weights[at:middle].reshape(outputs, inputs), weights[middle:end]))
        at = end
    sight, _ = environment.reset(seed=start)
    ended = cut = False
    while not (ended or cut):
        signal = np.array(control.scales) * sight
        for matrix, bias in network[:-1]:
            signal = np.tanh(matrix @ signal + bias)
        signal = network[-1][0] @ signal + network[-1][1]
        action = 2 * np.tanh(signal) if control.name == "Pendulum-v1" else int(np.argmax(signal))
        was, (sight, reward, ended, cut, _) = sight, environment.step(action)
        found.append((was, np.squeeze(action), reward, ended))
    return Course(*(np.array(part) for part in zip(*found, strict=True)))


def ours(control: Control, weights: Array, layers: Layers, first: Array, steps: int) -> Course:
    """So many steps of our simulation, of all candidates and episodes, whether they are over or not."""
    networks = policies.networks_of(weights, layers)
    states = np.repeat(first[:, None, :], len(weights), axis=1)
    found = []
    for _ in range(steps):
        actions = policies.actions_of(control, networks, states)
        sight = control.observe(states)
        states, rewards, ended = control.step(states, actions)
        found.append((sight, actions, rewards, ended))
    return Course(*(np.array(part) for part in zip(*found, strict=True)))


def lengths(played: list[list[Course]]) -> list[int]:
    return [len(course.rewards) for row in played for course in row]


def agree(name: str, weights: Array, layers: Layers, starts: Sequence[int] = STARTS) -> list[list[Course]]:
    """Compare both, step by step and in sum, and return the episodes of gymnasium."""
    control = CONTROLS[name]
    played = [[theirs(control, row, layers, start) for start in starts] for row in weights]
    first = policies.first_states(control, starts)
    found = ours(control, weights, layers, first, max(lengths(played)))
    sums = policies.sums_of_rewards(control, first, weights, layers)
    for row, courses in enumerate(played):
        for number, course in enumerate(courses):
            ours_here = Course(*(part[: len(course.rewards), row, number] for part in found))
            for mine, other in zip(ours_here, course, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-6)
            assert sums[row, number] == pytest.approx(course.rewards.sum(), rel=1e-9)
    return played


# ---- episodes


@pytest.mark.parametrize("name", CONTROLS)
def test_random_policies_go_through_the_same_steps_as_in_gymnasium(name: str) -> None:
    taken = set(lengths(agree(name, random_weights(name), HIDDEN[name])))
    assert taken == {200} if name == "pendulum" else len(taken) > 7  # episodes and candidates end at different times


def test_a_pole_that_is_balanced_stays_up_for_as_long_as_in_gymnasium() -> None:
    toward = np.array([0.1, 0.3, 1.0, 0.5])  # position, velocity, angle, its velocity
    steady = np.concatenate([-toward, toward, [0.0, 0.0]])
    blind = np.concatenate([np.zeros(8), [0.0, 1.0]])  # always to the right
    late = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])  # by the angle alone
    played = agree("cart_pole", np.stack([blind, steady, late]), ((2, 4),))
    assert lengths(played)[3:6] == [500] * 3 and not played[1][0].ended.any() and max(lengths(played)[:3]) < 15
    assert all(15 < one < 100 for one in lengths(played)[6:])


def test_links_that_are_pushed_the_way_they_turn_swing_up_when_they_do_in_gymnasium() -> None:
    def pushing(first: float, second: float) -> Array:
        matrix = np.zeros((3, 6))
        matrix[0, 4:], matrix[2, 4:] = (-first, -second), (first, second)  # of the velocities of the links
        return np.concatenate([matrix.ravel(), [0.0, -1.0, 0.0]])

    still = np.concatenate([np.zeros(18), [0.0, 1.0, 0.0]])
    played = agree("acrobot", np.stack([pushing(0.0, 1.0), still, pushing(-1.0, 0.5)]), ((3, 6),))
    swinging = lengths(played)[:3] + lengths(played)[6:]
    assert max(swinging) < 150 and len(set(swinging)) > 4 and lengths(played)[3:6] == [500] * 3
    assert all(course.ended[-1] and course.rewards[-1] == 0.0 for row in (played[0], played[2]) for course in row)


def test_a_pendulum_that_is_held_upright_has_the_small_costs_of_gymnasium() -> None:
    angles, _ = policies.first_states(CONTROLS["pendulum"], range(60))
    upright = [int(start) for start in np.argsort(abs(angles))[:3]]
    held, let_go = np.array([0.0, -8.0, -16.0, 0.0]), np.zeros(4)
    played = agree("pendulum", np.stack([held, let_go]), ((1, 3),), upright)
    assert all(course.rewards.sum() > -3.0 for course in played[0])
    assert all(course.rewards.sum() < -300.0 for course in played[1])


@pytest.mark.parametrize("name", CONTROLS)
def test_the_value_of_a_policy_is_that_of_its_episodes_in_gymnasium(name: str) -> None:
    """From the same starts as ever, which a seed of the problem determines."""
    problem = policies.policy(name, 1000, 3)
    starts = np.random.SeedSequence([23, 3]).generate_state(3).tolist()
    weights = np.random.default_rng(2).normal(size=(2, problem.dim)) * 0.2
    expected = [
        -np.mean([theirs(CONTROLS[name], row, problem.layers, start).rewards.sum() for start in starts])
        for row in weights
    ]
    assert problem.values(weights).tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_candidate_has_the_same_sums_alone_and_among_others(name: str) -> None:
    control, layers = CONTROLS[name], HIDDEN[name]
    first = policies.first_states(control, STARTS)
    weights = random_weights(name)
    together = policies.sums_of_rewards(control, first, weights, layers)
    assert len(np.unique(together)) > 7
    alone = [policies.sums_of_rewards(control, first, row[None], layers)[0].tolist() for row in weights]
    assert together.tolist() == alone
    assert policies.sums_of_rewards(control, first, weights[::-1], layers).tolist() == alone[::-1]


def test_a_candidate_is_simulated_until_the_last_of_its_episodes_is_over() -> None:
    control, weights, many = CONTROLS["cart_pole"], random_weights("cart_pole"), []
    layers, first = HIDDEN["cart_pole"], policies.first_states(control, STARTS)

    def step(states: Array, actions: Array) -> tuple[Array, Array, Array]:
        many.append(states.shape[1])
        return control.step(states, actions)

    taken = policies.sums_of_rewards(control._replace(step=step), first, weights, layers).max(axis=1)  # 1 for each step
    assert many == [(taken > number).sum() for number in range(int(taken.max()))]


# ---- tasks


@pytest.mark.parametrize("name", CONTROLS)
def test_first_states_and_the_time_limit_are_those_of_gymnasium(name: str) -> None:
    control = CONTROLS[name]
    environment = made(control)
    expected = np.stack([environment.reset(seed=start)[0] for start in STARTS])
    sight = control.observe(policies.first_states(control, STARTS)[:, None, :])[0]
    assert sight.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(sight, expected, rtol=3e-7)  # of the acrobot gymnasium has cosines in single precision
    assert environment.spec.max_episode_steps == control.steps


@pytest.mark.parametrize(
    ("name", "spread", "actions"),
    [
        ("cart_pole", [2.6, 3.0, 0.25, 3.0], [0, 1]),
        ("acrobot", [np.pi, np.pi, 4 * np.pi, 9 * np.pi], [0, 1, 2]),
        ("pendulum", [12.0, 8.0], [-2.0, -0.3, 1.7]),
    ],
)
def test_one_step_from_anywhere_is_that_of_gymnasium(name: str, spread: list[float], actions: list[float]) -> None:
    """Also where angles go round, velocities are cut off and episodes end."""
    control, rng = CONTROLS[name], np.random.default_rng(4)
    states = rng.uniform(-1, 1, size=(len(spread), 40, 5)) * np.array(spread)[:, None, None]
    chosen = rng.choice(actions, size=(40, 5))
    found, rewards, ended = control.step(states, chosen)
    sights, environment = control.observe(found), made(control)
    for place in np.ndindex(40, 5):
        environment.reset(seed=1)
        environment.unwrapped.state = states[:, *place].copy()
        sight, reward, over, _, _ = environment.step([chosen[place]] if name == "pendulum" else int(chosen[place]))
        np.testing.assert_allclose(found[:, *place], environment.unwrapped.state, rtol=1e-11, atol=1e-11)
        assert sights[place].tolist() == pytest.approx(sight.tolist(), rel=3e-7, abs=1e-7)
        assert rewards[place] == pytest.approx(reward, rel=1e-12) and ended[place] == over
    if name != "pendulum":
        assert 10 < ended.sum() < 190
