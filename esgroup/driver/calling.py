"""Calling the objective on its own copy of a point, in any process."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

Call = Callable[[Any], Any]


def own_point(x: Any) -> Any:
    """Copy a point, so that a function may change it: an array, a dict that may hold arrays, or anything else."""
    if isinstance(x, dict):
        return {name: value.copy() if hasattr(value, "setflags") else value for name, value in x.items()}
    return x.copy() if hasattr(x, "copy") else x


def call_objective(call: Callable[..., Any], *x: Any) -> Any:
    """Return call(*x); sys.exit() in the objective is an error of the objective and does not end the process.

    Only the calling process returns. A process forked by the objective ends with the objective: otherwise it would be a
    second worker on the same line, or a second search.
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
    """End this process as Python would after the exception, but without exit handlers of its parent."""
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
    """Flush the output of the objective, including output from C: a process that is ended later would lose it."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)
