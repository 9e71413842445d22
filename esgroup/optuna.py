"""A sampler for Optuna: `optuna.create_study(sampler=esgroup.optuna.EsgroupSampler())`.

The trials of a study are all that the sampler goes by. It holds a `Searcher` over the study's parameters and tells it
every trial that has finished, whoever has chosen its parameters: this sampler, the sampler of another process that works
on the same study, another kind of sampler, or the user (`enqueue_trial`, `add_trial`). Nothing but the trials is shared
between workers, and a sampler that joins a study, or comes back after a crash, tells its Searcher all trials there are:
a millisecond for about ten of them.

What a trial says:

- completed: its value, with the sign of the direction; infinite values have their rank;
- pruned: worse than every completed trial of its generation. An intermediate value is no value: trials that were pruned
  at different steps cannot be ranked by them;
- failed: nothing but that it was tried, as NaN does for every search.

A trial has a system attribute "esgroup:asked" with the sample from which its parameters were made (`Sample`), so that
every worker can take it as one of its own: all of them have nearly the same distribution, and a study that went on trial
by trial is followed exactly. When a search has come to its end (`Searcher.stop`) the next one starts elsewhere with
twice the population; the attribute also says to which of the searches a trial belongs, so that workers change together.
"""

from __future__ import annotations

import itertools
import math
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from esgroup import checks
from esgroup.search.ledger import Asked, Found
from esgroup.search.searcher import Searcher
from esgroup.space import Choice, Integer, Real, Space
from esgroup.strategies.base import Drawn

if TYPE_CHECKING:
    from esgroup.groups import Group

ASKED = "esgroup:asked"  # the system attribute of a trial that holds a `Sample`
_CONSTRAINTS = "constraints"  # Optuna's own: a list, or one attribute "constraints:name" for each
# First standard deviation over the range by default. With 1/6 the median gap of 24 searches on bbob's f10 and f8 with 10
# coordinates (instances 1-3, 2000 evaluations) is 7.2 and 1.2, with the 1/4 of other searches within bounds 13.8 and 1.7.
_SHARE = 1 / 6
_MOST_DOUBLINGS = 9  # of the population, as for restarts of `minimize` (Hansen 2009)
_MORE = 1.1  # times as many trials, at least, before all of them are told again in their order
_MOST_INTEGER = 2**53  # up to which every integer is a float64

_logger = optuna.logging.get_logger(f"optuna.{__name__}")  # with the verbosity that is set for Optuna


# ---- distributions of Optuna as parameters ----------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number: as it is, by its place on a grid, or by its logarithm."""

    distribution: FloatDistribution | IntDistribution

    @property
    def on_grid(self) -> bool:
        """Whether it is searched by its place on a grid; integers on a logarithmic scale are searched as they are."""
        return self.distribution.step is not None and not self.distribution.log

    @property
    def last(self) -> int:
        """The last place on the grid."""
        low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
        return round((high - low) / (step or 1))

    def parameter(self, start: Any, share: float) -> Real | Integer:
        """What is searched, from a value or else from the middle, with a share of the range as width."""
        distribution = self.distribution
        low, high, log = distribution.low, distribution.high, distribution.log
        first = None if start is None else self.inner(start)
        if self.on_grid:
            return Integer(0, self.last, start=first, width=max(0.5, share * self.last))  # the least that Integers have
        if isinstance(distribution, IntDistribution):
            width = share * math.log((high + 0.5) / (low - 0.5))
            return Integer(distribution.low, distribution.high, log=True, start=first, width=width)
        width = share * (math.log(high / low) if log else high - low)
        return Real(low, high, log=log, start=first, width=width)

    def inner(self, value: Any) -> Any:
        """The value as it is searched."""
        if not self.on_grid:
            return value
        low, step = self.distribution.low, self.distribution.step
        return round((value - low) / (step or 1))

    def outer(self, inner: Any) -> Any:
        """The value as Optuna has it."""
        distribution = self.distribution
        if not self.on_grid:
            return inner
        value = distribution.low + inner * (distribution.step or 1)
        return min(value, distribution.high)  # on the grid but for rounding


@dataclass(frozen=True)
class Category:
    """A choice by the place of the option, because Optuna's options may be equal to each other, as 1 and True are."""

    distribution: CategoricalDistribution

    def parameter(self, start: Any, share: float) -> Choice:
        """What is searched, from an option, or with all of them equally likely."""
        return Choice(*range(len(self.distribution.choices)), start=None if start is None else self.inner(start))

    def inner(self, value: Any) -> int:
        """The place of an option."""
        return int(self.distribution.to_internal_repr(value))

    def outer(self, inner: int) -> Any:
        """The option at a place."""
        return self.distribution.choices[inner]


def searchable(distribution: BaseDistribution) -> bool:
    """Whether there is something to search, and numbers can be told apart."""
    if distribution.single():
        return False
    if isinstance(distribution, IntDistribution):
        return max(abs(distribution.low), abs(distribution.high)) <= _MOST_INTEGER
    if isinstance(distribution, FloatDistribution):
        width, step = distribution.high - distribution.low, distribution.step
        return width < math.inf if step is None else width / step < _MOST_INTEGER
    return isinstance(distribution, CategoricalDistribution)


class Translation:
    """The way from parameters of trials to points of a `Space` and back."""

    def __init__(
        self, distributions: Mapping[str, BaseDistribution], x0: Mapping[str, Any], sigma0: float
    ) -> None:
        self.distributions = dict(distributions)
        self.parts: dict[str, Number | Category] = {}
        for name, distribution in distributions.items():
            if isinstance(distribution, CategoricalDistribution):
                self.parts[name] = Category(distribution)
            elif isinstance(distribution, FloatDistribution | IntDistribution):
                self.parts[name] = Number(distribution)
        self.checksum = zlib.crc32(repr(sorted((name, repr(one)) for name, one in distributions.items())).encode())
        self.space = Space({name: part.parameter(x0.get(name), sigma0) for name, part in self.parts.items()})

    def point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The point of a trial, None if it has no values for some parameters, or such with another distribution."""
        theirs, params = trial.distributions, trial.params
        for name, distribution in self.distributions.items():
            other = theirs.get(name)
            if other is not distribution and other != distribution:
                return None
        return {name: part.inner(params[name]) for name, part in self.parts.items()}

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a trial at a point."""
        return {name: part.outer(point[name]) for name, part in self.parts.items()}


# ---- the search of a study --------------------------------------------------------------------------------------


class Run(NamedTuple):
    """One search of those that follow each other: how many came before it, its seed, and its first trial."""

    number: int = 0
    seed: int = 0
    first: int = 0


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

    def __init__(self, translation: Translation, sign: float, make: Callable[[Run], Searcher]) -> None:
        self.translation, self.sign, self.make = translation, sign, make
        self.begin(Run())

    def begin(self, run: Run) -> None:
        """Begin a search, which has been told nothing."""
        self.run, self.search = run, self.make(run)
        self.seen = 0  # how many of the trials were looked at
        self.waiting: list[int] = []  # those among them that had not finished
        self.own: set[int] = set()  # trials that this search has asked for
        self._latest = (-math.inf, 0)
        self._in_order, self._again_at = True, 0
        self._looked_at = 0

    def ask(self, trial: int) -> tuple[dict[str, Any], Sample]:
        """Return the parameters of a trial, and how it was asked for."""
        point, checksum, run = self.search.ask(1)[0], self.translation.checksum, self.run
        found = Found(self.search.ledger.asked[-1], 0)
        self.own.add(trial)
        sample = Sample(checksum, run.number, run.seed, found.asked.nit, found.tag, found.local.tolist())
        return self.translation.params(point), sample

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Tell what has finished since the last call; begin another search if another worker has done so."""
        waiting, finished = [], []
        for trial in itertools.chain([trials[number] for number in self.waiting], trials[self.seen :]):
            sample = Sample.of(trial, self.translation.checksum)
            if sample is not None and self._yields_to(sample, trial.number):
                self.begin(Run(sample.run, sample.seed, trial.number))
                self.follow(trials)
                return
            if not trial.state.is_finished():
                waiting.append(trial.number)
            elif self._concerns(sample, trial.number):
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
            return trial >= self.run.first
        return (sample.run, sample.seed) == self.run[:2]

    def _tell(self, trial: FrozenTrial, sample: Sample | None) -> None:
        point = self.translation.point(trial)
        if point is None:
            return
        if sample is not None and trial.number not in self.own:
            self._adopt(point, sample)
        self.own.discard(trial.number)
        value = math.nan
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            value = self.sign * trial.value
        elif trial.state == TrialState.PRUNED:
            value = math.inf
        self.search.tell([point], [value])

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


# ---- the sampler ------------------------------------------------------------------------------------------------


class EsgroupSampler(BaseSampler):
    """Search over all parameters of an Optuna study together: numbers by a Gaussian, choices by their probabilities.

    The search is over the parameters that all completed trials have in common, with the same distributions. Others, and
    all parameters of the first trial, are sampled by `independent_sampler`.

    Parameters
    ----------
    x0
        Where to start, values by name; parameters without one start in the middle of their range, choices with all
        options equally likely.
    sigma0 : default 1/6
        First standard deviation of numbers as a share of their range, of that of their logarithm if they have log=True.
    seed : default None
        Seed of the search and of the default `independent_sampler`. Workers with the same seed ask for different points.
    n_startup_trials : default 1
        Completed trials before the search starts; until then parameters are sampled independently.
    popsize : default None
        Trials in a generation; by default 4 + floor(3 ln n) for n parameters.
    structure : default "auto"
        The structure of the covariance of numbers, as for `Searcher`.
    restarts : default True
        Whether a search that has ended is followed by one from a random point with twice the population. Without, it
        goes on as it is.
    independent_sampler : default None
        A sampler of Optuna; by default `RandomSampler`.
    warn_independent_sampling : default True
        Whether the log says, once for each parameter, that it is not searched but sampled independently.
    constraints_func : default None
        A function of a finished trial that returns numbers, which must be at most 0. It is called after a trial was
        completed or pruned. Constraints that an objective sets by `trial.set_constraint` need no such function.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, at once or in the first trial that needs it.

    Examples
    --------
    >>> import optuna
    >>> from esgroup.optuna import EsgroupSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2, n_trials=100)
    >>> bool(study.best_value < 1e-6)
    True
    """

    def __init__(
        self,
        x0: Mapping[str, Any] | None = None,
        sigma0: float = _SHARE,
        *,
        seed: int | None = None,
        n_startup_trials: int = 1,
        popsize: int | None = None,
        structure: Group | str = "auto",
        restarts: bool = True,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        if x0 is not None and not isinstance(x0, Mapping):
            raise TypeError(f"x0 must be a mapping of names to values, got {x0!r}")
        if not 0.0 < checks.real_number("sigma0", sigma0) <= 1.0:
            raise ValueError(f"sigma0 must be a share of the range, above 0 and at most 1, got {sigma0!r}")
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise TypeError(f"independent_sampler must be a sampler of Optuna, got {independent_sampler!r}")
        if constraints_func is not None and not callable(constraints_func):
            raise TypeError(f"constraints_func must be a function of a trial, got {constraints_func!r}")
        self._x0, self._sigma0 = dict(x0 or {}), sigma0
        self._n_startup_trials = checks.whole_number("n_startup_trials", n_startup_trials, least=0)
        self._popsize = None if popsize is None else checks.whole_number("popsize", popsize, least=2)
        self._structure = structure
        self._restarts = checks.flag("restarts", restarts)
        self._warns = checks.flag("warn_independent_sampling", warn_independent_sampling)
        if seed is not None:
            seed = checks.whole_number("seed", seed, least=0)
        self._seed = _entropy() if seed is None else seed
        random = RandomSampler(seed=None if seed is None else seed % 2**32)
        self._independent_sampler = random if independent_sampler is None else independent_sampler
        self._constraints_func = constraints_func
        self._lock = threading.RLock()
        self._study: str | None = None  # the name of the study to which all that follows belongs
        self._common = IntersectionSearchSpace()
        self._started = False
        self._following: Following | None = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def reseed_rng(self) -> None:
        """Draw other points than before, which Optuna asks for when a sampler is copied to several workers."""
        self._seed = _entropy()
        self._independent_sampler.reseed_rng()

    # ---- what is searched ---------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that all completed trials have in common and that have more than one value."""
        with self._lock:
            self._belong_to(study)
            common = self._common.calculate(study)
        return {name: distribution for name, distribution in common.items() if searchable(distribution)}

    def _belong_to(self, study: optuna.Study) -> None:
        """Forget the last study if this is another one."""
        if self._study != study.study_name:
            self._study, self._common = study.study_name, IntersectionSearchSpace()
            self._started, self._following = False, None

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values of the parameters that are searched, none of them before the search has started."""
        _refuse_several_objectives(study)
        distributions = {name: one for name, one in search_space.items() if searchable(one)}
        if not distributions:
            return {}
        with self._lock:
            self._belong_to(study)
            trials = study.get_trials(deepcopy=False)
            if not self._has_started(trials):
                return {}
            following = self._followed(study, distributions)
            following.follow(trials)
            if self._restarts and following.ended():
                seed = int(np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0])
                following.begin(Run(following.run.number + 1, seed, trial.number))
                following.follow(trials)
            # by its number, so that workers with the same seed do not ask for the same points
            following.search.rng = np.random.default_rng([self._seed, trial.number])
            params, sample = following.ask(trial.number)
        study._storage.set_trial_system_attr(trial._trial_id, ASKED, list(sample))
        return params

    def _has_started(self, trials: Sequence[FrozenTrial]) -> bool:
        if not self._started:
            self._started = sum(trial.state == TrialState.COMPLETE for trial in trials) >= self._n_startup_trials
        return self._started

    def _followed(self, study: optuna.Study, distributions: dict[str, BaseDistribution]) -> Following:
        """The search over these parameters: a new one, which is told all trials, if it was over others."""
        following = self._following
        if following is None or following.translation.distributions != distributions:
            translation = Translation(distributions, self._x0, self._sigma0)
            sign = -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
            following = Following(translation, sign, _Maker(self, translation.space))
            self._following = following
        return following

    # ---- what is not --------------------------------------------------------------------------------------------

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value of a parameter that is not searched, by the independent sampler."""
        _refuse_several_objectives(study)
        if self._warns and self._started and param_name not in self._warned:
            self._warned.add(param_name)
            _logger.warning(
                f"The parameter {param_name!r} of trial {trial.number} is sampled by "
                f"{type(self._independent_sampler).__name__} and not searched: not all completed trials have it, its "
                "distribution has changed, or its numbers are too large. It is said once for each parameter; "
                "EsgroupSampler(warn_independent_sampling=False) does not say it."
            )
        return self._independent_sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Refuse studies with several objectives, before anything is evaluated."""
        _refuse_several_objectives(study)
        self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Store the constraints of a trial, as Optuna's samplers do; the search reads them with the trial."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            found = [checks.real_number("constraints_func(trial)", one) for one in self._constraints_func(trial)]
            study._storage.set_trial_system_attr(trial._trial_id, _CONSTRAINTS, found)
        self._independent_sampler.after_trial(study, trial, state, values)


@dataclass(frozen=True)
class _Maker:
    """Makes the searches of a sampler over a space: the first from the start, others from random points."""

    sampler: EsgroupSampler
    space: Space

    def __call__(self, run: Run) -> Searcher:
        sampler = self.sampler
        first = Searcher(self.space, popsize=sampler._popsize, structure=sampler._structure)
        if run.number == 0:
            return first
        popsize = first.popsize << min(run.number, _MOST_DOUBLINGS)
        again = first.strategy.restarted(popsize, 1.0, np.random.default_rng(run.seed))
        return first if again is None else Searcher(again)


def _finished_at(trial: FrozenTrial) -> tuple[float, int]:
    """When a trial has finished, by the clock of the worker that had it; of equal times the first trial is first."""
    return (-math.inf if trial.datetime_complete is None else trial.datetime_complete.timestamp(), trial.number)


def _entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _refuse_several_objectives(study: optuna.Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(f"EsgroupSampler must have a study with one objective, got {len(study.directions)}")
