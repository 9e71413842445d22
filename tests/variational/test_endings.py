"""How fits end that start far away, have no optimum or are interrupted: their messages and what they cost."""

import json
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.variational import Posterior, fit, fit_posterior
from esgroup.variational.fit import Fit
from tests.variational.targets import NormalTarget
from tests.variational.test_fit_posterior import fitted
from tests.variational.test_iteration import Bent

# ---- far away -------------------------------------------------------------------------------------------------------


def test_the_mean_of_a_regression_is_reached_from_zero() -> None:
    """The posterior is 1600 of its standard deviations away, and the approximation is narrow long before."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 2))
    y = x @ [50.0, 2.0] + rng.standard_normal(1000)
    found = fit_posterior(
        lambda b: -0.5 * float(((y - x @ b) ** 2).sum()), np.zeros(2), jac=lambda b: x.T @ (y - x @ b), rng=1
    )
    assert found.converged and found.nit < 500
    np.testing.assert_allclose(found.mean, np.linalg.lstsq(x, y)[0], atol=1e-6)


def standard(max_iters: int, **more: object) -> Posterior:
    target = NormalTarget(np.zeros(2), np.eye(2))
    return fit_posterior(target.logp, [1000.0, 1000.0], jac=target.jac, rng=1, max_iters=max_iters, **more)


def test_a_far_start_is_left_behind_and_forgotten() -> None:
    seen: list[float] = []
    found = standard(2000, callback=lambda fit: seen.append(float(fit.reach.max())))
    assert found.converged and np.abs(found.mean).max() < 1e-6
    assert max(seen) > 100 and seen[-1] == 1.0


def test_a_fit_that_ends_while_its_mean_moves_says_so() -> None:
    assert "the mean is still moving: start closer" in standard(40).message
    assert "still moving" not in standard(10).message  # nothing is known before the first window is full


def test_a_fit_whose_mean_still_moves_is_continued_bit_for_bit(tmp_path: Path) -> None:
    standard(100, checkpoint=tmp_path / "fit.npz")
    continued = standard(120, checkpoint=tmp_path / "fit.npz", resume=True)
    assert np.array_equal(continued.mean, standard(120).mean)


# ---- log densities multiplied by a number ---------------------------------------------------------------------------

MEAN, PRECISION = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])


def scaled(scale: float, known: str) -> Posterior:
    derivatives = {"jac": lambda x: -scale * (PRECISION @ (x - MEAN)), "hess": lambda x: -scale * PRECISION}
    given = {name: derivatives[name] for name in known.split()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit_posterior(
            lambda x: float(-0.5 * scale * (x - MEAN) @ PRECISION @ (x - MEAN)), np.zeros(2), rng=1, **given
        )


@pytest.mark.parametrize("known", ["", "jac", "jac hess"])
@pytest.mark.parametrize("scale", [1e-8, 1e30])
def test_wide_and_narrow_posteriors_are_found_as_far_as_numbers_go(scale: float, known: str) -> None:
    found = scaled(scale, known)
    assert found.converged
    np.testing.assert_allclose(found.stds, np.sqrt(np.diagonal(np.linalg.inv(PRECISION)) / scale), rtol=1e-3)


@pytest.mark.parametrize("known", ["", "jac", "jac hess"])
@pytest.mark.parametrize("scale", [1e36, 1e58, 1e100, 1e155, 1e300])
def test_a_posterior_narrower_than_the_rounding_of_its_mean_is_not_claimed(scale: float, known: str) -> None:
    """All samples of the approximation are the same point, so that nothing can be learned about its width."""
    found = scaled(scale, known)
    assert not found.converged and "narrower than the rounding error of its mean" in found.message
    assert np.allclose(found.mean, MEAN) and np.isfinite(found.stds).all()


@pytest.mark.parametrize("scale", [1e-22, 1e-300])
def test_a_nearly_flat_log_density_is_not_claimed(scale: float) -> None:
    found = scaled(scale, "jac hess")
    assert not found.converged and "grew without bound" in found.message


# ---- no limits, no values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_an_unbounded_log_density_is_given_up_early(power: int, slope: bool) -> None:
    jac = (lambda x: power * x ** (power - 1)) if slope else None
    found = fit_posterior(lambda x: float((x**power).sum()), np.zeros(3), jac=jac, rng=1)
    assert not found.converged and "logp may be unbounded" in found.message
    assert found.nit < 500 and np.abs(found.mean).max() < 1e10


def test_a_direction_without_limits_is_noticed_by_its_width() -> None:
    """logp does not depend on x[1]: the mean stays where it is, the deviation grows without limit."""
    bend = np.array([1.0, 0.0])
    known = {"jac": lambda x: -bend * x, "hessp": lambda x, v: -bend * v}
    found = fit_posterior(lambda x: -0.5 * x[0] ** 2, np.zeros(2), rng=1, **known)
    assert "logp may be unbounded" in found.message
    assert abs(found.mean[1]) < 1e4 and 1e8 < found.stds[1] < 1e12


def gammas(x: np.ndarray) -> float:
    return float(np.sum(5 * np.log(x) - x)) if (x > 0).all() else -np.inf


def test_a_result_without_an_elbo_has_not_converged() -> None:
    found = fit_posterior(gammas, [5.0, 5.0], jac=lambda x: 5 / x - 1, rng=1)
    assert not np.isfinite(found.elbo) and not found.converged
    assert "of 1000 draws from the result: change variables" in found.message
    assert f"of {found.nit} iterations" in found.message


def test_skipped_iterations_are_counted_and_kept(tmp_path: Path) -> None:
    seen: list[Fit] = []
    known = {"jac": lambda x: 5 / x - 1, "rng": 1, "checkpoint": tmp_path / "fit.npz", "callback": seen.append}
    fit_posterior(gammas, [5.0, 5.0], max_iters=60, **known)
    skipped = seen[-1].skipped
    assert skipped > 0
    found = fit_posterior(gammas, [5.0, 5.0], max_iters=61, resume=True, **known)
    assert seen[-1].skipped in (skipped, skipped + 1)
    assert f"not finite in {seen[-1].skipped} of 61 iterations" in found.message


# ---- what a result costs --------------------------------------------------------------------------------------------


def test_all_evaluations_are_counted() -> None:
    target, calls = NormalTarget.some(3, 0), []

    def logp(x: np.ndarray) -> float:
        calls.append(1)
        return target.logp(x)

    found = fit_posterior(logp, np.zeros(3), jac=target.jac, rng=0)
    assert found.converged and found.nfev == len(calls)
    few = fit_posterior(target.logp, np.zeros(3), jac=target.jac, rng=0, elbo_samples=50)
    assert found.nit == few.nit and 0 < found.nfev - few.nfev <= 3 * 950


def test_equal_candidates_are_evaluated_once() -> None:
    """After one iteration at which nothing was finite the last state is the first one."""
    target = NormalTarget.some(3, 0)
    found = fit_posterior(target.logp, np.zeros(3), jac=lambda x: x * np.nan, rng=0, max_iters=1)
    assert found.nfev == 1 + 10 + 1000


def test_value_and_gradient_of_rows_are_evaluated_once() -> None:
    target, rows = NormalTarget.some(3, 0), []

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows.append(len(x))
        return np.array([target.logp(row) for row in x]), np.array([target.jac(row) for row in x])

    family = Mixture(tuple(Gaussian("full", np.full(3, float(k))) for k in range(3)))
    found = fit_posterior(both, family=family, jac=True, vectorized=True, rng=0, max_iters=5, elbo_samples=2)
    assert rows[:6] == [3, 30, 30, 30, 30, 30]
    assert sum(rows) == found.nfev


# ---- interrupts -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> Posterior:
    return fitted()


def assert_continues(path: Path, whole: Posterior) -> None:
    continued = fitted(path, resume=True)
    assert np.array_equal(continued.state.roots, whole.state.roots)
    assert (continued.elbo, continued.counts) == (whole.elbo, whole.counts)


def test_ctrl_c_in_logp_carries_the_result_and_the_fit_can_continue(tmp_path: Path, whole: Posterior) -> None:
    bent, calls = Bent(), []

    def jac(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 133:
            signal.raise_signal(signal.SIGINT)
        return bent.jac(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        fitted(tmp_path / "fit.npz", jac=jac)
    result = caught.value.result
    assert isinstance(result, Posterior) and result.nit == 16 and not result.converged
    assert result.njev == 16 * 8 and np.isfinite(result.elbo) and result.message == "the fit was interrupted"
    assert_continues(tmp_path / "fit.npz", whole)


def test_ctrl_c_waits_for_the_end_of_an_iteration(
    tmp_path: Path, whole: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    extended_window, calls = fit.extended_window, []

    def interrupted(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 7:
            signal.raise_signal(signal.SIGINT)
        return extended_window(*arguments)

    history = tmp_path / "fit.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(fit, "extended_window", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            fitted(tmp_path / "fit.npz", history=history)
    assert len(calls) == 7 == caught.value.result.nit
    assert_continues(tmp_path / "fit.npz", whole)


def test_an_iteration_that_is_interrupted_halfway_is_undone(
    tmp_path: Path, whole: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    extended_window, calls = fit.extended_window, []

    def broken(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return extended_window(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fit, "extended_window", broken)
        with pytest.raises(KeyboardInterrupt):
            fitted(tmp_path / "fit.npz")
    assert_continues(tmp_path / "fit.npz", whole)


def test_an_interrupted_comparison_of_candidates_can_be_repeated(tmp_path: Path, whole: Posterior) -> None:
    bent, calls = Bent(), []

    def logp(x: np.ndarray) -> float:
        calls.append(1)
        if len(calls) == whole.nfev - 5:
            signal.raise_signal(signal.SIGINT)
        return bent.logp(x)

    means = np.random.default_rng(1).standard_normal((2, 4))
    family = Mixture(tuple(Gaussian("block_triangular:k=1", m) for m in means), learn_weights=True)
    path = tmp_path / "fit.npz"
    with pytest.raises(KeyboardInterrupt) as caught:
        fit_posterior(logp, rng=3, samples=4, rate=0.5, family=family, checkpoint=path, max_iters=36, **bent.known())
    assert caught.value.result.nit == 36
    assert_continues(path, whole)


# ---- continuing -----------------------------------------------------------------------------------------------------


def noisy(path: Path, tol: float, **more: object) -> Posterior:
    bent = Bent()
    return fit_posterior(bent.logp, np.zeros(4), jac=bent.jac, rng=0, tol=tol, checkpoint=path, **more)


def test_a_smaller_tol_continues_where_a_larger_one_ended(tmp_path: Path) -> None:
    first = noisy(tmp_path / "fit.npz", 0.05)
    assert first.converged
    second = noisy(tmp_path / "fit.npz", 0.01, resume=True)
    assert second.converged and second.nit > first.nit and "tol = 0.01" in second.message
    at_once = noisy(tmp_path / "other.npz", 0.01)
    assert second.nit == at_once.nit and np.array_equal(second.mean, at_once.mean)
    assert noisy(tmp_path / "fit.npz", 0.05, resume=True).nit == second.nit


@pytest.mark.parametrize("x0", [np.ones(4), np.zeros(5)])
def test_another_start_is_named(tmp_path: Path, x0: np.ndarray) -> None:
    noisy(tmp_path / "fit.npz", 0.05, max_iters=2)
    with pytest.raises(ValueError, match=r"must be of the same fit, but its (length of )?x0 differs"):
        fit_posterior(lambda x: 0.0, x0, jac=np.zeros_like, checkpoint=tmp_path / "fit.npz", resume=True)


def test_a_history_has_no_iteration_twice(tmp_path: Path) -> None:
    """A killed fit may have written lines after its last checkpoint."""
    path, history = tmp_path / "fit.npz", tmp_path / "fit.jsonl"
    fitted(path, 5, history=history)
    with history.open("a") as file:
        file.write('{"nit": 6}\n{"nit": 7}\n')
    fitted(path, 9, resume=True, history=history)
    lines = [json.loads(text) for text in history.read_text().splitlines()[1:]]
    assert [entry["nit"] for entry in lines] == list(range(1, 10)) and all("elbo" in entry for entry in lines)
