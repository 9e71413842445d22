"""Compare pools of processes as places for evaluations: our own, concurrent.futures, loky and pebble.

    python scripts/bench_pools.py                        everything, about eight minutes
    python scripts/bench_pools.py esgroup value start    these pools, these probes

Needs Linux, and loky and pebble (pip install loky pebble); one that is not installed is left out. Every probe runs in a
process of its own with two workers, forked where the pool leaves the choice. Times are the best of five. "hangs" is a
program that has not ended after 25 seconds; what it has left is then killed.

value          microseconds for an evaluation that costs nothing, in generations of 50 points of 10 variables
large          the same with 100,000 variables
start          milliseconds from nothing to the first value
timeout        six evaluations hang, and have half a second each: seconds until a seventh, quick one has a value
programs       how many of the programs that such evaluations have started are left two seconds after the end
forks          how many of 20 values are right if the objective forks and both processes return, and who is left
nested         whether an evaluation can use a pool of two itself
ctrl_c         seconds from Ctrl-C in a terminal to the end of a program whose evaluations hang, and who is left
killed         who is left two seconds after the program was killed
stopped        workers are stopped for ten seconds: how long submitting four points of 100,000 variables blocks
lambdas        whether a lambda can be evaluated
"""

# extras: workers

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.driver.processes import Processes

POOLS = ("esgroup", "concurrent", "loky", "pebble")
WORKERS = 2


class Own:
    """Our processes, asked in the way of an executor."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.worker_pool: Any = None

    def values(self, fun: Any, points: Any) -> list[Any]:
        if self.worker_pool is None:
            self.worker_pool = Processes(fun, WORKERS, timeout=self.timeout, ahead=0 if self.timeout else 1)
        for i, x in enumerate(points):
            self.worker_pool.submit(i, x)
        values: dict[Any, Any] = {}
        while self.worker_pool.out:
            values.update(self.worker_pool.collect())
        return [values[i] for i in range(len(values))]

    def submit(self, fun: Any, x: Any) -> None:
        self.worker_pool.submit("key", x)

    def close(self) -> None:
        if self.worker_pool is not None:
            self.worker_pool.close()


class Executor:
    """A pool with futures; `timeout` is pebble's own where there is one, else futures are given up."""

    def __init__(self, name: str, timeout: float | None) -> None:
        self.timeout, self.name = timeout, name
        if name == "concurrent":
            self.pool: Any = ProcessPoolExecutor(WORKERS)
        elif name == "loky":
            import loky

            self.pool = loky.ProcessPoolExecutor(WORKERS)
        else:
            import pebble

            self.pool = pebble.ProcessPool(WORKERS)

    def submit(self, fun: Any, x: Any) -> Future[Any]:
        if self.name == "pebble":
            return self.pool.schedule(fun, args=(x,), timeout=self.timeout)
        return self.pool.submit(fun, x)

    def values(self, fun: Any, points: Any) -> list[Any]:
        futures, outcomes = [self.submit(fun, x) for x in points], []
        for future in futures:
            try:
                outcomes.append(future.result(None if self.name == "pebble" else self.timeout))
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def close(self) -> None:
        if self.name == "pebble":
            self.pool.stop()
            self.pool.join()
        elif self.name == "loky":
            self.pool.shutdown(kill_workers=True)
        else:
            self.pool.shutdown(wait=False, cancel_futures=True)


def made(name: str, timeout: float | None = None) -> Any:
    return Own(timeout) if name == "esgroup" else Executor(name, timeout)


# ---- objectives -------------------------------------------------------------------------------------------------


def first(x: Any) -> float:
    return float(x[0])


def noted(pid: int) -> None:
    (Path(os.environ["POOL_PLACE"]) / str(pid)).touch()


def hangs(x: Any) -> float:
    if x[0]:
        noted(os.getpid())
        time.sleep(60)
    return 0.0


def runs_a_program(x: Any) -> float:
    if x[0]:
        program = subprocess.Popen(["sleep", "60"])
        noted(program.pid)
        program.wait()
    return 0.0


def forks(x: Any) -> float:
    wrong = os.fork() == 0
    if wrong:
        signal.alarm(20)
        noted(os.getpid())
    return float(x[0]) + (1000.0 if wrong else 0.0)


def nests(x: Any) -> float:
    pool = made(os.environ["POOL_NAME"])
    (value,) = pool.values(first, [x])
    pool.close()
    return float(value)


def who(x: Any) -> int:
    return os.getpid()


# ---- probes -----------------------------------------------------------------------------------------------------


def value(name: str, dim: int = 10, many: int = 40) -> float:
    pool, points, times = made(name), np.ones((50, dim)), []
    pool.values(first, points)
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(many):
            pool.values(first, points)
        times.append((time.perf_counter() - begin) / (50 * many))
    pool.close()
    return round(1e6 * min(times))


def large(name: str) -> float:
    return value(name, 100_000, 1)


def start(name: str) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        pool = made(name)
        pool.values(first, [np.ones(10)])
        times.append(time.perf_counter() - begin)
        pool.close()
    return round(1e3 * min(times))


def timeout(name: str, fun: Any = hangs) -> str:
    begin = time.monotonic()
    pool = made(name, 0.5)
    late = sum(isinstance(outcome, TimeoutError) for outcome in pool.values(fun, np.ones((6, 10))))
    (after,) = pool.values(fun, np.zeros((1, 10)))
    seconds = time.monotonic() - begin
    pool.close()
    return f"{seconds:.1f} s" if late == 6 and after == 0.0 else "no value"


def programs(name: str) -> str:
    return timeout(name, runs_a_program)


def forking(name: str) -> str:
    pool = made(name, 10.0)
    outcomes = pool.values(forks, np.arange(20.0)[:, None])
    right = sum(outcome == i for i, outcome in enumerate(outcomes))
    pool.close()
    return f"{right} of 20"


def nested(name: str) -> str:
    pool = made(name, 20.0)
    (outcome,) = pool.values(nests, [np.ones(3)])
    pool.close()
    return "yes" if outcome == 1.0 else f"no ({type(outcome).__name__})"


def waiting(name: str) -> str:
    pool = made(name)
    try:
        pool.values(hangs, np.ones((2, 3)))
    finally:
        pool.close()
    return "it did not hang"


def stopped(name: str) -> str:
    pool = made(name, 2.0)
    workers = set(pool.values(who, np.ones((20, 3))))
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(10.0, os.kill, (pid, signal.SIGCONT)).start()
    begin = time.monotonic()
    for _ in range(4):
        pool.submit(who, np.ones(100_000))
    seconds = time.monotonic() - begin
    pool.close()
    return f"{seconds:.1f} s"


def lambdas(name: str) -> str:
    pool = made(name, 10.0)
    (outcome,) = pool.values(lambda x: 2.0, [np.ones(3)])
    pool.close()
    return "yes" if outcome == 2.0 else f"no ({type(outcome).__name__})"


PROBES: dict[str, Any] = {
    "value": value,
    "large": large,
    "start": start,
    "timeout": timeout,
    "programs": programs,
    "forks": forking,
    "nested": nested,
    "ctrl_c": waiting,
    "killed": waiting,
    "stopped": stopped,
    "lambdas": lambdas,
}


# ---- the table --------------------------------------------------------------------------------------------------


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run(name: str, probe: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "POOL_PLACE": place, "POOL_NAME": name, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, __file__, "--probe", name, probe]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0
        ) as it:
            took = ""
            try:
                if probe in ("ctrl_c", "killed"):  # Ctrl-C reaches the whole group
                    end = time.monotonic() + 20
                    while len(os.listdir(place)) < 2 and time.monotonic() < end:
                        time.sleep(0.01)
                    time.sleep(0.2)
                    begin = time.monotonic()
                    if probe == "ctrl_c":
                        os.killpg(it.pid, signal.SIGINT)
                    else:
                        it.kill()
                    it.wait(10)
                    took = f"{time.monotonic() - begin:.1f} s"
                out, _ = it.communicate(timeout=25)
                answer = json.loads(out) if out.strip() and not took else took or f"failed with status {it.returncode}"
            except subprocess.TimeoutExpired:
                answer = "hangs"
            time.sleep(2)
            left = [int(pid) for pid in os.listdir(place) if running(int(pid))]
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(it.pid, signal.SIGKILL)
        counted = probe in ("timeout", "programs", "forks", "ctrl_c", "killed")
        return f"{answer}, {len(left)} left" if counted else f"{answer}"


def main(names: list[str]) -> None:
    if names[:1] == ["--probe"]:  # in the process of one probe
        print(json.dumps(PROBES[names[2]](names[1])), flush=True)
        return
    versions = []
    for package in ("numpy", "loky", "pebble", "cloudpickle"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{package} {importlib.metadata.version(package)}")
    print(f"Python {sys.version.split()[0]}, {', '.join(versions)}, {os.cpu_count()} cores\n", flush=True)
    if unknown := set(names) - {*POOLS, *PROBES}:
        sys.exit(f"arguments must be pools ({', '.join(POOLS)}) or probes ({', '.join(PROBES)}), got {unknown}")
    there = [name for name in POOLS if importlib.util.find_spec(name) is not None]
    pools = [name for name in there if name in names] or there
    for probe in [name for name in PROBES if name in names] or PROBES:
        print(f"{probe:10}", *(f"{pool}: {run(pool, probe)}" for pool in pools), sep=" | ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
