"""Points told late, in parts, out of order or without being asked for: the present distribution places them."""

from dataclasses import replace

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies.recombination import Cumulative
from tests.groups.laws import close
from tests.strategies import dense
from tests.strategies.states import DAMPING, NEGATIVE_MEAN, dense_twin

DIM, POPSIZE = 5, 8
START, STEPS = np.linspace(-1, 2, DIM), np.linspace(0.3, 1.5, DIM)
STRUCTURES = ["full", "triangular", "diagonal", "heisenberg:k1=1,k2=2"]
every_structure = pytest.mark.parametrize("structure", STRUCTURES)


def uneven(x: np.ndarray) -> np.ndarray:
    return (x - 0.3) ** 2 @ np.array([1.0, 5.0, 2.0, 0.5, 3.0]) + x[:, 0] * x[:, 1] + x[:, 4]


def searcher(structure: str) -> Searcher:
    """Return a search with known constants after a few generations."""
    search = Searcher(START, STEPS, structure=structure, popsize=POPSIZE, rng=1)
    evolution = replace(search.strategy.evolution, recombination=Cumulative(NEGATIVE_MEAN, DAMPING), _constants={})
    vars(search.strategy)["evolution"] = evolution  # a cached property
    for _ in range(3):
        search.tell(uneven(search.ask()))
    return search


def twin_of(search: Searcher, n: int = POPSIZE) -> dense.Dense:
    """Return the same search on dense matrices, for a generation of n values."""
    twin, state = dense_twin(search.strategy.evolution, search.state, n), search.state
    twin.p_s, twin.p_c, twin.t = state.path_s.copy(), state.path_c.copy(), search.nit
    twin.fisher = state.fisher.copy()
    return twin


def whitened(twin: dense.Dense, x: np.ndarray, cut: bool = True, most: np.ndarray | None = None) -> np.ndarray:
    """z = A^-1 (x - mean) / (sigma D), no longer than sqrt(n) + 2 n / (n + 2) (Hansen 2011), or than `most`."""
    z = np.linalg.solve(twin.a, ((x - twin.mean) / (twin.sigma * twin.d)).T).T
    lengths = np.linalg.norm(z, axis=1)
    longest = np.sqrt(DIM) + 2 * DIM / (DIM + 2) if most is None else most
    return z * np.minimum(1, longest / lengths)[:, None] if cut else z


def drawn_lengths(twin: dense.Dense, x: np.ndarray) -> np.ndarray:
    """Lengths of the samples in the distribution from which they were drawn."""
    return np.linalg.norm(whitened(twin, x, cut=False), axis=1)


def assert_equal(search: Searcher, twin: dense.Dense) -> None:
    state = search.state
    close([state.mean, state.path_s, state.path_c], [twin.mean, twin.p_s, twin.p_c], 1e-8)
    root = twin.sigma * twin.d[:, None] * twin.a
    close(state.sigma[0] * state.scale[:, None] * search.structure.dense(state.root), root, 1e-8)


@every_structure
def test_points_of_an_older_distribution_are_whitened_in_the_present_one_as_long_as_they_were(structure: str) -> None:
    search = searcher(structure)
    late, x = search.ask(), search.ask()
    twin = twin_of(search)
    then = drawn_lengths(twin, late)
    search.tell(x, uneven(x))
    twin.move(whitened(twin, x, cut=False), np.argsort(uneven(x)))
    assert_equal(search, twin)
    assert (drawn_lengths(twin, late) > then).any() and (drawn_lengths(twin, late) < then).any()
    search.tell(late, uneven(late))
    twin.move(whitened(twin, late, most=then), np.argsort(uneven(late)))
    assert_equal(search, twin)
    assert search.nit == 5 and search.nfev == 5 * POPSIZE


@every_structure
def test_the_last_ask_is_whitened_too_if_others_moved_the_search_meanwhile(structure: str) -> None:
    search = searcher(structure)
    x, late = search.ask(), search.ask()
    then = drawn_lengths(twin_of(search), late)
    search.tell(x, uneven(x))
    twin = twin_of(search)
    search.tell(uneven(late))  # of the last ask, whose distribution is gone
    twin.move(whitened(twin, late, most=then), np.argsort(uneven(late)))
    assert_equal(search, twin)


@every_structure
def test_points_never_asked_count_as_if_they_were_no_longer_than_a_long_sample(structure: str) -> None:
    search, rng = searcher(structure), np.random.default_rng(2)
    twin = twin_of(search)
    x = search.mean + rng.standard_normal((POPSIZE, DIM)) * np.logspace(-2, 1, POPSIZE)[:, None]
    z, uncut = whitened(twin, x), whitened(twin, x, cut=False)
    assert not np.allclose(z, uncut) and np.isclose(z, uncut).all(axis=1).any()
    search.tell(x, uneven(x))
    twin.move(z, np.argsort(uneven(x)))
    assert_equal(search, twin)


@every_structure
def test_own_points_are_not_shortened(structure: str) -> None:
    """However long they are, and in whatever order they are told."""
    search = searcher(structure)
    search.ask(2000)
    x = search.ledger.asked[0].drawn.points
    lengths = np.linalg.norm(whitened(twin_of(search), x, cut=False), axis=1)
    long = np.argsort(lengths)[-POPSIZE:]
    assert lengths[long].min() > np.sqrt(DIM) + 2 * DIM / (DIM + 2)
    twin = twin_of(search)
    search.tell(x[long], uneven(x[long]))
    twin.move(whitened(twin, x[long], cut=False), np.argsort(uneven(x[long])))
    assert_equal(search, twin)


@every_structure
def test_a_generation_may_be_told_in_parts_and_mixed_with_others(structure: str) -> None:
    search, rng = searcher(structure), np.random.default_rng(3)
    asked, foreign = search.ask(), search.mean + 0.3 * rng.standard_normal((2, DIM))
    before, twin = search.mean, twin_of(search, POPSIZE + 1)
    search.tell(asked[[6, 1, 3]], uneven(asked[[6, 1, 3]]))
    search.tell([(point, value) for point, value in zip(foreign, uneven(foreign), strict=True)])
    assert np.array_equal(search.mean, before) and search.nit == 3 and search.nfev == 3 * POPSIZE + 5
    search.tell(asked[[0, 2, 4, 5]], uneven(asked[[0, 2, 4, 5]]))  # one more than a generation: all count
    x = np.concatenate([asked[[6, 1, 3]], foreign, asked[[0, 2, 4, 5]]])
    z = np.concatenate([whitened(twin, asked, cut=False)[[6, 1, 3]], whitened(twin, foreign)])
    z = np.concatenate([z, whitened(twin, asked, cut=False)[[0, 2, 4, 5]]])
    twin.move(z, np.argsort(uneven(x)))
    assert_equal(search, twin)
    assert search.nit == 4


@every_structure
def test_injected_points_are_asked_as_they_are_and_count_as_shortened(structure: str) -> None:
    search = searcher(structure)
    far = search.mean + np.array([[50.0, 0.0, 0.0, 0.0, 1.0], [0.01, 0.0, 0.0, 0.0, 0.0]])
    search.inject(far)
    twin, x = twin_of(search), search.ask()
    assert np.array_equal(x[:2], far) and x.shape == (POPSIZE, DIM)
    search.tell(uneven(x))
    z = np.concatenate([whitened(twin, x[:2]), whitened(twin, x[2:], cut=False)])
    twin.move(z, np.argsort(uneven(x)))
    assert_equal(search, twin)


@every_structure
def test_failed_runs_rank_last_in_the_order_told(structure: str) -> None:
    search = searcher(structure)
    twin, x = twin_of(search), search.ask()
    values = uneven(x)
    values[[1, 4]] = np.nan
    search.tell(values)
    order = np.concatenate([[i for i in np.argsort(values) if i not in (1, 4)], [1, 4]]).astype(int)
    twin.move(whitened(twin, x, cut=False), order)
    assert_equal(search, twin)


@every_structure
def test_the_points_of_the_last_ask_in_their_order_are_that_ask(structure: str) -> None:
    one, two = searcher(structure), searcher(structure)
    for _ in range(3):
        x = one.ask()
        one.tell(uneven(x))
        two.tell(two.ask().copy(), uneven(x))
    for mine, yours in zip(one.state, two.state, strict=True):
        assert np.array_equal(mine, yours)
