"""The tests notice every fault of the mutation check."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "mutation_check.py"


def test_every_fault_is_about_one_piece_of_text_that_is_there() -> None:
    spec = importlib.util.spec_from_file_location("mutation_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    stale = [one.name for one in check.FAULTS if one.path(ROOT).read_text().count(one.old) != 1]
    assert not stale


@pytest.mark.slow
def test_every_fault_is_caught() -> None:
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
