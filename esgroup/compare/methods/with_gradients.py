"""Newton methods, ours and SciPy's: they need gradients, and use products with the Hessian where there are some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from esgroup.compare.methods.method import Method
from esgroup.compare.methods.with_scipy import ENDLESS, GTOL, Minimise, Product
from esgroup.compare.trial import Trial


@dataclass(frozen=True)
class Newton:
    """`esgroup.newton.minimize_newton` with its defaults, but for tolerances that leave the end to the targets."""

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


def check_structure(structure: str, dim: int) -> None:
    """Refuse what is neither a group of that dimension nor a moving block, in the method's own words."""
    from esgroup.newton.options import structure_of

    structure_of(structure, dim)


def given(trial: Trial) -> Product | None:
    """The trial's products."""
    return trial.product


def given_or_differences(trial: Trial) -> Product:
    """The trial's products; without them differences of gradients, two for a product."""
    from esgroup.gradients.differences import with_difference_products
    from esgroup.gradients.function import Gradients

    if trial.product is not None:
        return trial.product
    assert trial.gradient is not None  # a problem without is refused before
    function = with_difference_products(Gradients(dim=len(trial.x0), fun=trial.fun, jac=trial.gradient))
    return lambda x, v: function.products(x, v[None])[0]


# an average step of 1e-15 is one of rounding; Newton-CG has no tolerance of gradients
_NEWTON_CG = Minimise("Newton-CG", (("xtol", 1e-15), ("maxiter", ENDLESS)), gradient=True, products=given)
_KRYLOV = Minimise("trust-krylov", (("gtol", GTOL), ("maxiter", ENDLESS)), gradient=True, products=given_or_differences)


def _scipys(name: str, about: str, run: Callable[[Trial], str]) -> Method:
    return Method(name, run, about, packages=("scipy",), bounded=False, gradients="needed")


METHODS = (
    Method(
        "newton",
        Newton(),
        "our structured Newton method; a structure may follow, as in newton:diagonal",
        packages=("esgroup",),
        bounded=False,
        gradients="needed",
        of_structure=Newton,
        check_structure=check_structure,
    ),
    _scipys("newton-cg", "SciPy's Newton-CG, with products of the Hessian", _NEWTON_CG),
    _scipys("trust-krylov", "SciPy's trust-region Newton method, with products of the Hessian", _KRYLOV),
)
