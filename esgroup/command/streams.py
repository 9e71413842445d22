"""The standard streams of the command: closed streams, unread pipes, full disks, objectives that print."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any


class OutputError(OSError):
    """What the command prints could not be written."""


def open_missing() -> None:
    """Connect closed standard streams (`esgroup list >&-`) to the null device.

    Otherwise the next file opened would get their number, and with it everything that is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            stream = open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


class _StandardStream(io.FileIO):
    """Standard output or error without a buffer; what is written to an unread pipe is discarded."""

    lost = False  # set after a failure, so that the rest of a buffer does not fail again

    def write(self, data: Any, /) -> int:
        if not self.lost:
            try:
                return super().write(data) or 0
            except OSError as error:
                self.lost = True
                if not isinstance(error, BrokenPipeError) and self.fileno() != 2:  # there is nowhere to report it for 2
                    raise OutputError(error.errno, error.strerror) from error
        return len(data)


@contextlib.contextmanager
def forgiving_output() -> Iterator[None]:
    """Keep unread pipes (`esgroup list | head -1`) from ending the command or changing its exit code."""
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            plain = getattr(sys, name)
            if isinstance(plain, io.TextIOWrapper) and not plain.isatty():
                stack.enter_context(_replaced(name, plain))
        yield


@contextlib.contextmanager
def _replaced(name: str, plain: io.TextIOWrapper) -> Iterator[None]:
    plain.flush()
    buffered = io.BufferedWriter(_StandardStream(plain.fileno(), "w", closefd=False))
    how = {"encoding": plain.encoding, "errors": plain.errors, "line_buffering": plain.line_buffering}
    forgiving = io.TextIOWrapper(buffered, write_through=plain.write_through, **how)  # type: ignore[arg-type]
    setattr(sys, name, forgiving)
    try:
        yield
    finally:
        setattr(sys, name, plain)
        forgiving.flush()


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send what is printed to stdout, also by compiled code and by other processes, to stderr."""
    plain = sys.stdout
    plain.flush()
    with contextlib.redirect_stdout(sys.stderr):
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            yield
        finally:
            for stream in (plain, sys.__stdout__):  # some code keeps one of them
                if stream is not None:
                    stream.flush()
            with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
                import ctypes

                ctypes.CDLL(None).fflush(None)  # the C library's buffers, which it would write at exit
            os.dup2(kept, 1)
            os.close(kept)


@contextlib.contextmanager
def short_warnings() -> Iterator[None]:
    """Print each warning on one line, without the line of code it comes from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
