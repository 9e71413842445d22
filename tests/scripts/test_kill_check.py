"""The script that kills runs: it finds nothing wrong with ours, and it finds what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.scripts,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals"),
]

SCRIPTS = Path(__file__).parents[2] / "scripts"

BREAK = """
import sys
sys.path.insert(0, {scripts!r})
import kill_check
from esgroup.files import npz
from esgroup.driver import unfinished
from esgroup.search import snapshot
{fault}
kill_check.KINDS = kill_check.KINDS[:2]
kill_check.app(["--kills", "60", "--seed", "3"])
"""

# written in its place, byte by byte as it were
IN_PLACE = """
whole = npz.write
def write(path, *contents):
    import pathlib, time
    whole(str(path) + ".new", *contents)
    data = pathlib.Path(str(path) + ".new").read_bytes()
    pathlib.Path(str(path) + ".new").unlink()
    with open(path, "wb", buffering=0) as file:
        for start in range(0, len(data), 4096):
            file.write(data[start : start + 4096])
            time.sleep(0.0005)
npz.write = write
"""

COUNTED_TWICE = """
whole = unfinished.Unfinished.restore
def restore(self, search, saved):
    whole(self, search, saved)
    search.ledger.nfev += search.popsize
unfinished.Unfinished.restore = restore
"""

GENERATOR_LOST = """
import numpy
whole = snapshot.from_file
def from_file(*of):
    search = whole(*of)
    search.rng = numpy.random.default_rng(1)
    return search
snapshot.from_file = from_file
"""

NEVER_WRITTEN = """
from esgroup.files import autosave
autosave.CheckpointWriter.generation = lambda self, kept: None
"""

REMNANTS = """
npz._remove_remnants = lambda *of: None
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600)


def test_nothing_is_lost_when_runs_are_killed() -> None:
    done = run(str(SCRIPTS / "kill_check.py"), "--kills", "12", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("12 kills, ") and done.stdout.endswith(": nothing was lost.\n")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (IN_PLACE, "the checkpoint is damaged"),
        (COUNTED_TWICE, "evaluations were counted twice or not at all"),
        (GENERATOR_LOST, "the result is"),
        (NEVER_WRITTEN, "a checkpoint was due, but not written"),
        (REMNANTS, "files are left"),
    ],
    ids=["in place", "counted twice", "generator lost", "never written", "remnants"],
)
def test_what_is_lost_is_found(fault: str, message: str) -> None:
    done = run("-c", BREAK.format(scripts=str(SCRIPTS), fault=fault))
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("FAILED (seed 3): ") and message in done.stdout
