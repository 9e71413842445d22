"""The names of the problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from esgroup.problem_registry import near
from esgroup_problems.problem import Problem

_Maker = TypeVar("_Maker", bound=Callable[..., Problem])

#: Name to the function that makes the problem for a dimension (or, without argument, for a usual one). The command
#: finds this table through the entry-point group "esgroup.problems", and other people's tables in the same way.
PROBLEMS: dict[str, Callable[..., Problem]] = {}


def register(maker: _Maker) -> _Maker:
    """Enter a function that makes a problem under its own name; used as a decorator."""
    name = maker.__name__
    if name in PROBLEMS:
        raise ValueError(f"the problem {name!r} is registered twice")
    PROBLEMS[name] = maker
    return maker


def get(name: str, dim: int | None = None) -> Problem:
    """The problem of that name, in `dim` dimensions if they are given."""
    if name not in PROBLEMS:
        raise ValueError(f"unknown problem {name!r}{near(str(name), PROBLEMS)}: the problems are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]() if dim is None else PROBLEMS[name](dim)
