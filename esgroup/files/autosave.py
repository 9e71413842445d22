"""Checkpoints of a running search or fit; writing takes at most a fixed share of the running time.

The first checkpoint is written before the first evaluation and must succeed. Later ones may fail: a full disk causes a
warning and does not end the run.
"""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from typing import Any, Generic, TypeVar

from esgroup.files import npz as files
from esgroup.files.outage import Outage

WRITING = 0.1  # share of the running time that may be spent on writing checkpoints
Kept = TypeVar("Kept")
Contents = tuple[str, dict[str, Any], files.Arrays]


class CheckpointWriter(ABC, Generic[Kept]):
    """Observes a running search or fit and writes it to a file, for at most a fixed share of the running time."""

    def __init__(self, path: files.Path) -> None:
        self._path = path
        self._begin = time.monotonic()
        self._spent = self._last = 0.0
        self._outage: Outage | None = None  # before the first checkpoint

    @abstractmethod
    def contents(self, kept: Kept) -> Contents:
        """Return what is written: the kind of file, its header and its arrays."""

    def begins(self, run: Kept) -> None:
        """Write the first checkpoint, which must succeed."""
        self._try_to_write(run, None)

    def generation(self, run: Kept) -> None:
        """Write, unless writing would exceed its share of the running time or has just failed."""
        cheap = self._spent + self._last <= WRITING * (time.monotonic() - self._begin)
        if cheap and (self._outage is None or self._outage.may_try()):
            self._try_to_write(run, None)

    def ends(self, run: Kept, error: BaseException | None) -> None:
        """Write the last checkpoint; if that fails after an exception, the exception gets a note and stays visible."""
        if error is None:
            self._try_to_write(run, "it holds an earlier state of the run")
            return
        try:
            self._write(run)
        except Exception as failure:
            error.add_note(f"the checkpoint could not be written: {failure}")

    def _try_to_write(self, kept: Kept, consequence: str | None) -> None:
        """Write; a failure after the first checkpoint becomes a warning about its consequence."""
        begin = time.monotonic()
        try:
            self._write(kept)
        except (OSError, files.CheckpointError) as error:  # CheckpointError: the path is no longer a file
            if self._outage is None:
                raise
            self._outage.failed(error, time.monotonic() - begin, consequence)

    def _write(self, kept: Kept) -> None:
        if self._outage is None:
            self.contents(kept)  # loads modules: if that counted as writing, the second file would wait for seconds
        begin = time.monotonic()
        try:
            files.write(self._path, *self.contents(kept))
        finally:
            self._last = time.monotonic() - begin
            self._spent += self._last
        if self._outage is None:
            self._outage = Outage(self._path, "checkpoint")
        self._outage.succeeded()


def must_differ(paths: Mapping[str, files.Path | None]) -> None:
    """Raise ValueError if two of these paths, by argument name, are the same file: one would destroy the other."""
    given = [(name, os.fsdecode(path)) for name, path in paths.items() if path is not None]
    for (first, one), (second, other) in combinations(given, 2):
        if _is_same(one, other):
            both = f"{one!r} for both" if one == other else f"{one!r} and {other!r}, which are the same"
            raise ValueError(f"{first} and {second} must be different files, got {both}: choose another name for one")


def _is_same(one: str, other: str) -> bool:
    """Whether two paths lead to the same file, which need not exist yet, through links, folders or another name."""
    with suppress(OSError):  # one of them does not exist
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def must_be_new(path: files.Path | None) -> None:
    """Raise FileExistsError if the file of a new run exists: it may be the only checkpoint of another run."""
    if path is not None and os.path.exists(path):
        text = "the file exists; pass resume=True to continue, or choose another name"  # OSError appends the path
        raise FileExistsError(errno.EEXIST, text, os.fspath(path))


def must_exist(path: files.Path | None, name: str) -> files.Path:
    """Return the file from which a run is resumed; `name` is "search" or "fit"."""
    if path is None:
        raise ValueError("checkpoint must name a file when resume=True, got None")
    if not os.path.exists(path):
        text = f"the file does not exist; leave out resume=True to start a new {name}"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(path))
    return path
