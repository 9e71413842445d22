"""A disk that is full while a search or a fit runs: warnings, later attempts, and files that can still be read."""

import errno
import itertools
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import esgroup
from esgroup.command import cli, watch
from esgroup.compare import records
from esgroup.files import lines, npz, outage, replacing
from esgroup.files.lines import LineFile
from esgroup.plots.run import plot
from esgroup.running.history import read
from tests.compare.samples import run as sample

X0 = np.array([1.0, -0.5, 2.0])
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def bowl(x: np.ndarray) -> float:
    return float(x @ x)


def logp(x: np.ndarray) -> float:
    return -0.5 * bowl(x)


def search(**options: Any) -> Any:
    return esgroup.minimize(bowl, X0, 0.5, **{"rng": 1, "max_iters": 8, **options})


def fit(**options: Any) -> Any:
    return esgroup.fit_posterior(logp, np.zeros(2), **{"rng": 1, "max_iters": 5, **options})


def fails(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every write be tried again at once, and every checkpoint be written."""
    monkeypatch.setattr(outage, "PAUSE", 0.0)
    monkeypatch.setattr(outage, "SHARE", np.inf)
    monkeypatch.setattr("esgroup.files.autosave.WRITING", np.inf)


@contextmanager
def file_size(most: int) -> Iterator[None]:
    """Let files have at most so many bytes, like a disk that is full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# ---- checkpoints ----------------------------------------------------------------------------------------------------


class FailingWrites:
    """The writer of checkpoints, of which some calls fail; it counts them."""

    def __init__(self, failing: range, error: Exception = FULL) -> None:
        self.failing, self.error, self.calls, self._write = failing, error, 0, npz.write

    def __call__(self, *args: Any) -> None:
        self.calls += 1
        if self.calls - 1 in self.failing:
            raise self.error
        self._write(*args)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_checkpoint_that_fails_for_a_while_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path, expected = tmp_path / "run.npz", search()
    writes = FailingWrites(range(2, 5), OSError(code, os.strerror(code)))
    monkeypatch.setattr(npz, "write", writes)
    with pytest.warns(RuntimeWarning, match=rf"checkpoint .*run\.npz .*{os.strerror(code)}") as caught:
        result = search(checkpoint=path)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert writes.calls == 1 + 8 + 1  # before the first generation, after each, and at the end
    assert result.fun == expected.fun and esgroup.Searcher.load(path).nit == 8


def test_a_checkpoint_that_fails_up_to_the_end_leaves_the_result_and_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = tmp_path / "run.npz", search()
    monkeypatch.setattr(npz, "write", FailingWrites(range(4, 100)))
    with pytest.warns(RuntimeWarning, match=r"run\.npz") as caught:
        result = search(checkpoint=path)
    assert [str(one.message).rpartition(": ")[2] for one in caught] == [
        "the run continues and tries again later",
        "it holds an earlier state of the run",
    ]
    assert result.fun == expected.fun and result.nit == 8 and esgroup.Searcher.load(path).nit == 3
    monkeypatch.undo()
    assert search(checkpoint=path, resume=True).fun == expected.fun


def test_the_first_checkpoint_must_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "write", FailingWrites(range(1)))
    calls: list[Any] = []
    with pytest.raises(OSError, match="No space left"):
        esgroup.minimize(lambda x: calls.append(x) or bowl(x), X0, 0.5, checkpoint=tmp_path / "run.npz")
    assert not calls


@pytest.mark.parametrize("run", [search, fit])
def test_a_disk_that_is_full_at_the_first_checkpoint_is_an_error_with_the_file(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.npz"
    with file_size(100), pytest.raises(OSError, match=r"too large.*: '.*/run\.npz'"):
        run(checkpoint=path)
    monkeypatch.setattr(os, "fsync", fails)  # some file systems say so late
    with pytest.raises(OSError, match=r"No space left on device: '.*/run\.npz'") as caught:
        run(checkpoint=path)
    assert caught.value.errno == errno.ENOSPC and os.listdir(tmp_path) == []


def test_the_command_names_the_checkpoint_for_which_there_is_no_room(tmp_path: Path) -> None:
    with file_size(100):
        result = CliRunner().invoke(cli.app, ["run", "sphere", "--checkpoint", str(tmp_path / "run.npz")])
    assert result.exit_code == 2
    assert re.fullmatch(r"error: File too large: .*/run\.npz\n", result.stderr)


def test_an_exception_of_the_objective_is_not_hidden_by_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "write", FailingWrites(range(1, 100)))
    count = itertools.count()
    with pytest.raises(ZeroDivisionError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        esgroup.minimize(lambda x: 1 / (20 - next(count)), X0, 0.5, rng=1, checkpoint=tmp_path / "run.npz")
    assert any("No space left" in note for note in caught.value.__notes__)


def test_a_checkpoint_whose_place_was_taken_by_a_folder_costs_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"

    def take_its_place(search: Any) -> None:
        if search.nit == 2:
            path.unlink()
            path.mkdir()

    with pytest.warns(RuntimeWarning, match=r"run\.npz"):
        assert search(checkpoint=path, callback=take_its_place).nit == 8


def test_a_checkpoint_larger_than_the_disk_costs_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.warns(RuntimeWarning, match=r"run\.npz .*too large"):
        limit = None

        def fill(one: Any) -> None:
            nonlocal limit
            if one.nit == 3:
                limit = file_size(100)
                limit.__enter__()

        try:
            result = search(checkpoint=path, callback=fill)
        finally:
            limit.__exit__(None, None, None)
    assert result.nit == 8 and esgroup.Searcher.load(path).nit == 2 and os.listdir(tmp_path) == ["run.npz"]


def test_failing_writes_are_followed_by_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten generations take a second each; writing fails from the third on, and is tried again four seconds later."""
    now = [0.0]
    monkeypatch.setattr(outage, "PAUSE", 4.0)
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    writes = FailingWrites(range(3, 100))
    tried: list[int] = []

    def write(*args: Any) -> None:
        tried.append(int(now[0]))
        writes(*args)

    def a_second_later(search: Any) -> None:
        now[0] += 1.0

    monkeypatch.setattr(npz, "write", write)
    with pytest.warns(RuntimeWarning):
        search(max_iters=10, checkpoint=tmp_path / "run.npz", callback=a_second_later)
    assert tried == [0, 1, 2, 3, 7, 10]


def test_a_write_that_takes_long_to_fail_is_followed_by_a_pause_ten_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.undo()  # of `no_pause`
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    trouble = outage.Outage("run.npz", "checkpoint")
    with pytest.warns(RuntimeWarning, match=r"run\.npz"):
        trouble.failed(FULL, 30.0)
    for seconds, may_try in ((299, False), (300, True)):
        now[0] = 100.0 + seconds
        assert trouble.may_try() is may_try


def test_a_fit_survives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "write", FailingWrites(range(1, 100)))
    with pytest.warns(RuntimeWarning, match=r"fit\.npz .*No space left"):
        found = esgroup.fit_posterior(logp, np.zeros(2), rng=1, max_iters=5, checkpoint=tmp_path / "fit.npz")
    assert found.nit == 5


# ---- histories ------------------------------------------------------------------------------------------------------


class Disk:
    """A file without a buffer on a disk with `free` bytes: a write takes what fits, then fails."""

    free = 10**9
    cuts_fail = False

    def __init__(self, path: Any, mode: str, buffering: int) -> None:
        self._file = open(path, mode, buffering=buffering)  # noqa: SIM115

    def write(self, data: bytes) -> int:
        if Disk.free <= 0:
            fails()
        count = self._file.write(data[: Disk.free])
        Disk.free -= count
        return count

    def truncate(self, size: int) -> None:
        if Disk.cuts_fail:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._file.truncate(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Disk]:
    monkeypatch.setattr(lines, "open", Disk, raising=False)
    monkeypatch.setattr(Disk, "free", 10**9)
    monkeypatch.setattr(Disk, "cuts_fail", False)
    return Disk


def test_a_history_lacks_the_generations_that_could_not_be_written_and_nothing_else(
    tmp_path: Path, disk: type[Disk]
) -> None:
    path = tmp_path / "h.jsonl"

    def fill_and_free(search: Any) -> None:
        if search.nit == 3:
            disk.free = 40  # the fourth line is written in part
        if search.nit == 6:
            disk.free = 10**9

    with pytest.warns(RuntimeWarning, match=r"history .*h\.jsonl .*No space left") as caught:
        search(history=path, callback=fill_and_free)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert read(path).nit.tolist() == [1, 2, 3, 7, 8]
    assert [json.loads(line)["nit"] for line in path.read_text().splitlines()[1:]] == [1, 2, 3, 7, 8]


def test_a_part_of_a_line_that_cannot_be_cut_off_at_once_is_cut_off_later(tmp_path: Path, disk: type[Disk]) -> None:
    path = tmp_path / "h.jsonl"

    def fill_and_free(search: Any) -> None:
        disk.free = {3: 40, 4: 10**9}.get(search.nit, disk.free)
        disk.cuts_fail = 3 <= search.nit < 6

    with pytest.warns(RuntimeWarning, match=r"h\.jsonl"):
        search(history=path, callback=fill_and_free)
    assert read(path).nit.tolist() == [1, 2, 3, 7, 8]


def test_a_disk_that_is_full_from_the_start_leaves_no_part_of_a_header(tmp_path: Path, disk: type[Disk]) -> None:
    path = tmp_path / "h.jsonl"
    disk.free = 40

    def free(search: Any) -> None:
        if search.nit == 2:
            disk.free = 10**9

    with pytest.warns(RuntimeWarning, match=r"h\.jsonl"):
        search(history=path, callback=free)
    recorded = read(path)
    assert recorded.header["dim"] == 3 and recorded.nit.tolist() == [3, 4, 5, 6, 7, 8]


def test_a_history_that_ends_on_a_full_disk_says_how_many_lines_are_missing(tmp_path: Path, disk: type[Disk]) -> None:
    path = tmp_path / "h.jsonl"

    def fill(search: Any) -> None:
        if search.nit == 3:
            disk.free = 40

    with pytest.warns(RuntimeWarning, match=r"h\.jsonl") as caught:
        assert search(history=path, callback=fill).nit == 8
    assert len(caught) == 2 and "last 5 lines" in str(caught[1].message)
    assert read(path).nit.tolist() == [1, 2, 3]
    disk.free = 10**9
    search(history=path)
    assert read(path).nit.tolist() == list(range(1, 9))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_that_is_always_full_costs_warnings_only() -> None:
    with pytest.warns(RuntimeWarning, match="/dev/full .*No space left"):
        assert search(history="/dev/full").nit == 8


def test_a_limit_on_the_size_of_files_costs_the_lines_beyond_it(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    search(history=path)
    size = path.stat().st_size
    with file_size(size // 2), pytest.warns(RuntimeWarning, match=r"h\.jsonl .*too large"):
        search(history=path)
    assert path.stat().st_size <= size // 2
    assert 1 <= len(read(path).nit) < 8 and path.read_bytes().endswith(b"}\n")


def test_a_history_that_cannot_be_opened_is_an_error_before_the_first_evaluation(tmp_path: Path) -> None:
    calls: list[Any] = []
    with pytest.raises(FileNotFoundError, match="missing"):
        esgroup.minimize(lambda x: calls.append(x) or bowl(x), X0, 0.5, history=tmp_path / "missing" / "h.jsonl")
    assert not calls


def test_the_history_of_a_fit_survives_a_full_disk(tmp_path: Path, disk: type[Disk]) -> None:
    path = tmp_path / "fit.jsonl"

    def fill_and_free(fit: Any) -> None:
        disk.free = {2: 10, 3: 10**9}.get(fit.nit, disk.free)

    with pytest.warns(RuntimeWarning, match=r"fit\.jsonl"):
        esgroup.fit_posterior(logp, np.zeros(2), rng=1, max_iters=5, history=path, callback=fill_and_free)
    assert [json.loads(line)["nit"] for line in path.read_text().splitlines()[1:]] == [1, 2, 4, 5]
    disk.free = 0
    with pytest.raises(OSError, match=r"No space left.*fit\.jsonl"):  # its header is the first write
        esgroup.fit_posterior(logp, np.zeros(2), rng=1, max_iters=5, history=path)


# ---- files that are written once ------------------------------------------------------------------------------------


def page(history: Path, out: Path) -> None:
    watch.watch(history, out, once=True, say=lambda line: None)


def runs(history: Path, out: Path) -> None:
    records.append(out, sample())


def plan(history: Path, out: Path) -> None:
    replacing.replace_text(out, "{}")


@pytest.mark.parametrize(
    "write, name", [(page, "p.html"), (plot, "p.png"), (plot, "p.svg"), (runs, "r.csv"), (plan, "p.json")]
)
def test_a_file_for_which_there_is_no_room_is_named(tmp_path: Path, write: Callable[..., Any], name: str) -> None:
    search(history=tmp_path / "h.jsonl")
    with file_size(1), pytest.raises(OSError, match=f"too large.*: .*/{name}"):
        write(tmp_path / "h.jsonl", tmp_path / name)


def test_lines_go_to_a_pipe(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    file = LineFile(f"/dev/fd/{write_end}", append=False)
    assert file.write("{}\n") and os.read(read_end, 100) == b"{}\n"
    os.close(read_end)
    with pytest.warns(RuntimeWarning, match="Broken pipe"):
        assert not file.write("{}\n")
    file.close()
    os.close(write_end)
