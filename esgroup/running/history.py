"""The history of a run as JSON lines: a header, then one line per generation, each written at once.

A killed run leaves at most an incomplete last line, which readers ignore and a resumed run removes. Generations that
could not be written because the disk was full are missing; the run warns once and continues.

The header has the limits of the run. The first line of a resumed run also has its limits, which may be different, and
the last line of every run that was not killed says how it ended.
"""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.files.lines import LineFile
from esgroup.running.history_lines import FORMAT, MOST_COORDINATES, complete_lines, parse_generation, parse_header
from esgroup.running.observers import Observer
from esgroup.stopping.base import View

if TYPE_CHECKING:
    from esgroup.groups import Group

MOST_LETTERS = 500  # of a message


@dataclass(frozen=True)
class HistoryFile(PathLike[str]):
    """Path of a history with the name of the problem, for its header; it can be used like any other path."""

    path: str | PathLike[str]
    problem: str | None = None

    def __fspath__(self) -> str:
        return str(self.path)


class History(Observer):
    """Observes a run, or a search in a loop of your own, and writes its history.

    If points have more than 100 variables, only the first 100 are stored; the header has both numbers.

    Parameters
    ----------
    path
        The file to write; `begins` raises ValueError if it exists and is not a history.
    append
        Whether to continue the file of an earlier run, if it exists.
    """

    def __init__(self, path: str | PathLike[str], append: bool = False) -> None:
        self.path, self._append = Path(path), append
        self._problem = path.problem if isinstance(path, HistoryFile) else None
        self._written = False  # whether the last line is of this run

    def begins(self, run: View) -> None:
        """Open the file."""
        keeps = _has_header(self.path) and self._append
        if keeps:
            with self.path.open("r+b") as file:  # cut off what a killed run has left after the last complete line
                file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
        self._file, self._needs_header = LineFile(self.path, keeps), not keeps

    def generation(self, run: View) -> None:
        """Write the generation that was just completed."""
        generation = _generation(run)
        if not (self._written or self._needs_header):
            generation["limits"] = run.limits._asdict()
        lines = _line(generation)
        if self._needs_header:
            lines = _line(_header(run, self._problem)) + lines
        if self._file.write(lines):
            self._needs_header, self._written = False, True

    def ends(self, run: View, error: BaseException | None) -> None:
        """Write how the run ended, and close the file."""
        if self._written:  # otherwise the last line is of an earlier run, or there is none
            self._file.replace_end("}\n", f', "end": {json.dumps(_end(run, error))}}}\n')
        self._file.close()


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, allow_nan=False) + "\n"


def _generation(search: View) -> dict[str, Any]:
    count = min(search.dim, MOST_COORDINATES)
    # whether to compute the axis ratio: singular values cost O(d^3), a generation about O(d^2)
    due = search.nit % max(1, min(search.dim, 100) // 10) == 0 or search.nit <= 1
    return {
        "nit": search.nit,
        "nfev": search.nfev,
        "best_f": _number(search.best_f),
        "gen_best": _number(search.generation_best),
        "sigma": _number(search.sigma),
        "axis_ratio": _number(search.axis_ratio) if due else None,
        "restart": getattr(search, "restart", 0),  # a plain Searcher has none
        "elapsed": round(search.seconds, 4),
        "mean": _numbers(search.mean.ravel()[:count]),
        "stds": _numbers(search.stds.ravel()[:count]),
        **_feasibility(search),
    }


def _end(search: View, error: BaseException | None) -> dict[str, str]:
    """How a run ended: "stopped" for a reason of the search, "interrupted", "failed", or "left" by the caller."""
    if isinstance(error, KeyboardInterrupt):
        return {"how": "interrupted", "message": "interrupted"}
    if error is not None:
        text = (str(error).strip().splitlines() or [""])[-1]  # some messages are whole tracebacks
        return {"how": "failed", "message": f"{type(error).__name__}: {text}"[:MOST_LETTERS]}
    result = search.result
    if not result.stop:
        return {"how": "left", "message": "the program closed the history before the search stopped"}
    return {"how": "stopped", "message": str(result.message)[:MOST_LETTERS]}


def _feasibility(search: View) -> dict[str, Any]:
    """With constraints: the largest violation at the best point, and whether it is within the tolerances."""
    if search.constraints is None:
        return {}
    best = search.best_constraints
    violation = None if best is None else _number(search.constraints.violations(best).max())
    return {"violation": violation, "feasible": best is not None and search.feasible}


def _header(search: View, problem: str | None) -> dict[str, Any]:
    from esgroup.version import __version__

    return {
        "esgroup_history": FORMAT,
        "problem": problem,
        "dim": search.dim,
        "shape": list(search.shape),
        "coordinates": min(search.dim, MOST_COORDINATES),
        **({} if search.labels is None else {"names": search.labels[:MOST_COORDINATES]}),
        "structure": structure_name(search.structure),
        "limits": search.limits._asdict(),
        "versions": {"esgroup": __version__, "numpy": np.__version__, "python": platform.python_version()},
    }


def structure_name(structure: Group | str) -> str:
    """Spelling of a group, or how it was composed; for other spaces the name of the distribution."""
    from esgroup.groups import described

    return structure if isinstance(structure, str) else described(structure)


def _number(value: float) -> float | None:
    """Convert to a JSON number; NaN and infinities become None."""
    return float(value) if math.isfinite(value) else None


def _numbers(values: Array) -> list[float | None]:
    plain: list[float | None] = values.tolist()
    return plain if math.isfinite(np.vdot(values, values)) else [_number(v) for v in values.tolist()]


def _has_header(path: Path) -> bool:
    """Whether the file is a history; any other nonempty file raises an error instead of being overwritten."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = next(complete_lines(file, path), None)
    if first is not None:
        parse_header(first[1], path)
    return first is not None


# ---- reading --------------------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """A history as arrays with one entry per generation, NaN where a number is unknown."""

    header: dict[str, Any]
    nit: Array
    nfev: Array
    best_f: Array
    gen_best: Array
    sigma: Array
    axis_ratio: Array
    restart: Array
    elapsed: Array
    mean: Array  # (generations, coordinates)
    stds: Array
    violation: Array  # the largest one at the best point, in its own units; NaN in searches without constraints
    feasible: NDArray[np.bool_]  # whether the best point is feasible; always in searches without constraints


# the entries of a generation that others may lack
_MAY_LACK: dict[str, Any] = {"violation": None, "feasible": True}


def read(path: str | PathLike[str]) -> Recorded:
    """Read a history, ignoring an incomplete last line.

    If a run was resumed from an older checkpoint, its generations replace those already in the file.

    Raises
    ------
    ValueError
        If the file is not a history, or has no generation.
    """
    path, header = Path(path), dict[str, Any]()
    kept: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for number, line in complete_lines(file, path):
            if number == 1:
                header = parse_header(line, path)
                continue
            generation = _MAY_LACK | parse_generation(line, path, number, header)
            while kept and kept[-1]["nfev"] >= generation["nfev"]:
                kept.pop()
            kept.append(generation)
    if not kept:
        raise ValueError(f"{path} contains no generation" if header else f"{path} is empty, not an esgroup history")
    columns: dict[str, Any] = {name: [one[name] for one in kept] for name in Recorded._fields[1:]}
    arrays = {name: np.array(column, bool if name == "feasible" else float) for name, column in columns.items()}
    return Recorded(header, **arrays)
