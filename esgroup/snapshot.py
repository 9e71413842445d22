"""A search as JSON and arrays, and back: everything that its future depends on."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks, stopping
from esgroup.groups import serial
from esgroup.setup import Options
from esgroup.stored import (
    CheckpointError,
    array,
    entry,
    generator_from_json,
    generator_to_json,
    optional_entry,
)
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.space import Space

if TYPE_CHECKING:
    from esgroup.searcher import Asked, Searcher

Arrays = dict[str, NDArray[Any]]
S = TypeVar("S", bound="Searcher")

_COUNTS = ("popsize", "nfev", "nit", "nfailed")


def parts(search: Searcher) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a search, the points that are out included."""
    description, arrays = serial.describe(search.structure)
    arrays |= {f"space/{name}": getattr(search._space, name) for name in _SPACE}
    arrays |= {f"state/{name}": value for name, value in search._state._asdict().items()}
    arrays |= {"first_stds": search._first_stds, "injected": search._injected}
    arrays |= {"record/best": np.array(search._record.best), "record/median": np.array(search._record.median)}
    if search.best_x is not None:
        arrays["best_x"] = search.best_x
    for i, asked in enumerate(search._asked):
        arrays |= _asked_arrays(f"asked/{i}", asked)
    if search._last is not None:
        arrays |= _asked_arrays("last", search._last)
    for i, (z, values) in enumerate(search._pool):
        arrays |= {f"pool/{i}/z": z, f"pool/{i}/values": values}
    header = {name: getattr(search, name) for name in _COUNTS} | {
        "group": description,
        "options": {name: getattr(search._options, name) for name in ("algorithm", "decoding", "mirrored", "noise")},
        "limits": search._limits._asdict(),
        "best_f": search.best_f,
        "seconds": search.seconds,
        "structure_note": search.structure_note,
        "worst": search._record.worst,
        "failed_in_a_row": search._record.failed_in_a_row,
        "asked": [asked.nit for asked in search._asked],
        "last": None if search._last is None else search._last.nit,
        "pool": len(search._pool),
        "rng": generator_to_json(search.rng),
    }
    return header, arrays


_SPACE = {"x0": float, "lower": float, "upper": float, "fixed": bool, "integer": bool, "steps0": float}


def _asked_arrays(name: str, asked: Asked) -> Arrays:
    return {f"{name}/x": asked.x, f"{name}/z": asked.generation.z, f"{name}/y": asked.generation.y}


def restored(cls: type[S], header: dict[str, Any], arrays: Arrays) -> S:
    """The search that was stored; CheckpointError if the parts do not make one."""
    try:
        return _restored(cls, header, arrays)
    except CheckpointError:
        raise
    except (ValueError, TypeError) as error:  # the constructors' own checks
        raise CheckpointError(f"the checkpoint holds no valid search: {error}") from error


def _restored(cls: type[S], header: dict[str, Any], arrays: Arrays) -> S:
    search = cls.__new__(cls)
    search._space = Space(**{name: array(arrays, f"space/{name}", (None,), kind) for name, kind in _SPACE.items()})
    search._options = _options(entry(header, "options", dict))
    group = serial.build(entry(header, "group", dict), arrays)
    search._evolution = search._options.evolution(group)
    search._state = _state(search._evolution, arrays)
    search._limits = stopping.limits(**_only(entry(header, "limits", dict), stopping.Limits._fields))
    search.structure_note = entry(header, "structure_note", str)
    search.rng = generator_from_json(entry(header, "rng", dict))
    search._first_stds = array(arrays, "first_stds", (group.dim,))
    search._clear()
    for name in _COUNTS:
        setattr(search, name, checks.whole_number(name, entry(header, name, int)))
    search._find_step_limits()
    search._injected = array(arrays, "injected", (None, search.dim))
    search._seconds, search._since = entry(header, "seconds", float), time.monotonic()
    _restore_told(search, header, arrays)
    return search


def _restore_told(search: Searcher, header: dict[str, Any], arrays: Arrays) -> None:
    search.best_f = entry(header, "best_f", float)
    if not math.isnan(search.best_f):
        search.best_x = array(arrays, "best_x", (search.dim,))
    record = search._record
    record.best = deque(array(arrays, "record/best", (None,)).tolist(), maxlen=record.best.maxlen)
    record.median = deque(array(arrays, "record/median", (len(record.best),)).tolist(), maxlen=record.median.maxlen)
    record.worst, record.failed_in_a_row = entry(header, "worst", float), entry(header, "failed_in_a_row", int)
    search._asked = [_asked(search, f"asked/{i}", nit, arrays) for i, nit in enumerate(entry(header, "asked", list))]
    last = optional_entry(header, "last", int)
    if last is not None:
        search._last = _asked(search, "last", last, arrays)
    for i in range(entry(header, "pool", int)):
        z = array(arrays, f"pool/{i}/z", (None, search._evolution.dim))
        search._pool.append((z, array(arrays, f"pool/{i}/values", (len(z),))))


def _asked(search: Searcher, name: str, nit: Any, arrays: Arrays) -> Asked:
    from esgroup.searcher import Asked

    x = checks.read_only(array(arrays, f"{name}/x", (None, search.dim)))
    shape = (len(x) + 1, search._evolution.dim)
    generation = Generation(array(arrays, f"{name}/z", shape), array(arrays, f"{name}/y", shape))
    return Asked(x, generation, checks.whole_number(f"{name} in the header", nit))


def _options(stored: dict[str, Any]) -> Options:
    return Options(
        entry(stored, "algorithm", str),
        entry(stored, "decoding", bool),
        entry(stored, "mirrored", bool),
        optional_entry(stored, "noise", str),
    )


def _state(evolution: Evolution, arrays: Arrays) -> SearchState:
    """The stored arrays, each with the shape that it has at the start of such a search."""
    stored = {name: array(arrays, f"state/{name}", (None,)) for name in SearchState._fields}
    shapes = evolution.start(np.zeros(evolution.dim), np.ones(evolution.dim))._asdict()
    return SearchState(**{name: array(stored, name, shapes[name].shape) for name in stored})


def _only(stored: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if set(stored) != set(names):
        raise CheckpointError(f"the header's limits must be {', '.join(names)}, got {', '.join(stored)}")
    return stored
