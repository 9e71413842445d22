"""The tutorials run as plain scripts, from any folder, without a display and without leaving files behind."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# what an example runs in another process, and so does not import itself
BESIDES = {"comparing_methods.py": ("cma", "jinja2")}

pytestmark = pytest.mark.scripts


def imported(path: Path) -> set[str]:
    """The packages that a script imports anywhere."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def missing(path: Path) -> list[str]:
    """The packages that a script needs and that are not installed."""
    return sorted(name for name in imported(path) | set(BESIDES.get(path.name, ())) if find_spec(name) is None)


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "problems"), os.environ.get("PYTHONPATH", "")]
    settings = {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "TMPDIR": str(folder / "temporary")}  # fmt: skip
    (folder / "temporary").mkdir()
    (folder / "here").mkdir()
    command = [sys.executable, str(path)]
    environment = os.environ | settings
    return subprocess.run(command, cwd=folder / "here", env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow  # `.ci/run` builds the site, which executes the same scripts
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    if absent := missing(path):
        pytest.skip(f"{path.name} needs {', '.join(absent)}")
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout, "it prints nothing"
    assert not list((tmp_path / "here").iterdir()), "it leaves files in the current folder"
    left = [name for name in os.listdir(tmp_path / "temporary") if not name.startswith("dask-")]  # Dask keeps its own
    assert not left, "it leaves temporary files"


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_begins_with_a_title_and_has_a_picture(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, rule = (ast.get_docstring(tree) or "").splitlines()[:2]
    assert title and set(rule) == {"="} and len(rule) >= len(title)
    assert "matplotlib" in imported(path)


def test_there_are_examples() -> None:
    assert (ROOT / "examples" / "GALLERY_HEADER.rst").exists() and len(EXAMPLES) >= 7
