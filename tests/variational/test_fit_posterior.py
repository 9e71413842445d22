"""The call: which arguments it refuses, how it ends, which files it writes."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from esgroup import CheckpointError
from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture
from esgroup.files import npz
from esgroup.gradients import Pathwise, Reinforce, Stein, SteinDense
from esgroup.variational import Posterior, fit_posterior
from esgroup.variational.fit import Fit
from esgroup.variational.fit_files import FitProgress
from tests.variational.targets import NormalTarget
from tests.variational.test_iteration import Bent

TARGET = NormalTarget.some(3, 0)
X0 = np.zeros(3)


# ---- what is chosen, what is refused --------------------------------------------------------------------------------


def chosen(**known: object) -> object:
    return fit_posterior(TARGET.logp, X0, rng=0, max_iters=1, **known)._objective.estimator


def test_the_estimator_follows_from_what_is_known() -> None:
    assert chosen() == Reinforce(40)
    assert chosen(samples=9) == Reinforce(9)
    assert chosen(jac=TARGET.jac) == Pathwise(10)
    assert chosen(jac=TARGET.jac, hess=TARGET.hess) == Stein(10, antithetic=True)
    assert chosen(jac=TARGET.jac, hessp=TARGET.hessp, samples=3) == Stein(3)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"estimator": Stein(2)}, TypeError, "Stein needs products with the Hessian"),
        ({"estimator": Pathwise(2)}, TypeError, "Pathwise needs gradients"),
        (
            {"estimator": SteinDense(2), "jac": TARGET.jac, "hessp": TARGET.hessp},
            TypeError,
            "SteinDense needs Hessians",
        ),
        ({"estimator": "stein"}, TypeError, "estimator must be 'auto'"),
        ({"estimator": Reinforce(4), "samples": 4}, ValueError, "samples must be left out"),
        ({"hessp": TARGET.hessp}, ValueError, "hessp needs the gradient"),
        ({"jac": 3}, TypeError, "jac must be a function"),
        ({"gamma": 0.0}, ValueError, "gamma must be a positive"),
        ({"rate": 1.5}, ValueError, "rate must be at most 1"),
        ({"tol": 0.0}, ValueError, "tol must be a positive"),
        ({"max_iters": 0}, ValueError, "max_iters must be an integer >= 1"),
        ({"elbo_samples": 1}, ValueError, "elbo_samples must be an integer >= 2"),
        ({"family": "full"}, TypeError, "family must be a Gaussian or a Mixture"),
        ({"family": Gaussian("full", X0)}, ValueError, "x0 or the family's mean"),
        ({"family": Mixture((Gaussian("full", X0),))}, ValueError, "x0 must be left out for a Mixture"),
        ({"callback": 1}, TypeError, "callback must be a function"),
        ({"resume": True}, ValueError, "checkpoint"),
        ({"vectorized": True, "jac": TARGET.jac, "hessp": TARGET.hessp, "hessp_vectorized": True}, ValueError, "pairs"),
    ],
)
def test_bad_arguments_are_named(changes: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        fit_posterior(TARGET.logp, X0, **changes)


def test_a_start_must_be_given_somewhere() -> None:
    with pytest.raises(ValueError, match="x0 must be given"):
        fit_posterior(TARGET.logp)
    with pytest.raises(TypeError, match="logp must be a function"):
        fit_posterior(None, X0)


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"logp\(x\) must be a real number"):
        fit_posterior(lambda x: x, X0)
    with pytest.raises(ValueError, match=r"logp\(rows\) must have shape \(1,\), got \(1, 3\)"):
        fit_posterior(lambda x: x, X0, vectorized=True)
    with pytest.raises(ValueError, match=r"jac\(x\) must have shape \(3,\)"):
        fit_posterior(TARGET.logp, X0, jac=lambda x: x[:2])
    with pytest.raises(ValueError, match="must be a pair"):
        fit_posterior(TARGET.logp, X0, jac=True)
    rows = {"jac": lambda x: -x, "vectorized": True}
    with pytest.raises(ValueError, match=r"hessp\(rows, rows\) must have shape"):
        fit_posterior(lambda x: -0.5 * (x**2).sum(axis=1), X0, hessp=lambda x, v: v[0], **rows)


# ---- how it ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_start_without_a_finite_value_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="logp must be finite at the start"):
        fit_posterior(lambda x: value, X0)


def test_a_log_density_that_becomes_nan_ends_the_fit_with_the_state_before() -> None:
    calls = []

    def logp(x: np.ndarray) -> float:
        calls.append(1)
        return TARGET.logp(x) if len(calls) < 200 else np.nan

    found = fit_posterior(logp, X0, jac=TARGET.jac, rng=0)
    assert not found.converged
    assert "not finite" in found.message
    assert np.abs(found.mean - TARGET.mean).max() < 0.5 < np.abs(TARGET.mean).max()
    assert found.nit < 200


def test_a_single_failure_does_no_harm() -> None:
    rng = np.random.default_rng(0)

    def jac(x: np.ndarray) -> np.ndarray:
        return TARGET.jac(x) if rng.random() < 0.99 else np.full(3, np.nan)

    found = fit_posterior(TARGET.logp, X0, jac=jac, rng=0)
    assert found.converged
    np.testing.assert_allclose(found.mean, TARGET.mean, atol=1e-5)


def test_an_unbounded_log_density_ends_with_a_reason_and_a_finite_state() -> None:
    found = fit_posterior(
        lambda x: 0.5 * float(x @ x), X0, jac=lambda x: x.copy(), hessp=lambda x, v: v, rng=0, max_iters=3000
    )
    assert not found.converged
    assert "unbounded" in found.message
    assert np.isfinite(found.mean).all() and np.isfinite(found.stds).all()


def test_a_fit_that_runs_out_of_iterations_says_so() -> None:
    found = fit_posterior(TARGET.logp, X0, rng=0, max_iters=7, **TARGET.all_known())
    assert (found.nit, found.converged) == (7, False)
    assert "max_iters = 7 reached" in found.message
    # 1 value at the start, 10 an iteration, 1000 each for the first state and the last one
    assert found.counts.njev == found.njev == 70 and found.nhvp == 210 and found.nfev == 71 + 2000


def test_a_callback_sees_the_fit_and_can_end_it() -> None:
    seen: list[int] = []

    def callback(fit: Fit) -> bool:
        seen.append(fit.nit)
        return fit.nit == 3

    def stopping(fit: Fit) -> None:
        raise StopIteration

    found = fit_posterior(TARGET.logp, X0, rng=0, callback=callback)
    assert (seen, found.nit, found.message) == ([1, 2, 3], 3, "stopped by the callback")
    assert fit_posterior(TARGET.logp, X0, rng=0, callback=stopping).nit == 1


def test_the_same_seed_gives_the_same_fit_and_leaves_numpys_state_alone() -> None:
    before = np.random.get_state()[1].copy()
    one, other = (fit_posterior(TARGET.logp, X0, rng=4, max_iters=20) for _ in range(2))
    assert np.array_equal(one.mean, other.mean) and one.elbo == other.elbo
    assert not np.array_equal(one.mean, fit_posterior(TARGET.logp, X0, rng=5, max_iters=20).mean)
    assert np.array_equal(np.random.get_state()[1], before)


def test_a_posterior_does_not_change() -> None:
    found = fit_posterior(TARGET.logp, X0, rng=0, max_iters=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.elbo = 0.0
    assert "Objective" not in repr(found)


# ---- files ----------------------------------------------------------------------------------------------------------


def fitted(path: Path | None = None, iterations: int = 36, **more: object) -> Posterior:
    bent = Bent()
    means = np.random.default_rng(1).standard_normal((2, 4))
    family = Mixture(tuple(Gaussian("block_triangular:k=1", m) for m in means), learn_weights=True)
    kwargs = {"rng": 3, "samples": 4, "rate": 0.5, "family": family, "checkpoint": path, "max_iters": iterations}
    return fit_posterior(bent.logp, **(kwargs | bent.known() | more))


@pytest.fixture(scope="module")
def whole() -> Posterior:
    return fitted()


@pytest.mark.parametrize("broken", [1, 16, 23])  # windows have 16 iterations
def test_a_continued_fit_is_the_uninterrupted_one_bit_for_bit(tmp_path: Path, whole: Posterior, broken: int) -> None:
    fitted(tmp_path / "fit.npz", broken)
    continued = fitted(tmp_path / "fit.npz", resume=True, rng=99)
    for ours, theirs in zip(continued.state, whole.state, strict=True):
        assert np.array_equal(ours, theirs)
    assert (continued.elbo, continued.nit) == (whole.elbo, whole.nit)
    assert continued.counts == whole.counts


def test_a_checkpoint_keeps_the_states_that_may_become_the_result(tmp_path: Path) -> None:
    seen: list[Fit] = []
    fitted(None, 20, callback=seen.append)
    fitted(tmp_path / "fit.npz", 19)
    fitted(tmp_path / "fit.npz", 20, resume=True, callback=seen.append)
    first, continued = seen[0], seen[-1]
    assert first is not continued and first.averaged is not None and first.middle is not None
    for name in ("state", "averaged", "middle"):
        for ours, theirs in zip(getattr(continued, name), getattr(first, name), strict=True):
            assert np.array_equal(ours, theirs)
    assert np.array_equal(continued.best.state.means, first.best.state.means)
    assert (continued.best.elbo, continued.rate, continued.last) == (first.best.elbo, first.rate, first.last)


def test_an_interrupted_fit_continues_as_if_nothing_had_happened(tmp_path: Path, whole: Posterior) -> None:
    path, bent, calls = tmp_path / "fit.npz", Bent(), []

    def jac(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 133:
            raise KeyboardInterrupt
        return bent.jac(x)

    with pytest.raises(KeyboardInterrupt):
        fitted(path, jac=jac)
    continued = fitted(path, resume=True)
    assert np.array_equal(continued.state.roots, whole.state.roots)


def test_checkpoints_are_guarded(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    fitted(path, 2)
    with pytest.raises(FileExistsError):
        fitted(path, 2)
    with pytest.raises(ValueError, match="must be of the same fit, but its gamma"):
        fitted(path, 2, resume=True, gamma=0.5)
    with pytest.raises(ValueError, match="must be of the same fit, but its first rate"):
        fitted(path, 2, resume=True, rate=0.25)
    with pytest.raises(ValueError, match="must be of the same fit, but its estimator"):
        fitted(path, 2, resume=True, samples=6)
    with pytest.raises(ValueError, match="must be of the same fit, but its family"):
        fitted(path, 2, resume=True, family=Gaussian("full", np.zeros(4)))
    with pytest.raises(FileNotFoundError):
        fitted(tmp_path / "none.npz", 2, resume=True)
    header, arrays = npz.read(path, "posterior")
    npz.write(path, "posterior", {name: kept for name, kept in header.items() if name != "batch seed"}, arrays)
    with pytest.raises(CheckpointError, match="'batch seed'"):
        fitted(path, 2, resume=True)
    npz.write(path, "posterior", header, {name: kept for name, kept in arrays.items() if name != "window/part"})
    with pytest.raises(CheckpointError, match="'window/part'"):
        fitted(path, 2, resume=True)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError):
        fitted(path, 2, resume=True)


def test_a_history_has_a_line_for_every_iteration(tmp_path: Path) -> None:
    path, history = tmp_path / "fit.npz", tmp_path / "fit.jsonl"
    fitted(path, 5, history=history)
    with history.open("a") as file:
        file.write('{"nit": 6, "el')  # a torn line
    fitted(path, 9, resume=True, history=history)
    header, *lines = [json.loads(text) for text in history.read_text().splitlines()]
    assert header == {"esgroup_posterior": 1}
    assert [entry["nit"] for entry in lines] == list(range(1, 10))
    assert lines[-1]["njev"] == 9 * 8 and len(lines[0]["mean"]) == 4
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(ValueError, match="not a history"):
        fitted(None, 2, history=other)
    assert other.read_text() == "mine"


def test_the_progress_line_says_where_the_fit_is() -> None:
    texts: list[str] = []
    fit_posterior(
        TARGET.logp,
        X0,
        jac=TARGET.jac,
        rng=0,
        max_iters=20,
        progress=True,
        callback=lambda f: texts.append(FitProgress(20).text(f)),
    )
    assert texts[-1].startswith("iteration 20 of 20 · ELBO ")
    assert "rate 0.5" in texts[0] and "10 gradients" in texts[0] and "±" in texts[-1]


def test_marginals_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = fit_posterior(TARGET.logp, X0, rng=0, max_iters=50, **TARGET.all_known())
    path = found.plot_marginals(tmp_path / "marginals.png", coordinates=[2, 0], samples=found.sample(500, 0))
    assert path.read_bytes().startswith(b"\x89PNG")
    found.plot_marginals(tmp_path / "all.svg")
    with pytest.raises(ValueError, match="coordinates must be an integer from 0 to 2"):
        found.plot_marginals(path, coordinates=[3])
    with pytest.raises(ValueError, match="samples must have shape"):
        found.plot_marginals(path, samples=np.zeros((4, 2)))
