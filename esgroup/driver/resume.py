"""The checkpoint of `minimize`: the file of its current search, with restarts and the origin in the header."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from esgroup.domains import Box, Named
from esgroup.driver.origin import CheckpointFile, origin_difference, origin_of_call, origin_of_file
from esgroup.driver.unfinished import Unfinished
from esgroup.files import npz as files
from esgroup.files.autosave import CheckpointWriter, Contents
from esgroup.search import snapshot
from esgroup.search.models import has_model, unassisted
from esgroup.search.searcher import Searcher
from esgroup.strategies.base import Strategy
from esgroup.strategies.in_domain import innermost
from esgroup.strategies.product import ProductSearch
from esgroup.strategies.vector import VectorSearch


class SearchWriter(CheckpointWriter[Searcher]):
    """Writes the checkpoint of a search.

    Parameters
    ----------
    path
        The file.
    given
        The arguments of `minimize`. The file records how its search began, and `resume` refuses a different start.
    unfinished
        The known part of its last generation.
    """

    def __init__(self, path: files.Path, given: Mapping[str, Any], unfinished: Unfinished) -> None:
        super().__init__(path)
        self._given, self._unfinished = given, unfinished
        self._origin = origin_of_call(path, self._given)

    def contents(self, kept: Searcher) -> Contents:
        """Return the parts of the search, with values of an unfinished generation and the origin in the header."""
        header, arrays = snapshot.to_file(kept)
        more = {"unfinished": self._unfinished.to_json(), "origin": self._origin._asdict()}
        return snapshot.KIND, header | more, arrays

    def resume(self) -> None:
        """Replace the new search with the one in the file."""
        path, given = self._path, self._unfinished.search
        with files.reading(path, snapshot.KIND) as (header, arrays):
            search = snapshot.from_file(Searcher, header, arrays)
            origin = origin_of_file(header)
            not_given = path.not_given if isinstance(path, CheckpointFile) else ()
            difference = (
                origin_difference(origin._replace(arguments={}), self._origin)  # the problem first
                or self._difference(search, given)
                or given.ranking.difference(search.ranking)
                or self._popsize_difference(search, given)
                or origin_difference(origin, self._origin, not_given)
            )
            if difference is None:
                _continue(search, given)
                self._unfinished.restore(search, header.get("unfinished"))
        if difference is not None:
            raise ValueError(f"the checkpoint {os.fspath(path)!r} must be of the same search, but {difference}")
        problem = self._origin.problem if origin.problem is None else origin.problem
        self._origin = origin._replace(problem=problem)

    def _difference(self, saved: Searcher, given: Searcher) -> str | None:
        """Compare the strategies of the first runs; with model="auto" the file decides whether there is a model."""
        first, other = saved.strategy if saved.runs is None else saved.runs.first, given.strategy
        if self._given.get("model") == "auto":
            first, other = unassisted(first), unassisted(other)
        return next(_differences(first, other), None)

    def _popsize_difference(self, saved: Searcher, given: Searcher) -> str | None:
        """Compare the popsize of the first run, if given: restarts choose the popsize of later runs."""
        if self._given.get("popsize") is None:
            return None
        first = saved.popsize if saved.runs is None else saved.runs.schedule.popsize
        return None if first == given.popsize else f"its popsize is {first}, not {given.popsize}"


def _continue(saved: Searcher, given: Searcher) -> None:
    """Give a saved search what files do not hold, and replace its limits where new ones are set."""
    saved.rules = given.rules
    limits = {name: new for name, new in given.limits._asdict().items() if new is not None}
    saved.limits = saved.limits._replace(**limits)
    if saved.runs is None:
        saved.runs = given.runs
    else:
        saved.runs.restarts = None if given.runs is None else given.runs.restarts
        saved.runs.first = given.strategy


def _size(strategy: Strategy) -> str:
    if isinstance(strategy.domain, Named):
        return f"{len(strategy.domain.space)} named parameters"
    return " x ".join(map(str, strategy.shape)) + (" variables" if len(strategy.shape) == 1 else " entries")


def _differences(saved: Strategy, given: Strategy) -> Iterator[str]:
    """Mismatches that prevent a resume; limits may differ, and origins are compared elsewhere.

    Each one may be meaningless if there is an earlier one: use only the first.
    """
    modeled = has_model(saved), has_model(given)
    saved, given = unassisted(saved), unassisted(given)
    if _kind(saved) != _kind(given):
        theirs, ours = (f"{_size(one)}, {one.traits.structure}" for one in (saved, given))
        if theirs == ours:
            theirs, ours = (f"{_size(one)} as a {type(innermost(one)).__name__}" for one in (saved, given))
        yield f"it searches over {theirs}, not over {ours}"
    if saved.shape != given.shape:
        yield f"it has {_size(saved)} and x0 has {_size(given)}"
    if modeled == (True, False):
        yield "it has a quadratic model: resume it with model='quadratic'"
    if modeled == (False, True):
        yield "it has no quadratic model: resume it with model=None"
    if isinstance(saved.domain, Named) and isinstance(given.domain, Named):
        yield from _differences_of_spaces(saved.domain, given.domain)
    else:
        boxes = (one.domain if isinstance(one.domain, Box) else None for one in (saved, given))
        yield from _differences_of_boxes(*boxes, dim=math.prod(saved.shape))
    vectors = _vectors(saved), _vectors(given)
    if vectors[0] is not None and vectors[1] is not None:
        yield from _differences_of_vectors(vectors[0], vectors[1])
    elif snapshot.described(saved)[0] != snapshot.described(given)[0]:
        if saved.traits.structure != given.traits.structure:
            yield f"its distribution is {saved.traits.structure}, not {given.traits.structure}"
        yield f"its {saved.traits.structure} has different parameters, or its popsize is not {given.popsize}"


def _kind(strategy: Strategy) -> tuple[bool, type[Strategy]]:
    """The space and the kind of a search; a search over numbers is the same kind with or without choices."""
    named = isinstance(strategy.domain, Named)
    return named, VectorSearch if named else type(innermost(strategy))


def _vectors(strategy: Strategy) -> VectorSearch | None:
    """The search over vectors in a strategy, None if there is none."""
    inner = innermost(strategy)
    inner = innermost(inner.numbers) if isinstance(inner, ProductSearch) else inner
    return inner if isinstance(inner, VectorSearch) else None


def _differences_of_spaces(saved: Named, given: Named) -> Iterator[str]:
    if saved.space.names != given.space.names:
        yield f"its parameters are {', '.join(saved.space)}, not {', '.join(given.space)}"
    for name in saved.space:
        if saved.space[name] != given.space[name]:
            yield f"its parameter {name!r} is {saved.space[name]}, not {given.space[name]}"
    fixed = zip(saved.free, saved.row, strict=True), zip(given.free, given.row, strict=True)
    for label, theirs, ours in zip(saved.labels, *fixed, strict=True):
        if theirs != ours:
            yield f"its fixed parameters differ, in {label!r}"


def _differences_of_boxes(saved: Box | None, given: Box | None, *, dim: int) -> Iterator[str]:
    """How two boxes differ, and in which variable; None stands for a box without bounds."""
    for name, none in (("lower", -math.inf), ("upper", math.inf), ("fixed", False), ("integer", False)):
        theirs, ours = (np.full(dim, none) if box is None else getattr(box, name) for box in (saved, given))
        for j in np.flatnonzero(theirs != ours):
            which = f"its variable {j} is {'not ' * bool(ours[j])}{name}"
            bounds = f"its {name} bounds differ: that of variable {j} is {theirs[j]}, not {ours[j]}"
            yield which if name in ("fixed", "integer") else bounds


def _differences_of_vectors(saved: VectorSearch, given: VectorSearch) -> Iterator[str]:
    if saved.group != given.group:
        yield f"its structure is {saved.group}, not {given.group}"
    for one in fields(saved.options):
        was, now = getattr(saved.options, one.name), getattr(given.options, one.name)
        if one.compare and was != now:
            yield f"its {one.name} is {was!r}, not {now!r}"
