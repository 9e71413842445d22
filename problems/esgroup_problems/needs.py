"""What some problems need: one dimension and no other, or a library that is not installed with the package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from esgroup import checks


def fixed_dim(name: str, dim: int, only: int) -> int:
    """Refuse every dimension but the one that the problem has."""
    if checks.whole_number("dim", dim) != only:
        raise ValueError(f"dim must be {only} for {name}, got {dim}")
    return only


def optional_module(module: str, *, package: str, extra: str, who: str) -> Any:
    """A module of an optional package; `who` is the subject of the error when it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{who} need {package}: pip install 'esgroup[{extra}]'") from error
