"""Mixtures fitted to mixtures: where the target is in the family, the fit is the target."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.variational import fit_posterior
from esgroup.variational.log_density import LogDensity
from esgroup_problems.mixtures import student_t_mixture


def normal_mixture() -> Mixture:
    first = Gaussian("full", [-2.0, 0.5], covariance=np.array([[1.0, 0.6], [0.6, 0.8]]))
    second = Gaussian("full", [2.5, -1.0], covariance=np.array([[0.5, -0.2], [-0.2, 1.2]]))
    return Mixture((first, second), [0.3, 0.7])


def known_of(target: Mixture) -> dict:
    """logp of rows with its derivatives, up to the constant 3."""
    state = target.state()

    def at(x: np.ndarray) -> LogDensity:
        return LogDensity(target, state, x)

    def every(x: np.ndarray) -> np.ndarray:
        return np.arange(len(x))

    return {
        "logp": lambda x: at(x).values(every(x)) + 3.0,
        "jac": lambda x: at(x).gradients(every(x)),
        "hessp": lambda x, v: at(x).products(every(x), v),
        "hess_diag": lambda x: at(x).diagonals(every(x)),
        "vectorized": True,
    }


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_a_mixture_with_learned_weights_becomes_the_mixture_that_is_its_target(form: str) -> None:
    target = normal_mixture()
    start = tuple(Gaussian("full", m, form=form) for m in ([-1.0, 0.0], [1.5, 0.0]))
    known = known_of(target)
    found = fit_posterior(known.pop("logp"), family=Mixture(start, learn_weights=True), rng=0, **known)
    assert found.converged, found.message
    assert abs(found.elbo - 3.0) < 1e-6  # the constant: nothing is lost to KL
    np.testing.assert_allclose(np.exp(found.state.log_weights), [0.3, 0.7], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.state.means, target.state().means, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.covariance(), target.dense_covariance(target.state()), rtol=0, atol=1e-5)


def test_weights_stay_as_they_are_unless_they_are_learned() -> None:
    known = known_of(normal_mixture())
    start = Mixture((Gaussian("full", [-1.0, 0.0]), Gaussian("full", [1.5, 0.0])), [0.5, 0.5])
    found = fit_posterior(known.pop("logp"), family=start, rng=0, max_iters=100, **known)
    np.testing.assert_allclose(np.exp(found.state.log_weights), [0.5, 0.5], rtol=1e-14)
    assert found.elbo < 3.0


def test_moments_and_densities_of_a_posterior_agree_with_scipy() -> None:
    target = normal_mixture()
    known = known_of(target)
    found = fit_posterior(known.pop("logp"), family=target, rng=0, max_iters=20, **known)
    x = found.sample(100_000, 3)
    assert np.abs(x.mean(axis=0) - found.mean).max() < 5 * found.stds.max() / np.sqrt(len(x))
    np.testing.assert_allclose(np.cov(x.T), found.covariance(), atol=0.05)
    np.testing.assert_allclose(found.stds, np.sqrt(np.diagonal(found.covariance())), rtol=1e-12)
    states = found.distribution.component_states(found.state)
    parts = [
        pi * multivariate_normal(s.mean, g.dense_covariance(s)).pdf(x[:5])
        for pi, g, s in zip([0.3, 0.7], found.distribution.components, states, strict=True)
    ]
    np.testing.assert_allclose(found.log_density(x[:5]), np.log(sum(parts)), rtol=1e-10)
    grid = np.linspace(-12, 12, 4001)
    density = found.marginal_density(0, grid)
    assert abs(np.trapezoid(density, grid) - 1) < 1e-8
    assert abs(np.trapezoid(grid * density, grid) - found.mean[0]) < 1e-8


@pytest.mark.slow
def test_structured_mixtures_approach_a_mixture_of_students() -> None:
    """The figures of a first reproduction after 2000 iterations: full -0.6, Tri-low -4.2 to -4.9, diagonal about -9.

    With four samples instead of ten the full fit runs away in the heavy tails and ends at -5.6.
    """
    problem = student_t_mixture(20, components=5, seed=0)
    means = np.random.default_rng(0).uniform(-20, 20, (10, 20))
    elbos = {}
    for structure, iterations in (("full", 300), ("block_triangular:k=5", 300), ("diagonal", 300)):
        family = Mixture(tuple(Gaussian(structure, m, sigma0=10.0, form="precision") for m in means))
        found = fit_posterior(
            lambda x: -problem.fun(x),
            jac=lambda x: -problem.gradient(x),
            hessp=lambda x, v: -problem.hessian_product(x, v),
            hess_diag=lambda x: -problem.hessian_diagonal(x),
            family=family,
            rng=0,
            max_iters=iterations,
        )
        elbos[structure] = found.elbo_estimate(5000, 1)[0]
    assert elbos["full"] > -0.8
    assert elbos["block_triangular:k=5"] > -5.0
    assert -11.0 < elbos["diagonal"] < elbos["block_triangular:k=5"]
