"""Log densities whose points are computed in one call: the same steps and fits as point by point."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from esgroup import Gaussian, Likelihood, fit_posterior
from esgroup.distributions.mixture import Mixture
from esgroup.gradients import Hessians, Pathwise, Reinforce, Stein, as_function, jax_function, torch_function
from esgroup.gradients.rows import RowCalls, RowFunction, row_function
from esgroup.variational.iteration import VariationalObjective
from esgroup.variational.log_density import make_target
from tests.groups.laws import close
from tests.variational.test_batches import PRIOR, REGRESSION, Regression
from tests.variational.test_iteration import DIM, Bent

BENT = Bent()
ESTIMATORS = [Stein(6, antithetic=True), Stein(3), Stein(), Pathwise(5), Reinforce(8)]


def rows_of(bent: Bent) -> RowFunction:
    """The log density by rows in NumPy, no library needed."""

    def products(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([vectors @ bent.hess(point) for point, vectors in zip(x, v, strict=True)])

    calls = RowCalls(
        lambda x: np.array([bent.logp(point) for point in x]),
        lambda x: (np.array([bent.logp(point) for point in x]), np.array([bent.jac(point) for point in x])),
        products,
        lambda x, v: v @ np.mean([bent.hess(point) for point in x], axis=0),
    )
    return row_function(calls, DIM)


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("structure", ["full", "diagonal", "block_triangular:k=1"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_compiled_step_is_the_step_point_by_point(estimator: object, structure: str, form: str) -> None:
    rng = np.random.default_rng(3)
    mixture = Mixture((Gaussian(structure, 0.3 * rng.standard_normal(DIM), sigma0=0.6, form=form),))
    plain = VariationalObjective(mixture, make_target(BENT.logp, DIM, **BENT.known()), estimator, 0.8)
    compiled = VariationalObjective(mixture, make_target(rows_of(BENT), DIM), estimator, 0.8)
    found, expected = (o.iterate(mixture.state(), np.random.default_rng(5)) for o in (compiled, plain))
    assert found is not None and expected is not None
    for ours, theirs in zip(found.step, expected.step, strict=True):
        close(ours, theirs, 1e-10)
    close(found.elbo, expected.elbo, 1e-10)


def test_several_components_are_fitted_by_compiled_functions_too() -> None:
    means = np.random.default_rng(1).standard_normal((2, DIM))
    family = Mixture(tuple(Gaussian("block_triangular:k=1", m) for m in means), learn_weights=True)
    more = {"family": family, "estimator": Stein(4), "rng": 3, "max_iters": 20}
    plain = fit_posterior(BENT.logp, **BENT.known(), **more)
    compiled = fit_posterior(rows_of(BENT), **more)
    close(compiled.mean, plain.mean, 1e-8)
    close(compiled.elbo, plain.elbo, 1e-8)


def test_a_compiled_function_that_is_not_finite_is_skipped_and_said() -> None:
    bent = Bent()
    whole = rows_of(bent)
    calls = whole.calls._replace(
        gradients=lambda x: (whole.values(x), np.where(x[:, :1] > 0.8, np.nan, whole.gradients(x)))
    )
    found = fit_posterior(row_function(calls, DIM), np.zeros(DIM), rng=0, max_iters=30, elbo_samples=20)
    assert "not finite in" in found.message and np.isfinite(found.mean).all()


def test_functions_with_derivatives_are_log_densities_as_they_are() -> None:
    known = [
        as_function(BENT.logp, DIM),
        as_function(BENT.logp, DIM, jac=BENT.jac),
        as_function(BENT.logp, DIM, jac=BENT.jac, hessp=BENT.hessp, hess_diag=BENT.hess_diag),
        as_function(BENT.logp, DIM, jac=BENT.jac, hess=BENT.hess),
    ]
    derivatives = [{}, {"jac": BENT.jac}, BENT.known(), {"jac": BENT.jac, "hess": BENT.hess}]
    for function, given in zip(known, derivatives, strict=True):
        ours = fit_posterior(function, np.zeros(DIM), rng=2, max_iters=5, elbo_samples=5)
        theirs = fit_posterior(BENT.logp, np.zeros(DIM), rng=2, max_iters=5, elbo_samples=5, **given)
        assert np.array_equal(ours.mean, theirs.mean) and ours.counts == theirs.counts
        assert isinstance(ours._objective.target.function, Hessians) == isinstance(function, Hessians)
        assert function.counts.nfev == 0  # the fit counts for itself


def test_a_function_with_derivatives_must_fit_the_call() -> None:
    with pytest.raises(ValueError, match="jac must be left out if logp is a RowFunction"):
        fit_posterior(rows_of(BENT), np.zeros(DIM), jac=BENT.jac)
    with pytest.raises(ValueError, match="vectorized must be left out if logp is a RowFunction, got True"):
        fit_posterior(rows_of(BENT), np.zeros(DIM), vectorized=True)
    with pytest.raises(ValueError, match=f"logp must have dim 3 to match the distribution, got {DIM}"):
        fit_posterior(rows_of(BENT), np.zeros(3))
    likelihood = Likelihood(REGRESSION.fun, jac=REGRESSION.jac)
    with pytest.raises(ValueError, match="likelihood must have hessp= as logp does"):
        fit_posterior(rows_of(BENT), np.zeros(DIM), likelihood=likelihood, data=REGRESSION.data)


# ---- the libraries --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["jax", "torch"])
def adapter(request: pytest.FixtureRequest) -> Iterator[Callable]:
    library = pytest.importorskip(request.param)
    if request.param == "torch":
        yield torch_function
        return
    before = library.config.jax_enable_x64
    library.config.update("jax_enable_x64", True)
    yield jax_function
    library.config.update("jax_enable_x64", before)


def log_likelihood(b: object, x: object, y: object) -> object:
    return -0.5 * ((y - x @ b) ** 2).sum()


def log_prior(b: object) -> object:
    return -0.5 * (b**2).sum()


def test_a_regression_in_a_library_has_its_exact_posterior(adapter: Callable) -> None:
    functions = {"likelihood": adapter(log_likelihood, 3), "data": REGRESSION.data}
    found = fit_posterior(adapter(log_prior, 3), np.zeros(3), rng=0, **functions)
    assert found.converged
    close(found.mean, REGRESSION.mean, 1e-6)
    close(found.covariance(), np.linalg.inv(REGRESSION.precision), 1e-6)
    close(found.elbo, REGRESSION.log_z, 1e-6)
    assert found._objective.estimator == Stein(10, antithetic=True)


def test_batches_in_a_library_are_those_of_numpy(adapter: Callable) -> None:
    more = {"data": REGRESSION.data, "batch_size": 15, "rng": 1, "max_iters": 30, "estimator": Pathwise(4)}
    ours = fit_posterior(adapter(log_prior, 3), np.zeros(3), likelihood=adapter(log_likelihood, 3), **more)
    plain = Likelihood(REGRESSION.fun, jac=REGRESSION.jac)
    theirs = fit_posterior(Regression.prior, np.zeros(3), jac=PRIOR["jac"], likelihood=plain, **more)
    close(ours.mean, theirs.mean, 1e-7)
    close(ours.elbo, theirs.elbo, 1e-7)
    assert ours.counts == theirs.counts
    more |= {"likelihood": adapter(log_likelihood, 3), "jac": PRIOR["jac"], "hess": PRIOR["hess"]}
    mixed = fit_posterior(Regression.prior, np.zeros(3), **more)
    close(mixed.mean, ours.mean, 1e-7)
