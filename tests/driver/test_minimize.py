"""`minimize` is a loop over Searcher, however it evaluates, whatever ends it, and wherever it is taken up again."""

import contextlib
import inspect
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.optimize

import esgroup
from esgroup.checks import Array
from esgroup.files import autosave
from esgroup.files import npz as files
from esgroup.restarts import BIPOP, IPOP
from esgroup.search.searcher import Searcher

X0 = np.array([1.0, -0.5, 2.0])


def ellipsoid(x: Array, scale: float = 1.0) -> float:
    return float(scale * (x @ (np.array([1.0, 10.0, 100.0]) * x)))


def ellipsoid_rows(X: Array) -> Array:
    return np.array([ellipsoid(x) for x in X])


def rastrigin(x: Array) -> float:
    return float(10 * len(x) + (x**2 - 10 * np.cos(2 * np.pi * x)).sum())


def raises_below(x: Array, threshold: float) -> float:
    if ellipsoid(x) < threshold:
        raise ZeroDivisionError("too good")
    return ellipsoid(x)


class Recorder:
    """An objective that keeps its points and may do something at a given call."""

    def __init__(self, fun: Callable[[Array], float], at: int = -1, do: Callable[[], None] | None = None) -> None:
        self.fun, self.at, self.do = fun, at, do
        self.points: list[Array] = []

    def __call__(self, x: Array) -> float:
        if len(self.points) == self.at and self.do is not None:
            self.at = -1
            self.do()
        self.points.append(x)
        return self.fun(x)


def fail(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


def same(a: list[Array], b: list[Array]) -> bool:
    """Whether two trajectories are equal bit for bit."""
    return len(a) == len(b) and np.array_equal(np.array(a), np.array(b))


def by_hand(fun: Any, **options: Any) -> Searcher:
    search = Searcher(X0, 0.5, **options)
    while not search.stop():
        search.tell([fun(x) for x in search.ask()])
    return search


class TestOneRun:
    def test_it_is_the_loop_written_by_hand(self) -> None:
        mine, theirs = Recorder(ellipsoid), Recorder(ellipsoid)
        search = by_hand(theirs, rng=3, max_evals=300, target=1e-9)
        result = esgroup.minimize(mine, X0, 0.5, rng=3, max_evals=300, target=1e-9)
        assert same(mine.points, theirs.points)
        expected = search.result
        for name in ("x", "xmean", "stds"):
            assert np.array_equal(result[name], expected[name])
        for name in ("fun", "nfev", "nit", "nfailed", "success", "status", "message", "stop"):
            assert result[name] == expected[name]
        assert result.restarts == 0
        assert isinstance(result, scipy.optimize.OptimizeResult)

    def test_options_reach_the_search(self) -> None:
        options: dict[str, Any] = {"structure": "diagonal", "popsize": 9, "bounds": (-1.0, 3.0), "mirrored": True}
        mine, theirs = Recorder(ellipsoid), Recorder(ellipsoid)
        by_hand(theirs, rng=3, max_evals=200, **options)
        esgroup.minimize(mine, X0, 0.5, rng=3, max_evals=200, **options)
        assert same(mine.points, theirs.points)

    def test_arguments_reach_the_objective(self) -> None:
        a = esgroup.minimize(ellipsoid, X0, 0.5, args=(7.0,), rng=1, max_iters=5)
        b = esgroup.minimize(lambda x: ellipsoid(x, 7.0), X0, 0.5, rng=1, max_iters=5)
        assert a.fun == b.fun == ellipsoid(a.x, 7.0)

    @pytest.mark.parametrize("where", ["vectorized", "workers", "map", "threads", "processes"])
    def test_where_it_is_evaluated_changes_nothing(self, where: str) -> None:
        expected = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_evals=200)
        with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
            how: dict[str, Any] = {
                "vectorized": {"fun": ellipsoid_rows, "vectorized": True},
                "workers": {"workers": 2},
                "map": {"workers": threads.map},
                "threads": {"executor": threads},
                "processes": {"executor": processes},
            }[where]
            result = esgroup.minimize(**{"fun": ellipsoid, "x0": X0, "sigma0": 0.5, "rng": 1, "max_evals": 200, **how})
        assert np.array_equal(result.x, expected.x)
        assert np.array_equal(result.xmean, expected.xmean)
        assert (result.fun, result.nfev, result.nit) == (expected.fun, expected.nfev, expected.nit)

    def test_the_order_in_which_values_arrive_changes_nothing(self) -> None:
        jitter = np.random.default_rng(0)

        def slow(x: Array) -> float:
            time.sleep(float(jitter.random()) * 0.002)
            return ellipsoid(x)

        expected = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_evals=150)
        with ThreadPoolExecutor(4) as pool:
            result = esgroup.minimize(slow, X0, 0.5, rng=1, max_evals=150, executor=pool)
        assert np.array_equal(result.xmean, expected.xmean)

    def test_failed_evaluations_are_counted(self) -> None:
        result = esgroup.minimize(lambda x: math.nan if x[0] > 1 else ellipsoid(x), X0, 0.5, rng=1, max_evals=100)
        assert 0 < result.nfailed < result.nfev
        assert result.x[0] <= 1

    @pytest.mark.parametrize("value", [None, "1.0", 1j, [1.0, 2.0]])
    def test_values_that_are_no_numbers_are_refused(self, value: Any) -> None:
        with pytest.raises(ValueError, match="must be"):
            esgroup.minimize(lambda x: value, X0, 0.5, rng=1, max_evals=100)

    def test_arrays_of_one_element_are_numbers(self) -> None:
        expected = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_evals=100)
        for wrap in (np.array, lambda f: np.array([f]), np.float32, lambda f: [f]):
            result = esgroup.minimize(lambda x, wrap=wrap: wrap(ellipsoid(x)), X0, 0.5, rng=1, max_evals=100)
            assert result.fun == pytest.approx(expected.fun, rel=1e-6)

    def test_the_global_generator_is_left_alone(self) -> None:
        before = np.random.get_state()
        esgroup.minimize(rastrigin, X0, 0.5, max_evals=3000, restarts="bipop")
        after = np.random.get_state()
        assert before[0] == after[0]
        assert np.array_equal(before[1], after[1])
        assert before[2:] == after[2:]

    def test_two_runs_in_two_threads_are_independent(self) -> None:
        expected = [esgroup.minimize(ellipsoid, X0, 0.5, rng=seed, max_evals=400) for seed in (1, 2)]
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(esgroup.minimize, ellipsoid, X0, 0.5, rng=seed, max_evals=400) for seed in (1, 2)]
            for run, result in zip(runs, expected, strict=True):
                assert np.array_equal(run.result().xmean, result.xmean)

    def test_the_name_is_a_function_whatever_was_used_first(self) -> None:
        code = "import esgroup; esgroup.scipy_method; f = lambda x: x[0]**2; "
        code += "[esgroup.minimize(f, [1.0], 0.5, rng=1, max_evals=20) for _ in range(2)]; "
        code += "import esgroup.driver.minimize; print(esgroup.minimize(f, [1.0], 0.5, rng=1, max_evals=20).nit)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.stdout.strip().isdigit(), run.stderr
        assert list(inspect.signature(esgroup.minimize).parameters)[:3] == ["fun", "x0", "sigma0"]


class TestCallback:
    def test_it_gets_the_search_after_every_generation(self) -> None:
        seen: list[tuple[int, int]] = []

        def callback(search: Searcher) -> None:
            assert isinstance(search, Searcher)
            seen.append((search.nit, search.nfev))

        result = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=4, popsize=6, callback=callback)
        assert seen == [(1, 6), (2, 12), (3, 18), (4, 24)]
        assert result.stop.keys() == {"max_iters"}

    @pytest.mark.parametrize("restarts", [None, "ipop"])
    @pytest.mark.parametrize("by", ["value", "exception"])
    def test_it_may_end_the_run(self, by: str, restarts: str | None) -> None:
        def callback(search: Searcher) -> bool:
            if search.nit == 3 and by == "exception":
                raise StopIteration
            return search.nit == 3

        result = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, callback=callback, restarts=restarts)
        assert (result.nit, result.restarts) == (3, 0)
        assert result.stop == {"callback": "the callback asked for it"}
        assert (result.success, result.status) == (False, 3)
        assert "callback" in result.message.lower()

    def test_other_exceptions_pass(self) -> None:
        error = LookupError("mine")

        def callback(search: Searcher) -> None:
            raise error

        with pytest.raises(LookupError) as caught:
            esgroup.minimize(ellipsoid, X0, 0.5, rng=1, callback=callback)
        assert caught.value is error

    def test_it_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="callback must be a function of a Searcher, got 3"):
            esgroup.minimize(ellipsoid, X0, 0.5, callback=3)  # type: ignore[arg-type]


class TestBudgets:
    @pytest.mark.parametrize("restarts", [None, "ipop", "bipop"])
    @pytest.mark.parametrize("max_evals", [1, 100, 2500, 7001])
    def test_evaluations_end_with_the_generation_in_which_they_are_used_up(
        self, max_evals: int, restarts: str | None
    ) -> None:
        fun, ends = Recorder(rastrigin), [0]
        result = esgroup.minimize(
            fun,
            X0,
            0.5,
            rng=2,
            max_evals=max_evals,
            restarts=restarts,
            callback=lambda search: ends.append(len(fun.points)),
        )
        assert result.nfev == len(fun.points) == ends[-1]
        if result.stop.keys() & {"max_evals"}:
            assert ends[-2] < max_evals <= ends[-1]
        else:
            assert restarts is None
        if restarts is not None and max_evals > 2000:
            assert result.restarts > 0

    @pytest.mark.parametrize("restarts", ["ipop", "bipop"])
    def test_generations_are_those_of_all_runs(self, restarts: str) -> None:
        count = []
        result = esgroup.minimize(
            rastrigin, X0, 0.5, rng=2, max_iters=400, restarts=restarts, callback=lambda search: count.append(1)
        )
        assert result.nit == len(count) == 400
        assert result.restarts > 0
        assert result.stop.keys() == {"max_iters"}

    def test_time_is_that_of_all_runs(self) -> None:
        begin = time.monotonic()
        result = esgroup.minimize(rastrigin, X0, 0.5, rng=2, max_time=1.0, restarts="ipop")
        assert 1.0 <= time.monotonic() - begin < 3.0
        assert result.restarts > 0
        assert "max_time" in result.stop

    def test_a_target_ends_all_runs(self) -> None:
        result = esgroup.minimize(rastrigin, X0, 2.0, rng=1, target=1e-6, restarts="bipop", max_evals=50_000)
        assert result.stop.keys() == {"target"}
        assert result.success
        assert result.fun <= 1e-6


class TestRestarts:
    def runs(self, restarts: Any, **options: Any) -> tuple[Any, list[Searcher], Recorder]:
        """The result, the searchers that the callback saw, and the objective."""
        fun, seen = Recorder(rastrigin), []

        def callback(search: Searcher) -> None:
            if not seen or seen[-1] is not search:
                seen.append(search)

        result = esgroup.minimize(
            fun, **{"x0": X0, "sigma0": 0.5, "rng": 4, "restarts": restarts, "callback": callback, **options}
        )
        return result, seen, fun

    def test_the_result_is_that_of_all_runs(self) -> None:
        result, runs, fun = self.runs(IPOP(3))
        assert result.restarts == 3 == len(runs) - 1
        assert [run.popsize for run in runs] == [runs[0].popsize * 2**i for i in range(4)]
        assert result.nfev == sum(run.nfev for run in runs) == len(fun.points)
        assert result.nit == sum(run.nit for run in runs)
        values = [rastrigin(x) for x in fun.points]
        assert result.fun == min(values)
        assert np.array_equal(result.x, fun.points[int(np.argmin(values))])
        assert np.array_equal(result.xmean, runs[-1].mean)
        assert np.array_equal(result.stds, runs[-1].stds)
        assert "Restarts: 3; xmean and stds are those of the last run" in result.message
        assert "restarts" in result.stop

    def test_the_best_of_an_earlier_run_is_kept(self) -> None:
        """The first run finds the minimum, later ones see a worse function."""
        calls = []

        def worse_later(x: Array) -> float:
            calls.append(1)
            return ellipsoid(x) + (0.0 if len(calls) <= first.nfev else 5.0)

        first = esgroup.minimize(ellipsoid, X0, 0.5, rng=4)
        result = esgroup.minimize(worse_later, X0, 0.5, rng=4, restarts=IPOP(2))
        assert result.restarts == 2
        assert result.fun == first.fun
        assert np.array_equal(result.x, first.x)
        assert result.nfev > first.nfev

    def test_the_first_run_is_the_one_without_restarts(self) -> None:
        fun = Recorder(rastrigin)
        esgroup.minimize(fun, X0, 0.5, rng=4)
        _, _, more = self.runs("bipop", max_evals=4000)
        assert same(fun.points, more.points[: len(fun.points)])

    def test_failed_evaluations_of_all_runs_are_counted(self) -> None:
        failed = []

        def fails(x: Array) -> float:
            if x[0] > 1:
                failed.append(1)
                return math.nan
            return rastrigin(x)

        result = esgroup.minimize(fails, X0, 0.5, rng=4, restarts=IPOP(2))
        assert result.restarts == 2
        assert result.nfailed == len(failed) > 0

    def test_they_start_uniformly_in_the_box(self) -> None:
        result, runs, fun = self.runs("ipop", bounds=(-4.0, 5.0), max_evals=6000)
        begins = np.cumsum([0, *(run.nfev for run in runs)])[:-1]
        assert result.restarts >= 2
        points = np.array(fun.points)
        assert ((points >= -4) & (points <= 5)).all()
        means = [points[b : b + run.popsize].mean(0) for b, run in zip(begins, runs, strict=True)]
        assert max(np.abs(mean - X0).max() for mean in means[1:]) > 1.5  # further than sigma0 reaches

    @pytest.mark.parametrize(
        "options",
        [{}, {"sigma0": [0.5, 1.0, 2.0]}, {"cov0": np.diag([1.0, 2.0, 3.0])}, {"sigma0": 2, "cov0": np.eye(3)}],
    )
    def test_step_sizes_are_those_of_the_first_run(self, options: dict[str, Any]) -> None:
        """The default sigma0 depends on x0, but not anew at each start."""
        _, runs, _ = self.runs(IPOP(3), **{"sigma0": None, **options})
        assert len(runs) == 4
        for run in runs:
            assert np.allclose(run._first_spread, runs[0]._first_spread, rtol=1e-12)

    def test_fixed_and_integer_coordinates_stay_so(self) -> None:
        bounds = [(-4, 4), (None, None), (-3, 6)]
        _, runs, fun = self.runs(IPOP(3), fixed={0: 0.25}, integer=[2], bounds=bounds)
        assert len(runs) == 4
        points = np.array(fun.points)
        assert (points[:, 0] == 0.25).all()
        assert (points[:, 2] == np.rint(points[:, 2])).all()
        assert len({run.strategy.box.x0[2] for run in runs}) > 1

    def test_small_runs_have_their_share_and_a_smaller_step(self) -> None:
        _, runs, _ = self.runs(BIPOP(5), max_evals=40_000)
        first, large, small = runs[0], [runs[1]], []
        spent = {"large": runs[1].nfev, "small": 0}
        for run in runs[2:]:
            if spent["small"] < spent["large"]:
                small.append(run)
                limit = large[-1].nfev // 2
                assert run.nfev < limit + run.popsize
                assert run.limits.max_evals is not None
                assert run.limits.max_evals <= limit  # the search itself knows
                assert first.popsize <= run.popsize <= max(first.popsize, large[-1].popsize // 2)
                factors = run._first_spread / first._first_spread
                assert np.allclose(factors, factors[0])
                assert 0.01 <= factors[0] < 1
                spent["small"] += run.nfev
            else:
                assert run.popsize == 2 * large[-1].popsize
                large.append(run)
                spent["large"] += run.nfev
        assert len(large) >= 2
        assert len(small) >= 3

    def test_the_same_seed_gives_the_same_runs(self) -> None:
        a, b, c = (self.runs("bipop", max_evals=8000, rng=seed)[2].points for seed in (5, 5, 6))
        assert same(a, b)
        assert not same(a[: len(c)], c)

    def test_they_need_a_point(self) -> None:
        search = Searcher(X0, 0.5)
        with pytest.raises(ValueError, match="restarts are for searches over vectors from a point, got Searcher"):
            esgroup.minimize(ellipsoid, search, restarts="ipop")

    def test_a_search_may_be_the_start_of_a_single_run(self) -> None:
        search = by_hand(ellipsoid, rng=1, max_iters=10)
        result = esgroup.minimize(ellipsoid, search, rng=2, max_iters=1)
        assert result.fun < ellipsoid(X0) / 10


class TestCheckpoints:
    OPTIONS: ClassVar[dict[str, Any]] = {"sigma0": 0.5, "rng": 9}

    def interrupted(self, path: Path, fun: Any, at: list[int], **options: Any) -> list[Array]:
        """The points of a run that is broken off at given numbers of calls and taken up each time."""
        points: list[Array] = []
        options = {**self.OPTIONS, "checkpoint": path, **options}
        for session, call in enumerate(at):
            part = Recorder(fun, call - len(points), fail(RuntimeError("broken off")))
            with pytest.raises(RuntimeError, match="broken off"):
                esgroup.minimize(part, X0, **options, resume=session > 0)
            points += part.points
            assert len(points) == call
        part = Recorder(fun)
        self.result = esgroup.minimize(part, X0, **options, resume=True)
        return points + part.points

    @pytest.mark.parametrize("restarts", [None, "ipop", "bipop"])
    @pytest.mark.parametrize("at", [[0], [1, 1, 2], [7, 70, 75, 76], [700, 2100, 4200]], ids=str)
    @pytest.mark.parametrize("bounds", [None, (-2.0, 3.0)], ids=str)
    def test_a_run_that_was_broken_off_anywhere_goes_on_bit_for_bit(
        self, at: list[int], restarts: str | None, bounds: Any, tmp_path: Path
    ) -> None:
        whole = Recorder(rastrigin)
        options: dict[str, Any] = {"max_evals": 6000, "restarts": restarts, "bounds": bounds}
        expected = esgroup.minimize(whole, X0, **self.OPTIONS, **options)
        at = [call for call in at if call < len(whole.points)]
        parts = self.interrupted(tmp_path / "run.npz", rastrigin, at, **options) if at else whole.points
        assert same(parts, whole.points)
        if at:
            for name in ("fun", "nfev", "nit", "nfailed", "restarts", "success", "message", "stop"):
                assert self.result[name] == expected[name]
            for name in ("x", "xmean", "stds"):
                assert np.array_equal(self.result[name], expected[name])

    def test_it_goes_on_after_each_generation_bit_for_bit(self, tmp_path: Path) -> None:
        """A run of many sessions of one generation each; the values are so coarse that there are soon restarts."""
        whole, parts = (Recorder(lambda x: round(ellipsoid(x))) for _ in range(2))
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "bipop", "max_evals": 500}
        expected = esgroup.minimize(whole, X0, **options)
        for session in range(1000):
            file = {"checkpoint": tmp_path / "run.npz", "resume": session > 0}
            result = esgroup.minimize(parts, X0, **options, **file, callback=lambda search: True)
            if "callback" not in result.stop or "max_evals" in result.stop:
                break
        assert session > 20
        assert same(parts.points, whole.points)
        assert result.restarts == expected.restarts > 0
        assert np.array_equal(result.x, expected.x)

    def test_what_had_arrived_is_told_and_saved(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        error = ZeroDivisionError("mine")
        fun = Recorder(ellipsoid, 17, fail(error))
        with pytest.raises(ZeroDivisionError) as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, popsize=7, checkpoint=path)
        assert caught.value is error
        search = Searcher.load(path)
        assert (search.nfev, search.nit) == (17, 2)
        assert search.best_f == min(ellipsoid(x) for x in fun.points)

    def test_values_that_came_from_threads_are_saved(self, tmp_path: Path) -> None:
        path, fun = tmp_path / "run.npz", Recorder(ellipsoid)

        def fails(x: Array) -> float:
            if len(fun.points) >= 20:
                raise ZeroDivisionError
            return fun(x)

        with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
            esgroup.minimize(fails, X0, 0.5, rng=1, popsize=7, checkpoint=path, executor=pool)
        assert Searcher.load(path).nfev == 20

    def test_values_beside_one_that_is_no_number_are_saved(self, tmp_path: Path) -> None:
        path, calls = tmp_path / "run.npz", []

        def forgets(x: Array) -> float | None:
            calls.append(1)
            return None if len(calls) == 10 else ellipsoid(x)

        with pytest.raises(ValueError, match=r"fitness\[2\] must be a real number"):
            esgroup.minimize(forgets, X0, 0.5, rng=1, popsize=7, checkpoint=path)
        assert Searcher.load(path).nfev == 13
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, popsize=7, checkpoint=path, resume=True, max_iters=2)
        assert Searcher.load(path).nfev == 14

    def test_limits_that_are_given_replace_the_saved_ones(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "popsize": 6}
        first = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, max_evals=600, target=-1.0)
        assert 600 <= first.nfev < 600 + 48
        same_again = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True)
        assert (same_again.nfev, same_again.stop.keys()) == (first.nfev, first.stop.keys())
        more = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True, max_evals=6000)
        whole = esgroup.minimize(rastrigin, X0, **options, max_evals=6000)
        assert more.nfev == whole.nfev >= 6000
        assert more.restarts == whole.restarts > 1
        assert np.array_equal(more.xmean, whole.xmean)
        done = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True, target=1e9)
        assert (done.nfev, done.success) == (more.nfev, True)
        assert "target" in done.stop

    def test_limits_of_a_resumed_search_hold_over_restarts(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "checkpoint": path}
        assert esgroup.minimize(rastrigin, X0, **options, max_evals=3000).restarts > 0
        ends: list[bool] = []
        esgroup.minimize(
            rastrigin,
            X0,
            **options,
            resume=True,
            max_evals=3500,
            callback=lambda s: ends.append("max_evals" in s.stop()),
        )
        assert len(ends) > 2
        assert ends == [False] * (len(ends) - 1) + [True]  # the search itself knows what is left
        assert "max_evals" in Searcher.load(path).stop()

    def test_a_file_of_a_searcher_will_do(self, tmp_path: Path) -> None:
        path, whole, first, second = tmp_path / "run.npz", Recorder(ellipsoid), Recorder(ellipsoid), Recorder(ellipsoid)
        esgroup.minimize(whole, X0, **self.OPTIONS, max_iters=20)
        by_hand(first, rng=9, max_iters=8).save(path)
        result = esgroup.minimize(second, X0, **self.OPTIONS, checkpoint=path, resume=True, max_iters=20)
        assert same(first.points + second.points, whole.points)
        assert result.nit == 20

    def test_time_counts_over_sessions(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {**self.OPTIONS, "checkpoint": tmp_path / "run.npz", "max_time": 0.5}
        esgroup.minimize(rastrigin, X0, **options, restarts="ipop")
        begin, fun = time.monotonic(), Recorder(rastrigin)
        esgroup.minimize(fun, X0, **options, restarts="ipop", resume=True)
        assert time.monotonic() - begin < 0.4
        assert not fun.points

    def test_other_searches_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        Searcher(np.ones(4), 0.5).save(path)
        with pytest.raises(ValueError, match=r"run.npz' must be of the same search, but it has 4 coordinates"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)
        Searcher(X0, 0.5, bounds=(-9, 9)).save(path)
        with pytest.raises(ValueError, match="but its lower bounds are others"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)
        with pytest.raises(ValueError, match=r"but its structure is Full\(dim=3\) and not Diagonal\(dim=3\)"):
            esgroup.minimize(ellipsoid, X0, 0.5, bounds=(-9, 9), structure="diagonal", checkpoint=path, resume=True)
        with pytest.raises(ValueError, match="but its options are"):
            esgroup.minimize(ellipsoid, X0, 0.5, bounds=(-9, 9), noise="adapt", checkpoint=path, resume=True)

    def test_an_existing_file_is_not_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3)
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match="resume=True goes on from a checkpoint"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3)
        assert path.read_bytes() == before

    def test_nothing_to_resume_from_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="there is no checkpoint to resume from"):
            esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=tmp_path / "run.npz", resume=True)
        with pytest.raises(ValueError, match="resume=True goes on from a file: say which one with checkpoint="):
            esgroup.minimize(ellipsoid, X0, 0.5, resume=True)

    def test_a_damaged_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, max_iters=3, restarts="bipop")
        header, arrays = files.read(path, "searcher")
        for name in ("limits", "past", "schedule", "plan", "rng", "torn", "untold"):
            campaign = {key: value for key, value in header["campaign"].items() if key != name}
            files.write(path, "searcher", {**header, "campaign": campaign}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True, restarts="bipop")
        wrong: dict[str, Any] = {"torn": [[99, 1.0]], "past": {**header["campaign"]["past"], "nfev": "many"}}
        for name, value in wrong.items():
            files.write(path, "searcher", {**header, "campaign": {**header["campaign"], name: value}}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True, restarts="bipop")

    def test_a_damaged_torn_generation_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(Recorder(ellipsoid, 3, fail(RuntimeError("broken off"))), X0, 0.5, checkpoint=path)
        header, arrays = files.read(path, "searcher")
        assert [row for row, _ in header["campaign"]["torn"]] == [0, 1, 2]
        for name, value in (("torn", [[7, 1.0]]), ("torn", [[0, "low"]]), ("untold", None), ("untold", {"nfev": 0})):
            files.write(path, "searcher", {**header, "campaign": {**header["campaign"], name: value}}, arrays)
            with pytest.raises(esgroup.CheckpointError, match=r"run\.npz"):
                esgroup.minimize(ellipsoid, X0, 0.5, checkpoint=path, resume=True)

    def test_a_path_that_does_not_work_is_noticed_before_the_first_evaluation(self, tmp_path: Path) -> None:
        fun = Recorder(ellipsoid)
        with pytest.raises(FileNotFoundError):
            esgroup.minimize(fun, X0, 0.5, checkpoint=tmp_path / "missing" / "run.npz")
        assert not fun.points

    def test_an_exception_is_not_hidden_by_a_disk_that_is_full(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise OSError("no space left")

        fun = Recorder(ellipsoid, 20, lambda: (monkeypatch.setattr(files, "write", full), fail(KeyError("mine"))())[0])
        with pytest.raises(KeyError, match="mine") as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, checkpoint=tmp_path / "run.npz")
        assert caught.value.__notes__ == ["the checkpoint could not be written: no space left"]

    @pytest.mark.parametrize(
        ("seconds", "written"), [(100.0, [1, 2, 3, 4, 5, 6]), (10.0, [2, 3, 4, 5, 6]), (5.0, [4, 6]), (1.0, [])]
    )
    def test_a_tenth_of_the_time_may_go_into_writing(
        self, seconds: float, written: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Six generations of so many seconds; a file takes one, the first is written before, the last in the end."""
        now, generations = [0.0], []
        writes: list[int] = []

        def write(*_: Any) -> None:
            now[0] += 1.0
            writes.append(len(generations))

        def callback(search: Searcher) -> None:
            now[0] += seconds
            generations.append(1)

        monkeypatch.setattr(autosave.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(files, "write", write)
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=6, checkpoint=tmp_path / "run.npz", callback=callback)
        assert writes == [0, *written, 6]

    def test_torn_generations_of_many_threads_go_on_bit_for_bit(self, tmp_path: Path) -> None:
        """Values arrive in any order, points and values are often equal, some runs fail: the result is the same."""

        def steps(x: Array) -> float:
            return math.nan if x[1] > 3 else float(np.floor(np.abs(x - 0.3)).sum())

        class Breaks:
            def __init__(self) -> None:
                self.lock, self.random, self.left = threading.Lock(), np.random.default_rng(7), 30

            def __call__(self, x: Array) -> float:
                with self.lock:
                    pause, breaks = self.random.random() * 0.002, self.left > 0 and self.random.random() < 0.1
                    self.left -= breaks
                time.sleep(pause)
                if breaks:
                    raise RuntimeError("broken off")
                return steps(x)

        options: dict[str, Any] = {**self.OPTIONS, "integer": True, "restarts": "ipop", "max_evals": 1200}
        start, fun, path = np.array([8.0, 0.0, -9.0]), Breaks(), tmp_path / "run.npz"
        expected = esgroup.minimize(steps, start, **options)
        with ThreadPoolExecutor(4) as pool:
            for session in range(100):
                try:
                    result = esgroup.minimize(fun, start, **options, executor=pool, checkpoint=path, resume=session > 0)
                    break
                except RuntimeError as error:
                    assert str(error) == "broken off"
        assert session > 10
        assert fun.left <= 0
        for name in ("fun", "nfev", "nit", "nfailed", "restarts", "message", "stop"):
            assert result[name] == expected[name]
        for name in ("x", "xmean", "stds"):
            assert np.array_equal(result[name], expected[name])

    def test_of_equal_values_the_same_point_is_the_best(self, tmp_path: Path) -> None:
        """The first point is evaluated last, after the run was broken off; uninterrupted it would have been first."""
        calls: list[int] = []

        def constant(x: Array) -> float:
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("broken off")
            return 1.0

        class AtOnce(Executor):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                try:
                    future.set_result(fn(*args))
                except RuntimeError as error:
                    future.set_exception(error)
                return future

        options: dict[str, Any] = {**self.OPTIONS, "popsize": 7, "max_iters": 2}
        path = tmp_path / "run.npz"
        expected = esgroup.minimize(lambda x: 1.0, X0, **options)
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(constant, X0, **options, executor=AtOnce(), checkpoint=path)
        search = Searcher.load(path)
        assert search.nfev == 6
        assert search.best_x is not None
        assert not np.array_equal(search.best_x, expected.x)
        result = esgroup.minimize(constant, X0, **options, checkpoint=path, resume=True)
        assert np.array_equal(result.x, expected.x)
        assert result.nfev == 14 == len(calls) - 1

    def test_new_limits_may_end_a_torn_generation_and_lose_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        fun = Recorder(ellipsoid, 17, fail(RuntimeError("broken off")))
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(fun, X0, 0.5, rng=1, popsize=7, checkpoint=path)
        result = esgroup.minimize(fun, X0, 0.5, rng=1, popsize=7, checkpoint=path, resume=True, max_evals=5)
        assert result.nfev == len(fun.points) == 17
        assert result.fun == min(ellipsoid(x) for x in fun.points)
        assert Searcher.load(path).nfev == 17
        result = esgroup.minimize(fun, X0, 0.5, rng=1, popsize=7, checkpoint=path, resume=True, max_evals=40)
        whole = esgroup.minimize(ellipsoid, X0, 0.5, rng=1, popsize=7, max_evals=40)
        assert result.nfev == whole.nfev == len(fun.points) == 42
        assert np.array_equal(result.xmean, whole.xmean)

    @pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.slow)])
    def test_a_run_that_is_killed_again_and_again_loses_nothing_that_was_written(
        self, kills: int, tmp_path: Path
    ) -> None:
        """kill -9 at random moments, most of them in the middle of writing: the file is whole after each."""
        path, random = tmp_path / "run.npz", np.random.default_rng(11)
        options: dict[str, Any] = {**self.OPTIONS, "restarts": "ipop", "max_evals": 500 * kills}
        expected = esgroup.minimize(rastrigin, X0, **options)
        fork, known = multiprocessing.get_context("fork"), 0
        for _ in range(kills):
            arguments = {**options, "checkpoint": path, "resume": path.exists()}
            child = fork.Process(target=minimize_and_write_always, args=(arguments,), daemon=True)
            child.start()
            for _ in range(3):  # it is at work
                seen = path.stat().st_mtime_ns if path.exists() else 0
                wait_for(path, lambda path, seen=seen: path.stat().st_mtime_ns != seen)
            child.join(0.02 * random.random())
            child.kill()
            child.join()
            header, _ = files.read(path, "searcher")
            nfev = Searcher.load(path).nfev + header["campaign"]["past"]["nfev"]
            assert nfev >= known + 7
            known = nfev
        result = esgroup.minimize(rastrigin, X0, **options, checkpoint=path, resume=True)
        assert (result.nfev, result.restarts, result.fun) == (expected.nfev, expected.restarts, expected.fun)
        assert np.array_equal(result.xmean, expected.xmean)
        assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def minimize_and_write_always(arguments: dict[str, Any]) -> None:
    autosave.WRITING = math.inf  # type: ignore[misc]
    esgroup.minimize(rastrigin, X0, **arguments)


class TestInterrupts:
    def test_the_result_so_far_comes_with_the_interrupt(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        fun = Recorder(ellipsoid, 50, lambda: signal.raise_signal(signal.SIGINT))
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, popsize=7, checkpoint=path, restarts="ipop")
        result = caught.value.result  # type: ignore[attr-defined]
        assert (result.nfev, result.nit, result.status) == (50, 7, -1)
        assert result.fun == min(ellipsoid(x) for x in fun.points)
        assert Searcher.load(path).nfev == 50
        assert signal.getsignal(signal.SIGINT) is before

    @pytest.mark.parametrize("method", ["ask", "tell"])
    def test_an_interrupt_while_the_search_changes_waits(
        self, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is saved is whole: the run goes on bit for bit."""
        whole, parts, calls = Recorder(ellipsoid), Recorder(ellipsoid), []
        esgroup.minimize(whole, X0, 0.5, rng=1, max_iters=12)
        original = getattr(Searcher, method)

        def interrupted(self: Searcher, *arguments: Any) -> Any:
            calls.append(1)
            if len(calls) == 5:
                signal.raise_signal(signal.SIGINT)
            return original(self, *arguments)

        path = tmp_path / "run.npz"
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as caught:
            patch.setattr(Searcher, method, interrupted)
            esgroup.minimize(parts, X0, 0.5, rng=1, max_iters=12, checkpoint=path)
        assert len(calls) >= 5
        assert caught.value.result.nit == len(calls) - (method == "ask")  # type: ignore[attr-defined]
        esgroup.minimize(parts, X0, 0.5, rng=1, max_iters=12, checkpoint=path, resume=True)
        assert same(parts.points, whole.points)

    def test_an_interrupt_in_the_last_moment_is_not_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Searcher.stop

        def interrupted(self: Searcher) -> dict[str, str]:
            if reasons := original(self):
                signal.raise_signal(signal.SIGINT)
            return reasons

        monkeypatch.setattr(Searcher, "stop", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=3)
        monkeypatch.undo()
        assert caught.value.result.nit == 3  # type: ignore[attr-defined]

    def test_the_handler_of_the_caller_is_called(self) -> None:
        caught: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
        try:
            fun = Recorder(ellipsoid, 20, lambda: signal.raise_signal(signal.SIGINT))
            result = esgroup.minimize(fun, X0, 0.5, rng=1, max_iters=6)
        finally:
            signal.signal(signal.SIGINT, before)
        assert caught == [signal.SIGINT]
        assert result.nit == 6

    def test_workers_are_gone_after_an_interrupt(self, tmp_path: Path) -> None:
        """Ctrl-C reaches the whole process group: no noise of workers, idle or with points in store, a checkpoint."""
        runs = [self.started(tmp_path / name, *sizes) for name, sizes in {"idle": (2, 4), "busy": (12, 2)}.items()]
        try:
            for path, process in runs:
                wait_for(path, lambda path: Searcher.load(path).nfev > 20)
                os.killpg(process.pid, signal.SIGINT)
                out, err = process.communicate(timeout=30)
                assert out.startswith("nfev "), err
                assert not [line for line in err.splitlines() if "compiling" not in line]
                assert Searcher.load(path).nfev == int(out.split()[1])
                with pytest.raises(ProcessLookupError):
                    os.killpg(process.pid, 0)
        finally:
            for _, process in runs:
                with process, contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def started(self, place: Path, popsize: int, workers: int) -> tuple[Path, "subprocess.Popen[str]"]:
        place.mkdir()
        script = place / "script.py"
        script.write_text(
            "import esgroup, time\n"
            "def slow(x):\n"
            "    time.sleep(0.02)\n"
            "    return float(x @ x)\n"
            "if __name__ == '__main__':\n"
            "    try:\n"
            f"        how = dict(popsize={popsize}, workers={workers}, checkpoint='run.npz')\n"
            "        esgroup.minimize(slow, [1.0, 2.0], 0.5, **how)\n"
            "    except KeyboardInterrupt as error:\n"
            "        print('nfev', error.result.nfev)\n"
        )
        environment = {"PYTHONPATH": str(Path(esgroup.__file__).parents[1]), "PATH": ""}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, script],
            cwd=place,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
            env=environment,
        )
        return place / "run.npz", process


def wait_for(path: Path, good: Callable[[Path], bool]) -> None:
    end = time.monotonic() + 30
    while not (path.exists() and good(path)):
        assert time.monotonic() < end
        time.sleep(0.002)


class TestHistoryAndProgress:
    def lines(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()[1:]]

    def test_the_history_is_that_of_all_runs(self, tmp_path: Path) -> None:
        path = tmp_path / "history.jsonl"
        result = esgroup.minimize(rastrigin, X0, 0.5, rng=4, restarts=IPOP(2), history=path)
        lines = self.lines(path)
        assert [line["nit"] for line in lines] == list(range(1, result.nit + 1))
        assert lines[-1]["nfev"] == result.nfev
        assert all(a["nfev"] < b["nfev"] for a, b in pairwise(lines))
        assert all(a["best_f"] >= b["best_f"] for a, b in pairwise(lines))
        assert lines[-1]["best_f"] == result.fun
        assert sorted({line["restart"] for line in lines}) == [0, 1, 2]

    def test_the_history_goes_on_when_the_run_does(self, tmp_path: Path) -> None:
        whole, parts, file = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl", tmp_path / "run.npz"
        options: dict[str, Any] = {"sigma0": 0.5, "rng": 4, "restarts": "ipop"}
        esgroup.minimize(rastrigin, X0, **options, history=whole, max_evals=4000)
        esgroup.minimize(rastrigin, X0, **options, history=parts, max_evals=3000, checkpoint=file)
        esgroup.minimize(rastrigin, X0, **options, history=parts, max_evals=4000, checkpoint=file, resume=True)
        a, b = self.lines(whole), self.lines(parts)
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert {**one, "elapsed": 0} == {**other, "elapsed": 0}

    def test_progress_is_silent_without_a_terminal(self, capfd: pytest.CaptureFixture[str]) -> None:
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=5, progress=True)
        assert capfd.readouterr() == ("", "")

    def test_progress_shows_a_line_on_a_terminal(self) -> None:
        import pty

        code = "import esgroup, time; esgroup.minimize(lambda x: time.sleep(.02) or x @ x, [1.0, 2.0], 0.5, "
        code += "max_evals=60, progress=True)"
        primary, secondary = pty.openpty()
        subprocess.run([sys.executable, "-c", code], stderr=secondary, check=True, timeout=60)
        os.close(secondary)
        assert b"of 60 evaluations" in os.read(primary, 100_000)
        os.close(primary)

    def test_flags_are_checked(self) -> None:
        with pytest.raises(TypeError, match="progress must be True or False, got 1"):
            esgroup.minimize(ellipsoid, X0, 0.5, progress=1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="resume must be True or False, got 'yes'"):
            esgroup.minimize(ellipsoid, X0, 0.5, resume="yes")  # type: ignore[arg-type]


class TestSciPy:
    def solve(self, **arguments: Any) -> Any:
        return scipy.optimize.minimize(
            **{"fun": ellipsoid, "x0": X0, "method": esgroup.scipy_method, "options": {"rng": 1}, **arguments}
        )

    def test_it_is_a_method_of_scipy(self) -> None:
        result = self.solve(options={"sigma0": 0.5, "max_evals": 300, "rng": 1}, args=(2.0,))
        expected = esgroup.minimize(ellipsoid, X0, 0.5, args=(2.0,), max_evals=300, rng=1)
        assert np.array_equal(result.x, expected.x)
        assert result.nfev == expected.nfev
        assert self.solve(args=2.0, options={"max_evals": 10}).nfev >= 10  # SciPy takes a single argument so

    @pytest.mark.parametrize(
        "bounds", [scipy.optimize.Bounds([0.5, -np.inf, -3], [2, 0, np.inf]), [(0.5, 2), (None, 0), (-3, None)]]
    )
    def test_bounds_in_both_spellings(self, bounds: Any) -> None:
        points = Recorder(ellipsoid)
        result = self.solve(fun=points, bounds=bounds, options={"sigma0": 0.5, "rng": 1, "max_evals": 2000})
        assert (np.array(points.points) >= [0.5, -np.inf, -3]).all()
        assert (np.array(points.points) <= [2, 0, np.inf]).all()
        assert result.x == pytest.approx([0.5, 0, 0], abs=1e-3)

    def test_the_callback_gets_the_best_point(self) -> None:
        seen: list[Array] = []
        result = self.solve(callback=lambda x: seen.append(x) or True, options={"rng": 1, "max_iters": 20})
        assert len(seen) == 20  # a value that is returned means nothing to SciPy
        assert np.array_equal(seen[-1], result.x)
        assert [ellipsoid(x) for x in seen] == sorted((ellipsoid(x) for x in seen), reverse=True)

    def test_the_callback_may_ask_for_a_result(self) -> None:
        seen = []

        def callback(intermediate_result: Any) -> None:
            seen.append(intermediate_result.fun)
            if len(seen) == 7:
                raise StopIteration

        result = self.solve(callback=callback)
        assert (result.nit, result.fun) == (7, seen[-1])
        assert not result.success

    def test_the_options_that_all_methods_have(self) -> None:
        assert self.solve(options={"maxiter": 6, "disp": False}).nit == 6

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("jac", lambda x: x),
            ("jac", True),
            ("hess", lambda x: x),
            ("hessp", lambda x, p: p),
            ("constraints", [{"type": "eq", "fun": lambda x: x[0]}]),
            ("constraints", scipy.optimize.LinearConstraint(np.eye(3))),
            ("tol", 1e-6),
        ],
    )
    def test_what_it_cannot_use_is_refused(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=f"esgroup.scipy_method does not use {name}: leave it out"):
            self.solve(**{name: value})

    def test_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(TypeError, match="maxfun"):
            self.solve(options={"maxfun": 100})
