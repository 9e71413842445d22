"""Nonlinear constraints: an augmented Lagrangian whose multipliers come from models in local coordinates.

A point has a value f and constraints g_1 ... g_m, g_j <= 0 or, for an equality, g_j = 0. Points are ranked by

    f + sum_j psi_j(g_j),  psi_j = (lambda_j + omega_j g_j / 2) g_j  where lambda_j + omega_j g_j > 0, or equality,
                           psi_j = -lambda_j^2 / (2 omega_j)         elsewhere

(Rockafellar 1973; in evolution strategies Arnold and Porter 2015, Atamna, Auger and Hansen 2017, Dufosse and Hansen
2021). With the right multipliers lambda its minimum is that of the constrained problem. These papers find them by steps
along g at the mean, which takes as long as the search itself. Here they are computed once per generation. In the local
coordinates z of the search distribution, x = mean + sigma D A z, the last evaluations give f and every g_j a model

    a + b^T z + c |z|^2 / 2

by weighted least squares. One number for the curvature is enough once A has learned the shape of the function. The
multipliers are those of the quadratic program min_z b_f^T z + c |z|^2 / 2, a_j + b_j^T z <= 0, whose dual is a problem
of non-negative least squares. All of this is invariant under scaling of f and of each constraint: both are divided by
powers of two near their sizes in the first generation, so that no unit overflows. Feasibility is separate: a violation
within `tolerance`, in the units of the constraint, in every run and from the first point on.

From time to time one point of a generation is the solution of this program (`inner_step`), moved inwards by a margin:
with k constraints active at the minimum, only one in 2^k samples near it is feasible, while this point usually is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.box import parse_mask
from esgroup.files.checked import array as stored_array
from esgroup.files.checked import finite_array
from esgroup.rankings.base import Ranking, Scored, register
from esgroup.rankings.least_squares import Models, fitted, non_negative
from esgroup.strategies.base import INNER, Indices, Proposed, Strategy

# All constants below were chosen on bbob-constrained, f1, 3, 6, 8, 16, 28, 31, 32, 42 with 5 and 10 variables,
# instances 1-3, and on seven of the engineering designs of the problem zoo, seeds 0-4. Differences of 10 percent are
# noise there.
_REMEMBERED = 3  # times the numbers of a model: evaluations kept for it; 2 and 5 work as well
_MOST_REMEMBERED = 300  # beyond a hundred variables models are fitted in the space of samples
_REACH = 2.0  # times sqrt(n): how far the model is trusted
_TRUST = 1000.0  # times omega: how strongly multipliers are held to their last values; the larger, the less
# Multipliers take the share (|mean step| / mean |step|)^2 of a step, with means over about five generations: all of it
# while they point one way, little while the models of a nonlinear constraint keep changing. Always all of it:
# 5 % fewer evaluations on bbob-constrained, where constraints are nearly linear, but the speed reducer is solved in 2
# of 5 searches and the truss of ten bars in 3.
_MEMORY, _LEAST_STEP = 0.2, 0.05
# omega |b|^2 over the curvature, below which a penalty grows, and above which it shrinks. Too small, and the mean
# drifts off while multipliers are wrong; but with positive curvature, penalties must not follow 1 / |b|^2 forever.
_LEAST_SHARE, _MOST_SHARE = 0.5, 20.0
# Where the Lagrangian is concave, only penalties hold the minimum: they are compared with this many times its
# curvature, which is the mean over all directions. With 0, 3 and 10 the welded beam is solved in 0, 5 and 5 of 5
# searches, the spring in 3, 3 and 5.
_CONCAVE = 10.0
_NARROW = 0.01  # standard deviations: if a quarter of the points are within, the distribution has widened since
_MOST_PULL = 10.0  # largest lambda |b_j| over |b_f|; with 100 the pressure vessel is solved in 4 of 5 searches
_ZERO = 1e-9  # of |b_f|: a multiplier times |b_j| that counts as 0
_CONSTANT = 1e-13  # of the values of f: differences that count as rounding
_FLAT = 1e-14  # of the value of a constraint at the mean: a slope that counts as 0
_LEAST_CURVATURE = 3e-4  # times |b_f| / reach: least curvature that penalties are compared with
_MARGINS = 0.01, 1.0  # of the inner point, in standard deviations
# Generations between inner points: with 2, 4 and 8, searches on bbob-constrained (f1, 3, 6, 8, 16, 28, 31,
# 42, instances 1-3, 5 and 10 variables) take 1.01, 1 and 1.06 times as many evaluations.
_INNER_EVERY = 4
_LEAST_POINTS = 4  # with at least as many samples, one may be an inner point
_WORTH = 2.0  # standard deviations from the mean to a constraint within which an inner point is worth trying


class LagrangianState(NamedTuple):
    """Multipliers and penalties, and the last evaluations, from which the models are fitted."""

    multipliers: Array  # lambda, (m,), of scaled values and constraints, and so are
    penalties: Array  # omega, (m,), 0 until the first model
    trend: Array  # (m,): mean step of lambda |b_j| / |b_f|
    travel: Array  # (m,): mean of its absolute value
    units: Array  # (1 + m,): powers of two by which f and each constraint are divided, NaN before the first generation
    margin: Array  # (1,)
    points: Array  # (k, *shape)
    outcomes: Array  # (k, 1 + m): value and constraints, as they were told
    inner: Array  # (1, *shape): a point to try in the next generation; or (0, *shape)
    age: Array  # generations so far

    def in_units(self, outcomes: Array) -> Array:
        """Values and constraints divided by their units, once there are any."""
        with np.errstate(over="ignore"):
            return outcomes / np.where(np.isnan(self.units), 1.0, self.units)


@register
@dataclass(frozen=True)
class AugmentedLagrangian(Ranking):
    """The number of constraints, which ones are equalities, and their tolerance.

    The best point is the feasible one with the smallest value, or, if none is feasible, the one least in violation.

    Parameters
    ----------
    number : int
        Number of constraints, at least 1.
    equalities : tuple of int
        The indices of the constraints that must equal 0.
    tolerance : float or tuple of float
        How much a constraint may be violated, in its own units: one number, or one per constraint.
    """

    number: int
    equalities: tuple[int, ...] = ()
    tolerance: float | tuple[float, ...] = 1e-6

    def __post_init__(self) -> None:
        checks.store_whole_number(self, "number", least=1)
        object.__setattr__(self, "equalities", _indices(self.equalities, self.number))
        object.__setattr__(self, "tolerance", _tolerance(self.tolerance, self.number))
        object.__setattr__(self, "columns", self.number)

    @property
    def about(self) -> str:
        equal = f", equalities {self.equalities}" if self.equalities else ""
        return f"{self.number} constraints{equal} with the tolerance {checks.shown(self.tolerance)}"

    @cached_property
    def is_equality(self) -> NDArray[np.bool_]:
        """Which constraints are equalities, (m,)."""
        return np.isin(np.arange(self.number), self.equalities)

    @cached_property
    def tolerances(self) -> Array:
        """The tolerance of each constraint, (m,)."""
        return np.full(self.number, self.tolerance, dtype=np.float64)

    @cached_property
    def _weights(self) -> Array:
        """The weights of violations, (m,): 1 over the tolerance, scaled to 1 for all if the tolerances are equal.

        A constraint with tolerance 0 counts as one with the smallest tolerance of the others.
        """
        positive = self.tolerances[self.tolerances > 0]
        if not positive.size:
            return np.ones(self.number)
        return positive.max() / np.where(self.tolerances > 0, self.tolerances, positive.min())

    # ---- states -------------------------------------------------------------------------------------------------

    def start(self, shape: tuple[int, ...]) -> LagrangianState:
        m, none = self.number, np.empty((0, *shape))
        first = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.full(1 + m, math.nan), np.full(1, 0.05)
        return LagrangianState(*first, none, np.empty((0, 1 + m)), none, np.zeros(()))

    def read_state(self, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> LagrangianState:
        first = self.start(shape)
        points, inner = (finite_array(arrays, name, (None, *shape)) for name in ("points", "inner"))
        if len(inner) > 1:
            raise ValueError(f"inner must be one point at most, got {len(inner)}")
        outcomes = finite_array(arrays, "outcomes", (len(points), 1 + self.number))
        units = stored_array(arrays, "units", first.units.shape)
        if not (np.isnan(units).all() or (np.isfinite(units) & (units > 0)).all()):
            raise ValueError(f"units must be positive numbers, got {units}")
        others = ("multipliers", "penalties", "trend", "travel", "margin", "age")
        read = {name: finite_array(arrays, name, getattr(first, name).shape) for name in others}
        return LagrangianState(**read, units=units, points=points, outcomes=outcomes, inner=inner)

    def counted(self, state: LagrangianState, points: Array, outcomes: Array) -> LagrangianState:
        good = np.isfinite(outcomes).all(axis=1)
        return state._replace(
            points=np.concatenate([state.points, points[good]]),
            outcomes=np.concatenate([state.outcomes, outcomes[good]]),
        )

    def mark(self, state: LagrangianState) -> int:
        return len(state.points)

    def rewound(self, state: LagrangianState, mark: int) -> LagrangianState:
        return state._replace(points=state.points[:mark], outcomes=state.outcomes[:mark])

    # ---- what counts --------------------------------------------------------------------------------------------

    def violations(self, constraints: Array) -> Array:
        """Return how much each constraint is violated, in its own units, for rows of constraints."""
        return np.where(self.is_equality, np.abs(constraints), np.maximum(constraints, 0.0))

    def violation(self, constraints: Array) -> Array:
        """Return one number per row of constraints for comparing points: 0 for a feasible one.

        It is the largest violation, or, if tolerances differ, the largest in proportion to them.
        """
        violated = self.violations(constraints)
        with np.errstate(over="ignore"):
            return np.where(violated > self.tolerances, violated * self._weights, 0.0).max(axis=1)

    def feasible(self, outcomes: Array) -> NDArray[np.bool_]:
        return (self.violation(outcomes[:, 1:]) == 0.0) & ~np.isnan(outcomes[:, 0])

    def best(self, outcomes: Array, than: Array | None = None) -> int | None:
        """Compare violations first, which are 0 for all feasible points, then values."""
        good = np.flatnonzero(~np.isnan(outcomes[:, 0]))
        if not good.size:
            return None
        compared = outcomes[good] if than is None else np.vstack([than, outcomes[good]])  # of equal rows the first
        first = int(np.lexsort((compared[:, 0], self.violation(compared[:, 1:])))[0]) - (than is not None)
        return None if first < 0 else int(good[first])

    def multipliers(self, state: LagrangianState) -> Array:
        """Return the multipliers, in the units of f over those of each constraint."""
        units = np.where(np.isnan(state.units), 1.0, state.units)
        with np.errstate(over="ignore"):  # in this order 0 stays 0
            return state.multipliers * units[0] / units[1:]

    def fields(self, best: Array | None, multipliers: Array | None) -> dict[str, Any]:
        row = np.full(1 + self.number, math.nan) if best is None else best
        constr = row[1:].copy()
        violation, feasible = float(self.violations(constr).max()), bool(self.feasible(row[None])[0])
        return {"feasible": feasible, "constr": constr, "constr_violation": violation, "multipliers": multipliers}

    def note(self, best: Array) -> str:
        if self.feasible(best[None])[0]:
            return ""
        violated = self.violations(best[1:]).max()
        return f"No feasible point was found: x has the smallest violation, {violated:.3g}, above constraint_tol"

    def lagrangian(self, state: LagrangianState, outcomes: Array) -> Array:
        """Return the numbers that rank points, NaN for failed evaluations."""
        scaled = state.in_units(outcomes)
        f, g = scaled[:, 0], scaled[:, 1:]
        multipliers, penalties = state.multipliers, state.penalties
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            pressed = self.is_equality | (multipliers + penalties * g > 0)
            inside = np.where(penalties > 0, -(multipliers**2) / (2 * penalties), 0.0)
            scores: Array = f + np.where(pressed, (multipliers + penalties * g / 2) * g, inside).sum(axis=1)
            scores *= 1.0 if np.isnan(state.units[0]) else state.units[0]
        return np.where(np.isnan(scores) & ~np.isnan(outcomes).any(axis=1), math.inf, scores)  # inf - inf

    # ---- one generation -----------------------------------------------------------------------------------------

    def scores(
        self, state: LagrangianState, outcomes: Array, tags: Indices | None, strategy: Strategy, distribution: Any
    ) -> Scored:
        """Update the multipliers from all stored evaluations, in coordinates of the distribution, then score.

        Scores of different generations are not comparable: they change with multipliers and penalties.
        """
        z, others = strategy.coordinates(distribution).of(state.points)
        after, models = self.updated(state, z, others, strategy.popsize)
        if tags is not None and (inner := (tags == INNER) & ~np.isnan(outcomes[:, 0])).any():
            after = self.with_margin(after, outcomes[inner, 1:])
        point = None
        if state.age % _INNER_EVERY == 0 and strategy.popsize >= _LEAST_POINTS:
            step = self.inner_step(after, models)
            point = None if step is None else strategy.coordinates(distribution).at(step)
        tried = np.empty((0, *strategy.shape)) if point is None else point[None]
        after = after._replace(inner=tried, age=state.age + 1)
        best = float(outcomes[self.feasible(outcomes), 0].min(initial=math.inf))
        return Scored(after, self.lagrangian(after, outcomes), best)

    def placed(self, state: LagrangianState, drawn: Proposed, strategy: Strategy, distribution: Any) -> Proposed:
        """Replace the last untagged sample with the inner point, if there is one.

        It counts like any other point. Strategies that know its tag give it a middle rank in the update and keep the
        coordinates of the sample; other strategies use its own. Over matrices with three constraints, and over
        positive-definite ones with a determinant, they take 1590 and 404 evaluations with such points (seeds 0-5), 1770
        and 554 without, 1840 and 486 with the coordinates of the sample.
        """
        if not len(state.inner) or len(drawn.points) < _LEAST_POINTS:
            return drawn
        tags = np.zeros(len(drawn.points), dtype=np.int64) if drawn.tags is None else drawn.tags
        unmarked = np.flatnonzero(tags == 0)
        if unmarked.size:
            drawn.points[unmarked[-1]], tags[unmarked[-1]] = state.inner[0], INNER
            if not strategy.traits.knows_inner:
                drawn.local[unmarked[-1]] = strategy.shortened(strategy.local(distribution, state.inner))[0]
                drawn = drawn._replace(memo=None)
        return drawn._replace(tags=tags)

    def updated(self, state: LagrangianState, z: Array, others: Array, popsize: int) -> tuple[LagrangianState, Models]:
        """Return the state with new multipliers and penalties, and the models from which they were computed.

        If the distribution has become far wider than it was, penalties start over: they suit the curvature of a narrow
        one, and would keep the search inside all constraints until they shrink.

        Parameters
        ----------
        state
            The current one.
        z : array (k, n)
            Local coordinates of the points in the state.
        others : array (k, l)
            Other explanatory variables, 0 at the mean: categories.
        popsize
            Values per generation.
        """
        if z.size and np.quantile((z**2).mean(axis=1), 0.25) < _NARROW**2:
            none = np.zeros(self.number)
            state = state._replace(penalties=none, trend=none, travel=none)
        if np.isnan(state.units).any() and len(state.outcomes):
            state = state._replace(units=_units(state.outcomes))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # values whose squares are no numbers
            models = fitted(z, others, state.in_units(state.outcomes))
            new = self._with_multipliers(self._with_first_penalties(state, models), models)
        if all(np.isfinite(part).all() for part in (new.multipliers, new.penalties, new.trend, new.travel)):
            state = new
        numbers = z.shape[1] + others.shape[1] + 2
        kept = max(popsize, min(_REMEMBERED * numbers, _MOST_REMEMBERED))
        return state._replace(points=state.points[-kept:], outcomes=state.outcomes[-kept:]), models

    def _with_first_penalties(self, state: LagrangianState, models: Models) -> LagrangianState:
        """Give constraints without a slope, which only integers and choices change, penalties by their size.

        omega = (standard deviation of f) / (mean of g^2) at first, and doubles in every generation in which the model
        has the constraint violated at the mean. If f does not change at all, as when you only want a feasible point,
        all constraints get penalties that are visible next to f: |f|, or 1, instead of the standard deviation.
        """
        if not len(state.outcomes):
            return state
        outcomes = state.in_units(state.outcomes)
        f, flat = outcomes[:, 0], np.linalg.norm(models.slopes[1:], axis=1) <= _FLAT * np.abs(models.at_mean[1:])
        largest = float(np.abs(f).max())
        constant = float(np.ptp(f)) <= _CONSTANT * largest
        if not constant and not flat.any():
            return state
        size = max(1.0, largest) if constant else f.std()
        first = size / (outcomes[:, 1:] ** 2).mean(axis=0)
        first = np.where(np.isfinite(first) & (first > 0), first, 1.0)
        if constant:
            return state._replace(penalties=np.maximum(state.penalties, first).clip(0.0, 1e200))
        violated = self.violations(models.at_mean[1:]) > 0
        grown = np.where(state.penalties == 0, first, np.where(violated, 2 * state.penalties, state.penalties))
        return state._replace(penalties=np.where(flat, grown, state.penalties).clip(0.0, 1e200))

    def _with_multipliers(self, state: LagrangianState, models: Models) -> LagrangianState:
        """Solve the quadratic program for the multipliers, then let penalties follow.

        In units of a standard deviation for z, of |b_j| for g_j and of c for f, the dual program is

            min |B^T l - z_0|^2 / 2 - a^T l + sum_j (l_j - l_j,old)^2 / (2 r_j),   l >= 0 (free for equalities),

        with z_0 = -b_f and r_j a multiple of omega_j: it always has a solution, even if the constraints have none.
        """
        n = models.slopes.shape[1]
        reach = _REACH * math.sqrt(max(1, n))
        steepness = np.linalg.norm(models.slopes[1:], axis=1)
        known = steepness > _FLAT * np.abs(models.at_mean[1:])
        if not known.any() or not np.isfinite(models.slopes).all():
            return state
        units = np.where(known, steepness, 1.0)
        slopes, offsets = models.slopes[1:] / units[:, None] * known[:, None], models.at_mean[1:] / units
        gradient = models.slopes[0]
        size = float(np.linalg.norm(gradient)) / reach
        penalties, multipliers = state.penalties, state.multipliers
        for _ in range(3):  # the curvature of the Lagrangian depends on the multipliers
            pull = gradient + slopes.T @ (multipliers * units)
            fitted_curvature = models.curvatures[0] + float(multipliers @ models.curvatures[1:])
            curvature = max(fitted_curvature, float(np.linalg.norm(pull)) / reach, 1e-10 * size, 1e-300)
            penalties = np.where(known & (penalties == 0.0), max(curvature, size) / units**2, penalties)
            held = _TRUST * np.where(penalties > 0, penalties, 1.0) * units**2 / curvature
            old = state.multipliers * units / curvature
            wanted = np.sqrt(held) * (offsets - slopes @ gradient / curvature) + old / np.sqrt(held)
            found = non_negative(slopes, 1 / np.sqrt(held), wanted, self.is_equality)
            if found is None:
                break
            multipliers = np.where(known, found[0] * curvature / units, state.multipliers)
        most = _MOST_PULL * size * reach / units  # if no nearby point is feasible, penalties lead there
        step = multipliers.clip(-most, most) - state.multipliers
        relative = step * units / max(size * reach, 1e-300)
        trend = (1 - _MEMORY) * state.trend + _MEMORY * relative
        travel = (1 - _MEMORY) * state.travel + _MEMORY * np.abs(relative)
        taken = ((trend / np.where(travel > 0, travel, 1.0)) ** 2).clip(_LEAST_STEP, 1.0)
        multipliers = state.multipliers + taken * step
        fading = step == -state.multipliers  # of a constraint that is no longer active
        multipliers = np.where(fading & (np.abs(multipliers) * units < _ZERO * size * reach), 0.0, multipliers)
        bent = models.curvatures[0] + float(multipliers @ models.curvatures[1:])
        compared = max(curvature, _LEAST_CURVATURE * size, -_CONCAVE * bent)
        share = penalties * units**2 / compared
        grows = known & (share < _LEAST_SHARE) & ((multipliers != 0) | (offsets > -1.0))
        factor = 2.0 ** (1 / math.sqrt(max(1, n)))
        penalties = np.where(grows, penalties * factor, penalties)
        penalties = np.where(known & (share > _MOST_SHARE), penalties / math.sqrt(factor), penalties)
        penalties = penalties.clip(0.0, 1e200)
        return state._replace(multipliers=multipliers, penalties=penalties, trend=trend, travel=travel)

    @np.errstate(over="ignore", invalid="ignore")
    def inner_step(self, state: LagrangianState, models: Models) -> Array | None:
        """Return the z (n,) that solves the quadratic program, moved inwards by the margin; None if it is not useful.

        This is the point nearest to -b_f / c, which is shortened to the length of a sample, among those that satisfy
        all linear models with a margin: |z|^2 in the dual is again a problem of non-negative least squares.
        """
        n = models.slopes.shape[1]
        steepness, length = np.linalg.norm(models.slopes[1:], axis=1), float(np.linalg.norm(models.slopes[0]))
        if not (np.isfinite(steepness).all() and math.isfinite(length)):
            return None
        offsets = models.at_mean[1:] / np.maximum(steepness, 1e-300)
        near = (steepness > 0) & (self.is_equality | (offsets > -3 * math.sqrt(max(1, n))))
        if n == 0 or not (near & ((state.multipliers != 0) | (offsets > -_WORTH))).any():
            return None
        curvature = models.curvatures[0] + float(state.multipliers @ models.curvatures[1:])
        gradient, longest = models.slopes[0], math.sqrt(n)
        first = -gradient / max(curvature, length / longest, 1e-300)
        slopes = models.slopes[1:][near] / steepness[near, None]
        equal = self.is_equality[near]
        wanted = offsets[near] + slopes @ first + np.where(equal, 0.0, state.margin.item())
        small = 1e-6
        found = non_negative(slopes, np.full(len(wanted), small), wanted / small, equal)
        if found is None:
            return None
        step: Array = first - found[1]
        return step if float(np.linalg.norm(step)) <= 3 * longest else None

    def with_margin(self, state: LagrangianState, constraints: Array) -> LagrangianState:
        """Return the state after evaluating an inner point: the margin grows if it was not feasible."""
        outside = bool((self.violations(constraints)[..., ~self.is_equality] > 0).any())
        margin = state.margin * 2 if outside else state.margin / 1.5
        return state._replace(margin=margin.clip(*_MARGINS))


def _units(outcomes: Array) -> Array:
    """The power of two at the median of absolute values of each column; of their largest, or 1, if that is 0."""
    sizes = np.sort(np.abs(outcomes), axis=0)
    size = np.where(sizes[len(sizes) // 2] > 0, sizes[len(sizes) // 2], sizes[-1])
    units: Array = np.ldexp(1.0, np.frexp(size)[1] - 1)
    return np.where(size > 0, units, 1.0)


def _tolerance(tolerance: Any, number: int) -> float | tuple[float, ...]:
    """Check a tolerance, or one for each constraint."""
    found: float | tuple[float, ...]
    if np.ndim(tolerance) == 0:
        found = checks.real_number("constraint_tol", tolerance)
    else:
        name = "constraint_tol (one number, or one for each constraint)"
        found = tuple(checks.real_array(name, tolerance, (number,)).tolist())
    if np.min(found) < 0:
        raise ValueError(f"constraint_tol must not be negative, got {found}")
    return found


def _indices(equalities: Any, number: int) -> tuple[int, ...]:
    """Check indices of equality constraints, or one index."""
    entries = [equalities] if isinstance(equalities, (int, np.integer)) else equalities
    return tuple(np.flatnonzero(parse_mask("equalities", entries, number)).tolist())
