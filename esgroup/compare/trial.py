"""What a method runs on: functions that count evaluations, record the best value, and end the run from outside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from esgroup.checks import Array
from esgroup.compare.records import Ended, Improvement

Derivative = Callable[..., Array]

FINER = 1.08  # the cost grows by this factor between two stored improvements, unless a target lies between them
FINEST = 1.01  # the same where targets are not known before the end


class Over(BaseException):
    """Raised with the reason why the run has ended. Not an Exception, so that methods which catch those let it pass."""


@dataclass(frozen=True)
class Trial:
    """What a method is given: functions, a start and a budget.

    A method calls `fun`, `batch`, `gradient`, ... until one of them ends the run. Points are vectors, or have the
    problem's own shape for a method that searches its space.

    Attributes
    ----------
    x0, sigma0
        Where to start, and the initial step size.
    bounds
        One row (low, high) per coordinate, or None.
    box
        One row (low, high) per coordinate: the region for methods that need one.
    budget
        Number of evaluations: values, gradients, products and diagonals count one each.
    seed
        Seed for the method's random numbers.
    fun, batch
        Value of a point, and values of rows.
    gradient
        Gradient at a point, or None where the problem has none.
    product, diagonal
        `product(x, v)` is the Hessian times one vector, `diagonal(x)` its diagonal. They are None where the problem
        does not have them, and in coordinates that bend its space; a method may then take differences of gradients.
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
        """Bounds as pairs, because an array of two rows could be read in two ways."""
        return None if self.bounds is None else [(low, high) for low, high in self.bounds.tolist()]


class Recorder:
    """Counts values and gradients, records the best gap, and raises Over when the run must end.

    From then on every call raises: whatever a method does with the exception, nothing more is counted. A batch is
    counted row by row, up to the row that reaches the last target or uses up the budget. A product of the Hessian with
    a vector and its diagonal count as one gradient each.

    Parameters
    ----------
    values
        Values of rows, to be counted.
    gradient, product, diagonal
        Derivatives of the problem at a point, where it has them. The attributes of these names are what a method calls.
    noiseless
        Values of rows without noise, for noisy problems: gaps are computed from them.
    minimum
        What is subtracted from values to give gaps.
    targets
        Gaps to reach, the largest first. Reaching the last one ends the run; without targets only the budget does.
    budget
        Number of values and gradients after which the run ends.
    deadline
        Time, by `time.monotonic`, after which the run ends.
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
        self.gradient, self.product, self.diagonal = map(self._counted, (gradient, product, diagonal))
        self.budget, self._deadline = budget, deadline
        self.targets, self.hits = targets, [math.inf] * len(targets)
        self.evals = self.gradients = self.finite = 0
        self.gap = math.inf
        self.cpu = 0.0
        self.over: Ended | None = None
        self.error: Exception | None = None  # the first one that a function of the problem raised
        self._kept: list[Improvement] = []
        self._pending: Improvement | None = None

    def trial(self, x0: Array, sigma0: float, bounds: Array | None, box: Array, seed: int) -> Trial:
        """What a method is given to search with these functions."""
        functions = (self.fun, self.batch, self.gradient, self.product, self.diagonal)
        return Trial(x0, sigma0, bounds, box, self.budget, seed, *functions)

    # ---- what a method calls ----------------------------------------------------------------------------------------

    def fun(self, x: Array) -> float:
        """Value of a point."""
        return float(self.batch(np.asarray(x, dtype=np.float64)[None])[0])

    def batch(self, x: Array) -> Array:
        """Values of rows, of as many as the budget allows."""
        return self._timed(self._evaluate, x)

    def _counted(self, derivative: Derivative | None) -> Derivative | None:
        """The function with which a method takes a derivative, if there is one."""
        return None if derivative is None else partial(self._timed, partial(self._differentiate, derivative))

    # ---- what is recorded -------------------------------------------------------------------------------------------

    @property
    def trajectory(self) -> tuple[Improvement, ...]:
        """The improvements, thinned; the last one is always included."""
        return (*self._kept, *([] if self._pending is None else [self._pending]))

    def _timed(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Call a function of the problem. The time spent here, counting included, is not the method's own."""
        begin = time.process_time()
        try:
            return function(*(np.array(one, dtype=np.float64) for one in arrays))  # copies: the problem may change them
        except Exception as error:
            self.error = self.error or error
            raise
        finally:
            self.cpu += time.process_time() - begin

    def _evaluate(self, x: Array) -> Array:
        self._raise_if_over()
        x = x[: self.budget - self.evals - self.gradients]
        clean = None if self._noiseless is None else np.asarray(self._noiseless(x.copy()), dtype=np.float64)
        values = self._values(x)
        self._record(values if clean is None else clean)
        self._raise_if_over()
        return values

    def _differentiate(self, derivative: Derivative, *arrays: Array) -> Array:
        x, v = arrays[0], arrays[-1]
        if v.shape != x.shape:  # several rows would be counted as one
            raise ValueError(f"v must have the shape of x, {x.shape}, got {v.shape}")
        self._raise_if_over()
        found = np.asarray(derivative(*arrays), dtype=np.float64)
        self.gradients += 1
        self._raise_if_over()
        return found

    def _record(self, values: Array) -> None:
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
        here = Improvement(self.evals, self.gradients, gap)
        new = [i for i, target in enumerate(self.targets) if gap <= target and math.isinf(self.hits[i])]
        for i in new:
            self.hits[i] = here.cost
        finer = FINER if self.targets else FINEST
        if new or not self._kept or here.cost >= finer * self._kept[-1].cost:
            self._kept += [here] if self._pending is None else [self._pending, here]
            self._pending = None
        else:
            self._pending = here

    def _raise_if_over(self) -> None:
        if self.over is None and self.evals + self.gradients >= self.budget:
            self.over = Ended.BUDGET
        if self.over is None and time.monotonic() > self._deadline:
            self.over = Ended.TIMEOUT
        if self.over is not None:
            raise Over(self.over)
