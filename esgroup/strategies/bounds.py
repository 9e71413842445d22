"""Bounds as users write them: SciPy's Bounds, a pair for all coordinates, or a pair for each."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array

_KINDS = "None, scipy.optimize.Bounds, a pair (lower, upper), or one such pair for each coordinate"
_OPEN = 1e300  # a bound beyond it is none: many write the largest float for infinity, and ranges must not overflow


def parse_bounds(bounds: Any, dim: int) -> tuple[Array, Array, str]:
    """Lower and upper bounds of `dim` coordinates, infinite where open, and a hint for errors, mostly empty.

    A 2 x 2 array for two coordinates can be read by rows or by columns. It is read as one pair for each coordinate;
    if that leads to an error, the hint shows both spellings.
    """
    lower, upper, hint = _read(bounds, dim)
    lower[lower < -_OPEN], upper[upper > _OPEN] = -math.inf, math.inf
    _refuse(np.isnan(lower) | np.isnan(upper), lower, upper, "must not be NaN", hint)
    _refuse(lower > upper, lower, upper, "must have lower <= upper", hint)
    _refuse((lower == math.inf) | (upper == -math.inf), lower, upper, "must leave room for finite numbers", hint)
    return lower, upper, hint


def whole_bounds(lower: Array, upper: Array, integer: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The bounds with those of integer coordinates tightened to integers."""
    low, high = np.where(integer, np.ceil(lower), lower), np.where(integer, np.floor(upper), upper)
    _refuse(low > high, lower, upper, "must have an integer between them where a coordinate is integer", "")
    return low, high


def _refuse(bad: NDArray[np.bool_], lower: Array, upper: Array, wanted: str, hint: str) -> None:
    if bad.any():
        j = int(bad.argmax())
        raise ValueError(f"bounds {wanted}, got ({lower[j]}, {upper[j]}) for coordinate {j}{hint}")


def _read(bounds: Any, dim: int) -> tuple[Array, Array, str]:
    if bounds is None:
        return np.full(dim, -math.inf), np.full(dim, math.inf), ""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds, without importing SciPy
        return _side(_listed(bounds.lb), dim, -math.inf), _side(_listed(bounds.ub), dim, math.inf), ""
    parts = _listed(bounds)
    if not isinstance(parts, list):
        raise TypeError(f"bounds must be {_KINDS}, got {bounds!r}")
    pairs = all(isinstance(part, list) and len(part) == 2 for part in parts)
    if pairs and len(parts) == dim:
        return _from_pairs(parts, dim)
    if len(parts) == 2:
        return _side(parts[0], dim, -math.inf), _side(parts[1], dim, math.inf), ""
    raise ValueError(f"bounds must be {_KINDS}: got {len(parts)} entries for {dim} coordinates")


def _from_pairs(pairs: list[Any], dim: int) -> tuple[Array, Array, str]:
    lower = _side([pair[0] for pair in pairs], dim, -math.inf)
    upper = _side([pair[1] for pair in pairs], dim, math.inf)
    return lower, upper, _two_spellings(lower, upper) if dim == 2 else ""


def _two_spellings(lower: Array, upper: Array) -> str:
    (a, b), (c, d) = zip(lower.tolist(), upper.tolist(), strict=True)
    return (
        f"; bounds=[({a:g}, {b:g}), ({c:g}, {d:g})] is read as a pair (lower, upper) for each of two coordinates: if "
        f"({a:g}, {b:g}) are lower and ({c:g}, {d:g}) upper bounds, write bounds=[({a:g}, {c:g}), ({b:g}, {d:g})]"
    )


def _listed(value: Any) -> Any:
    """Nested lists of what an iterable or array holds, numbers and None left as they are."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not isinstance(value, Iterable):
        return value
    return [_listed(part) for part in value]


def _side(value: Any, dim: int, none: float) -> Array:
    """One side of the bounds: one number for all coordinates or one for each, None where it is open."""
    if not isinstance(value, list):
        return np.full(dim, _number(value, none))
    if len(value) == 1 < dim:  # SciPy broadcasts
        value = value * dim
    if len(value) != dim:
        side = "lower" if none < 0 else "upper"
        raise ValueError(f"bounds must be {_KINDS}: got {len(value)} {side} bounds for {dim} coordinates")
    return np.array([_number(number, none) for number in value])


def _number(value: Any, none: float) -> float:
    if value is None:
        return none
    if not isinstance(value, numbers.Real):  # NumPy's numbers are registered as such
        raise TypeError(f"bounds must be real numbers, or None where there is none, got {value!r}")
    return float(value)
