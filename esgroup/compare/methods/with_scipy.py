"""SciPy's minimisers, with tolerances so small that the targets decide when they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esgroup.checks import Array
from esgroup.compare.methods.method import Gradients, Method
from esgroup.compare.trial import Trial

ENDLESS = 10**9  # iterations: the trial ends the run
GTOL = 1e-11  # of gradients, everywhere

Product = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Minimise:
    """`scipy.optimize.minimize` by one of its methods; `options` are pairs, so that this can be compared.

    `products` takes a trial to what multiplies vectors by the Hessian, or to None if SciPy is to do without.
    """

    method: str
    options: tuple[tuple[str, Any], ...]
    gradient: bool = False
    products: Callable[[Trial], Product | None] | None = None

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
    """`scipy.optimize.differential_evolution` in the trial's box, with its defaults but for the tolerance."""
    from scipy.optimize import differential_evolution as search

    result = search(trial.fun, trial.box, maxiter=ENDLESS, tol=1e-8, rng=trial.seed, x0=trial.x0)
    return f"SciPy: {result.message}"


_BFGS = (("gtol", GTOL), ("maxiter", ENDLESS))
_LBFGSB = (("gtol", GTOL), ("ftol", 0.0), ("maxiter", ENDLESS), ("maxfun", ENDLESS))
_SIMPLEX = (("xatol", 1e-12), ("fatol", 1e-12), ("adaptive", True), ("maxiter", ENDLESS), ("maxfev", ENDLESS))


def _method(
    name: str, about: str, run: Callable[[Trial], str], gradients: Gradients = "none", bounded: bool = True
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
)
