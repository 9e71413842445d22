"""A space of named parameters: its rows and dicts, and which parameters are active."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.space import parameters as one_by_one
from esgroup.space.parameters import Angle, Choice, Columns, Integer, Mask

Indices = NDArray[np.int64]


class Condition(NamedTuple):
    """A parameter is active only if another one has certain values."""

    parent: int
    column: int  # of the parent, in a row
    values: Array  # as a row has them


@checks.explained
@dataclass(frozen=True)
class Space:
    """Named parameters. Pass a Space as the start to `Searcher` or `minimize`; points are then dicts.

    Parameters
    ----------
    parameters
        A mapping of names to `Real`, `Integer`, `Choice` and `Angle`.

    Raises
    ------
    ValueError, TypeError
        If a parameter is invalid; the message names it.

    Examples
    --------
    >>> from esgroup import Choice, Integer, Real, Space
    >>> x = Real(0, 1, when={"kind": "b"})
    >>> space = Space({"n": Integer(1, 9), "kind": Choice("a", "b"), "x": x})
    >>> space.names
    ('n', 'kind', 'x')
    """

    parameters: Any  # stored as ((name, parameter), ...)

    def __post_init__(self) -> None:
        given = self.parameters
        if isinstance(given, Mapping):
            given = given.items()
        elif not isinstance(given, (tuple, list)) or not all(isinstance(p, tuple) and len(p) == 2 for p in given):
            wanted = "a dict of names and parameters, such as {'x': Real(0, 1)}"
            raise TypeError(f"parameters must be {wanted}, got {checks.shown(given)}")
        object.__setattr__(self, "parameters", tuple((name, parameter) for name, parameter in given))
        if not self.parameters:
            raise ValueError("parameters must have at least one parameter, got none")
        for name, parameter in self.parameters:
            if not isinstance(name, str):
                raise TypeError(f"parameters must have names that are strings, got {name!r}")
            one_by_one.check(name, parameter)
        _ = self._order, self.columns  # which check conditions and numbers

    # ---- what there is ------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(name for name, _ in self.parameters)

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        return dict(self.parameters)

    def __getitem__(self, name: str) -> Any:
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"Space({dict(self.parameters)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"parameters": self.parameters}  # the rest is derived from it

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each parameter is in a row."""
        ends = np.cumsum([parameter.size for _, parameter in self.parameters]).tolist()
        return tuple(slice(end - one.size, end) for end, (_, one) in zip(ends, self.parameters, strict=True))

    @cached_property
    def dim(self) -> int:
        """Entries of a row."""
        return int(self.slices[-1].stop)

    @cached_property
    def owners(self) -> Indices:
        """The parameter to which each entry of a row belongs, (dim,)."""
        return np.repeat(np.arange(len(self)), [parameter.size for _, parameter in self.parameters])

    @cached_property
    def is_choice(self) -> Mask:
        """Which entries of a row are indices of options, (dim,)."""
        return np.array([isinstance(parameter, Choice) for _, parameter in self.parameters])[self.owners]

    @cached_property
    def labels(self) -> list[str]:
        """A name for every entry of a row: "C", "w[0]", "m[1, 2]"."""
        return [
            name if parameter.dimensions is None else f"{name}[{', '.join(map(str, at))}]"
            for name, parameter in self.parameters
            for at in np.ndindex(*parameter.dimensions or ())
        ]

    @cached_property
    def columns(self) -> Columns:
        """The numbers, in the order of the entries that are not choices."""
        parts = [one_by_one.columns_of(name, one) for name, one in self.parameters if not isinstance(one, Choice)]
        none = one_by_one.columns_of("", Angle()).taken([])  # the right types if there are no numbers
        return Columns(*(np.concatenate(arrays) for arrays in zip(none, *parts, strict=True)))

    @cached_property
    def probabilities(self) -> tuple[tuple[float, ...], ...]:
        """The first probabilities of the options, for each entry of a row that is a choice."""
        return tuple(
            one_by_one.first_chances(parameter)
            for _, parameter in self.parameters
            if isinstance(parameter, Choice)
            for _ in range(parameter.size)
        )

    @cached_property
    def start(self) -> Array:
        """The row of all starts."""
        row = np.empty(self.dim)
        row[~self.is_choice] = self.columns.rows(self.columns.start[None])[0]
        row[self.is_choice] = [int(np.argmax(chances)) for chances in self.probabilities]
        return checks.read_only(row)

    # ---- which parameters are active ----------------------------------------------------------------------------

    @cached_property
    def _conditions(self) -> tuple[tuple[Condition, ...], ...]:
        """The conditions of every parameter."""
        found = []
        for name, parameter in self.parameters:
            when = () if parameter.when is None else parameter.when
            if not isinstance(when, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in when):
                raise TypeError(f"when of {name!r} must be a mapping of names to values, got {when!r}")
            found.append(tuple(self._condition(name, *pair) for pair in when))
        return tuple(found)

    def _condition(self, name: str, other: Any, wanted: Any) -> Condition:
        if other not in self._by_name:
            raise ValueError(f"when of {name!r} must name parameters of the space, got {other!r}")
        if other == name:
            raise ValueError(f"when of {name!r} must not depend on itself")
        parent = self._by_name[other]
        if not isinstance(parent, (Choice, Integer)) or parent.dimensions is not None:
            what = f"{parent.noun}{'' if parent.dimensions is None else ' with a shape'}"
            raise ValueError(f"when of {name!r} must name a single choice or integer, but {other!r} is {what}")
        is_option = isinstance(parent, Choice) and one_by_one.place_of(parent, wanted) is not None
        values = list(wanted) if isinstance(wanted, tuple) and not is_option else [wanted]
        if not values:
            raise ValueError(f"when of {name!r} must have a value of {other!r}, got none")
        index = self.names.index(other)
        before = f"when of {name!r} must have values of {other!r}:"
        entries = [one_by_one.entry(before, parent, value) for value in values]
        return Condition(index, self.slices[index].start, np.array(entries))

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """Parameters in an order in which each one comes after those it depends on."""
        parents = {i: [condition.parent for condition in own] for i, own in enumerate(self._conditions)}
        try:
            return tuple(TopologicalSorter(parents).static_order())
        except CycleError as error:
            names = ", ".join(repr(self.names[i]) for i in sorted(set(error.args[1])))
            raise ValueError(f"when conditions must not be circular, but those of {names} are") from None

    def active(self, rows: Array) -> Mask:
        """Which entries of rows (n, dim) belong to parameters that are active there."""
        if not self.is_conditional:
            return np.ones((len(rows), self.dim), dtype=bool)
        on = np.ones((len(rows), len(self)), dtype=bool)
        for i in self._order:
            for parent, column, values in self._conditions[i]:
                on[:, i] &= on[:, parent] & (rows[:, column, None] == values).any(axis=1)
        return on[:, self.owners]

    @cached_property
    def conditional(self) -> Mask:
        """Which entries of a row belong to parameters that can be inactive, (dim,)."""
        return np.array([bool(own) for own in self._conditions])[self.owners]

    @cached_property
    def is_conditional(self) -> bool:
        """Whether a parameter can be inactive."""
        return any(self._conditions)

    def reachable(self, row: Array, free: Mask) -> Mask:
        """Which entries can be active at all if only the `free` ones can differ from a row, (dim,)."""
        on = np.ones(len(self), dtype=bool)
        for i in self._order:
            for parent, column, values in self._conditions[i]:
                on[i] &= bool(on[parent] and (free[column] or row[column] in values))
        return on[self.owners]

    # ---- dicts and rows -----------------------------------------------------------------------------------------

    def dicts(self, rows: Array) -> list[dict[str, Any]]:
        """The dicts of rows, without inactive parameters."""
        found: list[dict[str, Any]] = [{} for _ in rows]
        active = self.active(rows)
        for (name, parameter), part in zip(self.parameters, self.slices, strict=True):
            on = active[:, part.start]
            for point, value in zip(compress(found, on), one_by_one.values_of(parameter, rows[on, part]), strict=True):
                point[name] = value
        return found

    def rows(self, name: str, points: Any, canonical: Array | None = None) -> Array:
        """The rows of dicts; ValueError if one is not a point of the space. `name` is the name of the argument.

        Inactive entries are taken from the row `canonical`, by default `start`.
        """
        if isinstance(points, Mapping):
            return self._row(name, points, canonical)[None]
        if isinstance(points, (str, bytes)) or not isinstance(points, Iterable):
            raise TypeError(f"{name} must be dicts of parameters, got {points!r}")
        found = [self._row(f"{name}[{i}]", point, canonical) for i, point in enumerate(points)]
        return np.array(found).reshape(-1, self.dim)

    def _row(self, name: str, point: Any, canonical: Array | None) -> Array:
        if not isinstance(point, Mapping):
            raise TypeError(f"{name} must be a dict of parameters, got {point!r}")
        for key in point:
            if key not in self._by_name:
                raise ValueError(f"{name} must have the names of the space, got {key!r}")
        row = np.array(self.start if canonical is None else canonical)
        for i, (key, parameter) in enumerate(self.parameters):
            if key in point:
                row[self.slices[i]] = one_by_one.entries(f"{name}[{key!r}] must be", parameter, point[key])
        on = self.active(row[None])[0]
        for key, part in zip(self.names, self.slices, strict=True):
            if on[part.start] and key not in point:
                raise ValueError(f"{name} must have all active parameters, but {key!r} is missing")
            if not on[part.start] and key in point:
                wanted = " and ".join(f"{other!r} is {value!r}" for other, value in self._by_name[key].when or ())
                raise ValueError(f"{name} must not have {key!r}, which is active only where {wanted}")
        return row

    def place(self, what: str, name: Any) -> slice:
        """Where a parameter is in a row; a ValueError that begins with `what` if there is none with this name."""
        if name not in self._by_name:
            raise ValueError(f"{what} must have names of the space, got {name!r}")
        return self.slices[self.names.index(name)]

    def entries(self, what: str, name: str, value: Any) -> Any:
        """The entries of a row for the value of a parameter."""
        return one_by_one.entries(f"{what}[{name!r}] must be", self._by_name[name], value)

    def value_at_start(self, name: str) -> Any:
        """The value of a parameter where the search starts, whether or not it is active there."""
        return one_by_one.values_of(self._by_name[name], self.start[None, self.place("name", name)])[0]

    @cached_property
    def varies(self) -> Mask:
        """Which entries of a row have more than one possible value, (dim,)."""
        on = np.ones(self.dim, dtype=bool)
        on[self.is_choice] = [len(chances) > 1 for chances in self.probabilities]
        on[~self.is_choice] = self.columns.least < self.columns.most
        return on

    def by_name(self, entries: Array) -> dict[str, Any]:
        """Numbers for the entries of a row (dim,), as a dict of floats and arrays with all names."""
        parts = zip(self.parameters, self.slices, strict=True)
        return {name: one_by_one.shaped(parameter, entries[part]) for (name, parameter), part in parts}
