"""noise="adapt" finds the minimum of a noisy function, and a search without it says when values look noisy."""

from pathlib import Path

import numpy as np
import pytest

from esgroup import Searcher, Wishart, minimize


def start(noise: str | None, seed: int, max_evals: int) -> Searcher:
    return Searcher(np.full(10, 3.0), 2.0, noise=noise, rng=seed, max_evals=max_evals, target=1e-8)


def reaches_one(noise: str | None, seed: int) -> bool:
    """Whether the mean reaches f < 1 on an ellipsoid whose values have errors ~ N(0, 1)."""
    scales, errors = np.logspace(0, 6, 10), np.random.default_rng(1000 + seed)
    search = start(noise, seed, 10_000)
    while not {"max_evals", "tolx"} & search.stop().keys():
        values = search.ask() ** 2 @ scales
        search.tell(values + errors.standard_normal(len(values)))
        if search.mean**2 @ scales < 1:
            return True
    return False


def test_an_ellipsoid_is_solved_below_its_noise() -> None:
    assert sum(reaches_one("adapt", seed) for seed in range(5)) >= 4


@pytest.mark.slow
def test_rastrigin_is_solved_with_the_default_population() -> None:
    solved = 0
    for seed in range(5):
        search = start("adapt", seed, 500_000)
        while not search.stop():
            x = search.ask()
            search.tell(100 + (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=1))
        solved += "target" in search.stop()
    assert solved >= 4


# ---- what the message says


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_the_message_says_when_values_look_noisy_and_which_point_to_take(level: float) -> None:
    rng = np.random.default_rng(4)
    result = minimize(lambda x: x @ x + level * rng.standard_normal(), np.full(5, 3.0), 1.0, max_evals=3000, rng=5)
    said = [word in result.message for word in ("looks noisy", "xmean", 'noise="adapt"')]
    assert said == [level > 0] * 3 and result.noisy == (level > 0)


def test_a_search_that_runs_is_not_judged_in_its_result_and_says_it_when_asked() -> None:
    rng, search = np.random.default_rng(6), Searcher(np.zeros(3), 1.0, rng=7)
    while search.nit < 200:
        search.tell(rng.standard_normal(len(search.ask())))
    assert search.noisy and not search.result.noisy and "noisy" not in search.result.message


@pytest.mark.parametrize("start, options", [(np.zeros(3), {"noise": "adapt"}), (Wishart(mean=np.eye(2)), {})], ids=str)
def test_what_has_no_other_option_is_not_advised_to_take_it(start: object, options: dict) -> None:
    rng, search = np.random.default_rng(8), Searcher(start, rng=9, max_iters=200, **options)
    while not search.stop():
        search.tell(rng.standard_normal(len(search.ask())))
    assert "use result.xmean" in search.result.message and "adapt" not in search.result.message


def test_a_loaded_search_says_the_same(tmp_path: Path) -> None:
    rng, search = np.random.default_rng(10), Searcher(np.zeros(3), 1.0, rng=11, max_iters=200)
    while not search.stop():
        search.tell(rng.standard_normal(len(search.ask())))
    search.save(tmp_path / "search.npz")
    assert search.result.noisy and Searcher.load(tmp_path / "search.npz").result.message == search.result.message
