"""Histories that are damaged, or made to do harm: one fault at a time, the same for the same seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

HEADER: dict[str, Any] = {
    "esgroup_history": 1,
    "problem": "bowl",
    "dim": 2,
    "shape": [2],
    "coordinates": 2,
    "names": ["rate", "width"],
    "structure": "full",
    "limits": {"max_evals": 500, "max_iters": 90, "max_time": 60.0, "target": 1e-9},
    "versions": {"esgroup": "0.2.0", "numpy": "2.4.6", "python": "3.11.7"},
}
GENERATIONS: list[dict[str, Any]] = [
    {
        "nit": i,
        "nfev": 10 * i,
        "best_f": 2.0 / i,
        "gen_best": 3.0 / i,
        "sigma": 0.5,
        "axis_ratio": 2.0 if i % 2 else None,
        "restart": i // 3,
        "elapsed": 0.25 * i,
        "mean": [1.0, None],
        "stds": [0.5, 0.25],
        "violation": max(0.0, 2.0 - i),
        "feasible": i > 1,
    }
    for i in range(1, 5)
]
GENERATIONS[2] |= {"limits": HEADER["limits"] | {"max_evals": 900}}
GENERATIONS[-1] |= {"end": {"how": "stopped", "message": "target reached"}}


class Literal(str):
    """A value as it stands in the file, which `json.dumps` would not write."""


BYTES = (b"\n", b"\r\n", b"\x00", b'"', b"}", b"{", b"[", b"\xff", b"\xed\xa0\x80")
DEEP = Literal("[" * 100_000 + "]" * 100_000)
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 1.5, -0.0, 7e-320, 1e-300, 1e300, -1.7e308, 1.7e308, 2**53, 2**64, 10**30),
    *(10**400, "", "text", "1", [], [None], [1.0], ["a", "b"], [0, 0], [2, 2], [1e308, -1e308], [[1.0], [2.0]]),
    *(list(range(300)), {}, {"how": 1}, {"target": [1]}, {"max_evals": 0}, {"max_time": "soon"}, "\x00\x1b[2J\u2028"),
    *("\ud800", "$\\frac{$", "x" * 5000, "<script>alert(1)</script>", "{0.__class__}", "$title"),
    *map(Literal, ("NaN", "-Infinity", "1e999", "9" * 5000, '{"a": 1, "a": 2}', "tru", "'x'", "\\x01", "")),
    DEEP,
]


def text(*entries: Any) -> bytes:
    """The lines of a history."""
    return b"".join(_dumped(entry).encode() + b"\n" for entry in entries)


def _dumped(value: Any) -> str:
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_dumped(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_dumped, value)) + "]"
    return json.dumps(value)


def damaged(seed: int) -> Iterator[bytes]:
    """Histories with one fault each, in their entries or in their bytes; without an end."""
    rng = random.Random(seed)
    whole = text(HEADER, *GENERATIONS)
    while True:
        yield _with_another_entry(rng) if rng.random() < 0.7 else _with_other_bytes(rng, whole)


def _with_another_entry(rng: random.Random) -> bytes:
    lines: list[Any] = copy.deepcopy([HEADER, *GENERATIONS])
    place: Any = lines
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not (isinstance(place[key], (dict, list)) and place[key] and (place is lines or rng.random() < 0.5)):
            break
        place = place[key]
    kind = rng.random()
    if kind < 0.1:
        del place[key]
    elif kind < 0.2 and isinstance(place, dict):
        place[f"{key}x"] = place.pop(key)
    else:
        place[key] = rng.choice(VALUES)
    return text(*lines)


def _with_other_bytes(rng: random.Random, whole: bytes) -> bytes:
    begin = rng.randrange(len(whole))
    end = min(len(whole), begin + rng.choice((1, 1, 2, 20, 300)))
    lines = whole.splitlines(keepends=True)
    return rng.choice(
        (
            whole[:begin] + whole[end:],
            whole[:begin] + rng.randbytes(end - begin) + whole[end:],
            whole[:begin] + rng.choice(BYTES) + whole[begin:],
            whole[:end],
            b"".join(rng.sample(lines, len(lines))),
            b"".join(rng.choices(lines, k=5)),
            whole.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + whole,
        )
    )
