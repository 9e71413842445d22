"""A search from evaluated points begins where the best of them are, as wide as they are spread."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.domains import Arrays
from esgroup.domains.box import moved_inside
from esgroup.groups import Diagonal
from esgroup.search.warm_start import feasible_rows, start_from_data
from tests.search.support import everything, generation, run, sphere

RNG = np.random.default_rng(11)
X = RNG.normal(size=(80, 3)) * [1.0, 5.0, 0.2] + [3.0, -4.0, 10.0]
F = ((X - [2.5, -6.0, 10.1]) ** 2 / [1.0, 25.0, 0.04]).sum(axis=1)


def test_mean_and_covariance_are_those_of_the_best_quarter() -> None:
    best = X[np.argsort(F)[:20]]
    mean = best.mean(axis=0)
    spread = X.std(axis=0)
    cov = sum(np.outer(x - mean, x - mean) for x in best) / 20 + np.diag((0.1 * spread) ** 2)
    x0, sigma0, cov0 = start_from_data(X, F, None)
    assert np.allclose(x0, mean) and sigma0 is None and np.allclose(cov0, cov, rtol=1e-12)
    search = Searcher.from_data(X, F, rng=1)
    assert np.allclose(search.mean, mean) and np.allclose(search.stds, np.sqrt(np.diag(cov)))
    assert np.allclose(np.cov(search.ask(40_000).T), cov, atol=0.03 * cov.max())


@pytest.mark.parametrize(("quantile", "count"), [(0.1, 8), (0.5, 40), (1.0, 80), (0.001, 2), (0.26, 21)])
def test_the_share_of_the_best_can_be_chosen(quantile: float, count: int) -> None:
    best = X[np.argsort(F)[:count]]
    assert np.allclose(start_from_data(X, F, None, quantile)[0], best.mean(axis=0))


def test_sigma0_sets_the_overall_step() -> None:
    plain, sized = Searcher.from_data(X, F), Searcher.from_data(X, F, 0.01)
    assert sized.sigma == pytest.approx(0.01)
    assert np.allclose(sized.stds / sized.sigma, plain.stds / plain.sigma)


def test_sigma0_for_each_coordinate_leaves_the_correlations() -> None:
    search = Searcher.from_data(X, F, [1.0, 2.0, 3.0])
    assert np.allclose(search.stds, [1, 2, 3])
    cov = start_from_data(X, F, None)[2]
    cov0 = start_from_data(X, F, [1.0, 2.0, 3.0])[2]
    assert cov is not None and cov0 is not None
    stds = np.sqrt(np.diag(cov))
    assert np.allclose(cov0, cov / np.outer(stds, stds)) and np.allclose(np.diag(cov0), 1.0)


def test_values_of_failed_runs_are_left_out() -> None:
    bad = np.concatenate([X, [[1e6, 1e6, 1e6], [-1e6, 0, 0]]])
    values = [*F, math.nan, math.inf]
    for a, b in zip(start_from_data(bad, values, None), start_from_data(X, F, None), strict=True):
        assert a is b is None or np.array_equal(a, b)


def test_the_order_of_the_points_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(80)
    first, second = start_from_data(X, F), start_from_data(X[order], F[order])
    assert np.allclose(first[0], second[0]) and np.allclose(first[2], second[2])


def test_the_best_point_counts_as_found_but_not_as_an_evaluation() -> None:
    search = Searcher.from_data(X, F, rng=1)
    assert np.array_equal(search.best_x, X[F.argmin()]) and search.best_f == F.min()
    assert (search.nfev, search.nit, search.nfailed) == (0, 0, 0)
    assert np.array_equal(search.result.x, X[F.argmin()]) and search.result.fun == F.min()
    generation(search, lambda x: F.min() + 1.0)
    assert search.best_f == F.min() and search.nfev == search.popsize
    generation(search, lambda x: F.min() - 1.0)
    assert search.best_f == F.min() - 1.0


def test_a_target_that_is_known_to_be_reached_stops_at_once() -> None:
    assert list(Searcher.from_data(X, F, target=1e3).stop()) == ["target"]


def test_nothing_of_the_data_is_kept_or_modified() -> None:
    points, values = X.copy(), F.copy()
    search = Searcher.from_data(points, values, rng=1)
    assert np.array_equal(points, X) and np.array_equal(values, F)
    before = everything(search)
    points[:], values[:] = 0.0, 0.0
    assert everything(search) == before
    with pytest.raises(ValueError, match="read-only"):
        search.best_x[0] = 1.0


def test_data_may_be_lists() -> None:
    first, second = Searcher.from_data(X.tolist(), F.tolist(), rng=1), Searcher.from_data(X, F[:, None], rng=1)
    assert everything(first) == everything(second)


def test_options_are_those_of_the_search() -> None:
    search = Searcher.from_data(X, F, structure="diagonal", popsize=21, max_evals=26, rng=1)
    assert search.structure == Diagonal(3) and search.popsize == 21 and search.ask().shape == (21, 3)
    search.tell(np.arange(21.0))
    assert search.ask().shape == (5, 3)
    with pytest.raises(TypeError, match="no argument 'popsiz': did you mean popsize"):
        Searcher.from_data(X, F, popsiz=3)


# ---- spaces -------------------------------------------------------------------------------------------------------


def test_the_mean_is_moved_within_bounds() -> None:
    search = Searcher.from_data(X, F, bounds=[(4, 9), (-10, 10), (None, 9.5)], rng=1)
    assert search.mean[0] == 4.0 and search.mean[2] == 9.5
    points = search.ask(200)
    assert (points[:, 0] >= 4).all() and (points[:, 2] <= 9.5).all()


def test_the_best_point_is_the_best_feasible_one() -> None:
    search = Searcher.from_data(X, F, bounds=[(3, None), (None, None), (None, None)])
    inside = X[:, 0] >= 3
    assert search.best_f == F[inside].min() > F.min() and (search.best_x[0] >= 3).all()
    nothing = Searcher.from_data(X, F, bounds=(100, 200))
    assert nothing.best_x is None and math.isnan(nothing.best_f) and nothing.mean.tolist() == [100, 100, 100]


def test_the_mean_is_rounded_where_it_must_be_whole() -> None:
    search = Searcher.from_data(X, F, integer=[0, 2], bounds=[(None, None), (None, None), (10.3, 20)], rng=1)
    assert search.mean[0] % 1 == 0 and search.mean[2] == 11.0 and search.mean[1] % 1 != 0
    assert (search.ask(100)[:, [0, 2]] % 1 == 0).all()


def test_fixed_coordinates_that_are_the_same_everywhere_stay_exactly() -> None:
    points = X.copy()
    points[:, 1] = 0.1  # whose mean is not 0.1 in floating point
    search = Searcher.from_data(points, F, fixed=[1], rng=1)
    assert (search.ask()[:, 1] == 0.1).all() and np.array_equal(search.best_x, points[F.argmin()])
    free = Searcher.from_data(points, F)
    assert free.mean[1] == 0.1 and free.stds[1] > 0


def test_nearest_points_and_feasible_points_by_themselves() -> None:
    assert moved_inside(np.array([5.0, 0.4]), (0, 3), None).tolist() == [3.0, 0.4]
    assert moved_inside(np.array([5.0, 0.6]), (0.5, 3.5), True).tolist() == [3.0, 1.0]
    strategy = Searcher([1.0, 1.0], 0.5, bounds=(0, 2)).strategy
    points, values = feasible_rows(strategy, [[5.0, 1.0], [1.0, 1.5], [0.5, 0.5]], [1.0, 3.0, 2.0])
    assert points.tolist() == [[1.0, 1.5], [0.5, 0.5]] and values.tolist() == [3.0, 2.0]


# ---- worth --------------------------------------------------------------------------------------------------------


def test_data_saves_evaluations() -> None:
    """For instance from the last points of another search: their correlations save a quarter of the evaluations."""
    scales = 10.0 ** np.linspace(0, 4, 6)
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 6)))[0]

    def elli(x: np.ndarray) -> float:
        return float(scales @ (turn @ (x - 2)) ** 2)

    points = 2 + np.random.default_rng(0).standard_normal((200, 6)) / np.sqrt(scales) @ turn
    values = [elli(x) for x in points]
    options = {"target": 1e-6, "structure": "full", "decoding": False}
    warm = [run(Searcher.from_data(points, values, rng=s, **options), elli).nfev for s in range(3)]
    cold = [run(Searcher(points[0], 0.5, rng=s, **options), elli).nfev for s in range(3)]
    assert np.median(warm) < 0.75 * np.median(cold)


def test_few_points_in_many_dimensions_will_do() -> None:
    points = np.random.default_rng(0).normal(size=(3, 40))
    search = run(Searcher.from_data(points, [1.0, 2.0, 3.0], rng=1, target=1e-6), sphere, 3000)
    assert "target" in search.stop()


def test_many_coordinates_take_the_standard_deviations_only() -> None:
    points = np.random.default_rng(0).normal(size=(12, 2500))
    x0, sigma0, cov0 = start_from_data(points, range(12), None)
    assert cov0 is None and sigma0.shape == (2500,)
    best = points[:3]
    spread = 0.1 * points.std(axis=0)
    assert np.allclose(sigma0, np.sqrt(best.var(axis=0) + spread**2)) and np.allclose(x0, best.mean(axis=0))
    search = Searcher.from_data(points, range(12), 0.5, rng=1)
    assert search.sigma == pytest.approx(0.5) and search.ask().shape[1] == 2500


# ---- bad data -----------------------------------------------------------------------------------------------------

FEW = "X and f must hold at least 2 points with a value below infinity, got {}"


@pytest.mark.parametrize(
    ("points", "values", "text"),
    [
        (X, F[:-1], r"fitness .*80 values.* 79"),
        (X[:5], F, r"fitness .*5 values.* 80"),
        (X[:1], F[:1], FEW.format(1)),
        (np.empty((0, 3)), [], FEW.format(0)),
        (X[:3], [1.0, math.nan, math.nan], FEW.format(1)),
        (X[:3], [math.nan] * 3, FEW.format(0)),
        (X[:3], [math.inf] * 3, FEW.format(0)),
        (X[0], F[:3], r"X .*\(n, n\).*\(3,\)"),
        (X[:3], [1.0, None, 2.0], r"fitness\[1\]"),
        (X[:3], ["a", "b", "c"], r"fitness\[0\]"),
        ([[1.0, math.nan], [1.0, 2.0]], [1.0, 2.0], r"X .*finite.* nan .*\(0, 1\)"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], r"X .*real numbers.*rows of unequal length"),
        (np.ones((4, 3)), range(4), r"X .*different points.* 4 times"),
        (np.empty((4, 0)), range(4), r"X .*at least one variable"),
    ],
)
def test_wrong_data_is_refused(points: Any, values: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Searcher.from_data(points, values)


@pytest.mark.parametrize(
    ("sigma0", "text"),
    [
        (0.0, r"sigma0 .*positive"),
        ([1.0, 2.0], r"sigma0 .*\(3,\)"),
        ("a", "sigma0"),
    ],
)
def test_a_wrong_sigma0_is_refused(sigma0: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Searcher.from_data(X, F, sigma0)


@pytest.mark.parametrize("quantile", [0.0, -1.0, math.nan, 1.5])
def test_a_wrong_quantile_is_refused(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        start_from_data(X, F, None, quantile)


def test_a_search_from_data_is_saved_with_its_best_point(tmp_path: Path) -> None:
    search = Searcher.from_data(X, F, rng=1)
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.best_x, search.best_x) and loaded.best_f == search.best_f and loaded.nfev == 0


def test_a_space_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"space must be .*Space, got .*Arrays"):
        Searcher.from_data(X, F, space=Arrays((3,)))
