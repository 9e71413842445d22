"""Policies of three tasks of classic control: the tasks themselves, and the networks that act in them.

    cart_pole         gymnasium's CartPole-v1: a cart is pushed to the left or right so that a pole stays upright
    acrobot           Acrobot-v1: two joined links are swung up by a torque of -1, 0 or 1 on the joint between them
    pendulum          Pendulum-v1: a pendulum is swung up and held upright by a torque in [-2, 2]

All episodes of all candidates are simulated side by side, which is what makes an evaluation cheap. First states are
those of gymnasium, whose simulation the tests compare with ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from large_networks import Layers, RealProblem, split, weights_in
from large_runs import Array

EPISODES = 3  # of a policy; from the same starts in every evaluation of a run
SIZES = (1000, 5000)


# ---- tasks ----------------------------------------------------------------------------------------------------------


class Control(NamedTuple):
    """A task of gymnasium, simulated for many episodes at once.

    States have the shape (parts, candidates, episodes), observations and outputs of policies (candidates, episodes,
    numbers), and actions, rewards and ends (candidates, episodes).
    """

    name: str
    steps: int  # an episode that has not ended is cut after so many
    scales: tuple[float, ...]  # by which observations are multiplied before a policy has them
    outputs: int
    observe: Callable[[Array], Array]  # states to observations
    act: Callable[[Array], Array]  # outputs to actions
    step: Callable[[Array, Array], tuple[Array, Array, Array]]  # states and actions to states, rewards and ends
    floor: float = -math.inf


def seen(*parts: Array) -> Array:
    """Return an observation, in single precision as gymnasium gives it."""
    return np.stack(parts, axis=-1).astype(np.float32)


def choice(outputs: Array) -> Array:
    """Return the number of the largest output."""
    found: Array = outputs.argmax(axis=-1)
    return found


CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5  # masses, and half the length of the pole
PUSH, CART_SECONDS = 10.0, 0.02
FARTHEST, STEEPEST = 2.4, math.radians(12)  # position and angle at which the episode ends


def step_cart_pole(states: Array, actions: Array) -> tuple[Array, Array, Array]:
    """Push a cart to the right where the action is 1, to the left where it is 0; every step has the reward 1.

    With the force F, the masses M and m of the cart and the pole, half of its length l and its angle a from upright,
    by one step of Euler's method (Barto, Sutton, Anderson 1983; Florian 2007; without friction):

        q   = (F + m l a'^2 sin a) / (M + m)
        a'' = (g sin a - q cos a) / (l (4/3 - m cos^2 a / (M + m)))
        x'' = q - m l a'' cos a / (M + m)
    """
    _, speed, angle, turning = states
    sine, cosine, mass = np.sin(angle), np.cos(angle), CART + POLE
    q = (np.where(actions == 1, PUSH, -PUSH) + POLE * HALF_LENGTH * turning**2 * sine) / mass
    angular = (9.8 * sine - q * cosine) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / mass))
    linear = q - POLE * HALF_LENGTH * angular * cosine / mass
    found = states + CART_SECONDS * np.stack([speed, linear, turning, angular])
    ended = (abs(found[0]) > FARTHEST) | (abs(found[2]) > STEEPEST)
    return found, np.ones(ended.shape), ended


ACROBOT_SECONDS = 0.2
FASTEST = np.array([4 * math.pi, 9 * math.pi])[:, None, None]  # of the first and the second angle


def acrobot_change(states: Array, torques: Array) -> Array:
    """Return the derivative of the state of two joined links: their angles a and b, and how fast these change.

    The first angle is 0 where the link hangs, and b is the one between the links. All masses, lengths and moments of
    inertia are 1, centers of mass are in the middle of the links (Sutton and Barto 1998, section 11.3, where f1, f2
    are called phi):

        d1 = 7/2 + cos b,  d2 = 5/4 + 1/2 cos b,  f2 = 1/2 g sin(a + b)
        f1 = -1/2 sin b (b'^2 + 2 a' b') + 3/2 g sin a + f2
        b'' = (torque + f1 d2 / d1 - 1/2 a'^2 sin b - f2) / (5/4 - d2^2 / d1)
        a'' = -(d2 b'' + f1) / d1
    """
    a, b, da, db = states
    half_cosine, half_sine = 0.5 * np.cos(b), 0.5 * np.sin(b)
    d1, d2 = 3.5 + 2 * half_cosine, 1.25 + half_cosine
    f2 = 4.9 * np.sin(a + b)
    f1 = 14.7 * np.sin(a) + f2 - half_sine * db * (db + 2 * da)
    ratio = d2 / d1
    found = np.empty_like(states)
    found[:2] = states[2:]
    found[3] = (torques + ratio * f1 - half_sine * da**2 - f2) / (1.25 - ratio * d2)
    found[2] = -(d2 * found[3] + f1) / d1
    return found


def step_acrobot(states: Array, actions: Array) -> tuple[Array, Array, Array]:
    """Apply the torques -1, 0 and 1 for the actions 0, 1 and 2; a step has the reward -1, or 0 if it is the last one.

    One step of the classical Runge-Kutta method. Angles are then taken into [-pi, pi], velocities cut off. The episode
    ends when the tip is one length above the bar from which the links hang.
    """
    torques, h = actions - 1.0, ACROBOT_SECONDS
    k1 = acrobot_change(states, torques)
    k2 = acrobot_change(states + h / 2 * k1, torques)
    k3 = acrobot_change(states + h / 2 * k2, torques)
    k4 = acrobot_change(states + h * k3, torques)
    found = states + h / 6 * (k1 + 2 * (k2 + k3) + k4)
    angles, speeds = found[:2], found[2:]
    angles -= 2 * math.pi * np.ceil((angles - math.pi) / (2 * math.pi))
    np.clip(speeds, -FASTEST, FASTEST, out=speeds)
    ended = -np.cos(angles[0]) - np.cos(angles[0] + angles[1]) > 1.0
    return found, ended - 1.0, ended


def see_acrobot(states: Array) -> Array:
    a, b, da, db = states
    return seen(np.cos(a), np.sin(a), np.cos(b), np.sin(b), da, db)


PENDULUM_SECONDS, MOST_TURNING = 0.05, 8.0


def step_pendulum(states: Array, actions: Array) -> tuple[Array, Array, Array]:
    """Turn a pendulum by torques; the reward is -(a^2 + a'^2 / 10 + torque^2 / 1000) with its state before the step.

    The angle a from upright, in [-pi, pi] for the reward, of a rod with mass and length 1 and g = 10 obeys
    a'' = 15 sin a + 3 torque. Its velocity changes first, and is cut off; the angle then moves with the new one.
    """
    angle, turning = states
    off = (angle + math.pi) % (2 * math.pi) - math.pi
    rewards = -(off**2 + 0.1 * turning**2 + 0.001 * actions**2)
    turned = turning + PENDULUM_SECONDS * (15 * np.sin(angle) + 3 * actions)
    turned = np.clip(turned, -MOST_TURNING, MOST_TURNING)
    found = np.stack([angle + PENDULUM_SECONDS * turned, turned])
    return found, rewards, np.zeros(rewards.shape, dtype=bool)


CONTROLS = {
    "cart_pole": Control(
        "CartPole-v1", 500, (1.0,) * 4, 2, lambda states: seen(*states), choice, step_cart_pole, floor=-500.0
    ),
    "acrobot": Control(
        "Acrobot-v1", 500, (*(1.0,) * 4, 1 / (4 * math.pi), 1 / (9 * math.pi)), 3, see_acrobot, choice, step_acrobot
    ),
    "pendulum": Control(
        "Pendulum-v1",
        200,
        (1.0, 1.0, 1 / 8),
        1,
        lambda states: seen(np.cos(states[0]), np.sin(states[0]), states[1]),
        lambda outputs: 2.0 * np.tanh(outputs[..., 0]),
        step_pendulum,
    ),
}


def first_states(control: Control, starts: Sequence[int]) -> Array:
    """Return the states, of shape (parts, episodes), in which gymnasium's episodes with these seeds start."""
    import gymnasium

    environment = gymnasium.make(control.name, disable_env_checker=True)
    found = []
    for start in starts:
        environment.reset(seed=start)
        found.append(np.array(environment.unwrapped.state, dtype=float))
    environment.close()
    return np.stack(found, axis=-1)


# ---- policies -------------------------------------------------------------------------------------------------------

Networks = list[tuple[Array, Array]]  # for each layer, (candidates, inputs, outputs) and (candidates, 1, outputs)


def policy_layers(inputs: int, outputs: int, about: int) -> Layers:
    """Return two hidden layers of the same width whose number of weights is nearest to a given one."""
    choices = [((h, inputs), (h, h), (outputs, h)) for h in range(1, 2 + math.isqrt(about))]
    return min(choices, key=lambda layers: abs(weights_in(layers) - about))


def networks_of(weights: Array, layers: Layers) -> Networks:
    """Return the networks of rows of weights, with matrices as products with observations need them."""
    return [
        (np.ascontiguousarray(matrix.transpose(0, 2, 1)), bias[:, None, :].copy())
        for matrix, bias in split(weights, layers)
    ]


def actions_of(control: Control, networks: Networks, states: Array) -> Array:
    """Return what every candidate does in the states of its episodes; networks have tanh between their layers."""
    found = np.array(control.scales) * control.observe(states)
    for number, (matrix, bias) in enumerate(networks):
        found = np.matmul(np.tanh(found) if number else found, matrix) + bias
    return control.act(found)


def sums_of_rewards(control: Control, first: Array, weights: Array, layers: Layers) -> Array:
    """Return the sums of rewards, (candidates, episodes), of rows of weights in episodes with these first states.

    An episode that is over is simulated on, but not counted, until all those of its candidate are over, which is then
    dropped. So what is computed for a candidate does not depend on the others, to the last digit.
    """
    networks = networks_of(weights, layers)
    states = np.repeat(first[:, None, :], len(weights), axis=1)
    sums = np.zeros(states.shape[1:])
    over = np.zeros(sums.shape, dtype=bool)
    rows = np.arange(len(weights))  # of the candidates that are not dropped
    for _ in range(control.steps):
        states, rewards, ended = control.step(states, actions_of(control, networks, states))
        sums[rows] += np.where(over, 0.0, rewards)
        over |= ended
        going = ~over.all(axis=1)
        if not going.all():
            rows, states, over = rows[going], states[:, going], over[going]
            networks = [(matrix[going], bias[going]) for matrix, bias in networks]
        if not len(rows):
            break
    return sums


def policy(name: str, about: int, seed: int) -> RealProblem:
    """Return a policy: minus the mean sum of rewards over a few episodes, whose starts the seed determines."""
    control = CONTROLS[name]
    layers = policy_layers(len(control.scales), control.outputs, about)
    first = first_states(control, np.random.SeedSequence([23, seed]).generate_state(EPISODES).tolist())

    def values(weights: Array) -> Array:
        found: Array = -sums_of_rewards(control, first, weights, layers).mean(axis=1)
        return found

    return RealProblem(layers, values, floor=control.floor)
