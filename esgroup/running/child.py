"""A process that exchanges messages with its parent and never outlives it.

It has its own session, whose processes end with it, including the programs that it started.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any

PATIENCE = 1.0  # seconds that a process has to end before it is killed
_CHUNK = 2**20  # most bytes to read at a time
_HEADER = 8  # bytes before each message with its length
_WATCH = 1.0  # seconds between checks of the parent where its end is not announced
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)  # quick to make, unlike the default
_PR_SET_PDEATHSIG = 1  # of prctl in <sys/prctl.h>: the signal that is sent when the parent ends


class Line:
    """One end of a line between two processes, which carries messages of bytes both ways.

    In the child, `send` and `receive` wait for the other end. In the parent nothing waits, because the child may be
    stopped. `flush` later sends what the line had no room for.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.unsent = memoryview(b"")  # waits for `flush`
        self._received = bytearray()

    def fileno(self) -> int:
        """The file descriptor, for selectors."""
        return self._end.fileno()

    def send(self, message: bytes) -> None:
        """Send a message, or begin to; OSError if the other end is closed."""
        self.unsent = memoryview(b"".join([self.unsent, len(message).to_bytes(_HEADER), message]))
        self.flush()

    def flush(self) -> None:
        """Send more of the waiting bytes."""
        with suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[self._end.send(self.unsent) :]

    def receive(self) -> bytes | None:
        """Return the next message, None if it is not there yet; EOFError or OSError if the other end is closed."""
        with suppress(BlockingIOError):
            while len(self._received) < (end := _HEADER + int.from_bytes(self._received[:_HEADER])):
                # not more than this message, so that a selector reports the next one
                if not (data := self._end.recv(min(end - len(self._received), _CHUNK))):
                    raise EOFError
                self._received += data
            message, self._received = bytes(memoryview(self._received)[_HEADER:]), bytearray()
            return message
        return None

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def wait_for(lines: Iterable[Line], seconds: float) -> list[Line]:
    """Wait until a line has something to read, or room for what it could not send; return these lines."""
    with _Selector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ | (selectors.EVENT_WRITE if line.unsent else 0), line)
        return [key.data for key, _ in selector.select(seconds)]


class Child:
    """A process that runs serve(line, *args); `line` here is the other end of its line.

    `method` is a start method of multiprocessing, None for the default. A daemon process may not have children. In the
    process, SIGTERM and SIGHUP act as if the parent had set no handlers, and SIGINT ends it silently. Ctrl-C in a
    terminal reaches only the parent, which ends the process: `process.terminate()` asks it and everything it started to
    end, and `end_all` waits for it.
    """

    def __init__(self, serve: Callable[..., None], *args: Any, method: str | None = None, daemon: bool = False) -> None:
        context: Any = get_context(method)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.line = Line(ours)
        self.process: Any = context.Process(target=_begin, args=(serve, theirs, os.getpid(), args), daemon=daemon)
        try:
            with _interrupts_later():
                self.process.start()
        except BaseException:
            if self.process.pid is not None:  # a delayed interrupt arrives once it has started
                self.process.kill()
            self.line.close()
            raise
        finally:
            theirs.close()  # if it stayed open here, the end of the process would not close the line

    def kill(self) -> None:
        """Kill the process at once, if it has not ended, and close its line."""
        self.process.kill()
        self.process.join()
        self.line.close()

    def cause_of_death(self) -> str:
        """Say how the process ended."""
        self.process.join(PATIENCE)  # its line closes a moment before the system knows the status
        code = self.process.exitcode
        if code is None:
            return "its process closed its connection"
        if code >= 0:
            return f"its process exited with status {code}"
        names = {int(number): number.name for number in signal.Signals}  # real-time signals have no names
        return f"its process was killed by {names.get(-code, f'signal {-code}')}"


def end_all(children: Iterable[Child]) -> None:
    """Wait `PATIENCE` seconds in all for processes to end, and kill those that do not."""
    children, last = list(children), time.monotonic() + PATIENCE
    for child in children:
        child.process.join(max(0.0, last - time.monotonic()))
    for child in children:
        child.kill()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delay SIGINT while a process starts: before it has its own handlers, it would print a traceback."""
    if sys.platform == "win32":  # which cannot delay signals
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in the process -------------------------------------------------------------------------------------------------


def _begin(serve: Callable[..., None], end: socket.socket, parent: int, args: tuple[Any, ...]) -> None:
    _forget_handlers()
    # this process ends when its parent does, even if the parent is killed and cannot end it
    _announce_end_of_parent(signal.SIGKILL)  # even while a C function keeps all threads from running
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if sys.platform != "win32":
        os.setsid()
        _end_others_with_this()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    end.setblocking(True)  # whatever the default of new sockets is
    serve(Line(end), *args)


def _forget_handlers() -> None:
    """Remove the parent's handlers, which a fork has copied. Ignored signals stay ignored."""
    signal.set_wakeup_fd(-1)  # an event loop of the parent would take our signals for its own
    for number in (signal.SIGTERM, *([] if sys.platform == "win32" else [signal.SIGHUP])):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _announce_end_of_parent(number: signal.Signals) -> None:
    """Have a signal sent to this process when its parent ends, on systems that can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _watch(parent: int) -> None:
    starter = parent_process()
    sentinel = [] if starter is None else [starter.sentinel]
    direct = os.getppid() == parent  # not if a fork server has started this process
    # processes forked later keep the sentinel open until they end: check the parent, too
    while not wait(sentinel, _WATCH) and not (direct and os.getppid() != parent):
        pass
    os._exit(1)


def _end_others_with_this() -> None:
    """Start a guard: a process that waits until this one, which leads a group, has ended, and then ends its group.

    The parent knows only the leader, and a killed leader cannot end other processes. SIGTERM comes first, so that
    programs can end those that they started.
    """
    leader = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads: the guard uses nothing that they may have locked
        try:
            if os.fork() != 0:
                return
        except OSError:  # too many processes: evaluate without a guard
            return
    try:
        os.setpgid(0, 0)  # in the same session: until the guard has ended, no other group can have this number
        for number in os.listdir("/dev/fd"):  # or others would not see them close when the leader ends
            with suppress(OSError):
                os.close(int(number))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        _announce_end_of_parent(signal.SIGUSR1)
        while os.getppid() == leader:
            if sys.platform == "linux":
                signal.sigwait([signal.SIGUSR1])
            else:
                time.sleep(_WATCH / 10)
        os.killpg(leader, signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            os.killpg(leader, 0)  # ProcessLookupError if nobody is left
            time.sleep(PATIENCE / 100)
        os.killpg(leader, signal.SIGKILL)
    finally:
        os._exit(0)
