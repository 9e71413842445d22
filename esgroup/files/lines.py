"""A file that grows by whole lines during a search or a fit, and survives a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import time

from esgroup.files.outage import Outage, naming


class LineFile:
    """Appends lines and writes each immediately; the next write removes the partial line of a failed one.

    Parameters
    ----------
    path
        The file.
    append
        Whether to keep the contents of the file.
    """

    def __init__(self, path: str | os.PathLike[str], append: bool) -> None:
        self._file = open(path, "ab" if append else "wb", buffering=0)  # noqa: SIM115  (`close` closes it)
        self._path, self._outage = path, Outage(path, "history")
        self._whole: int | None = None  # length to truncate the file to, if it ends with a partial line

    def write(self, lines: str) -> bool:
        """Append complete lines; return False if that failed, with a warning the first time.

        The lines are then lost. After a failure there is a pause before the next try.
        """
        if not self._outage.may_try():
            self._outage.failures += 1
            return False
        begin = time.monotonic()
        try:
            self.append(lines)
        except OSError as error:
            self._outage.failed(error, time.monotonic() - begin)
            return False
        self._outage.succeeded()
        return True

    def append(self, lines: str) -> None:
        """Append complete lines; OSError if that failed."""
        data = lines.encode("utf-8")
        self._cut()
        written = 0
        try:
            with naming(self._path):
                while written < len(data):  # an almost full disk takes only a part
                    count = self._file.write(data[written:])
                    if count is None:
                        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                    written += count
        except OSError:
            if written:
                with contextlib.suppress(OSError):  # a pipe has no position
                    self._whole = self._file.tell() - written
            raise

    def replace_end(self, end: str, by: str) -> None:
        """Replace the end of what was written last; if that is not possible, the file stays unchanged."""
        if self._whole is not None or self._outage.failures:
            return
        try:
            place = self._file.tell() - len(end.encode("utf-8"))
            self._file.truncate(place)
            self._file.seek(place)
        except OSError:  # a pipe or a device
            return
        try:
            self.append(by)
        except OSError:
            with contextlib.suppress(OSError):  # there was room for it before
                self.append(end)

    def _cut(self) -> None:
        if self._whole is not None:
            self._file.truncate(self._whole)
            self._file.seek(self._whole)
            self._whole = None

    def close(self) -> None:
        """Close the file, with a warning if its last lines are missing."""
        outage = self._outage
        try:
            with contextlib.suppress(OSError):  # readers ignore a partial last line
                self._cut()
            self._file.close()
        except OSError as error:  # a late error of a file server
            outage.failed(error, 0.0)
        if outage.failures > 1:  # the first warning covers a single failure
            outage.warn(f"its last {outage.failures:,} lines are missing")
