"""When checkpoints are written: loading modules for the first one does not delay the second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esgroup.files import autosave


class Writer(autosave.CheckpointWriter[int]):
    """Counts files. Each takes one second, and what is done once, as loading modules, another fifty."""

    def __init__(self, path: Path) -> None:
        self.now, self.loaded, self.written = 0.0, False, 0
        super().__init__(path)

    def contents(self, kept: int) -> autosave.Contents:
        self.now += 0.0 if self.loaded else 50.0
        self.loaded = True
        return "test", {}, {}

    def count(self, *_: Any) -> None:
        self.now += 1.0
        self.written += 1


@pytest.mark.parametrize(("seconds", "written"), [(5.0, 1), (20.0, 2)])
def test_the_first_file_counts_as_long_as_any_other(
    seconds: float, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second file is written if both together take a tenth of the time, from which loading does not keep it."""
    monkeypatch.setattr(autosave.time, "monotonic", lambda: writer.now if made else 0.0)
    made: list[Writer] = []
    writer = Writer(tmp_path / "run.npz")
    made.append(writer)
    monkeypatch.setattr(autosave.files, "write", writer.count)
    writer.begins(0)
    writer._begin = writer.now  # the run begins here
    writer.now += seconds
    writer.generation(1)
    assert writer.written == written
