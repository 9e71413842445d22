"""Restarts in a loop of ask and tell: counts of all runs, late values, files, and what does not carry over."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup import Choice, Integer, Real, Searcher, Space
from esgroup.distributions.mixture import Mixture
from esgroup.restarts import BIPOP, IPOP, Plan, Schedule
from esgroup.stopping import TolX
from tests.driver.support import Recorder, rastrigin, same
from tests.search.test_strangers import OnePlusOne

X0 = np.array([1.0, 2.0, -1.0])


def by_hand(fun: Any, search: Searcher, generations: int = 10**6) -> Searcher:
    for _ in range(generations):
        if search.stop():
            break
        search.tell([fun(x) for x in search.ask()])
    return search


@pytest.mark.parametrize("kind", ["ipop", "bipop", IPOP(3)])
def test_a_loop_of_ask_and_tell_restarts_as_minimize_does(kind: Any) -> None:
    fun, other = Recorder(rastrigin), Recorder(rastrigin)
    result = esgroup.minimize(fun, X0, 0.5, rng=4, restarts=kind, max_iters=400)
    search = by_hand(other, Searcher(X0, 0.5, rng=4, restarts=kind, max_iters=400))
    assert same(fun.points, other.points) and search.restart == result.restarts >= 2
    found = search.result
    assert (found.fun, found.nfev, found.nit, found.restarts) == (result.fun, result.nfev, result.nit, result.restarts)
    assert found.message == result.message and found.stop == result.stop
    assert np.array_equal(found.x, result.x) and np.array_equal(found.stds, result.stds)


def test_counts_and_the_best_point_are_those_of_all_runs() -> None:
    fun = Recorder(rastrigin)
    search = by_hand(fun, Searcher(X0, 0.5, rng=4, restarts=IPOP(2)))
    values = [rastrigin(x) for x in fun.points]
    assert search.restart == 2 and search.nfev == len(values) and search.best_f == min(values)
    assert np.array_equal(search.best_x, fun.points[int(np.argmin(values))])
    assert search.popsize == 4 * Searcher(X0, 0.5).popsize and "restarts" in search.stop()


def test_a_stop_is_only_an_answer() -> None:
    """However often it is asked, before and after a run has ended, the search is the same."""
    fun, other = Recorder(rastrigin), Recorder(rastrigin)
    one, two = (Searcher(X0, 0.5, rng=4, restarts="bipop", max_iters=300) for _ in range(2))
    while not one.stop():
        one.tell([fun(x) for x in one.ask()])
    while not two.stop():
        X = two.ask()
        two.stop()
        values = [other(x) for x in X]
        two.stop()
        two.tell(values)
        two.stop()
        two.stop()
    assert same(fun.points, other.points) and one.restart == two.restart > 0


def test_a_loop_that_never_asks_whether_to_stop_restarts_all_the_same() -> None:
    fun, other = Recorder(rastrigin), Recorder(rastrigin)
    by_hand(fun, one := Searcher(X0, 0.5, rng=4, restarts="ipop"), 300)
    two = Searcher(X0, 0.5, rng=4, restarts="ipop")
    for _ in range(300):
        two.tell([other(x) for x in two.ask()])
    assert same(fun.points, other.points) and one.restart == two.restart > 0


@pytest.mark.parametrize("kind", ["ipop", "bipop"])
def test_a_saved_search_goes_on_through_its_runs(kind: Any, tmp_path: Path) -> None:
    """Saved in every run, before and after it has ended, with points of the run before that are out."""
    whole = Searcher(X0, 0.5, rng=4, restarts=kind, max_iters=400, cov0=np.diag([1.0, 2.0, 3.0]))
    parts = Searcher(X0, 0.5, rng=4, restarts=kind, max_iters=400, cov0=np.diag([1.0, 2.0, 3.0]))
    for i in range(400):
        for search in (whole, parts):
            search.stop()
            X = search.ask()
            late = i % 7 == 3
            search.tell(X[late:], [rastrigin(x) for x in X[late:]])
        if i % 29 == 0:
            parts.save(tmp_path / "run.npz")
            parts = Searcher.load(tmp_path / "run.npz")
        assert parts.restart == whole.restart and parts.best_f == whole.best_f
        assert np.array_equal(parts.mean, whole.mean) and parts.nit == whole.nit
    assert whole.restart >= 1 and parts.stop() == whole.stop()


def test_values_of_an_earlier_run_count_and_may_be_the_best_but_move_nothing() -> None:
    search = Searcher(X0, 0.5, rng=1, restarts="ipop")
    out = search.ask(3)
    while search.restart == 0:
        search.tell([1.0 for _ in search.ask()])
    X = search.ask()
    before, nfev, used = [part.copy() for part in search.state], search.nfev, search.nfev - search.ledger.began.nfev
    search.tell(out, [-1.0, np.nan, -3.0])
    assert all(map(np.array_equal, before, search.state)) and not search.ledger.pool
    assert (search.nfev, search.nfailed, search.best_f) == (nfev + 3, 1, -3.0)
    assert np.array_equal(search.best_x, out[2]) and search.nfev - search.ledger.began.nfev == used
    search.tell(X, np.arange(float(len(X))))
    assert not all(map(np.array_equal, before, search.state)) and min(search.record.best) == 0.0


def test_a_search_over_names_and_a_stranger_in_a_box_restart_too() -> None:
    space = Space({"a": Real(-3, 3, shape=2), "n": Integer(1, 9), "c": Choice("x", "y")})
    flat = by_hand(lambda p: 1.0, Searcher(space, rng=1, restarts=IPOP(1)))
    assert flat.restart == 1 and set(flat.ask()[0]) == {"a", "n", "c"}
    stranger = by_hand(lambda x: 1.0, Searcher(OnePlusOne(), rng=1, bounds=(-4, 9), restarts=IPOP(1)))
    assert stranger.restart == 1


def test_what_cannot_begin_elsewhere_is_refused_by_name() -> None:
    basins = Mixture.spread(2, mean=np.zeros(2), sigma0=1.0, rng=1)
    with pytest.raises(ValueError, match=r"restarts need a search that can start elsewhere.*Mixture"):
        Searcher(basins, restarts="ipop")
    with pytest.raises(ValueError, match=r"restarts must be None, 'ipop', 'bipop'.* got 'tpop'"):
        Searcher(X0, restarts="tpop")  # type: ignore[arg-type]


class Twice:
    """A restart strategy of one's own."""

    def next(self, schedule: Schedule, evals: int, rng: np.random.Generator) -> tuple[Schedule, Plan] | None:
        if schedule.doublings == 2:
            return None
        return schedule._replace(doublings=schedule.doublings + 1), Plan(5, 0.1)


def test_a_restart_strategy_of_ones_own_is_given_again_with_its_file(tmp_path: Path) -> None:
    search = by_hand(rastrigin, Searcher(X0, 0.5, rng=3, restarts=Twice()), 60)
    search.save(tmp_path / "run.npz")
    alone = by_hand(rastrigin, Searcher.load(tmp_path / "run.npz"))
    again = by_hand(rastrigin, Searcher.load(tmp_path / "run.npz", restarts=Twice()))
    assert alone.restart == search.restart < again.restart == 2
    assert by_hand(rastrigin, search).nfev == again.nfev and again.popsize == 5


def test_runs_of_bipop_have_their_share_in_a_loop_too() -> None:
    search, spans, seen = Searcher(X0, 0.5, rng=4, restarts=BIPOP(4), max_evals=20_000), [0], []
    while not search.stop():
        X = search.ask()
        if len(seen) <= search.restart:
            seen.append((search.popsize, search.runs.plan.max_evals if search.runs else None))
            spans.append(search.nfev)
        search.tell([rastrigin(x) for x in X])
    lengths = np.diff([*spans[1:], search.nfev])
    for (popsize, most), length in zip(seen, lengths, strict=True):
        assert most is None or length < most + popsize
    assert sum(most is not None for _, most in seen) >= 2


def test_a_search_is_saved_between_the_end_of_a_run_and_the_next_one(tmp_path: Path) -> None:
    search = Searcher(X0, 0.5, rng=4, restarts="bipop")
    while not (search.runs and search.runs.is_over):
        search.tell([rastrigin(x) for x in search.ask()])
        assert not search.stop()
    search.save(tmp_path / "run.npz")
    loaded = Searcher.load(tmp_path / "run.npz")
    assert np.array_equal(search.ask(), loaded.ask()) and search.restart == loaded.restart == 1


def test_rules_look_at_a_run_after_its_first_generation() -> None:
    search = Searcher(X0, 0.5, rng=4, restarts="ipop", stop=TolX(1e9))
    search.tell([rastrigin(x) for x in search.ask()])
    assert search.stop() == {} and search.restart == 0
    search.ask()
    assert search.restart == 1 and search.stop() == {}
    search.ask()
    assert search.restart == 1
