"""A process that is spoken to through a pipe."""

import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

import pytest

from esgroup.running.child import Child, end_all


def doubles(connection: "Connection[Any, Any]", factor: float) -> None:
    connection.send(factor * connection.recv())


def ends(connection: "Connection[Any, Any]", how: int) -> None:
    if how > 0:
        os._exit(how)
    os.kill(os.getpid(), -how)


def ignores(connection: "Connection[Any, Any]") -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection.send("ready")
    time.sleep(60)


@pytest.mark.parametrize("method", [None, "spawn"])
def test_it_answers(method: str | None) -> None:
    child = Child(doubles, 2.0, method=method)
    child.connection.send(21.0)
    assert child.alive and child.connection.recv() == 42.0
    end_all([child])
    assert not child.alive and child.cause_of_death() == "its process exited with status 0"


@pytest.mark.parametrize(
    ("how", "cause"),
    [(7, "exited with status 7"), (-signal.SIGKILL, "by SIGKILL"), (-signal.SIGRTMIN - 2, "by signal 36")],
)
def test_its_cause_of_death_is_known(how: int, cause: str) -> None:
    child = Child(ends, how)
    with pytest.raises(EOFError):
        child.connection.recv()
    assert cause in child.cause_of_death()
    child.kill()


def test_one_that_does_not_end_when_it_is_told_to_is_killed() -> None:
    child = Child(ignores)
    assert child.connection.recv() == "ready"
    child.terminate()
    end_all([child])
    assert child.cause_of_death() == "its process was killed by SIGKILL"
