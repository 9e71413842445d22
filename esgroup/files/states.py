"""States as named arrays, and back: a state is a named tuple of arrays and of other states, to any depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup.files.checked import CheckpointError, array


def flattened(name: str, state: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state, those of its field mean as name/mean, those of a state in it as name/field/mean."""
    if not hasattr(state, "_asdict"):  # an array, or a single number
        return {name: np.asarray(state)}
    found: dict[str, NDArray[Any]] = {}
    for field, part in state._asdict().items():
        found |= flattened(f"{name}/{field}", part)
    return found


def rebuilt(name: str, arrays: Mapping[str, NDArray[Any]], model: Any) -> Any:
    """Return the state that was stored under a name, with the fields of a model of it; shapes may differ."""
    if not hasattr(model, "_asdict"):
        return array(arrays, name, (None,) * np.ndim(model))
    return type(model)(*(rebuilt(f"{name}/{field}", arrays, part) for field, part in model._asdict().items()))


def same_shapes(state: Any, model: Any, *, besides: tuple[str, ...] = (), name: str = "state") -> None:
    """Raise ValueError if an array of a state has another shape than that of a model, but for some fields."""
    if not hasattr(state, "_asdict"):
        if np.shape(state) != np.shape(model):
            raise CheckpointError(f"the array {name!r} must be of shape {np.shape(model)}, got {np.shape(state)}")
        return
    for field, part in state._asdict().items():
        if field not in besides:
            same_shapes(part, getattr(model, field), name=f"{name}/{field}")


def all_finite(state: Any, name: str = "state") -> None:
    """Raise ValueError if a number of a state is not finite."""
    for path, numbers in flattened(name, state).items():
        if not np.isfinite(numbers).all():
            raise CheckpointError(f"the array {path!r} must be finite")
