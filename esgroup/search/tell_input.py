"""The arguments of `tell`: splitting pairs and triples into their parts."""

from __future__ import annotations

from typing import Any


def from_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the points and the values of pairs."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"tell() was given pairs, but entry {i} is not a pair (point, value): {pair!r}")
    return [x for x, _ in pairs], [f for _, f in pairs]


def are_triples(strategy: Any, told: Any) -> bool:
    """Whether the only argument of `tell` is [(point, value, constraints), ...]."""
    if not isinstance(told, (list, tuple)) or not told:
        return False
    first = told[0]
    if not isinstance(first, (list, tuple)) or len(first) != 3:
        return False
    return bool(strategy.domain.are_pairs([(first[0], first[1])]))


def from_triples(triples: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the points, the values and the constraints of triples."""
    for i, triple in enumerate(triples):
        if not isinstance(triple, (list, tuple)) or len(triple) != 3:
            wanted = "(point, value, constraints)"
            raise ValueError(f"tell() was given triples, but entry {i} is not a triple {wanted}: {triple!r}")
    points, values, constraints = (list(part) for part in zip(*triples, strict=True))
    return points, values, constraints
