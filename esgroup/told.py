"""What callers tell a search: values, points with values, pairs; all become one float64 array of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array

_FLOAT64 = np.dtype(np.float64)


def values(fitness: Any, n: int | None) -> Array:
    """n numbers (any number if None), NaN for failed runs; arrays of one element count as numbers."""
    if type(fitness) is not np.ndarray or fitness.dtype is not _FLOAT64:
        fitness = _numbers(fitness)
    if fitness.ndim == 2 and fitness.shape[1] == 1:
        fitness = fitness[:, 0]
    if fitness.ndim != 1:
        raise ValueError(f"fitness must be a list of numbers, one for each point, got an array of shape {fitness.shape}")
    if n is not None and len(fitness) != n:
        raise ValueError(f"fitness must have {n} values, one for each point, got {len(fitness)}")
    array: Array = fitness
    return array


def _numbers(fitness: Any) -> Array:
    if isinstance(fitness, (str, bytes)) or np.ndim(fitness) == 0 and not isinstance(fitness, Sequence):
        raise ValueError(f"fitness must be a list of numbers, one for each point, got {fitness!r}")
    try:
        array = np.asarray(fitness)
    except ValueError:  # ragged: numbers beside arrays of one element
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "fiu" and not isinstance(fitness, np.ma.MaskedArray):
        return array.astype(np.float64)
    return np.array([_number(value, i) for i, value in enumerate(fitness)], dtype=np.float64)


def _number(value: Any, i: int) -> float:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size != 1 or isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"fitness[{i}] must be a real number (NaN if that run failed), got {value!r}")
    return float(array.reshape(()))


def are_pairs(told: Any) -> bool:
    """Whether this is [(x, f), ...]: a list whose first element is a pair of a point and a number."""
    if not isinstance(told, (list, tuple)) or not told:
        return False
    first = told[0]
    return isinstance(first, (list, tuple)) and len(first) == 2 and np.ndim(first[0]) == 1 and np.ndim(first[1]) == 0


def from_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Points and values of pairs."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"tell() was given pairs, but entry {i} is not a pair (point, value): {pair!r}")
    return [x for x, _ in pairs], [f for _, f in pairs]


def points(X: Any, dim: int, name: str = "X") -> Array:
    """Rows of points (a single one as one row), finite."""
    array = checks.points(name, X, dim)
    return array.reshape(-1, dim)
