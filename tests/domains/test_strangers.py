"""A domain that esgroup does not know: the probability simplex, one file of a few lines, with all searches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.checks import Array
from esgroup.domains import Domain, register
from esgroup.strategies import Within, within
from tests.search.test_strangers import OnePlusOne


@register
@dataclass(frozen=True)
class Simplex(Domain):
    """Shares x_i > 0 with sum 1: x = softmax of y, where the last entry of y is 0 and left out."""

    dim: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def size(self) -> int:
        return self.dim - 1

    def decode(self, y: Array) -> Array:
        full = np.column_stack([y, np.zeros(len(y))])
        weights = np.exp(full - full.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def encode(self, points: Array, near: Array | None = None) -> Array:
        logs = np.log(np.maximum(points, 1e-300))
        return logs[:, :-1] - logs[:, -1:]


WANTED = np.array([0.5, 0.3, 0.15, 0.05])


def divergence(x: Array) -> float:
    assert np.isclose(x.sum(), 1.0) and (x > 0).all()
    return float(WANTED @ np.log(WANTED / x))


OPTIONS: list[dict[str, Any]] = [{}, {"model": "quadratic"}, {"structure": "diagonal"}, {"noise": "adapt"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_domain_is_a_start(options: dict[str, Any]) -> None:
    result = esgroup.minimize(divergence, Simplex(4), target=1e-8, max_evals=3000, rng=1, **options)
    assert result.success and np.allclose(result.x, WANTED, atol=1e-3) and result.xmean.sum() == pytest.approx(1.0)


def test_a_strangers_strategy_searches_it_too() -> None:
    result = esgroup.minimize(divergence, within(OnePlusOne(dim=3), Simplex(4)), target=1e-6, max_evals=5000, rng=1)
    assert result.success


def test_restarts_constraints_and_files_need_no_line_of_it(tmp_path: Path) -> None:
    result = esgroup.minimize(lambda x: 1.0, Simplex(4), restarts="ipop", max_evals=2000, rng=1)
    assert result.restarts >= 1
    most = {"type": "ineq", "fun": lambda x: 0.4 - x[0]}
    result = esgroup.minimize(divergence, Simplex(4), constraints=most, max_evals=3000, rng=1)
    rest = WANTED[1:] / WANTED[1:].sum() * 0.6
    assert result.feasible and np.allclose(result.x, [0.4, *rest], atol=1e-3)
    search = Searcher(Simplex(4), rng=1)
    for _ in range(20):
        search.tell([divergence(x) for x in search.ask()])
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert isinstance(loaded.strategy, Within) and np.array_equal(loaded.ask(), search.ask())


def test_standard_deviations_are_those_of_samples_where_the_map_is_nearly_linear() -> None:
    mean, stds = np.array([0.5, -1.0, 0.2]), np.array([0.05, 0.1, 0.02])
    samples = Simplex(4).decode(mean + stds * np.random.default_rng(1).standard_normal((200_000, 3)))
    np.testing.assert_allclose(Simplex(4).stds(mean, stds), samples.std(axis=0), rtol=0.01)


def test_points_outside_and_options_that_it_has_itself_are_refused() -> None:
    search = Searcher(Simplex(3))
    with pytest.raises(ValueError, match=r"X must be points of Simplex\(dim=3\), but X\[0\] is \[0.5, 0.5, 0.5\]"):
        search.tell([[0.5, 0.5, 0.5]], [1.0])
    for name, value in {"bounds": (0, 1), "sigma0": 0.1, "fixed": [0], "integer": True}.items():
        with pytest.raises(ValueError, match=rf"{name} cannot be given with a domain: Simplex"):
            Searcher(Simplex(3), **{name: value})
    with pytest.raises(TypeError, match=r"cls must be a dataclass derived from Domain, got 3"):
        register(3)  # type: ignore[arg-type]


def test_standard_deviations_of_large_points_take_little_memory() -> None:
    """Those of a matrix are read row by row; where they come from differences, these are taken in blocks."""
    import tracemalloc

    tracemalloc.start()
    result = esgroup.minimize(
        lambda W: float((W**2).sum()), np.ones((60, 60)), space="matrix", structure="diagonal", max_evals=40, rng=1
    )
    Simplex(3001).stds(np.zeros(3000), np.full(3000, 0.1))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.stds.shape == (60, 60) and most < 150e6  # a matrix of 3600 x 3600 has 104e6


@pytest.mark.parametrize("point", [[-0.5, 1.0, 0.4, 0.1], [0.6, 0.6, 0.6, 0.6], [2.0, -1.0, 0.0, 0.0]])
def test_points_outside_are_refused_and_leave_the_search_as_it_was(point: list[float]) -> None:
    search = Searcher(Simplex(4), rng=1)
    for call in (lambda: search.tell([point], [-1.0]), lambda: search.inject([point])):
        with pytest.raises(ValueError, match=r"X must be points of Simplex\(dim=4\), but X\[0\] is \["):
            call()
    assert search.nfev == 0 and search.best_x is None and search.inject([[0.4, 0.3, 0.2, 0.1]]) is None


def test_a_search_in_a_domain_is_no_start_of_another_one() -> None:
    with pytest.raises(ValueError, match=r"Gaussian over vectors, got Full.* in a domain of type Simplex"):
        Searcher(Searcher(Simplex(4)))


def test_what_is_not_registered_is_told_where(tmp_path: Path) -> None:
    class Nobodys(Simplex):
        pass

    with pytest.raises(TypeError, match=r"Nobodys.* cannot be stored: .* to esgroup\.domains\.register first"):
        Searcher(Nobodys(4)).save(tmp_path / "run.npz")
