"""Files of a running search or fit that temporarily cannot be written because a disk is full or unreachable.

This must not end the run: one warning names the file and the cause, and later writes are tried after a pause.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterator

PAUSE = 1.0  # least seconds after a failed write before the next try
SHARE = 0.1  # share of the time that failing writes may take: on a file server they may fail after minutes


class Outage:
    """The failed writes of one file.

    Parameters
    ----------
    path
        The file.
    kind
        The kind of file, such as "checkpoint".
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self._name = f"the {kind} {os.fspath(path)}"
        self._warned = False
        self._again = -float("inf")
        self.failures = 0  # since the last write that succeeded
        self.cause = ""

    def may_try(self) -> bool:
        """Whether the pause after the last failure is over."""
        return not self.failures or time.monotonic() >= self._again

    def succeeded(self) -> None:
        """Note a successful write."""
        self.failures = 0

    def failed(self, error: Exception, seconds: float, consequence: str | None = None) -> None:
        """Note a write that failed after this many seconds.

        The first failure causes a warning, and so does every failure with a consequence of its own.
        """
        self.failures += 1
        self.cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self._again = time.monotonic() + max(PAUSE, seconds / SHARE)
        if consequence is not None or not self._warned:
            self.warn(consequence or "the run continues and tries again later")

    def warn(self, consequence: str) -> None:
        """Warn that the last write failed, and of the consequence."""
        self._warned = True
        text = f"{self._name} could not be written ({self.cause}): {consequence}"
        warnings.warn(text, RuntimeWarning, stacklevel=level_of_the_user())


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file name to an OSError without one: errors of opening name the file, those of writing do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def level_of_the_user() -> int:
    """Return the `stacklevel` that attributes a warning of the caller to the first frame outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("esgroup.", "contextlib")):
        frame, level = frame.f_back, level + 1
    return level
