"""A search as JSON and arrays, and back: everything that its future depends on.

Version 2 is the same for every strategy. Version 1, of esgroup before 0.2, kept searches over vectors in another form
and had no tags; `_as_version_2` translates.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files import objects
from esgroup.files.checked import (
    CheckpointError,
    array,
    entry,
    finite_array,
    generator_from_json,
    generator_to_json,
    optional_entry,
)
from esgroup.groups import Group
from esgroup.options import SearchOptions
from esgroup.running.limits import Limits, parse_limits
from esgroup.search.ledger import Asked, Clock, Ledger, PooledSamples, tags_of
from esgroup.search.stopping import Look
from esgroup.strategies.base import Drawn, Strategy
from esgroup.strategies.box import Box
from esgroup.strategies.lagrangian import AugmentedLagrangian
from esgroup.strategies.mixture import MixtureSearch
from esgroup.strategies.registry import register_all
from esgroup.strategies.vector import VectorSearch

KIND = "searcher"  # of the file

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Parts(NamedTuple):
    """What a Searcher is composed of."""

    strategy: Strategy
    state: Any
    ledger: Ledger
    limits: Limits
    rng: np.random.Generator
    first_spread: Array
    note: str
    model_note: str


# ---- to JSON and arrays -----------------------------------------------------------------------------------------


def parts_to_file(parts: Parts) -> tuple[Header, Arrays]:
    """The header and the arrays of a search, the points that are out included."""
    ledger, record = parts.ledger, parts.ledger.record
    strategy, arrays = described(parts.strategy)
    arrays |= {f"state/{name}": value for name, value in parts.state._asdict().items()}
    arrays |= {"first_spread": parts.first_spread, "injected": ledger.injected}
    arrays |= {"record/best": np.array(record.best), "record/median": np.array(record.median)}
    if ledger.best_x is not None:
        arrays["best_x"] = ledger.best_x
    if ledger.best_g is not None:
        arrays["best_g"] = ledger.best_g
    if ledger.lagrangian is not None:
        arrays |= {f"lagrangian/{name}": value for name, value in ledger.lagrangian._asdict().items()}
    if ledger.inner is not None:
        arrays["inner"] = ledger.inner
    for i, asked in enumerate(ledger.asked):
        arrays |= _drawn_arrays(f"asked/{i}", asked.drawn) | {f"asked/{i}/out": np.array(sorted(asked.out), np.int64)}
    if ledger.reserve is not None:
        arrays |= _drawn_arrays("reserve", ledger.reserve)
    for i, samples in enumerate(ledger.pool):
        arrays |= {f"pool/{i}/{name}": value for name, value in samples._asdict().items()}
    header = {
        "strategy": strategy,
        "note": parts.note,
        "model_note": parts.model_note,
        "limits": parts.limits._asdict(),
        "nfev": ledger.nfev,
        "nit": ledger.nit,
        "nfailed": ledger.nfailed,
        "best_f": ledger.best_f,
        "constraints": None if ledger.rule is None else _rule_to_json(ledger.rule),
        "seconds": ledger.clock.seconds,
        "worst": record.worst,
        "failed_in_a_row": record.failed_in_a_row,
        "varied": record.varied,
        "looks": {name: [look.reasons, look.nit] for name, look in record.looks.items()},
        "asked": [asked.nit for asked in ledger.asked],
        "last": None if ledger.last is None else ledger.asked.index(ledger.last),
        "lag": ledger.lag,
        "pool": len(ledger.pool),
        "rng": generator_to_json(parts.rng),
    }
    return header, arrays


def described(strategy: Strategy) -> tuple[Header, Arrays]:
    """A strategy as JSON and arrays; equal ones have equal descriptions."""
    register_all()
    return objects.describe(strategy, "strategy")


def _rule_to_json(rule: AugmentedLagrangian) -> Header:
    return {"number": rule.number, "equalities": list(rule.equalities), "tolerance": rule.tolerance}


def _drawn_arrays(name: str, drawn: Drawn) -> Arrays:
    return {f"{name}/points": drawn.points, f"{name}/local": drawn.local, f"{name}/tags": tags_of(drawn)}


# ---- and back ---------------------------------------------------------------------------------------------------


def parts_from_file(header: Header, arrays: Arrays) -> Parts:
    """The parts that were stored; ValueError or one of its kind if they do not make a search."""
    register_all()
    of_version_1 = "structure_note" in header
    if of_version_1:
        header, arrays = _as_version_2(header, arrays)
    if not isinstance(header.get("asked"), list):
        header, arrays = _with_ages(header, arrays)
    strategy = objects.build(entry(header, "strategy", dict), arrays)
    if not isinstance(strategy, Strategy):
        raise CheckpointError(f"the header's strategy must be one, got {type(strategy).__name__}")
    stored = {name.removeprefix("state/"): kept for name, kept in arrays.items() if name.startswith("state/")}
    if of_version_1:
        stored = _state_as_version_2(strategy, stored)
    stored = _with_trend(strategy, stored)
    state = strategy.read_state(stored)
    first = finite_array(arrays, "first_spread", strategy.spread(state).shape)
    limits = entry(header, "limits", dict)
    if set(limits) != set(Limits._fields):
        raise CheckpointError(f"the header's limits must be {', '.join(Limits._fields)}, got {', '.join(limits)}")
    rng = generator_from_json(entry(header, "rng", dict))
    width = strategy.local(state, strategy.mean(state)[None]).shape[1]
    ledger = _ledger(strategy.shape, width, header, arrays)
    notes = entry(header, "note", str), entry({"model_note": ""} | header, "model_note", str)  # older files have one
    return Parts(strategy, state, ledger, parse_limits(**limits), rng, first, *notes)


def _ledger(shape: tuple[int, ...], width: int, header: Header, arrays: Arrays) -> Ledger:
    rule = None if header.get("constraints") is None else AugmentedLagrangian(**entry(header, "constraints", dict))
    ledger = Ledger(shape, rule)
    ledger.nfev, ledger.nit, ledger.nfailed = (_count(header, name) for name in ("nfev", "nit", "nfailed"))
    ledger.clock = Clock(_not_negative(header, "seconds"))
    ledger.injected = finite_array(arrays, "injected", (None, *shape))
    ledger.best_f = entry(header, "best_f", float)
    if not math.isnan(ledger.best_f):
        ledger.best_x = checks.read_only(array(arrays, "best_x", shape))
    if rule is not None:
        _read_constraints(ledger, rule, shape, header, arrays)
    record = ledger.record
    record.best = deque(array(arrays, "record/best", (None,)).tolist(), maxlen=record.best.maxlen)
    record.median = deque(array(arrays, "record/median", (len(record.best),)).tolist(), maxlen=record.median.maxlen)
    record.worst, record.failed_in_a_row = entry(header, "worst", float), _count(header, "failed_in_a_row")
    record.varied = entry({"varied": True} | header, "varied", bool)  # older files do not have it
    record.looks = {name: _look(name, kept) for name, kept in entry(header, "looks", dict).items()}
    for i, nit in enumerate(entry(header, "asked", list)):
        drawn = _drawn(shape, width, f"asked/{i}", arrays)
        out = array(arrays, f"asked/{i}/out", (None,), np.int64).tolist()
        if out and not 0 <= min(out) <= max(out) < len(drawn.points):
            raise CheckpointError(f"asked/{i}/out must be rows of {len(drawn.points)} points, got {out}")
        ledger.asked.append(Asked(drawn, checks.whole_number("asked", nit, most=ledger.nit), set(out)))
    last = optional_entry(header, "last", int)
    if last is not None:
        ledger.last = ledger.asked[checks.whole_number("last", last, most=len(ledger.asked) - 1)]
    if "reserve/points" in arrays:
        ledger.reserve = _drawn(shape, width, "reserve", arrays)
    ledger.lag = _not_negative(header, "lag")
    for i in range(_count(header, "pool")):
        local = finite_array(arrays, f"pool/{i}/local", (None, width))
        tags = array(arrays, f"pool/{i}/tags", (len(local),), np.int64)
        columns = () if rule is None else (1 + rule.number,)
        ledger.pool.append(PooledSamples(local, tags, array(arrays, f"pool/{i}/values", (len(local), *columns))))
    return ledger


def _read_constraints(
    ledger: Ledger, rule: AugmentedLagrangian, shape: tuple[int, ...], header: Header, arrays: Arrays
) -> None:
    stored = {name.removeprefix("lagrangian/"): kept for name, kept in arrays.items() if name.startswith("lagrangian/")}
    ledger.lagrangian = rule.read_state(stored, shape)
    if ledger.best_x is not None:
        ledger.best_g = checks.read_only(array(arrays, "best_g", (rule.number,)))
        ledger.best_violation = rule.violation_of(ledger.best_g)
    if "inner" in arrays:
        ledger.inner = finite_array(arrays, "inner", shape)


def _drawn(shape: tuple[int, ...], width: int, name: str, arrays: Arrays) -> Drawn:
    points = checks.read_only(array(arrays, f"{name}/points", (None, *shape)))
    local = finite_array(arrays, f"{name}/local", (len(points), width))
    tags = array(arrays, f"{name}/tags", (len(points),), np.int64)
    return Drawn(points, local, tags)


def _look(name: str, kept: Any) -> Look:
    if not (isinstance(kept, list) and len(kept) == 2 and isinstance(kept[0], dict)):
        raise CheckpointError(f"the header's look {name!r} must be reasons and a generation, got {kept!r}")
    return Look(kept[0], checks.whole_number(f"the look {name!r}", kept[1]))


def _not_negative(header: Header, name: str) -> float:
    number = checks.real_number(name, entry(header, name, float))
    if number < 0:
        raise CheckpointError(f"{name} must not be negative, got {number}")
    return number


def _count(header: Header, name: str) -> int:
    return checks.whole_number(name, entry(header, name, int))


# ---- older files ------------------------------------------------------------------------------------------------


def _with_ages(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """Older files count asks of the present distribution; if the last ask is older, nothing was asked since.

    All points of an ask that was told in part are out: which have values was not stored.
    """
    arrays, nit, asked = dict(arrays), _count(header, "nit"), _count(header, "asked")
    last, is_late = optional_entry(header, "last", int), False
    if last is not None and last < nit:
        asked, is_late = 1, True
        arrays |= {f"asked/0/{part}": arrays[f"last/{part}"] for part in ("points", "local", "tags")}
    for i in range(asked):
        arrays[f"asked/{i}/out"] = np.arange(len(arrays[f"asked/{i}/points"]))
    nits = [last] if is_late else [nit] * asked
    return header | {"asked": nits, "last": None if last is None else asked - 1, "lag": 0.0}, arrays


def _with_trend(strategy: Strategy, stored: Arrays) -> Arrays:
    """Older states have no trend of the steps of D: it begins here."""
    if "fisher" in stored and "trend" not in stored:
        dim = len(stored["fisher"])
        return stored | {"trend": np.zeros(dim + 3 if dim else 0)}
    if not isinstance(strategy, MixtureSearch):
        return stored
    packed, shapes = array(stored, "searches", (None,)), strategy.component_shapes()
    if len(packed) != sum(sum(lengths.values()) - lengths["trend"] for lengths in shapes):
        return stored
    start, parts = 0, []
    for lengths in shapes:
        for name, length in lengths.items():
            if name == "trend":
                parts.append(np.zeros(length))
            else:
                parts.append(packed[start : start + length])
                start += length
    return stored | {"searches": np.concatenate(parts)}


# ---- version 1 --------------------------------------------------------------------------------------------------

_BOX = {"x0": float, "lower": float, "upper": float, "fixed": bool, "integer": bool, "steps0": float}


def _as_version_2(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    arrays = dict(arrays)
    arrays["first_spread"] = arrays["first_stds"]
    reasons = entry(header, "reasons", dict)
    looks = {name: [reasons[name], entry(reasons, f"{name}_at", int)] for name in ("spread", "stagnation", "condition")}
    for name in ("stagnation", "condition"):
        looks[name][0] = {name: looks[name][0]} if looks[name][0] else {}
    if "strategy" not in header:
        header = header | {"strategy": _vector_strategy(header, arrays)}
        for name in [name for name in arrays if name.endswith("/z") and not name.startswith("pool/")]:
            arrays[name.removesuffix("z") + "local"] = arrays[name][:-1]  # without the path, the last row
    for name in [name for name in arrays if name.startswith(("asked/", "last/"))]:
        if name.endswith("/x"):
            arrays[name.removesuffix("x") + "points"] = arrays[name]
            arrays[name.removesuffix("x") + "tags"] = np.zeros(len(arrays[name]), dtype=np.int64)
    for i in range(_count(header, "pool")):
        arrays[f"pool/{i}/local"] = arrays[f"pool/{i}/z"]
        arrays[f"pool/{i}/tags"] = np.zeros(len(arrays[f"pool/{i}/z"]), dtype=np.int64)
    asked = len(entry(header, "asked", list))
    return header | {"looks": looks, "asked": asked, "note": entry(header, "structure_note", str)}, arrays


def _vector_strategy(header: Header, arrays: Arrays) -> Header:
    """The description of the strategy of a search over vectors."""
    dim = len(array(arrays, "space/x0", (None,)))
    fields: dict[str, Any] = {name: array(arrays, f"space/{name}", (dim,), kind) for name, kind in _BOX.items()}
    box = Box(**fields)
    group, stored = objects.build(entry(header, "group", dict), arrays), entry(header, "options", dict)
    if not isinstance(group, Group):
        raise CheckpointError(f"the header's group must be one, got {type(group).__name__}")
    options = SearchOptions(**{name: stored[name] for name in ("algorithm", "decoding", "mirrored", "noise")})
    description, own = described(VectorSearch(box, group, options, _count(header, "popsize")))
    arrays |= own
    return description


def _state_as_version_2(strategy: Strategy, stored: Arrays) -> Arrays:
    """The state of a search with one array for all its numbers: sigma, the fade, four that are no state, the age."""
    if "scalars" in stored:
        return _named(stored)
    if not isinstance(strategy, MixtureSearch):
        return stored
    packed, start, parts = array(stored, "searches", (None,)), 0, []
    for shapes in strategy.component_shapes():
        newer = ("sigma", "fade", "age", "memory", "trend")
        lengths = {name: length for name, length in shapes.items() if name not in newer}
        ordered = [*list(lengths)[:5], "scalars", *list(lengths)[5:]]
        component = {}
        for name in ordered:
            length = lengths.get(name, 7)
            component[name], start = packed[start : start + length], start + length
        component = _named(component)
        parts += [component[name] for name in shapes if name != "trend"]
    return stored | {"searches": np.concatenate(parts)}


def _named(stored: Arrays) -> Arrays:
    scalars = array(stored, "scalars", (7,))
    named = {"sigma": scalars[:1], "fade": scalars[1:2], "age": scalars[6:], "memory": np.empty(0)}
    return {name: kept for name, kept in stored.items() if name != "scalars"} | named
