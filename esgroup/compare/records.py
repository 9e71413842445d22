"""The record of a run, and the CSV file of records: one line per run, appended when the run has ended."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from esgroup.files.markup import printable
from esgroup.files.outage import naming
from esgroup.files.replacing import replace_text

LONGEST = 500  # characters of a message that are stored
MOST = 2**53  # of a count: up to here they are exact as floats


class Ended(StrEnum):
    """Why a run has ended."""

    TARGET = "target"  # the last target was reached
    BUDGET = "budget"  # all evaluations were used
    STOPPED = "stopped"  # the method stopped by its own criteria
    NAN = "nan"  # no value was a finite number
    ERROR = "error"  # the method or the problem raised an exception
    TIMEOUT = "timeout"  # max_time was used
    KILLED = "killed"  # the process died, or did not return in time and was killed


class Cost(StrEnum):
    """What counts as an evaluation of a method."""

    VALUES = "f"  # values of the function
    GRADIENTS = "f+g"  # values and gradients, one each; a product with the Hessian, or its diagonal, is one gradient
    DIFFERENCES = "f, differences"  # values, including those for gradients by finite differences


class Cell(NamedTuple):
    """Identifies a run: a problem, a method by its full spelling, and the seed of instance, start and method."""

    problem: str
    dim: int
    method: str
    seed: int


class Improvement(NamedTuple):
    """The gap of a run after so many values and gradients: the best value minus the minimum, if that is known."""

    evals: int
    gradients: int
    gap: float

    @property
    def cost(self) -> int:
        """Values and gradients together."""
        return self.evals + self.gradients


class RunRecord(NamedTuple):
    """The record of one run; without further arguments, of one that did not evaluate anything.

    Gaps are values minus `minimum`, or the values themselves where the minimum is not known (NaN).

    Attributes
    ----------
    problem, dim, method, seed
        The cell of the run.
    ended, message
        Why the run ended, in one word and in the method's own words.
    evals, gradients
        Numbers of values and of gradients. Products with the Hessian and its diagonal count as one gradient each.
    size
        Number of coordinates searched: dim, or p (p + 1) / 2 for positive-definite p x p matrices.
    best, minimum
        The best value found, and the minimum of the problem; NaN if that is not known.
    cost
        What counts as an evaluation.
    cpu, cpu_fun
        CPU time of the whole run in seconds, and the part spent in the problem's functions and in counting.
    versions
        Versions of the method's packages.
    targets, hits
        Gaps to reach, the largest first, and the cost at which each was first reached, inf if it was not. Both are
        empty if nothing is known about the problem, or about the run.
    trajectory
        The improvements of the run, thinned.
    relative
        Whether gaps are relative (`report.summary.measured`); not stored in the file.
    """

    problem: str
    dim: int
    method: str
    seed: int
    ended: Ended
    message: str
    evals: int = 0
    gradients: int = 0
    size: int = 1
    best: float = math.inf
    minimum: float = math.nan
    cost: Cost = Cost.VALUES
    cpu: float = 0.0
    cpu_fun: float = 0.0
    versions: str = ""
    targets: tuple[float, ...] = ()
    hits: tuple[float, ...] = ()
    trajectory: tuple[Improvement, ...] = ()
    relative: bool = False

    @property
    def cell(self) -> Cell:
        """What identifies the run."""
        return Cell(self.problem, self.dim, self.method, self.seed)

    @property
    def used(self) -> int:
        """Values and gradients together."""
        return self.evals + self.gradients

    @property
    def solved(self) -> bool:
        """Whether the last target was reached."""
        return bool(self.hits) and math.isfinite(self.hits[-1])

    @property
    def failed(self) -> bool:
        """Whether the run failed, which is different from not reaching the target."""
        return self.ended in (Ended.NAN, Ended.ERROR, Ended.TIMEOUT, Ended.KILLED)


COLUMNS = RunRecord._fields[:-1]
_TYPES = get_type_hints(RunRecord)


def to_line(run: RunRecord) -> list[str]:
    """Return the CSV fields of a run. Numbers keep all their digits, so that reading restores them exactly."""
    trajectory = " ".join(f"{p.evals}:{p.gradients}:{p.gap:.17g}" for p in run.trajectory)
    last = [*(" ".join(f"{number:.17g}" for number in numbers) for numbers in (run.targets, run.hits)), trajectory]
    return [" ".join(str(field).split())[:LONGEST] for field in run[: COLUMNS.index("targets")]] + last  # one line


def from_line(line: Sequence[str]) -> RunRecord:
    """Return the run that `to_line` wrote."""
    if len(line) != len(COLUMNS):
        raise ValueError(f"it must have {len(COLUMNS)} fields, got {len(line)}")
    run = RunRecord(**{name: _field(name, printable(text)) for name, text in zip(COLUMNS, line, strict=True)})
    if len(run.hits) != len(run.targets):
        raise ValueError(f"it must have a hit for each target, got {len(run.hits)} for {len(run.targets)}")
    if not (all(map(math.isfinite, run.targets)) and all(cost > 0 for cost in run.hits)):
        raise ValueError(f"targets must be finite, and hits positive or inf, got {run.targets} and {run.hits}")
    return run


def _field(name: str, text: str) -> Any:
    """Read one field, as its type in a record says."""
    if name == "trajectory":
        return tuple(_point(word) for word in text.split())
    if name in ("targets", "hits"):
        return tuple(float(word) for word in text.split())
    if _TYPES[name] is int:
        return _whole(name, text, least=1 if name in ("dim", "size") else 0)
    return _TYPES[name](text)


def _whole(name: str, text: str, least: int = 0) -> int:
    number = int(text)
    if not least <= number <= MOST:
        raise ValueError(f"{name} must be an integer from {least} to {MOST}, got {text}")
    return number


def _point(word: str) -> Improvement:
    evals, gradients, gap = word.split(":")
    point = Improvement(_whole("evals", evals), _whole("gradients", gradients), float(gap))
    if not (point.cost > 0 and math.isfinite(point.gap)):
        raise ValueError(f"an improvement must be a finite gap after some evaluations, got {word}")
    return point


def append(path: Path, run: RunRecord) -> None:
    """Append a run to the file, after the header if it is the first one, and flush it."""
    with naming(path), path.open("a", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(COLUMNS)
        writer.writerow(to_line(run))


def read(path: Path) -> list[RunRecord]:
    """Read the runs of a file in the order in which they ended, ignoring an incomplete last line."""
    reader = csv.reader(io.StringIO(_complete_lines(path), newline=""))
    try:
        header = tuple(next(reader, COLUMNS))
        runs = [from_line(line) for line in reader] if header == COLUMNS else []
    except (csv.Error, ValueError) as error:
        raise ValueError(f"line {reader.line_num} of {path} is not a run: {str(error)[:LONGEST]}") from error
    if header != COLUMNS:
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, got {', '.join(header)[:LONGEST]}")
    return runs


def _complete_lines(path: Path) -> str:
    data = path.read_bytes()
    complete = data[: data.rfind(b"\n") + 1]  # before decoding: a killed writer may have cut a letter into bytes
    try:
        return complete.decode("utf-8")
    except UnicodeDecodeError as error:
        line = complete.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path} must be text in UTF-8, but line {line} is not") from error


def mend(path: Path) -> None:
    """Remove an incomplete last line, which an interrupted write leaves; the file is replaced at once."""
    complete = _complete_lines(path)
    if len(complete.encode("utf-8")) < path.stat().st_size:
        replace_text(path, complete)
