"""Policies for two tasks of gymnasium: a value of the function is the result of a few simulated episodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.making import fixed_dim, instance_rng, optional_module
from esgroup_problems.problem import OnPoint, Problem, register

_EPISODES = 3


class Policy(ABC):
    """A policy with a vector of weights: which action to take in a state."""

    @abstractmethod
    def controller(self, weights: Array) -> Callable[[NDArray[np.float32]], Any]:
        """Return the function that maps observations to actions."""


@dataclass(frozen=True)
class LinearSwitch(Policy):
    """Action 1 if w^T observation + b > 0, else 0; the weights are (w, b)."""

    def controller(self, weights: Array) -> Callable[[NDArray[np.float32]], int]:
        w, b = weights[:-1], float(weights[-1])
        return lambda observation: int(observation @ w + b > 0)


@dataclass(frozen=True)
class Network(Policy):
    """high tanh(v^T tanh(W (observation / scales) + c) + d), with `hidden` units; the weights are (W, c, v, d)."""

    hidden: int
    scales: tuple[float, ...]
    high: float

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.hidden * (len(self.scales) + 2) + 1

    def controller(self, weights: Array) -> Callable[[NDArray[np.float32]], Array]:
        inputs = len(self.scales)
        into, rest = np.split(weights[:-1], [self.hidden * inputs])
        into = into.reshape(self.hidden, inputs) / self.scales
        shift, out = np.split(rest, 2)
        return lambda observation: self.high * np.tanh([out @ np.tanh(into @ observation + shift) + weights[-1]])


@dataclass(frozen=True)
class Rollouts:
    """Negative mean return of a policy, over episodes whose initial states are given by seeds.

    An environment is made for every call, so that calls in different threads or processes do not share one.
    """

    task: str
    policy: Policy
    seeds: tuple[int, ...]

    def __call__(self, x: Array) -> Array:
        environment = _gymnasium().make(self.task, disable_env_checker=True)
        return np.array([-self._mean_return(environment, weights) for weights in x])

    def _mean_return(self, environment: Any, weights: Array) -> float:
        act = self.policy.controller(weights)
        return float(np.mean([_episode(environment, act, seed) for seed in self.seeds]))


def _episode(environment: Any, act: Callable[[NDArray[np.float32]], Any], seed: int) -> float:
    observation, _ = environment.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(act(observation))
        total, ended = total + float(reward), terminated or truncated
    return total


@register
def cart_pole(dim: int = 5, *, seed: int = 0) -> Problem:
    """Balance a pole on a cart for 500 steps with a linear policy (CartPole-v1).

    f = -(mean number of steps) over episodes from three starts, piecewise constant. The five weights are those of
    position, velocity, angle and angular velocity, and an offset; the cart is pushed right if the sum is positive.
    The minimum -500 is attained in a whole region. Needs gymnasium.
    """
    dim = fixed_dim("cart_pole", dim, 5)
    source = "Barto, Sutton, Anderson: Neuronlike adaptive elements (IEEE Transactions SMC 13, 1983); gymnasium"
    return _problem(cart_pole, "CartPole-v1", LinearSwitch(), np.zeros(dim), seed, source=source, minimum=-500.0)


@register
def pendulum(dim: int = 41, *, seed: int = 0) -> Problem:
    """Swing a pendulum up and hold it with a network of eight units (Pendulum-v1).

    f = -(mean return) over episodes from three starts: the sum of angle^2 + 0.1 velocity^2 + 0.001 torque^2 over 200
    steps. The 41 weights are those of a layer of eight tanh units, which see the cosine and the sine of the angle and
    half the angular velocity, and of the torque. The minimum depends on the starts and is not known: a policy that
    holds the pendulum up from all three costs 40 to 250, one that fails from one of them 400 and more. Needs gymnasium.
    """
    policy = Network(hidden=8, scales=(1.0, 1.0, 2.0), high=2.0)
    dim = fixed_dim("pendulum", dim, policy.size)
    x0 = 0.1 * instance_rng("pendulum", dim, seed).standard_normal(dim)
    source = "gymnasium, Pendulum-v1; the task as in Doya: Reinforcement learning in continuous time (2000)"
    targets = (1200.0, 900.0, 600.0, 400.0, 250.0)
    return _problem(pendulum, "Pendulum-v1", policy, x0, seed, source=source, targets=targets)


def _problem(
    maker: Callable[..., Problem],
    task: str,
    policy: Policy,
    x0: Array,
    seed: int,
    *,
    source: str,
    minimum: float | None = None,
    targets: tuple[float, ...] = (),
) -> Problem:
    _gymnasium()  # if it is missing, the error comes at once
    draws = instance_rng(f"{maker.__name__} starts", len(x0), seed).integers(2**31, size=_EPISODES)
    rows = Rollouts(task, policy, tuple(draws.tolist()))
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        fun=OnPoint(rows),
        batch=rows,
        x0=x0,
        sigma0=0.5,
        start_box=(-1.0, 1.0),
        minimum=minimum,
        targets=targets,
    )


def _gymnasium() -> Any:
    return optional_module("gymnasium", package="gymnasium", extra="sim", who="the simulated tasks")
