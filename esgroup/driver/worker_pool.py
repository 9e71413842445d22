"""Where points are evaluated in parallel: what processes of our own and executors of the caller's have in common."""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Hashable
from contextlib import suppress
from multiprocessing import get_context
from typing import Any, NoReturn, Protocol, Self, TypeVar

Call = Callable[[Any], Any]
E = TypeVar("E", bound=BaseException)
Outcomes = list[tuple[Any, Any]]  # keys and outcomes

TRIES = 3  # a point whose worker died is evaluated twice more; after that, the point itself is suspect
INSTALL = 'pip install "esgroup[workers]"'
TICK = 1.0  # seconds: on some systems, a wait without end would not notice Ctrl-C


class WorkerPool(Protocol):
    """Evaluates points in parallel; used as a context, at whose end nothing is evaluated any more.

    The outcome of a point is the value of the objective, or the exception that it raised. Also outcomes, not raised:
    TimeoutError if the evaluation took too long; RuntimeError if the point was lost with its worker `TRIES` times;
    `Unavailable` if it could not be submitted, or nobody is left to evaluate it. Each point that was submitted is
    collected once, unless `cancel` has returned its key.
    """

    _arrived: Outcomes  # what was not yet collected

    @property
    def slots(self) -> int | None:
        """How many points are evaluated at a time, now: workers may join and leave; None if that is unknown."""

    @property
    def free(self) -> float:
        """How many more points would begin at once, infinite if that is unknown; more can be submitted, and wait."""

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


# ---- calling the objective --------------------------------------------------------------------------------------


def own_point(x: Any) -> Any:
    """Copy a point, so that a function may change it: an array, a dict with arrays in it, or anything else."""
    if isinstance(x, dict):
        own = {**x}
        for name, value in x.items():
            if hasattr(value, "setflags"):
                own[name] = value.copy()
        return own
    return x.copy() if hasattr(x, "copy") else x


def call_objective(call: Callable[..., Any], *x: Any) -> Any:
    """Return call(*x); sys.exit() in the objective is an error of the objective, and ends no process.

    Only the process that calls it returns. One that the objective has forked ends where the objective ends: it would be
    a second worker on the same line, or a second search.
    """
    asked = os.getpid()
    try:
        value = call(*x)
    except BaseException as error:
        if os.getpid() != asked:
            _end_forked(error)
        if not isinstance(error, SystemExit):
            raise
        code = "" if error.code is None else repr(error.code)
        raise RuntimeError(f"fun called sys.exit({code})") from error
    if os.getpid() != asked:
        _end_forked(SystemExit())
    return value


def _end_forked(error: BaseException) -> NoReturn:
    """End this process as Python would after the exception, but without what is registered for its parent's end."""
    try:
        status = 1
        if not isinstance(error, SystemExit):
            sys.excepthook(type(error), error, error.__traceback__)
        elif error.code is None or isinstance(error.code, int):
            status = error.code or 0
        else:
            print(error.code, file=sys.stderr)
        flush_output()
    finally:
        os._exit(status & 0xFF)


def flush_output() -> None:
    """Write what the objective has printed, also in C: a process that is ended later would lose it."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)


# ---- between processes ------------------------------------------------------------------------------------------


def cloudpickle_or_none() -> Any:
    """Return the package cloudpickle, which can pickle any function; None where it is not installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def dumps(thing: Any) -> bytes:
    """Pickle anything, with cloudpickle what pickle cannot."""
    try:
        return pickle.dumps(thing)
    except Exception:
        cloudpickle = cloudpickle_or_none()
        if cloudpickle is None:
            raise
        return bytes(cloudpickle.dumps(thing))


def pickled(call: Call) -> bytes:
    """Return the objective as bytes; raise TypeError with advice if that is not possible."""
    try:
        if not _can_import_main() and (cloudpickle := cloudpickle_or_none()) is not None:
            return bytes(cloudpickle.dumps(call))
        return dumps(call)
    except Exception as error:
        advice = "define the function at the top level of a module"
        if cloudpickle_or_none() is None:
            advice += f", install cloudpickle, with which lambdas and closures work ({INSTALL})"
        advice += ", or evaluate in threads with executor=concurrent.futures.ThreadPoolExecutor()"
        raise TypeError(f"fun and args cannot be sent to other processes ({error}): {advice}") from error


def _can_import_main() -> bool:
    """Return whether other processes know what is defined in the main module, other than in a notebook or at a prompt.

    Forked ones know it in any case; others import its file, if it has one. Where they cannot, a function of the main
    module can be pickled by its name, but nobody finds it.
    """
    main = sys.modules["__main__"]
    return get_context().get_start_method() == "fork" or any(
        getattr(main, name, None) is not None for name in ("__file__", "__spec__")
    )


def sendable_error(error: BaseException) -> BaseException:
    """Return the exception, or one that tells of it if it cannot be sent between processes."""
    try:
        if type(pickle.loads(dumps(error))) is type(error):
            return error
    except Exception:
        pass
    text = f"{type(error).__qualname__} in the objective: {error} (it cannot be sent between processes)"
    stand_in = RuntimeError(text)
    stand_in.add_note("".join(traceback.format_exception(error)))
    return stand_in


# ---- errors that are not the objective's own --------------------------------------------------------------------


def lost_too_often(cause: BaseException) -> RuntimeError:
    """Return the outcome of a point that was lost `TRIES` times."""
    causes = "killed, out of memory, a crash in the objective, or a script without `if __name__ == '__main__':`"
    return caused(RuntimeError(f"a point was lost with its worker {TRIES} times: {causes} ({cause!r})"), cause)


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
