"""Why a search ends, and what its result says."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import esgroup
from esgroup import Searcher
from esgroup.running.limits import Limits, status_of
from esgroup.search import ledger as module
from esgroup.search.stopping import Record, value_reasons
from tests.search.support import generation, run, searcher, sphere, valley

# ---- budgets ------------------------------------------------------------------------------------------------------


def test_a_search_that_runs_has_no_reasons_to_stop() -> None:
    search = searcher()
    assert search.stop() == {}
    generation(search)
    assert search.stop() == {}


def test_budgets_are_named_like_the_arguments() -> None:
    search = searcher(max_evals=7, max_iters=1, max_time=1e-9, target=1e9)
    generation(search)
    reasons = search.stop()
    assert list(reasons) == ["target", "max_evals", "max_iters", "max_time"]
    assert reasons["max_evals"] == "7 evaluations were made, max_evals is 7"
    assert reasons["max_iters"] == "1 generations were made, max_iters is 1"
    assert "max_time is 1e-09" in reasons["max_time"]
    assert reasons["target"] == f"the best value {search.best_f:.6g} is at or below the target 1e+09"


@pytest.mark.parametrize("max_evals", [1, 7, 8, 100])
def test_evaluations_exceed_their_budget_by_less_than_a_generation(max_evals: int) -> None:
    search = run(searcher(max_evals=max_evals))
    assert max_evals <= search.nfev < max_evals + search.popsize
    assert list(search.stop()) == ["max_evals"]


def test_failed_evaluations_count_towards_the_budget() -> None:
    search = searcher(max_evals=14)
    run(search, lambda x: math.nan)
    assert search.nfev == 14 and "max_evals" in search.stop()


def test_points_never_asked_count_towards_the_budget() -> None:
    search = searcher(max_evals=2)
    search.tell([[1, 2, 3], [3, 2, 1]], [1.0, 2.0])
    assert list(search.stop()) == ["max_evals"] and search.nit == 0


def test_generations_are_counted_to_max_iters() -> None:
    assert run(searcher(max_iters=12)).nit == 12


@pytest.mark.parametrize(
    ("value", "stops"), [(2.0, True), (1.5, True), (2.1, False), (-math.inf, True), (math.inf, False)]
)
def test_the_target_may_be_met_exactly(value: float, stops: bool) -> None:
    search = searcher(target=2.0)
    search.tell([[1, 2, 3]], [value])
    assert ("target" in search.stop()) == stops


def test_no_target_is_reached_before_a_value_is_told() -> None:
    search = searcher(target=1e300)
    assert search.stop() == {}
    search.tell([[1, 2, 3]], [math.nan])
    assert search.stop() == {}


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def test_time_is_counted_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    search = searcher(max_time=5.0)
    clock.now += 4.9
    assert search.stop() == {} and search.seconds == pytest.approx(4.9)
    clock.now += 0.2
    assert search.stop() == {"max_time": "5.1 s have passed, max_time is 5"}


def test_time_is_counted_over_save_and_load_but_not_between(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = Clock(monkeypatch)
    search = searcher(max_time=5.0)
    clock.now += 3.0
    search.save(tmp_path / "run.npz")
    clock.now = 7.0  # another machine, or after a reboot
    loaded = Searcher.load(tmp_path / "run.npz")
    assert loaded.seconds == 3.0 and loaded.stop() == {}
    clock.now += 1.9
    assert loaded.stop() == {}
    clock.now += 0.2
    assert list(loaded.stop()) == ["max_time"]


# ---- tolerances ---------------------------------------------------------------------------------------------------


def test_a_point_that_is_found_to_rounding_ends_the_search() -> None:
    search = run(searcher())
    assert list(search.stop()) == ["tolx"] and (search.stds < 1.1e-10 * 0.5).all() and search.best_f < 1e-20


def test_a_point_that_is_found_to_the_precision_of_its_coordinates_is_a_success() -> None:
    at = np.array([3e5, -2e5, 1e5])
    search = run(Searcher(at + 0.5, 0.5, rng=1), lambda x: sphere(x - at))
    assert search.stop()["tolx"].endswith("times the first ones and the mean is at full precision")
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


def test_a_budget_may_be_a_whole_float_and_infinity_is_none() -> None:
    search = Searcher(np.ones(3), max_evals=1e3, max_iters=math.inf, max_time=math.inf, target=-math.inf)
    assert search.limits == Limits(1000, None, None, None)


def test_a_result_can_be_printed_at_any_time() -> None:
    search = searcher()
    assert "none yet" in repr(search.result) and search.result.stop == {}
    generation(search)
    assert "still running" in str(search.result)
    assert pickle.loads(pickle.dumps(search.result)).stop == {}


def test_values_that_differ_no_more_than_rounding_end_the_search() -> None:
    search = run(searcher(), lambda x: 1e6 + sphere(x))
    assert list(search.stop()) == ["tolfun"] and search.best_f == pytest.approx(1e6)
    assert search.nit < 100


def test_a_flat_first_generation_does_not_end_the_search() -> None:
    search = searcher()
    for _ in range(3):
        generation(search, lambda x: 1.0)
    assert search.stop() == {}


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


@pytest.mark.parametrize("popsize", [10, 1000])
def test_values_that_get_no_better_are_no_stagnation_before_500_generations(popsize: int) -> None:
    """However short the history that the rule compares: 132 generations with 10 points, 101 with 1000."""
    record = Record()
    for nit in range(1, 501):
        record.add([1.0 + nit, 2.0 + nit, 3.0 + nit])
        assert ("stagnation" in value_reasons(record, nit, 2, popsize, patience=1.0)) == (nit == 500)


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
    assert list(again.stop()) == ["resolution"] and "in 2 of 3 coordinates" in again.stop()["resolution"]
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
    again = narrow.restarted(10, 1e-2, np.random.default_rng(1))
    assert again is not None
    state = again.start()
    assert state.mean[0] > 1e3 and (state.mean + 0.1 * again.spread(state) != state.mean).all()


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


# ---- result -------------------------------------------------------------------------------------------------------


def test_the_result_has_all_fields() -> None:
    search = run(searcher(target=1e-3))
    result = search.result
    assert isinstance(result, OptimizeResult)
    names = {"x", "fun", "nfev", "nit", "success", "status", "message", "xmean", "stds", "stop", "nfailed"}
    assert set(result) >= names
    assert np.array_equal(result.x, search.best_x) and result.fun == search.best_f == sphere(result.x)
    assert (result.nfev, result.nit, result.nfailed) == (search.nfev, search.nit, 0)
    assert np.array_equal(result.xmean, search.mean) and np.array_equal(result.stds, search.stds)
    assert result.stop == search.stop() and list(result.stop) == ["target"]
    assert result.x.flags.writeable and type(result.fun) is float and type(result.success) is bool


def test_the_best_point_cannot_be_written() -> None:
    search = searcher()
    generation(search)
    assert search.best_x is not None
    with pytest.raises(ValueError, match="read-only"):
        search.best_x[0] = 0.0


def test_the_best_point_is_the_best_of_all() -> None:
    search = searcher()
    X = np.concatenate([generation(search, valley) for _ in range(40)])
    values = [valley(x) for x in X]
    assert search.best_f == min(values) and np.array_equal(search.best_x, X[np.argmin(values)])


def test_a_result_before_any_value_is_where_the_search_begins() -> None:
    result = searcher().result
    assert np.array_equal(result.x, [1, 2, 3]) and math.isnan(result.fun)
    assert (result.success, result.status, result.nfev, result.nit) == (False, -1, 0, 0)
    assert result.message == "The search is still running. No value was told yet. Structure 'full' was chosen"


REASONS = [
    ({}, -1, False),
    ({"tolx": ""}, 0, True),
    ({"tolx": "", "resolution": ""}, 3, False),
    ({"divergence": "", "tolfun": ""}, 3, False),
    ({"failed": "", "tolx": "", "max_evals": ""}, 2, False),
    ({"tolfun": ""}, 0, True),
    ({"target": ""}, 1, True),
    ({"max_evals": ""}, 2, False),
    ({"max_iters": ""}, 2, False),
    ({"max_time": ""}, 2, False),
    ({"stagnation": ""}, 3, False),
    ({"failed": ""}, 3, False),
    ({"divergence": ""}, 3, False),
    ({"max_evals": "", "target": ""}, 1, True),
    ({"max_evals": "", "tolfun": ""}, 0, True),
    ({"stagnation": "", "max_time": ""}, 2, False),
]


@pytest.mark.parametrize(("reasons", "status", "success"), REASONS)
def test_status_and_success_follow_from_the_reasons(
    reasons: dict[str, str], status: int, success: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status_of(reasons) == status
    search = searcher()
    generation(search)
    monkeypatch.setattr(search, "stop", lambda: reasons)
    assert (search.result.status, search.result.success) == (status, success)


def test_the_message_names_the_reasons_as_they_are_spelled() -> None:
    message = run(searcher(max_evals=20, structure="diagonal")).result.message
    assert message == "max_evals: 20 evaluations were made, max_evals is 20"


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (3, "Structure 'full' was chosen"),
        (1200, "Structure 'frame' was chosen"),
    ],
)
def test_the_message_names_the_structure_that_auto_chose(dim: int, text: str) -> None:
    search = Searcher(np.ones(dim), 0.5, rng=1)
    assert text in search.result.message
    assert text not in Searcher(np.ones(dim), 0.5, structure="block_triangular").result.message


def test_repr_says_what_the_search_is_and_how_far() -> None:
    search = searcher()
    assert repr(search) == "<Searcher over 3 coordinates, Full(dim=3), popsize 7: no values yet>"
    search = searcher(structure="diagonal")
    search.tell([[1, 2, 3]] * 7000, np.full(7000, 2.5))
    text = "<Searcher over 3 coordinates, Diagonal(dim=3), popsize 7: 7,000 evaluations, best value 2.5>"
    assert repr(search) == text
    assert "Frame(dim=1200" in repr(Searcher(np.ones(1200), 0.5))


def test_what_is_known_has_the_right_meaning() -> None:
    cov0 = np.diag([1.0, 4.0, 16.0])
    search = searcher(cov0=cov0, sigma0=0.5)
    assert np.allclose(search.stds, [0.5, 1.0, 2.0]) and search.sigma == pytest.approx(1.0)
    assert search.axis_ratio == pytest.approx(4.0) and search.dim == 3
    assert np.array_equal(search.mean, [1, 2, 3]) and 0 <= search.seconds < 60


def test_the_stds_are_those_of_the_points() -> None:
    search: Any = searcher(bounds=(0, 8))
    for _ in range(5):
        generation(search, valley)
    assert np.allclose(search.ask(40_000).std(axis=0), search.stds, rtol=0.1)


@pytest.mark.parametrize(
    "f", [lambda x: 1.0, lambda x: (x[0] - 1e20) ** 2, lambda x: math.inf], ids=["one", "large", "infinite"]
)
def test_a_function_that_is_constant_to_rounding_is_no_success(f: Any) -> None:
    result = esgroup.minimize(f, [1.0, 1.0, 1.0], 0.5, rng=1)
    assert "flat" in result.stop and not result.success


def test_a_search_that_ends_on_a_plateau_is_a_success() -> None:
    result = esgroup.minimize(lambda x: np.round(x @ x, 1), [1.0, 1.0, 1.0], 0.5, rng=1)
    assert "tolfun" in result.stop and "flat" not in result.stop and result.success
