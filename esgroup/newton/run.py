"""The iteration itself: look at the function, update the precision, move."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from esgroup.checks import Array, all_finite
from esgroup.gradients.function import Products
from esgroup.newton.line_search import Trial
from esgroup.newton.options import Options
from esgroup.newton.precision import Breakdown, Look, Precision, finite, largest_curvature
from esgroup.newton.reasons import reasons_at
from esgroup.running.limits import Limits, budget_reasons


class Point(NamedTuple):
    """Where the iteration is: x, f(x) and its gradient."""

    x: Array
    fun: float
    jac: Array


@dataclass(eq=False)
class Run:
    """A run of the method: the one object that changes. `best` is the best point of all, `point` the present one."""

    function: Products
    options: Options
    limits: Limits
    rng: np.random.Generator
    point: Point
    best: Point
    start: Array
    nit: int = 0
    precision: Precision | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0
    slope0: float = 0.0
    average: Array | None = None  # Z, of the gradients
    last_step: Array | None = None
    best_at: int = 0
    _began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def iterate(self) -> None:
        """One iteration; what stands in its way becomes the reason to stop."""
        try:
            look = self._look()
            assert self.precision is not None
            self.precision = self.precision.advance(look)
            self._move()
        except Breakdown as breakdown:
            self.reasons = {breakdown.name: breakdown.text}

    def check(self) -> None:
        """Find out whether to stop at the present point."""
        self.reasons = reasons_at(self)

    def _look(self) -> Look:
        x, gradient = self.point.x, self.point.jac
        first = self.precision is None
        diagonal = None
        if first or self.precision.needs_diagonal:  # type: ignore[union-attr]
            diagonal = finite("the diagonal of the Hessian", self.function.diagonal(x, self.rng))
        if first:
            self.scale = largest_curvature(diagonal, gradient)  # type: ignore[arg-type]
            self.slope0 = float(np.linalg.norm(gradient))
            self.precision = self.options.precision(len(x), self.scale)
        ratio = float(np.linalg.norm(gradient)) / self.slope0 if self.slope0 > 0.0 else 0.0
        damping = self.options.damping.at(self.nit, self.scale, ratio)
        _, factor = self._factors()
        return Look(gradient, self._products, diagonal, damping, self.options.rate * factor, self.last_step)

    def _products(self, rows: Array) -> Array:
        return finite("hessp(x, v)", self.function.products(self.point.x, rows)) if len(rows) else rows

    def _factors(self) -> tuple[float, float]:
        return self.options.schedule.factors(self.nit + 1, self.options.momentum)

    def _move(self) -> None:
        """mu <- mu - length S^-1 Z, with the new S."""
        here = self.point
        direction, slope = self._direction(self._averaged())
        if slope >= 0.0:  # the average of old gradients may point uphill: begin a new one
            self.average = (1.0 - self.options.momentum ** (self.nit + 1)) * here.jac
            direction, slope = self._direction(self.average)
        length = self.options.mean_rate * self._factors()[0]
        search = self.options.line_search.search
        trial = search(self._value, Trial(here.x, here.fun), direction, slope, length)
        self._arrive(trial)

    def _value(self, x: Array) -> float:
        """f(x), if the budgets allow one more."""
        limits = self.limits._replace(target=None)
        over = budget_reasons(limits, self.function.counts.nfev, self.nit, self.seconds, self.best.fun)
        for name, text in over.items():
            raise Breakdown(name, text)
        return self.function.value(x)

    def _averaged(self) -> Array:
        """Z_t = (1 - c) g_t + c Z_{t-1}, from Z_0 = 0 (paper, eq. gauss_newton_matgauss)."""
        c = self.options.momentum
        before = 0.0 if self.average is None else c * self.average
        self.average = (1.0 - c) * self.point.jac + before
        return self.average

    def _direction(self, gradient: Array) -> tuple[Array, float]:
        """-S^-1 of a gradient, and the slope of f along it."""
        assert self.precision is not None
        with np.errstate(over="ignore", invalid="ignore"):
            direction = finite("the step", -self.precision.solve(gradient))
            slope = float(self.point.jac @ direction)
        if not np.isfinite(slope):
            raise Breakdown("not_finite", "the slope along the step overflows")
        return direction, slope

    def _arrive(self, trial: Trial) -> None:
        self.nit += 1
        before = self.point
        if not np.isfinite(trial.fun):
            self.point = Point(trial.x, trial.fun, before.jac)  # no gradient is asked where there is no value
            return
        self.point = Point(trial.x, trial.fun, self.function.gradient(trial.x))
        self.last_step = trial.x - before.x
        if trial.fun < self.best.fun and all_finite(trial.x):
            self.best, self.best_at = self.point, self.nit


def begin(function: Products, x0: Array, options: Options, limits: Limits, rng: np.random.Generator) -> Run:
    """A run at its first point."""
    fun = function.value(x0)
    jac = function.gradient(x0) if np.isfinite(fun) else np.full(len(x0), np.nan)
    point = Point(x0, fun, jac)
    run = Run(function, options, limits, rng, point, point, x0)
    run.check()
    return run
