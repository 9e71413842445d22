"""SciPy's minimizers, with tolerances so small that the targets end their runs.

Some use gradients where the problem has them; Newton-CG and trust-krylov need them, and products with the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from esgroup.checks import Array
from esgroup.compare.methods.method import ENDLESS, GTOL, GradientUse, Method
from esgroup.compare.trial import Trial

HessianProduct = Callable[[Array, Array], Array]


def minimize(
    trial: Trial,
    method: str,
    *,
    gradient: bool = False,
    products: Callable[[Trial], HessianProduct | None] | None = None,
    **options: Any,
) -> str:
    """`scipy.optimize.minimize` with one of its methods and its options.

    `products` maps a trial to the products with its Hessian, or to None if SciPy is to approximate them.
    """
    from scipy import optimize

    result = optimize.minimize(
        trial.fun,
        trial.x0,
        method=method,
        jac=trial.gradient if gradient else None,
        hessp=None if products is None else products(trial),
        bounds=trial.pairs,
        options=options,
    )
    return f"SciPy: {result.message}"


def differential_evolution(trial: Trial) -> str:
    """`scipy.optimize.differential_evolution` in the trial's box, with its defaults except for the tolerance."""
    from scipy.optimize import differential_evolution as search

    result = search(trial.fun, trial.box, maxiter=ENDLESS, tol=1e-8, rng=trial.seed, x0=trial.x0)
    return f"SciPy: {result.message}"


def given_or_differences(trial: Trial) -> HessianProduct:
    """The trial's products with the Hessian; without them differences of gradients, two for a product."""
    from esgroup.gradients.differences import with_difference_products
    from esgroup.gradients.function import Gradients

    if trial.product is not None:
        return trial.product
    assert trial.gradient is not None  # problems without gradients are refused before
    function = with_difference_products(Gradients(dim=len(trial.x0), fun=trial.fun, jac=trial.gradient))
    return lambda x, v: function.products(x, v[None])[0]


_BFGS = partial(minimize, method="BFGS", gtol=GTOL, maxiter=ENDLESS)
_LBFGSB = partial(minimize, method="L-BFGS-B", gtol=GTOL, ftol=0.0, maxiter=ENDLESS, maxfun=ENDLESS)
_SIMPLEX = partial(
    minimize, method="Nelder-Mead", xatol=1e-12, fatol=1e-12, adaptive=True, maxiter=ENDLESS, maxfev=ENDLESS
)
_WITH_PRODUCTS = partial(minimize, gradient=True, maxiter=ENDLESS)
# an average step of 1e-15 is rounding error; Newton-CG has no tolerance for gradients
_NEWTON_CG = partial(_WITH_PRODUCTS, method="Newton-CG", products=attrgetter("product"), xtol=1e-15)
_KRYLOV = partial(_WITH_PRODUCTS, method="trust-krylov", products=given_or_differences, gtol=GTOL)


def _method(
    name: str, about: str, run: Callable[[Trial], str], gradients: GradientUse = "none", bounded: bool = True
) -> Method:
    return Method(name, run, about, packages=("scipy",), bounded=bounded, gradients=gradients)


_with_hessian = partial(_method, gradients="needed", bounded=False)
_DIFFERENCES, _HESSIAN = "gradients by finite differences", "with Hessian-vector products"

METHODS = (
    _method("bfgs", "SciPy's BFGS", partial(_BFGS, gradient=True), "given", bounded=False),
    _method("bfgs-fd", f"SciPy's BFGS, {_DIFFERENCES}", _BFGS, "differences", bounded=False),
    _method("l-bfgs-b", "SciPy's L-BFGS-B", partial(_LBFGSB, gradient=True), "given"),
    _method("l-bfgs-b-fd", f"SciPy's L-BFGS-B, {_DIFFERENCES}", _LBFGSB, "differences"),
    _method("nelder-mead", "SciPy's simplex, with adaptive parameters", _SIMPLEX),
    _method("differential-evolution", "SciPy's differential evolution, in a box", differential_evolution),
    _with_hessian("newton-cg", f"SciPy's Newton-CG, {_HESSIAN}", _NEWTON_CG),
    _with_hessian("trust-krylov", f"SciPy's trust-region Newton method, {_HESSIAN}", _KRYLOV),
)
