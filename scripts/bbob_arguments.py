"""Arguments of the bbob benchmark's commands that typer does not read by itself."""

from __future__ import annotations

import ast
from typing import Any

import typer


def parse_range(text: str, name: str, least: int, most: int | None = None) -> list[int]:
    """1,2,6,8-14 as a list of integers, each once."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            span = range(int(first), int(last or first) + 1)
        except ValueError:
            span = range(0)
        if not span:
            raise typer.BadParameter(f"{name} must be numbers and ranges like 1,2,6,8-14, got {text!r}")
        if span[0] < least or (most is not None and span[-1] > most):
            limits = f"at least {least}" if most is None else f"between {least} and {most}"
            raise typer.BadParameter(f"{name} must be {limits}, got {text!r}")
        numbers.extend(span)
    return list(dict.fromkeys(numbers))


def parse_part(text: str) -> slice:
    """2/4 as a slice that takes the second of every four."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise typer.BadParameter(f"--part must be k/n with k from 1 to n, like 2/4, got {text!r}")
    return slice(int(number) - 1, None, int(count))


def parse_option(text: str) -> tuple[str, Any]:
    """key=value, the value a Python literal or else a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or ";" in text:
        raise typer.BadParameter(f"--option must be key=value without a semicolon, got {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value
