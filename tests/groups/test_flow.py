"""The step for large rates: samples that stay in place while the square root moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from esgroup.groups import Diagonal, Full, Group, Triangular
from esgroup.groups.hooks import Hooks, flow_rate
from tests.groups.cases import CASES
from tests.strategies.dense import projection

seeds = st.integers(0, 10**6)


def samples(dim: int, rng: np.random.Generator, share: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Samples, weights that sum to `share` apart from small negative ones, and the sum: a generation's, roughly."""
    z = rng.standard_normal((3 * dim + 6, dim))
    weights = rng.exponential(size=len(z))
    weights *= share / weights.sum()
    worse = slice(0, dim)
    z[worse] *= np.sqrt(dim) / np.linalg.norm(z[worse], axis=1, keepdims=True)
    weights[worse] = -0.2 * (1 - share) / dim**2
    return z, weights, float(weights.sum())


def additive(z: np.ndarray, weights: np.ndarray, shift: float) -> np.ndarray:
    """(1 - s) I + sum_i w_i z_i z_i^T, written out."""
    return (1 - shift) * np.eye(z.shape[1]) + sum(w * np.outer(x, x) for x, w in zip(z, weights, strict=True))


def integrated(group: Group, z: np.ndarray, weights: np.ndarray, shift: float) -> np.ndarray:
    """S(1) of dS/dt = S C (.) kappa(T (sum_i w_i S^-1 z_i z_i^T S^-T - s I)) on dense matrices, to many digits."""
    dim, project = group.dim, projection(group)
    second, rate = (z.T * weights) @ z, -np.log(1 - shift) / shift

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        s = flat.reshape(dim, dim)
        inverse = np.linalg.inv(s)
        return (s @ project(rate * (inverse @ second @ inverse.T - shift * np.eye(dim)))).ravel()

    return solve_ivp(slope, (0, 1), np.eye(dim).ravel(), rtol=1e-9, atol=1e-11).y[:, -1].reshape(dim, dim)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.95])
@pytest.mark.parametrize("group", [Full(1), Full(5), Triangular(5), Triangular(5, lower=False)], ids=str)
def test_where_nothing_is_lost_the_flow_is_the_additive_update(group: Group, share: float) -> None:
    z, weights, shift = samples(group.dim, np.random.default_rng(3), share)
    root = group.dense(group._flow(z, weights, shift))
    np.testing.assert_allclose(root @ root.T, additive(z, weights, shift), rtol=1e-12, atol=1e-13)


def test_the_root_of_the_full_group_is_symmetric() -> None:
    z, weights, shift = samples(4, np.random.default_rng(1), 0.8)
    root = Full(4)._flow(z, weights, shift).reshape(4, 4)
    np.testing.assert_allclose(root, root.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(root).min() > 0


@pytest.mark.parametrize("share", [0.02, 0.3, 0.95])
def test_every_coordinate_of_the_diagonal_group_has_the_additive_update(share: float) -> None:
    z, weights, shift = samples(6, np.random.default_rng(2), share)
    squares = Diagonal(6)._flow(z, weights, shift) ** 2
    np.testing.assert_allclose(squares, np.diagonal(additive(z, weights, shift)), rtol=1e-13)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("dim", [2, 5, 10])
def test_midpoint_steps_come_within_three_per_cent_of_the_closed_form(dim: int, share: float) -> None:
    z, weights, shift = samples(dim, np.random.default_rng(5), share)
    root = Hooks._flow(Full(dim), z, weights, shift).reshape(dim, dim)
    wanted = additive(z, weights, shift)
    assert np.linalg.norm(root @ root.T - wanted) < 0.03 * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("full", "triangular", "diagonal")])
@given(data=st.data(), seed=seeds)
def test_the_flow_of_every_group_solves_its_differential_equation(name: str, data: st.DataObject, seed: int) -> None:
    group = data.draw(CASES[name])
    z, weights, shift = samples(group.dim, np.random.default_rng(seed), 0.7)
    found, wanted = group.dense(group._flow(z, weights, shift)), integrated(group, z, weights, shift)
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)


def test_to_first_order_the_flow_is_a_step_of_h() -> None:
    group = Full(4)
    z, weights, _ = samples(4, np.random.default_rng(8), 0.5)
    gaps = []
    for size in (1e-2, 1e-3):
        shift = float(size * weights.sum())
        step = group.h(group.project(z, size * weights, shift))
        gaps.append(np.abs(group._flow(z, size * weights, shift) - step).max())
    assert gaps[0] < 1e-2
    assert gaps[1] < 0.02 * gaps[0]  # of second order


def test_the_rate_keeps_the_share_that_is_not_learned() -> None:
    for shift in (-0.3, 1e-15, 0.1, 0.95):
        assert np.exp(-flow_rate(shift) * shift) == pytest.approx(1 - shift, rel=1e-14)
