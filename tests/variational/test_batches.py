"""Posteriors from data in batches: unbiased estimates, the exact posterior of a linear regression, files, bad input."""

from pathlib import Path

import numpy as np
import pytest

from esgroup import Likelihood, fit_posterior
from esgroup.distributions import Gaussian
from esgroup.gradients import Pathwise, Reinforce, Stein, as_function
from esgroup.gradients.function import Hessians
from esgroup.variational import Posterior
from esgroup.variational.batches import DataTarget, make_data_target, make_dataset
from esgroup.variational.log_density import TargetAt, make_target
from tests.groups.laws import close

DIM, ROWS = 3, 60


class Regression:
    """y = x b + noise of variance 1, b ~ N(0, I): the posterior is normal, and its evidence is known."""

    def __init__(self, rows: int, dim: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.standard_normal((rows, dim)) * rng.uniform(0.5, 2.0, dim)
        self.y = self.x @ rng.standard_normal(dim) + rng.standard_normal(rows)
        self.precision = np.eye(dim) + self.x.T @ self.x
        self.mean = np.linalg.solve(self.precision, self.x.T @ self.y)

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        return self.x, self.y

    @property
    def log_z(self) -> float:
        """The integral of exp(-|b|^2 / 2 - |y - x b|^2 / 2)."""
        quadratic = self.y @ self.y - self.mean @ self.precision @ self.mean
        return -0.5 * float(quadratic + np.linalg.slogdet(self.precision / (2 * np.pi))[1])

    def loss(self, found: Posterior) -> float:
        """KL(q || posterior)."""
        sigma, gap = found.covariance(), found.mean - self.mean
        determinants = np.linalg.slogdet(self.precision @ sigma)[1]
        squares = np.trace(self.precision @ sigma) + gap @ self.precision @ gap
        return 0.5 * float(squares - len(gap) - determinants)

    @staticmethod
    def prior(b: np.ndarray) -> float:
        return -0.5 * float(b @ b)

    @staticmethod
    def fun(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        return -0.5 * float(((y - x @ b) ** 2).sum())

    @staticmethod
    def jac(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x.T @ (y - x @ b)

    @staticmethod
    def hessp(b: np.ndarray, v: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -x.T @ (x @ v)

    @staticmethod
    def hess(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -x.T @ x

    @staticmethod
    def hess_diag(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -(x**2).sum(axis=0)


REGRESSION = Regression(ROWS, DIM, 0)
PRIOR = {
    "jac": lambda b: -b,
    "hessp": lambda b, v: -v,
    "hess_diag": lambda b: -np.ones(len(b)),
    "hess": lambda b: -np.eye(len(b)),
}
STRICT = {"tol": 1e-6, "elbo_samples": 10}
OF_PRODUCTS = ("jac", "hessp", "hess_diag")


def fitted(regression: Regression, size: int | None, names: tuple[str, ...], **more: object) -> Posterior:
    likelihood = Likelihood(regression.fun, **{name: getattr(regression, name) for name in names})
    known = {"likelihood": likelihood, "data": regression.data, "batch_size": size, "rng": 1}
    known |= {name: PRIOR[name] for name in names}
    return fit_posterior(regression.prior, np.zeros(regression.x.shape[1]), **(known | more))


def target_of(names: tuple[str, ...], batch_size: int | None = None, data: object = None) -> DataTarget:
    likelihood = Likelihood(REGRESSION.fun, **{name: getattr(REGRESSION, name) for name in names})
    prior = make_target(REGRESSION.prior, DIM, **{name: PRIOR[name] for name in names})
    return make_data_target(prior, likelihood, REGRESSION.data if data is None else data, batch_size)


# ---- estimates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_of_a_batch", [7, 60])  # 60 = 8 * 7 + 4: four rows are left out of every epoch
def test_an_epoch_takes_every_row_at_most_once_and_no_two_epochs_are_alike(rows_of_a_batch: int) -> None:
    data = make_dataset(np.arange(60), rows_of_a_batch)
    epochs = [np.concatenate([data.batch(8 * e + i, 5)[0] for i in range(data.batches)]) for e in range(2)]
    assert all(len(np.unique(epoch)) == len(epoch) == rows_of_a_batch * data.batches for epoch in epochs)
    assert np.array_equal(*epochs) == (rows_of_a_batch == 60)
    assert np.array_equal(data.batch(11, 5)[0], data.batch(11, 5)[0])
    assert np.array_equal(data.batch(3, 5)[0], data.batch(3, 6)[0]) == (rows_of_a_batch == 60)


def test_batches_take_the_same_rows_of_all_arrays() -> None:
    rows, names = make_dataset((np.arange(10), np.array(list("abcdefghij"))), 3).batch(4, 0)
    assert ["abcdefghij"[i] for i in rows] == names.tolist()


@pytest.mark.parametrize("batch_size", [1, 40])
def test_values_and_derivatives_of_batches_have_those_of_all_data_as_their_mean(batch_size: int) -> None:
    """Over 500 batches, within 5 standard errors of the closed form; the law of the estimates is not needed."""
    target, rng = target_of(OF_PRODUCTS, batch_size), np.random.default_rng(0)
    x, v, every = rng.standard_normal((2, DIM)), rng.standard_normal((2, DIM)), np.arange(2)
    gaps = REGRESSION.y - x @ REGRESSION.x.T
    exact = {
        "values": 0.5 * (gaps**2).sum(axis=1) + 0.5 * (x**2).sum(axis=1),
        "gradients": x - gaps @ REGRESSION.x,
        "products": v @ REGRESSION.precision,
        "diagonals": np.tile(np.diagonal(REGRESSION.precision), (2, 1)),
    }
    found: dict[str, list[np.ndarray]] = {name: [] for name in exact}
    for number in range(500):
        parts = [(TargetAt(part, x), weight) for part, weight in target.parts(number, 11)]
        for name, estimates in found.items():
            given = (every, v) if name == "products" else (every,)
            estimates.append(sum(weight * getattr(part, name)(*given) for part, weight in parts))
    for name, estimates in found.items():
        errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
        assert (errors > 0).all()  # there is noise indeed
        # batches of an epoch are disjoint, so that their mean is nearer than that of independent ones
        assert np.abs((np.mean(estimates, axis=0) - exact[name]) / errors).max() < 5, name


def test_all_data_in_chunks_have_the_value_of_all_data_at_once() -> None:
    x = np.random.default_rng(0).standard_normal((4, DIM))
    at_once, in_chunks = target_of(("jac",)), target_of(("jac",), 7)
    close(in_chunks.values(x), at_once.values(x), 1e-12)
    expected = [-REGRESSION.prior(b) - REGRESSION.fun(b, *REGRESSION.data) for b in x]
    close(at_once.values(x), expected, 1e-12)
    assert (at_once.counts.nfev, in_chunks.counts.nfev) == (8, 4 * 9)


@pytest.mark.parametrize("names", [(), ("jac",), ("jac", "hessp"), OF_PRODUCTS, ("jac", "hess")])
@pytest.mark.parametrize("batch_size", [None, ROWS])
def test_a_batch_of_all_data_is_the_fit_of_their_sum(names: tuple[str, ...], batch_size: int | None) -> None:
    """With the same samples, numbers are the same to rounding; with the same functions, bit for bit."""
    x, y = REGRESSION.data
    together = {
        "logp": lambda b: REGRESSION.prior(b) + REGRESSION.fun(b, x, y),
        "jac": lambda b: -b + REGRESSION.jac(b, x, y),
        "hessp": lambda b, v: -v + REGRESSION.hessp(b, v, x, y),
        "hess": lambda b: -REGRESSION.precision,
        "hess_diag": lambda b: -np.diagonal(REGRESSION.precision),
    }
    ours = fitted(REGRESSION, batch_size, names, max_iters=10, elbo_samples=20)
    plain = {name: together[name] for name in names}
    theirs = fit_posterior(together["logp"], np.zeros(DIM), rng=1, max_iters=10, elbo_samples=20, **plain)
    close(ours.mean, theirs.mean, 1e-9)
    close(ours.covariance(), theirs.covariance(), 1e-9)
    assert ours.counts == theirs.counts
    other = fitted(REGRESSION, ROWS, names, max_iters=10, elbo_samples=20)
    assert np.array_equal(ours.mean, other.mean) and ours.elbo == other.elbo


def test_pairs_rows_and_single_points_give_the_same_fit() -> None:
    def both(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        return REGRESSION.fun(b, x, y), REGRESSION.jac(b, x, y)

    rows = Likelihood(
        lambda b, x, y: -0.5 * ((y - b @ x.T) ** 2).sum(axis=1),
        jac=lambda b, x, y: (y - b @ x.T) @ x,
        vectorized=True,
    )
    one = fitted(REGRESSION, 20, ("jac",), max_iters=30)
    for likelihood in (Likelihood(both, jac=True), rows):
        other = fitted(REGRESSION, 20, ("jac",), max_iters=30, likelihood=likelihood)
        close(other.mean, one.mean, 1e-9)
        close(other.elbo, one.elbo, 1e-9)


# ---- fits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "batch_size"), [(("jac",), 25), (OF_PRODUCTS, 40)])
def test_the_posterior_of_a_linear_regression_is_found_from_batches(names: tuple[str, ...], batch_size: int) -> None:
    regression = Regression(200, 4, 1)
    found = fitted(regression, batch_size, names)
    assert found.converged, found.message
    assert regression.loss(found) < 0.02  # twice tol
    assert abs(found.elbo - (regression.log_z - regression.loss(found))) < 5 * found.elbo_stderr + 1e-9
    whole = fitted(regression, None, names)
    assert np.abs((found.mean - whole.mean) / whole.stds).max() < 0.2
    assert np.abs(found.stds / whole.stds - 1).max() < 0.15


def test_the_elbo_of_a_result_is_that_of_all_data() -> None:
    """Not of the last batch: one that is four times too large in its data would be off by hundreds."""
    found = fitted(REGRESSION, 15, ("jac",), max_iters=40)
    x = found.sample(4000, 3)
    gaps = REGRESSION.y - x @ REGRESSION.x.T
    values = -0.5 * (gaps**2).sum(axis=1) - 0.5 * (x**2).sum(axis=1) - found.log_density(x)
    again, error = found.elbo_estimate(4000, 3)
    close(again, values.mean(), 1e-9)
    assert abs(found.elbo - again) < 5 * np.hypot(found.elbo_stderr, error)


def test_the_same_seed_gives_the_same_batches() -> None:
    one, other, third = (fitted(REGRESSION, 10, ("jac",), max_iters=20, rng=seed) for seed in (4, 4, 5))
    assert np.array_equal(one.mean, other.mean) and one.elbo == other.elbo
    assert not np.array_equal(one.mean, third.mean)


def test_defaults_follow_the_batches() -> None:
    assert fitted(REGRESSION, 30, ("jac",), max_iters=1)._objective.estimator == Pathwise(4)
    assert fitted(REGRESSION, 30, ("jac", "hess"), max_iters=1)._objective.estimator == Stein(4, antithetic=True)
    assert fitted(REGRESSION, None, ("jac",), max_iters=1)._objective.estimator == Pathwise(10)
    assert fitted(REGRESSION, 30, (), max_iters=1)._objective.estimator == Reinforce(40)
    # two chunks at the start; one batch for each of 4 samples; two chunks for 100 draws of each of two states
    assert fitted(REGRESSION, 30, ("jac",), max_iters=1).nfev == 2 + 4 + 2 * 100 * 2


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> tuple[Posterior, list[int]]:
    """A fit that is not interrupted, and the length of its blocks at every iteration."""
    blocks: list[int] = []
    more = {"max_iters": 150, "callback": lambda f: blocks.append(f.schedule.block(f.rate)), **STRICT}
    return fitted(REGRESSION, 10, ("jac",), **more), blocks


@pytest.mark.parametrize("broken", [1, 16, 133])
def test_a_continued_fit_takes_the_same_batches_bit_for_bit(
    tmp_path: Path, broken: int, whole: tuple[Posterior, list[int]]
) -> None:
    """Epochs have 6 batches: at iteration 133 the noise is judged by epochs, and an epoch has begun."""
    path, (found, blocks) = tmp_path / "fit.npz", whole
    assert blocks[broken - 1] == (6 if broken == 133 else 1)
    fitted(REGRESSION, 10, ("jac",), max_iters=broken, checkpoint=path, **STRICT)
    more = {"max_iters": 150, "checkpoint": path, "resume": True, "rng": 99, **STRICT}
    continued = fitted(REGRESSION, 10, ("jac",), **more)
    assert np.array_equal(continued.state.mean, found.state.mean)
    assert np.array_equal(continued.state.root, found.state.root)
    assert (continued.elbo, continued.nit, continued.counts) == (found.elbo, found.nit, found.counts)


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    fitted(REGRESSION, 10, ("jac",), max_iters=3, checkpoint=path)
    x, y = REGRESSION.data
    for changes in ({"batch_size": 12}, {"data": (x, y + 1e-9)}, {"data": (x[:-1], y[:-1])}):
        with pytest.raises(ValueError, match="must be of the same fit, but its data"):
            fitted(REGRESSION, 10, ("jac",), max_iters=3, checkpoint=path, resume=True, **changes)


def test_an_interrupted_iteration_is_done_again_with_its_batch(tmp_path: Path) -> None:
    calls: list[int] = []

    def jac(b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 31:
            raise KeyboardInterrupt
        return REGRESSION.jac(b, x, y)

    path, known = tmp_path / "fit.npz", {"max_iters": 12, "elbo_samples": 10}
    whole = fitted(REGRESSION, 10, ("jac",), **known)
    with pytest.raises(KeyboardInterrupt):
        fitted(REGRESSION, 10, ("jac",), likelihood=Likelihood(REGRESSION.fun, jac=jac), checkpoint=path, **known)
    continued = fitted(REGRESSION, 10, ("jac",), checkpoint=path, resume=True, **known)
    assert np.array_equal(continued.mean, whole.mean) and continued.counts == whole.counts


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"data": (np.zeros((5, DIM)), np.zeros(4))}, ValueError, r"same number of rows, got \[5, 4\]"),
        ({"data": ()}, ValueError, "data must have at least one array"),
        ({"data": (np.zeros((0, DIM)), np.zeros(0))}, ValueError, "data must have at least one row"),
        ({"data": (3.0, 4.0)}, ValueError, r"data\[0\] must be an array with rows, got 3.0"),
        ({"data": [[1, 2], [3]]}, ValueError, "data must be an array, or a tuple of arrays, got rows of unequal"),
        ({"data": np.array([{}, {}])}, ValueError, "data must be an array of numbers or text"),
        ({"data": None}, ValueError, "data must be given with a likelihood"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer >= 1, got 0"),
        ({"batch_size": 61}, ValueError, "batch_size must be at most the number of rows of data, 60, got 61"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer"),
        ({"likelihood": None}, ValueError, "likelihood must be given with data"),
        ({"likelihood": None, "data": None}, ValueError, "must be given with batch_size, got batch_size=10 alone"),
        ({"likelihood": 3}, TypeError, "likelihood must be a function, got 3"),
        ({"likelihood": as_function(REGRESSION.prior, DIM)}, TypeError, "likelihood must be a function, a Likelihood"),
        ({"likelihood": REGRESSION.fun}, ValueError, "likelihood must have jac= as logp does"),
        ({"jac": None}, ValueError, "jac must be given for logp, the log prior"),
        ({"hessp": lambda b, v: -v}, ValueError, "likelihood must have hessp= as logp does"),
        (
            {"likelihood": Likelihood(REGRESSION.fun, jac=REGRESSION.jac, hessp=REGRESSION.hessp)},
            ValueError,
            "hessp must be given for logp, the log prior",
        ),
        (
            {"likelihood": Likelihood(lambda b, x, y: y - x @ b, jac=REGRESSION.jac)},
            ValueError,
            r"likelihood\(x\) must be a real number",
        ),
    ],
)
def test_bad_arguments_are_named(changes: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        fitted(REGRESSION, 10, ("jac",), **changes)


def test_a_likelihood_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="fun must be a function, got None"):
        Likelihood(None)
    with pytest.raises(TypeError, match="vectorized must be True or False, got 1"):
        Likelihood(REGRESSION.fun, vectorized=1)


def test_less_is_known_of_the_sum_than_of_a_part() -> None:
    likelihood = Likelihood(REGRESSION.fun, jac=REGRESSION.jac, hessp=REGRESSION.hessp)
    prior = make_target(REGRESSION.prior, DIM, jac=PRIOR["jac"], hess=PRIOR["hess"])
    target = make_data_target(prior, likelihood, REGRESSION.data, 20)
    assert not isinstance(target.function, Hessians) and not target.knows_diagonal
    found = fitted(REGRESSION, None, ("jac", "hess"), likelihood=likelihood, family=Gaussian("full"))
    close(found.covariance(), np.linalg.inv(REGRESSION.precision), 1e-5)


def test_data_are_read_only_and_may_be_of_any_type() -> None:
    seen: list[tuple[str, bool]] = []

    def fun(x: np.ndarray, counts: np.ndarray) -> float:
        seen.append((counts.dtype.str, counts.flags.writeable))
        return float(x[0] * counts.sum() - len(counts) * np.exp(x[0]))

    counts = np.random.default_rng(0).poisson(3.0, 50).astype(np.int32)
    found = fit_posterior(lambda x: -0.5 * float(x @ x), [0.0], likelihood=fun, data=counts, rng=0)
    assert found.converged and {kind for kind, _ in seen} == {"<i4"} and not any(free for _, free in seen)
    assert abs(found.mean[0] - np.log(counts.mean())) < 0.1
