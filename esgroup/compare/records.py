"""What is kept of a run, and the file of runs: one line each, appended when a run has ended."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

LONGEST = 500  # characters of a message that are kept


class Ended(StrEnum):
    """Why a run is over."""

    TARGET = "target"  # the last target was reached
    BUDGET = "budget"  # all evaluations are spent
    STOPPED = "stopped"  # the method gave up by itself
    NAN = "nan"  # not one value was a number
    ERROR = "error"  # the method or the problem has raised
    TIMEOUT = "timeout"  # the time is spent
    KILLED = "killed"  # it did not come back, or its process died


class Cost(StrEnum):
    """What the evaluations of a method count."""

    VALUES = "f"  # values of the function
    GRADIENTS = "f+g"  # values and gradients, one each; a product with the Hessian, or its diagonal, is one gradient
    DIFFERENCES = "f, differences"  # values, those for gradients by finite differences among them


class Cell(NamedTuple):
    """Which run it is: of a method, by its full spelling, on a problem; the seed sets instance, start and method."""

    problem: str
    dim: int
    method: str
    seed: int


class Point(NamedTuple):
    """How far a run was after so many values and gradients: the best value less the minimum, if that is known."""

    evals: int
    gradients: int
    gap: float

    @property
    def cost(self) -> int:
        return self.evals + self.gradients


class Run(NamedTuple):
    """One run. Gaps are values less `minimum`, or the values themselves where the minimum is not known (NaN).

    `hits` has the cost at which each of the `targets` (gaps, the largest first) was first reached, inf if it was not;
    there are none if nothing is known of the problem, or of the run. `gradients` has the products with the Hessian and
    its diagonals in it, which cost one each, too. `cpu` is the time of the whole run in seconds,
    `cpu_fun` the part of it that is not the method's own: the problem's functions, and the counting. `size` is the
    number of coordinates that were searched: dim, or p (p + 1) / 2 for positive-definite p x p matrices.
    """

    problem: str
    dim: int
    method: str
    seed: int
    ended: Ended
    message: str
    evals: int
    gradients: int
    size: int
    best: float
    minimum: float
    cost: Cost
    cpu: float
    cpu_fun: float
    versions: str
    targets: tuple[float, ...]
    hits: tuple[float, ...]
    trajectory: tuple[Point, ...]
    relative: bool = False  # whether gaps are relative (relative.py); never in a file

    @property
    def cell(self) -> Cell:
        return Cell(self.problem, self.dim, self.method, self.seed)

    @property
    def used(self) -> int:
        """Values and gradients in all."""
        return self.evals + self.gradients

    @property
    def solved(self) -> bool:
        return bool(self.hits) and math.isfinite(self.hits[-1])

    @property
    def failed(self) -> bool:
        """Whether something went wrong, which is not the same as not having reached the target."""
        return self.ended in (Ended.NAN, Ended.ERROR, Ended.TIMEOUT, Ended.KILLED)


COLUMNS = Run._fields[:-1]


def to_line(run: Run) -> list[str]:
    """The fields of the CSV. Numbers are written with all their digits: what is read equals what was written."""
    trajectory = " ".join(f"{p.evals}:{p.gradients}:{p.gap:.17g}" for p in run.trajectory)
    last = [_joined(run.targets), _joined(run.hits), trajectory]
    return [" ".join(str(field).split())[:LONGEST] for field in run[: COLUMNS.index("targets")]] + last  # one line


def _joined(numbers: Iterable[float]) -> str:
    return " ".join(f"{number:.17g}" for number in numbers)


def from_line(line: Sequence[str]) -> Run:
    """The run that `to_line` has written."""
    fields = dict(zip(COLUMNS, line, strict=True))
    return Run(
        problem=fields["problem"],
        dim=int(fields["dim"]),
        method=fields["method"],
        seed=int(fields["seed"]),
        ended=Ended(fields["ended"]),
        message=fields["message"],
        evals=int(fields["evals"]),
        gradients=int(fields["gradients"]),
        size=int(fields["size"]),
        best=float(fields["best"]),
        minimum=float(fields["minimum"]),
        cost=Cost(fields["cost"]),
        cpu=float(fields["cpu"]),
        cpu_fun=float(fields["cpu_fun"]),
        versions=fields["versions"],
        targets=_numbers(fields["targets"]),
        hits=_numbers(fields["hits"]),
        trajectory=tuple(_point(word) for word in fields["trajectory"].split()),
    )


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())


def _point(word: str) -> Point:
    evals, gradients, gap = word.split(":")
    return Point(int(evals), int(gradients), float(gap))


def append(path: Path, run: Run) -> None:
    """Add a run to the file, with the header if it is the first, and flush it."""
    with path.open("a", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(COLUMNS)
        writer.writerow(to_line(run))


def read(path: Path) -> list[Run]:
    """The runs of a file in the order in which they ended; a last line that was cut off is left out."""
    text = _complete_lines(path)
    header, *lines = csv.reader(io.StringIO(text, newline="")) if text else [list(COLUMNS)]
    if tuple(header) != COLUMNS:
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, got {', '.join(header)}")
    return [_read_line(path, number, line) for number, line in enumerate(lines, start=2)]


def _read_line(path: Path, number: int, line: list[str]) -> Run:
    try:
        return from_line(line)
    except (ValueError, KeyError) as error:
        raise ValueError(f"line {number} of {path} is not a run: {error}") from error


def _complete_lines(path: Path) -> str:
    with path.open(newline="", encoding="utf-8") as file:
        text = file.read()
    return text[: text.rfind("\n") + 1]


def mend(path: Path) -> None:
    """Cut off what an interrupted write has left at the end of the file."""
    complete = _complete_lines(path)
    if len(complete.encode()) < path.stat().st_size:
        path.write_text(complete, encoding="utf-8", newline="")
