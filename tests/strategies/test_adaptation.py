"""Adaptation of learning rates against the formulas of LRA-CMA-ES (Nomura, Akimoto and Ono 2023)."""

import math

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.groups import Circulant, Diagonal, Full, Group, ToeplitzTriangular, Triangular
from esgroup.strategies.adaptation import NEAR, ONE, RateAdaptation
from esgroup.strategies.evolution import Evolution, SearchState
from tests.groups.elements import local
from tests.groups.laws import close

ADAPTATION = RateAdaptation(alpha=1.3, beta_mean=0.2, beta_root=0.07, gamma=0.15)


def started(group: Group) -> SearchState:
    """Return a state as it is at the start of a search, but with q = 1 and sigma = 2."""
    evolution = Evolution(group, adaptation=RateAdaptation(start=1.0))
    return evolution.start(np.zeros(group.dim), np.full(group.dim, 2.0))


@pytest.mark.parametrize(
    "group", [Full(3), Triangular(4), Diagonal(4), ToeplitzTriangular(6, 2), Circulant(5, 1)], ids=str
)
def test_rates_and_averages_written_out(group: Group) -> None:
    rng = np.random.default_rng(1)
    state = started(group)
    e_mean, e_root, v_mean, v_root, eta_mean, eta_root = np.zeros(group.dim), 0.0, 0.0, 0.0, 1.0, 1.0
    rising = 0
    for t in range(60):
        steady = 0.0 if t < 30 else 2.0  # noise only, then a signal
        delta, m = rng.standard_normal(group.dim) + steady, local(group, rng) + steady * group._local_identity()
        ADAPTATION.update(state, delta, m, group._squared_local_norm)
        dense_m = group.dense_local(m)
        e_mean, v_mean = 0.8 * e_mean + 0.2 * delta, 0.8 * v_mean + 0.2 * (delta**2).sum()
        e_root, v_root = 0.93 * e_root + 0.07 * dense_m, 0.93 * v_root + 0.07 * (dense_m**2).sum()
        before = eta_mean
        eta_mean = next_rate(eta_mean, (e_mean**2).sum(), v_mean, 0.2)
        eta_root = next_rate(eta_root, (e_root**2).sum(), v_root, 0.07)
        close(state.rates, [eta_mean, eta_root, v_mean, v_root, 1.0])
        close(state.average_delta, e_mean)
        close(group.dense_local(state.average_m), e_root)
        close(state.sigma, 2.0 / eta_mean)
        rising += before < eta_mean
    assert min(state.rates[:2]) < 1 and 0 < rising < 60


def next_rate(eta: float, signal: float, total: float, beta: float) -> float:
    """SNR = (|E|^2 - beta / (2 - beta) V) / (V - |E|^2), then a step of log eta of at most gamma eta and beta."""
    snr = (signal - beta / (2 - beta) * total) / (total - signal)
    relative = min(1, max(-1, snr / (1.3 * eta) - 1))
    return min(1.0, eta * math.exp(min(0.15 * eta, beta) * relative))


def test_the_defaults_of_the_rates_are_the_papers() -> None:
    assert RateAdaptation() == RateAdaptation(
        alpha=1.4, beta_mean=0.1, beta_root=0.03, gamma=0.1, c=0.05, limit=0.8, start=0.9
    )


def test_equal_steps_keep_the_rates_at_one_and_noise_lowers_them() -> None:
    rng, group = np.random.default_rng(2), Full(4)
    state = started(group)
    for _ in range(200):
        RateAdaptation().update(state, np.ones(4), group.identity(), group._squared_local_norm)
    close(state.rates[:2], [1.0, 1.0])
    for _ in range(200):
        RateAdaptation().update(state, rng.standard_normal(4), local(group, rng), group._squared_local_norm)
    assert state.rates[0] < 0.4 and state.rates[1] < 0.6


def test_steps_of_zero_leave_the_rates_unchanged() -> None:
    group = Full(3)
    state = started(group)
    RateAdaptation().update(state, np.zeros(3), np.zeros(9), group._squared_local_norm)
    assert np.array_equal(state.rates, [1.0, 1.0, 0.0, 0.0, 1.0])


def test_the_rate_of_noise_with_a_signal_settles_at_its_signal_to_noise_ratio() -> None:
    """The fixed point is SNR / alpha: steps signal + N(0, I) with |signal|^2 = 0.35 n have SNR 0.35."""
    rng, group, n = np.random.default_rng(3), Diagonal(200), 200
    state = started(group)
    signal = np.full(n, math.sqrt(0.35))
    settled = []
    for t in range(600):
        RateAdaptation().update(state, signal + rng.standard_normal(n), np.zeros(group.size), group._squared_local_norm)
        if t >= 300:
            settled.append(state.rates[0])
    assert np.mean(settled) == pytest.approx(0.35 / 1.4, rel=0.1)


# ---- values at near points


def test_rates_rise_where_near_points_have_near_values() -> None:
    """Below the limit log eta grows by min(gamma eta, beta) whatever the steps are, at it as well; above it falls."""
    rng, group = np.random.default_rng(4), Full(4)
    state = started(group)
    state.rates[:] = [0.3, 0.6, 0.0, 0.0, 0.8]
    RateAdaptation().update(state, rng.standard_normal(4), local(group, rng), group._squared_local_norm)
    close(state.rates[:2], [0.3 * math.exp(0.1 * 0.3), 0.6 * math.exp(0.03)])
    for _ in range(50):
        RateAdaptation().update(state, rng.standard_normal(4), local(group, rng), group._squared_local_norm)
    close(state.rates[:2], [1.0, 1.0])
    state.rates[4] = 0.801
    for _ in range(50):
        RateAdaptation().update(state, rng.standard_normal(4), local(group, rng), group._squared_local_norm)
    assert max(state.rates[:2]) < 0.8


def test_the_last_sample_lies_halfway_to_the_one_before_it_and_has_its_length() -> None:
    rng = np.random.default_rng(5)
    z = rng.standard_normal((6, 4))
    before = z.copy()
    tags = RateAdaptation().mark(z, None)
    assert tags is not None and tags.tolist() == [0, 0, 0, 0, ONE, NEAR]
    assert np.array_equal(z[:5], before[:5])
    between = before[4] + before[5]
    close(z[5], between * math.sqrt((before[4] ** 2).sum() / (between**2).sum()))


def test_three_samples_and_the_tags_of_a_step_size_rule_are_left_alone() -> None:
    z = np.random.default_rng(6).standard_normal((5, 2))
    before = z.copy()
    assert RateAdaptation().mark(z[:3], None) is None and np.array_equal(z, before)
    tags = RateAdaptation().mark(z, np.array([1, 2, 0, 0, 0]))
    assert tags is not None and tags.tolist() == [1, 2, 0, ONE, NEAR]


@pytest.mark.parametrize("options", [{}, {"mirrored": True}, {"step_size": "tpa"}], ids=str)
def test_every_sample_has_the_law_of_the_others(options: dict) -> None:
    """The mean of z_n is 0 and that of z_n z_n^T is I within 5 standard errors."""
    search = Searcher(np.zeros(3), 1.0, noise="adapt", rng=7, popsize=8, **options)
    evolution, state, rng, n = search.strategy.evolution, search.state, np.random.default_rng(8), 20_000
    z = np.array([search.strategy.sample(state, 8, rng).local[-1] for _ in range(n)])
    assert evolution.adaptation is not None
    assert np.abs(z.mean(axis=0)).max() < 5 / math.sqrt(n)
    assert np.abs(z.T @ z / n - np.eye(3)).max() < 5 * math.sqrt(2 / n)


def test_q_is_the_mean_difference_of_ranks_over_that_of_independent_values() -> None:
    z, order = np.eye(5)[[0, 1, 2, 3, 3]], np.array([4, 0, 1, 3, 2])
    rates, tags = np.array([1.0, 1.0, 0.0, 0.0, 0.7]), np.array([0, 0, 0, ONE, NEAR])
    RateAdaptation().compare(rates, z, order, tags)
    close(rates, [1.0, 1.0, 0.0, 0.0, 0.95 * 0.7 + 0.05 * 3 / 2])  # ranks 3 and 0 of 5
    every = np.array([RateAdaptation(c=1.0).compare(rates, z, order, tags) or rates[4] for order in all_orders()])
    close(every.mean(), 1.0)  # over all orders: E|i - j| = (n + 1) / 3


def all_orders() -> list[np.ndarray]:
    import itertools

    return [np.array(order) for order in itertools.permutations(range(5))]


def test_only_two_samples_of_one_generation_are_compared() -> None:
    z, order, start = np.eye(5)[[0, 1, 2, 3, 3]], np.array([4, 0, 1, 3, 2]), [1.0, 1.0, 0.0, 0.0, 0.7]
    tagged = [None, [0, 0, 0, 0, NEAR], [ONE, 0, 0, ONE, NEAR], [ONE, 0, 0, 0, NEAR], [0, 0, NEAR, ONE, NEAR]]
    for tags in tagged:  # none, one of them late, two of an older ask, one of an older ask: z_0 is far from z_4
        rates = np.array(start)
        RateAdaptation().compare(rates, z, order, None if tags is None else np.array(tags))
        assert np.array_equal(rates, start)


@pytest.mark.parametrize("noise, low, high", [(0.0, 0.35, 0.65), (1e6, 0.8, 1.2)])
def test_q_tells_a_smooth_function_of_any_condition_from_noise(noise: float, low: float, high: float) -> None:
    rng, scales = np.random.default_rng(9), np.logspace(0, 6, 8)
    search, found = Searcher(np.full(8, 3.0), 1.0, noise="adapt", rng=10), []
    while search.nit < 150:
        values = search.ask() ** 2 @ scales
        search.tell(values + noise * scales[-1] * rng.standard_normal(len(values)))
        found.append(search.state.rates[4])
    assert low < np.mean(found[50:]) < high
    assert (search.state.rates[0] == 1.0) == (noise == 0.0)
