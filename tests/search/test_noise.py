"""noise="adapt" finds the minimum of a noisy function."""

import numpy as np
import pytest

from esgroup import Searcher


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
