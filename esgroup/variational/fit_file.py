"""The checkpoint of a fit: everything its future depends on, as numbers and JSON."""

from __future__ import annotations

import errno
import os
import time
from typing import Any

import numpy as np

from esgroup import checkpoint as files
from esgroup.campaign_file import WRITING
from esgroup.distributions.mixture import MixtureState
from esgroup.groups import serial
from esgroup.stored import array, entry, generator_from_json, generator_to_json, optional_entry
from esgroup.strategies.spaces import register_all
from esgroup.variational.fit import Best, Fit
from esgroup.variational.schedule import Summary, Window

KIND = "posterior"
_COUNTS = ("nfev", "njev", "nhvp", "ndiag", "nhess")


class FitKeeper:
    """Writes a fit to its file, if it has one, as often as a tenth of the time allows."""

    def __init__(self, path: files.Path | None) -> None:
        self._path = path
        self._begin = time.monotonic()
        self._spent = self._last = 0.0

    def write_if_cheap(self, fit: Fit) -> None:
        """Write, unless all the writing would then have taken more than its share of the time."""
        if self._spent + self._last <= WRITING * (time.monotonic() - self._begin):
            self.write(fit)

    def write(self, fit: Fit) -> None:
        """Write now."""
        if self._path is None:
            return
        begin = time.monotonic()
        files.write(self._path, KIND, *_parts(fit))
        self._last = time.monotonic() - begin
        self._spent += self._last

    def write_after(self, error: BaseException, fit: Fit) -> None:
        """Write after an exception, which stays the one that the caller sees."""
        try:
            self.write(fit)
        except Exception as failure:
            error.add_note(f"the checkpoint could not be written: {failure}")


def resume_from(path: files.Path | None, fit: Fit) -> None:
    """Put a fit that has not begun where its file says it was."""
    if path is None:
        raise ValueError("resume=True goes on from a file: say which one with checkpoint=")
    if not os.path.exists(path):
        text = "there is no checkpoint to resume from; without resume=True the fit starts afresh"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(path))
    with files.reading(path, KIND) as (header, arrays):
        difference = _difference(header, arrays, fit)
        if difference is None:
            _restore(fit, header, arrays)
    if difference is not None:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same fit, but its {difference} is another")


def _identity(fit: Fit) -> tuple[dict[str, Any], files.Arrays]:
    """What makes another fit of it; when it ends does not."""
    register_all()
    family, arrays = serial.describe(fit.objective.mixture, "family")  # type: ignore[arg-type]
    return {"family": family, "estimator": repr(fit.objective.estimator), "gamma": fit.objective.gamma}, arrays


def _difference(header: dict[str, Any], arrays: files.Arrays, fit: Fit) -> str | None:
    mine, own = _identity(fit)
    for name, value in mine.items():
        if header.get(name) != value:
            return name
    same = all(name in arrays and np.array_equal(arrays[name], value) for name, value in own.items())
    return None if same else "family"


def _parts(fit: Fit) -> tuple[dict[str, Any], files.Arrays]:
    header, arrays = _identity(fit)
    header |= {
        "nit": fit.nit,
        "failures": fit.failures,
        "retreats": fit.retreats,
        "rate": fit.rate,
        "best": [fit.best.elbo, fit.best.stderr],
        "last": None if fit.last is None else list(fit.last),
        "smoothed": [fit.elbo, fit.elbo_stderr],
        "averaged": fit.averaged is not None,
        "middle": fit.middle is not None,
        "converged": fit.converged,
        "message": fit.message,
        "rng": generator_to_json(fit.rng),
        "counts": [getattr(fit.objective.target.counts, name) for name in _COUNTS],
    }
    states = {"state": fit.state, "best": fit.best.state, "averaged": fit.averaged, "middle": fit.middle}
    for prefix, state in states.items():
        if state is not None:
            arrays |= {f"{prefix}/{name}": value for name, value in state._asdict().items()}
    return header, arrays | {f"window/{name}": value for name, value in fit.window._asdict().items()}


def _restore(fit: Fit, header: dict[str, Any], arrays: files.Arrays) -> None:
    fit.nit, fit.failures = entry(header, "nit", int), entry(header, "failures", int)
    fit.retreats, fit.rate = entry(header, "retreats", int), entry(header, "rate", float)
    fit.state = _state(fit, arrays, "state")
    fit.best = Best(_state(fit, arrays, "best"), *map(float, entry(header, "best", list)))
    fit.averaged = _state(fit, arrays, "averaged") if entry(header, "averaged", bool) else None
    fit.middle = _state(fit, arrays, "middle") if entry(header, "middle", bool) else None
    last = optional_entry(header, "last", list)
    fit.last = None if last is None else Summary(*map(float, last))
    fit.elbo, fit.elbo_stderr = map(float, entry(header, "smoothed", list))
    fit.converged, fit.message = entry(header, "converged", bool), entry(header, "message", str)
    fit.window = Window(*(array(arrays, f"window/{name}", np.shape(v)) for name, v in fit.window._asdict().items()))
    fit.rng = generator_from_json(header.get("rng"))
    for name, count in zip(_COUNTS, entry(header, "counts", list), strict=True):
        setattr(fit.objective.target.counts, name, int(count))


def _state(fit: Fit, arrays: files.Arrays, prefix: str) -> MixtureState:
    model = fit.state._asdict()
    return MixtureState(*(array(arrays, f"{prefix}/{name}", value.shape) for name, value in model.items()))
