""".ci/run: the order of its stages, what it shows of those beside others, and that the failure of each is its own.

Stand-ins take the places of the tools: they note that they were called, and fail if a file with their name says so.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = """#!/bin/sh
name=$(basename "$0")
case "$name $*" in
    *pip*) name=pip ;;
    *"-c import"*) exit 1 ;;
    *compile_kernels*) name=kernels ;;
    *mutation_check*) name=mutations ;;
    *"not (slow or browser)"*) name=tests ;;
    *"browser and not slow"*) name=pages ;;
esac
echo "$name begins"
[ -e "slow $name" ] && sleep 1
echo "$name $*" >> calls
[ -e "fail $name" ] && { echo "$name is broken"; exit 3; }
echo "$name ends"
"""
TOOLS = ("scripts/test", "scripts/docs", *(f".venv/bin/{name}" for name in ("python", "ruff", "mypy")), "bin/chromium")
STAGES = ["browser", "environment", "kernels", "lint", "libraries", "docs", "types", "tests", "pages", "mutations"]

pytestmark = [
    pytest.mark.scripts,
    pytest.mark.skipif(not shutil.which("bash"), reason="needs bash"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in (".ci/run", *TOOLS, "tests/test_with_a_browser.py", "tests/test_without.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TOOL)
        (tmp_path / name).chmod(0o755)
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "tests" / "test_with_a_browser.py").write_text("pytestmark = pytest.mark.browser\n")
    return tmp_path


def run(clone: Path) -> subprocess.CompletedProcess[str]:
    path = f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [clone / ".ci" / "run"], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60
    )


def passed(output: str) -> list[str]:
    """The stages that passed, in the order in which they are shown."""
    return [line.split(":")[0][3:] for line in output.splitlines() if ": passed in " in line]


def test_every_stage_is_shown_whole_and_with_its_time(clone: Path) -> None:
    done = run(clone)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(passed(done.stdout)) == sorted(STAGES)
    assert done.stdout.splitlines()[-1].startswith("== all stages passed in ")
    for part in done.stdout.split("\n\n== ")[1:-1]:
        lines = part.splitlines()
        assert [line.split()[-1] for line in lines[1:-1]] in (["begins", "ends"], []), part
        assert lines[-1].startswith(f"== {lines[0].split(':')[0]}: passed in ")


def test_stages_beside_others_are_over_before_what_needs_them(clone: Path) -> None:
    for name in ("pip", "mypy"):
        (clone / f"slow {name}").touch()
    done = run(clone)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split()[0] for line in (clone / "calls").read_text().splitlines()]
    assert names[0] == "test" and names[-3:] == ["tests", "pages", "mutations"]
    middle = [name for name in names if name in ("kernels", "pip", "docs", "mypy", "tests")]
    assert middle == ["kernels", "pip", "docs", "mypy", "tests"]


def test_pages_are_tested_by_the_files_that_need_a_browser(clone: Path) -> None:
    assert run(clone).returncode == 0
    (line,) = (line for line in (clone / "calls").read_text().splitlines() if line.startswith("pages"))
    assert "tests/test_with_a_browser.py" in line and "test_without" not in line


@pytest.mark.parametrize("name", ["test", "ruff", "kernels", "docs", "mypy", "tests", "pages", "mutations"])
def test_the_failure_of_a_stage_is_that_of_the_run_and_is_shown(name: str, clone: Path) -> None:
    (clone / f"fail {name}").touch()
    if name in ("ruff", "mypy"):  # beside others, which are over first
        (clone / f"slow {name}").touch()
    done = run(clone)
    assert done.returncode == 3
    assert f"{name} is broken\n== " in done.stdout and ": FAILED with status 3 after " in done.stdout.splitlines()[-1]
    if name not in ("tests", "pages", "mutations"):
        assert "tests " not in (clone / "calls").read_text()


def test_without_the_libraries_their_tests_are_skipped_and_the_run_says_so(clone: Path) -> None:
    (clone / "fail pip").touch()
    done = run(clone)
    assert done.returncode == 0 and "tests of networks are skipped" in done.stdout and "JAX could not" in done.stdout
