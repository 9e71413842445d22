"""The methods of this package. A structure may follow the name: esgroup:diagonal, wishart:diagonal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from esgroup.compare.methods.method import ENDLESS, GTOL, Method
from esgroup.compare.trial import Trial
from esgroup.groups import parse
from esgroup.options import Algorithm, Model, Noise

if TYPE_CHECKING:
    from esgroup.driver.spaces import SpaceName as Space


@dataclass(frozen=True)
class Search:
    """`esgroup.minimize`, evaluating whole generations, with some of its options."""

    structure: str = "auto"
    algorithm: Algorithm = "default"
    noise: Noise | None = None
    restarts: Literal["ipop", "bipop"] | None = None
    model: Model | None = None

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
            model=self.model,
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
    """`esgroup.minimize` on matrices themselves."""

    space: Space
    structure: str = "auto"

    def __call__(self, trial: Trial) -> str:
        from esgroup.driver.minimize import minimize

        result = minimize(
            trial.batch,
            trial.x0,
            None if self.space == "spd" else trial.sigma0,  # for positive-definite matrices it is in coordinates
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


@dataclass(frozen=True)
class Newton:
    """`esgroup.newton.minimize_newton` with its defaults, but for tolerances, which leave the end to the targets."""

    structure: str | None = None  # that of `minimize_newton`

    def __call__(self, trial: Trial) -> str:
        from esgroup.newton import minimize_newton

        method = minimize_newton if self.structure is None else partial(minimize_newton, structure=self.structure)
        result = method(
            trial.fun,
            trial.x0,
            jac=trial.gradient,
            hessp=trial.product,
            hess_diag=trial.diagonal,
            gtol=GTOL,
            max_iters=ENDLESS,
            rng=trial.seed,
        )
        return str(result.message)


def _check_newton_structure(structure: str, dim: int) -> None:
    """Raise the method's own error for what is neither a group of this dimension nor a moving block."""
    from esgroup.newton.options import structure_of

    structure_of(structure, dim)


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
    _method("esgroup-model", "with a quadratic model, for few evaluations", Search(model="quadratic")),
    _native("wishart", "positive-definite matrices themselves, with a Wishart distribution", "spd"),
    _native("matrix-gaussian", "matrices themselves, with a matrix Gaussian", "matrix"),
    Method(
        "newton",
        Newton(),
        "our structured Newton method; a structure may follow, as in newton:diagonal",
        packages=("esgroup",),
        bounded=False,
        gradients="needed",
        of_structure=Newton,
        check_structure=_check_newton_structure,
    ),
)
