"""cmaes (CyberAgent): a small implementation with ask and tell."""

from __future__ import annotations

from dataclasses import dataclass

from esgroup.compare.methods.method import Method
from esgroup.compare.trial import Trial


@dataclass(frozen=True)
class Cmaes:
    """One of the classes of cmaes with its defaults, until it wants to stop."""

    class_name: str

    def __call__(self, trial: Trial) -> str:
        import cmaes

        search = getattr(cmaes, self.class_name)(
            mean=trial.x0.copy(), sigma=trial.sigma0, bounds=trial.bounds, seed=trial.seed
        )
        while not search.should_stop():
            points = [search.ask() for _ in range(search.population_size)]
            search.tell([(x, trial.fun(x)) for x in points])
        return "cmaes: should_stop()"


def _method(name: str, about: str, class_name: str) -> Method:
    return Method(name, Cmaes(class_name), about, packages=("cmaes",), extra="compare")


METHODS = (
    _method("cmaes", "CMA-ES of the package cmaes", "CMA"),
    _method("cmaes-sep", "its diagonal variant (sep-CMA-ES)", "SepCMA"),
    _method("cmaes-xnes", "its exponential natural evolution strategy", "XNES"),
)
