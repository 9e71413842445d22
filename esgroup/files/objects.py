"""Groups, strategies and distributions as JSON and arrays, for files that hold no code.

A description names a class and its fields. Only known classes are built, by their own constructors and with all checks:
the groups of `esgroup.groups`, those passed to `register_serial`, and other classes passed to `register_class`.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from esgroup import groups
from esgroup.groups.base import Group
from esgroup.groups.sparse import Sparse

Arrays = dict[str, NDArray[Any]]
C = TypeVar("C", bound=type)


class Storable(NamedTuple):
    """A class that a description may name, and the function that builds an instance from its fields."""

    cls: type
    build: Callable[..., Any]


_registered: dict[str, Storable] = {}
_OF_GROUPS = "esgroup.files.objects.register_serial"


def describe(stored: Any, name: str = "group") -> tuple[dict[str, Any], Arrays]:
    """Return what `build` needs: a dict of JSON types, and the arrays, named `name`/field/field/...

    Raises
    ------
    TypeError
        If the class of the object, or of an object in its fields, is not registered.
    """
    arrays: Arrays = {}
    return _describe_object(stored, name, arrays), arrays


def build(description: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Build the object of a description; `arrays` may hold other arrays as well.

    Raises
    ------
    ValueError
        If the description is invalid.
    """
    try:
        return _build_object(description, arrays)
    except RecursionError:
        raise ValueError("a stored group is nested too deeply") from None


def register_serial(cls: C, build: Callable[..., Group] | None = None) -> C:
    """Make a class of groups storable under its name; usable as a class decorator.

    Parameters
    ----------
    cls : type
        A dataclass derived from `Group` with fields that are numbers, booleans, strings, arrays, groups, or tuples of
        these.
    build : callable, optional
        Builds a group from the fields, passed by name; the class itself by default.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        If `cls` is not a dataclass derived from `Group`.
    ValueError
        If another class already has the name.
    """
    return register_derived(cls, Group, build)


def register_class(cls: type, build: Callable[..., Any] | None = None) -> None:
    """Make a class, of groups or other objects, storable under its name.

    The class is a dataclass whose fields are like those of groups, or objects of such classes. Fields with the metadata
    {"stored": False} are omitted; they must have a default. `build` takes the fields by name; by default it is the
    class itself.
    """
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(f"cls must be a dataclass, got {cls!r}")
    taken = _known().get(cls.__name__)
    # a notebook may define the same class again
    if taken and (taken.cls.__module__, taken.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"the name {cls.__name__!r} is taken by {taken.cls}")
    _registered[cls.__name__] = Storable(cls, build or cls)


def register_derived(cls: C, base: type, build: Callable[..., Any] | None = None) -> C:
    """Make a class that derives from `base` storable, as `register_class` does, and return the class."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise TypeError(f"cls must be a dataclass derived from {base.__name__}, got {cls!r}")
    register_class(cls, build)
    return cls


def _known() -> dict[str, Storable]:
    """The groups that `esgroup.groups` exports, so that a new one need not be listed here, and registered classes."""
    classes = (cls for cls in vars(groups).values() if isinstance(cls, type) and issubclass(cls, Group))
    ours = {cls.__name__: Storable(cls, cls) for cls in classes if cls is not Group}
    return ours | {"Sparse": Storable(Sparse, _build_sparse)} | _registered


def _fields(cls: type) -> dict[str, bool]:
    """The stored fields, and whether each is required because it has no default."""
    missing = dataclasses.MISSING
    return {
        field.name: field.default is missing and field.default_factory is missing
        for field in dataclasses.fields(cls)
        if field.init and field.metadata.get("stored", True)
    }


# ---- objects to JSON --------------------------------------------------------------------------------------------


def _describe_object(stored: Any, path: str, arrays: Arrays) -> dict[str, Any]:
    name = type(stored).__name__
    known = _known().get(name)
    if known is None or known.cls is not type(stored):
        rooms = [base.__module__.split(".")[1] for base in type(stored).__mro__ if base.__module__[:8] == "esgroup."]
        register = f"esgroup.{rooms[0]}.register" if rooms and not isinstance(stored, Group) else _OF_GROUPS
        raise TypeError(f"{stored!r} cannot be stored: pass its class {type(stored)} to {register} first")
    fields = {field: _describe(getattr(stored, field), f"{path}/{field}", arrays) for field in _fields(known.cls)}
    return {"class": name, "fields": fields}


def _describe(value: Any, path: str, arrays: Arrays) -> Any:
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if isinstance(value, Group) or type(value).__name__ in _registered or dataclasses.is_dataclass(value):
        return _describe_object(value, path, arrays)
    if isinstance(value, (tuple, list)):
        return [_describe(part, f"{path}/{i}", arrays) for i, part in enumerate(value)]
    if isinstance(value, np.generic):
        return _describe(value.item(), path, arrays)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{path} cannot be stored: it must be a number, text, array, group or tuple, got {value!r}")


# ---- JSON to objects --------------------------------------------------------------------------------------------


def _build_object(description: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(description, dict) or description.keys() != {"class", "fields"}:
        raise ValueError(f"a stored group must have a class and fields, got {reprlib.repr(description)}")
    name, stored = description["class"], description["fields"]
    known = _known().get(name) if isinstance(name, str) else None
    if known is None:
        raise ValueError(f"a stored group must be one of {', '.join(_known())}, got {reprlib.repr(name)}")
    wanted = _fields(known.cls)
    required = {field for field, needed in wanted.items() if needed}  # a field newer than the file gets its default
    if not isinstance(stored, dict) or not required <= stored.keys() <= wanted.keys():
        raise ValueError(f"a stored {name} must have the fields {list(wanted)}, got {reprlib.repr(stored)}")
    values = {field: _build(value, arrays) for field, value in stored.items()}
    try:
        return known.build(**values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a stored {name} is not valid: {error}") from error


def _build(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_build(part, arrays) for part in value)
    if isinstance(value, dict) and value.keys() == {"array"}:
        name = value["array"]
        if not isinstance(name, str) or name not in arrays:
            raise ValueError(f"the array {reprlib.repr(name)} of a stored group is missing")
        return arrays[name]
    return _build_object(value, arrays) if isinstance(value, dict) else value


def _build_sparse(dim: int, indptr: NDArray[Any], indices: NDArray[Any]) -> Sparse:
    """Build the group with all checks, since the kernels trust the pattern."""
    from scipy import sparse

    if not all(isinstance(part, np.ndarray) and part.dtype == np.int64 for part in (indptr, indices)):
        raise ValueError("indptr and indices must be int64 arrays")
    pattern = sparse.csr_array((np.ones(indices.size, dtype=bool), indices, indptr), shape=(dim, dim))
    pattern.check_format(full_check=True)
    group = Sparse(pattern)
    if not (np.array_equal(group.indptr, indptr) and np.array_equal(group.indices, indices)):
        raise ValueError("indptr and indices must be those of a pattern sorted by row and column, without repetitions")
    return group
