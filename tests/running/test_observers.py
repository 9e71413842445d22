"""Observers: what they are told of a run of each kind and in which order, and what a stranger's costs."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

import esgroup
from esgroup.running.history import read
from esgroup.running.observers import watched


class BestPoints(esgroup.Observer):
    """Keeps the best point of all values so far, once for each generation: all that a stranger writes."""

    def begins(self, run: Any) -> None:
        self.points: list[Any] = []

    def generation(self, run: Any) -> None:
        self.points.append((run.nfev, run.best_f, run.best_x))


class Diary(esgroup.Observer):
    """Notes events in the order in which they come."""

    def __init__(self, ends_after: int = 10**9) -> None:
        self.events: list[Any] = []
        self.ends_after = ends_after

    def begins(self, run: Any) -> None:
        self.events.append(("begins", run.nit))

    def generation(self, run: Any) -> bool:
        self.events.append(run.nit)
        return run.nit >= self.ends_after

    def ends(self, run: Any, error: BaseException | None) -> None:
        self.events.append(("ends", run.nit, type(error)))


def searched(fun: Any = rosen, **options: Any) -> Any:
    return esgroup.minimize(fun, np.zeros(3), 0.5, popsize=10, rng=1, **options)


def newton(fun: Any = rosen, **options: Any) -> Any:
    return esgroup.newton.minimize_newton(fun, np.zeros(3), jac=rosen_der, rng=1, **options)


def fitted(fun: Any = rosen, **options: Any) -> Any:
    return esgroup.fit_posterior(lambda x: -fun(x), np.zeros(3), rng=1, samples=4, **options)


RUNS = pytest.mark.parametrize("run", [searched, newton, fitted])


def test_an_observer_keeps_the_best_points_of_all_generations_in_memory(tmp_path: Path) -> None:
    best, path = BestPoints(), tmp_path / "h.jsonl"
    result = searched(max_evals=500, restarts="ipop", callback=best, history=path)
    assert [value for _, value, _ in best.points] == read(path).best_f.tolist()
    assert [nfev for nfev, _, _ in best.points] == read(path).nfev.tolist()
    assert all(rosen(x) == value for _, value, x in best.points)
    assert np.array_equal(best.points[-1][2], result.x)


@RUNS
def test_every_kind_of_run_tells_of_its_beginning_its_generations_and_its_end(run: Any) -> None:
    diary = Diary()
    run(callback=diary, max_iters=3)
    assert diary.events == [("begins", 0), 1, 2, 3, ("ends", 3, type(None))]


@RUNS
def test_an_observer_ends_the_run_with_a_true_value(run: Any) -> None:
    diary = Diary(ends_after=2)
    result = run(callback=diary)
    assert diary.events == [("begins", 0), 1, 2, ("ends", 2, type(None))]
    assert result.nit == 2 and "stopped by the callback" in result.message


def test_one_observer_is_enough_to_end_the_run(tmp_path: Path) -> None:
    observed = {"callback": Diary(ends_after=2), "history": tmp_path / "h.jsonl", "checkpoint": tmp_path / "c.npz"}
    assert searched(max_iters=4, **observed).nit == 2


@RUNS
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), None], ids=["exception", "Ctrl-C"])
def test_what_ends_the_run_reaches_the_observer_and_carries_the_result(run: Any, error: Exception | None) -> None:
    calls, diary = [], Diary()

    def fails(x: Any) -> float:
        calls.append(x)
        if len(calls) == 57:
            if error is not None:
                raise error
            signal.raise_signal(signal.SIGINT)
        return float(rosen(x))

    kind = KeyboardInterrupt if error is None else type(error)
    with pytest.raises(kind) as caught:
        run(fails, callback=diary)
    nit = caught.value.result.nit  # type: ignore[attr-defined]
    assert diary.events == [("begins", 0), *range(1, nit + 1), ("ends", nit, kind)]


def test_without_generations_there_is_an_event_after_every_popsize_values() -> None:
    diary = Diary()
    with ThreadPoolExecutor(2) as pool:
        searched(max_evals=25, executor=pool, asynchronous=True, callback=diary)
    assert [event for event in diary.events if isinstance(event, int)] == [1, 2]
    assert [diary.events[0][0], diary.events[-1][0]] == ["begins", "ends"]


def test_an_observer_that_fails_at_the_beginning_prevents_the_run_and_others_end() -> None:
    class Refuses(Diary):
        def begins(self, run: Any) -> None:
            raise OSError("no room")

    calls: list[Any] = []
    first = Diary()
    with pytest.raises(OSError, match="no room"), watched(esgroup.Searcher([0.0], 1.0), first, Refuses()):
        calls.append("inside")
    with pytest.raises(OSError, match="no room") as caught:
        searched(lambda x: calls.append(x) or 1.0, callback=Refuses())
    assert not calls and not hasattr(caught.value, "result")
    assert first.events == [("begins", 0), ("ends", 0, OSError)]


def test_the_checkpoint_has_the_last_generation_that_an_observer_has_seen(tmp_path: Path) -> None:
    class Fails(Diary):
        def generation(self, run: Any) -> bool:
            super().generation(run)
            if run.nit == 4:
                raise ZeroDivisionError
            return False

    path = tmp_path / "run.npz"
    with pytest.raises(ZeroDivisionError) as caught:
        searched(callback=Fails(), checkpoint=path)
    assert esgroup.Searcher.load(path).nit == 4 == caught.value.result.nit  # type: ignore[attr-defined]


def test_a_search_in_a_loop_of_ones_own_has_observers_too() -> None:
    search, diary = esgroup.Searcher(np.zeros(3), 0.5, rng=1, max_iters=2), Diary()
    with watched(search, diary):
        while not search.stop():
            search.tell([rosen(x) for x in search.ask()])
            diary.generation(search)
    assert diary.events == [("begins", 0), 1, 2, ("ends", 2, type(None))]


@RUNS
@pytest.mark.parametrize("callback", [5, Diary], ids=["a number", "a class"])
def test_a_callback_that_is_no_function_and_no_observer_is_refused(run: Any, callback: Any) -> None:
    with pytest.raises(TypeError, match=r"callback must be a function of a \w+ or an Observer, got .*(5|Diary)"):
        run(callback=callback)
