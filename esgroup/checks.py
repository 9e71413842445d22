"""Checks of what callers hand in: which argument, what it must be, what it was."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def real_array(name: str, value: Any, shape: tuple[int | None, ...]) -> Array:
    """`value` as a C-contiguous float64 array of finite numbers; None in `shape` admits any length.

    An array that is already of this kind is returned as it is, never copied and never modified.
    """
    array = _as_float64(name, value)
    wanted = "(" + ", ".join("n" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
    if array.ndim != len(shape) or any(s not in (None, got) for s, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        at = where[0] if len(where) == 1 else where
        raise ValueError(f"{name} must be finite, got {array[where]} at index {at}")
    return array


def _as_float64(name: str, value: Any) -> Array:
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous:
        return value
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers, got rows of unequal length") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def points(name: str, value: Any, dim: int) -> Array:
    """One point of shape (dim,) or several as rows (n, dim)."""
    ndim = np.ndim(value) if not isinstance(value, np.ndarray) else value.ndim
    if ndim not in (1, 2):
        raise ValueError(f"{name} must have shape ({dim},) or (n, {dim}), got {np.shape(value)}")
    return real_array(name, value, (dim,) if ndim == 1 else (None, dim))


def real_number(name: str, value: Any, *, positive: bool = False) -> float:
    """`value` as a finite float, greater than zero if `positive`."""
    array = _as_float64(name, value)
    wanted = "a positive finite number" if positive else "a finite number"
    if array.size != 1 or not np.isfinite(array).all() or (positive and array.item() <= 0):
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return array.item()


def whole_number(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """`value` as an int between `least` and `most`."""
    wanted = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} must be {wanted}, got {number}")
    return number


def flag(name: str, value: Any) -> bool:
    """`value` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def covariance(name: str, value: Any, dim: int) -> Array:
    """`value` as a symmetric positive-definite (dim, dim) matrix."""
    matrix = real_array(name, value, (dim, dim))
    gap = np.abs(matrix - matrix.T).max(initial=0.0)
    if gap > 1e-10 * np.abs(matrix).max(initial=0.0):
        raise ValueError(f"{name} must be symmetric, but differs from its transpose by {gap:.3g}")
    matrix = (matrix + matrix.T) / 2
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(f"{name} must be positive definite, but its smallest eigenvalue is {smallest:.3g}") from None
    return matrix


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, marked as not writeable: for arrays that are shared."""
    array.flags.writeable = False
    return array
