"""A search as JSON and arrays, and back: everything that its future depends on.

What all searches have is here; what depends on the kind of search, its distribution and its generations, is in
`snapshot_vector.py` and `snapshot_space.py`, which have the same four functions.
"""

from __future__ import annotations

import math
import time
from collections import deque
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files.checked import CheckpointError, array, entry, generator_from_json, generator_to_json, optional_entry
from esgroup.running.limits import Limits, parse_limits
from esgroup.search import snapshot_space, snapshot_vector

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

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
    kind = _kind(snapshot_space.STRATEGY if hasattr(search, "strategy") else "")
    own_header, arrays = kind.describe(search)
    arrays |= {f"state/{name}": value for name, value in search._state._asdict().items()}
    arrays |= {"first_stds": search._first_stds, "injected": search._injected}
    arrays |= {"record/best": np.array(search._record.best), "record/median": np.array(search._record.median)}
    if search.best_x is not None:
        arrays["best_x"] = search.best_x
    for i, asked in enumerate(search._asked):
        arrays |= kind.asked_arrays(f"asked/{i}", asked)
    if search._last is not None:
        arrays |= kind.asked_arrays("last", search._last)
    for i, (z, values) in enumerate(search._pool):
        arrays |= {f"pool/{i}/z": z, f"pool/{i}/values": values}
    header = {name: getattr(search, name) for name in _COUNTS} | {
        **own_header,
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


def _kind(header: Any) -> ModuleType:
    return snapshot_space if snapshot_space.STRATEGY in header else snapshot_vector


def restored(cls: type[S], header: dict[str, Any], arrays: Arrays) -> S:
    """The search that was stored; ValueError or one of its kind if the parts do not make one."""
    kind = _kind(header)
    search: S = kind.build(cls, header, arrays)
    search._limits = parse_limits(**_only(entry(header, "limits", dict), Limits._fields))
    search.structure_note = entry(header, "structure_note", str)
    search.rng = generator_from_json(entry(header, "rng", dict))
    search._clear()
    for name in _COUNTS:
        setattr(search, name, checks.whole_number(name, entry(header, name, int)))
    search.popsize = checks.whole_number("popsize", search.popsize, least=2)
    search._find_step_limits()
    search._injected = _finite(arrays, "injected", (None, *search.shape))
    search._seconds, search._since = _seconds(header), time.monotonic()
    _restore_told(search, header, arrays, kind)
    return search


def _seconds(header: dict[str, Any]) -> float:
    seconds = checks.real_number("seconds", entry(header, "seconds", float))
    if seconds < 0:
        raise CheckpointError(f"seconds must not be negative, got {seconds}")
    return seconds


def _finite(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> Array:
    return checks.real_array(name, array(arrays, name, shape), shape)


def _restore_told(search: Searcher, header: dict[str, Any], arrays: Arrays, kind: ModuleType) -> None:
    search.best_f = entry(header, "best_f", float)
    if not math.isnan(search.best_f):
        search.best_x = checks.read_only(array(arrays, "best_x", search.shape))
    record = search._record
    record.best = deque(array(arrays, "record/best", (None,)).tolist(), maxlen=record.best.maxlen)
    record.median = deque(array(arrays, "record/median", (len(record.best),)).tolist(), maxlen=record.median.maxlen)
    record.worst, record.failed_in_a_row = entry(header, "worst", float), _count(header, "failed_in_a_row")
    reasons = entry(header, "reasons", dict)
    for name, type_ in _REASONS.items():
        setattr(record, name, entry(reasons, name, type_))
    for i, nit in enumerate(entry(header, "asked", list)):
        search._asked.append(kind.asked(search, f"asked/{i}", nit, arrays))
    last = optional_entry(header, "last", int)
    if last is not None:
        search._last = kind.asked(search, "last", last, arrays)
    for i in range(_count(header, "pool")):
        z = _finite(arrays, f"pool/{i}/z", (None, kind.width(search)))
        search._pool.append((z, array(arrays, f"pool/{i}/values", (len(z),))))


def _count(header: dict[str, Any], name: str) -> int:
    return checks.whole_number(name, entry(header, name, int))


def _only(stored: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if set(stored) != set(names):
        raise CheckpointError(f"the header's limits must be {', '.join(names)}, got {', '.join(stored)}")
    return stored
