"""Points of a mixture search whose values come late: a probe counts as what it was drawn for, and as nothing else."""

from pathlib import Path

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies.base import Proposed, Ranked
from esgroup.strategies.mixture import MixtureSearch
from esgroup.strategies.mixture_descents import PROBE, SCOUT, SEARCH, MixtureSearchState
from tests.groups.laws import close
from tests.strategies.test_mixture_search import BOX, at_age, generation, pair, wells

KNOWN = [-1.0122, 0.0]  # the better minimum of `wells`


def probing(strategy: MixtureSearch) -> MixtureSearchState:
    """A state in which component 0 probes the way to the known optimum of its basin."""
    first = at_age(strategy, strategy._descents.period, [KNOWN])
    state = generation(strategy, first, wells, np.random.default_rng(0))
    assert list(state.phase) == [PROBE, SEARCH] and state.rival[0] == 0
    return state


def told_late(strategy: MixtureSearch, state: MixtureSearchState, drawn: Proposed) -> np.ndarray:
    """Local coordinates of points that were drawn from an earlier state."""
    return strategy.shortened(strategy.local(state, drawn.points), drawn.local)


def of_component(drawn: Proposed, k: int) -> Proposed:
    rows = drawn.local[:, 0] == k
    return Proposed(drawn.points[rows], drawn.local[rows])


def ranked(strategy: MixtureSearch, state: MixtureSearchState, local: np.ndarray, points: np.ndarray):
    return strategy.update(state, Ranked(local, np.argsort(wells(points), kind="stable")))


def tell_others(search: Searcher, n: int = 12) -> None:
    """Values of points near component 1 that were not asked for; 12 are a generation."""
    points = np.random.default_rng(search.nfev).normal([1.0, 0.0], 0.2, (n, 2))
    search.tell(points, wells(points))


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 5, 0, 4, 1, 3]], ids=str)
def test_values_of_a_probe_may_come_generations_late_and_in_any_order(
    order: list[int], stored: bool, tmp_path: Path
) -> None:
    search = Searcher(pair(bounds=BOX), rng=1)
    search.state = probing(search.strategy)
    search.ask()
    probe = of_component(search.ledger.asked[-1].drawn, 0).points
    for _ in range(2):
        tell_others(search)
    assert search.nit == 2 and list(search.state.phase) == [PROBE, SEARCH]
    if stored:
        search.save(tmp_path / "search.npz")
        search = Searcher.load(tmp_path / "search.npz")
    search.tell(probe[order], wells(probe[order]))  # half of a generation
    tell_others(search, 6)
    assert search.nit == 3 and list(search.state.phase) == [SCOUT, SEARCH]
    assert search.state.known.hits[0] == 2  # the descent has ended at the known optimum


def test_points_with_the_numbers_of_a_probe_that_were_not_asked_for_are_none() -> None:
    search = Searcher(pair(bounds=BOX), rng=1)
    search.state = state = probing(search.strategy)
    probe, _ = search.strategy._descents.compared(state, 0, 6)
    told = np.concatenate([probe, probe])  # a generation
    search.tell(told, wells(told))
    assert search.nit == 1 and list(search.state.phase) == [PROBE, SEARCH]
    assert search.state.known.hits[0] == 1 and np.array_equal(search.state.credit, state.credit)


def test_a_probe_that_is_told_twice_counts_once() -> None:
    """The second time nobody has asked for it any longer."""
    search = Searcher(pair(bounds=BOX), rng=1)
    search.state = probing(search.strategy)
    points = search.ask()
    drawn = search.ledger.asked[-1].drawn
    ends, rest = points[drawn.local[:, 0] == 0][-2:], points[drawn.local[:, 0] == 1]
    search.tell(ends, wells(ends))
    for _ in range(2):  # no point between the ends: there is no verdict
        search.tell(ends, wells(ends))
    search.tell(rest, wells(rest))
    assert search.nit == 1 and list(search.state.phase) == [PROBE, SEARCH]
    close(search.state.credit, [2.0, -2.0])  # of 8 points that were asked for, 2 and 6 came


def test_late_points_of_a_probe_belong_to_the_component_that_drew_them() -> None:
    """Wherever the components are by now; its other points belong to the one that is most likely."""
    strategy, rng = pair(bounds=BOX), np.random.default_rng(0)
    state = probing(strategy)
    drawn = strategy.sample(state, 12, rng)
    probe, other = of_component(drawn, 0), of_component(drawn, 1)
    state = ranked(strategy, state, other.local, other.points)
    state.searches[1].mean[:] = [-1.0, 0.0]  # component 1 is where the probe was
    state.searches[1].root[:] *= 0.1
    assert (strategy.local(state, probe.points)[:, 0] == 1).any()
    late = told_late(strategy, state, drawn)
    after = ranked(strategy, state, late[drawn.local[:, 0] == 0], probe.points)
    assert list(after.phase) == [SCOUT, SEARCH]
    close(after.credit - state.credit, [-3.0, 3.0])
    samples = told_late(strategy, state, other)
    assert (samples[:, 1] == -1).all()
    assert np.array_equal(ranked(strategy, state, samples, other.points).credit, state.credit)


def test_late_points_of_a_probe_that_is_over_do_not_count_in_the_next_one() -> None:
    strategy, rng = pair(bounds=BOX), np.random.default_rng(0)
    state = probing(strategy)
    late, drawn = (of_component(strategy.sample(state, 12, rng), 0) for _ in range(2))
    over = strategy.update(state, Ranked(drawn.local, np.array([0, 5, 4, 3, 2, 1])))  # a hill: the descent continues
    assert list(over.phase) == [SEARCH, SEARCH]
    after = ranked(strategy, over, told_late(strategy, over, late), late.points)
    assert list(after.phase) == [SEARCH, SEARCH]
    over.age[0] = strategy._descents.period - 1
    again = generation(strategy, over, wells, rng)
    assert list(again.phase) == [PROBE, SEARCH]
    after = ranked(strategy, again, told_late(strategy, again, late), late.points)
    assert list(after.phase) == [PROBE, SEARCH]
    assert np.array_equal(after.credit, again.credit)  # they count as points that were not asked for
    drawn = of_component(strategy.sample(again, 12, rng), 0)
    assert ranked(strategy, again, drawn.local, drawn.points).phase[0] == SCOUT


def test_probes_of_different_components_are_told_apart() -> None:
    strategy, rng = pair(bounds=BOX), np.random.default_rng(0)
    state = probing(strategy)
    state.phase[1], state.rival[1], state.target[1] = PROBE, 0, KNOWN
    drawn = strategy.sample(state, 12, rng)
    numbers = [set(of_component(drawn, k).local[:, 2]) for k in (0, 1)]
    assert [len(own) for own in numbers] == [1, 1] and numbers[0] != numbers[1]
    assert list(ranked(strategy, state, told_late(strategy, state, drawn), drawn.points).phase) == [SCOUT, SEARCH]
