"""The output of a fit: its checkpoint, its history as JSON lines, and a progress line on the terminal."""

from __future__ import annotations

import json
import math
import os
from dataclasses import astuple
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.files import npz as files
from esgroup.files import objects
from esgroup.files.autosave import CheckpointWriter, Contents, must_exist
from esgroup.files.checked import entry, generator_from_json, generator_to_json, optional_entry
from esgroup.files.lines import LineFile
from esgroup.files.states import flattened, rebuilt, same_shapes
from esgroup.running.observers import Observer
from esgroup.running.progress import Progress
from esgroup.strategies.registry import register_all
from esgroup.variational.batches import DataTarget
from esgroup.variational.fit import BestWindow, Fit
from esgroup.variational.schedule import WindowSummary

KIND = "posterior"  # of checkpoints
HISTORY_FORMAT = 1
MOST_COORDINATES = 100  # of the mean, in a line of the history
# attributes of a fit that are stored in the header of a checkpoint unchanged
_KEPT = ("nit", "failures", "skipped", "retreats", "rate", "traveling", "converged", "message")


# ---- checkpoints ----------------------------------------------------------------------------------------------------


class FitWriter(CheckpointWriter[Fit]):
    """Writes the checkpoint of a fit: everything it needs to continue, as JSON and arrays."""

    def contents(self, kept: Fit) -> Contents:
        """The kind of file, its header and its arrays."""
        header, arrays = _identity(kept)
        header |= {name: getattr(kept, name) for name in _KEPT}
        header |= {
            "best": [kept.best.elbo, kept.best.stderr],
            "last": None if kept.last is None else list(kept.last),
            "smoothed": [kept.elbo, kept.elbo_stderr],
            "averaged": kept.averaged is not None,
            "middle": kept.middle is not None,
            "reach": kept.reach.tolist(),
            "tol": kept.schedule.tol,
            "rng": generator_to_json(kept.rng),
            "batch seed": kept.batch_seed,
            "counts": list(astuple(kept.objective.target.counts)),
        }
        states: dict[str, Any] = {name: getattr(kept, name) for name in ("state", "averaged", "middle", "window")}
        for name, state in (states | {"best": kept.best.state}).items():
            if state is not None:
                arrays |= flattened(name, state)
        return KIND, header, arrays


def resume_from(path: files.Path | None, fit: Fit) -> None:
    """Restore a fit that has not started from its checkpoint.

    Raises
    ------
    ValueError
        If there is no path, or if the checkpoint belongs to another fit.
    FileNotFoundError
        If there is no such file.
    """
    path = must_exist(path, "fit")
    with files.reading(path, KIND) as (header, arrays):
        difference = _difference(header, arrays, fit)
        if difference is None:
            _restore(fit, header, arrays)
    if difference is not None:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same fit, but its {difference} differs")


def _identity(fit: Fit) -> tuple[dict[str, Any], files.Arrays]:
    """What must match to resume; tol and the limits may differ."""
    register_all()
    family, arrays = objects.describe(fit.objective.mixture, "family")
    rate, estimator = fit.schedule.rate, repr(fit.objective.estimator)
    found = {"family": family, "estimator": estimator, "gamma": fit.objective.gamma, "first rate": rate}
    target = fit.objective.target
    data = [len(target.data), target.data.size, target.data.checksum] if isinstance(target, DataTarget) else None
    return found | {"data": data}, arrays


def _difference(header: dict[str, Any], arrays: files.Arrays, fit: Fit) -> str | None:
    """What differs between a checkpoint and a fit; None if nothing does."""
    means = np.shape(arrays.get("state/means", fit.state.means))
    if len(means) == 2 and means[0] == fit.objective.mixture.count == 1 and means[1] != fit.objective.mixture.dim:
        return "length of x0"
    mine, own = _identity(fit)
    for name, value in mine.items():
        if header.get(name) != value:
            return name
    others = [name for name, value in own.items() if name not in arrays or not np.array_equal(arrays[name], value)]
    if not others:
        return None
    if not all(name.endswith("/mean") for name in others):
        return "family"
    return "x0" if fit.objective.mixture.count == 1 else "family (a mean)"


def _restore(fit: Fit, header: dict[str, Any], arrays: files.Arrays) -> None:
    """Set a fit to the contents of a checkpoint; one that converged with a larger tol continues."""

    def stored(name: str, model: Any) -> Any:
        found = rebuilt(name, arrays, model)
        same_shapes(found, model, name=name)
        return found

    for name in _KEPT:
        setattr(fit, name, entry(header, name, type(getattr(fit, name))))
    fit.reach = np.array([float(number) for number in entry(header, "reach", list)]).reshape(fit.reach.shape)
    fit.best = BestWindow(stored("best", fit.state), *map(float, entry(header, "best", list)))
    fit.averaged = stored("averaged", fit.state) if entry(header, "averaged", bool) else None
    fit.middle = stored("middle", fit.state) if entry(header, "middle", bool) else None
    fit.state, fit.window = stored("state", fit.state), stored("window", fit.window)
    last = optional_entry(header, "last", list)
    fit.last = None if last is None else WindowSummary(*map(float, last))
    fit.elbo, fit.elbo_stderr = map(float, entry(header, "smoothed", list))
    fit.batch_seed = entry(header, "batch seed", int)
    fit.rng = generator_from_json(header.get("rng"))
    counts = vars(fit.objective.target.counts)
    counts.update(zip(counts, map(int, entry(header, "counts", list)), strict=True))
    if fit.converged and fit.schedule.tol < entry(header, "tol", float):
        fit.refine()


# ---- progress -------------------------------------------------------------------------------------------------------


class FitProgress(Progress):
    """The live progress line of a fit of at most `max_iters` iterations on a terminal."""

    def __init__(self, max_iters: int) -> None:
        super().__init__()
        self._max_iters = max_iters

    def text(self, run: Fit, now: float = 0.0) -> str:
        """Return the line: iteration, ELBO, rate and evaluations."""
        counts = run.objective.target.counts
        error = "" if math.isnan(run.elbo_stderr) else f" ± {run.elbo_stderr:.2g}"
        names = (("values", counts.nfev), ("gradients", counts.njev), ("products", counts.nhvp))
        parts = [
            f"iteration {run.nit:,} of {self._max_iters:,}",
            f"ELBO {run.elbo:.5g}{error}",
            f"rate {run.rate:.2g}",
            *(f"{count:,} {name}" for name, count in names if count),
        ]
        return " · ".join(parts)


# ---- history --------------------------------------------------------------------------------------------------------


class FitHistory(Observer):
    """Writes one line of JSON per iteration, flushed at once: iteration, ELBO of the window, rate, counts, mean of q.

    Parameters
    ----------
    path : path-like
        The file. An existing history is overwritten; any other file is an error.
    append : bool
        Append to the file of an earlier run. Lines of later iterations than the fit's, which no checkpoint contains,
        are cut off because they will be written again.
    """

    def __init__(self, path: str | PathLike[str], append: bool) -> None:
        self.path, self._append = Path(path), append

    def begins(self, run: Fit) -> None:
        """Open the file."""
        known = self.path.exists() and self.path.stat().st_size > 0
        if known and not _is_history(self.path):
            raise ValueError(f"history must be a new file or a history of a fit, but {self.path} is not a history")
        fresh = not (known and self._append)
        if not fresh:
            _cut_after(self.path, run.nit)
        self._file = LineFile(self.path, append=not fresh)
        try:
            if fresh:
                self._file.append(json.dumps({"esgroup_posterior": HISTORY_FORMAT}) + "\n")
        except OSError:
            self._file.close()
            raise

    def generation(self, run: Fit) -> None:
        """Write the iteration that was just completed."""
        counts = run.objective.target.counts
        line = {
            "nit": run.nit,
            "elbo": _number(run.elbo),
            "elbo_stderr": _number(run.elbo_stderr),
            "rate": run.rate,
            **{name: getattr(counts, name) for name in ("nfev", "njev", "nhvp")},
            "mean": run.objective.mixture.mean(run.state)[:MOST_COORDINATES].tolist(),
        }
        self._file.write(json.dumps(line, allow_nan=False) + "\n")  # a full disk causes a warning

    def ends(self, run: Fit, error: BaseException | None) -> None:
        """Close the file."""
        self._file.close()


def _number(value: float) -> float | None:
    """Convert to a number that JSON can represent; NaN and infinity become None."""
    return value if math.isfinite(value) else None


def _is_history(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().startswith(b'{"esgroup_posterior":')


def _cut_after(path: Path, nit: int) -> None:
    """Keep the complete lines up to an iteration."""
    with path.open("r+b") as file:
        header = len(file.readline())
        file.truncate(header + sum(map(len, takewhile(lambda text: _is_kept(text, nit), file))))


def _is_kept(text: bytes, nit: int) -> bool:
    """Whether a line is complete and belongs to an iteration up to `nit`."""
    try:
        line = json.loads(text) if text.endswith(b"\n") else None
    except (ValueError, RecursionError):  # written in part, or damaged
        return False
    return isinstance(line, dict) and type(line.get("nit")) is int and line["nit"] <= nit
