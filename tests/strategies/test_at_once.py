"""Small dense searches take one kernel for a generation; the general way is its oracle."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.groups import Diagonal, Full
from esgroup.strategies.evolution import Evolution, SearchState
from esgroup.strategies.recombination import Constants
from esgroup.strategies.step_size import CumulativeStepSize
from esgroup.strategies.two_point import TwoPointStepSize
from tests.groups.laws import close
from tests.strategies.states import BOTH, DECODED, PLAIN, copied, evolution_of, placed, some_state

# dimension and values: by the flow of steps and by A h(M); up to as many samples and coordinates as there may be
CASES = [(1, 4), (2, 6), (3, 8), (5, 8), (16, 100), (10, 10), (10, 31), (13, 12), (40, 15), (48, 95)]


@dataclass(frozen=True)
class Apart(CumulativeStepSize):
    """The same rule, which kernels do not know."""

    def drive(self, constants: Constants) -> float | None:
        return None


def moved(evolution: Evolution, state: SearchState, generations: int, n: int) -> SearchState:
    state, rng = copied(state), np.random.default_rng(4)
    for _ in range(generations):
        generation, x = placed(evolution, state, rng.standard_normal((n, evolution.dim)))
        evolution.update(state, generation, np.argsort((x**2) @ np.arange(1.0, evolution.dim + 1), kind="stable"))
    return state


@pytest.mark.parametrize(("dim", "n"), CASES)
def test_at_once_is_the_same_as_step_by_step(dim: int, n: int) -> None:
    one = evolution_of(Full(dim), DECODED)
    two = replace(one, step_size=Apart(), _loops={})
    assert one._at_once(n) is not None and two._at_once(n) is None
    state = some_state(one, np.random.default_rng(dim))
    for first, second in zip(moved(one, state, 3, n), moved(two, state, 3, n), strict=True):
        close(first, second, 1e-9)


def test_the_cases_have_both_steps() -> None:
    assert {evolution_of(Full(dim), DECODED).constants(n).flows for dim, n in CASES} == {True, False}


@pytest.mark.parametrize(
    ("evolution", "n"),
    [
        (evolution_of(Full(4), PLAIN), 8),
        (evolution_of(Full(49), DECODED), 15),
        (evolution_of(Full(20), DECODED), 40),
        (evolution_of(Full(17), DECODED), 100),  # by the flow
        (evolution_of(Diagonal(4), DECODED), 8),
        (replace(evolution_of(Full(4), DECODED), step_size=TwoPointStepSize(), _loops={}), 8),
    ],
)
def test_others_go_step_by_step(evolution: Evolution, n: int) -> None:
    assert evolution._at_once(n) is None


def test_the_adaptation_of_rates_goes_step_by_step() -> None:
    """Whatever the numbers are: its rates are not among them."""
    evolution = evolution_of(Full(4), BOTH)
    state = some_state(evolution, np.random.default_rng(1))
    assert not np.array_equal(moved(evolution, state, 1, 8).rates, state.rates)


@pytest.mark.parametrize("dim", [2, 10])
def test_steps_beyond_all_bounds_are_limited(dim: int) -> None:
    search = Searcher(np.ones(dim), 1.0, structure="full", rng=1)
    search.state.sigma[0] = 1e70
    for _ in range(3):
        search.tell(np.arange(float(len(search.ask()))))
    assert (search.stds <= 1e130).all()
