"""Adaptation of learning rates against the formulas of LRA-CMA-ES (Nomura, Akimoto and Ono 2023)."""

import math

import numpy as np
import pytest

from esgroup.groups import Circulant, Diagonal, Full, Group, ToeplitzTriangular, Triangular
from esgroup.strategies.adaptation import RateAdaptation
from tests.groups.elements import local
from tests.groups.laws import close

ADAPTATION = RateAdaptation(alpha=1.3, beta_mean=0.2, beta_root=0.07, gamma=0.15)


def started(group: Group) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rates and V, E of delta and E of M as they are at the start of a search."""
    return np.array([1.0, 1.0, 0.0, 0.0]), np.zeros(group.dim), np.zeros(group.size)


@pytest.mark.parametrize(
    "group", [Full(3), Triangular(4), Diagonal(4), ToeplitzTriangular(6, 2), Circulant(5, 1)], ids=str
)
def test_rates_and_averages_written_out(group: Group) -> None:
    rng = np.random.default_rng(1)
    rates, average_delta, average_m = started(group)
    e_mean, e_root, v_mean, v_root, eta_mean, eta_root = np.zeros(group.dim), 0.0, 0.0, 0.0, 1.0, 1.0
    rising = 0
    for t in range(60):
        steady = 0.0 if t < 30 else 2.0  # noise only, then a signal
        delta, m = rng.standard_normal(group.dim) + steady, local(group, rng) + steady * group._local_identity()
        ADAPTATION.update(group, rates, average_delta, average_m, delta, m)
        dense_m = group.dense_local(m)
        e_mean, v_mean = 0.8 * e_mean + 0.2 * delta, 0.8 * v_mean + 0.2 * (delta**2).sum()
        e_root, v_root = 0.93 * e_root + 0.07 * dense_m, 0.93 * v_root + 0.07 * (dense_m**2).sum()
        before = eta_mean
        eta_mean = next_rate(eta_mean, (e_mean**2).sum(), v_mean, 0.2)
        eta_root = next_rate(eta_root, (e_root**2).sum(), v_root, 0.07)
        close(rates, [eta_mean, eta_root, v_mean, v_root])
        close(average_delta, e_mean)
        close(group.dense_local(average_m), e_root)
        rising += before < eta_mean
    assert min(rates[:2]) < 1 and 0 < rising < 60


def next_rate(eta: float, signal: float, total: float, beta: float) -> float:
    """SNR = (|E|^2 - beta / (2 - beta) V) / (V - |E|^2), then a step of log eta of at most gamma eta and beta."""
    snr = (signal - beta / (2 - beta) * total) / (total - signal)
    relative = min(1, max(-1, snr / (1.3 * eta) - 1))
    return min(1.0, eta * math.exp(min(0.15 * eta, beta) * relative))


def test_the_defaults_are_the_papers() -> None:
    assert RateAdaptation() == RateAdaptation(alpha=1.4, beta_mean=0.1, beta_root=0.03, gamma=0.1)


def test_equal_steps_keep_the_rates_at_one_and_noise_lowers_them() -> None:
    rng, group = np.random.default_rng(2), Full(4)
    rates, average_delta, average_m = started(group)
    for _ in range(200):
        RateAdaptation().update(group, rates, average_delta, average_m, np.ones(4), group.identity())
    close(rates[:2], [1.0, 1.0])
    for _ in range(200):
        RateAdaptation().update(group, rates, average_delta, average_m, rng.standard_normal(4), local(group, rng))
    assert rates[0] < 0.4 and rates[1] < 0.6


def test_steps_of_zero_leave_the_rates_unchanged() -> None:
    group = Full(3)
    rates, average_delta, average_m = started(group)
    RateAdaptation().update(group, rates, average_delta, average_m, np.zeros(3), np.zeros(9))
    assert np.array_equal(rates, [1.0, 1.0, 0.0, 0.0])


def test_the_rate_of_noise_with_a_signal_settles_at_its_signal_to_noise_ratio() -> None:
    """The fixed point is SNR / alpha: steps signal + N(0, I) with |signal|^2 = 0.35 n have SNR 0.35."""
    rng, group, n = np.random.default_rng(3), Diagonal(200), 200
    rates, average_delta, average_m = started(group)
    signal = np.full(n, math.sqrt(0.35))
    settled = []
    for t in range(600):
        RateAdaptation().update(
            group, rates, average_delta, average_m, signal + rng.standard_normal(n), np.zeros(group.size)
        )
        if t >= 300:
            settled.append(rates[0])
    assert np.mean(settled) == pytest.approx(0.35 / 1.4, rel=0.1)
