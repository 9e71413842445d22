"""Points in processes of our own: workers that die, hang or have workers themselves, and parents that are killed."""

import contextlib
import ctypes
import multiprocessing
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
import threading
import time
from collections.abc import Iterator
from fcntl import ioctl
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.calling import Call
from esgroup.driver.processes import Processes, WorkerTraceback
from esgroup.driver.worker_pool import TRIES, WorkerPool
from tests.driver.worker_pool_laws import (
    PATIENCE,
    WorkerPoolLaws,
    collect_all,
    dies_the_first_time,
    fails_at_three,
    point,
    submit_all,
    total,
    until,
    waits,
)

pytestmark = pytest.mark.usefixtures("no_process_is_left")

ROOT = Path(__file__).parents[2]


class TestLaws(WorkerPoolLaws):
    def worker_pool(self, call: Call, slots: int = 2, timeout: float | None = None) -> WorkerPool:
        return Processes(call, slots, timeout=timeout)


def running(pid: int) -> bool:
    """Whether a thread of the process is there that has not ended; before that, its parent cannot notice."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return True  # a thread has just gone: look again
    return any(text.rpartition(")")[2].split()[0] not in "ZX" for text in threads)


class TestWorkersThatDie:
    def test_their_points_are_evaluated_by_others(self, tmp_path: Path) -> None:
        with Processes(partial(dies_the_first_time, tmp_path), 2, ahead=1) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(30)})
            assert collect_all(worker_pool) == {i: 10.0 + i for i in range(30)}
        assert len(list(tmp_path.iterdir())) == 6

    @pytest.mark.parametrize(("how", "cause"), [("kill", "SIGKILL"), ("exit", "status 7")])
    def test_a_point_that_always_kills_is_given_up_and_those_behind_it_are_not(
        self, how: str, cause: str, tmp_path: Path
    ) -> None:
        with Processes(partial(kills_at_zero, tmp_path, how), 1, ahead=1) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(4)})
            outcomes = collect_all(worker_pool)
        error = outcomes.pop(0)
        assert isinstance(error, RuntimeError)
        assert f"lost with its worker {TRIES} times" in str(error) and cause in str(error)
        assert outcomes == {1: 11.0, 2: 12.0, 3: 13.0}
        assert len(list(tmp_path.iterdir())) == TRIES + 1

    def test_an_idle_one_is_replaced_and_no_point_is_blamed(self, tmp_path: Path) -> None:
        with Processes(partial(kills_twice, tmp_path), 1) as worker_pool:
            worker_pool.submit("before", point(1))
            ((_, pid),) = worker_pool.collect(PATIENCE)
            os.kill(pid, signal.SIGKILL)
            until(lambda: pid not in [child.pid for child in multiprocessing.active_children()])
            worker_pool.submit("after", point(0))
            after = collect_all(worker_pool)["after"]
            assert isinstance(after, int) and after != pid
        assert len(list(tmp_path.iterdir())) == TRIES - 1

    def test_their_death_is_noticed_while_processes_that_they_forked_go_on(self, tmp_path: Path) -> None:
        """Such a process keeps the pipe of the worker open."""
        with Processes(partial(dies_beside_its_child, tmp_path), 1) as worker_pool:
            begin = time.monotonic()
            worker_pool.submit("key", point(0))
            assert collect_all(worker_pool) == {"key": 10.0}
            assert time.monotonic() - begin < PATIENCE / 2
        (tmp_path / "go").touch()


def kills_at_zero(place: Path, how: str, x: Array) -> float:
    """Ends its process at the point 0 always, and at the point 1 once."""
    if x[0] == 0 or (x[0] == 1 and len(list(place.iterdir())) == TRIES):
        (place / str(os.getpid())).touch()
        if how == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    return total(x)


def kills_twice(place: Path, x: Array) -> int:
    if x[0] == 0 and len(list(place.iterdir())) < TRIES - 1:
        (place / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def dies_beside_its_child(place: Path, x: Array) -> float:
    if not (place / "forked").exists():
        (place / "forked").touch()
        if os.fork() == 0:
            try:
                until((place / "go").exists)
            finally:
                os._exit(0)
        os._exit(1)
    return total(x)


class TestTime:
    def test_a_worker_that_takes_too_long_is_replaced(self, tmp_path: Path) -> None:
        with Processes(partial(says_who_and_waits, tmp_path), 1, timeout=0.5, ahead=1) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(3)})
            outcomes = collect_all(worker_pool)
            assert isinstance(outcomes[0], TimeoutError)
            late = int(next(tmp_path.glob("pid *")).name.split()[1])
            assert outcomes[1] == outcomes[2] != late and not running(late)
            assert worker_pool.lost == 0 and worker_pool.free == 2

    def test_the_clock_of_a_point_starts_when_it_is_begun(self) -> None:
        """All of them together take longer than one may."""
        for ahead in (0, 1):
            with Processes(naps, 1, timeout=1.0, ahead=ahead) as worker_pool:
                submit_all(worker_pool, {i: point(i) for i in range(4)})
                assert collect_all(worker_pool) == dict.fromkeys(range(4), 1.0)

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_the_start_of_a_process_does_not_count(self, method: str, tmp_path: Path) -> None:
        """A process that is not forked imports the module of the objective first."""
        (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.9)\ndef double(x): return 2 * x\n")
        script = tmp_path / "script.py"
        script.write_text(
            "import multiprocessing\n"
            "from esgroup.driver.processes import Processes\n"
            "from slow_module import double\n"
            "if __name__ == '__main__':\n"
            f"    multiprocessing.set_start_method({method!r})\n"
            "    with Processes(double, 2, timeout=0.6) as worker_pool:\n"
            "        for i in range(4):\n"
            "            worker_pool.submit(i, i)\n"
            "        outcomes = []\n"
            "        while worker_pool.out:\n"
            "            outcomes += worker_pool.collect()\n"
            "    print(sorted(outcomes))\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, env=environment)
        assert run.stdout == "[(0, 0), (1, 2), (2, 4), (3, 6)]\n", run.stderr

    def test_the_end_of_the_context_waits_for_no_evaluation(self, tmp_path: Path) -> None:
        with Processes(partial(waits, tmp_path), 2) as worker_pool:
            worker_pool.submit("waits", point(0))
            worker_pool.submit("ready", point(1))
            assert worker_pool.collect(PATIENCE) == [("ready", 11.0)]
            begin = time.monotonic()
        assert time.monotonic() - begin < PATIENCE / 2


def says_who_and_waits(place: Path, x: Array) -> int:
    if x[0] == 0:
        (place / f"pid {os.getpid()}").touch()
        time.sleep(PATIENCE)
    return os.getpid()


def naps(x: Array) -> float:
    time.sleep(0.4)
    return 1.0


class TestWhatIsSent:
    @pytest.mark.parametrize("ahead", [0, 1])
    def test_a_point_that_was_sent_ahead_begins_without_this_process(self, ahead: int, tmp_path: Path) -> None:
        with Processes(partial(waits, tmp_path), 1, ahead=ahead) as worker_pool:
            assert worker_pool.free == 1 + ahead
            submit_all(worker_pool, {i: point(i) for i in range(3)})
            until((tmp_path / "begun 0").exists)
            assert worker_pool.cancel() == ([2] if ahead else [1, 2])
            (tmp_path / "go").touch()
            if ahead:
                until((tmp_path / "begun 1").exists)
            assert collect_all(worker_pool) == {i: 10.0 + i for i in range(1 + ahead)}

    def test_large_points_and_values_do_not_block_each_other(self) -> None:
        points = {i: np.full(300_000, float(i)) for i in range(6)}
        with Processes(np.negative, 2, ahead=1) as worker_pool:
            submit_all(worker_pool, points)
            outcomes = collect_all(worker_pool)
        assert all(np.array_equal(outcomes[i], -points[i]) for i in points)

    def test_submitting_a_large_point_does_not_wait_for_an_evaluation(self, tmp_path: Path) -> None:
        with Processes(partial(waits, tmp_path), 1, ahead=1) as worker_pool:
            worker_pool.submit("small", point(0))
            begin = time.monotonic()
            worker_pool.submit("large", np.ones(1_000_000))
            assert time.monotonic() - begin < PATIENCE / 2
            (tmp_path / "go").touch()
            assert collect_all(worker_pool) == {"small": 10.0, "large": 1e6}

    def test_submitting_a_large_point_does_not_wait_until_a_process_has_started(self, tmp_path: Path) -> None:
        with Processes(LoadedLater(tmp_path), 1, ahead=1) as worker_pool:
            begin = time.monotonic()
            worker_pool.submit("large", np.ones(1_000_000))
            worker_pool.submit("small", point(0))  # it does not overtake the other one
            assert time.monotonic() - begin < PATIENCE / 2
            (tmp_path / "go").touch()
            assert collect_all(worker_pool) == {"large": 1e6, "small": 10.0}

    def test_the_place_of_an_error_in_the_worker_is_known(self) -> None:
        with Processes(fails_at_three, 2) as worker_pool:
            worker_pool.submit(0, point(3))
            error = collect_all(worker_pool)[0]
        assert isinstance(error.__cause__, WorkerTraceback)
        assert 'raise ZeroDivisionError("at three")' in str(error.__cause__)

    def test_what_cannot_be_sent_is_an_outcome(self) -> None:
        with Processes(locked, 1) as worker_pool:
            worker_pool.submit("point", threading.Lock())
            worker_pool.submit("value", point(0))
            worker_pool.submit("good", point(1))
            outcomes = collect_all(worker_pool)
        assert isinstance(outcomes["point"], RuntimeError) and "point cannot be sent" in str(outcomes["point"])
        assert isinstance(outcomes["value"], TypeError) and "got a lock" in str(outcomes["value"])
        assert outcomes["good"] == 11.0

    def test_an_objective_that_no_worker_can_load_is_an_outcome(self) -> None:
        with Processes(Unloadable(), 1) as worker_pool:
            worker_pool.submit("key", point(0))
            outcome = collect_all(worker_pool)["key"]
        assert isinstance(outcome, TypeError) and "cannot load fun (no license)" in str(outcome)

    def test_no_point_starts_no_process(self) -> None:
        before = set(multiprocessing.active_children())
        with Processes(total, 4) as worker_pool:
            assert worker_pool.collect(1.0) == []
            assert set(multiprocessing.active_children()) == before
            worker_pool.submit(0, point(0))
            assert len(set(multiprocessing.active_children()) - before) == 1
            collect_all(worker_pool)


def locked(x: Array) -> Any:
    return threading.Lock() if x[0] == 0 else total(x)


def _no_license() -> Call:
    raise OSError("no license")


def _load_later(place: Path) -> Call:
    until((place / "go").exists)
    return total


class LoadedLater:
    """An objective that is loaded when the file `go` is there."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __call__(self, x: Array) -> float:
        return total(x)

    def __reduce__(self) -> Any:
        return _load_later, (self.place,)


class Unloadable:
    """An objective that can be pickled but not unpickled."""

    def __call__(self, x: Array) -> float:
        return total(x)

    def __reduce__(self) -> Any:
        return _no_license, ()


class TestProgramsThatObjectivesStart:
    """They end with the worker, however that ends."""

    def left(self, place: Path, worker_pool: Processes, outcome: type[BaseException]) -> None:
        with worker_pool:
            worker_pool.submit("key", point(0))
            assert isinstance(collect_all(worker_pool)["key"], outcome)
            until(lambda: not any(map(running, pids(place))))
        assert pids(place)

    def test_when_it_takes_too_long(self, tmp_path: Path) -> None:
        self.left(tmp_path, Processes(partial(runs, tmp_path, "wait"), 1, timeout=0.3), TimeoutError)

    @pytest.mark.parametrize("how", ["kill", "exit"])
    def test_when_it_dies(self, how: str, tmp_path: Path) -> None:
        self.left(tmp_path, Processes(partial(runs, tmp_path, how), 1), RuntimeError)

    def test_when_nobody_needs_it_any_more(self, tmp_path: Path) -> None:
        with Processes(partial(runs, tmp_path, "return"), 2) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(4)})
            assert collect_all(worker_pool) == {i: 10.0 + i for i in range(4)}
            assert len(pids(tmp_path)) == 4 and all(map(running, pids(tmp_path)))  # the worker may still need them
        until(lambda: not any(map(running, pids(tmp_path))))

    def test_they_are_asked_first_so_that_they_can_clean_up(self, tmp_path: Path) -> None:
        script = f'trap \'touch "{tmp_path}/cleaned"; exit\' TERM; touch "{tmp_path}/begun"; sleep 60 & wait'
        with Processes(partial(runs_a_script, tmp_path, script), 1, timeout=5.0) as worker_pool:
            worker_pool.submit("key", point(0))
            until((tmp_path / "begun").exists)
        until((tmp_path / "cleaned").exists)
        until(lambda: not any(map(running, pids(tmp_path))))

    def test_those_that_do_not_listen_are_killed(self, tmp_path: Path) -> None:
        script = f"trap '' TERM; touch \"{tmp_path}/begun\"; sleep 60 & wait"
        with Processes(partial(runs_a_script, tmp_path, script), 1) as worker_pool:
            worker_pool.submit("key", point(0))
            until((tmp_path / "begun").exists)
        until(lambda: not any(map(running, pids(tmp_path))))


def started(place: Path, *command: str) -> "subprocess.Popen[bytes]":
    """Start a program and take note of it."""
    program = subprocess.Popen(command)
    (place / f"pid {program.pid}").touch()
    return program


def runs(place: Path, then: str, x: Array) -> float:
    program = started(place, "sleep", "60")
    if then == "wait":
        program.wait()
    elif then == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif then == "exit":
        os._exit(1)
    return total(x)


def runs_a_script(place: Path, script: str, x: Array) -> float:
    started(place, "sh", "-c", script).wait()
    return total(x)


@contextlib.contextmanager
def stopped(worker_pool: Processes) -> Iterator[int]:
    """A worker of the worker pool that is stopped; it continues if something hangs, so that the test can fail."""
    worker_pool.submit("who", point(0))
    ((_, pid),) = worker_pool.collect(PATIENCE)
    os.kill(pid, signal.SIGSTOP)
    timer = threading.Timer(PATIENCE / 2, os.kill, (pid, signal.SIGCONT))
    timer.start()
    try:
        yield pid
    finally:
        timer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def who(x: Array) -> int:
    return os.getpid()


class TestWorkersThatAreStopped:
    """As by SIGSTOP, a debugger or a swapping machine: they take no points."""

    LARGE = np.ones(1_000_000)

    def test_a_large_point_for_one_is_late_as_any_other(self) -> None:
        with Processes(who, 1, timeout=1.0) as worker_pool, stopped(worker_pool) as pid:
            begin = time.monotonic()
            worker_pool.submit("large", self.LARGE)
            assert isinstance(collect_all(worker_pool)["large"], TimeoutError)
            worker_pool.submit("next", self.LARGE)
            assert collect_all(worker_pool)["next"] != pid
            assert time.monotonic() - begin < PATIENCE / 3

    def test_others_evaluate_meanwhile(self) -> None:
        with Processes(who, 2) as worker_pool, stopped(worker_pool) as pid:
            begin = time.monotonic()
            submit_all(worker_pool, {i: self.LARGE for i in range(5)})
            outcomes = [outcome for _ in range(4) for outcome in worker_pool.collect(PATIENCE)]
            assert time.monotonic() - begin < PATIENCE / 3
            others = {value for _, value in outcomes}
            assert len(outcomes) == 4 and len(others) == 1 and pid not in others
            os.kill(pid, signal.SIGCONT)
            assert list(collect_all(worker_pool).values()) == [pid]  # the rest of the point is sent when there is room

    def test_the_end_of_the_context_does_not_wait_for_one(self) -> None:
        with Processes(who, 1) as worker_pool, stopped(worker_pool):
            worker_pool.submit("large", self.LARGE)
            begin = time.monotonic()
            worker_pool.close()
            assert time.monotonic() - begin < PATIENCE / 3


class TestNesting:
    def test_a_search_in_a_worker_has_workers_and_an_objective_of_its_own(self) -> None:
        result = esgroup.minimize(inner_minimum, [1.0], 0.5, rng=1, popsize=4, max_iters=2, workers=2)
        expected = esgroup.minimize(one_process, [1.0], 0.5, rng=1, popsize=4, max_iters=2)
        assert result.nfailed == 0 and result.fun == expected.fun

    def test_a_search_in_a_thread_has_workers(self) -> None:
        found: list[float] = []

        def search() -> None:
            found.append(esgroup.minimize(total_square, [1.0, 2.0], 0.5, rng=1, max_iters=3, workers=2).fun)

        thread = threading.Thread(target=search)
        thread.start()
        thread.join(PATIENCE)
        assert found == [esgroup.minimize(total_square, [1.0, 2.0], 0.5, rng=1, max_iters=3).fun]


def total_square(x: Array) -> float:
    return float(x @ x)


def shifted(x: Array, shift: float) -> float:
    return float((x[0] - shift) ** 2) + 100.0


def inner_minimum(x: Array, workers: int = 2) -> float:
    return float(
        esgroup.minimize(shifted, [0.0], 0.5, args=(x[0],), rng=1, popsize=4, max_iters=2, workers=workers).fun
    )


def one_process(x: Array) -> float:
    return inner_minimum(x, 1)


class TestSignals:
    def test_handlers_of_the_parent_are_not_called_in_workers(self, tmp_path: Path) -> None:
        """As with a parent that saves its work when it is asked to end."""
        before = signal.signal(signal.SIGTERM, lambda *_: (tmp_path / f"saved by {os.getpid()}").touch())
        try:
            with Processes(partial(says_who_and_waits, tmp_path), 1, timeout=0.5) as worker_pool:
                worker_pool.submit("key", point(0))
                assert isinstance(collect_all(worker_pool)["key"], TimeoutError)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert not list(tmp_path.glob("saved by *"))

    @pytest.mark.usefixtures("forked")
    def test_signals_that_are_ignored_stay_ignored(self) -> None:
        """As after nohup."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Processes(hangs_up, 1) as worker_pool:
                worker_pool.submit("key", point(0))
                assert collect_all(worker_pool) == {"key": 10.0}
        finally:
            signal.signal(signal.SIGHUP, before)

    @pytest.mark.parametrize(
        ("number", "method"),
        [
            *((number, "fork") for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)),
            *((signal.SIGKILL, method) for method in ("spawn", "forkserver")),
        ],
    )
    def test_no_worker_outlives_its_parent(self, number: signal.Signals, method: str, tmp_path: Path) -> None:
        """Neither those that are busy or idle, nor those that workers have, nor programs that they have started."""
        self.killed(number, method, "sleeps", tmp_path)

    def test_ctrl_c_in_a_terminal_ends_all_workers_and_only_the_parent_reports_it(self, tmp_path: Path) -> None:
        assert self.killed(signal.SIGINT, "fork", "sleeps", tmp_path).count("Traceback") == 1

    def test_no_worker_outlives_its_parent_in_a_function_that_lets_no_thread_run(self, tmp_path: Path) -> None:
        self.killed(signal.SIGKILL, "fork", "sleeps_in_c", tmp_path)

    def killed(self, number: signal.Signals, method: str, objective: str, place: Path) -> str:
        """Kill a process that has workers, see them end, and return what was written to stderr."""
        code = f"""
            import multiprocessing, sys
            from functools import partial
            from pathlib import Path
            from esgroup.driver.processes import Processes
            from tests.driver.worker_pool_laws import point
            from tests.driver.test_processes import nests
            if __name__ == "__main__":
                multiprocessing.set_start_method("{method}")
                with Processes(partial(nests, Path(sys.argv[1]), "{objective}"), 3) as worker_pool:
                    for i in range(3):
                        worker_pool.submit(i, point(i))
                    while worker_pool.out:
                        worker_pool.collect()
        """
        script = place / "script.py"
        script.write_text(textwrap.dedent(code))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ours, theirs = pty.openpty()
        with (
            (place / "stderr").open("w") as stderr,
            subprocess.Popen(
                [sys.executable, script, place],
                env=environment,
                start_new_session=True,
                stdin=theirs,
                stderr=stderr,
                # a terminal of its own, which would also end other processes when it is killed
                preexec_fn=(lambda: ioctl(0, termios.TIOCSCTTY, 0)) if number == signal.SIGINT else None,
            ) as process,
        ):
            try:
                expected = 8 if objective == "sleeps" else 6  # workers, and the programs of those that sleep
                until(lambda: len(pids(place)) == expected or process.poll() is not None)
                assert process.poll() is None and all(map(running, pids(place)))
                if number == signal.SIGINT:
                    os.write(ours, b"\x03")
                else:
                    process.send_signal(number)
                until(lambda: not any(map(running, pids(place))))
                assert process.wait(PATIENCE) == -number
            finally:
                process.kill()
                for pid in filter(running, pids(place)):
                    os.kill(pid, signal.SIGKILL)
                os.close(ours)
                os.close(theirs)
        return (place / "stderr").read_text()


def pids(place: Path) -> list[int]:
    return [int(path.name.split()[1]) for path in place.glob("pid *")]


def nests(place: Path, objective: str, x: Array) -> float:
    """One worker is idle, one waits for a program, and one has two workers that hang."""
    (place / f"pid {os.getpid()}").touch()
    if x[0] == 1:
        started(place, "sleep", "60").wait()
    if x[0] == 2:
        with Processes(partial(OBJECTIVES[objective], place), 2) as worker_pool:
            submit_all(worker_pool, {i: point(i) for i in range(2)})
            collect_all(worker_pool)
    return 0.0


def sleeps(place: Path, x: Array) -> float:
    (place / f"pid {os.getpid()}").touch()
    started(place, "sleep", "60").wait()
    return 0.0


def sleeps_in_c(place: Path, x: Array) -> float:
    (place / f"pid {os.getpid()}").touch()
    ctypes.PyDLL(None).sleep(60)  # unlike CDLL, it keeps the lock of the interpreter
    return 0.0


OBJECTIVES = {"sleeps": sleeps, "sleeps_in_c": sleeps_in_c}


def hangs_up(x: Array) -> float:
    os.kill(os.getpid(), signal.SIGHUP)
    return total(x)
