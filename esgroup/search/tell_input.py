"""The arguments of `tell`: values of any kind become one float64 array, pairs and triples become their parts."""

from __future__ import annotations

import contextlib
import math
import numbers
from typing import Any

import numpy as np

from esgroup.checks import Array

_FLOAT64 = np.dtype(np.float64)


def values(fitness: Any, n: int) -> Array:
    """Return n values as an array, NaN if failed; accepts arrays of one element as values, and a number if n = 1."""
    if type(fitness) is not np.ndarray or fitness.dtype is not _FLOAT64:
        fitness = _numbers(fitness, n)
    if fitness.ndim != 1:
        if fitness.size != (len(fitness) if fitness.ndim else n):
            raise ValueError(f"{_WANTED}, got an array of shape {fitness.shape}")
        fitness = fitness.reshape(-1)
    if len(fitness) != n:
        raise ValueError(f"fitness must have {n} values, one for each point, got {len(fitness)}")
    array: Array = fitness
    return array


_WANTED = "fitness must be a list of numbers, one for each point"


def _numbers(fitness: Any, n: int) -> Array:
    try:
        array = np.asarray(fitness)
    except ValueError:  # ragged: numbers mixed with arrays of one element
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "fiu" and not isinstance(fitness, np.ma.MaskedArray):
        return array.astype(np.float64)
    if array.ndim == 0:
        if n != 1:
            raise ValueError(f"{_WANTED}, got {fitness!r}")
        fitness = [fitness]
    return np.array([_number(value, i) for i, value in enumerate(fitness)], dtype=np.float64)


def _number(value: Any, i: int) -> float:
    found = number(value)
    if found is None:
        raise ValueError(f"fitness[{i}] must be a real number (NaN if that run failed), got {value!r}")
    return found


def number(value: Any) -> float | None:
    """Return what stands for one real number as a float: also an array of one element; None for anything else."""
    if isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):  # an int that is too large
            return float(value)
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None
    if array.dtype.kind not in "fiub" or array.size != 1 or isinstance(value, np.ma.MaskedArray):
        return None
    return float(array.reshape(()))


def from_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the points and the values of pairs."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"tell() was given pairs, but entry {i} is not a pair (point, value): {pair!r}")
    return [x for x, _ in pairs], [f for _, f in pairs]


# ---- constraints ------------------------------------------------------------------------------------------------


def outcomes(fitness: Array, constraints: Any, m: int) -> Array:
    """Return rows (n, 1 + m) of values and constraints, all NaN where one of them is, or a constraint is infinite.

    With one constraint a list of n numbers is accepted, too.
    """
    n = len(fitness)
    if constraints is None:
        raise ValueError(f"constraints must be told beside values, as an array of shape ({n}, {m}), got None")
    try:
        array = np.asarray(constraints)
    except ValueError:  # ragged
        array = np.empty(0, dtype=object)
    real = array.dtype.kind in "fiub" or (array.size and all(isinstance(g, numbers.Real) for g in array.flat))
    if not real or isinstance(constraints, np.ma.MaskedArray):
        wanted = f"an array of real numbers of shape ({n}, {m})"
        raise ValueError(f"constraints must be {wanted}, got {constraints!r}")
    array = array.astype(np.float64)
    if array.shape == (n,) and m == 1:
        array = array[:, None]
    if array.shape != (n, m):
        raise ValueError(f"constraints must have shape ({n}, {m}), a row for each point, got {array.shape}")
    rows = np.column_stack([fitness, array])
    rows[np.isnan(fitness) | ~np.isfinite(array).all(axis=1)] = math.nan
    return rows


def are_triples(strategy: Any, told: Any) -> bool:
    """Whether the one argument of `tell` is [(point, value, constraints), ...]."""
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
            raise ValueError(f"tell() was given triples, but entry {i} is not one of {wanted}: {triple!r}")
    points, values, constraints = (list(part) for part in zip(*triples, strict=True))
    return points, values, constraints
