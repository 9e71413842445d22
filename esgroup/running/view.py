"""What a run shows of itself while it lasts, to a line of progress and to a history."""

from __future__ import annotations

from typing import Any, Protocol

from esgroup.checks import Array
from esgroup.stopping.base import View
from esgroup.stopping.budgets import Limits


class RunView(View, Protocol):
    """A search, or a run of several; `restart`, the number of restarts so far, may be missing."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def labels(self) -> list[str] | None: ...
    @property
    def constraints(self) -> Any: ...
    @property
    def best_constraints(self) -> Array | None: ...
    @property
    def structure(self) -> Any: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def result(self) -> Any: ...
