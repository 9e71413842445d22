"""Evolution strategies of other packages: cma, cmaes, fcmaes, crfmnes, and nevergrad, which chooses a method itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esgroup.compare.methods.method import Method
from esgroup.compare.trial import Trial


def cma(trial: Trial, *, diagonal: bool = False, restricted: bool = False, **more: Any) -> str:
    """`cma.fmin2` (Hansen and others, the reference implementation) with its defaults, silent and without files."""
    import cma

    options: dict[str, Any] = {
        "verbose": -9,
        "seed": trial.seed + 1,  # cma takes 0 as the time
        "maxfevals": trial.budget,
        "CMA_diagonal": diagonal,
    }
    if trial.bounds is not None:
        options["bounds"] = trial.bounds.T.tolist()
    if restricted:
        from cma.restricted_gaussian_sampler import GaussVkDSampler

        options |= GaussVkDSampler.extend_cma_options({})
    _, search = cma.fmin2(trial.fun, trial.x0, trial.sigma0, options, **more)
    return f"cma: {', '.join(search.stop()) or 'ended'}"


def cmaes(trial: Trial, class_name: str) -> str:
    """A class of cmaes (CyberAgent) with its defaults, until its `should_stop()`."""
    import cmaes

    search = getattr(cmaes, class_name)(
        mean=trial.x0.copy(), sigma=trial.sigma0, bounds=trial.bounds, seed=trial.seed
    )
    while not search.should_stop():
        points = [search.ask() for _ in range(search.population_size)]
        search.tell([(x, trial.fun(x)) for x in points])
    return "cmaes: should_stop()"


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
    """NGOpt of nevergrad, which chooses a method by dimension and budget."""
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
    """The default population size of CMA-ES, 4 + floor(3 log d)."""
    return 4 + int(3 * np.log(len(trial.x0)))


def _method(name: str, about: str, run: Callable[[Trial], str], package: str) -> Method:
    return Method(name, run, about, packages=(package,), extra="compare")


METHODS = (
    _method("cma", "CMA-ES of the package cma", cma, "cma"),
    _method("cma-diagonal", "cma with a diagonal covariance (sep-CMA-ES)", partial(cma, diagonal=True), "cma"),
    _method("cma-vkd", "cma with a diagonal and k directions (VkD-CMA-ES)", partial(cma, restricted=True), "cma"),
    _method("cma-bipop", "cma with restarts, BIPOP", partial(cma, restarts=9, bipop=True), "cma"),
    _method("cmaes", "CMA-ES of the package cmaes", partial(cmaes, class_name="CMA"), "cmaes"),
    _method("cmaes-sep", "its diagonal variant (sep-CMA-ES)", partial(cmaes, class_name="SepCMA"), "cmaes"),
    _method("cmaes-xnes", "its exponential natural evolution strategy", partial(cmaes, class_name="XNES"), "cmaes"),
    # a search of fcmaes affects the random numbers of the next one
    Method("fcmaes", fcmaes, "CMA-ES in C++, of the package fcmaes", packages=("fcmaes",), extra="bench", traces=True),
    Method("crfmnes", crfmnes, "CR-FM-NES, for many variables", packages=("crfmnes",), extra="bench", bounded=False),
    Method("nevergrad", nevergrad, "NGOpt of the package nevergrad", packages=("nevergrad",)),
)
