"""Rates and safeguards: what the windows say of a process whose law is known, and how long steps may be."""

import numpy as np
import pytest

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureStep
from esgroup.groups import BlockTriangular, Circulant, Conjugate, Diagonal, Full, Group, Kronecker, Triangular
from esgroup.variational.schedule import (
    FitSchedule,
    WindowSummary,
    clipped_step,
    empty_window,
    extended_window,
    next_reach,
    spectral_norm,
    squared_fisher_norm,
    window_average,
    window_summary,
)
from tests.groups.elements import local
from tests.groups.laws import close

DIM = 6


def mixture_of(group: Group, count: int = 1) -> Mixture:
    return Mixture(tuple(Gaussian(group, np.full(group.dim, float(k))) for k in range(count)), learn_weights=True)


def test_the_losses_of_a_noisy_walk_are_those_of_its_stationary_law() -> None:
    """theta <- theta - rate u, u = theta + noise of variance s^2 a coordinate: E|theta|^2 = rate s^2 n / (2 - rate)."""
    mixture, rate, noise, rng = mixture_of(Diagonal(DIM)), 0.1, 0.3, np.random.default_rng(0)
    state, theta, squares = mixture.state(), np.zeros(DIM), []
    window = empty_window(mixture, state)
    for _ in range(20_000):
        u = theta + noise * rng.standard_normal(DIM)
        theta = theta - rate * u
        squares.append(theta @ theta)
        window = extended_window(
            window, mixture, state, MixtureStep(u[None], np.zeros(DIM), np.zeros(0)), -0.5 * squares[-1]
        )
    found = window_summary(window, mixture, state, rate)
    assert abs(found.noise / (0.5 * np.mean(squares)) - 1) < 0.1
    assert abs(found.elbo + 0.5 * np.mean(squares)) < 1e-12
    assert found.signal < 0.01 * found.noise
    close(found.noise_of_average, noise**2 * DIM / (2 * 20_000), 0.1)


@pytest.mark.parametrize("cancels", [False, True])
def test_noise_that_cancels_within_a_block_is_not_counted(cancels: bool) -> None:
    """Independent noise has the same V in blocks of five as step by step; that of an epoch has only what remains."""
    mixture, block, blocks, rng = mixture_of(Diagonal(DIM)), 5, 4000, np.random.default_rng(0)
    state, window = mixture.state(), empty_window(mixture, mixture.state())
    noise = rng.standard_normal((blocks, block, DIM))
    if cancels:
        noise -= 0.9 * noise.mean(axis=1, keepdims=True)
    for t, u in enumerate(noise.reshape(-1, DIM)):
        step = MixtureStep(u[None], np.zeros(DIM), np.zeros(0))
        window = extended_window(window, mixture, state, step, 0.0, block, (t + 1) % block == 0)
    found = window_summary(window, mixture, state, 0.1, block)
    variance = DIM * (0.01 if cancels else 1.0)
    close(found.noise, 0.1 * variance / 4, 0.05)
    close(found.noise_of_average, variance / (2 * block * blocks), 0.05)


def test_windows_that_are_longer_than_an_epoch_end_with_one() -> None:
    schedule, mixture = FitSchedule(0.5, 0.01, batches=10), mixture_of(Diagonal(DIM))
    window = empty_window(mixture, mixture.state())._replace(length=np.array(33.0))
    assert [schedule.block(rate) for rate in (0.5, 0.25, 0.2)] == [1, 1, 10]
    assert [schedule.is_complete(window, 0.25, number) for number in (33, 39)] == [False, True]
    assert not schedule.is_complete(window, 0.2, 39)  # it has 40 iterations
    short = FitSchedule(0.5, 0.01, batches=100)
    assert short.is_complete(window, 0.25, 33) and not short.is_complete(window, 0.24, 33)
    assert all(FitSchedule(0.5, 0.01).is_complete(window, 0.25, number) for number in range(5))


def test_a_trend_is_not_taken_for_noise() -> None:
    mixture, rate = mixture_of(Diagonal(DIM)), 0.5
    window, schedule = empty_window(mixture, mixture.state()), FitSchedule(rate, 0.01)
    for t in range(schedule.length(rate)):  # steps of a fit without noise, each half of the one before
        step = MixtureStep(np.full((1, DIM), 0.5**t), np.zeros(DIM), np.zeros(0))
        window = extended_window(window, mixture, mixture.state(), step, 0.0)
    assert schedule.verdict(window_summary(window, mixture, mixture.state(), rate), None) == "traveling"


def test_the_verdict_weighs_signal_noise_and_the_rise_of_the_elbo() -> None:
    schedule = FitSchedule(0.5, tol=0.01)
    quiet = WindowSummary(elbo=-5.0, stderr=0.01, signal=1e-4, noise=0.02, noise_of_average=0.005)
    assert schedule.verdict(quiet, None) == "converged"
    assert schedule.verdict(quiet._replace(noise_of_average=0.02), None) == "noisy"
    assert schedule.verdict(quiet._replace(signal=0.03), None) == "traveling"
    assert schedule.verdict(quiet, quiet._replace(elbo=-5.1)) == "traveling"
    assert schedule.verdict(quiet, quiet._replace(elbo=-5.03)) == "converged"
    exact = WindowSummary(-5.0, 0.0, 1e-12, 0.0, 0.0)
    assert schedule.verdict(exact, None) == "traveling"
    assert schedule.verdict(exact._replace(signal=1e-17), None) == "converged"


def test_the_norm_of_a_step_is_that_of_the_joint_fisher_matrix() -> None:
    """pi_k (|delta|^2 + <M + M^T, M + M^T> / 2), and the covariance of the logits' indicator; M is symmetric here."""
    mixture, rng = mixture_of(Full(3), 2), np.random.default_rng(0)
    log_weights = np.log([0.2, 0.8])
    state = mixture.state()._replace(log_weights=log_weights)
    deltas, ms = rng.standard_normal((2, 3)), np.array([local(Full(3), rng) for _ in range(2)])
    dense = [Full(3).dense_local(m) for m in ms]
    parts = [d @ d + 0.5 * ((m + m.T) ** 2).sum() for d, m in zip(deltas, dense, strict=True)]
    expected = 0.2 * parts[0] + 0.8 * parts[1] + 0.2 * 0.8 * 0.7**2
    close(squared_fisher_norm(mixture, state, np.concatenate([deltas.ravel(), ms.ravel(), [0.7]])), expected)


def test_the_average_of_a_window_is_that_of_its_parameters() -> None:
    mixture = mixture_of(Diagonal(2))
    first, window = mixture.state(), empty_window(mixture, mixture.state())
    for shift in (1.0, 3.0):
        state = first._replace(means=first.means + shift, roots=first.roots * shift)
        window = extended_window(window, mixture, state, MixtureStep(np.zeros((1, 2)), np.zeros(2), np.zeros(0)), 0.0)
    close(window_average(window).means, first.means + 2)
    close(window_average(window).roots, first.roots * 2)


@pytest.mark.parametrize(
    "group",
    [
        Full(DIM),
        Triangular(DIM, False),
        BlockTriangular(DIM, 2),
        Circulant(DIM, 2),
        Kronecker(Full(2), Triangular(3)),
        Conjugate(Kronecker(Full(2), Full(3)), np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]),
    ],
    ids=str,
)
def test_the_spectral_norm_is_numpys(group: Group) -> None:
    m = local(group, np.random.default_rng(1), 3.0)
    exact = np.linalg.norm(group.dense_local(m), 2)
    assert 0.85 * exact < spectral_norm(group, m) < (1 + 1e-10) * exact


@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0])
def test_long_steps_are_shortened_and_keep_their_direction_short_ones_are_left_alone(rate: float) -> None:
    mixture, rng = mixture_of(Full(DIM), 2), np.random.default_rng(0)
    ms = np.concatenate([local(Full(DIM), rng, size) for size in (1e-3, 1e3)])
    step = MixtureStep(np.array([np.full(DIM, 1e-3), np.full(DIM, 1e3)]), ms, np.array([50.0]))
    short = clipped_step(step, mixture, rate, np.ones(2))
    close(short.deltas[0], step.deltas[0], 1e-15)
    close(short.ms[:36], ms[:36], 1e-15)
    assert rate * np.linalg.norm(short.deltas[1]) <= np.sqrt(rate * DIM / 4) * (1 + 1e-12)
    assert rate * np.linalg.norm(short.ms[36:].reshape(DIM, DIM), 2) <= 1.1  # the norm is estimated from below
    assert rate * np.sqrt(2) * np.linalg.norm(short.ms[36:]) <= np.sqrt(rate * DIM / 4) * (1 + 1e-12)
    close(short.ms[36:] / np.linalg.norm(short.ms[36:]), ms[36:] / np.linalg.norm(ms[36:]))
    assert 0 < rate * short.logits[0] <= 1


def test_the_reach_of_a_mean_doubles_after_long_steps_that_agree_and_is_reset_after_others() -> None:
    mixture, rate, reach = mixture_of(Diagonal(DIM), 3), 0.5, np.array([4.0, 4.0, 1.0])
    longest = np.sqrt(DIM / (4 * rate))
    deltas = np.eye(3, DIM) * np.array([3.9, 1.9, 0.6])[:, None] * longest
    assert next_reach(reach, mixture, rate, deltas).tolist() == [8.0, 1.0, 2.0]
    far = MixtureStep(np.full((3, DIM), 1e3), np.zeros(3 * DIM), np.zeros(2))
    close(np.linalg.norm(clipped_step(far, mixture, rate, reach).deltas, axis=1), reach * longest)
