"""Rules of users: tolerances, functions, classes, what is composed of them, and where they may be given."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Choice, Real, Searcher, Space
from esgroup.restarts import IPOP
from esgroup.stopping import MaxEvals, MaxIters, MaxTime, Rule, Stagnation, Target, TolFun, TolX
from esgroup.stopping.base import Both, Either
from tests.search.support import generation, run, searcher, sphere, valley
from tests.stopping.strangers import Quiet, enough


def five(search: Searcher) -> str | None:
    return "five is enough" if search.nit >= 5 else None


def never(search: Searcher) -> bool:
    return False


def always(search: Searcher) -> bool:
    return True


# ---- tolerances ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_tolx_holds_as_soon_as_all_standard_deviations_are_below_it(tolerance: float) -> None:
    search, before = searcher(sigma0=[0.5, 50.0, 0.005], stop=TolX(tolerance)), np.inf
    while not search.stop():
        before = search.stds.max()
        generation(search, valley)
    assert before >= tolerance > search.stds.max()
    assert search.stop() == {"tolx": f"the largest standard deviation is {search.stds.max():.3g}, below {tolerance:g}"}
    assert search.result.success and search.result.status == 0


def test_tolfun_compares_the_best_values_of_its_generations_and_all_of_the_last_one() -> None:
    search, span = searcher(stop=TolFun(1e-3)), 10 + 13  # 30 * 3 / 7, rounded up
    best, worst = [], np.inf
    while not search.stop():
        recent = [*best[-span:], worst]
        assert len(best) < span or max(recent) - min(recent) > 1e-3
        values = [sphere(x) + 5.0 for x in search.ask()]
        search.tell(values)
        best, worst = [*best, min(values)], max(values)
    recent = [*best[-span:], worst]
    gap = max(recent) - min(recent)
    assert gap <= 1e-3
    text = f"the values of 23 generations differ by {gap:.3g}, no more than the tolerance 0.001"
    assert search.stop() == {"tolfun": text} and search.result.success


def test_the_worst_value_of_the_last_generation_alone_keeps_tolfun_waiting() -> None:
    search = searcher(stop=TolFun(0.1, generations=3))
    for worst in (1.0, 1.0, 1.0, 1.05):
        assert search.stop() == {}
        search.ask()
        search.tell([0.0] * 6 + [worst])
    assert search.stop() == {}
    search.ask()
    search.tell([0.0] * 6 + [0.1])
    assert list(search.stop()) == ["tolfun"]


def test_the_worst_value_is_compared_with_the_best_of_all_these_generations() -> None:
    search = searcher(stop=TolFun(0.1, generations=3))
    for best, worst in ((0.0, 0.05), (0.04, 0.05), (0.08, 0.15)):
        search.ask()
        search.tell([best] * 6 + [worst])
    assert search.stop() == {}
    search.ask()
    search.tell([0.08] * 6 + [0.14])  # 0.1 above 0.04
    assert list(search.stop()) == ["tolfun"]


def test_a_tolerance_of_zero_leaves_rounding() -> None:
    strict, plain = (run(searcher(**given), lambda x: 1e6 + sphere(x)) for given in ({"stop": TolFun(0)}, {}))
    assert strict.nit == plain.nit and strict.stop() == plain.stop() and "rounding" in plain.stop()["tolfun"]


def test_values_that_never_differed_are_no_success_within_a_tolerance_either() -> None:
    result = esgroup.minimize(lambda x: 1.0, np.ones(3), 0.5, stop=TolFun(1.0, generations=2), rng=1)
    assert list(result.stop) == ["tolfun", "flat"] and result.nit == 2 and not result.success


def test_values_that_are_infinite_are_not_within_a_tolerance_of_finite_ones() -> None:
    search = searcher(stop=TolFun(1e300, generations=2))
    for values in ([0.0] * 6 + [np.inf], [-np.inf] * 7, [0.0] * 7):
        search.ask()
        search.tell(values)
        assert "tolfun" not in search.stop()


def test_stagnation_counts_the_generations_that_it_is_given() -> None:
    search = searcher(stop=Stagnation(40))
    for i in range(41):
        assert ("stagnation" in search.stop()) == (i == 40)
        search.ask()
        search.tell(np.arange(7.0) + (5 if i < 2 else 6))
    assert search.stop()["stagnation"] == "neither the best nor the median value improved in 40 generations"
    assert search.result.status == 3


def test_the_automatic_stagnation_keeps_its_own_answer_beside_that_of_a_user() -> None:
    rng = np.random.default_rng(1)
    reference = run(searcher(), lambda x: float(rng.standard_normal()), 2000)
    rng = np.random.default_rng(1)
    search = run(searcher(stop=Stagnation(10**6)), lambda x: float(rng.standard_normal()), 2000)
    assert search.nit == reference.nit and search.stop() == reference.stop()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: TolX(-1.0), r"tolerance must be at least 0, got -1"),
        (lambda: TolFun(float("nan")), r"tolerance must be a finite number, got nan"),
        (lambda: TolFun(1.0, generations=0), r"generations .* 0"),
        (lambda: Stagnation(1), r"generations .* 1"),
        (lambda: MaxEvals(0), r"max_evals .* 0"),
        (lambda: MaxIters(-1), r"max_iters .* -1"),
        (lambda: MaxTime(0.0), r"max_time .* 0.0"),
        (lambda: Target(float("nan")), r"target .* nan"),
    ],
)
def test_what_a_tolerance_must_be_is_said_where_it_is_made(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


# ---- a user's own -------------------------------------------------------------------------------------------------


def test_a_rule_of_a_stranger_ends_a_run() -> None:
    result = esgroup.minimize(sphere, np.ones(3), 0.5, stop=[Quiet(12)], rng=1)
    assert result.stop == {"quiet": "12 generations brought less than 0.001"}
    assert result.status == 0 and result.success and result.message.startswith("quiet: 12 generations")
    by_hand = run(Searcher(np.ones(3), 0.5, stop=Quiet(12), rng=1))
    assert by_hand.nit == result.nit and by_hand.stop() == result.stop


def test_a_function_is_a_rule_with_its_name() -> None:
    assert run(searcher(stop=enough)).stop() == {"enough": "enough() returned True"}
    search = run(searcher(stop=[enough, five]))
    assert search.stop() == {"five": "five is enough"} and search.result.status == 3 and not search.result.success


def test_a_rule_sees_the_search() -> None:
    seen: list[Any] = []

    def sees(search: Searcher) -> np.bool_:
        seen.append((search.nfev, search.nit, search.best_f, search.seconds, search.sigma, search.feasible))
        return search.stds.max() < 0.1 and search.record.best[-1] < 1e-3  # a bool of NumPy

    result = esgroup.minimize(sphere, np.ones(3), 0.5, stop=sees, rng=1)
    assert seen[0][:2] == (7, 1) and seen[-1][:3] == (result.nfev, result.nit, result.fun)
    assert list(result.stop) == ["sees"] and result.stds.max() < 0.1


def test_a_rule_is_looked_at_after_the_first_generation() -> None:
    search = searcher(stop=always)
    assert search.stop() == {}
    generation(search)
    assert search.stop() == {"always": "always() returned True"}


def test_a_rule_over_a_space_sees_it_too() -> None:
    numbers = Space({"a": Real(-3, 3, start=1), "b": Real(-3, 3)})
    result = esgroup.minimize(lambda p: p["a"] ** 2 + (p["b"] - 1) ** 2, numbers, stop=TolX(1e-2), rng=1)
    assert list(result.stop) == ["tolx"] and result.success and 1e-4 < result.stds["a"] < 1e-2
    mixed = Space({"a": Real(-3, 3, start=1), "k": Choice("u", "v")})
    result = esgroup.minimize(lambda p: p["a"] ** 2 + (p["k"] != "u"), mixed, stop=enough, rng=1)
    assert result.nit == 7 and list(result.stop) == ["enough"]


def test_with_restarts_a_tolerance_ends_the_run_and_another_one_begins() -> None:
    result = esgroup.minimize(sphere, np.ones(3), 0.5, stop=TolX(0.1), restarts=IPOP(3), rng=1)
    alone = esgroup.minimize(sphere, np.ones(3), 0.5, stop=TolX(0.1), rng=1)
    assert result.restarts == 3 and result.nit > 3 * alone.nit / 2 and list(result.stop) == ["tolx", "restarts"]


@pytest.mark.parametrize("rule", [five, MaxIters(5), TolX(0.1) & five, TolX(1e-9) | five])
def test_with_restarts_all_other_rules_end_the_search(rule: Any) -> None:
    result = esgroup.minimize(sphere, np.ones(3), 1e-3, stop=rule, restarts=IPOP(3), rng=1)
    assert result.restarts == 0 and result.nit == 5 and len(result.stop) == 1


def test_a_tolerance_that_always_holds_ends_with_the_restarts() -> None:
    result = esgroup.minimize(sphere, np.ones(3), 0.5, stop=TolX(1e9), restarts="bipop", max_evals=500, rng=1)
    assert result.restarts > 3 and result.nfev <= 500 and result.stop


def test_an_exception_in_a_rule_reaches_the_caller() -> None:
    def broken(search: Searcher) -> bool:
        raise ArithmeticError("in the rule")

    with pytest.raises(ArithmeticError, match="in the rule"):
        esgroup.minimize(sphere, np.ones(3), 0.5, stop=broken, rng=1)


def test_what_is_no_rule_is_refused_by_name() -> None:
    for given in (3, None, "tolx", [enough, 1e-6], TolX, lambda search: True):
        for call in (Searcher, lambda *args, **options: esgroup.minimize(sphere, *args, **options)):
            with pytest.raises(TypeError, match=r"stop must be a rule .*esgroup.stopping.*function.*, got"):
                call(np.ones(3), 0.5, stop=given)

    def odd(search: Searcher) -> Any:
        return 0.5

    search = searcher(stop=odd)
    generation(search)
    with pytest.raises(TypeError, match=r"odd\(\), passed as stop, must return .*, got 0.5"):
        search.stop()
    with pytest.raises(ValueError, match=r"stop .*newton"):
        esgroup.minimize(sphere, np.ones(3), method="newton", jac=lambda x: 2 * x, stop=enough)


# ---- composed -----------------------------------------------------------------------------------------------------


def test_both_and_either_have_the_names_of_their_parts() -> None:
    both = run(searcher(stop=TolX(0.1) & MaxEvals(700)))
    assert both.nfev == 700 and both.stds.max() < 0.1
    text = f"the largest standard deviation is {both.stds.max():.3g}, below 0.1"
    assert both.stop() == {"tolx & max_evals": f"{text} and limit of 700 evaluations reached (700 made)"}
    either = run(searcher(stop=TolX(1e-9) | enough))
    assert either.nit == 7 and either.stop() == {"tolx | enough": "enough() returned True"}
    assert run(searcher(stop=five | TolX(1e-9))).stop() == {"five | tolx": "five is enough"}
    nested = run(searcher(stop=(never | MaxIters(9)) & five))
    assert nested.stop() == {"never | max_iters & five": "limit of 9 generations reached (9 made) and five is enough"}


@pytest.mark.parametrize(("first", "second", "both", "either"), [
    (TolX(1.0), MaxEvals(1), 0, 2),
    (TolX(1.0), TolFun(1.0), 0, 0),
    (Target(1.0), MaxTime(1.0), 1, 2),
    (Stagnation(2), TolX(1.0), 0, 3),
])  # fmt: skip
def test_both_are_a_success_if_one_is_and_either_if_all_are(first: Rule, second: Rule, both: int, either: int) -> None:
    assert (first & second).status == both and (first | second).status == either
    assert (first & second) == Both(first, second) and (first | second) == Either(first, second)


def test_the_second_of_both_is_not_looked_at_in_vain() -> None:
    def fails(search: Searcher) -> bool:
        raise AssertionError

    assert run(searcher(stop=never & TolX(1.0) & fails, max_iters=3)).nit == 3


def test_the_status_of_a_composed_rule_is_that_of_the_result() -> None:
    assert run(searcher(stop=TolX(0.1) & enough)).result.success
    assert not run(searcher(stop=TolX(1e-9) | enough)).result.success


# ---- copies and files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda search: pickle.loads(pickle.dumps(search))])
def test_copies_have_the_rules(again: Any) -> None:
    search = searcher(stop=[TolX(1e-3) & enough, Quiet(12)])
    generation(search), search.stop()
    other = again(search)
    assert other.rules == search.rules
    assert run(search).stop() == run(again(other)).stop() != {}


def test_rules_are_given_again_to_a_search_from_a_file(tmp_path: Path) -> None:
    search = searcher(stop=enough)
    generation(search)
    search.save(tmp_path / "run.npz")
    assert Searcher.load(tmp_path / "run.npz").rules == ()
    assert run(Searcher.load(tmp_path / "run.npz", stop=enough)).nit == 7


@pytest.mark.parametrize("restarts", [None, IPOP(2)])
def test_a_resumed_run_ends_as_the_uninterrupted_one(restarts: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"x0": np.ones(3), "sigma0": 0.5, "stop": [Quiet(30), TolX(1e-4)], "restarts": restarts}
    whole = esgroup.minimize(valley, **given, rng=1)
    given |= {"rng": 1, "checkpoint": tmp_path / "run.npz"}
    esgroup.minimize(valley, **given, max_evals=400)
    resumed = esgroup.minimize(valley, **given, max_evals=10**6, resume=True)
    assert (resumed.nfev, resumed.nit, resumed.stop) == (whole.nfev, whole.nit, whole.stop)
    assert np.array_equal(resumed.x, whole.x) and resumed.restarts == whole.restarts


@pytest.mark.parametrize("answer", [True, 5, ["text"]])
def test_a_rule_answers_with_a_text(answer: Any) -> None:
    class Wrong(Rule):
        name = "wrong"

        def look(self, view: Any) -> Any:
            return answer

    with pytest.raises(TypeError, match="rule 'wrong' must return a string, a dict or None, got"):
        esgroup.minimize(lambda x: float(x @ x), [1.0, 2.0], 0.5, stop=Wrong(), rng=1)
