"""The arguments of `esgroup.minimize` as those of `minimize_newton`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from esgroup.newton.method import minimize_newton


def newton_arguments(caller: Callable[..., Any], given: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What was given to `caller`, but for its defaults, and `more`; an error for what only a search has."""
    known = inspect.signature(minimize_newton).parameters
    defaults = {name: parameter.default for name, parameter in inspect.signature(caller).parameters.items()}
    chosen = {name: value for name, value in given.items() if not _is_default(value, defaults[name])}
    for name in chosen:
        if name not in known:
            raise ValueError(f"{name} is an option of searches: leave it out for method='newton'")
    for name in more:
        if name not in known:
            raise TypeError(f"minimize() has no argument {name!r} for method='newton'")
    return {**chosen, **more}


def is_known(name: str) -> bool:
    """Whether structured Newton has an argument of this name."""
    return name in inspect.signature(minimize_newton).parameters


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return isinstance(value, (str, bool, tuple)) and type(value) is type(default) and value == default
