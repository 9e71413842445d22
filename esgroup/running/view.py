"""What a run shows of itself while it lasts, to a line of progress and to a history."""

from __future__ import annotations

from typing import Any, Protocol

from esgroup.checks import Array
from esgroup.stopping.base import View
from esgroup.stopping.budgets import Limits


class RunView(View, Protocol):
    """A search, or a run of several; `restart`, the number of restarts so far, may be missing."""

    shape: tuple[int, ...]
    labels: list[str] | None
    constraints: Any
    best_constraints: Array | None
    structure: Any
    limits: Limits
    result: Any
