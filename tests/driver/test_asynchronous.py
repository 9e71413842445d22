"""Asynchronous evaluation: values come in any order, and the same order gives the same search."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.restarts import IPOP, Plan
from esgroup.search import ledger, runs
from esgroup.search.searcher import Searcher
from tests.driver.support import X0, Recorder, ellipsoid, same
from tests.driver.test_failures import POPSIZE, hangs_at
from tests.driver.worker_pool_laws import PATIENCE

pytestmark = pytest.mark.usefixtures("no_process_is_left")


class Scripted(Executor):
    """Evaluates at once, and hands values over in an order that does not depend on time.

    When `size` points are held, `together` values are handed over, that of the point order(number held) first; all of
    them after `last` points.
    """

    def __init__(self, order: Callable[[int], int], last: int, size: int = 4, together: int = 1) -> None:
        self.order, self.last, self.size, self.together = order, last, size, together
        self.held: list[tuple[Future[Any], Any]] = []
        self.points: list[Array] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.points.append(args[1].copy())
        self.held.append((future, fn(*args)))
        ready = self.together if len(self.held) == self.size else 0
        for _ in range(len(self.held) if len(self.points) == self.last else ready):
            done, value = self.held.pop(self.order(len(self.held)))
            done.set_result(value)
        assert len(self.held) < self.size
        return future


def first(n: int) -> int:
    return 0


def last(n: int) -> int:
    return n - 1


class TestAsynchronous:
    OPTIONS: ClassVar[dict[str, Any]] = {"rng": 1, "popsize": POPSIZE, "asynchronous": True, "max_pending": 4}

    def search(self, order: Callable[[int], int], together: int = 1, **options: Any) -> tuple[Any, list[Array]]:
        executor = Scripted(order, 60, together=together)
        options = {**self.OPTIONS, "max_evals": 60, "executor": executor, **options}
        return esgroup.minimize(ellipsoid, X0, 0.5, **options), executor.points

    def shuffled(self, seed: int) -> Callable[[int], int]:
        random = np.random.default_rng(seed)
        return lambda n: int(random.integers(n))

    def test_the_same_order_gives_the_same_search(self) -> None:
        for order in (lambda: first, lambda: last, lambda: self.shuffled(1)):
            (one, points), (other, again) = self.search(order()), self.search(order())
            assert same(points, again) and len(points) == 60
            assert (one.fun, one.nfev, one.nit) == (other.fun, other.nfev, other.nit)
            assert np.array_equal(one.x, other.x) and np.array_equal(one.xmean, other.xmean)
            assert one.fun == min(map(ellipsoid, points))
        assert not same(points, self.search(first)[1])  # another order is another search

    def test_it_makes_no_difference_whether_values_arrive_together(self) -> None:
        (one, points), (other, again) = self.search(first, 1), self.search(first, 2)
        assert same(points, again)
        assert np.array_equal(one.xmean, other.xmean)

    @pytest.mark.parametrize("together", [1, 4])
    def test_callback_and_history_come_after_every_popsize_values(self, together: int, tmp_path: Path) -> None:
        seen: list[int] = []
        self.search(first, together, callback=lambda s: seen.append(s.nfev), history=tmp_path / "history")
        assert seen == [POPSIZE * (i + 1) for i in range(10)]
        lines = (tmp_path / "history").read_text().splitlines()
        assert len(lines) == 1 + 10

    def test_a_checkpoint_holds_what_is_out_and_a_resumed_run_evaluates_it_first(self, tmp_path: Path) -> None:
        """The callback ends the run after 12 values, when three more points are out."""
        path = tmp_path / "run.npz"
        stopped, points = self.search(self.shuffled(3), checkpoint=path, callback=lambda s: s.nfev >= 12)
        assert stopped.nfev == 12 and stopped.stop.keys() == {"callback"} and len(points) == 15
        out = [place.point for place in Searcher.load(path).ledger.out]
        assert len(out) == 3 and all(any(np.array_equal(x, y) for y in points) for x in out)
        executor = Scripted(first, 60 - 12)
        options = {**self.OPTIONS, "max_evals": 60, "executor": executor, "checkpoint": path, "resume": True}
        result = esgroup.minimize(ellipsoid, X0, 0.5, **options)
        assert same(executor.points[:3], out)
        assert (result.nfev, len(executor.points)) == (60, 48)

    def test_what_was_out_may_be_continued_by_generations(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        self.search(first, checkpoint=path, callback=lambda s: s.nfev >= 12)
        result = esgroup.minimize(ellipsoid, X0, 0.5, popsize=POPSIZE, checkpoint=path, resume=True, max_evals=60)
        assert result.nfev == 60 and result.fun == ellipsoid(result.x)

    @pytest.mark.parametrize("max_evals", [1, 3, 10, 401, 997])
    def test_evaluations_are_exact_over_restarts(self, max_evals: int, threads: ThreadPoolExecutor) -> None:
        fun = Recorder(lambda x: float(np.floor(np.abs(x)).sum()))  # runs on it end soon
        options: dict[str, Any] = {"restarts": "ipop", "executor": threads, "max_evals": max_evals, "rng": 1}
        result = esgroup.minimize(fun, X0, 0.5, asynchronous=True, **options)
        assert result.nfev == len(fun.points) == max_evals and result.stop.keys() == {"max_evals"}
        assert result.restarts > 0 or max_evals < 997
        assert result.fun == min(map(fun.fun, fun.points))

    def test_what_is_out_when_a_budget_ends_the_search_is_awaited_and_counts(self, threads: ThreadPoolExecutor) -> None:
        calls: list[Array] = []

        def slow(x: Array) -> float:
            calls.append(x)
            time.sleep(0.01)
            return ellipsoid(x)

        seen: list[int] = []
        options = {**self.OPTIONS, "max_iters": 2, "callback": lambda search: seen.append(search.nfev)}
        result = esgroup.minimize(slow, X0, 0.5, executor=threads, **options)
        assert result.stop.keys() == {"max_iters"} and result.nfev == len(calls) > 2 * POPSIZE
        assert seen == [POPSIZE, 2 * POPSIZE, result.nfev]

    def test_a_run_with_a_share_of_the_evaluations_ends_exactly_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runs, "Plan", partial(Plan, max_evals=2 * POPSIZE + 3))
        options = {**self.OPTIONS, "max_pending": 1, "executor": Scripted(first, 60, size=1), "restarts": IPOP(0)}
        result = esgroup.minimize(ellipsoid, X0, 0.5, **options)
        assert result.stop.keys() == {"small_run", "restarts"} and result.nfev == 2 * POPSIZE + 3

    def test_values_that_an_earlier_run_left_out_count_but_move_nothing(self) -> None:
        """The first point is best, and its value arrives when the second run has long begun."""
        searches: list[Searcher] = []

        class Late(Executor):
            held: Future[Any] | None = None
            points: ClassVar[list[Array]] = []

            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                self.points.append(args[1])
                if len(self.points) == 1:
                    self.held = future
                    return future
                future.set_result(fn(*args))
                if searches and searches[-1].popsize > POPSIZE and self.held is not None:
                    self.held.set_result(-5.0)
                    self.held = None
                return future

        executor = Late()
        options: dict[str, Any] = {**self.OPTIONS, "executor": executor, "restarts": IPOP(1), "max_evals": 560}
        flat = lambda x: 1.0 + float(np.floor(np.abs(x)).sum())  # noqa: E731  # runs on it end soon
        result = esgroup.minimize(flat, X0, 0.5, callback=searches.append, **options)
        assert executor.held is None and result.restarts == 1
        assert result.fun == -5.0 and np.array_equal(result.x, executor.points[0])
        assert result.nfev == len(executor.points) == 560
        search = searches[-1]
        assert search.restart == 1 and min(search.record.best) >= 1.0
        assert search.ledger.began.nfev + len(search.record.best) * search.popsize <= 560

    def test_a_target_ends_the_search_at_once_although_another_evaluation_hangs(self, tmp_path: Path) -> None:
        """Its process is ended: a fixture looks."""
        begin = time.monotonic()
        fun = partial(hangs_at, tmp_path, (0,))
        result = esgroup.minimize(fun, X0, 0.5, rng=1, workers=2, asynchronous=True, target=1e9)
        assert time.monotonic() - begin < PATIENCE / 2
        assert result.stop.keys() == {"target"} and result.success
        assert (result.nfev, result.nfailed) == (1, 0)


class Counting(Executor):
    """Evaluates when as many points are out as may be, and takes note of how many that were."""

    def __init__(self, workers: int | None) -> None:
        self.num_workers = workers
        self.out: list[tuple[Future[Any], partial[Any]]] = []
        self.most = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.out.append((future, partial(fn, *args)))
        self.most = max(self.most, len(self.out))
        threading.Timer(0.05, self.answer).start()
        return future

    def answer(self) -> None:
        future, call = self.out.pop(0)
        future.set_result(call())


class TestExecutorsOfUnknownSize:
    OPTIONS: ClassVar[dict[str, Any]] = {"sigma0": 0.5, "rng": 1, "popsize": 6, "max_evals": 40, "asynchronous": True}

    def test_one_that_says_it_under_another_name_is_used_fully(self) -> None:
        executor = Counting(12)
        esgroup.minimize(ellipsoid, X0, **self.OPTIONS, executor=executor)
        assert executor.most == 12

    def test_of_one_that_does_not_say_it_the_user_is_told(self) -> None:
        executor = Counting(None)
        with pytest.warns(UserWarning, match=r"Counting .*how many workers.*popsize.*max_pending=n") as warned:
            esgroup.minimize(ellipsoid, X0, **self.OPTIONS, executor=executor)
        assert executor.most == 6 and warned[0].filename == __file__

    def test_max_pending_says_it(self) -> None:
        executor = Counting(None)
        esgroup.minimize(ellipsoid, X0, **self.OPTIONS, executor=executor, max_pending=12)
        assert executor.most == 12


def test_a_value_of_an_earlier_run_moves_nothing_although_its_point_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "_MOST_OUT", 1)  # of which the ledger remembers two generations all the same
    search = Searcher(np.zeros(3), 0.5, popsize=4, restarts="ipop", rng=1)

    def place() -> ledger.PendingPoint:
        search.ask(1)
        return search.ledger.newest

    earlier = [place() for _ in range(12)]
    search.begin_run(search.strategy, np.random.default_rng(2))
    for one in [place() for _ in range(4)]:
        search.tell_place(one, 1.0)
    assert search.nit == 1 and len(search.ledger.out) < len(earlier)
    search.tell_place(earlier[0], 2.0)
    assert search.nfev == 5 and search.ledger.began.nfev == 1 and not search.ledger.pool
