"""Processes that are killed while they save: the last checkpoint can be read, and the work continues from it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import esgroup
from esgroup.files import npz

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")

ROOT = Path(__file__).parents[2]
KILLS = [5, pytest.param(100, marks=pytest.mark.slow)]

# Does the slow imports once. For each line that it reads it forks a process to do the work and prints its id; after one
# more line it prints how that process ended. Until then, the system does not give the id to another process.
NURSERY = """
import os, signal, sys
{work}
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends the process if its parent is gone
        work(line.strip())
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

COUNT = """
import numpy as np
from esgroup.files import npz

def work(line):
    n = npz.read(line, "count")[0]["n"] if os.path.exists(line) else 0
    while True:
        n += 1
        size = 1000 * (1 + n % 7)
        npz.write(line, "count", {"n": n}, {"a": np.full(size, n), "b": n + np.arange(9 * size)})
"""

SEARCH = """
import numpy as np, esgroup

def generation(search):
    search.tell([float(x @ x) for x in search.ask()])

def work(line):
    path, seed = line.split()
    search = esgroup.Searcher(np.ones(5), 0.5, rng=int(seed))
    while True:
        generation(search)
        search.save(path)

generation(esgroup.Searcher(np.ones(5), 0.5))  # compiles and loads everything that is needed
"""


class Nursery:
    """Starts processes that work until they are killed."""

    def __init__(self, work: str) -> None:
        command, environment = [sys.executable, "-c", NURSERY.format(work=work)], os.environ | {"PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def answer(self, line: str) -> int:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    @contextlib.contextmanager
    def child(self, line: str) -> Iterator[None]:
        """A process at work during the block, killed at its end."""
        number = self.answer(line)
        try:
            yield
        finally:
            os.kill(number, signal.SIGKILL)
            died_of = self.answer("how did it end?")
        assert died_of == -signal.SIGKILL  # not of something else, earlier


def wait_for(path: Path, old: int | None = None) -> None:
    """Wait until the path is a new file."""
    end = time.monotonic() + 30
    while not path.exists() or path.stat().st_ino == old:
        assert time.monotonic() < end, "no checkpoint within half a minute"
        time.sleep(0.001)


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".")]


def count(path: Path) -> int:
    """The number in a checkpoint of COUNT, all of whose parts belong together."""
    header, arrays = npz.read(path, "count")
    n, size = header["n"], 1000 * (1 + header["n"] % 7)
    assert np.array_equal(arrays["a"], np.full(size, n)) and np.array_equal(arrays["b"], n + np.arange(9 * size))
    return n


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_writer_leaves_a_whole_checkpoint(tmp_path: Path, kills: int) -> None:
    path, rng, n, old = tmp_path / "count.npz", np.random.default_rng(kills), 0, None
    with Nursery(COUNT) as nursery:
        for _ in range(kills):
            with nursery.child(str(path)):
                wait_for(path, old)
                time.sleep(rng.uniform(0, 0.03))
            n, before, old = count(path), n, path.stat().st_ino
            assert n > before
            assert len(hidden(tmp_path)) <= 1  # the last one killed; it has removed what the earlier ones left


def test_a_reader_never_sees_half_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "count.npz"
    with Nursery(COUNT) as nursery, nursery.child(str(path)):
        wait_for(path)
        end, seen = time.monotonic() + 30, [count(path)]
        while len(set(seen)) < 20 and time.monotonic() < end:
            seen.append(count(path))
    assert seen == sorted(seen) and len(set(seen)) == 20


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_search_continues_from_its_checkpoint(tmp_path: Path, kills: int) -> None:
    rng = np.random.default_rng(kills)
    with Nursery(SEARCH) as nursery:
        for seed in range(kills):
            path = tmp_path / f"search-{seed}.npz"
            with nursery.child(f"{path} {seed}"):
                wait_for(path)
                time.sleep(rng.uniform(0, 0.1))
            check_that_it_continues_unchanged(path, seed)
            assert sum(f"search-{seed}" in name for name in hidden(tmp_path)) <= 1


def check_that_it_continues_unchanged(path: Path, seed: int) -> None:
    """The loaded search equals one that came to the same generation without an interruption, bit for bit."""
    loaded = esgroup.Searcher.load(path)
    assert loaded.nit >= 1 and loaded.nfev == loaded.nit * loaded.popsize
    search = esgroup.Searcher(np.ones(5), 0.5, rng=seed)
    for _ in range(loaded.nit):
        search.tell([float(x @ x) for x in search.ask()])
    for _ in range(3):
        assert loaded.best_f == search.best_f and np.array_equal(loaded.mean, search.mean)
        points = search.ask()
        assert np.array_equal(loaded.ask(), points)
        for one in (loaded, search):
            one.tell([float(x @ x) for x in points])
    assert loaded.nfev == loaded.nit * loaded.popsize == search.nfev
    loaded.save(path)  # removes what the killed process left
    assert f".{path.name}." not in "".join(hidden(path.parent))
