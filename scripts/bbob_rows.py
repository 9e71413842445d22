"""The rows that bench_bbob.py writes, and the CSV files that hold them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TARGETS = (1e2, 1e1, 1.0, 1e-1, 1e-3, 1e-5, 1e-8)  # above the optimum


class Setup(NamedTuple):
    """What a label stands for."""

    method: str
    options: str
    budget: int  # evaluations per coordinate
    restarts: str


class Run(NamedTuple):
    """One run of a label."""

    function: int
    dim: int
    instance: int
    popsize: int | None  # None is the method's default
    seed: int


class Row(NamedTuple):
    """One line of the CSV: when a run hit a target. Columns about the run are the same in each of its lines."""

    label: str
    function: int
    dim: int
    instance: int
    popsize: int | None
    seed: int
    target: float
    evals: int | None  # number of the evaluation that hit the target first
    used: int  # evaluations of the whole run
    ended: str
    cpu: float  # seconds of the whole run, evaluations included
    method: str
    options: str
    budget: int
    restarts: str

    @property
    def run(self) -> Run:
        return Run(self.function, self.dim, self.instance, self.popsize, self.seed)

    @property
    def setup(self) -> Setup:
        return Setup(self.method, self.options, self.budget, self.restarts)


def _parse(row: dict[str, str]) -> Row:
    texts = {name: row[name] for name in ("label", "ended", "method", "options", "restarts")}
    ints = {name: int(row[name]) for name in ("function", "dim", "instance", "seed", "used", "budget")}
    maybe = {name: int(row[name]) if row[name] else None for name in ("popsize", "evals")}
    return Row(**texts, **ints, **maybe, target=float(row["target"]), cpu=float(row["cpu"]))  # type: ignore[arg-type]


def read_rows(path: Path) -> list[Row]:
    """Rows of a file, none if there is no file."""
    return [_parse(row) for row in read_texts(path, Row._fields)]


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows at the end of a file; the file and its header are made if need be."""
    append_tuples(path, rows, Row._fields)


def read_texts(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Lines of a CSV with these columns, none if there is no file. One that was cut off by a kill is left out."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    reader = csv.DictReader(lines)
    if lines and tuple(reader.fieldnames or ()) != tuple(columns):
        raise ValueError(f"{path} must have the columns {', '.join(columns)}, got {reader.fieldnames}")
    return list(reader)


def append_tuples(path: Path, rows: Iterable[tuple[Any, ...]], columns: Sequence[str]) -> None:
    """Write lines at the end of a CSV and flush them, after dropping one that was cut off by a kill."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _drop_unfinished_line(path, file.tell())
    with path.open("a", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        if text.tell() == 0:
            writer.writerow(columns)
        writer.writerows(rows)


def _drop_unfinished_line(path: Path, size: int) -> None:
    if size and not (content := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])


def finished(rows: Iterable[Row], targets: Sequence[float] = TARGETS) -> set[tuple[str, Run]]:
    """Labels and runs that have a row for every target."""
    found = Counter(run for run, _ in {((row.label, row.run), row.target) for row in rows})
    return {run for run, count in found.items() if count == len(targets)}


def setups(rows: Iterable[Row]) -> dict[str, Setup]:
    """What each label stands for; a label that stands for two things is refused."""
    result: dict[str, Setup] = {}
    for row in rows:
        if result.setdefault(row.label, row.setup) != row.setup:
            raise ValueError(f"label {row.label!r} must stand for one setup, got {result[row.label]} and {row.setup}")
    return result
