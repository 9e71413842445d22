"""What callers tell a search: values, points with values, pairs; all become one float64 array of values."""

from __future__ import annotations

import contextlib
import numbers
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array

_FLOAT64 = np.dtype(np.float64)


def values(fitness: Any, n: int) -> Array:
    """n numbers, NaN for failed runs; arrays of one element count as numbers, a number as the list of one."""
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
    except ValueError:  # ragged: numbers beside arrays of one element
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "fiu" and not isinstance(fitness, np.ma.MaskedArray):
        return array.astype(np.float64)
    if array.ndim == 0:
        if n != 1:
            raise ValueError(f"{_WANTED}, got {fitness!r}")
        fitness = [fitness]
    return np.array([_number(value, i) for i, value in enumerate(fitness)], dtype=np.float64)


def _number(value: Any, i: int) -> float:
    if isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):  # of an int
            return float(value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size != 1 or isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"fitness[{i}] must be a real number (NaN if that run failed), got {value!r}")
    return float(array.reshape(()))


def are_pairs(told: Any, axes: int = 1) -> bool:
    """Whether this is [(x, f), ...]: a list whose first element is a pair of a point, of so many axes, and a number."""
    if not isinstance(told, (list, tuple)) or not told:
        return False
    first = told[0]
    if not isinstance(first, (list, tuple)) or len(first) != 2:
        return False
    point, value = first
    if axes > 1:
        return np.ndim(point) == axes and np.size(value) == 1
    return _is_row(point) and (not _is_row(value) or len(value) == 1)


def _is_row(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return not value or not isinstance(value[0], (list, tuple, np.ndarray))
    return np.ndim(value) == 1


def from_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Points and values of pairs."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"tell() was given pairs, but entry {i} is not a pair (point, value): {pair!r}")
    return [x for x, _ in pairs], [f for _, f in pairs]


def have_a_row_in_common(first: Array, second: Array) -> bool:
    """Whether a point is among both."""
    return not set(keys(first)).isdisjoint(keys(second))


def keys(points: Array) -> list[bytes]:
    """A key for each row, the same for the same point."""
    return [row.tobytes() for row in points + 0.0]  # without negative zeros


def points(X: Any, shape: tuple[int, ...], name: str = "X") -> Array:
    """Points of a shape, (n, *shape), finite; a single one is as good as one of one."""
    if len(shape) == 1:
        return checks.points(name, X, shape[0]).reshape(-1, *shape)
    array = np.asarray(X)
    single = array.shape == shape
    return checks.real_array(name, array[None] if single else X, (None, *shape))
