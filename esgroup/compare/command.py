"""`esgroup compare`: plan the runs, do the missing ones, and write table, figures and page."""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esgroup.compare.folder import Folder
from esgroup.compare.methods import split
from esgroup.compare.plan import ComparisonPlan, plan
from esgroup.compare.presets import PRESETS
from esgroup.compare.records import RunRecord
from esgroup.compare.workers import Watch, run_all
from esgroup.problem_registry import near


@dataclass(frozen=True)
class Request:
    """The arguments of the command as they were typed; None means that one was left out."""

    problems: Sequence[str] = ()
    preset: str | None = None
    dims: str | None = None
    methods: str | None = None
    seeds: str | None = None
    targets: str | None = None
    max_evals: int | None = None
    max_time: float | None = None
    starts: str | None = None
    reference: str | None = None
    out: Path | None = None
    jobs: int | None = None
    extend: bool = False

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"Comparison: {self.preset}" if self.preset else f"Comparison on {', '.join(self.problems)}"

    @property
    def folder(self) -> Path:
        """Where all files are."""
        return self.out or Path(f"compare-{self.preset}" if self.preset else "comparison")

    @property
    def command(self) -> str:
        """The command line, in a canonical spelling."""
        words = ["esgroup", "compare", *self.problems]
        for name, value in vars(self).items():
            if value is not None and name not in ("problems", "jobs", "extend"):
                words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join(words + ["--extend"] * self.extend)


def compare(request: Request) -> tuple[list[RunRecord], str | None]:
    """Run the command; return the runs and the short table, or None instead of the table after Ctrl-C.

    Raises
    ------
    ValueError, TypeError, ImportError, OSError
        If an argument is wrong, a package is missing, or the folder cannot be used.
    """
    from esgroup.compare.report import outputs

    outputs.check_libraries()
    if request.jobs is not None and request.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {request.jobs}")
    jobs, wanted = request.jobs or os.cpu_count() or 1, _plan(request)
    with closing(Folder(request.folder, wanted, request.command, extend=request.extend)) as folder:
        interrupted = _run_missing(folder, jobs)
        return folder.runs, None if interrupted else outputs.write(folder, request.title, request.command)


def _run_missing(folder: Folder, jobs: int) -> bool:
    """Do the missing runs; True if Ctrl-C interrupted them."""
    missing, total = folder.missing, len(folder.plan.cells)
    try:
        with _terminated_as_interrupted(), Watch(total, total - len(missing)) as watch:
            for run in run_all(missing, folder.plan.settings, jobs):
                folder.add(run)
                watch.update(run)
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that the processes of the runs end too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals can be handled in the main thread only
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _plan(request: Request) -> ComparisonPlan:
    """The plan of a preset, changed by the typed arguments, or of these arguments alone."""
    arguments: dict[str, Any] = {}
    if request.preset is not None:
        if request.preset not in PRESETS:
            hint = near(request.preset, PRESETS)
            raise ValueError(f"unknown preset {request.preset!r}{hint}: the presets are {', '.join(PRESETS)}")
        arguments = dict(PRESETS[request.preset].arguments)
    typed = {name: getattr(request, name) for name in ("max_evals", "max_time", "starts", "reference")}
    typed |= {name: _listed(name, getattr(request, name)) for name in _LISTS}
    typed["problems"] = list(request.problems) or None
    arguments |= {name: value for name, value in typed.items() if value is not None}
    if request.reference is None and arguments.get("reference") not in arguments.get("methods", ()):
        arguments["reference"] = None  # the preset's reference is not among the methods that were typed
    if "problems" not in arguments:
        raise ValueError(f"name a problem from `esgroup list`, or a preset: --preset {' | '.join(PRESETS)}")
    return plan(**arguments)


def _listed(name: str, text: str | None) -> Any:
    if text is None:
        return None
    parse, example = _LISTS[name]
    try:
        return parse(text)
    except ValueError:
        raise ValueError(f"--{name} must be numbers such as {example}, got {text!r}") from None


def whole_numbers(text: str) -> list[int]:
    """Parse integers and ranges of integers, separated by commas: 1,3-5 is 1, 3, 4, 5."""
    numbers: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        if dash and int(last) < int(first):
            raise ValueError(f"{word} is not a range")
        numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    return numbers


def seeds(text: str) -> list[int]:
    """Parse seeds. A single number says how many: 5 means 0 to 4."""
    if not text.strip().isdigit():
        return whole_numbers(text)
    if int(text) == 0:
        raise ValueError("seeds must be at least one, got 0")
    return list(range(int(text)))


# arguments that are lists: how they are read, and an example
_LISTS: dict[str, tuple[Callable[[str], list[Any]], str]] = {
    "dims": (whole_numbers, "10,40,200"),
    "methods": (split, "esgroup,cma"),
    "seeds": (seeds, "5 (the first five), 5-9 or 1,4,7"),
    "targets": (lambda text: [float(word) for word in text.split(",")], "1e1,1e-3,1e-8"),
}
