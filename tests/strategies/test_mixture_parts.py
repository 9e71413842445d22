"""Parts of a batch: a mixture search whose points are asked for in smaller numbers, or with a budget for no more."""

import numpy as np
import pytest

import esgroup
from esgroup.distributions.mixture import Mixture
from esgroup.strategies.mixture import MixtureSearch
from tests.groups.laws import close
from tests.strategies.test_mixture_search import BOX, number_found, rastrigin, wells


@pytest.mark.parametrize("n", [1, 3, 13, 60, 119])
def test_part_of_a_batch_is_spread_over_the_descents(n: int) -> None:
    strategy, rng = MixtureSearch(Mixture.spread(20, bounds=BOX, rng=0), bounds=BOX), np.random.default_rng(0)
    state, total = strategy.start(), np.zeros(20)
    for _ in range(1000):
        counts = np.bincount(strategy.sample(state, n, rng).local[:, 0].astype(int), minlength=20)
        assert counts.sum() == n
        assert counts.max() <= (0 if n < 6 else 6) + n % 6  # no component has two generations
        assert (counts > 0).sum() >= -(-n // 6) - 1
        total += counts
    close(total / total.sum(), np.full(20, 0.05), 0.035)  # 5 standard errors if one component gets all


@pytest.fixture(scope="module")
def many_basins() -> Mixture:
    return Mixture.spread(500, bounds=[(-5.0, 5.0)] * 14, structure="diagonal", rng=1)


@pytest.mark.parametrize("evals", [1, 3, 4000])
def test_less_than_one_batch_of_many_basins_gives_modes_and_the_best_point(evals: int, many_basins: Mixture) -> None:
    search = esgroup.Searcher(many_basins, bounds=[(-5.0, 5.0)] * 14, rng=1)
    assert search.popsize > 4000
    points = search.ask(evals)
    values = rastrigin(points)
    search.tell(points, values)
    result = search.result
    assert (search.nfev, search.nit) == (evals, 0)
    assert result.fun == values.min() and np.array_equal(result.x, points[values.argmin()])
    assert result.modes[0].value == result.fun and np.array_equal(result.modes[0].point, result.x)
    told = {tuple(point): value for point, value in zip(points, values, strict=True)}
    valued = [mode for mode in result.modes if not np.isnan(mode.value)]
    assert all(told[tuple(mode.point)] == mode.value for mode in valued)
    assert len({tuple(mode.point) for mode in valued}) == len(valued) >= evals // 14


def test_all_optima_are_found_point_by_point_with_twenty_points_out() -> None:
    box, optima = [(-2.0, 2.0)], np.roots([4, 0, -4, 0.1])[[0, 1], None]
    rng, out = np.random.default_rng(1), []
    search = esgroup.Searcher(Mixture.spread(2, bounds=box, rng=3), bounds=box, rng=3, max_evals=5_000)
    while not search.stop():
        while len(out) < 20:
            out.append(search.ask(1))
        point = out.pop(rng.integers(20))
        search.tell(point, wells(point))
    assert list(search.stop()) == ["modes"]
    assert number_found(optima, search.state, 1e-4) == (search.state.known.hits > 0).sum() == 2
