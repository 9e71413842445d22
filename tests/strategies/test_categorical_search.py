"""The search over choices: one generation against the formulas written out, rates, floors, and ends."""

import math

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.distributions.families import Categorical
from esgroup.strategies import categorical
from esgroup.strategies.base import Ranked
from esgroup.strategies.categorical import CategoricalSearch, CategoricalSearchState

Q = ((0.2, 0.3, 0.5), (0.4, 0.6))


def weights_by_rank(n: int) -> list[float]:
    logs = [math.log((n + 1) / 2) - math.log(rank) for rank in range(1, n + 1)]
    up, down = sum(v for v in logs if v > 0), -sum(v for v in logs if v < 0)
    return [v / up if v > 0 else categorical.NEGATIVE * v / down for v in logs]


def test_one_generation_is_the_update_written_out() -> None:
    strategy = CategoricalSearch(Categorical(Q), 6)
    rng = np.random.default_rng(0)
    path, rate, expected = 0.1 * rng.standard_normal(5), np.array([0.15, 0.3]), np.array([0.4, 0.2])
    state = CategoricalSearchState(np.concatenate(Q), path, rate, expected, np.zeros(1))
    local = np.array([[0, 1], [2, 1], [1, 0], [2, -1], [0, 0], [2, 1]], dtype=float)
    order = np.array([3, 0, 5, 1, 2, 4])
    found = strategy.update(state, Ranked(local, order))
    w = weights_by_rank(6)
    mass = sum(v * v for v in w)
    start = 0
    for j, q in enumerate(Q):
        size = len(q)
        g = np.zeros(size)
        for weight, i in zip(w, order, strict=True):
            if local[i, j] >= 0:
                g += weight * (np.eye(size)[int(local[i, j])] - q)
        b = min(0.9, categorical.MEMORY * rate[j])
        p = (1 - b) * path[start : start + size] + math.sqrt(b * (2 - b) / mass) * g / np.sqrt(q)
        gamma = (1 - b) ** 2 * expected[j] + b * (2 - b)
        r = rate[j] * math.exp(min(1.0, b * ((p @ p) / (size - 1) / categorical.SIGNAL - gamma)))
        r = min(max(r, categorical.RATES[0]), categorical.RATES[1])
        new = np.array(q) + r * g
        least = strategy.floor[start]
        above = np.maximum(new - least, 0)
        new = least + above * (1 - size * least) / above.sum()
        np.testing.assert_allclose(found.probabilities[start : start + size], new, rtol=1e-12)
        np.testing.assert_allclose(found.path[start : start + size], p, rtol=1e-12)
        assert found.rates[j] == pytest.approx(r) and found.expected[j] == pytest.approx(gamma)
        start += size


def test_the_plain_update_is_a_step_along_the_natural_gradient() -> None:
    strategy = CategoricalSearch(Categorical(Q), 6, "paper")
    local, order = np.array([[0, 1], [2, 1], [1, 0], [2, 0]], dtype=float), np.array([1, 0, 3, 2])
    utilities = [max(0.0, math.log(3) - math.log(rank)) for rank in range(1, 5)]
    utilities = [u / sum(utilities) - 1 / 4 for u in utilities]
    eta = (3 + math.log(3)) / (5 * math.sqrt(3))
    ranked = zip(utilities, order, strict=True)
    expected = np.array(Q[0]) + eta * sum(u * np.eye(3)[int(local[i, 0])] for u, i in ranked)
    found = strategy.update(strategy.start(), Ranked(local, order)).probabilities[:3]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_values_that_say_nothing_leave_probabilities_where_they_are_on_average() -> None:
    """The mean over many searches stays within five standard errors, and rates fall."""
    strategy = CategoricalSearch(Categorical([[0.2, 0.3, 0.5]] * 300), 8)
    state, rng = strategy.start(), np.random.default_rng(1)
    for _ in range(5):
        drawn = strategy.sample(state, 8, rng)
        state = strategy.update(state, Ranked(drawn.local, rng.permutation(8)))
    q = state.probabilities.reshape(300, 3)
    error = q.std(axis=0) / math.sqrt(300)
    assert (np.abs(q.mean(axis=0) - [0.2, 0.3, 0.5]) < 5 * error).all() and (error > 0).all()
    assert np.median(state.rates) < strategy.first_rate


def test_the_expected_length_of_the_path_is_that_of_values_that_say_nothing() -> None:
    strategy = CategoricalSearch(Categorical([[0.2, 0.3, 0.5]] * 2000), 8)
    state, rng = strategy.start(), np.random.default_rng(2)
    drawn = strategy.sample(state, 8, rng)
    state = strategy.update(state, Ranked(drawn.local, rng.permutation(8)))
    lengths = (state.path.reshape(-1, 3) ** 2).sum(axis=1) / 2
    # n draws as even as these have 8 / 7 of the covariance of independent ones about their own mean
    ratio = lengths.mean() / state.expected[0]
    assert abs(ratio - 1.0) < 0.2


def test_the_fewer_choices_the_larger_are_their_first_rates() -> None:
    first = {m: CategoricalSearch(Categorical([[0.5, 0.5]] * m)).start().rates for m in (1, 2, 4, 5, 10, 40)}
    for m, rates in first.items():
        np.testing.assert_allclose(rates, np.full(m, {1: 0.3, 2: 0.3, 4: 0.25, 5: 0.2, 10: 0.1, 40: 0.1}[m]))


def test_rates_of_choices_that_matter_grow_and_those_of_others_fall() -> None:
    search = Searcher(Categorical.uniform(*[4] * 12), rng=1, popsize=10)
    for _ in range(6):
        search.tell([float(c[0] != 2) for c in search.ask()])
    rates = search.state.rates
    first = search.strategy.start().rates[0]
    assert rates[0] > first > np.median(rates[1:])
    for _ in range(10):
        search.tell([float(c[0] != 2) for c in search.ask()])
    q = search.state.probabilities.reshape(12, 4)
    assert q[0].argmax() == 2 and q[0, 2] > 0.9 and np.median(q[1:].max(axis=1)) < 0.6


def test_all_categories_keep_a_chance() -> None:
    search = Searcher(Categorical.uniform(5, 3), rng=1)
    for _ in range(60):
        search.tell([float(c.sum()) for c in search.ask()])
    q = np.split(search.state.probabilities, [5])
    assert all((part > 0.01).all() for part in q) and search.mean.tolist() == [0.0, 0.0]
    others = 1 - np.prod([part.max() for part in q])
    assert others == pytest.approx(min(0.27, categorical.SHARE / search.popsize), rel=1e-6)


def test_a_search_that_has_settled_ends_and_can_change_its_mind_before() -> None:
    result = esgroup.minimize(lambda c: float((c != [1, 2, 0, 3]).sum()), Categorical.uniform(4, 4, 4, 4), rng=1)
    assert result.fun == 0 and {"tolx", "tolfun"} & set(result.stop)
    assert result.success and result.x.tolist() == [1, 2, 0, 3] and isinstance(result.distribution, Categorical)
    search = Searcher(Categorical.uniform(3, 3), rng=2)
    for t in range(150):
        search.tell([float((c != (0 if t < 40 else 2)).sum()) for c in search.ask()])
    assert search.mean.tolist() == [2.0, 2.0]


def test_points_that_are_no_categories_are_refused() -> None:
    search = Searcher(Categorical.uniform(3, 3), rng=2)
    with pytest.raises(ValueError, match="X must be places"):
        search.tell([[0.0, 3.0]], [1.0])
    with pytest.raises(ValueError, match=r"structure .*Categorical"):
        Searcher(Categorical.uniform(3), structure="full")
