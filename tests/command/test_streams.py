"""The command with standard streams that are closed, not read or full, and with objectives that print."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import esgroup

ROOT = Path(__file__).parents[2]
MODULE = """
import ctypes
import os
import sys

print("imported")

def loud(x):
    print("printed")
    sys.__stdout__.write("written to the first stream\\n")
    os.write(1, b"written by number\\n")
    ctypes.CDLL(None).puts(b"written by C")
    return float(x @ x)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rig.py").write_text(MODULE)
    return tmp_path


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell, in which `esgroup` is the command; its exit code is printed by the line."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "problems"), os.environ.get("PYTHONPATH", "")])
    script = f'esgroup() {{ {sys.executable} -m esgroup "$@"; }}\n{line}'
    return subprocess.run(
        ["/bin/sh", "-c", script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120
    )


def said(stderr: str) -> list[str]:
    """The lines on stderr without the note that a new installation compiles its loops."""
    return [line for line in stderr.splitlines() if not line.startswith("esgroup: compiling")]


RUN = "run sphere --max-evals 50"


@pytest.mark.parametrize("words", [f"{RUN} --json", "list", "run --help", "plot h.jsonl"])
@pytest.mark.parametrize("way", ["closed", "not read"])
def test_a_stdout_that_is_closed_or_not_read_changes_neither_the_exit_code_nor_stderr(words: str, way: str) -> None:
    if words.startswith("plot"):
        esgroup.minimize(lambda x: float(x @ x), np.ones(3), 0.5, max_evals=50, history="h.jsonl")
    if way == "closed":
        result = shell(f"esgroup {words} >&-; echo code $?")
        assert result.stdout == "code 0\n"
    else:
        result = shell(f"(sleep 0.1; esgroup {words}; echo code $? >&2) | true")
    assert said(result.stderr) == ([] if way == "closed" else ["code 0"])


def test_the_first_line_of_a_list_can_be_had_alone() -> None:
    result = shell("(esgroup list; echo code $? >&2) | head -1")
    assert result.stdout.startswith("Problems") and result.stdout.count("\n") == 1 and said(result.stderr) == ["code 0"]


def test_a_comparison_that_nobody_reads_is_done() -> None:
    words = "compare sphere --dims 2 --methods esgroup --seeds 1 --max-evals 60 --jobs 1 --out there"
    result = shell(f"(esgroup {words}; echo code $? >&2) | true")
    assert said(result.stderr)[-1] == "code 0" and "Traceback" not in result.stderr
    assert Path("there", "index.html").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words", [f"{RUN} --json", "list", f"{RUN} --history h.jsonl >h.txt && esgroup watch h.jsonl --once"]
)
def test_output_that_cannot_be_written_is_an_error_of_one_line(words: str) -> None:
    result = shell(f"esgroup {words} >/dev/full; echo code $?")
    assert result.stdout == "code 1\n"
    assert said(result.stderr) == ["error: the output could not be written: No space left on device"]


@pytest.mark.parametrize(
    "line",
    [
        "esgroup run nosuch 2>&-; echo code $?",
        "{ { sleep 0.1; esgroup run nosuch 2>&1; echo code $? >&3; } | true; } 3>&1",
        "esgroup run nosuch 2>/dev/full; echo code $?",
    ],
)
def test_a_stderr_that_is_closed_not_read_or_full_does_not_change_the_exit_code(line: str) -> None:
    assert shell(line).stdout == "code 2\n"


def test_a_file_does_not_get_the_place_of_a_closed_stream() -> None:
    """With stdout closed, the first file that is opened would be number 1, and get what the objective prints."""
    result = shell("esgroup run rig:loud --dim 2 --max-iters 3 --history h.jsonl <&- >&- 2>&-; echo code $?")
    assert result.stdout == "code 0\n"
    assert [json.loads(line).get("nit") for line in Path("h.jsonl").read_text().splitlines()] == [None, 1, 2, 3]


@pytest.mark.parametrize("workers", ["", "--workers 2"])
def test_what_an_objective_prints_does_not_spoil_json(workers: str) -> None:
    result = shell(f"esgroup run rig:loud --dim 2 --max-evals 12 --seed 1 {workers} --json")
    assert result.returncode == 0 and json.loads(result.stdout)["nfev"] == 12
    for text in ("printed", "written to the first stream", "written by number", "written by C"):
        assert result.stderr.count(text) == 12, text
    assert "imported" in result.stderr


def test_without_json_what_an_objective_prints_stays_on_stdout() -> None:
    result = shell("esgroup run rig:loud --dim 2 --max-evals 12 --seed 1")
    assert result.stdout.count("printed\n") == 12 and said(result.stderr) == []


@pytest.mark.parametrize(
    "words, dim",
    [
        ("run sphere --dim", 10**9),
        ("run sphere --dim", 10**23),
        ("run rig:loud --dim", 10**12),
        ("compare sphere --out there --dims", 10**12),
    ],
)
def test_a_dimension_that_no_machine_has_memory_for_is_wrong_input(words: str, dim: int) -> None:
    result = shell(f"ulimit -v 8000000; esgroup {words} {dim}; echo code $?")
    assert result.stdout.endswith("code 2\n")
    lines = said(result.stderr)
    assert len(lines) == 1 and lines[0].startswith("error: ") and f"{dim:,}" in lines[0]


def test_memory_that_runs_out_is_an_error_of_one_line() -> None:
    """There are problems whose memory is not seen from their dimension."""
    Path("rig.py").write_text(
        "import numpy as np\ndef hungry(x):\n    return 0.0\ndef __getattr__(name):\n    return np.ones(2**50)\n"
    )
    result = shell("esgroup run rig:other --dim 2; echo code $?")
    assert result.stdout == "code 2\n" and "memory" in said(result.stderr)[0] and len(said(result.stderr)) == 1


def test_a_list_for_any_dimension_can_be_had() -> None:
    assert "10,000,000,000,000,000,000,000" in shell("COLUMNS=200 esgroup list --dim 10000000000000000000000").stdout


def test_warnings_are_lines() -> None:
    result = shell(f"esgroup {RUN} --history /dev/full")
    lines = said(result.stderr)
    assert result.returncode == 0 and lines[0].startswith("warning: the history /dev/full could not be written")
    assert all(line.startswith("warning: ") for line in lines)


def test_the_time_to_load_packages_is_not_that_of_the_search() -> None:
    """Numba, which the first generation needs, takes at least five seconds to load here."""
    Path("sitecustomize.py").write_text(
        "import sys, time\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numba':\n"
        "            sys.stderr.write('loading\\n')\n"
        "            time.sleep(5)\n"
        "sys.meta_path.insert(0, Slow())\n"
    )
    result = shell(f'PYTHONPATH="$PWD:$PYTHONPATH" {sys.executable} -m esgroup {RUN} --json')
    assert said(result.stderr) == ["loading"]
    assert json.loads(result.stdout)["seconds"] < 5
