"""Worker pools, which evaluate points in parallel: the common part of our processes and the caller's executors."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeVar

E = TypeVar("E", bound=BaseException)
Outcomes = list[tuple[Any, Any]]  # keys and outcomes

TRIES = 3  # a point whose worker died is evaluated twice more; then the point itself is suspect
TICK = 1.0  # seconds: on some systems, an endless wait would not notice Ctrl-C


class WorkerPool(Protocol):
    """Evaluates points in parallel; used as a context, at whose end all evaluation stops.

    The outcome of a point is the value of the objective, or the exception that it raised. The following are also
    outcomes, not raised: TimeoutError if the evaluation took too long; RuntimeError if the point was lost with its
    worker `TRIES` times; `Unavailable` if it could not be submitted, or no worker is left to evaluate it. Each
    submitted point is collected once, unless `cancel` returned its key.
    """

    _arrived: Outcomes  # not yet collected
    _ahead: int = 0  # how many points may wait in the line of each slot

    @property
    def slots(self) -> int | None:
        """How many points are currently evaluated at a time: workers may join and leave; None if unknown."""

    @property
    def lost(self) -> int:
        """How many slots are occupied by evaluations that took too long and could not be ended."""

    def submit(self, key: Hashable, x: Any) -> None:
        """Evaluate a point as soon as possible. The objective owns it, and may change and keep it."""

    def cancel(self) -> list[Hashable]:
        """Cancel points that have not begun, and return their keys, which will not be collected."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def _unfinished(self) -> int:
        """Return how many submitted points have no outcome yet."""

    def _serve(self, end: float) -> None:
        """Receive what arrives before `end`, and handle what is late or lost; return early if anything arrived."""

    # ---- what all of them have -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    @property
    def out(self) -> int:
        """How many points were submitted but not yet collected."""
        return self._unfinished() + len(self._arrived)

    @property
    def free(self) -> float:
        """How many more points would begin at once or be next in a line, infinite if the slots are unknown.

        You can submit more, which then wait.
        """
        slots = self.slots
        return math.inf if slots is None else max(0, slots * (1 + self._ahead) - self._unfinished() - self.lost)

    def collect(self, timeout: float | None = None) -> Outcomes:
        """Return keys and outcomes that have arrived, in any order; wait for the first one, up to `timeout` seconds.

        The list is empty if nothing arrived in time, or if nothing is pending.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            self._serve(end)
            if self._arrived or not self._unfinished() or time.monotonic() >= end:
                arrived, self._arrived = self._arrived, []
                return arrived

    def _gives_up(self, key: Hashable, losses: int, cause: BaseException) -> bool:
        """Whether to stop evaluating a point that was lost so many times; its outcome then says why."""
        if losses < TRIES:
            return False
        causes = "killed, out of memory, a crash in the objective, or a script without `if __name__ == '__main__':`"
        lost = RuntimeError(f"a point was lost with its worker {TRIES} times; possible causes: {causes} ({cause!r})")
        self._arrived.append((key, caused(lost, cause)))
        return True


# ---- errors that are not the objective's own --------------------------------------------------------------------


class NotEvaluated(Exception):
    """The outcome of a point that could not be evaluated: not a failure of the point, regardless of `on_error`."""


class Unavailable(NotEvaluated, RuntimeError):
    """Worker pool unavailable: it is broken or shut down, or its cluster is lost."""


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
