"""A process that exchanges messages with the one that started it, and that never outlives it.

It has a session of its own, whose processes end with it: also the programs that it has started.
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

PATIENCE = 1.0  # seconds in which a process that was told to end may do so, before it is killed
_CHUNK = 2**20  # bytes that are read at a time, at most
_HEADER = 8  # bytes before each message, which say how long it is
_WATCH = 1.0  # seconds between two looks at the parent, where its end is not announced
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)  # quick to make, unlike the default
_PR_SET_PDEATHSIG = 1  # of prctl in <sys/prctl.h>: the signal that is sent when the parent ends


class Line:
    """One end of a line between two processes, which carries messages of bytes both ways.

    In the process that was started, `send` and `receive` wait for the other end. In the one that has started it nothing
    waits: the other process may be stopped. What the line has no room for is sent by `flush`, later.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.unsent = memoryview(b"")  # what waits for `flush`
        self._received = bytearray()

    def fileno(self) -> int:
        """The file descriptor, for selectors."""
        return self._end.fileno()

    def send(self, message: bytes) -> None:
        """Send a message, or begin to; OSError if the other end is closed."""
        self.unsent = memoryview(b"".join([self.unsent, len(message).to_bytes(_HEADER), message]))
        self.flush()

    def flush(self) -> None:
        """Send more of what waits."""
        with suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[self._end.send(self.unsent) :]

    def receive(self) -> bytes | None:
        """Return the next message, None if it is not there yet; EOFError or OSError if the other end is closed."""
        with suppress(BlockingIOError):
            while len(self._received) < (end := _HEADER + int.from_bytes(self._received[:_HEADER])):
                # not more than this message, so that a selector tells of the next one
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
    """Wait until one of the lines has something to read, or has room for what it could not send; return those."""
    with _Selector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ | (selectors.EVENT_WRITE if line.unsent else 0), line)
        return [key.data for key, _ in selector.select(seconds)]


class Child:
    """A process that runs serve(line, *args); `line` here is the other end of its line.

    `method` is a start method of multiprocessing, None for the default. A process that is a daemon may not have
    children itself. In the process, SIGTERM and SIGHUP act as if no handler of the parent's had been set, and SIGINT
    ends it without a word. Ctrl-C in a terminal reaches the parent only, which ends the process: `process.terminate()`
    asks it and what it has started to end, and `end_all` waits for it.
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
            if self.process.pid is not None:  # an interrupt that was held back arrives when it has started
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
        self.process.join(PATIENCE)  # its line is closed a moment before the system knows the status
        code = self.process.exitcode
        if code is None:
            return "its process closed its connection"
        if code >= 0:
            return f"its process exited with status {code}"
        names = {int(number): number.name for number in signal.Signals}  # signals of real-time have no names
        return f"its process was killed by {names.get(-code, f'signal {-code}')}"


def end_all(children: Iterable[Child]) -> None:
    """Wait for processes that were told to end, `PATIENCE` seconds together, and kill those that do not."""
    children, last = list(children), time.monotonic() + PATIENCE
    for child in children:
        child.process.join(max(0.0, last - time.monotonic()))
    for child in children:
        child.kill()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Hold back SIGINT while a process starts: until it has its own handlers, it would print a traceback."""
    if sys.platform == "win32":  # which cannot hold signals back
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
    # this process ends when its parent does, however that ends: a parent that is killed cannot end others
    _announce_end_of_parent(signal.SIGKILL)  # also while a function in C keeps all threads from running
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if sys.platform != "win32":
        os.setsid()
        _end_others_with_this()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    end.setblocking(True)  # whatever the default of new sockets is
    serve(Line(end), *args)


def _forget_handlers() -> None:
    """Undo what a fork has copied: handlers that belong to the parent. Signals that are ignored stay ignored."""
    signal.set_wakeup_fd(-1)  # an event loop of the parent's would take our signals for its own
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
    # processes that were forked later keep the sentinel open until they end themselves: look at the parent, too
    while not wait(sentinel, _WATCH) and not (direct and os.getppid() != parent):
        pass
    os._exit(1)


def _end_others_with_this() -> None:
    """Start a guard: a process that waits until this one, which leads a group, has ended, and then ends its group.

    Only the leader is known to its parent, and one that is killed cannot end others. SIGTERM comes first: programs that
    have started others themselves can end them.
    """
    leader = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: the guard uses nothing that they may have locked
        try:
            if os.fork() != 0:
                return
        except OSError:  # too many processes: it is better to evaluate without a guard than not at all
            return
    try:
        os.setpgid(0, 0)  # in the same session: until the guard has ended, no other group can have this number
        for number in os.listdir("/dev/fd"):  # it must not keep open what others see closed when the leader ends
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
