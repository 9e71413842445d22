"""The example of a package with problems can be built and installed; its problem is listed and searched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "extending.md"
pytest.importorskip("setuptools", reason="the package is built by setuptools: pip install 'esgroup[test]'")


def example(name: str) -> str:
    """The code block of the page that starts with the file's name."""
    (block,) = re.findall(rf"```\w+\n# {re.escape(name)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block


def command(*words: str, path: list[Path]) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "200"}
    code = "from esgroup.command.cli import app; app()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_packages_problem_is_listed_and_searched(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in ("pyproject.toml", "my_problems.py"):
        (source / name).write_text(example(name))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    where = ["--no-build-isolation", "--target", str(site), str(source)]
    installed = subprocess.run([*pip, *where], capture_output=True, text=True, timeout=300)
    assert installed.returncode == 0, installed.stderr
    path = [site, ROOT, ROOT / "problems"]
    assert re.search(r"valley\W+A long valley along the first coordinate", command("list", path=path))
    said = command("run", "valley", "--dim", "4", "--seed", "1", "--target", "1e-6", path=path)
    assert "target" in said


def test_the_example_is_short() -> None:
    lines = [
        line for name in ("pyproject.toml", "my_problems.py") for line in example(name).splitlines() if line.strip()
    ]
    assert len(lines) <= 20
