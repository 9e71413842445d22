"""The sampler for Optuna: what its search is told, and what it asks for."""

import copy
import itertools
import logging
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

import esgroup  # noqa: E402
from esgroup.files.states import flattened  # noqa: E402
from esgroup.optuna import EsgroupSampler  # noqa: E402
from esgroup.optuna.following import ASKED, Following, Run, constraints_of  # noqa: E402
from esgroup.optuna.translation import Number, Translation, searchable  # noqa: E402
from esgroup.strategies.base import INNER, Proposed  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def plane(trial: Any) -> float:
    """A function of two numbers."""
    return (trial.suggest_float("x", -5, 5) - 1) ** 2 + 10 * (trial.suggest_float("y", -5, 5) + 2) ** 2


def mixed(trial: Any) -> float:
    """A function of parameters of every kind."""
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    value = 0.0 if kind == "b" else 3.0
    value += (trial.suggest_float("x", -5, 5) - 1) ** 2 + abs(math.log10(trial.suggest_float("c", 1e-4, 1e4, log=True)))
    value += abs(trial.suggest_int("n", 0, 20) - 7) + abs(trial.suggest_int("k", 1, 1000, log=True) - 10) / 10
    return value + abs(trial.suggest_float("s", 0, 1, step=0.25) - 0.75)


def edge(trial: Any) -> float:
    """x + y, which is at least 4 where `beyond_the_hyperbola` is fulfilled."""
    return float(trial.suggest_float("x", 0, 10) + trial.suggest_float("y", 0, 10))


def beyond_the_hyperbola(trial: Any) -> tuple[float]:
    """The constraint x y >= 4."""
    return (4 - trial.params["x"] * trial.params["y"],)


def mixed_edge(trial: Any) -> float:
    """The same with parameters of other kinds, with trials that fail and such that are pruned."""
    value = edge(trial) + abs(math.log10(trial.suggest_float("c", 1e-4, 1e4, log=True)))
    value += abs(trial.suggest_int("n", 0, 20) - 7) + (trial.suggest_categorical("kind", ["a", "b"]) == "a")
    if trial.number % 10 == 4:
        raise optuna.TrialPruned
    return value / (trial.number % 10 != 7)


def studied(objective: Callable[[Any], Any], n: int, sampler: Any = None, **options: Any) -> Any:
    study = optuna.create_study(sampler=sampler or EsgroupSampler(seed=1), **options)
    study.optimize(objective, n_trials=n)
    return study


def search_of(study: Any, low: float = -5, high: float = 5) -> esgroup.Searcher:
    """The search of a study's sampler, after it was told all trials."""
    trial = study.ask()
    trial.suggest_float("x", low, high)
    study.tell(trial, state=TrialState.FAIL)
    following = study.sampler._following
    assert following is not None
    return following.search


def numbers(search: esgroup.Searcher) -> list[np.ndarray]:
    return [*flattened("state", search.state).values()]


def assert_same(mine: esgroup.Searcher, other: esgroup.Searcher) -> None:
    """Two searches have the same state, with all that they know of constraints."""
    parts = zip(numbers(mine), numbers(other), strict=True)
    parts = itertools.chain(parts, zip(mine.ledger.standing, other.ledger.standing, strict=True))
    for ours, theirs in parts:
        np.testing.assert_array_equal(ours, theirs)


def joined(study: Any, seed: int = 5) -> Any:
    """The same study as another worker sees it."""
    sampler = EsgroupSampler(seed=seed)
    return optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=sampler)


# ---- distributions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-10, 10, step=0.1),
        FloatDistribution(-10.2, 10.2, step=0.1),
        FloatDistribution(0, 0.9, step=0.3),
        IntDistribution(-3, 13, step=4),
        IntDistribution(5, 9),
    ],
)
def test_places_on_a_grid_and_values_determine_each_other(distribution: Any) -> None:
    number = Number(distribution)
    last = number.inner(distribution.high)
    for place in range(last + 1):
        value = number.outer(place)
        assert distribution._contains(distribution.to_internal_repr(value))
        assert number.inner(value) == place
    assert number.outer(last) == pytest.approx(distribution.high)


def test_widths_are_shares_of_ranges() -> None:
    distributions = {
        "r": FloatDistribution(-1, 3),
        "l": FloatDistribution(1e-2, 1e4, log=True),
        "n": IntDistribution(0, 40, step=2),
        "k": IntDistribution(1, 99, log=True),
    }
    space = Translation(distributions, {"r": 0.5, "n": 8}, 0.125).space
    assert (space["r"].width, space["r"].start) == (0.5, 0.5)
    assert space["l"].width == pytest.approx(0.125 * math.log(1e6))
    assert (space["n"].width, space["n"].start, space["n"].upper) == (2.5, 4, 20)
    assert space["k"].width == pytest.approx(0.125 * math.log(199)) and space["k"].log


def test_equal_options_are_no_obstacle() -> None:
    """Optuna itself takes True for 1 if both are options."""
    study = studied(lambda trial: float(trial.suggest_categorical("b", [1, True, 1.0, None]) is not None), 60)
    assert [trial.params["b"] for trial in study.trials[40:]].count(None) > 10


@pytest.mark.parametrize(
    ("distribution", "wanted"),
    [
        (IntDistribution(0, 2**53), True),
        (IntDistribution(0, 2**60), False),
        (FloatDistribution(-1e308, 1e308), False),
        (FloatDistribution(0, 1e9, step=1e-9), False),
        (FloatDistribution(2, 2), False),
        (CategoricalDistribution([1]), False),
        (CategoricalDistribution([1, 2]), True),
    ],
)
def test_what_cannot_be_searched_is_left_to_the_independent_sampler(distribution: Any, wanted: bool) -> None:
    assert searchable(distribution) is wanted


def test_parameters_with_one_value_are_no_obstacle() -> None:
    def objective(trial: Any) -> float:
        return plane(trial) + trial.suggest_int("one", 3, 3) + trial.suggest_float("same", 2.0, 2.0)

    study = studied(objective, 30)
    assert set(study.sampler._following.translation.space.names) == {"x", "y"}


# ---- what is told -------------------------------------------------------------------------------------------------


def test_a_study_is_ask_and_tell_by_hand() -> None:
    """The search of a study that continued trial by trial is a Searcher over the same space, told the same."""
    study = studied(plane, 41)
    space = esgroup.Space({name: esgroup.Real(-5.0, 5.0, width=1 / 6 * 10) for name in "xy"})
    search = esgroup.Searcher(space)
    first = study.trials[0]
    search.tell([first.params], [first.value])
    first = {0: 1}
    for trial in study.trials[1:]:
        at = first.setdefault(search.nit, trial.number)
        block, row = divmod(trial.number - at, search.popsize)
        rng = np.random.default_rng([1, search.nit, at, block])
        drawn = search.strategy.sample(search.state, search.popsize, rng)
        assert search.strategy.domain.to_user(drawn.points)[row] == trial.params
        part = slice(row, row + 1)
        tags = None if drawn.tags is None else drawn.tags[part]
        search.ledger.hand_out(Proposed(drawn.points[part].copy(), drawn.local[part].copy(), tags))
        search.tell([trial.params], [trial.value])


def test_to_maximize_is_to_minimize_the_negative() -> None:
    low = studied(mixed, 40)
    high = studied(lambda trial: -mixed(trial), 40, direction="maximize")
    assert [trial.params for trial in low.trials] == [trial.params for trial in high.trials]


def test_failed_trials_are_told_as_failed_and_pruned_ones_as_worst() -> None:
    """A fifth fails and a fifth is pruned, good or not: of ten seeds the median is 4e-4 after 300 trials."""

    def objective(trial: Any) -> float:
        value = plane(trial)
        if trial.number % 5 == 3:
            raise ValueError("a crash")
        if trial.number % 5 == 4:
            trial.report(-1e9, 0)  # far better than any value: no search must go by it
            raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    study.optimize(objective, n_trials=300, catch=ValueError)
    search = search_of(study)
    assert (search.nfev, search.nfailed) == (300, 60)
    assert search.best_f == study.best_value < 1e-3


def test_trials_that_fail_at_random_cost_little() -> None:
    def objective(trial: Any) -> float:
        return plane(trial) / (trial.number % 5 != 3)

    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    study.optimize(objective, n_trials=200, catch=ZeroDivisionError)
    assert study.best_value < 1e-3


def test_bad_trials_that_are_pruned_cost_nothing() -> None:
    seen: list[float] = []

    def objective(trial: Any) -> float:
        value = plane(trial)
        if seen and value > np.quantile(seen[-10:], 0.7):
            trial.report(-1e9, 0)
            raise optuna.TrialPruned
        seen.append(value)
        return value

    study = studied(objective, 200)
    assert sum(trial.state == TrialState.PRUNED for trial in study.trials) > 40
    assert study.best_value < 1e-5


def test_infinite_values_have_their_rank() -> None:
    study = studied(lambda trial: math.inf if plane(trial) > 50 else plane(trial), 100)
    assert study.best_value < 1e-2 and search_of(study).nfev == 100


def test_trials_of_users_and_of_other_samplers_are_told() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(plane, n_trials=7)
    study.sampler = EsgroupSampler(seed=1)
    study.enqueue_trial({"x": 1.0, "y": -2.0})
    study.enqueue_trial({"x": 0.5})  # the other one is searched
    study.optimize(plane, n_trials=10)
    distributions = dict.fromkeys("xy", FloatDistribution(-5, 5))
    study.add_trial(optuna.create_trial(params={"x": 4.0, "y": 4.0}, distributions=distributions, value=9.0))
    search = search_of(study)
    assert search.nfev == 18 and search.best_f == 0.0
    assert study.trials[8].params["x"] == 0.5 and study.trials[8].params["y"] != study.trials[7].params["y"]


def test_a_trial_that_lacks_a_parameter_is_not_told() -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float("x", -5, 5)
        if trial.number == 6:
            raise optuna.TrialPruned
        return plane(trial)

    assert search_of(studied(objective, 20)).nfev == 19


def test_another_space_is_another_search_that_knows_all_trials() -> None:
    def objective(trial: Any) -> float:
        return trial.suggest_float("x", -5, 5) ** 2 + (trial.suggest_float("y", -5, 5) ** 2 if trial.number < 30 else 0)

    study = studied(objective, 60)
    assert study.sampler._following.translation.space.names == ("x",)
    assert search_of(study).nfev == 60
    assert study.best_value < 1e-3


def test_one_sampler_in_several_threads_is_told_every_trial_once() -> None:
    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    study.optimize(plane, n_trials=60, n_jobs=3)
    assert search_of(study).nfev == 60
    assert len({(trial.params["x"], trial.params["y"]) for trial in study.trials[3:60]}) == 57


# ---- several workers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [plane, mixed])
def test_a_worker_that_joins_has_exactly_the_search_of_the_first(objective: Callable[[Any], float]) -> None:
    study = studied(objective, 57)
    mine, theirs = search_of(study), search_of(joined(study))
    assert mine.nit == theirs.nit > 3
    for ours, other in zip(numbers(mine), numbers(theirs), strict=True):
        np.testing.assert_array_equal(ours, other)


def interleaved(workers: list[Any], objective: Callable[[Any], float], n: int, seed: int = 3) -> None:
    """Trials that end in a random order, each on the worker that has asked for it."""
    rng, out = np.random.default_rng(seed), {}
    for _ in range(n):
        w = int(rng.integers(len(workers)))
        if w in out:
            workers[w].tell(*out.pop(w))
        trial = workers[w].ask()
        out[w] = trial, objective(trial)
    for w, told in out.items():
        workers[w].tell(*told)


def test_workers_have_the_same_search_and_ask_for_different_points() -> None:
    study = optuna.create_study(sampler=EsgroupSampler(seed=7))
    workers = [study, joined(study, 7), joined(study, 7)]  # with the same seed
    interleaved(workers, plane, 80)
    first, *others = [search_of(worker) for worker in workers]
    for other in others:
        for mine, theirs in zip(numbers(first), numbers(other), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    points = [(trial.params["x"], trial.params["y"]) for trial in study.trials if "y" in trial.params]
    assert len(set(points)) == len(points) == 80


def test_workers_with_a_sampler_each_are_as_good_as_with_one_for_all() -> None:
    """They ask for the same points."""
    params = []
    for alone in (True, False):
        study = optuna.create_study(sampler=EsgroupSampler(seed=7))
        others = [joined(study, 7) for _ in range(3)]
        for other in others:
            other.sampler = EsgroupSampler(seed=7) if alone else study.sampler
        interleaved([study, *others], mixed, 60)
        params.append([trial.params for trial in study.trials])
    assert params[0] == params[1]


def test_trials_that_turn_up_out_of_order_are_put_in_order() -> None:
    """Of two workers one sees a trial late, as with clocks that differ: in the end it has the same search."""
    study = studied(plane, 40)
    other = joined(study)
    plain = other.get_trials
    hidden = {17, 23}

    def get_trials(deepcopy: bool = True, states: Any = None) -> Any:
        found = plain(deepcopy=True)
        for number in hidden:
            found[number].state = TrialState.RUNNING
        return found

    other.get_trials = get_trials
    search_of(other)
    del other.get_trials
    study.optimize(plane, n_trials=10)
    for mine, theirs in zip(numbers(search_of(study)), numbers(search_of(other)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_four_workers_converge_like_one() -> None:
    def sphere(trial: Any) -> float:
        return sum((trial.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(4))

    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    interleaved([study, *(joined(study, seed) for seed in range(3))], sphere, 250)
    assert study.best_value < 1e-4


def test_a_study_goes_on_from_a_file(tmp_path: Any) -> None:
    def storage() -> Any:
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal")))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(storage=storage(), study_name="s", sampler=EsgroupSampler(seed=1))
        study.optimize(mixed, n_trials=30)
        again = optuna.load_study(storage=storage(), study_name="s", sampler=EsgroupSampler(seed=2))
    mine, theirs = search_of(study), search_of(again)
    for ours, other in zip(numbers(mine), numbers(theirs), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_a_copy_of_a_sampler_asks_for_the_same_points() -> None:
    study = studied(plane, 25)
    twins = [copy.deepcopy(study) for _ in range(2)]
    twins[1].sampler = pickle.loads(pickle.dumps(study.sampler))
    for twin in twins:
        twin.optimize(plane, n_trials=20)
    one, two = ([trial.params for trial in twin.trials[25:]] for twin in twins)
    assert one == two


def test_a_sampler_that_is_reseeded_begins_elsewhere() -> None:
    one, two = EsgroupSampler(seed=1), EsgroupSampler(seed=1)
    two.reseed_rng()
    assert studied(plane, 5, one).trials[2].params != studied(plane, 5, two).trials[2].params


# ---- one search after another -------------------------------------------------------------------------------------


def test_a_search_that_has_ended_is_followed_by_one_with_twice_the_population() -> None:
    study = optuna.create_study(sampler=EsgroupSampler(seed=1, popsize=4))
    other = joined(study)
    other.sampler = EsgroupSampler(seed=2, popsize=4)
    study.optimize(lambda trial: trial.suggest_int("x", 0, 2) * 0.0, n_trials=300)
    runs = [trial.system_attrs[ASKED][1] for trial in study.trials[1:]]
    assert runs == sorted(runs) and runs[-1] >= 1
    following = study.sampler._following
    assert following.search.popsize == 4 * 2 ** runs[-1]
    other.optimize(lambda trial: trial.suggest_int("x", 0, 2) * 0.0, n_trials=1)
    assert other.sampler._following.run == following.run
    assert other.trials[-1].system_attrs[ASKED][1:3] == list(following.run[:2])
    assert following.search.nfev + 1 >= other.sampler._following.search.nfev  # trials of older searches are not told


def test_of_two_searches_begun_at_once_the_first_remains() -> None:
    study = studied(plane, 12)
    one, two = joined(study, 1), joined(study, 2)
    search_of(one), search_of(two)
    for worker, seed in ((one, 11), (two, 22)):
        worker.sampler._following.begin(Run(1, seed, len(worker.trials)))
        worker.optimize(plane, n_trials=1)
    one.optimize(plane, n_trials=1)
    two.optimize(plane, n_trials=1)
    assert one.sampler._following.run == two.sampler._following.run
    assert one.sampler._following.run.seed == 11


def test_without_restarts_a_search_goes_on() -> None:
    sampler = EsgroupSampler(seed=1, popsize=4, restarts=False)
    study = studied(lambda trial: trial.suggest_int("x", 0, 2) * 0.0, 150, sampler)
    assert {trial.system_attrs[ASKED][1] for trial in study.trials[1:]} == {0}


# ---- the rest -----------------------------------------------------------------------------------------------------


def test_every_kind_of_parameter_is_found() -> None:
    best = studied(mixed, 400).best_trial
    assert best.params["kind"] == "b" and best.params["n"] == 7 and best.params["s"] == 0.75
    assert best.value < 0.3


def test_a_search_starts_where_it_is_told_to() -> None:
    start = {"x": 4.0, "y": -4.5}
    study = studied(plane, 30, EsgroupSampler(start, 1e-3, seed=1, popsize=29))
    asked = np.array([[trial.params["x"], trial.params["y"]] for trial in study.trials[1:]])
    assert np.abs(asked - [4.0, -4.5]).max() < 0.06  # six standard deviations


def test_several_objectives_are_refused_before_anything_is_evaluated() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=EsgroupSampler())
    with pytest.raises(ValueError, match="one objective, got 2"):
        study.optimize(lambda trial: pytest.fail("it was evaluated"), n_trials=1)


def test_the_start_is_left_to_the_independent_sampler() -> None:
    class Fixed(optuna.samplers.RandomSampler):  # type: ignore[misc, name-defined]
        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> float:
            return {"x": 3.0, "y": 4.0}[name]

    study = studied(plane, 9, EsgroupSampler(seed=1, n_startup_trials=4, independent_sampler=Fixed()))
    given = [(trial.params["x"], trial.params["y"]) == (3.0, 4.0) for trial in study.trials]
    assert given == [True] * 4 + [False] * 5


def test_the_log_says_once_what_is_not_searched() -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("optuna.esgroup")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    try:
        for warns in (True, False):
            sampler = EsgroupSampler(seed=1, warn_independent_sampling=warns)
            studied(lambda trial: trial.suggest_float(f"x{trial.number % 2}", 0, 1), 8, sampler)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert len(said) == 2 and "'x1'" in said[0] and "RandomSampler" in said[0]


def test_a_sampler_may_serve_one_study_after_another() -> None:
    sampler = EsgroupSampler(seed=1)
    for _ in range(2):
        study = studied(plane, 20, sampler)
        assert search_of(study).nfev == 20


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"x0": [1.0]}, TypeError, "x0 must be a mapping"),
        ({"sigma0": 2.0}, ValueError, r"sigma0 .* got 2\.0"),
        ({"seed": -1}, ValueError, "seed"),
        ({"popsize": 1}, ValueError, "popsize"),
        ({"n_startup_trials": -1}, ValueError, "n_startup_trials"),
        ({"restarts": "ipop"}, TypeError, "restarts"),
        ({"independent_sampler": 3}, TypeError, "independent_sampler .* got 3"),
        ({"constraints_func": 3}, TypeError, "constraints_func .* got 3"),
    ],
)
def test_arguments_that_are_not_valid_are_named(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        EsgroupSampler(**options)


def test_constraints_are_stored_as_optuna_has_them() -> None:
    sampler = EsgroupSampler(seed=1, constraints_func=lambda trial: (trial.params["x"] - 1, -1.0))
    study = studied(plane, 5, sampler)
    for trial in study.trials:
        assert list(trial.constraints.values()) == [trial.params["x"] - 1, -1.0]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_minimum_on_a_constraint_is_found(direction: str) -> None:
    sign = 1 if direction == "minimize" else -1
    sampler = EsgroupSampler(seed=1, constraints_func=lambda trial: (trial.params["x"] + 1, -1.0))
    best = studied(lambda trial: sign * plane(trial), 200, sampler, direction=direction).best_trial
    assert best.params["x"] <= -1 and sign * best.value == pytest.approx(4.0, abs=2e-3)


def test_a_minimum_on_a_crooked_constraint_is_found() -> None:
    """Of 12 seeds the median gap is 7e-4; ranked by violations it was 5e-3."""
    gaps = []
    for seed in range(5):
        study = studied(edge, 200, EsgroupSampler(seed=seed, constraints_func=beyond_the_hyperbola))
        gaps.append(study.best_value - 4.0)
    assert min(gaps) >= 0.0 and np.median(gaps) < 0.003 and sorted(gaps)[3] < 0.01


def test_constraints_that_an_objective_sets_count() -> None:
    def objective(trial: Any) -> float:
        value = plane(trial)
        trial.set_constraint("left", trial.params["x"] + 1)
        return value

    study = studied(objective, 200)
    assert study.best_trial.params["x"] <= -1 and study.best_value == pytest.approx(4.0, abs=2e-3)


def test_constraints_are_told_by_name_and_by_place() -> None:
    """Whatever order a storage has them in."""
    system = {"constraints:b": 2.0, "constraints": [5.0, 6.0], "constraints:a": 1.0}
    trial = optuna.create_trial(value=0.0, system_attrs=system)
    assert sorted(constraints_of(trial).items()) == [
        ((-1, "constraints:a"), 1.0), ((-1, "constraints:b"), 2.0), ((0, ""), 5.0), ((1, ""), 6.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "value", "system", "wanted"),
    [
        (TrialState.COMPLETE, 3.0, {"constraints": [1.0], "constraints:a": 2.0}, (-3.0, [2.0, 1.0])),
        (TrialState.COMPLETE, 3.0, {"constraints": [1.0]}, (-3.0, [0.0, 1.0])),  # it has not set its name
        (TrialState.COMPLETE, 3.0, {"constraints:a": 2.0}, (-3.0, [2.0, math.nan])),  # constraints_func was not called
        (TrialState.COMPLETE, 3.0, {"constraints": [1.0], "constraints:a": math.inf}, (math.inf, [0.0, 1.0])),
        (TrialState.COMPLETE, 3.0, {"constraints": [1.0], "constraints:a": -math.inf}, (-3.0, [0.0, 1.0])),
        (TrialState.PRUNED, None, {"constraints": [1.0]}, (math.inf, [0.0, 1.0])),
        (TrialState.PRUNED, 3.0, {}, (math.inf, [0.0, 0.0])),
        (TrialState.FAIL, None, {}, (math.nan, [0.0, 0.0])),
    ],
)
def test_what_is_told_of_a_trial_with_constraints(state: Any, value: Any, system: Any, wanted: Any) -> None:
    following = Following(Translation({"x": FloatDistribution(0, 1)}, {}, 0.2), -1.0, 1, lambda run, m: None)
    following.constraints = ((-1, "constraints:a"), (0, ""))
    trial = optuna.create_trial(state=state, value=value, system_attrs=system)
    np.testing.assert_equal(following._outcome(trial), wanted)


def test_a_study_with_constraints_is_ask_and_tell_by_hand() -> None:
    """The search is a Searcher with as many constraints, told the same; inner points are asked for as well."""
    study = studied(edge, 90, EsgroupSampler(seed=1, constraints_func=beyond_the_hyperbola))
    space = esgroup.Space({name: esgroup.Real(0.0, 10.0, width=1 / 6 * 10) for name in "xy"})
    search = esgroup.Searcher(space, constraints=1, constraint_tol=0.0)
    for trial in study.trials:
        if trial.number:
            _, _, _, generation, tag, local = trial.system_attrs[ASKED]
            assert generation == search.nit
            point = search.strategy.domain.from_user("X", [trial.params])
            search.ledger.hand_out(Proposed(point, np.array([local]), np.array([tag])))
        x, y = trial.params.values()
        search.tell([trial.params], [x + y], constraints=[[4 - x * y]])
    mine = study.sampler._following
    mine.follow(study.trials)
    assert mine.search.constraints == search.constraints  # with the same tolerance
    assert_same(mine.search, search)
    tags = [trial.system_attrs[ASKED][4] for trial in study.trials[1:]]
    generations = [trial.system_attrs[ASKED][3] for trial in study.trials[1:]]
    inner = [generation for generation, tag in zip(generations, tags, strict=True) if tag == INNER]
    assert len(set(inner)) == len(inner) >= 2


@pytest.mark.parametrize("objective", [edge, mixed_edge])
def test_a_worker_that_joins_has_exactly_the_search_with_constraints_of_the_first(
    objective: Callable[[Any], float],
) -> None:
    study = optuna.create_study(sampler=EsgroupSampler(seed=1, constraints_func=beyond_the_hyperbola))
    study.optimize(objective, n_trials=75, catch=ZeroDivisionError)
    searches = [search_of(worker, 0, 10) for worker in (study, joined(study))]
    assert searches[0].nit == searches[1].nit > 4 and searches[0].constraints.number == 1
    assert_same(*searches)


def test_workers_have_the_same_search_with_constraints() -> None:
    def objective(trial: Any) -> float:
        value = edge(trial)
        trial.set_constraint("hyperbola", 4 - trial.params["x"] * trial.params["y"])
        return value

    study = optuna.create_study(sampler=EsgroupSampler(seed=7))
    workers = [study, joined(study, 7), joined(study, 8)]
    interleaved(workers, objective, 120)
    searches = [search_of(worker, 0, 10) for worker in workers]
    for other in searches[1:]:
        assert_same(searches[0], other)
    assert study.best_value - 4 < 0.05


def test_constraints_that_turn_up_late_are_those_of_all_trials() -> None:
    """The search begins anew with them, for a worker that was there and for one that joins, and ends the same."""

    def objective(trial: Any) -> float:
        value = edge(trial)
        if trial.number >= 21:
            trial.set_constraint("hyperbola", 4 - trial.params["x"] * trial.params["y"])
        if trial.number >= 42:
            trial.set_constraint("also", -1.0)
        return value

    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    numbers_of = []
    for n in (20, 20, 30):
        study.optimize(objective, n_trials=n)
        rule = search_of(study, 0, 10).constraints
        numbers_of.append(0 if rule is None else rule.number)
    assert numbers_of == [0, 1, 2]
    mine, theirs = search_of(study, 0, 10), search_of(joined(study), 0, 10)
    assert mine.nfev == theirs.nfev == 70
    assert_same(mine, theirs)


def test_a_constraint_of_one_option_leaves_the_others_alone() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["free", "bound"])
        x = trial.suggest_float("x", -5, 5)
        if kind == "bound":
            trial.set_constraint("x", 2 - x)
            return x**2
        return x**2 + 1

    best = studied(objective, 150).best_trial
    assert best.params["kind"] == "free" and best.value < 1.01


def test_choices_alone_may_have_constraints() -> None:
    def objective(trial: Any) -> float:
        places = [trial.suggest_categorical(name, [0, 1, 2, 3]) for name in "abc"]
        trial.set_constraint("sum", 5.0 - sum(places))
        return float(sum((i + 1) * place for i, place in enumerate(places)))

    found = [studied(objective, 200, EsgroupSampler(seed=seed)).best_trial for seed in range(5)]
    assert sum(best.value == 7.0 and list(best.params.values()) == [3, 2, 0] for best in found) >= 4


def test_a_search_with_constraints_that_has_ended_is_followed_by_another_with_them() -> None:
    def objective(trial: Any) -> float:
        trial.set_constraint("one", trial.suggest_int("x", 0, 2) - 1.0)
        return 0.0

    study = studied(objective, 300, EsgroupSampler(seed=1, popsize=4))
    following = study.sampler._following
    assert following.run.number >= 1 and following.search.popsize > 4 and following.search.constraints.number == 1
