"""One iteration: against the plain update of a Gaussian, and against the mixture's own natural score."""

import numpy as np
import pytest

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.gradients import Pathwise, Reinforce, Stein, as_function
from esgroup.groups import BlockTriangular, Diagonal, Full
from esgroup.variational import fit_posterior
from esgroup.variational.iteration import VariationalObjective
from esgroup.variational.log_density import make_target
from tests.distributions.test_mixture import some
from tests.groups.laws import close
from tests.variational.targets import NormalTarget

DIM = 4


class Bent:
    """f(x) = -logp(x) = sum x^4 / 4 + a x_0^2 x_1 / 2 + |x|^2 / 2: neither quadratic nor separable."""

    a = 0.7

    def logp(self, x: np.ndarray) -> float:
        return -float((x**4).sum() / 4 + self.a * x[0] ** 2 * x[1] / 2 + x @ x / 2)

    def jac(self, x: np.ndarray) -> np.ndarray:
        g = x**3 + x
        g[0] += self.a * x[0] * x[1]
        g[1] += self.a * x[0] ** 2 / 2
        return -g

    def hess(self, x: np.ndarray) -> np.ndarray:
        h = np.diag(3 * x**2 + 1)
        h[0, 0] += self.a * x[1]
        h[0, 1] += self.a * x[0]
        h[1, 0] += self.a * x[0]
        return -h

    def hessp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.hess(x) @ v

    def hess_diag(self, x: np.ndarray) -> np.ndarray:
        return np.diagonal(self.hess(x))

    def known(self) -> dict:
        return {"jac": self.jac, "hessp": self.hessp, "hess_diag": self.hess_diag}

    def rows(self) -> dict:
        return {
            "logp": lambda x: np.array([self.logp(y) for y in x]),
            "jac": lambda x: np.array([self.jac(y) for y in x]),
            "hessp": lambda x, v: np.array([self.hessp(y, w) for y, w in zip(x, v, strict=True)]),
            "hess_diag": lambda x: np.array([self.hess_diag(y) for y in x]),
        }


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("group", [Full(DIM), BlockTriangular(DIM, 1), Diagonal(DIM)], ids=str)
def test_one_component_moves_as_the_gaussian_of_the_paper(group: object, form: str) -> None:
    """B <- B h(beta C (.) kappa(B^-1 H B^-T - gamma I)), mean <- mean - beta S^-1 g, with pairs of samples."""
    bent, rng = Bent(), np.random.default_rng(3)
    gaussian = Gaussian(group, 0.3 * rng.standard_normal(DIM), sigma0=0.6, form=form)
    mixture, estimator, gamma = Mixture((gaussian,)), Stein(6, antithetic=True), 0.8
    ours = VariationalObjective(mixture, make_target(bent.logp, DIM, **bent.known()), estimator, gamma)
    f = as_function(
        lambda x: -bent.logp(x),
        DIM,
        jac=lambda x: -bent.jac(x),
        hessp=lambda x, v: -bent.hessp(x, v),
        hess_diag=lambda x: -bent.hess_diag(x),
    )
    state, plain = mixture.state(), gaussian.state()
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(5):
        state = mixture.move(state, ours.iterate(state, one).step.scaled(-0.3))
        plain = gaussian.move(plain, estimator.step(gaussian, plain, f, other, gamma).scaled(-0.3))
        close(state.means[0], plain.mean)
        close(state.roots, plain.root)


def test_a_mixture_of_one_is_fitted_as_the_gaussian_bit_for_bit() -> None:
    bent = Bent()
    gaussian = Gaussian(BlockTriangular(DIM, 2), np.full(DIM, 0.3))
    for known in (bent.known(), {"jac": bent.jac}, {}):
        kwargs = {"rng": 1, "max_iters": 40, **known}
        single = fit_posterior(bent.logp, family=gaussian, **kwargs)
        mixed = fit_posterior(bent.logp, family=Mixture((gaussian,)), **kwargs)
        assert np.array_equal(single.state.mean, mixed.state.means[0])
        assert np.array_equal(single.state.root, mixed.state.roots)
        assert single.elbo == mixed.elbo


@pytest.mark.parametrize("estimator", [Stein(2, antithetic=True), Stein(2), Pathwise(2), Reinforce(4)], ids=str)
def test_the_mean_step_is_the_natural_score_of_the_mixture(estimator: object) -> None:
    """An oracle with other samples and other formulas: E_q[l] by the score of q and the responsibilities."""
    parts = [(Full(2), "covariance"), (Diagonal(2), "precision"), (Full(2), "precision")]
    mixture, state, rng = some(parts, np.array([0.5, 0.2, 0.3]), 5)
    target, gamma = NormalTarget.some(2, 3), 0.7
    known = {"jac": target.jac, "hessp": target.hessp, "hess_diag": target.hess_diag}
    objective = VariationalObjective(mixture, make_target(target.logp, 2, **known), estimator, gamma)
    steps = [objective.iterate(state, rng) for _ in range(300)]

    n = 100_000
    x = mixture.sample(state, n, rng).x
    gaps = x - target.mean
    values = 0.5 * np.einsum("ni,ij,nj->n", gaps, target.precision, gaps) + gamma * mixture.log_density(state, x)
    chunks = [
        mixture.natural_score(state, part, (v - values.mean()) / len(v))
        for part, v in zip(np.split(x, 40), np.split(values, 40), strict=True)
    ]
    for name in ("deltas", "ms", "logits"):
        ours = np.array([getattr(found.step, name).ravel() for found in steps])
        theirs = np.array([getattr(chunk, name).ravel() for chunk in chunks])
        errors = np.hypot(ours.std(axis=0) / np.sqrt(len(ours)), theirs.std(axis=0, ddof=1) / np.sqrt(len(theirs)))
        assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(errors, 1e-12)).max() < 5
    elbos = np.array([found.elbo for found in steps])
    error = np.hypot(elbos.std() / np.sqrt(len(elbos)), values.std() / np.sqrt(n))
    assert abs(elbos.mean() + values.mean()) < 5 * error


def test_rows_and_single_points_give_the_same_steps() -> None:
    bent = Bent()
    mixture, state, _ = some([(BlockTriangular(DIM, 1), "precision"), (Full(DIM), "covariance")], np.full(2, 0.5), 2)
    rows = bent.rows()
    targets = [
        make_target(bent.logp, DIM, **bent.known()),
        make_target(rows.pop("logp"), DIM, vectorized=True, **rows),
        make_target(lambda x: (bent.logp(x), bent.jac(x)), DIM, **(bent.known() | {"jac": True})),
    ]
    steps = [
        VariationalObjective(mixture, t, Stein(4), 1.0).iterate(state, np.random.default_rng(0)).step for t in targets
    ]
    for step in steps[1:]:
        for ours, theirs in zip(step, steps[0], strict=True):
            close(ours, theirs, 1e-12)
    assert targets[0].counts == targets[1].counts


def test_a_value_and_its_gradient_are_computed_in_one_call() -> None:
    bent, calls = Bent(), []

    def both(x: np.ndarray) -> tuple:
        calls.append(1)
        return bent.logp(x), bent.jac(x)

    mixture = Mixture((Gaussian(Diagonal(DIM), np.zeros(DIM)),))
    VariationalObjective(mixture, make_target(both, DIM, jac=True), Pathwise(7), 1.0).iterate(
        mixture.state(), np.random.default_rng(0)
    )
    assert len(calls) == 7
