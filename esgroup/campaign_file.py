"""The checkpoint of a campaign: that of its search, with the rest in the header."""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from esgroup import checkpoint as files
from esgroup import snapshot_space
from esgroup.campaign import Campaign
from esgroup.searcher import Searcher

WRITING = 0.1  # the share of the time that may go into checkpoints
Kept = TypeVar("Kept")
Contents = tuple[str, dict[str, Any], files.Arrays]


class FileKeeper(ABC, Generic[Kept]):
    """Writes something that goes on to its file, if it has one, as often as its share of the time allows."""

    def __init__(self, path: files.Path | None) -> None:
        self._path = path
        self._begin = time.monotonic()
        self._spent = self._last = 0.0

    @abstractmethod
    def contents(self, kept: Kept) -> Contents:
        """What is written: the kind of file, its header, its arrays."""

    def write_if_cheap(self, kept: Kept) -> None:
        """Write, unless all the writing would then have taken more than its share of the time."""
        if self._spent + self._last <= WRITING * (time.monotonic() - self._begin):
            self.write(kept)

    def write(self, kept: Kept) -> None:
        """Write now."""
        if self._path is None:
            return
        begin = time.monotonic()
        files.write(self._path, *self.contents(kept))
        self._last = time.monotonic() - begin
        self._spent += self._last

    def write_after(self, error: BaseException, kept: Kept) -> None:
        """Write after an exception, which stays the one that the caller sees."""
        try:
            self.write(kept)
        except Exception as failure:
            error.add_note(f"the checkpoint could not be written: {failure}")


class Keeper(FileKeeper[Campaign]):
    """Writes a campaign: the file of its search, with the rest in the header."""

    def contents(self, kept: Campaign) -> Contents:
        """The parts of the search and of the campaign."""
        header, arrays = kept.search._parts()
        return "searcher", {**header, "campaign": kept.to_json()}, arrays


def must_be_new(path: files.Path | None) -> None:
    """Refuse to begin a run on a file that is there: it may be the only trace of another."""
    if path is not None and os.path.exists(path):
        text = "there is a file of this name: resume=True goes on from a checkpoint, another name keeps it"
        raise FileExistsError(errno.EEXIST, text, os.fspath(path))


def must_exist(path: files.Path | None, name: str) -> files.Path:
    """The file from which a search or a fit, by this name, goes on."""
    if path is None:
        raise ValueError("resume=True goes on from a file: say which one with checkpoint=")
    if not os.path.exists(path):
        text = f"there is no checkpoint to resume from; without resume=True the {name} starts afresh"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(path))
    return path


def resume_from(path: files.Path | None, campaign: Campaign) -> None:
    """Put a campaign that has not begun where its file says it was."""
    path = must_exist(path, "search")
    with files.reading(path, "searcher") as (header, arrays):
        search = Searcher._from_parts(header, arrays)
        differences = _differences(search, campaign.search)
        if not differences:
            campaign.restore(search, header.get("campaign"))
    if differences:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same search, but {differences[0]}")


def _space(search: Searcher) -> str:
    return " x ".join(map(str, search.shape)) + (" coordinates" if len(search.shape) == 1 else " entries")


def _differences(saved: Searcher, given: Searcher) -> list[str]:
    """What makes another search of it; where it starts and when it ends do not."""
    if type(saved) is not type(given):
        return [f"it is over {_space(saved)}, {saved.structure}, and not over {_space(given)}, {given.structure}"]
    if saved.shape != given.shape:
        return [f"it has {_space(saved)} and x0 has {_space(given)}"]
    if hasattr(saved, "strategy"):
        if snapshot_space.describe(saved)[0] == snapshot_space.describe(given)[0]:
            return []
        if saved.structure != given.structure:
            return [f"its distribution is {saved.structure} and not {given.structure}"]
        return [f"its {saved.structure} has other parameters, or its popsize is not {given.popsize}"]
    names = ("lower", "upper", "fixed", "integer")
    spaces = [name for name in names if not np.array_equal(getattr(saved._space, name), getattr(given._space, name))]
    found = [f"its {name} {'coordinates' if name in ('fixed', 'integer') else 'bounds'} are others" for name in spaces]
    if saved.structure != given.structure:
        found.append(f"its structure is {saved.structure} and not {given.structure}")
    if saved._options != given._options:
        found.append(f"its options are {saved._options} and not {given._options}")
    return found
