"""What others see of a running fit: a line on a terminal, a file of JSON lines."""

from __future__ import annotations

import json
import math
import time
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import IO, Any, Self

from esgroup.running.progress import INTERVAL, Progress
from esgroup.variational.fit import Fit

FORMAT = 1
MOST_COORDINATES = 100


class FitProgress(Progress):
    """The live line of a fit."""

    def show(self, fit: Fit, max_iters: int) -> None:
        """Show where the fit is, at most ten times a second."""
        now = time.monotonic()
        if self._live is not None and now >= self._shown + INTERVAL:
            self._shown = now
            self._show(line(fit, max_iters))


def line(fit: Fit, max_iters: int) -> str:
    """What the line says."""
    counts = fit.objective.target.counts
    error = "" if math.isnan(fit.elbo_stderr) else f" ± {fit.elbo_stderr:.2g}"
    names = (("values", counts.nfev), ("gradients", counts.njev), ("products", counts.nhvp))
    parts = [
        f"iteration {fit.nit:,} of {max_iters:,}",
        f"ELBO {fit.elbo:.5g}{error}",
        f"rate {fit.rate:.2g}",
        *(f"{count:,} {name}" for name, count in names if count),
    ]
    return " · ".join(parts)


class FitHistory:
    """Writes one line per iteration, flushed at once: iteration, smoothed ELBO, rate, counts, means of components.

    Of means with more than 100 coordinates the first 100 are kept. With `after` it goes on with the file of an earlier
    run: lines of later iterations, which no checkpoint knows of, are cut off, for they will be written again.
    """

    def __init__(self, path: str | PathLike[str], after: int | None = None) -> None:
        self.path = Path(path)
        fresh = after is None or not self.path.exists()
        if after is not None and not fresh:
            _cut(self.path, after)
        elif self.path.exists() and self.path.stat().st_size and not _is_history(self.path):
            raise ValueError(f"{self.path} is there already, and is not a history of a fit")
        self._file: IO[str] = self.path.open("w" if fresh else "a", encoding="utf-8")
        if fresh:
            self._write({"esgroup_posterior": FORMAT})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def record(self, fit: Fit) -> None:
        """Add the iteration that was just completed."""
        counts = fit.objective.target.counts
        self._write(
            {
                "nit": fit.nit,
                "elbo": _number(fit.elbo),
                "elbo_stderr": _number(fit.elbo_stderr),
                "rate": fit.rate,
                "nfev": counts.nfev,
                "njev": counts.njev,
                "nhvp": counts.nhvp,
                "mean": fit.objective.mixture.mean(fit.state)[:MOST_COORDINATES].tolist(),
            }
        )

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, allow_nan=False) + "\n")
        self._file.flush()


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _is_history(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().startswith(b'{"esgroup_posterior":')


def _cut(path: Path, nit: int) -> None:
    """Keep the lines up to that iteration that are whole."""
    if not _is_history(path):
        raise ValueError(f"{path} is there already, and is not a history of a fit")
    with path.open("r+b") as file:
        header = len(file.readline())
        file.truncate(header + sum(map(len, takewhile(lambda text: _is_whole(text, nit), file))))


def _is_whole(text: bytes, nit: int) -> bool:
    """Whether it is the line of an iteration up to this one."""
    try:
        return text.endswith(b"\n") and int(json.loads(text)["nit"]) <= nit
    except (ValueError, KeyError, TypeError):  # written in part, and then something else
        return False
