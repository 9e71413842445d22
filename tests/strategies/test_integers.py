"""A search among integers that has come to rest is widened again, and ends when that brings nothing."""

import math
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies.in_domain import innermost
from esgroup.strategies.integers import Widening
from tests.search.support import generation, searcher, sphere

WIDENING = Widening(patience=3, fruitless=6)


def due(values: list[float], widest: float = 0.2, widening: Widening = WIDENING) -> list[int]:
    """The generations, from 0, after which a search with these best values is widened."""
    memory = np.array(widening.start())
    return [i for i, value in enumerate(values) if widening.due(memory, value, widest) > 0]


def test_a_search_is_at_rest_after_so_many_generations_without_a_better_value() -> None:
    assert due([9.0, 5.0, 5.0, 5.0, 5.0]) == [4]
    assert due([9.0, 5.0, 6.0, 7.0, 5.0]) == [4]
    assert due([9.0, 5.0, 5.0, 5.0, 4.0, 4.0, 4.0]) == []


def test_wide_integers_are_not_at_rest() -> None:
    assert due([9.0] + 9 * [5.0], widest=0.5) == []
    assert due([9.0] + 9 * [5.0], widest=0.499) != []


def test_gains_count_relative_to_all_that_was_gained() -> None:
    """A gain of 2e-12 is more than 1e-12 of 1, and less than 1e-12 of 4."""
    best = [0.0, 0.0, -2e-12, -2e-12, -2e-12]
    assert due([1.0, *best]) == [] and due([4.0, *best]) == [4]
    assert due([4.0, *(2.5 * value for value in best)]) == []


def test_a_search_is_widened_until_three_rests_in_a_row_at_one_value_bring_nothing() -> None:
    phase = [9.0, 5.0, 5.0, 5.0, 5.0]
    assert due(8 * phase) == [4, 9, 14]  # the rests at 9, 14 and 19 are fruitless
    better = [8.0, 4.0, 4.0, 4.0, 4.0]
    assert due([*phase, *phase, *6 * better]) == [4, 9, 14, 19, 24]


def test_a_search_is_widened_until_six_rests_in_a_row_at_worse_values_bring_nothing() -> None:
    phase, worse = [9.0, 5.0, 5.0, 5.0, 5.0], [9.0, 6.0, 6.0, 6.0, 6.0]
    assert due([*phase, *9 * worse]) == list(range(4, 35, 5))
    assert due([*phase, *worse, *phase, *9 * worse]) == list(range(4, 30, 5))  # one at the same value counts twice
    nearly = [9.0, *4 * [5.0 + 3e-6]]
    assert due([*phase, *9 * nearly]) == [4, 9, 14]


def test_the_last_time_it_is_widened_a_little_only() -> None:
    memory = np.array(WIDENING.start())
    values = [9.0, *4 * [5.0], *9 * [9.0, *4 * [6.0]]]
    shares = [WIDENING.due(memory, value, 0.2) for value in values]
    assert [share for share in shares if share] == [*6 * [1.0], WIDENING.last]


def test_an_optimum_that_is_found_again_is_no_better_one() -> None:
    """The values of two rests at one optimum differ by about the tolerance."""
    values = [value for i in range(8) for value in (9.0, *4 * [5.0 - 1e-10 * i])]
    assert due(values) == [4, 9, 14]


def test_a_better_value_after_the_last_rest_begins_anew() -> None:
    assert due([*5 * [9.0, 5.0, 5.0, 5.0, 5.0], *8 * [5.0], *4 * [1.0]]) == [4, 9, 14, 36]


def test_infinite_values_are_no_gain_and_the_first_finite_one_is_the_first_of_all() -> None:
    """With the infinite one as the first, no later gain would be worth mentioning."""
    assert due([math.inf, math.inf, 2.0, 1.0, math.inf, 1.0, 1.0]) == [6]
    assert due([math.inf, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]) == []
    assert due(9 * [math.inf]) == [3, 7]


def test_a_value_of_minus_infinity_leaves_the_memory_finite() -> None:
    memory = np.array(WIDENING.start())
    for value in (3.0, -math.inf, -math.inf, 2.0, 2.0, 2.0, -math.inf, 5.0, 5.0, 5.0, 5.0, 5.0):
        WIDENING.due(memory, value, 0.1)
        assert np.isfinite(memory).all()


# ---- in a search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["full", "diagonal", "heisenberg:k1=1,k2=1"])
@pytest.mark.parametrize("options", [{}, {"mirrored": True}, {"step_size": "tpa"}, {"bounds": (-9, 9)}], ids=str)
def test_a_widened_search_is_one_that_begins_at_its_best_point(structure: str, options: dict[str, Any]) -> None:
    """One whose memory of rests is another, with the first standard deviations and no correlations."""
    search = searcher(structure=structure, integer=[0], sigma0=[0.6, 0.5, 0.3], **options)
    first, rests = search.strategy.view(search.state).spread(), search.state.rest[4]
    narrow, best_x = np.inf, np.zeros(3)
    while search.state.rest[4] == rests:
        narrow, best_x = search.strategy.view(search.state).spread()[1], search.best_x
        generation(search, sphere)
        assert search.nfev < 3000
    assert narrow < 1e-3
    best = search.strategy.domain.encode(best_x[None], search.state.mean)[0]
    begun = innermost(search.strategy).evolution.start(best, first)
    for name, array in search.state._asdict().items():
        if name not in ("rest", "age"):
            np.testing.assert_array_equal(array, getattr(begun, name), err_msg=name)


@pytest.mark.parametrize("options", [{"algorithm": "paper"}, {"noise": "adapt"}], ids=str)
def test_the_published_update_and_noise_know_no_rest(options: dict[str, Any]) -> None:
    assert searcher(integer=[0], **options).state.rest.size == 0


def test_searches_without_integers_know_no_rest() -> None:
    assert searcher(bounds=(0, 5)).state.rest.size == 0


def trap(x: np.ndarray) -> float:
    """The optimum at (1, 2.0), and a rest at (0, -2.0), from which no flip alone is better."""
    return float((x[1] + 2) ** 2 + 0.5 if x[0] == 0 else (x[1] - 2) ** 2)


def test_a_search_leaves_integers_that_are_best_only_for_the_present_real_coordinates() -> None:
    """It starts at the bottom of the wrong valley, and needs a flip and another real coordinate at once."""
    at_first, at_last = 0, 0
    for seed in range(60):
        search = Searcher([0.0, -2.0], bounds=[(0, 1), (-4, 4)], integer=[0], rng=seed)
        while not search.stop():
            search.tell([trap(x) for x in search.ask()])
            at_first += search.state.rest[4] == 0 and search.best_f < 0.5 - 1e-6
            if search.best_f < 0.5 - 1e-6:
                break
        at_last += search.best_f < 0.5 - 1e-6
    assert at_last >= 1.5 * at_first and at_last >= 9  # 5 and 11 of 60; 9 and 16 of 120


def test_a_search_that_finds_nothing_more_ends_by_itself() -> None:
    search = Searcher([3.0, 2.0, 1.0], 0.5, integer=[0], rng=1)
    while not search.stop():
        generation(search, sphere)
    assert search.result.success and search.nfev < 4000 and search.state.rest[5] == 6
