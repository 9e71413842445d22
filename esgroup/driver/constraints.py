"""Constraints in SciPy's form, and the objective that evaluates them with the function.

lb <= c(x) <= ub becomes g(x) <= 0: c - ub for a finite upper and lb - c for a finite lower bound, and the equality
c - lb = 0 where both are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.driver.calling import own_point
from esgroup.driver.worker_pool import NotEvaluated
from esgroup.rankings import AugmentedLagrangian, ByValue, Evaluated, Ranking

_KINDS = "scipy.optimize.NonlinearConstraint, LinearConstraint, or a dict with 'type' and 'fun'"


class BadConstraint(NotEvaluated, ValueError):
    """A constraint changed the form of what it returns: not a failure of the point, regardless of `on_error`."""


class Sides(NamedTuple):
    """The g = sign c_j - limit of a constraint: equalities, then upper bounds, then lower bounds."""

    j: NDArray[np.intp]
    sign: Array
    limit: Array


@dataclass(frozen=True)
class Constraint:
    """lb <= c(x) <= ub for the components of c."""

    name: str  # in messages: constraints[0]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    lower: Array  # (k,)
    upper: Array
    keep_feasible: bool
    matrix: Array | None = None  # of a linear constraint

    def values(self, x: Any) -> Array:
        """c(x) as an array (k,); the function receives its own copy of the point."""
        found = _vector(self.name, self.function(own_point(x), *self.args), x)
        if len(found) != len(self.lower):
            wanted = f"must return as many values at every point as at x0, {len(self.lower)}"
            raise BadConstraint(f"the function of {self.name} {wanted}, but it returned {len(found)} {checks.at(x)}")
        return found

    @cached_property
    def sides(self) -> Sides:
        """The g of this constraint."""
        equal = self.lower == self.upper
        above, below = np.isfinite(self.upper) & ~equal, np.isfinite(self.lower) & ~equal
        return Sides(
            np.concatenate([np.flatnonzero(equal), np.flatnonzero(above), np.flatnonzero(below)]),
            np.repeat([1.0, 1.0, -1.0], [equal.sum(), above.sum(), below.sum()]),
            np.concatenate([self.lower[equal], self.upper[above], -self.lower[below]]),
        )

    def g(self, x: Any) -> Array:
        """g(x)."""
        j, sign, limit = self.sides
        return sign * self.values(x)[j] - limit

    def holds(self, x: Any) -> bool:
        """Whether x satisfies it."""
        return bool((self.g(x) <= 0).all())

    def presented(self, g: Array, multipliers: Array) -> tuple[Array, Array]:
        """c and the multipliers of its components, from those of g; NaN for components without bounds."""
        j, sign, limit = self.sides
        c = np.full(len(self.lower), math.nan)
        c[j[::-1]] = (sign * limit + sign * g)[::-1]  # of two sides of one component, the upper one comes last
        total = np.zeros(len(c))
        np.add.at(total, j, multipliers)  # the sum of those of two sides
        return c, total


@dataclass(frozen=True)
class Constraints:
    """All constraints of a call of `minimize`."""

    all: tuple[Constraint, ...] = ()
    single: bool = False  # whether it was given by itself, not in a list
    given: Ranking = field(default_factory=ByValue)  # without constraints

    def ranking(self, tolerance: Any) -> Ranking:
        """The ranking, with a tolerance as a user gives it."""
        if not self.all:
            return self.given
        equal = np.concatenate([(one.lower == one.upper)[one.sides.j] for one in self.all])
        return AugmentedLagrangian(len(equal), tuple(np.flatnonzero(equal).tolist()), self.tolerances(tolerance))

    def beside(self, call: Callable[[Any], Any], *, vectorized: bool) -> Callable[[Any], Any]:
        """The function of a point that returns the constraints with the value."""
        return partial(_evaluated, self, call, vectorized) if self.all else call

    def tolerances(self, tolerance: Any) -> Any:
        """The tolerance of each g, from a user's one number, or one or an array for each constraint."""
        if isinstance(tolerance, str) or not isinstance(tolerance, (Sequence, np.ndarray)):
            return tolerance  # which the rule checks
        several = [tolerance] if self.single else list(tolerance)
        if len(several) != len(self.all):
            wanted = f"one number or {len(self.all)}, one for each constraint"
            raise ValueError(f"constraint_tol must be {wanted}, got {len(several)}")
        pairs = zip(self.all, several, strict=True)
        parts = [_side(f"constraint_tol of {one.name}", given, len(one.lower))[one.sides.j] for one, given in pairs]
        return tuple(np.concatenate(parts).tolist())

    def g(self, x: Any) -> tuple[float, ...]:
        """g(x)."""
        return tuple(np.concatenate([one.g(x) for one in self.all]).tolist())

    def present(self, result: Any) -> None:
        """Show c and multipliers for each constraint in a result, as SciPy does."""
        if self.all:
            cuts = np.cumsum([len(one.sides.j) for one in self.all])[:-1]
            parts = zip(self.all, np.split(result.constr, cuts), np.split(result.multipliers, cuts), strict=True)
            both = [one.presented(*part) for one, *part in parts]
            result.constr, result.multipliers = [c for c, _ in both], [multiplier for _, multiplier in both]

    @property
    def kept(self) -> Callable[[Any], bool] | None:
        """The condition that all points must satisfy, if there is one."""
        kept = tuple(one for one in self.all if one.keep_feasible)
        return Constraints(kept).hold if kept else None

    def hold(self, x: Any) -> bool:
        """Whether x satisfies all of them."""
        return all(one.holds(x) for one in self.all)


def _evaluated(constraints: Constraints, call: Callable[[Any], Any], vectorized: bool, x: Any) -> Any:
    """Return value and constraints of a point; for `vectorized` functions, those of several points."""
    if not vectorized:
        g = constraints.g(x)  # before the call, which may change x
        return Evaluated(call(x), g)
    rows = [constraints.g(point) for point in x]
    values = call(x)
    if not one_each(values, len(rows)):
        return values  # which the caller refuses
    return [Evaluated(value, g) for value, g in zip(values, rows, strict=True)]


def one_each(values: Any, n: int) -> bool:
    """Whether what a vectorized function returned is one value for each of n points."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0 and len(values) == values.size == n
    return hasattr(values, "__len__") and len(values) == n and not isinstance(values, (str, bytes, Mapping, set))


def _vector(name: str, returned: Any, x: Any) -> Array:
    """What the function of a constraint returned at the point x, as an array (k,)."""
    try:
        found = np.atleast_1d(np.asarray(returned))
    except ValueError:  # ragged
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "fiub" or found.ndim != 1 or not len(found):
        wanted = "must return a number or a vector of real numbers"
        raise BadConstraint(f"the function of {name} {wanted}, but it returned {checks.shown(returned)} {checks.at(x)}")
    return found.astype(np.float64)


# ---- from a user's arguments ------------------------------------------------------------------------------------


def parse_constraints(constraints: Any, x0: Any, *, bounds: Any = None) -> Constraints:
    """Read constraints: one or more of SciPy's objects or dicts; their functions are called once, at x0.

    With a `Ranking` instead, the function of a point must return an `Evaluated`.
    """
    if isinstance(constraints, Ranking):
        return Constraints(given=constraints)
    single = isinstance(constraints, Mapping) or hasattr(constraints, "lb")
    given = [constraints] if single else constraints
    if not isinstance(given, Sequence):
        raise TypeError(f"constraints must be {_KINDS}, or a list of them, got {constraints!r}")
    linear = np.ndim(x0) == 1  # whether points are vectors, to which a matrix can be applied
    found = []
    for i, one in enumerate(given):
        name = "constraints" if single else f"constraints[{i}]"
        if not linear and hasattr(one, "A"):
            raise ValueError(f"{name} must be a function of a point, because a LinearConstraint is for vectors")
        found.append(_parse_one(name, one, x0))
    whole = Constraints(tuple(found), single)
    if not any(len(one.sides.j) for one in found):
        return Constraints()
    if linear:
        _refuse_contradictions(whole.all, bounds)
    for one in whole.all:
        if one.keep_feasible and not one.holds(_own(x0)):
            raise ValueError(f"x0 must satisfy {one.name}, which has keep_feasible=True, but it does not")
    return whole


def _parse_one(name: str, one: Any, x0: Any) -> Constraint:
    if isinstance(one, Mapping):
        kind = one.get("type")
        if kind not in ("ineq", "eq"):
            raise ValueError(f"{name} must have the type 'ineq' (c(x) >= 0) or 'eq' (c(x) = 0), got {kind!r}")
        if unknown := set(one) - {"type", "fun", "jac", "args"}:
            wanted = "the keys 'type', 'fun', 'jac' and 'args' only"
            raise ValueError(f"{name} must have {wanted}, got {sorted(unknown)[0]!r}")
        args = one.get("args", ())
        args = args if isinstance(args, tuple) else (args,)
        return _with_bounds(name, one.get("fun"), args, 0.0, math.inf if kind == "ineq" else 0.0, False, x0)
    if not hasattr(one, "lb") or not (hasattr(one, "A") or hasattr(one, "fun")):
        raise TypeError(f"{name} must be {_KINDS}, got {one!r}")
    function, matrix = getattr(one, "fun", None), None
    if hasattr(one, "A"):
        matrix = one.A.toarray() if hasattr(one.A, "toarray") else one.A
        matrix = np.atleast_2d(checks.real_array(f"{name}.A", matrix, (None,) * max(1, np.ndim(matrix))))
        if matrix.shape[1] != len(x0):
            raise ValueError(f"{name}.A must have {len(x0)} columns, one for each variable, got {matrix.shape[1]}")
        function = partial(np.matmul, matrix)
    return _with_bounds(name, function, (), one.lb, one.ub, getattr(one, "keep_feasible", False), x0, matrix)


def _with_bounds(
    name: str, fun: Any, args: tuple[Any, ...], lower: Any, upper: Any, keep: Any, x0: Any, matrix: Array | None = None
) -> Constraint:
    """Call the function once, to find out how many values it returns, and check its bounds."""
    if not callable(fun):
        raise TypeError(f"{name} must have a function of a point, got {fun!r}")
    try:
        returned = fun(_own(x0), *args)
    except Exception as error:
        error.add_note(f"while evaluating {name} at x0, to find out how many values it has")
        raise
    first = _vector(name, returned, x0)
    low, high = (_side(f"{name}.{side}", value, len(first)) for side, value in (("lb", lower), ("ub", upper)))
    if (bad := ~(low <= high)).any():
        j = int(bad.argmax())
        raise ValueError(f"{name} must have lb <= ub, got {low[j]} and {high[j]} for component {j}")
    if (bad := (low == math.inf) | (high == -math.inf)).any():
        raise ValueError(f"{name} must leave room for finite values, got lb = {low}, ub = {high}")
    keep = bool(np.any(keep))
    if keep and (low == high).any():
        raise ValueError(f"{name} is an equality: keep_feasible=True is for linear and other inequalities")
    return Constraint(name, fun, args, low, high, keep, matrix)


def _side(name: str, value: Any, number: int) -> Array:
    try:
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (number,)))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or {number} numbers, got {value!r}") from None


def _refuse_contradictions(constraints: Sequence[Constraint], bounds: Any) -> None:
    """Refuse linear constraints that no point within the bounds satisfies, naming the first that conflicts."""
    linear = [one for one in constraints if one.matrix is not None]
    if not linear:
        return
    from scipy.optimize import Bounds, LinearConstraint, milp

    from esgroup.domains.box import parse_bounds

    dim = linear[0].matrix.shape[1]  # type: ignore[union-attr]
    lower, upper, _ = parse_bounds(bounds, dim)
    together = [LinearConstraint(one.matrix, one.lower, one.upper) for one in linear]
    for i, one in enumerate(linear):
        found = milp(np.zeros(dim), bounds=Bounds(lower, upper), constraints=together[: i + 1])
        if found.status == 2:  # infeasible
            with_what = "the bounds or itself" if i == 0 else f"the bounds or {linear[i - 1].name} and those before it"
            wanted = "must leave a point that satisfies all constraints"
            raise ValueError(f"{one.name} {wanted}: it contradicts {with_what}")


def _own(x: Any) -> Any:
    """A point that a function may change."""
    return np.array(x, dtype=np.float64) if isinstance(x, (list, tuple, np.ndarray)) else own_point(x)
