"""Fits to normal densities: the answer is known, and every estimator must come to it without noise."""

import numpy as np
import pytest

from esgroup.distributions import Gaussian, State, Step
from esgroup.gradients import Pathwise, Reinforce, Stein, SteinDense
from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from esgroup.variational import fit_posterior
from tests.groups.elements import local
from tests.variational.targets import NormalTarget

DIM = 6
ROTATION = np.linalg.qr(np.random.default_rng(7).standard_normal((DIM, DIM)))[0]
GROUPS: list[Group] = [
    Diagonal(DIM),
    Full(DIM),
    Triangular(DIM),
    Triangular(DIM, False),
    BlockTriangular(DIM, 2),
    BlockTriangular(DIM, 2, False),
    Heisenberg(DIM, 1, 2),
    Heisenberg(DIM, 2, 1, False),
    ToeplitzTriangular(DIM, 1),
    Circulant(DIM, 2),
    Sparse.from_edges(DIM, [(1, 0), (3, 1), (5, 2)], close=True),
    BlockDiagonal([Full(2), Triangular(4)]),
    Conjugate(BlockTriangular(DIM, 2), ROTATION),
    Kronecker(Full(2), Triangular(3)),
]
TARGET = NormalTarget.some(DIM, 1)


def objective(target: NormalTarget, family: Gaussian, state: State) -> float:
    """-ELBO in closed form: tr(H Sigma) / 2 + (mean - m)^T H (mean - m) / 2 - entropy."""
    sigma = family.dense_covariance(state)
    entropy = 0.5 * len(sigma) * (1 + np.log(2 * np.pi)) + 0.5 * float(np.linalg.slogdet(sigma)[1])
    return 0.5 * float(np.trace(target.precision @ sigma)) - target.logp(state.mean) - entropy


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_the_fit_is_stationary_and_lowest_among_its_neighbors(group: Group, form: str) -> None:
    family = Gaussian(group, form=form)
    found = fit_posterior(TARGET.logp, np.zeros(DIM), family=family, rng=0, samples=2, **TARGET.all_known())
    assert found.converged, found.message
    np.testing.assert_allclose(found.mean, TARGET.mean, rtol=0, atol=1e-6)
    slope = (TARGET.precision - np.linalg.inv(found.covariance())) / 2
    step = found.distribution.natural_gradient(found.state, np.zeros(DIM), (slope + slope.T) / 2)
    assert np.abs(step.m).max() < 1e-6
    lowest = objective(TARGET, found.distribution, found.state)
    rng = np.random.default_rng(2)
    for _ in range(5):  # by first principles, without any natural gradient
        m, size = local(group, rng, 1.0), 1e-4
        up, down = (
            objective(TARGET, found.distribution, found.distribution.move(found.state, Step(np.zeros(DIM), s * m)))
            for s in (size, -size)
        )
        assert abs(up - down) / (2 * size) < 1e-5
        assert min(up, down) > lowest - 1e-12
    assert abs(-lowest - found.elbo) < 5 * found.elbo_stderr + 1e-9


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_a_full_fit_is_the_target_itself_and_its_elbo_the_evidence(form: str) -> None:
    found = fit_posterior(TARGET.logp, np.zeros(DIM), family=Gaussian("full", form=form), rng=0, **TARGET.all_known())
    np.testing.assert_allclose(found.covariance(), np.linalg.inv(TARGET.precision), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.elbo, TARGET.log_z, rtol=0, atol=1e-6)
    assert found.elbo_stderr < 1e-6  # logp - log q is constant


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_a_diagonal_fit_has_the_inverse_diagonal_of_the_precision_for_variances(form: str) -> None:
    found = fit_posterior(
        TARGET.logp, np.zeros(DIM), family=Gaussian("diagonal", form=form), rng=0, **TARGET.all_known()
    )
    np.testing.assert_allclose(found.stds**2, 1 / np.diagonal(TARGET.precision), rtol=0, atol=1e-6)
    loss = 0.5 * (np.log(np.diagonal(TARGET.precision)).sum() - np.linalg.slogdet(TARGET.precision)[1])  # KL
    value, error = found.elbo_estimate(20_000, 1)
    assert abs(value - (TARGET.log_z - loss)) < 5 * error


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_gamma_is_the_temperature_of_the_target(gamma: float) -> None:
    found = fit_posterior(TARGET.logp, np.zeros(DIM), gamma=gamma, rng=0, **TARGET.all_known())
    np.testing.assert_allclose(found.covariance(), gamma * np.linalg.inv(TARGET.precision), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [Stein(), Stein(3), SteinDense(4, antithetic=True), Pathwise(10), Reinforce(30)],
    ids=str,
)
def test_every_estimator_reaches_the_target_exactly(estimator: object) -> None:
    known = {"jac": TARGET.jac, "hess": TARGET.hess}
    found = fit_posterior(TARGET.logp, np.zeros(DIM), estimator=estimator, rng=0, rate=0.2, **known)
    np.testing.assert_allclose(found.mean, TARGET.mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.covariance(), np.linalg.inv(TARGET.precision), rtol=0, atol=1e-6)


def test_an_estimated_diagonal_leads_almost_to_the_elbo_of_a_known_one() -> None:
    target = NormalTarget.some(12, 0)  # more coordinates than probes
    known = {"jac": target.jac, "hessp": target.hessp}
    family = Gaussian(BlockTriangular(12, 2))
    found = fit_posterior(target.logp, np.zeros(12), family=family, rng=0, tol=1e-3, **known)
    exact = fit_posterior(target.logp, np.zeros(12), family=family, rng=0, hess_diag=target.hess_diag, **known)
    gap = objective(target, found.distribution, found.state) - objective(target, exact.distribution, exact.state)
    assert -1e-9 < gap < 0.02
