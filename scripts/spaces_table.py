"""The table of a benchmark: on the terminal row by row, and as Markdown."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from spaces_runs import Row

HEAD = ("what", "measured", "goal", "")
PACKAGES = ("numpy", "scipy", "numba", "cma")


def verdict(met: bool | None) -> str:
    """The last column."""
    return "-" if met is None else "met" if met else "missed"


def cells(row: Row) -> tuple[str, str, str, str]:
    """The columns of a row."""
    return row.what, row.measured, row.goal, verdict(row.met)


def summary(rows: Sequence[Row]) -> str:
    """How many goals were met, and which were missed."""
    judged = [row for row in rows if row.met is not None]
    missed = [row.what for row in judged if not row.met]
    text = f"{len(judged) - len(missed)} of {len(judged)} goals met"
    return f"{text}; missed: {'; '.join(missed)}" if missed else text


class Terminal:
    """Columns of fixed width, wrapped, and a line on stderr about what is being run, if someone looks."""

    def __init__(self) -> None:
        width = shutil.get_terminal_size((150, 24)).columns
        left = max(60, width - 6 - 3 * 2)
        self._line, self._widths = width - 1, (int(0.36 * left), int(0.44 * left), int(0.2 * left), 6)

    def say(self, text: str) -> None:
        """Replace the line on stderr."""
        if sys.stderr.isatty():
            print("\r\033[K" + text[: self._line], end="", file=sys.stderr, flush=True)

    def title(self, text: str) -> None:
        self.say("")
        print(f"\n{text}\n", flush=True)
        self._print(HEAD)
        print("  ".join("-" * width for width in self._widths))

    def row(self, row: Row) -> None:
        self.say("")
        self._print(cells(row))

    def close(self, text: str) -> None:
        self.say("")
        print(f"\n{text}", flush=True)

    def _print(self, columns: Sequence[str]) -> None:
        wrapped = [
            textwrap.wrap(text, width, subsequent_indent="  ")
            for text, width in zip(columns, self._widths, strict=True)
        ]
        for parts in zip_longest(*wrapped, fillvalue=""):
            print("  ".join(f"{part:<{width}}" for part, width in zip(parts, self._widths, strict=True)).rstrip())
        sys.stdout.flush()


class Markdown:
    """The same in a file, which is there at any time as far as rows have come."""

    def __init__(self, path: Path, command: str) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8")
        versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        self._write(f"# Searches beyond vectors\n\n`{command}`, {versions}, BLAS on one thread.")

    def say(self, text: str) -> None:
        """Nothing: a file keeps results only."""

    def title(self, text: str) -> None:
        self._write(f"\n## {text}\n\n{_line(HEAD)}\n{'|---' * len(HEAD)}|")

    def row(self, row: Row) -> None:
        self._write(_line(cells(row)))

    def close(self, text: str) -> None:
        self._write(f"\n{text}")
        self._file.close()

    def _write(self, text: str) -> None:
        print(text, file=self._file, flush=True)


def _line(columns: Sequence[str]) -> str:
    escaped = (text.replace("|", "\\|") for text in columns)
    return f"| {' | '.join(escaped)} |"
