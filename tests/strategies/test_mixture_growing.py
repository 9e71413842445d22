"""The list of optima of a mixture search grows with what is found, and is stored as long as it is."""

from pathlib import Path

import numpy as np
import pytest

import esgroup
from esgroup.distributions.mixture import Mixture
from esgroup.strategies.mixture import MixtureSearch
from tests.strategies.test_mixture_search import BOX, assert_same, himmelblau, number_found, pair, run


def test_the_list_grows_before_it_is_full_and_keeps_what_it_has() -> None:
    strategy, rng = pair(), np.random.default_rng(0)
    state = strategy.start()
    assert len(state.known.hits) == 24
    state.known.hits[:23], state.known.points[:23] = 2.0, rng.standard_normal((23, 2))
    state.best.points[:], state.best.values[:] = rng.standard_normal((27, 2)), np.arange(27)
    grown = strategy._descents.with_room(state)
    assert len(grown.known.hits) == 50 and grown.known.points.shape == (50, 2) and grown.best.points.shape == (53, 2)
    assert np.array_equal(grown.known.points[:24], state.known.points)
    assert np.array_equal(grown.known.hits[:24], state.known.hits)
    assert not grown.known.hits[24:].any()
    assert np.array_equal(grown.best.values, [*range(24), *[np.inf] * 26, 24, 25, 26])
    assert np.array_equal(grown.best.points[[0, 23, 50, 52]], state.best.points[[0, 23, 24, 26]])
    state.known.hits[22] = 0
    assert strategy._descents.with_room(state) is state  # there is a slot for each component
    grown.known.hits[:] = 1
    longer = strategy._descents.resized(grown, 300)
    longer.known.hits[:] = 1
    longest = strategy._descents.with_room(longer)
    assert len(longest.known.hits) == 500
    longest.known.hits[:] = 1
    assert strategy._descents.with_room(longest).known.hits.shape == (500,)


def test_a_search_whose_list_has_grown_is_stored_and_continues_exactly(tmp_path: Path) -> None:
    search = esgroup.Searcher(pair(bounds=BOX), rng=1)
    search.state.known.points[:24], search.state.known.hits[:24] = np.random.default_rng(0).uniform(-6, 6, (24, 2)), 1
    for _ in range(5):
        search.tell(himmelblau(search.ask()))
    assert len(search.state.known.hits) == 50
    search.save(tmp_path / "search.npz")
    again = esgroup.Searcher.load(tmp_path / "search.npz")
    for _ in range(20):
        for each in (search, again):
            each.tell(himmelblau(each.ask()))
    assert_same(search.state, again.state)


def test_lists_of_other_lengths_than_their_state_are_refused() -> None:
    strategy = pair()
    stored = strategy.start()
    with pytest.raises(ValueError, match=r"'hits' .*at most 23 .*24"):
        pair(most_modes=23).checked(stored)
    with pytest.raises(ValueError, match=r"best/values' .*27.*26"):
        strategy.checked(stored._replace(best=stored.best._replace(values=np.zeros(26))))


def vincent(x: np.ndarray) -> np.ndarray:
    return -np.sin(10 * np.log(x)).mean(axis=1)


def test_all_36_optima_of_vincents_function_are_found_with_2_components() -> None:
    """The narrowest basin has 1/2300 of the area, and the list begins with 24 slots."""
    box = np.array([(0.25, 10.0)] * 2)
    strategy = MixtureSearch(Mixture.spread(2, bounds=box, rng=0), bounds=box)
    state, _ = run(strategy, vincent, 0, 60_000)
    line = np.exp((np.pi / 2 + 2 * np.pi * np.arange(-2, 4)) / 10)
    optima = np.array([(a, b) for a in line for b in line])
    assert strategy.criteria[1].look(state, strategy.stds(state))
    assert number_found(optima, state, 1e-4) == (state.known.hits > 0).sum() == 36
