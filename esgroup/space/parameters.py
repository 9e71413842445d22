"""The kinds of parameters, and the functions for a single one: checks, values as entries of a row, coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array

Mask = NDArray[np.bool_]
Shape = int | Sequence[int] | None

TURN = 2 * math.pi
_SHARE = 0.25  # of the range of u between two bounds: the first standard deviation by default, as for any search
_OF_START = 0.3  # of the largest |start|: the first standard deviation of a number without a range
_CHANCE = 0.5  # initial probability of all options except the start
_MOST_INTEGER = 2**53  # up to which every integer is a float64


# ---- kinds -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """The base of all parameters. A `Space` checks them, so that errors can name them."""

    noun: ClassVar[str] = "a parameter"

    def __post_init__(self) -> None:
        for name, plain in (("start", _plain), ("width", _plain), ("shape", _plain), ("when", _pairs)):
            object.__setattr__(self, name, plain(getattr(self, name)))

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """The shape of its values, None for single values."""
        shape: Any = getattr(self, "shape", None)
        return (shape,) if isinstance(shape, int) else shape

    @property
    def size(self) -> int:
        """How many entries it has in a row."""
        return 1 if self.dimensions is None else math.prod(self.dimensions)


@dataclass(frozen=True)
class _Number(Parameter):
    """The base of real numbers and integers."""

    lower: float | None = None
    upper: float | None = None
    log: bool = False
    start: Any = None
    width: Any = None
    shape: Shape = None
    when: Any = None


@checks.explained
@dataclass(frozen=True)
class Real(_Number):
    """A real number, or an array of them.

    Parameters
    ----------
    lower, upper
        The bounds; None for no bound.
    log
        Whether to search on a logarithmic scale; the bounds must then be positive.
    start
        Where the search starts; by default the middle of the bounds (of their logarithms), or 0 if a bound is missing.
    width
        First standard deviation; with log=True, of the natural logarithm, so that 0.7 means a factor of 2. By default a
        quarter of the range between the bounds; if one is missing, 0.3 |start|, or 1 with log=True or if start is 0.
    shape
        The length or the shape of an array of such numbers, which all have the same bounds.
    when
        The values of other parameters for which this one is active: {"kernel": "rbf"} or {"kernel": ("rbf", "poly")}.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup import Real
    >>> rate = Real(1e-5, 1.0, log=True)
    >>> space = esgroup.Space({"rate": rate, "w": Real(-1, 1, shape=3)})
    >>> esgroup.Searcher(space, rng=1).ask()[0].keys()
    dict_keys(['rate', 'w'])
    """

    noun: ClassVar[str] = "a real number"


@checks.explained
@dataclass(frozen=True)
class Integer(_Number):
    """An integer, or an array of integers.

    Parameters
    ----------
    lower, upper
        The bounds, both inclusive; None for no bound.
    log, start, width, shape, when
        As for `Real`. The width is before rounding, and at least 0.5 by default.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup import Integer
    >>> space = esgroup.Space({"depth": Integer(1, 12)})
    >>> esgroup.minimize(lambda p: (p["depth"] - 7) ** 2, space, max_evals=60, rng=1).x
    {'depth': 7}
    """

    lower: int | None = None
    upper: int | None = None

    noun: ClassVar[str] = "an integer"


@checks.explained
@dataclass(frozen=True)
class Angle(Parameter):
    """An angle in radians, in [0, 2 pi): the search sees that 0 and 2 pi are the same.

    Parameters
    ----------
    start
        Where the search starts, by default at 0.
    width
        First standard deviation in radians, by default pi / 2.
    shape, when
        As for `Real`.

    Examples
    --------
    >>> import math
    >>> import esgroup
    >>> from esgroup import Angle
    >>> space = esgroup.Space({"phi": Angle()})
    >>> f = lambda p: -math.cos(p["phi"] - 6.0)
    >>> res = esgroup.minimize(f, space, max_evals=200, rng=1)
    >>> round(res.x["phi"], 3)
    6.0
    """

    start: Any = None
    width: Any = None
    shape: Shape = None
    when: Any = None

    noun: ClassVar[str] = "an angle"
    lower: ClassVar[None] = None
    upper: ClassVar[None] = None
    log: ClassVar[bool] = False


@checks.explained
@dataclass(frozen=True, init=False)
class Choice(Parameter):
    """One of several options, which may be any hashable objects.

    Parameters
    ----------
    *options
        The options, all different.
    start
        The option that is most likely at first; by default all are equally likely.
    width
        The initial probability of all other options together, between 0 and 1; by default 1/2 if there is a start.
    shape
        The length or the shape of an array (of objects) with an option in each entry.
    when
        As for `Real`.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup import Choice
    >>> space = esgroup.Space({"kernel": Choice("rbf", "poly", "linear")})
    >>> losses = {"rbf": 2.0, "poly": 1.0, "linear": 3.0}
    >>> esgroup.minimize(lambda p: losses[p["kernel"]], space, max_evals=60, rng=1).x
    {'kernel': 'poly'}
    """

    options: tuple[Any, ...]
    start: Any = None
    width: float | None = None
    shape: Shape = None
    when: Any = None

    noun: ClassVar[str] = "a choice"

    def __init__(
        self, *options: Any, start: Any = None, width: float | None = None, shape: Shape = None, when: Any = None
    ) -> None:
        given = {"options": options, "start": start, "width": width, "shape": _plain(shape), "when": _pairs(when)}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @classmethod
    def stored(cls, options: tuple[Any, ...], **others: Any) -> Choice:
        """Return the choice with these fields, given by name, as in a file."""
        return cls(*options, **others)

    @cached_property
    def table(self) -> NDArray[Any]:
        """The options as an array of objects."""
        return np.fromiter(self.options, dtype=object, count=len(self.options))

    @cached_property
    def places(self) -> dict[Any, int]:
        """The index of each option."""
        return {option: i for i, option in enumerate(self.options)}


KINDS = (Real, Integer, Angle, Choice)


def _plain(value: Any) -> Any:
    """Arrays and lists as tuples, and NumPy numbers as Python's, so that parameters can be compared and stored."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return tuple(_plain(part) for part in value) if isinstance(value, (list, tuple)) else value


def _pairs(when: Any) -> Any:
    if not isinstance(when, Mapping):
        return when
    several = (list, set, frozenset)
    return tuple((name, tuple(value) if isinstance(value, several) else value) for name, value in when.items())


class Columns(NamedTuple):
    """The numbers of a space, one entry of a row after the other, in the coordinates u that are searched."""

    start: Array
    width: Array
    lower: Array  # -inf where open
    upper: Array
    integer: Mask  # those that the search rounds: not the logarithmic ones
    log: Mask
    whole: Mask  # integers of both kinds
    angle: Mask
    least: Array  # bounds of the row itself
    most: Array

    def taken(self, among: Any) -> Columns:
        """The columns that an index or a mask selects."""
        return Columns(*(part[among] for part in self))

    def rows(self, u: Array) -> Array:
        """Rows of numbers as users see them, for coordinates u."""
        x = u.copy()
        if self.log.any():
            with np.errstate(over="ignore"):  # where there is no upper bound
                power = np.exp(u[:, self.log])
            power = np.where(self.whole[self.log], np.rint(power), power)
            x[:, self.log] = power.clip(self.least[self.log], self.most[self.log])
        if self.angle.any():
            x[:, self.angle] = wrapped(u[:, self.angle])
        return x

    def coordinates(self, rows: Array, near: Array) -> Array:
        """Coordinates u of rows, with each angle in the turn nearest to the point `near`."""
        u = rows.copy()
        u[:, self.log] = np.log(rows[:, self.log])
        turns = np.rint((near[self.angle] - rows[:, self.angle]) / TURN)
        u[:, self.angle] += TURN * turns
        return u


def wrapped(angles: Array) -> Array:
    """Angles in [0, 2 pi)."""
    turned = np.mod(angles, TURN)
    return np.where(turned < TURN, turned, 0.0)  # the remainder of a tiny negative number is rounded to 2 pi


# ---- one parameter at a time ------------------------------------------------------------------------------------


def spelled(given: Any) -> str:
    """How to write a parameter, or what was given instead of one."""
    if isinstance(given, Parameter):
        named = {one.name: getattr(given, one.name) for one in fields(given) if one.name != "options"}
        defaults = {one.name: one.default for one in fields(given)}
        written = [f"{name}={value!r}" for name, value in named.items() if value is not defaults[name]]
        return f"{type(given).__name__}({', '.join([*map(repr, getattr(given, 'options', ())), *written])})"
    if isinstance(given, bool):
        return "Choice(True, False)"
    if isinstance(given, (int, float)):
        return f"Real(start={given!r})"
    if isinstance(given, range) and len(given) > 1 and given.step == 1:
        return f"Integer({given[0]}, {given[-1]})"
    options = list(given) if isinstance(given, (list, tuple, set, frozenset, range)) else []
    numbers = all(isinstance(option, (int, float)) and not isinstance(option, bool) for option in options)
    if len(options) == 2 and numbers and options[0] < options[1]:
        return f"Real({options[0]!r}, {options[1]!r})"
    return f"Choice({', '.join(map(repr, options))})" if options else "Real(0, 1)"


def place_of(choice: Choice, value: Any) -> int | None:
    """The index of an option; None if there is no such option."""
    try:
        return choice.places.get(value)
    except TypeError:  # it cannot be hashed
        return None


def check(name: str, parameter: Any) -> None:
    """Refuse an invalid parameter; `columns_of` checks numbers further."""
    if not isinstance(parameter, KINDS):
        wanted = "a Real, Integer, Choice or Angle"
        raise TypeError(f"the parameter {name!r} must be {wanted}, got {parameter!r}: write {spelled(parameter)}")
    shape = parameter.dimensions
    if shape is not None:
        sizes = shape if isinstance(shape, tuple) else (None,)
        if not sizes or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes):
            got = parameter.shape
            raise ValueError(f"shape of {name!r} must be a positive integer or a tuple of them, got {got!r}")
    if isinstance(parameter, Choice):
        _check_options(name, parameter)


def _check_options(name: str, choice: Choice) -> None:
    if not choice.options:
        raise ValueError(f"the choice {name!r} must have options, got none")
    seen: dict[Any, Any] = {}
    for option in choice.options:
        try:
            again = option in seen
        except TypeError:
            only = len(choice.options) == 1 and isinstance(option, (list, set, dict)) and option
            advice = f": write {spelled(list(option))}" if only else ""
            raise TypeError(f"the options of {name!r} must be hashable, got {option!r}{advice}") from None
        if again or option != option:
            wanted = "differ from each other" if again else "be equal to themselves"
            raise ValueError(f"the options of {name!r} must {wanted}, got {option!r}{' twice' * again}")
        seen[option] = None
    if choice.start is not None and place_of(choice, choice.start) is None:
        raise ValueError(f"start of {name!r} must be one of its options, got {choice.start!r}")
    if choice.width is not None and not 0 < checks.real_number(f"width of {name!r}", choice.width) < 1:
        raise ValueError(f"width of {name!r} must be a probability between 0 and 1, got {choice.width!r}")


def first_chances(choice: Choice) -> tuple[float, ...]:
    number = len(choice.options)
    others = (number - 1) / number
    if choice.start is not None:
        others = min(others, _CHANCE if choice.width is None else choice.width)
    chances = np.full(number, others / max(1, number - 1))
    chances[0 if choice.start is None else choice.places[choice.start]] = 1 - others
    return tuple(chances.tolist())


def _bounds(name: str, parameter: Real | Integer | Angle) -> tuple[float, float]:
    """The bounds as numbers, infinite where open."""
    least, most = -math.inf, math.inf
    if parameter.lower is not None and parameter.lower != -math.inf:
        least = checks.real_number(f"lower of {name!r}", parameter.lower)
    if parameter.upper is not None and parameter.upper != math.inf:
        most = checks.real_number(f"upper of {name!r}", parameter.upper)
    if least > most:
        raise ValueError(f"the bounds of {name!r} must have lower <= upper, got {least:g} and {most:g}")
    if isinstance(parameter, Integer):
        for side, bound in (("lower", least), ("upper", most)):
            if math.isfinite(bound) and (bound != int(bound) or abs(bound) > _MOST_INTEGER):
                raise ValueError(f"{side} of {name!r} must be an integer up to 2^53, got {bound!r}")
    if checks.flag(f"log of {name!r}", parameter.log):
        if isinstance(parameter, Integer):
            least = max(least, 1.0) if parameter.lower is None else least
        if not (least > 0 or parameter.lower is None) or most <= 0:
            raise ValueError(f"the bounds of {name!r} must be positive with log=True, got {least:g} and {most:g}")
        least = max(least, 0.0)
    return least, most


def columns_of(name: str, parameter: Any) -> Columns:
    """The numbers of a parameter in the searched coordinates."""
    size, least, most = parameter.size, *_bounds(name, parameter)
    log, whole, angle = bool(parameter.log), isinstance(parameter, Integer), isinstance(parameter, Angle)
    low, high = least, most
    if log:
        rounding = 0.5 if whole else 0.0
        low, high = (math.log(side) if side > 0 else -math.inf for side in (least - rounding, most + rounding))
    start = _first(name, parameter, least, most, log, whole)
    u = np.log(start) if log else start
    if parameter.width is not None:
        width = _broadcast("width", name, parameter, parameter.width)
        if (width <= 0).any():
            raise ValueError(f"width of {name!r} must be positive, got {parameter.width!r}")
    elif angle:
        width = np.full(size, TURN / 4)
    elif math.isfinite(high - low):
        width = np.full(size, max(_SHARE * (high - low), 0.5 if whole and not log else 0.0))
    else:
        typical = 0.0 if log else _OF_START * float(np.abs(start).max())
        width = np.full(size, max(typical, 0.5) if whole and typical and not log else typical or 1.0)
    same = (low, high, whole and not log, log, whole, angle, least, most)  # for all entries
    return Columns(u, width, *(np.full(size, value) for value in same))


def _broadcast(what: str, name: str, parameter: Any, value: Any) -> Array:
    """One number for every entry of a parameter."""
    shape = parameter.dimensions or ()
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), shape) or not np.isfinite(array).all():
        wanted = "a finite number" if not shape else f"a finite number, or numbers of shape {shape}"
        raise ValueError(f"{what} of {name!r} must be {wanted}, got {value!r}")
    return np.broadcast_to(array.astype(np.float64), shape).reshape(-1).copy()


def _first(name: str, parameter: Any, least: float, most: float, log: bool, whole: bool) -> Array:
    """The start of a number as users see it, one per entry."""
    if parameter.start is not None:
        start = _broadcast("start", name, parameter, parameter.start)
        if ((start < least) | (start > most)).any() or (log and (start <= 0).any()):
            raise ValueError(f"start of {name!r} must be from {least:g} to {most:g}, got {parameter.start!r}")
        if whole and (start != np.rint(start)).any():
            raise ValueError(f"start of {name!r} must be an integer, got {parameter.start!r}")
        return start
    if math.isfinite(most) and math.isfinite(least) and (least > 0 or not log):
        middle = math.sqrt(least) * math.sqrt(most) if log else least + (most - least) / 2
        middle = float(np.clip(math.floor(middle) if whole else middle, least, most))
    elif log or not least <= 0 <= most:
        raise ValueError(f"start of {name!r} must be given, because a bound is missing")
    else:
        middle = 0.0
    return np.full(parameter.size, middle)


def entry(before: str, parameter: Any, value: Any) -> float:
    """A single value as an entry of a row; error messages begin with `before`."""
    if isinstance(parameter, Choice):
        place = place_of(parameter, value)
        if place is None:
            raise ValueError(f"{before} one of {', '.join(map(repr, parameter.options))}, got {value!r}")
        return float(place)
    try:
        number = math.nan if isinstance(value, (bool, np.bool_, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(parameter, Angle):
        if not math.isfinite(number):
            raise ValueError(f"{before} an angle, a finite number, got {value!r}")
        return float(wrapped(np.array(number)))
    least, most = _bounds("", parameter)
    whole = isinstance(parameter, Integer)
    if not math.isfinite(number) or (whole and number != math.floor(number)) or not least <= number <= most:
        raise ValueError(f"{before} {parameter.noun} from {least:g} to {most:g}, got {value!r}")
    return number


def entries(before: str, parameter: Any, value: Any) -> Any:
    """A value as its entries in a row."""
    shape = parameter.dimensions
    if shape is None:
        return entry(before, parameter, value)
    if isinstance(value, np.ndarray):
        array = value
    else:
        array = np.empty(shape, dtype=object)
        try:
            array[...] = value
        except ValueError:
            array = np.empty(0, dtype=object)
    if array.shape != shape or np.ndim(value) == 0:
        raise ValueError(f"{before} an array of shape {shape}, got {value!r}")
    at = before.removesuffix(" must be")
    return [entry(f"{at}[{i}] must be", parameter, part) for i, part in enumerate(array.ravel().tolist())]


def values_of(parameter: Any, entries: Array) -> list[Any]:
    """The entries of several rows, (n, size), as the values that users see."""
    values: NDArray[Any] = entries
    if isinstance(parameter, Choice):
        values = parameter.table[entries.astype(np.int64)]
    elif isinstance(parameter, Integer):
        values = entries.astype(np.int64)
    found: list[Any] = values[:, 0].tolist()
    return found if parameter.dimensions is None else [shaped(parameter, row) for row in values]


def shaped(parameter: Any, values: NDArray[Any]) -> Any:
    """The entries of a row as one value, or as a new read-only array."""
    if parameter.dimensions is None:
        return values.item()
    return checks.read_only(values.reshape(parameter.dimensions).copy())
