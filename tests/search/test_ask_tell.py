"""Points go out and values come back in every order that the interface allows."""

import math
import time
from collections.abc import Callable

import numpy as np
import pytest

from esgroup import Searcher
from tests.search.support import (
    OPTIONS,
    STRUCTURES,
    dense_root,
    everything,
    generation,
    local_coordinates,
    run,
    same,
    searcher,
    sphere,
    unchanged,
    valley,
)

# ---- ask ----------------------------------------------------------------------------------------------------------


def test_ask_gives_a_generation_of_read_only_points() -> None:
    search = searcher()
    X = search.ask()
    assert X.shape == (search.popsize, 3) == (7, 3) and X.dtype == np.float64
    assert X.flags.c_contiguous and not X.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        X[0, 0] = 1.0


@pytest.mark.parametrize("n", [1, 2, 7, 30, np.int32(4)])
def test_any_number_of_points_can_be_asked(n: int) -> None:
    assert searcher().ask(n).shape == (n, 3)


def test_asked_points_are_never_written_again() -> None:
    search = searcher()
    asked = [search.ask() for _ in range(3)]
    copies = [X.copy() for X in asked]
    for _ in range(5):
        generation(search)
    assert all(np.array_equal(X, copy) for X, copy in zip(asked, copies, strict=True))


def test_asking_moves_nothing_but_the_generator() -> None:
    search = searcher()
    mean, stds = search.mean, search.stds
    first, second = search.ask(), search.ask()
    assert not np.array_equal(first, second)
    assert np.array_equal(search.mean, mean) and np.array_equal(search.stds, stds)
    assert (search.nfev, search.nit) == (0, 0)


def test_the_first_points_have_the_mean_and_the_standard_deviations_of_the_start() -> None:
    search = Searcher([1.0, -2.0, 5.0], [0.1, 1.0, 10.0], rng=1)
    X = search.ask(20_000)
    assert np.allclose(X.mean(axis=0), [1, -2, 5], atol=5 * np.array([0.1, 1, 10]) / math.sqrt(20_000))
    assert np.allclose(X.std(axis=0), [0.1, 1, 10], rtol=0.05)


# ---- tell in three forms ------------------------------------------------------------------------------------------


def as_fitness(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell(f)


def as_points(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell(X, f)


def as_pairs(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell(list(zip(X, f, strict=True)))


def as_tuple_of_list_pairs(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell(tuple([x.tolist(), value] for x, value in zip(X, f, strict=True)))


def as_pairs_with_arrays(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell([(x, np.array([value])) for x, value in zip(X, f, strict=True)])


def as_copies(search: Searcher, X: np.ndarray, f: list[float]) -> None:
    search.tell(X.tolist(), np.array(f, dtype=object))


@pytest.mark.parametrize("tell", [as_points, as_pairs, as_tuple_of_list_pairs, as_pairs_with_arrays, as_copies])
def test_every_form_of_tell_means_the_same(tell: Callable[..., None]) -> None:
    search, reference = searcher(), searcher()
    for _ in range(20):
        for s, form in ((search, tell), (reference, as_fitness)):
            X = s.ask()
            form(s, X, [valley(x) for x in X])
    assert same(search, reference)


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        tuple,
        lambda f: np.array(f)[:, None],
        lambda f: np.array(f)[:, None, None],
        lambda f: [np.array([v]) for v in f],
        lambda f: [np.array([[v]]) for v in f],
        lambda f: [np.array(v) for v in f],
        lambda f: [np.array([v]) if i % 2 else v for i, v in enumerate(f)],
        lambda f: [[v] for v in f],
        lambda f: np.repeat(f, 2)[::2],
        lambda f: np.array(f, dtype=">f8"),
        lambda f: np.array(f, dtype=np.longdouble),
        lambda f: np.ma.array(f),
    ],
)
def test_values_may_come_as_any_kind_of_list_or_array(form: Callable[[list[float]], object]) -> None:
    search, reference = searcher(), searcher()
    for _ in range(5):
        search.tell(form([valley(x) for x in search.ask()]))
        generation(reference, valley)
    assert same(search, reference)


def test_integers_of_any_size_and_booleans_are_numbers() -> None:
    search = searcher()
    search.ask()
    search.tell([2**70, 3, True, False, np.int8(5), np.uint64(2**63), 10**300])
    assert search.best_f == 0.0 and search.nfev == 7


def test_a_number_will_do_for_a_single_point() -> None:
    search = searcher()
    search.ask(1)
    search.tell(3.0)
    search.tell([1.0, 2.0, 3.0], 2.0)
    search.tell(search.ask(1), np.array(1.0))
    assert (search.nfev, search.nit, search.best_f) == (3, 0, 1.0)


def test_what_is_told_is_never_modified() -> None:
    search = searcher()
    X, f = np.array(search.ask()), np.arange(7.0)
    copies = X.copy(), f.copy()
    search.tell(X[:3], f[:3])
    kept = everything(search)
    X[:], f[:] = 99.0, 99.0  # what is kept is a copy
    assert everything(search) == kept
    search.tell(*(part[3:] for part in copies))
    assert np.array_equal(search.best_x, copies[0][0]) and search.best_f == 0.0


# ---- part of a generation, any order ------------------------------------------------------------------------------


def test_a_generation_may_be_told_in_parts() -> None:
    whole, parts = searcher(), searcher()
    for _ in range(5):
        generation(whole, valley)
        X = parts.ask()
        f = [valley(x) for x in X]
        parts.tell(X[:2], f[:2])
        parts.tell([(X[2], f[2])])
        parts.tell(X[3:], f[3:])
    assert np.allclose(whole.mean, parts.mean, rtol=1e-10) and np.allclose(whole.stds, parts.stds, rtol=1e-10)
    assert (whole.nfev, whole.nit, whole.best_f) == (parts.nfev, parts.nit, parts.best_f)


def test_the_order_of_the_points_does_not_matter() -> None:
    whole, shuffled = searcher(), searcher()
    rng = np.random.default_rng(3)
    for _ in range(5):
        generation(whole, valley)
        X = shuffled.ask()[rng.permutation(7)]
        shuffled.tell(X, [valley(x) for x in X])
    assert np.allclose(whole.mean, shuffled.mean, rtol=1e-10) and np.allclose(whole.stds, shuffled.stds, rtol=1e-10)


def test_nothing_moves_before_a_generation_is_there() -> None:
    search = searcher()
    X, mean = search.ask(), search.mean
    for i in range(6):
        search.tell([(X[i], float(i))])
        assert (search.nfev, search.nit) == (i + 1, 0) and np.array_equal(search.mean, mean)
    search.tell([(X[6], 6.0)])
    assert (search.nfev, search.nit) == (7, 1) and not np.array_equal(search.mean, mean)


def test_values_of_several_asks_make_one_generation() -> None:
    search = searcher()
    small = [search.ask(3), search.ask(2)]
    search.tell([1.0, 2.0])
    search.tell(small[0], [3.0, 4.0, 5.0])
    assert (search.nfev, search.nit) == (5, 0)
    generation(search)
    assert (search.nfev, search.nit) == (12, 1)


def test_more_than_a_generation_is_one_large_generation() -> None:
    search = searcher()
    search.tell([sphere(x) for x in search.ask(40)])
    assert (search.nfev, search.nit) == (40, 1)


@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"decoding": False}], ids=str)
def test_a_very_large_generation_is_no_trouble(options: dict[str, object]) -> None:
    """The cost is linear in the number of values; if it were cubic, 3000 would take a minute."""
    search = searcher(**options)
    generation(search)
    X = search.ask(3000)
    begin = time.process_time()
    search.tell([valley(x) for x in X])
    assert search.nit == 2 and time.process_time() - begin < 3.0


def test_part_told_counts_with_the_rest() -> None:
    """Two values that were kept take part in the move: the mean moves toward the best of all points."""
    search = searcher()
    X = search.ask()
    search.tell(X[:2], [-1e9, -1e8])
    search.tell(X[2:], np.arange(5.0))
    toward = (X[0] - [1, 2, 3]) @ (search.mean - [1, 2, 3])
    assert toward > 0 and search.best_f == -1e9


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_late_points_have_the_local_coordinates_that_they_would_be_sampled_with(structure: object) -> None:
    search = searcher(6, structure=structure)
    for _ in range(12):
        generation(search, valley)
    X = search.ask()
    asked = search.ledger.asked[-1].drawn.local
    assert np.allclose(local_coordinates(search, X), asked, rtol=1e-8, atol=1e-10)
    recalled = [place.local for place in search.ledger.recognized(X)]
    assert np.array_equal(recalled, asked)


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_late_points_have_the_direction_that_they_have_now_and_are_no_longer_than_they_were_drawn(
    structure: object,
) -> None:
    search = searcher(6, structure=structure)
    for _ in range(12):
        generation(search, valley)
    late = search.ask()
    drawn = search.ledger.asked[-1].drawn.local.copy()
    for _ in range(2):
        generation(search, valley)
    search.tell(late[:5], [1.0] * 5)
    now = np.linalg.solve(dense_root(search), (late - search.state.mean).T).T[:5]
    then, lengths = np.linalg.norm(drawn[:5], axis=1), np.linalg.norm(now, axis=1)
    assert (lengths > then).any() and not np.allclose(now, drawn[:5], atol=1e-2)
    assert np.allclose(search.ledger.pool[0].local, now * np.minimum(1, then / lengths)[:, None], rtol=1e-8, atol=1e-10)


def test_points_never_asked_are_whitened_and_no_longer_than_a_long_sample() -> None:
    search = searcher()
    foreign = search.ask() + 0.0
    for _ in range(10):
        generation(search, valley)
    z = local_coordinates(search, foreign)
    root = dense_root(search)
    longest = math.sqrt(3) + 2 * 3 / (3 + 2)
    expected = np.linalg.solve(root, (foreign - search.state.mean).T).T
    lengths = np.linalg.norm(expected, axis=1)
    assert (lengths > longest).any()
    assert np.allclose(z, expected * np.minimum(1, longest / lengths)[:, None], rtol=1e-9)


def test_stale_points_count_and_can_be_the_best() -> None:
    search = searcher()
    stale = search.ask()
    generation(search)
    search.tell(stale[:3], [1.0, -5.0, 2.0])
    assert (search.nfev, search.nit, search.best_f) == (10, 1, -5.0)
    assert np.array_equal(search.best_x, stale[1])
    search.tell(stale[3:], [1.0, 2.0, 3.0, 4.0])
    assert (search.nfev, search.nit) == (14, 2)


def test_an_ask_that_is_overtaken_can_still_be_told_without_its_points() -> None:
    search = searcher()
    first = search.ask()
    search.ask()
    search.tell(first, np.arange(7.0))
    search.tell(np.arange(7.0))  # of the last ask, which is late now
    assert (search.nfev, search.nit) == (14, 2)


def test_points_never_asked_are_accepted_before_any_ask() -> None:
    search = searcher()
    X = np.random.default_rng(0).normal(size=(30, 3))
    search.tell(X, [sphere(x) for x in X])
    assert (search.nfev, search.nit) == (30, 1)
    assert np.array_equal(search.best_x, min(X, key=sphere))


def test_duplicated_points_are_accepted() -> None:
    search = searcher()
    X = search.ask()
    search.tell([X[0]] * 7, [1.0] * 7)
    search.tell(np.repeat(X[1:3], 5, axis=0), range(10))
    assert (search.nfev, search.nit) == (17, 2)
    generation(search)
    assert np.isfinite(search.mean).all() and (search.stds > 0).all()


def test_telling_no_points_changes_nothing() -> None:
    search = searcher()
    search.ask()
    with unchanged(search):
        search.tell(np.empty((0, 3)), [])


def test_a_search_of_single_evaluations_solves() -> None:
    """As with asynchronous workers: four points are always being evaluated."""
    search = searcher(target=1e-8)
    out = list(search.ask(4))
    while not search.stop():
        x = out.pop(0)
        search.tell([(x, sphere(x))])
        out.append(search.ask(1)[0])
    assert "target" in search.stop() and search.nfev < 1500


# ---- inject -------------------------------------------------------------------------------------------------------


def test_injected_points_are_in_the_next_ask_exactly() -> None:
    search = searcher()
    search.inject([[0.1, 0.2, 0.3], [1e6, 2.0, 3.0]])
    search.inject([7.0, 8.0, 9.0])
    X = search.ask()
    assert X.shape == (7, 3) and X[:3].tolist() == [[0.1, 0.2, 0.3], [1e6, 2, 3], [7, 8, 9]]
    assert not np.array_equal(search.ask()[:3], X[:3])


def test_more_injected_points_than_asked_wait_for_the_next_ask() -> None:
    search = searcher()
    P = np.random.default_rng(0).normal(size=(9, 3))
    search.inject(P)
    assert np.array_equal(search.ask(4), P[:4])
    assert np.array_equal(search.ask(4), P[4:8])
    assert np.array_equal(search.ask(4)[0], P[8])
    assert len(search.ledger.injected) == 0


@pytest.mark.parametrize("options", [{"bounds": (-2, 3)}, {"bounds": (0.3, None)}, {"bounds": (None, 3)}], ids=str)
def test_injected_points_within_bounds_are_asked_exactly(options: dict[str, object]) -> None:
    rng = np.random.default_rng(1)
    for seed in range(20):
        search = searcher(rng=seed, **options)
        P = np.array([rng.uniform(0.3, 3, 3), rng.uniform(0.3, 0.31, 3), rng.uniform(2.99, 3, 3), [0.3, 3, 3]])
        search.inject(P)
        assert np.array_equal(search.ask()[:4], P)


def test_a_good_injected_point_draws_the_search() -> None:
    search = searcher(dim=6, sigma0=0.1)
    search.inject(np.zeros(6))
    far = np.linalg.norm(search.mean)
    generation(search)
    assert search.best_f == 0.0 and np.linalg.norm(search.mean) < far


def test_a_point_far_away_moves_the_mean_by_a_bounded_step() -> None:
    for far in (1e3, 1e30, 1e160, 1e308):
        search = searcher()
        search.inject([[far, -far, far]])
        assert search.ask()[0].tolist() == [far, -far, far]
        search.tell(np.arange(7.0))
        assert np.linalg.norm(search.mean - [1, 2, 3]) < 0.5 * 4 and (search.stds < 2).all()


# ---- every structure and option -----------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_every_structure_solves_what_it_can_hold(structure: object) -> None:
    search = run(searcher(6, structure=structure, target=1e-8, max_evals=6000))
    assert "target" in search.stop()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_goes_downhill_with_all_forms_of_tell(options: dict[str, object]) -> None:
    search = searcher(6, **options)
    for i in range(40):
        X = search.ask()
        f = [valley(x) for x in X]
        forms = as_fitness, as_points, as_pairs, lambda s, X, f: s.tell(X[::-1], f[::-1])
        forms[i % 4](search, X, f)
    first = valley(searcher(6, **options).mean)
    assert search.best_f < first / 3 and search.nit == 40 and search.nfev == 40 * search.popsize


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("popsize", [2, 3, 4, 5])
def test_small_dimensions_and_generations_work(dim: int, popsize: int) -> None:
    search = run(searcher(dim, popsize=popsize, target=1e-6, max_evals=20_000), generations=10**5)
    assert "target" in search.stop()


@pytest.mark.parametrize(
    "structure", ["auto", "full", "diagonal", "triangular", "heisenberg", "block_triangular", "circulant"]
)
@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"mirrored": True}, {"algorithm": "paper"}], ids=str)
def test_one_coordinate_will_do(structure: str, options: dict[str, object]) -> None:
    search = run(Searcher([3.0], 0.5, structure=structure, rng=1, target=1e-8, max_evals=4000, **options))
    assert "target" in search.stop() and search.result.x.shape == (1,)
