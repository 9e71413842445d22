"""Finding a problem by name, in the entry-point group "esgroup.problems" or as MODULE:FUNCTION."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array

if TYPE_CHECKING:
    from esgroup.space import Space

GROUP = "esgroup.problems"
SPACES = ("vector", "spd", "matrix", "scalar")
_SURELY_FITS = 10**7  # variables
_VECTORS = 4  # least number in any search: start, mean, standard deviations, a point
# as in pyproject.toml, for a source tree that is used without being installed
_ZOO = EntryPoint(name="zoo", value="esgroup_problems:PROBLEMS", group=GROUP)


@dataclass(frozen=True, eq=False)
class Task:
    """What a search needs to know about a problem; None means unknown.

    A problem may have attributes with the names of these fields.

    Attributes
    ----------
    name
        Name of the problem.
    fun
        The function to minimize, of one point.
    x0
        Where to start: a vector, or a matrix in the spaces of matrices.
    sigma0
        Initial step size: a number, or one per variable.
    bounds
        Bounds as `minimize` takes them.
    batch
        Values of several points at once.
    minimum
        The minimum of the function.
    space
        "vector", "spd", "matrix" or "scalar".
    targets
        Values worth reaching, if the minimum is unknown.
    gradient, hessian_product, hessian_diagonal
        Derivatives at a point; `hessian_product(x, v)` is the Hessian times one vector.
    noiseless
        Values of several points without noise.
    start_space
        The `Space` of a function of named parameters.
    start_box, start
        How random starts are drawn: uniformly in a box (low, high), or by a function of a generator.
    constraints
        A function of one point that returns a vector g; the point is feasible if g <= 0.
    integer
        Indices of the integer variables.
    scaled
        How the function differs by a factor from the usual one of this name, such as "divided by d".
    """

    name: str
    fun: Callable[[Array], float]
    x0: Array
    sigma0: float | Array | None = None
    bounds: Any = None
    batch: Callable[[Array], Array] | None = None
    minimum: float | None = None
    space: str = "vector"
    targets: tuple[float, ...] = ()
    gradient: Callable[[Array], Array] | None = None
    hessian_product: Callable[[Array, Array], Array] | None = None
    hessian_diagonal: Callable[[Array], Array] | None = None
    noiseless: Callable[[Array], Array] | None = None
    start_space: Space | None = None
    start_box: tuple[float, float] | None = None
    start: Callable[[np.random.Generator], Array] | None = None
    constraints: Callable[[Array], Array] | None = None
    integer: tuple[int, ...] = ()
    scaled: str = ""


# attributes that a problem may lack
_OPTIONAL = tuple(field.name for field in fields(Task) if field.default is not MISSING)


class KnownProblems(NamedTuple):
    """Makers of problems by name, and the reasons why some entry points could not be loaded."""

    makers: dict[str, Callable[..., Any]]
    failures: dict[str, str]


def find(
    name: str, dim: int | None = None, x0: Sequence[float] | Array | None = None, *, seed: int | None = None
) -> Task:
    """Return the problem with this name.

    Parameters
    ----------
    name
        A name of `esgroup list`, or MODULE:FUNCTION.
    dim
        Dimension; by default that of x0, or the problem's own. MODULE:FUNCTION needs `dim` or `x0`.
    x0
        Where to start; by default the problem's own start, and 0 for MODULE:FUNCTION.
    seed
        Chooses the instance, if the problem has several.

    Raises
    ------
    ValueError
        If there is no such problem, or dim or x0 does not fit it.
    """
    if dim is not None and dim > _SURELY_FITS:
        _check_memory(dim)
    if x0 is not None:
        x0 = checks.real_array("x0", x0, (None,))
        dim = len(x0) if dim is None else dim
    if ":" not in name:
        task = _from_table(name, dim, seed)
    elif dim is None:
        raise ValueError(f"{name} needs the number of variables (--dim) or a start (--x0)")
    else:
        task = Task(name, load_function(name), np.zeros(checks.whole_number("dim", dim, least=1)))
    if x0 is None:
        return task
    if task.x0.ndim > 1:
        raise ValueError(f"x0 is for vectors: {name} is a function of matrices, and has its own start")
    return replace(task, x0=checks.real_array("x0", x0, (len(task.x0),)))


def _check_memory(dim: int) -> None:
    """Raise ValueError if a search over so many variables needs too much memory."""
    from esgroup.search.arguments import MEMORY_SHARE, machine_memory  # slow to import and rarely needed

    needed, memory = 8 * _VECTORS * dim, machine_memory()
    if needed > MEMORY_SHARE * memory:
        most = f"more than {MEMORY_SHARE:.0%} of this machine's {memory / 2**30:,.1f} GiB"
        raise ValueError(f"dim must be smaller: {dim:,} variables need {needed / 2**30:,.1f} GiB or more, {most}")


@cache
def known() -> KnownProblems:
    """Return all problems of installed packages.

    An entry point of the group is a mapping from names to makers, or one maker under its own name. A maker takes the
    dimension, or nothing for the default, and `seed=` if it has several instances. It returns an object with `fun`,
    `x0` and any of the other fields of a Task. An entry point that cannot be loaded does not hide the others.
    """
    makers: dict[str, Callable[..., Any]] = {}
    failures = {}
    for entry in _entries():
        try:
            loaded = entry.load()
            makers.update(loaded if isinstance(loaded, Mapping) else {entry.name: loaded})
        except Exception as error:
            failures[f"{entry.name} = {entry.value}"] = f"{type(error).__name__}: {error}"
    return KnownProblems(makers, failures)


def summary(maker: Callable[..., Any]) -> str:
    """Return the first line of a maker's docstring."""
    return (maker.__doc__ or "").strip().partition("\n")[0]


def _entries() -> list[EntryPoint]:
    try:
        distribution("esgroup")
    except PackageNotFoundError:
        return [_ZOO, *entry_points(group=GROUP)]
    return list(entry_points(group=GROUP))


def _from_table(name: str, dim: int | None, seed: int | None) -> Task:
    makers, failures = known()
    if name not in makers:
        missing = "".join(f"; {entry} could not be loaded ({why})" for entry, why in failures.items())
        listed = ", ".join(families(makers)) or "none installed"
        hint = near(name, makers)
        raise ValueError(f"unknown problem {name!r}{hint}: the problems are {listed}, or MODULE:FUNCTION{missing}")
    maker = makers[name]
    arguments = () if dim is None else (dim,)
    seeded = {"seed": seed} if seed is not None and "seed" in signature(maker).parameters else {}
    made = maker(*arguments, **seeded)
    known_of_it = {field: getattr(made, field) for field in _OPTIONAL if hasattr(made, field)}
    space = known_of_it.get("space", "vector")
    if space not in SPACES:
        raise ValueError(f"the space of {name} must be one of {', '.join(SPACES)}, got {space!r}")
    shape = {"spd": (dim, dim), "matrix": (dim, None)}.get(space, (dim,))
    return Task(name, made.fun, checks.real_array("x0", made.x0, shape), **known_of_it)


def near(name: str, names: Iterable[str], n: int = 1) -> str:
    """Return a hint with similar names, or an empty string."""
    by_lower = {known.lower(): known for known in names}
    alike = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=n)]
    return f" (did you mean {' or '.join(map(repr, alike))}?)" if alike else ""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Group numbered names under a common heading: f1, f2 and f3 become "f1 ... f3"; others stay single."""
    by_stem: dict[str, list[str]] = {}
    for name in names:
        by_stem.setdefault(name.rstrip("0123456789"), []).append(name)
    return {f"{group[0]} ... {group[-1]}" if len(group) > 2 else ", ".join(group): group for group in by_stem.values()}


# ---- MODULE:FUNCTION --------------------------------------------------------------------------------------------


def load_function(name: str) -> Callable[[Array], float]:
    """Import the function that MODULE:FUNCTION names."""
    function = load(name)
    if not callable(function):
        raise ValueError(f"{name} must be a function of a point, got {type(function).__name__} {function!r}")
    return function


def load(name: str) -> Any:
    """Import what MODULE:NAME names; modules are also looked for in the current folder."""
    module_name, _, inner = name.partition(":")
    if not module_name or not inner:
        raise ValueError(f"name of a function must have the form MODULE:FUNCTION, got {name!r}")
    module = _imported(module_name)
    try:
        return attrgetter(inner)(module)
    except AttributeError:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise ValueError(f"module {module_name!r} has no function {inner!r}{near(inner, names)}") from None


def _imported(name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise ValueError(_why(name, error)) from error  # the module exists but imports a missing one
        hint = f" (write {name.removesuffix('.py')!r}, without .py)" if name.endswith(".py") else ""
        raise ValueError(f"there is no module {name!r} in {here} or among the installed packages{hint}") from None
    except (Exception, SystemExit) as error:
        raise ValueError(_why(name, error)) from error


def _why(name: str, error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    at = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"  # a SyntaxError has it
    return f"module {name!r} could not be imported: {type(error).__name__}: {error}{at}"
