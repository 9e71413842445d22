"""Methods of packages that few have installed: fcmaes, crfmnes, nevergrad."""

from __future__ import annotations

import numpy as np

from esgroup.compare.methods.method import Method
from esgroup.compare.trial import Trial


def fcmaes(trial: Trial) -> str:
    """The C++ CMA-ES of fcmaes by ask and tell, with the population size of the other CMA-ES here."""
    from fcmaes import cmaescpp
    from scipy.optimize import Bounds

    bounds = None if trial.bounds is None else Bounds(*trial.bounds.T)
    rng = np.random.Generator(np.random.MT19937(trial.seed))
    search = cmaescpp.ACMA_C(
        len(trial.x0), bounds, trial.x0, trial.sigma0, popsize=_popsize(trial), max_evaluations=trial.budget, rg=rng
    )
    stop = 0
    while stop == 0:
        points = search.ask()
        stop = search.tell(np.array([trial.fun(x) for x in points]))
    return f"fcmaes: stop {stop}"


def crfmnes(trial: Trial) -> str:
    """CR-FM-NES by its authors; it has no stopping rule of its own."""
    from crfmnes import CRFMNES

    np.random.seed(trial.seed + 1)  # the package draws from the global generator only
    popsize = _popsize(trial) + _popsize(trial) % 2
    search = CRFMNES(len(trial.x0), lambda x: trial.fun(x.ravel()), trial.x0.reshape(-1, 1), trial.sigma0, popsize)
    while True:
        search.one_iteration()


def nevergrad(trial: Trial) -> str:
    """nevergrad's NGOpt, which chooses among its methods by dimension and budget."""
    import nevergrad as ng

    space = ng.p.Array(init=trial.x0)
    space.set_mutation(sigma=trial.sigma0)
    if trial.bounds is not None:
        space.set_bounds(*trial.bounds.T)
    space.random_state = np.random.RandomState(trial.seed)
    search = ng.optimizers.NGOpt(space, budget=trial.budget)
    while True:
        candidate = search.ask()
        search.tell(candidate, trial.fun(candidate.value))


def _popsize(trial: Trial) -> int:
    """The usual one of CMA-ES."""
    return 4 + int(3 * np.log(len(trial.x0)))


METHODS = (
    # fcmaes keeps something of its random numbers from one search to the next
    Method("fcmaes", fcmaes, "CMA-ES in C++, of the package fcmaes", packages=("fcmaes",), extra="bench", traces=True),
    Method("crfmnes", crfmnes, "CR-FM-NES, for many variables", packages=("crfmnes",), extra="bench", bounded=False),
    Method("nevergrad", nevergrad, "NGOpt of the package nevergrad", packages=("nevergrad",)),
)
