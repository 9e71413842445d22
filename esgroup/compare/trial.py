"""What a method is given to run on: functions that count, note and end the run from outside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.compare.records import Ended, Point

FINER = 1.08  # between two kept points of a trajectory the cost grows by this factor, unless a target lies there


class Over(BaseException):
    """The run has ended. Not an Exception: methods that catch those must not catch this one."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended = ended


@dataclass(frozen=True)
class Trial:
    """A start and a budget. A method calls `fun`, `batch` or `gradient` until one of them ends the run.

    `fun` takes a point, `batch` takes rows; `gradient` is None where the problem has none. Bounds are a row (low, high)
    per coordinate, None if there are none; `box` is where a method that needs a region may look for points.
    """

    x0: Array
    sigma0: float
    bounds: Array | None
    box: Array
    budget: int
    seed: int
    fun: Callable[[Array], float]
    batch: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None


class Recorder:
    """Counts values and gradients, keeps the best gap, and raises Over when the run must end.

    After that it does nothing but raise: whatever a method makes of the exception, nothing more is counted. A batch is
    counted row by row, up to the one that reaches the last target or spends the budget.
    """

    def __init__(
        self,
        values: Callable[[Array], Array],
        *,
        gradient: Callable[[Array], Array] | None = None,
        noiseless: Callable[[Array], Array] | None = None,
        minimum: float = 0.0,
        targets: tuple[float, ...],
        budget: int,
        deadline: float = math.inf,
    ) -> None:
        self._values, self._gradient, self._noiseless, self._minimum = values, gradient, noiseless, minimum
        self.budget, self._deadline = budget, deadline
        self.targets, self.hits = targets, [math.inf] * len(targets)
        self.evals = self.gradients = self.finite = 0
        self.gap = math.inf
        self.cpu = 0.0
        self.over: Ended | None = None
        self.error: Exception | None = None  # the first one of the problem's own functions
        self._kept: list[Point] = []
        self._pending: Point | None = None

    # ---- what a method calls ----------------------------------------------------------------------------------------

    def fun(self, x: Array) -> float:
        """The value of a point."""
        return float(self.batch(np.asarray(x, dtype=np.float64)[None])[0])

    def batch(self, x: Array) -> Array:
        """The values of rows."""
        self._go_on()
        x = np.asarray(x, dtype=np.float64)[: self.budget - self.evals - self.gradients]
        values = self._timed(self._values, x)
        self._note(values if self._noiseless is None else np.asarray(self._noiseless(x), dtype=np.float64))
        self._go_on()
        return values

    def gradient(self, x: Array) -> Array:
        """The gradient at a point."""
        assert self._gradient is not None  # a Trial without gradient does not offer this
        self._go_on()
        gradient = self._timed(self._gradient, np.asarray(x, dtype=np.float64))
        self.gradients += 1
        self._go_on()
        return gradient

    # ---- what is kept -----------------------------------------------------------------------------------------------

    @property
    def trajectory(self) -> tuple[Point, ...]:
        """Improvements, thinned, the last one among them."""
        return (*self._kept, *([] if self._pending is None else [self._pending]))

    def _timed(self, function: Callable[[Array], Any], x: Array) -> Array:
        begin = time.process_time()
        try:
            return np.asarray(function(x), dtype=np.float64)
        except Exception as error:
            self.error = self.error or error
            raise
        finally:
            self.cpu += time.process_time() - begin

    def _note(self, values: Array) -> None:
        for value in values.tolist():
            self.evals += 1
            self.finite += math.isfinite(value)
            if value - self._minimum < self.gap:  # never with NaN
                self._improve(value - self._minimum)
                if self.hits and self.gap <= self.targets[-1]:
                    self.over = Ended.TARGET
                    return

    def _improve(self, gap: float) -> None:
        self.gap = gap
        here = Point(self.evals, self.gradients, float(f"{gap:.6g}"))  # digits enough to draw
        new = [i for i, target in enumerate(self.targets) if gap <= target and math.isinf(self.hits[i])]
        for i in new:
            self.hits[i] = here.cost
        if new or not self._kept or here.cost >= FINER * self._kept[-1].cost:
            self._kept += [here] if self._pending is None else [self._pending, here]
            self._pending = None
        else:
            self._pending = here

    def _go_on(self) -> None:
        if self.over is None and self.evals + self.gradients >= self.budget:
            self.over = Ended.BUDGET
        if self.over is None and time.monotonic() > self._deadline:
            self.over = Ended.TIMEOUT
        if self.over is not None:
            raise Over(self.over)
