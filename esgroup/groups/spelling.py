"""Spellings of groups: the class name in snake_case, then sizes, such as "heisenberg:k1=4,k2=4,upper"."""

from __future__ import annotations

import dataclasses
import difflib
import re
from typing import Any

from esgroup import checks
from esgroup.groups.base import Group

#: Maps the name in a spelling to its class, in the order of registration.
SPELLINGS: dict[str, type[Group]] = {}


def register(group: type[Group]) -> type[Group]:
    """Give a group class a spelling; works as a class decorator.

    Parameters
    ----------
    group : type
        A frozen dataclass derived from `Group` whose fields are `dim`, further sizes and the flag `lower`. Its spelling
        begins with its name in snake_case.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If another class already has the name.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", group.__name__).lower()
    if name in SPELLINGS:
        raise ValueError(f"the spelling {name!r} is taken by {SPELLINGS[name]}")
    SPELLINGS[name] = group
    return group


def spell(group: Group) -> str:
    """Return the spelling of a group, without its dimension.

    Raises
    ------
    ValueError
        If the group is not determined by sizes and therefore has no spelling.

    Examples
    --------
    >>> from esgroup.groups import Heisenberg, spell
    >>> spell(Heisenberg(9, 4, 3, lower=False))
    'heisenberg:k1=4,k2=3,upper'
    """
    for name, cls in SPELLINGS.items():
        if type(group) is cls:
            words = [word for field in _fields(cls) if (word := _word(field, getattr(group, field.name)))]
            return name + (":" + ",".join(words) if words else "")
    raise ValueError(f"{group} has no spelling: only {', '.join(SPELLINGS)} have one")


def described(group: Group) -> str:
    """Return the spelling of a group if it has one, otherwise its repr."""
    return spell(group) if type(group) in SPELLINGS.values() else str(group)


def parse(text: str, dim: int) -> Group:
    """Return the group of a spelling.

    Parameters
    ----------
    text : str
        A name of `SPELLINGS`, then optionally a colon and, separated by commas, sizes such as "k=4" and "lower" or
        "upper". Anything left out has its default value.
    dim : int
        The dimension of the group.

    Returns
    -------
    Group

    Raises
    ------
    ValueError
        If the name or a size is unknown, or a size does not fit `dim`.

    Examples
    --------
    >>> from esgroup.groups import parse
    >>> parse("block_triangular:k=2,upper", 5)
    BlockTriangular(dim=5, k=2, lower=False)
    """
    dim = checks.whole_number("dim", dim, least=1)
    cls = named(text)
    name, _, rest = text.strip().partition(":")
    known = {field.name: field for field in _fields(cls)}
    sizes: dict[str, Any] = {}
    for word in filter(None, (w.strip() for w in rest.split(","))):
        key, value = _value(word, text)
        if key not in known or key in sizes:
            wanted = ", ".join("lower or upper" if k == "lower" else f"{k}=<size>" for k in known) or "no sizes"
            problem = "given twice" if key in sizes else "not recognized"
            raise ValueError(f"{word!r} in structure {text!r} is {problem}: {name} takes {wanted}")
        sizes[key] = value
    return cls(dim, **sizes)  # type: ignore[call-arg]


def named(text: str) -> type[Group]:
    """Return the class that a spelling starts with; ValueError if no class has this name."""
    checks.instance("structure", text, str)
    name = text.strip().partition(":")[0]
    if name not in SPELLINGS:
        near = difflib.get_close_matches(name, SPELLINGS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"unknown structure {name!r}{hint}: the structures are {', '.join(SPELLINGS)}")
    return SPELLINGS[name]


def follows(structure: Group | str) -> bool:
    """Return whether a structure, or its spelling, has directions that follow a search; False for "auto"."""
    group = named(structure) if isinstance(structure, str) and structure != "auto" else structure
    return getattr(group, "follows", False)


def as_group(structure: Group | str, dim: int, *, searched: bool = False, name: str = "structure") -> Group:
    """Return a group given as itself or by its spelling.

    Parameters
    ----------
    structure : Group or str
        A group of dimension `dim`, or a spelling.
    dim : int
        The required dimension.
    searched : bool
        Whether the group is for a search; only searches can use directions that follow them (`Frame`).
    name : str
        The name of the argument, for error messages.

    Raises
    ------
    TypeError
        If `structure` is neither a group nor a str.
    ValueError
        If the spelling is not recognized, or the group has the wrong dimension.

    Examples
    --------
    >>> from esgroup.groups import as_group
    >>> as_group("block_triangular:k=2", 10)
    BlockTriangular(dim=10, k=2, lower=True)
    """
    group = parse(structure, dim) if isinstance(structure, str) else structure
    if not isinstance(group, Group):
        raise TypeError(f"{name} must be a group or a spelling such as 'full', got {group!r}")
    if group.dim != dim:
        raise ValueError(f"{name} must have dimension {dim}, got {group} of dimension {group.dim}")
    if group.follows and not searched:
        instead = "use a fixed structure, such as 'block_triangular'"
        raise ValueError(f"structure {described(group)!r} is for searches only: its directions follow them; {instead}")
    return group


def _fields(cls: type[Group]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.name != "dim"]  # type: ignore[arg-type]


def _word(field: dataclasses.Field[Any], value: Any) -> str:
    if field.name == "lower":
        return "" if value else "upper"
    return "" if value == field.default else f"{field.name}={value}"


def _value(word: str, text: str) -> tuple[str, int | bool]:
    if word in ("lower", "upper"):
        return "lower", word == "lower"
    key, equals, number = (part.strip() for part in word.partition("="))
    if not equals or not re.fullmatch(r"[+-]?\d+", number):
        raise ValueError(f"{word!r} in structure {text!r} must be lower, upper or a size such as k=4")
    return key, int(number)
