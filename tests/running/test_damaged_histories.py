"""Histories that are damaged or hostile: every reader gives a ValueError with file, line and fault, no other error."""

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esgroup.running import history_lines
from esgroup.running.follow import Followed
from esgroup.running.history import History, read
from esgroup.running.observers import watched
from tests.running.damaged_histories import DEEP, GENERATIONS, HEADER, Literal, damaged, text

FAULT = re.compile(r"run\.jsonl .*(line \d+ |first line|no generation|is empty|history format)", re.DOTALL)


def follow(path: Path) -> None:
    Followed(path).read_on()


def follow_while_it_grows(path: Path) -> None:
    content, run = path.read_bytes(), Followed(path)
    for part in (1, 2, 3):
        path.write_bytes(content[: part * len(content) // 3])
        run.read_on()


def continue_it(path: Path) -> None:
    with watched(None, History(path, append=True)):
        pass


READERS: list[Callable[[Path], Any]] = [read, follow, follow_while_it_grows, continue_it]


@pytest.mark.parametrize("reader", READERS)
def test_a_history_with_any_one_fault_is_read_or_refused_with_its_place(
    tmp_path: Path, reader: Callable[[Path], Any]
) -> None:
    path, read_well = tmp_path / "run.jsonl", 0
    for content in itertools.islice(damaged(seed=1), 400):
        path.write_bytes(content)
        try:
            reader(path)
            read_well += 1
        except ValueError as error:
            assert FAULT.search(str(error)) and len(str(error)) < 500, (content, error)
    assert 20 < read_well < 400  # some faults are none: another value, or an incomplete last line


@pytest.mark.parametrize(
    "line, change, fault",
    [
        (1, {"esgroup_history": True}, "history format True"),
        (1, {"dim": "2"}, "line 1 has dim '2', which must be an integer"),
        (1, {"dim": 0}, "line 1 has dim 0"),
        (1, {"dim": True}, "line 1 has dim True"),
        (1, {"problem": ["bowl"]}, "line 1 has problem .*a text or null"),
        (1, {"shape": [2, 0]}, r"line 1 has shape \[2, 0\]"),
        (1, {"names": ["rate"]}, "line 1 has 1 names of 2 coordinates"),
        (1, {"names": [1, 2]}, "line 1 has names .*a list of texts"),
        (1, {"coordinates": 3}, "line 1 has 3 coordinates of 2 variables"),
        (1, {"limits": {"max_evals": "many"}}, "line 1 has limits"),
        (2, {"nit": None}, "line 2 has nit None, which must be an integer from 0"),
        (2, {"nfev": 10.5}, "line 2 has nfev 10.5, which must be an integer from 1"),
        (2, {"nfev": 0}, "line 2 has nfev 0"),
        (2, {"nfev": 10**40}, "line 2 has nfev 10000"),
        (2, {"best_f": "low"}, "line 2 has best_f 'low', which must be a finite number or null"),
        (2, {"best_f": False}, "line 2 has best_f False"),
        (2, {"best_f": 10**400}, "line 2 has best_f 1000"),
        (2, {"best_f": Literal("1e999")}, "line 2 has best_f inf"),
        (2, {"best_f": Literal("NaN")}, "line 2 is not a JSON object: NaN"),
        (2, {"best_f": Literal("9" * 5000)}, "line 2 is not a JSON object: .*digits"),
        (2, {"best_f": DEEP}, "line 2 is nested too deeply"),
        (2, {"best_f": Literal('1, "best_f": 2')}, "line 2 is not a JSON object: .*duplicate"),
        (2, {"elapsed": -1}, "line 2 has elapsed -1"),
        (3, {"mean": [1.0]}, "line 3 has 1 numbers in mean, which must be 2"),
        (3, {"mean": [[1.0], [2.0]]}, "line 3 has mean .*a list of finite numbers"),
        (3, {"stds": None}, "line 3 has stds None"),
        (4, {"feasible": 1}, "line 4 has feasible 1, which must be true or false"),
        (4, {"limits": []}, "line 4 has limits"),
        (5, {"end": {"how": "stopped"}}, "line 5 has end"),
        (5, {"end": {"how": ["stopped"], "message": ""}}, "line 5 has end"),
    ],
)
@pytest.mark.parametrize("reader", [read, follow])
def test_the_fault_is_named(
    tmp_path: Path, line: int, change: dict[str, Any], fault: str, reader: Callable[[Path], Any]
) -> None:
    path, lines = tmp_path / "run.jsonl", [HEADER, *GENERATIONS]
    lines[line - 1] = lines[line - 1] | change
    path.write_bytes(text(*lines))
    with pytest.raises(ValueError, match=rf"run\.jsonl .*{fault}"):
        reader(path)


@pytest.mark.parametrize("reader", [read, follow])
def test_a_line_without_end_is_not_read_to_its_end(
    tmp_path: Path, reader: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(text(HEADER) + b" " * 3000)
    monkeypatch.setattr(history_lines, "LONGEST", 2000)
    with pytest.raises(ValueError, match=r"run\.jsonl .*line 2 has more than 2,000 bytes"):
        reader(path)
    monkeypatch.undo()
    if os.path.exists("/dev/zero"):
        with pytest.raises(ValueError, match=r"/dev/zero .*line 1 "):
            reader(Path("/dev/zero"))


def test_what_steers_a_terminal_is_replaced(tmp_path: Path) -> None:
    path, control = tmp_path / "run.jsonl", "a\x1b[2J\x9b\x00\u2028b\ud800\n"
    last = GENERATIONS[0] | {"end": {"how": control, "message": control}}
    path.write_bytes(text(HEADER | {"problem": control, "structure": control, "names": [control, "b"]}, last))
    run = Followed(path)
    run.read_on()
    shown = [run.header["problem"], run.header["structure"], run.header["names"][0], *run.end.values()]
    assert shown == ["a�[2J�� b� "] * 5 and read(path).header == run.header


def test_a_header_that_grows_is_that_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(text(HEADER))
    run = Followed(path)
    run.read_on()
    path.write_bytes(text(HEADER | {"more": 1}, GENERATIONS[0]))
    assert run.read_on() and run.header["more"] == 1 and len(run.generations) == 1
