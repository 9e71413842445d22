"""Searches to test with: generic states, and their dense twins."""

import numpy as np

from esgroup.groups import Group
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.recombination import Cumulative
from tests.groups.elements import element
from tests.strategies import dense

Rng = np.random.Generator

NEGATIVE_MEAN, DAMPING = 0.4, 0.8
PLAIN, DECODED = (None, None), (Decoding(), None)
ADAPTED, BOTH = (None, RateAdaptation()), (Decoding(), RateAdaptation())


def evolution_of(group: Group, options: tuple) -> Evolution:
    return Evolution(group, Cumulative(NEGATIVE_MEAN, DAMPING), *options)


def some_state(evolution: Evolution, rng: Rng) -> SearchState:
    state = evolution.start(rng.standard_normal(evolution.dim), rng.uniform(0.3, 2.0, evolution.dim))
    state.root[:] = element(evolution.group, rng)
    evolution.refresh(state)
    return state


def dense_twin(evolution: Evolution, state: SearchState, popsize: int) -> dense.Dense:
    k = dense.numbers(evolution.dim, popsize, evolution.group.dof, NEGATIVE_MEAN, DAMPING)
    root, sigma = evolution.group.dense(state.root), float(state.sigma[0])
    decoded, adapted = evolution.decoding is not None, evolution.adaptation is not None
    return dense.Dense(evolution.group, k, state.mean.copy(), sigma, state.scale.copy(), root, decoded, adapted)


def copied(state: SearchState) -> SearchState:
    return SearchState(*(array.copy() for array in state))


def placed(evolution: Evolution, state: SearchState, z: np.ndarray) -> tuple[Generation, np.ndarray]:
    """A generation of given samples, and its points."""
    generation, x = Generation.empty(*z.shape), np.empty(z.shape)
    generation.z[:-1] = z
    evolution.place(state, generation, x)
    return generation, x
