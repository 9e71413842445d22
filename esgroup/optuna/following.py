"""The search of a study: it receives every trial, and restarts when it has stopped."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from esgroup.optuna.translation import Translation
from esgroup.search.ledger import Batch, tags_of
from esgroup.search.searcher import Searcher
from esgroup.strategies.base import Proposed

ASKED = "esgroup:asked"  # the system attribute of a trial that holds a `Sample`
CONSTRAINTS = "constraints"  # Optuna's own: a list, or an attribute "constraints:name" for each
_MORE = 1.1  # times as many trials, at least, before all of them are replayed in order
_NONE = 2**63  # the number of a trial that does not exist yet


# Which constraint: its place in the result of constraints_func and "", or -1 and the name set by the objective.
Constraint = tuple[int, str]


class Run(NamedTuple):
    """One of the successive searches: how many came before it, its seed, and the first trial it asked for.

    The seed is that of the worker that started it.
    """

    number: int = 0
    seed: int = 0
    first: int = _NONE


class Sample(NamedTuple):
    """How a trial was asked for, as stored in its system attribute: what other workers need to rank it as their own."""

    space: int  # a checksum of the parameters
    run: int  # number and seed of the search
    seed: int
    generation: int
    tag: int
    local: list[float]  # the point in local coordinates of the distribution from which it was drawn

    @classmethod
    def of(cls, trial: FrozenTrial, space: int) -> Sample | None:
        """The sample of a trial; None if another sampler or a user chose some or all of its parameters."""
        stored = trial.system_attrs.get(ASKED)
        if stored is None or stored[0] != space or "fixed_params" in trial.system_attrs:  # written by enqueue_trial
            return None
        return cls(*stored)


class Following:
    """A search that receives every trial of a study once, in the order in which they finished.

    The order follows the times in the storage, so that all workers have the same search, apart from trials that one of
    them has not seen yet. If a trial appears after one that finished later, as can happen if clocks differ, all trials
    are replayed, but not before there are a tenth more of them than the last time.

    The constraints are those of all finished trials. Usually the first one has all of them; all trials are replayed
    whenever a new constraint appears. The constraints depend only on the trials, so this also holds for a worker that
    joins later.
    """

    def __init__(self, translation: Translation, sign: float, seed: int, make: Callable[[Run, int], Searcher]) -> None:
        self.translation, self.sign, self.make = translation, sign, make
        self.constraints: tuple[Constraint, ...] = ()
        self.begin(Run(seed=seed))

    def begin(self, run: Run) -> None:
        """Start a search without any trials."""
        self.run, self.search = run, self.make(run, len(self.constraints))
        self.seen = 0  # number of trials seen
        self.waiting: list[int] = []  # trials seen that had not finished
        self.own: set[int] = set()  # trials that this search asked for
        self._latest = (-math.inf, 0)
        self._in_order, self._again_at = True, 0
        self._looked_at = 0
        self._drawn: Proposed | None = None
        self._drawn_for: list[int] = []
        self._firsts: dict[int, int] = {}  # the first trial of each generation

    def ask(self, trial: int) -> tuple[dict[str, Any], Sample]:
        """Return the parameters of a trial, and how it was asked for.

        The samples of a generation are drawn together, because they are then spread more evenly, with a seed that all
        workers share: each takes the one for the number of its trial, counted from the first of the generation. The
        inner point of a search with constraints is among the first that a generation draws, and asked for once.
        """
        search, run = self.search, self.run
        strategy, ledger, size = search.strategy, search.ledger, search.batch_size
        first = self._firsts.setdefault(ledger.nit, trial)
        block, row = divmod(trial - first, size)
        key = [run.seed, ledger.nit, first, block % 2**32]
        if self._drawn is None or self._drawn_for != key:
            drawn = strategy.sample(search.state, size, np.random.default_rng(key))
            if block == 0:
                drawn = ledger.ranking.placed(ledger.standing, drawn, strategy, search.state)
            self._drawn, self._drawn_for = drawn, key
        one = slice(row, row + 1)
        tags = tags_of(self._drawn)[one]
        drawn = Proposed(self._drawn.points[one].copy(), self._drawn.local[one].copy(), tags)
        ledger.hand_out(drawn)
        self.own.add(trial)
        local, tag = drawn.local[0].tolist(), int(tags[0])
        sample = Sample(self.translation.checksum, run.number, run.seed, ledger.nit, tag, local)
        return self.translation.params(strategy.domain.to_user(drawn.points)[0]), sample

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Pass on the trials that finished since the last call; start another search if another worker has done so."""
        waiting, finished = [], []
        constraints = set(self.constraints)
        for trial in itertools.chain([trials[number] for number in self.waiting], trials[self.seen :]):
            sample = Sample.of(trial, self.translation.checksum)
            if sample is not None and self._yields_to(sample, trial.number):
                self.follow_anew(trials, Run(sample.run, sample.seed, trial.number))
                return
            if sample is not None and (sample.run, sample.seed) == self.run[:2] and trial.number < self.run.first:
                self.run = self.run._replace(first=trial.number)
            concerns = self._concerns(sample, trial.number)
            if sample is not None and concerns:
                self._firsts[sample.generation] = min(trial.number, self._firsts.get(sample.generation, trial.number))
            if not trial.state.is_finished():
                waiting.append(trial.number)
                continue
            constraints.update(constraints_of(trial))
            if concerns:
                finished.append((_finished_at(trial), trial, sample))
        if len(constraints) > len(self.constraints):
            self.constraints = tuple(sorted(constraints))
            self.follow_anew(trials, self.run)
            return
        finished.sort(key=lambda one: one[0])
        if finished and finished[0][0] < self._latest:
            self._in_order = False
        if not self._in_order and len(trials) >= self._again_at:
            self.follow_anew(trials, self.run, math.ceil(_MORE * len(trials)))
            return
        for at, trial, sample in finished:
            self._tell(trial, sample)
            self._latest = max(self._latest, at)
        self.waiting, self.seen = waiting, len(trials)

    def follow_anew(self, trials: Sequence[FrozenTrial], run: Run, again_at: int = 0) -> None:
        """Start a search and replay all trials; if their order was wrong, once more when there are `again_at`."""
        self.begin(run)
        self._again_at = again_at
        self.follow(trials)

    def _yields_to(self, sample: Sample, trial: int) -> bool:
        """Whether a search started by another worker replaces this one: a later one, or the first of equals."""
        if sample.run == self.run.number and sample.seed != self.run.seed:
            return trial < self.run.first
        return sample.run > self.run.number

    def _concerns(self, sample: Sample | None, trial: int) -> bool:
        """Whether a trial belongs to this search, or was chosen by someone else since it started."""
        if sample is None:
            return self.run.number == 0 or trial >= self.run.first
        return sample.run == self.run.number and (sample.run == 0 or sample.seed == self.run.seed)

    def _tell(self, trial: FrozenTrial, sample: Sample | None) -> None:
        point = self.translation.point(trial)
        if point is None:
            return
        if sample is not None and trial.number not in self.own:
            self._adopt(point, sample)
        self.own.discard(trial.number)
        value, constraints = self._outcome(trial)
        self.search.tell([point], [value], constraints=[constraints] if self.constraints else None)

    def _outcome(self, trial: FrozenTrial) -> tuple[float, list[float]]:
        """What a trial means to the search: its value, and all constraints of the study.

        A name that an objective has not set is a constraint that does not exist there, and satisfied, as in Optuna.
        But a constraint that constraints_func did not return is unknown, and the trial counts as failed. An infinite
        constraint is worse than every number.
        """
        if trial.state == TrialState.PRUNED:
            value = math.inf
        elif trial.state != TrialState.COMPLETE or trial.value is None:
            value = math.nan
        else:
            value = self.sign * trial.value
        found = constraints_of(trial)
        unknown = math.nan if trial.state == TrialState.COMPLETE else 0.0  # for other trials the value is enough
        told = [found.get(one, 0.0 if one[0] < 0 else unknown) for one in self.constraints]
        if math.inf in told and not math.isnan(value):
            value = math.inf
        return value, [0.0 if math.isinf(one) else one for one in told]

    def _adopt(self, point: dict[str, Any], sample: Sample) -> None:
        """Treat a point that another worker, or this one before it was stopped, asked for as one of this search."""
        ledger = self.search.ledger
        row = self.search.strategy.domain.from_user("X", [point])
        drawn = Proposed(row, np.array([sample.local]), np.array([sample.tag], dtype=np.int64))
        ledger.asked.append(Batch(drawn, min(sample.generation, ledger.nit), {0}))

    def ended(self) -> bool:
        """Whether the search should stop; this can only change when a generation ends."""
        if self.search.nit == self._looked_at:
            return False
        self._looked_at = self.search.nit
        return bool(self.search.stop())


def constraints_of(trial: FrozenTrial) -> dict[Constraint, float]:
    """The constraints of a trial, from constraints_func and Trial.set_constraint, as versions of Optuna store them."""
    attributes, prefix = trial.system_attrs, f"{CONSTRAINTS}:"
    returned = {(place, ""): float(one) for place, one in enumerate(attributes.get(CONSTRAINTS) or ())}
    named = {(-1, name): float(one) for name, one in attributes.items() if name.startswith(prefix)}
    return returned | named


def _finished_at(trial: FrozenTrial) -> tuple[float, int]:
    """When a trial finished, by the clock of its worker; of equal times the first trial is first."""
    return (-math.inf if trial.datetime_complete is None else trial.datetime_complete.timestamp(), trial.number)
