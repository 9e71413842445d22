"""One run of `minimize` is a loop over Searcher, however it evaluates; callbacks and budgets end it."""

import inspect
import math
import re
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import esgroup
from esgroup.checks import Array
from esgroup.distributions.families import Normal
from esgroup.search.searcher import Searcher
from tests.driver.support import (
    X0,
    Recorder,
    by_hand,
    ellipsoid,
    ellipsoid_rows,
    rastrigin,
    same,
    squares,
    squares_of_rows,
)


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
        with pytest.raises(ValueError, match=re.escape(f"returned {value!r} at x = [") + ".* one real number"):
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
        assert result.stop == {"callback": "stopped by the callback"}
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
        with pytest.raises(TypeError, match=r"callback.* 3"):
            esgroup.minimize(ellipsoid, X0, 0.5, callback=3)  # type: ignore[arg-type]


class TestBudgets:
    @pytest.mark.parametrize("restarts", [None, "ipop", "bipop"])
    @pytest.mark.parametrize("max_evals", [1, 3, 11, 25, 101, 2500, 7001])
    def test_evaluations_are_never_more_than_allowed_and_all_of_them_are_used(
        self, max_evals: int, restarts: str | None
    ) -> None:
        fun = Recorder(rastrigin)
        result = esgroup.minimize(fun, X0, 0.5, rng=2, max_evals=max_evals, restarts=restarts)
        assert result.nfev == len(fun.points)
        assert result.fun == min(map(rastrigin, fun.points))
        if result.stop.keys() & {"max_evals"}:
            assert result.nfev == max_evals
        else:
            assert restarts is None and result.nfev < max_evals
        if restarts is not None and max_evals > 2000:
            assert result.restarts > 0

    @pytest.mark.parametrize(
        ("x0", "options"),
        [
            (np.eye(3), {"space": "spd"}),
            (np.ones((2, 3)), {"space": "matrix", "sigma0": 0.3}),
            (np.ones(3), {"basins": 5, "bounds": (-5, 5)}),
            (np.ones(3), {"basins": 50, "bounds": (-5, 5)}),
            (esgroup.Gaussian(mean=np.ones(3), sigma0=0.5), {}),
            (Normal(mean=3.0, std=1.0), {}),
            (np.ones(3), {"noise": "adapt"}),
            (np.ones(4), {"vectorized": True}),
            (np.ones(3), {"workers": map}),
            (np.ones(3), {"workers": 2}),
            (np.ones(3), {"workers": 2, "asynchronous": True}),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("max_evals", [1, 25, 101])
    def test_evaluations_are_exact_in_every_space_and_way(self, x0: Any, options: Any, max_evals: int) -> None:
        fun = squares_of_rows if options.get("vectorized") else squares
        result = esgroup.minimize(fun, x0, rng=2, max_evals=max_evals, **options)
        assert result.nfev == max_evals and "max_evals" in result.stop
        assert np.isfinite(result.fun)

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
