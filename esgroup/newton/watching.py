"""What happens after every iteration: a line on the terminal, and the caller's function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup.newton.result import result
from esgroup.newton.run import Run

Watch = Callable[[Run], bool]


@dataclass(frozen=True)
class _Shown:
    """What the line of progress reads."""

    nfev: int
    best_f: float
    sigma: float
    seconds: float


def watcher(stack: ExitStack, callback: Any, progress: bool) -> Watch:
    """A function of the run; false if the callback wants no more."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a result, got {callback!r}")
    shows: list[Callable[[Run], None]] = []
    if progress:
        from esgroup.running.progress import Progress

        line = stack.enter_context(Progress())
        shows.append(lambda run: line.update(_shown(run), *_limits(run)))  # type: ignore[arg-type]

    def watch(run: Run) -> bool:
        for show in shows:
            show(run)
        return callback is None or _wants_more(callback, run)

    return watch


def _wants_more(callback: Any, run: Run) -> bool:
    try:
        return not callback(result(run))
    except StopIteration:
        return False


def _shown(run: Run) -> _Shown:
    step = 0.0 if run.last_step is None else float(np.linalg.norm(run.last_step))
    return _Shown(run.function.counts.nfev, run.best.fun, step, run.seconds)


def _limits(run: Run) -> tuple[int | None, float | None, float | None]:
    return run.limits.max_evals, run.limits.target, run.limits.max_time
