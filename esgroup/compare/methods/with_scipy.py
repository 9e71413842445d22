"""SciPy's minimisers, with tolerances so small that the targets decide when they end.

Some use gradients where the problem has them; Newton-CG and trust-krylov need them, and products with the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esgroup.checks import Array
from esgroup.compare.methods.method import ENDLESS, GTOL, GradientUse, Method
from esgroup.compare.trial import Trial

HessianProduct = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Minimise:
    """`scipy.optimize.minimize` with one of its methods; `options` are pairs, so that instances can be compared.

    `products` maps a trial to the products with its Hessian, or to None if SciPy is to approximate them.
    """

    method: str
    options: tuple[tuple[str, Any], ...]
    gradient: bool = False
    products: Callable[[Trial], HessianProduct | None] | None = None

    def __call__(self, trial: Trial) -> str:
        from scipy.optimize import minimize

        result = minimize(
            trial.fun,
            trial.x0,
            method=self.method,
            jac=trial.gradient if self.gradient else None,
            hessp=None if self.products is None else self.products(trial),
            bounds=trial.pairs,
            options=dict(self.options),
        )
        return f"SciPy: {result.message}"


def differential_evolution(trial: Trial) -> str:
    """`scipy.optimize.differential_evolution` in the trial's box, with its defaults except for the tolerance."""
    from scipy.optimize import differential_evolution as search

    result = search(trial.fun, trial.box, maxiter=ENDLESS, tol=1e-8, rng=trial.seed, x0=trial.x0)
    return f"SciPy: {result.message}"


def given(trial: Trial) -> HessianProduct | None:
    """The trial's products with the Hessian."""
    return trial.product


def given_or_differences(trial: Trial) -> HessianProduct:
    """The trial's products with the Hessian; without them differences of gradients, two for a product."""
    from esgroup.gradients.differences import with_difference_products
    from esgroup.gradients.function import Gradients

    if trial.product is not None:
        return trial.product
    assert trial.gradient is not None  # problems without gradients are refused before
    function = with_difference_products(Gradients(dim=len(trial.x0), fun=trial.fun, jac=trial.gradient))
    return lambda x, v: function.products(x, v[None])[0]


_BFGS = (("gtol", GTOL), ("maxiter", ENDLESS))
_LBFGSB = (("gtol", GTOL), ("ftol", 0.0), ("maxiter", ENDLESS), ("maxfun", ENDLESS))
_SIMPLEX = (("xatol", 1e-12), ("fatol", 1e-12), ("adaptive", True), ("maxiter", ENDLESS), ("maxfev", ENDLESS))
# an average step of 1e-15 is rounding error; Newton-CG has no tolerance for gradients
_NEWTON_CG = Minimise("Newton-CG", (("xtol", 1e-15), ("maxiter", ENDLESS)), gradient=True, products=given)
_KRYLOV = Minimise("trust-krylov", (("gtol", GTOL), ("maxiter", ENDLESS)), gradient=True, products=given_or_differences)


def _method(
    name: str, about: str, run: Callable[[Trial], str], gradients: GradientUse = "none", bounded: bool = True
) -> Method:
    return Method(name, run, about, packages=("scipy",), bounded=bounded, gradients=gradients)


_DIFFERENCES = "gradients by finite differences"

METHODS = (
    _method("bfgs", "SciPy's BFGS", Minimise("BFGS", _BFGS, gradient=True), "given", bounded=False),
    _method("bfgs-fd", f"SciPy's BFGS, {_DIFFERENCES}", Minimise("BFGS", _BFGS), "differences", bounded=False),
    _method("l-bfgs-b", "SciPy's L-BFGS-B", Minimise("L-BFGS-B", _LBFGSB, gradient=True), "given"),
    _method("l-bfgs-b-fd", f"SciPy's L-BFGS-B, {_DIFFERENCES}", Minimise("L-BFGS-B", _LBFGSB), "differences"),
    _method("nelder-mead", "SciPy's simplex, with adaptive parameters", Minimise("Nelder-Mead", _SIMPLEX)),
    _method("differential-evolution", "SciPy's differential evolution, in a box", differential_evolution),
    _method("newton-cg", "SciPy's Newton-CG, with products of the Hessian", _NEWTON_CG, "needed", bounded=False),
    _method(
        "trust-krylov",
        "SciPy's trust-region Newton method, with products of the Hessian",
        _KRYLOV,
        "needed",
        bounded=False,
    ),
)
