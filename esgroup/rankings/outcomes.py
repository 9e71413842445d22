"""Rows of outcomes from what is told: values of any kind, and what is told beside them, become one float64 array."""

from __future__ import annotations

import contextlib
import math
import numbers
from dataclasses import dataclass
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
    found = []
    for i, value in enumerate(fitness):
        found.append(number(value))
        if found[-1] is None:
            raise ValueError(f"fitness[{i}] must be a real number (NaN if that run failed), got {value!r}")
    return np.array(found, dtype=np.float64)


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


# ---- beside values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """The outcome of one evaluation: a value, and what is told beside it."""

    value: Any
    beside: tuple[float, ...]


def rows(fitness: Any, beside: Any, n: int, m: int) -> Array:
    """Return rows (n, 1 + m) of values and what is told beside them, m numbers for each.

    A row is all NaN where one of its numbers is, or one beside the value is infinite. Without `beside`, values may be
    `Evaluated`, or NaN. With m = 1 a list of n numbers is accepted, too.
    """
    if beside is None:
        fitness, beside = _taken_apart(fitness, n, m)
    numbers_told = values(fitness, n)
    try:
        array = np.asarray(beside)
    except ValueError:  # ragged
        array = np.empty(0, dtype=object)
    real = array.dtype.kind in "fiub" or (array.size and all(isinstance(g, numbers.Real) for g in array.flat))
    real = real and not isinstance(beside, np.ma.MaskedArray)
    if not m and array.shape != (n, 0):
        raise ValueError("constraints were told, but the search has none: pass their number to Searcher")
    if not real or array.shape not in ([(n, m), (n,)] if m == 1 else [(n, m)]):
        got = f"an array of shape {array.shape}" if real else repr(beside)
        raise ValueError(f"constraints must be an array of real numbers of shape ({n}, {m}), got {got}")
    array = array.astype(np.float64).reshape(n, m)
    told = np.column_stack([numbers_told, array])
    told[np.isnan(numbers_told) | ~np.isfinite(array).all(axis=1)] = math.nan
    return told


def _taken_apart(fitness: Any, n: int, m: int) -> tuple[list[Any], list[tuple[float, ...]]]:
    """Values and what is told beside them, from `Evaluated`; what has no value has nothing beside it."""
    told = list(fitness) if isinstance(fitness, (list, tuple, np.ndarray)) else [fitness]
    for i, one in enumerate(told):
        if not isinstance(one, Evaluated):
            value = number(one)
            if value is None or not math.isnan(value):
                raise ValueError(f"constraints must be told beside values, as an array of shape ({n}, {m}), got None")
            told[i] = Evaluated(one, (math.nan,) * m)
    return [one.value for one in told], [one.beside for one in told]
