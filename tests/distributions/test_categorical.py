"""Categorical distributions: densities, scores and natural gradients against numbers worked out another way."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import multinomial

from esgroup.distributions.categorical import Categorical, CategoricalState
from esgroup.distributions.families import Categorical as Exported

Q = [[0.1, 0.2, 0.7], [0.45, 0.55], [0.05, 0.15, 0.3, 0.5]]
ONE = Categorical(Q)
POINTS = np.array([[0, 1, 3], [2, 0, 0], [1, 1, 2], [2, 1, 3], [0, 0, 1]], dtype=float)


def moved(eta: np.ndarray) -> np.ndarray:
    """q(eta) of all choices, from the definition."""
    parts = []
    for q, part in zip(Q, np.split(eta, ONE.offsets[1:]), strict=True):
        weights = np.array(q) * np.exp(part)
        parts.append(weights / weights.sum())
    return np.concatenate(parts)


def test_log_densities_are_those_of_scipy() -> None:
    for point, found in zip(POINTS, ONE.log_density(ONE.state(), POINTS), strict=True):
        expected = sum(multinomial(1, q).logpmf(np.eye(len(q))[int(c)]) for q, c in zip(Q, point, strict=True))
        assert found == pytest.approx(expected, rel=1e-12)


def test_scores_are_derivatives_of_the_log_density_in_local_coordinates() -> None:
    h = 1e-6
    steps = np.eye(9) * h
    above, below = (
        np.array([ONE.log_density(CategoricalState(moved(sign * step)), POINTS) for step in steps]) for sign in (1, -1)
    )
    np.testing.assert_allclose(ONE.score(ONE.state(), POINTS), ((above - below) / (2 * h)).T, atol=1e-8)


def test_the_fisher_matrix_is_the_covariance_of_scores() -> None:
    grid = np.array(np.meshgrid(range(3), range(2), range(4), indexing="ij"), dtype=float).reshape(3, -1).T
    chances = np.exp(ONE.log_density(ONE.state(), grid))
    assert chances.sum() == pytest.approx(1.0)
    scores = ONE.score(ONE.state(), grid)
    np.testing.assert_allclose(ONE.fisher(ONE.state()), (scores.T * chances) @ scores, atol=1e-14)
    np.testing.assert_allclose(chances @ scores, 0.0, atol=1e-14)


def test_the_natural_gradient_solves_the_fisher_equation() -> None:
    weights = np.array([0.5, -0.2, 0.3, 0.1, -0.4])
    m = ONE.natural_gradient(ONE.state(), POINTS, weights)
    g = weights @ ONE.score(ONE.state(), POINTS)
    np.testing.assert_allclose(ONE.fisher(ONE.state()) @ m, g, atol=1e-14)
    np.testing.assert_allclose(m, np.linalg.pinv(ONE.fisher(ONE.state())) @ g + constant(m, g), atol=1e-10)
    np.testing.assert_allclose(ONE.sums(ONE.state().probabilities * m), 0.0, atol=1e-14)


def constant(m: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Solutions differ by a constant for each choice, which changes no probability."""
    rest = m - np.linalg.pinv(ONE.fisher(ONE.state())) @ g
    return (ONE.sums(rest) / ONE.sizes)[ONE.owners]


def test_a_step_agrees_with_the_exponential_map_to_first_order() -> None:
    m = ONE.natural_gradient(ONE.state(), POINTS, np.array([0.5, -0.2, 0.3, 0.1, -0.4]))
    for rate in (1e-3, 1e-4):
        step = ONE.move(ONE.state(), rate * m).probabilities
        assert np.abs(step - moved(rate * m)).max() < 60 * rate**2
        np.testing.assert_allclose(ONE.sums(step), 1.0)
    pulled = ONE.natural_gradient(ONE.state(), POINTS[:1], [1.0])  # with all the weight on one point
    np.testing.assert_allclose(ONE.move(ONE.state(), pulled).probabilities, [1, 0, 0, 0, 1, 0, 0, 0, 1], atol=1e-15)


def test_no_probability_falls_below_its_floor() -> None:
    floor = np.repeat([0.02, 0.05, 0.01], [3, 2, 4])
    m = ONE.natural_gradient(ONE.state(), POINTS[:1], [1.0])
    q = ONE.move(ONE.state(), m, floor).probabilities
    assert (q >= floor).all()
    np.testing.assert_allclose(ONE.sums(q), 1.0)
    np.testing.assert_allclose(q[:3], [0.96, 0.02, 0.02])
    np.testing.assert_allclose(ONE.move(ONE.state(), 0.0 * m, floor).probabilities, ONE.state().probabilities)


def test_samples_come_as_often_as_their_probabilities_rounded_up_or_down() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 7, 40):
        points = ONE.sample(ONE.state(), n, rng)
        for j, q in enumerate(Q):
            counts = np.bincount(points[:, j].astype(int), minlength=len(q))
            assert (np.abs(counts - n * np.array(q)) < 2).all()


def test_each_sample_by_itself_has_the_distribution_and_choices_are_independent() -> None:
    rng, n = np.random.default_rng(4), 20_000
    drawn = np.array([ONE.sample(ONE.state(), 3, rng)[1] for _ in range(n)])
    for a, q in enumerate(Q):
        for c, p in enumerate(q):
            share = (drawn[:, a] == c).mean()
            assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / n)
    both = ((drawn[:, 0] == 2) & (drawn[:, 1] == 1)).mean()
    p = 0.7 * 0.55
    assert abs(both - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_distributions_are_values() -> None:
    assert Exported is Categorical and pickle.loads(pickle.dumps(ONE)) == ONE != Categorical.uniform(3, 2, 4)
    assert Categorical([0.25] * 4) == Categorical.uniform(4) and ONE.at(ONE.state()) == ONE
    assert (ONE.dim, ONE.dof) == (3, 6)


@pytest.mark.parametrize("bad", [[1.0], [0.5, 0.6], [0.0, 1.0], [[0.5, 0.5], [1.0]], [-0.5, 1.5], []])
def test_what_is_no_distribution_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        Categorical(bad)


def test_points_that_are_no_categories_are_refused() -> None:
    for bad in ([[3, 0, 0]], [[0, -1, 0]], [[0, 0.5, 0]]):
        with pytest.raises(ValueError, match="points must be places"):
            ONE.log_density(ONE.state(), bad)
