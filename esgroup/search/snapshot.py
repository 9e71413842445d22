"""A search as JSON and arrays, and back: everything needed to continue it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
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
from esgroup.files.states import flattened, rebuilt
from esgroup.rankings import Ranking
from esgroup.restarts import BIPOP, IPOP, Plan, Schedule, as_restarts
from esgroup.search.ledger import Batch, Began, Clock, Ledger, PooledSamples, ids_of, tags_of
from esgroup.search.runs import Runs
from esgroup.stopping.budgets import Limits, parse_limits
from esgroup.stopping.values import Look
from esgroup.strategies.base import Proposed, Strategy
from esgroup.strategies.registry import register_all

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

KIND = "searcher"  # of the file

S = TypeVar("S", bound="Searcher")

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


# ---- to JSON and arrays -----------------------------------------------------------------------------------------


def to_file(search: Searcher) -> tuple[Header, Arrays]:
    """The header and the arrays of a search, including its pending points."""
    ledger, record = search.ledger, search.ledger.record
    strategy, arrays = described(search.strategy)
    arrays |= flattened("state", search.state)
    arrays |= {"first_spread": search.first_spread, "injected": ledger.injected}
    arrays |= {"record/best": np.array(record.best), "record/median": np.array(record.median)}
    if ledger.best_x is not None and ledger.best is not None:
        arrays |= {"best_x": ledger.best_x, "best": ledger.best}
    ranking, sizes = objects.describe(ledger.ranking, "ranking")
    arrays |= sizes | {f"standing/{name}": value for name, value in ledger.standing._asdict().items()}
    for i, asked in enumerate(ledger.asked):
        arrays |= _drawn_arrays(f"asked/{i}", asked.drawn) | {f"asked/{i}/out": np.array(sorted(asked.out), np.int64)}
    if ledger.reserve is not None:
        arrays |= _drawn_arrays("reserve", ledger.reserve)
    for i, samples in enumerate(ledger.pool):
        arrays |= {f"pool/{i}/{name}": value for name, value in samples._asdict().items()}
    header = {
        "strategy": strategy,
        "note": search.structure_note,
        "model_note": search.model_note,
        "limits": search.limits._asdict(),
        "nfev": ledger.nfev,
        "nit": ledger.nit,
        "nfailed": ledger.nfailed,
        "ranking": ranking,
        "seconds": ledger.clock.seconds,
        "worst": record.worst,
        "failed_in_a_row": record.failed_in_a_row,
        "varied": record.varied,
        "looks": {name: [look.reasons, look.nit] for name, look in record.looks.items()},
        "run": ledger.run,
        "began": ledger.began._asdict(),
        "runs": None if search.runs is None else _runs_to_file(search.runs, arrays),
        "asked": [[asked.nit, asked.run] for asked in ledger.asked],
        "last": None if ledger.last is None else ledger.asked.index(ledger.last),
        "lag": ledger.lag,
        "pool": len(ledger.pool),
        "rng": generator_to_json(search.rng),
    }
    return header, arrays


def described(strategy: Strategy) -> tuple[Header, Arrays]:
    """A strategy as JSON and arrays; equal ones have equal descriptions."""
    register_all()
    return objects.describe(strategy, "strategy")


def _runs_to_file(runs: Runs, arrays: Arrays) -> Header:
    """The runs; a user-defined restart strategy is omitted, and the arrays of the first strategy are added."""
    kind = type(runs.restarts)
    first, more = objects.describe(runs.first, "first")
    arrays |= more
    if runs.best is not None:
        arrays["runs/best"] = runs.best
    if runs.multipliers is not None:
        arrays["runs/multipliers"] = runs.multipliers
    return {
        "restarts": objects.describe(runs.restarts, "restarts")[0] if kind in (IPOP, BIPOP) else None,
        "first": first,
        "schedule": runs.schedule._asdict(),
        "plan": runs.plan._asdict(),
        "rng": generator_to_json(runs.rng),
    }


def _drawn_arrays(name: str, drawn: Proposed) -> Arrays:
    parts = {"points": drawn.points, "local": drawn.local, "tags": tags_of(drawn), "ids": ids_of(drawn)}
    return {f"{name}/{part}": array for part, array in parts.items()}


# ---- and back ---------------------------------------------------------------------------------------------------


def from_file(kind: type[S], header: Header, arrays: Arrays) -> S:
    """The stored search; ValueError or a subclass if it is invalid."""
    register_all()
    strategy = objects.build(entry(header, "strategy", dict), arrays)
    if not isinstance(strategy, Strategy):
        raise CheckpointError(f"the header's strategy must be a Strategy, got {type(strategy).__name__}")
    search = kind.__new__(kind)
    search.strategy = strategy
    search.state = state = strategy.checked(rebuilt("state", arrays, strategy.start()))
    search.first_spread = finite_array(arrays, "first_spread", strategy.view(state).spread().shape)
    limits = entry(header, "limits", dict)
    if set(limits) != set(Limits._fields):
        raise CheckpointError(f"the header's limits must be {', '.join(Limits._fields)}, got {', '.join(limits)}")
    search.limits = parse_limits(**limits)
    search.rng = generator_from_json(entry(header, "rng", dict))
    width = strategy.local(state, strategy.mean(state)[None]).shape[1]
    search.ledger = _ledger(strategy.shape, width, header, arrays)
    search.structure_note, search.model_note = entry(header, "note", str), entry(header, "model_note", str)
    runs = optional_entry(header, "runs", dict)
    search.runs = None if runs is None else _runs_from_file(runs, search.ledger, arrays)
    search.noted = {}
    return search


def _runs_from_file(stored: Header, ledger: Ledger, arrays: Arrays) -> Runs:
    description = optional_entry(stored, "restarts", dict)
    first = objects.build(entry(stored, "first", dict), arrays)
    if not isinstance(first, Strategy):
        raise CheckpointError(f"the first strategy of the header's runs must be a Strategy, got {type(first).__name__}")
    restarts = None if description is None else as_restarts(objects.build(description, arrays))
    runs = Runs(restarts, first, generator_from_json(entry(stored, "rng", dict)))
    runs.schedule, runs.plan = _numbers(Schedule, stored, "schedule"), _numbers(Plan, stored, "plan")
    if "runs/best" in arrays:
        runs.best = array(arrays, "runs/best", (1 + ledger.ranking.columns,))
    if "runs/multipliers" in arrays:
        runs.multipliers = finite_array(arrays, "runs/multipliers", (ledger.ranking.columns,))
    return runs


def _numbers(kind: Any, header: Header, name: str) -> Any:
    """Rebuild a named tuple of integers, except some fields of other types, from the header."""
    stored, others = entry(header, name, dict), {"small": bool, "sigma_factor": float}
    values = {}
    for field in kind._fields:
        get: Any = optional_entry if field == "max_evals" else entry
        values[field] = get(stored, field, others.get(field, int))
    return kind(**values)


def _ledger(shape: tuple[int, ...], width: int, header: Header, arrays: Arrays) -> Ledger:
    ranking = objects.build(entry(header, "ranking", dict), arrays)
    if not isinstance(ranking, Ranking):
        raise CheckpointError(f"the header's ranking must be a Ranking, got {type(ranking).__name__}")
    ledger, row = Ledger(shape, ranking), 1 + ranking.columns
    standing = {name.removeprefix("standing/"): kept for name, kept in arrays.items() if name.startswith("standing/")}
    ledger.standing = ranking.read_state(standing, shape)
    ledger.nfev, ledger.nit, ledger.nfailed = (_count(header, name) for name in ("nfev", "nit", "nfailed"))
    ledger.clock = Clock(_not_negative(header, "seconds"))
    ledger.injected = finite_array(arrays, "injected", (None, *shape))
    if "best_x" in arrays or "best" in arrays:
        ledger.set_best(array(arrays, "best_x", shape), array(arrays, "best", (row,)))
    record = ledger.record
    record.best = deque(array(arrays, "record/best", (None,)).tolist(), maxlen=record.best.maxlen)
    record.median = deque(array(arrays, "record/median", (len(record.best),)).tolist(), maxlen=record.median.maxlen)
    record.worst, record.failed_in_a_row = entry(header, "worst", float), _count(header, "failed_in_a_row")
    record.varied = entry(header, "varied", bool)
    record.looks = {name: _look(name, kept) for name, kept in entry(header, "looks", dict).items()}
    ledger.run, ledger.began = _count(header, "run"), _numbers(Began, header, "began")
    for i, of in enumerate(entry(header, "asked", list)):
        drawn = _drawn(shape, width, f"asked/{i}", arrays)
        out = array(arrays, f"asked/{i}/out", (None,), np.int64).tolist()
        if out and not 0 <= min(out) <= max(out) < len(drawn.points):
            raise CheckpointError(f"asked/{i}/out must be rows of {len(drawn.points)} points, got {out}")
        if not isinstance(of, list) or len(of) != 2:
            raise CheckpointError(f"asked must be pairs of a generation and a run, got {of!r}")
        nit = checks.whole_number("asked", of[0], most=ledger.nit)
        ledger.asked.append(Batch(drawn, nit, set(out), checks.whole_number("asked", of[1], most=ledger.run)))
    last = optional_entry(header, "last", int)
    if last is not None:
        ledger.last = ledger.asked[checks.whole_number("last", last, most=len(ledger.asked) - 1)]
    if "reserve/points" in arrays:
        ledger.reserve = _drawn(shape, width, "reserve", arrays)
    ledger.lag = _not_negative(header, "lag")
    for i in range(_count(header, "pool")):
        local = finite_array(arrays, f"pool/{i}/local", (None, width))
        tags = array(arrays, f"pool/{i}/tags", (len(local),), np.int64)
        ledger.pool.append(PooledSamples(local, tags, array(arrays, f"pool/{i}/outcomes", (len(local), row))))
    return ledger


def _drawn(shape: tuple[int, ...], width: int, name: str, arrays: Arrays) -> Proposed:
    points = checks.read_only(array(arrays, f"{name}/points", (None, *shape)))
    local = finite_array(arrays, f"{name}/local", (len(points), width))
    tags = array(arrays, f"{name}/tags", (len(points),), np.int64)
    return Proposed(points, local, tags, array(arrays, f"{name}/ids", (len(points),), np.int64))


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
