"""What a checkpoint says about the call of `minimize` that began the search: its problem, its start and its seed.

A resumed search continues from its own state. A different start or seed would have no effect, and a different problem
would mix values of two functions, so they are refused rather than ignored. The file has numbers as they were given, and
digests of arrays. Generators, distributions as x0, and files written by `Searcher.save` cannot be compared and are left
out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from esgroup.files.checked import entry, optional_entry

ARGUMENTS = ("x0", "sigma0", "cov0", "rng")  # of `minimize`
_UNKNOWN = object()


@dataclass(frozen=True)
class CheckpointFile(PathLike[str]):
    """Path of a checkpoint with the problem it belongs to; it can be used like any other path.

    Attributes
    ----------
    path
        The file.
    problem
        Name of the problem, with its dimension.
    not_given
        Arguments of `minimize` that the user did not give; a resumed search may then have other ones.
    """

    path: str | PathLike[str]
    problem: str | None = None
    not_given: tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return str(self.path)


class Origin(NamedTuple):
    """How a search began: its problem, None if unknown, and its comparable arguments."""

    problem: str | None
    arguments: dict[str, Any]


def origin_of_call(path: str | PathLike[str], given: Mapping[str, Any]) -> Origin:
    """Return the origin of a search that begins with these arguments of `minimize` and this checkpoint."""
    known = {name: _comparable(name, given.get(name)) for name in ARGUMENTS}
    problem = path.problem if isinstance(path, CheckpointFile) else None
    return Origin(problem, {name: value for name, value in known.items() if value is not _UNKNOWN})


def origin_of_file(header: Mapping[str, Any]) -> Origin:
    """Return the origin in the header of a checkpoint; files of `Searcher.save` have none."""
    if "origin" not in header:
        return Origin(None, {})
    stored = entry(header, "origin", dict)
    return Origin(optional_entry(stored, "problem", str), entry(stored, "arguments", dict))


def origin_difference(saved: Origin, given: Origin, not_given: tuple[str, ...] = ()) -> str | None:
    """Return how the origins of a saved search and of a call differ, as the end of a message, or None."""
    if None not in (saved.problem, given.problem) and saved.problem != given.problem:
        return f"it is of the problem {saved.problem}, not of {given.problem}"
    for name, value in given.arguments.items():
        if value is None or name in not_given or name not in saved.arguments:
            continue
        theirs = saved.arguments[name]
        if theirs != value and not (name == "rng" and theirs is None):
            return f"its {name} {_how(theirs, value)}; a resumed search keeps its own start, so leave {name} as it was"
    return None


def _how(saved: Any, given: Any) -> str:
    if isinstance(saved, str) or isinstance(given, str):  # digests are not readable
        return "was not given" if saved is None else "was different"
    return f"was {'not given' if saved is None else repr(saved)}, not {given!r}"


def _comparable(name: str, value: Any) -> Any:
    """Return an argument as a number or a digest of an array; None if not given."""
    if value is None:
        return None
    if name == "rng":
        return int(value) if isinstance(value, Integral) else _UNKNOWN
    if isinstance(value, Real):
        return float(value)
    if not (isinstance(value, (list, tuple)) or hasattr(value, "__array__")):
        return _UNKNOWN
    try:
        array = np.asarray(value, dtype=np.float64) + 0.0  # 0 and -0 are the same number
    except (TypeError, ValueError):
        return _UNKNOWN
    if name == "sigma0" and array.size and (array == array.flat[0]).all():
        return float(array.flat[0])  # a number stands for an array of equal ones
    return f"{'x'.join(map(str, array.shape))} sha256 {hashlib.sha256(array.tobytes()).hexdigest()[:32]}"
