"""algorithm="paper" from ask to tell: xNES with h in place of the exponential, SNES for the diagonal group."""

import numpy as np
from scipy.linalg import expm

from esgroup import Searcher
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
