"""How narrow a distribution may become, and when a search that is as narrow as that ends."""

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.strategies.base import Ranked
from esgroup.strategies.vector import NARROWEST
from tests.groups.laws import close


def narrow_search(factor: float, **options: object) -> Searcher:
    """A search whose standard deviations are `factor` times the first ones."""
    search = Searcher(np.zeros(4), [0.1, 1.0, 2.0, 5.0], rng=1, **options)
    search.state.sigma[0] *= factor
    return search


def stds_after_a_generation(search: Searcher) -> np.ndarray:
    X = search.ask()
    search.tell(np.abs(X).sum(axis=1))
    return np.asarray(search.stds)


@pytest.mark.parametrize("options", [{}, {"structure": "diagonal"}, {"structure": "heisenberg:k1=1,k2=1"}], ids=str)
def test_the_largest_deviation_relative_to_the_first_has_a_floor(options: dict) -> None:
    relative = stds_after_a_generation(narrow_search(1e-3 * NARROWEST, **options)) / [0.1, 1.0, 2.0, 5.0]
    assert relative.max() == pytest.approx(NARROWEST, rel=1e-9)
    assert relative.min() < relative.max()


def test_only_the_size_of_a_narrow_distribution_is_changed() -> None:
    """Shape and mean are those without the floor: a strategy that is not told the first spread has none."""
    search = narrow_search(1e-3 * NARROWEST)
    X = search.ask()
    order = np.argsort(np.abs(X).sum(axis=1))
    local, first = search.ledger.asked[-1].drawn.local, search.strategy.view(search.strategy.start()).spread()
    free = search.strategy.update(search.state, Ranked(local, order))
    held = search.strategy.update(search.state, Ranked(local, order, first=first))
    assert held.sigma[0] > 100 * free.sigma[0]
    for name in ("mean", "scale", "root", "path_s", "path_c"):
        close(getattr(held, name), getattr(free, name))


def test_wider_distributions_and_the_published_update_have_no_floor() -> None:
    for factor, options in ((10 * NARROWEST, {}), (1e-3 * NARROWEST, {"algorithm": "paper"})):
        relative = stds_after_a_generation(narrow_search(factor, **options)) / [0.1, 1.0, 2.0, 5.0]
        assert factor / 5 < relative.max() < factor * 5


@pytest.mark.parametrize("options", [{"integer": [0]}, {"mirrored": True}, {"noise": "adapt"}], ids=str)
def test_the_floor_holds_in_long_runs(options: dict) -> None:
    """A may shrink in place of sigma, and the deviation of an integer stays."""
    scales, narrowest, of = np.geomspace(1.0, 1e3, 6), 1.0, slice(1 if "integer" in options else 0, 6)
    search = Searcher(np.full(6, 2.0), 1.0, rng=3, **options)
    first = np.asarray(search.strategy.view(search.state).spread())
    for _ in range(700):
        X = search.ask()
        search.tell(np.sqrt(((X * scales) ** 2).sum(axis=1)))
        narrowest = min(narrowest, (search.strategy.view(search.state).spread() / first)[of].max())
    assert narrowest == pytest.approx(NARROWEST, rel=1e-6)


def test_a_smooth_minimum_of_zero_ends_on_tolx_as_soon_as_the_distribution_is_narrow() -> None:
    search, seen = Searcher(np.ones(5), 0.5, rng=2), 0
    while not search.stop():
        X = search.ask()
        search.tell((X**2).sum(axis=1))
        seen += bool((np.asarray(search.stds) / 0.5).max() <= 1.001 * NARROWEST)
    assert set(search.stop()) == {"tolx"} and seen == 1
    assert search.best_f < 1e-18 and search.result.success


def test_a_sharp_ridge_is_followed_to_its_end() -> None:
    """f = x_1^2 + 100 |x_2 ... x_n| in rotated coordinates, whose best steps shrink before the ridge is learned."""
    rng, n = np.random.default_rng(5), 12
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]

    def ridge(X: np.ndarray) -> np.ndarray:
        y = X @ q
        return 1.0 + y[:, 0] ** 2 + 100 * np.sqrt((y[:, 1:] ** 2).sum(axis=1))

    search = Searcher(rng.uniform(-4, 4, n), 2.0, rng=3, target=1 + 1e-7, max_evals=40_000)
    while not search.stop():
        search.tell(ridge(search.ask()))
    assert "target" in search.stop()
