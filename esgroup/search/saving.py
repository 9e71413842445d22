"""Searches in files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from esgroup import checks
from esgroup.search.telling import Telling

if TYPE_CHECKING:
    from os import PathLike


class Saving(Telling):
    """The side of a search that is written and read: checkpoints, and pickles for other processes."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that is needed to go on to one .npz without pickle, whole or not at all."""
        from esgroup.files import npz

        npz.write(path, "searcher", *self._parts())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The search that was saved; it goes on as if it had not been interrupted, bit by bit."""
        from esgroup.files import npz

        with npz.reading(path, "searcher") as parts:
            return cls._from_parts(*parts)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_seconds": self.seconds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.best_x is not None:
            checks.read_only(self.best_x)  # as copies of arrays are not
        self._since = time.monotonic()  # the clock of another machine means nothing here

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from esgroup.search import snapshot

        return snapshot.parts(self)  # type: ignore[arg-type]  # it is a Searcher

    @classmethod
    def _from_parts(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        from esgroup.search import snapshot

        return snapshot.restored(cls, header, arrays)  # type: ignore[type-var]
