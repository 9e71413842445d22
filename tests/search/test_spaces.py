"""Searches over other spaces have the same interface: ask, tell, stop, result, save, load, minimize."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.distributions.families import Beta, Categorical, Gamma, Normal, Product
from esgroup.files.states import flattened
from esgroup.groups import Diagonal, Full, Kronecker


def nearness(w: np.ndarray) -> np.ndarray:
    return ((w @ np.diag([1.0, 2.0, 4.0]) - np.eye(3)) ** 2).sum(axis=(1, 2))


def squares(x: np.ndarray) -> np.ndarray:
    return ((x - 0.3) ** 2).reshape(len(x), -1).sum(axis=1)


def waiting(x: np.ndarray) -> np.ndarray:
    return np.log(x[:, 0] / 0.3) ** 2 + (x[:, 1] - 0.7) ** 2


def himmelblau(x: np.ndarray) -> np.ndarray:
    return (x[:, 0] ** 2 + x[:, 1] - 11) ** 2 + (x[:, 0] + x[:, 1] ** 2 - 7) ** 2


def mismatches(x: np.ndarray) -> np.ndarray:
    return np.abs(x - [2, 1, 0]) @ [1.0, 3.1, 9.7]


def gaussian(structure: str, mean: float) -> esgroup.Gaussian:
    return esgroup.Gaussian(structure, np.full(2, mean), 1.0)


SPACES: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "wishart": (esgroup.Wishart(mean=np.eye(3)), nearness, (3, 3)),
    "wishart, diagonal": (esgroup.Wishart(mean=np.eye(3), structure="diagonal"), nearness, (3, 3)),
    "matrix": (esgroup.MatrixGaussian(mean=np.ones((3, 2)), sigma0=0.5, rows="diagonal"), squares, (3, 2)),
    "mixture": (esgroup.Mixture((gaussian("full", 0.0), gaussian("diagonal", 1.0))), himmelblau, (2,)),
    "product": (Product((Gamma(2.0, 1.0), Beta(2.0, 3.0))), waiting, (2,)),
    "scalar": (Gamma(2.0, 1.0), squares, (1,)),
    "categorical": (Categorical.uniform(3, 4, 2), mismatches, (3,)),
}


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> tuple[Any, Any, tuple[int, ...]]:
    return SPACES[request.param]


def told(search: Searcher, fun: Any, generations: int) -> Searcher:
    for _ in range(generations):
        search.tell(fun(search.ask()))
    return search


def same(first: Any, second: Any) -> bool:
    arrays, others = flattened("state", first.state), flattened("state", second.state)
    return all(np.array_equal(array, others[name]) for name, array in arrays.items())


def test_points_have_the_shape_of_the_space(space: Any) -> None:
    distribution, _, shape = space
    search = Searcher(distribution, rng=1)
    assert type(search) is Searcher
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
    first, third = (flattened("state", searches[i].state) for i in (0, 2))
    for name, array in first.items():
        np.testing.assert_allclose(array, third[name], rtol=1e-10, atol=1e-12)


def test_minimize_takes_a_distribution_and_resumes(space: Any, tmp_path: Path) -> None:
    distribution, fun, shape = space

    def one(x: np.ndarray) -> float:
        assert x.shape == shape
        return float(fun(x[None])[0])

    whole = esgroup.minimize(one, distribution, max_evals=300, rng=3)
    path, generations = tmp_path / "run.npz", 8 * Searcher(distribution).popsize  # a budget that ends with one
    esgroup.minimize(one, distribution, max_evals=generations, rng=3, checkpoint=path)
    resumed = esgroup.minimize(
        one, distribution, max_evals=300, rng=3, checkpoint=path, resume=True, history=tmp_path / "run.jsonl"
    )
    assert (resumed.fun, resumed.nfev) == (whole.fun, whole.nfev) and np.array_equal(resumed.x, whole.x)


def test_minimize_resumes_after_a_budget_that_ended_within_a_generation(space: Any, tmp_path: Path) -> None:
    distribution, fun, _ = space
    path, popsize = tmp_path / "run.npz", Searcher(distribution).popsize
    seen: list[float] = []

    def one(x: np.ndarray) -> float:
        seen.append(float(fun(x[None])[0]))
        return seen[-1]

    first = esgroup.minimize(one, distribution, max_evals=5 * popsize + 2, rng=3, checkpoint=path)
    assert (first.nfev, first.nit, len(seen)) == (5 * popsize + 2, 5, 5 * popsize + 2)
    resumed = esgroup.minimize(one, distribution, max_evals=20 * popsize, rng=3, checkpoint=path, resume=True)
    assert resumed.nfev == len(seen) == 20 * popsize and resumed.fun == min(seen)


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
    before = search.state
    search.ask()
    search.tell([np.nan] * search.popsize)
    assert search.state is before  # nothing was learned


# ---- what results have besides -----------------------------------------------------------------------------------


def test_the_optima_of_a_mixture_have_the_values_of_their_points() -> None:
    result = esgroup.minimize(
        himmelblau, esgroup.Mixture.spread(4, bounds=[(-6, 6)] * 2, rng=1), bounds=(-6, 6), vectorized=True, rng=1
    )
    assert list(result.stop) == ["modes"] and len(result.modes) == 4
    points = np.array([mode.point for mode in result.modes])
    values = [mode.value for mode in result.modes]
    assert np.array_equal(values, himmelblau(points)) and values == sorted(values)
    assert values[0] == result.fun and np.array_equal(points[0], result.x) and values[-1] < 1e-8
    assert sum(mode.weight for mode in result.modes) == pytest.approx(1.0)


def test_bounds_of_a_mixture_hold_for_every_point() -> None:
    search = Searcher(esgroup.Mixture((gaussian("full", 0.9),)), bounds=(0, 1), rng=1)
    for _ in range(30):
        points = search.ask()
        assert (points >= 0).all() and (points <= 1).all()
        search.tell(-points.sum(axis=1))
    with pytest.raises(ValueError, match=r"X\[0, 1\] .*0.0.*1.0.* 2.0"):
        search.inject([0.5, 2.0])


def test_the_result_of_minimize_has_what_the_searcher_says() -> None:
    result = esgroup.minimize(nearness, esgroup.Wishart(mean=np.eye(3)), vectorized=True, max_evals=600, rng=1)
    assert result.dof > 120 and result.structure == "Wishart, full"
    with_gamma = esgroup.minimize(squares, Gamma(2.0, 1.0), vectorized=True, max_evals=200, rng=1)
    assert isinstance(with_gamma.distribution, Gamma)


@pytest.mark.parametrize("start", [SPACES["matrix"][0], Normal(0.0, 1.0)], ids=["matrix", "normal"])
def test_a_search_leaves_a_plateau_by_wider_steps(start: Any) -> None:
    search = Searcher(start, rng=1)
    first = search.sigma
    for _ in range(15):
        search.tell([1.0] * len(search.ask()))
    assert search.sigma > 10 * first


def test_a_gamma_on_a_plateau_gets_as_wide_as_it_may() -> None:
    search = Searcher(Gamma(200.0, 100.0), rng=1)
    for _ in range(15):
        search.tell([1.0] * len(search.ask()))
    assert search.result.distribution.shape < 2


def test_a_wishart_on_a_plateau_goes_back_to_its_floor() -> None:
    search = Searcher(esgroup.Wishart(mean=np.eye(3), dof=1e6), rng=1)
    for _ in range(30):
        search.tell([1.0] * len(search.ask()))
    assert search.result.dof == 120


@pytest.mark.parametrize("name", ["wishart", "matrix", "mixture", "product", "scalar"])
def test_a_point_from_far_away_does_no_harm(name: str) -> None:
    distribution, fun, shape = SPACES[name]
    for size in (1e6, 1e200):
        search = Searcher(distribution, rng=1)
        far = np.eye(3) * size if name == "wishart" else np.full(shape, size)
        if name == "product":
            far = np.array([size, 0.5])
        search.tell([far], [-1.0])
        told(search, fun, 40)
        assert np.isfinite(search.mean).all() and np.isfinite(search.stds).all() and search.nit >= 40


def test_equal_points_are_told_one_by_one_as_in_one_call() -> None:
    searches = [Searcher(esgroup.Mixture.spread(3, bounds=[(-6, 6)] * 2, rng=1), bounds=(-6, 6), rng=1) for _ in "ab"]
    for _ in range(25):
        first, second = (search.ask() for search in searches)
        assert np.array_equal(first, second)
        searches[0].tell(himmelblau(first))
        for x in second:
            searches[1].tell(x[None], himmelblau(x[None]))
    first, second = (flattened("state", search.state) for search in searches)
    for name, array in first.items():
        if not name.startswith("state/best"):  # these are noted when values come, before or after a move
            np.testing.assert_allclose(array, second[name], rtol=1e-9, atol=1e-12)


def test_the_usual_end_of_a_search_is_a_success() -> None:
    found = esgroup.minimize(himmelblau, [0.0, 0.0], basins=4, bounds=(-6, 6), vectorized=True, rng=1)
    assert found.success and found.status == 0 and list(found.stop) == ["modes"]
    wishart = esgroup.minimize(nearness, np.eye(3), space="spd", vectorized=True, max_evals=20_000, rng=1)
    assert wishart.success and wishart.fun < 1e-10


def test_a_dof_that_is_too_small_is_raised_and_said_so() -> None:
    search = Searcher(esgroup.Wishart(mean=np.eye(3), dof=5.0), rng=1)
    assert "dof was raised from 5 to 120, the minimum" in search.result.message


@pytest.mark.parametrize("structure", ["full", "diagonal", "block_triangular:k=2", "heisenberg", "triangular"])
def test_a_wishart_can_be_asked_for_one_point(structure: str) -> None:
    search = Searcher(esgroup.Wishart(mean=np.eye(6), structure=structure), rng=1)
    assert np.linalg.eigvalsh(search.ask(1)[0]).min() > 0


# ---- spaces by name ----------------------------------------------------------------------------------------------


def test_a_positive_definite_start_is_searched_by_a_wishart() -> None:
    named = esgroup.minimize(nearness, np.eye(3), space="spd", vectorized=True, max_evals=300, rng=4)
    given = esgroup.minimize(nearness, esgroup.Wishart(mean=np.eye(3)), vectorized=True, max_evals=300, rng=4)
    assert np.array_equal(named.x, given.x) and named.fun == given.fun
    narrow = esgroup.minimize(nearness, np.eye(3), 1e-3, space="spd", vectorized=True, max_iters=1, rng=4)
    assert 1e6 < narrow.dof < 1e7  # about 2 / sigma0^2
    diagonal = esgroup.minimize(nearness, np.eye(3), space="spd", structure="diagonal", vectorized=True, max_iters=1)
    assert diagonal.structure == "Wishart, diagonal"


def test_a_matrix_is_searched_by_a_matrix_gaussian() -> None:
    options: dict[str, Any] = {"vectorized": True, "max_evals": 300, "rng": 4}
    start = np.full((3, 2), 2.0)
    named = esgroup.minimize(squares, start, space="matrix", structure="diagonal", **options)
    given = esgroup.minimize(squares, esgroup.MatrixGaussian(start, 0.6, "diagonal", "diagonal"), **options)
    assert np.array_equal(named.x, given.x)
    both = Kronecker(Diagonal(3), Full(2))
    composed = esgroup.minimize(squares, start, 0.5, space="matrix", structure=both, **options)
    assert composed.structure == "Kronecker(first=Diagonal(dim=3), second=Full(dim=2))"


def test_several_basins_are_searched_by_a_mixture_over_the_bounds_or_around_the_start() -> None:
    options: dict[str, Any] = {"vectorized": True, "max_evals": 6000, "rng": 2}
    for found in (
        esgroup.minimize(himmelblau, [0.0, 0.0], basins=4, bounds=(-6, 6), **options),
        esgroup.minimize(himmelblau, [0.0, 0.0], 3.0, basins=4, **options),
    ):
        assert len(found.modes) == 4 and found.modes[3].value < 1e-6


def test_the_plain_published_update_searches_matrices_too() -> None:
    start = esgroup.MatrixGaussian(mean=np.ones((3, 2)), sigma0=0.5)
    states = [told(Searcher(start, rng=1, algorithm=name), squares, 3).state for name in ("default", "paper")]
    assert not np.array_equal(states[0].root, states[1].root)


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
    options: dict[str, Any] = {"bounds": (0, 1), "fixed": [0], "integer": True}
    for name, value in options.items():
        with pytest.raises(ValueError, match=f"{name} .*Wishart"):
            Searcher(start, **{name: value})
    with pytest.raises(TypeError, match="no argument 'popsiz': did you mean popsize"):
        Searcher(start, popsiz=4)


@pytest.mark.parametrize(("x0", "options", "message"), [
    ([1.0, 2.0], {"space": "spd"}, r"x0 .*matrix.*space='spd'.* array"),
    ([[1, 0], [0]], {"space": "spd"}, r"x0 .*real numbers.*rows of unequal length"),
    (np.zeros((0, 0)), {"space": "spd"}, r"x0 .*matrix.*space='spd'.* array"),
    (np.eye(2), {"space": "spd", "sigma0": 1e-9}, r"sigma0 .*1e-6.*positive-definite.* 1e-09"),
    ([], {"basins": 2}, r"x0 .*at least one variable"),
    ([9.0], {"basins": 2, "bounds": (0, 1)}, r"x0 .*bounds.*\[9.0\]"),
    (np.ones((2, 3)), {"space": "spd"}, r"x0 .*square.*\(2, 3\)"),
    ([[1.0, 0.5], [0.0, 1.0]], {"space": "spd"}, r"x0 .*symmetric.* 0.5"),
    ([[1.0, 2.0], [2.0, 1.0]], {"space": "spd"}, r"x0 .*positive definite.* -1"),
    (np.eye(2), {"space": "spd", "sigma0": -1.0}, r"sigma0 .*positive finite.* -1.0"),
    (np.eye(2), {"space": "cone"}, r"space .*'vector', 'spd' or 'matrix'.* 'cone'"),
    ([1.0, 2.0], {"space": "matrix"}, r"x0 .*matrix.*space='matrix'"),
    (np.eye(2), {"space": "matrix", "basins": 2}, r"basins .*vectors.*space='matrix'"),
    ([1.0, 2.0], {"basins": 0}, r"basins .*1.* 0"),
    ([1.0], {"basins": 2, "bounds": (0, 1), "sigma0": 1.0}, r"sigma0 .*basins"),
    ([1.0], {"basins": 2, "bounds": (0, None)}, r"bounds .*finite"),
])  # fmt: skip
def test_a_start_that_does_not_fit_the_space_is_refused(x0: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        esgroup.minimize(lambda w: 0.0, x0, **options)


def test_errors_name_the_arguments_of_the_caller() -> None:
    for start, _, _ in SPACES.values():
        with pytest.raises(ValueError, match=r"popsize .*integer"):
            Searcher(start, popsize=1)
    with pytest.raises(ValueError, match=r"start .*vectors.* Wishart"):
        Searcher(Searcher(esgroup.Wishart(mean=np.eye(2))))


def test_a_badly_conditioned_mean_is_searched() -> None:
    scales = np.geomspace(1e-6, 1e6, 4)
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    mean = (turned * scales) @ turned.T
    mean = (mean + mean.T) / 2
    target = (turned * (3 * scales)) @ turned.T
    inverse = np.linalg.inv(np.linalg.cholesky((target + target.T) / 2))

    def distance(w: np.ndarray) -> np.ndarray:
        white = inverse @ w @ inverse.T
        return np.trace(white, axis1=1, axis2=2) - np.linalg.slogdet(white)[1] - 4  # Stein's loss

    result = esgroup.minimize(distance, mean, space="spd", vectorized=True, max_evals=4000, rng=1)
    assert result.fun < 1e-6 < 1 < distance(mean[None])[0]
    assert np.linalg.eigvalsh(result.x).min() > 0


def test_a_checkpoint_of_another_space_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    esgroup.minimize(lambda w: float(w[0, 0]), esgroup.Wishart(mean=np.eye(2)), max_evals=20, rng=1, checkpoint=path)
    for other in (np.ones(4), esgroup.Wishart(mean=np.eye(3)), esgroup.Wishart(mean=np.eye(2), structure="diagonal")):
        with pytest.raises(ValueError, match="same search"):
            esgroup.minimize(lambda w: 0.0, other, max_evals=20, checkpoint=path, resume=True)
