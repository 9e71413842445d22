"""Evaluations that fail, in every way of evaluation: which exceptions pass, which count as NaN, and what ends a run."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.evaluate import Evaluation
from esgroup.driver.failures import Failures
from esgroup.running.result import SearchResult
from tests.driver.support import X0, Recorder, ellipsoid, ellipsoid_rows
from tests.driver.worker_pool_laws import PATIENCE, until

pytestmark = pytest.mark.usefixtures("no_process_is_left")

WAYS = ["serial", "vectorized", "map", "workers", "threads", "asynchronous"]
POPSIZE = 6


class Mine(Exception):
    """An exception of the caller's, with two arguments."""


def nth(place: Path) -> int:
    """How many calls have begun before this one, in whatever process: each takes the first name that is free."""
    for n in range(10_000):
        try:
            (place / f"call {n}").touch(exist_ok=False)
            return n
        except FileExistsError:
            continue
    raise AssertionError("too many calls")


def calls(place: Path) -> int:
    return len(list(place.glob("call *")))


def scripted(place: Path, script: dict[int, Any], x: Array) -> float:
    """The ellipsoid, but what `script` says at the calls that it names: raise, exit, or return."""
    event = script.get(nth(place))
    if isinstance(event, Exception):
        raise event
    if isinstance(event, tuple):  # arguments of sys.exit
        sys.exit(*event)
    return ellipsoid(x) if event is None else event


def scripted_rows(place: Path, script: dict[int, Any], X: Array) -> Array:
    """One event at the start of a generation."""
    event = script.get(nth(place))
    if isinstance(event, Exception):
        raise event
    if isinstance(event, tuple):
        sys.exit(*event)
    return ellipsoid_rows(X)


@pytest.fixture
def search(tmp_path: Path, threads: ThreadPoolExecutor) -> Callable[..., Any]:
    """Search one way, with a script of what happens at which call."""

    def run(way: str, script: dict[int, Any], **options: Any) -> Any:
        where: dict[str, Any] = {
            "serial": {},
            "vectorized": {"vectorized": True},
            "map": {"workers": map},
            "workers": {"workers": 2},
            "threads": {"executor": threads},
            "asynchronous": {"executor": threads, "asynchronous": True},
        }[way]
        fun = partial(scripted_rows if way == "vectorized" else scripted, tmp_path, script)
        return esgroup.minimize(fun, X0, 0.5, **{"rng": 1, "popsize": POPSIZE, "max_evals": 30, **where, **options})

    return run


def result_of(error: BaseException) -> SearchResult:
    result = error.result  # type: ignore[attr-defined]
    assert isinstance(result, SearchResult)
    return result


class TestRaise:
    @pytest.mark.parametrize("way", WAYS)
    def test_the_exception_reaches_the_caller_unchanged_with_the_result_so_far(
        self, way: str, search: Callable[..., Any], tmp_path: Path
    ) -> None:
        at = 2 if way == "vectorized" else 2 * POPSIZE + 2  # the third generation, or a call in it
        with pytest.raises(Mine) as caught:
            search(way, {at: Mine("text", 7)})
        assert type(caught.value) is Mine and caught.value.args == ("text", 7)
        result = result_of(caught.value)
        if way in ("serial", "map"):
            assert result.nfev == 2 * POPSIZE + 2 == calls(tmp_path) - 1
        elif way == "vectorized":
            assert result.nfev == 2 * POPSIZE
        else:  # others had begun, and had a while to end
            assert 2 * POPSIZE <= result.nfev <= calls(tmp_path) - 1
        assert math.isfinite(result.fun) and result.fun == ellipsoid(result.x)
        assert (result.status, result.success, result.nfailed) == (-1, False, 0)

    def test_it_is_the_same_object_where_no_process_is_between(self, threads: ThreadPoolExecutor) -> None:
        error = Mine("mine")

        def fails(x: Array) -> float:
            raise error

        for where in ({}, {"vectorized": True}, {"workers": map}, {"executor": threads}):
            with pytest.raises(Mine) as caught:
                esgroup.minimize(fails, X0, 0.5, rng=1, **where)  # type: ignore[arg-type]
            assert caught.value is error
            assert result_of(error).nfev == 0

    def test_values_that_arrived_before_are_in_the_result(self) -> None:
        fun = Recorder(ellipsoid, 17, lambda: (_ for _ in ()).throw(Mine("17")))
        with pytest.raises(Mine) as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, popsize=POPSIZE)
        result = result_of(caught.value)
        values = [ellipsoid(x) for x in fun.points]
        assert (result.nfev, result.nit, result.fun) == (17, 2, min(values))
        assert np.array_equal(result.x, fun.points[int(np.argmin(values))])

    @pytest.mark.parametrize("way", ["workers", "asynchronous workers", "threads", "asynchronous threads"])
    def test_an_error_arrives_although_another_evaluation_hangs(self, way: str, tmp_path: Path) -> None:
        pool = ThreadPoolExecutor(2)
        where: dict[str, Any] = {"workers": 2} if "workers" in way else {"executor": pool}
        begin = time.monotonic()
        try:
            with pytest.raises(Mine) as caught:
                fun = partial(fails_beside_one_that_hangs, tmp_path)
                esgroup.minimize(fun, X0, 0.5, rng=1, asynchronous="asynchronous" in way, **where)
            assert time.monotonic() - begin < PATIENCE / 2
            assert caught.value.args == ("beside", 1) and result_of(caught.value).nfev == 0
        finally:
            (tmp_path / "go").touch()
            pool.shutdown()

    @pytest.mark.parametrize("way", ["generations", "asynchronous"])
    def test_an_exception_of_the_callback_carries_the_result(self, way: str, threads: ThreadPoolExecutor) -> None:
        options: dict[str, Any] = {"rng": 1, "popsize": POPSIZE, "executor": threads}
        options["asynchronous"] = way == "asynchronous"
        error = Mine("callback")

        def callback(search: Any) -> None:
            if search.nfev >= 2 * POPSIZE:
                raise error

        with pytest.raises(Mine) as caught:
            esgroup.minimize(ellipsoid, X0, 0.5, callback=callback, **options)
        assert caught.value is error
        assert 2 * POPSIZE <= result_of(error).nfev <= 2 * POPSIZE + 2 * (way == "asynchronous")


def fails_beside_one_that_hangs(place: Path, x: Array) -> float:
    if nth(place) == 0:
        until((place / "go").exists)
        return 0.0
    raise Mine("beside", 1)


class TestNaN:
    @pytest.mark.parametrize("way", WAYS)
    def test_the_run_goes_on_and_the_message_tells_the_last_failure(self, way: str, search: Callable[..., Any]) -> None:
        script = {1: Mine("first")} if way == "vectorized" else {3: Mine("first"), 16: Mine("last")}
        result = search(way, script, on_error="nan")
        assert (result.nfev, result.nfailed) == (30, POPSIZE if way == "vectorized" else 2)
        assert result.stop.keys() == {"max_evals"}
        assert result.message.endswith(f"The last failure: Mine: {'first' if way == 'vectorized' else 'last'}")
        assert result.fun == ellipsoid(result.x)

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("kinds", [Mine, (KeyError, Mine), (LookupError, Mine)])
    def test_types_say_which_exceptions_are_failures(self, way: str, kinds: Any, search: Callable[..., Any]) -> None:
        failed = POPSIZE if way == "vectorized" else 1
        assert search(way, {2: Mine("m")}, on_error=kinds, max_evals=18).nfailed == failed
        with pytest.raises(ZeroDivisionError) as caught:
            search(way, {n: ZeroDivisionError("z") for n in range(1000)}, on_error=kinds)
        assert caught.value.args == ("z",) and result_of(caught.value).nfev == 0

    def test_a_type_means_what_derives_from_it_as_well(self) -> None:
        def fails(x: Array) -> float:
            return {}[float(x[0])]  # type: ignore[no-any-return]

        result = esgroup.minimize(fails, X0, 0.5, rng=1, on_error=LookupError, max_evals=8)
        assert (result.nfev, result.nfailed) == (8, 8) and math.isnan(result.fun) and not result.success

    @pytest.mark.parametrize(
        ("error", "on_error"),
        [
            (ValueError, "ignore"),
            (ValueError, ""),
            (TypeError, KeyboardInterrupt),
            (TypeError, BaseException),
            (TypeError, (ValueError, SystemExit)),
            (TypeError, int),
            (TypeError, ("nan",)),
            (TypeError, None),
            (TypeError, [ValueError]),
            (TypeError, ValueError("an instance")),
        ],
    )
    def test_others_are_refused_by_name(self, error: type[Exception], on_error: Any) -> None:
        with pytest.raises(error, match="on_error must be 'raise', 'nan' or exception types, got") as caught:
            esgroup.minimize(pytest.fail, X0, 0.5, on_error=on_error)
        assert str(caught.value).endswith(repr(on_error))

    @pytest.mark.parametrize("value", [0, -1])
    def test_numbers_of_failures_below_one_are_refused(self, value: int) -> None:
        with pytest.raises(ValueError, match=rf"max_failures .* {value}"):
            esgroup.minimize(pytest.fail, X0, 0.5, max_failures=value)


def dies(x: Array) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


class Unloadable:
    """An objective that can be sent to a process, but not be loaded there."""

    def __reduce__(self) -> Any:
        return int, ("no number",)

    def __call__(self, x: Array) -> float:
        return 0.0


class TestNobodyEvaluates:
    """That is no failure of an evaluation: without an error the whole budget would be gone at once."""

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_an_executor_that_takes_no_points_is_an_error(self, asynchronous: bool) -> None:
        pool = ThreadPoolExecutor(2)
        fun = Recorder(ellipsoid, 10, partial(pool.shutdown, wait=False))
        with pytest.raises(RuntimeError, match="after shutdown") as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, executor=pool, asynchronous=asynchronous, on_error="nan")
        result = result_of(caught.value)
        assert result.nfailed == 0 and 0 <= len(fun.points) - result.nfev <= asynchronous  # one may still run

    def test_a_broken_pool_is_an_error(self) -> None:
        with ProcessPoolExecutor(2) as pool, pytest.raises(RuntimeError, match="executor is broken") as caught:
            esgroup.minimize(dies, X0, 0.5, rng=1, executor=pool, on_error="nan")
        assert result_of(caught.value).nfev == 0

    def test_a_function_that_processes_cannot_load_is_an_error(self) -> None:
        with pytest.raises(TypeError, match="cannot load fun") as caught:
            esgroup.minimize(Unloadable(), X0, 0.5, rng=1, workers=2, on_error="nan")
        assert result_of(caught.value).nfev == 0

    def test_a_point_that_kills_every_process_is_a_failure(self) -> None:
        result = esgroup.minimize(dies, X0, 0.5, rng=1, workers=2, on_error="nan", max_failures=1)
        assert result.nfailed >= 1 and "lost with its worker" in result.stop["failures"]


class TestMaxFailures:
    @pytest.mark.parametrize("way", ["serial", "map"])
    @pytest.mark.parametrize("kind", ["exception", "nan", "mixed"])
    def test_the_run_ends_exactly_after_as_many_in_a_row(
        self, way: str, kind: str, search: Callable[..., Any], tmp_path: Path
    ) -> None:
        """Two, a success, two across the end of a generation, a success, then three."""
        at = [1, 2, 5, 6, 8, 9, 10]
        fails: Any = {"exception": [Mine("m")], "nan": [math.nan], "mixed": [Mine("m"), math.nan]}[kind]
        script = {n: fails[i % len(fails)] for i, n in enumerate(at)}
        result = search(way, script, on_error="nan", max_failures=3)
        assert (result.nfev, result.nfailed) == (11, 7) and calls(tmp_path) == 11
        said = "the value was NaN" if kind == "nan" else "Mine: m"
        assert result.stop == {"failures": f"3 evaluations in a row failed, the last one with: {said}"}
        assert (result.success, result.status) == (False, 3)
        assert math.isfinite(result.fun)
        assert result.message.count(said) == 1

    @pytest.mark.parametrize("way", ["workers", "threads", "asynchronous"])
    def test_in_parallel_only_what_has_begun_is_added(
        self, way: str, search: Callable[..., Any], tmp_path: Path
    ) -> None:
        result = search(way, {n: Mine("m") for n in range(8, 1000)}, on_error=Mine, max_failures=3, max_evals=1000)
        assert 3 <= result.nfailed <= 4 and result.nfev - result.nfailed == 8
        assert result.stop.keys() == {"failures"} and not result.success
        assert calls(tmp_path) <= result.nfev + 1  # one may have begun beside the last failure

    @pytest.mark.parametrize("wrap", [float, np.float64, np.float32, np.array, lambda f: np.array([f]), lambda f: [f]])
    def test_nan_counts_in_every_kind_of_number(self, wrap: Any) -> None:
        result = esgroup.minimize(lambda x: wrap(math.nan), X0, 0.5, rng=1, max_failures=3)
        assert (result.nfev, result.nfailed) == (3, 3) and result.stop.keys() == {"failures"}

    @pytest.mark.parametrize("dtype", [float, np.float32])
    def test_successes_in_the_same_call_change_nothing(self, dtype: Any) -> None:
        """A vectorized generation has one end: three failures in a row anywhere in it are enough."""

        def rows(X: Array) -> Array:
            values = ellipsoid_rows(X)
            values[1:4] = math.nan
            return values.astype(dtype)

        result = esgroup.minimize(rows, X0, 0.5, rng=1, popsize=POPSIZE, vectorized=True, max_failures=3)
        assert (result.nfev, result.nfailed) == (POPSIZE, 3) and result.stop.keys() == {"failures"}
        result = esgroup.minimize(rows, X0, 0.5, rng=1, popsize=POPSIZE, vectorized=True, max_failures=4, max_evals=30)
        assert (result.nfev, result.nfailed) == (30, 15) and result.stop.keys() == {"max_evals"}

    def test_no_other_run_begins(self) -> None:
        result = esgroup.minimize(lambda x: math.nan, X0, 0.5, rng=1, restarts="ipop", max_failures=20)
        assert (result.nfev, result.restarts) == (20, 0) and result.stop.keys() == {"failures"}

    def test_without_it_failures_end_nothing_for_long(self) -> None:
        assert esgroup.minimize(lambda x: math.nan, X0, 0.5, rng=1, max_evals=50).nfev == 50


class TestSysExit:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("code", [(3,), ("text",), ()])
    def test_it_is_an_error_of_the_objective(self, way: str, code: Any, search: Callable[..., Any]) -> None:
        with pytest.raises(RuntimeError) as caught:
            search(way, {2: code})
        assert str(caught.value) == f"fun called sys.exit({repr(code[0]) if code else ''})"
        assert result_of(caught.value).nfailed == 0

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("code", [(3,), ("text",)])
    def test_it_may_count_as_a_failure(self, way: str, code: Any, search: Callable[..., Any]) -> None:
        result = search(way, {2: code}, on_error="nan")
        assert (result.nfev, result.nfailed) == (30, POPSIZE if way == "vectorized" else 1)
        assert result.message.endswith(f"The last failure: RuntimeError: fun called sys.exit({code[0]!r})")


class TestValuesThatAreNoNumbers:
    @pytest.mark.parametrize("way", ["serial", "map", "workers", "threads", "asynchronous"])
    @pytest.mark.parametrize("value", ["text", [1.0, 2.0], "nan"])
    def test_they_raise_and_the_others_count(self, way: str, value: Any, search: Callable[..., Any]) -> None:
        with pytest.raises(ValueError, match="the function returned") as caught:
            search(way, {POPSIZE + 2: value}, on_error="nan")
        result = result_of(caught.value)
        assert POPSIZE <= result.nfev < 2 * POPSIZE and result.fun == ellipsoid(result.x)

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_none_is_no_number(self, asynchronous: bool, threads: ThreadPoolExecutor) -> None:
        with pytest.raises(ValueError, match=r"function returned None at x = .*is a return missing") as caught:
            esgroup.minimize(lambda x: None, X0, 0.5, rng=1, executor=threads, asynchronous=asynchronous)
        assert result_of(caught.value).nfev == 0


class TestTimeouts:
    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_process_that_hangs_is_replaced(self, workers: int, asynchronous: bool, tmp_path: Path) -> None:
        """At the third and eleventh call; nothing is left of them (a fixture looks)."""
        options: dict[str, Any] = {"workers": workers, "asynchronous": asynchronous, "eval_timeout": 0.5}
        fun = partial(hangs_at, tmp_path, (2, 10))
        result = esgroup.minimize(fun, X0, 0.5, rng=1, popsize=POPSIZE, max_evals=20, **options)
        assert (result.nfev, result.nfailed, calls(tmp_path)) == (20, 2, 20)
        said = "TooSlow: the evaluation took longer than eval_timeout=0.5 s"
        assert result.message.endswith(f"The last failure: {said}")

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_the_late_value_of_a_thread_is_ignored(self, asynchronous: bool, tmp_path: Path) -> None:
        late = threading.Event()

        def fun(x: Array) -> float:
            n = nth(tmp_path)
            if n == 2:
                assert late.wait(PATIENCE)
                return -1e9  # it would be the best
            time.sleep(0.05)  # the others must take longer together than the limit
            if n == 20:
                late.set()
            return ellipsoid(x)

        with ThreadPoolExecutor(2) as pool:
            result = esgroup.minimize(
                fun, X0, 0.5, rng=1, max_evals=30, executor=pool, asynchronous=asynchronous, eval_timeout=0.6
            )
        assert (result.nfev, result.nfailed, calls(tmp_path)) == (30, 1, 30)
        assert result.fun >= 0

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_where_all_threads_hang_there_is_an_error(self, asynchronous: bool) -> None:
        go = threading.Event()

        def hangs(x: Array) -> float:
            go.wait(PATIENCE)
            return 0.0

        with ThreadPoolExecutor(2) as pool:
            try:
                with pytest.raises(RuntimeError, match=r"all 2 slots .*eval_timeout=0\.2 s.*workers=n") as caught:
                    options: dict[str, Any] = {"asynchronous": asynchronous, "eval_timeout": 0.2, "max_evals": 30}
                    esgroup.minimize(hangs, X0, 0.5, rng=1, executor=pool, **options)
                assert result_of(caught.value).nfev == result_of(caught.value).nfailed == 2
            finally:
                go.set()

    def test_the_time_that_a_point_waits_for_a_thread_does_not_count(self) -> None:
        """More points may be out than there are threads; none of them takes as long as the limit."""

        def slow(x: Array) -> float:
            time.sleep(0.15)
            return ellipsoid(x)

        with ThreadPoolExecutor(1) as pool:
            for asynchronous in (False, True):
                options: dict[str, Any] = {"asynchronous": asynchronous, "max_pending": 8, "eval_timeout": 0.9}
                result = esgroup.minimize(slow, X0, 0.5, rng=1, executor=pool, max_evals=8, **options)
                assert (result.nfev, result.nfailed) == (8, 0)

    @pytest.mark.parametrize("where", [{}, {"workers": map}, {"vectorized": True}])
    def test_it_needs_evaluations_elsewhere(self, where: dict[str, Any]) -> None:
        for option in ({"eval_timeout": 1.0}, {"max_pending": 2}, {"asynchronous": True}):
            with pytest.raises(ValueError, match=next(iter(option))):
                esgroup.minimize(pytest.fail, X0, 0.5, **where, **option)  # type: ignore[arg-type]

    def test_it_needs_the_number_of_places(self) -> None:
        class AtOnce(Executor):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                future.set_result(fn(*args))
                return future

        with pytest.raises(ValueError, match=r"max_pending must be given with eval_timeout.*AtOnce"):
            esgroup.minimize(pytest.fail, X0, 0.5, executor=AtOnce(), eval_timeout=1.0)
        options: dict[str, Any] = {"executor": AtOnce(), "eval_timeout": 1.0, "max_pending": 2}
        assert esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_evals=20, **options).nfev == 20

    @pytest.mark.parametrize("value", [0, -1.0, math.nan, "1"])
    def test_it_must_be_a_positive_number(self, value: Any) -> None:
        with pytest.raises((ValueError, TypeError), match="eval_timeout"):
            esgroup.minimize(ellipsoid, X0, 0.5, workers=2, eval_timeout=value)


def hangs_at(place: Path, at: tuple[int, ...], x: Array) -> float:
    if nth(place) in at:
        time.sleep(10 * PATIENCE)
    return ellipsoid(x)


class TestMaxPending:
    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("where", ["workers", "threads"])
    def test_no_more_points_are_under_way(self, where: str, asynchronous: bool, tmp_path: Path) -> None:
        """Four could be; each evaluation looks how many there are while it runs."""
        fun = partial(counts_its_neighbors, tmp_path)
        options: dict[str, Any] = {"asynchronous": asynchronous, "max_pending": 2, "popsize": 8, "max_evals": 24}
        with ThreadPoolExecutor(4) as pool:
            options |= {"workers": 4} if where == "workers" else {"executor": pool}
            esgroup.minimize(fun, X0, 0.5, rng=1, **options)
        assert max(int(path.name.split()[1]) for path in tmp_path.glob("most *")) == 2


def counts_its_neighbors(place: Path, x: Array) -> float:
    mine = place / f"call {nth(place)}"
    time.sleep(0.02)
    (place / f"most {calls(place) - len(list(place.glob('end *')))}").touch()
    mine.with_name(mine.name.replace("call", "end")).touch()
    return ellipsoid(x)


class TestMaxTime:
    @pytest.mark.usefixtures("forked")
    @pytest.mark.parametrize("way", ["serial", "map", "workers", "threads", "asynchronous"])
    def test_no_evaluation_begins_after_the_limit(self, way: str, tmp_path: Path) -> None:
        """It falls into the second generation and, where nothing is delayed, into the middle of an evaluation."""
        popsize, seconds, limit, slack = (20, 0.05, 1.6, 0.04) if way in ("serial", "map") else (6, 0.25, 1.22, 0.02)
        began: list[float] = []

        def callback(search: Any) -> None:
            began.append(time.monotonic() - search.seconds)

        with ThreadPoolExecutor(2) as pool:
            where: dict[str, Any] = {
                "serial": {},
                "map": {"workers": map},
                "workers": {"workers": 2},
                "threads": {"executor": pool},
                "asynchronous": {"executor": pool, "asynchronous": True},
            }[way]
            esgroup.minimize(ellipsoid, X0, 0.5, popsize=popsize, max_iters=2)  # loops that are compiled take seconds
            options: dict[str, Any] = {"popsize": popsize, "max_time": limit, "callback": callback, **where}
            result = esgroup.minimize(partial(stamped, tmp_path, seconds), X0, 0.5, rng=1, **options)
        stamps = [float(path.read_text()) for path in tmp_path.glob("call *")]
        assert result.stop.keys() == {"max_time"} and result.nfev == len(stamps) > popsize
        assert max(stamps) <= min(began) + limit + slack  # from the look at the clock to the objective's first line

    @pytest.mark.parametrize("way", ["workers", "threads"])
    def test_no_point_is_handed_over_once_it_is_enough(
        self, way: str, tmp_path: Path, threads: ThreadPoolExecutor
    ) -> None:
        """The first two evaluations end the time: nobody has a third point to begin with."""
        where: dict[str, Any] = {"workers": 2} if way == "workers" else {"executor": threads}
        arrived: dict[int, Any] = {}

        def should_stop() -> bool:
            if not (tmp_path / "over").exists():
                return False
            time.sleep(0.2)  # whoever has a point can begin it
            return True

        with ExitStack() as stack:
            evaluate = Evaluation(partial(ends_the_time, tmp_path), Failures(), **where).generations(stack, timed=True)
            evaluate(np.ones((10, 3)), arrived, should_stop)
        assert sorted(arrived) == [0, 1] and calls(tmp_path) == 2


def ends_the_time(place: Path, x: Array) -> float:
    nth(place)
    until(lambda: calls(place) >= 2)
    (place / "over").touch()
    return ellipsoid(x)


def stamped(place: Path, seconds: float, x: Array) -> float:
    (place / f"call {nth(place)}").write_text(repr(time.monotonic()))
    time.sleep(seconds)
    return ellipsoid(x)
