"""Ctrl-C in the middle of a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class Interrupts:
    """Ctrl-C is let through while the objective or the callback runs, and waits while the search itself changes.

    So what an interrupt leaves behind can be saved. A second one does not wait. Outside the main thread there are none.
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
        self._allowed = True
        try:
            self.let_through()
            yield
        finally:
            self._allowed = False

    def let_through(self) -> None:
        """Act on an interrupt that waits."""
        if self._waiting:
            self._handle(signal.SIGINT, None)

    def _handle(self, number: int, frame: Any) -> None:
        if not (self._allowed or self._waiting):
            self._waiting = True
            return
        self._waiting = False
        self._previous(number, frame)
