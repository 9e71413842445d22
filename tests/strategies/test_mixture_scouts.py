"""Where descents of a mixture search begin: beyond known optima and anywhere, but not in the basins of known ones."""

import itertools

import numpy as np
import pytest

from esgroup.strategies.mixture_scouts import beyond, neighbors, scouts
from tests.groups.laws import close

SCALE = np.array([1.0, 10.0])
GRID = np.array(list(itertools.product(range(5), range(0, 50, 10))), dtype=float)
BOX = np.array([(-0.5, 4.5), (-5.0, 45.0)])


def test_a_neighbor_is_the_first_point_that_a_growing_ball_touches() -> None:
    rng = np.random.default_rng(0)
    points, directions = rng.standard_normal((40, 3)), rng.standard_normal((60, 3))
    which = rng.integers(40, size=60)
    found = neighbors(points, which, directions)
    for i, j, u in zip(which, found, directions, strict=True):
        gaps = points - points[i]
        u = u if (gaps @ u > 0).any() else -u
        radius = (gaps[j] @ gaps[j]) / (2 * gaps[j] @ u)  # of a ball with center p + radius u, in units of |u|
        assert j != i and radius > 0
        distances = np.linalg.norm(gaps - radius * u, axis=1)
        assert (distances >= radius * np.linalg.norm(u) * (1 - 1e-9)).all()
        close(distances[[i, j]], radius * np.linalg.norm(u))


def test_without_a_neighbor_on_one_side_that_of_the_other_side_is_taken() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    directions = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    assert list(neighbors(points, np.array([0, 2, 1, 1]), directions)) == [1, 1, 0, 2]


def test_points_beyond_two_optima_are_on_their_line_at_half_to_twice_their_distance() -> None:
    known = np.array([[1.0, 10.0], [2.0, 20.0]])  # a distance of (1, 1) in units of the scale
    points = (beyond(known, SCALE, 2000, np.random.default_rng(0)) - known[0]) / SCALE
    along, across = points.mean(axis=1), points[:, 0] - points[:, 1]
    factors = np.where(along < 0.5, -along, along - 1)
    assert (along < 0.5).mean() == pytest.approx(0.5, abs=0.05)
    assert np.median(factors) == pytest.approx(1, abs=0.05)
    assert np.quantile(factors, 0.01) == pytest.approx(0.5, abs=0.05)
    assert np.quantile(factors, 0.99) == pytest.approx(2, abs=0.2)
    assert 0.05 < (across / factors).std() / np.sqrt(2) < 0.15


def anywhere(rng: np.random.Generator):
    return lambda n: rng.uniform(BOX[:, 0], BOX[:, 1], (n, 2))


def test_scouts_avoid_known_optima_but_exclude_no_place() -> None:
    rng = np.random.default_rng(0)
    points = scouts(GRID, SCALE, BOX, anywhere(rng), 4000, rng)
    gaps = np.abs((points[:, None] - GRID) / SCALE).max(axis=2).min(axis=1)
    assert (points >= BOX[:, 0]).all() and (points <= BOX[:, 1]).all()
    # without a second draw, 0.04 of the uniform points are so near, and more of those beyond optima, as this is a grid
    assert 0 < (gaps < 0.1).mean() < 0.03
    assert np.median(gaps) > 0.37  # 0.354 if uniform


def test_half_of_the_scouts_are_beyond_known_optima() -> None:
    rng, known = np.random.default_rng(0), np.array([[0.0, 0.0], [0.01, 0.1]])
    points = scouts(known, SCALE, BOX, anywhere(rng), 4000, rng)
    assert (np.abs(points / SCALE).max(axis=1) < 0.1).mean() == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize("known", [0, 1])
def test_scouts_are_anywhere_until_two_optima_are_known(known: int) -> None:
    first, second = np.random.default_rng(0), np.random.default_rng(0)
    assert np.array_equal(scouts(GRID[:known], SCALE, BOX, anywhere(first), 9, first), anywhere(second)(9))
