"""Rows of outcomes: values of any kind, and what is told with them, become one float64 array."""

from __future__ import annotations

import contextlib
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_FLOAT64 = np.dtype(np.float64)


def values(fitness: Any, n: int) -> Array:
    """Return n values as an array, NaN if failed; accepts arrays of one element as values, and a number if n = 1."""
    plain = type(fitness) is np.ndarray and fitness.dtype is _FLOAT64
    array: Array = fitness if plain else _numbers(fitness, n)
    if array.ndim != 1:
        if array.size != (len(array) if array.ndim else n):
            raise ValueError(f"{_WANTED}, got an array of shape {array.shape}")
        array = array.reshape(-1)
    if len(array) != n:
        raise ValueError(f"fitness must have {n} values, one for each point, got {len(array)}")
    return array


_WANTED = "fitness must be a list of numbers, one for each point"


def _numbers(fitness: Any, n: int) -> Array:
    array = _as_array(fitness)
    if array.dtype.kind in "fiu":
        return array.astype(np.float64)
    if array.ndim == 0:
        if n != 1:
            raise ValueError(f"{_WANTED}, got {fitness!r}")
        fitness = [fitness]
    found = []
    for i, value in enumerate(fitness):
        found.append(number(value))
        if found[-1] is None:
            raise ValueError(f"fitness[{i}] must be a real number (NaN for a failed evaluation), got {value!r}")
    return np.array(found, dtype=np.float64)


def number(value: Any) -> float | None:
    """Return one real number, or an array of one element, as a float; None for anything else."""
    if isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):  # an int that is too large
            return float(value)
    array = _as_array(value)
    return float(array.reshape(())) if array.dtype.kind in "fiub" and array.size == 1 else None


def _as_array(told: Any) -> NDArray[Any]:
    """Return what was told as an array, without numbers if it is masked or ragged."""
    if isinstance(told, np.ma.MaskedArray):
        return np.empty(told.shape, dtype=object)
    try:
        return np.asarray(told)
    except ValueError:  # ragged, as numbers mixed with arrays of one element
        return np.empty(0, dtype=object)


# ---- beside values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """The outcome of one evaluation: a value, and what is told with it."""

    value: Any
    beside: tuple[float, ...]


def rows(fitness: Any, beside: Any, n: int, m: int) -> Array:
    """Return rows (n, 1 + m) of values and the m numbers told with each.

    A row is all NaN if any of its numbers is NaN, or any but the value is infinite. Without `beside`, values may be
    `Evaluated`, or NaN. With m = 1 a list of n numbers is also accepted.
    """
    if beside is None:
        fitness, beside = _taken_apart(fitness, n, m)
    numbers_told = values(fitness, n)
    array = _as_array(beside)
    real = array.dtype.kind in "fiub" or (array.size and all(isinstance(g, numbers.Real) for g in array.flat))
    if not m and array.shape != (n, 0):
        raise ValueError("tell() got constraints, but the search has none: pass their number to Searcher")
    if not real or array.shape not in ([(n, m), (n,)] if m == 1 else [(n, m)]):
        got = f"shape {array.shape}" if real else repr(beside)
        raise ValueError(f"constraints must be real numbers of shape ({n}, {m}), a row for each point, got {got}")
    array = array.astype(np.float64).reshape(n, m)
    told = np.column_stack([numbers_told, array])
    told[np.isnan(numbers_told) | ~np.isfinite(array).all(axis=1)] = math.nan
    return told


def _taken_apart(fitness: Any, n: int, m: int) -> tuple[list[Any], list[tuple[float, ...]]]:
    """Values and what is told with them, from `Evaluated`; for a failed evaluation both are NaN."""
    told = list(fitness) if isinstance(fitness, (list, tuple, np.ndarray)) else [fitness]
    for i, one in enumerate(told):
        if not isinstance(one, Evaluated):
            value = number(one)
            if value is None or not math.isnan(value):
                wanted = f"constraints must be told with the values, as an array of shape ({n}, {m}), got None"
                raise ValueError(f"{wanted}: a function must return esgroup.rankings.Evaluated(value, beside)")
            told[i] = Evaluated(one, (math.nan,) * m)
    return [one.value for one in told], [one.beside for one in told]
