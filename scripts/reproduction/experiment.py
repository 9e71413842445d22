"""What an experiment is: numbers in a table, a figure and verdicts that are made from the table only.

All numbers of a run are rows of one form, so that the files, the figures and the page need to know nothing else.
"""

from __future__ import annotations

import csv
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

Array = np.ndarray
HOLDS, FAILS, UNDECIDED, WHEN = "holds", "does not hold", "undecided", "holds when "
_LIBRARIES = ("numpy", "scipy")


class Row(NamedTuple):
    """A number: the quantity, under which circumstances, of which method, at which place (an iteration, a step)."""

    part: str
    case: str
    series: str
    x: float
    value: float


@dataclass(frozen=True)
class Verdict:
    """What became of a claim of the paper, and the figures behind it.

    The word is "holds", "holds when ...", "does not hold", or "undecided" where the runs do not tell.
    """

    claim: str
    word: str
    why: str

    def __post_init__(self) -> None:
        conditional = self.word.startswith(WHEN) and len(self.word) > len(WHEN)
        if not conditional and self.word not in (HOLDS, FAILS, UNDECIDED):
            known = f"{HOLDS!r}, {FAILS!r}, {UNDECIDED!r}"
            raise ValueError(f"word must be {known} or begin with {WHEN!r}, got {self.word!r}")


def judged(claim: str, why: str, outcomes: dict[str, bool]) -> Verdict:
    """A verdict from outcomes by circumstance: all, none, or "holds when" and those under which it does."""
    if not outcomes:
        raise ValueError("outcomes must have at least one circumstance, got none")
    good = [name for name, ok in outcomes.items() if ok]
    if len(good) == len(outcomes):
        return Verdict(claim, HOLDS, why)
    return Verdict(claim, WHEN + " or ".join(good) if good else FAILS, why)


class Table:
    """The rows of a run, with questions to them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._parts: dict[str, list[Row]] = {}
        for row in self.rows:
            self._parts.setdefault(row.part, []).append(row)

    def where(self, part: str, case: str | None = None, series: str | None = None) -> Self:
        """The rows of a quantity, in one case or of one method if that is said."""
        return type(self)(
            row for row in self._parts.get(part, ()) if case in (None, row.case) and series in (None, row.series)
        )

    def cases(self, part: str) -> list[str]:
        """The cases of a quantity, in their order."""
        return list(dict.fromkeys(row.case for row in self._parts.get(part, ())))

    def series(self, part: str, case: str | None = None) -> list[str]:
        """The methods with that quantity, in their order."""
        return list(dict.fromkeys(row.series for row in self.where(part, case).rows))

    def curve(self, part: str, case: str, series: str) -> tuple[Array, Array]:
        """Places and values of one line."""
        rows = self.where(part, case, series).rows
        return np.array([row.x for row in rows]), np.array([row.value for row in rows])

    def value(self, part: str, case: str, series: str) -> float:
        """The one number there is."""
        rows = self.where(part, case, series).rows
        if len(rows) != 1:
            raise ValueError(f"one row must have {part!r}, {case!r}, {series!r}, but there are {len(rows)}")
        return rows[0].value

    def matrix(self, part: str, case: str, series: str) -> Array:
        """A square matrix whose entries were stored row by row, as `entries` does."""
        _, values = self.curve(part, case, series)
        return values.reshape(round(len(values) ** 0.5), -1)


def entries(part: str, case: str, series: str, matrix: Array) -> Iterator[Row]:
    """A matrix as rows of the table."""
    for index, value in enumerate(np.asarray(matrix).ravel()):
        yield Row(part, case, series, index, float(value))


def _silent(text: str) -> None:
    """No one looks."""


@dataclass(frozen=True)
class Plan:
    """How much to run: everything, or a quick try for the tests; the seed; and whom to tell how far it is.

    Long experiments may keep what is done in the folder, use several processes, and have data of the user.
    """

    quick: bool = False
    seed: int = 0
    say: Callable[[str], None] = _silent
    folder: Path | None = None
    jobs: int = 1
    data: str | None = None


def _no_notes(table: Table) -> list[str]:
    return []


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper. Figure, verdicts and notes see the table and nothing else.

    A resumable one continues where it was stopped, and looks at all of the plan.
    """

    name: str
    title: str
    about: str
    run: Callable[[Plan], Iterable[Row]]
    figure: Callable[[Table, Path], None]
    verdicts: Callable[[Table], list[Verdict]]
    notes: Callable[[Table], list[str]] = _no_notes
    resumable: bool = False


# ---- files ----------------------------------------------------------------------------------------------------------


def plan_rows(plan: Plan) -> Iterator[Row]:
    """What the page says of a run: its size, seed and versions."""
    yield Row("run", "", "quick", 0, float(plan.quick))
    yield Row("run", "", "seed", 0, float(plan.seed))
    yield Row("version", platform.python_version(), "python", 0, 0.0)
    for name in _LIBRARIES:
        yield Row("version", version(name), name, 0, 0.0)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """A CSV file of all numbers, exact to the last bit."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Row._fields)
        table.writerows((*row[:3], f"{row.x:.17g}", f"{row.value:.17g}") for row in rows)


def read_rows(path: Path) -> Table:
    """What `write_rows` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        if (head := next(lines, None)) != list(Row._fields):
            raise ValueError(f"{path} must begin with the columns {', '.join(Row._fields)}, got {head}")
        return Table(Row(part, case, series, float(x), float(value)) for part, case, series, x, value in lines)


def slope(x: Sequence[float] | Array, y: Sequence[float] | Array) -> float:
    """The order of y in x: the slope of log y over log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
