"""One step of a search with a surrogate: how values judge and fit it, the decision after that, and the moves.

model.py explains such a search, model_state.py what it stores. The constants were chosen with quadratic models on bbob
f1-f3, f6, f8-f15 with 5, 10 and 20 variables, instances 1-5; differences below 1.2 are noise there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from esgroup.checks import Array
from esgroup.domains.named import Named
from esgroup.strategies.base import AT_BOUNDS, Indices, Ranked, Strategy, on_plateau
from esgroup.strategies.in_domain import Within, innermost, to_search
from esgroup.strategies.model_state import ABSENT, ASKED, COUNTED, NEW, TOLD, ModelState, Numbers

if TYPE_CHECKING:
    from esgroup.strategies.model import ModelSearch

_SELDOM = 4  # generations between two costly fits while no trial is worth its evaluation
_TRUSTED = 0.5  # out-of-sample Kendall's tau above which a step by the surrogate needs no further evidence
_USELESS = 0.25  # tau up to which the rest of a generation is asked for at once
_KEPT = 0.25  # share of the predicted decrease that z* must achieve to count as successful
_NEAR = 2.5  # times sqrt(n): points that count as near the mean
_WORTH_RATE = 0.07
_LEAST_WORTH, _TRY = 0.03, 0.05  # below that worth z* is left out, but tried in so many generations
_RADIUS = 0.2, 1.5  # least and largest
# By how much tau must exceed the error of the model for a step by it although z* was no better than what was known.
# Such steps put the mean on the best point so far and make sigma smaller. On f3 and f15 of bbob (5 and 10 coordinates,
# instances 1-5) they are what makes the search end in worse optima: median gaps of 20 searches after 400 d evaluations
# are 4.0, 10.4 (f3) and 4.0, 11.9 (f15) with this rule, and 6.0, 10.0 and 4.0, 9.5 without any model. Of 10 searches
# they are 5.5, 23.4 and 12.4, 18.4 if such steps are always taken, and 4.0, 10.4 and 5.0, 11.9 if never; but without
# them f10 and f14 take twice the evaluations. With the rule f14 takes 1.4 times, f8, f10, f11 and f12 take as many.
# With 0.1 it is 6.0, 14.9 and 5.5, 15.9, and f14 takes 1.25 times.
_MARGIN = 0.15
_FAR = 1e3  # times sqrt(n): coordinates of points that are not in the archive
_LARGEST = 1e140  # larger values are not in the archive: squares of what follows from them would overflow


class SurrogateStep:
    """The state of a search while it moves: copies of everything that changes."""

    def __init__(self, search: ModelSearch, state: ModelState) -> None:
        self.search, self.before, self.n = search, state, search.surrogate.dim
        self.surrogate, self.inner = search.surrogate, search.inner
        self.plain, self.model = state.plain, state.surrogate  # states, never written to
        self.archive, self.values = state.archive, state.values  # never written to
        self._known: tuple[Array, Array] | None = None  # the archive in coordinates of the frame
        self.points, self.samples, self.tags = state.points, state.samples, state.tags
        self.stages, self.outcomes = state.stages.copy(), state.outcomes.copy()
        self.others, self.other_values = state.others.copy(), state.other_values.copy()
        numbers = Numbers(*state.numbers.tolist())
        self.seed, self.generation = int(numbers.seed), int(numbers.generation)
        self.batch, self.waiting = int(numbers.batch), int(numbers.waiting)
        self.number_others, self.used_others = int(numbers.others), int(numbers.used_others)
        self.count, self.trial = int(numbers.archived), int(numbers.trial)
        self.promise, self.record, self.length = numbers.promise, numbers.record, numbers.length
        self.at_edge, self.kept = bool(numbers.at_edge), numbers.kept
        self.radius, self.worth, self.failures = numbers.radius, numbers.worth, numbers.failures
        self.skipped = numbers.skipped

    def state(self) -> ModelState:
        """Return all of it as a state."""
        numbers = Numbers(
            self.seed, self.generation, self.batch, self.number_others, self.waiting, self.used_others, self.count,
            self.trial, self.promise, self.record, self.length, self.at_edge, self.kept, self.radius, self.worth,
            self.failures, self.skipped,
        )  # fmt: skip
        return ModelState(
            self.plain, self.model, self.before.first, np.array(numbers, dtype=np.float64), self.archive,
            self.values, self.points, self.samples, self.tags, self.stages, self.outcomes, self.others,
            self.other_values,
        )  # fmt: skip

    # ---- values -------------------------------------------------------------------------------------------------

    def take(self, points: Array, values: Array, found: list[int]) -> None:
        """Collect values until `go_on`."""
        for point, value, row in zip(points, values.tolist(), found, strict=True):
            if row >= 0 and self.stages[row] in (NEW, ASKED):
                self.stages[row], self.outcomes[row] = TOLD, value
                self.waiting += 1
            elif row >= 0 and self.stages[row] == TOLD and np.array_equal(self.outcomes[row], value, equal_nan=True):
                continue  # told again after an interruption
            else:
                if self.number_others == len(self.others):  # too many: they enter the archive, but not the ranks
                    self._absorb()
                    self.number_others = self.used_others = 0
                place = self.number_others
                self.others[place], self.other_values[place] = self._placed(point[None])[0], value
                self.number_others += 1
                self.waiting += 1

    def begin_with(self, points: Array, values: Array) -> None:
        """Put evaluations from before the search into the archive; enough of them replace the first generation."""
        y = self._placed(points)
        z = self._local(y)
        worst_first = np.argsort(-values, kind="stable")  # if there are too many, the archive drops the worst
        good = worst_first[self._usable(z, values)[worst_first]]
        self._learn_from(y[good], values[good], z[good])
        for _ in range(5):  # there is no earlier fit to stay near to
            self._fit()
        if self.count >= self.surrogate.least:
            self.generation, self.skipped = 0, 1.0
            self.begin()

    def go_on(self, best: Array | None) -> None:
        """Learn from the new values, and continue or end the generation; `best` is the best point so far."""
        self.best = best
        self.waiting = 0
        self._absorb()
        self._decide()

    def _absorb(self) -> None:
        """Judge the surrogate by the new values before it sees them; then fit it to them."""
        rows = np.flatnonzero(self.stages == TOLD)
        self.stages[rows] = COUNTED
        fresh = slice(self.used_others, self.number_others)
        y = np.concatenate([self._placed(self.points[rows]), self.others[fresh]])
        values = np.concatenate([self.outcomes[rows], self.other_values[fresh]])
        self.used_others = self.number_others
        z = self._local(y)
        good = self._usable(z, values)
        self._learn_from(y[good], values[good], z[good])
        if good.any():
            self._fit_if_due(ended=False)

    def _usable(self, z: Array, values: Array) -> NDArray[np.bool_]:
        """Which points can be in the archive: not failed or distant ones, nor values whose squares overflow."""
        far: NDArray[np.bool_] = np.abs(z).max(axis=1, initial=0.0) >= _FAR * math.sqrt(self.n)
        return ~far & (np.abs(values) < _LARGEST)

    def _placed(self, points: Array) -> Array:
        """Points in the variables of the innermost strategy."""
        return to_search(self.search.plain, self.plain, points) if self.search.takes_steps else points

    def _local(self, y: Array) -> Array:
        return (self.inner if self.search.takes_steps else self.search.plain).coordinates(self.plain).of_reals(y)

    def known(self) -> tuple[Array, Array]:
        """The points of the archive that have coordinates in the frame, and their values, oldest first."""
        if self._known is None:
            first = max(0, len(self.values) - self.count)
            self._known = np.ascontiguousarray(self._local(self.archive[first:])), self.values[first:]
        z, values = self._known
        return self._known if self.search.takes_steps else _explained(z, values)

    def _learn_from(self, y: Array, values: Array, z: Array) -> None:
        """Judge the surrogate by new values, then put them into the archive in place of the oldest.

        New values are compared with the most recent older ones and with each other.
        """
        capacity = len(self.values)
        number = min(max(self.search.popsize, 10), self.count, capacity)
        older = slice(capacity - number, None)
        older_z = self._local(self.archive[older]) if self._known is None else self._known[0][-number:]
        known_z, known = np.concatenate([older_z, z]), np.concatenate([self.values[older], values])
        new = len(values)
        if not self.search.takes_steps:
            new = len(_explained(z, values)[1])
            known_z, known = _explained(known_z, known)
        self.model = self.surrogate.judge(self.model, known_z, known, new)
        self.archive = np.concatenate([self.archive, y])[-capacity:]
        self.values = np.concatenate([self.values, values])[-capacity:]
        self.count += len(values)
        if self._known is not None:
            known_z = np.concatenate([self._known[0], z])[-capacity:]
            self._known = known_z, self.values[-len(known_z) :]

    def _fit_if_due(self, *, ended: bool) -> None:
        """Fit after every part of a generation if that is cheap, else at its end, if it is useful."""
        often = self.surrogate.fits_often
        if ended != often and (often or self.trial >= 0 or self.generation % _SELDOM == 0):
            self._fit()

    def _fit(self) -> None:
        self.model = self.surrogate.fit(self.model, *self.known())

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
                self._fit_if_due(ended=True)
                self.begin()
            else:
                self.batch = max(1, left or out)
            return
        tau = self.surrogate.tau(self.model)
        tried = self.trial >= 0 and self.stages[self.trial] == COUNTED
        at_once = tried and self.kept < 0.0  # z* is new
        if at_once:
            value = self.outcomes[self.trial]
            gain = self.record - value if math.isfinite(value) else -math.inf
            self.kept = float(gain > 0.0 and gain > _KEPT * (self.record - self.promise))
            if tau < _TRUSTED:
                self.worth += _WORTH_RATE * (self.kept - self.worth)
        trusted = tried and (self.kept > 0.0 or (tau >= _TRUSTED and self._holds(tau)))
        if trusted and self.search.takes_steps and (at_once or not complete):
            self._step_by_surrogate(len(rows))
        elif complete:
            self._step_by_ranks(rows)
        elif left == 0:
            self.batch = out
        else:
            self.batch = left if tau <= _USELESS or not tried else min(left, max(1, len(rows) // 2))

    def _holds(self, tau: float) -> bool:
        """Whether z* was better than all known points, or the surrogate is so good that it may err once."""
        better = bool(self.outcomes[self.trial] < self.record)
        return better or tau > math.sqrt(self.surrogate.judgment(self.model)[2]) + _MARGIN

    @property
    def size(self) -> int:
        """How many points the generation has."""
        return int((self.stages != ABSENT).sum())

    def begin(self) -> None:
        """Draw the next generation; one of its points may be the minimizer of the surrogate."""
        search, plain = self.search, self.search.plain
        self.generation += 1
        rng = np.random.Generator(np.random.Philox(key=[self.seed, self.generation]))
        number = search.rows if self.generation == 0 else search.popsize
        drawn = plain.sample(self.plain, number, rng)
        tags = np.zeros(number) if drawn.tags is None else drawn.tags.astype(np.float64)
        points, samples = drawn.points.copy(), drawn.local.copy()
        self.trial, self.kept, self.batch = -1, -1.0, number
        if self.generation == 0:
            samples[0], points[0], tags[0] = 0.0, plain.mean(self.plain), AT_BOUNDS
        elif self._worth_a_trial(rng) and (trial := self._trial()) is not None:
            z, point = trial
            row = int((tags == 0).argmax())
            points[row], self.trial, self.batch = point, row, search.part
            samples[row] = z if search.takes_steps else plain.local(self.plain, point[None])[0]
        self.points, self.samples, self.tags = (_padded(part, search.rows) for part in (points, samples, tags))
        self.stages = np.where(np.arange(search.rows) < number, float(NEW), float(ABSENT))
        self.outcomes = np.zeros(search.rows)
        self.number_others = self.used_others = 0

    def _worth_a_trial(self, rng: np.random.Generator) -> bool:
        chance, surrogate = float(rng.random()), self.surrogate
        known = self.count >= surrogate.least and surrogate.size(self.model) > 0.0
        if not known or self.failures >= 3 + self.n / 4:
            return False
        return surrogate.tau(self.model) >= _TRUSTED or self.worth > _LEAST_WORTH or chance < _TRY

    def _trial(self) -> tuple[Array, Array] | None:
        """z*, with the predicted value, and its point; None if there is none."""
        z, self.promise, self.at_edge = self.surrogate.minimizer(self.model, self.radius * math.sqrt(self.n))
        self.length = float(np.linalg.norm(z))
        self.record = self._best_near()[1]
        point = self.search.plain.coordinates(self.plain).at_reals(z)
        return None if point is None else (z, point)

    def _best_near(self) -> tuple[Array | None, float]:
        """The best point of the archive near the mean, in local coordinates, and its value."""
        z, values = self.known()
        near = np.flatnonzero(np.vecdot(z, z) <= _NEAR**2 * self.n)
        if not len(near):
            return None, math.inf
        best = near[values[near].argmin()]
        return z[best], float(values[best])

    # ---- steps --------------------------------------------------------------------------------------------------

    def _step_by_surrogate(self, evaluated: int) -> None:
        """Move the mean to the best point near it, A by the curvature, sigma by the outcome of z*."""
        self._fit_if_due(ended=True)
        best, axes = self._best_near()[0], self.surrogate.curvature(self.model)
        factor = self._sigma_factor() ** min(1.0, 3.0 * evaluated / self.n)
        number = evaluated + self.number_others
        self._end(self.inner.coordinates(self.plain).stepped(best, axes, factor, self.before.first, number))

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
        """The step of the strategy without a surrogate, with all values of the generation."""
        self._fit_if_due(ended=True)
        search, moved, y = self.search, self.plain, self.others[: self.number_others]
        others = self._local(y) if search.takes_steps else search.plain.local(moved, y)
        local = np.concatenate([self.samples[rows], search.plain.shortened(others)])
        tags = np.concatenate([self.tags[rows], np.zeros(len(y))]).astype(np.int64)
        values = np.concatenate([self.outcomes[rows], self.other_values[: len(y)]])
        order = values.argsort(kind="stable")
        ranked = values[order].tolist()
        if self.trial >= 0:
            good = self.stages[self.trial] == COUNTED and int((values < self.outcomes[self.trial]).sum()) < 2
            self.radius = float(np.clip(self.radius * (1.3 if good else 0.8), *_RADIUS))
        self.failures = 0.0
        if len(values) >= min(2, self.search.popsize) and ranked[0] == ranked[0]:
            widens = on_plateau(ranked, self.inner, moved, self.before.first)
            failed = int(np.isnan(values).sum())
            told = Ranked(
                local, order, widens, tags if tags.any() else None, None, self.before.first, failed, ranked[0],
                self.best,
            )  # fmt: skip
            # the inner strategy stores vectors, without the names of parameters
            moved = (innermost(search.plain, Named) if search.takes_steps else search.plain).update(moved, told)
        self._end(moved)

    def _end(self, moved: Any) -> None:
        """Apply the limits of the domain, move the surrogate to the new frame, and start a generation.

        An angle is not turned, because the archive would have to be turned, too.
        """
        domain: Strategy = self.search.plain
        while isinstance(domain, Within):
            moved, domain = domain.kept(moved, turned=False), domain.inner
        self._known = None
        self.model = self.surrogate.moved(self.model, *self.inner.coordinates(self.plain).change(moved))
        self.plain = moved
        self.begin()


def _explained(z: Array, values: Array) -> tuple[Array, Array]:
    """The points that have coordinates, and their values."""
    known = ~np.isnan(z).any(axis=1)
    return (z, values) if known.all() else (np.ascontiguousarray(z[known]), values[known])


def _padded(part: Array, rows: int) -> Array:
    return np.concatenate([part, np.zeros((rows - len(part), *part.shape[1:]))])
