"""What is read of a file of runs is what was written to it."""

import errno
import math
import os
from pathlib import Path

import pytest

from esgroup.compare.records import COLUMNS, Cell, Ended, append, from_line, mend, read, to_line
from tests.compare.samples import failure, run


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = [run(), run(seed=1, hits=(math.inf, math.inf), ended=Ended.BUDGET), run(best=0.1 + 0.2, minimum=-1e300)]
    for one in kept:
        append(tmp_path / "runs.csv", one)
    assert read(tmp_path / "runs.csv") == kept


def test_failures_come_back_with_their_messages(tmp_path: Path) -> None:
    append(tmp_path / "runs.csv", failure('ValueError: "a, b"; c\u2028d'))
    (back,) = read(tmp_path / "runs.csv")
    assert back.message == 'ValueError: "a, b"; c d' and back.failed and not back.solved
    assert math.isnan(back.minimum) and back.best == math.inf


def test_a_message_of_several_lines_becomes_one() -> None:
    assert from_line(to_line(failure("first\n  second\r\n\tthird"))).message == "first second third"


def test_a_message_may_be_as_long_and_strange_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    append(path, failure("x" * 200_000))
    append(path, failure("a lone surrogate \udc80"))
    first, second = read(path)
    assert first.message == "x" * 500 and second.message == r"a lone surrogate \udc80"


def test_the_file_has_a_header_and_a_line_a_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    append(path, run())
    append(path, failure("a\nb"))
    lines = path.read_text().splitlines()
    assert len(lines) == 3 and lines[0].split(",") == list(COLUMNS)


def test_a_line_that_was_cut_off_is_left_out_and_cut_away(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    append(path, run())
    whole = path.read_bytes()
    append(path, run(seed=1))
    path.write_bytes(path.read_bytes()[:-9])
    assert [one.seed for one in read(path)] == [0]
    mend(path)
    assert path.read_bytes() == whole
    append(path, run(seed=2))
    assert [one.seed for one in read(path)] == [0, 2]


def test_a_line_that_was_cut_off_within_a_letter_is_left_out_and_cut_away(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    append(path, failure("größer als €"))
    whole = path.read_bytes()
    append(path, failure("größer als €"))
    both = path.read_bytes()
    for end in range(len(whole), len(both)):  # wherever the writer was killed
        path.write_bytes(both[:end])
        assert len(read(path)) == 1
        mend(path)
        assert path.read_bytes() == whole
    assert [file.name for file in tmp_path.iterdir()] == ["runs.csv"]


def test_a_repair_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.csv"
    append(path, run())
    append(path, run(seed=1))
    path.write_bytes(torn := path.read_bytes()[:-9])

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            patch.setattr(os, function, fail)
            mend(path)
        assert path.read_bytes() == torn
    mend(path)
    assert len(read(path)) == 1


def test_a_repair_keeps_links_and_permissions(tmp_path: Path) -> None:
    there, path = tmp_path / "there.csv", tmp_path / "runs.csv"
    append(there, run())
    there.write_bytes(there.read_bytes() + b"cut of")
    there.chmod(0o640)
    path.symlink_to(there)
    mend(path)
    assert path.is_symlink() and there.stat().st_mode & 0o777 == 0o640 and len(read(there)) == 1


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    append(path, run())
    path.write_bytes(path.read_bytes() + b"\xff\n")
    with pytest.raises(ValueError, match=r"runs\.csv .*UTF-8.* line 3"):
        read(path)


def test_an_empty_file_has_no_runs(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("")
    assert read(tmp_path / "runs.csv") == []


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"runs.csv must have the columns problem, dim, .*, got a, b"):
        read(path)
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(["x"] * len(COLUMNS)) + "\n")
    with pytest.raises(ValueError, match=r"line 2 of .*runs.csv is not a run"):
        read(path)


def test_costs_are_values_and_gradients() -> None:
    assert run(evals=30, gradients=5).used == 35
    assert run().trajectory[1].cost == 7
    assert run().cell == Cell("sphere", 3, "cma", 0)


def test_not_reaching_the_target_is_no_failure() -> None:
    budget = run(ended=Ended.BUDGET, hits=(3.0, math.inf))
    assert not budget.solved and not budget.failed
    assert run(ended=Ended.TIMEOUT).failed and run(ended=Ended.KILLED).failed and run(ended=Ended.NAN).failed
