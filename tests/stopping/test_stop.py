"""Why a search ends by itself."""

import math
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Searcher
from esgroup.strategies.in_domain import elsewhere
from tests.search.support import generation, run, searcher, sphere, valley


def test_a_point_that_is_found_to_rounding_ends_the_search() -> None:
    search = run(searcher())
    assert list(search.stop()) == ["tolx"] and (search.stds < 1.1e-10 * 0.5).all() and search.best_f < 1e-20


def test_a_point_that_is_found_to_the_precision_of_its_coordinates_is_a_success() -> None:
    at = np.array([3e5, -2e5, 1e5])
    search = run(Searcher(at + 0.5, 0.5, rng=1), lambda x: sphere(x - at))
    assert search.stop()["tolx"].endswith("times their initial values and the mean is at full precision")
    assert list(search.stop()) == ["tolx"] and search.result.success
    assert np.allclose(search.best_x, at, rtol=1e-14)
    far = run(Searcher(np.full(3, 1e9 + 0.1), 0.3, rng=1), lambda x: sphere(x - 1e9))  # little room to shrink
    assert list(far.stop()) == ["tolx"] and far.result.success


@pytest.mark.parametrize("dim", [1, 2, 10, 40, 100])
def test_a_constant_function_ends_alike_in_every_dimension(dim: int) -> None:
    search = run(Searcher(np.zeros(dim), 1.0, rng=1), lambda x: 1.0)
    assert list(search.stop()) == ["tolfun", "flat"]


def test_a_reason_stands_until_the_next_look() -> None:
    rng = np.random.default_rng(1)
    search = run(Searcher(np.zeros(3), 1.0, rng=1), lambda x: float(rng.standard_normal()), 1000)
    assert list(search.stop()) == ["stagnation"]
    generation(search, lambda x: float(rng.standard_normal()))
    assert "stagnation" in search.stop()
    assert search.stop()["stagnation"].endswith(f"in {math.ceil(100 + 100 * 3**1.5 / search.popsize)} generations")


@pytest.mark.parametrize("popsize", [None, 50, 500])
def test_a_search_that_goes_on_for_ever_goes_on_with_numbers(popsize: int | None) -> None:
    search = Searcher([1.0, 1.0], 1.0, popsize=popsize, rng=1)
    for _ in range(600):
        search.tell(search.ask()[:, 0])
        search.stop()
    assert "divergence" in search.stop() and np.isfinite(search.ask()).all() and np.isfinite(search.stds).all()


def test_values_that_differ_no_more_than_rounding_end_the_search() -> None:
    search = run(searcher(), lambda x: 1e6 + sphere(x))
    assert list(search.stop()) == ["tolfun"] and search.best_f == pytest.approx(1e6)
    assert search.nit < 100


def test_a_flat_first_generation_does_not_end_the_search() -> None:
    search = searcher()
    for _ in range(3):
        generation(search, lambda x: 1.0)
    assert search.stop() == {}


def test_a_search_that_is_handed_over_has_the_rules_of_its_new_strategy() -> None:
    search = searcher()
    for _ in range(12):
        assert search.stop() == {}
        search.ask()
        search.tell([1.0] * 7)
    search.strategy = searcher(popsize=90).strategy  # whose values are compared for 11 generations, not for 23
    assert "of 11 generations" in search.stop()["tolfun"]


def test_one_value_that_differs_keeps_the_search_going() -> None:
    search = searcher()
    for i in range(60):
        search.ask()
        search.tell([1.0] * 6 + [0.5 if i == 50 else 2.0])
        assert "tolfun" not in search.stop()


def test_noise_that_hides_everything_is_stagnation() -> None:
    rng = np.random.default_rng(0)
    search = run(searcher(), lambda x: rng.normal(), 5000)
    assert list(search.stop()) == ["stagnation"] and not search.result.success and search.result.status == 3
    assert 500 <= search.nit <= 1000


def test_a_rugged_function_is_searched_until_a_valley_is_found() -> None:
    """Values of Katsuura's function say little as long as the steps are large."""

    def katsuura(x: Any) -> float:
        powers = 2.0 ** np.arange(1, 33)[:, None]
        parts = (np.abs(powers * x - np.rint(powers * x)) / powers).sum(axis=0)
        return float(np.prod((1 + np.arange(1, len(x) + 1) * parts) ** (10 / len(x) ** 1.2)) - 1)

    for seed in (1, 5, 7):  # of these, the last two find the minimum
        search = run(Searcher(np.full(5, 1.3), 2.0, popsize=20, rng=seed), katsuura, 2000)
        assert "stagnation" not in search.stop() or search.nit >= 500


def test_noise_that_hides_everything_is_stagnation_even_if_most_runs_fail() -> None:
    rng = np.random.default_rng(0)
    search = run(searcher(), lambda x: rng.normal() if rng.random() < 0.4 else math.nan, 3000)
    assert list(search.stop()) == ["stagnation"]


def test_adapted_learning_rates_are_patient_with_noise() -> None:
    rng = np.random.default_rng(0)
    search = run(searcher(noise="adapt"), lambda x: rng.normal(), 600)
    assert "stagnation" not in search.stop()


def test_a_slope_without_end_is_divergence() -> None:
    search = run(searcher(), lambda x: -x[0])
    assert list(search.stop()) == ["divergence"] and search.result.status == 3
    assert search.stds.max() > 1e9


def test_a_condition_beyond_numbers_is_named() -> None:
    for axis, text in ((1e-8, "1e+16"), (0.0, "inf")):
        search = searcher(structure="full", decoding=False)
        search.state.root[:] = np.diag([1.0, 1.0, axis]).ravel()
        search.ledger.nit = 100
        assert search.stop()["condition"] == f"the condition number of the covariance is {text}, above 1e+14"
        search.ledger.nit = 150  # it is not looked at that often, but stands until then
        assert "condition" in search.stop()
        search.state.root[:] = np.diag([1.0, 1.0, 1e-6]).ravel()
        search.ledger.nit = 200
        assert "condition" not in search.stop()


def test_one_coordinate_at_full_precision_is_named() -> None:
    search = run(Searcher([1e14, 1.0], 1.0, rng=1), lambda x: (x[0] - 1e14) ** 2 + 1e-3 * x[1] ** 2)
    assert list(search.stop()) == ["precision"] and not search.result.success


def test_a_search_that_begins_at_full_precision_has_found_nothing() -> None:
    """Its steps were never larger than rounding, in contrast to those that shrank to it."""
    first = run(Searcher([300.0, -200.0, 5.0], 1e-9, rng=1), lambda x: sphere(x - 299.999))
    first.state.sigma[:] = 1e-14
    again = Searcher(first, rng=1)
    generation(again)
    assert list(again.stop()) == ["resolution"] and "in 2 of 3 variables" in again.stop()["resolution"]
    assert again.result.status == 3 and not again.result.success


@pytest.mark.parametrize("dim", [1, 3])
def test_a_search_that_begins_just_above_the_resolution_claims_success_at_the_minimum_only(dim: int) -> None:
    apart = np.spacing(1e15)
    for seed in range(20):
        at = 1e15 + apart * np.rint(100 * np.random.default_rng(seed).standard_normal(dim))
        search = run(Searcher(np.full(dim, 1e15), 5.5 * apart, rng=seed), lambda x, at=at: sphere(x - at))
        assert not search.result.success or np.abs(search.best_x - at).max() <= 4 * apart


def test_a_restart_is_wide_enough_for_the_place_where_it_begins() -> None:
    narrow = Searcher([2.0, 1.0], [1e-14, 1.0], bounds=[(0, 1e9), (-5, 5)], rng=1).strategy
    again = elsewhere(narrow, 10, 1e-2, np.random.default_rng(1))
    assert again is not None
    state = again.start()
    assert state.mean[0] > 1e3 and (state.mean + 0.1 * again.view(state).spread() != state.mean).all()


def test_failed_generations_end_the_search_only_in_a_row() -> None:
    search = searcher()
    for i in range(40):
        generation(search, lambda x, i=i: math.nan if i % 10 else sphere(x))
        assert "failed" not in search.stop()
    generation(search, lambda x: math.nan)
    assert "failed" in search.stop()


def test_integer_steps_do_not_keep_a_search_from_stopping() -> None:
    """Only the others can fall below a tolerance: the integer one stays wide."""
    search = run(searcher(integer=[0]))
    assert search.stop().keys() <= {"tolx", "tolfun"} and search.result.success and search.best_f < 1e-15
    assert search.stds[0] > 0.1


def test_a_search_over_integers_alone_stops() -> None:
    search = run(searcher(integer=True), generations=3000)
    assert search.stop() and search.best_f == 0.0


def test_fixed_coordinates_do_not_keep_a_search_from_stopping() -> None:
    search = run(searcher(fixed=[1]))
    assert list(search.stop()) == ["tolfun"] and search.best_f == pytest.approx(4.0)


def test_ask_and_tell_work_after_a_stop() -> None:
    search = run(searcher(max_iters=3))
    assert search.stop()
    for _ in range(5):
        generation(search)
    assert search.nit == 8 and list(search.stop()) == ["max_iters"]


def test_looking_changes_nothing() -> None:
    search, reference = searcher(), searcher()
    for _ in range(30):
        generation(search, valley)
        generation(reference, valley)
        search.stop(), search.result, repr(search), search.mean, search.stds, search.sigma, search.axis_ratio
        search.mean[:] = 99.0
        search.stds[:] = 99.0
        search.result.x[:] = 99.0
    assert np.array_equal(search.ask(), reference.ask()) and np.array_equal(search.best_x, reference.best_x)


@pytest.mark.parametrize(
    "f", [lambda x: 1.0, lambda x: (x[0] - 1e20) ** 2, lambda x: math.inf], ids=["one", "large", "infinite"]
)
def test_a_function_that_is_constant_to_rounding_is_no_success(f: Any) -> None:
    result = esgroup.minimize(f, [1.0, 1.0, 1.0], 0.5, rng=1)
    assert "flat" in result.stop and not result.success


def test_a_search_that_ends_on_a_plateau_is_a_success() -> None:
    result = esgroup.minimize(lambda x: np.round(x @ x, 1), [1.0, 1.0, 1.0], 0.5, rng=1)
    assert "tolfun" in result.stop and "flat" not in result.stop and result.success
