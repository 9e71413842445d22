"""Points that are asked for one by one are as good as whole generations: they are drawn together."""

import copy
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from tests.groups.laws import close

DIM, POPSIZE = 6, 9
START, STEPS = np.linspace(-1, 2, DIM), np.linspace(0.3, 1.5, DIM)
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "two_point": {"step_size": "tpa"},
    "mirrored": {"mirrored": True},
    "adapted": {"noise": "adapt"},
    "paper": {"algorithm": "paper"},
    "diagonal": {"structure": "diagonal"},
    "bounds": {"bounds": (-2.5, 4.0)},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def uneven(x: np.ndarray) -> float:
    return float((x - 0.3) ** 2 @ np.array([1.0, 5.0, 2.0, 0.5, 3.0, 1.0]) + x[0] * x[1])


def searcher(generations: int = 0, **options: Any) -> Searcher:
    search = Searcher(START, STEPS, popsize=POPSIZE, rng=1, **options)
    for _ in range(generations):
        search.tell([uneven(x) for x in search.ask()])
    return search


def out(search: Searcher) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, local coordinates and tags of all asks, in their order."""
    drawn = [asked.drawn for asked in search.ledger.asked]
    tags = [np.zeros(len(d.points), dtype=int) if d.tags is None else d.tags for d in drawn]
    return np.concatenate([d.points for d in drawn]), np.concatenate([d.local for d in drawn]), np.concatenate(tags)


@every_option
@pytest.mark.parametrize("sizes", [[1] * 9, [2, 3, 4], [4, 4, 1]], ids=str)
def test_points_asked_for_in_parts_are_those_of_a_generation(options: dict[str, Any], sizes: list[int]) -> None:
    whole, parts = searcher(4, **options), searcher(4, **options)
    X = whole.ask()
    assert np.array_equal(np.concatenate([parts.ask(n) for n in sizes]), X)
    for one, other in zip(out(whole), out(parts), strict=True):
        assert np.array_equal(one, other)
    assert parts.ledger.reserve is None and np.array_equal(whole.rng.random(3), parts.rng.random(3))


@every_option
def test_a_loop_over_single_points_equals_whole_generations(options: dict[str, Any]) -> None:
    whole, single = searcher(**options), searcher(**options)
    first = whole.sigma
    for _ in range(6):
        X = whole.ask()
        whole.tell([uneven(x) for x in X])
        for i in range(POPSIZE):
            x = single.ask(1)
            close(x[0], X[i], 1e-9)
            single.tell([uneven(x[0])])
    assert single.nit == whole.nit == 6 and single.ledger.lag == 0.0
    for mine, yours in zip(whole.state, single.state, strict=True):
        close(mine, yours, 1e-8)
    assert whole.sigma != first


def test_samples_asked_for_one_by_one_are_orthogonal() -> None:
    search = Searcher(np.zeros(20), 1.0, structure="diagonal", popsize=12, rng=3)
    z = np.concatenate([search.ask(1) for _ in range(12)])
    close(z @ z.T, np.diag((z**2).sum(axis=1)))
    more = np.concatenate([search.ask(1) for _ in range(12)])  # the next frame is another one
    assert np.abs(z @ more.T).max() > 0.1


def test_mirrored_pairs_come_one_by_one() -> None:
    search = Searcher(np.zeros(20), 1.0, structure="diagonal", popsize=12, mirrored=True, rng=3)
    z = np.concatenate([search.ask(1) for _ in range(12)])
    close(z[6:], -z[:6])


def test_two_point_samples_come_one_by_one_and_change_the_step_size() -> None:
    search = searcher(3, step_size="tpa")
    before, score = search.state.sigma[0], search.state.memory[-1]
    for _ in range(POPSIZE):
        x = search.ask(1)
        search.tell(x, [uneven(x[0])])
    assert search.nit == 4 and search.state.sigma[0] != before and search.state.memory[-1] != score


def test_the_next_points_are_those_of_the_next_generation() -> None:
    whole, parts = searcher(2), searcher(2)
    X = np.concatenate([whole.ask(), whole.ask(), whole.ask()])
    assert np.array_equal(np.concatenate([parts.ask(n) for n in (4, 4, 4, 8, 7)]), X)
    assert [len(asked.out) for asked in parts.ledger.asked] == [4, 4, 4, 8, 7]


def test_many_points_take_what_is_in_reserve_and_draw_the_others_together() -> None:
    search, twin = searcher(2), searcher(2)
    X = np.concatenate([search.ask(4), search.ask(30)])
    assert np.array_equal(X, np.concatenate([twin.ask(), twin.ask(25)])) and search.ledger.reserve is None


def test_a_whole_generation_leaves_the_reserve_for_later() -> None:
    search, twin = searcher(2), searcher(2)
    first, whole, rest = search.ask(4), search.ask(), search.ask(5)
    assert np.array_equal(np.concatenate([first, rest]), twin.ask()) and np.array_equal(whole, twin.ask())


def test_points_of_the_old_distribution_are_not_handed_out_after_a_move() -> None:
    search = searcher(2)
    search.ask(2)
    assert search.ledger.reserve is not None
    x = search.ask()
    search.tell(x, [uneven(one) for one in x])
    assert search.ledger.reserve is None
    x = search.ask(1)
    close(search.strategy.local(search.state, x), search.ledger.asked[-1].drawn.local, 1e-8)


def test_a_generation_in_which_all_failed_ends_the_reserve_as_well() -> None:
    """The samples would be as good, but the counts of generations, by which ages are told, would not."""
    search = searcher(2)
    search.ask(2)
    search.ask()
    search.tell([np.nan] * POPSIZE)
    assert search.ledger.reserve is None and search.nit == 3


def test_single_points_are_read_only_and_keep_no_others_in_memory() -> None:
    search = searcher()
    x = search.ask(1)
    with pytest.raises(ValueError, match="WRITEABLE"):
        x.flags.writeable = True
    drawn = search.ledger.asked[0].drawn
    assert x.base is drawn.points and drawn.points.base is None and drawn.local.base is None


def test_a_whole_generation_by_number_is_as_quick_as_by_default() -> None:
    """It has the memo of its strategy, which saves part of the update."""
    one, two = searcher(), searcher()
    one.ask(), two.ask(POPSIZE)
    assert one.ledger.asked[0].drawn.memo is not None and two.ledger.asked[0].drawn.memo is not None
    assert np.array_equal(one.ledger.asked[0].drawn.points, two.ledger.asked[0].drawn.points)


def test_injected_points_take_the_places_of_the_next_single_points() -> None:
    search, twin = searcher(2), searcher(2)
    X, mine = twin.ask(), np.arange(2.0 * DIM).reshape(2, DIM)
    assert np.array_equal(search.ask(3), X[:3])
    search.inject(mine)
    assert np.array_equal(np.concatenate([search.ask(1) for _ in range(6)]), np.concatenate([mine, X[5:]]))


def test_matrices_asked_for_one_by_one_are_those_of_a_generation() -> None:
    whole = Searcher(MatrixGaussian(np.zeros((3, 2))), rng=1)
    parts = copy.deepcopy(whole)
    X = whole.ask()
    assert np.array_equal(np.concatenate([parts.ask(1) for _ in range(len(X))]), X)


@pytest.mark.parametrize(("told", "asked"), [(0, 9), (9, 9), (18, 7), (24, 1), (25, 9), (30, 9)])
def test_an_ask_is_cut_to_what_the_budget_leaves(told: int, asked: int) -> None:
    """If nothing is left, and points are asked for nevertheless, it is a whole generation."""
    search = searcher(max_evals=25)
    X = np.random.default_rng(0).standard_normal((told, DIM))
    if told:
        search.tell(X, [uneven(x) for x in X])
    assert len(search.ask()) == asked and len(search.ask(20)) == 20
