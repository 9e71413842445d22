"""Where searches begin: points, distributions, other searches; with which structure, and in how much memory."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

from esgroup import Gaussian, Real, Searcher, Space
from esgroup.groups import Diagonal, Frame, Full, Heisenberg, Triangular
from esgroup.search import arguments
from tests.groups.laws import close
from tests.search.support import STRUCTURES, dense_root, generation, run, same, searcher, sphere, valley


def covariance(search: Searcher) -> np.ndarray:
    """The whole covariance matrix, of the coordinates that are searched."""
    root = dense_root(search)
    return root @ root.T


SPD = np.array([[4.0, 1.0, -0.5], [1.0, 2.0, 0.3], [-0.5, 0.3, 1.0]])

# ---- sigma0 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x0", [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.int8), np.float32([1, 2]), range(1, 3)])
def test_x0_may_be_any_sequence_of_numbers(x0: Any) -> None:
    search = Searcher(x0, 0.5)
    assert search.mean.tolist() == [1.0, 2.0] and search.mean.dtype == np.float64


@pytest.mark.parametrize("sigma0", [0.5, np.float32(0.5), np.array(0.5), [0.5] * 3, np.full(3, 0.5), (0.5,) * 3])
def test_sigma0_may_be_a_number_or_one_for_each_coordinate(sigma0: Any) -> None:
    assert same(searcher(sigma0=sigma0), searcher())


def test_sigma0_for_each_coordinate_is_the_scale_of_each() -> None:
    search = searcher(sigma0=[0.1, 1.0, 10.0])
    assert np.allclose(search.stds, [0.1, 1.0, 10.0]) and search.sigma == pytest.approx(1.0)


def test_scales_of_coordinates_make_no_difference_but_the_scale() -> None:
    """With sigma0 to match, x = c (.) y makes the same search, point by point."""
    c = np.array([1e-3, 1.0, 1e4])
    search, scaled = Searcher([1.0, 2, 3], 0.5, rng=1), Searcher([1.0, 2, 3] * c, 0.5 * c, rng=1)
    for _ in range(30):
        generation(search, valley)
        generation(scaled, lambda x: valley(x / c))
    assert np.allclose(scaled.mean, c * search.mean, rtol=1e-6) and np.allclose(scaled.stds, c * search.stds, rtol=1e-6)


@pytest.mark.parametrize(
    ("x0", "options", "stds"),
    [
        ([1.0, -4.0, 2.0], {}, [1.2, 1.2, 1.2]),  # 0.3 max|x0|
        ([0.0, 0.0], {}, [1.0, 1.0]),
        ([5.0, 5.0], {"bounds": (0, 10)}, [2.5, 2.5]),  # a quarter of the range
        ([5.0, 10.0], {"bounds": [(0, 10), (None, None)]}, [2.5, 3.0]),
        ([5.0, 10.0], {"bounds": [(0, 10), (0, None)]}, [2.5, 3.0]),
        ([0.0, 1.0], {"integer": [1]}, [0.3, 0.5]),
    ],
)
def test_the_default_of_sigma0_comes_from_the_bounds_or_from_x0(x0: Any, options: Any, stds: Any) -> None:
    assert np.allclose(Searcher(x0, **options).stds, stds, rtol=0.02)


# ---- cov0 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["full", "triangular", "triangular:upper"])
@pytest.mark.parametrize("decoding", [True, False])
def test_cov0_is_the_covariance_of_the_first_points(structure: str, decoding: bool) -> None:
    search = searcher(sigma0=None, cov0=SPD, structure=structure, decoding=decoding)
    assert np.allclose(covariance(search), SPD, rtol=1e-10)
    X = search.ask(40_000)
    assert np.allclose(np.cov(X.T), SPD, atol=0.15)


def test_cov0_is_multiplied_by_sigma0_squared() -> None:
    assert np.allclose(covariance(searcher(sigma0=0.1, cov0=SPD)), 0.01 * SPD, rtol=1e-10)
    c = np.array([1.0, 2.0, 3.0])
    assert np.allclose(covariance(searcher(sigma0=c, cov0=SPD)), np.outer(c, c) * SPD, rtol=1e-10)


def test_cov0_of_fixed_coordinates_is_left_out() -> None:
    search = searcher(sigma0=None, cov0=SPD, fixed=[1])
    assert np.allclose(covariance(search), SPD[np.ix_([0, 2], [0, 2])]) and search.stds[1] == 0.0


def test_a_structure_takes_of_cov0_what_it_can_hold() -> None:
    search = searcher(sigma0=None, cov0=SPD, structure="diagonal")
    assert np.allclose(search.stds, np.sqrt(np.diag(SPD)))


def test_a_tiny_covariance_is_as_good_as_any() -> None:
    assert np.allclose(covariance(Searcher(np.zeros(3), cov0=1e-180 * SPD, rng=1)) * 1e180, SPD)


def test_a_good_covariance_helps() -> None:
    scales = 10.0 ** np.arange(6)

    def elli(x: np.ndarray) -> float:
        return float(scales @ x**2)

    x0, options = 1 / np.sqrt(scales), {"rng": 1, "target": 1e-8, "structure": "full", "decoding": False}
    blind, seeing = Searcher(x0, 0.5, **options), Searcher(x0, 0.5, cov0=np.diag(1 / scales), **options)
    assert run(seeing, elli).nfev < 0.6 * run(blind, elli).nfev


# ---- distributions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("group", [Full(3), Triangular(3), Diagonal(3)])
def test_a_gaussian_is_where_the_search_begins(form: Any, group: Any) -> None:
    cov = np.diag([1.0, 2.0, 4.0]) if isinstance(group, Diagonal) else SPD
    start = Gaussian(group, mean=[1.0, 2.0, 3.0], covariance=cov, form=form)
    search = Searcher(start, rng=1)
    assert np.allclose(covariance(search), cov) and search.mean.tolist() == [1, 2, 3]
    assert type(search.structure).__name__ in (type(group).__name__, "Conjugate", "Full")
    assert np.allclose(search.ask(20_000).std(axis=0), np.sqrt(np.diag(cov)), rtol=0.05)
    assert "was chosen" not in search.result.message


def test_a_gaussian_can_be_rescaled_and_given_another_structure() -> None:
    start = Gaussian("full", mean=[1.0, 2.0, 3.0], covariance=SPD)
    assert np.allclose(Searcher(start, [0.1, 0.2, 0.3]).stds, [0.1, 0.2, 0.3])
    search = Searcher(start, structure="diagonal")
    assert search.structure == Diagonal(3) and np.allclose(search.stds, np.sqrt(np.diag(SPD)))
    triangular = Searcher(start, structure="triangular")
    assert np.allclose(covariance(triangular), SPD)


def test_a_gaussian_keeps_its_own_numbers() -> None:
    start = Gaussian("full", mean=np.array([1.0, 2.0, 3.0]), covariance=SPD.copy())
    before = start.state()
    run(Searcher(start, rng=1), generations=20)
    assert all(np.array_equal(a, b) for a, b in zip(start.state(), before, strict=True))


def test_a_second_covariance_is_refused_with_a_distribution() -> None:
    start = Gaussian("full", mean=[1.0, 2.0, 3.0], sigma0=0.5)
    with pytest.raises(ValueError, match=r"cov0 .*distribution"):
        Searcher(start, cov0=np.eye(3))


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("structure", ["full", "triangular", "diagonal"])
def test_where_variables_are_fixed_a_gaussian_starts_at_its_marginal(structure: str, form: Any) -> None:
    start = Gaussian(structure, mean=[1.0, 2.0, 3.0], covariance=SPD, form=form)
    known = start.dense_covariance(start.state())
    for fixed, value in (([1], 2.0), ({1: 9.0}, 9.0)):
        search = Searcher(start, fixed=fixed, rng=1)
        state, vectors = search.state, search.strategy.inner  # type: ignore[attr-defined]
        root = state.sigma * state.scale[:, None] * vectors.group.dense(state.root)
        close(root @ root.T, known[np.ix_([0, 2], [0, 2])], 1e-9)
        close(search.mean, [1.0, value, 3.0])
        assert (search.ask()[:, 1] == value).all()
        assert str(search.structure).lower().startswith(structure)
    twice = Searcher(start, 0.5, fixed=[1]).stds
    close(twice, [0.5, 0.0, 0.5])


def test_a_gaussian_out_of_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x0\[2\] .*0.0.*2.0.* 3.0"):
        Searcher(Gaussian("full", mean=[1.0, 2.0, 3.0], sigma0=0.5), bounds=(0, 2))


# ---- other searches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_a_search_begins_where_another_is(structure: Any) -> None:
    other = run(searcher(6, structure=structure), valley, 25)
    search = Searcher(other, rng=2)
    assert search.structure == other.structure and np.allclose(search.mean, other.mean)
    assert np.allclose(covariance(search), covariance(other), rtol=1e-9)
    assert (search.nfev, search.nit, search.best_x) == (0, 0, None)
    kept = other.state.root.copy()
    run(search, valley, 10)
    assert np.array_equal(other.state.root, kept)


def test_a_warm_start_saves_evaluations() -> None:
    def elli(x: np.ndarray) -> float:
        return float(10.0 ** np.arange(0, 6) @ x**2)

    other = run(Searcher(np.ones(6), 0.5, rng=1, structure="full", decoding=False, max_evals=1500), elli)
    cold = run(Searcher(np.ones(6), 0.5, rng=1, structure="full", decoding=False, target=1e-8), elli)
    warm = run(Searcher(other, rng=2, decoding=False, target=1e-8), elli)
    assert warm.nfev < 0.7 * cold.nfev


def test_a_warm_start_can_be_rescaled_and_bounded() -> None:
    other = run(searcher(), valley, 10)
    assert np.allclose(Searcher(other, 0.7).stds, 0.7)
    search = Searcher(other, bounds=(2, 5), rng=1)
    assert (search.mean >= 2).all() and (search.ask(500) >= 2).all() and (search.ask(500) <= 5).all()
    unbounded = Searcher(Searcher([1.0, 2, 3], 0.5, bounds=(0, 5)), bounds=(None, None), rng=1)
    assert (unbounded.ask(2000) < 0).any()


def test_a_warm_start_stays_in_the_space_of_the_other() -> None:
    other = searcher(bounds=(0, 4), integer=[0], fixed={1: 2.0})
    X = Searcher(other, rng=1).ask(300)
    assert (X >= 0).all() and (X <= 4).all() and (X[:, 0] % 1 == 0).all() and (X[:, 1] == 2).all()
    with pytest.raises(ValueError, match=r"fixed, integer and cov0 .*start"):
        Searcher(other, fixed=[1])


def test_a_warm_start_with_another_structure_takes_what_it_can_hold() -> None:
    other = run(searcher(6), valley, 40)
    diagonal = Searcher(other, structure="diagonal")
    assert diagonal.structure == Diagonal(6) and np.allclose(diagonal.stds, other.stds)
    assert np.allclose(covariance(Searcher(other, structure="triangular")), covariance(other), rtol=1e-8)


# ---- structures ---------------------------------------------------------------------------------------------------


def test_auto_is_full_up_to_a_dimension_and_a_frame_beyond() -> None:
    limit = arguments.FRAME_FROM
    assert searcher().structure == Full(3)
    assert Searcher(np.ones(limit - 1), 1.0).structure == Full(limit - 1)
    assert Searcher(np.ones(limit), 1.0).structure == Frame(limit)
    assert Searcher(np.ones(1_000), 1.0).structure == Frame(1_000)


@pytest.mark.parametrize(
    "options", [{"noise": "adapt"}, {"algorithm": "paper"}, {"model": "quadratic"}]
)
def test_auto_is_no_frame_beside_some_options_that_a_frame_has_as_well(options: dict[str, Any]) -> None:
    assert Searcher(np.ones(100), 1.0, **options).structure == Full(100)
    if "model" not in options:
        assert Searcher(np.ones(1_001), 1.0, **options).structure == Diagonal(1_001)
    assert Searcher(np.ones(100), 1.0, structure="frame:k=3", **options).structure == Frame(100, 3)


def test_a_covariance_that_is_given_is_kept_whole() -> None:
    assert Searcher(np.ones(90), cov0=np.eye(90)).structure == Full(90)


def test_named_parameters_have_a_frame_if_it_is_asked_for() -> None:
    space = Space({"a": Real(-3, 3, shape=90)})
    assert Searcher(space).structure == Full(90)
    assert Searcher(space, structure="frame").structure == Frame(90)
    search = Searcher(space, structure="frame:k=3", rng=1)
    for _ in range(50):
        search.tell([float((point["a"] ** 2).sum()) for point in search.ask()])
    assert search.structure == Frame(90, 3) and search.best_f < 150.0


def test_fixed_coordinates_do_not_count_for_the_structure() -> None:
    search = Searcher(np.ones(1000), 1.0, fixed=range(900))
    assert search.structure == Frame(100) and search.popsize == 4 + int(3 * math.log(100))
    assert Searcher(np.ones(4), 1.0, fixed=[0], structure=Diagonal(3)).structure == Diagonal(3)


def test_a_structure_may_be_a_group_or_its_spelling() -> None:
    assert same(searcher(6, structure="heisenberg:k1=2,k2=1,upper"), searcher(6, structure=Heisenberg(6, 2, 1, False)))


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 100])
def test_the_default_population_is_that_of_cma_es(dim: int) -> None:
    assert Searcher(np.ones(dim), 1.0).popsize == 4 + math.floor(3 * math.log(dim))


# ---- memory -------------------------------------------------------------------------------------------------------


def test_a_structure_too_large_for_the_memory_is_refused_by_name() -> None:
    text = r"Full .*[\d,]+\.\d GiB .*1,000,000 .*50% .*[\d,.]+ GiB.*'frame' or 'diagonal'"
    with pytest.raises(ValueError, match=text):
        Searcher(np.zeros(1_000_000), 1.0, structure="full")


@pytest.mark.parametrize(("options", "copies"), [({"decoding": False}, 2), ({}, 3), ({"noise": "adapt"}, 5)])
def test_memory_is_counted_with_what_the_options_need(
    options: dict[str, Any], copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = copies * 8 * 50**2
    monkeypatch.setattr(arguments, "machine_memory", lambda: 2.0 * needed)
    assert Searcher(np.ones(50), 1.0, **options).structure == Full(50)
    monkeypatch.setattr(arguments, "machine_memory", lambda: 2.0 * needed - 1)
    with pytest.raises(ValueError, match=r"structure Full .*'frame' or 'diagonal'"):
        Searcher(np.ones(50), 1.0, **options)


def test_many_coordinates_take_little_memory() -> None:
    generation(Searcher(np.ones(600), 1.0))  # loads the kernels
    tracemalloc.start()
    search = Searcher(np.ones(10_000), 1.0, rng=1)
    generation(search)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6 and search.nit == 1


# ---- spaces -------------------------------------------------------------------------------------------------------

EACH = [(0, 5), (0, 5), (0, 5)]


@pytest.mark.parametrize("bounds", [(0, 5), EACH, np.array(EACH), Bounds(0, 5), Bounds([0, 0, 0], [5, 5, 5])])
def test_all_spellings_of_bounds_mean_the_same(bounds: Any) -> None:
    assert same(searcher(bounds=bounds), searcher(bounds=[[0.0, 5.0]] * 3))


@pytest.mark.parametrize("bounds", [None, (None, None), (-math.inf, math.inf), [(None, math.inf)] * 3, Bounds()])
def test_infinite_bounds_are_none(bounds: Any) -> None:
    search, reference = searcher(bounds=bounds), searcher()
    run(search, generations=20), run(reference, generations=20)
    assert np.array_equal(search.ask(), reference.ask())


@pytest.mark.parametrize("fixed", [[1], (1,), [-2], [False, True, False], np.array([1]), {1: 2.0}, {-2: 2}])
def test_fixed_coordinates_stay_where_they_are(fixed: Any) -> None:
    search = searcher(fixed=fixed)
    run(search, sphere, 30)
    X = search.ask(50)
    assert (X[:, 1] == 2.0).all() and search.mean[1] == 2.0 and search.stds[1] == 0.0
    assert search.dim == 3 and search.structure == Full(2)


def test_a_fixed_value_replaces_that_of_x0() -> None:
    assert (searcher(fixed={0: -7.5}).ask(20)[:, 0] == -7.5).all()


def test_coordinates_with_equal_bounds_are_fixed() -> None:
    search = searcher(bounds=[(0, 5), (2, 2), (0, 5)])
    assert (search.ask(20)[:, 1] == 2.0).all() and search.structure == Full(2)


def test_a_search_without_its_fixed_coordinates_is_the_same_search() -> None:
    search, reference = searcher(4, fixed=[2]), Searcher([1.0, 2.0, 1.0], 0.5, rng=1)
    for _ in range(20):
        generation(search, lambda x: valley(np.delete(x, 2)))
        generation(reference, valley)
    assert np.array_equal(np.delete(search.mean, 2), reference.mean)
