"""Many runs, side by side and not twice: each that ends is a line of a file, and is read from there the next time."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Size:
    """How large: the network, the images for training, validation and test, epochs, batches, seeds and settings."""

    widths: tuple[int, ...] = (8, 8, 16, 16, 32, 32)
    dense: tuple[int, ...] = (64, 64, 64)
    train: int = 10_000
    valid: int = 2_000
    test: int = 10_000
    epochs: int = 10
    batch: int = 50
    seeds: int = 5
    settings: int = 8
    scales: tuple[int, ...] = (1, 2, 4, 8)  # of the widths, for the cost of a step


@dataclass(frozen=True)
class Task:
    """One training run: the images (what --data says), a size, a method, which of its settings, a seed, epochs."""

    data: str | None
    size: Size
    method: str
    setting: int
    seed: int
    epochs: int

    def key(self) -> dict[str, Any]:
        """What the run depends on, as it is written to the file."""
        from reproduction.cnn_methods import METHODS, label

        size = asdict(self.size)
        for other in ("epochs", "seeds", "settings", "scales"):  # of the whole, not of this run
            del size[other]
        setting = label(METHODS[self.method].grid[self.setting])
        key = {"data": self.data, "method": self.method, "setting": setting, "seed": self.seed, "epochs": self.epochs}
        return json.loads(json.dumps(key | size))  # type: ignore[no-any-return]


def finished(path: Path) -> list[dict[str, Any]]:
    """The lines of the file. One that a break cut off is left out: its run is repeated."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return lines


def perform_all(
    tasks: Iterable[Task],
    path: Path | None,
    perform: Callable[[Task], dict[str, Any]],
    jobs: int,
    say: Callable[[str], None],
) -> dict[Task, dict[str, Any]]:
    """What every task found, those in the file without running them again; the others in that many processes."""
    tasks = list(tasks)
    known = {json.dumps(line["key"], sort_keys=True): line["found"] for line in finished(path)} if path else {}
    found = {task: known[key] for task in tasks if (key := json.dumps(task.key(), sort_keys=True)) in known}
    missing = [task for task in tasks if task not in found]
    if found:
        say(f"{len(found)} of {len(tasks)} runs are in {path} already")
    total, done, begin = sum(task.epochs for task in missing), 0, time.perf_counter()
    for i, (task, result) in enumerate(_performed(missing, perform, jobs), 1):
        found[task] = result
        if path:
            _append(path, {"key": task.key(), "found": result})
        done += task.epochs
        left = (time.perf_counter() - begin) / done * (total - done) / 60
        end = result["failed"] or f"validation loss {result['validation loss'][-1]:.4f}"
        what = f"{task.method}, {task.key()['setting']}, seed {task.seed}"
        say(f"{i} of {len(missing)} runs, about {left:.0f} min left; {what}: {end}")
    return found


def _append(path: Path, line: dict[str, Any]) -> None:
    """A line of its own, also after one that was cut off."""
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if whole else "\n") + json.dumps(line) + "\n")


def _performed(
    tasks: list[Task], perform: Callable[[Task], dict[str, Any]], jobs: int
) -> Iterator[tuple[Task, dict[str, Any]]]:
    if jobs == 1 or len(tasks) < 2:
        yield from ((task, perform(task)) for task in tasks)
        return
    # new processes and not copies of this one: torch may have started threads here
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(perform, task): task for task in tasks}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
