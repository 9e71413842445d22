"""The parts of a snapshot that belong to searches over vectors: space, group, options, state, generations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.files import objects
from esgroup.files.checked import CheckpointError, array, entry, optional_entry
from esgroup.groups import Group
from esgroup.search.arguments import Options, check_names
from esgroup.search.late import Asked
from esgroup.strategies.box import Space
from esgroup.strategies.evolution import Evolution, Generation, SearchState

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

Arrays = dict[str, NDArray[Any]]

_SPACE = {"x0": float, "lower": float, "upper": float, "fixed": bool, "integer": bool, "steps0": float}


def describe(search: Searcher) -> tuple[dict[str, Any], Arrays]:
    """What kind of search it is."""
    description, arrays = objects.describe(search.structure)
    arrays |= {f"space/{name}": getattr(search._space, name) for name in _SPACE}
    options = {name: getattr(search._options, name) for name in ("algorithm", "decoding", "mirrored", "noise")}
    return {"group": description, "options": options}, arrays


def build(cls: type[Searcher], header: dict[str, Any], arrays: Arrays) -> Searcher:
    """A search of that kind in its state, with all that it was told still missing."""
    search = cls.__new__(cls)
    search._space = _space(arrays)
    group = objects.build(entry(header, "group", dict), arrays)
    if not isinstance(group, Group):
        raise CheckpointError(f"the header's group must be one, got {type(group).__name__}")
    if group.dim != search._space.free_dim:  # before anything of that size is made
        raise CheckpointError(f"the group has dimension {group.dim}, but {search._space.free_dim} coordinates are free")
    search._options = _options(entry(header, "options", dict))
    search._evolution = search._options.evolution(group)
    search._state = _state(search._evolution, arrays)
    search._first_stds = _finite(arrays, "first_stds", (group.dim,))
    return search


def asked_arrays(name: str, asked: Asked) -> Arrays:
    """Points that are out."""
    return {f"{name}/x": asked.x, f"{name}/z": asked.generation.z, f"{name}/y": asked.generation.y}


def asked(search: Searcher, name: str, nit: Any, arrays: Arrays) -> Asked:
    """And back."""
    x = checks.read_only(array(arrays, f"{name}/x", (None, search.dim)))
    shape = (len(x) + 1, search._evolution.dim)
    generation = Generation(_finite(arrays, f"{name}/z", shape), _finite(arrays, f"{name}/y", shape))
    return Asked(x, generation, checks.whole_number(f"{name} in the header", nit, most=search.nit))


def width(search: Searcher) -> int:
    """The number of local coordinates of a point."""
    return search._evolution.dim


def _space(arrays: Arrays) -> Space:
    dim = len(array(arrays, "space/x0", (None,)))
    return Space(**{name: array(arrays, f"space/{name}", (dim,), kind) for name, kind in _SPACE.items()})


def _options(stored: dict[str, Any]) -> Options:
    algorithm, noise = entry(stored, "algorithm", str), optional_entry(stored, "noise", str)
    check_names(algorithm, noise)
    return Options(algorithm, entry(stored, "decoding", bool), entry(stored, "mirrored", bool), noise)


def _state(evolution: Evolution, arrays: Arrays) -> SearchState:
    """The stored arrays, each with the shape that it has in such a search."""
    shapes = evolution.shapes()
    return SearchState(**{name: _finite(arrays, f"state/{name}", (shapes[name],)) for name in SearchState._fields})


def _finite(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> Array:
    return checks.real_array(name, array(arrays, name, shape), shape)
