"""The folder of a comparison: what was asked for, and the runs so far."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from esgroup.compare.execution import Settings
from esgroup.compare.plan import Plan
from esgroup.compare.records import Cell, Run, append, mend, read

_EXTENSIBLE = {"problems", "methods", "seeds", "reference"}  # what leaves the runs that are there as they are


class Folder:
    """A folder that belongs to one plan. Opened by the same plan again, it knows what has been done."""

    def __init__(self, path: Path, plan: Plan, command: str, *, extend: bool = False) -> None:
        self.path = path
        self.plan = _agreed(path, plan, extend)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        replace_text(path / "command.json", json.dumps({"command": command, "plan": self.plan.to_json()}, indent=1))
        self._runs = path / "runs.csv"
        self._by_cell: dict[Cell, Run] = {}
        if self._runs.exists():
            mend(self._runs)
            self._by_cell = {run.cell: run for run in read(self._runs)}

    def close(self) -> None:
        """Let others in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def runs(self) -> list[Run]:
        """The runs that have ended, in the order of the plan."""
        return [self._by_cell[cell] for cell in self.plan.cells if cell in self._by_cell]

    @property
    def missing(self) -> list[Cell]:
        """The runs that are still to be done."""
        return [cell for cell in self.plan.cells if cell not in self._by_cell]

    def add(self, run: Run) -> None:
        """Keep a run."""
        append(self._runs, run)
        self._by_cell[run.cell] = run


def _locked(path: Path) -> int | None:
    """Two comparisons in one folder would do everything twice; where there are no locks, nobody is kept out."""
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


def _agreed(path: Path, plan: Plan, extend: bool) -> Plan:
    """The plan, if the folder is new or has the same; with `extend`, both together."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"--out must be a folder, but {path} is a file")
    if not path.exists() or not any(path.iterdir()):
        return plan
    earlier = _stored(path)
    if earlier == plan:
        return plan
    others = [name for name in plan.to_json() if plan.to_json()[name] != earlier.to_json()[name]]
    can_extend = set(others) <= _EXTENSIBLE
    if extend and can_extend:
        return _union(earlier, plan)
    advice = "add --extend to put both together, or choose another --out" if can_extend else "choose another --out"
    was = "; ".join(f"{name} {_short(earlier.to_json()[name])}, now {_short(plan.to_json()[name])}" for name in others)
    raise ValueError(f"{path} has another comparison ({was}): {advice}")


def _stored(path: Path) -> Plan:
    file = path / "command.json"
    if not file.exists():
        raise ValueError(f"{path} is not empty and has no comparison in it: choose another --out")
    try:
        return _from_json(json.loads(file.read_text(encoding="utf-8"))["plan"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} cannot be read ({error}): choose another --out") from error


def _from_json(stored: dict[str, Any]) -> Plan:
    targets = None if stored["targets"] is None else tuple(stored["targets"])
    settings = Settings(targets, stored["max_evals"], stored["max_time"], stored["starts"])
    problems = tuple((name, dim) for name, dim in stored["problems"])
    return Plan(problems, tuple(stored["methods"]), tuple(stored["seeds"]), stored["reference"], settings)


def _union(earlier: Plan, plan: Plan) -> Plan:
    return replace(
        plan,
        problems=tuple(dict.fromkeys(earlier.problems + plan.problems)),
        methods=tuple(dict.fromkeys(earlier.methods + plan.methods)),
        seeds=tuple(dict.fromkeys(earlier.seeds + plan.seeds)),
    )


def _short(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(" ".join(map(str, entry)) if isinstance(entry, list) else str(entry) for entry in value)
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def replace_text(path: Path, text: str) -> None:
    """Write a file as a whole: an interrupted write leaves the old one."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text + "\n", encoding="utf-8")
    os.replace(temporary, path)
