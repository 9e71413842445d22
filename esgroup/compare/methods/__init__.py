"""The methods that can be compared, by name. Other packages add theirs through the entry-point group below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

from esgroup.compare.methods import others, ours, with_scipy
from esgroup.compare.methods.method import Method
from esgroup.problem_registry import load, near

__all__ = ["GROUP", "Chosen", "Method", "choose", "known", "split"]

GROUP = "esgroup.methods"


def known() -> dict[str, Method]:
    """All methods by name, installed or not."""
    return _found()[0]


def failures() -> dict[str, str]:
    """Entry points that could not be loaded, with the reasons."""
    return _found()[1]


@cache
def _found() -> tuple[dict[str, Method], dict[str, str]]:
    """Collect methods. An entry point is a Method or a sequence of them; one that fails does not hide the others."""
    found = [*ours.METHODS, *others.METHODS, *with_scipy.METHODS]
    failures = {}
    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
            found += [loaded] if isinstance(loaded, Method) else loaded
        except Exception as error:
            failures[f"{entry.name} = {entry.value}"] = f"{type(error).__name__}: {error}"
    return {method.name: method for method in found}, failures


@dataclass(frozen=True)
class Chosen:
    """A method as it was spelled: NAME or NAME:STRUCTURE, followed by @CHART for coordinates of matrices."""

    method: Method
    structure: str | None
    chart: str | None


def choose(spelling: str) -> Chosen:
    """Return the method of a spelling.

    Parameters
    ----------
    spelling
        NAME or NAME:STRUCTURE, either followed by @CHART; or MODULE:NAME, a Method of the user.

    Raises
    ------
    ValueError
        If there is no such method, or it has no structures or charts.
    """
    name, _, chart = spelling.partition("@")
    method, structure = _with_structure(name)
    if chart and method.spaces:
        raise ValueError(f"the method {method.name} searches {method.points} and has no chart, got {spelling!r}")
    return Chosen(method, structure, chart or None)


def _with_structure(spelling: str) -> tuple[Method, str | None]:
    name, _, structure = spelling.partition(":")
    method = known().get(name)
    if method is None and structure:
        return _own(spelling), None
    if method is None:
        listed = ", ".join(known())
        missing = "".join(f"; {entry} could not be loaded ({why})" for entry, why in failures().items())
        hint = near(name, known(), 3)
        raise ValueError(f"unknown method {name!r}{hint}: the methods are {listed}, or MODULE:NAME{missing}")
    if not structure:
        return method, None
    if method.of_structure is None:
        raise ValueError(f"the method {name} has no structures, got {spelling!r}")
    return replace(method, name=spelling, run=method.of_structure(structure)), structure


def _own(name: str) -> Method:
    try:
        method = load(name)
    except ValueError as error:
        hint = near(name.partition(":")[0], known())
        raise ValueError(f"{name} is neither one of the methods{hint} nor one of your own: {error}") from error
    if not isinstance(method, Method):
        raise ValueError(f"{name} must be an esgroup.compare.methods.Method, got {type(method).__name__}")
    return method


def split(text: str) -> list[str]:
    """Split spellings at commas; structures may contain commas, too: esgroup:heisenberg:k1=4,k2=4,cma."""
    words: list[str] = []
    for word in text.split(","):
        if words and _belongs_to_a_structure(word):
            words[-1] += f",{word}"
        else:
            words.append(word)
    return [word.strip() for word in words if word.strip()]


def _belongs_to_a_structure(word: str) -> bool:
    name = word.strip().partition("@")[0]
    return ("=" in name and ":" not in name) or name in ("upper", "lower", "gradient", "residual")


def check_installed(methods: Iterable[Method]) -> None:
    """Raise ValueError if packages of the methods are missing, naming what to install."""
    missing = [text for method in methods if (text := method.missing())]
    if missing:
        raise ValueError("; ".join(dict.fromkeys(missing)))
