"""The same verbs over other spaces: ask, tell, stop, result, save, load, minimize."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.distributions.families import Beta, Gamma, Product
from esgroup.space_searcher import SpaceSearcher


def nearness(w: np.ndarray) -> np.ndarray:
    return ((w @ np.diag([1.0, 2.0, 4.0]) - np.eye(3)) ** 2).sum(axis=(1, 2))


def squares(x: np.ndarray) -> np.ndarray:
    return ((x - 0.3) ** 2).reshape(len(x), -1).sum(axis=1)


def waiting(x: np.ndarray) -> np.ndarray:
    return np.log(x[:, 0] / 0.3) ** 2 + (x[:, 1] - 0.7) ** 2


def himmelblau(x: np.ndarray) -> np.ndarray:
    return (x[:, 0] ** 2 + x[:, 1] - 11) ** 2 + (x[:, 0] + x[:, 1] ** 2 - 7) ** 2


def gaussian(structure: str, mean: float) -> esgroup.Gaussian:
    return esgroup.Gaussian(structure, np.full(2, mean), 1.0)


SPACES: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "wishart": (esgroup.Wishart(mean=np.eye(3)), nearness, (3, 3)),
    "wishart, diagonal": (esgroup.Wishart(mean=np.eye(3), structure="diagonal"), nearness, (3, 3)),
    "matrix": (esgroup.MatrixGaussian(mean=np.ones((3, 2)), sigma0=0.5, rows="diagonal"), squares, (3, 2)),
    "mixture": (esgroup.Mixture((gaussian("full", 0.0), gaussian("diagonal", 1.0))), himmelblau, (2,)),
    "product": (Product((Gamma(2.0, 1.0), Beta(2.0, 3.0))), waiting, (2,)),
    "scalar": (Gamma(2.0, 1.0), squares, (1,)),
}


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> tuple[Any, Any, tuple[int, ...]]:
    return SPACES[request.param]


def told(search: Searcher, fun: Any, generations: int) -> Searcher:
    for _ in range(generations):
        search.tell(fun(search.ask()))
    return search


def same(first: Any, second: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first._state, second._state, strict=True))


def test_points_have_the_shape_of_the_space(space: Any) -> None:
    distribution, _, shape = space
    search = Searcher(distribution, rng=1)
    assert isinstance(search, SpaceSearcher) and isinstance(search, Searcher)
    points = search.ask()
    assert points.shape == (search.popsize, *shape) and not points.flags.writeable
    assert search.ask(3).shape == (3, *shape)
    assert search.mean.shape == search.stds.shape == search.shape == shape


def test_a_search_gets_better(space: Any) -> None:
    distribution, fun, _ = space
    search = Searcher(distribution, rng=1)
    first = float(np.median(fun(search.ask())))
    told(search, fun, 60)
    assert search.best_f < 0.05 * first and search.nit == 60
    assert fun(search.best_x[None])[0] == search.best_f
    assert search.result.x.shape == search.shape and search.result.fun == search.best_f


def test_a_saved_search_goes_on_bit_by_bit(space: Any, tmp_path: Path) -> None:
    distribution, fun, _ = space
    search = told(Searcher(distribution, rng=5, max_evals=10**6), fun, 7)
    out = search.ask()
    search.tell(out[:2], fun(out[:2]))
    search.save(tmp_path / "run.npz")
    others = [Searcher.load(tmp_path / "run.npz"), pickle.loads(pickle.dumps(search))]
    for one in (search, *others):
        one.tell(out[2:], fun(out[2:]))
        told(one, fun, 5)
    following = search.ask()
    for other in others:
        assert same(search, other) and (search.nfev, search.best_f) == (other.nfev, other.best_f)
        assert np.array_equal(following, other.ask())


def test_points_may_be_told_in_any_order_and_form(space: Any) -> None:
    distribution, fun, _ = space
    searches = [Searcher(distribution, rng=2) for _ in range(3)]
    points = [search.ask() for search in searches]
    values, order = fun(points[0]), np.random.default_rng(1).permutation(len(points[0]))
    searches[0].tell(values)
    searches[1].tell(points[1], values)
    searches[2].tell([(points[2][i], float(values[i])) for i in order])
    assert same(searches[0], searches[1]) and searches[2].nit == 1
    for a, b in zip(searches[0]._state, searches[2]._state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_minimize_takes_a_distribution_and_resumes(space: Any, tmp_path: Path) -> None:
    distribution, fun, shape = space

    def one(x: np.ndarray) -> float:
        assert x.shape == shape
        return float(fun(x[None])[0])

    whole = esgroup.minimize(one, distribution, max_evals=300, rng=3)
    path = tmp_path / "run.npz"
    esgroup.minimize(one, distribution, max_evals=100, rng=3, checkpoint=path)
    resumed = esgroup.minimize(
        one, distribution, max_evals=300, rng=3, checkpoint=path, resume=True, history=tmp_path / "run.jsonl"
    )
    assert (resumed.fun, resumed.nfev) == (whole.fun, whole.nfev) and np.array_equal(resumed.x, whole.x)


def test_points_of_ones_own_are_put_into_the_next_ask() -> None:
    search = Searcher(esgroup.Wishart(mean=np.eye(2)), rng=1)
    mine = np.array([[2.0, 0.5], [0.5, 1.0]])
    search.inject(mine)
    points = search.ask()
    assert np.array_equal(points[0], mine)
    search.tell([9.0] * (len(points) - 1) + [1.0])


def test_failed_runs_and_budgets_are_as_everywhere(space: Any) -> None:
    distribution, fun, _ = space
    search = Searcher(distribution, rng=1, max_evals=1)
    values = fun(search.ask())
    values[0] = np.nan
    search.tell(values)
    assert search.nfailed == 1 and list(search.stop()) == ["max_evals"]
    before = search._state
    search.ask()
    search.tell([np.nan] * search.popsize)
    assert search._state is before  # nothing was learnt


# ---- wrong input ----------------------------------------------------------------------------------------------------


def test_points_outside_of_the_space_are_refused_and_nothing_is_lost() -> None:
    search = Searcher(esgroup.Wishart(mean=np.eye(2)), rng=1)
    points = search.ask()
    for bad, message in (
        (np.diag([1.0, -1.0]), "positive definite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (np.eye(3), "shape"),
        (np.full((2, 2), np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            search.tell(bad[None], [1.0])
    search.tell(nearness_2(points))
    assert search.nit == 1


def nearness_2(w: np.ndarray) -> np.ndarray:
    return ((w - np.diag([1.0, 3.0])) ** 2).sum(axis=(1, 2))


def test_options_of_vectors_are_refused() -> None:
    start = esgroup.Wishart(mean=np.eye(2))
    options = {"sigma0": 1.0, "structure": "full", "bounds": (0, 1), "noise": "adapt", "mirrored": True}
    for name, value in options.items():
        with pytest.raises(ValueError, match=f"{name} is an option of searches over vectors: leave it out, Wishart"):
            Searcher(start, **{name: value})
    with pytest.raises(TypeError, match="no argument 'popsiz'"):
        Searcher(start, popsiz=4)
    with pytest.raises(ValueError, match="restarts begin at points like x0"):
        esgroup.minimize(lambda w: 0.0, start, restarts="bipop")


def test_a_checkpoint_of_another_space_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    esgroup.minimize(lambda w: float(w[0, 0]), esgroup.Wishart(mean=np.eye(2)), max_evals=20, rng=1, checkpoint=path)
    for other in (np.ones(4), esgroup.Wishart(mean=np.eye(3)), esgroup.Wishart(mean=np.eye(2), structure="diagonal")):
        with pytest.raises(ValueError, match="must be of the same search, but"):
            esgroup.minimize(lambda w: 0.0, other, max_evals=20, checkpoint=path, resume=True)
