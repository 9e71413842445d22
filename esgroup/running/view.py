"""What a run shows of itself while it lasts, to a line of progress and to a history."""

from __future__ import annotations

from typing import Any, Protocol

from esgroup.checks import Array
from esgroup.running.limits import Limits


class RunView(Protocol):
    """A search, or a run of several; `restart`, the number of restarts so far, may be missing."""

    nfev: int
    nit: int
    best_f: float
    generation_best: float
    sigma: float
    axis_ratio: float
    seconds: float
    mean: Array
    stds: Array
    dim: int
    shape: tuple[int, ...]
    labels: list[str] | None
    constraints: Any
    best_constraints: Array | None
    feasible: bool
    structure: Any
    limits: Limits
    result: Any
