"""The folder of a comparison: its plan and the runs done so far."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from esgroup.compare.execution import Settings
from esgroup.compare.plan import ComparisonPlan
from esgroup.compare.records import Cell, RunRecord, append, mend, read
from esgroup.files.replacing import replace_text

_EXTENSIBLE = {"problems", "methods", "seeds", "reference"}  # what can change without invalidating finished runs


class Folder:
    """The folder of one plan. Opened again with the same plan, it has the finished runs.

    Parameters
    ----------
    path
        The folder; it is created if it does not exist.
    plan
        The plan of the comparison.
    command
        The command line, stored with the plan.
    extend
        Whether to add the plan to the one in the folder.

    Raises
    ------
    ValueError
        If the folder contains something else, its runs are damaged, or another comparison is running there.
    """

    def __init__(self, path: Path, plan: ComparisonPlan, command: str, *, extend: bool = False) -> None:
        self.path = path
        self.plan = _agreed(path, plan, extend)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        self._runs = path / "runs.csv"
        self._by_cell: dict[Cell, RunRecord] = {}
        try:
            stored = json.dumps({"command": command, "plan": self.plan.fields}, indent=1)
            replace_text(path / "command.json", f"{stored}\n")
            if self._runs.exists():
                mend(self._runs)
                self._by_cell = {run.cell: run for run in read(self._runs)}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def runs(self) -> list[RunRecord]:
        """Runs that have ended, in the order of the plan."""
        return [self._by_cell[cell] for cell in self.plan.cells if cell in self._by_cell]

    @property
    def missing(self) -> list[Cell]:
        """Runs that are still to be done."""
        return [cell for cell in self.plan.cells if cell not in self._by_cell]

    def add(self, run: RunRecord) -> None:
        """Store a run."""
        append(self._runs, run)
        self._by_cell[run.cell] = run


def _locked(path: Path) -> int | None:
    """Lock the folder: two comparisons in it would do every run twice. Some systems have no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        raise ValueError(f"another comparison is running in {path}: wait for it, or choose another --out") from None
    except OSError:  # a file system without locks
        pass
    return folder


def _agreed(path: Path, plan: ComparisonPlan, extend: bool) -> ComparisonPlan:
    """Return the plan if the folder is new or has the same one; with `extend`, the union of both."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"--out must be a folder, but {path} is a file")
    if not path.exists() or not any(path.iterdir()):
        return plan
    earlier = _stored(path)
    if earlier == plan:
        return plan
    others = [name for name in plan.fields if plan.fields[name] != earlier.fields[name]]
    can_extend = set(others) <= _EXTENSIBLE
    if extend and can_extend:
        union: dict[str, Any] = {}
        for name in ("problems", "methods", "seeds"):
            union[name] = tuple(dict.fromkeys((*earlier.fields[name], *plan.fields[name])))
        return replace(plan, **union)
    advice = "pass --extend to combine both, or choose another --out" if can_extend else "choose another --out"
    was = "; ".join(f"{name} {_short(earlier.fields[name])}, now {_short(plan.fields[name])}" for name in others)
    raise ValueError(f"{path} contains another comparison ({was}): {advice}")


def _stored(path: Path) -> ComparisonPlan:
    file = path / "command.json"
    if not file.exists():
        raise ValueError(f"{path} is not empty and contains no comparison: choose another --out")
    try:
        plan = json.loads(file.read_text(encoding="utf-8"))["plan"]
        targets = None if plan["targets"] is None else tuple(plan["targets"])
        settings = Settings(targets, plan["max_evals"], plan["max_time"], plan["starts"])
        problems = tuple((name, dim) for name, dim in plan["problems"])
        return ComparisonPlan(problems, tuple(plan["methods"]), tuple(plan["seeds"]), plan["reference"], settings)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read ({error}): choose another --out") from error


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        value = ", ".join(" ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry) for entry in value)
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
