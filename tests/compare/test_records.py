"""What is read of a file of runs is what was written to it."""

import csv
import errno
import math
import os
import random
import re
from pathlib import Path

import pytest

from esgroup.compare.records import COLUMNS, Cell, Ended, append, from_line, mend, read, to_line
from esgroup.compare.report.summary import overall, summarize
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


@pytest.mark.parametrize("content", ["", ",".join(COLUMNS) + "\n", "problem,di"])
def test_a_file_of_a_comparison_that_was_killed_at_its_start_has_no_runs(tmp_path: Path, content: str) -> None:
    (tmp_path / "runs.csv").write_text(content)
    assert read(tmp_path / "runs.csv") == []


def changed(tmp_path: Path, **fields: str) -> Path:
    """A file of two runs, the second of which has other fields."""
    path = tmp_path / "runs.csv"
    append(path, run())
    line = dict(zip(COLUMNS, to_line(run(seed=1)), strict=True)) | fields
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(line.values())
    return path


@pytest.mark.parametrize(
    "fields, fault",
    [
        ({"size": "0"}, "size must be an integer from 1 "),  # by which costs are divided
        ({"dim": "0"}, "dim must be an integer from 1 "),
        ({"evals": "-1"}, "evals must be an integer from 0 "),
        ({"gradients": "9" * 400}, "gradients must be an integer from 0 "),
        ({"seed": "9" * 5000}, ""),
        ({"ended": "tired"}, "tired"),
        ({"cost": "g"}, "'g'"),
        ({"best": "low"}, "low"),
        ({"hits": "1"}, "a hit for each target"),
        ({"hits": "0 0"}, "hits positive"),
        ({"hits": "nan nan"}, "hits positive"),
        ({"targets": "nan nan"}, "targets must be finite"),
        ({"trajectory": "1:2"}, ""),
        ({"trajectory": "0:0:1"}, "after some evaluations"),
        ({"trajectory": "1:0:nan"}, "a finite gap"),
        ({"message": "x" * 200_000}, "field larger"),
        ({"more": "1"}, "must have 18 fields, got 19"),
    ],
)
def test_a_run_that_cannot_be_is_named_with_its_place(tmp_path: Path, fields: dict[str, str], fault: str) -> None:
    path = changed(tmp_path, **fields)
    with pytest.raises(ValueError, match=rf"line 3 of .*runs\.csv is not a run: .*{fault}") as caught:
        read(path)
    assert len(str(caught.value)) < 1000


def test_any_one_other_field_is_read_or_refused_with_its_place(tmp_path: Path) -> None:
    rng, path, read_well = random.Random(1), tmp_path / "runs.csv", 0
    words = ["", "0", "-1", "1", "x", "nan", "inf", "-inf", "1e308", "9" * 400, "1.5", "\0", "1 2", "2:0:1", ":", "f"]
    append(path, run())
    append(path, run(seed=1))
    whole = path.read_text().splitlines()
    for _ in range(300):
        lines = [next(csv.reader([line])) for line in whole]
        lines[rng.choice((1, 2))][rng.randrange(len(COLUMNS))] = rng.choice(words)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(lines)
        try:
            runs = read(path)
            summarize(runs, runs[0].method)
            overall(runs, runs[0].method)
            read_well += 1
        except ValueError as error:
            assert re.search(r"line [23] of .*runs\.csv is not a run|targets must be the same", str(error))
    assert read_well > 50


def test_texts_of_a_file_do_not_steer_the_terminal(tmp_path: Path) -> None:
    assert read(changed(tmp_path, message="\x1b[2Jdone"))[1].message == "�[2Jdone"


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
