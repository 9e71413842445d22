"""Handling Ctrl-C during a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class Interrupts:
    """Lets Ctrl-C through while the objective or the callback runs, and delays it while the search itself changes.

    The search is thus always in a state that can be saved. A second Ctrl-C is not delayed. Outside the main thread
    there are no interrupts.
    """

    def __init__(self) -> None:
        self._previous: Any = None
        self._waiting = False
        self._allowed = False

    def __enter__(self) -> Self:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler) and threading.current_thread() is threading.main_thread():
            self._previous = handler
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._previous is None:
            return
        signal.signal(signal.SIGINT, self._previous)
        if self._waiting and kind is None:
            self._previous(signal.SIGINT, None)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let interrupts through while the context is open."""
        self._allowed = True
        try:
            self.let_through()
            yield
        finally:
            self._allowed = False

    def let_through(self) -> None:
        """Raise an interrupt that was delayed."""
        if self._waiting:
            self._handle(signal.SIGINT, None)

    def _handle(self, number: int, frame: Any) -> None:
        if not (self._allowed or self._waiting):
            self._waiting = True
            return
        self._waiting = False
        self._previous(number, frame)
