"""Generations of the search against the published formulas on dense matrices, for every group."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup.groups import Diagonal, Full, Group, Heisenberg, Kronecker, Triangular
from esgroup.strategies.evolution import Evolution, SearchState
from esgroup.strategies.recombination import Constants, Published
from tests.groups.cases import CASES
from tests.groups.laws import close
from tests.strategies import dense
from tests.strategies.states import (
    ADAPTED,
    BOTH,
    DECODED,
    PLAIN,
    Rng,
    copied,
    dense_twin,
    evolution_of,
    placed,
    some_state,
)

# Samples of one generation, scale and common shift: ordinary ones; such that h_sigma is 0 and sigma grows by all that
# it may; such that M is scaled down
KINDS = [(1.0, 0.0), (1.0, 0.0), (0.7, 12.0), (1.0, 0.0), (5.0, 0.0), (1.0, 0.5)]


def one_generation(
    evolution: Evolution, state: SearchState, twin: dense.Dense, z: np.ndarray, order: np.ndarray
) -> None:
    generation, x = placed(evolution, state, z)
    close(x, twin.points(z), 1e-9)
    evolution.update(state, generation, order)
    twin.move(z, order)


def assert_equal(evolution: Evolution, state: SearchState, twin: dense.Dense) -> None:
    close(state.mean, twin.mean, 1e-8)
    close(state.sigma[0], twin.sigma, 1e-9)
    close(state.path_s, twin.p_s, 1e-9)
    close(state.path_c, twin.p_c, 1e-9)
    close(state.scale, twin.d, 1e-8)
    close(evolution.group.dense(state.root), twin.a, 1e-8)
    if len(state.inverse):
        close(evolution.group.dense(state.inverse), np.linalg.inv(twin.a), 1e-7)
    if evolution.adaptation is not None:
        close(state.rates[:2], [twin.of_mean.eta, twin.of_root.eta], 1e-9)


def follow(group: Group, options: tuple, popsize: int, rng: Rng) -> list[dict]:
    """Run generations of all kinds by the search and by its dense twin; return the reports of the twin."""
    evolution = evolution_of(group, options)
    state = some_state(evolution, rng)
    twin, reports = dense_twin(evolution, state, popsize), []
    for scale, shift in KINDS:
        z = scale * rng.standard_normal((popsize, group.dim)) + shift / np.sqrt(group.dim)
        one_generation(evolution, state, twin, z, rng.permutation(popsize))
        assert_equal(evolution, state, twin)
        reports.append(twin.report)
    return reports


@pytest.mark.parametrize("options", [PLAIN, DECODED, ADAPTED, BOTH], ids=["plain", "decoded", "adapted", "both"])
@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), popsize=st.integers(4, 12))
def test_generations_equal_the_formulas_on_dense_matrices(
    name: str, options: tuple, data: st.DataObject, seed: int, popsize: int
) -> None:
    group = data.draw(CASES[name].filter(lambda g: g.dim <= 9))
    follow(group, options, popsize, np.random.default_rng(seed))


def test_rates_adapt_in_a_kronecker_product_as_in_any_group() -> None:
    """The norm of a local step is not that of an element."""
    follow(Kronecker(Full(2), Triangular(3)), ADAPTED, 8, np.random.default_rng(1))


@pytest.mark.parametrize("options", [PLAIN, DECODED, BOTH], ids=["plain", "decoded", "both"])
@pytest.mark.parametrize(("dim", "popsize"), [(50, 6), (50, 60), (48, 9), (3, 30), (3, 120), (50, 120)])
def test_large_and_small_matrices_take_the_same_step(dim: int, popsize: int, options: tuple) -> None:
    """BLAS replaces loops above 48 coordinates, and many samples take another route than few."""
    follow(Full(dim), options, popsize, np.random.default_rng(dim + popsize))


@pytest.mark.parametrize("dim", [5, 60])
def test_many_samples_do_not_cost_more_than_their_number(dim: int) -> None:
    """No matrix of samples by samples is formed for a thousand samples, as after a few restarts."""
    rng, evolution = np.random.default_rng(15), evolution_of(Full(dim), DECODED)
    state = some_state(evolution, rng)
    generation, _ = placed(evolution, state, rng.standard_normal((1000, dim)))
    evolution.update(state, generation, np.arange(1000))
    tracemalloc.start()
    evolution.update(state, generation, np.arange(1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1000**2 / 2


def test_the_generations_above_meet_every_case_of_the_formulas() -> None:
    reports = follow(Full(5), DECODED, 8, np.random.default_rng(3))
    assert {r["steady"] for r in reports} == {True, False}
    for met in ([r["clip"] < 1 for r in reports], [r["log_step"] == 1 for r in reports]):
        assert set(met) == {True, False}
    assert {r["exponent"] > 1 for r in reports} == {True, False}


def test_the_order_of_samples_in_memory_does_not_matter() -> None:
    rng, group = np.random.default_rng(4), Heisenberg(7, 2, 1)
    evolution = evolution_of(group, DECODED)
    state = some_state(evolution, rng)
    other = copied(state)
    z, order, shuffle = rng.standard_normal((9, 7)), rng.permutation(9), rng.permutation(9)
    one_generation(evolution, state, dense_twin(evolution, state, 9), z, order)
    one_generation(evolution, other, dense_twin(evolution, other, 9), z[shuffle], np.argsort(shuffle)[order])
    for one, two in zip(state, other, strict=True):
        close(one, two, 1e-12)


def test_points_are_turned_into_local_coordinates_and_back() -> None:
    rng = np.random.default_rng(5)
    for group in (Full(4), Heisenberg(4, 1, 1)):
        evolution = evolution_of(group, PLAIN)
        state, x = some_state(evolution, rng), rng.standard_normal((5, 4))
        root = float(state.sigma[0]) * state.scale[:, None] * group.dense(state.root)
        close(evolution.local(state, x), np.linalg.solve(root, (x - state.mean).T).T)


# ---- plain cases ------------------------------------------------------------------------------------------------


class MaEs:
    """The numbers of MA-ES: positive weights only, p_s for p_c (one rate, no h_sigma), c_1, c_mu times epsilon."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def constants(self, n: int, dim: int, dof: int, gathered: int = 0) -> Constants:
        k = dense.numbers(dim, n, dof)
        u = np.maximum(k.u, 0.0)
        c_1, c_mu = self.epsilon * k.c_1, self.epsilon * k.c_mu
        numbers = np.array([k.c_s, k.c_s, c_1, c_mu, k.mu_eff, np.inf, 1.0])
        return Constants(u, u, numbers, (0.0,) * 5, k.c_s, k.c_s / k.d_s, dense.chi(dim), np.inf)


def ma_es_gap(epsilon: float) -> float:
    """Return the distance of one generation from Beyer and Sendhoff 2017, M <- M (I + c_1/2 (s s^T - I) + ...)."""
    rng, n = np.random.default_rng(6), 4
    evolution = Evolution(Full(n), MaEs(epsilon))
    state = some_state(evolution, rng)
    k = dense.numbers(n, 8, evolution.group.dof)
    m, s, y, sigma = evolution.group.dense(state.root), np.zeros(n), state.mean.copy(), float(state.sigma[0])
    d_before = state.scale.copy()
    for _ in range(3):
        z, order = rng.standard_normal((8, n)), rng.permutation(8)
        evolution.update(state, placed(evolution, state, z)[0], order)
        best, w = z[order[:4]], k.w[:4]
        y = y + sigma * d_before * (m @ (w @ best))
        s = (1 - k.c_s) * s + np.sqrt(k.mu_eff * k.c_s * (2 - k.c_s)) * (w @ best)
        rank_one, rank_mu = np.outer(s, s) - np.eye(n), (best.T * w) @ best - np.eye(n)
        m = m @ (np.eye(n) + epsilon * k.c_1 / 2 * rank_one + epsilon * k.c_mu / 2 * rank_mu)
        sigma *= np.exp(k.c_s / k.d_s * (np.linalg.norm(s) / dense.chi(n) - 1))
        close(state.path_s, s)
        close(state.path_c, s)
        close(state.sigma[0], sigma)
    return float(np.abs(evolution.group.dense(state.root) - m).max())


def test_the_full_group_is_ma_es_to_first_order() -> None:
    gaps = [ma_es_gap(epsilon) for epsilon in (0.04, 0.02, 0.01)]
    assert gaps[0] < 1e-3
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.05)
    assert gaps[1] / gaps[2] == pytest.approx(4, rel=0.03)


def test_the_diagonal_group_is_sep_cma_es_to_first_order() -> None:
    """Ros and Hansen 2008: C_jj <- (1 - c_1 - c_mu sum w) C_jj + c_1 p_j^2 + c_mu sum w y_j^2, with D for B and D."""
    rng, n = np.random.default_rng(7), 5
    gaps = []
    for epsilon in (0.02, 0.01):
        rng = np.random.default_rng(7)
        evolution = Evolution(Diagonal(n), MaEs(epsilon))
        state = some_state(evolution, rng)
        k, before = dense.numbers(n, 8, n), state.root.copy()
        z = rng.standard_normal((8, n))
        evolution.update(state, placed(evolution, state, z)[0], np.arange(8))
        path, c_1, c_mu = before * state.path_c, epsilon * k.c_1, epsilon * k.c_mu
        covariance = (1 - c_1 - c_mu) * before**2 + c_1 * path**2 + c_mu * (k.w[:4] @ (before * z[:4]) ** 2)
        gaps.append(np.abs(state.root**2 - covariance).max())
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.05)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", CASES)
def test_the_published_update_is_a_natural_gradient_step_with_utilities(
    name: str, data: st.DataObject, seed: int
) -> None:
    """mu + A sum u z and A h(eta/2 P(sum u (z z^T - I))), nothing else."""
    group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 9)), np.random.default_rng(seed)
    evolution = Evolution(group, Published())
    state, n = some_state(evolution, rng), group.dim
    mean, root, d = state.mean.copy(), group.dense(state.root), state.scale.copy()
    z, order = 0.8 * rng.standard_normal((7, n)), rng.permutation(7)
    evolution.update(state, placed(evolution, state, z)[0], order)
    u = np.maximum(0, np.log(4.5) - np.log(np.arange(1, 8)))
    u = u / u.sum() - 1 / 7
    eta = (3 + np.log(n)) / (5 * np.sqrt(n)) * min(1, 3 * (n + 1) / (2 * group.dof))
    g = eta * (z[order].T * u) @ z[order]
    sigma = float(state.sigma[0])
    close(state.mean, mean + sigma * d * (root @ (u @ z[order])))
    close(group.dense(state.root), root @ dense.h(group, dense.projection(group)(g)))
    close(state.scale, d)
    close(state.path_s, u @ z[order])  # the last step, for devices beside the update
    assert not state.path_c.any()


# ---- samples that are none --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60])
def test_samples_that_are_not_finite_change_nothing(bad: float) -> None:
    rng = np.random.default_rng(13)
    evolution = evolution_of(Full(3), DECODED)
    state = some_state(evolution, rng)
    generation, _ = placed(evolution, state, rng.standard_normal((6, 3)))
    generation.z[2, 1] = bad
    before = copied(state)
    with pytest.raises(ValueError, match="1e50 standard deviations"):
        evolution.update(state, generation, np.arange(6))
    for name, one, two in zip(state._fields, before, state, strict=True):
        assert np.array_equal(one, two), name


@pytest.mark.parametrize("options", [PLAIN, DECODED, BOTH], ids=["plain", "decoded", "both"])
@pytest.mark.parametrize("group", [Full(4), Full(50), Triangular(4)], ids=str)
@pytest.mark.parametrize("length", [0.0, 1e-200, 1e-80, 1e-30, 1e-6, 1e-3])
def test_a_sample_at_the_mean_itself_may_be_among_the_worst(group: Group, options: tuple, length: float) -> None:
    """Telling the value of x0 gives such a sample: z z^T = 0 whatever its weight."""
    rng, evolution = np.random.default_rng(14), evolution_of(group, options)
    state = some_state(evolution, rng)
    twin, z = dense_twin(evolution, state, 8), rng.standard_normal((8, group.dim))
    z[5] *= length / np.linalg.norm(z[5])
    one_generation(evolution, state, twin, z, np.arange(8))
    assert_equal(evolution, state, twin)
