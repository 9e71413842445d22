"""algorithm="paper" from ask to tell: xNES with h in place of the exponential, SNES for the diagonal group."""

import numpy as np
from scipy.linalg import expm

from esgroup import Searcher
from esgroup.strategies.recombination import Cumulative, Published
from tests.groups.laws import close


def uneven(x: np.ndarray) -> np.ndarray:
    return (x - 0.3) ** 2 @ np.array([1.0, 5.0, 2.0, 0.5]) + x[:, 0] * x[:, 1]


def utilities(n: int) -> np.ndarray:
    raw = np.maximum(0, np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)))
    return raw / raw.sum() - 1 / n


def spread(search: Searcher) -> np.ndarray:
    state = search.state
    return state.sigma[0] * state.scale[:, None] * search.structure.dense(state.root)


def h(m: np.ndarray) -> np.ndarray:
    return np.eye(len(m)) + m + m @ m / 2


def test_generations_of_the_full_group_are_those_of_xnes() -> None:
    """Glasmachers et al. 2010: mu <- mu + A sum u z, A <- A exp(eta/2 sum u (z z^T - I)), here with h for exp."""
    search, n = Searcher([1.0, -1.0, 0.5, 2.0], 0.4, structure="full", algorithm="paper", popsize=9, rng=0), 4
    mean, a, eta = search.mean, 0.4 * np.eye(4), (9 + 3 * np.log(n)) / (5 * n * np.sqrt(n))
    for _ in range(10):
        x = search.ask()
        z, u = np.linalg.solve(a, (x - mean).T).T, utilities(9)
        search.tell(uneven(x))
        z = z[np.argsort(uneven(x))]
        m = eta / 2 * sum(w * (np.outer(s, s) - np.eye(n)) for w, s in zip(u, z, strict=True))
        near = a @ expm(m)
        mean, a = mean + a @ (u @ z), a @ h(m)
        close(search.mean, mean)
        close(spread(search), a)
        assert np.abs(near - a).max() < np.abs(m).max() ** 3  # exp to second order
    assert not np.allclose(a, a[0, 0] * np.eye(4), atol=0.01)


def test_generations_of_the_diagonal_group_are_those_of_snes() -> None:
    """Schaul et al. 2011: sigma_j <- sigma_j exp(eta/2 sum u (z_j^2 - 1)), here with h for exp."""
    search = Searcher([1.0, -1.0, 0.5, 2.0], 0.4, structure="diagonal", algorithm="paper", popsize=9, rng=4)
    mean, sigma, eta = search.mean, np.full(4, 0.4), (3 + np.log(4)) / (5 * np.sqrt(4))
    for _ in range(5):
        x = search.ask()
        z, u = ((x - mean) / sigma)[np.argsort(uneven(x))], utilities(9)
        search.tell(uneven(x))
        m = eta / 2 * (u @ (z**2 - 1))
        mean, sigma = mean + sigma * (u @ z), sigma * (1 + m + m**2 / 2)
        close(search.mean, mean)
        close(spread(search), np.diag(sigma))


def test_its_samples_are_independent_and_it_has_no_decoding() -> None:
    search = Searcher(np.zeros(4), 1.0, structure="full", algorithm="paper", rng=5)
    x = search.ask()
    close(x, np.random.default_rng(5).standard_normal(x.shape))
    assert search.strategy.evolution.decoding is None and search.strategy.evolution.adaptation is None


def test_decoding_that_is_asked_for_learns_scales_beside_it() -> None:
    """A separable ellipsoid of condition 1e4 takes half of the evaluations; d has the rates of the default update."""
    weights, took = np.geomspace(1, 1e4, 8), []
    for decoding in (False, True):
        search = Searcher(np.ones(8), 1.0, structure="full", algorithm="paper", decoding=decoding, target=1e-6, rng=1)
        while not search.stop() and search.nfev < 9000:
            search.tell(search.ask() ** 2 @ weights)
        assert bool(np.ptp(search.state.scale) > 0.1 * search.state.scale.mean()) is decoding
        took.append(search.nfev)
    assert took[1] < 0.7 * took[0]
    published, default = Published().constants(9, 4, 10), Cumulative().constants(9, 4, 10)
    for one in (published, default):
        rate = one.decoding[0] * one.kernel[3]
        close(rate, default.decoding[0] * default.kernel[3])
        close(one.decoding[2], rate * one.root_weights.sum())


def test_the_two_points_set_the_step_size_beside_it() -> None:
    search = Searcher(np.full(4, 50.0), 1e-3, structure="full", algorithm="paper", step_size="tpa", rng=1)
    plain = Searcher(np.full(4, 50.0), 1e-3, structure="full", algorithm="paper", rng=1)
    for one in (search, plain):
        for _ in range(15):
            one.tell((one.ask() ** 2).sum(axis=1))
    assert search.sigma > 5 * plain.sigma


def test_its_rates_fall_where_values_are_noise() -> None:
    rng = np.random.default_rng(1)
    for is_noise in (True, False):
        search = Searcher(np.ones(4), 1.0, structure="full", algorithm="paper", noise="adapt", rng=1)
        for _ in range(60):
            X = search.ask()
            search.tell(rng.random(len(X)) if is_noise else uneven(X))
        mean, root = search.state.rates[:2].tolist()
        assert (mean < 0.5) is is_noise and (root < 0.5) is is_noise, (is_noise, mean, root)
