"""Wrong input has a defined outcome: a clear error that leaves the search as it was, or a value that is handled."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

from esgroup import Searcher
from esgroup.groups import Full
from tests.search.support import everything, generation, refused, run, same, searcher, sphere, unchanged, valley

NUMBER = r"fitness\[{}\] .*real number.* "
LIST = r"fitness .*list of numbers.* "


def asked(**options: Any) -> Searcher:
    """A search after one generation, with part of another told and further points asked for."""
    search = searcher(**options)
    generation(search)
    search.tell(search.mean[None], [1.0])
    search.ask()
    return search


# ---- values that are no numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fitness, text",
    [
        ([None] * 7, NUMBER.format(0) + "None"),
        ([1.0] * 6 + [None], NUMBER.format(6) + "None"),
        (["a"] * 7, NUMBER.format(0) + "'a'"),
        ([1.0, "2.0", 3.0, 4.0, 5.0, 6.0, 7.0], NUMBER.format(0) + "'1.0'|" + NUMBER.format(1) + "'2.0'"),
        (np.array(["1"] * 7), NUMBER.format(0) + ".*'1'"),
        ([1j] * 7, NUMBER.format(0) + "1j"),
        ([0.0] * 6 + [1 + 0j], NUMBER.format(0) + "|" + NUMBER.format(6)),
        (np.ones(7) * 1j, NUMBER.format(0) + ".*1j"),
        ([b"1"] * 7, NUMBER.format(0)),
        ([{}] * 7, NUMBER.format(0) + "{}"),
        ([object()] * 7, NUMBER.format(0)),
        ([Decimal(1)] * 7, NUMBER.format(0)),
        ([10**400] * 7, NUMBER.format(0)),
        ([np.datetime64("2000-01-01")] * 7, NUMBER.format(0)),
        (np.ma.array(np.ones(7), mask=[0, 0, 1, 0, 0, 0, 0]), NUMBER.format(2) + "masked"),
        ([1.0, np.array([1.0, 2.0]), 3, 4, 5, 6, 7], NUMBER.format(1) + r"array\(\[1., 2.\]\)"),
        ([1.0, [], 3, 4, 5, 6, 7], NUMBER.format(1) + r"\[\]"),
        ([1.0, None, 3, 4, 5, 6, 7], NUMBER.format(1) + "None"),
    ],
)
def test_a_value_that_is_no_real_number_is_refused(fitness: Any, text: str) -> None:
    search = asked()
    with refused(search, ValueError, text):
        search.tell(fitness)
    search = asked()
    X = search.ask()
    with refused(search, ValueError, text):
        search.tell(X, fitness)


@pytest.mark.parametrize(
    "fitness, text",
    [
        (1.0, LIST),
        (None, LIST + "None"),
        ("abcdefg", LIST + "'abcdefg'"),
        ({i: 1.0 for i in range(7)}, LIST),
        ({1.0, 2.0}, LIST),
        (map(float, range(7)), LIST + "<map"),
        (np.ones((7, 2)), LIST + r"an array of shape \(7, 2\)"),
        ([(1.0, 2.0)] * 7, LIST + r"an array of shape \(7, 2\)"),
        (np.ones((1, 7)), LIST + r"an array of shape \(1, 7\)"),
        (np.ones((7, 1, 2)), LIST + r"an array of shape \(7, 1, 2\)"),
        (np.array(1.0), LIST + r"an array of shape \(\)"),
    ],
)
def test_values_that_are_no_list_of_numbers_are_refused(fitness: Any, text: str) -> None:
    search = asked()
    with refused(search, ValueError, text):
        search.tell(fitness)


@pytest.mark.parametrize("n", [0, 1, 6, 8, 14])
def test_a_wrong_number_of_values_is_refused(n: int) -> None:
    text = f"fitness .*7 values.* {n}$"
    search = asked()
    with refused(search, ValueError, text):
        search.tell([1.0] * n)
    search = asked()
    X = search.ask()
    with refused(search, ValueError, text):
        search.tell(X, np.ones(n))


@pytest.mark.parametrize("arguments", [(), ([1.0], [2.0], [3.0])])
def test_a_wrong_number_of_arguments_is_refused(arguments: tuple[Any, ...]) -> None:
    search = asked()
    with refused(search, TypeError, rf"tell\(\) .*fitness.* {len(arguments)} arguments"):
        search.tell(*arguments)


def test_right_values_are_accepted_after_wrong_ones() -> None:
    search, reference = searcher(), searcher()
    X = search.ask()
    for wrong in ([None] * 7, ["a"] * 7, [1.0] * 6, np.ones((7, 2)), [1j] * 7):
        with pytest.raises(ValueError, match="fitness"):
            search.tell(wrong)
    search.tell([sphere(x) for x in X])
    generation(reference)
    assert same(search, reference)


# ---- points that are none -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X, text",
    [
        (np.ones((2, 2)), r"X .*\(n, 3\).*\(2, 2\)"),
        (np.ones((2, 4)), r"X .*\(n, 3\).*\(2, 4\)"),
        (np.ones(2), r"X .*\(3,\).*\(2,\)"),
        (np.ones((1, 2, 3)), r"X .*\(3,\) or \(n, 3\).*\(1, 2, 3\)"),
        (1.0, r"X .*\(3,\) or \(n, 3\).*\(\)"),
        ([], r"X .*\(3,\).*\(0,\)"),
        ([[1, 2, 3], [1, 2]], r"X .*real numbers.*rows of unequal length"),
        ([[1, 2, 3], [1, 2, np.nan]], r"X .*finite.* nan .*\(1, 2\)"),
        ([[1, 2, 3], [1, np.inf, 3]], r"X .*finite.* inf .*\(1, 1\)"),
        ([["a", "b", "c"]] * 2, r"X .*real numbers.*<U1"),
        ([[1j, 2, 3]] * 2, r"X .*real numbers.*complex128"),
        (None, r"X .*real numbers.*object"),
        (np.ma.ones((2, 3)), r"X .*masked"),
    ],
)
def test_points_that_are_none_are_refused(X: Any, text: str) -> None:
    search = asked()
    with refused(search, ValueError, text):
        search.tell(X, [1.0, 2.0])
    with refused(search, ValueError, text):
        search.inject(X)


@pytest.mark.parametrize(
    "pairs, text",
    [
        ([([1, 2, 3], 1.0), (1, 2, 3)], r"entry 1 .*pair.*\(1, 2, 3\)"),
        ([([1, 2, 3], 1.0), 5.0], r"entry 1 .*pair.* 5.0"),
        ([([1, 2, 3], 1.0), ([1, 2], 1.0)], r"X .*real numbers.*rows of unequal length"),
        ([([1, 2], 1.0)], r"X .*\(n, 3\).*\(1, 2\)"),
        ([([1, 2, math.nan], 1.0)], r"X .*finite.* nan .*\(0, 2\)"),
        ([([1, [2], 3], 1.0)], r"X .*real numbers"),
        ([([1, 2, 3], 1.0), ([1, 2, 3], None)], NUMBER.format(1) + "None"),
        ([([1, 2, 3], "a")], NUMBER.format(0) + "'a'"),
        ([([1, 2, 3], 1j)], NUMBER.format(0) + "1j"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs: Any, text: str) -> None:
    search = asked()
    with refused(search, ValueError, text):
        search.tell(pairs)


@pytest.mark.parametrize(
    "options, X, text",
    [
        ({"bounds": (0, 5)}, [[1, 2, 3], [1, 6, 3]], r"X\[1, 1\] .*0.0.*5.0.* 6.0"),
        ({"bounds": (0, None)}, [[-1, 2, 3]] * 2, r"X\[0, 0\] .*0.0.*inf.* -1.0"),
        ({"integer": [1]}, [[1, 2.5, 3]] * 2, r"X\[0, 1\] .*integer.* 2.5"),
        ({"fixed": [2]}, [[1, 2, 3], [1, 2, 4]], r"X\[1, 2\] .*3.0.*fixed.* 4.0"),
    ],
)
def test_infeasible_points_are_refused(options: dict[str, Any], X: Any, text: str) -> None:
    search = searcher(**options)
    generation(search)
    with unchanged(search), pytest.raises(ValueError, match=text):
        search.tell(X, [1.0, 2.0])
    with unchanged(search), pytest.raises(ValueError, match=text):
        search.inject(X)
    generation(search)
    assert search.nit == 2


@pytest.mark.parametrize("far", [1e60, 1e160, 1e308, 1.7e308])
@pytest.mark.parametrize("structure", ["full", "diagonal", "heisenberg", "triangular"])
def test_points_at_the_end_of_the_numbers_do_no_harm(far: float, structure: str) -> None:
    search = searcher(structure=structure)
    generation(search)
    search.tell([[far, -far, far], [far, 0, 1], [-far, -far, 2], [0, 0, far]] * 2, range(8))
    assert search.nit == 2 and np.linalg.norm(search.mean - [1, 2, 3]) < 8 and (search.stds < 5).all()
    run(search, generations=300)
    assert search.result.success and search.best_f < 1e-15


def test_points_at_the_end_of_the_numbers_do_no_harm_within_bounds() -> None:
    search = searcher(bounds=(0, None))
    search.tell([[1e308, 0, 1e200]] * 7, range(7))
    search.inject([[1e308, 0, 0]])
    assert search.ask()[0].tolist() == [1e308, 0, 0]
    search.tell(range(7))
    assert (search.stds < 5).all() and np.isfinite(search.mean).all()


# ---- the order of calls -------------------------------------------------------------------------------------------


def test_tell_before_ask_is_refused() -> None:
    search = searcher()
    with refused(search, RuntimeError, r"tell\(\) .*before ask\(\)"):
        search.tell([1.0] * 7)


TWICE = r"tell\(fitness\) .*twice.* ask\(\).* tell\(X, fitness\)"


def test_tell_twice_is_refused() -> None:
    search = searcher()
    generation(search)
    with refused(search, RuntimeError, TWICE):
        search.tell([1.0] * 7)


def test_tell_twice_is_refused_for_part_of_a_generation() -> None:
    search = searcher()
    search.ask(3)
    search.tell([1.0] * 3)
    with refused(search, RuntimeError, TWICE):
        search.tell([1.0] * 3)


@pytest.mark.parametrize("rows", [slice(None), slice(None, None, -1), slice(0, 2), slice(6, 7)])
def test_tell_is_refused_for_an_ask_that_was_told_with_its_points(rows: slice) -> None:
    search = searcher()
    X = search.ask()[rows]
    search.tell(X, [sphere(x) for x in X])
    with refused(search, RuntimeError, TWICE):
        search.tell([1.0] * 7)


def test_points_told_again_are_duplicates() -> None:
    search = searcher()
    X = generation(search)
    search.tell(X, [sphere(x) for x in X])
    assert (search.nfev, search.nit) == (14, 2)


def test_other_points_do_not_take_the_last_ask_away() -> None:
    search = searcher()
    search.ask()
    search.tell([[1, 2, 3]], [5.0])
    search.tell([1.0] * 7)
    assert (search.nfev, search.nit) == (8, 1)


@pytest.mark.parametrize(
    "n, error",
    [(0, ValueError), (-1, ValueError), (2.0, TypeError), ("3", TypeError), (True, TypeError), ([2], TypeError)],
)
def test_a_wrong_number_of_points_is_refused(n: Any, error: type[Exception]) -> None:
    search = searcher()
    with refused(search, error, r"n .*integer >= 1, got "):
        search.ask(n)


def test_more_points_than_memory_leave_the_search_as_it_was() -> None:
    search = asked()
    with unchanged(search), pytest.raises(MemoryError):
        search.ask(10**15)
    generation(search)


def test_an_objective_that_raises_leaves_a_search_that_can_continue() -> None:
    def fails(x: np.ndarray) -> float:
        raise OSError("the simulator is gone")

    search, reference = searcher(), searcher()
    X = search.ask()
    with unchanged(search), pytest.raises(OSError, match="the simulator is gone"):
        search.tell([fails(x) for x in X])
    search.tell([sphere(x) for x in X])  # the same points, once it is back
    generation(reference)
    assert same(search, reference)
    search.ask()  # or new ones, which are as good
    run(search)
    assert search.result.success


# ---- values at the edge -------------------------------------------------------------------------------------------


def test_nan_ranks_last_and_is_counted() -> None:
    search, reference = searcher(), searcher()
    for _ in range(30):
        X = search.ask()
        search.tell([math.nan if x[0] > 1.2 else valley(x) for x in X])
        X = reference.ask()
        reference.tell([math.inf if x[0] > 1.2 else valley(x) for x in X])
    assert np.array_equal(search.mean, reference.mean) and np.array_equal(search.stds, reference.stds)
    assert search.best_f == reference.best_f and np.array_equal(search.best_x, reference.best_x)
    assert search.nfailed > 5 and reference.nfailed == 0
    assert f"{search.nfailed} of 210 evaluations failed (NaN)" in search.result.message


def test_a_generation_of_nan_moves_nothing_and_is_reported() -> None:
    search = searcher()
    generation(search)
    state = {name: value.copy() for name, value in search.state._asdict().items()}
    search.ask()
    search.tell([math.nan] * 7)
    assert all(np.array_equal(value, state[name]) for name, value in search.state._asdict().items())
    assert (search.nfev, search.nit, search.nfailed) == (14, 2, 7) and math.isfinite(search.best_f)
    assert "7 of 14 evaluations failed (NaN)" in search.result.message


def test_an_objective_of_nothing_but_nan_is_reported_and_ends_the_search() -> None:
    search = run(searcher(), lambda x: math.nan)
    result = search.result
    assert search.nit == 10 and search.nfailed == search.nfev == 70
    assert search.stop() == {"failed": "all evaluations of the last 10 generations failed"}
    assert (result.success, result.status) == (False, 3)
    assert "All 70 evaluations failed: x is the mean of the search distribution" in result.message
    assert search.best_x is None and math.isnan(result.fun) and np.array_equal(result.x, [1, 2, 3])
    assert np.allclose(search.stds, 0.5)
    run(search, generations=1)
    generation(search)
    assert search.best_f > 0 and not search.stop()


def test_infinities_are_ordered() -> None:
    search = searcher()
    X = search.ask()
    search.tell([math.inf, 3.0, -math.inf, 2.0, math.inf, 1e308, math.nan])
    assert search.best_f == -math.inf and np.array_equal(search.best_x, X[2])
    search, reference = searcher(), searcher()
    search.ask(), reference.ask()
    search.tell([-math.inf, -1e308, 0, 1, 2, 1e308, math.inf])
    reference.tell(range(7))
    assert np.array_equal(search.mean, reference.mean) and np.array_equal(search.stds, reference.stds)


def test_an_infinite_value_beside_nan_is_the_best_so_far() -> None:
    search = searcher()
    X = search.ask()
    search.tell([math.nan] + [math.inf] * 6)
    assert search.best_f == math.inf and np.array_equal(search.best_x, X[1])


def test_infinity_for_infeasible_points_does_not_end_the_search_early() -> None:
    search = run(searcher(target=0.25 + 1e-6), lambda x: sphere(x) if x[0] > 0.5 else math.inf)
    assert list(search.stop()) == ["target"]


@pytest.mark.parametrize("factor", [1e300, 1e-300, 1e150, 1e-150])
def test_the_scale_of_the_values_does_not_matter(factor: float) -> None:
    search, reference = searcher(), searcher()
    while reference.best_f != reference.best_f or reference.best_f > 1e-6:
        generation(search, lambda x: factor * valley(x))
        generation(reference, valley)
        assert np.array_equal(search.mean, reference.mean) and np.array_equal(search.stds, reference.stds)
        assert search.stop() == reference.stop() == {}
    assert search.best_f == factor * reference.best_f


def test_adding_a_constant_does_not_matter_before_rounding() -> None:
    search, reference = searcher(), searcher()
    for _ in range(15):
        generation(search, lambda x: 1024 + valley(x))
        generation(reference, valley)
    assert np.allclose(search.mean, reference.mean)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e308, -1.7e308, 5e-324, math.inf, -math.inf])
@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"algorithm": "paper"}, {"bounds": (0, 5)}], ids=str)
def test_constant_values_end_the_search(value: float, options: dict[str, Any]) -> None:
    search = run(searcher(**options), lambda x: value)
    assert "tolfun" in search.stop() and search.nit == 23  # 10 + 30 n / popsize
    assert "the values of 23 generations differ by 0," in search.stop()["tolfun"]
    assert search.result.status == 3 and not search.result.success  # nothing was solved
    assert np.isfinite(search.mean).all() and np.isfinite(search.stds).all()


@pytest.mark.parametrize("values", [(1.7e308, -1.7e308), (math.inf, -math.inf), (math.nan, math.inf), (math.nan, 1.0)])
def test_wild_values_make_no_trouble(values: tuple[float, float]) -> None:
    search = searcher()
    for i in range(600):
        search.tell([values[(i + j) % 2] for j in range(len(search.ask()))])
        search.stop()
    assert np.isfinite(search.mean).all() and np.isfinite(search.stds).all() and search.result.status in (0, 3)


@pytest.mark.parametrize("bounds", [None, [(None, None), (0, 9), (0, None)], (0, 5)])
@pytest.mark.parametrize("f", [lambda x: -x[0], lambda x: abs(x).max(), lambda x: 1.0], ids=["slope", "norm", "flat"])
def test_a_search_that_is_never_stopped_continues_with_finite_points(f: Any, bounds: Any) -> None:
    search = searcher(bounds=bounds, popsize=4)
    for _ in range(30):
        for _ in range(50):
            assert np.isfinite(generation(search, f)).all()
        assert isinstance(search.stop(), dict) and math.isfinite(search.sigma)
    assert search.nit == 1500


# ---- arguments ----------------------------------------------------------------------------------------------------

POSITIVE = r"sigma0 .*positive finite.* "


@pytest.mark.parametrize(
    "sigma0, text",
    [
        (0, POSITIVE + "0"),
        (-1.0, POSITIVE + "-1.0"),
        (math.nan, POSITIVE + "nan"),
        (math.inf, POSITIVE + "inf"),
        ("a", POSITIVE + "'a'"),
        (1j, POSITIVE + "1j"),
        ([1, 0, 1], r"sigma0 .*positive.* 0.0 .*1"),
        ([1, 1, -2], r"sigma0 .*positive.* -2.0 .*2"),
        ([1, math.nan, 1], r"sigma0 .*finite.* nan .*1"),
        ([1, 2], r"sigma0 .*\(3,\).*\(2,\)"),
        ([[1, 2, 3]], r"sigma0 .*\(3,\).*\(1, 3\)"),
        (["a", "b", "c"], r"sigma0 .*real numbers"),
        (1e-200, r"sigma0 .*large enough to change x0, got 1e-200"),
        (1e200, r"sigma0 .*1e-100.*1e.100.* 1e.200"),
        ([1, 1e-300, 1e200], r"sigma0 .* 1e-300"),
    ],
)
def test_a_wrong_sigma0_is_refused(sigma0: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        searcher(sigma0=sigma0)
    with pytest.raises(ValueError, match=text):
        searcher(sigma0=sigma0, cov0=np.eye(3))
    with pytest.raises(ValueError, match=text):
        Searcher(searcher(), sigma0)


@pytest.mark.parametrize(
    "x0, text",
    [
        ([1.0, math.nan], r"x0 .*finite.* nan .*1"),
        ([-math.inf, 1.0], r"x0 .*finite.* -inf .*0"),
        ([], r"x0 .*at least one variable"),
        (np.empty(0), r"x0 .*at least one variable"),
        ([[1.0, 2.0]], r"x0 .*\(n,\).*\(1, 2\)"),
        (np.empty((0, 0)), r"x0 .*\(n,\).*\(0, 0\)"),
        (1.0, r"x0 .*\(n,\).*\(\)"),
        (None, r"x0 .*a point.* None"),
        ("abc", r"x0 .*a point.* 'abc'"),
        ([1j], r"x0 .*real numbers.*complex128"),
        ([1, [2]], r"x0 .*real numbers.*rows of unequal length"),
        ({}, r"x0 .*a point.* dict.*esgroup.Space"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"cov0": np.eye(2)}], ids=["plain", "cov0"])
def test_a_wrong_x0_is_refused(x0: Any, text: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=text):
        Searcher(x0, 0.5, **options)


KINDS = r"bounds must be None, .*Bounds, .*pair .*variable.*"


@pytest.mark.parametrize(
    "bounds, error, text",
    [
        ((1, -1), ValueError, r"bounds .*lower <= upper.*\(1.0, -1.0\).*0"),
        ([(0, 1), (0, 9), (5, 2)], ValueError, r"bounds .*lower <= upper.*\(5.0, 2.0\).*2"),
        (Bounds([0, 0, 5], [9, 9, 4]), ValueError, r"bounds .*lower <= upper.*\(5.0, 4.0\)"),
        ((math.nan, 1), ValueError, r"bounds .*NaN.*\(nan, 1.0\).*0"),
        ((5, 9), ValueError, r"x0\[0\] .*5.0.*9.0.* 1.0"),
        ((0, 2.5), ValueError, r"x0\[2\] .*0.0.*2.5.* 3.0"),
        ((math.inf, math.inf), ValueError, r"bounds .*finite"),
        ([1, 2, 3], ValueError, KINDS + " 3 entries .* 3 variables"),
        ([(0, 1)] * 4, ValueError, KINDS + " 4 pairs .* 3 variables"),
        ("abc", TypeError, KINDS + " 'abc'"),
        (5, TypeError, KINDS + " 5"),
        (("a", "b"), TypeError, r"bounds .*real numbers.* 'a'"),
        ((1j, 2), TypeError, r"bounds .*real numbers.* 1j"),
    ],
)
def test_wrong_bounds_are_refused(bounds: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        searcher(bounds=bounds)


def test_bounds_equal_everywhere_leave_nothing_to_search() -> None:
    with pytest.raises(ValueError, match=r"fixed and bounds .*all"):
        Searcher([1.0, 1.0], 0.5, bounds=(1, 1))


ONE_OF = "{} .*{}.* {}"
INTEGER = "{} .*integer >= {}.* {}"


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"popsize": 0}, ValueError, INTEGER.format("popsize", 2, 0)),
        ({"popsize": 1}, ValueError, INTEGER.format("popsize", 2, 1)),
        ({"popsize": -7}, ValueError, INTEGER.format("popsize", 2, -7)),
        ({"popsize": 7.0}, TypeError, INTEGER.format("popsize", 2, 7.0)),
        ({"popsize": "7"}, TypeError, INTEGER.format("popsize", 2, "'7'")),
        ({"popsize": True}, TypeError, INTEGER.format("popsize", 2, True)),
        ({"structure": "ful"}, ValueError, r"structure 'ful' .*'full'"),
        ({"structure": "zzz"}, ValueError, r"structure 'zzz'.* diagonal"),
        ({"structure": "heisenberg:k3=4"}, ValueError, r"'k3=4'.*structure 'heisenberg:k3=4'"),
        ({"structure": "block_triangular:k=9"}, ValueError, r"k .*0.*3.* 9"),
        ({"structure": 3}, TypeError, r"structure .*group.* 3"),
        ({"structure": None}, TypeError, r"structure .*group.* None"),
        ({"structure": Full(4)}, ValueError, r"structure .*dimension 3.*Full\(dim=4\)"),
        ({"algorithm": "cma"}, ValueError, ONE_OF.format("algorithm", "'default' or 'paper'", "'cma'")),
        ({"algorithm": None}, ValueError, ONE_OF.format("algorithm", "'default' or 'paper'", "None")),
        ({"noise": "yes"}, ValueError, ONE_OF.format("noise", "None or 'adapt'", "'yes'")),
        ({"noise": True}, ValueError, ONE_OF.format("noise", "None or 'adapt'", "True")),
        ({"decoding": "no"}, ValueError, ONE_OF.format("decoding", "'auto' or True or False", "'no'")),
        ({"decoding": 1}, ValueError, ONE_OF.format("decoding", "'auto' or True or False", "1")),
        ({"mirrored": 1}, TypeError, r"mirrored .*True or False.* 1"),
        ({"cov0": np.eye(2)}, ValueError, r"cov0 .*\(3, 3\).*\(2, 2\)"),
        ({"cov0": np.eye(3) - 1}, ValueError, r"cov0 .*positive definite.* -2"),
        ({"cov0": np.triu(np.ones((3, 3)))}, ValueError, r"cov0 .*symmetric.* 1"),
        ({"cov0": np.full((3, 3), math.nan)}, ValueError, r"cov0 .*finite.* nan .*\(0, 0\)"),
        ({"fixed": [0, 1, 2]}, ValueError, r"fixed and bounds .*all"),
        ({"fixed": [3]}, ValueError, r"index in fixed .*-3.*2.* 3"),
        ({"fixed": [True, False]}, ValueError, r"fixed .*3 entries.*mask.* 2"),
        ({"fixed": {0: math.nan}}, ValueError, r"fixed\[0\] .*finite.* nan"),
        ({"fixed": {0: 1, -3: 2}}, ValueError, r"fixed .*variable 0 twice"),
        ({"fixed": 1}, TypeError, r"fixed .*indices.*mask.* 1"),
        ({"fixed": {0: 9}, "bounds": (0, 5)}, ValueError, r"x0\[0\] .*0.0.*5.0.* 9.0"),
        ({"integer": [5]}, ValueError, r"index in integer .*-3.*2.* 5"),
        ({"integer": "all"}, TypeError, r"integer .*indices.*mask.* 'all'"),
        ({"integer": [0], "bounds": [(0.2, 0.8), (0, 9), (0, 9)]}, ValueError, r"bounds .*integer"),
        ({"max_evals": 0}, ValueError, INTEGER.format("max_evals", 1, 0)),
        ({"max_evals": 1e3 + 0.5}, TypeError, INTEGER.format("max_evals", 1, 1000.5)),
        ({"max_iters": -1}, ValueError, INTEGER.format("max_iters", 1, -1)),
        ({"max_time": 0}, ValueError, r"max_time .*positive finite.* 0"),
        ({"max_time": math.nan}, ValueError, r"max_time .*positive finite.* nan"),
        ({"target": math.nan}, ValueError, r"target .*finite.* nan"),
        ({"target": "0"}, ValueError, r"target .*finite.* '0'"),
        ({"rng": -1}, ValueError, r"rng .*seed.*generator.* -1"),
        ({"rng": "a"}, TypeError, r"rng .*seed.*generator.* 'a'"),
        ({"rng": 1.5}, TypeError, r"rng .*seed.*generator.* 1.5"),
        ({"unknown": 1}, TypeError, "no argument 'unknown'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        searcher(**options)


def test_x0_that_is_not_whole_where_it_must_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x0\[1\] .*integer.* 0.5"):
        Searcher([0.0, 0.5], 1.0, integer=[1])


def test_two_coordinates_with_bounds_by_rows_are_shown_both_spellings() -> None:
    with pytest.raises(ValueError, match=r"bounds=\[\(-1, 2\), \(-2, 1\)\]"):
        Searcher([0.0, 0.0], 1.0, bounds=[(-1, -2), (2, 1)])


def test_arguments_are_not_modified() -> None:
    x0, sigma0, cov0 = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.eye(3) + 0.1
    lower, fixed = np.array([0.0, 0.0, 0.0]), {0: 0.5}
    copies = [a.copy() for a in (x0, sigma0, cov0, lower)]
    search = Searcher(x0, sigma0, cov0=cov0, bounds=Bounds(lower, 9.0), fixed=fixed, rng=1)
    run(search, generations=20)
    assert all(np.array_equal(a, b) for a, b in zip((x0, sigma0, cov0, lower), copies, strict=True))
    assert fixed == {0: 0.5}
    kept = everything(search)
    x0[:], sigma0[:], cov0[:], lower[:] = 7.0, 7.0, 7.0, 7.0
    assert everything(search) == kept
