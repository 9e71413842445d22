"""Everything that a search is as values that compare bit for bit, for the fuzzer."""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from esgroup import Searcher
from esgroup.files.objects import describe
from esgroup.search.ledger import Ledger
from esgroup.strategies import Proposed, Strategy
from esgroup.strategies.registry import register_all


def frozen(value: Any) -> Any:
    """A value that is equal for equal bits. Caches, clocks and the memos of samples are left out."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)  # a number read from a file is an array
        return array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, np.random.Generator):
        bits = value.bit_generator
        return type(bits).__name__, frozen(bits.state), getattr(bits.seed_seq, "n_children_spawned", None)
    if isinstance(value, Proposed):
        tags = np.zeros(len(value.points), dtype=np.int64) if value.tags is None else value.tags
        return "drawn", frozen(value.points), frozen(value.local), frozen(tags)
    if isinstance(value, Strategy):
        return _described(value)
    if isinstance(value, dict):
        return "dict", tuple((key, frozen(value[key])) for key in sorted(value, key=repr))
    if isinstance(value, float):
        return "float", value.hex()
    if value is None or isinstance(value, (int, str, bytes, complex)):
        return type(value).__name__, value
    if isinstance(value, (set, frozenset)):
        return "set", tuple(sorted(value))
    if hasattr(value, "__iter__"):
        return type(value).__name__, tuple(frozen(part) for part in value)
    if not hasattr(value, "__dict__"):
        return repr(value)
    if is_dataclass(value):  # without what it has cached
        return type(value).__name__, frozen({part.name: getattr(value, part.name) for part in fields(value)})
    public = {name: part for name, part in vars(value).items() if not name.startswith("_") and name != "clock"}
    if isinstance(value, Ledger) and value.last is None:
        public.pop("last_nit", None)  # which says when the last ask was made
    return type(value).__name__, frozen(public)


_descriptions: dict[int, tuple[Strategy, Any]] = {}  # by the id of a strategy, which does not change


def _described(strategy: Strategy) -> Any:
    if id(strategy) not in _descriptions:
        register_all()
        _descriptions[id(strategy)] = strategy, frozen(describe(strategy, "strategy"))
    return _descriptions[id(strategy)][1]


def forget_descriptions() -> None:
    """Let go of the strategies that were seen so far."""
    _descriptions.clear()


_PARTS = ("strategy", "state", "ledger", "limits", "rng", "first_spread", "structure_note", "model_note", "runs")


def everything(search: Searcher) -> dict[str, Any]:
    """All parts of a search, and which of equal points that are out would be told next."""
    parts = {name: frozen(getattr(search, name)) for name in _PARTS}
    out = [getattr(asked, "drawn", asked).points for asked in search.ledger.asked]
    if out and len(keys(np.concatenate(out))) > len(set(keys(np.concatenate(out)))):
        probe = copy.deepcopy(search)
        probe.ledger.last = None  # or else it would not have to recognize points
        for points in out:
            rule = probe.constraints
            g = None if rule is None else np.zeros((len(points), rule.number))
            probe.tell(probe.strategy.domain.to_user(points), list(range(len(points))), constraints=g)
            if not probe.ledger.asked:
                break
        parts["equal points"] = frozen(probe.state), frozen(probe.ledger.pool)
    return parts


def keys(points: Any) -> list[Any]:
    """What points are recognized by: words as they are, dicts as their texts, numbers without negative zeros."""
    return [_key(point) for point in points]


def _key(point: Any) -> Any:
    if isinstance(point, dict):
        return repr(sorted(point.items()))
    return point if isinstance(point, str) else (np.asarray(point, dtype=float) + 0.0).tobytes()


def compare(first: dict[str, Any], second: dict[str, Any], text: str) -> None:
    """Fail with the text and the parts in which two searches differ."""
    differing = [f"{name}{_place(first.get(name), second.get(name))}" for name in {**first, **second}]
    differing = [text for name, text in zip({**first, **second}, differing, strict=True) if text != name]
    assert not differing, f"{text} {', '.join(differing)}"


def _place(first: Any, second: Any) -> str:
    """Where two frozen values differ; empty if they do not."""
    if first == second:
        return ""
    if not (isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second)):
        return f": {first!r:.80} or {second!r:.80}"
    name = f".{first[0]}" if len(first) == 2 and isinstance(first[0], str) and first[0] == second[0] else ""
    return name + next(place for place in map(_place, first, second) if place)
