"""Diagonal decoding: score and Fisher information of log D from the Gaussian density, and one step written out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from esgroup.groups import Diagonal, Full, Group, Heisenberg, Triangular
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.recombination import Cumulative
from tests.groups.cases import CASES
from tests.groups.elements import element
from tests.groups.laws import close
from tests.strategies import dense
from tests.strategies.states import DAMPING, DECODED, NEGATIVE_MEAN, copied, evolution_of, placed, some_state


def covariance_of(d: np.ndarray, a: np.ndarray) -> np.ndarray:
    return d[:, None] * (a @ a.T) * d


def step_of_log_d(
    group: Group, root: np.ndarray, z: np.ndarray, weights: np.ndarray, step: tuple[float, float, float]
) -> np.ndarray:
    """The step of log D; the last row of z is the path."""
    state = evolution_of(group, DECODED).start(np.zeros(group.dim), np.ones(group.dim))
    state.root[:], state.scale[:], state.fisher[:] = root, 1.0, 1.0
    state.inverse[:] = group.inverse(root) if group.carries_inverse else 0.0
    generation = Generation.empty(len(z) - 1, group.dim)
    generation.z[:], generation.y[:], generation.weights[:] = z, group.apply(root, z), weights
    v = Decoding().move_scale(group, state, generation, (*step, 1.0))
    close(v, z @ np.linalg.inv(group.dense(root)))
    return np.log(state.scale)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_the_score_is_the_derivative_of_the_log_density_by_log_d(name: str, data: st.DataObject, seed: int) -> None:
    group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 9)), np.random.default_rng(seed)
    root, d = element(group, rng), rng.uniform(0.5, 2.0, group.dim)
    z, epsilon = rng.standard_normal((2, group.dim)), 1e-5
    for weights, ratios in (([1e-3, 0.0], (1.0, 9.0)), ([0.0, 1e-3], (9.0, 1.0))):  # a sample, then the path
        found = step_of_log_d(group, root, z, np.array(weights), (*ratios, 1e-3))
        x = d * group.apply(root, z[int(weights[0] == 0)])
        for j in range(group.dim):
            away = np.exp(epsilon * np.eye(group.dim)[j])
            up, down = (
                multivariate_normal(cov=covariance_of(d * away**sign, group.dense(root))).logpdf(x) for sign in (1, -1)
            )
            close(found[j], 1e-3 * (up - down) / (2 * epsilon), 1e-6)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_fisher_information_is_that_of_the_gaussian(name: str, data: st.DataObject, seed: int) -> None:
    """F_jj = tr(S^-1 dS S^-1 dS) / 2 with S = D C D and dS = dS / d log D_j, damped by sqrt(max F / 2)."""
    group, rng = data.draw(CASES[name].filter(lambda g: g.dim <= 9)), np.random.default_rng(seed)
    root, d = element(group, rng), rng.uniform(0.5, 2.0, group.dim)
    s, unit = covariance_of(d, group.dense(root)), np.eye(group.dim)
    information = []
    for j in range(group.dim):
        ds = np.outer(unit[j], s[j]) + np.outer(s[:, j], unit[j])
        ratio = np.linalg.solve(s, ds)
        information.append(np.trace(ratio @ ratio) / 2)
    found = np.empty(group.dim)
    Decoding().refresh(group, root, group.inverse(root), found)
    close(found, np.array(information) * math.sqrt(max(information) / 2), 1e-8)


def test_independent_coordinates_have_information_two_and_no_damping() -> None:
    found = np.empty(3)
    Decoding().refresh(Diagonal(3), np.array([1.0, 5.0, 0.1]), np.array([1.0, 0.2, 10.0]), found)
    close(found, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("group", [Full(4), Full(50), Triangular(4), Heisenberg(5, 1, 2)], ids=str)
def test_one_step_written_out(group: Group) -> None:
    """log D_j += g (c_1d (v_p y_p - 1) + c_mud sum w (v y - 1)) / (F sqrt(max F / 2)), v = A^-T z, y = A z.

    g is the least one in the first step.
    """
    rng, n = np.random.default_rng(1), group.dim
    evolution = Evolution(group, Cumulative(NEGATIVE_MEAN, DAMPING), Decoding())
    state = some_state(evolution, rng)
    state.path_c[:] = 0.3 * rng.standard_normal(n)
    before, a = copied(state), group.dense(state.root)
    z, k = rng.standard_normal((8, n)), dense.numbers(n, 8, group.dof, NEGATIVE_MEAN)
    evolution.update(state, placed(evolution, state, z)[0], np.arange(8))
    path = (1 - k.c_c) * before.path_c + math.sqrt(k.c_c * (2 - k.c_c) * k.mean_mu_eff) * (k.u @ z)
    close(state.path_c, path)  # h_sigma = 1 here
    c, inverse = a @ a.T, np.linalg.inv(a)
    fisher = 1 + np.diagonal(c) * np.diagonal(np.linalg.inv(c))
    gradient = k.c_1d * ((inverse.T @ path) * (a @ path) - 1)
    for w, s in zip(k.w, z, strict=True):
        length = n / (s @ s) if w < 0 else 1.0
        gradient += k.c_mud * w * (length * (inverse.T @ s) * (a @ s) - 1)
    exponent = gradient / (fisher * math.sqrt(fisher.max() / 2))
    assert np.abs(exponent).max() < 1
    close(np.log(state.scale / before.scale), k.least * exponent, 1e-9)


def test_the_step_of_log_d_is_at_most_one_either_way() -> None:
    root, z = Full(2).identity(), np.array([[3.0, 3.0], [0.0, 0.0]])
    found = step_of_log_d(Full(2), root, z, np.array([1.0, 0.0]), (1.0, 1.0, 0.0))
    assert np.array_equal(found, [1.0, 1.0])
    found = step_of_log_d(Full(2), root, z, np.array([-1.0, 0.0]), (1.0, 1.0, 0.0))
    assert np.array_equal(found, [-1.0, -1.0])


# ---- one distribution, many (sigma, D, A) -----------------------------------------------------------------------


def moved(evolution: Evolution, state: SearchState, z: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sigma D A after one generation."""
    evolution.refresh(state)
    evolution.update(state, placed(evolution, state, z)[0], order)
    return state.mean, state.sigma[0] * state.scale[:, None] * evolution.group.dense(state.root)


@pytest.mark.parametrize("group", [Full(5), Triangular(5), Diagonal(5), Heisenberg(5, 2, 1)], ids=str)
def test_steps_do_not_depend_on_how_scales_are_shared_between_sigma_d_and_a(group: Group) -> None:
    rng = np.random.default_rng(2)
    evolution = evolution_of(group, DECODED)
    state = some_state(evolution, rng)
    z, order, scales = rng.standard_normal((8, 5)), rng.permutation(8), rng.uniform(0.3, 3.0, 5)
    other = copied(state)
    other.root[:] = group.product(group.from_dense(np.diag(scales)), state.root)
    other.scale[:] /= 7 * scales
    other.sigma[0] *= 7
    for one, two in zip(moved(evolution, state, z, order), moved(evolution, other, z, order), strict=True):
        close(one, two, 1e-10)


def test_steps_of_the_full_group_do_not_depend_on_the_square_root_of_the_covariance() -> None:
    """A Q with samples Q^T z are the same points."""
    rng, group = np.random.default_rng(3), Full(5)
    evolution = evolution_of(group, DECODED)
    state = some_state(evolution, rng)
    other, z, order = copied(state), rng.standard_normal((8, 5)), rng.permutation(8)
    q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    other.root[:] = (group.dense(state.root) @ q).ravel()
    mean, root = moved(evolution, state, z, order)
    same_mean, same_root = moved(evolution, other, z @ q, order)
    close(mean, same_mean, 1e-10)
    close(root @ root.T, same_root @ same_root.T, 1e-9)
    close(state.scale, other.scale, 1e-10)
