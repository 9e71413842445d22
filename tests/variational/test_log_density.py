"""The derivatives of a mixture's log density against finite differences of SciPy's densities."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.groups import BlockTriangular, Conjugate, Diagonal, Full, Heisenberg, Kronecker, Triangular
from esgroup.variational.log_density import LogDensity, variances
from tests.distributions.test_mixture import logs_of_parts, some
from tests.groups.laws import close

DIM = 4
PARTS = [
    (Full(DIM), "covariance"),
    (BlockTriangular(DIM, 2), "precision"),
    (Heisenberg(DIM, 1, 1, False), "covariance"),
    (Conjugate(Triangular(DIM), np.array([2, 0, 3, 1])), "precision"),
    (Diagonal(DIM), "precision"),
    (Kronecker(Full(2), Diagonal(2)), "covariance"),
]
PI = np.array([0.3, 0.1, 0.15, 0.2, 0.05, 0.2])
EVERY = np.arange(5)


@pytest.fixture
def case() -> tuple:
    mixture, state, rng = some(PARTS, PI, 3)
    x = rng.standard_normal((5, DIM))
    return mixture, state, x, LogDensity(mixture, state, x)


def log_q(mixture: Mixture, state: object, x: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logs_of_parts(mixture, state, x[None])[0]))


def difference(function: object, x: np.ndarray, size: float = 1e-5) -> np.ndarray:
    """Central differences, coordinates on the last axis."""
    units = size * np.eye(len(x))
    return np.stack([(function(x + e) - function(x - e)) / (2 * size) for e in units], axis=-1)


def test_values_are_those_of_scipys_normals(case: tuple) -> None:
    mixture, state, x, density = case
    close(density.values(EVERY), [log_q(mixture, state, point) for point in x])


def test_the_gradient_is_the_difference_quotient_of_the_density(case: tuple) -> None:
    mixture, state, x, density = case
    expected = [difference(lambda y: log_q(mixture, state, y), point) for point in x]
    close(density.gradients(EVERY), expected, 1e-7)
    close(approx_fprime(x[0], lambda y: log_q(mixture, state, y)), density.gradients(EVERY)[0], 1e-5)


def test_products_diagonals_and_hessians_are_difference_quotients_of_the_gradient(case: tuple) -> None:
    mixture, state, x, density = case

    def gradient(y: np.ndarray) -> np.ndarray:
        return LogDensity(mixture, state, y[None]).gradients(np.array([0]))[0]

    hessians = np.array([difference(gradient, point) for point in x])
    close(density.hessians(EVERY), hessians, 1e-6)
    close(density.diagonals(EVERY), np.einsum("nii->ni", hessians), 1e-6)
    owners, v = np.array([4, 0, 0, 2]), np.random.default_rng(0).standard_normal((4, DIM))
    close(density.products(owners, v), np.einsum("nij,nj->ni", hessians[owners], v), 1e-6)


def test_far_components_are_left_out_without_a_trace() -> None:
    near, far = Gaussian("full", np.zeros(3)), Gaussian("full", np.full(3, 1e3))
    both = Mixture((near, far), [0.5, 0.5])
    one = Mixture((near,))
    x = np.random.default_rng(0).standard_normal((2, 3))
    ours, alone = LogDensity(both, both.state(), x), LogDensity(one, one.state(), x)
    places = np.arange(2)
    close(ours.gradients(places), alone.gradients(places), 1e-14)
    close(ours.products(places, x), alone.products(places, x), 1e-14)
    close(ours.diagonals(places), alone.diagonals(places), 1e-14)


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_variances_are_the_diagonal_of_the_covariance(form: str) -> None:
    mixture, state, _ = some([(BlockTriangular(DIM, 2), form)], np.ones(1), 1)
    gaussian, own = mixture.components[0], mixture.component_states(state)[0]
    close(variances(gaussian, own), np.diagonal(gaussian.dense_covariance(own)))
