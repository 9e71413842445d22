"""The tests notice every fault of the mutation check."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "mutation_check.py"


@pytest.mark.slow
def test_every_fault_is_caught() -> None:
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
