"""The parts of a snapshot that belong to searches over other spaces: the strategy, its state, local coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from esgroup import checks
from esgroup.files import objects
from esgroup.files.checked import CheckpointError, array, entry
from esgroup.search.late import Asked
from esgroup.strategies import spaces
from esgroup.strategies.base import Strategy

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

Arrays = dict[str, NDArray[Any]]

STRATEGY = "strategy"  # in the header of such a search, and of no other


def describe(search: Any) -> tuple[dict[str, Any], Arrays]:
    """What kind of search it is."""
    spaces.register_all()
    description, arrays = objects.describe(search.strategy, STRATEGY)
    return {STRATEGY: description}, arrays


def build(cls: type[Searcher], header: dict[str, Any], arrays: Arrays) -> Searcher:
    """A search of that kind in its state, with all that it was told still missing."""
    from esgroup.search.space_searcher import SpaceSearcher

    spaces.register_all()
    search = SpaceSearcher.__new__(SpaceSearcher)
    strategy: Any = objects.build(entry(header, STRATEGY, dict), arrays)
    if not isinstance(strategy, Strategy):
        raise CheckpointError(f"the header's strategy must be one, got {type(strategy).__name__}")
    search.strategy, first = strategy, strategy.start()
    shapes = {name: value.shape for name, value in first._asdict().items()}
    search._state = type(first)(**{name: array(arrays, f"state/{name}", shape) for name, shape in shapes.items()})
    search._first_stds = array(arrays, "first_stds", search.shape)
    return search


def asked_arrays(name: str, asked: Asked) -> Arrays:
    """Points that are out."""
    local: Any = asked.generation
    return {f"{name}/x": asked.x, f"{name}/local": local}


def asked(search: Any, name: str, nit: Any, arrays: Arrays) -> Asked:
    """And back."""
    x = checks.read_only(array(arrays, f"{name}/x", (None, *search.shape)))
    local: Any = array(arrays, f"{name}/local", (len(x), None))
    return Asked(x, local, checks.whole_number(f"{name} in the header", nit, most=search.nit))


def width(search: Searcher) -> None:
    """The number of local coordinates of a point: any."""
