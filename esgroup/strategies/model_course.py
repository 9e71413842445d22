"""The course of a search with quadratic models: how values judge and fit the models, what to do then, and the steps.

model.py says what such a search does, and model_state.py what it keeps. The constants were chosen on bbob f1-f3, f6,
f8-f15 with 5, 10 and 20 coordinates, instances 1-5; differences below 1.2 are noise there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.files.states import copied
from esgroup.groups import Full, Group
from esgroup.kernels import quadratic as kernels
from esgroup.strategies.base import AT_BOUNDS, Indices, Strategy, Told, on_plateau
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.in_domain import Within, to_points, to_search
from esgroup.strategies.model_state import (
    ABSENT,
    ASKED,
    AXIAL,
    COUNTED,
    LONG,
    NEW,
    SHORT,
    SPHERE,
    TOLD,
    ModelState,
    Numbers,
    Plan,
    models_of,
)
from esgroup.strategies.quadratic import (
    Axes,
    Quadratic,
    Quadratics,
    Support,
    changed_frame,
    fit,
    fit_few,
    least_in_ball,
    near_weights,
)

_SELDOM = 4  # generations from one fit of many features to the next while no trial is worth its evaluation
_TRUSTED = 0.5  # Kendall's tau, out of sample, from which on a step by the model needs no further proof
_USELESS = 0.25  # tau up to which the rest of a generation is asked for at once
_KEPT = 0.25  # of the decrease that the model promised, which makes a promise kept
_NEAR = 2.5  # times sqrt(n): points that count as near the mean
_FORGET = 0.7  # of judgements, in a generation
_ERROR_RATE, _WORTH_RATE = 0.1, 0.07
_LEAST_WORTH, _TRY = 0.03, 0.05  # below that worth z* is left out, but tried in so many generations
_RADIUS = 0.2, 1.5  # least and largest
_RATE, _FLOOR = 0.4, 2.8  # of the step of A
_FEW = 2.0  # times p: points up to which there are models with few features
# By how much tau must exceed the error of the model for a step by it although z* was no better than what was known.
# Such steps put the mean on the best point so far and make sigma smaller. On f3 and f15 of bbob (5 and 10 coordinates,
# instances 1-5) they are what makes the search end in worse optima: median gaps of 20 searches after 400 d evaluations
# are 4.0, 10.4 (f3) and 4.0, 11.9 (f15) with this rule, and 6.0, 10.0 and 4.0, 9.5 without any model. Of 10 searches
# they are 5.5, 23.4 and 12.4, 18.4 if such steps are always taken, and 4.0, 10.4 and 5.0, 11.9 if never; but without
# them f10 and f14 take twice the evaluations. With the rule f14 takes 1.4 times, f8, f10, f11 and f12 take as many.
# With 0.1 it is 6.0, 14.9 and 5.5, 15.9, and f14 takes 1.25 times.
_MARGIN = 0.15
_FAR = 1e3  # times sqrt(n): coordinates of points that are not in the archive
_LARGEST = 1e140  # values beyond are not in the archive: squares of what follows from them would be no numbers


class Course:
    """The state of a search while it moves: copies of all that changes."""

    def __init__(self, plan: Plan, state: ModelState) -> None:
        self.plan, self.before = plan, state
        self.n, self.support, self.evolution = plan.size, plan.support, plan.vector.evolution
        self.vector: SearchState = copied(state.vector)
        self.archive, self.values = state.archive, state.values  # never written to
        self._known: tuple[Array, Array] | None = None  # what is in the archive, in local coordinates
        self.models = Quadratics(*(array.copy() for array in models_of(state)))
        self.judged = state.judged.copy()
        self.points, self.samples, self.tags = state.points, state.samples, state.tags
        self.stages, self.outcomes = state.stages.copy(), state.outcomes.copy()
        self.others, self.other_values = state.others.copy(), state.other_values.copy()
        numbers = Numbers(*state.numbers.tolist())
        self.seed, self.generation = int(numbers.seed), int(numbers.generation)
        self.batch, self.waiting = int(numbers.batch), int(numbers.waiting)
        self.number_others, self.used_others = int(numbers.others), int(numbers.used_others)
        self.count, self.used, self.trial = int(numbers.archived), int(numbers.model), int(numbers.trial)
        self.promise, self.record, self.length = numbers.promise, numbers.record, numbers.length
        self.at_edge, self.kept = bool(numbers.at_edge), numbers.kept
        self.radius, self.worth, self.failures = numbers.radius, numbers.worth, numbers.failures
        self.skipped = numbers.skipped

    def state(self) -> ModelState:
        """All of it as a state."""
        numbers = Numbers(
            self.seed, self.generation, self.batch, self.number_others, self.waiting, self.used_others, self.count,
            self.used, self.trial, self.promise, self.record, self.length, self.at_edge, self.kept, self.radius,
            self.worth, self.failures, self.skipped,
        )  # fmt: skip
        return ModelState(
            self.vector, self.before.first, np.array(numbers, dtype=np.float64), self.archive,
            self.values, *self.models, self.judged, self.points, self.samples, self.tags, self.stages, self.outcomes,
            self.others, self.other_values,
        )  # fmt: skip

    # ---- values -------------------------------------------------------------------------------------------------

    def take(self, points: Array, values: Array, found: list[int]) -> None:
        """Keep values until `go_on`."""
        for point, value, row in zip(points, values.tolist(), found, strict=True):
            if row >= 0 and self.stages[row] in (NEW, ASKED):
                self.stages[row], self.outcomes[row] = TOLD, value
                self.waiting += 1
            elif row >= 0 and self.stages[row] == TOLD and _same(self.outcomes[row], value):
                continue  # told again after an interruption
            else:
                if self.number_others == len(self.others):  # a flood: the archive takes it, the ranks do not
                    self._absorb()
                    self.number_others = self.used_others = 0
                place = self.number_others
                self.others[place], self.other_values[place] = self._placed(point[None])[0], value
                self.number_others += 1
                self.waiting += 1

    def begin_with(self, points: Array, values: Array) -> None:
        """Put evaluations from before the search into the archive; n + 2 of them replace the first generation."""
        y = self._placed(points)
        z = self._local(y)
        worst_first = np.argsort(-values, kind="stable")  # the archive forgets the worst of too many
        good = worst_first[self._usable(z, values)[worst_first]]
        self._remember(y[good], values[good], z[good])
        for _ in range(5):  # there is no earlier model to stay near to
            self._fit()
        self._choose()
        if self.count >= self.n + 2:
            self.generation, self.skipped = 0, 1.0
            self.begin()

    def go_on(self) -> None:
        """Learn from the new values, and continue or end the generation."""
        self.waiting = 0
        self._absorb()
        self._choose()
        self._decide()

    def _absorb(self) -> None:
        """Judge the models by the new values, before they see them; then let them learn from these."""
        rows = np.flatnonzero(self.stages == TOLD)
        self.stages[rows] = COUNTED
        fresh = slice(self.used_others, self.number_others)
        y = np.concatenate([self._placed(self.points[rows]), self.others[fresh]])
        values = np.concatenate([self.outcomes[rows], self.other_values[fresh]])
        self.used_others = self.number_others
        z = self._local(y)
        good = self._usable(z, values)
        y, z, values = y[good], z[good], values[good]
        if len(values):
            self._judge(z, values)
            self._remember(y, values, z)
            self._learn(ended=False)

    def _usable(self, z: Array, values: Array) -> NDArray[np.bool_]:
        """Which points may be in the archive: no failed ones, far ones, or values whose squares are no numbers."""
        near: NDArray[np.bool_] = np.abs(z).max(axis=1, initial=0.0) < _FAR * math.sqrt(self.n)
        return near & (np.abs(values) < _LARGEST)

    def _placed(self, points: Array) -> Array:
        """Points in search coordinates."""
        return to_search(self.plan.plain, self.vector, points)

    def _local(self, y: Array) -> Array:
        vector = self.vector
        white = (y - vector.mean) / (vector.sigma * vector.scale)
        if len(vector.inverse):
            return white @ vector.inverse.reshape(self.n, self.n).T
        return self.evolution.group._solve(vector.root, white)

    def known(self) -> tuple[Array, Array]:
        """The points of the archive in local coordinates, and their values, oldest first."""
        if self._known is None:
            first = max(0, len(self.values) - self.count)
            self._known = np.ascontiguousarray(self._local(self.archive[first:])), self.values[first:]
        return self._known

    def _remember(self, y: Array, values: Array, z: Array) -> None:
        """Put points, also given in local coordinates, into the archive in place of the oldest."""
        capacity = len(self.values)
        self.archive = np.concatenate([self.archive, y])[-capacity:]
        self.values = np.concatenate([self.values, values])[-capacity:]
        self.count += len(values)
        if self._known is not None:
            known_z = np.concatenate([self._known[0], z])[-capacity:]
            self._known = known_z, self.values[-len(known_z) :]

    # ---- models -------------------------------------------------------------------------------------------------

    def model(self, number: int) -> Quadratic:
        return self.models.one(number)

    def _set(self, number: int, model: Quadratic) -> None:
        """Keep a model; one that is beyond all numbers, as after values that differ by 1e100 times, begins anew."""
        size = abs(model.constant) + float(np.abs(model.slope).sum()) + float(np.abs(model.curvature).sum())
        if not size < _LARGEST * self.n**2:
            model, self.judged[number] = self.support.nothing(), (0.0, 0.0, 1.0)
        constants, slopes, curvatures = self.models
        constants[number], slopes[number], curvatures[number] = model

    def _fitted(self) -> list[int]:
        """The models that have been fitted; those with few features only until the archive is full."""
        n, count = self.n, self.count
        few = [kind for kind, least in ((SPHERE, n + 2), (AXIAL, 2 * n + 1)) if least <= count < self._few_until]
        if self.support.diagonal and AXIAL in few:
            few.remove(AXIAL)
        return few + ([LONG, SHORT] if count >= n + 2 else [])

    @property
    def _few_until(self) -> int:
        return round(_FEW * self.support.features)

    def _judge(self, z: Array, values: Array) -> None:
        """Note how well every model orders the new values, and how far its predictions are off.

        Every new value is compared with the last older ones and with the new ones before it.
        """
        number = min(max(self.plan.popsize, 10), self.count, len(self.values))
        older = slice(len(self.values) - number, None)
        older_z = self._local(self.archive[older]) if self._known is None else self._known[0][-number:]
        known_z, known = np.concatenate([older_z, z]), np.concatenate([self.values[older], values])
        fitted, (constants, slopes, _) = np.array(self._fitted(), dtype=np.int64), self.models
        kernels.judge(
            known_z, known, number, fitted, constants, slopes, self.models.rows, _ERROR_RATE, self.judged
        )

    def _learn(self, *, ended: bool) -> None:
        """Fit the models: few features after every part of a generation, many when it has ended, if they are of use."""
        often = self.plan.fits_often
        if ended != often and (often or self.trial >= 0 or self.generation % _SELDOM == 0):
            self._fit()

    def _fit(self) -> None:
        """Fit all models to the archive, each from its own past."""
        fitted = self._fitted()
        if not fitted:
            return
        z, values = self.known()
        weights = near_weights(z)
        low = float(values.min())
        scale = math.sqrt(float(weights @ (values - low) ** 2) / float(weights.sum()))
        if scale == 0.0:
            return
        y, windows, both = (values - low) / scale, self.plan.windows, slice(LONG, SHORT + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            constants, slopes, curvatures = (part[both] for part in self.models)
            first = not slopes[0].any()  # nothing is known yet
            constants = np.zeros(2) if first else (constants - low) / scale
            models = Quadratics(constants, slopes / scale, curvatures / scale)
            # the short one has no past of its own before it sees fewer points than the long one
            chained = len(y) <= windows[SHORT]
            fit(self.support, models, z, y, weights, windows=windows[LONG:], steps=self.plan.steps, chained=chained)
            for number in fitted:
                if number in (SPHERE, AXIAL):
                    part = slice(-windows[number], None)
                    few = 1 if number == SPHERE else self.n
                    model = fit_few(self.support, z[part], y[part], weights[part], curvatures=few)
                else:
                    model = models.one(number - LONG)
                found = Quadratic(low + scale * model.constant, scale * model.slope, scale * model.curvature)
                self._set(number, found)

    def tau(self, number: int) -> float:
        """Kendall's tau of a model, out of sample."""
        return float(self.judged[number, 0] / max(1.0, self.judged[number, 1]))

    def _choose(self) -> None:
        """Use the model with the highest tau, of equal ones that with the least error, of these the first."""
        fitted = self._fitted()
        if fitted:
            self.used = max(fitted, key=lambda number: (round(self.tau(number), 6), -self.judged[number, 2]))

    # ---- what to do ---------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Ask for more of the generation, or end it."""
        rows = np.flatnonzero(self.stages == COUNTED)
        left = int((self.stages == NEW).sum())
        out = int((self.stages == ASKED).sum())
        number = len(rows) + self.number_others
        complete = left == 0 and (out == 0 or number >= self.size)
        if self.generation == 0:
            if complete:
                self._learn(ended=True)
                self._choose()
                self.begin()
            else:
                self.batch = max(1, left or out)
            return
        tau = self.tau(self.used)
        tried = self.trial >= 0 and self.stages[self.trial] == COUNTED
        at_once = tried and self.kept < 0.0  # z* is new
        if at_once:
            value = self.outcomes[self.trial]
            gain = self.record - value if math.isfinite(value) else -math.inf
            self.kept = float(gain > 0.0 and gain > _KEPT * (self.record - self.promise))
            if tau < _TRUSTED:
                self.worth += _WORTH_RATE * (self.kept - self.worth)
        trusted = tried and (self.kept > 0.0 or (tau >= _TRUSTED and self._holds(tau)))
        if trusted and (at_once or not complete):
            self._step_by_model(len(rows))
        elif complete:
            self._step_by_ranks(rows)
        elif left == 0:
            self.batch = out
        else:
            self.batch = left if tau <= _USELESS or not tried else min(left, max(1, len(rows) // 2))

    def _holds(self, tau: float) -> bool:
        """Whether z* was better than all that was known, or the model is so good that it may err once."""
        better = bool(self.outcomes[self.trial] < self.record)
        return better or tau > math.sqrt(self.judged[self.used, 2]) + _MARGIN

    @property
    def size(self) -> int:
        """How many points the generation has."""
        return int((self.stages != ABSENT).sum())

    def begin(self) -> None:
        """Draw the next generation; one of its points may be the minimiser of the model."""
        plan, plain = self.plan, self.plan.plain
        self.generation += 1
        rng = np.random.Generator(np.random.Philox(key=[self.seed, self.generation]))
        number = plan.rows if self.generation == 0 else plan.popsize
        drawn = plain.sample(self.vector, number, rng)
        tags = np.zeros(number) if drawn.tags is None else drawn.tags.astype(np.float64)
        points, samples = drawn.points.copy(), drawn.local.copy()
        self.trial, self.kept, self.batch = -1, -1.0, number
        if self.generation == 0:
            samples[0], points[0], tags[0] = 0.0, plain.mean(self.vector), AT_BOUNDS
        elif self._worth_a_trial(rng):
            z = self._minimiser()
            row = int((tags == 0).argmax())
            samples[row], self.trial, self.batch = z, row, plan.part
            image = self.evolution.group._apply(self.vector.root, z[None])
            points[row] = to_points(plain, self.vector.mean + self.vector.sigma * self.vector.scale * image)[0]
        self.points, self.samples, self.tags = (_padded(part, plan.rows) for part in (points, samples, tags))
        self.stages = np.where(np.arange(plan.rows) < number, float(NEW), float(ABSENT))
        self.outcomes = np.zeros(plan.rows)
        self.number_others = self.used_others = 0

    def _worth_a_trial(self, rng: np.random.Generator) -> bool:
        chance = float(rng.random())
        if self.count < self.n + 2 or self.failures >= 3 + self.n / 4 or self.model(self.used).size == 0.0:
            return False
        return self.tau(self.used) >= _TRUSTED or self.worth > _LEAST_WORTH or chance < _TRY

    def _minimiser(self) -> Array:
        """z*, with what it promises."""
        model = self.model(self.used)
        z, self.at_edge = least_in_ball(model, model.axes(), self.radius * math.sqrt(self.n))
        self.length, self.promise = float(np.linalg.norm(z)), float(model.values(z[None])[0])
        self.record = self._best_near()[1]
        return z

    def _best_near(self) -> tuple[Array | None, float]:
        """The best point of the archive near the mean, in local coordinates, and its value."""
        z, values = self.known()
        near = np.flatnonzero(np.vecdot(z, z) <= _NEAR**2 * self.n)
        if not len(near):
            return None, math.inf
        best = near[values[near].argmin()]
        return z[best], float(values[best])

    # ---- steps --------------------------------------------------------------------------------------------------

    def _step_by_model(self, evaluated: int) -> None:
        """Move the mean to the best point near it, A by the Hessian, sigma by what became of z*."""
        self._learn(ended=True)
        n, model = self.n, self.model(self.used)
        old = SearchState(*(array.copy() for array in self.vector))
        best = self._best_near()[0]
        if best is not None:
            image = self.evolution.group._apply(self.vector.root, best[None])[0]
            self.vector.mean[:] += self.vector.sigma * self.vector.scale * image
        axes = model.axes()
        p = self.support.features
        share = min(1.0, 0.5 * (p / max(1, min(self.count, 2 * p))) ** 2)
        floor = _FLOOR * math.sqrt(self.judged[self.used, 2]) * model.size / math.sqrt(n)
        logs = root_logs(axes.values, share, floor)
        if logs is not None:
            self.evolution._move_by(self.vector, root_step(self.evolution.group, axes, logs))
        self.vector.path_s[:] *= 0.5
        self.vector.sigma[0] *= self._sigma_factor() ** min(1.0, 3.0 * evaluated / n)
        self.evolution._refresh_if_due(self.vector)
        self.plan.vector.keep_limits(self.vector, self.before.first)
        self._keep_widths()
        self._end(old)

    def _sigma_factor(self) -> float:
        """The factor of sigma after a trial, which also changes the radius."""
        value, (least, most) = self.outcomes[self.trial], _RADIUS
        if value < self.record:
            self.failures, factor = 0.0, 1.0
            if not self.at_edge:
                factor = float(np.clip(math.sqrt(self.length / (0.3 * math.sqrt(self.n))), 0.5, 1.2))
            elif self.kept > 0.0 and self.radius >= most:
                factor = 1.6
            if self.kept > 0.0:
                self.radius = min(most, 1.5 * self.radius)
            return factor
        self.failures += 1.0
        factor = 0.7 if self.radius <= least else 1.0
        self.radius = max(least, 0.6 * min(self.radius, self.length / math.sqrt(self.n)))
        return factor

    def _step_by_ranks(self, rows: Indices) -> None:
        """The step of the evolution strategy, with all values of the generation."""
        self._learn(ended=True)
        vector, old = self.plan.vector, SearchState(*(array.copy() for array in self.vector))
        others = slice(0, self.number_others)
        local = np.concatenate([self.samples[rows], vector.shortened(self._local(self.others[others]))])
        tags = np.concatenate([self.tags[rows], np.zeros(self.number_others)]).astype(np.int64)
        values = np.concatenate([self.outcomes[rows], self.other_values[others]])
        order = values.argsort(kind="stable")
        ranked = values[order].tolist()
        if self.trial >= 0:
            good = self.stages[self.trial] == COUNTED and int((values < self.outcomes[self.trial]).sum()) < 2
            self.radius = float(np.clip(self.radius * (1.3 if good else 0.8), *_RADIUS))
        self.failures = 0.0
        if len(values) > 1 and ranked[0] == ranked[0]:
            widens = on_plateau(ranked, vector, self.vector, self.before.first)
            failed = int(np.isnan(values).sum())
            told = Told(local, order, widens, tags if tags.any() else None, None, self.before.first, failed, ranked[0])
            self.vector = self.plan.unnamed.update(self.vector, told)
            self._keep_widths()
        self._end(old)

    def _keep_widths(self) -> None:
        """Bring standard deviations to the limits of the domain; an angle is not turned: the archive would have to."""
        plain: Strategy = self.plan.plain
        while isinstance(plain, Within):
            self.vector = plain.kept(self.vector, turned=False)
            plain = plain.inner

    def _end(self, old: SearchState) -> None:
        """Take all models to the new frame, and begin the next generation."""
        self.judged[:, :2] *= _FORGET
        self._known = None
        shift, turn = frame_change(self.evolution.group, old, self.vector)
        for number in self._fitted():
            with np.errstate(over="ignore", invalid="ignore"):
                self._set(number, changed_frame(self.support, self.model(number), shift, turn))
        self.begin()


def root_logs(eigenvalues: Array, share: float, floor: float) -> Array | None:
    """L: the logarithms of the step of A along the axes of the Hessian; None if there is no positive eigenvalue.

    e <- (1 - share) e+ + share mean(e+) + floor, L = clip(0.4 (-log(e) / 2 - mean), -1, 1).
    """
    positive = np.maximum(eigenvalues, 0.0)
    mean = float(positive.mean())
    e = (1.0 - share) * positive + share * mean + floor
    if not (e > 0.0).all():
        e = np.maximum(e, 1e-12 * e.max())
    if not (e > 0.0).all():
        return None
    logs = -0.5 * np.log(e / e.max())  # the units of the function do not matter, to the last digit
    found: Array = np.clip(_RATE * (logs - logs.mean()), -1.0, 1.0)
    return found


def root_step(group: Group, axes: Axes, logs: Array) -> Array:
    """exp(C (.) kappa(2 V L V^T)) as an element of the group, for the full group V exp(L) V^T."""
    vectors = axes.vectors
    if isinstance(group, Full) and vectors is not None:
        step: Array = (vectors * np.exp(logs)) @ vectors.T
        return step.ravel()
    basis = np.eye(len(logs)) if vectors is None else np.ascontiguousarray(vectors.T)
    return group._exp(group._project(basis, basis, 2.0 * logs, 0.0))


def frame_change(group: Group, old: SearchState, new: SearchState) -> tuple[Array, Array]:
    """d and T with z_old = d + T z_new, for x = mu + sigma D A z; T is a vector where the group is diagonal."""
    old_scale, new_scale = old.sigma * old.scale, new.sigma * new.scale
    moved, ratio = (new.mean - old.mean) / old_scale, new_scale / old_scale
    if len(old.inverse):  # of dense groups
        inverse = old.inverse.reshape(group.dim, group.dim)
        return inverse @ moved, inverse @ (ratio[:, None] * group._dense(new.root))
    shift = group._solve(old.root, moved[None])[0]
    if Support.of(group).diagonal:
        ones = np.ones((1, group.dim))
        turn: Array = group._solve(old.root, ratio * group._apply(new.root, ones))[0]
        return shift, turn
    image = np.ascontiguousarray((ratio[:, None] * group._dense(new.root)).T)  # rows are the columns of D A_new
    return shift, np.ascontiguousarray(group._solve(old.root, image).T)


def _padded(part: Array, rows: int) -> Array:
    return np.concatenate([part, np.zeros((rows - len(part), *part.shape[1:]))])


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
