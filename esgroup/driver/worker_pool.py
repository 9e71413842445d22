"""Where points are evaluated in parallel: what processes of our own and executors of the caller's have in common."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeVar

E = TypeVar("E", bound=BaseException)
Outcomes = list[tuple[Any, Any]]  # keys and outcomes

TRIES = 3  # a point whose worker died is evaluated twice more; after that, the point itself is suspect
TICK = 1.0  # seconds: on some systems, a wait without end would not notice Ctrl-C


class WorkerPool(Protocol):
    """Evaluates points in parallel; used as a context, at whose end nothing is evaluated any more.

    The outcome of a point is the value of the objective, or the exception that it raised. Also outcomes, not raised:
    TimeoutError if the evaluation took too long; RuntimeError if the point was lost with its worker `TRIES` times;
    `Unavailable` if it could not be submitted, or nobody is left to evaluate it. Each point that was submitted is
    collected once, unless `cancel` has returned its key.
    """

    _arrived: Outcomes  # what was not yet collected
    _ahead: int = 0  # how many points may wait in the line of each slot

    @property
    def slots(self) -> int | None:
        """How many points are evaluated at a time, now: workers may join and leave; None if that is unknown."""

    @property
    def lost(self) -> int:
        """How many slots are occupied by evaluations that took too long and could not be ended."""

    def submit(self, key: Hashable, x: Any) -> None:
        """Evaluate a point, as soon as possible. It becomes the objective's own, which may change and keep it."""

    def cancel(self) -> list[Hashable]:
        """Cancel what has not begun, and return its keys; they will not be collected."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def _unfinished(self) -> int:
        """Return how many points were submitted, whose outcome has not arrived."""

    def _serve(self, end: float) -> None:
        """Receive what arrives before `end`, and see to what is late or lost; return early if something is there."""

    # ---- what all of them have -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    @property
    def out(self) -> int:
        """How many points were submitted and not yet collected."""
        return self._unfinished() + len(self._arrived)

    @property
    def free(self) -> float:
        """How many more points would begin at once, or be the next in a line, infinite if the slots are unknown.

        More can be submitted, and wait.
        """
        slots = self.slots
        return math.inf if slots is None else max(0, slots * (1 + self._ahead) - self._unfinished() - self.lost)

    def collect(self, timeout: float | None = None) -> Outcomes:
        """Return keys and outcomes that have arrived, in any order; wait for the first one, up to `timeout` seconds.

        The list is empty if nothing has arrived in time, or if nothing is out.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            self._serve(end)
            if self._arrived or not self._unfinished() or time.monotonic() >= end:
                arrived, self._arrived = self._arrived, []
                return arrived

    def _gives_up(self, key: Hashable, losses: int, cause: BaseException) -> bool:
        """Whether a point that was lost so many times is not evaluated again; its outcome then says why it was."""
        if losses < TRIES:
            return False
        causes = "killed, out of memory, a crash in the objective, or a script without `if __name__ == '__main__':`"
        lost = RuntimeError(f"a point was lost with its worker {TRIES} times; possible causes: {causes} ({cause!r})")
        self._arrived.append((key, caused(lost, cause)))
        return True


# ---- errors that are not the objective's own --------------------------------------------------------------------


class NotEvaluated(Exception):
    """The outcome of a point that nobody could evaluate; that is no failure of the point, whatever `on_error` says."""


class Unavailable(NotEvaluated, RuntimeError):
    """Those who should evaluate cannot be reached: a pool that is broken or shut down, a cluster that is lost."""


class CannotLoad(NotEvaluated, TypeError):
    """A process cannot load the objective."""


class TooSlow(TimeoutError):
    """The outcome of an evaluation that took longer than `eval_timeout`."""


def too_slow(timeout: float) -> TooSlow:
    """Return the outcome of a point whose evaluation took longer than `timeout` seconds."""
    return TooSlow(f"the evaluation took longer than eval_timeout={timeout:g} s")


def caused(error: E, cause: BaseException) -> E:
    """Return the error with its cause."""
    error.__cause__ = cause
    return error
