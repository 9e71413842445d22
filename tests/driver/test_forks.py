"""Objectives that fork: only the process that was asked answers, and a forked one ends where the objective ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from tests.driver.support import evaluator
from tests.driver.test_processes import pids, running
from tests.driver.worker_pool_laws import until

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.usefixtures("no_process_is_left"),
]

ROOT = Path(__file__).parents[2]
X = np.arange(12.0).reshape(4, 3)


def returns() -> float:
    return -1.0


def raises() -> float:
    raise ZeroDivisionError("in a child")


STATUS: dict[str, tuple[Callable[[], Any], int]] = {
    "returns": (returns, 0),
    "exits": (sys.exit, 0),
    "exits with 3": (partial(sys.exit, 3), 3),
    "exits with a text": (partial(sys.exit, "a reason"), 1),
    "raises": (raises, 1),
}


def status_of_child(x: Array, does: str) -> float:
    """The status with which a process ends that was forked here and did not end in the objective."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # if nobody ends it, it ends here: it would fork others
        return float(STATUS[does][0]())
    return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@pytest.mark.parametrize("does", STATUS)
def test_with_workers_a_forked_process_ends_with_its_own_status(does: str) -> None:
    with evaluator(status_of_child, (does,), workers=2, eval_timeout=5) as evaluate:
        assert evaluate(X) == [STATUS[does][1]] * 4


def test_on_executors_a_forked_process_ends_with_its_own_status() -> None:
    for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
        with pool, evaluator(status_of_child, ("exits with 3",), executor=pool) as evaluate:
            assert evaluate(X) == [3.0] * 4


SERIAL = """
import os, sys
import numpy as np
from esgroup.driver.failures import Failures
from tests.driver.support import evaluator
from tests.driver.test_forks import STATUS, X, status_of_child

def of_rows(X, does):
    return [status_of_child(X[0], does)] * len(X)

def shown(does, fun, **where):
    with evaluator(fun, (does,), **where) as evaluate:
        values = evaluate(X)
        if os.getpid() != first:
            os._exit(9)  # a copy of the search: it must not fork any more
        print(values == [STATUS[does][1]] * 4, flush=True)

first = os.getpid()
for does in STATUS:
    shown(does, status_of_child)
    shown(does, status_of_child, failures=Failures("nan"))
    shown(does, status_of_child, failures=Failures("nan"), workers=map)
    shown(does, of_rows, failures=Failures("nan"), vectorized=True)
"""


def test_without_workers_no_forked_process_goes_on_with_the_search() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", SERIAL], capture_output=True, text=True, timeout=60, env=environment)
    assert run.stdout.split() == ["True"] * 4 * len(STATUS), run.stderr
    assert run.stderr.count("ZeroDivisionError: in a child") == 13 == run.stderr.count("a reason")  # for 3 * 4 + 1


def forks_and_returns(x: Array, place: str) -> float:
    """Both processes return the value; it differs in the one that was forked."""
    (Path(place) / f"pid {os.getpid()}").touch()
    wrong = os.fork() == 0
    if wrong:
        signal.alarm(10)
        (Path(place) / f"pid {os.getpid()}").touch()
    return float(x @ x) + (1000.0 if wrong else 0.0)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_with_workers_has_the_values_of_those_that_were_asked(asynchronous: bool, tmp_path: Path) -> None:
    points: dict[str, Any] = {"rng": 1, "max_evals": 30, "popsize": 6, "args": (str(tmp_path),)}
    result = esgroup.minimize(
        forks_and_returns, np.ones(3), 0.5, workers=2, eval_timeout=20, asynchronous=asynchronous, **points
    )
    assert result.fun == float(result.x @ result.x) and result.nfev == 30 and result.nfailed == 0
    until(lambda: not any(map(running, pids(tmp_path))))
    assert len(pids(tmp_path)) > 30  # one for each evaluation, and the workers


def prints_in_a_child(x: Array) -> float:
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        print("printed in a child")
        return 0.0
    os.waitpid(child, 0)
    return 1.0


def test_what_a_forked_process_has_printed_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with evaluator(prints_in_a_child, workers=2) as evaluate:
        assert evaluate(X) == [1.0] * 4
    assert capfd.readouterr().out.count("printed in a child") == 4
