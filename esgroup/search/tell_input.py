"""The arguments of `tell`: values of any kind become one float64 array, pairs become points and values."""

from __future__ import annotations

import contextlib
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
    if isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):  # an int that is too large
            return float(value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size != 1 or isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"fitness[{i}] must be a real number (NaN if that run failed), got {value!r}")
    return float(array.reshape(()))


def from_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the points and the values of pairs."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"tell() was given pairs, but entry {i} is not a pair (point, value): {pair!r}")
    return [x for x, _ in pairs], [f for _, f in pairs]
