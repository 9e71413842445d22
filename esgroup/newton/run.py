"""One run of structured Newton: the iteration, the reasons to stop, and the result.

read derivatives -> update the estimate S -> move by -length S^-1 Z -> look for reasons to stop
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from esgroup.checks import Array, all_finite
from esgroup.gradients.function import Products
from esgroup.groups import Group
from esgroup.newton.budget import CallBudget
from esgroup.newton.options import NewtonOptions
from esgroup.newton.precision import (
    Breakdown,
    EstimateBreakdown,
    Precision,
    UpdateData,
    finite_or_stop,
    largest_curvature,
)
from esgroup.newton.steps import LINE_SEARCHES, LinePoint, damping_at
from esgroup.running.interrupts import Interrupts
from esgroup.running.loop import Run
from esgroup.running.result import NewtonResult
from esgroup.stopping.budgets import budget_reasons, status_of

UNBOUNDED = -1e50  # times the size of f(x0): a function with a minimum has no values below this
FAR = 1e10  # times the size of x0: no minimum is that far away
PATIENCE = 200  # iterations without a better value

# ---- the iteration ------------------------------------------------------------------------------------------------


class Iterate(NamedTuple):
    """A point of the iteration: x, f(x) and the gradient."""

    x: Array
    fun: float
    jac: Array


@dataclass(eq=False)
class NewtonRun(Run[NewtonResult]):
    """The state of a run, the only mutable object. `point` is the current point, `best` the best one so far."""

    function: Products
    options: NewtonOptions
    rng: np.random.Generator
    point: Iterate
    best: Iterate
    start: Iterate
    budget: CallBudget
    nit: int = 0
    precision: Precision | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0
    slope0: float = 0.0
    average: Array | None = None  # Z, the average of the gradients
    last_step: Array | None = None
    best_nit: int = 0
    feasible: ClassVar[bool] = True
    interrupts: Interrupts = field(default_factory=Interrupts)
    _estimated_nit: int = 0  # the iteration in which the estimate was started
    _started: float = field(default_factory=time.monotonic)

    # ---- the interface to the loop and observers --------------------------------------------------------------------

    def goes_on(self) -> bool:
        """Return whether there is no reason to stop."""
        return not self.reasons

    def step(self) -> bool:
        """Perform one iteration and check the reasons to stop; return whether the iteration was completed."""
        with self.interrupts.allowed:
            self.iterate()
            if self.reasons:
                return False
            self.check()
        return True

    def stop_for(self, name: str, text: str) -> None:
        """Record an external reason to stop."""
        self.reasons[name] = text

    def result(self) -> NewtonResult:
        """Return the best point, its value and gradient, the counts and the reasons to stop, in SciPy's form.

        `hess_inv` is S^-1 of the last iteration; it is absent before the first one.
        """
        status = status_of(self.reasons)
        message = "; ".join(f"{name}: {text}" for name, text in self.reasons.items())
        return NewtonResult(
            x=self.best.x.copy(),
            fun=self.best.fun,
            jac=self.best.jac.copy(),
            nit=self.nit,
            **vars(self.function.counts) | {"nfev": self.nfev},
            success=status in (0, 1) and math.isfinite(self.best.fun),
            status=status,
            message=message or "The iteration is still running",
            stop=dict(self.reasons),
            structure=repr(self.options.structure),
            **_inverse_hessian(self.precision, len(self.best.x)),
        )

    @property
    def best_f(self) -> float:
        """The best value so far."""
        return self.best.fun

    @property
    def sigma(self) -> float:
        """The length of the last step, which stands for the step size of a search."""
        return 0.0 if self.last_step is None else float(np.linalg.norm(self.last_step))

    @property
    def nfev(self) -> int:
        """Calls of fun."""
        return self.budget.calls

    @property
    def seconds(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._started

    # ---- the iteration ----------------------------------------------------------------------------------------------

    def iterate(self) -> None:
        """Perform one iteration; if it fails even with a new estimate, that is the reason to stop.

        An estimate from the Hessians of earlier points can be singular, or so large that its steps are lost in
        rounding, even if the function is fine. So the iteration is retried with the first estimate, a multiple of the
        identity.
        """
        try:
            try:
                self._step()
            except EstimateBreakdown:
                if self.nit == self._estimated_nit or not isinstance(self.options.structure, Group):
                    raise
                self._step_with_new_estimate()
        except Breakdown as breakdown:
            self.reasons = {breakdown.name: breakdown.text}

    def _step_with_new_estimate(self) -> None:
        followed, self.precision, self.average = self.precision, None, None
        try:
            self._step()
        except Breakdown:
            self.precision = followed  # it is closer to the Hessian, and part of the result
            raise

    def _step(self) -> None:
        data = self._read_derivatives()
        assert self.precision is not None
        self.precision = self.precision.advance(data)
        self._move()

    def check(self) -> None:
        """Check the reasons to stop at the current point."""
        try:
            self.reasons = _stop_reasons(self)
        except Breakdown as breakdown:
            self.reasons = {breakdown.name: breakdown.text}

    def _read_derivatives(self) -> UpdateData:
        """Collect what the update needs; in the first iteration, also set the scales and the initial estimate."""
        x, gradient = self.point.x, self.point.jac
        diagonal = None
        if self.precision is None or self.precision.needs_diagonal:
            diagonal = finite_or_stop("the diagonal of the Hessian", self.function.diagonal(x, self.rng))
        if self.precision is None:
            assert diagonal is not None
            scale = largest_curvature(diagonal, gradient)
            if self.nit == 0:
                self.scale, self.slope0 = scale, _norm(gradient)
            self.precision, self._estimated_nit = self.options.initial_precision(len(x), scale), self.nit
        slope_ratio = _norm(gradient) / self.slope0 if self.slope0 > 0.0 else 0.0
        damping = damping_at(self.nit, self.options.damping, self.options.damping_decay, self.scale, slope_ratio)
        rate = self.options.rate * self._rate_factors()[1]
        return UpdateData(gradient, self._products, diagonal, damping, rate, self.last_step)

    def curvature_up_to_one(self) -> float:
        """Return min(1, max |H_ii|), 1 if it was 1 at the start.

        If the curvature is small, a small gradient does not indicate a minimum: a gradient of gtol and a curvature of
        gtol make a step of 1. Such functions are scaled by small factors, or flat at the start.
        """
        if self.nit > 0 and self.scale >= 1.0:
            return 1.0
        diagonal = self.function.diagonal(self.point.x, self.rng)
        return min(1.0, largest_curvature(diagonal, self.point.jac)) if all_finite(diagonal) else 1.0

    def _products(self, rows: Array) -> Array:
        return finite_or_stop("hessp(x, v)", self.function.products(self.point.x, rows)) if len(rows) else rows

    def _rate_factors(self) -> tuple[float, float]:
        return self.options.schedule.factors(self.nit + 1, self.options.momentum)

    def _move(self) -> None:
        """mu <- mu - length S^-1 Z, with the new S."""
        here, c = self.point, self.options.momentum
        # Z_t = (1 - c) g_t + c Z_{t-1}, from Z_0 = 0 (paper, eq. gauss_newton_matgauss)
        self.average = (1.0 - c) * here.jac + (0.0 if self.average is None else c * self.average)
        direction, slope = self._direction(self.average)
        if slope >= 0.0:  # the average of old gradients may point uphill: restart it
            self.average = (1.0 - c ** (self.nit + 1)) * here.jac
            direction, slope = self._direction(self.average)
        length = self.options.mean_rate * self._rate_factors()[0]
        search = LINE_SEARCHES[self.options.line_search]
        self._accept(search(self.function.value, LinePoint(here.x, here.fun), direction, slope, length))

    def _direction(self, gradient: Array) -> tuple[Array, float]:
        """-S^-1 times a gradient, and the slope of f along it."""
        assert self.precision is not None
        with np.errstate(over="ignore", invalid="ignore"):
            direction = finite_or_stop("the step", -self.precision.solve(gradient), EstimateBreakdown)
            slope = float(self.point.jac @ direction)
        if gradient.any() and not direction.any():
            raise EstimateBreakdown("not_finite", "the step vanishes because the precision is too large")
        if not np.isfinite(slope):
            raise EstimateBreakdown("not_finite", "the slope along the step overflows")
        return direction, slope

    def _accept(self, found: LinePoint) -> None:
        """Make the result of the line search the current point."""
        self.nit += 1
        before = self.point
        if not np.isfinite(found.fun):
            self.point = Iterate(found.x, found.fun, before.jac)  # without a value, the gradient is not evaluated
            return
        self.budget.strict = False
        try:
            self.point = Iterate(found.x, found.fun, self.function.gradient(found.x))
        finally:
            self.budget.strict = True
        self.last_step = found.x - before.x
        if found.fun < self.best.fun and all_finite(found.x):
            self.best, self.best_nit = self.point, self.nit


def _norm(vector: Array) -> float:
    """Return |v| even if the squares of its entries overflow or underflow."""
    largest = float(np.abs(vector).max())
    return largest * float(np.linalg.norm(vector / largest)) if 0.0 < largest < np.inf else largest


def begin_run(
    function: Products, x0: Array, options: NewtonOptions, rng: np.random.Generator, budget: CallBudget
) -> NewtonRun:
    """Evaluate the starting point and return a run from there; the budget guards the function."""
    fun = function.value(x0)
    jac = function.gradient(x0) if np.isfinite(fun) else np.full(len(x0), np.nan)
    point = Iterate(x0, fun, jac)
    run = NewtonRun(function, options, rng, point, point, point, budget)
    budget.strict = True
    run.check()
    return run


# ---- reasons to stop ----------------------------------------------------------------------------------------------


def _stop_reasons(run: NewtonRun) -> dict[str, str]:
    """All reasons to stop at the current point, by name; tolerances count only if there is no other reason."""
    reasons = _failures(run)
    reasons |= budget_reasons(run.budget.limits, run)
    if "max_iters" in reasons:
        reasons["max_iters"] = f"{run.nit:,} iterations made, max_iters = {run.budget.limits.max_iters:,} reached"
    return reasons or _convergence(run)


def _failures(run: NewtonRun) -> dict[str, str]:
    fun, size = run.point.fun, np.abs(run.point.x).max()
    far, deep = FAR * (1.0 + float(np.abs(run.start.x).max())), UNBOUNDED * max(1.0, abs(run.start.fun))
    if fun < deep or (size > far and fun < np.inf):
        where = f"the value is {fun:.3g} at a point of size {size:.3g}"
        return {"unbounded": f"{where}: the function appears to have no minimum"}
    if not np.isfinite(fun):
        return {"not_finite": f"the value is {fun}"}
    if not all_finite(run.point.jac):
        return {"not_finite": "jac(x) has entries that are not finite"}
    return {}


def _convergence(run: NewtonRun) -> dict[str, str]:
    largest, gtol = float(np.abs(run.point.jac).max()), run.options.gtol
    if largest <= gtol and (largest == 0.0 or largest <= gtol * run.curvature_up_to_one()):
        return {"gtol": f"gradient within tolerance (largest entry {largest:.3g}, gtol = {gtol:.3g})"}
    if run.last_step is not None and not run.last_step.any():
        return {"tolx": "the last step did not change x: it is accurate to rounding error"}
    if run.nit - run.best_nit >= PATIENCE:
        return {"stagnation": f"the value did not improve in {PATIENCE} iterations"}
    return {}


def _inverse_hessian(precision: Precision | None, dim: int) -> dict[str, Any]:
    if precision is None:
        return {}
    from scipy.sparse.linalg import LinearOperator  # slow to import

    def solve(vector: Array) -> Array:
        return precision.solve(vector.ravel())

    return {"hess_inv": LinearOperator((dim, dim), matvec=solve, rmatvec=solve, dtype=float)}
