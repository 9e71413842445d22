"""A real posterior: against reparameterised gradients with Adam, and against a long Markov chain.

The chain is that of scripts/mcmc_breast_cancer.py: 40,000 draws, means exact to 0.005 standard deviations.
"""

from pathlib import Path

import numpy as np
import pytest

from esgroup.distributions import Gaussian
from esgroup.variational import Posterior, fit_posterior
from tests.variational.targets import Logistic

DIM = 31
CHAIN = Path(__file__).parent / "data" / "breast_cancer_mcmc.npz"


@pytest.fixture(scope="module")
def logistic() -> Logistic:
    pytest.importorskip("sklearn")
    from esgroup_problems.inference import logistic_breast_cancer

    return Logistic(logistic_breast_cancer().gradient.__self__.signed)


def fitted(logistic: Logistic, structure: str, **more: object) -> Posterior:
    return fit_posterior(
        logistic.logp, np.zeros(DIM), family=Gaussian(structure), rng=0, **(logistic.all_known() | more)
    )


def correlation(covariance: np.ndarray) -> np.ndarray:
    stds = np.sqrt(np.diagonal(covariance))
    return covariance / np.outer(stds, stds)


def advi(logistic: Logistic, full: bool, iterations: int = 2000, samples: int = 10) -> tuple[float, float]:
    """The ELBO of x = mean + L z by Adam on gradients along z; 0.03 was the best of six rates from 0.003 to 0.2."""
    rng = np.random.default_rng(0)
    mean, log_diagonal, lower = np.zeros(DIM), np.zeros(DIM), np.zeros((DIM, DIM))
    parameters = [mean, log_diagonal, lower]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    for t in range(1, iterations + 1):
        z = rng.standard_normal((samples, DIM))
        root = np.diag(np.exp(log_diagonal)) + lower
        g = logistic.jac(mean + z @ root.T)
        outer = g.T @ z / samples
        slopes = [g.mean(axis=0), np.diagonal(outer) * np.exp(log_diagonal) + 1, np.tril(outer, -1) * full]
        rate = 0.03 * (1 - t / (iterations + 1))
        for parameter, slope, (first, second) in zip(parameters, slopes, moments, strict=True):
            first += 0.1 * (slope - first)
            second += 0.001 * (slope**2 - second)
            parameter += rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    z = rng.standard_normal((20_000, DIM))
    values = logistic.logp(mean + z @ root.T) + 0.5 * (z**2).sum(axis=1) + 0.5 * DIM * np.log(2 * np.pi)
    return float(values.mean() + log_diagonal.sum()), float(values.std() / np.sqrt(len(values)))


@pytest.mark.slow
@pytest.mark.parametrize(("structure", "full"), [("diagonal", False), ("full", True)])
def test_the_elbo_is_at_least_that_of_reparameterised_gradients(logistic: Logistic, structure: str, full: bool) -> None:
    found = fitted(logistic, structure)
    assert found.converged, found.message
    ours, error = found.elbo_estimate(20_000, 1)
    theirs, their_error = advi(logistic, full)
    assert ours > theirs - 3 * np.hypot(error, their_error)


@pytest.mark.slow
def test_structures_that_contain_each_other_have_elbos_in_this_order(logistic: Logistic) -> None:
    names = ("diagonal", "block_triangular:k=8", "full")
    elbos = [fitted(logistic, name).elbo_estimate(20_000, 1)[0] for name in names]
    assert elbos[0] + 1 < elbos[1] < elbos[2] - 1


def test_a_full_gaussian_has_the_moments_of_a_long_chain(logistic: Logistic) -> None:
    """The posterior is skewed, so the best Gaussian is not exact: means within 0.1, deviations within 8 per cent."""
    chain = np.load(CHAIN)
    assert chain["rhat"].max() < 1.001 and chain["size"].min() > 10_000
    found = fitted(logistic, "full", tol=2e-3)
    stds = np.sqrt(np.diagonal(chain["covariance"]))
    assert np.abs((found.mean - chain["mean"]) / stds).max() < 0.1
    assert np.abs(found.stds / stds - 1).max() < 0.08
    correlations = [
        c / np.sqrt(np.outer(np.diagonal(c), np.diagonal(c))) for c in (found.covariance(), chain["covariance"])
    ]
    assert np.abs(correlations[0] - correlations[1]).max() < 0.06


@pytest.mark.slow
def test_a_diagonal_gaussian_has_about_the_means_but_far_too_small_deviations(logistic: Logistic) -> None:
    chain = np.load(CHAIN)
    found = fitted(logistic, "diagonal")
    stds = np.sqrt(np.diagonal(chain["covariance"]))
    assert np.abs((found.mean - chain["mean"]) / stds).max() < 0.3
    assert (found.stds < stds).all() and (found.stds / stds).min() < 0.5
