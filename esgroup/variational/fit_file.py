"""The checkpoint of a fit: everything its future depends on, as numbers and JSON."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from esgroup.distributions.mixture import MixtureState
from esgroup.files import npz as files
from esgroup.files import objects
from esgroup.files.autosave import Contents, FileKeeper, must_exist
from esgroup.files.checked import array, entry, generator_from_json, generator_to_json, optional_entry
from esgroup.strategies.registry import register_all
from esgroup.variational.fit import Best, Fit
from esgroup.variational.schedule import Summary, Window

KIND = "posterior"
_COUNTS = ("nfev", "njev", "nhvp", "ndiag", "nhess")


class FitKeeper(FileKeeper[Fit]):
    """Writes a fit to its file."""

    def contents(self, kept: Fit) -> Contents:
        """Its numbers and its states."""
        return KIND, *_parts(kept)


def resume_from(path: files.Path | None, fit: Fit) -> None:
    """Put a fit that has not begun where its file says it was."""
    path = must_exist(path, "fit")
    with files.reading(path, KIND) as (header, arrays):
        difference = _difference(header, arrays, fit)
        if difference is None:
            _restore(fit, header, arrays)
    if difference is not None:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same fit, but its {difference} is another")


def _identity(fit: Fit) -> tuple[dict[str, Any], files.Arrays]:
    """What makes another fit of it; when it ends does not."""
    register_all()
    family, arrays = objects.describe(fit.objective.mixture, "family")
    rate, estimator = fit.schedule.rate, repr(fit.objective.estimator)
    return {"family": family, "estimator": estimator, "gamma": fit.objective.gamma, "first rate": rate}, arrays


def _difference(header: dict[str, Any], arrays: files.Arrays, fit: Fit) -> str | None:
    means = np.shape(arrays.get("state/means", fit.state.means))
    if len(means) == 2 and means[0] == fit.objective.mixture.count == 1 and means[1] != fit.objective.mixture.dim:
        return "x0, its length,"
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


def _parts(fit: Fit) -> tuple[dict[str, Any], files.Arrays]:
    header, arrays = _identity(fit)
    header |= {
        "nit": fit.nit,
        "failures": fit.failures,
        "skipped": fit.skipped,
        "retreats": fit.retreats,
        "rate": fit.rate,
        "best": [fit.best.elbo, fit.best.stderr],
        "last": None if fit.last is None else list(fit.last),
        "smoothed": [fit.elbo, fit.elbo_stderr],
        "averaged": fit.averaged is not None,
        "middle": fit.middle is not None,
        "reach": fit.reach.tolist(),
        "travelling": fit.travelling,
        "tol": fit.schedule.tol,
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
    fit.skipped, fit.travelling = entry(header, "skipped", int), entry(header, "travelling", bool)
    fit.reach = np.array([float(number) for number in entry(header, "reach", list)]).reshape(fit.reach.shape)
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
    if fit.converged and fit.schedule.tol < entry(header, "tol", float):
        _go_on(fit)


def _go_on(fit: Fit) -> None:
    """With a smaller tol the last window was not the end: what was small enough is noise now."""
    fit.converged, fit.message = False, ""
    if fit.last is not None and fit.last.noise_of_average > fit.schedule.tol:
        fit.rate /= 2


def _state(fit: Fit, arrays: files.Arrays, prefix: str) -> MixtureState:
    model = fit.state._asdict()
    return MixtureState(*(array(arrays, f"{prefix}/{name}", value.shape) for name, value in model.items()))
