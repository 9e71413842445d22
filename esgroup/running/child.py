"""A process that is spoken to through a pipe, and that never outlives the process which started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

PATIENCE = 1.0  # seconds in which a process that was told to end may do so, before it is killed
_WATCH = 1.0  # seconds between two looks at the parent, where its end is not announced
_PR_SET_PDEATHSIG = 1  # of prctl in <sys/prctl.h>: the signal that is sent when the parent ends


class Child:
    """A process that runs serve(connection, *args); `connection` here is the other end of its pipe.

    `method` is a start method of multiprocessing, None for the default. A process that is a daemon may not have
    children itself. In the process, SIGTERM and SIGHUP act as if no handler of the parent's had been set, and SIGINT
    ends it without a word, because Ctrl-C reaches the parent too, which reports it.
    """

    def __init__(self, serve: Callable[..., None], *args: Any, method: str | None = None, daemon: bool = False) -> None:
        context: Any = get_context(method)
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_begin, args=(serve, theirs, os.getpid(), args), daemon=daemon)
        try:
            with _interrupts_later():
                self._process.start()
        except BaseException:
            if self._process.pid is not None:  # an interrupt that was held back arrives when it has started
                self._process.kill()
            self.connection.close()
            raise
        finally:
            theirs.close()  # if it stayed open here, the end of the process would not close the pipe

    @property
    def pid(self) -> int:
        """The id of the process."""
        return int(self._process.pid)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return bool(self._process.is_alive())

    def terminate(self) -> None:
        """Ask the process to end; `end_all` waits for it."""
        self._process.terminate()

    def join(self, seconds: float) -> None:
        """Wait until the process has ended, for so many seconds at most."""
        self._process.join(max(0.0, seconds))

    def kill(self) -> None:
        """Kill the process at once, if it has not ended, and close its pipe."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    def cause_of_death(self) -> str:
        """Say how the process ended."""
        self.join(PATIENCE)  # its pipe is closed a moment before the system knows the status
        code = self._process.exitcode
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
        child.join(last - time.monotonic())
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


def _begin(serve: Callable[..., None], connection: Connection[Any, Any], parent: int, args: tuple[Any, ...]) -> None:
    _forget_handlers()
    _end_with(parent)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    serve(connection, *args)


def _forget_handlers() -> None:
    """Undo what a fork has copied: handlers that belong to the parent. Signals that are ignored stay ignored."""
    signal.set_wakeup_fd(-1)  # an event loop of the parent's would take our signals for its own
    for number in (signal.SIGTERM, *([] if sys.platform == "win32" else [signal.SIGHUP])):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _end_with(parent: int) -> None:
    """Make this process end when its parent does, however that ends: a parent that is killed cannot end others."""
    if sys.platform == "linux":  # also while a function in C keeps all threads from running
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    starter = parent_process()
    sentinel = [] if starter is None else [starter.sentinel]
    direct = os.getppid() == parent  # not if a fork server has started this process
    # processes that were forked later keep the sentinel open until they end themselves: look at the parent, too
    while not wait(sentinel, _WATCH) and not (direct and os.getppid() != parent):
        pass
    os._exit(1)
