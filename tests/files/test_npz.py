"""A checkpoint holds exactly what was written, a reader sees the old or the new one, and other files are refused."""

import io
import json
import math
import os
import pickle
import stat
import struct
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from esgroup.files import checked, npz
from esgroup.files.npz import CheckpointError, read, reading, write

HEADER = {
    "n": 2**130 + 1,
    "f": 0.1 + 0.2,
    "odd": [math.inf, -math.inf, -0.0, 5e-324],
    "nan": math.nan,
    "deep": {"é": None},
}
ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "deep/path/b-1.x": np.array([np.nan, -0.0, np.inf]),
    "file": np.array(3, dtype=np.int64),
    "self": np.array([True, False]),
    "none": np.zeros((0, 4), dtype=np.uint8),
    "single": np.float32([0.1]),
}


def small(path: Path, value: float = 1.0) -> None:
    write(path, "thing", {"value": value}, {"x": np.full(3, value)})


def is_small(path: Path, value: float = 1.0) -> bool:
    header, arrays = read(path, "thing")
    return header == {"value": value} and list(arrays) == ["x"] and arrays["x"].tolist() == [value] * 3


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.npz"


# ---- contents are restored exactly ---------------------------------------------------------------------------------


def test_everything_comes_back_exactly(path: Path) -> None:
    write(path, "thing", HEADER, ARRAYS)
    header, arrays = read(path, "thing")
    assert json.dumps(header) == json.dumps(HEADER) and header["n"] == HEADER["n"] and header["f"] == HEADER["f"]
    assert math.isnan(header["nan"]) and math.copysign(1, header["odd"][2]) == -1
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable and arrays[name].flags.c_contiguous


def test_numpy_reads_the_file_without_pickle(path: Path) -> None:
    write(path, "thing", {"n": 1}, ARRAYS)
    with np.load(path, allow_pickle=False) as file:
        assert sorted(file) == sorted(["header", *ARRAYS])
        header = json.loads(file["header"].tobytes())
        assert np.array_equal(file["a"], ARRAYS["a"])
    assert header["format"] == "esgroup" and header["version"] == npz.VERSION and header["kind"] == "thing"
    assert f'"version": {npz.VERSION},' in (npz.__doc__ or "")
    assert isinstance(header["esgroup"], str) and header["content"] == {"n": 1}


def test_the_order_in_memory_does_not_matter(path: Path) -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    write(path, "thing", {}, {"t": matrix.T, "step": matrix[:, ::2], "big": matrix.astype(">f8"), "list": [1.0, 2.0]})
    _, arrays = read(path, "thing")
    assert np.array_equal(arrays["t"], matrix.T) and np.array_equal(arrays["step"], matrix[:, ::2])
    assert np.array_equal(arrays["big"], matrix) and arrays["big"].dtype.isnative
    assert arrays["list"].tolist() == [1, 2]


def test_arrays_in_fortran_order_are_read(path: Path) -> None:
    matrix = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    rewrite(path, {"x.npy": npy(matrix)})
    found = read(path, "thing")[1]["x"]
    assert np.array_equal(found, matrix) and found.flags.c_contiguous


def test_equal_contents_make_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, "thing", HEADER, ARRAYS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # not the time of day


@pytest.mark.parametrize("array", [np.array([None]), np.array(["a"]), np.array([1j]), np.array([1.0], dtype="g")])
def test_other_arrays_are_refused_before_anything_is_written(path: Path, array: np.ndarray) -> None:
    small(path)
    with pytest.raises(ValueError, match=r"array 'y' .*dtype"):
        write(path, "thing", {}, {"x": np.ones(3), "y": array})
    assert is_small(path) and not hidden(path.parent)


@pytest.mark.parametrize("name", ["header", "", "a b", "a\\b", "ä"])
def test_odd_names_are_refused(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="names of arrays"):
        write(path, "thing", {}, {name: np.ones(3)})
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("value", [np.int64(1), {1}, b"x", object()])
def test_a_header_that_is_not_of_json_types_is_refused_before_anything_is_written(path: Path, value: object) -> None:
    small(path)
    with pytest.raises(TypeError, match="not JSON serializable"):
        write(path, "thing", {"value": value}, {})
    assert is_small(path) and not hidden(path.parent)


# ---- old or new, never half ---------------------------------------------------------------------------------------


def test_a_checkpoint_is_synced_then_renamed_then_its_directory_is_synced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple] = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        mode = os.fstat(descriptor)
        calls.append(("sync", "directory" if stat.S_ISDIR(mode.st_mode) else mode.st_size))
        fsync(descriptor)

    def spy_replace(old: str, new: str) -> None:
        calls.append(("rename", os.path.dirname(old), new))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    small(path)
    size = path.stat().st_size
    assert calls == [("sync", size), ("rename", str(path.parent), str(path)), ("sync", "directory")]


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_checkpoint_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    small(path)
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        small(path, 2.0)
    assert is_small(path) and os.listdir(path.parent) == ["run.npz"]


def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(path: Path) -> None:
    resource = pytest.importorskip("resource")
    small(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(OSError):
            write(path, "thing", {}, {"x": np.ones(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert is_small(path) and os.listdir(path.parent) == ["run.npz"]


def test_a_file_keeps_its_permissions(path: Path) -> None:
    umask = os.umask(0o027)
    try:
        small(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o666, 0o604):
            path.chmod(mode)
            small(path, 2.0)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(umask)


def test_a_private_file_is_private_while_it_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(path)
    path.chmod(0o600)
    modes: list[int] = []
    real = os.open

    def spy(*args: object, **options: object) -> int:
        descriptor = real(*args, **options)
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", spy)
    small(path)
    assert modes[0] == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.npz", tmp_path / "there" / "run.npz"
    link.symlink_to(target)
    for value in (1.0, 2.0):  # the target is new, then an old one
        small(link, value)
        assert link.is_symlink() and not target.is_symlink() and is_small(target, value)
    assert os.listdir(target.parent) == ["run.npz"] and sorted(os.listdir(tmp_path)) == ["link.npz", "there"]


def test_a_plain_name_in_the_current_directory_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("run", "thing", {"value": 1.0}, {"x": np.full(3, 1.0)})
    assert is_small(tmp_path / "run") and read("run", "thing")[0] == {"value": 1.0}


def test_a_path_that_is_not_a_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path):
        with pytest.raises(CheckpointError, match="checkpoint"):
            small(name)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"director.*'{tmp_path}/nowhere'"):
        small(tmp_path / "nowhere" / "run.npz")


def test_files_of_killed_processes_are_removed_but_not_those_of_running_ones_or_of_others(path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    dead, live, other = (path.parent / name for name in (".run.npz.1.partial", ".run.npz.2.partial", ".run.partial"))
    for file in (dead, live, other):
        file.write_bytes(b"half")
    with open(live, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        small(path)
    assert sorted(os.listdir(path.parent)) == [".run.npz.2.partial", ".run.partial", "run.npz"]


def a_process_that_has_ended() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_without_locks_files_of_processes_of_this_machine_that_have_ended_are_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, here = a_process_that_has_ended(), npz._machine()
    dead = f".run.npz.{ended}-{here}-0123456789abcdef.partial"
    others = [
        f".run.npz.{os.getpid()}-{here}-0123456789abcdef.partial",  # a live process
        f".run.npz.{ended}-00000000-0123456789abcdef.partial",  # a process of another machine
        ".run.npz.0123456789abcdef.partial",  # nothing is known
    ]
    for name in (dead, *others):
        (path.parent / name).write_bytes(b"half")
    monkeypatch.setattr(npz, "_lock", lambda file, wait: None)
    small(path)
    assert sorted(os.listdir(path.parent)) == sorted([*others, "run.npz"]) and is_small(path)


def test_files_with_similar_names_are_not_removed(path: Path) -> None:
    names = [
        ".run.npz.backup.partial",
        ".run.npz.1.partial.old",
        ".run.npz.2.npz.0123456789abcdef.partial",
        ".run.npz.",
    ]
    for name in names:
        (path.parent / name).write_bytes(b"mine")
    os.mkfifo(path.parent / ".run.npz.3.partial")  # opening it would wait for ever
    (path.parent / ".run.npz.4.partial").symlink_to(path.parent / names[0])
    small(path)
    kept = [*names, ".run.npz.3.partial", ".run.npz.4.partial", "run.npz"]
    assert sorted(os.listdir(path.parent)) == sorted(kept)


def test_a_process_that_lives_long_finds_files_of_processes_killed_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl")
    small(path)
    (path.parent / ".run.npz.1.partial").write_bytes(b"half")
    now = time.monotonic() + npz.REMNANTS_EVERY
    monkeypatch.setattr(npz.time, "monotonic", lambda: now)
    small(path)
    assert os.listdir(path.parent) == ["run.npz"]


@pytest.mark.parametrize("locks", [True, False])
def test_the_file_of_a_killed_writer_is_removed_by_the_next_one_and_that_of_a_live_one_is_not(
    path: Path, locks: bool
) -> None:
    code = f"""if True:
        import sys, time
        import numpy as np
        from esgroup.files import npz
        if not {locks}:
            npz._lock = lambda file, wait: None
        def write(file, members):
            print("writing", flush=True)
            time.sleep(60)
        if sys.argv[2:]:
            npz._write_members = write
        npz.write(sys.argv[1], "thing", {{"value": 1.0}}, {{"x": np.full(3, 1.0)}})
    """
    writer = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen([*writer, "wait"], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None and waiting.stdout.readline() == b"writing\n"
        subprocess.run(writer, check=True)
        assert is_small(path) and len(hidden(path.parent)) == 1
        waiting.kill()
    assert len(hidden(path.parent)) == 1
    subprocess.run(writer, check=True)
    assert os.listdir(path.parent) == ["run.npz"]


def test_a_writer_whose_file_was_removed_as_a_remnant_starts_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, names = npz._lock, []

    def late(file: io.BufferedWriter, *, wait: bool) -> bool:
        names.append(file.name)
        if len(names) == 1:
            os.unlink(file.name)
        return real(file, wait=wait)

    monkeypatch.setattr(npz, "_lock", late)
    small(path)
    assert len(set(names)) == 2 and is_small(path) and os.listdir(path.parent) == ["run.npz"]


def test_a_file_is_locked_until_it_is_renamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl")
    replace = os.replace

    def replace_late(old: str, new: str) -> None:
        npz._remove_remnants.cache_clear()
        npz._remove_remnants(new)  # another writer's
        replace(old, new)

    monkeypatch.setattr(os, "replace", replace_late)
    small(path)
    assert is_small(path)


def test_many_writers_of_one_file_do_no_harm(path: Path) -> None:
    def work(value: float) -> None:
        for _ in range(10):
            npz._remove_remnants.cache_clear()
            small(path, value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            header, arrays = read(path, "thing")
            assert arrays["x"].tolist() == [header["value"]] * 3
    assert os.listdir(path.parent) == ["run.npz"]


# ---- other files are refused --------------------------------------------------------------------------------------


def npy(array: np.ndarray, **options: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def raw_npy(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def header_npy(**changes: object) -> bytes:
    header = {"format": "esgroup", "version": npz.VERSION, "kind": "thing", "esgroup": "9", "arrays": [], "content": {}}
    return npy(np.frombuffer(json.dumps(header | changes).encode(), np.uint8))


def rewrite(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    """Write an archive by hand, with a valid header unless the members include one."""
    header = header_npy(arrays=[name.removesuffix(".npy") for name in members])
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in ({"header.npy": header} | members).items():
            archive.writestr(name, data)


class Trap:
    """Loading its pickle would create a directory."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple:
        return os.mkdir, (self.path,)


def refused(path: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        read(path, "thing")
    assert str(caught.value).startswith(f"{path} ")


def test_files_made_by_hand_are_read_if_they_are_right(path: Path) -> None:
    rewrite(path, {"x.npy": npy(np.arange(3))})
    assert read(path, "thing")[1]["x"].tolist() == [0, 1, 2]


def test_a_missing_file_is_a_missing_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"run\.npz"):
        read(path, "thing")


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would block
    for name in (tmp_path, tmp_path / "pipe"):
        refused(name, "is not a checkpoint: it is not a file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a checkpoint, it is empty"),
        (b"x", "is not a checkpoint: File is not a zip file"),
        (b"\0" * 1000, "is not a checkpoint"),
        (npy(np.arange(5)), "is not a checkpoint"),
        (b"PK\x03\x04" + b"\0" * 100, "is damaged or cut short"),
        (b"PK\x05\x06" + b"\0" * 18, "is not a checkpoint: it is a zip archive without a header"),  # an empty zip
    ],
)
def test_a_foreign_file_is_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    refused(path, message)


def test_a_pickle_is_refused_and_not_executed(path: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    path.write_bytes(pickle.dumps(Trap(trap)))
    refused(path, "is not a checkpoint")
    objects = npy(np.array([Trap(trap)]), allow_pickle=True)
    for members in ({"x.npy": objects}, {"header.npy": objects}, {"x": pickle.dumps(Trap(trap))}):
        rewrite(path, members)
        refused(path, "is damaged: its member .* dtype object|cannot be read: .*magic")
    assert not trap.exists()
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists()  # the trap works


def test_archives_of_others_are_refused(path: Path) -> None:
    np.savez(path, x=np.arange(3))
    refused(path, "is not a checkpoint: it is a zip archive without a header")
    np.savez_compressed(path, x=np.arange(3))
    refused(path, "is not a checkpoint: it is a zip archive without a header")
    np.savez(path, header=np.arange(3.0))
    refused(path, "is not a checkpoint: its header is not JSON")
    rewrite(path, {"readme.txt": b"hello"})
    refused(path, "cannot be read: .*magic string")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "does not name the format 'esgroup' and a version"),
        ("{}", "does not name the format 'esgroup' and a version"),
        ('{"format": "esgroup"}', "does not name the format 'esgroup' and a version"),
        ('{"format": "esgroup", "version": true}', "does not name the format 'esgroup' and a version"),
        ('{"format": "other", "version": 1}', "does not name the format 'esgroup' and a version"),
        ('{"format": "esgroup", "version": 5}', "holds a None, not a 'thing'"),
        ('{"format": "esgroup", "version": 5, "kind": "thing"}', "its members are not those that its header names"),
        ('{"format": "esgroup", "version": 5, "kind": "thing", "arrays": []}', "the header lacks 'content'"),
        (
            '{"format": "esgroup", "version": 5, "kind": "thing", "arrays": [], "content": 3}',
            "must be of type dict, got",
        ),
        ('{"format": "esgroup", ', "its header is not JSON"),
        ('{"n": ' + "9" * 5000 + "}", "cannot be read: ValueError"),
        ("[" * 200_000, "cannot be read: RecursionError"),
        ("\xff", "its header is not JSON"),
    ],
)
def test_a_header_without_the_right_names_is_refused(path: Path, text: str, message: str) -> None:
    rewrite(path, {"header.npy": npy(np.frombuffer(text.encode("latin1"), np.uint8))})
    refused(path, message)


@pytest.mark.parametrize("version", [0, 1, 4, 6])
def test_another_version_is_refused_with_both_versions_and_what_to_do(path: Path, version: int) -> None:
    rewrite(path, {"header.npy": header_npy(version=version, esgroup="7.5", kind="unknown yet")})
    both = rf"has format version {version} \(of esgroup '7.5'\), but esgroup '.+' reads version 5: "
    refused(path, f"{both}finish it with the esgroup that wrote it, or start again$")


def test_another_kind_is_refused(path: Path) -> None:
    small(path)
    with pytest.raises(CheckpointError, match=r"run\.npz .*'thing'.* 'searcher'"):
        read(path, "searcher")


@pytest.mark.parametrize("arrays", [[], ["y"], ["x", "y"], "x", None])
def test_a_header_that_names_other_arrays_is_refused(path: Path, arrays: object) -> None:
    rewrite(path, {"header.npy": header_npy(arrays=arrays), "x.npy": npy(np.zeros(3))})
    refused(path, "is damaged: its members are not those that its header names")


def test_compressed_members_are_refused(path: Path) -> None:
    rewrite(path, {"x.npy": npy(np.zeros(10))}, zipfile.ZIP_DEFLATED)
    refused(path, "its member 'header' is compressed")


def test_a_member_larger_than_the_file_is_refused_before_it_is_read(path: Path) -> None:
    rewrite(path, {"x.npy": npy(np.zeros(10))})
    data, size = path.read_bytes(), struct.pack("<L", len(npy(np.zeros(10))))
    at = data.rindex(size + size)  # in the directory at the end: size as stored, then size
    path.write_bytes(data[: at + 4] + struct.pack("<L", 3_000_000_000) + data[at + 8 :])
    refused(path, "is damaged: its members claim to be larger than the file")


def test_members_that_share_their_bytes_are_refused(path: Path) -> None:
    rewrite(path, {"x.npy": npy(np.zeros(1000))})
    with zipfile.ZipFile(path, "a") as archive:
        first = archive.getinfo("x.npy")
        for i in range(5):  # as many names as one likes for the same bytes
            twin = zipfile.ZipInfo(f"y{i}.npy")
            twin.header_offset, twin.CRC = first.header_offset, first.CRC
            twin.file_size = twin.compress_size = first.file_size
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True
    refused(path, "is damaged: its members claim to be larger than the file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["x.npy", "x"])
def test_two_members_of_one_name_are_refused(path: Path, second: str) -> None:
    rewrite(path, {"x.npy": npy(np.zeros(3))})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(second, npy(np.ones(3)))
    refused(path, "is damaged: it has two members with the same name")


DESCR = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (raw_npy(DESCR % "(1000000000000,)", bytes(8)), "has 8 bytes for shape \\(1000000000000,\\)"),
        (raw_npy(DESCR % "(2,)", bytes(8)), "has 8 bytes for shape \\(2,\\)"),
        (raw_npy(DESCR % "(1,)", bytes(16)), "has 16 bytes for shape \\(1,\\)"),
        (raw_npy(DESCR % "(-1, -1)", bytes(8)), "cannot be read"),
        (raw_npy(DESCR % "(0, -1)"), "cannot be read|has 0 bytes"),
        (raw_npy(DESCR % f"(0, {10**30})"), "cannot be read"),
        (raw_npy(DESCR % "'x'", bytes(8)), "cannot be read"),
        (raw_npy(DESCR % "__import__('os').getcwd()", bytes(8)), "cannot be read"),
        (raw_npy("(" * 5000, bytes(8)), "cannot be read"),
        (raw_npy("-" * 9000 + "1", bytes(8)), "cannot be read"),
        (raw_npy("{", bytes(8)), "cannot be read"),
        (npy(np.zeros(2, dtype=complex)), "has 32 bytes for shape \\(2,\\) and dtype complex128"),
        (npy(np.zeros(2, dtype=[("a", float)])), "has 16 bytes .* dtype"),
        (npy(np.array(["abc"])), "dtype <U3"),
        (npy(np.zeros(2))[:5], "cannot be read"),
        (npy(np.zeros(2))[:40], "cannot be read"),
        (b"\x93NUMPY\x02\x00" + npy(np.zeros(2))[8:], "is not an array of .npy version 1.0"),
    ],
)
def test_a_member_that_is_not_an_array_is_refused(path: Path, data: bytes, message: str) -> None:
    rewrite(path, {"x.npy": data})
    refused(path, message)


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    small(path)
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        refused(path, "is damaged or cut short|is not a checkpoint")


@pytest.mark.parametrize("mask", [0xFF, 0x01])
def test_a_changed_byte_is_noticed_or_without_effect(path: Path, mask: int) -> None:
    small(path)
    whole, noticed = path.read_bytes(), 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        try:
            assert is_small(path)
        except CheckpointError as error:
            assert str(error).startswith(f"{path} ")
            noticed += 1
    assert noticed > 0.7 * len(whole)


def bottomless() -> None:
    bottomless()


@pytest.mark.parametrize(
    "fault",
    [
        lambda header, arrays: header["x"],
        lambda header, arrays: int(header["value"] / 0),
        lambda header, arrays: header.nothing,
        lambda header, arrays: bottomless(),
        lambda header, arrays: len(header["value"]),
        lambda header, arrays: arrays["x"].reshape(7),
        lambda header, arrays: checked.array(arrays, "x", (4,)),
    ],
)
def test_whatever_the_reader_finds_wrong_names_the_file(path: Path, fault: object) -> None:
    small(path)
    with pytest.raises(CheckpointError, match=f"{path} .*thing"), reading(path, "thing") as parts:
        fault(*parts)
    with reading(path, "thing") as (header, arrays):
        assert header == {"value": 1.0} and list(arrays) == ["x"]
    with pytest.raises(CheckpointError, match=r"npz .*'thing'.* 'else'$"), reading(path, "else"):
        pass
    with pytest.raises(RuntimeError), reading(path, "thing"):
        raise RuntimeError
