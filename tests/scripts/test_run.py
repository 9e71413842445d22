"""scripts/run: what it installs for which command, what it says meanwhile, and that the next call does nothing of it.

A stand-in takes the place of Python, of pip and of the command: it makes the environment and prints what it was told.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
case "$*" in
    *"-m venv"*)
        mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
        printf '#!/bin/sh\\necho esgroup "$@"\\n' > "$3/bin/esgroup" && chmod +x "$3/bin/esgroup" ;;
    *"-m pip install"*)
        for last; do :; done
        echo "$last" >> installed
        echo "  Downloading scipy-1.17.0-cp311-cp311-manylinux.whl (35.3 MB)"
        echo "  Downloading rich-14.0-py3-none-any.whl.metadata (18 kB)"
        [ -e broken ] && { echo "no network"; exit 1; }
        echo "Installing collected packages: esgroup" ;;
    *"-m compileall"*) echo "$*" >> compiled ;;
    scripts/*) echo "python $*" ;;
    *--version*) echo "Python 3.12.0" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with the scripts only, in a folder whose name has a space."""
    root = tmp_path / "a clone"
    (root / "scripts").mkdir(parents=True)
    for name in ("run", "_setup.sh"):
        shutil.copy(ROOT / "scripts" / name, root / "scripts" / name)
    (root / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(PYTHON)
    (tmp_path / "bin" / "python3").chmod(0o755)
    return root


def call(root: Path, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | environment | {"PATH": f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [root / "scripts" / "run", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)


def installed(root: Path) -> list[str]:
    return (root / "installed").read_text().split()


def test_every_stage_has_a_line_and_the_next_call_has_none(clone: Path) -> None:
    first, second = call(clone, "list"), call(clone, "list")
    assert first.stdout == second.stdout == "esgroup list\n"
    lines = first.stderr.splitlines()
    assert all(line.startswith("esgroup: ") for line in lines)
    assert [line.split(":")[1].strip() for line in lines if " of 3: " in line] == ["1 of 3", "2 of 3", "3 of 3"]
    assert all("; usually " in line for line in lines if " of 3: " in line)
    assert "esgroup:    scipy, 35.3 MB" in lines and "rich" not in first.stderr
    assert "Python 3.12.0" in lines[1] and lines[-1].startswith("esgroup: done in ")
    assert second.stderr == "" and installed(clone) == ["."]


def test_the_modules_are_compiled_once_also_for_a_python_that_would_not_keep_them(clone: Path) -> None:
    call(clone, "list")
    call(clone, "list")
    (compiled,) = (clone / "compiled").read_text().splitlines()
    assert compiled.endswith("-m compileall -q esgroup problems/esgroup_problems")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", ".[plot]"),
        ("list", "."),
        ("run sphere", "."),
        ("run sphere --plot=f.png", ".[plot]"),
        ("run sphere --dim 2 --plot f.png", ".[plot]"),
        ("plot h.jsonl", ".[plot]"),
        ("compare sphere", ".[compare]"),
        ("compare --preset bbob", ".[compare,bench]"),
        ("compare --preset=largescale", ".[compare,bench]"),
        ("run bbob_f1", ".[bench]"),
        ("compare --help", "."),
    ],
)
def test_a_command_gets_what_it_needs_and_no_more(clone: Path, words: str, wanted: str) -> None:
    done = call(clone, *words.split())
    assert done.returncode == 0 and installed(clone) == [wanted], done.stderr
    assert done.stdout.startswith(f"esgroup {words}" if words else "esgroup run rosenbrock --dim 20")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("# extras: compare", ".[compare]"), ("# extras: bench sim", ".[bench,sim]"), ("import numpy", ".")],
)
def test_a_script_gets_the_extras_that_it_names(clone: Path, line: str, wanted: str) -> None:
    (clone / "scripts" / "draw.py").write_text(f'"""A figure."""\n{line}\n')
    done = call(clone, "scripts/draw.py", "--out", "a b.png", cwd=clone)
    assert (done.returncode, done.stdout) == (0, "python scripts/draw.py --out a b.png\n"), done.stderr
    assert installed(clone) == [wanted]


def test_a_script_that_does_not_exist_is_named_before_anything_is_installed(clone: Path) -> None:
    done = call(clone, "scripts/draw.py", cwd=clone)
    assert (done.returncode, done.stderr) == (2, "esgroup: there is no script scripts/draw.py\n")
    assert not (clone / "installed").exists()


def test_what_one_command_has_installed_the_next_one_keeps(clone: Path) -> None:
    for words in ("list", "plot h.jsonl", "run sphere", "compare sphere", "plot h.jsonl"):
        assert call(clone, *words.split()).returncode == 0
    assert installed(clone) == [".", ".[plot]", ".[plot,compare]"]


def test_what_later_commands_need_can_be_fetched_with_the_first(clone: Path) -> None:
    for words, more in (("list", "plot compare"), ("plot h.jsonl", ""), ("compare sphere", "")):
        assert call(clone, *words.split(), ESGROUP_EXTRAS=more).returncode == 0
    assert installed(clone) == [".[plot,compare]"]


def test_a_failure_of_pip_is_shown_and_tried_again(clone: Path) -> None:
    (clone / "broken").touch()
    failed = call(clone, "list")
    assert failed.returncode == 1 and "no network\n" in failed.stderr and failed.stdout == ""
    assert "could not install the package" in failed.stderr and "done in" not in failed.stderr
    (clone / "broken").unlink()
    assert call(clone, "list").stdout == "esgroup list\n"
