"""Exceptions and interrupts: `minimize` keeps the values that have arrived, and the run can be resumed."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.generations import SearchRun
from esgroup.files import npz as files
from esgroup.search.searcher import Searcher
from tests.driver.support import X0, Recorder, ellipsoid, fail, same, wait_for
from tests.driver.worker_pool_laws import until


class TestFailures:
    OPTIONS: ClassVar[dict[str, Any]] = {"sigma0": 0.5, "rng": 9}

    def test_values_that_had_arrived_are_saved(self, tmp_path: Path) -> None:
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

    def test_values_before_one_that_is_no_number_are_saved(self, tmp_path: Path) -> None:
        path, calls = tmp_path / "run.npz", []

        def forgets(x: Array) -> float | None:
            calls.append(1)
            return None if len(calls) == 10 else ellipsoid(x)

        with pytest.raises(ValueError, match="the function returned None"):
            esgroup.minimize(forgets, X0, 0.5, rng=1, popsize=7, checkpoint=path)
        assert Searcher.load(path).nfev == 9
        esgroup.minimize(ellipsoid, X0, 0.5, rng=1, popsize=7, checkpoint=path, resume=True, max_iters=2)
        assert Searcher.load(path).nfev == 14

    def test_a_run_that_is_killed_at_once_after_it_was_resumed_can_be_resumed_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first checkpoint of the resumed run has values of a generation that is not complete."""

        def killed(*contents: Any) -> None:
            write(*contents)
            raise SystemExit

        path, write = tmp_path / "run.npz", files.write
        fun = Recorder(ellipsoid, 17, fail(RuntimeError("broken off")))
        options: dict[str, Any] = {"sigma0": 0.5, "rng": 1, "popsize": 7, "max_evals": 40}
        with pytest.raises(RuntimeError, match="broken off"):
            esgroup.minimize(fun, X0, checkpoint=path, **options)
        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(files, "write", killed)
            esgroup.minimize(fun, X0, checkpoint=path, resume=True, **options)
        result = esgroup.minimize(fun, X0, checkpoint=path, resume=True, **options)
        whole = Recorder(ellipsoid)
        assert result == esgroup.minimize(whole, X0, **options) and same(fun.points, whole.points)

    def test_an_exception_is_not_hidden_by_a_disk_that_is_full(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise OSError("no space left")

        fun = Recorder(ellipsoid, 20, lambda: (monkeypatch.setattr(files, "write", full), fail(KeyError("mine"))())[0])
        with pytest.raises(KeyError, match="mine") as caught:
            esgroup.minimize(fun, X0, 0.5, rng=1, checkpoint=tmp_path / "run.npz")
        assert caught.value.__notes__ == ["the checkpoint could not be written: no space left"]

    def test_partial_generations_of_many_threads_continue_bit_for_bit(self, tmp_path: Path) -> None:
        """Values arrive in any order, points and values are often equal, some are NaN: the result is the same."""

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

    def test_new_limits_may_end_a_partial_generation_and_lose_nothing(self, tmp_path: Path) -> None:
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
        assert result.nfev == whole.nfev == len(fun.points) == 40
        assert np.array_equal(result.xmean, whole.xmean)


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
        """The saved state is consistent: the run continues bit for bit."""
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

    def test_an_interrupt_while_the_result_is_made_brings_it_along(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That is when SciPy is imported, for as long as half a second."""
        original, calls = SearchRun.result, []

        def interrupted(*arguments: Any) -> Any:
            calls.append(1)
            if len(calls) == 1:
                signal.raise_signal(signal.SIGINT)
            return original(*arguments)

        monkeypatch.setattr(SearchRun, "result", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            esgroup.minimize(ellipsoid, X0, 0.5, rng=1, max_iters=3)
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
        """Ctrl-C reaches all processes: workers, idle or busy, print nothing, and the checkpoint is written."""
        for name, sizes in {"idle": (2, 4), "busy": (12, 2)}.items():
            path, process = self.started(tmp_path / name, *sizes)
            try:
                wait_for(path, lambda path: Searcher.load(path).nfev > 20, every=0.1)
                os.killpg(process.pid, signal.SIGINT)
                out, err = process.communicate(timeout=30)
                assert out.startswith("nfev "), err
                assert not [line for line in err.splitlines() if "compiling" not in line]
                assert Searcher.load(path).nfev == int(out.split()[1])
                until(partial(self.gone, process.pid))  # a fork server ends after its parent
            finally:
                with process, contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def gone(self, group: int) -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

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
