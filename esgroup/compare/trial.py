"""What a method is given to run on: functions that count, note and end the run from outside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from esgroup.checks import Array
from esgroup.compare.records import Ended, Point

FINER = 1.08  # between two kept points of a trajectory the cost grows by this factor, unless a target lies there
FINEST = 1.01  # the same where the targets are not known before the end


class Over(BaseException):
    """The run has ended. Not an Exception: methods that catch those must not catch this one."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended = ended


@dataclass(frozen=True)
class Trial:
    """A start and a budget. A method calls `fun`, `batch`, `gradient`, ... until one of them ends the run.

    `fun` takes a point, `batch` takes rows; `gradient` is None where the problem has none. `product(x, v)` is that of
    the Hessian with one vector and `diagonal(x)` its diagonal; they are None where the problem does not have them, and
    in coordinates that bend its space: then a method takes differences of gradients. Each costs one, as a gradient
    does. Points are vectors, or have the problem's own shape for a method that searches its space. Bounds are a row
    (low, high) per coordinate, None if there are none; `box` is where a method that needs a region may look for points.
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
    product: Callable[[Array, Array], Array] | None = None
    diagonal: Callable[[Array], Array] | None = None

    @property
    def pairs(self) -> list[tuple[float, float]] | None:
        """The bounds as pairs: an array of two rows could be read in two ways."""
        return None if self.bounds is None else [(low, high) for low, high in self.bounds.tolist()]


class Recorder:
    """Counts values and gradients, keeps the best gap, and raises Over when the run must end.

    A product of the Hessian with a vector, and its diagonal, count as gradients: one each, in `gradients`.

    After that it does nothing but raise: whatever a method makes of the exception, nothing more is counted. A batch is
    counted row by row, up to the one that reaches the last target or spends the budget.
    """

    def __init__(
        self,
        values: Callable[[Array], Array],
        *,
        gradient: Callable[[Array], Array] | None = None,
        product: Callable[[Array, Array], Array] | None = None,
        diagonal: Callable[[Array], Array] | None = None,
        noiseless: Callable[[Array], Array] | None = None,
        minimum: float = 0.0,
        targets: tuple[float, ...],
        budget: int,
        deadline: float = math.inf,
    ) -> None:
        self._values, self._noiseless, self._minimum = values, noiseless, minimum
        self._gradient, self._product, self._diagonal = gradient, product, diagonal
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
        """The values of rows, as many as the budget allows."""
        return self._timed(self._evaluate, x)

    def gradient(self, x: Array) -> Array:
        """The gradient at a point."""
        return self._timed(partial(self._differentiate, self._gradient), x)

    def product(self, x: Array, v: Array) -> Array:
        """The Hessian at a point times one vector."""
        if np.shape(v) != np.shape(x):  # rows of them would be counted as one
            raise ValueError(f"v must have the shape of x, {np.shape(x)}, got {np.shape(v)}")
        return self._timed(partial(self._differentiate, self._product), x, v)

    def diagonal(self, x: Array) -> Array:
        """The diagonal of the Hessian at a point."""
        return self._timed(partial(self._differentiate, self._diagonal), x)

    # ---- what is kept -----------------------------------------------------------------------------------------------

    @property
    def trajectory(self) -> tuple[Point, ...]:
        """Improvements, thinned, the last one among them."""
        return (*self._kept, *([] if self._pending is None else [self._pending]))

    def _timed(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """The time in here, for counting as well, is not the method's own."""
        begin = time.process_time()
        try:
            return function(*(np.array(one, dtype=np.float64) for one in arrays))  # copies: the problem may change them
        except Exception as error:
            self.error = self.error or error
            raise
        finally:
            self.cpu += time.process_time() - begin

    def _evaluate(self, x: Array) -> Array:
        self._go_on()
        x = x[: self.budget - self.evals - self.gradients]
        clean = None if self._noiseless is None else np.asarray(self._noiseless(x.copy()), dtype=np.float64)
        values = self._values(x)
        self._note(values if clean is None else clean)
        self._go_on()
        return values

    def _differentiate(self, derivative: Callable[..., Array] | None, *arrays: Array) -> Array:
        assert derivative is not None  # a Trial without it does not offer this
        self._go_on()
        found = np.asarray(derivative(*arrays), dtype=np.float64)
        self.gradients += 1
        self._go_on()
        return found

    def _note(self, values: Array) -> None:
        for value in values.tolist():
            self.evals += 1
            self.finite += math.isfinite(value)
            if math.isfinite(value) and value - self._minimum < self.gap:
                self._improve(value - self._minimum)
                if self.hits and self.gap <= self.targets[-1]:  # without targets only the budget ends a run
                    self.over = Ended.TARGET
                    return

    def _improve(self, gap: float) -> None:
        self.gap = gap
        here = Point(self.evals, self.gradients, gap)
        new = [i for i, target in enumerate(self.targets) if gap <= target and math.isinf(self.hits[i])]
        for i in new:
            self.hits[i] = here.cost
        finer = FINER if self.targets else FINEST
        if new or not self._kept or here.cost >= finer * self._kept[-1].cost:
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
