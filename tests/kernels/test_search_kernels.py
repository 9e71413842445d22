"""The loops of the search, and of small full matrices under decoding, against their slow twins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from esgroup.kernels import decoding, full, search
from tests.groups.elements import frozen
from tests.groups.laws import close
from tests.kernels import naive_search as naive

Rng = np.random.Generator
SIZES = [(6, 4), (9, 1), (4, 9), (12, 3), (2, 2)]  # samples, coordinates
# c_s, c_c, c_1, c_mu, mu_eff, threshold of h_sigma times chi, rescaled
ORDINARY = {"c_s": 0.3, "c_c": 0.4, "c_1": 0.04, "c_mu": 0.03, "mass": 3.0, "threshold": 6.3, "rescaled": 1.0}


def changed(**numbers: float) -> dict[str, float]:
    return ORDINARY | numbers


# one case of every branch: ordinary; h_sigma = 0; no rescaling; M scaled down
CASES = {
    "ordinary": changed(),
    "unsteady": changed(threshold=0.01),
    "not rescaled": changed(rescaled=0.0),
    "clipped": changed(c_mu=5.0),
    "clipped by the path": changed(c_1=40.0, threshold=100.0),
    "no paths": changed(c_s=0.0, c_c=0.0, c_1=0.0, mass=0.0, threshold=0.0),
}


def arguments(n: int, dim: int, numbers: dict[str, float], rng: Rng) -> dict[str, Any]:
    return {
        "order": frozen(rng.permutation(n)),
        "mean_weights": frozen(np.sort(rng.standard_normal(n))[::-1].copy()),
        "root_weights": frozen(np.sort(rng.standard_normal(n))[::-1].copy()),
        "constants": frozen(np.array(list(numbers.values()))),
        "step": 0.78,
        "scale": frozen(rng.uniform(0.5, 2.0, dim)),
        "z": rng.standard_normal((n + 1, dim)),
        "y": rng.standard_normal((n + 1, dim)),
        "path_s": rng.standard_normal(dim),
        "fade": np.array([0.2]),
        "path_c": rng.standard_normal(dim),
        "mean": rng.standard_normal(dim),
        "weights": np.full(n + 1, np.nan),
        "report": np.full(4, np.nan),
    }


def expected_of(given: dict[str, Any]) -> dict[str, np.ndarray]:
    inputs = [np.copy(given[name]) for name in list(given)[:8]]
    return naive.evolve(*inputs, {name: given[name].copy() for name in ("path_s", "fade", "path_c", "mean")})


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("n", "dim"), SIZES)
def test_evolve(case: str, n: int, dim: int) -> None:
    given = arguments(n, dim, CASES[case], np.random.default_rng(n * dim))
    expected = expected_of(given)
    search.evolve(*given.values())
    for name, value in expected.items():
        close(given[name], value)


@pytest.mark.parametrize("length", [0.0, 1e-100, 1e-5, 1e-3])
def test_evolve_takes_samples_at_the_mean_as_they_are(length: float) -> None:
    given = arguments(6, 4, CASES["ordinary"], np.random.default_rng(24))
    worst = given["order"][-1]
    given["z"][worst] *= length / np.linalg.norm(given["z"][worst])
    expected = expected_of(given)
    search.evolve(*given.values())
    close(given["weights"], expected["weights"])


def test_the_cases_of_evolve_are_what_they_are_called() -> None:
    found = {}
    for case, numbers in CASES.items():
        given = arguments(6, 4, numbers, np.random.default_rng(24))
        found[case] = dict(zip(("length", "shift", "damped", "clip"), expected_of(given)["report"], strict=True))
    assert found["ordinary"]["damped"] == 1 > found["unsteady"]["damped"]
    assert found["ordinary"]["clip"] == 1 > max(found[case]["clip"] for case in ("clipped", "clipped by the path"))
    assert (arguments(6, 4, ORDINARY, np.random.default_rng(24))["root_weights"] < 0).any()


@pytest.mark.parametrize("array", ["z", "y"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e120])
def test_evolve_writes_nothing_but_a_sign_if_a_sample_is_not_finite(array: str, bad: float) -> None:
    given = arguments(6, 4, CASES["ordinary"], np.random.default_rng(1))
    given[array][given["order"][0], 2] = bad
    before = {name: np.copy(value) for name, value in given.items()}
    search.evolve(*given.values())
    assert given["report"][3] == 0.0
    for name in ("path_s", "fade", "path_c", "mean", "z", "y"):
        assert np.array_equal(given[name], before[name], equal_nan=True), name


@pytest.mark.parametrize(("n", "dim"), SIZES)
def test_place(n: int, dim: int) -> None:
    rng = np.random.default_rng(2)
    mean, scale, y = rng.standard_normal(dim), rng.uniform(0.5, 2.0, dim), rng.standard_normal((n + 1, dim))
    x = np.empty((n, dim))
    search.place(frozen(mean), np.array([0.7]), frozen(scale), frozen(y), x)
    close(x, naive.place(mean, 0.7, scale, y[:n]))


@pytest.mark.parametrize(("n", "dim"), [(6, 4), (4, 9), (12, 3), (9, 2), (8, 7), (9, 40)])
def test_orthogonalize(n: int, dim: int) -> None:
    z = np.random.default_rng(3).standard_normal((n + 2, dim))
    expected = np.vstack([naive.orthogonalized(z[:n]), z[n:]])
    search.orthogonalize(n, z)
    close(z, expected, 1e-9)


def some_trend(dim: int, rng: Rng, size: float = 1.0) -> np.ndarray:
    """The trend after some steps with a common direction of this size."""
    trend, direction = np.zeros(dim + 3), rng.standard_normal(dim)
    for _ in range(12):
        trend = naive.trend_after(trend, 0.1 * (size * direction + rng.standard_normal(dim)))
    return trend


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_d_moves_by_the_share_of_its_step_that_its_trend_allows(dim: int) -> None:
    """Between its limits, and at both of them."""
    shares = []
    for size in (0.0, 0.3, 0.5, 0.8, 1.2, 8.0):
        rng = np.random.default_rng(dim)
        before, scale = some_trend(dim, rng, size), rng.uniform(0.5, 2.0, dim)
        step, trend, expected = 0.1 * rng.standard_normal(dim), before.copy(), scale.copy()
        wanted = naive.trend_after(before, step)
        decoding.move_by_trend(frozen(step), 0.5, 0.3, trend, scale)
        close(trend, wanted)
        close(scale, expected * np.exp(naive.share_taken(wanted, 0.3) * step))
        shares.append(naive.share_taken(wanted, 0.3))
    assert min(shares) == 0.3 and (dim == 1 or max(shares) == 1)
    assert dim < 20 or any(min(shares) < share < 1 for share in shares)


def test_the_first_step_of_d_and_steps_of_length_zero_have_no_trend() -> None:
    step, trend, scale = np.array([0.3, -0.2, 0.1]), np.zeros(6), np.ones(3)
    decoding.move_by_trend(step, 0.5, 0.2, trend, scale)
    close(np.log(scale), 0.2 * step)
    trend, scale = np.zeros(6), np.ones(3)
    decoding.move_by_trend(np.zeros(3), 0.5, 0.2, trend, scale)
    assert np.array_equal(scale, np.ones(3)) and np.isfinite(trend).all()


def test_without_a_signal_the_ratio_of_the_trend_is_one_at_every_age() -> None:
    """The mean of r over 1000 series of independent steps, within 5 standard errors."""
    dim, rng = 8, np.random.default_rng(11)
    trends = np.zeros((1000, dim + 3))
    for age in range(1, 60):
        steps = rng.standard_normal(trends[:, :dim].shape)
        trends = np.array([naive.trend_after(trend, step) for trend, step in zip(trends, steps, strict=True)])
        if age in (1, 2, 5, 20, 59):
            ratios = (trends[:, :dim] ** 2).sum(axis=1) * trends[:, -1] / (trends[:, dim + 1] * trends[:, dim])
            error = 1e-9 + ratios.std() / np.sqrt(len(ratios))
            assert abs(ratios.mean() - 1) < 5 * error, age
            assert ratios.std() < 1.1 * np.sqrt(2 / dim)


@pytest.mark.parametrize(("n", "dim"), SIZES)
def test_decode(n: int, dim: int) -> None:
    rng = np.random.default_rng(4)
    v, y, weights = rng.standard_normal((n + 1, dim)), rng.standard_normal((n + 1, dim)), rng.standard_normal(n + 1)
    for size in (0.1, 10.0):  # small steps, and such as are cut off
        fisher, scale, before = rng.uniform(2.0, 5.0, dim), rng.uniform(0.5, 2.0, dim), some_trend(dim, rng)
        step, trend, expected = naive.decode(v, y, size * weights, fisher, (0.6, 1.4), 0.3), before.copy(), scale.copy()
        decoding.decode(frozen(v), frozen(y), size * weights, fisher, 0.6, 1.4, 0.3, 0.2, trend, scale)
        close(trend, naive.trend_after(before, step))
        close(scale, expected * np.exp(naive.share_taken(trend, 0.2) * step))


@pytest.mark.parametrize("keep", [0.0, 0.9])
@pytest.mark.parametrize(("n", "dim"), [(1, 1), (2, 3), (5, 4), (8, 7), (3, 130)])
def test_products_in_blocks(n: int, dim: int, keep: float) -> None:
    rng = np.random.default_rng(5)
    left, right, out = rng.standard_normal((n, 5)), rng.standard_normal((n, dim)), rng.standard_normal((5, dim))
    expected = keep * out + left.T @ right
    out = out if keep else np.full(out.shape, np.nan)
    full.add_product(frozen(left), frozen(right), keep, out)
    close(out, expected)
    images = np.empty((n, 5))
    full.images(frozen(right), frozen(expected), images)
    close(images, right @ expected.T)


def generation_arguments(n: int, dim: int, numbers: dict[str, float], rng: Rng) -> dict[str, Any]:
    """Those of `generation`, from those of `evolve`; the images are those of A."""
    given = arguments(n, dim, numbers, rng)
    given["z"][n] = given["path_c"]
    a = np.eye(dim) + 0.3 * rng.standard_normal((dim, dim)) / np.sqrt(dim)
    parts = [given["constants"], [0.8, 1.3, 0.6, 1.4, 0.2, 0.3, 0.4], given["mean_weights"], given["root_weights"]]
    return {
        "order": given["order"],
        "numbers": frozen(np.concatenate(parts)),
        "both": np.vstack([given["z"], given["z"] @ a.T]),
        "mean": given["mean"],
        "scale": given["scale"].copy(),
        "sigma": np.array([0.78]),
        "fade": given["fade"],
        "path_s": given["path_s"],
        "path_c": given["path_c"],
        "fisher": np.full(dim, np.nan),
        "trend": some_trend(dim, rng),
        "inverse": np.linalg.inv(a).ravel(),
        "root": a.ravel().copy(),
        "report": np.full(4, np.nan),
    }


def after_generation(given: dict[str, Any], step_of: Callable[..., np.ndarray]) -> dict[str, np.ndarray]:
    """What a generation leaves, by the formulas on whole arrays; `step_of` has S of A <- A S."""
    n, dim, numbers = len(given["order"]), len(given["mean"]), given["numbers"]
    z, y = given["both"][: n + 1], given["both"][n + 1 :]
    drive, chi, ratio_mu, ratio_1, pull_mu, pull_1, least = numbers[7:14]
    a, inverse = given["root"].reshape(dim, dim), given["inverse"].reshape(dim, dim)
    before = {name: given[name].copy() for name in ("path_s", "fade", "path_c", "mean")}
    weights = (numbers[14 : 14 + n], numbers[14 + n :])
    moved = naive.evolve(given["order"], *weights, numbers[:7], given["sigma"][0], given["scale"], z, y, before)
    length, shift, damped, clip = moved["report"]
    information = 1 + np.diagonal(a @ a.T) * np.diagonal(np.linalg.inv(a @ a.T))
    information *= np.sqrt(information.max() / 2)
    own, pull = (ratio_mu / clip, ratio_1 / clip), pull_mu + damped * pull_1
    of_d = naive.decode(moved["z"] @ inverse, moved["y"], moved["weights"], information, own, pull)
    trend = naive.trend_after(given["trend"], of_d)
    step = step_of(moved["z"], moved["weights"], shift)
    return {
        **{name: moved[name] for name in ("path_s", "fade", "path_c", "mean", "report")},
        "both": np.vstack([moved["z"], moved["y"]]),
        "sigma": given["sigma"] * np.exp(min(1, drive * (length / chi - 1))),
        "fisher": information,
        "trend": trend,
        "scale": given["scale"] * np.exp(naive.share_taken(trend, least) * of_d),
        "root": (a @ step).ravel(),
        "inverse": np.linalg.inv(a @ step).ravel(),
    }


SMALL_STEPS = [case for case in CASES if "clipped" not in case]


@pytest.mark.parametrize("case", SMALL_STEPS)
@pytest.mark.parametrize(("n", "dim"), [*SIZES, (30, 5), (7, 40)])
def test_generation(case: str, n: int, dim: int) -> None:
    """A h(M) and its inverse, M = (Z^T W Z - s I) / 2, with as many samples as there may be."""
    given = generation_arguments(n, dim, CASES[case], np.random.default_rng(n * dim))
    expected = after_generation(given, naive.h)
    full.generation(*given.values())
    for name, value in expected.items():
        close(given[name], value, 1e-8)


@pytest.mark.parametrize("c_mu", [0.03, 0.2])
@pytest.mark.parametrize(("n", "dim"), [*SIZES, (30, 5), (12, 10)])
def test_generation_by_flow(c_mu: float, n: int, dim: int) -> None:
    given = generation_arguments(n, dim, changed(c_mu=c_mu), np.random.default_rng(n * dim))
    given["numbers"] = given["numbers"].copy()
    given["numbers"][14 + n :] = np.abs(given["numbers"][14 + n :]) / n  # so that S S^T is positive definite
    expected = after_generation(given, naive.flow)
    full.generation_by_flow(*given.values())
    for name, value in expected.items():
        close(given[name], value, 1e-8)


@pytest.mark.parametrize("run", ["generation", "generation_by_flow"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e120])
def test_a_generation_writes_nothing_but_a_sign_if_a_sample_is_not_finite(run: str, bad: float) -> None:
    given = generation_arguments(6, 4, CASES["ordinary"], np.random.default_rng(1))
    given["both"][given["order"][0], 2] = bad
    before = {name: np.copy(value) for name, value in given.items()}
    getattr(full, run)(*given.values())
    assert given.pop("report")[3] == 0.0
    for name, value in given.items():
        assert np.array_equal(value, before[name], equal_nan=True), name


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize(("n", "dim"), [(6, 4), (4, 9), (12, 3), (2, 2)])
def test_place_of_dense_roots(n: int, dim: int, orthogonal: bool) -> None:
    rng = np.random.default_rng(8)
    a, given, path, mean = (rng.standard_normal(shape) for shape in ((dim, dim), (n, dim), dim, dim))
    z, y, x = np.vstack([given, np.full(dim, np.nan)]), np.empty((n + 1, dim)), np.empty((n, dim))
    sigma, scale = np.array([0.7]), rng.uniform(0.5, 2.0, dim)
    full.place(n * orthogonal, frozen(a.ravel()), frozen(path), frozen(mean), sigma, frozen(scale), z, y, x)
    close(z, np.vstack([naive.orthogonalized(given) if orthogonal else given, path]), 1e-9)
    close(y, z @ a.T)
    close(x, naive.place(mean, 0.7, scale, y[:n]))


@pytest.mark.parametrize(("n", "dim"), [*SIZES, (30, 5), (7, 40)])
def test_cores_of_the_step_and_of_its_inverse(n: int, dim: int) -> None:
    """h(M) = alpha I + Z^T K Z and h(M)^-1 = (I - Z^T S Z) / alpha."""
    rng = np.random.default_rng(9)
    z, weights, shift = rng.standard_normal((n, dim)), 0.4 * rng.standard_normal(n) / np.sqrt(n), 0.35
    up, down = np.empty((n, n)), np.empty((n, n))
    full.cores(frozen(z), frozen(weights), shift, up, down)
    keep, step = 1 - shift / 2 + shift**2 / 8, naive.h(z, weights, shift)
    close(keep * np.eye(dim) + z.T @ up @ z, step, 1e-9)
    close((np.eye(dim) - z.T @ down @ z) / keep, np.linalg.inv(step), 1e-8)


def test_cores_exchange_rows_where_they_must() -> None:
    """A weight w that makes the first pivot of alpha I + K G vanish, by which elimination must not divide.

    K = (1/2 - s/4) W + W G W / 8 with W = diag(w, 10), so that the pivot is a quadratic function of w.
    """
    z, shift = np.array([[2.0, 0.0], [1.5, 1.0]]), 0.3
    gram, keep = z @ z.T, 1 - shift / 2 + shift**2 / 8
    pivot = [gram[0, 0] ** 2 / 8, (0.5 - shift / 4) * gram[0, 0] + 10 * gram[0, 1] ** 2 / 8, keep]
    weights = np.array([np.roots(pivot).max(), 10.0])
    core = (0.5 - shift / 4) * np.diag(weights) + gram * np.outer(weights, weights) / 8
    assert abs((keep * np.eye(2) + core @ gram)[0, 0]) < 1e-14
    up, down = np.empty((2, 2, 2))
    full.cores(z, weights, shift, up, down)
    close((np.eye(2) - z.T @ down @ z) / keep, np.linalg.inv(naive.h(z, weights, shift)))


def test_the_loops_do_the_same_without_the_compiler() -> None:
    compiled, plain = (arguments(5, 3, CASES["ordinary"], np.random.default_rng(6)) for _ in range(2))
    search.evolve(*compiled.values())
    search.evolve.python(*plain.values())
    for name, value in compiled.items():
        close(value, plain[name])
    for run in (full.generation, full.generation_by_flow):
        compiled, plain = (generation_arguments(5, 3, CASES["ordinary"], np.random.default_rng(7)) for _ in range(2))
        run(*compiled.values())
        run.python(*plain.values())
        for name, value in compiled.items():
            close(value, plain[name])
