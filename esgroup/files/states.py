"""States as named arrays, and back: a state is a named tuple or list of arrays and other states, to any depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.files.checked import CheckpointError, array


def flattened(name: str, state: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state: its field mean as name/mean, that of a state in it as name/field/mean."""
    if (parts := _parts(state)) is None:
        if np.asarray(state).dtype != np.float64:
            raise TypeError(f"{name} must be an array of float64 to be stored, got {np.asarray(state).dtype}")
        return {name: np.asarray(state)}
    found: dict[str, NDArray[Any]] = {}
    for field, part in parts.items():
        found |= flattened(f"{name}/{field}", part)
    return found


def rebuilt(name: str, arrays: Mapping[str, NDArray[Any]], model: Any) -> Any:
    """Return the state stored under a name, with the fields of a model state; shapes may differ."""
    if (parts := _parts(model)) is None:
        return array(arrays, name, (None,) * np.ndim(model))
    found = [rebuilt(f"{name}/{field}", arrays, part) for field, part in parts.items()]
    return found if type(model) is list else type(model)(*found)


def same_shapes(state: Any, model: Any, *, besides: tuple[str, ...] = (), name: str = "state") -> None:
    """Raise ValueError if an array of a state differs in shape from that of a model state, except in some fields."""
    if (parts := _parts(state)) is None:
        if np.shape(state) != np.shape(model):
            raise CheckpointError(f"the array {name!r} must be of shape {np.shape(model)}, got {np.shape(state)}")
        return
    for (field, part), other in zip(parts.items(), (_parts(model) or {}).values(), strict=True):
        if field not in besides:
            same_shapes(part, other, name=f"{name}/{field}")


def _parts(state: Any) -> dict[str, Any] | None:
    """The parts of a state, by name or number; None for an array or a single number."""
    if type(state) is list:
        return {str(i): part for i, part in enumerate(state)}
    return state._asdict() if hasattr(state, "_asdict") else None


def all_finite(state: Any, name: str = "state") -> None:
    """Raise ValueError if a number of a state is not finite."""
    for path, numbers in flattened(name, state).items():
        if not np.isfinite(numbers).all():
            raise CheckpointError(f"the array {path!r} must be finite")
