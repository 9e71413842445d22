"""What the values of a search say, from records that are made up."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from esgroup.stopping.values import Record, Stagnation, looks_noisy, still_improving
from esgroup.strategies import Traits


def seen(record: Record, dim: int, popsize: int) -> Any:
    """A search with this record, as a rule sees it."""
    strategy = SimpleNamespace(size=dim, popsize=popsize, traits=Traits(dim, popsize, "a search"))
    return SimpleNamespace(record=record, strategy=strategy)


@pytest.mark.parametrize("popsize", [10, 1000])
def test_values_that_get_no_better_are_no_stagnation_before_500_generations(popsize: int) -> None:
    """However short the history that the rule compares: 132 generations with 10 points, 101 with 1000."""
    record = Record()
    for nit in range(1, 501):
        record.add([1.0 + nit, 2.0 + nit, 3.0 + nit])
        assert (Stagnation().look(seen(record, 2, popsize)) is not None) == (nit == 500)


def test_values_have_varied_if_one_generation_differs_from_another() -> None:
    record = Record()
    for value, varied in ((1.0, False), (1.0 + 1e-15, False), (0.5, True), (0.5, True)):
        record.add([value] * 3)
        assert record.varied == varied


# ---- narrow searches


def recorded(best: np.ndarray, differences: np.ndarray) -> Record:
    record = Record()
    for value, difference in zip(best, differences, strict=True):
        record.add([value, value + difference, value + 2 * difference])
    return record


def test_sharp_functions_wait_for_values_that_get_better_and_smooth_ones_do_not() -> None:
    """With n = lambda = 10 the last 80 generations are compared with the 80 before."""
    n, s = 400, 1e-4
    falling, level = np.linspace(5.0, 4.0, n), np.full(n, 5.0)
    sharp, smooth = np.geomspace(1.0, s, n), np.geomspace(1.0, s**2, n)
    assert still_improving(recorded(falling, sharp), 10, 10, s)
    assert not still_improving(recorded(falling, smooth), 10, 10, s)
    assert not still_improving(recorded(level, sharp), 10, 10, s)
    assert not still_improving(recorded(-falling, sharp), 10, 10, s)
    long_ago = np.where(np.arange(n) < n - 160, falling, 4.0)
    assert not still_improving(recorded(long_ago, sharp), 10, 10, s)
    assert still_improving(recorded(np.where(np.arange(n) < n - 80, 5.0, 4.9), sharp), 10, 10, s)
    assert not still_improving(recorded(np.where(np.arange(n) < n - 30, 5.0, 4.9), sharp), 10, 10, s)
    assert still_improving(recorded(level[:100], sharp[:100]), 10, 10, 1e-12)  # too few to say
    assert not still_improving(Record(), 10, 10, s)


def test_infinite_values_are_no_sign_of_a_smooth_function() -> None:
    record = recorded(np.linspace(5.0, 4.0, 400), np.full(400, np.inf))
    assert still_improving(record, 10, 10, 1e-4)


# ---- noise


def record_of(best: np.ndarray, spread: float = 1.0) -> Record:
    record = Record()
    for value in best:
        record.add([value, value + spread, value + 2 * spread])
    return record


def test_the_ratio_of_bartels_decides() -> None:
    """Squared differences of successive ranks, over squared differences from their mean 74.5, against 1.5."""
    rng = np.random.default_rng(1)
    found = []
    for weight in np.linspace(0, 1, 21):  # from a trend to independent values
        best = (1 - weight) * np.linspace(0, 3, 150) + weight * rng.standard_normal(150)
        ranks = best.argsort().argsort()
        ratio = sum((ranks[t + 1] - ranks[t]) ** 2 for t in range(149)) / sum((r - 74.5) ** 2 for r in ranks)
        found.append(looks_noisy(record_of(best)))
        assert found[-1] == (ratio > 1.5)
    assert True in found and False in found


def test_half_of_all_generations_count_and_150_at_least() -> None:
    rng = np.random.default_rng(2)
    trend, noise = np.linspace(1e3, 10, 200), rng.standard_normal(200)
    assert looks_noisy(record_of(noise[:150])) and not looks_noisy(record_of(noise[:149]))
    assert looks_noisy(record_of([*trend, *noise])) and not looks_noisy(record_of([*noise, *trend]))
    assert not looks_noisy(record_of([*trend, *trend - 990, *noise[:150]]))


def test_rounding_is_no_noise_and_infinite_values_are_no_evidence() -> None:
    noise = np.random.default_rng(3).standard_normal(200)
    assert not looks_noisy(record_of(100 + 1e-13 * noise, 1e-13)) and looks_noisy(record_of(100 + 1e-6 * noise, 1e-6))
    noise[70] = np.inf
    assert not looks_noisy(record_of(noise))


def test_values_as_large_as_numbers_can_be_are_judged_like_others() -> None:
    noise = np.random.default_rng(3).uniform(-1e308, 0.5e308, 200)
    assert looks_noisy(record_of(noise, 5e307)) and not looks_noisy(record_of(np.sort(noise), 5e307))


def test_equal_values_are_no_noise() -> None:
    assert not looks_noisy(record_of(np.ones(200)))
