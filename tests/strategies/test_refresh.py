"""What a search recomputes every few generations, and what it reports about its distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup.groups import Full, Group, Heisenberg, Kronecker, Triangular
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation
from esgroup.strategies.recombination import Cumulative
from tests.groups.cases import CASES
from tests.groups.elements import element
from tests.groups.laws import close
from tests.strategies import dense
from tests.strategies.states import BOTH, DAMPING, DECODED, NEGATIVE_MEAN, PLAIN, evolution_of, some_state


@pytest.mark.parametrize("options", [PLAIN, DECODED], ids=["plain", "decoded"])
@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_a_refresh_leaves_the_distribution_and_sets_sigma_to_the_geometric_mean_of_deviations(
    name: str, options: tuple, data: st.DataObject, seed: int
) -> None:
    group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 9)), np.random.default_rng(seed)
    evolution = evolution_of(group, options)
    state = some_state(evolution, rng)
    state.root[:] = group.scale(element(group, rng), 3.0)
    state.scale[:] = rng.uniform(0.5, 5.0, group.dim)
    before = state.sigma[0] * state.scale[:, None] * group.dense(state.root)
    evolution.refresh(state)
    root = group.dense(state.root)
    close(state.sigma[0] * state.scale[:, None] * root, before)
    for positive in (state.scale, np.sqrt((root**2).sum(axis=1))):
        close(np.log(positive).mean(), 0.0)
    close(evolution.variances(state), (before**2).sum(axis=1))
    if options is DECODED:
        covariance = root @ root.T
        fisher = 1 + np.diagonal(covariance) * np.diagonal(np.linalg.inv(covariance))
        close(state.fisher, fisher * np.sqrt(fisher.max() / 2), 1e-8)
        if group.carries_inverse:
            close(group.dense(state.inverse) @ root, np.eye(group.dim))


def test_a_start_has_the_deviations_and_the_correlation_asked_for() -> None:
    rng = np.random.default_rng(8)
    root = rng.standard_normal((4, 4))
    covariance = root @ root.T
    stds = np.sqrt(np.diagonal(covariance))
    evolution = evolution_of(Full(4), DECODED)
    state = evolution.start(np.arange(4), stds, covariance / np.outer(stds, stds))
    a = state.sigma[0] * state.scale[:, None] * evolution.group.dense(state.root)
    close(a @ a.T, covariance)
    close(state.sigma[0], np.exp(np.log(stds).mean()))
    close(evolution.variances(state), stds**2)


def test_carried_arrays_stay_accurate_over_a_thousand_generations() -> None:
    """These are A^-1 and, at every refresh, F; the condition of A A^T becomes 10^4 here."""
    for dim in (6, 50):
        rng, group = np.random.default_rng(9), Full(dim)
        evolution = Evolution(group, Cumulative(0.0, 1.0), Decoding())
        state = evolution.start(np.ones(dim), np.ones(dim))
        rotation, weights = np.linalg.qr(rng.standard_normal((dim, dim)))[0], np.logspace(0, 4, dim)
        generation, x = Generation.empty(12, dim), np.empty((12, dim))
        for age in range(1, 1011):
            evolution.sample(state, 12, rng, generation, x)
            evolution.update(state, generation, np.argsort((x @ rotation) ** 2 @ weights))
            assert state.age[0] == age % (1000 if dim == 6 else 1008)  # the first multiple of 50 // 4 from 1000 on
            if age == 999:
                a, inverse = group.dense(state.root), group.dense(state.inverse)
                assert np.linalg.cond(a) > (8 if dim == 6 else 2)
                close(inverse @ a, np.eye(dim), 1e-10)


@pytest.mark.parametrize(("group", "often"), [(Full(6), 1), (Triangular(6), 10)])
def test_fisher_information_is_recomputed_often_and_everything_else_rarely(group: Group, often: int) -> None:
    """At every step for small dense matrices, which are rescaled every thousand; every ten steps for others."""
    rng = np.random.default_rng(10)
    evolution = evolution_of(group, DECODED)
    state, generation, x = some_state(evolution, rng), Generation.empty(8, 6), np.empty((8, 6))
    renewed, rescaled = [], []
    last = 1010 if often == 1 else 50
    for age in range(1, last + 1):
        fisher = state.fisher.copy()
        evolution.sample(state, 8, rng, generation, x)
        evolution.update(state, generation, rng.permutation(8))
        if not np.array_equal(fisher, state.fisher):
            renewed.append(age)
        if state.age[0] == 0:
            assert abs(np.log(state.scale).mean()) < 1e-14
            rescaled.append(age)
    same = (1, 1001)  # A is what it was at the last refresh: F may be as well
    assert set(renewed).difference(same) == set(range(often, last + 1, often)).difference(same)
    assert rescaled == ([1000] if often == 1 else renewed)


def test_fisher_information_is_recomputed_with_adaptation_too() -> None:
    rng, evolution = np.random.default_rng(16), evolution_of(Full(3), BOTH)
    state, generation, x = some_state(evolution, rng), Generation.empty(8, 3), np.empty((8, 3))
    first = state.fisher.copy()
    for _ in range(20):
        evolution.sample(state, 8, rng, generation, x)
        evolution.update(state, generation, np.argsort(x[:, 0] ** 2 + 100 * (x[:, 1] - x[:, 2]) ** 2))
    assert not np.array_equal(first, state.fisher)


def test_measures_of_the_distribution_are_those_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(11)
    for group in (Full(5), Heisenberg(5, 1, 2), Kronecker(Full(2), Triangular(2))):
        for options in (PLAIN, DECODED):
            evolution = evolution_of(group, options)
            state = some_state(evolution, rng)
            root = group.dense(state.root)
            close(evolution.axis_ratio(state), np.linalg.cond(state.scale[:, None] * root))
            frobenius = (root**2).sum() * (np.linalg.inv(root) ** 2).sum()
            close(evolution.condition(state), frobenius)
            assert frobenius >= np.linalg.cond(root @ root.T)


def test_a_condition_beyond_1e12_is_computed_exactly() -> None:
    evolution = evolution_of(Full(3), PLAIN)
    state = evolution.start(np.zeros(3), np.ones(3))
    state.root[:] = np.diag([1.0, 1.0, 1e-7]).ravel()
    assert evolution.condition(state) == pytest.approx(1e14, rel=1e-6)


def test_deviations_are_limited_one_by_one() -> None:
    rng = np.random.default_rng(12)
    evolution = evolution_of(Full(4), PLAIN)
    state = some_state(evolution, rng)
    stds = np.sqrt(evolution.variances(state))
    correlation = np.corrcoef(evolution.group.dense(state.root))
    least, most = stds * [2.0, 0.5, 0.5, 0.5], stds * [3.0, 0.7, 2.0, np.inf]
    evolution.limit_steps(state, least, most)
    close(np.sqrt(evolution.variances(state)), stds * [2.0, 0.7, 1.0, 1.0])
    close(np.corrcoef(evolution.group.dense(state.root)), correlation)


def test_a_singular_root_forgets_correlations_and_keeps_deviations() -> None:
    evolution = evolution_of(Full(3), DECODED)
    state = evolution.start(np.zeros(3), np.array([1.0, 2.0, 3.0]))
    state.root[:] = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).ravel()
    state.path_c[:] = 1.0
    stds = np.sqrt(evolution.variances(state))
    evolution.refresh(state)
    close(np.sqrt(evolution.variances(state)), stds)
    close(evolution.group.dense(state.root), np.eye(3))
    close(evolution.group.dense(state.inverse), np.eye(3))
    assert not state.path_c.any()


def test_a_plateau_is_left_by_a_larger_step_size() -> None:
    """sigma <- sigma exp(0.2 + c_s / d_s) (tutorial, appendix B.3)."""
    evolution = Evolution(Full(4), Cumulative(NEGATIVE_MEAN, DAMPING))
    state, k = evolution.start(np.zeros(4), np.ones(4)), dense.numbers(4, 8, 10, NEGATIVE_MEAN, DAMPING)
    evolution.leave_plateau(state, 8)
    close(state.sigma[0], np.exp(0.2 + k.c_s / k.d_s))
