"""The sampler: what Optuna calls."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from esgroup import checks
from esgroup.optuna.following import ASKED, CONSTRAINTS, Following, Run
from esgroup.optuna.translation import Translation, searchable
from esgroup.search.searcher import Searcher
from esgroup.space import Space
from esgroup.strategies.in_domain import elsewhere

if TYPE_CHECKING:
    from esgroup.groups import Group

# First standard deviation over the range by default. With 1/6 the median gaps of 24 searches on bbob's f10 and f8 with
# 10 coordinates (instances 1-3, 2000 evaluations) are 7.2 and 1.2; with 1/4, as in other searches, 13.8 and 1.7.
_SHARE = 1 / 6
_MOST_DOUBLINGS = 9  # of the population, as for restarts of `minimize` (Hansen 2009)

_logger = optuna.logging.get_logger("optuna.esgroup")  # with the verbosity that is set for Optuna


class EsgroupSampler(BaseSampler):
    """Search over all parameters of an Optuna study together: numbers with a Gaussian, choices with probabilities.

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
        Seed of the search, and of the random values of parameters that are not searched. Workers with the same seed
        ask for different points.
    n_startup_trials : default 1
        Completed trials before the search starts; until then parameters are sampled independently.
    popsize : default None
        Trials in a generation; by default 4 + floor(3 ln n) for n parameters.
    structure : default "auto"
        The structure of the covariance of numbers, as for `Searcher`.
    restarts : default True
        Whether a search that has stopped is followed by one from a random point with twice the population. Otherwise it
        continues unchanged.
    independent_sampler : default None
        A sampler of Optuna; by default `RandomSampler`.
    warn_independent_sampling : default True
        Whether to log, once for each parameter, that it is not searched but sampled independently.
    constraints_func : default None
        A function of a finished trial that returns numbers, which must be at most 0. It is called after a trial is
        completed or pruned. Constraints set by the objective with `trial.set_constraint` need no such function; a
        constraint that a trial does not set is satisfied. All have multipliers, as in `Searcher(constraints=...)`.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, immediately or in the first trial that needs it.

    Examples
    --------
    >>> import optuna
    >>> from esgroup.optuna import EsgroupSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    >>> f = lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2
    >>> study.optimize(f, n_trials=100)
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
        self._seed = _entropy() if seed is None else checks.whole_number("seed", seed, least=0)
        self._independent_sampler = independent_sampler
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
        """Take another seed; Optuna calls this when a sampler is copied to several workers.

        The search of a study continues with the seed that all its workers have.
        """
        self._seed = _entropy()
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    # ---- what is searched ---------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that all completed trials have in common and that have more than one value."""
        with self._lock:
            self._belong_to(study)
            common = self._common.calculate(study)
        return {name: distribution for name, distribution in common.items() if searchable(distribution)}

    def _belong_to(self, study: optuna.Study) -> None:
        """Forget the last study if this is a different one."""
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
            if not self._started:
                completed = sum(one.state == TrialState.COMPLETE for one in trials)
                self._started = completed >= self._n_startup_trials
            if not self._started:
                return {}
            following = self._followed(study, distributions)
            following.follow(trials)
            if self._restarts and following.ended():
                seed = int(np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0])
                following.follow_anew(trials, Run(following.run.number + 1, seed, trial.number))
            params, sample = following.ask(trial.number)
        study._storage.set_trial_system_attr(trial._trial_id, ASKED, list(sample))
        return params

    def _followed(self, study: optuna.Study, distributions: dict[str, BaseDistribution]) -> Following:
        """The search over these parameters: a new one, which receives all trials, if the last one was over others."""
        following = self._following
        if following is None or following.translation.distributions != distributions:
            translation = Translation(distributions, self._x0, self._sigma0)
            sign = -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
            following = Following(translation, sign, self._seed, partial(self._search, translation.space))
            self._following = following
        return following

    def _search(self, space: Space, run: Run, constraints: int) -> Searcher:
        """A search over a space: the first from the start, others from random points."""
        limits: dict[str, Any] = {"constraints": constraints, "constraint_tol": 0.0}  # Optuna tolerates nothing
        first = Searcher(space, popsize=self._popsize, structure=self._structure, **limits)
        if run.number == 0:
            return first
        popsize = first.popsize << min(run.number, _MOST_DOUBLINGS)
        again = elsewhere(first.strategy, popsize, 1.0, np.random.default_rng(run.seed))
        return first if again is None else Searcher(again, **limits)

    # ---- what is not --------------------------------------------------------------------------------------------

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value of a parameter that is not searched, by the independent sampler."""
        _refuse_several_objectives(study)
        sampler = self._independent_sampler
        if sampler is None:  # by the trial's number, so that workers with the same seed differ
            name = zlib.crc32(param_name.encode())
            sampler = RandomSampler(int(np.random.SeedSequence([self._seed, trial.number, name]).generate_state(1)[0]))
        if self._warns and self._started and param_name not in self._warned:
            self._warned.add(param_name)
            _logger.warning(
                f"The parameter {param_name!r} of trial {trial.number} is sampled by {type(sampler).__name__} and not "
                "searched: not all completed trials have it, its "
                "distribution has changed, or its numbers are too large. This warning appears once per parameter; turn "
                "it off with EsgroupSampler(warn_independent_sampling=False)."
            )
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Refuse studies with several objectives, before anything is evaluated."""
        _refuse_several_objectives(study)
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Store the constraints of a trial, as Optuna's samplers do; the search reads them with the trial."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            found = [checks.real_number("constraints_func(trial)", one) for one in self._constraints_func(trial)]
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, found)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)


def _entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _refuse_several_objectives(study: optuna.Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(f"EsgroupSampler must have a study with one objective, got {len(study.directions)}")
