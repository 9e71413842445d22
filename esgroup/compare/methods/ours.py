"""The methods of this package. A structure may follow the name: esgroup:diagonal, wishart:diagonal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from esgroup.compare.methods.method import ENDLESS, GTOL, Method
from esgroup.compare.trial import Trial
from esgroup.groups import parse

if TYPE_CHECKING:
    from esgroup.driver.spaces import SpaceName


def search(trial: Trial, space: SpaceName = "vector", **options: Any) -> str:
    """`esgroup.minimize`, evaluating whole generations, with some of its options."""
    from esgroup.driver.minimize import minimize

    result = minimize(
        trial.batch,
        trial.x0,
        None if space == "spd" else trial.sigma0,  # for positive-definite matrices it is in coordinates
        space=space,
        vectorized=True,
        bounds=trial.pairs,
        max_evals=trial.budget,
        rng=trial.seed,
        **options,
    )
    return str(result.message)


def newton(trial: Trial, **options: Any) -> str:
    """`esgroup.newton.minimize_newton` with its defaults, except tolerances: the targets end the run."""
    from esgroup.newton import minimize_newton

    result = minimize_newton(
        trial.fun,
        trial.x0,
        jac=trial.gradient,
        hessp=trial.product,
        hess_diag=trial.diagonal,
        gtol=GTOL,
        max_iters=ENDLESS,
        rng=trial.seed,
        **options,
    )
    return str(result.message)


def _check_newton_structure(structure: str, dim: int) -> None:
    """Raise the method's own error if a structure is neither a group of this dimension nor a moving block."""
    from esgroup.newton.options import structure_of

    structure_of(structure, dim)


def _group_or_auto(structure: str, dim: int) -> None:
    if structure != "auto":
        parse(structure, dim)


def _method(name: str, about: str, run: Callable[..., str], **more: Any) -> Method:
    """A method of this package, whose function takes the structure as an argument."""

    def of_structure(structure: str) -> Callable[[Trial], str]:
        return partial(run, structure=structure)

    return Method(name, run, about, packages=("esgroup",), of_structure=of_structure, **more)


def _vector_search(name: str, about: str, **options: Any) -> Method:
    return _method(name, about, partial(search, **options), check_structure=_group_or_auto)


def _matrix_search(name: str, about: str, space: SpaceName) -> Method:
    return _method(name, about, partial(search, space=space), bounded=False, spaces=(space,))


METHODS = (
    _vector_search("esgroup", "esgroup with its defaults; also with a structure, such as esgroup:diagonal"),
    _vector_search("esgroup-paper", "the plain published update; with full structure this is xNES", algorithm="paper"),
    _vector_search("esgroup-adapt", "with learning rates that adapt to noise", noise="adapt"),
    _vector_search("esgroup-bipop", "with restarts, BIPOP", restarts="bipop"),
    _vector_search("esgroup-model", "with a quadratic model, for few evaluations", model="quadratic"),
    _matrix_search("wishart", "for positive-definite matrices, with a Wishart distribution", "spd"),
    _matrix_search("matrix-gaussian", "for matrices, with a matrix Gaussian", "matrix"),
    _method(
        "newton",
        "structured Newton method; also with a structure, such as newton:diagonal",
        newton,
        check_structure=_check_newton_structure,
        bounded=False,
        gradients="needed",
    ),
)
