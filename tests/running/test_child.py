"""A process that exchanges messages with the one that started it."""

import os
import signal
import subprocess
import time

import pytest

from esgroup.running.child import Child, Line, end_all, wait_for
from tests.driver.test_processes import running
from tests.driver.worker_pool_laws import PATIENCE, until


def repeats(line: Line, times: int) -> None:
    while (message := line.receive()) not in (None, b"end"):
        line.send(times * message)


def ends(line: Line, how: int) -> None:
    if how > 0:
        os._exit(how)
    os.kill(os.getpid(), -how)


def ignores(line: Line) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line.send(b"ready")
    time.sleep(60)


def received(child: Child) -> bytes:
    """The next message of the process, while what was not yet sent is sent."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        wait_for([child.line], 1.0)
        child.line.flush()
        if (message := child.line.receive()) is not None:
            return message
    raise AssertionError("no answer")


@pytest.mark.parametrize("method", [None, "spawn"])
def test_it_answers(method: str | None) -> None:
    child = Child(repeats, 2, method=method)
    assert child.line.receive() is None
    for message in (b"", b"again ", bytes(range(256)) * 5000):  # the last one is larger than what the line can hold
        child.line.send(message)
        assert child.process.is_alive() and received(child) == 2 * message
    child.line.send(b"1")
    child.line.send(b"2")
    assert (received(child), received(child)) == (b"11", b"22")
    child.line.send(b"end")
    end_all([child])
    assert not child.process.is_alive() and child.cause_of_death() == "its process exited with status 0"


@pytest.mark.parametrize(
    ("how", "cause"),
    [(7, "exited with status 7"), (-signal.SIGKILL, "by SIGKILL"), (-signal.SIGRTMIN - 2, "by signal 36")],
)
def test_its_cause_of_death_is_known(how: int, cause: str) -> None:
    child = Child(ends, how)
    with pytest.raises(EOFError):
        received(child)
    assert cause in child.cause_of_death()
    child.kill()


def test_one_that_does_not_end_when_it_is_told_to_is_killed() -> None:
    child = Child(ignores)
    assert received(child) == b"ready"
    child.process.terminate()
    end_all([child])
    assert child.cause_of_death() == "its process was killed by SIGKILL"


def test_one_that_is_stopped_makes_nobody_wait() -> None:
    child = Child(repeats, 2)
    try:
        child.line.send(b"1")
        assert received(child) == b"11"
        os.kill(child.process.pid, signal.SIGSTOP)
        large = bytes(10_000_000)
        child.line.send(large)
        assert child.line.unsent and child.line.receive() is None and wait_for([child.line], 0.01) == []
        os.kill(child.process.pid, signal.SIGCONT)
        assert received(child) == 2 * large and not child.line.unsent
    finally:
        child.kill()


def starts_a_program(line: Line) -> None:
    line.send(str(subprocess.Popen(["sleep", "60"]).pid).encode())
    line.receive()


@pytest.mark.parametrize("method", [None, "spawn"])
def test_a_program_that_it_has_started_ends_with_it(method: str | None) -> None:
    child = Child(starts_a_program, method=method)
    program = int(received(child))
    assert running(program)
    child.kill()
    until(lambda: not running(program))
