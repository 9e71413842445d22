"""Finding a problem by its name: the entry points "esgroup.problems" of what is installed, or MODULE:FUNCTION."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array

GROUP = "esgroup.problems"
# what pyproject.toml registers: for a source tree that is used without being installed
_ZOO = EntryPoint(name="zoo", value="esgroup_problems:PROBLEMS", group=GROUP)


@dataclass(frozen=True, eq=False)
class Task:
    """What a search needs to know of a problem; None is not known."""

    name: str
    fun: Callable[[Array], float]
    x0: Array
    sigma0: float | None = None
    bounds: Any = None
    batch: Callable[[Array], Array] | None = None
    minimum: float | None = None


class Known(NamedTuple):
    """Problems by name, each as the function of the dimension that makes it, and the entry points that failed."""

    makers: dict[str, Callable[..., Any]]
    failures: dict[str, str]


def find(name: str, dim: int | None = None, x0: Sequence[float] | Array | None = None) -> Task:
    """The problem of that name in `dim` dimensions, at its own start or at x0.

    A function from a module needs `dim` or `x0`; it begins at 0 unless x0 is given.
    """
    if x0 is not None:
        x0 = checks.real_array("x0", x0, (None,) if dim is None else (dim,))
        dim = len(x0)
    task = _from_module(name, dim) if ":" in name else _from_table(name, dim)
    return task if x0 is None else replace(task, x0=checks.real_array("x0", x0, (len(task.x0),)))


@cache
def known() -> Known:
    """All problems that installed packages offer.

    An entry point of the group is a mapping from names to makers, or one maker under its own name. A maker takes the
    dimension, or nothing for its usual one, and returns an object with fun, x0 and, if it has them, sigma0, bounds,
    batch and minimum. An entry point that cannot be loaded does not keep the others from being found.
    """
    makers: dict[str, Callable[..., Any]] = {}
    failures = {}
    for entry in _entries():
        try:
            loaded = entry.load()
            makers.update(loaded if isinstance(loaded, Mapping) else {entry.name: loaded})
        except Exception as error:
            failures[f"{entry.name} = {entry.value}"] = f"{type(error).__name__}: {error}"
    return Known(makers, failures)


def summary(maker: Callable[..., Any]) -> str:
    """The first line of a maker's docstring."""
    return (maker.__doc__ or "").strip().partition("\n")[0]


def _entries() -> list[EntryPoint]:
    try:
        distribution("esgroup")
    except PackageNotFoundError:
        return [_ZOO, *entry_points(group=GROUP)]
    return list(entry_points(group=GROUP))


def _from_table(name: str, dim: int | None) -> Task:
    makers, failures = known()
    if name not in makers:
        near = difflib.get_close_matches(name, makers, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        missing = "".join(f"; {entry} could not be loaded ({why})" for entry, why in failures.items())
        listed = ", ".join(makers) or "none installed"
        raise ValueError(f"unknown problem {name!r}{hint}: the problems are {listed}, or MODULE:FUNCTION{missing}")
    made = makers[name]() if dim is None else makers[name](dim)
    optional = {field: getattr(made, field, None) for field in ("sigma0", "bounds", "batch", "minimum")}
    return Task(name, made.fun, checks.real_array("x0", made.x0, (dim,)), **optional)


# ---- MODULE:FUNCTION --------------------------------------------------------------------------------------------


def _from_module(name: str, dim: int | None) -> Task:
    if dim is None:
        raise ValueError(f"{name} needs the number of coordinates (--dim) or a start (--x0)")
    return Task(name, load_function(name), np.zeros(checks.whole_number("dim", dim, least=1)))


def load_function(name: str) -> Callable[[Array], float]:
    """The function that MODULE:FUNCTION names; modules are looked for in the current folder too."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise ValueError(f"a function is written MODULE:FUNCTION, got {name!r}")
    module = _imported(module_name)
    try:
        function = attrgetter(function_name)(module)
    except AttributeError:
        functions = [name for name, value in vars(module).items() if callable(value)]
        near = difflib.get_close_matches(function_name, functions, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"module {module_name!r} has no function {function_name!r}{hint}") from None
    if not callable(function):
        raise ValueError(f"{name} must be a function of a point, got {type(function).__name__} {function!r}")
    found: Callable[[Array], float] = function
    return found


def _imported(name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise ValueError(_why(name, error)) from error  # the module is there, but lacks one of its own
        hint = f" (write {name.removesuffix('.py')!r}, without .py)" if name.endswith(".py") else ""
        raise ValueError(f"there is no module {name!r} in {here} or among the installed ones{hint}") from None
    except Exception as error:
        raise ValueError(_why(name, error)) from error


def _why(name: str, error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    at = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"  # a SyntaxError says where
    return f"module {name!r} could not be imported: {type(error).__name__}: {error}{at}"
