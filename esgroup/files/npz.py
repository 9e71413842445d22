"""Checkpoints: one .npz file of numbers and JSON, always replaced as a whole; reading it never executes code.

The member "header" is JSON text as bytes, {"format": "esgroup", "version": 5, "kind": ..., "esgroup": ..., "arrays":
[names], "content": ...}; the others are the arrays. All are stored uncompressed, so that no file can unpack to more
than its own size.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import math
import os
import platform
import re
import reprlib
import secrets
import stat
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from esgroup.files.checked import CheckpointError as CheckpointError
from esgroup.files.checked import entry
from esgroup.files.outage import naming

Path = str | os.PathLike[str]
Arrays = dict[str, NDArray[Any]]

FORMAT, VERSION = "esgroup", 5
REMNANTS_EVERY = 60.0  # seconds between searches for files of killed processes: directories may be large


# ---- writing ----------------------------------------------------------------------------------------------------


def write(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Replace the file with a new checkpoint; a reader of `path` sees either the old one or the new one, complete.

    Everything is checked first, then written to a hidden file in the same directory, synced and renamed. An existing
    file keeps its permissions, and a symbolic link is followed. Hidden files that killed processes left for this path
    are removed: those that are not locked or, on file systems without locks, whose process has ended.

    Parameters
    ----------
    path : str or path-like
        The file; its directory must exist.
    kind : str
        What the file holds; `read` must be called with the same kind.
    header : mapping
        Values of JSON types.
    arrays : mapping of str to array
        Arrays of booleans, integers or floats.

    Raises
    ------
    TypeError
        If the header has a value that is not of a JSON type.
    ValueError
        If a name or an array cannot be stored.
    """
    storable = {name: _storable(name, array) for name, array in arrays.items()}
    members = {"header": _encoded(kind, header, list(storable))} | storable
    target = os.path.realpath(os.fsdecode(path))
    mode = _mode(target)
    _remove_remnants(target, int(time.monotonic() // REMNANTS_EVERY))
    file = _new_file(target, mode)
    try:
        with naming(path), file:
            _write_members(file, members)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # which cannot rename an open file; elsewhere the lock is kept to the end
            os.replace(file.name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.name)
        raise
    _sync_directory(os.path.dirname(target))


def _encoded(kind: str, content: Mapping[str, Any], arrays: list[str]) -> NDArray[np.uint8]:
    from esgroup.version import __version__

    header = {"format": FORMAT, "version": VERSION, "kind": kind, "esgroup": __version__}
    text = json.dumps(header | {"arrays": arrays, "content": content})  # JSON writes floats as repr, which is exact
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8)


def _storable(name: str, value: Any) -> NDArray[Any]:
    if not re.fullmatch(r"[\w./-]+", name, re.ASCII) or name == "header":
        raise ValueError(f"names of arrays must be letters, digits and _ . / - and not 'header', got {name!r}")
    array = np.asarray(value)
    if not _is_plain(array.dtype):
        raise ValueError(f"the array {name!r} must hold booleans, integers or floats, got dtype {array.dtype}")
    return array


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biuf" and dtype.itemsize <= 8  # a long double differs between machines


def _mode(target: str) -> int | None:
    """The permissions of the file that is to be replaced, or None for a new file."""
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, "there is no such directory", directory)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):  # a rename would replace a device with a file
        raise CheckpointError(f"{target} is not a file that a checkpoint may replace")
    return stat.S_IMODE(mode)


@functools.cache
def _machine() -> str:
    """Return eight digits that distinguish machines, and containers on one machine."""
    try:
        processes = os.readlink("/proc/self/ns/pid")  # containers number processes independently
    except OSError:
        processes = ""
    return hashlib.sha256(f"{platform.node()} {processes}".encode()).hexdigest()[:8]


def _new_file(target: str, mode: int | None) -> IO[bytes]:
    """Create a hidden file in the directory of the target, locked while it is open."""
    directory, base = os.path.split(target)
    name = os.path.join(directory, f".{base}.{os.getpid()}-{_machine()}-{secrets.token_hex(4)}.partial")
    create = functools.partial(os.open, mode=0o666 if mode is None else mode)  # private from the start
    file = open(name, "xb", opener=create)  # noqa: SIM115  (the caller closes it)
    _lock(file, wait=True)
    if not os.path.exists(name):  # another writer removed it as a remnant before it was locked
        file.close()
        return _new_file(target, mode)
    if mode is not None:
        with contextlib.suppress(OSError):  # a file system without permissions
            os.chmod(name, mode)  # the permissions that the umask removed
    return file


def _lock(file: IO[bytes], *, wait: bool) -> bool | None:
    """Lock the file until it is closed or the process ends; False if another process holds it, None without locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


@functools.lru_cache(100)
def _remove_remnants(target: str, period: int = 0) -> None:
    """Remove hidden files of this target that no process is writing, once in each period."""
    directory, base = os.path.split(target)
    writers = re.compile(rf"\.{re.escape(base)}\.(?:(\d+)-([0-9a-f]+)-)?[0-9a-f]+\.partial")  # process and machine
    for name in os.listdir(directory):
        if (writer := writers.fullmatch(name)) is None:
            continue
        old = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.lstat(old).st_mode):
                continue
            with open(old, "r+b") as file:  # some locks are only for writers
                locked = _lock(file, wait=False)
                if locked or (locked is None and _has_ended(*writer.groups())):
                    os.unlink(old)


def _has_ended(process: str | None, machine: str | None) -> bool:
    """Whether a process of this machine has certainly ended; False for other machines."""
    if process is None or machine != _machine() or sys.platform == "win32":
        return False
    try:
        os.kill(int(process), 0)  # no signal: only checks whether the process exists
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's process, or an invalid number
        return False
    return False


def _write_members(file: IO[bytes], members: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            # without the time, so that equal states give equal files; zip64, since the size is not known yet
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


def _sync_directory(directory: str) -> None:
    with contextlib.suppress(OSError):  # not every system can open directories
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ---- reading ----------------------------------------------------------------------------------------------------


def read(path: Path, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a checkpoint.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        The kind it was written with.

    Raises
    ------
    CheckpointError
        If the file is not a checkpoint, is damaged, or is of another kind or version.
    """
    path = os.fsdecode(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise CheckpointError(f"{path} is not a checkpoint: it is not a file")
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, os.fstat(file.fileno()).st_size)
                content = _decoded(archive, members, kind)
                return content, {name: _read_array(archive, member) for name, member in members.items()}
        except CheckpointError as error:
            raise CheckpointError(f"{path} {error}") from error.__cause__
        except zipfile.BadZipFile as error:
            raise CheckpointError(f"{path} {_what_is_wrong(file)}: {error}") from error
        except Exception as error:  # on a damaged file zip and npy readers may raise almost anything
            raise CheckpointError(f"{path} cannot be read: {error!r}") from error


@contextlib.contextmanager
def reading(path: Path, kind: str) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Read a checkpoint for a block that interprets it: `with reading(path, kind) as (header, arrays)`.

    An error of the block about the contents (ValueError, TypeError, LookupError, ...) becomes a CheckpointError that
    names the file.
    """
    header, arrays = read(path, kind)
    try:
        yield header, arrays
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{os.fsdecode(path)} is not a valid {kind}: {error}") from error


def _what_is_wrong(file: IO[bytes]) -> str:
    file.seek(0)
    start = file.read(4)
    if not start:
        return "is not a checkpoint, it is empty"
    return "is damaged or cut short" if start == b"PK\x03\x04" else "is not a checkpoint"


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name, after checking that they include the header and fit in a file of this size."""
    infos = archive.infolist()
    members = {info.filename.removesuffix(".npy"): info for info in infos}
    if "header" not in members:
        raise CheckpointError("is not a checkpoint: it is a zip archive without a header")
    if len(members) < len(infos):
        raise CheckpointError("is damaged: it has two members with the same name")
    for name, info in members.items():
        if info.compress_type != zipfile.ZIP_STORED:
            raise CheckpointError(f"is not a checkpoint as it was written: its member {name!r} is compressed")
    if sum(info.file_size for info in infos) > size:
        raise CheckpointError(f"is damaged: its members claim to be larger than the file of {size} bytes")
    return members


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """An array in native byte order; the archive verifies the checksum, since the member is read completely."""
    data = archive.read(member)
    stream = io.BytesIO(data)
    if npy.read_magic(stream) != (1, 0):
        raise CheckpointError(f"is damaged: its member {member.filename!r} is not an array of .npy version 1.0")
    shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
    if not _is_plain(dtype) or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        wrong = f"{len(data) - stream.tell()} bytes for shape {shape} and dtype {dtype}"
        raise CheckpointError(f"is damaged: its member {member.filename!r} has {wrong}")
    flat = np.frombuffer(data, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran_order else "C").astype(dtype.newbyteorder("="), order="C")


def _decoded(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], kind: str) -> dict[str, Any]:
    """Return the content of the header, and remove the header from the members."""
    try:
        header = json.loads(_read_array(archive, members.pop("header")).tobytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError("is not a checkpoint: its header is not JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or type(header.get("version")) is not int:
        raise CheckpointError(f"is not a checkpoint: its header does not name the format {FORMAT!r} and a version")
    if header["version"] != VERSION:
        from esgroup.version import __version__

        theirs = f"format version {reprlib.repr(header['version'])} (of esgroup {reprlib.repr(header.get('esgroup'))})"
        ours = f"esgroup {__version__!r} reads version {VERSION}"
        raise CheckpointError(f"has {theirs}, but {ours}: finish it with the esgroup that wrote it, or start again")
    if header.get("kind") != kind:
        raise CheckpointError(f"holds a {reprlib.repr(header.get('kind'))}, not a {kind!r}")
    if header.get("arrays") != list(members):  # a zip archive does not protect the list of its members
        raise CheckpointError("is damaged: its members are not those that its header names")
    return entry(header, "content", dict)
