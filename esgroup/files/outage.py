"""Files of a running search or fit that cannot be written for a while, because a disk is full or unreachable.

Such a file must not cost the run: one warning says which file and why, and later writes are tried after a pause.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterator

PAUSE = 1.0  # seconds after a failed write, at least, before the next one is tried
SHARE = 0.1  # share of the time that failing writes may take: those of a file server may fail after minutes


class Outage:
    """The failed writes of one file.

    Parameters
    ----------
    path
        The file.
    kind
        What it is, such as "checkpoint".
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
        """Take note of a write that succeeded."""
        self.failures = 0

    def failed(self, error: Exception, seconds: float, consequence: str | None = None) -> None:
        """Take note of a write that failed after so many seconds.

        The first failure gives a warning, and so does every one that has a consequence of its own.
        """
        self.failures += 1
        self.cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self._again = time.monotonic() + max(PAUSE, seconds / SHARE)
        if consequence is not None or not self._warned:
            self.warn(consequence or "the run continues and tries again later")

    def warn(self, consequence: str) -> None:
        """Warn that the last write failed, and what follows from that."""
        self._warned = True
        text = f"{self._name} could not be written ({self.cause}): {consequence}"
        warnings.warn(text, RuntimeWarning, stacklevel=level_of_the_user())


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file to an OSError that does not name one: only those of opening do, not those of writing."""
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
