"""Our own searches. A structure may follow the name: esgroup:diagonal, wishart:diagonal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from esgroup.compare.methods.method import Method
from esgroup.compare.trial import Trial
from esgroup.groups import parse

if TYPE_CHECKING:
    from esgroup.driver.spaces import Space


@dataclass(frozen=True)
class Search:
    """`esgroup.minimize` on whole generations, with some of its options."""

    structure: str = "auto"
    algorithm: str = "default"
    noise: str | None = None
    restarts: str | None = None

    def __call__(self, trial: Trial) -> str:
        from esgroup.driver.minimize import minimize

        result = minimize(
            trial.batch,
            trial.x0,
            trial.sigma0,
            vectorized=True,
            structure=self.structure,
            algorithm=self.algorithm,
            noise=self.noise,
            restarts=self.restarts,
            bounds=trial.pairs,
            max_evals=trial.budget,
            rng=trial.seed,
        )
        return str(result.message)

    def of_structure(self, structure: str) -> Search:
        """The same search with another structure."""
        return replace(self, structure=structure)


@dataclass(frozen=True)
class SpaceSearch:
    """`esgroup.minimize` over matrices themselves."""

    space: Space
    structure: str = "auto"

    def __call__(self, trial: Trial) -> str:
        from esgroup.driver.minimize import minimize

        result = minimize(
            trial.batch,
            trial.x0,
            None if self.space == "spd" else trial.sigma0,  # which is one of coordinates for positive-definite matrices
            space=self.space,
            structure=self.structure,
            vectorized=True,
            max_evals=trial.budget,
            rng=trial.seed,
        )
        return str(result.message)

    def of_structure(self, structure: str) -> SpaceSearch:
        """The same search with another structure."""
        return replace(self, structure=structure)


def _group_or_auto(structure: str, dim: int) -> None:
    if structure != "auto":
        parse(structure, dim)


def _method(name: str, about: str, search: Search) -> Method:
    return Method(
        name, search, about, packages=("esgroup",), of_structure=search.of_structure, check_structure=_group_or_auto
    )


def _native(name: str, about: str, space: Space) -> Method:
    search = SpaceSearch(space)
    return Method(
        name, search, about, packages=("esgroup",), bounded=False, of_structure=search.of_structure, spaces=(space,)
    )


METHODS = (
    _method("esgroup", "our search with its defaults; a structure may follow, as in esgroup:diagonal", Search()),
    _method("esgroup-paper", "the plain published update; with full structure this is xNES", Search(algorithm="paper")),
    _method("esgroup-adapt", "learning rates that follow the noise", Search(noise="adapt")),
    _method("esgroup-bipop", "with restarts, BIPOP", Search(restarts="bipop")),
    _native("wishart", "positive-definite matrices themselves, with a Wishart distribution", "spd"),
    _native("matrix-gaussian", "matrices themselves, with a matrix Gaussian", "matrix"),
)
