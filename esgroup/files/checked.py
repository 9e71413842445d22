"""Checked access to the contents of a checkpoint: entries of the header, arrays, random number generators."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from esgroup import checks
from esgroup.checks import Array

T = TypeVar("T")


class CheckpointError(ValueError):
    """Raised for a file that is not a checkpoint, is damaged, or has another kind or version."""


def entry(header: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a value of the header of type bool, int, float, str, list or dict; an int is accepted for a float."""
    if name not in header:
        raise CheckpointError(f"the header lacks {name!r}")
    value = header[name]
    if kind is float and type(value) is int:
        with contextlib.suppress(OverflowError):
            value = float(value)
    if type(value) is not kind:
        raise CheckpointError(f"{name!r} in the header must be of type {kind.__name__}, got {reprlib.repr(value)}")
    return value


def optional_entry(header: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return a value of the header that may be None, but must not be missing."""
    return None if header.get(name, ...) is None else entry(header, name, kind)


def array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int | None, ...], dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Return an array after checking its dtype and shape, in which None allows any length."""
    if name not in arrays:
        raise CheckpointError(f"the array {name!r} is missing")
    found = arrays[name]
    if found.dtype != np.dtype(dtype) or not checks.fits(found.shape, shape):
        wanted = f"{np.dtype(dtype)} of shape {shape}".replace("None", "n")
        raise CheckpointError(f"the array {name!r} must be {wanted}, got {found.dtype} of shape {found.shape}")
    return found


def finite_array(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int | None, ...]) -> Array:
    """Return a float64 array of this shape after checking that all numbers are finite."""
    return checks.real_array(name, array(arrays, name, shape), shape)


# ---- random number generators -------------------------------------------------------------------------------------

_KINDS = np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64
_BIT_GENERATORS: dict[str, type[np.random.BitGenerator]] = {kind.__name__: kind for kind in _KINDS}
# the largest valid values of the numbers in a state: NumPy uses them as indices without a check
_MOST = {"state": 2**128 - 1, "inc": 2**128 - 1, "has_uint32": 1, "uinteger": 2**32 - 1, "pos": 624, "buffer_pos": 4}


def generator_to_json(rng: np.random.Generator) -> dict[str, Any]:
    """Return a generator as JSON types: the state of its bit generator, and the seeds for `spawn`."""
    bits = rng.bit_generator
    if type(bits) not in _KINDS:
        raise TypeError(f"rng must use one of {', '.join(_BIT_GENERATORS)} to be stored, got {type(bits).__name__}")
    return {"state": listed(bits.state), "seeds": _seeds_to_json(bits.seed_seq)}


def generator_from_json(stored: Any) -> np.random.Generator:
    """Rebuild a generator that continues where the stored one left off; CheckpointError if the state is invalid."""
    try:
        state = entry(stored, "state", dict)
        name = entry(state, "bit_generator", str)
        if name not in _BIT_GENERATORS:
            raise CheckpointError(f"it must use one of {', '.join(_BIT_GENERATORS)}, got {reprlib.repr(name)}")
        bits = _BIT_GENERATORS[name](_seeds_from_json(stored["seeds"]))
        bits.state = _like(bits.state, state, "state")
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise CheckpointError(f"the stored generator is not valid: {error}") from error
    return np.random.Generator(bits)


def listed(state: Any) -> Any:
    """Convert NumPy numbers and arrays in dicts and lists to Python types."""
    if isinstance(state, Mapping):
        return {name: listed(value) for name, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [listed(value) for value in state]
    return state.tolist() if isinstance(state, (np.ndarray, np.generic)) else state


def _like(model: Any, value: Any, name: str) -> Any:
    """Check that `value` has the keys, types and shapes of `model`, a state of the same bit generator; return it."""
    if isinstance(model, dict):
        kinds = {key: list if isinstance(part, np.ndarray) else type(part) for key, part in model.items()}
        return {key: _like(part, entry(value, key, kinds[key]), key) for key, part in model.items()}
    if isinstance(model, np.ndarray):
        if not all(type(word) is int for word in value):
            raise CheckpointError(f"{name} must be a list of integers, got {reprlib.repr(value)}")
        return array({name: np.array(value, dtype=model.dtype)}, name, model.shape, model.dtype)
    if isinstance(model, int) and not 0 <= value <= _MOST[name]:
        raise CheckpointError(f"{name} must be from 0 to {_MOST[name]}, got {value}")
    return value


def _seeds_to_json(seeds: Any) -> dict[str, Any] | None:
    """The arguments of this `SeedSequence`, or None for other seed sources and pool sizes."""
    if type(seeds) is not np.random.SeedSequence or seeds.pool_size != 4:
        return None
    return {name: listed(getattr(seeds, name)) for name in ("entropy", "spawn_key", "n_children_spawned")}


def _seeds_from_json(stored: Any) -> np.random.SeedSequence:
    if stored is None:
        return np.random.SeedSequence()
    children = entry(stored, "n_children_spawned", int)
    return np.random.SeedSequence(stored["entropy"], spawn_key=tuple(stored["spawn_key"]), n_children_spawned=children)
