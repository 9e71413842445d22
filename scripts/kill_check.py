"""Kill runs of `minimize` that write checkpoints, resume them, and see whether anything is lost.

    python scripts/kill_check.py                         300 kills, a minute or two
    python scripts/kill_check.py --kills 1000 --seed 7

A process runs `minimize` with a checkpoint and is killed (SIGKILL) at a random moment, every second time while it
writes; then another one resumes. When a run is complete, the next one begins, of another kind. Checked are:

- after each kill the checkpoint loads, and holds the last state of which the writer had said that it was written, or
  the one that it was writing;
- it never holds less than a checkpoint that was seen before;
- a process counts its evaluations on top of those in the file it began with: none is counted twice or forgotten;
- a checkpoint was written whenever it was due, so that a kill loses no more than what happens between two of them;
- the result and the last checkpoint of every complete run equal those of a run that nobody disturbed, bit for bit;
- nothing but the checkpoint is left in the folder.

Exit code 1 if anything is wrong. Needs POSIX signals.
"""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import esgroup
from esgroup.files import autosave, npz

PAUSE = 0.0005  # seconds of an evaluation: a run takes many kills, and a generation is longer than a write is late
LONGEST = 0.3  # seconds until a kill
PATIENCE = 60.0  # seconds in which something must happen
app = typer.Typer(add_completion=False)


# ---- runs ---------------------------------------------------------------------------------------------------------


def ellipsoid(x: Any) -> float:
    return float(np.sum(10 ** np.linspace(0, 3, x.size) * (x.ravel() - 0.3) ** 2))


def rastrigin(x: Any) -> float:
    return float(10 * len(x) + (x**2 - 10 * np.cos(2 * np.pi * x)).sum())


class Kind(NamedTuple):
    """A run: the function, where it starts, and the options of `minimize`."""

    fun: Callable[[Any], float]
    x0: Any
    options: dict[str, Any]


KINDS = (
    Kind(ellipsoid, np.ones(5), {"sigma0": 0.5, "max_evals": 2000}),
    Kind(rastrigin, np.full(2, 2.2), {"sigma0": 0.5, "restarts": "bipop", "bounds": (-5, 5), "max_evals": 2500}),
    Kind(ellipsoid, np.eye(3), {"space": "spd", "max_evals": 1500}),
    Kind(ellipsoid, np.zeros(4), {"sigma0": 1.0, "integer": [1], "fixed": {2: 0.5}, "max_evals": 1500}),
    Kind(rastrigin, np.zeros(2), {"basins": 3, "bounds": (-5, 5), "max_evals": 2000}),
)


def minimized(kind: Kind, seed: int, fun: Callable[[Any], float], **more: Any) -> dict[str, Any]:
    """The result of a run, without what depends on the time."""
    return dict(esgroup.minimize(fun, kind.x0, rng=seed, **kind.options, **more))


def stored(path: Path) -> tuple[Any, Any]:
    """What a checkpoint holds, without what depends on the time."""
    header, arrays = npz.read(path, "searcher")
    return {name: value for name, value in header.items() if name != "seconds"}, arrays


def evaluations(header: dict[str, Any]) -> int:
    """The evaluations of all runs in the header of a checkpoint."""
    return int(header["nfev"])


def same(first: Any, second: Any) -> bool:
    """Whether two results or checkpoints are equal bit for bit."""
    return pickle.dumps(_plain(first)) == pickle.dumps(_plain(second))


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(name, _plain(value[name])) for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return repr(value)


# ---- a process at work ----------------------------------------------------------------------------------------------


class Board:
    """Numbers that a process writes for the one that kills it; they stay when it is gone."""

    NAMES = ("alive", "writes", "writing", "begun", "written", "evaluations", "miscounted", "overdue", "overdue_before")

    def __init__(self) -> None:
        object.__setattr__(self, "_numbers", np.frombuffer(mmap.mmap(-1, 8 * len(self.NAMES)), dtype=np.int64))

    def __getattr__(self, name: str) -> int:
        return int(self._numbers[self.NAMES.index(name)])

    def __setattr__(self, name: str, value: int) -> None:
        self._numbers[self.NAMES.index(name)] = value


class Observed:
    """The objective and the writer of checkpoints of a process, which say on the board what they do."""

    def __init__(self, board: Board, known: int) -> None:
        self.board, self.known = board, known
        self.begin, self.spent, self.last = 0.0, 0.0, 0.0
        self._write, self._keep = npz.write, autosave.CheckpointWriter._write

    def write(self, path: Any, kind: str, header: Any, arrays: Any) -> None:
        board, count = self.board, evaluations(header)
        if count - self.known != board.evaluations:
            board.miscounted = 1
        board.begun, board.writing, board.writes = count, 1, board.writes + 1
        self._write(path, kind, header, arrays)
        board.written, board.writing = count, 0

    def keep(self, writer: Any, kept: Any) -> None:
        """What writes a checkpoint, on the clock: from outside, so that the time is not less than what it measures."""
        begin = time.monotonic()
        self.begin = self.begin or begin  # not earlier than where its share of the time begins
        self._keep(writer, kept)
        self.last = time.monotonic() - begin
        self.spent += self.last
        self.board.overdue = self.board.overdue_before = 0

    def generation_ended(self, search: Any) -> None:
        """A callback, after which a checkpoint is written if that is cheap; it is overdue if it was not last time."""
        if self.board.overdue:
            self.board.overdue_before = 1
        share = autosave.WRITING * (time.monotonic() - self.begin)
        self.board.overdue = int(self.spent + self.last < share)

    def objective(self, fun: Callable[[Any], float]) -> Callable[[Any], float]:
        def slow(x: Any) -> float:
            time.sleep(PAUSE)
            self.board.evaluations += 1
            return fun(x)

        return slow


def work(kind: Kind, seed: int, path: Path, board: Board, known: int | None) -> None:
    """Begin or resume a run and leave its result beside the checkpoint; `known` evaluations are in the file."""
    board.alive, observed = 1, Observed(board, known or 0)
    npz.write, autosave.CheckpointWriter._write = observed.write, lambda *of: observed.keep(*of)  # type: ignore[method-assign]
    options = {"checkpoint": path, "resume": known is not None, "callback": observed.generation_ended}
    found = minimized(kind, seed, observed.objective(kind.fun), **options)
    path.with_suffix(".result").write_bytes(pickle.dumps(found))


def started(*arguments: Any) -> int:
    """The id of a new process that does the work."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(int(PATIENCE))  # ends the process if its parent is gone
            work(*arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


# ---- kills -----------------------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    kills: int = 0
    inside: int = 0  # of them while a checkpoint was written
    runs: int = 0  # complete ones
    most_lost: int = 0  # evaluations that had to be made again after one kill

    def __str__(self) -> str:
        writes = f"{self.inside} of them inside a write"
        return f"{self.kills} kills, {writes}, {self.runs} complete runs, at most {self.most_lost} evaluations repeated"


class Damage(Exception):
    """What is wrong."""


def _require(good: bool, text: str) -> None:
    if not good:
        raise Damage(text)


class Run:
    """One run of `minimize` through all its kills."""

    def __init__(self, kind: Kind, seed: int, folder: Path) -> None:
        self.kind, self.seed, self.path = kind, seed, folder / "run.npz"
        self.known: int | None = None  # evaluations in the checkpoint

    def step(self, rng: np.random.Generator, tally: Tally, kill: bool) -> Tally:
        """Start a process, kill it unless it comes to an end earlier, and look at what it left."""
        board, before = Board(), self.known or 0
        board.written = before
        child = started(self.kind, self.seed, self.path, board, self.known)
        seen = self._wait(child, board, rng) if kill else None
        if kill:
            os.kill(child, signal.SIGKILL)  # if it has ended already, it still has its id until we look
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        _require(ended in (0, -signal.SIGKILL), f"a process ended with code {ended}")
        _require(not board.miscounted, "evaluations were counted twice or not at all")
        _require(not board.overdue_before, "a checkpoint was due, but not written")
        self._look(board, seen)
        if ended == 0:
            self._compare()
            return tally._replace(runs=tally.runs + 1)
        lost = board.evaluations - ((self.known or 0) - before)
        inside = tally.inside + bool(board.writing)
        return tally._replace(kills=tally.kills + 1, inside=inside, most_lost=max(tally.most_lost, lost))

    def _wait(self, child: int, board: Board, rng: np.random.Generator) -> int | None:
        """Wait for the moment of the kill; return the evaluations of the newest checkpoint that was seen."""
        write = int(rng.integers(1, 4)) if rng.random() < 0.5 else 0  # during which one, or 0: at any moment
        later = rng.uniform(0, 0.004 if write else LONGEST)
        reached: Callable[[], int] = lambda: board.writes >= write if write else board.alive  # noqa: E731
        seen, begin, at = self.known, time.monotonic(), None
        while at is None or time.monotonic() < at:
            if at is None and reached():
                at = time.monotonic() + later
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return seen
            _require(time.monotonic() < begin + PATIENCE, "a process does nothing")
            if not write and self.path.exists():
                seen = self._stored_evaluations()
            time.sleep(0.0002)
        return seen

    def _look(self, board: Board, seen: int | None) -> None:
        """The checkpoint after the end of a process."""
        if not self.path.exists():
            _require(self.known is None and seen is None and board.writes == board.writing, "the checkpoint is gone")
            return
        count = self._stored_evaluations()
        _require(count >= (seen or 0), f"a checkpoint of {seen} evaluations was seen, later one of {count}")
        allowed = {board.written, board.begun} if board.writing else {board.written}
        _require(count in allowed, f"the checkpoint has {count} evaluations, not {sorted(allowed)}")
        self.known = count

    def _stored_evaluations(self) -> int:
        """The evaluations in the checkpoint, which must be a whole search at any time."""
        try:
            esgroup.Searcher.load(self.path)
            return evaluations(npz.read(self.path, "searcher")[0])
        except esgroup.CheckpointError as error:
            raise Damage(f"the checkpoint is damaged: {error}") from error

    def _compare(self) -> None:
        """A complete run with one that nobody disturbed."""
        alone = self.path.with_name("alone.npz")
        result = minimized(self.kind, self.seed, self.kind.fun, checkpoint=alone)
        mine = pickle.loads(self.path.with_suffix(".result").read_bytes())
        _require(same(mine, result), f"the result is {mine}, but that of the run without kills is {result}")
        _require(same(stored(self.path), stored(alone)), "the last checkpoint is not that of the run without kills")
        left = sorted(set(os.listdir(self.path.parent)) - {"run.npz", "run.result", "alone.npz"})
        _require(not left, f"files are left: {left}")


def check(kills: int, seed: int, show: Callable[[Tally], None]) -> Tally:
    """Kill runs of all kinds, one after another; Damage if something is wrong."""
    rng, tally = np.random.default_rng(seed), Tally()
    for kind, number in zip(itertools.cycle(KINDS), itertools.count(seed)):
        with tempfile.TemporaryDirectory() as folder:
            run, runs = Run(kind, number, Path(folder)), tally.runs
            while tally.runs == runs:
                tally = run.step(rng, tally, kill=tally.kills < kills)
                show(tally)
        if tally.kills >= kills:
            return tally
    raise AssertionError("the list of runs has no end")


@app.command()
def main(
    kills: Annotated[int, typer.Option(min=1, help="How many processes to kill.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Of the moments and of the runs.")] = 0,
) -> None:
    """Kill runs that write checkpoints, resume them, and see whether anything is lost."""
    live, shown = sys.stdout.isatty(), 0

    def show(tally: Tally) -> None:
        nonlocal shown
        if live:
            print(f"\r\x1b[K{tally}", end="", flush=True)
        elif tally.kills >= shown + 50:
            shown = tally.kills
            print(tally, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for i, kind in enumerate(KINDS):  # compiles and loads all that is needed, before the first process is started
            short = kind._replace(options=kind.options | {"max_evals": 200})
            for resume in (False, True):
                minimized(short, 0, kind.fun, checkpoint=Path(folder, f"{i}.npz"), resume=resume)
    try:
        tally = check(kills, seed, show)
    except Damage as damage:
        print(("\n" if live else "") + f"FAILED (seed {seed}): {damage}")
        raise typer.Exit(1) from None
    print(("\r\x1b[K" if live else "") + f"{tally}: nothing was lost.")


if __name__ == "__main__":
    app()
