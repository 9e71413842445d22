"""Handling Ctrl-C during a run."""

from __future__ import annotations

import signal
import threading
from typing import Any, Self


class Interrupts:
    """Lets Ctrl-C through within the context `allowed`, and delays it elsewhere, while the search itself changes.

    The search is thus always in a state that can be saved. A second Ctrl-C is not delayed. Outside the main thread
    there are no interrupts.
    """

    def __init__(self) -> None:
        self.allowed = _Allowed(self)  # a context for code that may be interrupted
        self.waiting = False  # whether an interrupt was delayed
        self._previous: Any = None

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
        if self.waiting and kind is None:
            self._previous(signal.SIGINT, None)

    def let_through(self) -> None:
        """Raise an interrupt that was delayed."""
        if self.waiting:
            self._handle(signal.SIGINT, None)

    def _handle(self, number: int, frame: Any) -> None:
        if not (self.allowed.open or self.waiting):
            self.waiting = True
            return
        self.waiting = False
        self._previous(number, frame)


class _Allowed:
    """The context in which interrupts are let through, including one that came earlier."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts, self.open = interrupts, False

    def __enter__(self) -> None:
        self.open = True
        if self._interrupts.waiting:
            try:
                self._interrupts.let_through()
            except BaseException:
                self.open = False
                raise

    def __exit__(self, *_: object) -> None:
        self.open = False
