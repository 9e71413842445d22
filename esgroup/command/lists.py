"""Options of `esgroup run` that are lists: numbers, bounds, exceptions, and variables."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from esgroup.space import Space


def numbers(name: str, text: str) -> list[float]:
    """Parse numbers separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers separated by commas, such as 0.5,1,-2, got {text!r}") from None


def bounds(text: str) -> tuple[float, ...] | list[tuple[float, ...]]:
    """Parse LOW,HIGH for all variables, or one pair for each, separated by semicolons."""
    pairs = [tuple(numbers("--bounds", pair)) for pair in text.split(";")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--bounds must be LOW,HIGH, or one pair per variable, such as 0,1;-5,5, got {text!r}")
    return pairs[0] if len(pairs) == 1 else pairs


def exceptions(text: str) -> Literal["raise", "nan"] | tuple[type[Exception], ...]:
    """Parse "raise", "nan", or names of Python's exceptions, separated by commas."""
    if text in ("raise", "nan"):
        return "raise" if text == "raise" else "nan"
    kinds = [getattr(builtins, word.strip(), None) for word in text.split(",")]
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        wanted = "'raise', 'nan' or names of exceptions, such as ValueError,ArithmeticError"
        raise ValueError(f"--on-error must be {wanted}, got {text!r}")
    return tuple(kinds)  # type: ignore[arg-type]


def integer(text: str) -> Literal[True] | list[int]:
    """Parse "all", or the indices of the integer variables."""
    if text.strip() == "all":
        return True
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--integer must be 'all' or indices from 0, such as 0,2, got {text!r}") from None


def fixed(text: str, x0: Sequence[float]) -> dict[int, Any]:
    """Parse variables that stay at the start (INDEX) or at a value (INDEX=VALUE), separated by commas."""
    values: dict[int, Any] = {}
    for word in text.split(","):
        index, equals, value = word.partition("=")
        try:
            at, known = int(index), float(value) if equals else None
        except ValueError:
            wanted = "INDEX or INDEX=VALUE with indices from 0, such as 1=0.5,3"
            raise ValueError(f"--fixed must be {wanted}, got {text!r}") from None
        if at in values:
            raise ValueError(f"--fixed must name a variable once, got variable {at} twice in {text!r}")
        if not -len(x0) <= at < len(x0):
            raise ValueError(f"--fixed must name variables from 0 to {len(x0) - 1}, got {at} in {text!r}")
        values[at] = x0[at] if known is None else known
    return values


def fixed_by_name(text: str, space: Space) -> dict[str, Any]:
    """Parse parameters that stay at their start (NAME) or at a value (NAME=VALUE); options are given as text."""
    values: dict[str, Any] = {}
    for word in text.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if name not in space.names:
            raise ValueError(f"--fixed must be NAME or NAME=VALUE with names of the space, got {name!r} in {text!r}")
        if name in values:
            raise ValueError(f"--fixed must name a parameter once, got {name!r} twice in {text!r}")
        if not equals:
            values[name] = space.value_at_start(name)
            continue
        options = getattr(space[name], "options", None)
        if options is not None:
            known = {str(option): option for option in options}
            if value not in known:
                raise ValueError(f"--fixed must set {name} to {' or '.join(known)}, got {value!r}")
            values[name] = known[value]
        else:
            values[name] = numbers(f"--fixed {name}", value)[0]
    return values
