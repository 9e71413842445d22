"""A search as JSON and arrays, and back: everything that its future depends on."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks, stopping
from esgroup.checks import Array
from esgroup.groups import serial
from esgroup.late import Asked
from esgroup.setup import Options, check_names
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
    from esgroup.searcher import Searcher

Arrays = dict[str, NDArray[Any]]
S = TypeVar("S", bound="Searcher")

_REASONS: dict[str, type] = {
    "stagnation": str,
    "stagnation_at": int,
    "spread": dict,
    "spread_at": int,
    "condition": str,
    "condition_at": int,
}
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
        "reasons": {name: getattr(search._record, name) for name in _REASONS},
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
    """The search that was stored; ValueError or one of its kind if the parts do not make one."""
    search = cls.__new__(cls)
    search._space = _space(arrays)
    description = entry(header, "group", dict)
    group = serial.build(description, arrays)
    if group.dim != search._space.free_dim:  # before anything of that size is made
        raise CheckpointError(f"the group has dimension {group.dim}, but {search._space.free_dim} coordinates are free")
    search._options = _options(entry(header, "options", dict))
    search._evolution = search._options.evolution(group)
    search._state = _state(search._evolution, arrays)
    search._limits = stopping.limits(**_only(entry(header, "limits", dict), stopping.Limits._fields))
    search.structure_note = entry(header, "structure_note", str)
    search.rng = generator_from_json(entry(header, "rng", dict))
    search._first_stds = _finite(arrays, "first_stds", (group.dim,))
    search._clear()
    for name in _COUNTS:
        setattr(search, name, checks.whole_number(name, entry(header, name, int)))
    search.popsize = checks.whole_number("popsize", search.popsize, least=2)
    search._find_step_limits()
    search._injected = _finite(arrays, "injected", (None, search.dim))
    search._seconds, search._since = _seconds(header), time.monotonic()
    _restore_told(search, header, arrays)
    return search


def _space(arrays: Arrays) -> Space:
    dim = len(array(arrays, "space/x0", (None,)))
    return Space(**{name: array(arrays, f"space/{name}", (dim,), kind) for name, kind in _SPACE.items()})


def _seconds(header: dict[str, Any]) -> float:
    seconds = checks.real_number("seconds", entry(header, "seconds", float))
    if seconds < 0:
        raise CheckpointError(f"seconds must not be negative, got {seconds}")
    return seconds


def _finite(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> Array:
    return checks.real_array(name, array(arrays, name, shape), shape)


def _restore_told(search: Searcher, header: dict[str, Any], arrays: Arrays) -> None:
    search.best_f = entry(header, "best_f", float)
    if not math.isnan(search.best_f):
        search.best_x = checks.read_only(array(arrays, "best_x", (search.dim,)))
    record = search._record
    record.best = deque(array(arrays, "record/best", (None,)).tolist(), maxlen=record.best.maxlen)
    record.median = deque(array(arrays, "record/median", (len(record.best),)).tolist(), maxlen=record.median.maxlen)
    record.worst, record.failed_in_a_row = entry(header, "worst", float), _count(header, "failed_in_a_row")
    reasons = entry(header, "reasons", dict)
    for name, kind in _REASONS.items():
        setattr(record, name, entry(reasons, name, kind))
    search._asked = [_asked(search, f"asked/{i}", nit, arrays) for i, nit in enumerate(entry(header, "asked", list))]
    last = optional_entry(header, "last", int)
    if last is not None:
        search._last = _asked(search, "last", last, arrays)
    for i in range(_count(header, "pool")):
        z = _finite(arrays, f"pool/{i}/z", (None, search._evolution.dim))
        search._pool.append((z, array(arrays, f"pool/{i}/values", (len(z),))))


def _count(header: dict[str, Any], name: str) -> int:
    return checks.whole_number(name, entry(header, name, int))


def _asked(search: Searcher, name: str, nit: Any, arrays: Arrays) -> Asked:
    x = checks.read_only(array(arrays, f"{name}/x", (None, search.dim)))
    shape = (len(x) + 1, search._evolution.dim)
    generation = Generation(_finite(arrays, f"{name}/z", shape), _finite(arrays, f"{name}/y", shape))
    return Asked(x, generation, checks.whole_number(f"{name} in the header", nit, most=search.nit))


def _options(stored: dict[str, Any]) -> Options:
    algorithm, noise = entry(stored, "algorithm", str), optional_entry(stored, "noise", str)
    check_names(algorithm, noise)
    return Options(algorithm, entry(stored, "decoding", bool), entry(stored, "mirrored", bool), noise)


def _state(evolution: Evolution, arrays: Arrays) -> SearchState:
    """The stored arrays, each with the shape that it has in such a search."""
    shapes = evolution.shapes()
    return SearchState(**{name: _finite(arrays, f"state/{name}", (shapes[name],)) for name in SearchState._fields})


def _only(stored: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if set(stored) != set(names):
        raise CheckpointError(f"the header's limits must be {', '.join(names)}, got {', '.join(stored)}")
    return stored
