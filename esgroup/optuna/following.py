"""The search of a study: it is told every trial, and begun anew when it has ended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from esgroup.optuna.translation import Translation
from esgroup.search.ledger import Asked, tags_of
from esgroup.search.searcher import Searcher
from esgroup.strategies.base import Drawn

ASKED = "esgroup:asked"  # the system attribute of a trial that holds a `Sample`
CONSTRAINTS = "constraints"  # Optuna's own: a list, or an attribute "constraints:name" for each
_INFEASIBLE = 1e300  # beyond the values of objectives
_MORE = 1.1  # times as many trials, at least, before all of them are told again in their order


_NONE = 2**63  # the number of a trial that is none yet


class Run(NamedTuple):
    """One search of those that follow each other: how many came before it, its seed, and the first trial it asked for.

    The seed is that of the worker that began it.
    """

    number: int = 0
    seed: int = 0
    first: int = _NONE

    @property
    def since(self) -> int:
        """The first trial of somebody else that concerns it."""
        return 0 if self.number == 0 else self.first


class Sample(NamedTuple):
    """How a trial was asked for, as its system attribute has it: what other workers need to rank it as their own."""

    space: int  # a checksum of the parameters
    run: int  # number and seed of the search
    seed: int
    generation: int
    tag: int
    local: list[float]  # the point in local coordinates of the distribution from which it was drawn

    @classmethod
    def of(cls, trial: FrozenTrial, space: int) -> Sample | None:
        """That of a trial; None if another sampler or a user has chosen its parameters, or some of them."""
        stored = trial.system_attrs.get(ASKED)
        if stored is None or stored[0] != space or "fixed_params" in trial.system_attrs:  # which enqueue_trial writes
            return None
        return cls(*stored)


class Following:
    """A search that is told every trial of a study once, in the order in which they have finished.

    The order is that of the times in the storage, so that all workers have the same search, apart from trials that one
    of them has not seen yet. If a trial turns up later than one that finished after it, as may happen where clocks
    differ, the search is told all trials anew, but not before there are a tenth more of them than the last time.
    """

    def __init__(self, translation: Translation, sign: float, seed: int, make: Callable[[Run], Searcher]) -> None:
        self.translation, self.sign, self.make = translation, sign, make
        self.begin(Run(seed=seed))

    def begin(self, run: Run) -> None:
        """Begin a search, which has been told nothing."""
        self.run, self.search = run, self.make(run)
        self.seen = 0  # how many of the trials were looked at
        self.waiting: list[int] = []  # those among them that had not finished
        self.own: set[int] = set()  # trials that this search has asked for
        self._latest = (-math.inf, 0)
        self._in_order, self._again_at = True, 0
        self._looked_at = 0
        self._drawn: Drawn | None = None
        self._drawn_for: list[int] = []
        self._firsts: dict[int, int] = {}  # the first trial of each generation

    def ask(self, trial: int) -> tuple[dict[str, Any], Sample]:
        """Return the parameters of a trial, and how it was asked for.

        The samples of a generation are drawn together, because such samples are spread more evenly, and by a seed that
        all workers have: each takes the one for the number of its trial, counted from the first of the generation.
        """
        search, run = self.search, self.run
        strategy, ledger, size = search.strategy, search.ledger, search.batch_size
        first = self._firsts.setdefault(ledger.nit, trial)
        block, row = divmod(trial - first, size)
        key = [run.seed, ledger.nit, first, block % 2**32]
        if self._drawn is None or self._drawn_for != key:
            self._drawn, self._drawn_for = strategy.sample(search.state, size, np.random.default_rng(key)), key
        one = slice(row, row + 1)
        tags = tags_of(self._drawn)[one]
        drawn = Drawn(self._drawn.points[one].copy(), self._drawn.local[one].copy(), tags)
        ledger.hand_out(drawn)
        self.own.add(trial)
        local, tag = drawn.local[0].tolist(), int(tags[0])
        sample = Sample(self.translation.checksum, run.number, run.seed, ledger.nit, tag, local)
        return self.translation.params(strategy.to_user(drawn.points)[0]), sample

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Tell what has finished since the last call; begin another search if another worker has done so."""
        waiting, finished = [], []
        for trial in itertools.chain([trials[number] for number in self.waiting], trials[self.seen :]):
            sample = Sample.of(trial, self.translation.checksum)
            if sample is not None and self._yields_to(sample, trial.number):
                self.begin(Run(sample.run, sample.seed, trial.number))
                self.follow(trials)
                return
            if sample is not None and (sample.run, sample.seed) == self.run[:2] and trial.number < self.run.first:
                self.run = self.run._replace(first=trial.number)
            concerns = self._concerns(sample, trial.number)
            if sample is not None and concerns:
                self._firsts[sample.generation] = min(trial.number, self._firsts.get(sample.generation, trial.number))
            if not trial.state.is_finished():
                waiting.append(trial.number)
            elif concerns:
                finished.append((_finished_at(trial), trial, sample))
        finished.sort(key=lambda one: one[0])
        if finished and finished[0][0] < self._latest:
            self._in_order = False
        if not self._in_order and len(trials) >= self._again_at:
            self.begin(self.run)
            self._again_at = math.ceil(_MORE * len(trials))
            self.follow(trials)
            return
        for at, trial, sample in finished:
            self._tell(trial, sample)
            self._latest = max(self._latest, at)
        self.waiting, self.seen = waiting, len(trials)

    def _yields_to(self, sample: Sample, trial: int) -> bool:
        """Whether a search that another worker has begun replaces this one: a later one, or the first of equals."""
        if sample.run == self.run.number and sample.seed != self.run.seed:
            return trial < self.run.first
        return sample.run > self.run.number

    def _concerns(self, sample: Sample | None, trial: int) -> bool:
        """Whether a trial is one of this search, or was chosen by somebody else since it began."""
        if sample is None:
            return trial >= self.run.since
        return sample.run == self.run.number and (sample.run == 0 or sample.seed == self.run.seed)

    def _tell(self, trial: FrozenTrial, sample: Sample | None) -> None:
        point = self.translation.point(trial)
        if point is None:
            return
        if sample is not None and trial.number not in self.own:
            self._adopt(point, sample)
        self.own.discard(trial.number)
        self.search.tell([point], [self._value(trial)])

    def _value(self, trial: FrozenTrial) -> float:
        """What the search is told of a trial; only the ranks of values count.

        Trials that violate constraints are worse than those that do not, and ranked by the sum of what is above 0 in
        their constraints (Deb 2000): they have values from 1e300 to 2e300.
        """
        if trial.state == TrialState.PRUNED:
            return math.inf
        if trial.state != TrialState.COMPLETE or trial.value is None:
            return math.nan
        violation = sum(max(0.0, one) for one in constraints_of(trial))
        if violation > 0:
            return _INFEASIBLE * (2 - 1 / (1 + violation))
        return self.sign * trial.value

    def _adopt(self, point: dict[str, Any], sample: Sample) -> None:
        """Take a point that another worker has asked for, or this one before it was stopped, as one of this search."""
        ledger = self.search.ledger
        row = self.search.strategy.from_user("X", [point])
        drawn = Drawn(row, np.array([sample.local]), np.array([sample.tag], dtype=np.int64))
        ledger.asked.append(Asked(drawn, min(sample.generation, ledger.nit), {0}))

    def ended(self) -> bool:
        """Whether the search should end; it can only say so when a generation has."""
        if self.search.nit == self._looked_at:
            return False
        self._looked_at = self.search.nit
        return bool(self.search.stop())


def constraints_of(trial: FrozenTrial) -> list[float]:
    """The constraints of a trial, of constraints_func or of Trial.set_constraint, as versions of Optuna store them."""
    attributes = trial.system_attrs
    named = [value for name, value in attributes.items() if name.startswith(f"{CONSTRAINTS}:")]
    return [*(attributes.get(CONSTRAINTS) or ()), *named]


def _finished_at(trial: FrozenTrial) -> tuple[float, int]:
    """When a trial has finished, by the clock of the worker that had it; of equal times the first trial is first."""
    return (-math.inf if trial.datetime_complete is None else trial.datetime_complete.timestamp(), trial.number)
