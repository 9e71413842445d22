"""Bounds are obeyed and do no harm; integer coordinates are searched to the last step."""

import math
from typing import Any

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies.in_domain import innermost
from tests.search.support import evaluations, generation, local_coordinates, run, searcher, sphere, valley

DIM = 5


def median(f: Any, target: float = 1e-8, *, at: float = 3.0, dim: int = DIM, **options: Any) -> float:
    """The median number of evaluations over five seeds, from `at` everywhere with sigma0 = 1."""
    return float(np.median([evaluations(f, np.full(dim, at), 1.0, target, seed, **options) for seed in range(5)]))


def discus(x: np.ndarray) -> float:
    """One direction a thousand times as steep as the others, minimum at 1."""
    y = x - 1
    return float(1e6 * y[0] ** 2 + y[1:] @ y[1:])


def sphere_at_one(x: np.ndarray) -> float:
    return sphere(x - 1)


# ---- every point is feasible --------------------------------------------------------------------------------------

SPACES: dict[str, dict[str, Any]] = {
    "box": {"bounds": (0.5, 3.5)},
    "tight": {"bounds": [(0.999, 1.001), (0, 5), (3, 3.0000001)]},
    "half": {"bounds": (0.5, None)},
    "other_half": {"bounds": (None, 3.0)},
    "at_the_corner": {"bounds": [(1, 4), (-3, 2), (3, 9)]},
    "huge": {"bounds": (-1e300, 1e300)},
    "fixed": {"bounds": (0, 5), "fixed": {0: 0.1}},
    "integer": {"bounds": (0.5, 3.5), "integer": True},
    "binary": {"bounds": [(0, 1), (0, 2), (0, 3)], "integer": [0]},
    "odd": {"bounds": [(0, 1.7), (-0.1, 2.9), (None, 3.4)], "integer": [1, 2]},
}


def assert_feasible(search: Searcher, X: np.ndarray) -> None:
    space = search.strategy.domain
    assert np.isfinite(X).all() and np.array_equal(X, X.clip(space.lower, space.upper))
    assert (X[:, space.integer] == np.rint(X[:, space.integer])).all()
    assert (X[:, space.fixed] == space.x0[space.fixed]).all()


@pytest.mark.parametrize("options", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("sigma0", [1e-3, 1.0, 1e6])
def test_every_asked_point_is_feasible(options: dict[str, Any], sigma0: float) -> None:
    rng = np.random.default_rng(0)
    for f in (valley, lambda x: -sphere(x), lambda x: rng.normal()):
        search = searcher(sigma0=sigma0, **options)
        for _ in range(25):
            assert_feasible(search, generation(search, f))
            assert_feasible(search, search.mean[None])
            assert_feasible(search, search.ask(3))
        assert (search.stds[~search.strategy.domain.fixed] > 0).all() and np.isfinite(search.stds).all()


def test_points_told_at_the_bounds_are_taken_in() -> None:
    search = searcher(bounds=(0, 3))
    search.tell([[0, 0, 0], [3, 3, 3], [0, 3, 0], [1, 2, 3], [0, 0, 3], [3, 0, 0], [0, 3, 3]], np.arange(7.0))
    assert search.nit == 1 and search.best_x is not None and search.best_x.tolist() == [0, 0, 0]
    assert_feasible(search, search.ask(100))


def test_late_points_within_bounds_have_the_coordinates_that_they_were_sampled_with() -> None:
    search = searcher(bounds=(0, 5))
    for _ in range(5):
        generation(search, valley)
    X = search.ask(200)
    z = search.ledger.asked[-1].drawn.local
    inside = (X > 0.5).all(axis=1) & (X < 4.5).all(axis=1)  # beyond, a mirror image may be nearer
    assert inside.sum() > 20
    short = np.linalg.norm(z, axis=1) < 2.5
    assert np.allclose(local_coordinates(search, X)[inside & short], z[inside & short], atol=1e-9)


# ---- bounds do no harm --------------------------------------------------------------------------------------------


def test_bounds_far_away_change_nothing_much() -> None:
    for f in (sphere_at_one, discus):
        assert median(f, bounds=(-5, 7)) < 1.25 * median(f)


def test_a_minimum_at_the_bounds_is_found_as_fast_as_one_inside() -> None:
    free = median(sphere_at_one)
    assert median(sphere_at_one, bounds=(1, 5)) < 1.2 * free
    assert median(sphere_at_one, bounds=(1, None)) < 1.2 * free
    assert median(sphere_at_one, bounds=[(1, 5)] + [(-5, 5)] * (DIM - 1)) < 1.4 * free


def test_a_discus_at_its_bounds_is_solved_as_fast_as_a_free_one() -> None:
    free = median(discus)
    assert median(discus, bounds=(1, 5)) < 1.2 * free
    assert median(discus, bounds=[(1, 5)] + [(-5, 5)] * (DIM - 1)) < 1.3 * free


def test_a_corner_is_found() -> None:
    free = median(sphere_at_one)
    beyond = 4.0 * DIM

    def cut(x: np.ndarray) -> float:  # the free minimum lies beyond the corner
        return float(((x + 1) ** 2).sum()) - beyond

    assert median(cut, bounds=(1, 5)) < 2 * free
    assert median(lambda x: float((x - 1).sum()), bounds=(1, 5)) < 2 * free
    assert median(lambda x: float(-x.sum()), -5 * DIM + 1e-8, bounds=(1, 5)) < 2 * free


def test_a_start_at_the_corner_does_no_harm() -> None:
    assert median(sphere_at_one, at=5.0, bounds=(-5, 5)) < 1.5 * median(sphere_at_one, at=5.0)


def test_a_step_far_too_large_for_the_bounds_does_no_harm() -> None:
    wide = [evaluations(sphere_at_one, np.full(DIM, 3.0), 1e6, 1e-8, seed, bounds=(-5, 5)) for seed in range(3)]
    assert np.median(wide) < 1.6 * median(sphere_at_one, bounds=(-5, 5))


@pytest.mark.parametrize("structure", ["full", "diagonal", "triangular", "heisenberg", "block_triangular"])
def test_every_structure_finds_a_corner(structure: str) -> None:
    for seed in range(2):
        options = {"structure": structure, "bounds": [(0, 2), (-1, None), (None, 4), (0, 3)]}
        f = lambda x: float(x[0] + x[1] - x[2] + (x[3] - 1) ** 2)  # noqa: E731
        assert evaluations(f, np.ones(4), 0.5, -5 + 1e-6, seed, **options) < 3000


def test_a_search_at_a_bound_stops_by_itself() -> None:
    search = run(searcher(bounds=(0.5, 5)))
    assert search.result.success and search.best_f == pytest.approx(0.75, abs=1e-9)
    assert np.allclose(search.best_x, 0.5)


# ---- integers -----------------------------------------------------------------------------------------------------

WEIGHTS = 10.0 ** np.linspace(0, 3, 6)
AT = np.array([3.0, -2.0, 5.0, 0.3, 0.7, -1.2])


@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS, WEIGHTS[::-1]], ids=["sphere", "ellipsoid", "reversed"])
@pytest.mark.parametrize("options", [{}, {"bounds": (-10, 10)}, {"structure": "diagonal"}, {"mirrored": True}], ids=str)
def test_mixed_integer_problems_are_solved(weights: np.ndarray, options: dict[str, Any]) -> None:
    def f(x: np.ndarray) -> float:
        return float(weights @ (x - AT) ** 2)

    needed = [evaluations(f, np.zeros(6), 2.0, 1e-8, seed, integer=[0, 1, 2], **options) for seed in range(4)]
    assert sum(n < 3000 for n in needed) >= 3


@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS], ids=["sphere", "ellipsoid"])
def test_integer_problems_are_solved(weights: np.ndarray) -> None:
    at = np.array([3, -2, 5, 0, 7, -1])
    needed = [
        evaluations(lambda x: float(weights @ (x - at) ** 2), np.zeros(6), 2.0, 0.0, s, integer=True) for s in range(5)
    ]
    assert sum(n < 3000 for n in needed) >= 4


def test_one_integer_step_is_still_tried_after_the_rest_has_converged() -> None:
    """The effect of a step by one is visible only once the other coordinates have converged."""

    def f(x: np.ndarray) -> float:
        return float(1e4 * x[1:] @ x[1:] + abs(x[0] - 4))

    needed = [evaluations(f, [0.0, 1.0, 1.0, 1.0], 0.3, 1e-6, seed, integer=[0]) for seed in range(5)]
    assert sum(n < 5000 for n in needed) >= 4


@pytest.mark.parametrize("options", [{}, {"bounds": (-3, 9)}, {"noise": "adapt"}, {"algorithm": "paper"}], ids=str)
def test_steps_never_collapse_below_the_grid(options: dict[str, Any]) -> None:
    search = searcher(integer=[0, 2], **options)
    least = search.strategy.domain.limits(search.popsize).least
    assert least is not None and least[1] == 0.0
    narrowest = np.full(3, np.inf)
    for _ in range(300):
        generation(search)
        narrowest = np.minimum(narrowest, np.sqrt(innermost(search.strategy).evolution.variances(search.state)))
    assert (narrowest[[0, 2]] >= 0.999 * least[[0, 2]]).all() and narrowest[1] < 1e-4
    X = search.ask(2000)
    assert (X[:, 0] != search.mean[0]).mean() > 1 / (4 * 3 * search.popsize)


def test_the_smallest_step_changes_one_coordinate_in_a_generation() -> None:
    """P(|N(0, s^2)| > 1/2) = 1 / (n popsize), so that about one of n popsize integers differs from the middle."""
    least = searcher(integer=True, popsize=10).strategy.domain.limits(10).least
    assert least is not None
    tail = math.erfc(0.5 / least[0] / math.sqrt(2))
    assert tail == pytest.approx(1 / 30)


def test_points_with_integers_can_be_told_back_as_integers() -> None:
    """Also where a sample was rounded to -0.0, and in a different order."""
    search, reference = searcher(integer=True), searcher(integer=True)
    zeros = 0
    for _ in range(12):
        X = search.ask()[::-1]
        zeros += int((np.signbit(X) & (X == 0)).sum())
        search.tell(X.astype(int), [sphere(x) for x in X])
        X = reference.ask()[::-1]
        reference.tell(X, [sphere(x) for x in X])
    assert zeros > 5
    assert np.array_equal(search.mean, reference.mean) and np.array_equal(search.stds, reference.stds)


def test_binary_choices_are_made() -> None:
    wanted = np.array([1, 0, 1, 1, 0, 0, 1, 0])
    needed = [
        evaluations(lambda x: float(abs(x - wanted).sum()), np.zeros(8), None, 0.0, seed, bounds=(0, 1), integer=True)
        for seed in range(5)
    ]
    assert sum(n < 2000 for n in needed) >= 4
