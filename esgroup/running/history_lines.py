"""The format of the lines of a history: a reader gets these types and lengths, or a ValueError.

The file may be damaged or malicious. The first line is the header, and every other line is a generation. Entries not
listed here may be anything: nothing reads them.
"""

from __future__ import annotations

import contextlib
import json
import reprlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from esgroup.files.markup import printable

FORMAT = 1
MOST_COORDINATES = 100  # of the mean and the standard deviations, in a line
LONGEST = 1 << 24  # bytes of a line: ours have thousands, and other files may have no line ends at all
_BEGIN = b'{"esgroup_history":'  # start of every header
_MOST = 2**53  # counts up to this one are exact as floats


# ---- entries --------------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """What an entry must be, as text and as a function; some may be missing."""

    must: str
    fits: Callable[[Any], bool]
    may_lack: bool = False


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_size(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # which NaN is not


def _is_text(value: Any) -> bool:
    return type(value) is str


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(fits, value))


def _or_null(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _object(parts: dict[str, Callable[[Any], bool]], *, may_lack: bool) -> Callable[[Any], bool]:
    return lambda value: (
        type(value) is dict and all(fits(value[name]) if name in value else may_lack for name, fits in parts.items())
    )


_SIZES = dict.fromkeys(("max_evals", "max_iters"), _or_null(_is_size))
_LIMIT = _object(_SIZES | dict.fromkeys(("max_time", "target"), _or_null(_is_number)), may_lack=True)
_END = _object(dict.fromkeys(("how", "message"), _is_text), may_lack=False)
_LIMITS = _Entry("the limits of a run", _or_null(_LIMIT), may_lack=True)
_NAME = _Entry("a text or null", _or_null(_is_text), may_lack=True)
_COUNT = _Entry(f"an integer from 0 to {_MOST}", _is_count)
_NUMBER = _Entry("a finite number or null", _or_null(_is_number))
_NUMBERS = _Entry("a list of finite numbers and nulls", _all(_or_null(_is_number)))
_HEADER = {
    "dim": _Entry(f"an integer from 1 to {_MOST}", _is_size),
    "problem": _NAME,
    "structure": _NAME,
    "shape": _Entry("a list of integers from 1", _all(_is_size), may_lack=True),
    "coordinates": _Entry("an integer from 1", _is_size, may_lack=True),
    "names": _Entry("a list of texts or null", _or_null(_all(_is_text)), may_lack=True),
    "limits": _LIMITS,
}
_GENERATION = {
    "nit": _COUNT,
    "nfev": _Entry(f"an integer from 1 to {_MOST}", _is_size),
    "best_f": _NUMBER,
    "gen_best": _NUMBER,
    "sigma": _NUMBER,
    "axis_ratio": _NUMBER,
    "restart": _COUNT,
    "elapsed": _Entry("a number of seconds", lambda value: _is_number(value) and value >= 0),
    "mean": _NUMBERS,
    "stds": _NUMBERS,
    "violation": _NUMBER._replace(may_lack=True),
    "feasible": _Entry("true or false", lambda value: type(value) is bool, may_lack=True),
    "limits": _LIMITS,
    "end": _Entry('an object with the texts "how" and "message"', _END, may_lack=True),
}


# ---- lines ----------------------------------------------------------------------------------------------------------


def complete_lines(file: IO[bytes], path: Path, number: int = 1) -> Iterator[tuple[int, bytes]]:
    """Numbers and lines of a file from its current position, except an incomplete last line.

    Raises
    ------
    ValueError
        If a line is longer than any of a history, or an incomplete first line is not the start of a header.
    """
    while line := file.readline(LONGEST):
        if not line.endswith(b"\n"):
            if len(line) == LONGEST:
                raise _wrong(path, number, f"has more than {LONGEST:,} bytes")
            if number == 1 and line[: len(_BEGIN)] != _BEGIN[: len(line)]:
                raise _no_header(path)
            return
        yield number, line
        number += 1


def parse_header(line: bytes, path: Path) -> dict[str, Any]:
    """Read the first line; ValueError if it is not a header."""
    header = _parsed(line, path, 1)
    if "esgroup_history" not in header or "dim" not in header:
        raise _no_header(path)
    form = header["esgroup_history"]
    if type(form) is not int or form != FORMAT:
        raise ValueError(f"{path} has history format {reprlib.repr(form)}, this version of esgroup reads {FORMAT}")
    _check(header, _HEADER, path, 1)
    count = header.setdefault("coordinates", min(header["dim"], MOST_COORDINATES))
    if count > header["dim"]:
        raise _wrong(path, 1, f"has {count} coordinates of {header['dim']} variables")
    if header.get("names") is not None and len(header["names"]) != count:
        raise _wrong(path, 1, f"has {len(header['names'])} names of {count} coordinates")
    texts = {name: printable(header[name]) for name in ("problem", "structure") if header.get(name) is not None}
    names = {"names": [printable(name) for name in header["names"]]} if header.get("names") else {}
    return header | texts | names


def parse_generation(line: bytes, path: Path, number: int, header: dict[str, Any]) -> dict[str, Any]:
    """Read any other line; ValueError if it is not a generation of the run with this header."""
    generation, count = _generation(line, path, number), header["coordinates"]
    for name in ("mean", "stds"):
        if len(generation[name]) != count:
            raise _wrong(path, number, f"has {len(generation[name])} numbers in {name}, which must be {count}")
    return generation


def parse_scalars(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Read a generation except its mean and stds, which may be most of it and are left empty or unchecked."""
    begin = line.find(b', "mean": [')
    end = line.find(b"]", line.find(b', "stds": [', begin))
    if 0 < begin < end:
        with contextlib.suppress(ValueError):  # not in our format: read as a whole below
            return _generation(line[:begin] + b', "mean": [], "stds": []' + line[end + 1 :], path, number)
    return _generation(line, path, number)


def _no_header(path: Path) -> ValueError:
    return ValueError(f"{path} is not an esgroup history: its first line is not a header")


def _wrong(path: Path, number: int, what: str) -> ValueError:
    """The error for a line that does not belong in a history."""
    return ValueError(f"{path} is not an esgroup history: line {number} {what}")


def _generation(line: bytes, path: Path, number: int) -> dict[str, Any]:
    generation = _parsed(line, path, number)
    _check(generation, _GENERATION, path, number)
    if "end" in generation:
        generation["end"] = {name: printable(text) for name, text in generation["end"].items() if _is_text(text)}
    return generation


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        parsed = _DECODER.decode(line.decode("utf-8"))
    except RecursionError:
        raise _wrong(path, number, "is nested too deeply") from None
    except ValueError as error:  # also for text that is not UTF-8, and integers with thousands of digits
        raise _wrong(path, number, f"is not a JSON object: {getattr(error, 'msg', error)}") from error
    if not isinstance(parsed, dict):
        raise _wrong(path, number, "is not a JSON object")
    return parsed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a duplicate entry")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)


def _check(found: dict[str, Any], entries: dict[str, _Entry], path: Path, number: int) -> None:
    for name, entry in entries.items():
        if name not in found:
            if not entry.may_lack:
                raise _wrong(path, number, f"lacks {name!r}")
        elif not entry.fits(found[name]):
            raise _wrong(path, number, f"has {name} {reprlib.repr(found[name])}, which must be {entry.must}")
